// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Loads a run in stages, each with its inputs as arguments. Damage in one stage leaves the others
// intact.

#include "run/analysis.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static int find_stops(struct analysis *a)
{
	struct epoch_list *epochs = &a->tables.epochs;
	int r = stops_of_job(&a->tables, &a->job_stops);
	r = r < 0 ? r : stops_of_any(&a->tables, &a->processes, &a->stops);
	for (size_t i = 0; i < epochs->n; i++) {
		struct epoch *epoch = &epochs->items[i];
		epoch->stopped_ns = stops_within(&a->stops, epoch->start_ns, epoch->end_ns);
	}
	return r;
}

static int build_overview(struct analysis *a)
{
	int r = overview_build(&a->tables, &a->job_stops, &a->stops, &a->overview);
	a->implausible = calloc(1, sizeof(*a->implausible));
	if (r < 0 || !a->implausible) {
		return r < 0 ? r : -ENOMEM;
	}
	plausible_overview(&a->tables, &a->overview, a->implausible);
	return 0;
}

// --- marks and processes, joined by entity

static int compare_entities(const void *left, const void *right)
{
	const struct process_row *a = left, *b = right;
	return (a->entity > b->entity) - (a->entity < b->entity);
}

static bool takes_none(const struct phase_rank *rank)
{
	return rank->phase_s[PHASE_FORWARD] > 0 && !(rank->phase_s[PHASE_DATA] > 0);
}

static void take_marks(struct process_row *row, const struct phases *p)
{
	for (size_t i = 0; i < p->n_ranks; i++) {
		bool is_it = p->ranks[i].entity == row->entity;
		row->iterates = row->iterates || is_it;
		row->takes_none = row->takes_none || (is_it && takes_none(&p->ranks[i]));
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

// Processes that iterate or prepare batches get their role, workers get the CPU time of their
// processes, and threads that prepare batches for no training thread become spans of the job.
static int join_marks(struct process_list *processes, struct phases *p)
{
	int r = tell_marked_roles(processes, p);
	for (size_t i = 0; i < p->n_workers; i++) {
		struct phase_worker *worker = &p->workers[i];
		worker->cpu_s = worker->entity ? cpu_seconds(processes, worker->entity) : NAN;
	}
	return r < 0 ? r : keep_workers(processes, p);
}

// --- phases

static int find_phases(struct analysis *a, bool brief)
{
	const struct phases_input input = {&a->tables, &a->stops, brief};
	struct error e = {0};
	int r = phases_load(&input, &a->phases, &e);
	if (r < 0 && r != -ENOMEM && !a->damage.code) {
		a->damage = e;
	}
	return r == -ENOMEM ? r : join_marks(&a->processes, &a->phases);
}

// On an error, everything is released.
static int finish(struct analysis *a, int r, struct error *e)
{
	if (r < 0) {
		error_errno(e, -r, "%s", reader_path(a->tables.reader));
		analysis_done(a);
	}
	return r;
}

static int load(struct reader *reader, bool brief, struct analysis *ret, struct error *e)
{
	*ret = (struct analysis){0};
	int r = tables_load(reader, &ret->tables, &ret->damage);
	if (r < 0) {
		return finish(ret, r, e);
	}
	r = process_list_build(&ret->tables, &ret->processes);
	r = r < 0 ? r : find_stops(ret);
	r = r < 0 ? r : build_overview(ret);
	r = r < 0 ? r : find_phases(ret, brief);
	if (r < 0) {
		return finish(ret, r, e);
	}
	growth_fill(&ret->tables, &ret->overview, &ret->phases, &ret->growth);
	growth_fill_gpus(&ret->tables, &ret->overview, &ret->phases, &ret->gpu_growth);
	return 0;
}

int analysis_load(struct reader *r, struct analysis *ret, struct error *e)
{
	return load(r, false, ret, e);
}

int analysis_load_brief(struct reader *r, struct analysis *ret, struct error *e)
{
	return load(r, true, ret, e);
}

int analysis_load_job(struct reader *reader, struct analysis *ret, struct error *e)
{
	*ret = (struct analysis){0};
	int r = tables_load_job(reader, &ret->tables, &ret->damage);
	r = r < 0 ? r : find_stops(ret);
	r = r < 0 ? r : build_overview(ret);
	return finish(ret, r, e);
}

void analysis_done(struct analysis *a)
{
	phases_done(&a->phases);
	if (a->implausible) {
		implausible_list_done(a->implausible);
		free(a->implausible);
	}
	overview_done(&a->overview);
	stops_done(&a->stops);
	stops_done(&a->job_stops);
	process_list_done(&a->processes);
	tables_done(&a->tables);
	*a = (struct analysis){0};
}

// The training process: the one that marks iterations, else the one that the process tree suggests.
int64_t analysis_trainer(const struct analysis *a)
{
	if (a->phases.n_ranks > 0 && a->phases.ranks[0].entity) {
		return a->phases.ranks[0].entity;
	}
	for (size_t i = 0; i < a->processes.n; i++) {
		if (a->processes.items[i].role == ROLE_MAIN) {
			return a->processes.items[i].entity;
		}
	}
	return 0;
}
