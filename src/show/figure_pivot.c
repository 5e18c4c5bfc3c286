// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Drawing pivots, and runs over time.

#include "show/figure_pivot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "run/analysis.h"
#include "runfile/reader.h"
#include "show/figure.h"
#include "show/figure_run.h"
#include "study/comparison.h"
#include "study/run_table.h"

enum { LINES_MAX = 12, NOTES_MAX = 6, LOGARITHM_FROM = 8 };

static const char *const kinds[N_FIGURE_PIVOT_KINDS] = {
	[FIGURE_PIVOT_SCALING] = "scaling",
	[FIGURE_PIVOT_BARS] = "bars",
	[FIGURE_PIVOT_HEATMAP] = "heatmap",
	[FIGURE_PIVOT_TIMELINE] = "timeline",
	[FIGURE_PIVOT_MEMORY] = "memory",
};

const char *figure_pivot_name(enum figure_pivot_kind kind)
{
	return kinds[kind];
}

bool figure_pivot_parse(const char *name, enum figure_pivot_kind *ret)
{
	for (size_t i = 0; i < N_FIGURE_PIVOT_KINDS; i++) {
		if (strcmp(name, kinds[i]) == 0) {
			*ret = (enum figure_pivot_kind)i;
			return true;
		}
	}
	return false;
}

bool figure_pivot_is_of_runs(enum figure_pivot_kind kind)
{
	return kind == FIGURE_PIVOT_TIMELINE || kind == FIGURE_PIVOT_MEMORY;
}

// --- pivots

static bool is_number(const char *text, double *ret)
{
	char *end;
	*ret = strtod(text, &end);
	return end != text && !*end && isfinite(*ret);
}

// Appends the values of labels `first` to `last` - 1, numbers with the name of their label.
static void append_key(
	struct text *t, const struct pivot_axis *axis, size_t key, size_t first, size_t last)
{
	for (size_t i = first; i < last; i++) {
		const char *value = pivot_key(axis, key, i);
		double number;
		text_append_string(t, t->length ? " " : "");
		if (value && is_number(value, &number)) {
			text_format(t, "%s=", axis->labels[i]);
		}
		text_append_string(t, value ? value : "-");
	}
}

// Appends the values alone, for an axis that names the label.
static void append_values(struct text *t, const struct pivot_axis *axis, size_t key, size_t first)
{
	for (size_t i = first; i < axis->n_labels; i++) {
		const char *value = pivot_key(axis, key, i);
		text_append_string(t, t->length ? " " : "");
		text_append_string(t, value ? value : "-");
	}
}

static void append_labels(struct text *t, const struct pivot_axis *axis, size_t first, size_t last)
{
	for (size_t i = first; i < last; i++) {
		text_append_string(t, t->length ? ", " : "");
		text_append_string(t, axis->labels[i]);
	}
}

// The values of the x axis; false if one is not a number.
static bool x_numbers(const struct pivot *p, double *ret)
{
	size_t label = p->rows.n_labels - 1;
	for (size_t r = 0; r < p->rows.n; r++) {
		const char *key = pivot_key(&p->rows, r, label);
		if (!key || !is_number(key, &ret[r])) {
			return false;
		}
	}
	return true;
}

// A logarithmic axis for powers of two and for wide ranges.
static void set_logarithm(struct figure_axis *axis, const double *x, size_t n)
{
	double least = INFINITY, most = 0;
	bool doubled = true;
	for (size_t i = 0; i < n; i++) {
		int exponent;
		least = fmin(least, x[i]);
		most = fmax(most, x[i]);
		doubled = doubled && frexp(x[i], &exponent) == 0.5;
	}
	bool much = most / least >= LOGARITHM_FROM;
	axis->logarithm = least > 0 && most > least && (doubled || much) ? 2 : 0;
}

struct drawing {
	const struct pivot *p;
	struct figure_page *page;
	const double *x; // [rows.n]; NULL: x values are names
	size_t value;
	enum figure_pivot_kind kind;
};

static void note_failure(const struct drawing *d, const char *name, const struct pivot_cell *cell)
{
	struct text words = {0};
	pivot_append_failures(&words, cell);
	if (words.length > 0 && d->page && d->page->n_notes < NOTES_MAX) {
		figure_add_note(d->page, "%s: %s", name, words.data);
	}
	text_done(&words);
}

