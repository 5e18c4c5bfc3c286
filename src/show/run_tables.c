// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The tables of `strain show`.

#include "show/run_tables.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/words.h"
#include "run/analysis.h"
#include "run/code_time.h"
#include "run/script_lines.h"
#include "run/names.h"
#include "run/profile.h"
#include "run/unit.h"
#include "show/json.h"
#include "show/table.h"
#include "verdict/facts.h"
#include "run/gpu_facts.h"
#include "verdict/verdict.h"
#include "verdict/thresholds.h"

// Names the unit of the samples in the title of a column of rates: "STEPS/S".
static void title_rate(struct table *t, size_t column, const struct analysis *a, const char *before)
{
	_cleanup_text_ struct text title = {0};
	text_append_string(&title, before);
	for (const char *c = unit_of_samples(a->tables.reader); *c; c++) {
		char upper = (char)toupper((unsigned char)*c);
		text_append(&title, &upper, 1);
	}
	text_append_string(&title, "/S");
	if (!title.failed) {
		table_set_title(t, column, title.data);
	}
}

// Show ranks --------------------------------------------------------------------------------------
//
// The table of ranks.

enum {
	RANK_NUMBER,
	RANK_PID,
	RANK_ITERATIONS,
	RANK_RATE,
	RANK_MEDIAN,
	RANK_OWN,
	RANK_WAITS,
	RANK_NOTE,
	N_RANK_COLUMNS,
};

static const struct column rank_columns[N_RANK_COLUMNS] = {
	[RANK_NUMBER] = {NULL, "RANK", COLUMN_WHOLE, 0},
	[RANK_PID] = {NULL, "PID", COLUMN_LABEL, 4},
	[RANK_ITERATIONS] = {NULL, "ITERATIONS", COLUMN_WHOLE, 3},
	[RANK_RATE] = {NULL, "SAMPLES/S", COLUMN_NUMBER, 1},
	[RANK_MEDIAN] = {NULL, "MEDIAN", COLUMN_SECONDS, 2},
	[RANK_OWN] = {NULL, "OWN WORK", COLUMN_SECONDS, 0},
	[RANK_WAITS] = {NULL, "WAITS", COLUMN_RATIO, 0},
	[RANK_NOTE] = {NULL, "", COLUMN_LABEL, 0},
};

static int64_t pid_of(const struct analysis *a, const struct phase_rank *rank)
{
	for (size_t i = 0; rank->entity && i < a->processes.n; i++) {
		if (a->processes.items[i].entity == rank->entity) {
			return a->processes.items[i].pid;
		}
	}
	return rank->pid > 0 ? rank->pid : -1;
}

static double mean_seconds(const struct phase_rank *rank)
{
	return rank->iterations > 0 ? rank->iteration_s / (double)rank->iterations : NAN;
}

static void rank_cells(struct table *t, const struct analysis *a, const struct phase_rank *rank)
{
	_cleanup_text_ struct text pid = {0};
	text_format(&pid, "%lld", (long long)pid_of(a, rank));
	table_number(t, RANK_NUMBER, rank->number);
	table_text(t, RANK_PID, pid_of(a, rank) > 0 ? pid.data : NULL);
	table_number(t, RANK_ITERATIONS, (double)rank->iterations);
	table_number(t, RANK_RATE, rank->samples_per_s);
	table_number(t, RANK_MEDIAN, rank->p50_s);
	table_number(t, RANK_OWN, phases_rank_own(rank));
	table_number(t, RANK_WAITS, rank->waits);
	table_text(t, RANK_NOTE, rank->slowest ? "the slowest" : NULL);
}

static int compare_numbers(const void *left, const void *right)
{
	const struct phase_rank *a = *(struct phase_rank *const *)left;
	const struct phase_rank *b = *(struct phase_rank *const *)right;
	return (a->number > b->number) - (a->number < b->number);
}

// Sorts those that the others wait for first.
static int compare_waits(const void *left, const void *right)
{
	const struct phase_rank *a = *(struct phase_rank *const *)left;
	const struct phase_rank *b = *(struct phase_rank *const *)right;
	return a->slowest != b->slowest ? b->slowest - a->slowest
	       : a->waits < b->waits    ? -1
	       : a->waits > b->waits    ? 1
	                                : compare_numbers(left, right);
}

static const struct phase_rank **ranks_in_order(
	const struct phases *p, int (*compare)(const void *left, const void *right))
{
	const struct phase_rank **order = calloc(p->n_ranks + 1, sizeof(struct phase_rank *));
	for (size_t i = 0; order && i < p->n_ranks; i++) {
		order[i] = &p->ranks[i];
	}
	if (order) {
		qsort(order, p->n_ranks, sizeof(struct phase_rank *), compare);
	}
	return order;
}

int run_table_ranks(const struct analysis *a, size_t limit, struct table **ret)
{
	const struct phases *p = &a->phases;
	int r = table_new(rank_columns, N_RANK_COLUMNS, ret);
	if (r < 0 || p->n_ranks < 2) {
		return r;
	}
	title_rate(*ret, RANK_RATE, a, "");
	_cleanup_free_ const struct phase_rank **order = ranks_in_order(
		p, p->n_ranks > limit ? compare_waits : compare_numbers);
	r = order ? 0 : -ENOMEM;
	for (size_t i = 0; i < p->n_ranks && i < limit && r == 0; i++) {
		r = table_row(*ret);
		rank_cells(*ret, a, order[i]);
	}
	return r;
}

void run_table_append_rank(struct text *t, const struct analysis *a)
{
	const struct phases *p = &a->phases;
	double rate = 0;
	char count[32];
	if (p->n_ranks < 2) {
		return;
	}
	for (size_t i = 0; i < p->n_ranks; i++) {
		rate += p->ranks[i].samples_per_s;
	}
	text_format(t, "%d, which also marks the epochs of the run", p->ranks[0].number);
	if (isfinite(rate)) {
		text_format(t, "; all %zu ranks: %s %s/s", p->n_ranks,
			text_count(count, sizeof(count), (uint64_t)llround(rate)),
			unit_of_samples(a->tables.reader));
	}
}

static void put(json_t *object, const char *name, double value)
{
	json_object_set_new(object, name, json_from_number(value));
}

