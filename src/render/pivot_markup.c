// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Pivots as Markdown (tables with pipes, as GitHub has them) and as LaTeX (booktabs). Whatever a
// run calls its labels stays letters.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "render/pivot_grid.h"
#include "render/pivot_write.h"

// --- Markdown

static void append_markdown(struct text *t, const char *string)
{
	for (const char *c = string; *c; c++) {
		if (strncmp(c, "+-", 2) == 0) {
			text_append_string(t, "\u00b1");
			c++;
			continue;
		}
		if (*c == '<' || *c == '>') {
			text_append_string(t, *c == '<' ? "&lt;" : "&gt;");
			continue;
		}
		text_append(t, "\\", strchr("\\`*_[]|&$~#", *c) != NULL);
		text_append(t, c, 1);
	}
}

static void append_markdown_cell(struct text *t, const struct grid_cell *cell)
{
	text_append_string(t, " ");
	append_markdown(t, cell->number ? cell->number : "");
	if (cell->half) {
		text_append_string(t, " \u00b1 ");
		text_append_string(t, cell->half);
	}
	if (cell->against) {
		text_format(t, " (%s\u00d7%s)", cell->against, cell->beyond_noise ? "\\*" : "");
	}
	if (cell->failed) {
		text_append_string(t, ", ");
		text_append_string(t, cell->failed);
	}
	if (cell->note) {
		text_format(t, " <sup>%zu</sup>", cell->note);
	}
	text_append_string(t, " |");
}

static void append_markdown_grid(struct text *t, const struct grid *g)
{
	if (*g->caption) {
		text_append_string(t, "**");
		append_markdown(t, g->caption);
		text_append_string(t, "**\n\n");
	}
	text_append_string(t, "|");
	for (size_t i = 0; i < g->n_heads + g->n_columns; i++) {
		text_append_string(t, " ");
		append_markdown(t, i < g->n_heads ? g->head_titles[i] : g->titles[i - g->n_heads]);
		text_append_string(t, " |");
	}
	text_append_string(t, "\n|");
	for (size_t i = 0; i < g->n_heads + g->n_columns; i++) {
		bool left = i < g->n_heads && !g->head_is_number[i];
		text_append_string(t, left ? " --- |" : " ---: |");
	}
	text_append_string(t, "\n");
	for (size_t r = 0; r < g->n_rows; r++) {
		text_append_string(t, "|");
		for (size_t i = 0; i < g->n_heads; i++) {
			text_append_string(t, " ");
			append_markdown(t, g->heads[r * g->n_heads + i]);
			text_append_string(t, " |");
		}
		for (size_t c = 0; c < g->n_columns; c++) {
			append_markdown_cell(t, &g->cells[r * g->n_columns + c]);
		}
		text_append_string(t, "\n");
	}
}

static int put(struct text *t, FILE *stream)
{
	if (t->failed) {
		return -ENOMEM;
	}
	size_t n = t->length ? fwrite(t->data, 1, t->length, stream) : 0;
	return n == t->length ? 0 : -(errno ? errno : EIO);
}

int pivot_write_markdown(const struct grid_list *list, FILE *stream)
{
	_cleanup_text_ struct text t = {0};
	for (size_t i = 0; i < list->n; i++) {
		text_append_string(&t, i ? "\n" : "");
		append_markdown_grid(&t, &list->grids[i]);
	}
	const char *const below[] = {list->interval, list->baseline};
	for (size_t i = 0; i < ARRAY_LENGTH(below); i++) {
		if (*below[i]) {
			text_append_string(&t, "\n");
			append_markdown(&t, below[i]);
			text_append_string(&t, "\n");
		}
	}
	for (size_t i = 0; i < list->n_notes; i++) {
		text_format(&t, "\n<sup>%zu</sup> ", i + 1);
		append_markdown(&t, list->notes[i]);
		text_append_string(&t, "\n");
	}
	if (*list->closing) {
		text_append_string(&t, "\n");
		append_markdown(&t, list->closing);
		text_append_string(&t, "\n");
	}
	return put(&t, stream);
}

