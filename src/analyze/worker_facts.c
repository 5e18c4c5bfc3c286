// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Workers that prepare batches: which count, and what they did meanwhile.

#include "analyze/worker_facts.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/analysis.h"
#include "analyze/names.h"
#include "analyze/words.h"
#include "base/cleanup.h"

#define ANOTHER 0.25 // of what the training loader's workers prepared: another loader's

static int double_compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static bool is_rank(const struct phases *p, int64_t entity)
{
	for (size_t i = 0; i < p->n_ranks; i++) {
		if (entity && p->ranks[i].entity == entity) {
			return true;
		}
	}
	return false;
}

// When a worker was there.
struct life {
	double first_s;
	double last_s;
};

static unsigned most_at_once(const struct life *lives, size_t n)
{
	unsigned most = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned beside = 0;
		for (size_t k = 0; k < n; k++) {
			beside += lives[k].first_s <= lives[i].first_s &&
			          lives[k].last_s >= lives[i].first_s;
		}
		most = beside > most ? beside : most;
	}
	return most;
}

// Marked ones ------------------------------------------------------------------------------------

struct chosen {
	const struct phase_worker **workers;
	size_t n;
	unsigned at_once;
	unsigned all_at_once; // with those that were left out
};

static unsigned chosen_at_once(const struct chosen *c)
{
	_cleanup_free_ struct life *lives = calloc(c->n + 1, sizeof(*lives));
	for (size_t i = 0; lives && i < c->n; i++) {
		lives[i] = (struct life){c->workers[i]->first_s, c->workers[i]->last_s};
	}
	return lives ? most_at_once(lives, c->n) : (unsigned)c->n;
}

// Leaves out those that prepared far less than as many as the loader has.
static void leave_out_others(struct chosen *c, size_t asked)
{
	_cleanup_free_ double *prepared_s = calloc(c->n + 1, sizeof(*prepared_s));
	if (!prepared_s || asked == 0 || c->at_once <= asked) {
		return;
	}
	for (size_t i = 0; i < c->n; i++) {
		prepared_s[i] = c->workers[i]->prepare_s;
	}
	qsort(prepared_s, c->n, sizeof(*prepared_s), double_compare);
	double least_s = ANOTHER * prepared_s[c->n - asked];
	size_t kept = 0;
	for (size_t i = 0; i < c->n; i++) {
		if (c->workers[i]->prepare_s >= least_s) {
			c->workers[kept++] = c->workers[i];
		}
	}
	c->n = kept;
	c->at_once = chosen_at_once(c);
	c->at_once = c->at_once > asked ? (unsigned)asked : c->at_once;
}

static int choose(const struct analysis *a, int64_t main, const struct facts *f, struct chosen *ret)
{
	const struct phases *p = &a->phases;
	struct chosen c = {.workers = calloc(p->n_workers + 1, sizeof(struct phase_worker *))};
	if (!c.workers) {
		return -1;
	}
	for (size_t i = 0; i < p->n_workers; i++) {
		int64_t entity = p->workers[i].entity;
		if (entity != main && !is_rank(p, entity)) {
			c.workers[c.n++] = &p->workers[i];
		}
	}
	int64_t each = a->reader ? reader_run_i64(a->reader, "loader_workers", 0) : 0;
	c.at_once = c.all_at_once = chosen_at_once(&c);
	leave_out_others(&c, each > 0 && each <= THREADS_MAX ? (size_t)each * f->ranks.n : 0);
	*ret = c;
	return 0;
}

// A worker, and those that were started anew in its place, for each epoch.
struct place {
	double batch_s; // total of the medians, each as often as it had batches
	uint64_t batches;
};

static int started_compare(const void *left, const void *right)
{
	const struct phase_worker *a = *(struct phase_worker *const *)left;
	const struct phase_worker *b = *(struct phase_worker *const *)right;
	if (a->entity != b->entity) {
		return a->entity < b->entity ? -1 : 1;
	}
	return (a->first_s > b->first_s) - (a->first_s < b->first_s);
}

// The first place that none of those started before, and still there, has. Workers are in the order
// of their start.
static size_t place_of(const struct chosen *c, const size_t *taken, size_t index)
{
	for (size_t number = 0;; number++) {
		bool free = true;
		for (size_t i = 0; i < index && free; i++) {
			free = taken[i] != number ||
			       c->workers[i]->last_s <= c->workers[index]->first_s;
		}
		if (free) {
			return number;
		}
	}
}

