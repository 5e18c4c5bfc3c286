// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Finds the runs of a job, and joins their ranks.

#include "study/joint.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "run/analysis.h"
#include "run/names.h"
#include "run/timeline.h"
#include "runfile/labels.h"
#include "runfile/reader.h"
#include "study/parallel.h"
#include "verdict/causes.h"
#include "verdict/facts.h"

// Clocks that differ by less are not told apart from ranks that end an iteration one after another;
// so are those whose differences scatter by more than this share of an iteration.
#define CLOCK_LEAST_S 0.1
#define CLOCK_SCATTER 0.25
// Fewer common iterations show neither clocks nor who is latest.
enum { COMMON_LEAST = 8 };
// A rank is the latest of an iteration if the others waited longer than it by this share of it.
#define LATEST_MARGIN 0.03
// A phase explains a slow rank if it exceeds the others' by this share of what they wait.
#define EXPLAINS 0.25
// Of the run's time: a rank that was ready without a CPU for so much longer than others lacks CPUs.
#define CPU_WAIT_MORE 0.2
// A rank sends slowly if its data are on their way for this share of the time, and so much longer
// than the others'. (Two equal ranks over a fast network: 40 and 33 % seen.)
#define LINK_BUSY 0.4
#define LINK_BUSIER 2
// If all links are about as busy, and for this share of the time, the network is worth a line.
#define LINK_LIMITS 0.5
// A machine is far from all others if its least round trip is so much longer than theirs.
#define FAR 5
#define FAR_LEAST_S 0.001

// Choosing the runs -------------------------------------------------------------------------------

// A run that belongs to some job.
struct member {
	const struct digest *run;
	size_t place; // in the catalogue: the newest first
	char *name; // owned
	const char *label;
	char *apart; // owned; what else must be the same: the launch, the trial
	int rank; // -1: unknown
	int64_t world; // 0: unknown
};

struct members {
	struct member *items; // [n] by name, the newest first
	size_t n;
};

static void members_done(struct members *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->items[i].name);
		free(m->items[i].apart);
	}
	free(m->items);
}

static bool is_loopback(const char *address)
{
	return strncmp(address, "127.", 4) == 0 || strcmp(address, "localhost") == 0 ||
	       strcmp(address, "::1") == 0;
}

// What tells apart jobs of one name: several launches in one allocation, jobs on several machines
// whose ranks each meet on their own, trials of a sweep.
static char *find_apart(const struct digest *run)
{
	static const char *const labels[] = {"MASTER_PORT", "trial", "repeat"};
	const char *address = labels_find(run->labels, run->n_labels, "MASTER_ADDR");
	struct text apart = {0};
	text_format(&apart, "%s", address && is_loopback(address) && run->host ? run->host : "");
	for (size_t i = 0; i < ARRAY_LENGTH(labels); i++) {
		const char *value = labels_find(run->labels, run->n_labels, labels[i]);
		bool of_sweep = i == 0 || run->sweep_directory;
		text_format(&apart, "/%s", value && of_sweep ? value : "");
	}
	text_format(&apart, "/%s", run->sweep_directory ? run->sweep_directory : "");
	return text_steal(&apart);
}

// When a run ended, by its machine's clock. One that still runs, or whose length is not known, has
// no end.
static double end_of(const struct digest *run)
{
	double seconds = run->measures[MEASURE_DURATION];
	bool ended = run->state != RUN_LIVE && isfinite(seconds);
	return ended ? (double)run->start_utc_ns / 1e9 + seconds : INFINITY;
}

static bool overlap(const struct digest *a, const struct digest *b)
{
	return (double)a->start_utc_ns / 1e9 <= end_of(b) &&
	       (double)b->start_utc_ns / 1e9 <= end_of(a);
}

static bool has_name_of(const struct member *a, const struct member *b)
{
	return strcmp(a->label, b->label) == 0 && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->apart, b->apart) == 0;
}

// Whether a run belongs to the job of a newer one of its name. Runs on other machines may seem to
// have ended before, by another clock, if the launcher says that they are as many.
static bool belongs(const struct member *one, const struct member *newest)
{
	bool named = strcmp(newest->label, "job") == 0;
	bool elsewhere = one->run->host && newest->run->host && newest->world > 1 &&
	                 strcmp(one->run->host, newest->run->host) != 0;
	return one->world == newest->world && !(one->world > 0 && one->rank >= one->world) &&
	       (named || elsewhere || overlap(one->run, newest->run));
}

// The same where nobody asked for the job: runs of one allocation without ranks, and runs of other
// days that were given the same name, are not taken for one.
static bool belongs_surely(const struct member *one, const struct member *newest)
{
	bool named = strcmp(newest->label, "job") == 0;
	bool ranks = one->rank >= 0 && newest->rank >= 0;
	return belongs(one, newest) && (ranks || (named && overlap(one->run, newest->run)));
}

static int compare_members(const void *left, const void *right)
{
	const struct member *a = left, *b = right;
	int label = strcmp(a->label, b->label);
	int name = label ? label : strcmp(a->name, b->name);
	int apart = name ? name : strcmp(a->apart, b->apart);
	return apart ? apart : (a->place > b->place) - (a->place < b->place);
}

static int list_members(const struct catalogue *c, struct members *ret)
{
	ret->items = calloc(c->n + 1, sizeof(*ret->items));
	for (size_t i = 0; ret->items && i < c->n; i++) {
		const struct digest *run = &c->runs[i];
		const char *label = NULL;
		char *name = labels_job(run->labels, run->n_labels, &label);
		struct member m = {.run = run,
			.place = i,
			.name = name,
			.label = label,
			.rank = labels_rank(run->labels, run->n_labels),
			.world = labels_world(run->labels, run->n_labels)};
		m.apart = m.name ? find_apart(run) : NULL;
		if (m.name && !m.apart) {
			free(m.name);
			return -ENOMEM;
		}
		if (m.name) {
			ret->items[ret->n++] = m;
		}
	}
	if (ret->items) {
		qsort(ret->items, ret->n, sizeof(*ret->items), compare_members);
	}
	return ret->items ? 0 : -ENOMEM;
}

