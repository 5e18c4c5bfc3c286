// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Iterations and phases as `strain show` tells of them.

#include "cmd/show_phases.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/words.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/show_ranks.h"
#include "cmd/show_spans.h"
#include "render/json.h"

static double known(int64_t value)
{
	return value >= 0 ? (double)value : NAN;
}

// A number that the job gave can be any; what is below 0 is not known.
static void number_cell(struct table *t, size_t column, int64_t value)
{
	if (value >= 0) {
		table_integer(t, column, value);
	}
}

static json_t *number_json(int64_t value)
{
	return value >= 0 ? json_integer((json_int_t)value) : json_null();
}

// --- iterations

static const struct column iteration_columns[] = {
	{"steady", "ITERATIONS", COLUMN_WHOLE, 0},
	{"mean_s", "MEAN", COLUMN_SECONDS, 3},
	{"p50_s", "MEDIAN", COLUMN_SECONDS, 0},
	{"p95_s", "95 %", COLUMN_SECONDS, 2},
	{"p99_s", "99 %", COLUMN_SECONDS, 1},
	{"max_s", "SLOWEST", COLUMN_SECONDS, 0},
	{"samples_per_second", "SAMPLES/S", COLUMN_NUMBER, 0},
};

int iteration_table_build(const struct analysis *a, struct table **ret)
{
	const struct phases *p = &a->phases;
	int r = table_new(iteration_columns, ARRAY_LENGTH(iteration_columns), ret);
	if (r < 0 || p->steady == 0) {
		return r;
	}
	const double figures[] = {(double)p->steady, p->length_s.value, p->p50_s, p->p95_s,
		p->p99_s, p->max_s, p->samples_per_s.value};
	r = table_row(*ret);
	for (size_t i = 0; i < ARRAY_LENGTH(figures) && r == 0; i++) {
		table_number(*ret, i, figures[i]);
	}
	return r;
}

// --- phases

enum {
	PHASE_NAME,
	PHASE_SHARE,
	PHASE_BETWEEN,
	PHASE_LOW,
	PHASE_HIGH,
	PHASE_MEAN,
	PHASE_P50,
	PHASE_P95,
	PHASE_MAX,
	PHASE_TOTAL,
	PHASE_SPANS,
	PHASE_APART,
	N_PHASE_COLUMNS,
};

static const struct column phase_columns[N_PHASE_COLUMNS] = {
	[PHASE_NAME] = {"phase", "PHASE", COLUMN_TEXT, 0},
	[PHASE_SHARE] = {"share_ratio", "SHARE", COLUMN_RATIO, 0},
	[PHASE_BETWEEN] = {NULL, "95 % SURE", COLUMN_LABEL, 3},
	[PHASE_LOW] = {"share_low_ratio", NULL, COLUMN_RATIO, 0},
	[PHASE_HIGH] = {"share_high_ratio", NULL, COLUMN_RATIO, 0},
	[PHASE_MEAN] = {"mean_s", "MEAN", COLUMN_SECONDS, 0},
	[PHASE_P50] = {"p50_s", "MEDIAN", COLUMN_SECONDS, 4},
	[PHASE_P95] = {"p95_s", "95 %", COLUMN_SECONDS, 1},
	[PHASE_MAX] = {"max_s", "LONGEST", COLUMN_SECONDS, 5},
	[PHASE_TOTAL] = {"total_s", "WHOLE RUN", COLUMN_SECONDS, 2},
	[PHASE_SPANS] = {"spans", NULL, COLUMN_WHOLE, 0},
	[PHASE_APART] = {"apart", NULL, COLUMN_WHOLE, 0},
};

// "60 to 62 %", with as many digits as tell the two apart.
static void between_cell(struct table *t, const struct estimate *share)
{
	_cleanup_text_ struct text between = {0};
	if (!isfinite(share->low) || !isfinite(share->high)) {
		return;
	}
	int digits = 100 * (share->high - share->low) < 1.5 ? 1 : 0;
	text_format(
		&between, "%.*f to %.*f %%", digits, 100 * share->low, digits, 100 * share->high);
	table_text(t, PHASE_BETWEEN, between.data);
}

