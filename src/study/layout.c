// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Applies layouts to runs: selects them, keeps one configuration for each cell, adds published
// numbers, and makes a pivot.

#include "study/layout.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "run/analysis.h"
#include "runfile/database.h"
#include "runfile/reader.h"
#include "study/comparison.h"
#include "study/pivot.h"
#include "study/run_table.h"

static int layout_apply_filters(const struct layout *l, struct layout_selection *s);

// Select ------------------------------------------------------------------------------------------

static bool any_has(const struct layout_selection *s, const char *label)
{
	for (size_t i = 0; i < s->n; i++) {
		if (digest_label(s->runs[i], label)) {
			return true;
		}
	}
	return false;
}

static size_t count_with(const struct digest *const *runs, size_t n, const char *label)
{
	size_t with = 0;
	for (size_t i = 0; i < n; i++) {
		with += digest_label(runs[i], label) != NULL;
	}
	return with;
}

// A run without the label passes if no run has the label: then nothing is known about it.
static bool passes(const struct digest *run, const struct layout_filter *filter, bool labelled)
{
	const char *value = digest_label(run, filter->label);
	return value ? strcasecmp(value, filter->value) == 0 : !labelled;
}

static int compare_values(const void *a, const void *b)
{
	return run_table_compare(*(const char *const *)a, *(const char *const *)b);
}

// Appends the distinct values of a label, sorted: "32, 64". Returns their number.
static size_t append_values(
	struct text *t, const struct digest *const *runs, size_t n, const char *label)
{
	_cleanup_free_ const char **values = calloc(n + 1, sizeof(void *));
	size_t there = 0, found = 0;
	for (size_t i = 0; values && i < n; i++) {
		values[there] = digest_label(runs[i], label);
		there += values[there] != NULL;
	}
	if (there > 0) {
		qsort(values, there, sizeof(void *), compare_values);
	}
	for (size_t i = 0; i < there; i++) {
		if (i == 0 || strcmp(values[i], values[i - 1]) != 0) {
			text_append_string(t, found++ > 0 ? ", " : "");
			text_append_printable(t, values[i], strlen(values[i]));
		}
	}
	return found;
}

static void append_filters(struct text *t, const struct layout *l)
{
	for (size_t i = 0; i < LAYOUT_LABELS && l->filters[i].label; i++) {
		text_format(
			t, "%s%s=%s", i > 0 ? ", " : "", l->filters[i].label, l->filters[i].value);
	}
}

// The error for the first filter that no run passes, with the values that runs have.
static int explain_none(
	const struct layout *l, const struct digest *const *runs, size_t n, struct error *e)
{
	_cleanup_text_ struct text wanted = {0}, there = {0};
	append_filters(&wanted, l);
	const struct layout_filter *guilty = NULL;
	for (size_t i = 0; !guilty && i < LAYOUT_LABELS && l->filters[i].label; i++) {
		bool any = false, labelled = count_with(runs, n, l->filters[i].label) > 0;
		for (size_t j = 0; j < n; j++) {
			any = any || passes(runs[j], &l->filters[i], labelled);
		}
		guilty = any ? NULL : &l->filters[i];
	}
	if (!guilty) {
		return error_set(e, ENOENT, "%s needs runs with %s: none of %zu has all of these",
			l->name, wanted.data ? wanted.data : "", n);
	}
	append_values(&there, runs, n, guilty->label);
	return error_set(e, ENOENT, "%s needs runs with %s: none of %zu has %s=%s (found: %s)",
		l->name, wanted.data ? wanted.data : "", n, guilty->label, guilty->value,
		there.data ? there.data : "");
}

static void note_missing(
	struct layout_selection *s, const char *label, size_t without, bool left_out)
{
	if (without == s->n) {
		text_format(&s->unlabelled, "%s%s", s->unlabelled.length > 0 ? ", " : "", label);
	} else {
		text_format(&s->notes, "%zu of %zu runs have no label %s%s\n", without, s->n, label,
			left_out ? ", and are excluded" : "");
	}
}

// Keeps the runs that pass the filter, and notes how many have no such label.
static void filter_runs(struct layout_selection *s, const struct layout_filter *filter)
{
	size_t with = count_with(s->runs, s->n, filter->label), n = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (passes(s->runs[i], filter, with > 0)) {
			s->runs[n++] = s->runs[i];
		}
	}
	if (with < s->n) {
		note_missing(s, filter->label, s->n - with, with > 0);
	}
	s->n = n;
}

// Drops the runs without a label that a figure is drawn over.
static void require_label(struct layout_selection *s, const char *label)
{
	size_t with = count_with(s->runs, s->n, label), n = 0;
	if (with == 0 || with == s->n) {
		return;
	}
	note_missing(s, label, s->n - with, true);
	for (size_t i = 0; i < s->n; i++) {
		if (digest_label(s->runs[i], label)) {
			s->runs[n++] = s->runs[i];
		}
	}
	s->n = n;
}