static json_t *rank_json(const struct analysis *a, const struct phase_rank *rank)
{
	_cleanup_text_ struct text label = {0};
	json_t *row = json_object(), *seconds = json_object();
	int64_t pid = pid_of(a, rank);
	process_list_append_label(&label, &a->processes, rank->entity, rank->pid, rank->thread);
	json_object_set_new(row, "rank", json_integer(rank->number));
	json_object_set_new(row, "label", json_from_text(label.data));
	put(row, "process", rank->entity ? (double)rank->entity : NAN);
	put(row, "pid", pid > 0 ? (double)pid : NAN);
	json_object_set_new(row, "slowest", json_boolean(rank->slowest));
	put(row, "iterations", (double)rank->iterations);
	put(row, "samples_per_second", rank->samples_per_s);
	put(row, "mean_s", mean_seconds(rank));
	put(row, "p50_s", rank->p50_s);
	put(row, "own_s", phases_rank_own(rank));
	put(row, "waits_ratio", rank->waits);
	json_object_set_new(row, "waits_inferred", json_boolean(a->phases.waits_inferred));
	for (size_t k = 0; k < N_KNOWN_PHASES; k++) {
		if (rank->phase_s[k] > 0) {
			put(seconds, phase_id_name((enum phase_id)k), rank->phase_s[k]);
		}
	}
	json_object_set_new(row, "phases_s", seconds);
	return row;
}

// All threads that iterate. Returns a new reference; NULL: out of memory.
static json_t *rank_list_json(const struct analysis *a)
{
	_cleanup_free_ const struct phase_rank **order = ranks_in_order(
		&a->phases, compare_numbers);
	json_t *json = order ? json_array() : NULL;
	for (size_t i = 0; json && i < a->phases.n_ranks; i++) {
		json_array_append_new(json, rank_json(a, order[i]));
	}
	return json;
}

// Show spans --------------------------------------------------------------------------------------
//
// The table of spans named by the job's author.

enum {
	SPAN_NAME,
	SPAN_COUNT,
	SPAN_MEDIAN,
	SPAN_LONGEST,
	SPAN_TOTAL,
	SPAN_SHARE,
	SPAN_OF,
	SPAN_THREADS,
	N_SPAN_COLUMNS,
};

static const struct column span_columns[N_SPAN_COLUMNS] = {
	[SPAN_NAME] = {NULL, "SPAN", COLUMN_TEXT, 0},
	[SPAN_COUNT] = {NULL, "TIMES", COLUMN_WHOLE, 2},
	[SPAN_MEDIAN] = {NULL, "MEDIAN", COLUMN_SECONDS, 0},
	[SPAN_LONGEST] = {NULL, "LONGEST", COLUMN_SECONDS, 4},
	[SPAN_TOTAL] = {NULL, "TOTAL", COLUMN_SECONDS, 3},
	[SPAN_SHARE] = {NULL, "SHARE", COLUMN_RATIO, 0},
	[SPAN_OF] = {NULL, "OF", COLUMN_LABEL, 1},
	[SPAN_THREADS] = {NULL, "THREADS", COLUMN_WHOLE, 5},
};

static bool any_of_several_threads(const struct phases *p)
{
	for (size_t i = 0; i < p->n_own; i++) {
		if (p->own[i].threads > 1) {
			return true;
		}
	}
	return false;
}

static void span_cells(struct table *t, const struct own_span *span, bool threads)
{
	_cleanup_text_ struct text name = {0};
	text_format(&name, "%*s", 2 * (int)span->depth, "");
	text_append_string(&name, span->name);
	table_text(t, SPAN_NAME, name.data);
	table_number(t, SPAN_COUNT, (double)span->count);
	table_number(t, SPAN_MEDIAN, span->p50_s);
	table_number(t, SPAN_LONGEST, span->count > 1 ? span->max_s : NAN);
	table_number(t, SPAN_TOTAL, span->total_s);
	table_number(t, SPAN_SHARE, span->share);
	table_text(t, SPAN_OF, span->inside ? "iterations" : "the run");
	table_number(t, SPAN_THREADS, threads ? (double)span->threads : NAN);
}

int run_table_spans(const struct analysis *a, size_t limit, struct table **ret)
{
	const struct phases *p = &a->phases;
	_cleanup_free_ bool *shown = calloc(p->n_own + 1, sizeof(*shown));
	bool threads = any_of_several_threads(p);
	int r = table_new(span_columns, N_SPAN_COLUMNS, ret);
	if (r == 0) {
		r = shown ? phases_longest_own_spans(p, limit, shown) : -ENOMEM;
	}
	for (size_t i = 0; i < p->n_own && r == 0; i++) {
		if (shown[i]) {
			r = table_row(*ret);
			span_cells(*ret, &p->own[i], threads);
		}
	}
	return r;
}

static json_t *span_json(const struct own_span *span)
{
	json_t *row = json_object();
	json_object_set_new(row, "name", json_from_text(span->name));
	json_object_set_new(row, "parent",
		span->parent == OWN_SPAN_NONE ? json_null()
					      : json_integer((json_int_t)span->parent));
	json_object_set_new(row, "count", json_integer((json_int_t)span->count));
	json_object_set_new(row, "total_s", json_from_number(span->total_s));
	json_object_set_new(row, "p50_s", json_from_number(span->p50_s));
	json_object_set_new(row, "max_s", json_from_number(span->max_s));
	json_object_set_new(row, "share_ratio", json_from_number(span->share));
	json_object_set_new(row, "of", json_string(span->inside ? "iterations" : "run"));
	json_object_set_new(row, "threads", json_integer((json_int_t)span->threads));
	return row;
}

// All of them. Returns a new reference; NULL: out of memory.
static json_t *span_list_json(const struct phases *p)
{
	json_t *json = json_array();
	for (size_t i = 0; json && i < p->n_own; i++) {
		json_array_append_new(json, span_json(&p->own[i]));
	}
	return json;
}

// Show phases -------------------------------------------------------------------------------------
//
// Tables of iterations and phases.

static double known(int64_t value)
{
	return value >= 0 ? (double)value : NAN;
}

// Numbers from the job can have any value; negative ones mean not known.
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

int run_table_iterations(const struct analysis *a, struct table **ret)
{
	const struct phases *p = &a->phases;
	int r = table_new(iteration_columns, ARRAY_LENGTH(iteration_columns), ret);
	if (r < 0 || p->steady == 0) {
		return r;
	}
	const double figures[] = {(double)p->steady, p->length_s.value, p->p50_s, p->p95_s,
		p->p99_s, p->max_s, p->samples_per_s.value};
	title_rate(*ret, ARRAY_LENGTH(figures) - 1, a, "");
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
	[PHASE_BETWEEN] = {NULL, "95 % CI", COLUMN_LABEL, 3},
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

// "60 to 62 %", with enough digits to distinguish the two.
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
	table_boolean(t, PHASE_APART, phase->apart);
}

// The order of phases in an iteration, then time in no phase, then phases that are apart.
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

