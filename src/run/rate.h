// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Rates of counters over a stretch of a run.

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct reader;
struct stops;

#define STRETCH_GAPS 31

struct stretch { // in microseconds since the run's start
	int64_t from_us;
	int64_t to_us;
	unsigned n_gaps; // excluded from it; in order of time, not overlapping
	struct stretch_gap {
		int64_t from_us;
		int64_t to_us;
	} gaps[STRETCH_GAPS];
};

// Its length without gaps.
double stretch_seconds(const struct stretch *stretch);
// Whether a moment is in the stretch and in no gap.
bool stretch_has(const struct stretch *stretch, double t_us);
// How much of a time is in the stretch and in no gap, in microseconds.
double stretch_overlap(const struct stretch *stretch, double from_us, double to_us);

// The growth of a counter per second of the stretch. If the counter began or ended within the
// stretch, growth is taken from its first reading or to its last, and divided by the whole stretch.
// Gaps and times when the job was stopped are excluded from both. NAN: not known.
double rate_over(struct reader *reader, const struct stops *stops, int64_t entity,
	const char *metric, const struct stretch *stretch);
// The same over the part of the stretch between the first and the last reading. For a counter that
// begins late because its source began late, not because there was nothing to count.
double rate_while_read(struct reader *reader, const struct stops *stops, int64_t entity,
	const char *metric, const struct stretch *stretch);
