// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Slows a job down in ways that are common in practice, each of which can be switched on and off.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct burden {
	uint64_t prepare_ns; // CPU time per image, in addition to rendering it
	int64_t slow_worker; // the worker that takes slow_worker_ns longer; -1: none
	uint64_t slow_worker_ns;
	const char *file; // read_bytes of it are read per image; NULL: none
	uint64_t read_bytes;
};

// Keeps a CPU busy until this thread has used this much CPU time. With other load it takes longer,
// like real work.
void burden_spin(uint64_t ns);

struct burden_file; // an open file, and the offsets of images in it

// *ret is NULL if the burden has no file.
int burden_open(const struct burden *burden, struct burden_file **ret, struct error *e);
void burden_close(struct burden_file *file); // accepts NULL

// Spends the cost of image `index` in this worker (-1: the trainer itself).
int burden_bear(const struct burden *burden, struct burden_file *file, int64_t worker,
	uint32_t index, struct error *e);
