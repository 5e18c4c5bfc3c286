// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The summary: five figures for each entity, metric and epoch, and for the whole run.
//
//   counter  total  what was added: the last reading where the counter began with its entity (a
//                   process that the run saw start, the job that it started, the recorder), else
//                   the last minus the first. Steps backwards add nothing.
//            mean   total over the time between the first and the last reading, per second
//            p50, p95, max   of the rate, per second, in windows of at least 100 ms that begin and
//                   end with a reading; a window counts as long as it lasts
//   gauge    mean   each reading stands until the next one
//            p50, p95        weighted the same way
//            max    the largest reading
//   state    none
//
// Rates need two readings, percentiles of a gauge too. An epoch's edges lie between readings: there
// a counter is on the line between them and a gauge has its last value.
//
// p50 and p95 come from a histogram with 128 steps an octave: at most 0.4 % from the exact figure.
// A missing reading ends the one before it and counts for nothing; where nothing was read there is
// no row. An epoch's figures need two readings in it (a gauge: one). Memory is bounded by metrics
// and epochs, not by readings: blocks stream.
//
// Epochs have figures of the job and of devices: with those of processes and of the host there
// would be more of them than samples in a short run. Nor are there any of a metric that did not
// change: what its row says of the run holds for each epoch, and summary_figure gives that. Figures
// are rounded to a thousandth of the metric's scale, as the file keeps them.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "run/histogram.h"
#include "runfile/metric.h"

struct reader;
struct writer;
struct entity_list;
struct metric_list;
struct epoch_list;

enum figure {
	FIGURE_TOTAL,
	FIGURE_MEAN,
	FIGURE_P50,
	FIGURE_P95,
	FIGURE_MAX,
	N_FIGURES,
};

// "total", "mean", "p50", "p95", "max"
const char *figure_name(enum figure figure);

#define SUMMARY_EPOCHS_MAX 1000

#define SUMMARY_WHOLE_RUN INT64_MIN // the epoch of rows about the whole run

struct summary_row {
	int64_t entity;
	uint32_t metric;
	int64_t epoch; // epoch.number, or SUMMARY_WHOLE_RUN
	double figures[N_FIGURES]; // NAN where there is none
};

struct summary {
	struct summary_row *rows; // sorted by entity, metric, epoch
	size_t n;
	size_t capacity;
};

// Of the entities given: what the file holds where it is finished and has a summary, else computed
// from its blocks.
int summary_load(struct reader *r, const struct entity_list *entities,
	const struct metric_list *metrics, const struct epoch_list *epochs, struct summary *ret,
	struct error *e);
void summary_done(struct summary *s);
// Replaces the summary in the file, in the writer's open transaction. 0 or -errno.
int summary_put(struct writer *w, const struct summary *s, const struct metric_list *metrics);
// As the file holds a figure: in thousandths of the metric's scale. false: there is none.
bool summary_pack(double figure, double scale, int64_t *ret);
// NAN where there is none.
double summary_figure(const struct summary *s, int64_t entity, uint32_t metric, int64_t epoch,
	enum figure figure);

// Accumulator
// -------------------------------------------------------------------------------------------
//
// Five figures from readings that stream by. summary.h says what each figure is.

#define TALLY_WINDOW_US 100000 // rates are taken over at least this long

struct accumulator {
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

void accumulator_start(
	struct accumulator *t, enum metric_kind kind); // keeps memory of an earlier use
void accumulator_done(struct accumulator *t);
// A reading; NAN is missing. `largest` is the value itself, or its bucket's maximum. Times that
// fall are ignored.
void accumulator_add(struct accumulator *t, int64_t t_us, double value, double largest);
// Many of them, in order.
void accumulator_add_rows(struct accumulator *t, const int64_t *t_us, const double *values,
	const double *largest, size_t n);
// Ends the accumulator: a gauge's last value stands until end_us, where that is known (INT64_MIN:
// as long as the one before). NAN where there is no figure. from_zero: the counter began with its
// entity.
void accumulator_figures(struct accumulator *t, int64_t end_us, bool from_zero,
	double ret_figures[static N_FIGURES]);
