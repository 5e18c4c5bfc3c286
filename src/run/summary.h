// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The summary: five figures for each entity, metric and epoch, and for the whole run.
//
//   counter  total  the growth: the last reading if the counter began with its entity (a process
//                   that the run saw start, the job that it started, the recorder), else the last
//                   minus the first. Steps backwards add nothing.
//            mean   total per second of the time between the first and the last reading
//            p50, p95, max   of the rate per second, in windows of at least 100 ms that begin and
//                   end with a reading, weighted by their length
//   gauge    mean   weighted by time: each reading is valid until the next one
//            p50, p95        weighted the same way
//            max    the largest reading
//   state    none
//
// Rates need two readings, and so do percentiles of a gauge. The edges of an epoch lie between
// readings: a counter is interpolated there, and a gauge has its last value.
//
// p50 and p95 come from a histogram with 128 bins per octave: within 0.4 % of the exact figure. A
// missing reading ends the one before it and is not counted; a metric that was never read has no
// row. An epoch's figures need two readings in it (a gauge: one). Blocks are streamed: memory is
// bounded by the number of metrics and epochs, not of readings.
//
// Epochs have figures of the job and of devices only: with those of processes and of the host, a
// short run would have more figures than samples. A metric that did not change has no rows for
// epochs: its row for the run holds for each epoch, and summary_figure returns that. Figures are
// rounded to a thousandth of the metric's scale, as they are stored.

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
	double figures[N_FIGURES]; // NAN: there is none
};

struct summary {
	struct summary_row *rows; // sorted by entity, metric, epoch
	size_t n;
	size_t capacity;
};

// The summary of the given entities: read from the file if it is finished and has a summary, else
// computed from its blocks.
int summary_load(struct reader *r, const struct entity_list *entities,
	const struct metric_list *metrics, const struct epoch_list *epochs, struct summary *ret,
	struct error *e);
void summary_done(struct summary *s);
// Replaces the summary in the file, in the writer's open transaction. 0 or -errno.
int summary_put(struct writer *w, const struct summary *s, const struct metric_list *metrics);
// Converts a figure to the stored form, in thousandths of the metric's scale. false: it cannot be
// stored.
bool summary_pack(double figure, double scale, int64_t *ret);
// NAN: there is none.
double summary_figure(const struct summary *s, int64_t entity, uint32_t metric, int64_t epoch,
	enum figure figure);

// Accumulator
// -------------------------------------------------------------------------------------------
//
// Computes the figures from a stream of readings. The comment at the top defines each.

#define TALLY_WINDOW_US 100000 // rates are taken over at least this long

struct accumulator {
	enum metric_kind kind;
	struct histogram histogram;
	uint64_t readings; // not missing
	bool standing; // the last reading was not missing
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
	double length_us; // time covered by values
};

void accumulator_start(
	struct accumulator *t, enum metric_kind kind); // keeps memory of an earlier use
void accumulator_done(struct accumulator *t);
// Adds a reading; NAN is missing. `largest` is the value itself, or the maximum of its bucket in a
// thinned run. Readings with a time before the last one are ignored.
void accumulator_add(struct accumulator *t, int64_t t_us, double value, double largest);
// Adds n readings, in order.
void accumulator_add_rows(struct accumulator *t, const int64_t *t_us, const double *values,
	const double *largest, size_t n);
// Ends the accumulator and returns its figures, NAN if there are none. A gauge's last value is
// valid until end_us (INT64_MIN: not known; then for as long as the one before). from_zero: the
// counter began with its entity.
void accumulator_figures(struct accumulator *t, int64_t end_us, bool from_zero,
	double ret_figures[static N_FIGURES]);