static size_t copy_labels(struct layout_selection *s, const char *const wanted[LAYOUT_LABELS],
	const char *instead, const char *ret[LAYOUT_LABELS])
{
	size_t n = 0;
	for (; n < LAYOUT_LABELS && wanted[n]; n++) {
		bool other = n == 0 && instead && !any_has(s, wanted[n]) && any_has(s, instead);
		ret[n] = other ? instead : wanted[n];
		size_t without = s->n - count_with(s->runs, s->n, ret[n]);
		if (without > 0) {
			note_missing(s, ret[n], without, false);
		}
	}
	return n;
}

static int compare_starts(const void *left, const void *right)
{
	const struct digest *a = *(const struct digest *const *)left;
	const struct digest *b = *(const struct digest *const *)right;
	int order = (a->start_utc_ns < b->start_utc_ns) - (a->start_utc_ns > b->start_utc_ns);
	return order ? order : strcmp(b->path, a->path);
}

int layout_select(const struct layout *l, const struct digest *const *runs, size_t n,
	struct layout_selection *ret, struct error *e)
{
	*ret = (struct layout_selection){.runs = calloc(n + 1, sizeof(void *))};
	if (!ret->runs) {
		return error_errno(e, ENOMEM, "cannot choose runs");
	}
	bool of_advice = layout_is_of_advice(l);
	for (size_t i = 0; i < n; i++) {
		if (!of_advice || runs[i]->advice_directory) {
			ret->runs[ret->n++] = runs[i];
		}
	}
	if (of_advice && ret->n == 0) {
		layout_selection_done(ret);
		return error_set(e, ENOENT,
			"%s needs answers of strain advise: none of %zu runs is in such a "
			"folder",
			l->name, n);
	}
	for (size_t i = 0; i < LAYOUT_LABELS && l->filters[i].label; i++) {
		filter_runs(ret, &l->filters[i]);
	}
	if (ret->n == 0) {
		layout_selection_done(ret);
		return explain_none(l, runs, n, e);
	}
	if (layout_is_figure(l) && l->rows[0]) {
		bool other = l->row_instead && !any_has(ret, l->rows[0]);
		require_label(ret, other ? l->row_instead : l->rows[0]);
	}
	ret->n_rows = copy_labels(ret, l->rows, l->row_instead, ret->rows);
	ret->n_columns = copy_labels(ret, l->columns, NULL, ret->columns);
	if (ret->unlabelled.length > 0) {
		text_format(&ret->notes, "missing labels: %s (strain run --label NAME=VALUE)\n",
			ret->unlabelled.data);
	}
	if (layout_is_timeline(l)) {
		ret->columns[ret->n_columns++] = "machine";
	}
	if (layout_apply_filters(l, ret) < 0) {
		layout_selection_done(ret);
		return error_errno(e, ENOMEM, "cannot choose runs");
	}
	qsort(ret->runs, ret->n, sizeof(void *), compare_starts);
	return 0;
}

void layout_selection_done(struct layout_selection *s)
{
	free(s->runs);
	text_done(&s->shown);
	text_done(&s->notes);
	text_done(&s->unlabelled);
	*s = (struct layout_selection){0};
}

// Narrow ------------------------------------------------------------------------------------------
//
// One configuration for each cell.

// Labels of a configuration, in the order in which their values are chosen. All other labels that
// users gave follow.
static const char *const configuration[] = {"machine", "framework", "model", "dataset",
	"image_size", "samples", "epochs", "batch_size", "processes", "gpus", "memory", "disk_read",
	"cpus", "threads", "workers"};

