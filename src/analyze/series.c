// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Series in buckets, and counters as rates.

#include "analyze/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

// Room for n values; separate minimum and maximum where asked for.
static int series_reserve(struct series *s, size_t n, bool with_bounds)
{
	*s = (struct series){
		.t_us = malloc((n + 1) * sizeof(*s->t_us)),
		.values = malloc((n + 1) * sizeof(*s->values)),
	};
	s->minimum = with_bounds ? malloc((n + 1) * sizeof(*s->minimum)) : s->values;
	s->maximum = with_bounds ? malloc((n + 1) * sizeof(*s->maximum)) : s->values;
	if (!s->t_us || !s->values || !s->minimum || !s->maximum) {
		series_done(s);
		return -ENOMEM;
	}
	return 0;
}

int64_t series_bucket_start(int64_t t_us, int64_t bucket_us)
{
	int64_t rest = t_us % bucket_us;
	return t_us - (rest < 0 ? rest + bucket_us : rest);
}

// The mean over [start, end) of what stood then: readings from..to are in the bucket, the one
// before `from` stands into it.
static double gauge_mean(
	const struct series *in, size_t from, size_t to, int64_t start_us, int64_t end_us)
{
	double area = 0, length = 0;
	size_t first = from > 0 ? from - 1 : from;
	for (size_t i = first; i < to; i++) {
		int64_t begin = in->t_us[i] > start_us ? in->t_us[i] : start_us;
		int64_t end = i + 1 < to ? in->t_us[i + 1] : end_us;
		if (i + 1 == in->n && i > 0) { // nothing follows: as long as the one before
			int64_t spacing = in->t_us[i] - in->t_us[i - 1];
			end = end < in->t_us[i] + spacing ? end : in->t_us[i] + spacing;
		}
		if (isfinite(in->values[i]) && end > begin) {
			area += in->values[i] * (double)(end - begin);
			length += (double)(end - begin);
		}
	}
	return length > 0 ? area / length : in->values[to - 1];
}

static void bounds(const struct series *in, size_t from, size_t to, double *low, double *high)
{
	*low = *high = NAN;
	for (size_t i = from; i < to; i++) {
		*low = fmin(*low, in->minimum[i]); // fmin and fmax pass NAN over
		*high = fmax(*high, in->maximum[i]);
	}
}

int series_bucket(
	const struct series *in, enum metric_kind kind, int64_t bucket_us, struct series *ret)
{
	struct series out;
	int r = series_reserve(&out, in->n, true);
	if (r < 0) {
		return r;
	}
	for (size_t from = 0, to; from < in->n; from = to) {
		int64_t start = series_bucket_start(in->t_us[from], bucket_us);
		for (to = from + 1; to < in->n && in->t_us[to] < start + bucket_us; to++) {
		}
		out.t_us[out.n] = start;
		out.values[out.n] = kind == METRIC_GAUGE
		                            ? gauge_mean(in, from, to, start, start + bucket_us)
		                            : in->values[to - 1];
		bounds(in, from, to, &out.minimum[out.n], &out.maximum[out.n]);
		out.n++;
	}
	*ret = out;
	return 0;
}

int series_rate(const struct series *in, struct series *ret)
{
	struct series out;
	int r = series_reserve(&out, in->n, false);
	if (r < 0) {
		return r;
	}
	for (size_t i = 1; i < in->n; i++) {
		double seconds = (double)(in->t_us[i] - in->t_us[i - 1]) / 1e6;
		double step = in->values[i] - in->values[i - 1];
		if (seconds > 0) {
			out.t_us[out.n] = in->t_us[i];
			out.values[out.n++] = step >= 0 ? step / seconds : NAN;
		}
	}
	*ret = out;
	return 0;
}
