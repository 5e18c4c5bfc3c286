// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What `compare` shows of the runs that it was given, as far as its options do not say: which
// labels tell them apart, and which values are worth a column.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "render/pivot.h"

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
	const char *told[CHOICE_LABELS_MAX]; // labels left out: others of the rows and columns tell
	size_t n_told;
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
