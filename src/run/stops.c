// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Stops, from counters of stopped time, which grow during a stop.

#include "run/stops.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "run/processes.h"
#include "run/tables.h"
#include "run/names.h"

#define WORKS 0.05 // least share of the job's CPU time
#define WHOLE 0.99 // of the time between two readings
#define APART_NS 1000000 // stops closer than this are joined

static int stop_add(struct stops *s, int64_t from_ns, int64_t to_ns)
{
	void *items = s->items;
	int r = array_reserve(&items, &s->capacity, s->n + 1, sizeof(*s->items));
	s->items = items;
	if (r == 0) {
		s->items[s->n++] = (struct stop){from_ns < 0 ? 0 : from_ns, to_ns};
	}
	return r;
}

// If the counter grew by the whole time between two readings, the stop lasts until the second. If
// it grew by less, the stop ended soon after the first (process.c).
static int take_series(struct stops *s, const struct series *counter)
{
	int r = 0;
	for (size_t i = 1; i < counter->n && r == 0; i++) {
		int64_t before_ns = counter->t_us[i - 1] * 1000, now_ns = counter->t_us[i] * 1000;
		double grown_ns = (counter->values[i] - counter->values[i - 1]) * 1e9;
		if (!(grown_ns > 0) || grown_ns > 9e18) {
			continue;
		}
		bool whole = grown_ns >= WHOLE * (double)(now_ns - before_ns);
		r = whole ? stop_add(s, now_ns - (int64_t)grown_ns, now_ns)
		          : stop_add(s, before_ns, before_ns + (int64_t)grown_ns);
	}
	return r;
}

static int take(
	const struct run_tables *tables, int64_t entity, const char *metric, struct stops *stops)
{
	struct series counter = {0};
	if (!(tables_figure(tables, entity, metric, FIGURE_TOTAL) > 0)) {
		return 0;
	}
	int r = reader_series(tables->reader, entity, metric, INT64_MIN, INT64_MAX, &counter, NULL);
	r = r < 0 ? (r == -ENOMEM ? r : 0) : take_series(stops, &counter);
	series_done(&counter);
	return r;
}

static int stop_compare(const void *left, const void *right)
{
	const struct stop *a = left, *b = right;
	return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

static void join(struct stops *s)
{
	size_t n = 0;
	if (s->n > 0) {
		qsort(s->items, s->n, sizeof(*s->items), stop_compare);
	}
	for (size_t i = 0; i < s->n; i++) {
		struct stop *last = n > 0 ? &s->items[n - 1] : NULL;
		if (last && s->items[i].from_ns <= last->to_ns + APART_NS) {
			last->to_ns = s->items[i].to_ns > last->to_ns ? s->items[i].to_ns
			                                              : last->to_ns;
		} else {
			s->items[n++] = s->items[i];
		}
	}
	s->n = n;
	s->total_s = 0;
	for (size_t i = 0; i < n; i++) {
		s->total_s += (double)(s->items[i].to_ns - s->items[i].from_ns) / 1e9;
	}
}

static int take_job(const struct run_tables *tables, struct stops *ret)
{
	const struct entity *job = entity_first(&tables->entities, ENTITY_JOB);
	return job && tables->reader ? take(tables, job->id, NAME_STOPPED, ret) : 0;
}

int stops_of_job(const struct run_tables *tables, struct stops *ret)
{
	int r = take_job(tables, ret);
	join(ret);
	return r;
}

int stops_of_any(
	const struct run_tables *tables, const struct process_list *processes, struct stops *ret)
{
	const struct entity *job = entity_first(&tables->entities, ENTITY_JOB);
	double cpu_s = job ? tables_figure(tables, job->id, NAME_CPU_TIME, FIGURE_TOTAL) : NAN;
	int r = take_job(tables, ret);
	for (size_t i = 0; i < processes->n && r == 0; i++) {
		const struct process_row *row = &processes->items[i];
		if (row->role == ROLE_MAIN || row->role == ROLE_RANK ||
			row->cpu_seconds >= WORKS * cpu_s) {
			r = take(tables, row->entity, NAME_PROCESS_STOPPED, ret);
		}
	}
	join(ret);
	return r;
}

void stops_done(struct stops *s)
{
	free(s->items);
	*s = (struct stops){0};
}

int64_t stops_within(const struct stops *s, int64_t from_ns, int64_t to_ns)
{
	int64_t sum_ns = 0;
	size_t low = 0, high = s->n;
	while (low < high) { // finds the first stop that ends after from_ns
		size_t middle = low + (high - low) / 2;
		if (s->items[middle].to_ns <= from_ns) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	for (size_t i = low; i < s->n && s->items[i].from_ns < to_ns; i++) {
		int64_t from = s->items[i].from_ns > from_ns ? s->items[i].from_ns : from_ns;
		int64_t to = s->items[i].to_ns < to_ns ? s->items[i].to_ns : to_ns;
		sum_ns += to > from ? to - from : 0;
	}
	return sum_ns;
}
