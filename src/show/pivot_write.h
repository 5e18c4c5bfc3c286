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
// The format for a file name's extension: .md, .tex, .csv, .json, .txt. False: another extension.
bool pivot_format_of(const char *path, enum pivot_format *ret);
// style: of the terminal, for PIVOT_TEXT. Returns 0, -ENOMEM, or -errno of the stream.
int pivot_write(const struct pivot *p, enum pivot_format format, FILE *stream,
	const struct table_style *style);

// Parts of pivot_write.
struct grid_list;

// Pivot grid --------------------------------------------------------------------------------------
//
// A pivot laid out for people: grids of strings, with suitable units and digits.
//
//   rows, no columns     a grid; a column for each value
//   rows and columns     a grid for each value
//   no rows              a grid; a line for each value
//
// Each writer adds its own markup to the strings.

struct grid_cell {
	char *number; // "41.2", or words; NULL: no run has these labels
	bool is_words;
	char *half; // "0.3", half the interval; NULL: none
	char *against; // "1.33", relative to the baseline; NULL: none
	bool beyond_noise;
	char *failed; // "1 crash" among the repeats; NULL: none, or `number` says it
	size_t note; // from 1; 0: none
};

// All strings are valid UTF-8 without control characters.
struct grid {
	char *caption; // "time of an epoch, s"; "" if a heading has it
	char **head_titles; // [n_heads]
	bool *head_is_number; // [n_heads] a number in every row: aligned right
	size_t n_heads;
	char **titles; // [n_columns]
	size_t n_columns;
	const struct pivot_axis *column_axis; // its keys are the columns; NULL: values are
	char **heads; // [n_rows * n_heads]
	size_t n_rows;
	struct grid_cell *cells; // [n_rows * n_columns]
};

struct grid_list {
	struct grid *grids;
	size_t n;
	char **notes; // [n_notes] referred to by cells
	size_t n_notes;
	char *interval; // meaning of +-; "" if there is none
	char *closing; // the fastest column, with its confidence; "" if there is none
	// The baseline, and which cells are marked, or why none is; "" if there is no baseline.
	char *baseline;
};

// Appends a number with the precision of half its interval, which has two significant digits, in
// the unit of the value. Without a half (NAN), three digits are significant.
void grid_append_number(struct text *t, double value, double half);
// Appends the half with as many decimals as its number.
void grid_append_half(struct text *t, double value, double half);
// Appends a speed-up or a ratio: "1.33", "1.004", "12.5".
void grid_append_against(struct text *t, double against);
