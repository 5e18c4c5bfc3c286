// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What threads did over time, for pictures: of each bucket of time the share that the main thread
// spent in each phase, and that each loader worker spent preparing; and how long iterations took.

#pragma once

#include <stddef.h>

#include "analyze/phases.h"
#include "base/error.h"
#include "render/buckets.h"
#include "render/pack.h"

struct analysis;

#define LANE_WORKERS_MAX 32 // rows; of more that prepared at once the first are drawn

struct lane_series {
	struct buckets buckets;
	struct packed packed; // filled by lanes_pack
};

struct lane_worker {
	char *label; // escape it
	size_t in_turn; // workers that had this row one after the other
	struct lane_series series;
};

struct lane_list {
	struct lane_series phases[PHASES_MAX]; // by the index in struct phases
	struct lane_series lengths; // of iterations, at their ends, in seconds
	struct lane_worker workers[LANE_WORKERS_MAX];
	size_t n_workers;
	size_t workers_left_out;
};

// Memory and the page's room are bounded by `most`, buckets of each series. 0, or -errno: what of
// a damaged file could be read is there, unless -ENOMEM.
int lanes_collect(const struct analysis *a, size_t most, struct lane_list *ret, struct error *e);
int lanes_pack(struct lane_list *lanes); // 0 or -ENOMEM
void lanes_done(struct lane_list *lanes);
