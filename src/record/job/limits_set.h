// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The setters of limits.c that have files of their own. Each sets one limit and says in
// limits->set how. 0 or -errno with a text that does not name the option yet.

#pragma once

#include "record/job/limits.h"

// limits_disk.c
int limits_set_disk_read(const struct limits_wanted *wanted, const struct limits_place *place,
	struct limits *limits, struct error *e);

// limits_gpus.c
int limits_set_gpus(const struct limits_wanted *wanted, const struct limits_place *place,
	struct limits *limits, struct error *e);
// Checks and takes a list of cards, without blanks: "0,2", "GPU-8932f937", "3,".
int limits_read_gpu_list(const char *text, char **ret, struct error *e);

enum { LIMIT_GPUS_MAX = 128, GPU_UUID_BYTES = 96 };

// The cards of a machine.
struct gpu_cards {
	unsigned n;
	bool hip; // AMD's: no UUIDs
	char uuids[LIMIT_GPUS_MAX][GPU_UUID_BYTES];
};

// Which of `cards` the job gets, as CUDA_VISIBLE_DEVICES says it, of those that `visible` (the same
// variable of ours; NULL: all) names. *ret is owned by the caller.
int limits_choose_gpus(const struct limits_wanted *wanted, const struct gpu_cards *cards,
	const char *visible, char **ret, unsigned *ret_count, struct error *e);
