// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Five figures from readings that stream by. summary.h says what each figure is.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/histogram.h"
#include "analyze/summary.h"
#include "trace/metric.h"

#define TALLY_WINDOW_US 100000 // rates are taken over at least this long

struct tally {
	enum metric_kind kind;
	struct histogram histogram;
	uint64_t readings; // that were there
	bool standing; // the last reading was there
	int64_t first_us;
	int64_t last_us;
	double first;
	double last;
	double peak; // largest reading; with thinned runs, largest of the buckets
	// counters
	double added;
	int64_t window_us; // where the open window began
	double window_added;
	// gauges
	double area; // value times microseconds
	double length_us; // that values stood
};

void tally_start(struct tally *t, enum metric_kind kind); // keeps memory of an earlier use
void tally_done(struct tally *t);
// A reading; NAN is missing. `largest` is the value itself, or its bucket's maximum. Times that
// fall are ignored.
void tally_add(struct tally *t, int64_t t_us, double value, double largest);
// Many of them, in order.
void tally_add_rows(struct tally *t, const int64_t *t_us, const double *values,
	const double *largest, size_t n);
// The value at t_us between the last reading and a next one: on the line for a counter, the last
// one for a gauge.
double tally_between(const struct tally *t, int64_t t_us, int64_t next_us, double next);
// Ends the tally: a gauge's last value stands until end_us, where that is known (INT64_MIN: as long
// as the one before). NAN where there is no figure. from_zero: the counter began with its entity.
void tally_figures(
	struct tally *t, int64_t end_us, bool from_zero, double ret_figures[static N_FIGURES]);