int run_table_phases(const struct analysis *a, struct table **ret)
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
	for (size_t i = 0; i < n; i++) { // imports are in no epoch
		if (!in_any_epoch(p, order[i])) {
			ret->columns[N_OF_EPOCH + i].title = NULL;
		}
	}
	int r = table_new(ret->columns, N_OF_EPOCH + n, &ret->table);
	if (r == 0) {
		title_rate(ret->table, OF_EPOCH_RATE, a, "");
	}
	for (size_t i = 0; i < p->n_epochs && n > 0 && r == 0; i++) {
		r = table_row(ret->table);
		epoch_phase_cells(
			ret->table, &p->epochs[i], a->tables.epochs.items[i].number, order, n);
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
	{"label", "PREPARED BY", COLUMN_TEXT, 0},
	{"batches", "BATCHES", COLUMN_WHOLE, 5},
	{"samples", "SAMPLES", COLUMN_WHOLE, 3},
	{"batch_p50_s", "MEDIAN BATCH", COLUMN_SECONDS, 4},
	{"batch_max_s", "LONGEST", COLUMN_SECONDS, 2},
	{"per_sample_s", "PER SAMPLE", COLUMN_SECONDS, 0},
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
	process_list_append_label(
		&label, &a->processes, worker->entity, worker->pid, worker->thread);
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

int run_table_workers(const struct analysis *a, struct table **ret)
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
	{"why", "DIFFERENCES", COLUMN_PROSE, 0},
};

static void slowest_cells(
	struct table *t, const struct analysis *a, const struct slow_iteration *slow)
{
	_cleanup_text_ struct text why = {0};
	const struct iteration *iteration = &slow->iteration;
	slow_iteration_append_why(&why, slow);
	table_number(t, 0, (double)iteration->length_ns / 1e9);
	table_number(t, 1, (double)iteration->start_ns / 1e9);
	number_cell(
		t, 2, iteration->epoch >= 0 ? a->tables.epochs.items[iteration->epoch].number : -1);
	number_cell(t, 3, iteration->number);
	table_text(t, 4, why.data);
}

int run_table_slowest(const struct analysis *a, size_t limit, struct table **ret)
{
	int r = table_new(slowest_columns, ARRAY_LENGTH(slowest_columns), ret);
	for (size_t i = 0; i < a->phases.n_slowest && i < limit && r == 0; i++) {
		r = table_row(*ret);
		slowest_cells(*ret, a, &a->phases.slowest[i]);
	}
	return r;
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

static json_t *iterations_json(const struct analysis *a)
{
	const struct phases *p = &a->phases;
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
		{"stopped", (double)p->stopped}, {"stopped_s", p->stopped_s},
		{"compiled", (double)p->compiled}, {"compiled_s", p->compiled_s}};
	json_object_set_new(json, "missing", json_from_text(p->missing));
	json_object_set_new(json, "phases_missing", json_from_text(p->phases_missing));
	json_object_set_new(json, "incomplete", json_from_text(p->incomplete));
	put_estimate(json, "mean_s", &p->length_s);
	put_estimate(json, "samples_per_second", &p->samples_per_s);
	json_object_set_new(json, "samples_unit", json_string(unit_of_samples(a->tables.reader)));
	put(json, "tokens_per_sample", unit_tokens_per_sample(a->tables.reader));
	for (size_t i = 0; i < ARRAY_LENGTH(figures); i++) {
		// For a run without iterations nothing is known, not even that these were 0.
		put(json, figures[i].name, p->total > 0 || i == 0 ? figures[i].value : NAN);
	}
	return json;
}

// {"data": 1.5, ...} in seconds, for phases that occurred.
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
		json_object_set_new(row, "epoch", number_json(a->tables.epochs.items[i].number));
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
			number_json(iteration->epoch >= 0
					    ? a->tables.epochs.items[iteration->epoch].number
					    : -1));
		json_object_set_new(row, "number", number_json(iteration->number));
		put(row, "start_s", (double)iteration->start_ns / 1e9);
		put(row, "length_s", (double)iteration->length_ns / 1e9);
		json_object_set_new(row, "phases_s", phase_seconds_json(p, seconds));
		json_object_set_new(row, "differences", causes_json(&p->slowest[i]));
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

int run_table_phases_json(json_t *json, const struct analysis *a)
{
	struct table *phases = NULL, *workers = NULL;
	int r = run_table_phases(a, &phases);
	int failed = json_object_set_new(json, "iterations", iterations_json(a));
	failed |= json_object_set_new(json, "phases", rows_json(r, phases));
	failed |= json_object_set_new(json, "phases_by_epoch", epochs_json(a));
	r = run_table_workers(a, &workers);
	failed |= json_object_set_new(json, "workers", rows_json(r, workers));
	failed |= json_object_set_new(json, "ranks", rank_list_json(a));
	failed |= json_object_set_new(json, "spans", span_list_json(&a->phases));
	failed |= json_object_set_new(json, "slowest_iterations", slowest_json(a));
	return failed ? -1 : 0;
}

// Show lines --------------------------------------------------------------------------------------
//
// A row for each line and phase.

#define LINES_MOST 20

enum { PLACE, FUNCTION, ROLE, PHASE, SHARE, SAMPLES, FILE_NAME, LINE, N_COLUMNS };
static const struct column line_columns[N_COLUMNS] = {
	[PLACE] = {"place", "LINE", COLUMN_TEXT, 0},
	[FUNCTION] = {"function", "FUNCTION", COLUMN_TEXT, 1},
	[ROLE] = {"role", "ROLE", COLUMN_LABEL, 0},
	[PHASE] = {"phase", "PHASE", COLUMN_LABEL, 0},
	[SHARE] = {"share_ratio", "SHARE", COLUMN_RATIO, 0},
	[SAMPLES] = {"samples", "SAMPLES", COLUMN_WHOLE, 2},
	[FILE_NAME] = {"file", NULL, COLUMN_TEXT, 0},
	[LINE] = {"line", NULL, COLUMN_WHOLE, 0},
};

static int add_row(struct table *t, enum script_lines_of of, const struct script_lines *shares,
	const struct script_line *row)
{
	_cleanup_text_ struct text place = {0};
	text_append_string(&place, script_lines_short(shares, row->file));
	text_format(&place, ":%lld", (long long)row->line);
	int r = table_row(t);
	table_text(t, PLACE, place.data);
	table_text(t, FUNCTION, row->function);
	table_text(t, ROLE, script_lines_name(of));
	table_text(t, PHASE, row->phase);
	table_number(t, SHARE, (double)row->samples / (double)shares->samples);
	table_number(t, SAMPLES, (double)row->samples);
	table_text(t, FILE_NAME, row->file);
	table_number(t, LINE, (double)row->line);
	return r;
}

static int add_rows(struct table *t, const struct analysis *a, enum script_lines_of of)
{
	struct script_lines shares;
	int r = script_lines_load(a, of, &shares);
	for (size_t i = 0; i < shares.n && i < LINES_MOST && r == 0; i++) {
		r = add_row(t, of, &shares, &shares.items[i]);
	}
	script_lines_done(&shares);
	return r;
}

