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

struct page_sweep {
	char *const
		*paths; // [n_paths] of the catalogue; a plan or an answer is shown of one folder
	size_t n_paths;
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
