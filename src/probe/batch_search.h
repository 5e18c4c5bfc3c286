// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The largest batch size that fits, by the line of memory (memory_model.h) and by runs under the
// limit: which one to run next, and when to stop.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "run/phases.h"

enum { BATCH_SEARCH_RUNS_MAX = 6 }; // under the limit

struct batch_search {
	// Given. Memory that is regular is the same in each run of a batch size; with a pinned
	// allocator, or on a GPU, it is.
	bool regular;
	bool pinned; // the allocator of the host
	// Known so far.
	struct estimate line; // batch size at which the line meets the limit
	// By what was measured on both sides of the limit (memory_point_largest()); 0: not known.
	int64_t between;
	int64_t measured; // largest whose memory was measured below the limit; 0: none
	int64_t fits; // largest that ran under the limit; 0: none
	int64_t fails; // smallest that did not fit; 0: none
	// Set by batch_search_run().
	int failures; // since the line changed
	bool bent; // what ran does not agree with the line
};

// What the search does, with the caller's context. Each updates line, between, measured,
// fits and fails.
struct batch_search_calls {
	// Runs a batch size under the limit. Returns 1 if it fits, 0 if not; -ENODATA if that is
	// not known, or no run can be made; or another -errno.
	int (*verify)(struct batch_search *s, int64_t batch, void *context);
	// Measures memory nearer to `fails`, without the limit. Returns 1 if the line has another
	// answer, 0 if not, or -errno.
	int (*measure_nearer)(struct batch_search *s, void *context);
	void *context;
};

// Narrows what lies between `fits` and `fails`. Returns 0, also if a call returned -ENODATA;
// another -errno of a call.
int batch_search_run(struct batch_search *s, const struct batch_search_calls *calls);
// The next batch size to run under the limit; 0: the answer is narrow enough.
int64_t batch_search_next(const struct batch_search *s);
