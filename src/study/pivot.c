// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Pivots: a query for each axis finds its keys, and the key of each run.

#include "study/pivot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "runfile/database.h"
#include "study/run_table.h"

static int pivot_ranking_build(struct pivot *p);
static void pivot_ranking_done(struct pivot_ranking *ranking);

// Pivot -------------------------------------------------------------------------------------------

struct pivot_value pivot_value_of(enum measure_id measure)
{
	const struct measure *m = &measures[measure];
	return (struct pivot_value){.name = m->name,
		.title = m->title,
		.unit = m->unit,
		.kind = m->kind,
		.better = m->better,
		.measure = measure};
}

struct pivot_value pivot_value_for(
	enum measure_id measure, const struct digest *const *runs, size_t n)
{
	struct pivot_value value = pivot_value_of(measure);
	for (size_t i = 0; value.kind == MEASURE_KIND_MONEY && i < n; i++) {
		value.unit = runs[i]->currency ? runs[i]->currency : value.unit;
	}
	return value;
}

const char *pivot_label(const struct pivot_request *request, size_t index, const char *label)
{
	const char *value = digest_label(request->runs[index], label);
	if (value) {
		return value;
	}
	if (strcmp(label, RUN_TABLE_PATH) == 0) {
		return request->runs[index]->path;
	}
	if (strcmp(label, RUN_TABLE_RUN) == 0) {
		return request->runs[index]->name;
	}
	return request->sources && strcmp(label, RUN_TABLE_SOURCE) == 0 ? request->sources[index]
	                                                                : NULL;
}

// --- order

bool pivot_is_binary_size(const char *value)
{
	double bytes;
	size_t length = value ? strcspn(value, "/") : 0;
	return length > 2 && strncmp(value + length - 2, "iB", 2) == 0 &&
	       run_table_size(value, &bytes);
}

static bool has_binary_sizes(const struct pivot_request *request)
{
	for (size_t i = 0; i < request->n_runs; i++) {
		for (size_t k = 0; k < request->runs[i]->n_labels; k++) {
			if (pivot_is_binary_size(request->runs[i]->labels[k].value)) {
				return true;
			}
		}
	}
	return false;
}

struct axis_request {
	const char *const *labels;
	size_t n_labels;
	bool apart; // every run has a key of its own
	bool keep_order; // keys as their runs come, not by size
};

// A row for each run: its id and the number of its key, from 1, both in the order of the keys.
static void append_axis_query(struct text *sql, const struct axis_request *axis)
{
	_cleanup_text_ struct text order = {0};
	for (size_t i = 0; i < axis->n_labels; i++) {
		text_append_string(&order, i ? ", " : " ORDER BY ");
		run_table_append_label(&order, axis->labels[i]);
		text_append_string(&order, " NULLS LAST");
	}
	sql->failed = sql->failed || order.failed;
	const char *by = order.data ? order.data : "";
	if (axis->apart && axis->keep_order) {
		text_append_string(sql, "SELECT id, id + 1 FROM run ORDER BY id");
	} else if (axis->apart) {
		text_format(sql,
			"SELECT id, row_number() OVER (%s%s id) AS key FROM run ORDER BY key", by,
			axis->n_labels ? "," : " ORDER BY");
	} else if (!axis->n_labels) {
		text_append_string(sql, "SELECT id, 1 FROM run ORDER BY id");
	} else if (axis->keep_order) {
		text_format(sql,
			"WITH keys AS (SELECT id, dense_rank() OVER (%s) AS size FROM run),"
			" firsts AS (SELECT id, min(id) OVER (PARTITION BY size) AS first FROM "
			"keys)"
			" SELECT id, dense_rank() OVER (ORDER BY first) AS key FROM firsts"
			" ORDER BY key, id",
			by);
	} else {
		text_format(sql,
			"SELECT id, dense_rank() OVER (%s) AS key FROM run ORDER BY key, id", by);
	}
}

