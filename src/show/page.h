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

// NULL where pages can be made, else why this strain cannot: "npm was not there at build time".
const char *page_missing(void);

// A page is begun, is given its runs one after the other, and is ended. Each 0 or -errno; a stream
// that cannot be written is noticed by page_end. Everything from a run is escaped.
int page_begin(FILE *out);
// index counts from 0; n_runs is how many share the room of the page.
int page_add_run(FILE *out, const struct analysis *a, size_t index, size_t n_runs, struct error *e);
int page_end(FILE *out, struct error *e);

// JSON as text that ends no element and no line of a script; of other pages than that of runs, too.
void page_write_json(FILE *out, const struct json_t *json);
