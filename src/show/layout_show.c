// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Prints a layout as a table, a figure, or published numbers.

#include "show/layout_show.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "run/statistics.h"
#include "base/text.h"
#include "run/analysis.h"
#include "runfile/reader.h"
#include "show/figure.h"
#include "show/figure_run.h"
#include "show/json.h"
#include "study/layout.h"
#include "study/pivot.h"

// Layouts that show runs over time, or epoch by epoch: they read the runs themselves.

struct figure_page;

// Figure ------------------------------------------------------------------------------------------
//
// Series layouts as figures: a panel for each value and each key of the second column label, a
// series for each key of the first.

#define FAILURES_MOST 6 // that the notes list

static const char *key_of(const struct pivot_axis *axis, size_t key, size_t label)
{
	const char *value = label < axis->n_labels ? pivot_key(axis, key, label) : NULL;
	return value ? value : "";
}

// The index of a column's key among the distinct keys of the label.
static size_t number_of_key(const struct pivot_axis *axis, size_t key, size_t label)
{
	size_t n = 0;
	for (size_t i = 0; i < axis->n; i++) {
		bool before = false;
		for (size_t j = 0; j < i && !before; j++) {
			before = strcmp(key_of(axis, j, label), key_of(axis, i, label)) == 0;
		}
		if (strcmp(key_of(axis, i, label), key_of(axis, key, label)) == 0) {
			return n;
		}
		n += !before;
	}
	return n;
}

static size_t count_keys(const struct pivot_axis *axis, size_t label)
{
	size_t n = 1;
	for (size_t i = 0; i < axis->n; i++) {
		size_t number = number_of_key(axis, i, label);
		n = number + 1 > n ? number + 1 : n;
	}
	return n;
}

// "batch size 32" for a number, else the value alone.
static void append_key(struct text *t, const char *label, const char *value)
{
	bool number = *value >= '0' && *value <= '9';
	for (const char *c = label; number && *c; c++) {
		text_append(t, *c == '_' ? " " : c, 1);
	}
	text_format(t, "%s%s", number ? " " : "", value);
}

static void append_words(struct text *t, const char *label)
{
	for (; *label; label++) {
		text_append(t, *label == '_' ? " " : label, 1);
	}
}

static bool all_numbers(const struct pivot_axis *axis)
{
	for (size_t i = 0; i < axis->n; i++) {
		const char *value = key_of(axis, i, 0);
		char *end;
		double number = strtod(value, &end);
		if (end == value || *end || !isfinite(number)) {
			return false;
		}
	}
	return true;
}

static void set_axes(
	struct figure_panel *panel, const struct layout_pivot *p, size_t value, bool numbers)
{
	const struct pivot_value *v = &p->values[value];
	_cleanup_text_ struct text x = {0};
	append_words(&x, p->request.rows[0]);
	if (!panel) {
		return;
	}
	figure_axis_set(panel, &panel->x, x.data ? x.data : "", NULL);
	figure_axis_set(panel, &panel->y, v->title, v->unit);
	for (size_t i = 0; !numbers && i < p->pivot.rows.n; i++) {
		const char *name = key_of(&p->pivot.rows, i, 0);
		figure_axis_name(panel, &panel->x, *name ? name : "-");
	}
	panel->x.whole = true;
	if (numbers && strcmp(p->request.rows[0], "batch_size") == 0) {
		panel->x.logarithm = 2;
	}
}

static void draw_series(struct figure_panel *panel, const struct layout_pivot *p, size_t column,
	size_t value, bool numbers)
{
	const struct pivot_axis *columns = &p->pivot.columns;
	_cleanup_text_ struct text name = {0};
	if (columns->n_labels > 0) {
		append_key(&name, columns->labels[0], key_of(columns, column, 0));
	}
	struct figure_series *series = figure_add_series(
		panel, p->layout->bars ? LOOK_BARS : LOOK_LINE_POINTS, name.data);
	if (series) {
		series->style = (int)number_of_key(columns, column, 0);
	}
	for (size_t row = 0; row < p->pivot.rows.n; row++) {
		const struct pivot_cell *cell = pivot_at(&p->pivot, row, column, value);
		const struct repeats *r = &cell->repeats;
		double x = numbers ? strtod(key_of(&p->pivot.rows, row, 0), NULL) : (double)row;
		bool there = r->n > 0 && isfinite(r->mean);
		if (there || !p->layout->bars) {
			figure_add_interval(series, x, there ? r->mean : NAN,
				there ? r->mean - r->half : NAN, there ? r->mean + r->half : NAN);
		} else if (pivot_failed(cell) > 0) {
			_cleanup_text_ struct text failures = {0};
			pivot_append_failures(&failures, cell);
			figure_add_words(series, x, failures.data);
		}
	}
}