// Runs of one name, the newest first.
struct group {
	const struct member *items;
	size_t n;
};

// Sets ret[i] for the runs of a group that belong to the job of its run `newest`: of each rank the
// newest, since a job may have been started again under the same name. Returns their number.
static size_t mark_runs(const struct group *g, size_t newest,
	bool (*belongs_to)(const struct member *, const struct member *), bool *ret)
{
	size_t n = 0;
	for (size_t i = 0; i < g->n; i++) {
		ret[i] = i >= newest && belongs_to(&g->items[i], &g->items[newest]);
		for (size_t k = newest; k < i && ret[i] && g->items[i].rank >= 0; k++) {
			ret[i] = !(ret[k] && g->items[k].rank == g->items[i].rank);
		}
		n += ret[i];
	}
	return n;
}

// Sets ret to the newest job of several runs in a group: older attempts of it are no jobs of their
// own. False: there is none.
static bool mark_job(const struct group *g, bool *ret)
{
	for (size_t newest = 0; newest < g->n; newest++) {
		if (mark_runs(g, newest, belongs, ret) >= 2) {
			return true;
		}
	}
	return false;
}

// Whether a name is that of the job, or the first part of it: "123" of "123.0".
static bool is_named(const struct member *m, const char *name)
{
	size_t length = strlen(name);
	return strncmp(m->name, name, length) == 0 &&
	       (m->name[length] == '\0' || m->name[length] == '.');
}

static struct group group_at(const struct members *m, size_t first)
{
	struct group g = {&m->items[first], 1};
	while (first + g.n < m->n && has_name_of(&g.items[g.n], g.items)) {
		g.n++;
	}
	return g;
}

// The job to join: of those that are wanted the newest.
struct choice {
	const struct member **items; // [n] owned, the newest first
	size_t n; // 0: there is none
	size_t n_others; // other jobs
	struct text others; // names of some, the newest first
};

static void take_group(const struct group *g, const bool *marked, struct choice *ret)
{
	ret->n = 0;
	for (size_t i = 0; i < g->n; i++) {
		if (marked[i]) {
			ret->items[ret->n++] = &g->items[i];
		}
	}
}

static int compare_places(const void *left, const void *right)
{
	const struct member *a = *(const struct member *const *)left;
	const struct member *b = *(const struct member *const *)right;
	return (a->place > b->place) - (a->place < b->place);
}

// 0 or -ENOMEM. m: sorted.
static int choose(const struct members *m, const char *name, struct choice *ret)
{
	enum { NAMES_SHOWN = 5 };
	_cleanup_free_ bool *marked = calloc(m->n + 1, sizeof(*marked));
	_cleanup_free_ const struct member **jobs = calloc(m->n + 1, sizeof(struct member *));
	size_t n_jobs = 0; // each by its newest run
	ret->items = calloc(m->n + 1, sizeof(struct member *));
	if (!marked || !jobs || !ret->items) {
		return -ENOMEM;
	}
	for (size_t first = 0; first < m->n;) {
		struct group g = group_at(m, first);
		first += g.n;
		if (!mark_job(&g, marked)) {
			continue;
		}
		size_t newest = 0;
		while (!marked[newest]) {
			newest++;
		}
		jobs[n_jobs++] = &g.items[newest];
		bool wanted = !name || is_named(g.items, name);
		if (wanted && (ret->n == 0 || g.items[newest].place < ret->items[0]->place)) {
			take_group(&g, marked, ret);
		}
	}
	qsort(jobs, n_jobs, sizeof(struct member *), compare_places);
	for (size_t i = 0; i < n_jobs; i++) {
		if (ret->n > 0 && jobs[i] == ret->items[0]) {
			continue;
		}
		if (ret->n_others++ < NAMES_SHOWN) {
			text_append_string(&ret->others, ret->others.length > 0 ? ", " : "");
			text_append_printable(&ret->others, jobs[i]->name, strlen(jobs[i]->name));
		}
	}
	return ret->others.failed ? -ENOMEM : 0;
}

static void choice_done(struct choice *c)
{
	free(c->items);
	text_done(&c->others);
}

// Reading a run -----------------------------------------------------------------------------------

// Joins ranks: the epoch and the number in it, else the place among all iterations.
static int64_t number_of(const struct iteration *i)
{
	bool known = i->number >= 0 && i->number <= INT32_MAX && i->epoch < INT32_MAX - 1;
	return known ? ((i->epoch + 1) << 32) + i->number : i->place;
}

// Which iterations are kept: those whose number in the epoch, and whose epoch, are multiples of
// powers of two, so that all ranks keep the same.
struct thinning {
	int64_t each, epochs;
	int64_t longest; // the highest number in an epoch, found by count_kept
};

static bool is_kept(const struct thinning *t, int64_t number)
{
	return (number & UINT32_MAX) % t->each == 0 && (number >> 32) % t->epochs == 0;
}

static size_t count_kept(const struct phases *p, struct thinning *t)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n_iterations; i++) {
		int64_t number = number_of(&p->iterations[i]), in_epoch = number & UINT32_MAX;
		t->longest = in_epoch > t->longest ? in_epoch : t->longest;
		n += is_kept(t, number);
	}
	return n;
}

