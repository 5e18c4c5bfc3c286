// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tables: columns are a const table, rows are cells; one renderer prints them for people (through
// libsmartcols), as JSON or as CSV. People see "3.2 GB"; programs see 3200000000 and the unit in
// the name.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

enum column_kind {
	COLUMN_TEXT, // to the left; shortened where the terminal is narrow
	COLUMN_LABEL, // the same, never shortened
	COLUMN_PROSE, // the same, goes on in the lines below where the terminal is narrow
	COLUMN_BYTES,
	COLUMN_BINARY_BYTES, // people see MiB and GiB
	COLUMN_BYTES_PER_SECOND,
	COLUMN_SECONDS,
	COLUMN_RATIO, // people see per cent
	COLUMN_WHOLE, // a number or a count
	COLUMN_NUMBER, // three digits that count
};

struct column {
	const char *name; // for programs: "cpu_time_s"; NULL: only for people
	const char *title; // for people: "CPU TIME"; NULL: only for programs
	enum column_kind kind;
	unsigned drop; // columns with the largest number go first where the terminal is too
	               // narrow, and a line says which went; 0 stays
};

struct table;

// The columns must outlive the table.
int table_new(const struct column *columns, size_t n_columns, struct table **ret);
void table_free(struct table *t);
// Begins a row; its cells are missing until they are put. -ENOMEM.
int table_row(struct table *t);
size_t table_rows(const struct table *t);
// Text is copied; what a terminal must not see is replaced when it is shown to people. NULL is
// missing.
void table_text(struct table *t, size_t column, const char *text);
// NAN is missing.
void table_number(struct table *t, size_t column, double value);
// Every digit of it, also beyond 2^53.
void table_integer(struct table *t, size_t column, int64_t value);

struct table_style {
	unsigned width; // of the terminal; 0: no limit
	bool colour;
	unsigned indent; // blanks before each line
	bool no_titles;
	bool all_columns; // also those that are missing in every row
	const char *lead; // a word in the indent of the first line; NULL for none
};
// For standard output: its width ($COLUMNS, the terminal's, else no limit) and colour (a terminal,
// without NO_COLOR).
struct table_style table_style_for(FILE *stream);

int table_print(const struct table *t, FILE *stream, const struct table_style *style);
// An array of objects; missing is null. A new reference; NULL: out of memory.
struct json_t *table_to_json(const struct table *t);