// A panel without numbers shows the reason.
static void say_nothing(struct figure_panel *panel, const struct layout_pivot *p, size_t value)
{
	for (size_t i = 0; panel && i < panel->n_series; i++) {
		for (size_t j = 0; j < panel->series[i]->n; j++) {
			if (isfinite(panel->series[i]->points[j].y)) {
				return;
			}
		}
	}
	const struct pivot_value *v = &p->values[value];
	for (size_t i = 0; i < p->n_runs; i++) {
		const char *why = v->measure < N_MEASURES ? p->runs[i]->reasons[v->measure]
		                  : v->reasons            ? v->reasons[i]
		                                          : NULL;
		if (why) {
			figure_say(panel, "%s: %s", v->title, why);
			return;
		}
	}
	figure_say(panel, "%s: no run has it", v->title);
}

static void say_shown(const struct layout_pivot *p, struct text *into)
{
	size_t n = p->n_runs - p->n_published - p->gpus.n + p->gpus.n_runs, most = p->pivot.most,
	       fewest = p->pivot.fewest;
	text_format(into, "%zu run%s", n, n == 1 ? "" : "s");
	if (most == 1) {
		text_append_string(into, ", one each");
	} else if (most > 1 && fewest == most) {
		text_format(into, ", mean of %zu each", most);
	} else if (most > 1) {
		text_format(into, ", mean of %zu to %zu each", fewest, most);
	}
	if (most > 1) {
		text_append_string(into, ", with its 95 % interval (Student's t)");
	}
}

// "batch_size=512, workers=4: 3 out_of_memory"
static void note_failures(const struct layout_pivot *p, struct layout_selection *s)
{
	size_t n = 0;
	for (size_t row = 0; row < p->pivot.rows.n; row++) {
		for (size_t column = 0; column < p->pivot.columns.n; column++) {
			const struct pivot_cell *cell = pivot_at(&p->pivot, row, column, 0);
			if (pivot_failed(cell) == 0 || ++n > FAILURES_MOST) {
				continue;
			}
			_cleanup_text_ struct text failures = {0};
			pivot_append_failures(&failures, cell);
			text_format(&s->notes, "%s=%s", p->request.rows[0],
				key_of(&p->pivot.rows, row, 0));
			for (size_t i = 0; i < p->pivot.columns.n_labels; i++) {
				text_format(&s->notes, ", %s=%s", p->pivot.columns.labels[i],
					key_of(&p->pivot.columns, column, i));
			}
			text_format(&s->notes, ": %s\n", failures.data ? failures.data : "");
		}
	}
	if (n > FAILURES_MOST) {
		text_format(&s->notes, "and %zu more cells with failed runs\n", n - FAILURES_MOST);
	}
}

static void draw_panel(
	struct figure_page *page, const struct layout_pivot *p, size_t value, size_t panel_key)
{
	const struct pivot_axis *columns = &p->pivot.columns;
	bool numbers = !p->layout->bars && all_numbers(&p->pivot.rows);
	_cleanup_text_ struct text title = {0};
	struct figure_panel *panel = figure_add_panel(page, NULL);
	set_axes(panel, p, value, numbers);
	for (size_t column = 0; column < columns->n; column++) {
		if (number_of_key(columns, column, 1) != panel_key) {
			continue;
		}
		if (columns->n_labels > 1 && title.length == 0) {
			append_key(&title, columns->labels[1], key_of(columns, column, 1));
			figure_title_panel(panel, title.data);
		}
		draw_series(panel, p, column, value, numbers);
	}
	say_nothing(panel, p, value);
}

struct figure_page *layout_pivot_figure(const struct layout_pivot *p, struct layout_selection *s)
{
	size_t keys = p->pivot.columns.n_labels > 1 ? count_keys(&p->pivot.columns, 1) : 1;
	size_t panels = keys * p->pivot.n_values;
	size_t beside = panels == 4 ? 2 : panels < 3 ? panels : 3;
	struct figure_page *page = figure_new(NULL, beside);
	if (!page) {
		return NULL;
	}
	page->share_y = p->pivot.n_values == 1 && panels > 1;
	for (size_t value = 0; value < p->pivot.n_values; value++) {
		for (size_t key = 0; key < keys; key++) {
			draw_panel(page, p, value, key);
		}
	}
	say_shown(p, &s->shown);
	note_failures(p, s);
	return page;
}

