// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A counter between its readings.

#include "analyze/rate.h"

#include <math.h>

#include "analyze/analysis.h"

// The counter on the line between its readings; NAN before the first and after the last.
static double counter_at(const struct series *s, int64_t t_us)
{
	size_t i = 0;
	while (i < s->n && s->t_us[i] < t_us) {
		i++;
	}
	if (i == s->n || (i == 0 && s->t_us[0] > t_us)) {
		return NAN;
	}
	if (s->t_us[i] == t_us) {
		return s->values[i];
	}
	double part = (double)(t_us - s->t_us[i - 1]) / (double)(s->t_us[i] - s->t_us[i - 1]);
	return s->values[i - 1] + part * (s->values[i] - s->values[i - 1]);
}

double rate_over(
	const struct analysis *a, int64_t entity, const char *metric, const struct stretch *stretch)
{
	enum { MARGIN_US = 11000000 }; // the slowest counters are read every ten seconds
	struct series s = {0};
	if (!a->reader || !entity || stretch->to_us <= stretch->from_us ||
		reader_series(a->reader, entity, metric, stretch->from_us - MARGIN_US,
			stretch->to_us + MARGIN_US, &s, NULL) < 0) {
		return NAN;
	}
	double rate = NAN;
	if (s.n >= 2) {
		double before = counter_at(&s, stretch->from_us);
		double after = counter_at(&s, stretch->to_us);
		before = isfinite(before) ? before : s.values[0];
		after = isfinite(after) ? after : s.values[s.n - 1];
		rate = (after - before) / ((double)(stretch->to_us - stretch->from_us) / 1e6);
	}
	series_done(&s);
	return rate >= 0 ? rate : NAN;
}