int run_table_lines(const struct analysis *a, struct table **ret)
{
	int r = table_new(line_columns, N_COLUMNS, ret);
	for (int of = 0; of < N_SCRIPT_LINES && r == 0; of++) {
		r = add_rows(*ret, a, (enum script_lines_of)of);
	}
	return r;
}

// Show tables -------------------------------------------------------------------------------------

// --- epochs

enum {
	EPOCH_NUMBER,
	EPOCH_SECONDS,
	EPOCH_RATE,
	EPOCH_CPUS,
	EPOCH_GPU_BUSY,
	EPOCH_MEMORY,
	EPOCH_MEMORY_KIND,
	EPOCH_GPU_MEMORY,
	EPOCH_STORAGE,
	EPOCH_OPEN,
	EPOCH_NOT_FINITE,
	N_EPOCH_COLUMNS,
	MAX_POINTS = 8, // columns for points of the job
};

static const struct column epoch_columns[N_EPOCH_COLUMNS] = {
	[EPOCH_NUMBER] = {"epoch", "EPOCH", COLUMN_WHOLE, 0},
	[EPOCH_SECONDS] = {"seconds", "TIME", COLUMN_SECONDS, 0},
	[EPOCH_RATE] = {"samples_per_second", "OVERALL SAMPLES/S", COLUMN_NUMBER, 0},
	[EPOCH_CPUS] = {"cpus_used", "CPUS", COLUMN_NUMBER, 0},
	[EPOCH_GPU_BUSY] = {"gpu_busy_ratio", "GPU BUSY", COLUMN_RATIO, 1},
	[EPOCH_MEMORY] = {"host_memory_peak_bytes", "HOST MEMORY", COLUMN_BYTES, 1},
	[EPOCH_MEMORY_KIND] = {"host_memory_kind", NULL, COLUMN_LABEL, 0},
	[EPOCH_GPU_MEMORY] = {"gpu_memory_peak_bytes", "GPU MEMORY", COLUMN_BYTES, 2},
	[EPOCH_STORAGE] = {"storage_read_bytes", "READ FROM STORAGE", COLUMN_BYTES, 4},
	[EPOCH_OPEN] = {"open", NULL, COLUMN_WHOLE, 0},
	[EPOCH_NOT_FINITE] = {"not_finite", NULL, COLUMN_LABEL, 0},
};

// The names of points, in the order of their first appearance.
static size_t point_names(const struct analysis *a, const char *names[static MAX_POINTS])
{
	size_t n = 0;
	for (size_t i = 0; i < a->tables.epochs.n; i++) {
		const struct epoch *epoch = &a->tables.epochs.items[i];
		for (size_t j = 0; j < epoch->n_points && n < MAX_POINTS; j++) {
			bool known = false;
			for (size_t k = 0; k < n; k++) {
				known = known || strcmp(names[k], epoch->points[j].name) == 0;
			}
			if (!known) {
				names[n++] = epoch->points[j].name;
			}
		}
	}
	return n;
}

static double gpus_epoch_figure(
	const struct analysis *a, const char *metric, int64_t epoch, enum figure figure)
{
	double sum = 0, largest = NAN;
	size_t n = 0;
	for (size_t i = 0; i < a->overview.n_gpus; i++) {
		if (gpu_owner(a, i) != GPU_OF_JOB) {
			continue;
		}
		double value = tables_epoch_figure(
			&a->tables, a->overview.gpus[i].entity, metric, epoch, figure);
		largest = fmax(largest, value);
		sum += isfinite(value) ? value : 0;
		n += isfinite(value);
	}
	return figure == FIGURE_MAX ? largest : n ? sum / (double)n : NAN;
}

// The metric of memory that has a figure for every epoch: PSS is read rarely, so short epochs can
// be without.
struct epoch_memory {
	const char *metric;
	const char *more; // added to it; NULL: nothing
	const char *kind;
	const char *title;
};

static const struct epoch_memory *epoch_memory(const struct analysis *a, int64_t job)
{
	static const struct epoch_memory choices[] = {
		{NAME_PSS, NULL, "PSS", "HOST PSS"},
		{NAME_ANONYMOUS, NAME_SHMEM, "anonymous and shared", "HOST ANON+SHM"},
		{NAME_RESIDENT_SUM, NULL, "sum of resident", "HOST RSS SUM"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(choices); i++) {
		bool known = true;
		for (size_t k = 0; k < a->tables.epochs.n && known; k++) {
			known = isfinite(tables_epoch_figure(&a->tables, job, choices[i].metric,
				a->tables.epochs.items[k].number, FIGURE_MAX));
		}
		if (known) {
			return &choices[i];
		}
	}
	return NULL;
}

static void epoch_memory_cells(struct table *t, const struct analysis *a, int64_t job,
	int64_t number, const struct epoch_memory *memory)
{
	double bytes = tables_epoch_figure(&a->tables, job, memory->metric, number, FIGURE_MAX);
	if (memory->more) {
		bytes = words_sum(bytes,
			tables_epoch_figure(&a->tables, job, memory->more, number, FIGURE_MAX));
	}
	table_number(t, EPOCH_MEMORY, bytes);
	table_text(t, EPOCH_MEMORY_KIND, memory->kind);
}

// Programs get null for nan, as for what is not known: this tells them.
static void not_finite_cell(struct table *t, const struct epoch *epoch)
{
	_cleanup_text_ struct text names = {0};
	for (size_t i = 0; i < epoch->n_points; i++) {
		const struct epoch_point *point = &epoch->points[i];
		if (!isfinite(point->value)) {
			text_format(&names, "%s%s=%g", names.length > 0 ? " " : "", point->name,
				point->value);
		}
	}
	table_text(t, EPOCH_NOT_FINITE, names.data);
}

static void epoch_row(struct table *t, const struct analysis *a, int64_t job,
	const struct epoch *epoch, const struct epoch_memory *memory)
{
	int64_t number = epoch->number;
	double seconds = epoch_length_s(epoch);
	table_integer(t, EPOCH_NUMBER, number);
	table_number(t, EPOCH_SECONDS, seconds);
	table_boolean(t, EPOCH_OPEN, epoch->open);
	table_number(t, EPOCH_RATE, epoch->samples > 0 ? (double)epoch->samples / seconds : NAN);
	table_number(t, EPOCH_CPUS,
		tables_epoch_figure(&a->tables, job, NAME_CPU_TIME, number, FIGURE_TOTAL) /
			seconds);
	table_number(t, EPOCH_GPU_BUSY, gpus_epoch_figure(a, NAME_GPU_BUSY, number, FIGURE_MEAN));
	if (memory) {
		epoch_memory_cells(t, a, job, number, memory);
	}
	not_finite_cell(t, epoch);
	table_number(
		t, EPOCH_GPU_MEMORY, gpus_epoch_figure(a, NAME_GPU_MEMORY, number, FIGURE_MAX));
	table_number(t, EPOCH_STORAGE,
		tables_epoch_figure(&a->tables, job, NAME_READ_STORAGE, number, FIGURE_TOTAL));
}

static void point_cells(
	struct table *t, const struct epoch *epoch, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < epoch->n_points; j++) {
			if (strcmp(epoch->points[j].name, names[i]) == 0) {
				table_any_number(t, N_EPOCH_COLUMNS + i, epoch->points[j].value);
			}
		}
	}
}