// Timeline ----------------------------------------------------------------------------------------
//
// Runs over time: a column for each machine, with the newest successful run of each kind.

#define LINES_MOST 8 // distinguishable line styles

// Runs of a figure: [column][line].
struct plan {
	const struct digest *runs[FIGURE_RUNS_MAX][LINES_MOST];
	size_t n_lines[FIGURE_RUNS_MAX];
	const char *machines[FIGURE_RUNS_MAX];
	size_t n_columns;
	size_t left_out; // older runs of the same kind, failed runs, runs without room
};

static const char *label_or_none(const struct digest *run, const char *label)
{
	const char *value = label ? digest_label(run, label) : NULL;
	return value ? value : "";
}

// The column of a machine, added if it is new; FIGURE_RUNS_MAX if there is no room.
static size_t find_column(struct plan *plan, const char *machine)
{
	for (size_t i = 0; i < plan->n_columns; i++) {
		if (strcmp(plan->machines[i], machine) == 0) {
			return i;
		}
	}
	if (plan->n_columns < FIGURE_RUNS_MAX) {
		plan->machines[plan->n_columns] = machine;
		return plan->n_columns++;
	}
	return FIGURE_RUNS_MAX;
}

static bool has_line(const struct plan *plan, size_t column, const char *label, const char *value)
{
	for (size_t i = 0; i < plan->n_lines[column]; i++) {
		if (strcmp(label_or_none(plan->runs[column][i], label), value) == 0) {
			return true;
		}
	}
	return false;
}

// Runs come newest first.
static void plan_runs(struct plan *plan, const struct layout_selection *s, size_t lines_most)
{
	const char *label = s->n_rows > 0 ? s->rows[0] : NULL;
	for (size_t i = 0; i < s->n; i++) {
		const struct digest *run = s->runs[i];
		size_t column = outcome_is_success(run->outcome)
		                        ? find_column(plan, label_or_none(run, "machine"))
		                        : FIGURE_RUNS_MAX;
		if (column == FIGURE_RUNS_MAX || plan->n_lines[column] == lines_most ||
			has_line(plan, column, label, label_or_none(run, label))) {
			plan->left_out++;
			continue;
		}
		plan->runs[column][plan->n_lines[column]++] = run;
	}
}

// Lines in the order of their labels: 32, 64, 128.
static void sort_lines(struct plan *plan, const char *label)
{
	for (size_t column = 0; label && column < plan->n_columns; column++) {
		const struct digest **runs = plan->runs[column];
		for (size_t i = 1; i < plan->n_lines[column]; i++) {
			for (size_t j = i; j > 0; j--) {
				const char *a = label_or_none(runs[j - 1], label);
				const char *b = label_or_none(runs[j], label);
				if (run_table_compare(a, b) <= 0) {
					break;
				}
				const struct digest *swapped = runs[j];
				runs[j] = runs[j - 1];
				runs[j - 1] = swapped;
			}
		}
	}
}

// "batch size 32" for a number, else the value, else the name of the run.
static void append_line_name(struct text *t, const char *label, const struct digest *run)
{
	const char *value = label_or_none(run, label);
	bool number = *value >= '0' && *value <= '9';
	for (const char *c = label; number && *c; c++) {
		text_append(t, *c == '_' ? " " : c, 1);
	}
	text_format(t, "%s%s", number ? " " : "", *value ? value : run->name);
}

typedef int draw_run(struct figure_page *page, size_t column, size_t line, const struct analysis *a,
	const char *name, struct error *e);

static int read_run(struct figure_page *page, size_t column, size_t line, const struct digest *run,
	const char *name, draw_run *draw, struct error *e)
{
	_cleanup_reader_ struct reader *reader = NULL;
	struct analysis analysis;
	int r = reader_open(run->path, &reader, e);
	r = r < 0 ? r : analysis_load(reader, &analysis, e);
	if (r == 0) {
		r = draw(page, column, line, &analysis, name, e);
		analysis_done(&analysis);
	}
	return r < 0 ? error_prefix(e, "%s", run->path) : 0;
}

static int draw_whole(struct figure_page *page, size_t column, size_t line,
	const struct analysis *a, const char *name, struct error *e)
{
	(void)line;
	return figure_run_add(page, column, a, name, e);
}

