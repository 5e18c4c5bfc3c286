// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whole series in buckets of equal length, and counters as rates: what a picture needs.

#pragma once

#include <stdint.h>

#include "trace/metric.h"
#include "trace/reader.h"

// One value per bucket, as bucket.h says, at the bucket's start. 0 or -ENOMEM.
int series_bucket(
	const struct series *in, enum metric_kind kind, int64_t bucket_us, struct series *ret);

// A counter as its rate per second: one value per pair of readings, at the later one; NAN where
// either is missing or the counter stepped back.
int series_rate(const struct series *in, struct series *ret);
