// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Findings of a finished run: the figures and words that `strain finish` stores in table `finding`,
// so that a list of runs need not decode samples. Reading them takes a tenth of the time of
// reader_open, which checks the whole file.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct writer;

enum findings_table { FINDINGS_KEY, FINDINGS_LABEL, FINDINGS_FINDING };

// A row of table `run`, `label` or `finding`.
struct findings_row {
	enum findings_table table;
	char *name; // owned; text is in the same allocation
	const char *text; // NULL: none
	double number; // finite, or NAN: none
};

struct findings {
	struct findings_row *rows; // [n]
	size_t n;
	size_t capacity;
};

// Copies name and text; call findings_sort after the last. -ENOMEM.
int findings_add(struct findings *f, enum findings_table table, const char *name, const char *text,
	double number);
// By table and name, as findings_find needs it. What findings_read returns is sorted.
void findings_sort(struct findings *f);
void findings_done(struct findings *f);
// NULL: there is no such row.
const struct findings_row *findings_find(
	const struct findings *f, enum findings_table table, const char *name);
// NULL: no such row, or it has no text.
const char *findings_text(const struct findings *f, enum findings_table table, const char *name);
// NAN: no such row, or it has no number.
double findings_number(const struct findings *f, const char *name);

// Reads keys, labels and findings of the run at `path`. Returns -ENODATA if the file has no
// findings or may still be written (live, cut off, WAL mode, truncated): use reader_open, which
// also explains what is wrong with the file. Other errors: -errno, one line with the path.
int findings_read(const char *path, struct findings *ret, struct error *e);

// Replaces the rows of table `finding` in the writer's open transaction. A file of an older schema
// has no such table and is not changed. Returns 0 or -errno.
int findings_put(struct writer *w, const struct findings *f);

// Opens a finished run for small queries over its own tables. It takes no locks, ignores the files
// beside it, checks the schema, and bounds statements. Errors as findings_read. Close with
// database_close.
int findings_open(const char *path, sqlite3 **ret, struct error *e);
