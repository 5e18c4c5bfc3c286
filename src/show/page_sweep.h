// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Many runs as one page: a table, curves, a heat map, and each run in short. web/README.md and
// web/src/sweep_contract.ts describe the data.

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct catalogue;
struct run_label;

// What of a sweep is not in its runs. Everything is escaped.
struct page_sweep {
	const char *name; // of the page
	const char *command; // the plan's, with its placeholders; NULL: none
	const char *plan; // its text; NULL: none
	const struct run_label *baseline; // [n_baseline] what the plan compares with
	size_t n_baseline;
	const char *const *label_order; // [n_label_order] names that come first, in this order
	size_t n_label_order;
	size_t planned; // trials that the plan has; 0: not known
	const char *output; // the page's own path, for links to reports beside runs; NULL: none
	// Called after each run. NULL: nobody wants to know.
	void (*progressed)(void *context, uint64_t done, uint64_t total);
	void *context;
};

// Writes the page of the catalogue's runs, in the order of their names. A run that can no longer be
// read keeps its row, with what the catalogue knows. A stream that cannot be written is noticed at
// the end. 0 or -errno.
int page_sweep_write(FILE *out, const struct page_sweep *sweep, const struct catalogue *catalogue,
	struct error *e);