// There is room for it.
static void add_step(struct joint_rank *rank, const struct iteration *one, int64_t number)
{
	int64_t end_utc_ns;
	bool known = !__builtin_add_overflow(rank->run->start_utc_ns, one->end_ns, &end_utc_ns);
	bool ascends = rank->n_steps == 0 || number > rank->steps[rank->n_steps - 1].number;
	if (one->warm_up || one->cut || !known || !ascends ||
		rank->n_steps >= JOINT_ITERATIONS_MAX) {
		return;
	}
	rank->steps[rank->n_steps++] = (struct joint_step){
		.number = number,
		.end_utc_ns = end_utc_ns,
		.length = (double)one->length_ns / 1e9,
		.forward = (double)one->phase_ns[PHASE_FORWARD] / 1e9,
		.backward = (double)one->phase_ns[PHASE_BACKWARD] / 1e9,
		.communication = (double)one->phase_ns[PHASE_COMMUNICATION] / 1e9,
	};
}

// Keeps iterations of the only rank of a run, at most JOINT_ITERATIONS_MAX.
static int keep_steps(const struct analysis *a, struct joint_rank *ret)
{
	const struct phases *p = &a->phases;
	struct thinning t = {1, 1, 0};
	while (count_kept(p, &t) > JOINT_ITERATIONS_MAX && t.epochs < INT32_MAX) {
		*(t.each <= t.longest ? &t.each : &t.epochs) *= 2;
	}
	ret->steps = calloc(p->n_iterations + 1, sizeof(*ret->steps));
	for (size_t i = 0; ret->steps && i < p->n_iterations; i++) {
		int64_t number = number_of(&p->iterations[i]);
		if (is_kept(&t, number)) {
			add_step(ret, &p->iterations[i], number);
		}
	}
	return ret->steps ? 0 : -ENOMEM;
}

// The ranks of a run whose iterations are kept in one walk over its spans.
struct keeping {
	const struct analysis *a;
	struct joint_rank *ranks; // [n] as a->phases.ranks
	size_t n;
	struct thinning *thinning; // [n]
	bool no_room; // out of memory
};

static size_t rank_of(const struct keeping *k, const struct timeline_thread *thread)
{
	for (size_t i = 1; i < k->n && thread->index > 0; i++) {
		const struct phase_rank *rank = &k->a->phases.ranks[i];
		if (rank->entity == thread->entity && rank->pid == thread->pid &&
			rank->thread == thread->thread) {
			return i;
		}
	}
	return thread->index == 0 ? 0 : k->n; // k->n: a thread that is no rank
}

// Keeps fewer iterations of a rank, so that there is room for one more.
static void thin(struct joint_rank *rank, struct thinning *t)
{
	size_t kept = 0;
	*(t->each <= t->longest ? &t->each : &t->epochs) *= 2;
	for (size_t i = 0; i < rank->n_steps; i++) {
		if (is_kept(t, rank->steps[i].number)) {
			rank->steps[kept++] = rank->steps[i];
		}
	}
	rank->n_steps = kept;
}

static void keep_iteration(
	void *context, const struct timeline_thread *thread, const struct iteration *iteration)
{
	struct keeping *k = context;
	struct iteration one = *iteration;
	size_t index = rank_of(k, thread);
	if (index == k->n || one.end_ns < one.start_ns) {
		return;
	}
	struct joint_rank *rank = &k->ranks[index];
	struct thinning *t = &k->thinning[index];
	one.epoch = epoch_at(
		&k->a->tables.epochs, one.start_ns + (one.end_ns - one.start_ns) / 2, 0);
	one.cut = one.cut || one.compiled ||
	          stops_within(&k->a->stops, one.start_ns, one.end_ns) > 0;
	int64_t number = number_of(&one);
	t->longest = (number & UINT32_MAX) > t->longest ? number & UINT32_MAX : t->longest;
	while (rank->n_steps == JOINT_ITERATIONS_MAX && t->epochs < INT32_MAX) {
		thin(rank, t);
	}
	if (!is_kept(t, number)) {
		return;
	}
	// Doubled whenever their number is a power of two.
	if (rank->n_steps == 0 || (rank->n_steps & (rank->n_steps - 1)) == 0) {
		struct joint_step *grown = reallocarray(
			rank->steps, rank->n_steps > 0 ? 2 * rank->n_steps : 1, sizeof(*grown));
		k->no_room = k->no_room || !grown;
		rank->steps = grown ? grown : rank->steps;
	}
	if (!k->no_room) {
		add_step(rank, &one, number);
	}
}

// Keeps iterations of all ranks of a run. ranks: as a->phases.ranks. Returns 0 or -ENOMEM.
static int keep_all_steps(const struct analysis *a, struct joint_rank *ranks)
{
	size_t n = a->phases.n_ranks;
	_cleanup_free_ struct thinning *thinning = calloc(n, sizeof(*thinning));
	struct keeping keeping = {a, ranks, n, thinning, !thinning};
	const struct timeline_sink sink = {.context = &keeping, .iteration = keep_iteration};
	struct error ignored; // of a damaged file, everything before the damage counts
	for (size_t i = 0; thinning && i < n; i++) {
		thinning[i] = (struct thinning){1, 1, 0};
	}
	if (thinning && a->phases.timeline) {
		(void)timeline_walk(a->phases.timeline, &sink, &ignored);
	}
	return keeping.no_room ? -ENOMEM : 0;
}

static struct joint_link link_of(const struct analysis *a)
{
	struct network_facts n;
	const struct stretch stretch = facts_stretch(a);
	network_facts_fill(a, &stretch, &n);
	struct joint_link link = {.busy = n.busy,
		.rate = n.busy_rate,
		.nearest_s = n.least_round_trip_s,
		.network_namespace = n.network_namespace,
		.to = -1};
	snprintf(link.local, sizeof(link.local), "%s", n.local ? n.local : "");
	snprintf(link.peer, sizeof(link.peer), "%s", n.peer ? n.peer : "");
	return link;
}

