// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Pivots as text: for the terminal, for papers (Markdown, LaTeX) and for programs (CSV, JSON: a
// line or an object for each cell, in base units).

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "render/pivot.h"
#include "render/table.h"

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
int pivot_write_text(const struct grid_list *list, FILE *stream, const struct table_style *style);
int pivot_write_markdown(const struct grid_list *list, FILE *stream);
int pivot_write_latex(const struct grid_list *list, FILE *stream);
int pivot_write_csv(const struct pivot *p, FILE *stream);
int pivot_write_json(const struct pivot *p, FILE *stream);
