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
	bool of_labels; // never runs side by side: for figures
	bool count_failed; // what failed is a value too
	bool side_by_side; // runs, not configurations: nothing is averaged
	const char *determined[CHOICE_LABELS_MAX]; // left out: follow from labels of the table
	size_t n_determined;
	const char *merged; // a label that differs within cells; NULL
	bool merged_jobs; // runs that agree in every label are of different commands
};

// Whether a label tells runs apart, not configurations: set by whoever starts runs.
bool choice_label_is_automatic(const char *label);

// Runs and sources as in a request; sources NULL where all runs are from one place. -ENOMEM.
int choice_complete(struct choice *choice, const struct pivot_request *request);
// Once the request's baseline is known: of the times that were not asked for, the first that the
// baseline has, too.
void choice_suit_baseline(struct choice *choice, const struct pivot_request *request);

// Compare lines -----------------------------------------------------------------------------------
//
// Several runs beside each other in a figure: in which order, and what each is called.

// Into ret, [n]: by the labels in which they differ, words first, then numbers. Runs that agree
// stay as they are.
void comparison_sort_lines(const struct digest **ret, const struct digest *const *runs, size_t n);
// What is this run's own: "pytorch batch size 32", or its name where labels do not tell it from
// another.
void comparison_append_line_name(
	struct text *t, const struct digest *const *runs, size_t n, size_t which);

// Compare context ---------------------------------------------------------------------------------
//
// What runs beside each other differ in before anything is measured (arguments, commands, hosts,
// versions), and whether they are runs of one job at all.

enum { CONTEXT_VALUES_MAX = 48 };

struct compare_context {
	struct pivot_value values[CONTEXT_VALUES_MAX]; // words: those in which runs differ
	size_t n_values;
	const char **words; // [CONTEXT_VALUES_MAX * n] what values point into
	char **owned; // [n_owned] what words point to
	size_t n_owned;
	char *unlike; // why the runs are of different jobs; NULL: they are not
};

// Reads it out of the files of the first 64 runs; what cannot be read is missing.
// outcomes: runs that ended differently are unlike, too. 0, -ENOMEM.
int compare_context_read(
	const struct digest *const *runs, size_t n, bool outcomes, struct compare_context *ret);
void compare_context_done(struct compare_context *c);

// Compare warnings --------------------------------------------------------------------------------
//
// What makes repeats worth a second look before they are believed, as hyperfine warns of it:
// outliers, a first run that was slower than the rest, other programs on the machine.

struct compare_warnings {
	char **lines; // [n] printable
	size_t n;
};

// Of a request that is complete: runs that agree in its labels are repeats. 0, -ENOMEM.
int compare_warnings_find(const struct pivot_request *request, struct compare_warnings *ret);
void compare_warnings_done(struct compare_warnings *w);
