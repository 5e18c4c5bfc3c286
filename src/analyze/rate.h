// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What counters did in a stretch of a run.

#pragma once

#include <stdint.h>

struct analysis;

struct stretch { // in microseconds since the run's start
	int64_t from_us;
	int64_t to_us;
};

// What a counter grew by, per second of the stretch. One that began or ended within it is taken
// from its first reading or to its last, over the whole stretch; without what was while the job was
// stopped, and that time. NAN: not known.
double rate_over(const struct analysis *a, int64_t entity, const char *metric,
	const struct stretch *stretch);