// Figures of one of several ranks in a run: those of its process.
static void take_process(const struct analysis *a, struct joint_rank *rank)
{
	rank->cpus_used = rank->cpu_wait_share = rank->memory_bytes = NAN;
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		if (row->entity == rank->rank.entity && rank->rank.entity != 0) {
			double life_s = row->last_s - row->first_s - row->stopped_s;
			double waits_s = tables_figure(
				&a->tables, row->entity, NAME_CPU_WAIT, FIGURE_TOTAL);
			rank->cpus_used = row->cpu_share;
			rank->cpu_wait_share = life_s > 0 ? waits_s / life_s : NAN;
			rank->memory_bytes = row->memory_peak_bytes;
		}
	}
}

static int add_ranks(const struct member *m, const struct analysis *a, struct joint *j)
{
	const struct overview *o = &a->overview;
	const struct joint_link link = link_of(a);
	size_t n = a->phases.n_ranks > 0 ? a->phases.n_ranks : 1;
	for (size_t i = 0; i < n; i++) {
		if (j->n >= JOINT_RANKS_MAX) {
			return -E2BIG;
		}
		struct joint_rank *grown = reallocarray(j->ranks, j->n + 1, sizeof(*grown));
		if (!grown) {
			return -ENOMEM;
		}
		j->ranks = grown;
		struct joint_rank *rank = &grown[j->n++];
		*rank = (struct joint_rank){
			.link = link,
			.run = m->run,
			.host = m->run->host ? m->run->host : "",
			.number = n == 1                     ? m->rank
		                  : a->phases.ranks_launched ? a->phases.ranks[i].number
		                                             : -1,
			.cpus_used = o->cpus_used,
			.cpu_wait_share = o->cpu_wait_seconds / o->running_s,
			.memory_bytes = m->run->measures[MEASURE_HOST_MEMORY_PEAK],
			.latest = NAN,
			.clock_s = NAN,
		};
		if (a->phases.n_ranks > 0) {
			rank->rank = a->phases.ranks[i];
		} else {
			rank->rank = (struct phase_rank){
				.waits = NAN, .p50_s = NAN, .samples_per_s = NAN};
		}
		if (n > 1) {
			take_process(a, rank);
		}
		int r = n == 1 ? keep_steps(a, rank) : 0;
		if (r < 0) {
			return r;
		}
	}
	return n > 1 ? keep_all_steps(a, &j->ranks[j->n - n]) : 0;
}

static int read_run(const struct member *m, struct joint *j, struct error *e)
{
	_cleanup_reader_ struct reader *reader = NULL;
	struct analysis a;
	int r = reader_open(m->run->path, &reader, e);
	if (r < 0) {
		return r;
	}
	r = analysis_load_brief(reader, &a, e);
	if (r < 0) {
		return r;
	}
	r = add_ranks(m, &a, j);
	analysis_done(&a);
	return r == -E2BIG ? error_set(e, E2BIG, "more than %d ranks", JOINT_RANKS_MAX)
	       : r < 0     ? error_errno(e, -r, "ranks")
	                   : 0;
}

// Joining -----------------------------------------------------------------------------------------

static int compare_ranks(const void *left, const void *right)
{
	const struct joint_rank *a = left, *b = right;
	int64_t one = a->run->start_utc_ns, other = b->run->start_utc_ns;
	return a->number != b->number ? (a->number > b->number) - (a->number < b->number)
	       : one != other
	               ? (one > other) - (one < other)
	               : (a->rank.number > b->rank.number) - (a->rank.number < b->rank.number);
}

// Numbers that a launcher gave twice are not those of this job's ranks, but of each node's.
static void drop_doubles(struct joint *j)
{
	bool doubled = false;
	for (size_t i = 1; i < j->n; i++) {
		doubled = doubled ||
		          (j->ranks[i].number >= 0 && j->ranks[i].number == j->ranks[i - 1].number);
	}
	for (size_t i = 0; i < j->n && doubled; i++) {
		j->ranks[i].number = -1;
	}
}

// Numbers that no launcher gave are those that are left, in order.
static void number_ranks(struct joint *j)
{
	qsort(j->ranks, j->n, sizeof(*j->ranks), compare_ranks);
	drop_doubles(j);
	qsort(j->ranks, j->n, sizeof(*j->ranks), compare_ranks);
	int next = 0;
	for (size_t i = 0; i < j->n && j->ranks[i].number < 0; i++) {
		for (size_t k = 0; k < j->n;) {
			bool taken = j->ranks[k].number == next;
			next += taken;
			k = taken ? 0 : k + 1;
		}
		j->ranks[i].number = next++;
	}
	qsort(j->ranks, j->n, sizeof(*j->ranks), compare_ranks);
}

static void count_hosts(struct joint *j)
{
	for (size_t i = 0; i < j->n; i++) {
		bool seen = false;
		for (size_t k = 0; k < i && !seen; k++) {
			seen = strcmp(j->ranks[k].host, j->ranks[i].host) == 0;
		}
		j->n_hosts += !seen;
	}
}

// The iterations that a rank and the first one have in common, one after another.
static bool next_common(
	const struct joint_rank *first, const struct joint_rank *other, size_t *i, size_t *k)
{
	while (*i < first->n_steps && *k < other->n_steps) {
		int64_t one = first->steps[*i].number, two = other->steps[*k].number;
		if (one == two) {
			return true;
		}
		*(one < two ? i : k) += 1;
	}
	return false;
}

static int compare_doubles(const void *left, const void *right)
{
	const double *a = left, *b = right;
	return (*a > *b) - (*a < *b);
}