static bool stands_in(const char *label, const char *const *labels, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(labels[i], label) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_shown(const struct layout *l, const struct layout_selection *s, const char *label)
{
	return stands_in(label, s->rows, s->n_rows) || stands_in(label, s->columns, s->n_columns) ||
	       (l->best && strcmp(l->best, label) == 0) ||
	       (l->ratio.label && strcmp(l->ratio.label, label) == 0);
}

// Whether the layout computes one number from cells that differ in this label only.
static bool is_held_against(
	const struct layout *l, const struct layout_selection *s, const char *label)
{
	return (l->best && strcmp(l->best, label) == 0) ||
	       (l->ratio.label && strcmp(l->ratio.label, label) == 0) ||
	       (layout_is_figure(l) && s->n_rows > 0 && strcmp(s->rows[0], label) == 0);
}

// Whether a number of the layout is computed from several cells, which must then be of one
// configuration. Otherwise cells of a series may differ, as in the number of samples that goes with
// a batch size.
static bool is_one_number(const struct layout *l)
{
	return l->best || l->change != CHANGE_NONE;
}

// Whether the label is the other name of the x axis: threads and cpus.
static bool goes_along(const struct layout *l, const char *label)
{
	return layout_is_figure(l) && l->row_instead &&
	       (strcmp(l->row_instead, label) == 0 || strcmp(l->rows[0], label) == 0);
}

// Appends an expression for the identity of a cell (whole), or of the series that it is in.
static void append_place(
	struct text *sql, const struct layout *l, const struct layout_selection *s, bool whole)
{
	const char *labels[2 * LAYOUT_LABELS + 2];
	size_t n = 0;
	for (size_t i = 0; i < s->n_rows + s->n_columns; i++) {
		labels[n++] = i < s->n_rows ? s->rows[i] : s->columns[i - s->n_rows];
	}
	if (l->best) {
		labels[n++] = l->best;
	}
	if (l->ratio.label) {
		labels[n++] = l->ratio.label;
	}
	text_append_string(sql, "''");
	for (size_t i = 0; i < n; i++) {
		if (whole || !is_held_against(l, s, labels[i])) {
			text_append_string(sql, " || quote(");
			run_table_append_label(sql, labels[i]);
			text_append_string(sql, ")");
		}
	}
}

// The table `place` (id, series, whole, value, mixed) has the runs that are still shown, the value
// of the current label, and whether runs of the same cell have different values.
static void make_places(
	struct run_table *t, const struct layout *l, const struct layout_selection *s)
{
	_cleanup_text_ struct text sql = {0};
	text_append_string(&sql,
		"CREATE TABLE place (id INTEGER PRIMARY KEY, series TEXT, whole TEXT,"
		" value TEXT COLLATE label, mixed INTEGER); INSERT INTO place SELECT id, ");
	append_place(&sql, l, s, false);
	text_append_string(&sql, ", ");
	append_place(&sql, l, s, true);
	text_append_string(&sql, ", NULL, 0 FROM run");
	t->failed = t->failed || sql.failed;
	run_table_run(t, sql.data);
}

// Whether there is a cell (a column of `place`) whose runs differ in the label.
static bool find_mixed(struct run_table *t, const char *cell, const char *label)
{
	_cleanup_text_ struct text sql = {0}, any = {0};
	text_append_string(&sql, "UPDATE place SET mixed = 0, value = ifnull(");
	run_table_append_label(&sql, label);
	text_format(&sql,
		", ''); UPDATE place SET mixed = 1 WHERE %s IN"
		" (SELECT %s FROM place GROUP BY %s HAVING count(DISTINCT value) > 1)",
		cell, cell, cell);
	t->failed = t->failed || sql.failed;
	run_table_run(t, sql.data);
	text_append_string(&any, "SELECT EXISTS (SELECT 1 FROM place WHERE mixed)");
	return run_table_number(t, &any) != 0;
}

// The values in mixed cells: appends all to `all`, sorted, and sets `most` to the one in most
// cells, so that most cells can be compared, or of most runs.
static void list_values(struct run_table *t, struct text *all, struct text *most)
{
	_cleanup_text_ struct text sql = {0};
	int64_t most_cells = 0, most_runs = 0;
	text_append_string(&sql,
		"SELECT value, count(DISTINCT whole), count(*) FROM place GROUP BY value"
		" HAVING max(mixed) ORDER BY value");
	_cleanup_statement_ sqlite3_stmt *query = run_table_query(t, &sql);
	while (run_table_next(t, query)) {
		const char *value = (const char *)sqlite3_column_text(query, 0);
		int64_t cells = sqlite3_column_int64(query, 1);
		int64_t runs = sqlite3_column_int64(query, 2);
		const char *shown = value && *value ? value : "none";
		text_append_string(all, all->length > 0 ? ", " : "");
		text_append_printable(all, shown, strlen(shown));
		if (cells > most_cells || (cells == most_cells && runs > most_runs)) {
			most_cells = cells;
			most_runs = runs;
			text_clear(most);
			text_append_string(most, value ? value : "");
		}
	}
}

// In lines (a column of `place`) that have the value, drops the runs with other values.
static void keep_value(struct run_table *t, const char *line, const char *value)
{
	_cleanup_text_ struct text sql = {0};
	text_append_string(&sql, "DELETE FROM place WHERE value <> ");
	run_table_append_text(&sql, value);
	text_format(&sql,
		" AND %s IN (SELECT %s FROM place GROUP BY %s HAVING max(mixed) AND max(value = ",
		line, line, line);
	run_table_append_text(&sql, value);
	text_append_string(&sql, "))");
	t->failed = t->failed || sql.failed;
	run_table_run(t, sql.data);
}

static void filter_label(
	struct run_table *t, const struct layout *l, const char *label, struct layout_selection *s)
{
	const char *line = goes_along(l, label) ? "whole" : "series";
	const char *cell = is_one_number(l) ? line : "whole";
	// A mixed cell without the most frequent value needs another round.
	while (find_mixed(t, cell, label) && !t->failed) {
		_cleanup_text_ struct text all = {0}, most = {0}, shown = {0};
		list_values(t, &all, &most);
		const char *value = most.data ? most.data : "";
		text_append_printable(&shown, value, strlen(value));
		text_format(&s->notes,
			"%s (%s): showing runs with %s; --where %s=... selects others\n", label,
			all.data ? all.data : "", shown.length > 0 ? shown.data : "none", label);
		keep_value(t, line, value);
	}
}

// Notes the labels that vary along a line of a figure: whether they belong to the x axis only the
// user knows.
static void note_differences(
	struct run_table *t, const struct layout *l, const char *label, struct layout_selection *s)
{
	if (!goes_along(l, label) && find_mixed(t, "series", label)) {
		_cleanup_text_ struct text all = {0}, most = {0};
		list_values(t, &all, &most);
		text_format(&s->notes, "%s varies along a line (%s): --where %s=... selects one\n",
			label, all.data ? all.data : "", label);
	}
}

// Calls `each` for every label that the layout does not show: `configuration` first, then the other
// labels of the runs by name.
static void each_label(struct run_table *t, const struct layout *l, struct layout_selection *s,
	void (*each)(struct run_table *t, const struct layout *l, const char *label,
		struct layout_selection *s))
{
	_cleanup_text_ struct text sql = {0};
	text_append_string(&sql, "SELECT DISTINCT name FROM label WHERE given ORDER BY name");
	_cleanup_statement_ sqlite3_stmt *query = run_table_query(t, &sql);
	for (size_t i = 0; i < ARRAY_LENGTH(configuration); i++) {
		if (!is_shown(l, s, configuration[i])) {
			each(t, l, configuration[i], s);
		}
	}
	while (run_table_next(t, query)) {
		const char *name = (const char *)sqlite3_column_text(query, 0);
		if (name && !comparison_label_is_automatic(name) && !is_shown(l, s, name) &&
			!stands_in(name, configuration, ARRAY_LENGTH(configuration))) {
			each(t, l, name, s);
		}
	}
}

static void take_places(struct run_table *t, struct layout_selection *s)
{
	_cleanup_text_ struct text sql = {0};
	size_t n = 0;
	text_append_string(&sql, "SELECT id FROM place ORDER BY id");
	_cleanup_statement_ sqlite3_stmt *query = run_table_query(t, &sql);
	while (run_table_next(t, query)) {
		s->runs[n++] = s->runs[sqlite3_column_int64(query, 0)];
	}
	s->n = n;
}

// Keeps one configuration for each cell, since a mean over several is not a mean of repeats: where
// runs of a cell differ in a label that the layout does not show, those with the most frequent
// value stay, and a note says so. Cells that the layout combines (the best, a ratio) count as one
// cell. A note names labels that vary along a line of a figure. -ENOMEM.
static int layout_apply_filters(const struct layout *l, struct layout_selection *s)
{
	struct run_table t;
	if (run_table_make(s->runs, NULL, s->n, &t) < 0) {
		return -ENOMEM;
	}
	make_places(&t, l, s);
	each_label(&t, l, s, filter_label);
	if (layout_is_figure(l)) {
		each_label(&t, l, s, note_differences);
	}
	take_places(&t, s);
	int r = t.failed ? -ENOMEM : 0;
	run_table_done(&t);
	return r;
}

// Gpus --------------------------------------------------------------------------------------------
//
// A copy of a run for each of its GPUs. Digests have the mean over GPUs, so the files are opened.

enum { GPUS_MAX = 64 };

struct spread {
	double values[GPUS_MAX];
	size_t n; // 0: not known
};

static void read_gpus(const struct digest *run, enum measure_id measure, struct spread *ret)
{
	struct reader *reader = NULL;
	struct analysis a;
	ret->n = 0;
	if (!isfinite(run->measures[measure]) || reader_open(run->path, &reader, NULL) < 0) {
		return;
	}
	if (analysis_load_brief(reader, &a, NULL) == 0) {
		ret->n = measure_each_gpu(&a, measure, ret->values, GPUS_MAX);
		analysis_done(&a);
	}
	reader_free(reader);
}

static int copy_run(struct layout_gpus *gpus, const struct digest *run, enum measure_id measure,
	const struct spread *spread, size_t gpu)
{
	struct digest *copy = &gpus->copies[gpus->n];
	struct text value = {0};
	text_format(&value, "GPU %zu of %zu", gpu, spread->n);
	*copy = *run;
	copy->labels = calloc(run->n_labels + 1, sizeof(*copy->labels));
	copy->n_labels = 0;
	char *text = text_steal(&value);
	if (!copy->labels || !text) {
		free(copy->labels);
		free(text);
		return -ENOMEM;
	}
	gpus->n++;
	// First, before a label of the run with the same name.
	copy->labels[copy->n_labels++] = (struct run_label){
		.name = (char *)(uintptr_t)LAYOUT_LABEL_GPU, .value = text};
	for (size_t i = 0; i < run->n_labels; i++) {
		copy->labels[copy->n_labels++] = run->labels[i];
	}
	copy->measures[measure] = spread->values[gpu];
	return 0;
}

static int copy_runs(struct layout_gpus *gpus, enum measure_id measure, const struct digest ***runs,
	size_t *n, const struct spread *spreads)
{
	size_t room = 0, filled = 0;
	for (size_t i = 0; i < *n; i++) {
		room += spreads[i].n > 0 ? spreads[i].n : 1;
	}
	const struct digest **all = calloc(room + 1, sizeof(void *));
	gpus->copies = calloc(room + 1, sizeof(*gpus->copies));
	int r = all && gpus->copies ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < *n; i++) {
		if (spreads[i].n == 0) {
			all[filled++] = (*runs)[i];
		}
		gpus->n_runs += spreads[i].n > 0;
		for (size_t gpu = 0; r == 0 && gpu < spreads[i].n; gpu++) {
			r = copy_run(gpus, (*runs)[i], measure, &spreads[i], gpu);
			all[filled++] = r == 0 ? &gpus->copies[gpus->n - 1] : NULL;
		}
	}
	if (r < 0) {
		free(all);
		return r;
	}
	free(*runs);
	*runs = all;
	*n = filled;
	return 0;
}