static int draw_memory(struct figure_page *page, size_t column, size_t line,
	const struct analysis *a, const char *name, struct error *e)
{
	struct figure_line_panels into = {
		.host = page->panels[column], .device = page->panels[page->columns + column]};
	return figure_run_lines(&into, a, name, (int)line, e);
}

static int draw_gpu(struct figure_page *page, size_t column, size_t line, const struct analysis *a,
	const char *name, struct error *e)
{
	struct figure_line_panels into = {.gpu = page->panels[column]};
	return figure_run_lines(&into, a, name, (int)line, e);
}

// If lines of output mark ends of epochs, the start of the first is unknown: a gap with a note.
static int draw_epochs(struct figure_page *page, size_t column, size_t line,
	const struct analysis *a, const char *name, struct error *e)
{
	(void)e;
	struct figure_series *series = figure_add_series(
		page->panels[column], LOOK_LINE_POINTS, name);
	if (series) {
		series->style = (int)line;
	}
	for (size_t i = 0; i < a->tables.epochs.n; i++) {
		const struct epoch *epoch = &a->tables.epochs.items[i];
		if (!epoch->open) {
			figure_add_point(
				series, (double)epoch->number, epoch_seconds(&a->tables.epochs, i));
		}
	}
	if (a->tables.epochs.n > 0 && a->tables.epochs.first_with_start && page->n_notes == 0) {
		figure_add_note(page, "the lines mark the ends of epochs, so the start of the "
				      "first one is not known");
	}
	return 0;
}

// The panels of a kind, and the function that draws a run.
struct timeline_kind {
	enum layout_kind kind;
	size_t n_strips;
	struct {
		const char *label, *unit;
	} strips[2];
	const char *x_label, *x_unit;
	size_t lines_most;
	draw_run *draw;
};

static const struct timeline_kind kinds[] = {
	{LAYOUT_RUNS, 0, {{NULL, NULL}}, "time", "s", 1, draw_whole},
	{LAYOUT_MEMORY, 2, {{"host memory", "By"}, {"device memory", "By"}}, "time", "s",
		LINES_MOST, draw_memory},
	{LAYOUT_GPU, 1, {{"utilisation", "1"}}, "time", "s", LINES_MOST, draw_gpu},
	{LAYOUT_EPOCHS, 1, {{"time of the epoch", "s"}}, "epoch", "", LINES_MOST, draw_epochs},
};

static struct figure_page *new_page(const struct timeline_kind *kind, const struct plan *plan)
{
	if (kind->n_strips == 0) {
		return figure_run_new(plan->n_columns);
	}
	struct figure_page *page = figure_new(NULL, plan->n_columns);
	for (size_t strip = 0; page && strip < kind->n_strips; strip++) {
		for (size_t column = 0; column < plan->n_columns; column++) {
			bool titled = strip == 0 && plan->n_columns > 1;
			struct figure_panel *panel = figure_add_panel(
				page, titled ? plan->machines[column] : NULL);
			if (panel) {
				figure_axis_set(panel, &panel->x, kind->x_label, kind->x_unit);
				figure_axis_set(panel, &panel->y, kind->strips[strip].label,
					kind->strips[strip].unit);
				panel->x.whole = kind->kind == LAYOUT_EPOCHS;
				panel->x.minimum = panel->x.whole ? NAN : 0;
			}
		}
	}
	if (page) {
		page->share_x = kind->n_strips > 1;
	}
	return page;
}

static int draw_plan(const struct timeline_kind *kind, const struct plan *plan, const char *label,
	struct figure_page *page, struct error *e)
{
	for (size_t column = 0; column < plan->n_columns; column++) {
		for (size_t line = 0; line < plan->n_lines[column]; line++) {
			const struct digest *run = plan->runs[column][line];
			_cleanup_text_ struct text name = {0};
			if (label) {
				append_line_name(&name, label, run);
			} else {
				text_append_string(&name, label_or_none(run, "machine"));
			}
			int r = read_run(
				page, column, line, run, name.data ? name.data : "", kind->draw, e);
			if (r < 0) {
				return r;
			}
		}
	}
	return 0;
}

static void layout_timeline_say_shown(const struct plan *plan, struct text *into)
{
	size_t n = 0;
	for (size_t column = 0; column < plan->n_columns; column++) {
		n += plan->n_lines[column];
	}
	if (n == 1) {
		text_format(into, "run %s", plan->runs[0][0]->name);
	} else {
		text_format(into, "%zu runs", n);
	}
}

