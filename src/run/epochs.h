// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The epochs of a run: its spans of kind "epoch", sorted and without overlaps.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct reader;
struct text;

// A number that the job printed (loss=0.31): the last one within the epoch.
struct epoch_point {
	char *name;
	double value; // also NAN and INFINITY
};

struct epoch {
	int64_t span; // id of its row in the table span
	int64_t number; // unique in the run: the job's number, else 1, 2, ...
	int64_t start_ns;
	int64_t end_ns; // of an open epoch: the last time recorded
	int64_t stopped_ns; // time for which the job was stopped (stops.h)
	bool open; // the run ended before it did
	int64_t samples; // trained in it; -1: not known
	struct epoch_point *points; // [n_points]
	size_t n_points;
};

struct epoch_list {
	struct epoch *items; // sorted by start
	size_t n;
	size_t capacity;
	bool first_with_start; // output marks ends of epochs: the first one includes everything
	                       // before it
};

int epoch_list_load(struct reader *r, struct epoch_list *ret, struct error *e);
void epoch_list_done(struct epoch_list *list);
// Appends which points are not finite, if any: "loss is nan in epoch 3, the first of 4 of 6".
void epoch_list_append_not_finite(struct text *t, const struct epoch_list *list);
// The index of the epoch that contains t_ns; -1: none. `hint`: the index at which to start.
ptrdiff_t epoch_at(const struct epoch_list *list, int64_t t_ns, size_t hint);
// Duration without the time for which the job was stopped.
double epoch_length_s(const struct epoch *epoch);
// Duration of one epoch; NAN: it is open, or it includes the start of the job.
double epoch_seconds(const struct epoch_list *list, size_t index);
// Median duration of the epochs that ended, in seconds; NAN: there are none. An epoch that includes
// the start of the job counts only if it is the only one.
double epoch_typical_seconds(const struct epoch_list *list);