static size_t fill_places(struct chosen *c, struct place *places)
{
	_cleanup_free_ size_t *taken = calloc(c->n + 1, sizeof(*taken));
	size_t n = 0;
	if (!taken) {
		return 0;
	}
	qsort(c->workers, c->n, sizeof(struct phase_worker *), started_compare);
	for (size_t i = 0; i < c->n; i++) {
		size_t number = taken[i] = place_of(c, taken, i);
		uint64_t batches = c->workers[i]->batches;
		places[number].batch_s += c->workers[i]->batch_p50_s * (double)batches;
		places[number].batches += batches;
		n = number >= n ? number + 1 : n;
	}
	for (size_t i = 0; i < n; i++) {
		places[i].batch_s /= fmax(1, (double)places[i].batches);
	}
	return n;
}

// The slowest against the median of the others. Workers of one place came one after the other: they
// are not held against each other.
static void find_slowest(struct chosen *c, struct worker_facts *w)
{
	_cleanup_free_ struct place *places = calloc(c->n + 1, sizeof(*places));
	_cleanup_free_ double *others = calloc(c->n + 1, sizeof(*others));
	size_t slowest = 0, n_others = 0, n = places && others ? fill_places(c, places) : 0;
	for (size_t i = 0; i < n; i++) {
		slowest = places[i].batch_s > places[slowest].batch_s ? i : slowest;
	}
	for (size_t i = 0; i < n; i++) {
		if (i != slowest && places[i].batches > 2) {
			others[n_others++] = places[i].batch_s;
		}
	}
	if (n_others > 0) {
		qsort(others, n_others, sizeof(*others), double_compare);
		w->slowest = places[slowest].batch_s / others[n_others / 2];
		w->slowest_number = (int)slowest;
	}
}

static void add_rates(const struct analysis *a, int64_t entity, const struct stretch *stretch,
	struct worker_facts *w)
{
	w->cpus = words_sum(w->cpus, rate_over(a, entity, NAME_CPU_TIME, stretch));
	w->queued = words_sum(w->queued, rate_over(a, entity, NAME_CPU_WAIT, stretch));
}

static void fill_marked(const struct analysis *a, struct chosen *c, const struct stretch *stretch,
	struct worker_facts *w)
{
	double prepared_s = 0, lived_s = 0;
	for (size_t i = 0; i < c->n; i++) {
		const struct phase_worker *worker = c->workers[i];
		double life_s = worker->last_s - worker->first_s;
		add_rates(a, worker->entity, stretch, w);
		if (life_s > 0) {
			prepared_s += worker->prepare_s;
			lived_s += life_s;
			w->busiest = fmax(w->busiest, worker->prepare_s / life_s);
		}
	}
	w->n = c->at_once;
	w->feeding = c->all_at_once;
	w->marked = lived_s > 0;
	w->preparing = lived_s > 0 ? w->n * prepared_s / lived_s : NAN;
	find_slowest(c, w);
}

// Those that the tree of processes takes for loader workers ---------------------------------------

static void fill_seen(
	const struct analysis *a, const struct stretch *stretch, struct worker_facts *w)
{
	_cleanup_free_ struct life *lives = calloc(a->processes.n + 1, sizeof(*lives));
	size_t n = 0;
	for (size_t i = 0; lives && i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		bool there = row->first_s * 1e6 < (double)stretch->to_us &&
		             row->last_s * 1e6 > (double)stretch->from_us;
		if (row->role == ROLE_LOADER && there && !is_rank(&a->phases, row->entity)) {
			add_rates(a, row->entity, stretch, w);
			lives[n++] = (struct life){row->first_s, row->last_s};
		}
	}
	w->n = w->feeding = lives ? most_at_once(lives, n) : 0;
}

void worker_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret)
{
	struct worker_facts *w = &ret->workers;
	struct chosen c;
	if (choose(a, main, ret, &c) < 0) {
		return;
	}
	if (c.n > 0) {
		fill_marked(a, &c, stretch, w);
	} else {
		fill_seen(a, stretch, w);
	}
	w->blocked = fmax(0, w->preparing - w->cpus - (isfinite(w->queued) ? w->queued : 0));
	w->blocked = isfinite(w->preparing) && isfinite(w->cpus) ? w->blocked : NAN;
	free(c.workers);
}