// --- LaTeX

static void append_latex(struct text *t, const char *string)
{
	static const struct {
		char character;
		const char *written;
	} special[] = {
		{'\\', "\\textbackslash{}"},
		{'{', "\\{"},
		{'}', "\\}"},
		{'$', "\\$"},
		{'&', "\\&"},
		{'#', "\\#"},
		{'_', "\\_"},
		{'%', "\\%"},
		{'~', "\\textasciitilde{}"},
		{'^', "\\textasciicircum{}"},
		{'<', "\\textless{}"},
		{'>', "\\textgreater{}"},
		{'"', "\\char34{}"}, // \textquotedbl needs another encoding of fonts
		{'|', "\\textbar{}"},
	};
	static const char *const ligatures[] = {"--", "``", "''", "?`", "!`", ",,"};
	for (const char *c = string; *c; c++) {
		size_t i = 0;
		while (i < ARRAY_LENGTH(special) && special[i].character != *c) {
			i++;
		}
		if (i < ARRAY_LENGTH(special)) {
			text_append_string(t, special[i].written);
		} else {
			text_append(t, c, 1);
		}
		for (i = 0; i < ARRAY_LENGTH(ligatures); i++) {
			text_append_string(t, strncmp(c, ligatures[i], 2) == 0 ? "{}" : "");
		}
	}
}

// A number with its sign.
static void append_latex_number(struct text *t, const char *number)
{
	bool negative = *number == '-' && number[1];
	text_append_string(t, negative ? "$-$" : "");
	text_append_string(t, number + negative);
}

static void append_latex_cell(struct text *t, const struct grid_cell *cell)
{
	text_append_string(t, " & ");
	if (!cell->number) {
		return;
	}
	if (cell->is_words) {
		append_latex(t, strcmp(cell->number, "-") == 0 ? "--" : cell->number);
	} else {
		append_latex_number(t, cell->number);
	}
	if (cell->half) {
		text_format(t, " $\\pm$ %s", cell->half);
	}
	if (cell->against) {
		text_format(t, " (%s$\\times$%s)", cell->against, cell->beyond_noise ? "*" : "");
	}
	if (cell->failed) {
		text_append_string(t, ", ");
		append_latex(t, cell->failed);
	}
	if (cell->note) {
		text_format(t, "\\textsuperscript{%zu}", cell->note);
	}
}

static bool same_key(const struct pivot_axis *axis, size_t a, size_t b, size_t n_labels)
{
	for (size_t i = 0; i < n_labels; i++) {
		if (pivot_compare_labels(pivot_key(axis, a, i), pivot_key(axis, b, i)) != 0) {
			return false;
		}
	}
	return true;
}

static void append_latex_key(struct text *t, const char *key)
{
	struct text printable = {0};
	text_append_printable(&printable, key ? key : "--", key ? strlen(key) : 2);
	append_latex(t, printable.data ? printable.data : "");
	text_done(&printable);
}

// After the end of a row LaTeX takes a bracket or a star for an argument of that: {} is nothing.
static void append_latex_head(struct text *t, const char *cell, bool first)
{
	bool argument = *cell == '[' || *cell == '*';
	text_append_string(t, !first ? " & " : argument ? "    {}" : "    ");
	append_latex(t, cell);
}

