// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Pivots in the terminal. In a column points stand below points, intervals below intervals; columns
// that the terminal has no room for follow below, behind the same headings of rows.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/words.h"
#include "base/cleanup.h"
#include "render/pivot_grid.h"
#include "render/pivot_write.h"

#define GAP 2 // between columns

// What the parts of a column's cells need.
struct widths {
	size_t fraction; // with its point
	size_t half;
	size_t against;
	bool marked; // one at least is beyond noise
	size_t tail;
};

static size_t wider(size_t a, size_t b)
{
	return a > b ? a : b;
}

static const char *fraction_of(const struct grid_cell *cell)
{
	const char *point = cell->number && !cell->is_words ? strchr(cell->number, '.') : NULL;
	return point ? point : "";
}

static void append_tail(struct text *t, const struct grid_cell *cell)
{
	if (cell->failed) {
		text_append_string(t, ", ");
		text_append_string(t, cell->failed);
	}
	if (cell->note) {
		text_format(t, " [%zu]", cell->note);
	}
}

static size_t tail_width(const struct grid_cell *cell)
{
	_cleanup_text_ struct text tail = {0};
	append_tail(&tail, cell);
	return cell->is_words ? 0 : tail.length;
}

static struct widths measure(const struct grid *g, size_t column)
{
	struct widths w = {0};
	for (size_t r = 0; r < g->n_rows; r++) {
		const struct grid_cell *cell = &g->cells[r * g->n_columns + column];
		w.fraction = wider(w.fraction, strlen(fraction_of(cell)));
		w.half = wider(w.half, cell->half ? strlen(cell->half) : 0);
		w.against = wider(w.against, cell->against ? strlen(cell->against) : 0);
		w.marked = w.marked || cell->beyond_noise;
		w.tail = wider(w.tail, tail_width(cell));
	}
	return w;
}

static void append_number(struct text *t, const struct grid_cell *cell, const struct widths *w)
{
	text_append_string(t, cell->number);
	text_format(t, "%*s", (int)(w->fraction - strlen(fraction_of(cell))), "");
	if (w->half) {
		text_format(t, "%s%-*s", cell->half ? " +-" : "   ", (int)w->half,
			cell->half ? cell->half : "");
	}
	if (w->against) {
		text_format(t, "  %*s%s%s", (int)w->against, cell->against ? cell->against : "",
			cell->against ? "x" : " ", cell->beyond_noise ? "*" : "");
	}
	struct text tail = {0};
	append_tail(&tail, cell);
	size_t unmarked = w->marked && !cell->beyond_noise;
	text_append_string(t, tail.data ? tail.data : "");
	text_format(t, "%*s", (int)(w->tail - tail.length + unmarked), "");
	text_done(&tail);
}

// What is shown of a cell, owned by the caller.
static char *cell_text(const struct grid_cell *cell, const struct widths *w)
{
	struct text t = {0};
	if (cell->number && cell->is_words) {
		text_append_string(&t, cell->number);
		append_tail(&t, cell);
	} else if (cell->number) {
		append_number(&t, cell, w);
	}
	return text_steal(&t);
}

// A grid as strings, and how wide each column is.
struct sheet {
	const struct grid *g;
	char **cells; // [n_rows * n_columns]
	size_t *columns; // widths
	size_t heads; // width of all of them
};

static void sheet_done(struct sheet *s)
{
	for (size_t i = 0; s->cells && i < s->g->n_rows * s->g->n_columns; i++) {
		free(s->cells[i]);
	}
	free(s->cells);
	free(s->columns);
}

static size_t head_width(const struct grid *g, size_t head)
{
	size_t width = words_columns(g->head_titles[head]);
	for (size_t r = 0; r < g->n_rows; r++) {
		width = wider(width, words_columns(g->heads[r * g->n_heads + head]));
	}
	return width;
}

static int sheet_fill(struct sheet *s)
{
	const struct grid *g = s->g;
	s->cells = calloc(g->n_rows * g->n_columns + 1, sizeof(*s->cells));
	s->columns = calloc(g->n_columns + 1, sizeof(*s->columns));
	if (!s->cells || !s->columns) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < g->n_heads; i++) {
		s->heads += head_width(g, i) + GAP;
	}
	for (size_t c = 0; c < g->n_columns; c++) {
		struct widths w = measure(g, c);
		s->columns[c] = words_columns(g->titles[c]);
		for (size_t r = 0; r < g->n_rows; r++) {
			size_t at = r * g->n_columns + c;
			s->cells[at] = cell_text(&g->cells[at], &w);
			if (!s->cells[at]) {
				return -ENOMEM;
			}
			s->columns[c] = wider(s->columns[c], words_columns(s->cells[at]));
		}
	}
	return 0;
}

