// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs as a table: those that agree in the labels of a row and a column are repeats of one
// configuration, and share a cell for each value. Data only; pivot_write.h makes text of it.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "run/statistics.h"
#include "run/measures.h"
#include "study/digest.h"
#include "study/run_table.h"

// A number, or a word, of every run.
struct pivot_value {
	const char *name; // "epoch_seconds"
	const char *title; // "time of an epoch"
	const char *unit; // UCUM; "" of words
	enum measure_kind kind;
	enum measure_better better;
	enum measure_id measure; // N_MEASURES: none of these, but
	const double *numbers; // [n_runs] NAN: missing
	const char *const *reasons; // [n_runs] why
	const char *const *words; // [n_runs] of a kind of words that is no measure; NULL: none
};
struct pivot_value pivot_value_of(enum measure_id measure);

struct pivot_match {
	const char *label;
	const char *value;
};

// All borrowed, and to outlive the pivot.
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
	const struct pivot_match *baseline; // cells are held against those with these labels
	size_t n_baseline;
	const char *baseline_from; // who says so: "the plan's baseline"; NULL: the caller
	const char *unranked; // why nothing is held against the first; NULL: it is
	const char *const
		*warnings; // [n_warnings] lines about the runs, for programs that read them
	size_t n_warnings;
	bool first_is_baseline; // to the first column, where baseline is empty
	bool count_failed; // numbers of runs that failed count too
	bool keep_order; // of columns: as their runs come, not by size
	bool apart; // a column each run, whatever its labels
};

struct pivot_axis {
	const char *const *labels; // [n_labels]
	size_t n_labels;
	const char **keys; // [n * n_labels] values of labels; NULL: runs without that label
	size_t n; // at least 1
	bool sorted; // else in the order in which the runs come
};

struct pivot_cell {
	size_t n_runs; // 0: no run has these labels
	size_t outcomes[N_OUTCOMES]; // of them
	struct repeats repeats; // of runs that count and have the value
	const char *words; // of a value that is words: the most frequent; NULL: none
	bool words_are_foreign; // from a run: shown as they are
	bool words_differ; // there are others
	size_t note; // why there is no value, or of what failed: index into notes, from 1; 0: none
	bool is_baseline;
	double against; // the baseline: measure_against; NAN: not known
	double probability; // of being noise, corrected; NAN: not tested
	bool beyond_noise;
};

// The columns by speed: the fastest, and how many times as fast as each other one it is.
struct pivot_ranking {
	size_t value; // that tells
	size_t fastest; // column
	size_t n; // others that have that value; 0: there is no ranking
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
	struct pivot_ranking
		ranking; // of a table without rows that is held against its first column
	size_t n_tests; // that were corrected for
	bool binary_sizes; // a label of a run is a size in MiB or GiB: so are those of the cells
	size_t fewest; // repeats in a cell with a number
	size_t most;
};

// Errors: a baseline that is no row or column (one line), -ENOMEM.
int pivot_build(const struct pivot_request *request, struct pivot *ret, struct error *e);
void pivot_done(struct pivot *p);
const struct pivot_cell *pivot_at(const struct pivot *p, size_t row, size_t column, size_t value);
const char *pivot_key(const struct pivot_axis *axis, size_t key, size_t label);

// The value of a label of run `index` of the request, NULL where it has none.
const char *pivot_label(const struct pivot_request *request, size_t index, const char *label);
// Whether a label's value is a size that was written in KiB, MiB, GiB or TiB.
bool pivot_is_binary_size(const char *value);

// How many runs of a cell failed; "crash", "2 crash, 1 skipped": what became of them.
size_t pivot_failed(const struct pivot_cell *cell);
void pivot_append_failures(struct text *t, const struct pivot_cell *cell);
