// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A counter between its readings.

#include "analyze/rate.h"

#include <math.h>

#include "analyze/analysis.h"

// The counter on the line between its readings: its first before them, its last after them.
static double counter_at(const struct series *s, int64_t t_us)
{
	size_t low = 0, high = s->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (s->t_us[middle] < t_us) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	if (low == s->n || low == 0 || s->t_us[low] == t_us) {
		return s->values[low < s->n ? low : s->n - 1];
	}
	double part = (double)(t_us - s->t_us[low - 1]) / (double)(s->t_us[low] - s->t_us[low - 1]);
	return s->values[low - 1] + part * (s->values[low] - s->values[low - 1]);
}

static double growth(const struct series *s, int64_t from_us, int64_t to_us)
{
	return counter_at(s, to_us) - counter_at(s, from_us);
}

static double running_rate(
	const struct series *s, const struct stops *stops, const struct stretch *stretch)
{
	double grown = growth(s, stretch->from_us, stretch->to_us);
	double length_us = (double)(stretch->to_us - stretch->from_us);
	for (size_t i = 0; i < stops->n; i++) {
		int64_t from_us = stops->items[i].from_ns / 1000;
		int64_t to_us = stops->items[i].to_ns / 1000;
		from_us = from_us > stretch->from_us ? from_us : stretch->from_us;
		to_us = to_us < stretch->to_us ? to_us : stretch->to_us;
		if (to_us > from_us) {
			grown -= fmax(0, growth(s, from_us, to_us));
			length_us -= (double)(to_us - from_us);
		}
	}
	return length_us > 0 ? grown / (length_us / 1e6) : NAN;
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
		rate = running_rate(&s, &a->stops, stretch);
	}
	series_done(&s);
	return rate >= 0 ? rate : NAN;
}
