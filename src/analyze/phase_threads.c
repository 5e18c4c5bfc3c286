// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Workers and ranks, a row each.

#include "analyze/phase_threads.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/analysis.h"
#include "base/array.h"

#define IMBALANCE 0.10 // ranks that are this much apart do not do the same
#define IN_STEP 0.05 // ranks that wait for each other take as long for an iteration
#define LEAST_BACKWARD 0.8 // times forward: it computes about twice as much
#define GRAIN 0.03 // of an iteration: a wait that backward seems to hold may be noise

struct thread_count {
	struct timeline_lane lane;
	struct phase_rank rank;
	struct histogram lengths; // of its steady iterations, in seconds
	double steady_samples; // NAN: of one nobody said
	struct phase_worker worker;
	struct histogram batches; // seconds
};

static struct thread_count *count_of(
	struct phase_threads *threads, const struct timeline_lane *lane)
{
	void *lanes = threads->lanes;
	if (array_reserve(&lanes, &threads->capacity, lane->index + 1,
		    sizeof(struct thread_count *)) < 0) {
		return NULL;
	}
	threads->lanes = lanes;
	while (threads->n <= lane->index) {
		threads->lanes[threads->n++] = NULL;
	}
	if (!threads->lanes[lane->index]) {
		threads->lanes[lane->index] = calloc(1, sizeof(struct thread_count));
	}
	struct thread_count *count = threads->lanes[lane->index];
	if (count) {
		count->lane = *lane;
	}
	return count;
}

int phase_threads_iteration(struct phase_threads *threads, const struct timeline_lane *lane,
	const struct iteration *iteration)
{
	struct thread_count *count = count_of(threads, lane);
	if (!count) {
		return -ENOMEM;
	}
	double seconds = (double)iteration->length_ns / 1e9;
	count->rank.iterations++;
	if (iteration->stopped) {
		return 0;
	}
	count->rank.iteration_s += seconds;
	if (!iteration->warm_up && !iteration->cut) {
		histogram_add(&count->lengths, seconds, 1);
		count->rank.steady_s += seconds;
		count->steady_samples += iteration->samples < 0 ? NAN : (double)iteration->samples;
		count->rank.forward_s += (double)iteration->phase_ns[PHASE_FORWARD] / 1e9;
		count->rank.backward_s += (double)iteration->phase_ns[PHASE_BACKWARD] / 1e9;
	}
	for (size_t i = 0; i < PHASES_MAX; i++) {
		count->rank.phase_s[i] += (double)iteration->phase_ns[i] / 1e9;
	}
	return 0;
}

int phase_threads_prepare(struct phase_threads *threads, const struct timeline_lane *lane,
	int64_t start_ns, int64_t end_ns, int64_t samples)
{
	struct thread_count *count = count_of(threads, lane);
	if (!count) {
		return -ENOMEM;
	}
	struct phase_worker *worker = &count->worker;
	double seconds = (double)(end_ns - start_ns) / 1e9, last_s = (double)end_ns / 1e9;
	bool first = worker->batches == 0;
	worker->first_s = first ? (double)start_ns / 1e9 : worker->first_s;
	worker->last_s = first ? last_s : fmax(worker->last_s, last_s);
	worker->prepare_s += seconds;
	if (samples < 0 || (!first && worker->samples < 0) ||
		__builtin_add_overflow(worker->samples, samples, &worker->samples)) {
		worker->samples = -1; // of one batch nobody said: the sum would be too small
	}
	worker->batches++;
	histogram_add(&count->batches, seconds, 1);
	return 0;
}

static double cpu_seconds(const struct analysis *a, int64_t entity)
{
	for (size_t i = 0; i < a->processes.n; i++) {
		if (a->processes.items[i].entity == entity) {
			return a->processes.items[i].cpu_seconds;
		}
	}
	return NAN;
}

static void put_worker(
	const struct thread_count *count, const struct analysis *a, struct phase_worker *ret)
{
	*ret = count->worker;
	ret->entity = count->lane.entity;
	ret->pid = count->lane.pid;
	ret->thread = count->lane.thread;
	ret->batch_p50_s = histogram_quantile(&count->batches, 0.5);
	ret->batch_max_s = count->batches.total > 0 ? count->batches.largest : NAN;
	ret->per_sample_s = ret->samples > 0 ? ret->prepare_s / (double)ret->samples : NAN;
	ret->cpu_s = ret->entity ? cpu_seconds(a, ret->entity) : NAN;
}

static void put_rank(const struct thread_count *count, struct phase_rank *ret)
{
	*ret = count->rank;
	ret->entity = count->lane.entity;
	ret->pid = count->lane.pid;
	ret->thread = count->lane.thread;
	ret->waits = NAN;
	ret->p50_s = histogram_quantile(&count->lengths, 0.5);
	ret->samples_per_s = count->rank.steady_s > 0 ? count->steady_samples / count->rank.steady_s
	                                              : NAN;
}

static bool rank_before(const struct phase_rank *a, const struct phase_rank *b)
{
	return a->entity != b->entity ? a->entity < b->entity
	       : a->pid != b->pid     ? a->pid < b->pid
	                              : a->thread < b->thread;
}

static void number_ranks(struct phases *p)
{
	for (size_t i = 0; i < p->n_ranks; i++) {
		for (size_t k = 0; k < p->n_ranks; k++) {
			p->ranks[i].number += rank_before(&p->ranks[k], &p->ranks[i]);
		}
	}
}

