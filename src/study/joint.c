// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Finds the runs of a job, and joins their ranks.

#include "study/joint.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "run/analysis.h"
#include "runfile/reader.h"

// Clocks that differ by less are not told apart from ranks that end an iteration one after another.
#define CLOCK_LEAST_S 0.1
// Fewer common iterations show neither clocks nor who is latest.
enum { COMMON_LEAST = 8 };

// What names a job, the most certain first. Steps of a Slurm job are jobs of their own.
static const struct {
	const char *label, *second; // second: NULL: none
	const char * not ; // a value that names nothing
} names[] = {
	{"job", NULL, NULL},
	{"SLURM_JOB_ID", "SLURM_STEP_ID", NULL},
	{"TORCHELASTIC_RUN_ID", NULL, "none"},
	{"PMIX_NAMESPACE", NULL, NULL},
	{"PBS_JOBID", NULL, NULL},
	{"LSB_JOBID", NULL, NULL},
	{"MASTER_ADDR", "MASTER_PORT", NULL},
};

static const char *const rank_labels[] = {
	"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

char *joint_name_of(const struct digest *run, const char **ret_label)
{
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		const char *value = digest_label(run, names[i].label);
		const char *second = names[i].second ? digest_label(run, names[i].second) : NULL;
		if (!value || *value == '\0' ||
			(names[i].not &&strcmp(value, names[i].not ) == 0)) {
			continue;
		}
		struct text name = {0};
		text_format(&name, "%s%s%s", value, second ? "." : "", second ? second : "");
		*ret_label = names[i].label;
		return text_steal(&name);
	}
	return NULL;
}

int joint_rank_of(const struct run_label *labels, size_t n)
{
	for (size_t i = 0; i < ARRAY_LENGTH(rank_labels); i++) {
		for (size_t k = 0; k < n; k++) {
			int64_t rank;
			if (strcmp(labels[k].name, rank_labels[i]) == 0 &&
				parse_integer(labels[k].value, 0, INT32_MAX, &rank, NULL) == 0) {
				return (int)rank;
			}
		}
	}
	return -1;
}

// Choosing the runs -------------------------------------------------------------------------------

// A run that belongs to some job.
struct member {
	const struct digest *run;
	char *name; // owned
	const char *label;
	int rank; // -1: unknown
};

struct members {
	struct member *items; // [n] the newest first
	size_t n;
};

static void members_done(struct members *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->items[i].name);
	}
	free(m->items);
}

static bool is_same_job(const struct member *a, const struct member *b)
{
	return strcmp(a->label, b->label) == 0 && strcmp(a->name, b->name) == 0;
}

static int list_members(const struct catalogue *c, struct members *ret)
{
	ret->items = calloc(c->n + 1, sizeof(*ret->items));
	for (size_t i = 0; ret->items && i < c->n; i++) {
		const char *label = NULL;
		char *name = joint_name_of(&c->runs[i], &label);
		if (name) {
			ret->items[ret->n++] = (struct member){&c->runs[i], name, label,
				joint_rank_of(c->runs[i].labels, c->runs[i].n_labels)};
		}
	}
	return ret->items ? 0 : -ENOMEM;
}

// Whether a newer run of the same rank is there: the job was started again under the same name.
static bool is_replaced(const struct members *m, size_t index)
{
	const struct member *one = &m->items[index];
	for (size_t i = 0; i < index && one->rank >= 0; i++) {
		if (m->items[i].rank == one->rank && is_same_job(&m->items[i], one)) {
			return true;
		}
	}
	return false;
}

static size_t count_runs(const struct members *m, const struct member *of)
{
	size_t n = 0;
	for (size_t i = 0; i < m->n; i++) {
		n += is_same_job(&m->items[i], of) && !is_replaced(m, i);
	}
	return n;
}