// NAN of no values. Sorts them.
static double median_of(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare_doubles);
	return n == 0 ? NAN : n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Sets apart[JOINT_ITERATIONS_MAX] to the differences of the ends of common iterations, in seconds.
// Returns their number.
static size_t list_apart(
	const struct joint_rank *first, const struct joint_rank *rank, double *apart)
{
	size_t n = 0, i = 0, k = 0;
	while (next_common(first, rank, &i, &k)) {
		int64_t between;
		if (!__builtin_sub_overflow(
			    rank->steps[k++].end_utc_ns, first->steps[i++].end_utc_ns, &between)) {
			apart[n++] = (double)between / 1e9;
		}
	}
	return n;
}

// Ranks that wait for each other end an iteration together, up to what follows the exchange. A
// difference of more, always the same, is that of their machines' clocks.
static int align_clocks(struct joint *j)
{
	const struct joint_rank *first = &j->ranks[0];
	_cleanup_free_ double *apart = calloc(JOINT_ITERATIONS_MAX, sizeof(*apart));
	if (!apart) {
		return -ENOMEM;
	}
	for (size_t r = 0; r < j->n; r++) {
		struct joint_rank *rank = &j->ranks[r];
		if (strcmp(rank->host, first->host) == 0) {
			rank->clock_s = 0;
			continue;
		}
		size_t n = j->waits != WAITS_UNKNOWN ? list_apart(first, rank, apart) : 0;
		if (n < COMMON_LEAST) {
			continue;
		}
		double clock_s = median_of(apart, n), length_s = rank->rank.p50_s;
		for (size_t i = 0; i < n; i++) {
			apart[i] = fabs(apart[i] - clock_s);
		}
		if (median_of(apart, n) <= fmax(CLOCK_SCATTER * length_s, CLOCK_LEAST_S / 4)) {
			bool differ = fabs(clock_s) >= fmax(CLOCK_LEAST_S, 2 * length_s);
			rank->clock_s = differ ? clock_s : 0;
		}
	}
	return 0;
}

// What a rank waits for the others in an iteration, up to what all ranks have in common.
static double waits_in(const struct joint *j, const struct joint_step *s, double ratio)
{
	return j->waits == WAITS_MARKED        ? s->communication
	       : j->waits == WAITS_IN_BACKWARD ? s->backward - ratio * s->forward
	       : j->waits == WAITS_IN_FORWARD  ? s->backward
	                                       : NAN;
}

// The least backward relative to forward, which holds no wait.
static double least_ratio(const struct joint *j)
{
	double ratio = INFINITY;
	for (size_t r = 0; r < j->n; r++) {
		const struct phase_rank *rank = &j->ranks[r].rank;
		double own = phases_rank_mean(rank, PHASE_BACKWARD) /
		             phases_rank_mean(rank, PHASE_FORWARD);
		ratio = own > 0 ? fmin(ratio, own) : ratio;
	}
	return ratio;
}

// Tells each iteration's wait.
static void tell_waits(struct joint *j)
{
	double ratio = least_ratio(j), least = INFINITY, least_step = INFINITY;
	for (size_t r = 0; r < j->n; r++) {
		const struct phase_rank *rank = &j->ranks[r].rank;
		double backward = phases_rank_mean(rank, PHASE_BACKWARD);
		double step = backward + phases_rank_mean(rank, PHASE_FORWARD);
		least = backward > 0 ? fmin(least, backward) : least;
		least_step = step > 0 ? fmin(least_step, step) : least_step;
	}
	for (size_t r = 0; r < j->n; r++) {
		struct joint_rank *rank = &j->ranks[r];
		for (size_t i = 0; i < rank->n_steps; i++) {
			struct joint_step *step = &rank->steps[i];
			double waits = waits_in(j, step, ratio);
			if (j->waits == WAITS_IN_FORWARD) { // as phases_judge_ranks does
				waits = fmax(step->forward + step->backward - least_step,
					step->backward - least);
			}
			step->waits = isfinite(waits) ? fmin(fmax(0, waits), step->length) : NAN;
		}
	}
}

// The rank that waited least in an iteration, by a margin; j->n: none. at: indices of steps.
static size_t latest_of(const struct joint *j, const size_t *at, double ratio)
{
	double least = INFINITY, second = INFINITY, length = 0;
	size_t latest = j->n;
	for (size_t r = 0; r < j->n; r++) {
		const struct joint_step *step = &j->ranks[r].steps[at[r]];
		double waits = waits_in(j, step, ratio);
		second = waits < least ? least : fmin(second, waits);
		latest = waits < least ? r : latest;
		least = fmin(least, waits);
		length = fmax(length, step->length);
	}
	return second - least >= LATEST_MARGIN * length ? latest : j->n;
}

// The lower end of the 95 % interval of the mean of values in order of time.
static double least_mean(const double *values, size_t n)
{
	enum { BATCHES_MOST = 12, BATCH_LEAST = 2 };
	size_t batches = n / BATCH_LEAST < BATCHES_MOST ? n / BATCH_LEAST : BATCHES_MOST;
	double sum = 0, squares = 0;
	for (size_t b = 0; b < batches; b++) {
		size_t from = b * n / batches, to = (b + 1) * n / batches;
		double mean = 0;
		for (size_t i = from; i < to; i++) {
			mean += values[i] / (double)(to - from);
		}
		sum += mean;
		squares += mean * mean;
	}
	double mean = sum / (double)batches;
	double variance = fmax(0, squares / (double)batches - mean * mean);
	// Of the batches; an interval of both sides.
	double t = gsl_cdf_tdist_Pinv(0.975, (double)batches - 1);
	return mean - t * sqrt(variance / ((double)batches - 1));
}