static void phase_cells(struct table *t, const struct phase *phase)
{
	table_text(t, PHASE_NAME, phase->name);
	table_number(t, PHASE_SHARE, phase->share.value);
	between_cell(t, &phase->share);
	table_number(t, PHASE_LOW, phase->share.low);
	table_number(t, PHASE_HIGH, phase->share.high);
	table_number(t, PHASE_MEAN, phase->mean_s);
	table_number(t, PHASE_P50, phase->p50_s);
	table_number(t, PHASE_P95, phase->p95_s);
	table_number(t, PHASE_MAX, phase->max_s);
	table_number(t, PHASE_TOTAL, phase->total_s);
	table_number(t, PHASE_SPANS, (double)phase->spans);
	table_number(t, PHASE_APART, phase->apart);
}

// In the order in which an iteration goes through them; what is in none of them last, and after
// that what stands apart.
static size_t phases_in_order(const struct phases *p, size_t order[static PHASES_MAX])
{
	size_t n = 0;
	for (size_t i = 1; i < p->n; i++) {
		if (p->items[i].spans > 0 && !p->items[i].apart) {
			order[n++] = i;
		}
	}
	if (n > 0 && p->items[PHASE_OTHER].total_s > 0) {
		order[n++] = PHASE_OTHER;
	}
	for (size_t i = 1; i < p->n; i++) {
		if (p->items[i].spans > 0 && p->items[i].apart) {
			order[n++] = i;
		}
	}
	return n;
}

int phase_table_build(const struct analysis *a, struct table **ret)
{
	size_t order[PHASES_MAX], n = phases_in_order(&a->phases, order);
	int r = table_new(phase_columns, N_PHASE_COLUMNS, ret);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = table_row(*ret);
		phase_cells(*ret, &a->phases.items[order[i]]);
	}
	return r;
}

// --- phases of each epoch

enum {
	OF_EPOCH_NUMBER,
	OF_EPOCH_ITERATIONS,
	OF_EPOCH_RATE,
	OF_EPOCH_OUTSIDE,
	OF_EPOCH_UNRECORDED,
	N_OF_EPOCH,
};

static const struct column epoch_phase_columns[N_OF_EPOCH] = {
	[OF_EPOCH_NUMBER] = {"epoch", "EPOCH", COLUMN_WHOLE, 0},
	[OF_EPOCH_ITERATIONS] = {"iterations", "ITERATIONS", COLUMN_WHOLE, 0},
	[OF_EPOCH_RATE] = {"samples_per_second", "SAMPLES/S", COLUMN_NUMBER, 0},
	[OF_EPOCH_OUTSIDE] = {"outside_s", "OUTSIDE", COLUMN_SECONDS, 0},
	[OF_EPOCH_UNRECORDED] = {"unrecorded_s", "NOT RECORDED", COLUMN_SECONDS, 0},
};

static void epoch_phase_cells(struct table *t, const struct epoch_phases *epoch, int64_t number,
	const size_t *order, size_t n)
{
	number_cell(t, OF_EPOCH_NUMBER, number);
	table_number(
		t, OF_EPOCH_ITERATIONS, epoch->iterations > 0 ? (double)epoch->iterations : NAN);
	table_number(t, OF_EPOCH_RATE, epoch->samples_per_s);
	table_number(t, OF_EPOCH_OUTSIDE, epoch->outside_s);
	table_number(t, OF_EPOCH_UNRECORDED, epoch->unrecorded_s > 0 ? epoch->unrecorded_s : NAN);
	for (size_t i = 0; i < n; i++) {
		table_number(t, N_OF_EPOCH + i, epoch->phase_s[order[i]]);
	}
}

