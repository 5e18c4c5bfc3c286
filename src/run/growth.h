// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whether memory grows with the iterations, and how fast: memory that cannot be dropped (anonymous
// and shared, no page cache), of the job and of each process that trains, against the number of the
// iteration, without warm-up. The same for the memory of GPUs.
//
// A leak is reported if the memory that is never freed again (at each time, the minimum from then
// on) grows by 64 MB, and in each quarter of the iterations by at least half of its even share.
// Caches and queues that fill up and then stay, and memory that comes and goes with each epoch, do
// not count. A run of one epoch does not show what the end of an epoch frees.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/phases.h"

struct overview;
struct run_tables;
struct text;

struct growth { // of memory that cannot be dropped
	bool leak; // it grew throughout the iterations
	struct estimate bytes_per_iteration;
	double bytes_per_s;
	double full_in_s; // after the run's end, at the limit; NAN: no limit is known, or no leak
	double gained_bytes; // over the steady iterations, and not freed
	int64_t process; // the training process, if that grows; 0: another one, or not known
	bool one_epoch; // the run did not reach the end of an epoch
	int gpu; // NVML's number of the GPU whose memory it is; -1: the host's
};

// Judges `bytes`, the memory held at iteration `at` (a fraction lies within the iteration). `at`
// ascends; NAN is skipped. Returns true for a leak. With at least 16 points, *ret_slope is set in
// bytes per iteration: the median of the slopes between the medians of up to 48 parts (Theil-Sen),
// with a 95 % interval (Kendall's) that is widened if neighbours are correlated. Otherwise it is
// NAN.
bool growth_judge(const double *at, const double *bytes, size_t n, struct estimate *ret_slope,
	double *ret_gained);

// Always fills *ret; its figures are NAN without iterations or readings.
void growth_fill(const struct run_tables *tables, const struct overview *overview,
	const struct phases *phases, struct growth *ret);
// The same for the GPUs: of the one that is full first.
void growth_fill_gpus(const struct run_tables *tables, const struct overview *overview,
	const struct phases *phases, struct growth *ret);
// Appends "memory grows by 16 MB an iteration (14 to 17): full in 40 min at that rate", printable;
// nothing if there is no leak.
void growth_append_warning(struct text *t, const struct growth *growth);
