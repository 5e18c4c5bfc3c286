// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the pieces of a timeline add up to.

#include "analyze/phases.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/own_spans.h"
#include "analyze/phase_threads.h"
#include "analyze/slowest.h"
#include "analyze/steady.h"
#include "analyze/timeline.h"
#include "base/array.h"
#include "base/cleanup.h"

struct gathering {
	const struct analysis *a;
	struct phases *p;
	struct steady steady;
	struct phase_threads threads;
	struct own_gathering *own;
	size_t epoch; // where the last piece was
	size_t iterations_capacity;
	bool no_room; // for iterations
	bool began; // the first iteration
	struct iteration last;
	// Since the last iteration ended:
	double outside_s; // in nothing that stands apart
	bool saved; // a checkpoint was written since the last iteration
	double idle_s; // in no phase either
};

// Time ------------------------------------------------------------------------------------------

// The epoch that holds t_ns, and up to when that stays so.
static struct epoch_phases *epoch_of(struct gathering *g, int64_t t_ns, int64_t *until_ns)
{
	const struct epoch_list *epochs = &g->a->epochs;
	ptrdiff_t at = epoch_at(epochs, t_ns, g->epoch);
	if (at >= 0) {
		g->epoch = (size_t)at;
		*until_ns = epochs->items[at].end_ns < *until_ns ? epochs->items[at].end_ns
		                                                 : *until_ns;
		return &g->p->epochs[at];
	}
	size_t next = g->epoch;
	while (next < epochs->n && epochs->items[next].start_ns <= t_ns) {
		next++;
	}
	if (next < epochs->n && epochs->items[next].start_ns < *until_ns) {
		*until_ns = epochs->items[next].start_ns;
	}
	return NULL;
}

static void epoch_take(struct epoch_phases *epoch, const struct timeline_piece *piece, double s)
{
	if (piece->phase >= 0) {
		epoch->phase_s[piece->phase] += s;
	} else {
		epoch->outside_s += s;
	}
	if (piece->in_iteration && !phase_is_apart((enum phase_id)piece->phase)) {
		epoch->iteration_s += s;
	}
}

// Of the run as a whole.
static void run_take(struct gathering *g, const struct timeline_piece *piece, double s)
{
	struct phases *p = g->p;
	if (piece->phase >= 0) {
		p->items[piece->phase].total_s += s;
	}
	g->began = g->began || piece->in_iteration;
	if (!g->began) {
		p->startup_s += s;
	} else if (piece->phase >= 0 && phase_is_apart((enum phase_id)piece->phase)) {
		p->apart_s += s;
		g->saved = g->saved || piece->phase == PHASE_CHECKPOINT;
	} else if (piece->in_iteration) {
		p->iterations_s += s;
	} else {
		g->outside_s += s;
		g->idle_s += piece->phase < 0 ? s : 0;
	}
}

// Time in which the job ran.
static double running_s(const struct gathering *g, int64_t from_ns, int64_t to_ns)
{
	return (double)(to_ns - from_ns - stops_within(&g->a->stops, from_ns, to_ns)) / 1e9;
}

static void main_piece(struct gathering *g, const struct timeline_piece *piece)
{
	double s = running_s(g, piece->from_ns, piece->to_ns);
	g->p->stopped_s += (double)(piece->to_ns - piece->from_ns) / 1e9 - s;
	run_take(g, piece, s);
	for (int64_t at_ns = piece->from_ns, to_ns; at_ns < piece->to_ns; at_ns = to_ns) {
		to_ns = piece->to_ns;
		struct epoch_phases *epoch = epoch_of(g, at_ns, &to_ns);
		if (epoch) {
			epoch_take(epoch, piece, running_s(g, at_ns, to_ns));
		}
	}
}

// Iterations ------------------------------------------------------------------------------------

// Of twice as many as are kept, every second one goes.
static void iterations_halve(struct phases *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n_iterations; i += 2) {
		p->iterations[n++] = p->iterations[i];
	}
	p->n_iterations = n;
	p->stride *= 2;
}

static void keep_iteration(struct gathering *g, const struct iteration *iteration)
{
	struct phases *p = g->p;
	if (p->total % p->stride != 0) {
		return;
	}
	if (p->n_iterations == ITERATIONS_KEPT) {
		iterations_halve(p);
		if (p->total % p->stride != 0) {
			return;
		}
	}
	void *iterations = p->iterations;
	g->no_room = g->no_room || array_reserve(&iterations, &g->iterations_capacity,
					   p->n_iterations + 1, sizeof(*p->iterations)) < 0;
	p->iterations = iterations;
	if (!g->no_room) {
		p->iterations[p->n_iterations++] = *iteration;
	}
}