int epoch_table_build(const struct analysis *a, struct epoch_table *ret)
{
	const char *names[MAX_POINTS];
	size_t n_points = point_names(a, names);
	*ret = (struct epoch_table){
		.columns = calloc(N_EPOCH_COLUMNS + MAX_POINTS, sizeof(*ret->columns))};
	if (!ret->columns) {
		return -ENOMEM;
	}
	memcpy(ret->columns, epoch_columns, sizeof(epoch_columns));
	for (size_t i = 0; i < n_points; i++) {
		ret->columns[N_EPOCH_COLUMNS + i] = (struct column){
			names[i], names[i], COLUMN_NUMBER, 3};
	}
	const struct entity *entity = entity_first(&a->tables.entities, ENTITY_JOB);
	int64_t job = entity ? entity->id : 0;
	const struct epoch_memory *memory = epoch_memory(a, job);
	if (memory) {
		ret->columns[EPOCH_MEMORY].title = memory->title;
	}
	int r = table_new(ret->columns, N_EPOCH_COLUMNS + n_points, &ret->table);
	if (r == 0) {
		title_rate(ret->table, EPOCH_RATE, a, "OVERALL ");
	}
	for (size_t i = 0; i < a->tables.epochs.n && r == 0; i++) {
		r = table_row(ret->table);
		if (r == 0) {
			epoch_row(ret->table, a, job, &a->tables.epochs.items[i], memory);
			point_cells(ret->table, &a->tables.epochs.items[i], names, n_points);
		}
	}
	return r;
}

void epoch_table_done(struct epoch_table *t)
{
	table_free(t->table);
	free(t->columns);
}

// --- processes

enum {
	PROCESS_ROLE,
	PROCESS_LABEL,
	PROCESS_CPU_TIME,
	PROCESS_CPU,
	PROCESS_RESIDENT,
	PROCESS_RESIDENT_BOUND,
	PROCESS_PSS,
	PROCESS_USS,
	PROCESS_MEMORY,
	PROCESS_MEMORY_KIND,
	PROCESS_STOPPED,
	PROCESS_ASKED,
	PROCESS_STORAGE,
	PROCESS_WRITTEN,
	PROCESS_PID,
	PROCESS_NAME,
	PROCESS_COMMAND,
	PROCESS_FIRST,
	PROCESS_LAST,
	PROCESS_STATUS,
	PROCESS_SIGNAL,
	N_PROCESS_COLUMNS,
};

static const struct column process_columns[N_PROCESS_COLUMNS] = {
	[PROCESS_ROLE] = {"role", "ROLE", COLUMN_LABEL, 2},
	[PROCESS_LABEL] = {"label", "PROCESS", COLUMN_TEXT, 0},
	[PROCESS_CPU_TIME] = {"cpu_seconds", "CPU TIME", COLUMN_SECONDS, 0},
	[PROCESS_CPU] = {"cpu_ratio", "CPU", COLUMN_RATIO, 1},
	[PROCESS_RESIDENT] = {"resident_peak_bytes", "PEAK RSS", COLUMN_BYTES, 0},
	[PROCESS_RESIDENT_BOUND] = {"resident_peak_bound", "BOUND", COLUMN_LABEL, 3},
	[PROCESS_PSS] = {"pss_peak_bytes", "SAMPLED PSS", COLUMN_BYTES, 2},
	[PROCESS_USS] = {"uss_peak_bytes", "SAMPLED USS", COLUMN_BYTES, 7},
	[PROCESS_MEMORY] = {"memory_peak_bytes", NULL, COLUMN_BYTES, 0},
	[PROCESS_MEMORY_KIND] = {"memory_kind", NULL, COLUMN_LABEL, 0},
	[PROCESS_STOPPED] = {"stopped_seconds", "STOPPED", COLUMN_SECONDS, 1},
	[PROCESS_ASKED] = {"io_requested_bytes", "REQUESTED", COLUMN_BYTES, 5},
	[PROCESS_STORAGE] = {"io_storage_bytes", "FROM STORAGE", COLUMN_BYTES, 4},
	[PROCESS_WRITTEN] = {"io_written_bytes", "TO STORAGE", COLUMN_BYTES, 6},
	[PROCESS_PID] = {"pid", NULL, COLUMN_WHOLE, 0},
	[PROCESS_NAME] = {"name", NULL, COLUMN_TEXT, 0},
	[PROCESS_COMMAND] = {"command", NULL, COLUMN_TEXT, 0},
	[PROCESS_FIRST] = {"first_s", NULL, COLUMN_SECONDS, 0},
	[PROCESS_LAST] = {"last_s", NULL, COLUMN_SECONDS, 0},
	[PROCESS_STATUS] = {"exit_status", NULL, COLUMN_WHOLE, 0},
	[PROCESS_SIGNAL] = {"exit_signal", NULL, COLUMN_WHOLE, 0},
};

static void process_cells(struct table *t, const struct process_row *row)
{
	table_text(t, PROCESS_ROLE, role_name(row->role));
	table_text(t, PROCESS_LABEL, row->label);
	table_number(t, PROCESS_CPU_TIME, row->cpu_seconds);
	table_number(t, PROCESS_CPU, row->cpu_share);
	table_number(t, PROCESS_RESIDENT, row->resident_peak_bytes);
	table_text(t, PROCESS_RESIDENT_BOUND, row->resident_at_least ? "at least" : NULL);
	table_number(t, PROCESS_PSS, row->pss_peak_bytes);
	table_number(t, PROCESS_USS, row->uss_peak_bytes);
	table_number(t, PROCESS_MEMORY, row->memory_peak_bytes);
	table_text(t, PROCESS_MEMORY_KIND, row->memory_kind);
	table_number(t, PROCESS_STOPPED, row->stopped_s);
	table_number(t, PROCESS_ASKED, row->asked_bytes);
	table_number(t, PROCESS_STORAGE, row->storage_bytes);
	table_number(t, PROCESS_WRITTEN, row->written_bytes);
	table_number(t, PROCESS_PID, row->pid >= 0 ? (double)row->pid : NAN);
	table_text(t, PROCESS_NAME, row->name);
	table_text(t, PROCESS_COMMAND, row->command);
	table_number(t, PROCESS_FIRST, row->first_s);
	table_number(t, PROCESS_LAST, row->last_s);
	table_number(t, PROCESS_STATUS, row->exit_status >= 0 ? row->exit_status : NAN);
	table_number(t, PROCESS_SIGNAL, row->exit_signal > 0 ? row->exit_signal : NAN);
}