// Replaces each run on several GPUs by a copy for each GPU; then the others get the label, too.
// Changes nothing if no run used several. The copies borrow the strings of the runs. -ENOMEM.
static int layout_gpus_spread(
	enum measure_id measure, const struct digest ***runs, size_t *n, struct layout_gpus *ret)
{
	*ret = (struct layout_gpus){0};
	_cleanup_free_ struct spread *spreads = calloc(*n + 1, sizeof(*spreads));
	bool several = false;
	for (size_t i = 0; spreads && i < *n; i++) {
		read_gpus((*runs)[i], measure, &spreads[i]);
		several = several || spreads[i].n > 1;
	}
	return !spreads ? -ENOMEM : several ? copy_runs(ret, measure, runs, n, spreads) : 0;
}

static void layout_gpus_done(struct layout_gpus *gpus)
{
	for (size_t i = 0; i < gpus->n; i++) {
		free(gpus->copies[i].labels[0].value);
		free(gpus->copies[i].labels);
	}
	free(gpus->copies);
	*gpus = (struct layout_gpus){0};
}

// Published ---------------------------------------------------------------------------------------
//
// Parses the tables that are part of the program.

// Terminates a field and removes its quotes. Returns the start of the next one; *ended: it was the
// last of its line.
static char *cut_field(char *at, char **field, int *ended)
{
	if (*at == '"') {
		*field = ++at;
		at += strcspn(at, "\"");
		if (*at) {
			*at++ = '\0';
		}
	} else {
		*field = at;
	}
	at += strcspn(at, ",\n");
	*ended = *at != ',';
	if (*at) {
		*at++ = '\0';
	}
	return at;
}

