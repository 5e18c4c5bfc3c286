// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Gathers facts from an analysis: its phases, and the use of resources in a stretch of steady
// iterations.

#include "verdict/facts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/words.h"
#include "run/code_time.h"
#include "run/analysis.h"
#include "run/names.h"
#include "run/plausible.h"
#include "run/profile.h"
#include "run/rate.h"
#include "run/script_lines.h"
#include "run/short_calls.h"
#include "run/unit.h"
#include "runfile/labels.h"
#include "verdict/setting.h"
#include "verdict/thresholds.h"

// Thread facts ------------------------------------------------------------------------------------
//
// CPU time of groups of threads over the steady iterations.

// Each unnamed thread is looked at ten times a second until its group is known. Fewer than one look
// per second in the steady iterations tells nothing about these threads.
#define LOOKS_TELL 1.0
// Share of the time in which a thread runs while the first neither runs nor is ready. It was at
// most 0.02 in seven jobs whose teams computed or spun, and 0.68 with a thread that held Python's
// lock.
#define ALONE 0.25
// CPUs of two threads that take turns: the first also computes without the lock.
#define TURNS 1.2
#define IDLE 0.02 // CPUs: a smaller use is bookkeeping

struct group_word {
	const char *name; // part of the metrics' names
	const char *title;
};

static const struct group_word words_of_groups[N_THREAD_GROUPS] = {
	[THREADS_MAIN] = {"main", "main thread"},
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

static void thread_facts_init(struct thread_facts *t)
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
	// fmin and fmax ignore NAN
	t->team_busy = fmax(t->team_busy, fmin(1, g->cpus / g->threads));
}

// Share of an iteration in which a team has work to do.
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
	double value = name.data ? tables_figure(&a->tables, main, name.data, figure) : NAN;
	text_done(&name);
	return value;
}

static double rate_of(const struct analysis *a, int64_t main, const char *group, const char *what,
	const struct stretch *stretch)
{
	struct text name = {0};
	text_format(&name, "%s%s.%s", NAME_THREADS_OF, group, what);
	double value = name.data ? rate_over(a->tables.reader, &a->stops, main, name.data, stretch)
	                         : NAN;
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

// Wait facts --------------------------------------------------------------------------------------
//
// Looks are counters: their rates in the steady stretch give shares of its time.

#define CHILD_LIVES_S 5.0 // a child that lives longer is a service that stays
#define BRIEF_S 0.1 // a life seen in one or two readings of the process tree

static const char *const names[N_WAITS] = {
	[WAIT_STORAGE] = NAME_WAIT "storage",
	[WAIT_FSYNC] = NAME_WAIT "fsync",
	[WAIT_NETWORK] = NAME_WAIT "network",
	[WAIT_PIPE] = NAME_WAIT "pipe",
	[WAIT_LOCK] = NAME_WAIT "lock",
	[WAIT_GIL] = NAME_WAIT "gil",
	[WAIT_SLEEP] = NAME_WAIT "sleep",
	[WAIT_CHILD] = NAME_WAIT "child",
	[WAIT_OTHER] = NAME_WAIT "other",
};

struct looks {
	double all; // per second
	double in[N_WAITS];
};

static void add_looks(const struct analysis *a, int64_t entity, const struct stretch *stretch,
	struct looks *looks)
{
	double all = rate_over(a->tables.reader, &a->stops, entity, NAME_WAIT "looks", stretch);
	if (!(all > 0)) {
		return;
	}
	looks->all += all;
	for (size_t i = 0; i < N_WAITS; i++) {
		double rate = rate_over(a->tables.reader, &a->stops, entity, names[i], stretch);
		looks->in[i] += isfinite(rate) ? rate : 0;
	}
}

// `left_out`: looks that found this kind do not count as time; N_WAITS: all count.
static void put_shares(const struct looks *looks, const struct stretch *stretch,
	enum wait_kind left_out, struct wait_facts *ret)
{
	double seconds = stretch_seconds(stretch);
	double all = looks->all - (left_out < N_WAITS ? looks->in[left_out] : 0);
	if (!(all > 0) || !(seconds > 0)) {
		return;
	}
	ret->looks = (uint64_t)llround(all * seconds);
	ret->left_out = 1 - all / looks->all;
	for (size_t i = 0; i < N_WAITS; i++) {
		ret->share[i] = i == left_out ? 0 : fmin(1, looks->in[i] / all);
	}
}

static double placed_rate(const struct analysis *a, int64_t main, const struct stretch *stretch,
	const char *place, size_t wait)
{
	_cleanup_text_ struct text name = {0};
	text_format(&name, "%s%s.%s", NAME_WAIT, place, names[wait] + strlen(NAME_WAIT));
	return name.data ? rate_over(a->tables.reader, &a->stops, main, name.data, stretch) : NAN;
}

// Waits of the training thread while it took a batch, and in steps. A look is placed when its
// iteration has ended: those of a long one before the stretch are counted in it, so that the looks
// themselves are an upper bound.
static void put_placed(const struct analysis *a, int64_t main, const struct stretch *stretch,
	const struct looks *looks, struct wait_facts *ret)
{
	double all = rate_over(a->tables.reader, &a->stops, main, NAME_WAIT "placed", stretch);
	if (!(all > 0 && looks->all > 0) || !(stretch_seconds(stretch) > 0)) {
		return;
	}
	ret->placed = (uint64_t)llround(all * stretch_seconds(stretch));
	for (size_t i = 0; i < N_WAITS; i++) {
		double in_data = placed_rate(a, main, stretch, "data", i);
		double in_step = placed_rate(a, main, stretch, "step", i);
		double most = looks->in[i];
		ret->in_data[i] = (in_data > most ? most : in_data) / fmin(all, looks->all);
		ret->in_step[i] = (in_step > most ? most : in_step) / fmin(all, looks->all);
	}
}

// Children ----------------------------------------------------------------------------------------

static const char *name_of(const struct analysis *a, int64_t entity)
{
	for (size_t i = 0; i < a->processes.n; i++) {
		if (a->processes.items[i].entity == entity) {
			return a->processes.items[i].name;
		}
	}
	return NULL;
}

// Between fork and exec, a child has its parent's name.
static bool is_named(const struct process_row *row, const char *parent)
{
	return row->last_s - row->first_s >= BRIEF_S || !parent || strcmp(row->name, parent) != 0;
}

static bool is_child(const struct process_row *row, int64_t main, const struct stretch *stretch)
{
	double from_s = (double)stretch->from_us / 1e6, to_s = (double)stretch->to_us / 1e6;
	bool role = row->role == ROLE_CHILD || row->role == ROLE_HELPER;
	return role && row->parent == main && row->name && row->first_s >= from_s &&
	       row->first_s <= to_s && row->last_s - row->first_s < CHILD_LIVES_S;
}

// The most frequent name, by majority vote: each other name removes one of its votes.
static const char *usual_name(const struct analysis *a, int64_t main, const struct stretch *stretch)
{
	const char *usual = NULL, *parent = name_of(a, main);
	size_t lead = 0;
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		if (!is_child(row, main, stretch) || !is_named(row, parent)) {
			continue;
		}
		if (lead == 0) {
			usual = row->name;
		}
		lead = strcmp(usual, row->name) == 0 ? lead + 1 : lead - 1;
	}
	return usual;
}

// Children that end between two readings of the process tree have no row. Their CPU time is known
// from the parent that reaps them, and their number if samples are taken.
static void fill_children(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret)
{
	struct children_facts *c = &ret->children;
	double cpus = rate_over(a->tables.reader, &a->stops, main, NAME_CPU_CHILDREN, stretch);
	c->cpu_s = cpus * ret->length_s.value;
	double started = rate_while_read(
		a->tables.reader, &a->stops, main, NAME_CHILDREN_STARTED, stretch);
	c->per_iteration = started * ret->length_s.value;
	if (ret->waits.looks > 0) {
		c->waits_s = ret->waits.share[WAIT_CHILD] * ret->length_s.value;
	}
	if (c->waits_s > 0 || c->cpu_s > 0) {
		c->command = usual_name(a, main, stretch);
	}
}

// The kind of wait in steps that the slowest rank has more of than any other. Waits for batches are
// its data.
static void fill_slow_wait(
	const struct analysis *a, const struct stretch *stretch, struct rank_facts *ranks)
{
	const struct phases *p = &a->phases;
	double own[N_WAITS] = {0}, most[N_WAITS] = {0}, more = SLOWER;
	bool known = p->n_ranks > 1;
	for (size_t i = 0; i < p->n_ranks && known; i++) {
		struct wait_facts waits = {0};
		struct looks looks = {0};
		add_looks(a, p->ranks[i].entity, stretch, &looks);
		put_placed(a, p->ranks[i].entity, stretch, &looks, &waits);
		known = waits.placed >= LOOKS_ENOUGH;
		for (size_t kind = 0; kind < N_WAITS && known; kind++) {
			double share = isfinite(waits.in_step[kind]) ? waits.in_step[kind] : 0;
			if (p->ranks[i].number == ranks->slowest) {
				own[kind] = share;
			} else {
				most[kind] = fmax(most[kind], share);
			}
		}
	}
	for (size_t kind = 0; kind < WAIT_OTHER && known; kind++) {
		if (own[kind] - most[kind] >= more) {
			more = own[kind] - most[kind];
			ranks->slow_wait = own[kind];
			ranks->slow_wait_kind = (enum wait_kind)kind;
		}
	}
}

void wait_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret)
{
	struct looks leader = {0}, workers = {0};
	add_looks(a, main, stretch, &leader);
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		if (row->role == ROLE_LOADER) {
			add_looks(a, row->entity, stretch, &workers);
		}
	}
	put_shares(&leader, stretch, N_WAITS, &ret->waits);
	put_placed(a, main, stretch, &leader, &ret->waits);
	put_shares(&workers, stretch, WAIT_PIPE, &ret->worker_waits);
	fill_slow_wait(a, stretch, &ret->ranks);
	fill_children(a, main, stretch, ret);
}

