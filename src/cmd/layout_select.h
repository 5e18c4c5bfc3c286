// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which of many runs a layout shows, and what is to be said of that.

#pragma once

#include <stddef.h>

#include "analyze/catalogue.h"
#include "base/error.h"
#include "base/text.h"
#include "cmd/layout.h"

struct layout_selection {
	const struct catalogue_run **runs; // [n], the newest first
	size_t n;
	const char *rows[LAYOUT_LABELS]; // the layout's labels
	size_t n_rows;
	const char *columns[LAYOUT_LABELS];
	size_t n_columns;
	struct text unlabelled; // labels that no run has: "framework, dataset"
	struct text shown; // how many runs, and what a point is: "6 runs, mean of 3 each"
	struct text notes; // lines: labels that runs lack, and in which a cell's runs differ
};

// A run without a filter's label stays, and is said. -ENOENT with one line where no run is left.
int layout_select(const struct layout *l, const struct catalogue_run *const *runs, size_t n,
	struct layout_selection *ret, struct error *e);
void layout_selection_done(struct layout_selection *s);
