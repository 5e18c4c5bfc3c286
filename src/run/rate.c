// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Growth of a counter between its readings.

#include "run/rate.h"

#include <math.h>

#include "run/stops.h"
#include "runfile/reader.h"

// The counter's value, interpolated between readings; before the first and after the last, their
// values.
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

// Elapsed time, and the counter's growth in it.
struct grown {
	double us;
	double by;
};

static void add_part(struct grown *grown, const struct series *s, const struct stops *stops,
	int64_t part_from_us, int64_t part_to_us)
{
	grown->by += growth(s, part_from_us, part_to_us);
	grown->us += (double)(part_to_us - part_from_us);
	for (size_t i = 0; i < stops->n; i++) {
		int64_t from_us = stops->items[i].from_ns / 1000;
		int64_t to_us = stops->items[i].to_ns / 1000;
		from_us = from_us > part_from_us ? from_us : part_from_us;
		to_us = to_us < part_to_us ? to_us : part_to_us;
		if (to_us > from_us) {
			grown->by -= fmax(0, growth(s, from_us, to_us));
			grown->us -= (double)(to_us - from_us);
		}
	}
}

static double running_rate(
	const struct series *s, const struct stops *stops, const struct stretch *stretch)
{
	struct grown grown = {0};
	int64_t from_us = stretch->from_us;
	for (unsigned i = 0; i < stretch->n_gaps; i++) {
		add_part(&grown, s, stops, from_us, stretch->gaps[i].from_us);
		from_us = stretch->gaps[i].to_us;
	}
	add_part(&grown, s, stops, from_us, stretch->to_us);
	return grown.us > 0 ? grown.by / (grown.us / 1e6) : NAN;
}

double stretch_seconds(const struct stretch *stretch)
{
	int64_t us = stretch->to_us - stretch->from_us;
	for (unsigned i = 0; i < stretch->n_gaps; i++) {
		us -= stretch->gaps[i].to_us - stretch->gaps[i].from_us;
	}
	return (double)us / 1e6;
}

bool stretch_has(const struct stretch *stretch, double t_us)
{
	bool has = t_us >= (double)stretch->from_us && t_us <= (double)stretch->to_us;
	for (unsigned i = 0; i < stretch->n_gaps && has; i++) {
		const struct stretch_gap *gap = &stretch->gaps[i];
		has = !(t_us > (double)gap->from_us && t_us < (double)gap->to_us);
	}
	return has;
}

static double overlap(double from_us, double to_us, int64_t first_us, int64_t last_us)
{
	return fmax(0, fmin(to_us, (double)last_us) - fmax(from_us, (double)first_us));
}

double stretch_overlap(const struct stretch *stretch, double from_us, double to_us)
{
	double us = overlap(from_us, to_us, stretch->from_us, stretch->to_us);
	for (unsigned i = 0; i < stretch->n_gaps; i++) {
		us -= overlap(from_us, to_us, stretch->gaps[i].from_us, stretch->gaps[i].to_us);
	}
	return us;
}

// The part of the stretch between the first and the last reading.
static struct stretch covered(const struct stretch *stretch, const struct series *s)
{
	struct stretch part = *stretch;
	part.from_us = part.from_us > s->t_us[0] ? part.from_us : s->t_us[0];
	part.to_us = part.to_us < s->t_us[s->n - 1] ? part.to_us : s->t_us[s->n - 1];
	part.n_gaps = 0;
	for (unsigned i = 0; i < stretch->n_gaps; i++) {
		struct stretch_gap gap = stretch->gaps[i];
		gap.from_us = gap.from_us > part.from_us ? gap.from_us : part.from_us;
		gap.to_us = gap.to_us < part.to_us ? gap.to_us : part.to_us;
		if (gap.from_us < gap.to_us) {
			part.gaps[part.n_gaps++] = gap;
		}
	}
	return part;
}

static double rate_in(struct reader *reader, const struct stops *stops, int64_t entity,
	const char *metric, const struct stretch *stretch, bool while_read)
{
	enum { MARGIN_US = 11000000 }; // the slowest counters are read every ten seconds
	struct series s = {0};
	if (!reader || !entity || stretch->to_us <= stretch->from_us ||
		reader_series(reader, entity, metric, stretch->from_us - MARGIN_US,
			stretch->to_us + MARGIN_US, &s, NULL) < 0) {
		return NAN;
	}
	double rate = NAN;
	if (s.n >= 2) {
		struct stretch part = while_read ? covered(stretch, &s) : *stretch;
		rate = part.to_us > part.from_us ? running_rate(&s, stops, &part) : NAN;
	}
	series_done(&s);
	return rate >= 0 ? rate : NAN;
}

double rate_over(struct reader *reader, const struct stops *stops, int64_t entity,
	const char *metric, const struct stretch *stretch)
{
	return rate_in(reader, stops, entity, metric, stretch, false);
}

double rate_while_read(struct reader *reader, const struct stops *stops, int64_t entity,
	const char *metric, const struct stretch *stretch)
{
	return rate_in(reader, stops, entity, metric, stretch, true);
}