static int add_field(struct published *p, size_t *capacity, size_t n, char *field)
{
	void *items = p->fields;
	int r = array_reserve(&items, capacity, n + 1, sizeof(char *));
	p->fields = items;
	if (r == 0) {
		p->fields[n] = field;
	}
	return r;
}

static int cut_table(struct published *p)
{
	size_t n = 0, capacity = 0, in_line = 0, lines = 0;
	for (char *at = p->text; *at;) {
		char *field;
		int ended;
		at = cut_field(at, &field, &ended);
		int r = add_field(p, &capacity, n++, field);
		if (r < 0) {
			return r;
		}
		in_line++;
		if (ended) {
			p->n_columns = lines == 0 ? in_line : p->n_columns;
			if (in_line != p->n_columns) {
				return -EBADMSG;
			}
			lines++;
			in_line = 0;
		}
	}
	p->n_rows = lines > 0 ? lines - 1 : 0;
	return 0;
}

int published_read(const char *name, struct published *ret, struct error *e)
{
	for (size_t i = 0; i < n_published_files; i++) {
		if (strcmp(published_files[i].name, name) != 0) {
			continue;
		}
		*ret = (struct published){.text = strdup(published_files[i].text)};
		int r = ret->text ? cut_table(ret) : -ENOMEM;
		if (r < 0) {
			published_done(ret);
			return error_errno(e, -r, "cannot read the published values of %s", name);
		}
		return 0;
	}
	return error_set(e, ENOENT, "no published values of %s", name);
}

void published_done(struct published *p)
{
	free(p->fields);
	free(p->text);
	*p = (struct published){0};
}

const char *published_field(const struct published *p, size_t row, const char *column)
{
	for (size_t i = 0; i < p->n_columns; i++) {
		if (strcmp(p->fields[i], column) == 0) {
			return p->fields[(row + 1) * p->n_columns + i];
		}
	}
	return NULL;
}

double published_number(const struct published *p, size_t row, const char *column)
{
	const char *field = published_field(p, row, column);
	char *end;
	double value = field && *field ? strtod(field, &end) : NAN;
	return field && *field && *end == '\0' ? value : NAN;
}

// Pivot -------------------------------------------------------------------------------------------
//
// Makes a pivot of runs and published numbers.

#define SOURCE_HERE "here"
#define SOURCE_PUBLISHED "published"

// The column of a published table for a label.
struct published_label {
	const char *label;
	const char *column;
	const char *unit; // appended to the value
};

static const struct published_label published_labels[] = {
	{"machine", "machine", ""},
	{"framework", "framework", ""},
	{"dataset", "dataset", ""},
	{"model", "model", ""},
	{"batch_size", "batch_size", ""},
	{"workers", "workers", ""},
	{"memory", "dram_gb", "GB"},
};

// Published numbers as runs ---------------------------------------------------------------------

static bool pivot_is_shown(const struct layout *l, const struct published *table, size_t row)
{
	if (!l->published_only.label) {
		return true;
	}
	const char *field = published_field(table, row, l->published_only.label);
	return field && strcmp(field, l->published_only.value) == 0;
}

