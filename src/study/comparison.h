// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Default contents of `compare`: the labels that distinguish the given runs, and the values worth a
// column.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "study/catalogue.h"
#include "study/pivot.h"

#define CHOICE_LABELS_MAX 16

struct choice {
	const char *rows[CHOICE_LABELS_MAX];
	size_t n_rows;
	const char *columns[CHOICE_LABELS_MAX];
	size_t n_columns;
	struct pivot_value values[N_MEASURES];
	size_t n_values;
	bool rows_given;
	bool columns_given;
	bool values_given;
	bool of_labels; // for figures: columns are labels, never single runs
	bool count_failed; // use the numbers of failed runs, too
	bool side_by_side; // columns are single runs: nothing is averaged
	const char *determined[CHOICE_LABELS_MAX]; // left out: follow from labels of the table
	size_t n_determined;
	const char *merged; // a label in which runs of one cell differ; NULL: none
	bool merged_jobs; // runs with the same labels have different commands
};

// Whether a label identifies runs, not configurations: sweeps and batch systems set such labels.
bool choice_label_is_automatic(const char *label);

// Fills rows, columns and values that were not given. request->sources: NULL if all runs are from
// one place. -ENOMEM.
int choice_complete(struct choice *choice, const struct pivot_request *request);
// Replaces the first value, a time, by one that the baseline has, too. Changes nothing if values
// were given.
void choice_suit_baseline(struct choice *choice, const struct pivot_request *request);

// Compare lines -----------------------------------------------------------------------------------
//
// Order and names of several runs in one figure.

// Sorts runs into ret, [n], by the labels in which they differ, words before numbers. Stable.
void comparison_sort_lines(const struct digest **ret, const struct digest *const *runs, size_t n);
// Appends the labels that distinguish this run, "pytorch batch size 32", or its name if they do not
// distinguish it.
void comparison_append_line_name(
	struct text *t, const struct digest *const *runs, size_t n, size_t which);

// Compare context ---------------------------------------------------------------------------------
//
// Differences between runs in what was run and where (arguments, commands, hosts, versions), and
// whether they are runs of one job.

enum { CONTEXT_VALUES_MAX = 48 };

struct compare_context {
	struct pivot_value values[CONTEXT_VALUES_MAX]; // words, in which runs differ
	size_t n_values;
	const char **words; // [CONTEXT_VALUES_MAX * n] the arrays of `values`
	char **owned; // [n_owned] strings of `words`
	size_t n_owned;
	char *unlike; // why the runs are of different jobs; NULL: they are of one
};

// Reads the files of the first 64 runs; what cannot be read is missing. outcomes: runs with
// different outcomes are of different jobs, too. 0, -ENOMEM.
int compare_context_read(
	const struct digest *const *runs, size_t n, bool outcomes, struct compare_context *ret);
void compare_context_done(struct compare_context *c);

// Compare warnings --------------------------------------------------------------------------------
//
// Warnings about repeats, similar to those of hyperfine: outliers, a slower first run, other load
// on the machine.

struct compare_warnings {
	char **lines; // [n] printable
	size_t n;
};

// Runs with the same rows and columns of the request are repeats. 0, -ENOMEM.
int compare_warnings_find(const struct pivot_request *request, struct compare_warnings *ret);
void compare_warnings_done(struct compare_warnings *w);