// Fills the axis, and the key of each run.
static int axis_build(const struct pivot_request *request, struct run_table *table,
	const struct axis_request *axis, struct pivot_axis *ret, size_t *keys_of)
{
	_cleanup_text_ struct text sql = {0};
	append_axis_query(&sql, axis);
	*ret = (struct pivot_axis){.labels = axis->labels,
		.n_labels = axis->n_labels,
		.keys = calloc((request->n_runs + 1) * (axis->n_labels + 1), sizeof(*ret->keys)),
		.sorted = !axis->keep_order};
	_cleanup_statement_ sqlite3_stmt *query = run_table_query(table, &sql);
	while (ret->keys && run_table_next(table, query)) {
		size_t run = (size_t)sqlite3_column_int64(query, 0);
		size_t key = (size_t)sqlite3_column_int64(query, 1);
		for (size_t k = 0; key > ret->n && k < axis->n_labels; k++) {
			ret->keys[ret->n * axis->n_labels + k] = pivot_label(
				request, run, axis->labels[k]);
		}
		ret->n = key;
		keys_of[run] = key - 1;
	}
	ret->n = ret->n ? ret->n : 1;
	return ret->keys && !table->failed ? 0 : -ENOMEM;
}

const char *pivot_key(const struct pivot_axis *axis, size_t key, size_t label)
{
	return axis->keys[key * axis->n_labels + label];
}

static struct pivot_cell *cell_at(const struct pivot *p, size_t row, size_t column, size_t value)
{
	return &p->cells[(row * p->columns.n + column) * p->n_values + value];
}

const struct pivot_cell *pivot_at(const struct pivot *p, size_t row, size_t column, size_t value)
{
	return cell_at(p, row, column, value);
}

// --- cells

// Of a run, as far as it concerns the value: probes of `strain advise` are interrupted when they
// have told enough.
static enum outcome outcome_for(const struct digest *run, const struct pivot_value *value)
{
	return measure_is_of_advice(value->measure) ? OUTCOME_SUCCESS : run->outcome;
}

static bool counts(const struct pivot_request *request, const struct digest *run,
	const struct pivot_value *value)
{
	return request->count_failed || outcome_is_success(outcome_for(run, value));
}

static const char *words_of(
	const struct pivot_request *request, size_t index, const struct pivot_value *value)
{
	const struct digest *run = request->runs[index];
	return value->measure == MEASURE_OUTCOME   ? outcome_word(run->outcome)
	       : value->measure == MEASURE_VERDICT ? run->verdict
	       : value->words                      ? value->words[index]
	                                           : NULL;
}

static double number_of(
	const struct pivot_request *request, size_t index, const struct pivot_value *value)
{
	return value->measure < N_MEASURES ? request->runs[index]->measures[value->measure]
	       : value->numbers            ? value->numbers[index]
	                                   : NAN;
}

static const char *reason_of(
	const struct pivot_request *request, size_t index, const struct pivot_value *value)
{
	return value->measure < N_MEASURES ? request->runs[index]->reasons[value->measure]
	                                   : value->reasons[index];
}

// The number of a note, from 1; equal notes share one. 0: out of memory, and the note is lost.
static size_t note_of(struct pivot *p, const char *words)
{
	for (size_t i = 0; i < p->n_notes; i++) {
		if (strcmp(p->notes[i], words) == 0) {
			return i + 1;
		}
	}
	char **grown = realloc(p->notes, (p->n_notes + 1) * sizeof(*grown));
	if (!grown) {
		return 0;
	}
	p->notes = grown;
	grown[p->n_notes] = strdup(words);
	return grown[p->n_notes] ? ++p->n_notes : 0;
}

// The runs of a cell, in the order of the request.
struct group {
	const struct pivot_request *request;
	const size_t *runs;
	size_t n;
	double *numbers; // [n] scratch space
};

static void take_words(
	const struct group *g, const struct pivot_value *value, struct pivot_cell *cell)
{
	size_t most = 0;
	for (size_t i = 0; i < g->n; i++) {
		const struct digest *run = g->request->runs[g->runs[i]];
		const char *words = words_of(g->request, g->runs[i], value);
		size_t same = 0;
		if (!words || !*words ||
			(value->measure != MEASURE_OUTCOME && !value->words &&
				!counts(g->request, run, value))) {
			continue;
		}
		for (size_t k = 0; k < g->n; k++) {
			const char *other = words_of(g->request, g->runs[k], value);
			same += other && strcmp(other, words) == 0;
		}
		cell->words_differ = cell->words_differ ||
		                     (cell->words && strcmp(cell->words, words) != 0);
		cell->words = same > most ? words : cell->words;
		most = same > most ? same : most;
	}
}

