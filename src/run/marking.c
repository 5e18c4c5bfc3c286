// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Joins marks and processes by entity.

#include "run/marking.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "run/phases.h"
#include "run/processes.h"

static int compare_entities(const void *left, const void *right)
{
	const struct process_row *a = left, *b = right;
	return (a->entity > b->entity) - (a->entity < b->entity);
}

static void take_marks(struct process_row *row, const struct phases *p)
{
	for (size_t i = 0; i < p->n_ranks; i++) {
		bool is_it = p->ranks[i].entity == row->entity;
		row->iterates = row->iterates || is_it;
		row->rank = is_it && row->rank < 0 ? p->ranks[i].number : row->rank;
	}
	for (size_t i = 0; i < p->n_workers; i++) {
		row->prepares = row->prepares || p->workers[i].entity == row->entity;
	}
}

static int tell_marked_roles(struct process_list *list, const struct phases *p)
{
	if ((p->n_ranks == 0 && p->n_workers == 0) || list->n == 0) {
		return 0;
	}
	for (size_t i = 0; i < list->n; i++) {
		take_marks(&list->items[i], p);
	}
	qsort(list->items, list->n, sizeof(*list->items), compare_entities);
	return process_list_tell_roles(list);
}

static double cpu_seconds(const struct process_list *list, int64_t entity)
{
	for (size_t i = 0; i < list->n; i++) {
		if (list->items[i].entity == entity) {
			return list->items[i].cpu_seconds;
		}
	}
	return NAN;
}

static bool feeds(const struct phases *p, const struct process_list *processes, int64_t entity)
{
	for (size_t i = 0; entity && i < processes->n; i++) {
		const struct process_row *row = &processes->items[i];
		if (row->entity == entity) {
			return row->iterates || row->role == ROLE_LOADER;
		}
	}
	return p->n_ranks > 0; // else the recorder never saw the training process
}

static int keep_workers(const struct process_list *processes, struct phases *p)
{
	struct own_span own = {.name = "prepare", .parent = OWN_SPAN_NONE, .share = NAN};
	size_t n = 0;
	for (size_t i = 0; i < p->n_workers; i++) {
		const struct phase_worker *worker = &p->workers[i];
		if (feeds(p, processes, worker->entity)) {
			p->workers[n++] = *worker;
			continue;
		}
		own.p50_s = own.threads++ == 0 ? worker->batch_p50_s : NAN;
		own.count += worker->batches;
		own.total_s += worker->prepare_s;
		own.max_s = fmax(own.max_s, worker->batch_max_s);
	}
	p->n_workers = n;
	if (own.threads == 0) {
		return 0;
	}
	struct own_span *grown = realloc(p->own, (p->n_own + 1) * sizeof(*grown));
	if (!grown) {
		return -ENOMEM;
	}
	p->own = grown;
	grown[p->n_own++] = own;
	return 0;
}

int marking_join(struct process_list *processes, struct phases *p)
{
	int r = tell_marked_roles(processes, p);
	for (size_t i = 0; i < p->n_workers; i++) {
		struct phase_worker *worker = &p->workers[i];
		worker->cpu_s = worker->entity ? cpu_seconds(processes, worker->entity) : NAN;
	}
	return r < 0 ? r : keep_workers(processes, p);
}
