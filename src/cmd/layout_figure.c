// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Series layouts as figures: a panel for each value and each key of the second column label, a
// series for each key of the first.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/layout_pivot.h"
#include "model/statistics.h"
#include "render/figure.h"

#define FAILURES_MOST 6 // that notes name

static const char *key_of(const struct pivot_axis *axis, size_t key, size_t label)
{
	const char *value = label < axis->n_labels ? pivot_key(axis, key, label) : NULL;
	return value ? value : "";
}

// The place of a column's key among the distinct ones of that label.
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

// "batch size 32" of a number, else the value alone.
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

// Where there is no number the panel says why.
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
			figure_say(panel, "%s", why);
			return;
		}
	}
	figure_say(panel, "no run has it");
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
	if (most > 1 && statistics_has_distributions()) {
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
		text_format(&s->notes, "and %zu more places with runs that failed\n",
			n - FAILURES_MOST);
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