static bool are_in_step(const struct phases *p)
{
	double shortest = INFINITY, longest = 0;
	for (size_t i = 0; i < p->n_ranks; i++) {
		shortest = fmin(shortest, p->ranks[i].p50_s);
		longest = fmax(longest, p->ranks[i].p50_s);
	}
	return p->n_ranks > 1 && longest - shortest <= IN_STEP * longest;
}

static double step_seconds(const struct phase_rank *rank)
{
	return rank->forward_s + rank->backward_s;
}

// DistributedDataParallel exchanges gradients during backward, where no mark says so. But all ranks
// compute the same: who needs longer for backward beside its forward than another does waits in it
// for those that came late. Of a model with buffers (batch norm), forward begins with an exchange
// of those: then forward is longer than backward ever lets it be, and only both together tell.
static void infer_waits(struct phases *p)
{
	double ratio = INFINITY, least_s = INFINITY;
	bool known = true; // of one that marked no forward nobody can say
	for (size_t i = 0; i < p->n_ranks; i++) {
		double own = p->ranks[i].backward_s / p->ranks[i].forward_s;
		known = known && own > 0 && isfinite(own);
		ratio = fmin(ratio, own);
		least_s = fmin(least_s, step_seconds(&p->ranks[i]));
	}
	bool in_forward = ratio < LEAST_BACKWARD;
	if (!known || !are_in_step(p)) {
		return;
	}
	p->waits_inferred = true;
	for (size_t i = 0; i < p->n_ranks; i++) {
		struct phase_rank *rank = &p->ranks[i];
		double waits_s = in_forward ? step_seconds(rank) - least_s
		                            : rank->backward_s - ratio * rank->forward_s;
		rank->waits = waits_s / rank->steady_s;
		rank->waits = rank->waits >= GRAIN ? rank->waits : 0;
	}
}

static void fill_waits(struct phases *p)
{
	bool any = false;
	for (size_t i = 0; i < p->n_ranks; i++) {
		any = any || p->ranks[i].phase_s[PHASE_COMMUNICATION] > 0;
	}
	for (size_t i = 0; i < p->n_ranks && any; i++) {
		struct phase_rank *rank = &p->ranks[i];
		rank->waits = rank->iteration_s > 0
		                      ? rank->phase_s[PHASE_COMMUNICATION] / rank->iteration_s
		                      : NAN;
	}
	if (!any) {
		infer_waits(p);
	}
}

// The one that waits least; where nobody marked waiting, the one whose iterations are longest.
static void find_slowest(struct phases *p)
{
	struct phase_rank *slowest = NULL;
	double least = INFINITY, most = -INFINITY;
	for (size_t i = 0; i < p->n_ranks; i++) {
		struct phase_rank *rank = &p->ranks[i];
		double ahead = isfinite(rank->waits) ? rank->waits : -log(rank->p50_s);
		slowest = ahead < least ? rank : slowest;
		least = fmin(least, ahead);
		most = fmax(most, ahead);
	}
	if (slowest && most - least >= IMBALANCE) {
		slowest->slowest = true;
	}
}

static int worker_compare(const void *left, const void *right)
{
	const struct phase_worker *a = left, *b = right;
	return a->first_s != b->first_s ? (a->first_s > b->first_s) - (a->first_s < b->first_s)
	                                : (a->thread > b->thread) - (a->thread < b->thread);
}

int phase_threads_finish(
	const struct phase_threads *threads, const struct analysis *a, struct phases *ret)
{
	ret->workers = calloc(threads->n + 1, sizeof(*ret->workers));
	ret->ranks = calloc(threads->n + 1, sizeof(*ret->ranks));
	if (!ret->workers || !ret->ranks) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < threads->n; i++) {
		const struct thread_count *count = threads->lanes[i];
		if (count && count->worker.batches > 0) {
			put_worker(count, a, &ret->workers[ret->n_workers++]);
		}
		if (count && count->rank.iterations > 0) {
			put_rank(count, &ret->ranks[ret->n_ranks++]);
		}
	}
	qsort(ret->workers, ret->n_workers, sizeof(*ret->workers), worker_compare);
	number_ranks(ret);
	fill_waits(ret);
	find_slowest(ret);
	return 0;
}

static bool feeds(const struct phases *p, const struct process_list *processes, int64_t entity)
{
	for (size_t i = 0; entity && i < processes->n; i++) {
		const struct process_row *row = &processes->items[i];
		if (row->entity == entity) {
			return row->iterates || row->role == ROLE_LOADER;
		}
	}
	return p->n_ranks > 0; // the recorder never saw it
}

int phases_keep_workers(struct phases *p, const struct process_list *processes)
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

double phase_threads_iterated_s(const struct phase_threads *threads, size_t lane)
{
	const struct thread_count *count = lane < threads->n ? threads->lanes[lane] : NULL;
	return count ? count->rank.iteration_s : 0;
}

void phase_threads_done(struct phase_threads *threads)
{
	for (size_t i = 0; i < threads->n; i++) {
		if (threads->lanes[i]) {
			histogram_done(&threads->lanes[i]->lengths);
			histogram_done(&threads->lanes[i]->batches);
			free(threads->lanes[i]);
		}
	}
	free(threads->lanes);
	*threads = (struct phase_threads){0};
}
