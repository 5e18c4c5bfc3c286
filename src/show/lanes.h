// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Threads over time, for pictures: for each bucket of time, the share that the main thread spent in
// each phase, that each loader worker spent preparing, and that each of several ranks spent on its
// own work. Also the lengths of iterations.

#pragma once

#include <stddef.h>

#include "base/error.h"
#include "run/phases.h"
#include "show/buckets.h"

struct analysis;

#define LANE_ROWS_MAX 32 // per kind; if more ran at the same time, the first ones are drawn

struct lane_series {
	struct buckets buckets;
	struct packed packed; // set by lanes_pack
};

struct lane_row {
	char *label; // escape it
	int number; // of the loader worker or rank; -1: not known
	size_t in_turn; // number of workers that had this row, one after the other
	struct lane_series series;
};

#define LANE_PIECES_MAX 1000 // in a window at full rate; windows with more use buckets

// An exact stretch of time in a window around a slow iteration.
struct lane_piece {
	uint32_t place; // index of a phase or a row
	int64_t from_ns;
	int64_t to_ns;
};

struct lane_detail {
	struct lane_piece *pieces;
	size_t n; // more than LANE_PIECES_MAX: incomplete
	size_t capacity;
};

struct lane_list {
	struct lane_series phases[PHASES_MAX]; // by index into phases.items
	struct lane_series lengths; // lengths of iterations in seconds, at their ends
	struct detail_series lengths_details[DETAILS_MAX];
	struct lane_row workers[LANE_ROWS_MAX];
	size_t n_workers;
	size_t workers_left_out;
	struct lane_row ranks[LANE_ROWS_MAX]; // by number; empty for a single rank
	size_t n_ranks;
	size_t ranks_left_out;
	struct detail_window windows[DETAILS_MAX];
	size_t n_windows;
	struct lane_detail phase_details[DETAILS_MAX];
	struct lane_detail worker_details[DETAILS_MAX];
	struct lane_detail rank_details[DETAILS_MAX];
};

// Uses bounded memory. Returns 0 or -errno; except for -ENOMEM, *ret has what could be read of a
// damaged file.
int lanes_collect(const struct analysis *a, struct lane_list *ret, struct error *e);
// Packs all into at most `most` bytes of text. Lanes of a kind are coarsened equally. Returns 0 or
// -ENOMEM.
int lanes_pack(struct lane_list *lanes, size_t most);
void lanes_done(struct lane_list *lanes);
