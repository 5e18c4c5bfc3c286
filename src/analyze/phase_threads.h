// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What is counted of each thread that marks: those that iterate, those that prepare. Only phases.c
// needs this.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analyze/phases.h"
#include "analyze/timeline.h"

struct thread_count;

struct phase_threads {
	struct thread_count **lanes; // [n], by the lane's index; NULL where it did neither
	size_t n;
	size_t capacity;
};

// 0 or -ENOMEM.
int phase_threads_iteration(struct phase_threads *threads, const struct timeline_lane *lane,
	const struct iteration *iteration);
int phase_threads_prepare(struct phase_threads *threads, const struct timeline_lane *lane,
	int64_t start_ns, int64_t end_ns, int64_t samples);
// Fills workers and ranks.
int phase_threads_finish(
	const struct phase_threads *threads, const struct analysis *a, struct phases *ret);
// Time in iterations of a lane, in seconds.
double phase_threads_iterated_s(const struct phase_threads *threads, size_t lane);
void phase_threads_done(struct phase_threads *threads);