// The first reason of: why a run failed, why a value is missing, that only a part was recorded.
static size_t take_note(struct pivot *p, const struct group *g, const struct pivot_value *value,
	const struct pivot_cell *cell)
{
	for (size_t i = 0; i < g->n && cell->repeats.n < g->n; i++) {
		const struct digest *run = g->request->runs[g->runs[i]];
		const char *reason = reason_of(g->request, g->runs[i], value);
		bool failed = !outcome_is_success(outcome_for(run, value));
		if (failed && *run->outcome_text) {
			return note_of(p, run->outcome_text);
		}
		if (!failed && cell->repeats.n == 0 && reason) {
			return note_of(p, reason);
		}
	}
	for (size_t i = 0; i < g->n; i++) {
		const struct digest *run = g->request->runs[g->runs[i]];
		if (counts(g->request, run, value) && run->partial && *run->partial) {
			return note_of(p, run->partial);
		}
	}
	return 0;
}

static void fill_cell(struct pivot *p, const struct group *g, const struct pivot_value *value,
	struct pivot_cell *cell)
{
	cell->n_runs = g->n;
	for (size_t i = 0; i < g->n; i++) {
		const struct digest *run = g->request->runs[g->runs[i]];
		cell->outcomes[outcome_for(run, value)]++;
		g->numbers[i] = counts(g->request, run, value)
		                        ? number_of(g->request, g->runs[i], value)
		                        : NAN;
	}
	cell->repeats = statistics_of(g->numbers, g->n);
	if (value->kind == MEASURE_KIND_WORDS) {
		take_words(g, value, cell);
		cell->words_are_foreign = value->words != NULL;
	} else {
		cell->note = take_note(p, g, value, cell);
	}
	if (cell->repeats.n > 0) {
		p->fewest = p->fewest && p->fewest < cell->repeats.n ? p->fewest : cell->repeats.n;
		p->most = p->most > cell->repeats.n ? p->most : cell->repeats.n;
	}
}

struct placing {
	const size_t *row_of;
	const size_t *column_of;
};

static int compare_places(const void *left, const void *right, void *context)
{
	const struct placing *place = context;
	size_t a = *(const size_t *)left, b = *(const size_t *)right;
	if (place->row_of[a] != place->row_of[b]) {
		return place->row_of[a] < place->row_of[b] ? -1 : 1;
	}
	if (place->column_of[a] != place->column_of[b]) {
		return place->column_of[a] < place->column_of[b] ? -1 : 1;
	}
	return (a > b) - (a < b);
}

static int fill_cells(
	struct pivot *p, const struct pivot_request *request, const struct placing *place)
{
	size_t n = request->n_runs;
	_cleanup_free_ size_t *order = calloc(n + 1, sizeof(*order));
	_cleanup_free_ double *numbers = calloc(n + 1, sizeof(*numbers));
	if (!order || !numbers) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		order[i] = i;
	}
	qsort_r(order, n, sizeof(*order), compare_places,
		&(struct placing){place->row_of, place->column_of});
	for (size_t from = 0, to; from < n; from = to) {
		size_t row = place->row_of[order[from]], column = place->column_of[order[from]];
		for (to = from; to < n && place->row_of[order[to]] == row &&
				place->column_of[order[to]] == column;
			to++) {
		}
		struct group group = {request, &order[from], to - from, numbers};
		for (size_t v = 0; v < request->n_values; v++) {
			fill_cell(p, &group, &request->values[v], cell_at(p, row, column, v));
		}
	}
	return 0;
}

// --- baseline

static const char *baseline_of(const struct pivot_request *request, const char *label)
{
	for (size_t i = 0; i < request->n_baseline; i++) {
		if (strcmp(request->baseline[i].label, label) == 0) {
			return request->baseline[i].value;
		}
	}
	return NULL;
}