// Where numbers leap over a time without iterations, that time was in those whose marks were lost.
static void settle_gap(struct gathering *g, const struct iteration *iteration)
{
	struct phases *p = g->p;
	bool leaps = p->total > 0 && iteration->epoch == g->last.epoch && g->last.number >= 0 &&
	             iteration->number - 1 > g->last.number && g->outside_s > 0;
	if (!leaps && g->saved && p->total > 0 && iteration->epoch == g->last.epoch) {
		p->saving_s += g->outside_s;
	}
	if (!leaps) {
		p->between_s += g->outside_s;
	} else {
		p->unrecorded += (uint64_t)(iteration->number - g->last.number - 1);
		p->unrecorded_s += g->outside_s;
		if (iteration->epoch >= 0) {
			struct epoch_phases *epoch = &p->epochs[iteration->epoch];
			epoch->outside_s = fmax(0, epoch->outside_s - g->idle_s);
			epoch->unrecorded_s += g->idle_s;
		}
	}
	g->outside_s = g->idle_s = 0;
	g->saved = false;
}

static void epoch_count(struct phases *p, const struct iteration *iteration)
{
	if (iteration->epoch < 0) {
		return;
	}
	struct epoch_phases *epoch = &p->epochs[iteration->epoch];
	bool uncounted = iteration->samples < 0 || (epoch->iterations > 0 && epoch->samples < 0);
	if (uncounted ||
		__builtin_add_overflow(epoch->samples, iteration->samples, &epoch->samples)) {
		epoch->samples = -1;
	}
	epoch->iterations++;
}

static void slowest_keep(struct phases *p, const struct iteration *iteration)
{
	size_t at = p->n_slowest;
	while (at > 0 && p->slowest[at - 1].iteration.length_ns < iteration->length_ns) {
		at--;
	}
	if (at == SLOWEST_MAX) {
		return;
	}
	size_t moved = p->n_slowest - at - (p->n_slowest == SLOWEST_MAX);
	memmove(&p->slowest[at + 1], &p->slowest[at], moved * sizeof(p->slowest[0]));
	p->slowest[at] = (struct slow_iteration){.iteration = *iteration};
	p->n_slowest += p->n_slowest < SLOWEST_MAX;
}

static void main_iteration(struct gathering *g, struct iteration *iteration)
{
	struct phases *p = g->p;
	int64_t middle_ns = iteration->start_ns + (iteration->end_ns - iteration->start_ns) / 2;
	iteration->epoch = epoch_at(&g->a->epochs, middle_ns, 0);
	settle_gap(g, iteration);
	epoch_count(p, iteration);
	if (iteration->stopped) {
		p->stopped++;
	} else if (iteration->cut) {
		p->cut++;
	} else if (iteration->warm_up) {
		p->warm_up++;
	} else {
		steady_add(&g->steady, iteration);
		slowest_keep(p, iteration);
	}
	keep_iteration(g, iteration);
	p->total++;
	g->last = *iteration;
}

// The walk --------------------------------------------------------------------------------------

static void take_piece(
	void *context, const struct timeline_lane *lane, const struct timeline_piece *piece)
{
	if (lane->index == 0) {
		main_piece(context, piece);
	}
}

static void take_iteration(
	void *context, const struct timeline_lane *lane, const struct iteration *iteration)
{
	struct gathering *g = context;
	struct iteration copy = *iteration;
	copy.stopped = stops_within(&g->a->stops, copy.start_ns, copy.end_ns) > 0;
	copy.cut = copy.cut || copy.stopped;
	if (phase_threads_iteration(&g->threads, lane, &copy) < 0) {
		g->no_room = true;
	}
	if (lane->index == 0) {
		main_iteration(g, &copy);
	}
}

static void take_phase(void *context, const struct timeline_lane *lane, int phase)
{
	struct gathering *g = context;
	if (lane->index == 0) {
		g->p->items[phase].spans++;
	}
}

static int take_prepare(void *context, const struct timeline_lane *lane, int64_t start_ns,
	int64_t end_ns, int64_t samples)
{
	struct gathering *g = context;
	return phase_threads_prepare(&g->threads, lane, start_ns, end_ns, samples);
}

static int take_own(
	void *context, const struct timeline_lane *lane, const struct timeline_own *span)
{
	struct gathering *g = context;
	return own_spans_add(g->own, lane, span);
}

static int walk(struct gathering *g, struct timeline *t, struct error *e)
{
	const struct timeline_sink sink = {.context = g,
		.piece = take_piece,
		.iteration = take_iteration,
		.phase = take_phase,
		.prepare = take_prepare,
		.own = take_own};
	int r = timeline_walk(t, &sink, e);
	return r == 0 && g->no_room ? error_errno(e, ENOMEM, "%s", reader_path(g->a->reader)) : r;
}

// What is missing -------------------------------------------------------------------------------

static char *why_no_marks(const struct analysis *a)
{
	struct part_missing parts[PARTS_MAX];
	size_t n = parts_missing(a->reader, parts);
	struct text why = {0};
	for (size_t i = 0; i < n; i++) {
		if (parts[i].phases) {
			text_append_string(&why, why.length ? "; " : "");
			text_append_printable(&why, parts[i].reason, strlen(parts[i].reason));
		}
	}
	if (why.length == 0) {
		text_append_string(&why, "the job marked none");
	}
	return text_steal(&why);
}

