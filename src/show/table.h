// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tables: a const table of columns, and rows of cells. One renderer prints them for people (through
// libsmartcols), as JSON or as CSV. People see "3.2 GB"; programs see 3200000000, with the unit in
// the name of the column.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

enum column_kind {
	COLUMN_TEXT, // aligned left; shortened if the terminal is narrow
	COLUMN_LABEL, // the same, never shortened
	COLUMN_PROSE, // the same, wrapped if the terminal is narrow
	COLUMN_BYTES,
	COLUMN_BINARY_BYTES, // shown in MiB and GiB
	COLUMN_BYTES_PER_SECOND,
	COLUMN_SECONDS,
	COLUMN_RATIO, // shown in per cent
	COLUMN_WHOLE, // a number or a count
	COLUMN_NUMBER, // three significant digits
};

struct column {
	const char *name; // for programs: "cpu_time_s"; NULL: only for people
	const char *title; // for people: "CPU TIME"; NULL: only for programs
	enum column_kind kind;
	// If the terminal is too narrow, columns with the largest number are dropped first, and a
	// line names them; 0: never.
	unsigned drop;
};

struct table;

// The columns must outlive the table.
int table_new(const struct column *columns, size_t n_columns, struct table **ret);
void table_free(struct table *t);
// Begins a row, with missing cells. Returns 0 or -ENOMEM.
int table_row(struct table *t);
size_t table_rows(const struct table *t);
// Another title of a column, for people: "STEPS/S". The text is copied.
void table_set_title(struct table *t, size_t column, const char *title);
// The text is copied. Characters that are unsafe for a terminal are replaced when it is shown to
// people. NULL is missing.
void table_text(struct table *t, size_t column, const char *text);
// NAN is missing.
void table_number(struct table *t, size_t column, double value);
// NAN and INFINITY are shown to people; for programs they are missing.
void table_any_number(struct table *t, size_t column, double value);
// true and false for programs.
void table_boolean(struct table *t, size_t column, bool value);
// Keeps every digit, also beyond 2^53.
void table_integer(struct table *t, size_t column, int64_t value);

// A mark on an interval that says little (words_append_wide); missing for others.
void table_wide(struct table *t, size_t column, double low, double high);

struct table_style {
	unsigned width; // of the terminal; 0: no limit
	bool colour;
	unsigned indent; // blanks before each line
	bool no_titles;
	bool all_columns; // also columns in which all values are missing
	const char *lead; // a word in the indent of the first line; NULL: none
};
// The style for standard output: its width ($COLUMNS, that of the terminal, else no limit) and
// colour (a terminal, without NO_COLOR).
struct table_style table_style_for(FILE *stream);

int table_print(const struct table *t, FILE *stream, const struct table_style *style);
// An array of objects; missing is null. Returns a new reference; NULL: out of memory.
struct json_t *table_to_json(const struct table *t);