static bool in_any_epoch(const struct phases *p, size_t phase)
{
	for (size_t i = 0; i < p->n_epochs; i++) {
		if (p->epochs[i].phase_s[phase] > 0) {
			return true;
		}
	}
	return false;
}

int epoch_phase_table_build(const struct analysis *a, struct epoch_phase_table *ret)
{
	const struct phases *p = &a->phases;
	size_t order[PHASES_MAX], n = phases_in_order(p, order);
	*ret = (struct epoch_phase_table){
		.columns = calloc(N_OF_EPOCH + PHASES_MAX, sizeof(*ret->columns))};
	if (!ret->columns) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < N_OF_EPOCH; i++) {
		ret->columns[i] = epoch_phase_columns[i];
	}
	for (size_t i = 0; i < n; i++) {
		const char *name = p->items[order[i]].name;
		ret->columns[N_OF_EPOCH + i] = (struct column){
			name, name, COLUMN_SECONDS, (unsigned)i + 1};
	}
	for (size_t i = 0; i < n; i++) { // an import is in none of them
		if (!in_any_epoch(p, order[i])) {
			ret->columns[N_OF_EPOCH + i].title = NULL;
		}
	}
	int r = table_new(ret->columns, N_OF_EPOCH + n, &ret->table);
	for (size_t i = 0; i < p->n_epochs && n > 0 && r == 0; i++) {
		r = table_row(ret->table);
		epoch_phase_cells(ret->table, &p->epochs[i], a->epochs.items[i].number, order, n);
	}
	return r;
}

void epoch_phase_table_done(struct epoch_phase_table *t)
{
	table_free(t->table);
	free(t->columns);
}

// --- workers

static const struct column worker_columns[] = {
	{"label", "PREPARES", COLUMN_TEXT, 0},
	{"batches", "BATCHES", COLUMN_WHOLE, 5},
	{"samples", "SAMPLES", COLUMN_WHOLE, 3},
	{"batch_p50_s", "MEDIAN BATCH", COLUMN_SECONDS, 4},
	{"batch_max_s", "LONGEST", COLUMN_SECONDS, 2},
	{"per_sample_s", "EACH SAMPLE", COLUMN_SECONDS, 0},
	{"prepare_s", "TOTAL", COLUMN_SECONDS, 6},
	{"busy_ratio", "BUSY", COLUMN_RATIO, 1},
	{"cpu_s", "CPU TIME", COLUMN_SECONDS, 0},
	{"first_s", NULL, COLUMN_SECONDS, 0},
	{"last_s", NULL, COLUMN_SECONDS, 0},
	{"process", NULL, COLUMN_WHOLE, 0},
	{"thread", NULL, COLUMN_WHOLE, 0},
};

static void worker_cells(
	struct table *t, const struct analysis *a, const struct phase_worker *worker)
{
	_cleanup_text_ struct text label = {0};
	process_append_label(&label, &a->processes, worker->entity, worker->pid, worker->thread);
	table_text(t, 0, label.data);
	double life_s = worker->last_s - worker->first_s;
	const double figures[] = {(double)worker->batches, known(worker->samples),
		worker->batch_p50_s, worker->batch_max_s, worker->per_sample_s, worker->prepare_s,
		life_s > 0 ? worker->prepare_s / life_s : NAN, worker->cpu_s, worker->first_s,
		worker->last_s, worker->entity ? (double)worker->entity : NAN,
		(double)worker->thread};
	for (size_t i = 0; i < ARRAY_LENGTH(figures); i++) {
		table_number(t, i + 1, figures[i]);
	}
}

int worker_table_build(const struct analysis *a, struct table **ret)
{
	int r = table_new(worker_columns, ARRAY_LENGTH(worker_columns), ret);
	for (size_t i = 0; i < a->phases.n_workers && r == 0; i++) {
		r = table_row(*ret);
		worker_cells(*ret, a, &a->phases.workers[i]);
	}
	return r;
}