// Whether all ranks have the iteration i of the first: sets at[n] to its place in each. Call it
// with ascending i and the same `at`, zeros at first.
static bool find_common(const struct joint *j, size_t i, size_t *at)
{
	int64_t number = j->ranks[0].steps[i].number;
	size_t present = 0;
	for (size_t r = 0; r < j->n; r++) {
		const struct joint_rank *rank = &j->ranks[r];
		while (at[r] < rank->n_steps && rank->steps[at[r]].number < number) {
			at[r]++;
		}
		present += at[r] < rank->n_steps && rank->steps[at[r]].number == number;
	}
	return present == j->n;
}

// Counts, for each rank, the common iterations in which the others waited for it.
static int find_latest(struct joint *j)
{
	_cleanup_free_ size_t *at = calloc(j->n, sizeof(*at));
	_cleanup_free_ double *late = calloc(j->n + 1, sizeof(*late));
	double ratio = least_ratio(j);
	if (!at || !late) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < j->ranks[0].n_steps; i++) {
		if (find_common(j, i, at)) {
			late[latest_of(j, at, ratio)]++;
			j->n_common++;
		}
	}
	// Where forward holds a wait, or one rank's other work, single iterations do not tell.
	bool tells = j->waits == WAITS_MARKED || j->waits == WAITS_IN_BACKWARD ||
	             (j->waits == WAITS_IN_FORWARD && j->slowest < j->n &&
			     late[j->slowest] >= (double)j->n_common / 2);
	for (size_t r = 0; r < j->n && tells && j->n_common >= COMMON_LEAST; r++) {
		j->ranks[r].latest = late[r] / (double)j->n_common;
	}
	return 0;
}

static bool holds_waits(const struct joint *j, int phase)
{
	return phase == PHASE_COMMUNICATION ||
	       ((j->waits == WAITS_IN_BACKWARD || j->waits == WAITS_IN_FORWARD) &&
		       phase == PHASE_BACKWARD);
}

// What the others wait for the slowest rank, in seconds per iteration: the median.
static double waited_s(const struct joint *j, double *others)
{
	size_t n = 0;
	for (size_t r = 0; r < j->n; r++) {
		const struct phase_rank *rank = &j->ranks[r].rank;
		double waits = rank->waits * phases_rank_own(rank) / (1 - rank->waits);
		if (r != j->slowest && isfinite(waits)) {
			others[n++] = waits;
		}
	}
	return median_of(others, n);
}

// Whether the slowest rank is ready without a CPU for longer than all others. Its phases then
// scatter so much that single iterations do not show that it is slower.
static bool lacks_cpus(const struct joint *j)
{
	double others = 0;
	for (size_t r = 0; r < j->n; r++) {
		others = r == j->slowest ? others : fmax(others, j->ranks[r].cpu_wait_share);
	}
	return j->slowest < j->n && j->ranks[j->slowest].cpu_wait_share >= others + CPU_WAIT_MORE;
}

// Whether the others' estimated waits for the slowest rank exceed what such waits scatter by, in
// the common iterations: by the means of batches of neighbours, which are nearly independent.
// Without common iterations it is not known, and the sums count.
static int check_slowest(struct joint *j)
{
	_cleanup_free_ size_t *at = calloc(j->n, sizeof(*at));
	_cleanup_free_ double *others = calloc(j->n, sizeof(*others));
	_cleanup_free_ double *longer = calloc(JOINT_ITERATIONS_MAX, sizeof(*longer));
	size_t n = 0;
	if (!at || !others || !longer) {
		return -ENOMEM;
	}
	bool estimated = j->waits == WAITS_IN_BACKWARD || j->waits == WAITS_IN_FORWARD;
	for (size_t i = 0; i < j->ranks[0].n_steps && estimated && j->slowest < j->n; i++) {
		if (!find_common(j, i, at)) {
			continue;
		}
		size_t known = 0;
		const struct joint_step *own = &j->ranks[j->slowest].steps[at[j->slowest]];
		for (size_t r = 0; r < j->n; r++) {
			const struct joint_step *step = &j->ranks[r].steps[at[r]];
			if (r != j->slowest && isfinite(step->waits)) {
				others[known++] = step->waits;
			}
		}
		if (known > 0 && isfinite(own->waits)) {
			longer[n++] = median_of(others, known) - own->waits;
		}
	}
	if (n >= COMMON_LEAST && !(least_mean(longer, n) > 0) && !lacks_cpus(j)) {
		j->ranks[j->slowest].rank.slowest = false;
		j->slowest = j->n;
	}
	return 0;
}

static int find_longer_phase(struct joint *j)
{
	_cleanup_free_ double *others = calloc(j->n, sizeof(*others));
	if (!others) {
		return -ENOMEM;
	}
	double least = EXPLAINS * waited_s(j, others);
	j->phase = -1;
	for (int phase = 0; phase < N_KNOWN_PHASES && j->slowest < j->n; phase++) {
		size_t n = 0;
		for (size_t r = 0; r < j->n; r++) {
			double seconds = phases_rank_mean(&j->ranks[r].rank, (enum phase_id)phase);
			if (r != j->slowest && isfinite(seconds)) {
				others[n++] = seconds;
			}
		}
		double longer = phases_rank_mean(&j->ranks[j->slowest].rank, (enum phase_id)phase) -
		                median_of(others, n);
		if (!holds_waits(j, phase) && longer > least && longer > j->longer_s) {
			j->phase = phase;
			j->longer_s = longer;
		}
	}
	return 0;
}

