// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Predicts a recorded job on another machine: its rate, the time of an epoch and its bottleneck,
// computed from its runs by the model of throughput (rate_model.h). Nothing is run.
//
// Memory acts through the page cache. A cache for the share c of the data, read once an epoch in
// random order, hits between
//
//     c + (1 - c) ln(1 - c)     the least recently used page is dropped: with x and y the places of
//                               a page in one epoch and in the next, it is still there if
//                               x (1 - y) > 1 - c
//     c                         a fixed part of the data is kept
//
// Where the recorded run lies between them is kept. If it does not tell, a quarter of the way is
// taken, as measured on Linux 6.18 without MGLRU: 0.19 to 0.35 at five sizes of the cache, from
// the third epoch on. In the second, it is at the lower bound.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "probe/observation.h"
#include "probe/rate_model.h"

enum what_if_kind {
	WHAT_IF_CPUS, // number
	WHAT_IF_MEMORY, // bytes for the job and its page cache
	WHAT_IF_DISK_READ, // bytes per second
	WHAT_IF_GPU_SPEED, // factor
	WHAT_IF_CPU_SPEED, // factor
	N_WHAT_IF,
};

// NAN: unchanged.
struct what_if_values {
	double of[N_WHAT_IF];
};

struct what_if_case {
	struct what_if_values values;
	struct rate_prediction at; // rate NAN: `note` says why
	struct estimate epoch; // seconds, with `between` if that is known; NAN: not known
	struct estimate gain; // rate over the recorded one
	struct estimate hit; // share of bytes from the page cache; NAN: the job read no files
	const char *note; // why it changes nothing, why there is no rate; NULL. Static
	bool too_small; // memory is less than the job holds
};

struct what_if {
	struct observation base; // borrows
	struct rate_model model;
	double held; // bytes that the job holds beside the page cache; NAN: not known
	double data; // bytes that it reads in an epoch; NAN: not known, or next to nothing
	double between; // seconds of an epoch outside of iterations; NAN: no whole epoch was
	                // recorded
};

// Observations of one job: the first one is the configuration that is changed, and lends ret its
// strings. Returns 0; -ENODATA with the reason if it has no rate.
int what_if_begin(const struct observation *seen, size_t n, struct what_if *ret, struct error *e);
// Values of the recorded machine; NAN: not known.
struct what_if_values what_if_recorded(const struct what_if *w);
struct what_if_values what_if_unchanged(void);
// Values that are unchanged are the recorded ones. No values: the run as recorded.
struct what_if_case what_if_predict(const struct what_if *w, const struct what_if_values *values);
// "cpus", "memory", "disk_read", "gpu_speed", "cpu_speed"
const char *what_if_name(enum what_if_kind kind);