// --- slowest iterations

static const struct column slowest_columns[] = {
	{"length_s", "SLOWEST", COLUMN_SECONDS, 0},
	{"start_s", "AT", COLUMN_SECONDS, 0},
	{"epoch", "EPOCH", COLUMN_WHOLE, 1},
	{"number", "ITERATION", COLUMN_WHOLE, 2},
	{"why", "WHAT WAS DIFFERENT", COLUMN_PROSE, 0},
};

static void slowest_cells(
	struct table *t, const struct analysis *a, const struct slow_iteration *slow)
{
	_cleanup_text_ struct text why = {0};
	const struct iteration *iteration = &slow->iteration;
	slow_iteration_append_why(&why, slow);
	table_number(t, 0, (double)iteration->length_ns / 1e9);
	table_number(t, 1, (double)iteration->start_ns / 1e9);
	number_cell(t, 2, iteration->epoch >= 0 ? a->epochs.items[iteration->epoch].number : -1);
	number_cell(t, 3, iteration->number);
	table_text(t, 4, why.data);
}

int slowest_table_build(const struct analysis *a, size_t limit, struct table **ret)
{
	int r = table_new(slowest_columns, ARRAY_LENGTH(slowest_columns), ret);
	for (size_t i = 0; i < a->phases.n_slowest && i < limit && r == 0; i++) {
		r = table_row(*ret);
		slowest_cells(*ret, a, &a->phases.slowest[i]);
	}
	return r;
}

// --- JSON

static void put(json_t *object, const char *name, double value)
{
	json_object_set_new(object, name, json_from_number(value));
}

static void put_estimate(json_t *object, const char *name, const struct estimate *estimate)
{
	const struct {
		const char *suffix;
		double value;
	} parts[] = {{"", estimate->value}, {"_low", estimate->low}, {"_high", estimate->high}};
	for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
		char key[64];
		snprintf(key, sizeof(key), "%s%s", name, parts[i].suffix);
		put(object, key, parts[i].value);
	}
}

static json_t *iterations_json(const struct phases *p)
{
	json_t *json = json_object();
	const struct {
		const char *name;
		double value;
	} figures[] = {{"count", (double)p->total}, {"steady", (double)p->steady},
		{"warm_up", (double)p->warm_up}, {"cut", (double)p->cut},
		{"unrecorded", (double)p->unrecorded}, {"min_s", p->min_s}, {"p50_s", p->p50_s},
		{"p95_s", p->p95_s}, {"p99_s", p->p99_s}, {"max_s", p->max_s},
		{"samples_per_iteration", p->samples_per_iteration}, {"startup_s", p->startup_s},
		{"total_s", p->iterations_s}, {"apart_s", p->apart_s}, {"between_s", p->between_s},
		{"unrecorded_s", p->unrecorded_s}, {"after_s", p->after_s},
		{"stopped", (double)p->stopped}, {"stopped_s", p->stopped_s}};
	json_object_set_new(json, "missing", json_from_text(p->missing));
	json_object_set_new(json, "phases_missing", json_from_text(p->phases_missing));
	json_object_set_new(json, "incomplete", json_from_text(p->incomplete));
	put_estimate(json, "mean_s", &p->length_s);
	put_estimate(json, "samples_per_second", &p->samples_per_s);
	for (size_t i = 0; i < ARRAY_LENGTH(figures); i++) {
		// Of a run without iterations nothing is known, not even that this was 0.
		put(json, figures[i].name, p->total > 0 || i == 0 ? figures[i].value : NAN);
	}
	return json;
}

// {"data": 1.5, ...} in seconds, of the phases that there were.
static json_t *phase_seconds_json(const struct phases *p, const double *seconds)
{
	size_t order[PHASES_MAX], n = phases_in_order(p, order);
	json_t *json = json_object();
	for (size_t i = 0; i < n; i++) {
		json_t *value = json_from_number(seconds[order[i]]);
		_cleanup_text_ struct text name = {0};
		const char *raw = p->items[order[i]].name;
		text_append_utf8(&name, raw, strlen(raw));
		json_object_set_new(json, name.data ? name.data : "", value);
	}
	return json;
}