// Compares a key with another key in which the baseline's labels replace its own.
static int compare_with_baseline(const struct pivot_request *request, const struct pivot_axis *axis,
	size_t key, size_t other)
{
	int order = 0;
	for (size_t i = 0; i < axis->n_labels && order == 0; i++) {
		const char *instead = baseline_of(request, axis->labels[i]);
		order = run_table_compare(
			pivot_key(axis, key, i), instead ? instead : pivot_key(axis, other, i));
	}
	return order;
}

// The key that is equal to this one with the baseline's labels; axis->n: there is none.
static size_t baseline_key(
	const struct pivot_request *request, const struct pivot_axis *axis, size_t key)
{
	size_t low = 0, high = axis->n;
	if (!axis->sorted) {
		while (low < high && compare_with_baseline(request, axis, low, key) != 0) {
			low++;
		}
		return low;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_with_baseline(request, axis, middle, key);
		if (order == 0) {
			return middle;
		}
		low = order < 0 ? middle + 1 : low;
		high = order < 0 ? high : middle;
	}
	return axis->n;
}

// Replaces the value of the match by the equal one that runs have: "32" for "32.0".
static bool axis_has(const struct pivot_axis *axis, struct pivot_match *match, bool *ret_label)
{
	for (size_t i = 0; i < axis->n_labels; i++) {
		if (strcmp(axis->labels[i], match->label) != 0) {
			continue;
		}
		*ret_label = true;
		for (size_t k = 0; k < axis->n; k++) {
			const char *key = pivot_key(axis, k, i);
			double a, b;
			if (key && (strcmp(key, match->value) == 0 ||
					   (run_table_size(key, &a) &&
						   run_table_size(match->value, &b) && a == b))) {
				match->value = key;
				return true;
			}
		}
	}
	return false;
}

static int check_baseline(const struct pivot *p, struct pivot_match *match, struct error *e)
{
	bool label = false;
	if (axis_has(&p->rows, match, &label) || axis_has(&p->columns, match, &label)) {
		return 0;
	}
	return label ? error_set(
			       e, EINVAL, "baseline: no run has %s=%s", match->label, match->value)
	             : error_set(e, EINVAL, "baseline: '%s' is not a label of rows or columns",
			       match->label);
}

static void compare_cell(
	enum measure_id measure, struct pivot_cell *cell, const struct pivot_cell *base)
{
	cell->is_baseline = cell == base;
	if (cell == base || cell->repeats.n == 0 || base->repeats.n == 0) {
		return;
	}
	cell->against = measure_against(measure, cell->repeats.mean, base->repeats.mean);
	if (isfinite(cell->against)) {
		cell->probability = statistics_welch(&cell->repeats, &base->repeats);
	}
}

static int correct(struct pivot *p)
{
	size_t n = p->rows.n * p->columns.n * p->n_values;
	_cleanup_free_ double *probabilities = calloc(n + 1, sizeof(*probabilities));
	if (!probabilities) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		probabilities[i] = p->cells[i].probability;
		p->n_tests += !isnan(probabilities[i]);
	}
	if (statistics_holm(probabilities, n) < 0) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		p->cells[i].probability = probabilities[i];
		p->cells[i].beyond_noise = probabilities[i] < STATISTICS_LEVEL;
	}
	return 0;
}

static int say_baseline(struct pivot *p, const struct pivot_request *request)
{
	struct text said = {0};
	for (size_t i = 0; i < request->n_baseline; i++) {
		text_format(&said, "%s%s=%s", i ? ", " : "", request->baseline[i].label,
			request->baseline[i].value);
	}
	for (size_t i = 0; request->n_baseline == 0 && i < p->columns.n_labels; i++) {
		const char *key = pivot_key(&p->columns, 0, i);
		text_format(&said, "%s%s", i ? ", " : "", key ? key : "-");
	}
	p->baseline = text_steal(&said);
	p->baseline_from = request->baseline_from;
	return p->baseline ? 0 : -ENOMEM;
}

