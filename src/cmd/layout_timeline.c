// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs over time: a column for each machine, and in it the newest run that succeeded of each kind.

#include "cmd/layout_timeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/cleanup.h"
#include "cmd/reading.h"
#include "render/figure.h"
#include "render/figure_run.h"
#include "render/pivot.h"
#include "trace/reader.h"

#define LINES_MOST 8 // styles that a figure tells apart

// Runs of a figure: [column][line].
struct plan {
	const struct catalogue_run *runs[FIGURE_RUNS_MAX][LINES_MOST];
	size_t n_lines[FIGURE_RUNS_MAX];
	const char *machines[FIGURE_RUNS_MAX];
	size_t n_columns;
	size_t left_out; // runs of one kind that are older, failed, or found no room
};

static const char *label_or_none(const struct catalogue_run *run, const char *label)
{
	const char *value = label ? catalogue_label(run, label) : NULL;
	return value ? value : "";
}

// Where the value stands in the list, at its end where it is new; most where there is no room.
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
		const struct catalogue_run *run = s->runs[i];
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
		const struct catalogue_run **runs = plan->runs[column];
		for (size_t i = 1; i < plan->n_lines[column]; i++) {
			for (size_t j = i; j > 0; j--) {
				const char *a = label_or_none(runs[j - 1], label);
				const char *b = label_or_none(runs[j], label);
				if (pivot_compare_labels(a, b) <= 0) {
					break;
				}
				const struct catalogue_run *swapped = runs[j];
				runs[j] = runs[j - 1];
				runs[j - 1] = swapped;
			}
		}
	}
}

// "batch size 32", or what the value itself says.
static void append_line_name(struct text *t, const char *label, const struct catalogue_run *run)
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

static int read_run(struct figure_page *page, size_t column, size_t line,
	const struct catalogue_run *run, const char *name, draw_run *draw, struct error *e)
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
	return figure_runs_add(page, column, a, name, e);
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

// Where lines end epochs nobody knows when the first began: a gap, and why.
static int draw_epochs(struct figure_page *page, size_t column, size_t line,
	const struct analysis *a, const char *name, struct error *e)
{
	(void)e;
	struct figure_series *series = figure_add_series(
		page->panels[column], LOOK_LINE_POINTS, name);
	if (series) {
		series->style = (int)line;
	}
	for (size_t i = 0; i < a->epochs.n; i++) {
		const struct epoch *epoch = &a->epochs.items[i];
		if (!epoch->open) {
			figure_add_point(
				series, (double)epoch->number, epoch_seconds(&a->epochs, i));
		}
	}
	if (a->epochs.n > 0 && a->epochs.first_with_start && page->n_notes == 0) {
		figure_add_note(page, "lines end epochs, which does not tell when the first began");
	}
	return 0;
}

// How a kind is laid out: its rows of panels, and what draws a run.
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
		return figure_runs_new(plan->n_columns);
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
			const struct catalogue_run *run = plan->runs[column][line];
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

static void say_shown(const struct plan *plan, struct text *into)
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

int layout_timeline(const struct layout *l, struct layout_selection *selection,
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
		return error_set(e, ENOENT, "%s: none of the %zu runs that it would show succeeded",
			l->name, selection->n);
	}
	say_shown(&plan, &selection->shown);
	if (plan.left_out > 0) {
		text_format(&selection->notes,
			"%zu of %zu runs are not drawn: older repeats, failed, or without room\n",
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
