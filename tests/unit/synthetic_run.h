// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Writes a run file like a recorder, with computed data that is the same every time. For tests of
// everything that reads runs.
//
// Entities by id: 1 host, 2 job, 3 python3 train.py, 4 and 5 its loader workers, 6 GPU, 7 disk, 8
// network interface, 9 recorder. Three epochs of equal length fill the run except its first and
// last tenth. The first half of each epoch is limited by the input, the second by the GPU.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct synthetic_run {
	double seconds; // length
	uint64_t interval_ns; // of a tick; 0: 10 ms
	uint64_t max_bytes; // like --max-size
	bool unfinished; // the run has no end, as if the recorder was killed
	unsigned iterations; // marked with their phases; 0: none
	unsigned workers; // that mark their batches
	unsigned own; // named spans in each iteration
	unsigned ranks; // that train; 0 means one
	int64_t recorder_pid; // run key recorder_pid; 0: a process that does not exist
};

enum synthetic_entity {
	SYNTHETIC_HOST = 1,
	SYNTHETIC_JOB,
	SYNTHETIC_MAIN,
	SYNTHETIC_WORKER_1,
	SYNTHETIC_WORKER_2,
	SYNTHETIC_GPU,
	SYNTHETIC_DISK,
	SYNTHETIC_NETWORK,
	SYNTHETIC_RECORDER,
};

// Replaces an existing file.
int synthetic_run_write(const char *path, const struct synthetic_run *run, struct error *e);
