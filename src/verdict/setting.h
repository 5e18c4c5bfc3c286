// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A setting of a job that needs no edit of its script. Advice that `strain advise --try` can try
// consists of settings.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

enum setting_kind {
	SETTING_ENVIRONMENT, // "OMP_NUM_THREADS=1"; of setting_variables alone
	// Of the training loader (torch.utils.data.DataLoader):
	SETTING_WORKERS, // "4"
	SETTING_PREFETCH, // "4": batches that each worker prepares ahead
	SETTING_PIN, // "1", "0"
	SETTING_PERSISTENT, // "1", "0"
	// Of the job:
	SETTING_CPUS, // "0-3,8": it may use these
	N_SETTING_KINDS,
};

enum { SETTINGS_MAX = 8, SETTING_VALUE_MAX = 80 };

struct setting {
	enum setting_kind kind;
	unsigned char choice; // settings of one choice are meant together; another choice is an
	                      // alternative ("OMP_NUM_THREADS=1, or OMP_WAIT_POLICY=passive")
	char value[SETTING_VALUE_MAX];
};

struct setting_list {
	struct setting items[SETTINGS_MAX];
	size_t n;
};

// Adds one. False, and the list as before, where there is no room, or it is none that a run of the
// job may have: a value out of its bounds, a variable that is not in the table of those that only
// change how fast a job is.
bool setting_add(
	struct setting_list *list, unsigned choice, enum setting_kind kind, const char *value);
// Those of one choice, as choice 0. False where there is none.
bool setting_choose(const struct setting_list *list, unsigned choice, struct setting_list *ret);
// Those of one and of the other. False, and *ret as *one, where they contradict each other or there
// is no room.
bool setting_join(
	const struct setting_list *one, const struct setting_list *other, struct setting_list *ret);
// Whether two lists are the same settings, in whatever order; choices do not matter.
bool setting_same(const struct setting_list *one, const struct setting_list *other);
// "OMP_NUM_THREADS=1 with num_workers=4".
void setting_append(struct text *t, const struct setting_list *list);
// The name of a setting in files and in JSON: "environment", "num_workers", "cpus".
const char *setting_kind_name(enum setting_kind kind);
// N_SETTING_KINDS: none has that name.
enum setting_kind setting_kind_of(const char *name);