static int add_label(struct layout_pivot *p, struct run_label *label,
	const struct published_label *from, const char *field)
{
	_cleanup_text_ struct text name = {0}, value = {0};
	text_append_string(&name, from->label);
	text_format(&value, "%s%s", field, from->unit);
	label->name = p->texts[p->n_texts++] = text_steal(&name);
	label->value = p->texts[p->n_texts++] = text_steal(&value);
	return label->name && label->value ? 0 : -ENOMEM;
}

static int add_published(struct layout_pivot *p, const struct published *table, size_t row)
{
	struct digest *run = &p->published[p->n_published];
	run->labels = &p->labels[p->n_published * ARRAY_LENGTH(published_labels)];
	run->outcome = OUTCOME_SUCCESS;
	run->host = run->command = run->outcome_text = run->memory_kind = run->unit = "";
	run->verdict = run->headline = "";
	run->path = run->name = p->texts[0];
	for (size_t i = 0; i < N_MEASURES; i++) {
		run->measures[i] = NAN;
		run->reasons[i] = "not published";
	}
	for (size_t i = 0; i < ARRAY_LENGTH(published_labels); i++) {
		const struct published_label *from = &published_labels[i];
		const char *field = published_field(table, row, from->column);
		if (field && add_label(p, &run->labels[run->n_labels++], from, field) < 0) {
			return -ENOMEM;
		}
	}
	for (size_t i = 0; i < LAYOUT_VALUES && p->layout->values[i].measure; i++) {
		const struct layout_value *value = &p->layout->values[i];
		bool same = measure_by_name(value->measure) == p->values[i].measure;
		if (value->published && same) {
			double number = published_number(table, row, value->published);
			run->measures[p->values[i].measure] = number * value->published_scale;
		}
	}
	p->runs[p->n_runs] = run;
	p->sources[p->n_runs++] = SOURCE_PUBLISHED;
	p->n_published++;
	return 0;
}

static int add_published_table(struct layout_pivot *p, const struct published *table)
{
	size_t labels = table->n_rows * ARRAY_LENGTH(published_labels);
	void *runs = reallocarray(p->runs, p->n_runs + table->n_rows + 1, sizeof(void *));
	p->runs = runs ? runs : p->runs;
	void *sources = reallocarray(p->sources, p->n_runs + table->n_rows + 1, sizeof(void *));
	p->sources = sources ? sources : p->sources;
	p->published = calloc(table->n_rows + 1, sizeof(*p->published));
	p->labels = calloc(labels + 1, sizeof(*p->labels));
	p->texts = calloc(2 * labels + 1, sizeof(void *));
	if (!runs || !sources || !p->published || !p->labels || !p->texts) {
		return -ENOMEM;
	}
	p->texts[p->n_texts++] = strdup(SOURCE_PUBLISHED);
	int r = p->texts[0] ? 0 : -ENOMEM;
	for (size_t row = 0; r == 0 && row < table->n_rows; row++) {
		r = pivot_is_shown(p->layout, table, row) ? add_published(p, table, row) : 0;
	}
	return r;
}

static int read_published(struct layout_pivot *p, struct layout_selection *s, struct error *e)
{
	const struct layout *l = p->layout;
	const char *source = documents[l->document].source;
	bool numbers = false;
	for (size_t i = 0; i < LAYOUT_VALUES && l->values[i].measure; i++) {
		numbers = numbers || (l->published && l->values[i].published);
	}
	if (!numbers) {
		text_format(&s->notes, "%s, %s: the document contains no values%s%s\n", source,
			l->item, l->said ? "; its text says: " : "", l->said ? l->said : "");
		return 0;
	}
	struct published table;
	int r = published_read(l->published, &table, e);
	if (r < 0) {
		return r;
	}
	r = add_published_table(p, &table);
	published_done(&table);
	text_format(&s->notes,
		SOURCE_PUBLISHED ": %s, %s; measured by its authors on their machines\n", source,
		l->item);
	return r < 0 ? error_errno(e, -r, "cannot read the published values") : 0;
}

// Values ------------------------------------------------------------------------------------------

static bool pivot_any_has(
	const struct layout_selection *s, enum measure_id measure, const char **why)
{
	for (size_t i = 0; i < s->n; i++) {
		if (isfinite(s->runs[i]->measures[measure])) {
			return true;
		}
		*why = s->runs[i]->reasons[measure] ? s->runs[i]->reasons[measure] : *why;
	}
	return false;
}

static void note_instead(struct layout_selection *s, const struct measure *wanted,
	const struct measure *got, const char *why)
{
	_cleanup_text_ struct text reason = {0};
	const char *remedy = strstr(why, "; ");
	text_append_printable(&reason, why, remedy ? (size_t)(remedy - why) : strlen(why));
	text_format(&s->notes, "no run has the %s%s%s%s; showing the %s instead\n", wanted->title,
		reason.length > 0 ? " (" : "", reason.data ? reason.data : "",
		reason.length > 0 ? ")" : "", got->title);
}