static void add_cell(const struct drawing *d, struct figure_panel *panel,
	struct figure_series *series, size_t row, size_t column)
{
	const struct pivot_cell *cell = pivot_at(d->p, row, column, d->value);
	const struct repeats *r = &cell->repeats;
	struct text name = {0}, whole = {0};
	size_t last = d->p->rows.n_labels;
	append_values(&name, &d->p->rows, row, last - 1);
	append_key(&whole, &d->p->rows, row, 0, last);
	append_key(&whole, &d->p->columns, column, 0, d->p->columns.n_labels);
	double x = d->x ? d->x[row]
	                : figure_axis_name(panel, &panel->x, name.data ? name.data : "");
	if (r->n > 0) {
		figure_add_interval(series, x, r->mean, r->mean - r->half, r->mean + r->half);
	} else if (cell->n_runs > 0) {
		if (d->kind == FIGURE_PIVOT_BARS) {
			struct text why = {0};
			pivot_append_failures(&why, cell);
			figure_add_words(series, x, why.data);
			text_done(&why);
		}
		note_failure(d, whole.data ? whole.data : "", cell);
	}
	text_done(&name);
	text_done(&whole);
}

// Whether two rows belong to one series: all labels but the last are equal.
static bool same_series(const struct pivot_axis *rows, size_t a, size_t b)
{
	for (size_t i = 0; i + 1 < rows->n_labels; i++) {
		if (run_table_compare(pivot_key(rows, a, i), pivot_key(rows, b, i)) != 0) {
			return false;
		}
	}
	return true;
}

// A series for each column and each combination of the labels before the last, by which rows are
// sorted.
static void add_series(const struct drawing *d, struct figure_panel *panel)
{
	const struct pivot *p = d->p;
	enum figure_look look = d->kind == FIGURE_PIVOT_BARS ? LOOK_BARS : LOOK_LINE_POINTS;
	for (size_t column = 0; column < p->columns.n; column++) {
		for (size_t from = 0, to; from < p->rows.n; from = to) {
			struct text name = {0};
			append_key(&name, &p->rows, from, 0, p->rows.n_labels - 1);
			append_key(&name, &p->columns, column, 0, p->columns.n_labels);
			struct figure_series *series = figure_add_series(
				panel, look, name.data ? name.data : "");
			for (to = from; to < p->rows.n && same_series(&p->rows, from, to); to++) {
				add_cell(d, panel, series, to, column);
			}
			text_done(&name);
		}
	}
}

static void add_heat(const struct drawing *d, struct figure_panel *panel)
{
	const struct pivot *p = d->p;
	struct figure_series *series = figure_add_series(panel, LOOK_HEAT, "");
	for (size_t i = 0; i < p->rows.n * p->columns.n; i++) {
		size_t row = i / p->columns.n, column = i % p->columns.n;
		const struct pivot_cell *cell = pivot_at(p, row, column, d->value);
		struct text x = {0}, y = {0}, words = {0};
		append_values(&x, &p->columns, column, 0);
		append_values(&y, &p->rows, row, 0);
		pivot_append_failures(&words, cell);
		double at_x = figure_axis_name(panel, &panel->x, x.data ? x.data : "");
		double at_y = figure_axis_name(panel, &panel->y, y.data ? y.data : "");
		if (cell->n_runs > 0) {
			figure_add_cell(series, at_x, at_y, cell->repeats.mean,
				cell->repeats.n > 0 ? NULL : words.data);
		}
		text_done(&x);
		text_done(&y);
		text_done(&words);
	}
}

static void draw_panel(const struct drawing *d)
{
	const struct pivot *p = d->p;
	const struct pivot_value *value = &p->values[d->value];
	bool heat = d->kind == FIGURE_PIVOT_HEATMAP;
	struct figure_panel *panel = figure_add_panel(d->page, heat ? value->title : NULL);
	struct text x = {0}, y = {0};
	if (!panel) {
		return;
	}
	if (heat) {
		append_labels(&x, &p->columns, 0, p->columns.n_labels);
		append_labels(&y, &p->rows, 0, p->rows.n_labels);
		figure_axis_set(panel, &panel->x, x.data, NULL);
		figure_axis_set(panel, &panel->y, y.data, NULL);
		figure_axis_set(panel, &panel->z, value->title, value->unit);
		add_heat(d, panel);
	} else {
		append_labels(&x, &p->rows, p->rows.n_labels - 1, p->rows.n_labels);
		figure_axis_set(panel, &panel->x, x.data, NULL);
		figure_axis_set(panel, &panel->y, value->title, value->unit);
		if (d->x) {
			set_logarithm(&panel->x, d->x, p->rows.n);
		}
		if (value->kind != MEASURE_KIND_WORDS) {
			panel->y.minimum = 0;
		}
		add_series(d, panel);
	}
	text_done(&x);
	text_done(&y);
}

static void say_intervals(
	struct figure_page *page, const struct pivot *p, enum figure_pivot_kind kind)
{
	bool intervals = kind != FIGURE_PIVOT_HEATMAP;
	const char *words = intervals ? " each, with its 95 % interval (Student's t)" : " each";
	if (p->most == 1) {
		figure_add_note(page, "one run each");
	} else if (p->most > 1 && p->fewest < p->most) {
		figure_add_note(page, "mean of %zu to %zu runs%s", p->fewest, p->most, words);
	} else if (p->most > 1) {
		figure_add_note(page, "mean of %zu runs%s", p->most, words);
	}
}

