// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a layout becomes: a table, a figure, or what was published.

#include "cmd/layout_show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/layout.h"
#include "cmd/layout_pivot.h"
#include "cmd/layout_select.h"
#include "cmd/layout_timeline.h"
#include "cmd/published.h"
#include "render/figure.h"
#include "render/json.h"

#define LIST "list"

// Tables that are no pivots -----------------------------------------------------------------------

static int print_table(const struct table *t, const struct layout_request *q)
{
	if (q->format == PIVOT_JSON) {
		return json_write(table_to_json(t), q->stream);
	}
	return table_print(t, q->stream, q->style);
}

static int list_layouts(const struct layout_request *q)
{
	static const char *const kinds[] = {[LAYOUT_TABLE] = "table",
		[LAYOUT_BEST] = "table",
		[LAYOUT_SERIES] = "figure",
		[LAYOUT_EPOCHS] = "figure",
		[LAYOUT_RUNS] = "figure",
		[LAYOUT_MEMORY] = "figure",
		[LAYOUT_GPU] = "figure",
		[LAYOUT_PUBLISHED] = "facts",
		[LAYOUT_WAITS] = "not yet"};
	static const struct column columns[] = {
		{"name", "NAME", COLUMN_LABEL, 0},
		{"kind", "KIND", COLUMN_LABEL, 0},
		{"document", "DOCUMENT", COLUMN_LABEL, 2},
		{"item", "ITEM", COLUMN_LABEL, 1},
		{"title", "TITLE", COLUMN_LABEL, 0},
	};
	struct table *t;
	int r = table_new(columns, ARRAY_LENGTH(columns), &t);
	for (size_t i = 0; r == 0 && i < n_layouts; i++) {
		const struct layout *l = &layouts[i];
		r = table_row(t);
		table_text(t, 0, l->name);
		table_text(t, 1, kinds[l->kind]);
		table_text(t, 2, documents[l->document].source);
		table_text(t, 3, l->item);
		table_text(t, 4, l->title);
	}
	r = r < 0 ? r : print_table(t, q);
	table_free(t);
	return r;
}

static int print_published_rows(const struct published *p, const struct layout_request *q)
{
	_cleanup_free_ struct column *columns = calloc(p->n_columns + 1, sizeof(*columns));
	struct table *t = NULL;
	int r = columns ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < p->n_columns; i++) {
		columns[i] = (struct column){p->fields[i], p->fields[i], COLUMN_LABEL, 0};
	}
	r = r < 0 ? r : table_new(columns, p->n_columns, &t);
	for (size_t row = 0; r == 0 && row < p->n_rows; row++) {
		r = table_row(t);
		for (size_t i = 0; i < p->n_columns; i++) {
			const char *field = p->fields[(row + 1) * p->n_columns + i];
			table_text(t, i, *field ? field : NULL);
		}
	}
	r = r < 0 ? r : print_table(t, q);
	table_free(t);
	return r;
}

// Notes -----------------------------------------------------------------------------------------

// How a note is written so that what is printed stays what it is.
static const char *const note_starts[N_PIVOT_FORMATS] = {
	[PIVOT_TEXT] = "  ", [PIVOT_MARKDOWN] = "\n", [PIVOT_LATEX] = "% "};

static void print_note(const struct layout_request *q, const char *note, size_t length)
{
	bool apart = q->format == PIVOT_CSV || q->format == PIVOT_JSON;
	if (apart) {
		command_note("%.*s", (int)length, note);
	} else {
		fprintf(q->stream, "%s%.*s\n", note_starts[q->format], (int)length, note);
	}
}

static void each_line(
	const char *lines, void (*each)(void *context, const char *line, size_t n), void *context)
{
	while (lines && *lines) {
		size_t n = strcspn(lines, "\n");
		if (n > 0) {
			each(context, lines, n);
		}
		lines += n + (lines[n] == '\n');
	}
}

static void print_line(void *context, const char *line, size_t n)
{
	print_note(context, line, n);
}

// Below a figure stands what it shows, not how another is made.
static void draw_line(void *context, const char *line, size_t n)
{
	static const char *const hints[] = {"; --where ", ": --where ", " (strain run --label "};
	for (size_t i = 0; i < ARRAY_LENGTH(hints); i++) {
		const char *hint = memmem(line, n, hints[i], strlen(hints[i]));
		n = hint ? (size_t)(hint - line) : n;
	}
	figure_add_note(context, "%.*s", (int)n, line);
}

static void print_notes(const struct layout_request *q, const struct text *notes)
{
	struct layout_request copy = *q;
	if (notes->length > 0 && q->format == PIVOT_TEXT) {
		fputc('\n', q->stream);
	}
	each_line(notes->data, print_line, &copy);
}

static void add_own_note(const struct layout *l, struct text *notes)
{
	if (l->note) {
		text_format(notes, "%s\n", l->note);
	}
}

// Kinds -----------------------------------------------------------------------------------------