void wait_facts_append(struct text *t, const struct wait_facts *waits)
{
	bool told[N_WAITS] = {false};
	for (size_t n = 0; n < N_WAITS; n++) {
		size_t largest = 0;
		for (size_t i = 0; i < N_WAITS; i++) {
			bool larger = waits->share[i] > waits->share[largest] || told[largest];
			largest = !told[i] && larger ? i : largest;
		}
		if (told[largest] || !(waits->share[largest] >= WORTH)) {
			return;
		}
		told[largest] = true;
		text_format(
			t, "%s%s ", t->length > 0 ? ", " : "", names[largest] + strlen(NAME_WAIT));
		words_append_percent(t, waits->share[largest]);
	}
}

// Worker facts ------------------------------------------------------------------------------------
//
// Workers that prepare batches: which of them count, and their work meanwhile.

// as a share of what the training loader's workers prepared: less is another loader's
#define ANOTHER 0.25

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

// The lifetime of a worker.
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

// Marked workers ----------------------------------------------------------------------------------

struct chosen {
	const struct phase_worker **workers;
	size_t n;
	unsigned at_once;
	unsigned all_at_once; // including those left out
};

static unsigned chosen_at_once(const struct chosen *c)
{
	_cleanup_free_ struct life *lives = calloc(c->n + 1, sizeof(*lives));
	for (size_t i = 0; lives && i < c->n; i++) {
		lives[i] = (struct life){c->workers[i]->first_s, c->workers[i]->last_s};
	}
	return lives ? most_at_once(lives, c->n) : (unsigned)c->n;
}

// Leaves out workers that prepared far less than the busiest `asked` ones; `asked` is the loader's
// number of workers.
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
	int64_t each = a->tables.reader ? reader_run_i64(a->tables.reader, "loader_workers", 0) : 0;
	c.at_once = c.all_at_once = chosen_at_once(&c);
	leave_out_others(&c, each > 0 && each <= THREADS_MAX ? (size_t)each * f->ranks.n : 0);
	*ret = c;
	return 0;
}

// A worker and its successors, which were started in its place with each epoch.
struct place {
	double batch_s; // sum of medians, weighted by the number of batches
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

// The first place not used by a worker that started earlier and still lives. Workers are sorted by
// start.
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

// Compares the slowest worker with the median of the others. Workers of one place ran one after the
// other, so they are not compared with each other.
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
	w->cpus = words_sum(
		w->cpus, rate_over(a->tables.reader, &a->stops, entity, NAME_CPU_TIME, stretch));
	w->queued = words_sum(
		w->queued, rate_over(a->tables.reader, &a->stops, entity, NAME_CPU_WAIT, stretch));
}

static void fill_marked(const struct analysis *a, struct chosen *c, const struct stretch *stretch,
	struct worker_facts *w)
{
	double prepared_s = 0, lived_s = 0;
	for (size_t i = 0; i < c->n; i++) {
		const struct phase_worker *worker = c->workers[i];
		// While the first iterations compile and tune, workers have nothing to do.
		double life_s = worker->last_s - fmax(worker->first_s, a->phases.warm_until_s);
		add_rates(a, worker->entity, stretch, w);
		if (life_s > 0) {
			prepared_s += worker->steady_s;
			lived_s += life_s;
			w->busiest = fmax(w->busiest, worker->steady_s / life_s);
		}
	}
	w->n = c->at_once;
	w->feeding = c->all_at_once;
	w->marked = lived_s > 0;
	w->preparing = lived_s > 0 ? w->n * prepared_s / lived_s : NAN;
	find_slowest(c, w);
}

// Loader workers by the process tree --------------------------------------------------------------

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

// Facts -------------------------------------------------------------------------------------------

#define APART 0.1 // of the stretch: time between epochs above this share is left out
#define PAGE_BYTES 4096.0
#define UNDISTURBED 0.02 // quantile
// CPUs: more than one computing thread uses, together with threads that do not compute
#define SEVERAL 1.3

static const struct network_facts network_none = {.busy = NAN,
	.busy_rate = NAN,
	.sent_rate = NAN,
	.round_trip_s = NAN,
	.least_round_trip_s = NAN,
	.retransmitted = NAN,
	.network_namespace = NAN};

void facts_init(struct facts *f)
{
	*f = (struct facts){0};
	const struct estimate unknown = {NAN, NAN, NAN};
	for (size_t i = 0; i < ARRAY_LENGTH(f->share); i++) {
		f->share[i] = unknown;
	}
	f->length_s = unknown;
	f->loader_words = setting_words_of(NULL);
	f->native_in_other = f->python_in_data = f->all_in_other = f->system_in_other = NAN;
	f->python_in_other = f->calls_in_other = f->arithmetic_in_other = NAN;
	f->arrays_in_other = NAN;
	f->kernel_in_other = NAN;
	f->calls_of_steps = f->calls_in_steps = f->python_in_steps = NAN;
	f->batch_tensors = f->prefetch = f->padding = f->padding_common = f->padded_length = NAN;
	f->parameters = f->parameters_omitted = NAN;
	f->backward_passes = f->backward_kept = f->backward_synced = NAN;
	f->matrix_elements = f->matrix_zeros = NAN;
	f->embeddings = f->callbacks = f->reads = f->allocations = NAN;
	f->backward_wasted = NAN;
	f->collections = (struct collection_facts){NAN, NAN, NAN, NAN, NAN};
	f->long_waits = (struct long_wait_facts){NAN, NAN, NAN};
	f->trend = (struct trend){NAN, NAN, NAN, false, false, false};
	f->validates_alone = -1;
	f->duration_s = f->startup_s = f->training_s = f->between_s = f->validation_s =
		f->validation_starting_s = f->checkpoint_s = NAN;
	f->between_epochs = f->predicts_between = f->predicts_between_s = NAN;
	f->samples = f->epoch_iterations = f->compute_s = f->undisturbed_s =
		f->undisturbed_waits_s = NAN;
	f->data_at_epochs = f->other_at_epochs = NAN;
	f->forward_calls = f->backward_calls = f->forward_call_s = NAN;
	f->cpus = f->cpus_given = f->cpus_used = f->main_cpus = f->main_queued = f->others_cpus =
		NAN;
	f->page_faults = NAN;
	f->throttled = f->main_threads = f->stolen_cpus = f->cpu_stalled = NAN;
	f->host_cpus = f->host_others_cpus = f->omp_threads = NAN;
	f->workers = (struct worker_facts){.cpus = NAN,
		.queued = NAN,
		.blocked = NAN,
		.preparing = NAN,
		.busiest = NAN,
		.slowest = NAN};
	f->storage = (struct storage_facts){NAN, NAN, NAN, NAN, NAN, NAN, NAN, false};
	f->network = network_none;
	f->memory = (struct memory_facts){
		.limit_bytes = NAN, .peak_bytes = NAN, .limit_hits = NAN, NAN, NAN, NAN, NAN};
	gpu_facts_init(&f->gpu);
	for (size_t i = 0; i < N_WAITS; i++) {
		f->waits.share[i] = f->worker_waits.share[i] = NAN;
		f->waits.in_data[i] = f->worker_waits.in_data[i] = NAN;
		f->waits.in_step[i] = f->worker_waits.in_step[i] = NAN;
	}
	for (size_t i = 0; i < N_CODE_CLASSES; i++) {
		f->code.share[i] = f->code_threads.share[i] = f->code_workers.share[i] = NAN;
	}
	f->code.cpus = f->code_threads.cpus = f->code_workers.cpus = NAN;
	thread_facts_init(&f->threads);
	f->children = (struct children_facts){NAN, NAN, NAN, NULL};
	f->quota = (struct quota_facts){.cpus = NAN,
		.used_up = NAN,
		.used_cpus = NAN,
		.throttled_cpus = NAN,
		.throttled_cpu_s = NAN,
		.queued_cpus = NAN,
		.needed_cpus = NAN};
	f->growth = (struct growth){.bytes_per_iteration = unknown,
		.bytes_per_s = NAN,
		.full_in_s = NAN,
		.gained_bytes = NAN,
		.gpu = -1};
	f->gpu_growth = f->growth;
	f->ranks = (struct rank_facts){.n = 1,
		.waits_most = NAN,
		.waits_least = NAN,
		.own = NAN,
		.slow_wait = NAN,
		.slow_phase_s = NAN};
}

// Stretches ---------------------------------------------------------------------------------------

static bool is_steady(const struct iteration *iteration)
{
	return !iteration->warm_up && !iteration->cut;
}

static void stretch_grow(struct stretch *stretch, const struct iteration *iteration)
{
	if (stretch->to_us == 0) {
		stretch->from_us = iteration->start_ns / 1000;
	}
	stretch->to_us = iteration->end_ns / 1000;
}

// The time between two epochs is a gap.
static void stretch_add_epoch(struct stretch *all, const struct stretch *epoch)
{
	if (all->to_us == 0) {
		*all = *epoch;
		return;
	}
	all->gaps[all->n_gaps++] = (struct stretch_gap){all->to_us, epoch->from_us};
	all->to_us = epoch->to_us;
}

static bool steady_next(const struct phases *p, size_t *at, struct stretch *ret)
{
	int64_t number = -1;
	*ret = (struct stretch){0};
	for (; *at < p->n_iterations; (*at)++) {
		const struct iteration *iteration = &p->iterations[*at];
		if (!is_steady(iteration)) {
			continue;
		}
		if (ret->to_us > 0 && iteration->epoch != number) {
			break;
		}
		number = iteration->epoch;
		stretch_grow(ret, iteration);
	}
	return ret->to_us > 0;
}