static size_t find_values(struct layout_pivot *p, struct layout_selection *s)
{
	size_t n = 0;
	for (; n < LAYOUT_VALUES && p->layout->values[n].measure; n++) {
		const struct layout_value *value = &p->layout->values[n];
		enum measure_id measure = measure_by_name(value->measure);
		const char *why = "", *other = "";
		if (!pivot_any_has(s, measure, &why) && value->instead &&
			pivot_any_has(s, measure_by_name(value->instead), &other)) {
			enum measure_id instead = measure_by_name(value->instead);
			note_instead(s, &measures[measure], &measures[instead], why);
			measure = instead;
		}
		p->values[n] = pivot_value_for(measure, p->runs, p->n_runs);
	}
	return n;
}

// Numbers computed from several runs
// ---------------------------------------------------------------

static bool agree(
	const struct layout_pivot *p, size_t a, size_t b, const char *const *labels, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *x = pivot_label(&p->request, a, labels[i]);
		const char *y = pivot_label(&p->request, b, labels[i]);
		if ((x == NULL) != (y == NULL) || (x && strcmp(x, y) != 0)) {
			return false;
		}
	}
	return true;
}

// Whether two runs are in one cell, ignoring the first `first` rows.
static bool share_cell(const struct layout_pivot *p, size_t a, size_t b, size_t first)
{
	const struct pivot_request *q = &p->request;
	return agree(p, a, b, q->rows + first, q->n_rows - first) &&
	       agree(p, a, b, q->columns, q->n_columns);
}

static bool has_label(
	const struct layout_pivot *p, size_t run, const char *label, const char *value)
{
	const char *found = pivot_label(&p->request, run, label);
	return found && strcmp(found, value) == 0;
}

static double number_of(const struct layout_pivot *p, size_t run)
{
	const struct digest *r = p->runs[run];
	return outcome_is_success(r->outcome) ? r->measures[p->values[0].measure] : NAN;
}

struct mean {
	double sum;
	size_t n;
};

static void mean_add(struct mean *mean, double value)
{
	mean->sum += isfinite(value) ? value : 0;
	mean->n += isfinite(value);
}

static double mean_of(const struct mean *mean)
{
	return mean->n > 0 ? mean->sum / (double)mean->n : NAN;
}

// Divides by the mean of the runs of the same series at the smallest x that has a value.
static double by_first(const struct layout_pivot *p, size_t run)
{
	const char *x = p->request.rows[0], *least = NULL;
	struct mean base = {0, 0};
	for (size_t i = 0; i < p->n_runs; i++) {
		const char *at = pivot_label(&p->request, i, x);
		if (!at || !isfinite(number_of(p, i)) || !share_cell(p, run, i, 1)) {
			continue;
		}
		int order = least ? run_table_compare(at, least) : -1;
		if (order < 0) {
			least = at;
			base = (struct mean){0, 0};
		}
		if (order <= 0) {
			mean_add(&base, number_of(p, i));
		}
	}
	return number_of(p, run) / mean_of(&base);
}

static double ratio(const struct layout_pivot *p, size_t run)
{
	const struct layout *l = p->layout;
	struct mean base = {0, 0};
	if (!has_label(p, run, l->ratio.label, l->ratio.to)) {
		return NAN;
	}
	for (size_t i = 0; i < p->n_runs; i++) {
		if (has_label(p, i, l->ratio.label, l->ratio.from) && share_cell(p, run, i, 0)) {
			mean_add(&base, number_of(p, i));
		}
	}
	return number_of(p, run) / mean_of(&base);
}

// The mean over the runs of the cell that have the same value of the label `best`.
static double mean_of_kind(const struct layout_pivot *p, size_t run)
{
	struct mean mean = {0, 0};
	for (size_t i = 0; i < p->n_runs; i++) {
		if (share_cell(p, run, i, 0) && agree(p, run, i, &p->layout->best, 1)) {
			mean_add(&mean, number_of(p, i));
		}
	}
	return mean_of(&mean);
}

// The label's value if no other value in the cell has a smaller mean; only for the first run, since
// it is one number without repeats.
static double best(const struct layout_pivot *p, size_t run, const double *means)
{
	const char *value = pivot_label(&p->request, run, p->layout->best);
	for (size_t i = 0; i < p->n_runs; i++) {
		bool better = means[i] < means[run] || (i < run && means[i] == means[run]);
		if (better && share_cell(p, run, i, 0)) {
			return NAN;
		}
	}
	return value && isfinite(means[run]) ? strtod(value, NULL) : NAN;
}

static int find_best(struct layout_pivot *p)
{
	_cleanup_free_ double *means = calloc(p->n_runs + 1, sizeof(*means));
	if (!means) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->n_runs; i++) {
		means[i] = mean_of_kind(p, i);
	}
	for (size_t i = 0; i < p->n_runs; i++) {
		// Published numbers are the answer already.
		bool published = strcmp(p->sources[i], SOURCE_PUBLISHED) == 0;
		p->numbers[i] = published ? p->runs[i]->measures[p->values[0].measure]
		                          : best(p, i, means);
	}
	return 0;
}