static json_t *epochs_json(const struct analysis *a)
{
	const struct phases *p = &a->phases;
	json_t *json = json_array();
	for (size_t i = 0; i < p->n_epochs; i++) {
		const struct epoch_phases *epoch = &p->epochs[i];
		json_t *row = json_object();
		json_object_set_new(row, "epoch", number_json(a->epochs.items[i].number));
		put(row, "seconds", epoch->seconds);
		put(row, "iterations", p->total > 0 ? (double)epoch->iterations : NAN);
		json_object_set_new(row, "samples", number_json(epoch->samples));
		put(row, "samples_per_second", epoch->samples_per_s);
		put(row, "iterations_s", epoch->iteration_s);
		put(row, "outside_s", epoch->outside_s);
		put(row, "unrecorded_s", epoch->unrecorded_s);
		json_object_set_new(row, "phases_s", phase_seconds_json(p, epoch->phase_s));
		json_array_append_new(json, row);
	}
	return json;
}

static json_t *causes_json(const struct slow_iteration *slow)
{
	json_t *json = json_array();
	for (size_t i = 0; i < slow->n_causes; i++) {
		const struct slow_cause *cause = &slow->causes[i];
		json_t *row = json_object();
		json_object_set_new(row, "what", json_from_text(cause->what));
		json_object_set_new(row, "metric", json_from_text(cause->metric));
		json_object_set_new(row, "unit", json_from_text(cause->unit));
		put(row, "value", cause->value);
		put(row, "usual", cause->usual);
		json_array_append_new(json, row);
	}
	return json;
}

static json_t *slowest_json(const struct analysis *a)
{
	const struct phases *p = &a->phases;
	json_t *json = json_array();
	for (size_t i = 0; i < p->n_slowest; i++) {
		const struct iteration *iteration = &p->slowest[i].iteration;
		double seconds[PHASES_MAX];
		json_t *row = json_object();
		for (size_t k = 0; k < PHASES_MAX; k++) {
			seconds[k] = (double)iteration->phase_ns[k] / 1e9;
		}
		json_object_set_new(row, "epoch",
			number_json(iteration->epoch >= 0 ? a->epochs.items[iteration->epoch].number
							  : -1));
		json_object_set_new(row, "number", number_json(iteration->number));
		put(row, "start_s", (double)iteration->start_ns / 1e9);
		put(row, "length_s", (double)iteration->length_ns / 1e9);
		json_object_set_new(row, "phases_s", phase_seconds_json(p, seconds));
		json_object_set_new(row, "otherwise", causes_json(&p->slowest[i]));
		json_array_append_new(json, row);
	}
	return json;
}

// Takes the table.
static json_t *rows_json(int result, struct table *t)
{
	json_t *rows = result < 0 ? NULL : table_to_json(t);
	table_free(t);
	return rows;
}

int show_phases_json(json_t *json, const struct analysis *a)
{
	struct table *phases = NULL, *workers = NULL;
	int r = phase_table_build(a, &phases);
	int failed = json_object_set_new(json, "iterations", iterations_json(&a->phases));
	failed |= json_object_set_new(json, "phases", rows_json(r, phases));
	failed |= json_object_set_new(json, "phases_by_epoch", epochs_json(a));
	r = worker_table_build(a, &workers);
	failed |= json_object_set_new(json, "workers", rows_json(r, workers));
	failed |= json_object_set_new(json, "ranks", rank_list_json(a));
	failed |= json_object_set_new(json, "spans", span_list_json(&a->phases));
	failed |= json_object_set_new(json, "slowest_iterations", slowest_json(a));
	return failed ? -1 : 0;
}