int run_table_processes(const struct analysis *a, struct table **ret)
{
	int r = table_new(process_columns, N_PROCESS_COLUMNS, ret);
	for (size_t i = 0; i < a->processes.n && r == 0; i++) {
		r = table_row(*ret);
		process_cells(*ret, &a->processes.items[i]);
	}
	return r;
}

static bool follows(const struct process_row *earlier, const struct process_row *row)
{
	return row->role == ROLE_LOADER && earlier->role == ROLE_LOADER &&
	       row->number == earlier->number && row->parent == earlier->parent;
}

// The time for which it ran and was not stopped.
static double going_s(const struct process_row *row)
{
	return row->last_s - row->first_s - (row->stopped_s > 0 ? row->stopped_s : 0);
}

// One row for n processes: loader workers that had the same number, one after the other.
static void group_cells(struct table *t, const struct process_row *rows, size_t n)
{
	struct process_row sum = rows[0];
	double lives = going_s(&rows[0]);
	for (size_t i = 1; i < n; i++) {
		sum.cpu_seconds = words_sum(sum.cpu_seconds, rows[i].cpu_seconds);
		sum.asked_bytes = words_sum(sum.asked_bytes, rows[i].asked_bytes);
		sum.storage_bytes = words_sum(sum.storage_bytes, rows[i].storage_bytes);
		sum.written_bytes = words_sum(sum.written_bytes, rows[i].written_bytes);
		sum.memory_peak_bytes = fmax(sum.memory_peak_bytes, rows[i].memory_peak_bytes);
		sum.resident_peak_bytes = fmax(
			sum.resident_peak_bytes, rows[i].resident_peak_bytes);
		sum.resident_at_least = sum.resident_at_least || rows[i].resident_at_least;
		sum.pss_peak_bytes = fmax(sum.pss_peak_bytes, rows[i].pss_peak_bytes);
		sum.uss_peak_bytes = fmax(sum.uss_peak_bytes, rows[i].uss_peak_bytes);
		sum.stopped_s = words_sum(sum.stopped_s, rows[i].stopped_s);
		lives += going_s(&rows[i]);
	}
	sum.cpu_share = lives > 0 ? sum.cpu_seconds / lives : NAN;
	sum.stopped_s = sum.stopped_s > 0 ? sum.stopped_s : NAN; // shown only if there was any
	process_cells(t, &sum);
	if (n > 1) {
		struct text label = {0};
		text_format(&label, "%s, %zu in turn", sum.label, n);
		table_text(t, PROCESS_LABEL, label.data);
		text_done(&label);
	}
}

int run_table_processes_short(
	const struct analysis *a, size_t limit, struct table **ret, struct process_rest *ret_rest)
{
	const struct process_list *list = &a->processes;
	int r = table_new(process_columns, N_PROCESS_COLUMNS, ret);
	size_t next;
	*ret_rest = (struct process_rest){0};
	for (size_t i = 0; i < list->n && r == 0; i = next) {
		for (next = i + 1; next < list->n && follows(&list->items[i], &list->items[next]);
			next++) {
		}
		if (table_rows(*ret) < limit) {
			r = table_row(*ret);
			group_cells(*ret, &list->items[i], next - i);
			continue;
		}
		for (size_t k = i; k < next; k++) {
			ret_rest->n++;
			ret_rest->cpu_seconds = words_sum(
				ret_rest->cpu_seconds, list->items[k].cpu_seconds);
		}
	}
	return r;
}

// --- devices

static const struct column gpu_columns[] = {
	{"name", "GPU", COLUMN_TEXT, 0},
	{"busy_ratio", "BUSY", COLUMN_RATIO, 0},
	{"busy_p95_ratio", NULL, COLUMN_RATIO, 0},
	{"memory_peak_bytes", "MEMORY, PEAK", COLUMN_BYTES, 0},
	{"memory_bytes", "OF", COLUMN_BYTES, 1},
	{"to_device_bytes_per_s", "TO DEVICE", COLUMN_BYTES_PER_SECOND, 2},
	{"from_device_bytes_per_s", "FROM DEVICE", COLUMN_BYTES_PER_SECOND, 3},
	{"power_w", "POWER (W)", COLUMN_NUMBER, 4},
	{"energy_j", "ENERGY (J)", COLUMN_NUMBER, 5},
	{"nvlink_in_bytes_per_s", "NVLINK IN", COLUMN_BYTES_PER_SECOND, 7},
	{"nvlink_out_bytes_per_s", "NVLINK OUT", COLUMN_BYTES_PER_SECOND, 8},
	{"temperature_max_c", "TEMP (C)", COLUMN_NUMBER, 6},
	{"job", "THE JOB", COLUMN_LABEL, 1},
};

int run_table_gpus(const struct analysis *a, struct table **ret)
{
	int r = table_new(gpu_columns, ARRAY_LENGTH(gpu_columns), ret);
	for (size_t i = 0; i < a->overview.n_gpus && r == 0; i++) {
		const struct gpu_figures *gpu = &a->overview.gpus[i];
		r = table_row(*ret);
		table_text(*ret, 0, gpu->name);
		const double figures[] = {gpu->busy, gpu->busy_p95, gpu->memory_peak_bytes,
			gpu->memory_bytes, gpu->to_device_bytes_per_s, gpu->from_device_bytes_per_s,
			gpu->power_watts, gpu->energy_joules, gpu->nvlink_in_bytes_per_s,
			gpu->nvlink_out_bytes_per_s, gpu->temperature_max_c};
		for (size_t c = 0; c < ARRAY_LENGTH(figures); c++) {
			table_number(*ret, c + 1, figures[c]);
		}
		table_text(*ret, ARRAY_LENGTH(figures) + 1, gpu_owner_words(a, i));
	}
	return r;
}

static const struct column device_columns[] = {
	{"kind", "DEVICE", COLUMN_LABEL, 0},
	{"name", "NAME", COLUMN_TEXT, 0},
	{"in_bytes", "IN", COLUMN_BYTES, 0},
	{"out_bytes", "OUT", COLUMN_BYTES, 0},
	{"busy_ratio", "BUSY", COLUMN_RATIO, 0},
};

static int device_rows(
	struct table *t, const char *kind, const struct device_figures *devices, size_t n)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		r = table_row(t);
		table_text(t, 0, kind);
		table_text(t, 1, devices[i].name);
		table_number(t, 2, devices[i].in_bytes);
		table_number(t, 3, devices[i].out_bytes);
		table_number(t, 4, devices[i].busy);
	}
	return r;
}

