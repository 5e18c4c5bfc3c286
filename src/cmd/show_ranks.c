// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Ranks as `strain show` tells of them.

#include "cmd/show_ranks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "render/json.h"

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

static const struct column columns[N_RANK_COLUMNS] = {
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

// An iteration without what it waits for the others.
static double own_seconds(const struct phase_rank *rank)
{
	return mean_seconds(rank) * (1 - rank->waits);
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
	table_number(t, RANK_OWN, own_seconds(rank));
	table_number(t, RANK_WAITS, rank->waits);
	table_text(t, RANK_NOTE, rank->slowest ? "the slowest" : NULL);
}

static int compare_numbers(const void *left, const void *right)
{
	const struct phase_rank *a = *(struct phase_rank *const *)left;
	const struct phase_rank *b = *(struct phase_rank *const *)right;
	return (a->number > b->number) - (a->number < b->number);
}

// Those that the others wait for first.
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

int rank_table_build(const struct analysis *a, size_t limit, struct table **ret)
{
	const struct phases *p = &a->phases;
	int r = table_new(columns, N_RANK_COLUMNS, ret);
	if (r < 0 || p->n_ranks < 2) {
		return r;
	}
	_cleanup_free_ const struct phase_rank **order = ranks_in_order(
		p, p->n_ranks > limit ? compare_waits : compare_numbers);
	r = order ? 0 : -ENOMEM;
	for (size_t i = 0; i < p->n_ranks && i < limit && r == 0; i++) {
		r = table_row(*ret);
		rank_cells(*ret, a, order[i]);
	}
	return r;
}

void rank_append_whose(struct text *t, const struct phases *p)
{
	double rate = 0;
	char count[32];
	if (p->n_ranks < 2) {
		return;
	}
	for (size_t i = 0; i < p->n_ranks; i++) {
		rate += p->ranks[i].samples_per_s;
	}
	text_format(t, "%d, whose epochs are the run's", p->ranks[0].number);
	if (isfinite(rate)) {
		text_format(t, "; all %zu ranks together %s samples/s", p->n_ranks,
			text_count(count, sizeof(count), (uint64_t)llround(rate)));
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
	process_append_label(&label, &a->processes, rank->entity, rank->pid, rank->thread);
	json_object_set_new(row, "rank", json_integer(rank->number));
	json_object_set_new(row, "label", json_from_text(label.data));
	put(row, "process", rank->entity ? (double)rank->entity : NAN);
	put(row, "pid", pid > 0 ? (double)pid : NAN);
	json_object_set_new(row, "slowest", json_boolean(rank->slowest));
	put(row, "iterations", (double)rank->iterations);
	put(row, "samples_per_second", rank->samples_per_s);
	put(row, "mean_s", mean_seconds(rank));
	put(row, "p50_s", rank->p50_s);
	put(row, "own_s", own_seconds(rank));
	put(row, "waits_ratio", rank->waits);
	json_object_set_new(row, "waits_inferred", json_boolean(a->phases.waits_inferred));
	for (size_t k = 0; k < N_KNOWN_PHASES; k++) {
		if (rank->phase_s[k] > 0) {
			put(seconds, phase_name((enum phase_id)k), rank->phase_s[k]);
		}
	}
	json_object_set_new(row, "phases_s", seconds);
	return row;
}

json_t *rank_list_json(const struct analysis *a)
{
	_cleanup_free_ const struct phase_rank **order = ranks_in_order(
		&a->phases, compare_numbers);
	json_t *json = order ? json_array() : NULL;
	for (size_t i = 0; json && i < a->phases.n_ranks; i++) {
		json_array_append_new(json, rank_json(a, order[i]));
	}
	return json;
}
