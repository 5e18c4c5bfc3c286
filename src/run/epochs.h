// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The epochs of a run: its spans of kind "epoch", in order, none overlapping another.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct reader;

// A number that the job printed (loss=0.31): the last one within the epoch.
struct epoch_point {
	char *name;
	double value;
};

struct epoch {
	int64_t span; // id of its row in the table span
	int64_t number; // unique within the run: the job's own where it gave one, else 1, 2, ...
	int64_t start_ns;
	int64_t end_ns; // of an open one: the last time recorded so far
	int64_t stopped_ns; // of that the job was stopped (stops.h)
	bool open; // it had not ended when the run did
	int64_t samples; // trained in it; -1 where nobody said
	struct epoch_point *points; // [n_points]
	size_t n_points;
};

struct epoch_list {
	struct epoch *items; // sorted by start
	size_t n;
	size_t capacity;
	bool first_with_start; // lines end epochs: the first holds what came before it, imports too
};

int epoch_list_load(struct reader *r, struct epoch_list *ret, struct error *e);
void epoch_list_done(struct epoch_list *list);
// The index of the epoch that holds t_ns, -1 for none. `hint` is an index to start looking from.
ptrdiff_t epoch_at(const struct epoch_list *list, int64_t t_ns, size_t hint);
// How long it lasted, without the time that the job was stopped.
double epoch_length_s(const struct epoch *epoch);
// Of one of them: NAN where it is open, or the first and holds the job's start.
double epoch_seconds(const struct epoch_list *list, size_t index);
// Median length of the epochs that ended, in seconds; NAN where there is none. A first one with the
// job's start in it counts only where it is the only one.
double epoch_typical_seconds(const struct epoch_list *list);