static int show_published(const struct layout *l, const struct layout_request *q, struct error *e)
{
	struct published table;
	_cleanup_text_ struct text notes = {0};
	int r = published_read(l->published, &table, e);
	if (r < 0) {
		return r;
	}
	text_format(&notes, "published: %s, %s; not measured here\n", documents[l->document].source,
		l->item);
	add_own_note(l, &notes);
	if (l->waits) {
		text_format(&notes, "its own waits for %s\n", l->waits);
	}
	r = print_published_rows(&table, q);
	published_done(&table);
	if (r < 0) {
		return error_errno(e, -r, "cannot print %s", l->name);
	}
	print_notes(q, &notes);
	return 0;
}

static void print_heading(const struct layout *l, const struct layout_request *q)
{
	static const char *const starts[N_PIVOT_FORMATS] = {
		[PIVOT_TEXT] = "", [PIVOT_MARKDOWN] = "", [PIVOT_LATEX] = "% "};
	static const char *const ends[N_PIVOT_FORMATS] = {
		[PIVOT_TEXT] = "\n\n", [PIVOT_MARKDOWN] = "\n\n", [PIVOT_LATEX] = "\n"};
	if (starts[q->format]) {
		fprintf(q->stream, "%s%s, %s: %s%s", starts[q->format],
			documents[l->document].source, l->item, l->title, ends[q->format]);
	}
}

static int draw_page(const struct layout *l, const struct layout_request *q,
	struct figure_page *page, const struct layout_selection *s, struct error *e)
{
	if (!page) {
		return error_errno(e, ENOMEM, "cannot make the figure");
	}
	figure_title_page(page, l->title);
	figure_add_note(page, "after %s, %s; here: %s", documents[l->document].source, l->item,
		s->shown.data ? s->shown.data : "");
	each_line(s->notes.data, draw_line, page);
	int r = figure_write(page, q->figure, q->keep_directory, e);
	figure_free(page);
	return r;
}

static int show_pivot(const struct layout *l, const struct layout_request *q,
	struct layout_selection *s, struct error *e)
{
	struct layout_pivot p;
	int r = layout_pivot(l, s, q->beside_published, &p, e);
	if (r < 0) {
		return r;
	}
	add_own_note(l, &s->notes);
	if (q->figure) {
		struct figure_page *page = layout_pivot_figure(&p, s);
		r = draw_page(l, q, page, s, e);
	} else {
		print_heading(l, q);
		r = pivot_write(&p.pivot, q->format, q->stream, q->style);
		r = r < 0 ? error_errno(e, -r, "cannot print %s", l->name) : 0;
		print_notes(q, &s->notes);
	}
	layout_pivot_done(&p);
	return r;
}

static int show_timeline(const struct layout *l, const struct layout_request *q,
	struct layout_selection *s, struct error *e)
{
	struct figure_page *page = NULL;
	int r = layout_timeline(l, s, &page, e);
	if (r < 0) {
		return r;
	}
	add_own_note(l, &s->notes);
	if (q->beside_published) {
		text_format(&s->notes, "%s, %s: the document gives no values%s%s\n",
			documents[l->document].source, l->item, l->said ? "; its text says: " : "",
			l->said ? l->said : "");
	}
	return draw_page(l, q, page, s, e);
}

int layout_check(const char *name, bool to_figure, struct error *e)
{
	if (strcmp(name, LIST) == 0) {
		return 0;
	}
	const struct layout *l = layout_by_name(name);
	if (!l) {
		return error_set(e, EINVAL, "no layout '%s' (--layout list names all)", name);
	}
	if (to_figure && !layout_is_figure(l)) {
		return error_set(e, EINVAL, "%s is a table, not a figure", name);
	}
	if (!to_figure && layout_is_timeline(l)) {
		return error_set(e, EINVAL, "%s is a figure: -o FILE.pdf, .svg or .png", name);
	}
	return 0;
}

bool layout_needs_runs(const char *name)
{
	const struct layout *l = layout_by_name(name);
	return l && l->kind != LAYOUT_PUBLISHED && l->kind != LAYOUT_WAITS;
}

int layout_show(const struct layout_request *q, struct error *e)
{
	if (strcmp(q->name, LIST) == 0) {
		return list_layouts(q) < 0 ? error_errno(e, ENOMEM, "cannot list layouts") : 0;
	}
	const struct layout *l = layout_by_name(q->name);
	if (l->kind == LAYOUT_WAITS && !(q->beside_published && l->published)) {
		return error_set(e, ENOTSUP, "%s (%s, %s) waits for %s", l->name,
			documents[l->document].source, l->item, l->waits);
	}
	if (l->kind == LAYOUT_PUBLISHED || l->kind == LAYOUT_WAITS) {
		return show_published(l, q, e);
	}
	struct layout_selection selection;
	int r = layout_select(l, q->runs, q->n_runs, &selection, e);
	if (r < 0) {
		return r;
	}
	bool pivot = l->kind == LAYOUT_TABLE || l->kind == LAYOUT_BEST || l->kind == LAYOUT_SERIES;
	r = pivot ? show_pivot(l, q, &selection, e) : show_timeline(l, q, &selection, e);
	layout_selection_done(&selection);
	return r;
}