// The first member of the job to join; NULL: there is none. Sets the number of other jobs.
static const struct member *choose(const struct members *m, const char *name, size_t *ret_others)
{
	const struct member *chosen = NULL;
	*ret_others = 0;
	for (size_t i = 0; i < m->n; i++) {
		bool seen = false;
		for (size_t k = 0; k < i && !seen; k++) {
			seen = is_same_job(&m->items[k], &m->items[i]);
		}
		if (seen || count_runs(m, &m->items[i]) < 2) {
			continue;
		}
		bool wanted = !name || strcmp(m->items[i].name, name) == 0;
		*ret_others += chosen || !wanted;
		chosen = chosen || !wanted ? chosen : &m->items[i];
	}
	return chosen;
}

// Reading a run -----------------------------------------------------------------------------------

// Keeps iterations of a rank: at most JOINT_ITERATIONS_MAX, those whose place is a multiple of a
// power of two, so that all ranks keep the same.
static int keep_steps(const struct analysis *a, struct joint_rank *ret)
{
	const struct phases *p = &a->phases;
	int64_t each = 1;
	while ((int64_t)p->n_iterations * (int64_t)(p->stride ? p->stride : 1) / each >
		JOINT_ITERATIONS_MAX) {
		each *= 2;
	}
	ret->steps = calloc(p->n_iterations + 1, sizeof(*ret->steps));
	for (size_t i = 0; ret->steps && i < p->n_iterations; i++) {
		const struct iteration *one = &p->iterations[i];
		if (one->warm_up || one->cut || one->place % each != 0 ||
			ret->n_steps >= JOINT_ITERATIONS_MAX) {
			continue;
		}
		ret->steps[ret->n_steps++] = (struct joint_step){
			.place = one->place,
			.end_utc_ns = ret->run->start_utc_ns + one->end_ns,
			.length = (double)one->length_ns / 1e9,
			.forward = (double)one->phase_ns[PHASE_FORWARD] / 1e9,
			.backward = (double)one->phase_ns[PHASE_BACKWARD] / 1e9,
			.communication = (double)one->phase_ns[PHASE_COMMUNICATION] / 1e9,
		};
	}
	return ret->steps ? 0 : -ENOMEM;
}

static int add_ranks(const struct member *m, const struct analysis *a, struct joint *j)
{
	const struct overview *o = &a->overview;
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
			.run = m->run,
			.host = m->run->host ? m->run->host : "",
			.number = n == 1 ? m->rank : -1,
			.cpus_used = n == 1 ? o->cpus_used : NAN,
			.cpu_wait_share = n == 1 ? o->cpu_wait_seconds / o->running_s : NAN,
			.memory_bytes = n == 1 ? m->run->measures[MEASURE_HOST_MEMORY_PEAK] : NAN,
			.latest = NAN,
			.clock_s = NAN,
		};
		if (a->phases.n_ranks > 0) {
			rank->rank = a->phases.ranks[i];
		} else {
			rank->rank = (struct phase_rank){
				.waits = NAN, .p50_s = NAN, .samples_per_s = NAN};
		}
		int r = n == 1 ? keep_steps(a, rank) : 0;
		if (r < 0) {
			return r;
		}
	}
	return 0;
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
	j->n_runs++;
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

