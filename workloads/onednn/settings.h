// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The options of onednn-train.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "burden.h"
#include "network.h"

struct settings {
	const struct model *model;
	int64_t batch_size;
	int64_t epochs;
	bool shared; // dt1 or dt2, common to all frameworks
	int64_t dataset_samples; // 0: no dataset was given
	int64_t samples;
	int64_t validation_samples; // evaluated after each epoch
	int64_t image_size; // edge of the model's input
	int64_t classes; // 0: those of the dataset
	int64_t processes; // number that share each batch
	int64_t seed;
	int64_t threads; // 0: that of the environment, else the CPUs that this process may use
	int64_t workers;
	int64_t ranks;
	int64_t validate; // batches evaluated after each epoch
	const char *checkpoint; // file written after each epoch; NULL: none
	int64_t checkpoint_bytes;
	// Optional slow-downs.
	struct burden burden;
	int64_t prepare_us;
	int64_t slow_worker_us;
	int64_t image_bytes;
	int64_t step_us; // time of the trainer itself in each step, between its parts
	int64_t slow_rank; // the rank whose forward pass takes slow_rank_us longer; -1: none
	int64_t slow_rank_us;
};

// Parses the command line; exits with status 2 if it is wrong.
void settings_parse(int argc, char **argv, struct settings *ret);