// All steady iterations. If there is much time between their epochs, without that time; of many
// epochs, those in the middle.
static struct stretch steady_of(const struct phases *p)
{
	struct stretch all = {0}, middle = {0}, epoch;
	size_t epochs = 0, at = 0;
	for (; steady_next(p, &at, &epoch); epochs++) {
		all.from_us = epochs == 0 ? epoch.from_us : all.from_us;
		all.to_us = epoch.to_us;
	}
	double apart_us = (p->apart_s + p->between_s) * 1e6;
	if (!(apart_us > APART * (double)(all.to_us - all.from_us))) {
		return all;
	}
	size_t most = STRETCH_GAPS + 1, first = epochs > most ? (epochs - most) / 2 : 0;
	at = 0;
	for (size_t i = 0; i < first + most && steady_next(p, &at, &epoch); i++) {
		if (i >= first) {
			stretch_add_epoch(&middle, &epoch);
		}
	}
	return middle;
}

// Phases ------------------------------------------------------------------------------------------

static bool is_computing(size_t phase)
{
	return phase != PHASE_DATA && phase != PHASE_TRANSFER && phase != PHASE_COMMUNICATION &&
	       (phase >= N_KNOWN_PHASES || !phase_id_is_apart((enum phase_id)phase));
}

// The undisturbed time is taken from usual steps: with the usual number of samples, and not the
// last of an epoch, whose batch may be smaller without a mark that says so.
static bool is_usual(const struct phases *p, size_t at)
{
	const struct iteration *iteration = &p->iterations[at];
	bool last = at + 1 < p->n_iterations && p->iterations[at + 1].epoch != iteration->epoch;
	if (iteration->samples >= 0 && isfinite(p->samples_per_iteration)) {
		return fabs((double)iteration->samples - p->samples_per_iteration) < 0.5;
	}
	return !last && at + 1 < p->n_iterations;
}

// Adds the mean of one phase over steady iterations, and a low quantile of it over usual ones.
// `lengths` has room for all of them.
static void add_computing(
	const struct phases *p, size_t phase, double *lengths, double *mean_s, double *low_s)
{
	size_t n = 0, usual = 0;
	double sum = 0;
	for (size_t i = 0; i < p->n_iterations; i++) {
		if (is_steady(&p->iterations[i])) {
			double length_s = (double)p->iterations[i].phase_ns[phase] / 1e9;
			sum += length_s;
			n++;
			if (is_usual(p, i)) {
				lengths[usual++] = length_s;
			}
		}
	}
	if (n > 0) {
		*mean_s = words_sum(*mean_s, sum / (double)n);
	}
	if (usual > 0) {
		qsort(lengths, usual, sizeof(*lengths), double_compare);
		*low_s = words_sum(*low_s, lengths[(size_t)((double)usual * UNDISTURBED)]);
	}
}

// Phase by phase: each is short, so that sometimes nothing disturbs it.
static void fill_computing(const struct phases *p, struct facts *f)
{
	_cleanup_free_ double *lengths = calloc(p->n_iterations + 1, sizeof(*lengths));
	double waits_s = NAN;
	for (size_t i = 0; lengths && i < p->n; i++) {
		if (is_computing(i)) {
			add_computing(p, i, lengths, &f->compute_s, &f->undisturbed_s);
		} else if (i == PHASE_TRANSFER || i == PHASE_COMMUNICATION) {
			add_computing(p, i, lengths, &waits_s, &f->undisturbed_waits_s);
		}
	}
}

// The time of a phase in the first iterations of epochs, as a share of the time of all steady
// iterations.
static double share_at_epochs(const struct phases *p, enum phase_id phase)
{
	double all_ns = 0, first_ns = 0;
	for (size_t i = 0; i < p->n_iterations; i++) {
		const struct iteration *iteration = &p->iterations[i];
		if (is_steady(iteration)) {
			bool first = iteration->number == 0;
			all_ns += (double)iteration->length_ns;
			first_ns += first ? (double)iteration->phase_ns[phase] : 0;
		}
	}
	return all_ns > 0 ? first_ns / all_ns : NAN;
}

static bool waits_long(const struct phases *p, const struct iteration *i)
{
	bool counts = is_steady(i) && i->number != 0;
	return counts && (double)i->phase_ns[PHASE_DATA] / 1e9 >= LONG_WAIT * p->p50_s;
}

static void fill_long_waits(const struct phases *p, struct long_wait_facts *ret)
{
	double all_ns = 0, long_ns = 0, n = 0, n_long = 0;
	for (size_t i = 0; i < p->n_iterations; i++) {
		const struct iteration *iteration = &p->iterations[i];
		bool waits = waits_long(p, iteration);
		all_ns += is_steady(iteration) ? (double)iteration->length_ns : 0;
		n += is_steady(iteration);
		long_ns += waits ? (double)iteration->phase_ns[PHASE_DATA] : 0;
		n_long += waits;
	}
	if (all_ns > 0) {
		*ret = (struct long_wait_facts){
			long_ns / all_ns, n_long / n, n_long > 0 ? long_ns / 1e9 / n_long : NAN};
	}
}

// Older runs have no such spans, so none are no zero.
static void fill_collections(const struct phases *p, struct collection_facts *ret)
{
	double collected_s = 0, prepare_s = 0, step_s = 0;
	for (size_t i = 0; i < p->n_workers; i++) {
		collected_s += p->workers[i].collected_s;
		prepare_s += p->workers[i].prepare_s;
	}
	ret->of_preparing = collected_s > 0 ? fmin(1, collected_s / prepare_s) : NAN;
	if (p->n_ranks == 0 || p->ranks[0].collections == 0) {
		return;
	}
	const struct phase_rank *rank = &p->ranks[0];
	for (size_t i = 0; i < N_KNOWN_PHASES; i++) {
		step_s += i == PHASE_DATA ? 0 : rank->collected_s[i];
	}
	ret->in_data = rank->collected_s[PHASE_DATA] / rank->iteration_s;
	ret->in_step = step_s / rank->iteration_s;
	ret->mean_s = (rank->collected_s[PHASE_DATA] + step_s) / (double)rank->collections;
	ret->per_iteration = (double)rank->collections / (double)rank->iterations;
}

static struct named_facts named_of(const struct phases *p, enum named named)
{
	const struct named_work *work = &p->named[named];
	double n = (double)p->steady, all_s = n * p->length_s.value;
	if (work->count == 0 || !(all_s > 0)) {
		return (struct named_facts){0};
	}
	return (struct named_facts){.share = work->seconds / all_s,
		.per_iteration = (double)work->count / n,
		.iterations = (double)work->iterations / n,
		.mean_s = work->seconds / (double)work->count,
		.since = (double)work->since};
}

// A compiler does not disturb a step as another program does.
static void fill_named(const struct phases *p, struct facts *f)
{
	double compiles_s = 0;
	for (size_t i = 0; i < N_NAMED; i++) {
		f->named[i] = named_of(p, (enum named)i);
		compiles_s += i < N_COMPILERS ? f->named[i].per_iteration * f->named[i].mean_s : 0;
	}
	if (isfinite(f->compute_s)) {
		f->compute_s = fmax(f->undisturbed_s, f->compute_s - compiles_s);
	}
}

// What one rank does, the others wait for.
static void fill_ranks_apart(const struct phases *p, struct facts *f)
{
	double most_s = 0, second_s = 0;
	int most = -1;
	for (size_t i = 0; i < p->n_ranks; i++) {
		const struct phase_rank *rank = &p->ranks[i];
		if (rank->validation_s > most_s) {
			second_s = most_s;
			most_s = rank->validation_s;
			most = rank->number;
		} else {
			second_s = fmax(second_s, rank->validation_s);
		}
		f->checkpoint_s = fmax(f->checkpoint_s, rank->checkpoint_s);
	}
	f->validation_s = fmax(f->validation_s, most_s);
	f->validates_alone = p->n_ranks > 1 && second_s < ALONE_MOST * most_s ? most : -1;
}

// How often a phase is in an iteration, and how long on average; NAN: never.
static double calls_of(const struct phases *p, enum phase_id phase, double *ret_mean_s)
{
	const struct phase *item = &p->items[phase];
	double spans = (double)item->spans - (double)item->nested;
	double mean_s = spans > 0 && item->total_s > 0 ? item->total_s / spans : NAN;
	*ret_mean_s = mean_s;
	return item->share.value * p->length_s.value / mean_s;
}

static void fill_calls(const struct phases *p, struct facts *f)
{
	double mean_s;
	f->forward_calls = calls_of(p, PHASE_FORWARD, &f->forward_call_s);
	f->backward_calls = calls_of(p, PHASE_BACKWARD, &mean_s);
}

static void fill_phases(const struct phases *p, struct facts *f)
{
	f->iterations = p->total > 0;
	f->parts = f->iterations && !p->phases_missing && p->steady > 0;
	f->lost = p->incomplete;
	if (!f->iterations) {
		return;
	}
	f->steady = p->steady;
	f->startup_s = p->startup_s;
	f->between_s = p->between_s - p->saving_s;
	double in_epochs_s = 0;
	for (size_t i = 0; i < p->n_epochs; i++) {
		in_epochs_s += p->epochs[i].outside_s;
	}
	f->between_epochs = p->n_epochs > 0 && f->between_s > 0
	                            ? fmax(0, 1 - in_epochs_s / f->between_s)
	                            : NAN;
	f->predicts_between = (double)p->predicts_between.count;
	f->predicts_between_s = fmin(p->predicts_between.seconds, f->between_s);
	f->training_s = p->iterations_s + p->apart_s + p->between_s + p->unrecorded_s;
	f->validation_s = p->items[PHASE_VALIDATION].total_s;
	f->validation_starting_s = fmin(p->validation_starting_s, f->validation_s);
	f->checkpoint_s = p->items[PHASE_CHECKPOINT].total_s + p->saving_s;
	f->compiling_s = p->compiling_in_s;
	f->compiling = (double)p->compiling;
	fill_ranks_apart(p, f);
	f->length_s = p->length_s;
	f->samples = p->samples_per_iteration;
	f->rate = p->samples_per_s.value;
	for (size_t i = 0; i < p->n_epochs; i++) {
		f->epoch_iterations = fmax(f->epoch_iterations, (double)p->epochs[i].iterations);
	}
	for (size_t i = 0; i < N_KNOWN_PHASES && i < p->n; i++) {
		if (!p->items[i].apart && (p->items[i].spans > 0 || i == PHASE_OTHER)) {
			f->share[i] = p->items[i].share;
		}
	}
	fill_computing(p, f);
	fill_collections(p, &f->collections);
	fill_named(p, f);
	fill_long_waits(p, &f->long_waits);
	f->trend = trend_of(p);
	fill_calls(p, f);
	f->data_at_epochs = share_at_epochs(p, PHASE_DATA);
	f->other_at_epochs = share_at_epochs(p, PHASE_OTHER);
}