// A line of headings for each label of the columns; equal ones stand once over what they span.
static void append_latex_level(struct text *t, const struct grid *g, size_t level)
{
	const struct pivot_axis *axis = g->column_axis;
	struct text rules = {0};
	bool last = level + 1 == axis->n_labels;
	for (size_t i = 0; i < g->n_heads; i++) {
		append_latex_head(t, last ? g->head_titles[i] : "", i == 0);
	}
	for (size_t from = 0, to; from < g->n_columns; from = to) {
		for (to = from + 1; to < g->n_columns && same_key(axis, from, to, level + 1);
			to++) {
		}
		text_append_string(t, " & ");
		if (to - from > 1) {
			text_format(t, "\\multicolumn{%zu}{c}{", to - from);
			text_format(&rules, " \\cmidrule(lr){%zu-%zu}", g->n_heads + from + 1,
				g->n_heads + to);
		}
		append_latex_key(t, pivot_key(axis, from, level));
		text_append_string(t, to - from > 1 ? "}" : "");
	}
	text_append_string(t, " \\\\\n");
	if (rules.data && !last) {
		text_format(t, "   %s\n", rules.data);
	}
	text_done(&rules);
}

static void append_latex_titles(struct text *t, const struct grid *g)
{
	if (g->column_axis && g->column_axis->n_labels > 1) {
		for (size_t i = 0; i < g->column_axis->n_labels; i++) {
			append_latex_level(t, g, i);
		}
		return;
	}
	for (size_t i = 0; i < g->n_heads; i++) {
		append_latex_head(t, g->head_titles[i], i == 0);
	}
	for (size_t c = 0; c < g->n_columns; c++) {
		text_append_string(t, " & ");
		append_latex(t, g->titles[c]);
	}
	text_append_string(t, " \\\\\n");
}

// A line below; each +- is the sign. "" is none.
static void append_latex_line(struct text *t, const char *line)
{
	text_append_string(t, *line ? "\n  \\par\\footnotesize " : "");
	while (*line) {
		const char *mark = strstr(line, "+-");
		size_t length = mark ? (size_t)(mark - line) : strlen(line);
		_cleanup_free_ char *before = strndup(line, length);
		append_latex(t, before ? before : "");
		text_append_string(t, mark ? "$\\pm$" : "");
		line += length + (mark ? 2 : 0);
	}
}

static void append_latex_below(struct text *t, const struct grid_list *list)
{
	append_latex_line(t, list->interval);
	append_latex_line(t, list->baseline);
	for (size_t i = 0; i < list->n_notes; i++) {
		text_format(t, "\n  \\par\\footnotesize\\textsuperscript{%zu}~", i + 1);
		append_latex(t, list->notes[i]);
	}
	append_latex_line(t, list->closing);
	text_append_string(t, "\n");
}

static void append_latex_grid(struct text *t, const struct grid *g, const struct grid_list *list)
{
	text_append_string(t, "\\begin{table}\n  \\centering\n");
	if (*g->caption) {
		text_append_string(t, "  \\caption{");
		append_latex(t, g->caption);
		text_append_string(t, "}\n");
	}
	text_append_string(t, "  \\begin{tabular}{");
	for (size_t i = 0; i < g->n_heads + g->n_columns; i++) {
		text_append_string(t, i < g->n_heads && !g->head_is_number[i] ? "l" : "r");
	}
	text_append_string(t, "}\n    \\toprule\n");
	append_latex_titles(t, g);
	text_append_string(t, "    \\midrule\n");
	for (size_t r = 0; r < g->n_rows; r++) {
		for (size_t i = 0; i < g->n_heads; i++) {
			append_latex_head(t, g->heads[r * g->n_heads + i], i == 0);
		}
		for (size_t c = 0; c < g->n_columns; c++) {
			append_latex_cell(t, &g->cells[r * g->n_columns + c]);
		}
		text_append_string(t, " \\\\\n");
	}
	text_append_string(t, "    \\bottomrule\n  \\end{tabular}\n");
	append_latex_below(t, list);
	text_append_string(t, "\\end{table}\n");
}

int pivot_write_latex(const struct grid_list *list, FILE *stream)
{
	_cleanup_text_ struct text t = {0};
	text_append_string(&t, "% needs \\usepackage{booktabs}\n");
	for (size_t i = 0; i < list->n; i++) {
		append_latex_grid(&t, &list->grids[i], list);
	}
	return put(&t, stream);
}
