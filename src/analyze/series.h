// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Series in buckets of equal length: what a picture or a coarser export needs.

#pragma once

#include <stdint.h>

#include "trace/metric.h"
#include "trace/reader.h"

// Rewrites readings as one value per bucket [k * bucket_us, (k + 1) * bucket_us), at the bucket's
// start; buckets without a reading are left out.
//   gauge    mean of the readings weighted by how long each stood; minimum and maximum
//   counter  the value at the bucket's end (its last reading)
//   state    the last reading
int series_bucket(
	const struct series *in, enum metric_kind kind, int64_t bucket_us, struct series *ret);

// The start of the bucket that t_us is in.
int64_t series_bucket_start(int64_t t_us, int64_t bucket_us);

// A counter as its rate per second: one value per pair of readings, at the later one; NAN where
// either is missing. Steps backwards are NAN.
int series_rate(const struct series *in, struct series *ret);