static int compare_all(struct pivot *p, const struct pivot_request *request)
{
	for (size_t row = 0; row < p->rows.n; row++) {
		size_t base_row = baseline_key(request, &p->rows, row);
		for (size_t column = 0; column < p->columns.n; column++) {
			size_t base = request->n_baseline
			                      ? baseline_key(request, &p->columns, column)
			                      : 0;
			if (base_row == p->rows.n || base == p->columns.n) {
				continue;
			}
			for (size_t v = 0; v < p->n_values; v++) {
				compare_cell(p->values[v].measure, cell_at(p, row, column, v),
					cell_at(p, base_row, base, v));
			}
		}
	}
	int r = correct(p);
	return r < 0 ? r : say_baseline(p, request);
}

static int apply_baseline(struct pivot *p, const struct pivot_request *request, struct error *e)
{
	if (request->n_baseline == 0) {
		return request->first_is_baseline ? compare_all(p, request) : 0;
	}
	_cleanup_free_ struct pivot_match *matches = calloc(request->n_baseline, sizeof(*matches));
	if (!matches) {
		return -ENOMEM;
	}
	memcpy(matches, request->baseline, request->n_baseline * sizeof(*matches));
	for (size_t i = 0; i < request->n_baseline; i++) {
		int r = check_baseline(p, &matches[i], e);
		if (r < 0) {
			return r;
		}
	}
	struct pivot_request as_runs_say = *request;
	as_runs_say.baseline = matches;
	return compare_all(p, &as_runs_say);
}

// --- all of it

static int build(struct pivot *p, const struct pivot_request *request, struct error *e)
{
	_cleanup_free_ size_t *rows = calloc(request->n_runs + 1, sizeof(*rows));
	_cleanup_free_ size_t *columns = calloc(request->n_runs + 1, sizeof(*columns));
	const struct axis_request by_row = {request->rows, request->n_rows, false, false};
	const struct axis_request by_column = {
		request->columns, request->n_columns, request->apart, request->keep_order};
	struct run_table table = {0};
	int r = rows && columns
	                ? run_table_make(request->runs, request->sources, request->n_runs, &table)
	                : -ENOMEM;
	r = r < 0 ? r : axis_build(request, &table, &by_row, &p->rows, rows);
	r = r < 0 ? r : axis_build(request, &table, &by_column, &p->columns, columns);
	run_table_done(&table);
	if (r < 0) {
		return r;
	}
	size_t n = p->rows.n * p->columns.n * request->n_values;
	p->cells = calloc(n + 1, sizeof(*p->cells));
	if (!p->cells) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		p->cells[i].against = p->cells[i].probability = NAN;
		p->cells[i].repeats = statistics_of(NULL, 0);
	}
	r = fill_cells(p, request, &(struct placing){rows, columns});
	r = r < 0 ? r : apply_baseline(p, request, e);
	return r < 0 ? r : pivot_ranking_build(p);
}

int pivot_build(const struct pivot_request *request, struct pivot *ret, struct error *e)
{
	struct pivot p = {.values = request->values,
		.n_values = request->n_values,
		.binary_sizes = has_binary_sizes(request),
		.unranked = request->unranked,
		.warnings = request->warnings,
		.n_warnings = request->n_warnings};
	int r = build(&p, request, e);
	if (r < 0) {
		pivot_done(&p);
		return r == -ENOMEM ? error_errno(e, ENOMEM, "cannot compare") : r;
	}
	*ret = p;
	return 0;
}

void pivot_done(struct pivot *p)
{
	for (size_t i = 0; i < p->n_notes; i++) {
		free(p->notes[i]);
	}
	free(p->notes);
	free(p->rows.keys);
	free(p->columns.keys);
	free(p->cells);
	free(p->baseline);
	pivot_ranking_done(&p->ranking);
	*p = (struct pivot){0};
}

// --- what failed

size_t pivot_failed(const struct pivot_cell *cell)
{
	size_t n = 0;
	for (size_t i = 0; i < N_OUTCOMES; i++) {
		n += !outcome_is_success((enum outcome)i) ? cell->outcomes[i] : 0;
	}
	return n;
}

static void append_words(struct text *t, const char *word)
{
	for (const char *c = word; *c; c++) {
		text_append(t, *c == '_' ? " " : c, 1);
	}
}

