// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What makes a job slower than it need be: the same things that make other people's slow, to be put
// in and taken out again.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct burden {
	uint64_t prepare_ns; // of CPU time for each image, beside rendering it
	int64_t slow_worker; // the worker that needs slow_worker_ns more; -1: none
	uint64_t slow_worker_ns;
	const char *file; // of which read_bytes are read for each image; NULL: none
	uint64_t read_bytes;
};

// Keeps a CPU busy until this thread has used so much of its time: beside others it takes longer,
// as work does.
void burden_spin(uint64_t ns);

struct burden_file; // an open file, and where in it the images are

// *ret is NULL where the burden has no file.
int burden_open(const struct burden *burden, struct burden_file **ret, struct error *e);
void burden_close(struct burden_file *file); // accepts NULL

// What image `index` costs the worker of that number (-1: the trainer itself).
int burden_bear(const struct burden *burden, struct burden_file *file, int64_t worker,
	uint32_t index, struct error *e);
