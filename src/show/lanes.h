// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What threads did over time, for pictures: of each bucket of time the share that the main thread
// spent in each phase, that each loader worker spent preparing, and that each of several ranks
// spent on its own work; and how long iterations took.

#pragma once

#include <stddef.h>

#include "base/error.h"
#include "run/phases.h"
#include "show/buckets.h"

struct analysis;

#define LANE_ROWS_MAX 32 // of a kind; of more at once the first are drawn

struct lane_series {
	struct buckets buckets;
	struct packed packed; // filled by lanes_pack
};

struct lane_row {
	char *label; // escape it
	int number; // of the loader worker or rank among its kind; -1: not known
	size_t in_turn; // who had this row one after the other
	struct lane_series series;
};

#define LANE_PIECES_MAX 1000 // in a window at full rate; what has more is left to the buckets

// Exactly what was when, in a window around a slow iteration.
struct lane_piece {
	uint32_t place; // index of a phase, or of a row
	int64_t from_ns;
	int64_t to_ns;
};

struct lane_detail {
	struct lane_piece *pieces;
	size_t n; // more than LANE_PIECES_MAX: too many, and those are not all
	size_t capacity;
};

struct lane_list {
	struct lane_series phases[PHASES_MAX]; // by the index in struct phases
	struct lane_series lengths; // of iterations, at their ends, in seconds
	struct detail_series lengths_details[DETAILS_MAX];
	struct lane_row workers[LANE_ROWS_MAX];
	size_t n_workers;
	size_t workers_left_out;
	struct lane_row ranks[LANE_ROWS_MAX]; // by number; none where there is one rank
	size_t n_ranks;
	size_t ranks_left_out;
	struct detail_window windows[DETAILS_MAX];
	size_t n_windows;
	struct lane_detail phase_details[DETAILS_MAX];
	struct lane_detail worker_details[DETAILS_MAX];
	struct lane_detail rank_details[DETAILS_MAX];
};

// In bounded memory. 0, or -errno: what of a damaged file could be read is there, unless -ENOMEM.
int lanes_collect(const struct analysis *a, struct lane_list *ret, struct error *e);
// Into at most `most` bytes of text together: all of a kind are coarsened alike. 0 or -ENOMEM.
int lanes_pack(struct lane_list *lanes, size_t most);
void lanes_done(struct lane_list *lanes);