// In which of its phases the slowest rank exceeds all others by most. Backward and communication
// hold the waits.
static void fill_slow_phase(const struct phases *p, size_t slowest, struct facts *f)
{
	for (int phase = 0; phase < N_KNOWN_PHASES; phase++) {
		double most = 0, own = phases_rank_mean(&p->ranks[slowest], (enum phase_id)phase);
		for (size_t i = 0; i < p->n_ranks; i++) {
			double other = phases_rank_mean(&p->ranks[i], (enum phase_id)phase);
			most = i == slowest ? most : fmax(most, other);
		}
		bool waits = phase == PHASE_BACKWARD || phase == PHASE_COMMUNICATION;
		if (!waits && own - most >= SLOWER * f->length_s.value &&
			!(own - most <= f->ranks.slow_phase_s)) {
			f->ranks.slow_phase_s = own - most;
			f->ranks.slow_phase = phase;
		}
	}
}

static void fill_ranks(const struct phases *p, struct facts *f)
{
	f->ranks.n = p->n_ranks > 0 ? (unsigned)p->n_ranks : 1;
	f->ranks.inferred = p->waits_inferred;
	f->ranks.scatter = p->waits_inferred ? phases_waits_scatter(p->ranks, p->n_ranks) : 0;
	f->ranks.own = p->n_ranks > 1 ? p->ranks[0].waits : NAN;
	size_t slowest = p->n_ranks;
	for (size_t i = 0; i < p->n_ranks && p->n_ranks > 1; i++) {
		const struct phase_rank *rank = &p->ranks[i];
		double waits = rank->waits;
		if (isfinite(waits) && !(waits >= f->ranks.waits_least)) {
			f->ranks.waits_least = waits;
			f->ranks.slowest = rank->number;
			slowest = i;
		}
		f->ranks.waits_most = fmax(waits, f->ranks.waits_most);
	}
	if (slowest < p->n_ranks) {
		fill_slow_phase(p, slowest, f);
	}
}

// Resources ---------------------------------------------------------------------------------------

// Whether a loader worker started it: each has its own, such as a decoder.
static bool is_of_loader(const struct analysis *a, const struct process_row *row)
{
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *parent = &a->processes.items[i];
		if (parent->entity == row->parent) {
			return parent->role == ROLE_LOADER;
		}
	}
	return false;
}

// CPUs used by those of the job's processes that neither train, prepare batches nor, unless
// `copies`, are copies of a process that does. Those that used little do not matter. With `copies`,
// without those of loader workers.
static double helpers_cpus(const struct analysis *a, const struct stretch *stretch, bool copies)
{
	double sum = 0;
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		double cpus = row->cpu_seconds / stretch_seconds(stretch);
		bool counts = row->role == ROLE_HELPER || (copies && row->role == ROLE_CHILD);
		if (counts && cpus >= HELPER_CPUS && !(copies && is_of_loader(a, row))) {
			sum += known_or_zero(rate_over(
				a->tables.reader, &a->stops, row->entity, NAME_CPU_TIME, stretch));
		}
	}
	return sum;
}

static void fill_cpus(const struct analysis *a, struct facts *f, const struct stretch *stretch)
{
	static const char *const modes[] = {"user", "nice", "system", "irq", "softirq", "steal"};
	const struct overview *o = &a->overview;
	int64_t host = tables_first(&a->tables, ENTITY_HOST), main = analysis_trainer(a);
	f->duration_s = o->running_s;
	f->cpus = o->cpus;
	f->cpus_given = a->tables.reader ? overview_limit(a->tables.reader, "cpu_count") : NAN;
	f->throttled = o->throttled;
	f->cpus_used = rate_over(a->tables.reader, &a->stops, tables_first(&a->tables, ENTITY_JOB),
		NAME_CPU_TIME, stretch);
	f->cpus_used = isfinite(f->cpus_used) ? f->cpus_used : o->cpus_used;
	f->main_cpus = rate_over(a->tables.reader, &a->stops, main, NAME_CPU_TIME, stretch);
	f->helpers_cpus = helpers_cpus(a, stretch, false);
	f->servers_cpus = helpers_cpus(a, stretch, true);
	f->main_threads = tables_figure(&a->tables, main, NAME_THREADS, FIGURE_MAX);
	f->main_queued = rate_over(a->tables.reader, &a->stops, main, NAME_CPU_WAIT, stretch);
	f->page_faults = rate_over(a->tables.reader, &a->stops, main, NAME_MINOR_FAULTS, stretch);
	double everybody = NAN;
	for (size_t i = 0; i < ARRAY_LENGTH(modes); i++) {
		struct text name = {0};
		text_format(&name, "%s%s", NAME_HOST_CPU, modes[i]);
		everybody = words_sum(everybody,
			name.data ? rate_over(a->tables.reader, &a->stops, host, name.data, stretch)
				  : NAN);
		text_done(&name);
	}
	f->host_cpus = isfinite(o->host_cpus) ? fmax(o->host_cpus, o->cpus) : o->cpus;
	if (isfinite(everybody)) {
		f->host_others_cpus = fmax(0, everybody - f->cpus_used);
		f->others_cpus = fmax(0, f->host_others_cpus - (f->host_cpus - f->cpus));
	}
	f->stolen_cpus = rate_over(
		a->tables.reader, &a->stops, host, NAME_HOST_CPU "steal", stretch);
	f->cpu_stalled = rate_over(
		a->tables.reader, &a->stops, host, NAME_PRESSURE "cpu.some", stretch);
}

static void fill_storage(const struct analysis *a, struct facts *f, const struct stretch *stretch)
{
	int64_t job = tables_first(&a->tables, ENTITY_JOB),
		host = tables_first(&a->tables, ENTITY_HOST);
	struct storage_facts *s = &f->storage;
	s->read_rate = rate_over(a->tables.reader, &a->stops, job, NAME_READ_STORAGE, stretch);
	s->written_rate = rate_over(a->tables.reader, &a->stops, job, NAME_WRITE_STORAGE, stretch);
	s->asked_rate = rate_over(a->tables.reader, &a->stops, job, NAME_READ_ASKED, stretch);
	s->read_limit = overview_disk_read_limit(a->tables.reader);
	s->refault_rate = PAGE_BYTES *
	                  rate_over(a->tables.reader, &a->stops, job, NAME_REFAULTS, stretch);
	s->refaults_of_host = PAGE_BYTES * rate_over(a->tables.reader, &a->stops, host,
						   NAME_HOST_REFAULTS, stretch);
	s->stalled = rate_over(
		a->tables.reader, &a->stops, job, NAME_JOB_PRESSURE "io.some", stretch);
	s->stalled_of_job = isfinite(s->stalled);
	if (!s->stalled_of_job) {
		s->stalled = rate_over(
			a->tables.reader, &a->stops, host, NAME_PRESSURE "io.some", stretch);
	}
}

#define HOST_PART 0.1 // of the memory that the job may use
#define HOST_READS 1e6 // bytes per second

static void fill_memory(const struct analysis *a, struct facts *f, const struct stretch *stretch)
{
	const struct overview *o = &a->overview;
	int64_t job = tables_first(&a->tables, ENTITY_JOB),
		host = tables_first(&a->tables, ENTITY_HOST);
	struct memory_facts *m = &f->memory;
	m->limit_bytes = o->memory_limit_bytes;
	m->limited = o->memory_limit_is_cgroup;
	m->peak_bytes = o->memory.peak_bytes;
	m->limit_hits = tables_figure(&a->tables, job, NAME_MEMORY_LIMIT_HITS, FIGURE_TOTAL);
	m->stalled = rate_over(
		a->tables.reader, &a->stops, job, NAME_JOB_PRESSURE "memory.full", stretch);
	// The pressure of the host may be that of others: a job that holds little memory and reads
	// little from storage has no part in it.
	bool large = m->peak_bytes >= HOST_PART * m->limit_bytes;
	bool reads = f->storage.read_rate >= HOST_READS;
	if (!isfinite(m->stalled) && (large || reads)) {
		m->stalled = rate_over(
			a->tables.reader, &a->stops, host, NAME_PRESSURE "memory.full", stretch);
	}
	m->shared_bytes = tables_figure(&a->tables, job, NAME_SHMEM, FIGURE_MAX);
	m->shared_limit_bytes = overview_limit(a->tables.reader, "shared_memory_bytes");
	m->swap_rate = PAGE_BYTES *
	               rate_over(a->tables.reader, &a->stops, host, NAME_HOST_SWAP_IN, stretch);
}

// An address of a peer; NULL: it has none, or no such text.
static const char *address_of(const struct entity *peer, const char *attribute)
{
	enum { ADDRESS_MOST = 63 };
	const char *text = entity_text(peer, attribute);
	return text && strlen(text) <= ADDRESS_MOST ? text : NULL;
}