// How many columns from `from` on there is room for; at least one.
static size_t columns_that_fit(const struct sheet *s, size_t from, size_t width)
{
	size_t used = s->heads + s->columns[from], n = 1;
	while (from + n < s->g->n_columns &&
		(width == 0 || used + GAP + s->columns[from + n] <= width)) {
		used += GAP + s->columns[from + n++];
	}
	return n;
}

static int print_part(
	const struct sheet *s, size_t from, size_t n, FILE *stream, const struct table_style *style)
{
	const struct grid *g = s->g;
	_cleanup_free_ struct column *columns = calloc(g->n_heads + n, sizeof(*columns));
	struct table *t = NULL;
	if (!columns) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < g->n_heads; i++) {
		columns[i] = (struct column){NULL, g->head_titles[i],
			g->head_is_number[i] ? COLUMN_NUMBER : COLUMN_LABEL, 0};
	}
	for (size_t i = 0; i < n; i++) {
		columns[g->n_heads + i] = (struct column){
			NULL, g->titles[from + i], COLUMN_NUMBER, 0};
	}
	int r = table_new(columns, g->n_heads + n, &t);
	for (size_t row = 0; row < g->n_rows && r == 0; row++) {
		r = table_row(t);
		for (size_t i = 0; i < g->n_heads && r == 0; i++) {
			table_text(t, i, g->heads[row * g->n_heads + i]);
		}
		for (size_t i = 0; i < n && r == 0; i++) {
			table_text(t, g->n_heads + i, s->cells[row * g->n_columns + from + i]);
		}
	}
	struct table_style all = *style;
	all.all_columns = true;
	r = r < 0 ? r : table_print(t, stream, &all);
	table_free(t);
	return r;
}

static int print_grid(const struct grid *g, FILE *stream, const struct table_style *style)
{
	struct sheet s = {.g = g};
	int r = sheet_fill(&s);
	if (*g->caption) {
		fprintf(stream, style->colour ? "\033[1m%s\033[0m\n" : "%s\n", g->caption);
	}
	for (size_t from = 0; r == 0 && from < g->n_columns;) {
		size_t n = columns_that_fit(&s, from, style->width);
		fputs(from ? "\n" : "", stream);
		r = print_part(&s, from, n, stream, style);
		from += n;
	}
	sheet_done(&s);
	return r;
}

// A line below, wrapped at blanks.
static void print_below(
	FILE *stream, const struct table_style *style, const char *mark, const char *words)
{
	size_t column = strlen(mark), indent = column;
	fputs(mark, stream);
	for (const char *at = words; *at;) {
		size_t length = words_unbroken(at);
		if (style->width && column > indent && column + 1 + length > style->width) {
			fprintf(stream, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', stream);
			column++;
		}
		fprintf(stream, "%.*s", (int)length, at);
		column += length;
		at += length;
		at += strspn(at, " ");
	}
	fputc('\n', stream);
}

int pivot_write_text(const struct grid_list *list, FILE *stream, const struct table_style *style)
{
	int r = 0;
	for (size_t i = 0; i < list->n && r == 0; i++) {
		fputs(i ? "\n" : "", stream);
		r = print_grid(&list->grids[i], stream, style);
	}
	fputs(*list->interval || *list->baseline || list->n_notes || *list->closing ? "\n" : "",
		stream);
	if (*list->interval) {
		print_below(stream, style, "", list->interval);
	}
	if (*list->baseline) {
		print_below(stream, style, "", list->baseline);
	}
	for (size_t i = 0; i < list->n_notes; i++) {
		char mark[32];
		snprintf(mark, sizeof(mark), "[%zu] ", i + 1);
		print_below(stream, style, mark, list->notes[i]);
	}
	if (*list->closing) {
		fputc('\n', stream);
		print_below(stream, style, "", list->closing);
	}
	return r;
}
