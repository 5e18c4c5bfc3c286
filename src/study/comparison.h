// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A comparison of runs: the labels that distinguish them, the values worth a column, rows for what
// differs besides, warnings about repeats, and the pivot of all.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "study/catalogue.h"
#include "study/pivot.h"

#define COMPARISON_LABELS_MAX 16
#define COMPARISON_BASELINE_MAX 64

struct compare_context;

// The fields of a table of runs: labels as rows and columns, and values.
struct comparison_fields {
	const char *rows[COMPARISON_LABELS_MAX];
	size_t n_rows;
	const char *columns[COMPARISON_LABELS_MAX];
	size_t n_columns;
	struct pivot_value values[N_MEASURES];
	size_t n_values;
	bool rows_given;
	bool columns_given;
	bool values_given;
	bool of_labels; // for figures: columns are labels, never single runs
	bool count_failed; // use the numbers of failed runs, too
	bool side_by_side; // columns are single runs: nothing is averaged
	const char *determined[COMPARISON_LABELS_MAX]; // left out: follow from labels of the table
	size_t n_determined;
	const char *merged; // a label in which runs of one cell differ; NULL: none
	bool merged_jobs; // runs with the same labels have different commands
};

// Whether a label identifies runs, not configurations: sweeps and batch systems set such labels.
bool comparison_label_is_automatic(const char *label);

struct comparison {
	// The question, by the caller; the struct must not move.
	const struct digest *const *runs; // [n_runs]
	size_t n_runs;
	const char *const *sources; // [n_runs] the arguments that found them
	bool several_sources; // which differ in the places that they name
	bool figure; // no rows and warnings besides the values are needed
	bool baseline_given; // even if it is empty
	const struct pivot_match *baseline;
	size_t n_baseline;
	struct comparison_fields fields; // what is not given in it is chosen

	// The answer.
	struct pivot pivot;
	char *note; // about the baseline; NULL: none
	char **warnings; // [n_warnings] printable lines about the runs
	size_t n_warnings;

	struct pivot_request request;
	struct compare_context *context;
	struct pivot_value *values; // those of the context, then those of the fields
	struct pivot_match planned[COMPARISON_BASELINE_MAX];
	struct catalogue_metric metrics[N_MEASURES];
	bool built;
};

// A label of the rows (*ret_columns false) or columns that no run has; NULL: none.
const char *comparison_unknown_label(const struct comparison *c, bool *ret_columns);
// Chooses labels and values, and reads the values that are no measures, METRIC:AGGREGATE. Returns 0
// or -errno; comparison_done is needed after any of these.
int comparison_choose(struct comparison *c, struct error *e);
// Whether a baseline of the runs' plans is asked for: none was given, and no column is one.
bool comparison_takes_plan(const struct comparison *c);
// Takes it, except labels that are not in the table and the same in all runs.
void comparison_take_plan(struct comparison *c, const struct pivot_match *matches, size_t n);
// Makes the pivot. -EINVAL: no run has the given baseline.
int comparison_build(struct comparison *c, struct error *e);
void comparison_done(struct comparison *c);

// --- order and names of several runs in one figure

// Sorts runs into ret, [n], by the labels in which they differ, words before numbers. Stable.
void comparison_sort_lines(const struct digest **ret, const struct digest *const *runs, size_t n);
// Appends the labels that distinguish this run, "pytorch batch size 32", or its name if they do not
// distinguish it.
void comparison_append_line_name(
	struct text *t, const struct digest *const *runs, size_t n, size_t which);