int run_table_devices(const struct analysis *a, struct table **ret)
{
	int r = table_new(device_columns, ARRAY_LENGTH(device_columns), ret);
	r = r < 0 ? r : device_rows(*ret, "disk", a->overview.disks, a->overview.n_disks);
	return r < 0 ? r
	             : device_rows(*ret, "network", a->overview.networks, a->overview.n_networks);
}

// --- waits of processes

// In the order of the columns.
static const char *const wait_metrics[] = {NAME_WAIT "storage", NAME_WAIT "fsync",
	NAME_WAIT "network", NAME_WAIT "pipe", NAME_WAIT "lock", NAME_WAIT "gil", NAME_WAIT "sleep",
	NAME_WAIT "child", NAME_WAIT "other"};

enum {
	WAITS_PROCESS,
	WAITS_FIRST,
	WAITS_LOOKS = WAITS_FIRST + ARRAY_LENGTH(wait_metrics),
	WAITS_ROLE,
	WAITS_PID,
	N_WAIT_COLUMNS,
};

static const struct column wait_columns[N_WAIT_COLUMNS] = {
	[WAITS_PROCESS] = {"label", "WAITING", COLUMN_TEXT, 0},
	{"storage_ratio", "STORAGE", COLUMN_RATIO, 0},
	{"fsync_ratio", "FSYNC", COLUMN_RATIO, 1},
	{"network_ratio", "NETWORK", COLUMN_RATIO, 2},
	{"pipe_ratio", "PIPE", COLUMN_RATIO, 3},
	{"lock_ratio", "LOCK", COLUMN_RATIO, 0},
	{"gil_ratio", "GIL", COLUMN_RATIO, 4},
	{"sleep_ratio", "SLEEP", COLUMN_RATIO, 0},
	{"child_ratio", "CHILD", COLUMN_RATIO, 0},
	{"other_ratio", "OTHER", COLUMN_RATIO, 5},
	[WAITS_LOOKS] = {"samples", "SAMPLES", COLUMN_WHOLE, 6},
	[WAITS_ROLE] = {"role", NULL, COLUMN_LABEL, 0},
	[WAITS_PID] = {"pid", NULL, COLUMN_WHOLE, 0},
};

static double looks_at(const struct analysis *a, const struct process_row *process)
{
	return tables_figure(&a->tables, process->entity, NAME_WAIT "looks", FIGURE_TOTAL);
}

static void wait_cells(
	struct table *t, const struct analysis *a, const struct process_row *process, double looks)
{
	table_text(t, WAITS_PROCESS, process->label);
	for (size_t i = 0; i < ARRAY_LENGTH(wait_metrics); i++) {
		double waits = tables_figure(
			&a->tables, process->entity, wait_metrics[i], FIGURE_TOTAL);
		table_number(t, WAITS_FIRST + i, waits / looks);
	}
	table_number(t, WAITS_LOOKS, looks);
	table_text(t, WAITS_ROLE, role_name(process->role));
	table_number(t, WAITS_PID, process->pid >= 0 ? (double)process->pid : NAN);
}

static bool trains_or_prepares(const struct process_row *process)
{
	return process->role == ROLE_MAIN || process->role == ROLE_RANK ||
	       process->role == ROLE_LOADER;
}

// Of processes with more than `least` samples; if `training` is set, only of those that train or
// prepare batches.
static int wait_rows(const struct analysis *a, bool training, double least, struct table **ret)
{
	int r = table_new(wait_columns, N_WAIT_COLUMNS, ret);
	for (size_t i = 0; i < a->processes.n && r == 0; i++) {
		const struct process_row *process = &a->processes.items[i];
		double looks = looks_at(a, process);
		if (looks > least && (!training || trains_or_prepares(process))) {
			r = table_row(*ret);
			wait_cells(*ret, a, process, looks);
		}
	}
	return r;
}

int run_table_waits(const struct analysis *a, struct table **ret)
{
	return wait_rows(a, false, 0, ret);
}

int run_table_training_waits(const struct analysis *a, struct table **ret)
{
	return wait_rows(a, true, LOOKS_ENOUGH - 1, ret);
}

// --- threads of the training process

enum { THREADS_GROUP, THREADS_COUNT, THREADS_CPUS, THREADS_READY, THREADS_RUNS, N_THREAD_COLUMNS };
static const struct column thread_columns[N_THREAD_COLUMNS] = {
	[THREADS_GROUP] = {"group", "TRAINING THREADS", COLUMN_LABEL, 0},
	[THREADS_COUNT] = {"threads", "NUMBER", COLUMN_WHOLE, 1},
	[THREADS_CPUS] = {"cpus_used", "CPUS", COLUMN_NUMBER, 0},
	[THREADS_READY] = {"ready_ratio", "READY, NO CPU", COLUMN_RATIO, 2},
	[THREADS_RUNS] = {"runs_per_second", "RUNS/S", COLUMN_NUMBER, 3},
};

int run_table_threads(const struct analysis *a, struct table **ret)
{
	struct facts f;
	struct stretch stretch = facts_stretch(a);
	facts_init(&f);
	thread_facts_fill(a, analysis_trainer(a), &stretch, &f);
	int r = table_new(thread_columns, N_THREAD_COLUMNS, ret);
	for (size_t i = 0; i < N_THREAD_GROUPS && r == 0; i++) {
		const struct thread_group_facts *g = &f.threads.groups[i];
		if (!f.threads.known || !(g->threads > 0) || !(g->cpus >= 0)) {
			continue;
		}
		r = table_row(*ret);
		table_text(*ret, THREADS_GROUP, thread_group_title((enum thread_group)i));
		table_number(*ret, THREADS_COUNT, g->threads);
		table_number(*ret, THREADS_CPUS, g->cpus);
		table_number(*ret, THREADS_READY, g->ready / g->threads);
		table_number(*ret, THREADS_RUNS, g->runs);
	}
	return r;
}

// --- samples of CPU time

enum { CODE_WHOSE, CODE_SHARE, CODE_COUNT, CODE_KIND, CODE_FUNCTION, N_CODE_COLUMNS };
static const struct column code_columns[N_CODE_COLUMNS] = {
	[CODE_WHOSE] = {"threads", "CPU TIME OF", COLUMN_LABEL, 0},
	[CODE_SHARE] = {"share_ratio", "SHARE", COLUMN_RATIO, 0},
	[CODE_COUNT] = {"samples", "SAMPLES", COLUMN_WHOLE, 2},
	[CODE_KIND] = {"class", "CLASS", COLUMN_LABEL, 0},
	[CODE_FUNCTION] = {"function", "FUNCTION", COLUMN_TEXT, 1},
};