void pivot_append_failures(struct text *t, const struct pivot_cell *cell)
{
	size_t failed = pivot_failed(cell), kinds = 0;
	for (size_t i = 0; i < N_OUTCOMES; i++) {
		kinds += !outcome_is_success((enum outcome)i) && cell->outcomes[i] > 0;
	}
	bool all_alike = kinds == 1 && failed == cell->n_runs;
	bool first = true;
	for (size_t i = 0; i < N_OUTCOMES; i++) {
		if (outcome_is_success((enum outcome)i) || cell->outcomes[i] == 0) {
			continue;
		}
		text_append_string(t, first ? "" : ", ");
		if (!all_alike) {
			text_format(t, "%zu ", cell->outcomes[i]);
		}
		append_words(t, outcome_word((enum outcome)i));
		first = false;
	}
}

// Ranking -----------------------------------------------------------------------------------------
//
// Columns by speed.

static const struct repeats *repeats_of(const struct pivot *p, size_t column, size_t value)
{
	return &pivot_at(p, 0, column, value)->repeats;
}

static bool is_known(const struct pivot *p, size_t column, size_t value)
{
	return repeats_of(p, column, value)->mean > 0;
}

static size_t columns_with(const struct pivot *p, size_t value)
{
	size_t n = 0;
	for (size_t c = 0; c < p->columns.n; c++) {
		n += is_known(p, c, value);
	}
	return n;
}

// p->n_values: no value has this measure in two columns.
static size_t value_of(const struct pivot *p, enum measure_id measure)
{
	size_t v = 0;
	while (v < p->n_values && !(p->values[v].measure == measure && columns_with(p, v) > 1)) {
		v++;
	}
	return v;
}

static size_t value_that_ranks(const struct pivot *p)
{
	static const enum measure_id first[] = {
		MEASURE_EPOCH, MEASURE_TRAINING, MEASURE_STEP, MEASURE_DURATION};
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		size_t v = value_of(p, first[i]);
		if (v < p->n_values) {
			return v;
		}
	}
	for (size_t v = 0; v < p->n_values; v++) {
		enum measure_id measure = p->values[v].measure;
		if (measure < N_MEASURES && measure_is_speed(measure) && columns_with(p, v) > 1) {
			return v;
		}
	}
	return p->n_values;
}

// The speed-up of one column over another.
static double times_as_fast(const struct pivot *p, size_t value, size_t one, size_t other)
{
	return measure_against(p->values[value].measure, repeats_of(p, one, value)->mean,
		repeats_of(p, other, value)->mean);
}

static size_t fastest_of(const struct pivot *p, size_t value)
{
	size_t fastest = p->columns.n;
	for (size_t c = 0; c < p->columns.n; c++) {
		if (is_known(p, c, value) &&
			(fastest == p->columns.n || times_as_fast(p, value, c, fastest) > 1)) {
			fastest = c;
		}
	}
	return fastest;
}

// Fills p->ranking for a pivot without rows: by the first value that measures speed (the time of an
// epoch before others), over the columns that have it. No ranking of fewer than two. -ENOMEM.
static int pivot_ranking_build(struct pivot *p)
{
	struct pivot_ranking *ranking = &p->ranking;
	if (p->rows.n_labels > 0 || p->columns.n < 2 || !p->baseline) {
		return 0;
	}
	ranking->value = value_that_ranks(p);
	if (ranking->value == p->n_values) {
		return 0;
	}
	ranking->others = calloc(p->columns.n, sizeof(*ranking->others));
	if (!ranking->others) {
		return -ENOMEM;
	}
	ranking->fastest = fastest_of(p, ranking->value);
	for (size_t c = 0; c < p->columns.n; c++) {
		if (c != ranking->fastest && is_known(p, c, ranking->value)) {
			ranking->others[ranking->n++] = (struct pivot_ratio){.column = c,
				.times = times_as_fast(p, ranking->value, ranking->fastest, c),
				.half = statistics_ratio(
					repeats_of(p, ranking->fastest, ranking->value),
					repeats_of(p, c, ranking->value))};
		}
	}
	return 0;
}

static void pivot_ranking_done(struct pivot_ranking *ranking)
{
	free(ranking->others);
	*ranking = (struct pivot_ranking){0};
}
