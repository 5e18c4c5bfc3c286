// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reduces a stream of readings to one value per bucket of time [k * length, (k + 1) * length).
// Buckets without a reading are left out.
//   gauge    the mean, weighted by time: each reading is valid until the next one; the last one as
//            long as the one before it, but not past its bucket
//   counter  the last reading: the value at the bucket's end
//   state    the last reading

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runfile/metric.h"

struct resampled {
	int64_t t_us; // start of the bucket
	double value; // NAN if all its readings are missing
	double minimum;
	double maximum;
};

struct resampler {
	enum metric_kind kind;
	int64_t length_us;
	bool open;
	bool any; // there was a reading
	struct resampled bucket; // the open bucket
	int64_t last_us; // time of the last reading
	double last; // NAN: missing
	int64_t spacing_us; // between the last two
	double area; // value times microseconds
	double stood_us; // time covered by readings, in the open bucket
};

void resampler_start(struct resampler *b, enum metric_kind kind, int64_t length_us);
// Adds a reading. minimum and maximum equal the value unless the run was thinned. Returns true if
// the reading ended a bucket, which is then in *ret. A time before the last one is taken as the
// last one.
bool resampler_add(struct resampler *b, int64_t t_us, double value, double minimum, double maximum,
	struct resampled *ret);
// Returns the last bucket in *ret; false if there is none.
bool resampler_end(struct resampler *b, struct resampled *ret);
