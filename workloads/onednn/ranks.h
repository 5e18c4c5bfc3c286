// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Several processes that train together and wait for each other after every step.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ranks;

// Starts `count - 1` more processes, which all return from this call. Call it before any thread is
// started. They can average up to `floats` numbers, in anonymous shared memory.
int ranks_start(uint32_t count, size_t floats, struct ranks **ret, struct error *e);

// The number of this process; 0 started the others.
uint32_t ranks_number(const struct ranks *ranks);

// Waits until all have called it. -ECHILD: one of them has ended.
int ranks_meet(struct ranks *ranks, struct error *e);

// A part of the numbers that each rank has.
struct piece {
	float *values;
	size_t count;
};

// Replaces each number by its mean over the ranks. All ranks call it with the same number of
// values. -ECHILD as above.
int ranks_average(
	struct ranks *ranks, const struct piece *pieces, size_t piece_count, struct error *e);

// Rank 0 waits for the others to end; -ECHILD if one failed. The others only release their
// resources. Accepts NULL.
int ranks_end(struct ranks *ranks, struct error *e);
