// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The report as one HTML page: the program built from web/, with the data of runs. web/README.md
// and web/src/contract.ts describe the data.

#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

struct analysis;
struct json_t;
struct page_priced;

// NULL, or why this build of strain cannot write pages: "npm was not there at build time".
const char *page_missing(void);

// page_begin, page_add_run for each run, page_end. Each returns 0 or -errno; page_end reports
// errors of the stream. All text from runs is escaped.
int page_begin(FILE *out);
// index counts from 0. n_runs is the number of runs that share the size limit of the page.
// priced: the run with the measures of a price list (study/prices.h); NULL: without.
int page_add_run(FILE *out, const struct analysis *a, const struct page_priced *priced,
	size_t index, size_t n_runs, struct error *e);
int page_end(FILE *out, struct error *e);

// Writes JSON as text that ends neither an element nor a line of a script. Also for other pages.
void page_write_json(FILE *out, const struct json_t *json);
