// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Figures of a stream of readings.

#include "analyze/tally.h"

#include <math.h>

#define STEADY_ROWS 16 // in a row, for which a shorter way pays

void tally_start(struct tally *t, enum metric_kind kind)
{
	histogram_clear(&t->histogram);
	struct histogram kept = t->histogram;
	*t = (struct tally){.kind = kind, .histogram = kept};
}

void tally_done(struct tally *t)
{
	histogram_done(&t->histogram);
}

static void window_close(struct tally *t, int64_t end_us)
{
	double length_us = (double)(end_us - t->window_us);
	if (length_us > 0) {
		histogram_add(&t->histogram, t->window_added / (length_us / 1e6), length_us);
	}
	t->window_us = end_us;
	t->window_added = 0;
}

static void counter_add(struct tally *t, int64_t t_us, double value)
{
	if (t->readings == 0) {
		t->window_us = t_us;
		return;
	}
	// A counter that steps back was reset, or its source was: nobody knows what was added.
	double step = value > t->last ? value - t->last : 0;
	t->added += step;
	t->window_added += step;
	if (t_us - t->window_us >= TALLY_WINDOW_US) {
		window_close(t, t_us);
	}
}

static void gauge_stand(struct tally *t, int64_t until_us)
{
	double length_us = (double)(until_us - t->last_us);
	if (t->standing && length_us > 0) {
		t->area += t->last * length_us;
		t->length_us += length_us;
		histogram_add(&t->histogram, t->last, length_us);
	}
}

static inline void add_reading(struct tally *t, int64_t t_us, double value, double largest)
{
	if (t->readings > 0 && t_us < t->last_us) {
		return;
	}
	if (t->readings > 0 && t->kind == METRIC_GAUGE) {
		gauge_stand(t, t_us);
	}
	t->standing = isfinite(value);
	if (!t->standing) {
		return;
	}
	if (t->kind == METRIC_COUNTER) {
		counter_add(t, t_us, value);
	}
	double top = isfinite(largest) && largest > value ? largest : value;
	t->peak = t->readings == 0 || top > t->peak ? top : t->peak;
	if (t->readings++ == 0) {
		t->first_us = t_us;
		t->first = value;
	}
	t->last_us = t_us;
	t->last = value;
}

// Of n rows with the same value (an idle process's) the first and the last tell what all of them
// do, once nothing is left that was added before. How many rows it took; the others are to be
// added.
static size_t add_steady(
	struct tally *t, const int64_t *t_us, double value, double largest, size_t n)
{
	size_t i = 0;
	do {
		add_reading(t, t_us[i++], value, largest);
	} while (i < n && t->kind == METRIC_COUNTER && t->window_added > 0);
	if (i + 1 < n && isfinite(value)) {
		t->readings += n - i - 1;
		i = n - 1;
	}
	return i;
}

void tally_add(struct tally *t, int64_t t_us, double value, double largest)
{
	add_reading(t, t_us, value, largest);
}

void tally_add_rows(
	struct tally *t, const int64_t *t_us, const double *values, const double *largest, size_t n)
{
	// A day at 10 ms has a hundred million readings: what can stay in registers does.
	struct tally local = *t;
	for (size_t i = 0, end; i < n; i = end) {
		end = i + 1;
		while (end < n && values[end] == values[i] && largest[end] == largest[i]) {
			end++;
		}
		size_t next = i;
		if (end - i >= STEADY_ROWS) {
			next = add_steady(&local, t_us + i, values[i], largest[i], end - i) + i;
		}
		for (; next < end; next++) {
			add_reading(&local, t_us[next], values[next], largest[next]);
		}
	}
	*t = local;
}

double tally_between(const struct tally *t, int64_t t_us, int64_t next_us, double next)
{
	if (t->readings == 0 || !t->standing) {
		return NAN;
	}
	if (t->kind != METRIC_COUNTER || !isfinite(next) || next_us <= t->last_us ||
		next < t->last) {
		return t->last;
	}
	double share = (double)(t_us - t->last_us) / (double)(next_us - t->last_us);
	return t->last + (next - t->last) * share;
}

static void counter_figures(struct tally *t, bool from_zero, double figures[static N_FIGURES])
{
	if (t->readings < 2 && !from_zero) {
		return;
	}
	figures[FIGURE_TOTAL] = t->added + (from_zero ? t->first : 0);
	double seconds = (double)(t->last_us - t->first_us) / 1e6;
	if (seconds <= 0) {
		return;
	}
	// A short rest at the end would be a rate over too little time.
	if (t->histogram.total <= 0 || t->last_us - t->window_us >= TALLY_WINDOW_US / 2) {
		window_close(t, t->last_us);
	}
	figures[FIGURE_MEAN] = t->added / seconds;
	figures[FIGURE_P50] = histogram_quantile(&t->histogram, 0.50);
	figures[FIGURE_P95] = histogram_quantile(&t->histogram, 0.95);
	figures[FIGURE_MAX] = t->histogram.largest;
}

static void gauge_figures(struct tally *t, int64_t end_us, double figures[static N_FIGURES])
{
	if (end_us == INT64_MIN) {
		double spacing = t->readings > 1 ? (double)(t->last_us - t->first_us) /
		                                           (double)(t->readings - 1)
		                                 : 0;
		end_us = t->last_us + (spacing >= 1 ? (int64_t)spacing : 1);
	}
	gauge_stand(t, end_us);
	if (t->length_us > 0) {
		figures[FIGURE_MEAN] = t->area / t->length_us;
	}
	if (t->readings > 1) {
		figures[FIGURE_P50] = histogram_quantile(&t->histogram, 0.50);
		figures[FIGURE_P95] = histogram_quantile(&t->histogram, 0.95);
	}
	figures[FIGURE_MAX] = t->peak;
}

void tally_figures(
	struct tally *t, int64_t end_us, bool from_zero, double ret_figures[static N_FIGURES])
{
	for (unsigned i = 0; i < N_FIGURES; i++) {
		ret_figures[i] = NAN;
	}
	if (t->readings == 0) {
		return;
	}
	if (t->kind == METRIC_COUNTER) {
		counter_figures(t, from_zero, ret_figures);
	} else if (t->kind == METRIC_GAUGE) {
		gauge_figures(t, end_us, ret_figures);
	}
}