int run_table_code(const struct analysis *a, struct table **ret)
{
	struct stretch stretch = facts_stretch(a);
	struct code_profile profile;
	int r = profile_load(a, &stretch, &profile);
	r = r < 0 ? r : table_new(code_columns, N_CODE_COLUMNS, ret);
	for (size_t i = 0; i < N_CODE_GROUPS && r == 0; i++) {
		const struct code_group_samples *g = &profile.groups[i];
		for (size_t k = 0; k < g->n_tops && r == 0; k++) {
			const struct code_top *top = &g->tops[k];
			r = table_row(*ret);
			table_text(*ret, CODE_WHOSE, code_group_name((enum code_group)i));
			table_number(*ret, CODE_SHARE, (double)top->samples / (double)g->samples);
			table_number(*ret, CODE_COUNT, (double)top->samples);
			table_text(*ret, CODE_KIND, code_class_name(top->class));
			table_text(*ret, CODE_FUNCTION, top->name);
		}
	}
	return r;
}

enum { BAR_NAME, BAR_SHARE, BAR_SAMPLES, BAR_CLASSES, BAR_FUNCTION, N_BAR_COLUMNS };
static const struct column bar_columns[N_BAR_COLUMNS] = {
	[BAR_NAME] = {"of", "CPU TIME", COLUMN_LABEL, 0},
	[BAR_SHARE] = {"share_ratio", "SHARE", COLUMN_RATIO, 0},
	[BAR_SAMPLES] = {"samples", "SAMPLES", COLUMN_WHOLE, 2},
	[BAR_CLASSES] = {"classes", "SPENT IN", COLUMN_PROSE, 0},
	[BAR_FUNCTION] = {"function", "TOP FUNCTION", COLUMN_TEXT, 1},
};

static int add_bar(struct table *t, const struct code_bar *bar)
{
	_cleanup_text_ struct text classes = {0};
	int r = table_row(t);
	code_time_append_classes(&classes, bar->group);
	table_text(t, BAR_NAME, bar->name);
	table_number(t, BAR_SHARE, bar->share);
	table_number(t, BAR_SAMPLES, (double)bar->group->samples);
	table_text(t, BAR_CLASSES, classes.data);
	table_text(t, BAR_FUNCTION, bar->group->n_tops > 0 ? bar->group->tops[0].name : NULL);
	return r;
}

int code_time_table_build(const struct code_time *time, struct table **ret)
{
	struct code_bar bars[2 * CODE_BARS_MAX];
	size_t n = code_time_role_bars(time, bars);
	n += code_time_phase_bars(time, bars + n);
	int r = table_new(bar_columns, N_BAR_COLUMNS, ret);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = add_bar(*ret, &bars[i]);
	}
	return r;
}

// --- evidence, events, missing metrics

static const struct column evidence_columns[] = {
	{"what", "WHAT", COLUMN_LABEL, 0},
	{"value", "VALUE", COLUMN_PROSE, 0},
	{"metric", "METRIC", COLUMN_LABEL, 1},
};

static bool is_among(const char *value, const char *const *values)
{
	for (size_t i = 0; values && values[i]; i++) {
		if (strcmp(value, values[i]) == 0) {
			return true;
		}
	}
	return false;
}

int run_table_evidence(const struct analysis *a, const char *const *without, struct table **ret)
{
	int r = table_new(evidence_columns, ARRAY_LENGTH(evidence_columns), ret);
	for (size_t i = 0; i < a->verdict->n_evidence && r == 0; i++) {
		if (is_among(a->verdict->evidence[i].value, without)) {
			continue;
		}
		r = table_row(*ret);
		table_text(*ret, 0, a->verdict->evidence[i].what);
		table_text(*ret, 1, a->verdict->evidence[i].value);
		table_text(*ret, 2, a->verdict->evidence[i].source);
	}
	return r;
}

static const struct column event_columns[] = {
	{"t_s", "AT", COLUMN_SECONDS, 0},
	{"kind", "KIND", COLUMN_LABEL, 0},
	{"text", "TEXT", COLUMN_PROSE, 0},
	{"entity", NULL, COLUMN_WHOLE, 0},
};

static bool is_shown(const struct event_row *event, bool output)
{
	return strcmp(event->kind, "wall_clock") != 0 &&
	       (output || strcmp(event->kind, "output") != 0);
}

size_t run_table_events_shown(const struct analysis *a)
{
	size_t n = 0;
	for (size_t i = 0; i < a->tables.events.n; i++) {
		n += is_shown(&a->tables.events.items[i], false);
	}
	return n;
}

int run_table_events(const struct analysis *a, size_t limit, bool output, struct table **ret)
{
	int r = table_new(event_columns, ARRAY_LENGTH(event_columns), ret);
	for (size_t i = 0; i < a->tables.events.n && table_rows(*ret) < limit && r == 0; i++) {
		const struct event_row *event = &a->tables.events.items[i];
		if (!is_shown(event, output)) {
			continue;
		}
		r = table_row(*ret);
		table_number(*ret, 0, event->t_s);
		table_text(*ret, 1, event->kind);
		table_text(*ret, 2, event->text);
		table_number(*ret, 3, event->entity ? (double)event->entity : NAN);
	}
	return r;
}

static const struct column missing_columns[] = {
	{"subject", "WHAT", COLUMN_LABEL, 0},
	{"reason", "WHY", COLUMN_TEXT, 0},
	{"kind", NULL, COLUMN_TEXT, 0},
	{"metrics", NULL, COLUMN_TEXT, 0},
	{"entities", NULL, COLUMN_WHOLE, 0},
};

int run_table_missing(const struct analysis *a, struct table **ret)
{
	struct missing_marker parts[MISSING_MARKERS_MAX];
	size_t n = tables_missing_markers(a->tables.reader, parts);
	int r = table_new(missing_columns, ARRAY_LENGTH(missing_columns), ret);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = table_row(*ret);
		table_text(*ret, 0, parts[i].what);
		table_text(*ret, 1, parts[i].reason);
		table_text(*ret, 2, "run");
	}
	for (size_t i = 0; i < a->tables.missing.n && r == 0; i++) {
		const struct missing_group *group = &a->tables.missing.items[i];
		struct text subject = {0}, metrics = {0};
		missing_list_append_subject(&subject, &a->tables.metrics, group);
		for (size_t k = 0; k < group->n_metrics; k++) {
			text_append_string(&metrics, k ? " " : "");
			text_append_string(&metrics, group->metrics[k]);
		}
		r = table_row(*ret);
		table_text(*ret, 0, subject.data);
		table_text(*ret, 1, group->reason);
		table_text(*ret, 2, group->kind);
		table_text(*ret, 3, metrics.data);
		table_number(*ret, 4, group->entities ? (double)group->entities : NAN);
		text_done(&subject);
		text_done(&metrics);
	}
	return r;
}