static int judge(struct joint *j)
{
	_cleanup_free_ struct phase_rank *ranks = calloc(j->n, sizeof(*ranks));
	size_t n = 0; // ranks that iterate
	if (!ranks) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < j->n; i++) {
		if (j->ranks[i].rank.iterations > 0) {
			ranks[n++] = j->ranks[i].rank;
		}
	}
	j->waits = phases_judge_ranks(ranks, n);
	j->slowest = j->n;
	j->samples_per_s = n > 0 ? 0 : NAN;
	n = 0;
	for (size_t i = 0; i < j->n; i++) {
		struct joint_rank *rank = &j->ranks[i];
		if (rank->rank.iterations > 0) {
			rank->rank.waits = ranks[n].waits;
			rank->rank.slowest = ranks[n++].slowest;
			j->slowest = rank->rank.slowest ? i : j->slowest;
			j->samples_per_s += rank->rank.samples_per_s;
		}
	}
	tell_waits(j);
	int r = check_slowest(j);
	return r < 0 ? r : find_longer_phase(j);
}

bool joint_apart(const struct joint_rank *a, const struct joint_rank *b)
{
	bool known = isfinite(a->link.network_namespace) && isfinite(b->link.network_namespace);
	return strcmp(a->host, b->host) != 0 ||
	       (known && a->link.network_namespace != b->link.network_namespace);
}

static bool apart(const struct joint *j, size_t one, size_t other)
{
	return joint_apart(&j->ranks[one], &j->ranks[other]);
}

// The rank with the largest value; of those on other machines the largest is `ret_next`, NAN for
// none. j->n: none has a value.
static size_t find_most(
	const struct joint *j, double (*value)(const struct joint_link *), double *ret_next)
{
	size_t most = j->n;
	*ret_next = NAN;
	for (size_t i = 0; i < j->n; i++) {
		double here = value(&j->ranks[i].link);
		if (isfinite(here) && (most == j->n || here > value(&j->ranks[most].link))) {
			most = i;
		}
	}
	for (size_t i = 0; i < j->n && most < j->n; i++) {
		if (apart(j, i, most)) {
			*ret_next = fmax(*ret_next, value(&j->ranks[i].link));
		}
	}
	return most;
}

static double link_busy(const struct joint_link *l)
{
	return l->busy;
}

static double link_nearest(const struct joint_link *l)
{
	return l->nearest_s;
}

// How many machines the ranks send from.
static size_t count_machines(const struct joint *j)
{
	size_t n = 0;
	for (size_t i = 0; i < j->n; i++) {
		bool seen = !isfinite(j->ranks[i].link.busy);
		for (size_t k = 0; k < i && !seen; k++) {
			seen = !apart(j, i, k);
		}
		n += !seen;
	}
	return n;
}

// Finds the ranks that links lead to. One that leads to none says nothing about the exchange of the
// ranks, if the runs of all ranks are here.
static void find_ends(struct joint *j)
{
	bool all = j->world <= 0 || (uint64_t)j->world <= j->n;
	for (size_t i = 0; i < j->n; i++) {
		struct joint_link *link = &j->ranks[i].link;
		size_t there = 0;
		for (size_t k = 0; k < j->n && *link->peer; k++) {
			if (strcmp(link->peer, j->ranks[k].link.local) == 0) {
				link->to = there++ == 0 ? j->ranks[k].number : -1;
			}
		}
		if (there == 0 && all) {
			link->busy = link->rate = link->nearest_s = NAN;
		}
	}
}

static void set_slowest(struct joint *j, size_t slowest, enum joint_reason reason)
{
	for (size_t i = 0; i < j->n; i++) {
		j->ranks[i].rank.slowest = i == slowest;
	}
	j->slowest = slowest;
	j->reason = reason;
	j->phase = -1;
	j->longer_s = 0;
}

static bool has_network_verdict(const struct joint *j)
{
	for (size_t i = 0; i < j->n; i++) {
		if (strcmp(j->ranks[i].run->verdict, bottleneck_name(BOTTLENECK_NETWORK)) == 0) {
			return true;
		}
	}
	return false;
}

// Ranks that exchange gradients wait for the slowest link, all alike. The rank that sends over it
// has data on their way while those of the others have arrived. One that is far from all others
// shows by its round trips: two ranks are equally far from each other.
static void judge_network(struct joint *j)
{
	double next_busy, next_s;
	find_ends(j);
	size_t sends = find_most(j, link_busy, &next_busy);
	size_t far = find_most(j, link_nearest, &next_s);
	j->busiest = j->n;
	bool limits = sends < j->n && j->ranks[sends].link.busy >= LINK_BUSY;
	bool explained = j->slowest < j->n && j->phase >= 0;
	if (!limits || explained) {
		return;
	}
	double far_s = far < j->n ? j->ranks[far].link.nearest_s : NAN;
	bool is_far = count_machines(j) > 2 && far_s >= FAR_LEAST_S && far_s >= FAR * next_s;
	j->others_busy = next_busy;
	j->others_nearest_s = next_s;
	if (j->ranks[sends].link.busy >= LINK_BUSIER * next_busy) {
		set_slowest(j, sends, REASON_LINK);
	} else if (is_far) {
		set_slowest(j, far, REASON_DISTANCE);
	} else if (j->ranks[sends].link.busy >= LINK_LIMITS) {
		if (j->waits == WAITS_IN_BACKWARD || j->waits == WAITS_IN_FORWARD) {
			set_slowest(j, j->n, REASON_OWN); // backward holds the sending, too
		}
		j->busiest = sends;
		j->network_limits = has_network_verdict(j);
	}
}

// Reading the runs, several at once.
struct reading {
	const struct member **members;
	struct joint *parts; // [n] the ranks of each
	int *results;
	struct error *errors;
};

static void read_one(void *context, size_t i)
{
	const struct reading *r = context;
	r->results[i] = read_run(r->members[i], &r->parts[i], &r->errors[i]);
}

