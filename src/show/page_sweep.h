// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Many runs as one page: a table, curves, a heat map, and a summary of each run. web/README.md and
// web/src/sweep_contract.ts describe the data.

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct catalogue;
struct run_label;

// Facts about a sweep that its runs do not have. All text is escaped.
struct page_sweep {
	const char *name; // of the page
	const char *command; // of the plan, with placeholders; NULL: none
	const char *plan; // text of the plan; NULL: none
	const char *advice; // what `strain advise` printed of its answer; NULL: none
	const struct run_label *baseline; // [n_baseline] labels of the plan's baseline
	size_t n_baseline;
	const char *const *label_order; // [n_label_order] names that come first, in this order
	size_t n_label_order;
	size_t planned; // trials of the plan; 0: not known
	const char *output; // path of the page, for links to reports next to runs; NULL: none
	// Called after each run; NULL: not called.
	void (*progressed)(void *context, uint64_t done, uint64_t total);
	void *context;
};

// Writes the page of the catalogue's runs, sorted by name. A run that can no longer be read keeps
// its row, with what the catalogue knows. Errors of the stream are reported at the end. Returns 0
// or -errno.
int page_sweep_write(FILE *out, const struct page_sweep *sweep, const struct catalogue *catalogue,
	struct error *e);
