// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs as tables of an SQLite database of this process, so that choosing, narrowing and grouping
// them are queries:
//
//   run (id, command, start_ns, success, outcome, verdict, MEASURE...)
//       id: index of the run in the array given; success: 0 or 1; a column for each measure, by its
//       name, NULL where it is missing; outcome and verdict are words
//   label (run, name, value, given)
//       given 1: the labels of the runs, in this order; 0: `machine`, `from`, `run` and `path` of
//       each run, where no label of it has that name
//
// Values compare as run_table_compare does (collation `label`: numbers and sizes by size), and
// is_number(VALUE) is 1 for numbers.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "study/digest.h"

// Labels that every run has, whatever it was given: its name, its path, and, where sources are
// known, where it is from.
#define RUN_TABLE_RUN "run"
#define RUN_TABLE_PATH "path"
#define RUN_TABLE_SOURCE "from"

struct run_table {
	sqlite3 *database;
	size_t n;
	bool failed; // a query had no memory: its answer is empty
};

// sources: [n] the argument that each run was found by; NULL: no label `from`. 0 or -ENOMEM.
int run_table_make(const struct digest *const *runs, const char *const *sources, size_t n,
	struct run_table *ret);
void run_table_done(struct run_table *t);

// Appends an expression for the value of a label of the run `id`, NULL where it has none.
void run_table_append_label(struct text *sql, const char *label);
// Appends a string constant.
void run_table_append_text(struct text *sql, const char *string);

// A prepared query, NULL where it failed. Finalize it with sqlite3_finalize.
sqlite3_stmt *run_table_query(struct run_table *t, const struct text *sql);
// The next row; false at the end, and where the query failed.
bool run_table_next(struct run_table *t, sqlite3_stmt *query);
// The integer in the only row of a query; 0 where it has none.
int64_t run_table_number(struct run_table *t, const struct text *sql);
// A statement without rows.
void run_table_run(struct run_table *t, const char *sql);

// Numbers and sizes by size ("32", "4GiB", "100MB/s"), words after them by their bytes, NULL last.
int run_table_compare(const char *a, const char *b);
// The number of bytes or the number that a label's value says; false where it says neither.
bool run_table_size(const char *value, double *ret);
