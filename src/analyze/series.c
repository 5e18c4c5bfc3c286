// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Series in buckets, and counters as rates.

#include "analyze/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/bucket.h"

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

static void series_append(struct series *s, const struct bucket *bucket)
{
	s->t_us[s->n] = bucket->t_us;
	s->values[s->n] = bucket->value;
	s->minimum[s->n] = bucket->minimum;
	s->maximum[s->n] = bucket->maximum;
	s->n++;
}

int series_bucket(
	const struct series *in, enum metric_kind kind, int64_t bucket_us, struct series *ret)
{
	struct series out;
	int r = series_reserve(&out, in->n, true);
	if (r < 0) {
		return r;
	}
	struct bucketer bucketer;
	struct bucket bucket;
	bucketer_start(&bucketer, kind, bucket_us);
	for (size_t i = 0; i < in->n; i++) {
		if (bucketer_add(&bucketer, in->t_us[i], in->values[i], in->minimum[i],
			    in->maximum[i], &bucket)) {
			series_append(&out, &bucket);
		}
	}
	if (bucketer_end(&bucketer, &bucket)) {
		series_append(&out, &bucket);
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