// Numbers that no launcher gave are those that are left, in order.
static void number_ranks(struct joint *j)
{
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
		int64_t one = first->steps[*i].place, two = other->steps[*k].place;
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

// Ranks end an iteration together, up to what follows the exchange. A difference of their clocks
// by more is that of the clocks.
static int align_clocks(struct joint *j)
{
	const struct joint_rank *first = &j->ranks[0];
	_cleanup_free_ double *apart = calloc(JOINT_ITERATIONS_MAX, sizeof(*apart));
	if (!apart) {
		return -ENOMEM;
	}
	for (size_t r = 0; r < j->n; r++) {
		struct joint_rank *rank = &j->ranks[r];
		size_t n = 0, i = 0, k = 0;
		while (next_common(first, rank, &i, &k)) {
			int64_t between = rank->steps[k++].end_utc_ns -
			                  first->steps[i++].end_utc_ns;
			apart[n++] = (double)between / 1e9;
		}
		if (n >= COMMON_LEAST) {
			double clock_s = median_of(apart, n);
			double least = fmax(CLOCK_LEAST_S, rank->rank.p50_s);
			rank->clock_s = fabs(clock_s) >= least ? clock_s : 0;
		}
	}
	return 0;
}

// The length of an iteration without the part that holds the wait for the others.
static double own_seconds(const struct joint_step *s)
{
	return s->length - (s->communication > 0 ? s->communication : s->backward);
}

// Counts, for each rank, the common iterations in which its own work was the longest.
static int find_latest(struct joint *j)
{
	_cleanup_free_ size_t *at = calloc(j->n, sizeof(*at));
	_cleanup_free_ double *late = calloc(j->n, sizeof(*late));
	if (!at || !late) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < j->ranks[0].n_steps; i++) {
		int64_t place = j->ranks[0].steps[i].place;
		size_t latest = 0, present = 0;
		double longest = -INFINITY;
		for (size_t r = 0; r < j->n; r++) {
			const struct joint_rank *rank = &j->ranks[r];
			while (at[r] < rank->n_steps && rank->steps[at[r]].place < place) {
				at[r]++;
			}
			if (at[r] < rank->n_steps && rank->steps[at[r]].place == place) {
				double own = own_seconds(&rank->steps[at[r]]);
				latest = own > longest ? r : latest;
				longest = fmax(longest, own);
				present++;
			}
		}
		if (present == j->n) {
			late[latest]++;
			j->n_common++;
		}
	}
	for (size_t r = 0; r < j->n && j->n_common >= COMMON_LEAST; r++) {
		j->ranks[r].latest = late[r] / (double)j->n_common;
	}
	return 0;
}

// Seconds per iteration of a phase, without what the rank waits in it for the others.
static double phase_seconds(const struct joint_rank *r, int phase)
{
	double n = (double)r->rank.iterations;
	return n > 0 ? r->rank.phase_s[phase] / n : NAN;
}

static bool holds_waits(const struct joint *j, int phase)
{
	return phase == PHASE_COMMUNICATION || (j->waits_inferred && phase == PHASE_BACKWARD);
}

static int find_longer_phase(struct joint *j)
{
	_cleanup_free_ double *others = calloc(j->n, sizeof(*others));
	if (!others) {
		return -ENOMEM;
	}
	j->phase = -1;
	for (int phase = 0; phase < N_KNOWN_PHASES && j->slowest < j->n; phase++) {
		size_t n = 0;
		for (size_t r = 0; r < j->n; r++) {
			double seconds = phase_seconds(&j->ranks[r], phase);
			if (r != j->slowest && isfinite(seconds)) {
				others[n++] = seconds;
			}
		}
		double longer = phase_seconds(&j->ranks[j->slowest], phase) - median_of(others, n);
		if (!holds_waits(j, phase) && longer > 0 && !(longer <= j->longer_s)) {
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
	j->waits_inferred = phases_judge_ranks(ranks, n);
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
	return find_longer_phase(j);
}

int joint_read(const struct catalogue *c, const char *name, struct joint *ret, struct error *e)
{
	struct members all = {0};
	struct joint j = {.phase = -1};
	int r = list_members(c, &all);
	const struct member *first = r < 0 ? NULL : choose(&all, name, &j.n_others);
	if (r == 0 && !first) {
		r = name ? error_set(e, ENOENT, "no job '%s' of several runs", name)
		         : error_set(e, ENOENT, "no two runs of one job");
	}
	for (size_t i = 0; i < all.n && r == 0; i++) {
		if (is_same_job(&all.items[i], first) && !is_replaced(&all, i)) {
			r = read_run(&all.items[i], &j, e);
		}
	}
	if (r == 0) {
		j.named_by = first->label;
		j.name = strdup(first->name);
		number_ranks(&j);
		count_hosts(&j);
		r = j.name ? judge(&j) : -ENOMEM;
		r = r < 0 ? r : align_clocks(&j);
		r = r < 0 ? r : find_latest(&j);
		r = r < 0 ? error_errno(e, -r, "ranks") : 0;
	}
	members_done(&all);
	if (r < 0) {
		joint_done(&j);
		return r;
	}
	*ret = j;
	return 0;
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
