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
	bool shared; // dt1 or dt2, which all frameworks have
	int64_t dataset_samples; // 0: no dataset was named
	int64_t samples;
	int64_t validation_samples; // scored after each epoch
	int64_t image_size; // edge of what the model sees
	int64_t classes; // 0: the dataset's
	int64_t processes; // that share each batch
	int64_t seed;
	int64_t threads; // 0: the environment's, else the CPUs that this process may use
	int64_t workers;
	int64_t ranks;
	int64_t validate; // batches scored after each epoch
	const char *checkpoint; // file written after each epoch; NULL: none
	int64_t checkpoint_bytes;
	// What makes it slow.
	struct burden burden;
	int64_t prepare_us;
	int64_t slow_worker_us;
	int64_t image_bytes;
	int64_t step_us; // the trainer's own time in each step, between its parts
	int64_t slow_rank; // the rank whose forward pass takes slow_rank_us more; -1: none
	int64_t slow_rank_us;
};

// Parses the command line; ends the program where it is wrong, with status 2.
void settings_parse(int argc, char **argv, struct settings *ret);