static bool any_phase(const struct phases *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->items[i].spans > 0) {
			return true;
		}
	}
	return false;
}

static void append_count(struct text *t, uint64_t n, const char *one, const char *several)
{
	char count[32];
	if (n > 0) {
		text_format(t, "%s%s %s", t->length ? ", " : "",
			text_count(count, sizeof(count), n), n == 1 ? one : several);
	}
}

static int say_missing(struct phases *p, const struct analysis *a, uint64_t left_out)
{
	struct text incomplete = {0};
	append_count(&incomplete, p->unrecorded, "iteration was not recorded",
		"iterations were not recorded");
	append_count(&incomplete, p->cut, "iteration was cut", "iterations were cut");
	append_count(&incomplete, left_out, "span of too many threads or too deep was left out",
		"spans of too many threads or too deep were left out");
	p->incomplete = incomplete.length > 0 ? text_steal(&incomplete) : NULL;
	p->missing = p->total == 0 ? why_no_marks(a) : NULL;
	p->phases_missing = any_phase(p) ? NULL : why_no_marks(a);
	return incomplete.failed || (p->total == 0 && !p->missing) ||
	                       (!any_phase(p) && !p->phases_missing)
	               ? -ENOMEM
	               : 0;
}

// Ends ------------------------------------------------------------------------------------------

static void epochs_finish(struct phases *p, const struct epoch_list *epochs)
{
	for (size_t i = 0; i < p->n_epochs; i++) {
		struct epoch_phases *epoch = &p->epochs[i];
		const struct epoch *marked = &epochs->items[i];
		epoch->seconds = epoch_length_s(marked);
		epoch->samples = epoch->iterations > 0 ? epoch->samples : -1;
		epoch->samples_per_s = epoch->samples >= 0 && epoch->iteration_s > 0
		                               ? (double)epoch->samples / epoch->iteration_s
		                               : NAN;
	}
}

static void name_phases(struct phases *p, const struct timeline *t)
{
	p->n = timeline_phases(t);
	for (size_t i = 0; i < p->n; i++) {
		snprintf(p->items[i].name, sizeof(p->items[i].name), "%s",
			timeline_phase_name(t, i));
		p->items[i].apart = phase_is_apart((enum phase_id)i);
	}
}

static int gather(struct gathering *g, struct timeline *t, struct error *e)
{
	struct phases *p = g->p;
	uint64_t whole = timeline_iterations(t), warm_up = timeline_warm_up(t);
	steady_init(&g->steady, whole > warm_up ? whole - warm_up : 0);
	int r = walk(g, t, e);
	if (r == -ENOMEM) {
		return r;
	}
	p->after_s = g->began ? g->outside_s : 0;
	name_phases(p, t);
	epochs_finish(p, &g->a->epochs);
	int more = phase_threads_finish(&g->threads, g->a, p);
	double run_s = (double)reader_recorded_ns(g->a->reader) / 1e9;
	more = more < 0 ? more : own_spans_finish(g->own, &g->threads, run_s, p);
	more = more < 0 ? more : say_missing(p, g->a, timeline_left_out(t));
	if (more < 0) {
		return error_errno(e, -more, "%s", reader_path(g->a->reader));
	}
	struct error slow_error = {0};
	if (!g->a->brief) {
		slowest_explain(g->a, &g->steady, p, &slow_error); // what is damaged is not told
	}
	steady_figures(&g->steady, p);
	return r;
}

int phases_load(const struct analysis *a, struct phases *ret, struct error *e)
{
	struct timeline *t = NULL;
	struct gathering g = {.a = a, .p = ret};
	*ret = (struct phases){.stride = 1, .n_epochs = a->epochs.n};
	ret->epochs = calloc(ret->n_epochs + 1, sizeof(*ret->epochs));
	int opened = ret->epochs && own_spans_new(&g.own) == 0
	                     ? timeline_open(a->reader, &t, e)
	                     : error_errno(e, ENOMEM, "%s", reader_path(a->reader));
	int r = opened == -ENOMEM ? opened : gather(&g, t, opened < 0 ? NULL : e);
	steady_done(&g.steady);
	phase_threads_done(&g.threads);
	own_spans_free(g.own);
	ret->timeline = t;
	if (r == -ENOMEM) {
		phases_done(ret);
	}
	return r < 0 ? r : opened;
}

void phases_done(struct phases *p)
{
	timeline_free(p->timeline);
	free(p->missing);
	free(p->phases_missing);
	free(p->incomplete);
	free(p->iterations);
	histogram_done(&p->lengths);
	free(p->epochs);
	free(p->workers);
	free(p->ranks);
	free(p->own);
	*p = (struct phases){0};
}
