// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Readings that stream by, as one value for each bucket of time [k * length, (k + 1) * length);
// buckets without a reading are left out.
//   gauge    mean of what stood then: each reading stands until the next one (the last one as long
//            as the one before it, and not past its bucket)
//   counter  the last reading: the value at the bucket's end
//   state    the last reading

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runfile/metric.h"

struct resampled {
	int64_t t_us; // where it starts
	double value; // NAN where all of its readings are missing
	double minimum;
	double maximum;
};

struct resampler {
	enum metric_kind kind;
	int64_t length_us;
	bool open;
	bool any; // a reading came before
	struct resampled bucket; // the open one
	int64_t last_us; // the last reading
	double last; // NAN: missing
	int64_t spacing_us; // between the last two
	double area; // value times microseconds
	double stood_us;
};

void resampler_start(struct resampler *b, enum metric_kind kind, int64_t length_us);
// A reading; minimum and maximum are its own where nothing was thinned. True where it ended a
// bucket, which is then in *ret. Times that fall are taken as the last one.
bool resampler_add(struct resampler *b, int64_t t_us, double value, double minimum, double maximum,
	struct resampled *ret);
// The last bucket, if there is one.
bool resampler_end(struct resampler *b, struct resampled *ret);