void network_facts_fill(
	const struct analysis *a, const struct stretch *stretch, struct network_facts *ret)
{
	enum { PEERS_MOST = 256 }; // more than a recorder follows
	double least_s = NAN;
	size_t peers = 0;
	*ret = network_none;
	for (size_t i = 0; i < a->tables.entities.n && peers < PEERS_MOST; i++) {
		const struct entity *peer = &a->tables.entities.items[i];
		bool service = isfinite(entity_number(peer, "service")); // no rank
		if (peer->kind != ENTITY_NETWORK || !entity_flag(peer, "peer") || service) {
			continue;
		}
		peers++;
		double busy = rate_over(
			a->tables.reader, &a->stops, peer->id, NAME_TCP_BUSY, stretch);
		least_s = fmin(least_s, tables_figure(&a->tables, peer->id,
						NAME_TCP_ROUND_TRIP_LEAST, FIGURE_MEAN));
		if (!isfinite(busy) || busy <= ret->busy) {
			continue;
		}
		double sent = rate_over(
			a->tables.reader, &a->stops, peer->id, NAME_TCP_SENT, stretch);
		*ret = (struct network_facts){
			.busy = fmin(1, busy),
			.busy_rate = busy > 0 ? sent / busy : NAN,
			.sent_rate = sent,
			.round_trip_s = tables_figure(
				&a->tables, peer->id, NAME_TCP_ROUND_TRIP, FIGURE_MEAN),
			.retransmitted = rate_over(a->tables.reader, &a->stops, peer->id,
				NAME_TCP_RETRANSMITTED, stretch),
			.network_namespace = entity_number(peer, "namespace"),
			.local = address_of(peer, "local"),
			.peer = address_of(peer, "remote"),
		};
	}
	ret->least_round_trip_s = least_s;
}

// Settings ----------------------------------------------------------------------------------------

// From "Prefetch Batch ParallelMap Shuffle": from the batches back to the source.
static struct pipeline_facts stages_of(const char *text)
{
	struct pipeline_facts stages = {.known = text && *text, .parallel = true};
	bool batched = false;
	for (const char *at = text; stages.known && *at;) {
		size_t length = strcspn(at, " ");
		struct cursor word = cursor_of(at, length);
		bool map = cursor_is(word, "Map"), parallel = cursor_is(word, "ParallelMap");
		stages.ahead = stages.ahead ||
		               (!batched && !stages.mapped && cursor_is(word, "Prefetch"));
		stages.mapped = stages.mapped || map || parallel;
		stages.parallel = stages.parallel && !map;
		stages.each = stages.each || (batched && (map || parallel));
		batched = batched || cursor_is(word, "Batch") || cursor_is(word, "PaddedBatch") ||
		          cursor_is(word, "ParallelBatch");
		at += length + strspn(at + length, " ");
	}
	return stages;
}

// Whether a key of the run has this value.
static bool key_is(struct reader *r, const char *key, const char *value)
{
	const char *found = reader_run(r, key);
	return found && strcmp(found, value) == 0;
}

// A variable of the training process's environment. A script or a launcher (torchrun) may set
// another value than the job's environment has.
static const char *variable_of(struct reader *r, const char *of_process, const char *of_job)
{
	const char *value = reader_run(r, of_process);
	return value ? value : reader_run(r, of_job);
}

static double threads_set(struct reader *r)
{
	const char *value = variable_of(r, "process_omp_num_threads", "omp_num_threads");
	int64_t threads;
	bool is = value && parse_integer(value, 1, INT32_MAX, &threads, NULL) == 0;
	return is ? (double)threads : NAN;
}

bool facts_one_thread(const struct facts *f, double feeding, bool set_to_one)
{
	return !(f->main_cpus >= SEVERAL) && (f->main_threads - feeding < 2 || set_to_one);
}

// PyTorch feeds each loader worker by a thread of its own. Further threads may compute, or belong
// to a library that never does.
static bool computes_with_one_thread(struct reader *r, const struct facts *f)
{
	double feeding = reader_run(r, "loader_workers") ? f->workers.feeding / fmax(1, f->ranks.n)
	                                                 : 0;
	return facts_one_thread(f, feeding, threads_set(r) == 1);
}

// The path in "reference /usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0"; NULL for another
// library.
static const char *reference_blas(struct reader *r)
{
	static const char word[] = "reference ";
	const char *blas = reader_run(r, "blas");
	return blas && strncmp(blas, word, strlen(word)) == 0 ? blas + strlen(word) : NULL;
}

// The framework in "pytorch 1.13.0: data, backward"; of several, PyTorch, since it has a loader.
static enum framework framework_of(const char *hooks)
{
	static const struct {
		const char *word;
		enum framework framework;
	} words[] = {
		{"pytorch", FRAMEWORK_PYTORCH}, {"keras", FRAMEWORK_KERAS}, {"jax", FRAMEWORK_JAX}};
	for (size_t i = 0; hooks && i < ARRAY_LENGTH(words); i++) {
		if (strstr(hooks, words[i].word)) {
			return words[i].framework;
		}
	}
	return FRAMEWORK_UNKNOWN;
}

// Whether epochs of full length wait for workers that start with each, too, where `strain advise`
// shortened them. They have `loader_batches` (0: endless or unknown).
static bool starts_matter(struct reader *r, const struct facts *f)
{
	int64_t batches = reader_run_i64(r, "loader_batches", 0);
	double longer = (double)batches / f->epoch_iterations;
	return batches > 0 && f->data_at_epochs / fmax(1, longer) >= WORTH;
}

// "308 in 5": 61.6. NAN: no such text.
static double ratio_in(const char *text)
{
	struct cursor at = cursor_of(text ? text : "", text ? strlen(text) : 0);
	uint64_t some, of;
	bool told = cursor_u64(&at, &some) && cursor_literal(&at, " in ") && cursor_u64(&at, &of) &&
	            of > 0;
	return told ? (double)some / (double)of : NAN;
}

static void fill_settings(struct reader *r, struct facts *f)
{
	const char *hooks = reader_run(r, "hooks");
	f->reference_blas = reference_blas(r);
	f->malloc_map = variable_of(r, "process_malloc_mmap_threshold", "malloc_mmap_threshold");
	f->malloc_trim = variable_of(r, "process_malloc_trim_threshold", "malloc_trim_threshold");
	f->unit = unit_of_samples(r);
	int64_t tensors = reader_run_i64(r, "loader_batch_tensors", 0);
	f->batch_tensors = tensors > 0 ? (double)tensors : NAN;
	int64_t prefetch = reader_run_i64(r, "loader_prefetch_factor", 0);
	f->prefetch = prefetch > 0 ? (double)prefetch : NAN;
	int64_t padding = reader_run_i64(r, "loader_padding", 0);
	int64_t elements = reader_run_i64(r, "loader_padding_of", 0);
	f->padding = padding > 0 && elements > padding ? (double)padding / (double)elements : NAN;
	int64_t common = reader_run_i64(r, "loader_padding_common", 0);
	bool columns = common > 0 && common <= padding && elements > padding;
	f->padding_common = columns ? (double)common / (double)elements : NAN;
	int64_t rows = reader_run_i64(r, "loader_padding_rows", 0);
	f->padded_length = rows > 0 && elements > rows ? (double)elements / (double)rows : NAN;
	int64_t updated = reader_run_i64(r, "optimizer_parameters", 0);
	int64_t omitted = reader_run_i64(r, "optimizer_parameters_omitted", 0);
	if (updated > 0 && omitted > 0) {
		f->parameters = (double)updated;
		f->parameters_omitted = (double)omitted;
	}
	int64_t embeddings = reader_run_i64(r, "optimizer_embeddings", 0);
	f->embeddings = embeddings > 0 ? (double)embeddings : NAN;
	int64_t zeros = reader_run_i64(r, "optimizer_zeros", 0);
	int64_t looked_at = reader_run_i64(r, "optimizer_zeros_of", 0);
	int64_t matrix = reader_run_i64(r, "optimizer_zeros_elements", 0);
	if (zeros > 0 && looked_at >= zeros && matrix >= looked_at) {
		f->matrix_elements = (double)matrix;
		f->matrix_zeros = (double)zeros / (double)looked_at;
	}
	int64_t callbacks = reader_run_i64(r, "optimizer_callbacks", 0);
	f->callbacks = callbacks > 0 ? (double)callbacks : NAN;
	f->callback_at = reader_run(r, "optimizer_callback_at");
	int64_t reads = reader_run_i64(r, "device_reads", 0);
	f->reads = reads > 0 ? (double)reads : NAN;
	f->reads_at = reader_run(r, "device_reads_at");
	f->compile_limit_at = reader_run(r, "compile_limit_at");
	int64_t graphs = reader_run_i64(r, "compile_limit", 0);
	f->compile_limit = graphs > 0 ? (double)graphs : NAN;
	f->eager = key_is(r, "compile_eager", "1");
	f->compiled = hooks && strstr(hooks, ", torch.compile");
	f->uncompiled = reader_run_i64(r, "optimizer_uncompiled", 0) == 1;
	f->allocations = ratio_in(reader_run(r, "device_allocations"));
	int64_t passes = reader_run_i64(r, "optimizer_backwards", 0);
	int64_t kept = reader_run_i64(r, "optimizer_backwards_kept", 0);
	if (kept > 0 && passes >= kept) {
		f->backward_passes = (double)passes;
		f->backward_kept = (double)kept;
	}
	int64_t synced = reader_run_i64(r, "optimizer_backwards_synced", 0);
	f->backward_synced = synced > 1 ? (double)synced : NAN;
	f->debug_settings = reader_run(r, "debug_settings");
	f->denormals = reader_run_i64(r, "optimizer_denormal_steps", 0) >= DENORMAL_STEPS;
	int64_t zeroed = reader_run_i64(r, "optimizer_passes_zeroed", 0);
	int64_t used = reader_run_i64(r, "optimizer_passes_used", 0);
	if (zeroed > 0 && used > 0) {
		const char *model = reader_run(r, "optimizer_zeroed_model");
		f->backward_wasted = (double)zeroed / ((double)zeroed + (double)used);
		f->wasted_last = model && strcmp(model, "last") == 0;
	}
	f->loader_at = reader_run(r, "loader_at");
	f->loader_words = setting_words_of(reader_run(r, "loader_library"));
	f->stages = stages_of(reader_run(r, "loader_pipeline"));
	f->wait_policy = variable_of(r, "process_omp_wait_policy", "omp_wait_policy");
	f->omp_threads = threads_set(r);
	f->framework = framework_of(hooks);
	// Its hooks mark backward only where nothing is compiled (strain_tape.py).
	f->eager_tape = f->framework == FRAMEWORK_KERAS && facts_share(f, PHASE_BACKWARD) > 0;
	f->pipeline = f->framework == FRAMEWORK_KERAS && !f->loader_at;
	// TensorFlow's and XLA's pools have settings of their own.
	f->openmp = f->framework == FRAMEWORK_UNKNOWN || f->framework == FRAMEWORK_PYTORCH;
	f->one_thread = !f->pipeline && computes_with_one_thread(r, f);
	bool shortened = hooks && strstr(hooks, "epochs shortened");
	f->workers.restart = f->workers.n > 0 && key_is(r, "loader_persistent_workers", "0") &&
	                     (!shortened || starts_matter(r, f));
}