// Sets *ret_page, owned by the caller. 0, or -errno with one line.
static int layout_timeline(const struct layout *l, struct layout_selection *selection,
	struct figure_page **ret, struct error *e)
{
	const struct timeline_kind *kind = kinds;
	while (kind->kind != l->kind) {
		kind++;
	}
	struct plan plan = {0};
	const char *label = selection->n_rows > 0 ? selection->rows[0] : NULL;
	plan_runs(&plan, selection, kind->lines_most);
	sort_lines(&plan, label);
	if (plan.n_columns == 0) {
		return error_set(e, ENOENT, "%s: none of the %zu selected runs succeeded", l->name,
			selection->n);
	}
	layout_timeline_say_shown(&plan, &selection->shown);
	if (plan.left_out > 0) {
		text_format(&selection->notes,
			"%zu of %zu runs are not drawn: older repeats, failed, or beyond the "
			"limit\n",
			plan.left_out, selection->n);
	}
	struct figure_page *page = new_page(kind, &plan);
	int r = page && !page->failed ? draw_plan(kind, &plan, label, page, e)
	                              : error_errno(e, ENOMEM, "cannot make the figure");
	if (r < 0) {
		figure_free(page);
		return r;
	}
	*ret = page;
	return 0;
}

// Show --------------------------------------------------------------------------------------------

#define LIST "list"

// Tables other than pivots -----------------------------------------------------------------------

static int print_table(const struct table *t, const struct layout_request *q)
{
	if (q->format == PIVOT_JSON) {
		return json_write(table_to_json(t), q->stream);
	}
	return table_print(t, q->stream, q->style);
}

static int list_layouts(const struct layout_request *q)
{
	static const char *const kind_names[] = {[LAYOUT_TABLE] = "table",
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
		table_text(t, 1, kind_names[l->kind]);
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

// Notes -------------------------------------------------------------------------------------------

// Prefixes that keep the output valid in its format.
static const char *const note_starts[N_PIVOT_FORMATS] = {
	[PIVOT_TEXT] = "  ", [PIVOT_MARKDOWN] = "\n", [PIVOT_LATEX] = "% "};

static void print_note(const struct layout_request *q, const char *note, size_t length)
{
	bool apart = q->format == PIVOT_CSV || q->format == PIVOT_JSON;
	if (apart) {
		_cleanup_free_ char *line = strndup(note, length);
		q->note(line ? line : "");
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

// A figure shows the note without the hint at an option.
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

// Kinds -------------------------------------------------------------------------------------------

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
		text_format(&notes, "not yet possible; missing: %s\n", l->waits);
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
		text_format(&s->notes, "%s, %s: the document contains no values%s%s\n",
			documents[l->document].source, l->item, l->said ? "; its text says: " : "",
			l->said ? l->said : "");
	}
	return draw_page(l, q, page, s, e);
}

int layout_show_check(const char *name, bool to_figure, struct error *e)
{
	if (strcmp(name, LIST) == 0) {
		return 0;
	}
	const struct layout *l = layout_by_name(name);
	if (!l) {
		return error_set(e, EINVAL, "no layout '%s' (--layout list lists them)", name);
	}
	if (to_figure && !layout_is_figure(l)) {
		return error_set(e, EINVAL, "%s is a table, not a figure", name);
	}
	if (!to_figure && layout_is_timeline(l)) {
		return error_set(e, EINVAL, "%s is a figure: -o FILE.pdf, .svg or .png", name);
	}
	return 0;
}

bool layout_show_needs_runs(const char *name)
{
	const struct layout *l = layout_by_name(name);
	return l && l->kind != LAYOUT_PUBLISHED && l->kind != LAYOUT_WAITS;
}

bool layout_show_needs_advice(const char *name)
{
	const struct layout *l = layout_by_name(name);
	return l && layout_is_of_advice(l);
}

int layout_show(const struct layout_request *q, struct error *e)
{
	if (strcmp(q->name, LIST) == 0) {
		return list_layouts(q) < 0 ? error_errno(e, ENOMEM, "cannot list layouts") : 0;
	}
	const struct layout *l = layout_by_name(q->name);
	if (l->kind == LAYOUT_WAITS && !(q->beside_published && l->published)) {
		return error_set(e, ENOTSUP, "%s (%s, %s) is not yet possible; missing: %s",
			l->name, documents[l->document].source, l->item, l->waits);
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
