// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A pivot: runs as a table with labels as rows and columns. Runs with the same row and column are
// repeats of one configuration and share a cell for each value. show/pivot_write.h formats it.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "run/statistics.h"
#include "run/measures.h"
#include "study/digest.h"
#include "study/run_table.h"

// A value of each run: a measure, a figure of a metric, or words.
struct pivot_value {
	const char *name; // "epoch_seconds"
	const char *title; // "time of an epoch"
	const char *unit; // UCUM; "" of words
	enum measure_kind kind;
	enum measure_better better;
	enum measure_id measure; // N_MEASURES: the value is in the arrays below
	const double *numbers; // [n_runs] NAN: missing
	const char *const *reasons; // [n_runs] why a number is missing
	const char *const *words; // [n_runs] of MEASURE_KIND_WORDS; NULL: numbers
};
struct pivot_value pivot_value_of(enum measure_id measure);
// The same with the currency of the runs, if it is an amount of money. They must outlive it.
struct pivot_value pivot_value_for(
	enum measure_id measure, const struct digest *const *runs, size_t n);

struct pivot_match {
	const char *label;
	const char *value;
};

// Everything is borrowed and must outlive the pivot.
struct pivot_request {
	const struct digest *const *runs;
	size_t n_runs;
	const char *const *sources; // [n_runs]; NULL: no run has a label RUN_TABLE_SOURCE
	const char *const *rows; // names of labels
	size_t n_rows;
	const char *const *columns;
	size_t n_columns;
	const struct pivot_value *values;
	size_t n_values;
	const struct pivot_match *baseline; // cells are compared with those that have these labels
	size_t n_baseline;
	const char *baseline_from; // for messages: "the plan's baseline"; NULL: the caller's
	const char *unranked; // why cells are not compared with the first column; NULL: they are
	const char *const *warnings; // [n_warnings] lines about the runs, for --json
	size_t n_warnings;
	bool first_is_baseline; // the first column is the baseline if `baseline` is empty
	bool count_failed; // use the numbers of failed runs, too
	bool keep_order; // columns are in the order of their runs, not sorted
	bool apart; // each run has its own column
};

struct pivot_axis {
	const char *const *labels; // [n_labels]
	size_t n_labels;
	const char **keys; // [n * n_labels] values of labels; NULL: runs without the label
	size_t n; // at least 1
	bool sorted; // false: in the order of the runs
};

struct pivot_cell {
	size_t n_runs; // 0: no run has these labels
	size_t outcomes[N_OUTCOMES]; // number of runs with each outcome
	struct repeats repeats; // of the runs that count and have the value
	const char *words; // the most frequent words; NULL: none
	bool words_are_foreign; // from a run: print them unchanged, but escaped
	bool words_differ; // runs of the cell have different words
	size_t note; // why a value is missing or runs failed: index into notes, from 1; 0: none
	bool is_baseline;
	double against; // measure_against the baseline; NAN: not known
	double probability; // that the difference is noise, corrected; NAN: not tested
	bool beyond_noise;
};

// The fastest column, and how many times as fast as each other column it is.
struct pivot_ranking {
	size_t value; // index of the value that measures speed
	size_t fastest; // column
	size_t n; // other columns that have the value; 0: there is no ranking
	struct pivot_ratio {
		size_t column;
		double times;
		double half; // statistics_ratio
	} * others; // [n]
};

struct pivot {
	struct pivot_axis rows;
	struct pivot_axis columns;
	const struct pivot_value *values; // [n_values]
	size_t n_values;
	struct pivot_cell *cells; // pivot_at
	char **notes; // [n_notes]; from runs: escape them
	size_t n_notes;
	char *baseline; // "batch_size=32"; NULL: none
	const char *baseline_from; // as of the request
	const char *unranked; // as of the request
	const char *const *warnings;
	size_t n_warnings;
	struct pivot_ranking ranking; // of a table without rows whose baseline is its first column
	size_t n_tests; // number of tests that the probabilities are corrected for
	bool binary_sizes; // print sizes in MiB and GiB, as labels of the runs do
	size_t fewest; // lowest and highest number of repeats in a cell with a number
	size_t most;
};

// Errors: a baseline that is not a row or column (-EINVAL, one line), -ENOMEM.
int pivot_build(const struct pivot_request *request, struct pivot *ret, struct error *e);
void pivot_done(struct pivot *p);
const struct pivot_cell *pivot_at(const struct pivot *p, size_t row, size_t column, size_t value);
const char *pivot_key(const struct pivot_axis *axis, size_t key, size_t label);

// The value of a label of run `index` of the request, NULL where it has none.
const char *pivot_label(const struct pivot_request *request, size_t index, const char *label);
// Whether a label's value is a size that was written in KiB, MiB, GiB or TiB.
bool pivot_is_binary_size(const char *value);

// The number of failed runs of a cell; appends their outcomes: "crash", "2 crash, 1 skipped".
size_t pivot_failed(const struct pivot_cell *cell);
void pivot_append_failures(struct text *t, const struct pivot_cell *cell);