// CPU use of threads comes from clocks, which are exact, and known even without samples.
static void fill_code(const struct analysis *a, const struct code_profile *profile, int64_t main,
	const struct stretch *stretch, struct facts *ret)
{
	code_facts_put(&profile->groups[CODE_LEADER], &ret->code);
	code_facts_put(&profile->groups[CODE_THREADS], &ret->code_threads);
	code_facts_put(&profile->groups[CODE_WORKERS], &ret->code_workers);
	ret->code.cpus = rate_over(a->tables.reader, &a->stops, main, NAME_CPU_LEADER, stretch);
	ret->code_threads.cpus = fmax(0, ret->main_cpus - ret->code.cpus);
	if (!isfinite(ret->code.cpus)) {
		ret->code_threads.cpus = NAN;
	}
	ret->code_workers.cpus = ret->workers.cpus;
	const struct code_top *tops = profile->groups[CODE_LEADER].tops;
	memcpy(ret->functions, tops, sizeof(ret->functions));
	ret->double_precision = profile_multiplies_doubles(profile);
	for (size_t i = 0; i < CODE_TOPS && !*ret->native; i++) {
		bool native = tops[i].class == CODE_OTHER || tops[i].class == CODE_DECODING;
		if (tops[i].samples > 0 && native) {
			snprintf(ret->native, sizeof(ret->native), "%s", tops[i].name);
		}
	}
}

// The CPUs that so many samples in a phase are, as a share of the iterations' time. Samples are
// those of the whole run.
static double cpus_in_phase(const struct code_time *t, const struct analysis *a,
	enum phase_id phase, uint64_t samples, const struct facts *f)
{
	double cpu_s = (double)samples / CODE_SAMPLES_A_SECOND / f->ranks.n;
	double share = cpu_s / a->phases.items[phase].total_s * facts_share(f, phase);
	return t->phase_samples > 0 && isfinite(share) ? share : NAN;
}

// The share of the iterations' time in which training processes run code of two classes in a phase.
static double code_in_phase(const struct code_time *t, const struct analysis *a,
	enum phase_id phase, enum code_class one, enum code_class other, const struct facts *f)
{
	const uint64_t *by_class = t->phases[phase].by_class;
	double cpus = cpus_in_phase(t, a, phase, by_class[one] + by_class[other], f);
	return isfinite(cpus) ? fmin(cpus, facts_share(f, phase)) : NAN;
}

static void fill_short_calls(
	const struct analysis *a, const struct code_time *time, struct facts *f)
{
	struct short_calls calls;
	if (short_calls_load(a, PHASE_OTHER, &calls) < 0) {
		return;
	}
	f->python_in_other = cpus_in_phase(time, a, PHASE_OTHER, calls.interpreter, f);
	f->arithmetic_in_other = cpus_in_phase(time, a, PHASE_OTHER, calls.arithmetic, f);
	f->calls_in_other = cpus_in_phase(time, a, PHASE_OTHER, short_calls_samples(&calls), f);
	f->arrays_in_other = cpus_in_phase(time, a, PHASE_OTHER, calls.arrays, f);
	if (calls.samples - calls.kernel >= SAMPLES_ENOUGH) {
		f->kernel_in_other = (double)calls.kernel / (double)(calls.samples - calls.kernel);
	}
	if (f->arrays_in_other > f->native_in_other) {
		snprintf(f->native, sizeof(f->native), "NumPy");
	}
	struct short_calls forward, backward;
	if (short_calls_load(a, PHASE_FORWARD, &forward) < 0 ||
		short_calls_load(a, PHASE_BACKWARD, &backward) < 0) {
		return;
	}
	uint64_t of_forward = short_calls_samples(&forward);
	uint64_t of_backward = short_calls_of_engine(&backward);
	f->calls_of_steps = (double)(of_forward + of_backward) /
	                    (double)(forward.samples + backward.samples);
	f->calls_in_steps = words_sum(cpus_in_phase(time, a, PHASE_FORWARD, of_forward, f),
		cpus_in_phase(time, a, PHASE_BACKWARD, of_backward, f));
	f->python_in_steps = words_sum(
		cpus_in_phase(time, a, PHASE_FORWARD, forward.interpreter, f),
		cpus_in_phase(time, a, PHASE_BACKWARD, backward.interpreter, f));
}

static void add_top(struct code_top tops[CODE_TOPS], const struct code_top *more)
{
	size_t i = 0;
	while (i < CODE_TOPS && tops[i].samples > 0 && strcmp(tops[i].name, more->name) != 0) {
		i++;
	}
	if (i < CODE_TOPS) {
		uint64_t before = tops[i].samples;
		tops[i] = *more;
		tops[i].samples += before;
	}
}

static int top_compare(const void *left, const void *right)
{
	uint64_t a = ((const struct code_top *)left)->samples;
	uint64_t b = ((const struct code_top *)right)->samples;
	return (a < b) - (a > b);
}

// What the training thread runs in iterations, by its phases. A slice of half a second and more has
// several short epochs and what is between them: its samples are of both.
static void unmix_code(
	const struct code_profile *profile, const struct code_time *time, struct facts *f)
{
	struct code_group_samples all = {0};
	struct code_top tops[CODE_TOPS] = {0};
	uint64_t threads = profile->groups[CODE_THREADS].samples;
	for (size_t i = 0; i < N_KNOWN_PHASES; i++) {
		const struct code_group_samples *phase = &time->phases[i];
		bool apart = phase_id_is_apart((enum phase_id)i);
		all.samples += apart ? 0 : phase->samples;
		for (size_t k = 0; k < N_CODE_CLASSES && !apart; k++) {
			all.by_class[k] += phase->by_class[k];
		}
		for (size_t k = 0; k < phase->n_tops && !apart; k++) {
			add_top(tops, &phase->tops[k]);
		}
	}
	bool mixed = profile->within < SLICES_WITHIN && f->parts &&
	             (double)threads <= THREADS_FEW * (double)f->code.samples;
	if (mixed && all.samples >= SAMPLES_ENOUGH) {
		double cpus = f->code.cpus;
		qsort(tops, CODE_TOPS, sizeof(*tops), top_compare);
		code_facts_put(&all, &f->code);
		f->code.cpus = cpus;
		memcpy(f->functions, tops, sizeof(tops));
	}
}

static void fill_code_by_phase(
	const struct analysis *a, const struct code_profile *profile, struct facts *f)
{
	struct code_time time;
	if (!a->tables.reader || code_time_load(a, &time) < 0) {
		return;
	}
	f->native_in_other = code_in_phase(&time, a, PHASE_OTHER, CODE_OTHER, CODE_DECODING, f);
	f->python_in_data = code_in_phase(
		&time, a, PHASE_DATA, CODE_INTERPRETER, CODE_COLLECTION, f);
	uint64_t samples = 0;
	for (size_t i = 0; i < N_CODE_CLASSES; i++) {
		samples += time.phases[PHASE_OTHER].by_class[i];
	}
	f->all_in_other = cpus_in_phase(&time, a, PHASE_OTHER, samples, f);
	f->system_in_other = cpus_in_phase(
		&time, a, PHASE_OTHER, time.phases[PHASE_OTHER].by_class[CODE_SYSTEM], f);
	unmix_code(profile, &time, f);
	fill_short_calls(a, &time, f);
	code_time_done(&time);
}

static bool trains_in_python(const struct analysis *a)
{
	int64_t trainer = analysis_trainer(a);
	for (size_t i = 0; i < a->processes.n; i++) {
		if (a->processes.items[i].entity == trainer) {
			return process_row_is_python(&a->processes.items[i]);
		}
	}
	return false;
}

struct stretch facts_stretch(const struct analysis *a)
{
	struct stretch stretch = steady_of(&a->phases);
	return stretch.to_us > 0
	               ? stretch
	               : (struct stretch){.to_us = (int64_t)(a->overview.recorded_s * 1e6)};
}

struct line_group { // the lines of a function in one phase
	const struct script_line *top; // the most frequent one
	uint64_t samples;
	bool loop; // some lines of the function call backward, the optimizer or the loader
};

static bool is_outside_functions(const struct script_line *line)
{
	return strcmp(line->function, "<module>") == 0;
}

// Lines outside of functions have nothing in common, except with themselves.
static bool same_function(const struct script_line *one, const struct script_line *other)
{
	bool same_phase = one->phase && other->phase ? strcmp(one->phase, other->phase) == 0
	                                             : one->phase == other->phase;
	return same_phase && strcmp(one->function, other->function) == 0 &&
	       strcmp(one->file, other->file) == 0 && !is_outside_functions(one);
}

static int compare_groups(const void *left, const void *right)
{
	const struct line_group *one = left, *other = right;
	int order = (one->samples < other->samples) - (one->samples > other->samples);
	return order ? order : (one->top > other->top) - (one->top < other->top);
}

static bool is_call(const char *phase)
{
	return phase && (strcmp(phase, "backward") == 0 || strcmp(phase, "optimizer") == 0 ||
				strcmp(phase, "data") == 0 || strcmp(phase, "step") == 0);
}

static bool calls_phases(const struct script_line *line, const struct line_group *groups, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct script_line *other = groups[i].top;
		if (is_call(other->phase) && strcmp(other->function, line->function) == 0 &&
			strcmp(other->file, line->file) == 0) {
			return true;
		}
	}
	return false;
}