static int change_numbers(struct layout_pivot *p)
{
	const struct layout *l = p->layout;
	if (l->kind != LAYOUT_BEST && l->change == CHANGE_NONE) {
		return 0;
	}
	p->numbers = calloc(p->n_runs + 1, sizeof(*p->numbers));
	p->reasons = calloc(p->n_runs + 1, sizeof(void *));
	int r = p->numbers && p->reasons ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < p->n_runs; i++) {
		p->reasons[i] = "no run to compare it with";
	}
	if (r == 0 && l->kind == LAYOUT_BEST) {
		r = find_best(p);
	}
	for (size_t i = 0; r == 0 && l->kind != LAYOUT_BEST && i < p->n_runs; i++) {
		p->numbers[i] = l->change == CHANGE_RATIO ? ratio(p, i) : by_first(p, i);
	}
	p->values[0] = (struct pivot_value){
		.name = l->kind == LAYOUT_BEST      ? l->best
	                : l->change == CHANGE_RATIO ? "gain"
	                                            : "relative",
		.title = l->kind == LAYOUT_BEST ? l->title : "relative throughput",
		.unit = "",
		.kind = l->kind == LAYOUT_BEST ? MEASURE_KIND_COUNT : MEASURE_KIND_NUMBER,
		.better = l->kind == LAYOUT_BEST ? BETTER_NEITHER : BETTER_MORE,
		.measure = N_MEASURES,
		.numbers = p->numbers,
		.reasons = p->reasons,
	};
	return r;
}

// The whole ------------------------------------------------------------------------------------

static int pivot_copy_runs(struct layout_pivot *p, const struct layout_selection *s)
{
	p->runs = calloc(s->n + 1, sizeof(void *));
	p->sources = calloc(s->n + 1, sizeof(void *));
	if (!p->runs || !p->sources) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->n; i++) {
		p->runs[i] = s->runs[i];
		p->sources[i] = SOURCE_HERE;
	}
	p->n_runs = s->n;
	return 0;
}

static int spread_gpus(struct layout_pivot *p, struct layout_selection *s)
{
	if (!p->layout->each_gpu) {
		return 0;
	}
	int r = layout_gpus_spread(p->values[0].measure, &p->runs, &p->n_runs, &p->gpus);
	void *sources = reallocarray(p->sources, p->n_runs + 1, sizeof(void *));
	p->sources = sources ? sources : p->sources;
	if (r < 0 || !sources) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->n_runs; i++) {
		p->sources[i] = SOURCE_HERE;
	}
	if (p->gpus.n > 0) {
		s->columns[0] = LAYOUT_LABEL_GPU;
	}
	return 0;
}

static void make_request(struct layout_pivot *p, const struct layout_selection *s, size_t n_values)
{
	size_t n_rows = 0;
	if (p->n_published > 0) {
		p->rows[n_rows++] = RUN_TABLE_SOURCE;
	}
	for (size_t i = 0; i < s->n_rows; i++) {
		p->rows[n_rows++] = s->rows[i];
	}
	memcpy(p->columns, s->columns, sizeof(p->columns));
	p->request = (struct pivot_request){.runs = p->runs,
		.n_runs = p->n_runs,
		.sources = p->n_published > 0 ? p->sources : NULL,
		.rows = p->rows,
		.n_rows = n_rows,
		.columns = p->columns,
		.n_columns = s->n_columns,
		.values = p->values,
		.n_values = n_values};
}

int layout_pivot(const struct layout *l, struct layout_selection *s, bool beside,
	struct layout_pivot *ret, struct error *e)
{
	*ret = (struct layout_pivot){.layout = l};
	int r = pivot_copy_runs(ret, s) < 0 ? error_errno(e, ENOMEM, "cannot lay out %s", l->name)
	                                    : 0;
	size_t n_values = r == 0 ? find_values(ret, s) : 0;
	if (r == 0 && spread_gpus(ret, s) < 0) {
		r = error_errno(e, ENOMEM, "cannot lay out %s", l->name);
	}
	r = r == 0 && beside ? read_published(ret, s, e) : r;
	if (r == 0) {
		make_request(ret, s, n_values);
		r = change_numbers(ret) < 0 ? error_errno(e, ENOMEM, "cannot lay out %s", l->name)
		                            : 0;
	}
	r = r < 0 ? r : pivot_build(&ret->request, &ret->pivot, e);
	if (r < 0) {
		layout_pivot_done(ret);
	}
	return r;
}

void layout_pivot_done(struct layout_pivot *p)
{
	pivot_done(&p->pivot);
	layout_gpus_done(&p->gpus);
	for (size_t i = 0; i < p->n_texts; i++) {
		free(p->texts[i]);
	}
	free(p->texts);
	free(p->labels);
	free(p->published);
	free(p->numbers);
	free(p->reasons);
	free(p->runs);
	free(p->sources);
	*p = (struct layout_pivot){0};
}

const struct layout *layout_by_name(const char *name)
{
	for (size_t i = 0; i < n_layouts; i++) {
		if (strcmp(layouts[i].name, name) == 0) {
			return &layouts[i];
		}
	}
	return NULL;
}

bool layout_is_of_advice(const struct layout *l)
{
	const char *measure = l->values[0].measure;
	return measure && measure_is_of_advice(measure_by_name(measure));
}
