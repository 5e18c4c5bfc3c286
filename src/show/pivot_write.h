// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Pivots as text: for the terminal, for papers (Markdown, LaTeX) and for programs (CSV, JSON: a
// line or an object for each cell, in base units).

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/text.h"
#include "show/table.h"
#include "study/pivot.h"

enum pivot_format {
	PIVOT_TEXT,
	PIVOT_MARKDOWN,
	PIVOT_LATEX,
	PIVOT_CSV,
	PIVOT_JSON,
	N_PIVOT_FORMATS
};

// "text", "markdown", "latex", "csv", "json"
const char *pivot_format_name(enum pivot_format format);
bool pivot_format_parse(const char *name, enum pivot_format *ret);
// By the ending of a file's name: .md, .tex, .csv, .json, .txt. False where it is another.
bool pivot_format_of(const char *path, enum pivot_format *ret);
// style: of the terminal, for PIVOT_TEXT. 0, -ENOMEM, or -errno of the stream.
int pivot_write(const struct pivot *p, enum pivot_format format, FILE *stream,
	const struct table_style *style);

// The parts of it.
struct grid_list;

// Pivot grid --------------------------------------------------------------------------------------
//
// A pivot laid out for people: grids of strings, in units and digits that fit. What stands where:
//
//   rows, no columns     a grid; a column for each value
//   rows and columns     a grid for each value
//   no rows              a grid; a line for each value
//
// Each writer puts its own marks around the strings.

struct grid_cell {
	char *number; // "41.2", or words; NULL: no run has these labels
	bool is_words;
	char *half; // "0.3", of the interval; NULL: none
	char *against; // "1.33", times the baseline; NULL: none
	bool beyond_noise;
	char *failed; // "1 crash": of the repeats; NULL: none, or that is all there is to say
	size_t note; // from 1; 0: none
};

// All strings are valid UTF-8 without control characters.
struct grid {
	char *caption; // "time of an epoch, s"; "" where it would repeat a heading
	char **head_titles; // [n_heads]
	bool *head_is_number; // [n_heads] in every row: to the right
	size_t n_heads;
	char **titles; // [n_columns]
	size_t n_columns;
	const struct pivot_axis *column_axis; // that columns are the keys of; NULL: values
	char **heads; // [n_rows * n_heads]
	size_t n_rows;
	struct grid_cell *cells; // [n_rows * n_columns]
};

struct grid_list {
	struct grid *grids;
	size_t n;
	char **notes; // [n_notes] what cells refer to
	size_t n_notes;
	char *interval; // what +- means; "" where there is none
	char *closing; // which column is the fastest, and how sure that is; "" where there is none
	char *baseline; // what cells are held against, and what is marked, or why nothing is; ""
	                // where there is none
};

// A number and its interval's half (NAN: none) in the value's unit: two digits of the half count,
// and the number has the same place last; without a half, three digits count.
void grid_append_number(struct text *t, double value, double half);
// The half, with the digits of its number.
void grid_append_half(struct text *t, double value, double half);
// "1.33", "1.004", "12.5": a speed-up or a ratio.
void grid_append_against(struct text *t, double against);
