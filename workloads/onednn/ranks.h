// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Several processes that train side by side and wait for each other after every step.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ranks;

// Starts `count - 1` more processes: from here on each goes its own way. Before anything has
// threads. They can average up to `floats` numbers; memory that has no name is shared for that.
int ranks_start(uint32_t count, size_t floats, struct ranks **ret, struct error *e);

// Which one this is: 0 is the process that started the others.
uint32_t ranks_number(const struct ranks *ranks);

// Waits until all are here. -ECHILD: one of them is gone.
int ranks_meet(struct ranks *ranks, struct error *e);

// Some of the numbers of which each rank has its own.
struct piece {
	float *values;
	size_t count;
};

// Replaces each number by its mean over the ranks, which all call this with as many. -ECHILD as
// above.
int ranks_average(
	struct ranks *ranks, const struct piece *pieces, size_t piece_count, struct error *e);

// Rank 0 waits for the others to end; -ECHILD where one did not end well. The others only put away
// what they have. NULL is fine.
int ranks_end(struct ranks *ranks, struct error *e);