// Takes the ranks of a part.
static int take_part(struct joint *j, struct joint *part, struct error *e)
{
	if (j->n + part->n > JOINT_RANKS_MAX) {
		return error_set(e, E2BIG, "more than %d ranks", JOINT_RANKS_MAX);
	}
	struct joint_rank *grown = reallocarray(j->ranks, j->n + part->n, sizeof(*grown));
	if (!grown) {
		return error_errno(e, ENOMEM, "ranks");
	}
	memcpy(grown + j->n, part->ranks, part->n * sizeof(*grown));
	j->ranks = grown;
	j->n += part->n;
	j->n_runs++;
	part->n = 0; // its steps are ours
	return 0;
}

static int read_members(const struct choice *c, struct joint *j, struct error *e)
{
	_cleanup_free_ struct joint *parts = calloc(c->n, sizeof(*parts));
	_cleanup_free_ int *results = calloc(c->n, sizeof(*results));
	_cleanup_free_ struct error *errors = calloc(c->n, sizeof(*errors));
	struct reading reading = {c->items, parts, results, errors};
	const struct parallel all = {.n = c->n, .one = read_one, .context = &reading};
	if (!parts || !results || !errors) {
		return error_errno(e, ENOMEM, "ranks");
	}
	parallel_run(&all);
	int r = 0;
	for (size_t i = 0; i < c->n; i++) {
		if (results[i] < 0 && r == 0) {
			*e = errors[i];
			r = results[i];
		}
		r = r < 0 ? r : take_part(j, &parts[i], e);
		joint_done(&parts[i]);
	}
	return r;
}

int joint_read(const struct catalogue *c, const char *name, struct joint *ret, struct error *e)
{
	struct members all = {0};
	struct joint j = {.phase = -1};
	struct choice chosen = {0};
	int r = list_members(c, &all);
	r = r < 0 ? r : choose(&all, name, &chosen);
	r = r < 0 ? error_errno(e, -r, "ranks") : 0;
	if (r == 0 && chosen.n == 0) {
		const struct text *others = &chosen.others;
		r = name ? error_set(e, ENOENT, "no job '%.100s' with several runs%s%.300s%s", name,
				   others->length > 0 ? " (there are: " : "",
				   others->length > 0 ? others->data : "",
				   others->length > 0 ? ")" : "")
		         : error_set(e, ENOENT, "no two runs belong to the same job");
	}
	r = r < 0 ? r : read_members(&chosen, &j, e);
	if (r == 0) {
		const struct member *newest = chosen.items[0];
		j.named_by = newest->label;
		j.world = newest->world;
		j.n_others = chosen.n_others;
		j.name = strdup(newest->name);
		number_ranks(&j);
		count_hosts(&j);
		r = j.name ? judge(&j) : -ENOMEM;
		judge_network(&j);
		r = r < 0 ? r : align_clocks(&j);
		r = r < 0 ? r : find_latest(&j);
		r = r < 0 ? error_errno(e, -r, "ranks") : 0;
	}
	choice_done(&chosen);
	members_done(&all);
	if (r < 0) {
		joint_done(&j);
		return r;
	}
	*ret = j;
	return 0;
}

// Takes the jobs of the runs of one name: the newest, and earlier ones of the same name.
static int take_jobs(const struct group *all, bool *marked, struct joint_groups *ret)
{
	for (size_t newest = 0; newest < all->n; newest++) {
		// Runs of a job start together: of thousands under one name, only the next are
		// looked at.
		size_t left = all->n - newest;
		const struct group g = {
			&all->items[newest], left < JOINT_RANKS_MAX ? left : JOINT_RANKS_MAX};
		if (ret->of[g.items->place] != JOINT_ALONE ||
			mark_runs(&g, 0, belongs_surely, marked) < 2) {
			continue;
		}
		size_t n = 0;
		for (size_t i = 0; i < g.n; i++) {
			marked[i] = marked[i] && ret->of[g.items[i].place] == JOINT_ALONE;
			n += marked[i];
		}
		for (size_t i = 0; i < g.n && n >= 2; i++) {
			if (marked[i]) {
				ret->of[g.items[i].place] = ret->n;
			}
		}
		if (n >= 2) {
			ret->sizes[ret->n] = n;
			ret->names[ret->n] = strdup(g.items->name);
			if (!ret->names[ret->n++]) {
				return -ENOMEM;
			}
		}
	}
	return 0;
}

int joint_groups_find(const struct catalogue *c, struct joint_groups *ret)
{
	struct members all = {0};
	_cleanup_free_ bool *marked = calloc(c->n + 1, sizeof(*marked));
	*ret = (struct joint_groups){.of = calloc(c->n + 1, sizeof(*ret->of)),
		.names = calloc(c->n / 2 + 1, sizeof(*ret->names)),
		.sizes = calloc(c->n / 2 + 1, sizeof(*ret->sizes))};
	int r = marked && ret->of && ret->names && ret->sizes ? list_members(c, &all) : -ENOMEM;
	for (size_t i = 0; i < c->n && ret->of; i++) {
		ret->of[i] = JOINT_ALONE;
	}
	for (size_t first = 0; r == 0 && first < all.n;) {
		struct group g = group_at(&all, first);
		first += g.n;
		r = take_jobs(&g, marked, ret);
	}
	members_done(&all);
	if (r < 0) {
		joint_groups_done(ret);
	}
	return r;
}

void joint_groups_done(struct joint_groups *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free(g->names[i]);
	}
	free(g->names);
	free(g->sizes);
	free(g->of);
	*g = (struct joint_groups){0};
}

void joint_done(struct joint *j)
{
	for (size_t i = 0; i < j->n; i++) {
		free(j->ranks[i].steps);
	}
	free(j->ranks);
	free(j->name);
	*j = (struct joint){0};
}