// Sorted, the most frequent first. Returns their number.
static size_t group_lines(
	const struct script_lines *shares, struct line_group ret[static SCRIPT_LINES_MAX])
{
	size_t n = 0;
	for (size_t i = 0; i < shares->n; i++) {
		size_t at = 0;
		while (at < n && !same_function(ret[at].top, &shares->items[i])) {
			at++;
		}
		if (at == n) {
			ret[n++] = (struct line_group){.top = &shares->items[i]};
		}
		ret[at].samples += shares->items[i].samples;
	}
	qsort(ret, n, sizeof(*ret), compare_groups);
	for (size_t i = 0; i < n; i++) {
		ret[i].loop = calls_phases(ret[i].top, ret, n);
	}
	return n;
}

static void put_place(
	const struct script_lines *shares, const struct script_line *line, char *ret, size_t size)
{
	bool function = !is_outside_functions(line);
	snprintf(ret, size, "%.60s:%lld%s%.60s%s", script_lines_short(shares, line->file),
		(long long)line->line, function ? " " : "", function ? line->function : "",
		function ? "()" : "");
}

// looks: of which its samples are a share.
static void put_line(const struct script_lines *shares, const struct line_group *group,
	uint64_t looks, struct line_place *ret)
{
	ret->share = (double)group->samples / (double)looks;
	ret->error = sqrt(ret->share * (1 - ret->share) / (double)looks);
	ret->loop = group->loop;
	put_place(shares, group->top, ret->place, sizeof(ret->place));
	if (group->top->phase) {
		snprintf(ret->phase, sizeof(ret->phase), "%s", group->top->phase);
	}
}

// The most frequent one of a phase; "": outside of all phases, which has no name.
static void fill_line_in(const char *phase, const struct script_lines *shares,
	const struct line_group *groups, size_t n, struct line_place *ret)
{
	const struct line_group *top = NULL;
	uint64_t looks = 0;
	for (size_t i = 0; i < n; i++) {
		const char *in = groups[i].top->phase ? groups[i].top->phase : "";
		if (strcmp(in, phase) == 0) {
			looks += groups[i].samples;
			top = top ? top : &groups[i];
		}
	}
	if (top && looks >= LOOKS_ENOUGH) {
		put_line(shares, top, looks, ret);
	}
}

// The line of a function that was seen most, other than one; NULL: there is none. Lines are sorted.
static const struct script_line *second_line(
	const struct script_lines *shares, const struct script_line *first)
{
	for (size_t i = 0; i < shares->n; i++) {
		if (&shares->items[i] != first && same_function(&shares->items[i], first)) {
			return &shares->items[i];
		}
	}
	return NULL;
}

// The function of the script with most of the looks in a phase that called it.
static void fill_own(const char *phase, const struct script_lines *shares,
	const struct line_group *groups, size_t n, struct line_place *ret)
{
	const struct line_group *top = NULL;
	uint64_t looks = 0;
	for (size_t i = 0; i < n; i++) {
		const char *in = groups[i].top->phase ? groups[i].top->phase : "";
		bool own = strncmp(in, "own ", 4) == 0 && strcmp(in + 4, phase) == 0;
		looks += own || strcmp(in, phase) == 0 ? groups[i].samples : 0;
		top = own && !top ? &groups[i] : top;
	}
	if (top && looks >= LOOKS_ENOUGH) {
		put_line(shares, top, looks, ret);
	}
}

// A line or two, not their function, which may be all of the model.
static void fill_forward_line(const struct script_lines *shares, const struct line_group *groups,
	size_t n, struct line_place *ret)
{
	const struct line_group *top = NULL;
	uint64_t looks = 0;
	for (size_t i = 0; i < n; i++) {
		const char *in = groups[i].top->phase;
		if (in && strcmp(in, "forward") == 0) {
			looks += groups[i].samples;
			top = !top || groups[i].top->samples > top->top->samples ? &groups[i] : top;
		}
	}
	if (!top || looks < LOOKS_ENOUGH) {
		return;
	}
	struct line_group lines = {top->top, top->top->samples, top->loop};
	const struct script_line *second = second_line(shares, top->top);
	put_line(shares, &lines, looks, ret);
	if (second && ret->share - ret->error < MOST) {
		lines.samples += second->samples;
		put_line(shares, &lines, looks, ret);
		int64_t one = top->top->line, other = second->line;
		snprintf(ret->place, sizeof(ret->place), "%.60s:%lld and %lld %.60s()",
			script_lines_short(shares, top->top->file),
			(long long)(one < other ? one : other),
			(long long)(one < other ? other : one), top->top->function);
	}
}

static void fill_main_line(const struct script_lines *shares, const struct line_group *groups,
	size_t n, struct line_facts *ret)
{
	uint64_t backward = 0, again = 0;
	for (size_t i = 0; i < n; i++) {
		const char *phase = groups[i].top->phase ? groups[i].top->phase : "";
		bool in = strcmp(phase, "backward") == 0 || strcmp(phase, "own backward") == 0;
		backward += in ? groups[i].samples : 0;
		again += strcmp(phase, "recomputed") == 0 ? groups[i].samples : 0;
		ret->phased |= strcmp(phase, "step") == 0 || strcmp(phase, "data") == 0;
		if (!*ret->main.place && !groups[i].loop) {
			put_line(shares, &groups[i], shares->samples, &ret->main);
		}
	}
	uint64_t looks = backward + again;
	ret->in_backward = looks > 0 ? (double)looks / (double)shares->samples : 0;
	ret->recomputed = looks >= LOOKS_ENOUGH ? (double)again / (double)looks : NAN;
}

static void fill_lines_of(const struct analysis *a, enum script_lines_of of, struct line_facts *ret)
{
	struct script_lines shares;
	struct line_group groups[SCRIPT_LINES_MAX];
	if (script_lines_load(a, of, &shares) < 0) {
		return;
	}
	size_t n = group_lines(&shares, groups);
	ret->looks = shares.samples;
	ret->of_trainer = shares.of_trainer;
	for (size_t i = 0; i < n && i < LINE_TOPS; i++) {
		put_line(&shares, &groups[i], shares.samples, &ret->tops[ret->n_tops++]);
	}
	fill_main_line(&shares, groups, n, ret);
	fill_line_in("", &shares, groups, n, &ret->outside);
	fill_line_in(
		of == SCRIPT_LINES_THREADS ? "pipeline" : "data", &shares, groups, n, &ret->data);
	fill_forward_line(&shares, groups, n, &ret->forward);
	fill_own("backward", &shares, groups, n, &ret->backward);
	fill_own("optimizer", &shares, groups, n, &ret->optimizer);
	script_lines_done(&shares);
}

static void fill_lines(const struct analysis *a, struct facts *f)
{
	fill_lines_of(a, SCRIPT_LINES_TRAINER, &f->lines);
	fill_lines_of(a, SCRIPT_LINES_THREADS, &f->thread_lines);
	fill_lines_of(a, SCRIPT_LINES_LOADERS, &f->worker_lines);
	if (f->lines.of_trainer && isfinite(f->main_threads)) {
		f->main_threads = fmax(1, f->main_threads - 1); // the sampling thread
	}
}

// JAX has no loader: its hooks mark as data all time between two compiled calls. Around a short
// step, that is mostly the way into the calls and out of them.
void facts_doubt_data(struct facts *f)
{
	struct estimate *data = &f->share[PHASE_DATA], *other = &f->share[PHASE_OTHER];
	if (f->framework == FRAMEWORK_JAX && f->length_s.value < SHORT_STEP_S &&
		isfinite(data->value)) {
		const struct estimate all = {data->value + known_or_zero(other->value),
			data->low + known_or_zero(other->low),
			data->high + known_or_zero(other->high)};
		*other = all;
		*data = (struct estimate){NAN, NAN, NAN};
		f->lines.outside = f->lines.data;
		f->lines.data = (struct line_place){0};
	}
}

// It also returns from a step before it has computed, and waits where the script uses a result, or
// when enough steps are queued: often between two steps. Such a wait is computing.
void facts_doubt_waits(struct facts *f)
{
	struct estimate *data = &f->share[PHASE_DATA], *step = &f->share[PHASE_STEP];
	double pool = known_or_zero(f->threads.groups[THREADS_POOL].cpus);
	double waits = fmin(known_or_zero(f->waits.in_data[WAIT_OTHER]), data->value);
	bool computes = pool >= POOL_COMPUTES && pool >= MOST * f->threads.others_cpus;
	if (f->framework == FRAMEWORK_JAX && !f->gpu.used && f->workers.n == 0 && computes &&
		waits >= MOST * data->value) {
		step->value = known_or_zero(step->value) + waits;
		step->low = known_or_zero(step->low) + waits;
		step->high = known_or_zero(step->high) + waits;
		data->value -= waits;
		data->low = fmax(0, data->low - waits);
		data->high -= waits;
		f->computing_in_data = waits;
	}
}

void facts_doubt_gpu(struct facts *f)
{
	static const enum code_class own[] = {CODE_KERNELS, CODE_FRAMEWORK, CODE_INTERPRETER};
	double computes = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(own); i++) {
		computes += known_or_zero(f->code.share[own[i]]);
	}
	computes *= fmin(1, known_or_zero(f->code.cpus) + known_or_zero(f->main_queued));
	// A loop that launches kernels computes, too, but partly in the driver.
	bool told = f->gpu.n_used > 0 || f->gpu.held || f->code.samples < SAMPLES_ENOUGH ||
	            f->code.share[CODE_DRIVER] >= DRIVER_CALLS;
	f->gpu.used = f->gpu.used && (told || computes < MOST);
}