static int check_shape(enum figure_pivot_kind kind, const struct pivot *p, struct error *e)
{
	if (p->rows.n_labels == 0) {
		return error_set(e, EINVAL, "needs --rows, a label for its %s axis",
			kind == FIGURE_PIVOT_HEATMAP ? "y" : "x");
	}
	if (kind == FIGURE_PIVOT_HEATMAP && p->columns.n_labels == 0) {
		return error_set(e, EINVAL, "needs --columns, a label for its x axis");
	}
	for (size_t i = 0; i < p->n_values; i++) {
		if (p->values[i].kind == MEASURE_KIND_WORDS) {
			return error_set(
				e, EINVAL, "'%s' is text, not a number", p->values[i].name);
		}
	}
	return 0;
}

int figure_pivot_draw(enum figure_pivot_kind kind, const struct pivot *p, const char *output,
	const char *keep_directory, struct error *e)
{
	struct drawing d = {.p = p, .kind = kind};
	int r = check_shape(d.kind, p, e);
	_cleanup_free_ double *x = calloc(p->rows.n + 1, sizeof(*x));
	if (r < 0 || !x) {
		return r < 0 ? r : error_errno(e, ENOMEM, "cannot draw");
	}
	d.x = d.kind == FIGURE_PIVOT_SCALING && x_numbers(p, x) ? x : NULL;
	d.page = figure_new(NULL, p->n_values > 1 ? 2 : 1);
	for (d.value = 0; d.value < p->n_values; d.value++) {
		draw_panel(&d);
	}
	say_intervals(d.page, p, d.kind);
	r = figure_write(d.page, output, keep_directory, e);
	figure_free(d.page);
	return r;
}

// --- runs over time

// Each is read in full: a digest holds no time series.
static int load(
	const struct digest *run, struct reader **reader, struct analysis *a, struct error *e)
{
	int r = reader_open(run->path, reader, e);
	return r < 0 ? r : analysis_load(*reader, a, e);
}

static int draw_timeline(
	struct figure_page *page, const struct digest *const *runs, size_t n, struct error *e)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		_cleanup_reader_ struct reader *reader = NULL;
		struct analysis a;
		r = load(runs[i], &reader, &a, e);
		if (r == 0) {
			_cleanup_text_ struct text name = {0};
			comparison_append_line_name(&name, runs, n, i);
			r = figure_run_add(page, i, &a, n > 1 && name.data ? name.data : "", e);
			analysis_done(&a);
		}
	}
	return r;
}

static int draw_memory(
	struct figure_page *page, const struct digest *const *runs, size_t n, struct error *e)
{
	static const char *const titles[] = {"host memory", "device memory"};
	struct figure_line_panels panels = {
		.host = figure_add_panel(page, NULL), .device = figure_add_panel(page, NULL)};
	struct figure_panel *const both[] = {panels.host, panels.device};
	int r = 0;
	page->share_x = true;
	for (size_t i = 0; i < ARRAY_LENGTH(both) && both[i]; i++) {
		figure_axis_set(both[i], &both[i]->x, "time", "s");
		figure_axis_set(both[i], &both[i]->y, titles[i], "By");
		both[i]->x.minimum = 0;
	}
	for (size_t i = 0; i < n && r == 0; i++) {
		_cleanup_reader_ struct reader *reader = NULL;
		struct analysis a;
		r = load(runs[i], &reader, &a, e);
		if (r == 0) {
			_cleanup_text_ struct text name = {0};
			comparison_append_line_name(&name, runs, n, i);
			r = figure_run_lines(&panels, &a, name.data ? name.data : "", (int)i, e);
			analysis_done(&a);
		}
	}
	return r;
}

int figure_pivot_draw_runs(enum figure_pivot_kind kind, const struct digest *const *runs, size_t n,
	const char *output, const char *keep_directory, struct error *e)
{
	bool timeline = kind == FIGURE_PIVOT_TIMELINE;
	size_t most = timeline ? FIGURE_RUNS_MAX : LINES_MAX;
	if (n > most) {
		return error_set(e, EINVAL,
			"expected at most %zu runs, found %zu: select with --where", most, n);
	}
	const struct digest *sorted[LINES_MAX];
	comparison_sort_lines(sorted, runs, n);
	struct figure_page *page = timeline ? figure_run_new(n) : figure_new(NULL, 1);
	if (!page) {
		return error_errno(e, ENOMEM, "cannot draw");
	}
	int r = timeline ? draw_timeline(page, sorted, n, e) : draw_memory(page, sorted, n, e);
	r = r < 0 ? r : figure_write(page, output, keep_directory, e);
	figure_free(page);
	return r;
}
