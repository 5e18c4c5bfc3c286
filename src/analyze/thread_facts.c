// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Clocks of groups of threads over the steady iterations.

#include "analyze/thread_facts.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/analysis.h"
#include "analyze/names.h"
#include "analyze/rate.h"
#include "analyze/words.h"
#include "base/text.h"

// Looks are ten a second at each unnamed thread, until one tells: fewer than one a second in the
// steady iterations say nothing about their threads.
#define LOOKS_TELL 1.0
// Share of the time in which a thread runs and the first does not, nor is ready. Of seven jobs
// whose teams computed or spun it was 0.02 at most, beside a thread that held Python's lock 0.68.
#define ALONE 0.25
// CPUs of two threads that take turns: what the first computes without the lock comes on top.
#define TURNS 1.2
#define IDLE 0.02 // CPUs: less is bookkeeping

struct group_word {
	const char *name; // in the metrics
	const char *title;
};

static const struct group_word words_of_groups[N_THREAD_GROUPS] = {
	[THREADS_MAIN] = {"main", "first thread"},
	[THREADS_OPENMP] = {"openmp", "OpenMP team"},
	[THREADS_BLAS] = {"blas", "BLAS pool"},
	[THREADS_POOL] = {"pool", "framework's pool"},
	[THREADS_DEVICE] = {"device", "autograd, devices"},
	[THREADS_PYTHON] = {"python", "Python threads"},
	[THREADS_UNNAMED] = {"unnamed", "unnamed threads"},
	[THREADS_OTHER] = {"other", "other threads"},
};

const char *thread_group_title(enum thread_group group)
{
	return words_of_groups[group].title;
}

void thread_facts_init(struct thread_facts *t)
{
	*t = (struct thread_facts){.team_cpus = NAN,
		.team_threads = NAN,
		.team_busy = NAN,
		.team_outside = NAN,
		.team_alone = NAN,
		.python_together = NAN,
		.others_cpus = NAN};
	for (size_t i = 0; i < N_THREAD_GROUPS; i++) {
		t->groups[i] = (struct thread_group_facts){NAN, NAN, NAN, NAN};
	}
}

// Conclusions -------------------------------------------------------------------------------------

void thread_facts_rename(
	struct thread_facts *t, const double earlier[N_THREAD_GROUPS], double unnamed_s)
{
	double unnamed = t->groups[THREADS_UNNAMED].cpus, moved = 0;
	if (!(unnamed > 0) || !(unnamed_s > 0)) {
		return;
	}
	for (size_t i = 0; i < N_THREAD_GROUPS; i++) {
		if (i == THREADS_UNNAMED || !(earlier[i] > 0)) {
			continue;
		}
		double part = fmin(1, earlier[i] / unnamed_s) * unnamed;
		t->groups[i].cpus = words_sum(t->groups[i].cpus, part);
		moved += part;
	}
	t->groups[THREADS_UNNAMED].cpus = fmax(0, unnamed - moved);
}

static void add_team(struct thread_facts *t, enum thread_group group)
{
	const struct thread_group_facts *g = &t->groups[group];
	if (!(g->threads > 0) || !isfinite(g->cpus)) {
		return;
	}
	t->team_cpus = words_sum(t->team_cpus, g->cpus);
	t->team_threads = words_sum(t->team_threads, g->threads);
	t->team_busy = fmax(t->team_busy, fmin(1, g->cpus / g->threads)); // NAN gives way
}

// Shares of an iteration in which a team has work to do.
static double computing(const struct facts *f)
{
	static const enum phase_id phases[] = {
		PHASE_FORWARD, PHASE_BACKWARD, PHASE_OPTIMIZER, PHASE_STEP};
	double sum = NAN;
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		sum = words_sum(sum, f->share[phases[i]].value);
	}
	return sum;
}

void thread_facts_conclude(
	struct thread_facts *t, const struct facts *f, double running_looks, double alone)
{
	const struct thread_group_facts *main = &t->groups[THREADS_MAIN];
	t->known = isfinite(main->cpus);
	if (!t->known) {
		return;
	}
	bool python = f->python || f->framework != FRAMEWORK_UNKNOWN ||
	              t->groups[THREADS_PYTHON].threads > 0;
	double unnamed = python ? t->groups[THREADS_UNNAMED].cpus : NAN;
	t->unnamed_alone = alone >= ALONE && unnamed >= ALONE && main->cpus + unnamed <= TURNS;
	t->unnamed_poll = unnamed > IDLE && running_looks >= LOOKS_TELL && !(alone >= ALONE);
	add_team(t, THREADS_OPENMP);
	add_team(t, THREADS_BLAS);
	if (t->unnamed_poll) {
		add_team(t, THREADS_UNNAMED);
	}
	t->team_outside = fmax(0, t->team_busy - computing(f));
	t->team_outside = isfinite(t->team_busy) && isfinite(computing(f)) ? t->team_outside : NAN;
	t->team_alone = alone;
	double others = t->groups[THREADS_PYTHON].cpus;
	t->python_together = isfinite(others) ? main->cpus + others : NAN;
	t->others_cpus = 0;
	for (size_t i = THREADS_MAIN + 1; i < N_THREAD_GROUPS; i++) {
		t->others_cpus += isfinite(t->groups[i].cpus) ? t->groups[i].cpus : 0;
	}
}

// Reading -----------------------------------------------------------------------------------------

static double figure_of(const struct analysis *a, int64_t main, const char *group, const char *what,
	enum figure figure)
{
	struct text name = {0};
	text_format(&name, "%s%s.%s", NAME_THREADS_OF, group, what);
	double value = name.data ? analysis_figure(a, main, name.data, figure) : NAN;
	text_done(&name);
	return value;
}

static double rate_of(const struct analysis *a, int64_t main, const char *group, const char *what,
	const struct stretch *stretch)
{
	struct text name = {0};
	text_format(&name, "%s%s.%s", NAME_THREADS_OF, group, what);
	double value = name.data ? rate_over(a, main, name.data, stretch) : NAN;
	text_done(&name);
	return value;
}

void thread_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret)
{
	struct thread_facts *t = &ret->threads;
	double earlier[N_THREAD_GROUPS];
	for (size_t i = 0; i < N_THREAD_GROUPS; i++) {
		const char *name = words_of_groups[i].name;
		t->groups[i] = (struct thread_group_facts){
			.threads = figure_of(a, main, name, "count", FIGURE_MAX),
			.cpus = rate_of(a, main, name, "cpu_time", stretch),
			.ready = rate_of(a, main, name, "ready_time", stretch),
			.runs = rate_of(a, main, name, "runs", stretch),
		};
		earlier[i] = figure_of(a, main, name, "earlier_time", FIGURE_TOTAL);
	}
	thread_facts_rename(t, earlier, figure_of(a, main, "unnamed", "cpu_time", FIGURE_TOTAL));
	thread_facts_conclude(t, ret, rate_of(a, main, "unnamed", "running_looks", stretch),
		rate_of(a, main, "team", "alone_time", stretch));
}

void thread_facts_append(struct text *text, const struct thread_facts *t)
{
	for (size_t i = 0; i < N_THREAD_GROUPS; i++) {
		const struct thread_group_facts *g = &t->groups[i];
		if (!(g->cpus >= IDLE)) {
			continue;
		}
		text_format(text, "%s%s ", text->length > 0 ? ", " : "", words_of_groups[i].title);
		words_append_number(text, g->cpus);
	}
	text_append_string(text, text->length > 0 ? " CPUs" : "");
}