void facts_gather(const struct analysis *a, struct facts *ret)
{
	facts_init(ret);
	fill_phases(&a->phases, ret);
	fill_ranks(&a->phases, ret);
	ret->ranks.world = labels_world(a->overview.labels, a->overview.n_labels);
	ret->python = trains_in_python(a);
	struct stretch stretch = facts_stretch(a);
	fill_cpus(a, ret, &stretch);
	quota_facts_fill(a, &stretch, ret);
	worker_facts_fill(a, analysis_trainer(a), &stretch, ret);
	wait_facts_fill(a, analysis_trainer(a), &stretch, ret);
	struct code_profile profile;
	(void)profile_load(a, &stretch, &profile); // out of memory: no samples
	fill_code(a, &profile, analysis_trainer(a), &stretch, ret);
	fill_code_by_phase(a, &profile, ret);
	fill_storage(a, ret, &stretch);
	fill_memory(a, ret, &stretch);
	network_facts_fill(a, &stretch, &ret->network);
	gpu_facts_fill(a, &stretch, &ret->gpu);
	if (a->growth.leak) {
		ret->growth = a->growth;
	}
	if (a->gpu_growth.leak) {
		ret->gpu_growth = a->gpu_growth;
	}
	const struct machine_bounds bounds = plausible_bounds(
		&a->tables, &a->overview, stretch_seconds(&stretch));
	facts_check_plausible(&bounds, ret, a->implausible);
	fill_lines(a, ret);
	if (a->tables.reader) {
		fill_settings(a->tables.reader, ret);
	}
	// PyTorch's frames tell the phases of lines; those of other frameworks only with the hooks
	// of newer recordings.
	if (ret->framework != FRAMEWORK_PYTORCH && !ret->lines.phased) {
		ret->lines.outside = ret->lines.data = ret->lines.main = (struct line_place){0};
		ret->lines.forward = ret->lines.backward = (struct line_place){0};
		ret->lines.optimizer = (struct line_place){0};
	}
	facts_doubt_data(ret);
	thread_facts_fill(a, analysis_trainer(a), &stretch, ret);
	facts_doubt_gpu(ret);
	ret->gpu.reserves = ret->framework == FRAMEWORK_KERAS;
	facts_doubt_waits(ret);
}

// Quota facts -------------------------------------------------------------------------------------
//
// Two clocks show the effect of a quota. The cgroup's throttled time is summed over the CPUs on
// which a ready thread was held back. The time that threads wait for a CPU (schedstat's run delay)
// includes that before Linux 6.18, but not since (seen on 6.18: 7 ms next to 2.0 s throttled), and
// is read only of each process's leader. So the larger of the two is the demand beyond what was
// used. The demand may be higher, since several threads that wait on one CPU count once.

// The end of the path of the cgroup with the quota, from the last event about it.
static const char *find_where(const struct analysis *a)
{
	static const char before[] = " by cgroup /";
	const char *where = NULL;
	for (size_t i = 0; i < a->tables.events.n; i++) {
		const struct event_row *event = &a->tables.events.items[i];
		const char *path = strcmp(event->kind, "cpu_quota") == 0
		                           ? strstr(event->text, before)
		                           : NULL;
		where = path ? path + strlen(before) : where;
	}
	const char *slash = where ? strrchr(where, '/') : NULL;
	while (slash && slash > where && slash[-1] != '/') {
		slash--; // the last two names: one alone is often "0" or "task"
	}
	return slash ? slash : where;
}

// The mean number of the job's processes that were ready and had no CPU.
static double queued_cpus(const struct analysis *a, const struct stretch *stretch)
{
	double sum = NAN;
	for (size_t i = 0; i < a->processes.n; i++) {
		sum = words_sum(sum, rate_over(a->tables.reader, &a->stops,
					     a->processes.items[i].entity, NAME_CPU_WAIT, stretch));
	}
	return sum;
}

void quota_facts_fill(const struct analysis *a, const struct stretch *stretch, struct facts *ret)
{
	struct quota_facts *q = &ret->quota;
	const struct entity *entity = entity_first(&a->tables.entities, ENTITY_JOB);
	int64_t job = entity ? entity->id : 0;
	q->cpus = overview_quota_cpus(&a->tables);
	if (!isfinite(q->cpus)) {
		return;
	}
	q->own = tables_figure(&a->tables, job, NAME_CPU_LIMIT_INSIDE, FIGURE_P50) >= 0.5;
	q->where = find_where(a);
	double periods = rate_over(a->tables.reader, &a->stops, job, NAME_PERIODS, stretch);
	double throttled = rate_over(
		a->tables.reader, &a->stops, job, NAME_PERIODS_THROTTLED, stretch);
	q->used_up = periods > 0 ? fmin(1, throttled / periods) : a->overview.throttled;
	q->throttled_cpu_s = tables_figure(&a->tables, job, NAME_THROTTLED_TIME, FIGURE_TOTAL);
	q->throttled_cpus = rate_over(
		a->tables.reader, &a->stops, job, NAME_THROTTLED_TIME, stretch);
	q->queued_cpus = queued_cpus(a, stretch);
	q->used_cpus = ret->cpus_used;
	double asked = fmax(q->throttled_cpus, q->queued_cpus); // fmax ignores NAN
	q->needed_cpus = fmin(q->used_cpus + asked, fmax(ret->host_cpus, q->used_cpus));
}

// Plausible ---------------------------------------------------------------------------------------

#define OF_FACTS(member) offsetof(struct facts, member)

static const struct plausible_row fact_rows[] = {
	{"start-up, s", OF_FACTS(startup_s), BOUND_RUN},
	{"training, s", OF_FACTS(training_s), BOUND_RUN},
	{"validation, s", OF_FACTS(validation_s), BOUND_RUN},
	{"checkpoints, s", OF_FACTS(checkpoint_s), BOUND_RUN},
	{"CPUs that the job used while training", OF_FACTS(cpus_used), BOUND_CPUS},
	{"CPUs of the training process", OF_FACTS(main_cpus), BOUND_CPUS},
	{"CPUs that others used", OF_FACTS(host_others_cpus), BOUND_CPUS},
	{"CPUs that the hypervisor took", OF_FACTS(stolen_cpus), BOUND_CPUS},
	{"training thread ready without a CPU, share", OF_FACTS(main_queued), BOUND_SHARE},
	{"pressure on CPUs while training, share", OF_FACTS(cpu_stalled), BOUND_SHARE},
	{"loader workers, CPUs", OF_FACTS(workers.cpus), BOUND_CPUS},
	{"the busiest worker, share", OF_FACTS(workers.busiest), BOUND_SHARE},
	{"bytes per second from storage", OF_FACTS(storage.read_rate), BOUND_RATE},
	{"bytes per second to storage", OF_FACTS(storage.written_rate), BOUND_RATE},
	{"bytes per second read", OF_FACTS(storage.asked_rate), BOUND_RATE},
	{"waiting for storage, share", OF_FACTS(storage.stalled), BOUND_SHARE},
	{"waiting for memory, share", OF_FACTS(memory.stalled), BOUND_SHARE},
	{"the GPU's multiprocessors, share", OF_FACTS(gpu.sm_activity), BOUND_SHARE},
	{"the GPU's tensor cores, share", OF_FACTS(gpu.tensor_activity), BOUND_SHARE},
	{"the GPU's memory, share", OF_FACTS(gpu.dram_activity), BOUND_SHARE},
	{"GPU held down, share", OF_FACTS(gpu.throttled), BOUND_SHARE},
	{"quota used up, share", OF_FACTS(quota.used_up), BOUND_SHARE},
	{"CPUs of samples of the training thread", OF_FACTS(code.cpus), BOUND_CPUS},
	{"CPUs of samples of other threads", OF_FACTS(code_threads.cpus), BOUND_CPUS},
	{"CPUs of samples of workers", OF_FACTS(code_workers.cpus), BOUND_CPUS},
};

// Counts are of things that exist at the same time: a mean number cannot exceed them.
static void check_counts(
	const struct plausible_limits *l, struct facts *f, struct implausible_list *notes)
{
	double workers = f->workers.n * l->most[BOUND_SHARE];
	plausible_check("loader workers that prepare", &f->workers.preparing, workers, notes);
	plausible_check("loader workers that are blocked", &f->workers.blocked, workers, notes);
	plausible_check("loader workers ready without a CPU", &f->workers.queued, workers, notes);
	plausible_check("bytes per second to the GPU while training", &f->gpu.to_device_rate,
		f->gpu.link_best * PLAUSIBLE_ERROR, notes);
}

static void check_shares(
	const struct plausible_limits *l, struct facts *f, struct implausible_list *notes)
{
	double bound = l->most[BOUND_SHARE];
	for (size_t i = 0; i < N_KNOWN_PHASES; i++) {
		plausible_check("a phase of an iteration, share", &f->share[i].value, bound, notes);
	}
	for (size_t i = 0; i < N_WAITS; i++) {
		plausible_check(
			"waits of the training thread, share", &f->waits.share[i], bound, notes);
		plausible_check("waits of the training thread for a batch, share",
			&f->waits.in_data[i], bound, notes);
		plausible_check("waits of the training thread in steps, share",
			&f->waits.in_step[i], bound, notes);
		plausible_check("waits of workers, share", &f->worker_waits.share[i], bound, notes);
	}
	for (size_t i = 0; i < N_CODE_CLASSES; i++) {
		plausible_check(
			"samples of the training thread, share", &f->code.share[i], bound, notes);
		plausible_check(
			"samples of threads, share", &f->code_threads.share[i], bound, notes);
		plausible_check(
			"samples of workers, share", &f->code_workers.share[i], bound, notes);
	}
}

void facts_check_plausible(
	const struct machine_bounds *bounds, struct facts *f, struct implausible_list *notes)
{
	const struct plausible_limits limits = plausible_limits_of(bounds);
	plausible_rows(fact_rows, ARRAY_LENGTH(fact_rows), &limits, f, notes);
	check_counts(&limits, f, notes);
	check_shares(&limits, f, notes);
}

// Shares ------------------------------------------------------------------------------------------

double facts_share(const struct facts *f, enum phase_id phase)
{
	return known_or_zero(f->share[phase].value);
}

// Validation and checkpoints take no time of an iteration, but of training.
double facts_iterations_share(const struct facts *f)
{
	double apart = known_or_zero(f->validation_s) + known_or_zero(f->checkpoint_s) +
	               known_or_zero(f->between_s);
	return f->training_s > apart ? 1 - apart / f->training_s : 1;
}
