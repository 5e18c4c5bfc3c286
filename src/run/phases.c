// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Computes phases from the pieces of a timeline.

#include "run/phases.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/words.h"
#include "run/statistics.h"
#include "run/stops.h"
#include "run/tables.h"
#include "run/names.h"
#include "run/timeline.h"

// Figures of each thread that marks iterations or batches.

struct thread_count;

struct phase_threads {
	struct thread_count **counts; // [n], by the thread's index; NULL for threads with neither
	size_t n;
	size_t capacity;
};

// Spans named by the job's author: ranges of NVTX, `strain mark`, spans of marker.h that are no
// phases. Also `python.gc` of the hooks.

struct own_gathering;

// Figures of steady iterations, with intervals from batch means.

#define BATCHES_MAX 32

struct steady_batch {
	double length_s;
	double samples;
	double phase_s[PHASES_MAX];
	uint64_t n;
};

struct steady {
	uint64_t expected; // number of iterations
	uint64_t n;
	size_t n_batches; // 0: too few for intervals
	struct steady_batch batches[BATCHES_MAX];
	struct steady_batch sum;
	bool samples_unknown; // of at least one iteration
	struct histogram lengths;
	struct histogram samples;
	struct histogram phases[PHASES_MAX];
};

static int own_spans_new(struct own_gathering **ret); // 0 or -ENOMEM
static void own_spans_free(struct own_gathering *own); // accepts NULL
static int own_spans_add(struct own_gathering *own, const struct timeline_thread *thread,
	const struct timeline_own *span);
static int own_spans_finish(const struct own_gathering *own, const struct phase_threads *threads,
	double run_s, struct phases *ret);

// Phase threads -----------------------------------------------------------------------------------
//
// Workers and ranks, a row for each.

#define IMBALANCE 0.10 // ranks whose figures differ by more than this do different work
// Waits that are estimated from backward passes scatter: those of two equal ranks differ by this
// over the square root of their iterations (13 % of 60 seen).
#define WAITS_SCATTER 1.2
#define IN_STEP 0.05 // ranks that wait for each other have iteration times within this
// as a multiple of forward; usually backward computes about twice as much
#define LEAST_BACKWARD 0.8
#define GRAIN 0.03 // of an iteration: a smaller inferred wait may be noise

struct thread_count {
	struct timeline_thread thread;
	struct phase_rank rank;
	struct histogram lengths; // of its steady iterations, in seconds
	double steady_samples; // NAN: not known for at least one iteration
	struct phase_worker worker;
	struct histogram batches; // seconds
};

static struct thread_count *count_of(
	struct phase_threads *threads, const struct timeline_thread *thread)
{
	void *counts = threads->counts;
	if (array_reserve(&counts, &threads->capacity, thread->index + 1,
		    sizeof(struct thread_count *)) < 0) {
		return NULL;
	}
	threads->counts = counts;
	while (threads->n <= thread->index) {
		threads->counts[threads->n++] = NULL;
	}
	if (!threads->counts[thread->index]) {
		threads->counts[thread->index] = calloc(1, sizeof(struct thread_count));
	}
	struct thread_count *count = threads->counts[thread->index];
	if (count) {
		count->thread = *thread;
	}
	return count;
}

// 0 or -ENOMEM.
static int phase_threads_iteration(struct phase_threads *threads,
	const struct timeline_thread *thread, const struct iteration *iteration)
{
	struct thread_count *count = count_of(threads, thread);
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
		count->rank.steady++;
		count->rank.steady_s += seconds;
		count->steady_samples += iteration->samples < 0 ? NAN : (double)iteration->samples;
	}
	count->rank.exchanges += iteration->phase_ns[PHASE_COMMUNICATION] > 0;
	for (size_t i = 0; i < PHASES_MAX; i++) {
		double phase_s = (double)iteration->phase_ns[i] / 1e9;
		count->rank.phase_s[i] += phase_s;
		count->rank.steady_phase_s[i] += iteration->warm_up || iteration->cut ? 0 : phase_s;
	}
	return 0;
}

static int phase_threads_prepare(struct phase_threads *threads,
	const struct timeline_thread *thread, int64_t start_ns, int64_t end_ns, int64_t samples,
	int64_t warm_until_ns)
{
	struct thread_count *count = count_of(threads, thread);
	if (!count) {
		return -ENOMEM;
	}
	struct phase_worker *worker = &count->worker;
	double seconds = (double)(end_ns - start_ns) / 1e9, last_s = (double)end_ns / 1e9;
	bool first = worker->batches == 0;
	worker->first_s = first ? (double)start_ns / 1e9 : worker->first_s;
	worker->last_s = first ? last_s : fmax(worker->last_s, last_s);
	worker->prepare_s += seconds;
	int64_t steady_ns = end_ns - (start_ns > warm_until_ns ? start_ns : warm_until_ns);
	worker->steady_s += steady_ns > 0 ? (double)steady_ns / 1e9 : 0;
	if (samples < 0 || (!first && worker->samples < 0) ||
		__builtin_add_overflow(worker->samples, samples, &worker->samples)) {
		worker->samples = -1; // not known for one batch: the sum would be too small
	}
	worker->batches++;
	histogram_add(&count->batches, seconds, 1);
	return 0;
}

static bool is_collection(const struct timeline_own *span)
{
	return strcmp(span->name, "python.gc") == 0;
}

static int phase_threads_collect(struct phase_threads *threads,
	const struct timeline_thread *thread, const struct timeline_own *span)
{
	struct thread_count *count = count_of(threads, thread);
	double seconds = (double)(span->end_ns - span->start_ns) / 1e9;
	if (!count) {
		return -ENOMEM;
	}
	count->worker.collected_s += seconds;
	if (span->inside && span->phase >= 0 && span->phase < N_KNOWN_PHASES &&
		!phase_id_is_apart((enum phase_id)span->phase)) {
		count->rank.collected_s[span->phase] += seconds;
		count->rank.collections++;
	}
	return 0;
}

static void put_worker(const struct thread_count *count, struct phase_worker *ret)
{
	*ret = count->worker;
	ret->entity = count->thread.entity;
	ret->pid = count->thread.pid;
	ret->thread = count->thread.thread;
	ret->batch_p50_s = histogram_quantile(&count->batches, 0.5);
	ret->batch_max_s = count->batches.total > 0 ? count->batches.largest : NAN;
	ret->per_sample_s = ret->samples > 0 ? ret->prepare_s / (double)ret->samples : NAN;
	ret->cpu_s = NAN; // filled from processes.h later
}

static void put_rank(const struct thread_count *count, struct phase_rank *ret)
{
	*ret = count->rank;
	ret->entity = count->thread.entity;
	ret->pid = count->thread.pid;
	ret->thread = count->thread.thread;
	ret->waits = NAN;
	ret->p50_s = histogram_quantile(&count->lengths, 0.5);
	ret->samples_per_s = count->rank.steady_s > 0 ? count->steady_samples / count->rank.steady_s
	                                              : NAN;
}

static bool rank_before(const struct phase_rank *a, const struct phase_rank *b)
{
	return a->number != b->number   ? a->number < b->number
	       : a->entity != b->entity ? a->entity < b->entity
	       : a->pid != b->pid       ? a->pid < b->pid
	                                : a->thread < b->thread;
}

// Takes the launcher's numbers. They count if every rank has one, and each another one.
static bool take_launched(const struct entity_list *entities, struct phases *p)
{
	bool known = p->n_ranks > 1;
	for (size_t i = 0; i < p->n_ranks && known; i++) {
		const struct entity *process = entity_find(entities, p->ranks[i].entity);
		double rank = process ? entity_number(process, "rank") : NAN;
		known = rank >= 0 && rank <= INT32_MAX && rank == floor(rank);
		p->ranks[i].number = known ? (int)rank : 0;
		for (size_t k = 0; k < i; k++) {
			known = known && p->ranks[k].number != p->ranks[i].number;
		}
	}
	return known;
}

static void number_ranks(const struct entity_list *entities, struct phases *p)
{
	p->ranks_launched = take_launched(entities, p);
	for (size_t i = 0; i < p->n_ranks && !p->ranks_launched; i++) {
		p->ranks[i].number = 0;
	}
	for (size_t i = 0; i < p->n_ranks; i++) {
		for (size_t k = 0; k < p->n_ranks; k++) {
			p->ranks[i].place += rank_before(&p->ranks[k], &p->ranks[i]);
		}
	}
	for (size_t i = 0; i < p->n_ranks && !p->ranks_launched; i++) {
		p->ranks[i].number = p->ranks[i].place;
	}
}

// Of a steady iteration. NAN: there is none.
static double mean_length(const struct phase_rank *rank)
{
	return rank->steady > 0 ? rank->steady_s / (double)rank->steady : NAN;
}

static double mean_phase(const struct phase_rank *rank, enum phase_id phase)
{
	return rank->steady > 0 ? rank->steady_phase_s[phase] / (double)rank->steady : NAN;
}

// Ranks that wait for each other have iterations of the same length: their medians, or, where
// load on the machine scatters these, their means.
static bool are_in_step(const struct phase_rank *ranks, size_t n)
{
	double shortest = INFINITY, longest = 0, least = INFINITY, most = 0;
	for (size_t i = 0; i < n; i++) {
		shortest = fmin(shortest, ranks[i].p50_s);
		longest = fmax(longest, ranks[i].p50_s);
		least = fmin(least, mean_length(&ranks[i]));
		most = fmax(most, mean_length(&ranks[i]));
	}
	return n > 1 && (longest - shortest <= IN_STEP * longest || most - least <= IN_STEP * most);
}

static double step_seconds(const struct phase_rank *rank)
{
	return mean_phase(rank, PHASE_FORWARD) + mean_phase(rank, PHASE_BACKWARD);
}

// DistributedDataParallel exchanges gradients during backward and does not mark that. All ranks do
// the same computation, so a rank whose backward is longer, relative to its forward, waited in it
// for slower ranks. With buffers in the model (batch norm), forward begins with an exchange of
// those. Then backward is shorter relative to forward than it can be, and only the sum of both
// shows the wait; so it is where a rank does other work in its forward, and there the others'
// backward is longer than its own.
static enum rank_waits infer_waits(struct phase_rank *ranks, size_t n)
{
	double ratio = INFINITY, least_s = INFINITY, least_backward_s = INFINITY;
	bool known = true; // false if a rank marked no forward
	for (size_t i = 0; i < n; i++) {
		double backward_s = mean_phase(&ranks[i], PHASE_BACKWARD);
		double own = backward_s / mean_phase(&ranks[i], PHASE_FORWARD);
		known = known && own > 0 && isfinite(own);
		ratio = fmin(ratio, own);
		least_s = fmin(least_s, step_seconds(&ranks[i]));
		least_backward_s = fmin(least_backward_s, backward_s);
	}
	bool in_forward = ratio < LEAST_BACKWARD;
	if (!known || !are_in_step(ranks, n)) {
		return WAITS_UNKNOWN;
	}
	for (size_t i = 0; i < n; i++) {
		struct phase_rank *rank = &ranks[i];
		double backward_s = mean_phase(rank, PHASE_BACKWARD);
		double waits_s = in_forward ? fmax(step_seconds(rank) - least_s,
						      backward_s - least_backward_s)
		                            : backward_s - ratio * mean_phase(rank, PHASE_FORWARD);
		rank->waits = waits_s / mean_length(rank);
		rank->waits = rank->waits >= GRAIN ? rank->waits : 0;
	}
	return in_forward ? WAITS_IN_FORWARD : WAITS_IN_BACKWARD;
}

static double marked_waits(const struct phase_rank *rank)
{
	return rank->iteration_s > 0 ? rank->phase_s[PHASE_COMMUNICATION] / rank->iteration_s : NAN;
}

// Marks of a few collectives (a barrier at the end of each epoch) do not show that ranks exchange
// gradients in backward, too. Those in most iterations may be that exchange.
static enum rank_waits fill_waits(struct phase_rank *ranks, size_t n)
{
	double most = 0;
	bool few = true;
	for (size_t i = 0; i < n; i++) {
		most = fmax(most, marked_waits(&ranks[i])); // NAN does not count
		few = few && 2 * ranks[i].exchanges < ranks[i].iterations;
	}
	enum rank_waits inferred = few && most < GRAIN ? infer_waits(ranks, n) : WAITS_UNKNOWN;
	if (inferred != WAITS_UNKNOWN || !(most > 0)) {
		return inferred;
	}
	for (size_t i = 0; i < n; i++) {
		ranks[i].waits = marked_waits(&ranks[i]);
	}
	return WAITS_MARKED;
}

double phases_waits_scatter(const struct phase_rank *ranks, size_t n)
{
	double steady = INFINITY;
	for (size_t i = 0; i < n; i++) {
		steady = fmin(steady, (double)ranks[i].steady);
	}
	return WAITS_SCATTER / sqrt(fmax(1, steady));
}

// The rank that waits least; if waits are not known, the one with the longest iterations.
static void find_slowest(struct phase_rank *ranks, size_t n, enum rank_waits waits)
{
	struct phase_rank *slowest = NULL;
	double least = INFINITY, most = -INFINITY;
	for (size_t i = 0; i < n; i++) {
		struct phase_rank *rank = &ranks[i];
		double ahead = isfinite(rank->waits) ? rank->waits : -log(rank->p50_s);
		slowest = ahead < least ? rank : slowest;
		least = fmin(least, ahead);
		most = fmax(most, ahead);
	}
	bool estimated = waits == WAITS_IN_BACKWARD || waits == WAITS_IN_FORWARD;
	double scatter = estimated ? phases_waits_scatter(ranks, n) : 0;
	if (slowest && most - least >= fmax(IMBALANCE, scatter)) {
		slowest->slowest = true;
	}
}

enum rank_waits phases_judge_ranks(struct phase_rank *ranks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ranks[i].waits = NAN;
		ranks[i].slowest = false;
	}
	enum rank_waits waits = fill_waits(ranks, n);
	find_slowest(ranks, n, waits);
	return waits;
}

double phases_rank_own(const struct phase_rank *rank)
{
	return mean_length(rank) * (1 - rank->waits);
}

double phases_rank_mean(const struct phase_rank *rank, enum phase_id phase)
{
	return mean_phase(rank, phase);
}

static int worker_compare(const void *left, const void *right)
{
	const struct phase_worker *a = left, *b = right;
	return a->first_s != b->first_s ? (a->first_s > b->first_s) - (a->first_s < b->first_s)
	                                : (a->thread > b->thread) - (a->thread < b->thread);
}

// Fills workers and ranks.
static int phase_threads_finish(const struct phase_threads *threads, struct phases *ret)
{
	ret->workers = calloc(threads->n + 1, sizeof(*ret->workers));
	ret->ranks = calloc(threads->n + 1, sizeof(*ret->ranks));
	if (!ret->workers || !ret->ranks) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < threads->n; i++) {
		const struct thread_count *count = threads->counts[i];
		if (count && count->worker.batches > 0) {
			put_worker(count, &ret->workers[ret->n_workers++]);
		}
		if (count && count->rank.iterations > 0) {
			put_rank(count, &ret->ranks[ret->n_ranks++]);
		}
	}
	qsort(ret->workers, ret->n_workers, sizeof(*ret->workers), worker_compare);
	enum rank_waits waits = phases_judge_ranks(ret->ranks, ret->n_ranks);
	ret->waits_inferred = waits == WAITS_IN_BACKWARD || waits == WAITS_IN_FORWARD;
	return 0;
}

// Time of a thread in iterations, in seconds.
static double phase_threads_iterated_s(const struct phase_threads *threads, size_t thread)
{
	const struct thread_count *count = thread < threads->n ? threads->counts[thread] : NULL;
	return count ? count->rank.iteration_s : 0;
}

static void phase_threads_done(struct phase_threads *threads)
{
	for (size_t i = 0; i < threads->n; i++) {
		if (threads->counts[i]) {
			histogram_done(&threads->counts[i]->lengths);
			histogram_done(&threads->counts[i]->batches);
			free(threads->counts[i]);
		}
	}
	free(threads->counts);
	*threads = (struct phase_threads){0};
}

// Steady ------------------------------------------------------------------------------------------
//
// Batch means: an iteration resembles the one before it (a cold page cache, a slow worker whose
// turn comes every fourth time), so the spread of single iterations would give intervals that are
// too narrow. Batches of neighbours are nearly independent. A phase's share is a ratio of sums, and
// the spread of batches around that ratio gives its interval.

#define MANY 20 // from this number of iterations on, a batch has at least four

static const struct estimate unknown = {NAN, NAN, NAN};

static void steady_init(struct steady *s, uint64_t expected)
{
	uint64_t batches = expected < MANY ? expected / 2 : expected / 4;
	*s = (struct steady){.expected = expected};
	s->n_batches = batches < 5 ? 0 : batches > BATCHES_MAX ? BATCHES_MAX : (size_t)batches;
}

static void steady_done(struct steady *s)
{
	histogram_done(&s->lengths);
	histogram_done(&s->samples);
	for (size_t i = 0; i < PHASES_MAX; i++) {
		histogram_done(&s->phases[i]);
	}
}

static void batch_add(struct steady_batch *batch, const struct iteration *iteration)
{
	batch->length_s += (double)iteration->length_ns / 1e9;
	batch->samples += (double)iteration->samples;
	for (size_t i = 0; i < PHASES_MAX; i++) {
		batch->phase_s[i] += (double)iteration->phase_ns[i] / 1e9;
	}
	batch->n++;
}

static void steady_add(struct steady *s, const struct iteration *iteration)
{
	if (s->n_batches > 0) {
		double place = (double)s->n / (double)s->expected * (double)s->n_batches;
		size_t at = place < (double)s->n_batches ? (size_t)place : s->n_batches - 1;
		batch_add(&s->batches[at], iteration);
	}
	batch_add(&s->sum, iteration);
	s->n++;
	s->samples_unknown = s->samples_unknown || iteration->samples < 0;
	histogram_add(&s->lengths, (double)iteration->length_ns / 1e9, 1);
	histogram_add(&s->samples, (double)iteration->samples, 1);
	for (size_t i = 0; i < PHASES_MAX; i++) {
		histogram_add(&s->phases[i], (double)iteration->phase_ns[i] / 1e9, 1);
	}
}

// A value of a batch: a phase's time, all time, samples, or iterations.
typedef double batch_value(const struct steady_batch *batch, size_t phase);

static double value_phase(const struct steady_batch *batch, size_t phase)
{
	return batch->phase_s[phase];
}

static double value_length(const struct steady_batch *batch, size_t phase)
{
	(void)phase;
	return batch->length_s;
}

static double value_samples(const struct steady_batch *batch, size_t phase)
{
	(void)phase;
	return batch->samples;
}

static double value_count(const struct steady_batch *batch, size_t phase)
{
	(void)phase;
	return (double)batch->n;
}

// The ratio of two sums, at most `most`.
static struct estimate ratio_of(
	const struct steady *s, batch_value *top, batch_value *bottom, size_t phase, double most)
{
	double over = bottom(&s->sum, phase);
	if (s->n == 0 || !(over > 0)) {
		return unknown;
	}
	double ratio = top(&s->sum, phase) / over, squares = 0;
	size_t n = 0;
	for (size_t i = 0; i < s->n_batches; i++) {
		const struct steady_batch *batch = &s->batches[i];
		double rest = top(batch, phase) - ratio * bottom(batch, phase);
		squares += rest * rest;
		n += batch->n > 0;
	}
	if (n < 5) { // fewer than expected: the file changed or is damaged
		return (struct estimate){ratio, NAN, NAN};
	}
	double count = (double)n;
	double half = statistics_t95((double)(n - 1)) * sqrt(squares * count / (count - 1)) / over;
	return (struct estimate){ratio, fmax(0, ratio - half), fmin(most, ratio + half)};
}

// The median of a phase in seconds; of the length, for PHASES_MAX.
static double steady_median(const struct steady *s, size_t phase)
{
	return histogram_quantile(phase < PHASES_MAX ? &s->phases[phase] : &s->lengths, 0.5);
}

static void phase_figures(const struct steady *s, size_t at, struct phase *phase)
{
	const struct histogram *h = &s->phases[at];
	if (s->n == 0 || phase->apart) {
		phase->share = unknown;
		phase->mean_s = phase->p50_s = phase->p95_s = phase->max_s = NAN;
		return;
	}
	phase->share = ratio_of(s, value_phase, value_length, at, 1);
	phase->mean_s = s->sum.phase_s[at] / (double)s->n;
	phase->p50_s = histogram_quantile(h, 0.5);
	phase->p95_s = histogram_quantile(h, 0.95);
	phase->max_s = h->total > 0 ? h->largest : NAN;
}

// Sets the figures of *ret, whose phases already have names, and moves the histogram of lengths to
// it.
static void steady_figures(struct steady *s, struct phases *ret)
{
	for (size_t i = 0; i < ret->n; i++) {
		phase_figures(s, i, &ret->items[i]);
	}
	ret->steady = s->n;
	ret->length_s = ratio_of(s, value_length, value_count, 0, INFINITY);
	ret->samples_per_s = s->samples_unknown
	                             ? unknown
	                             : ratio_of(s, value_samples, value_length, 0, INFINITY);
	ret->samples_per_iteration = s->samples_unknown ? NAN
	                                                : histogram_quantile(&s->samples, 0.5);
	bool any = s->lengths.total > 0;
	ret->min_s = any ? s->lengths.smallest : NAN;
	ret->p50_s = histogram_quantile(&s->lengths, 0.5);
	ret->p95_s = histogram_quantile(&s->lengths, 0.95);
	ret->p99_s = histogram_quantile(&s->lengths, 0.99);
	ret->max_s = any ? s->lengths.largest : NAN;
	ret->lengths = s->lengths;
	s->lengths = (struct histogram){0};
}

// Slowest -----------------------------------------------------------------------------------------
//
// Compares slow iterations with the usual one: phases with their medians, rates of the machine with
// their medians over the run.

#define PHASE_CAUSES_MAX 3
#define LONGER_RATIO 1.2 // times its median: less is normal variation
#define LONGER_SHARE 0.1 // of the time by which the iteration exceeds the median
#define AROUND_US 200000 // window, at least: counters are read some ticks apart

// Rates of the machine that can slow down an iteration. One is reported if it was at least `ratio`
// times the usual rate and at least `least` per second. For ENTITY_PROCESS it is that of the
// iterating process.
static const struct {
	const char *what;
	const char *metric;
	enum entity_kind kind;
	double ratio;
	double least;
} rates[] = {
	{"CPU use of the job", NAME_CPU_TIME, ENTITY_JOB, 1.75, 0.5},
	{"waiting for a CPU", NAME_CPU_WAIT, ENTITY_PROCESS, 2, 0.1},
	{"throttled by the job's CPU quota", NAME_THROTTLED_TIME, ENTITY_JOB, 1.5, 0.05},
	{"stalled for CPU", NAME_JOB_PRESSURE "cpu.some", ENTITY_JOB, 2, 0.1},
	{"stalled for memory", NAME_JOB_PRESSURE "memory.some", ENTITY_JOB, 2, 0.02},
	{"stalled for I/O", NAME_JOB_PRESSURE "io.some", ENTITY_JOB, 2, 0.1},
	{"host stalled for CPU", NAME_PRESSURE "cpu.some", ENTITY_HOST, 2, 0.1},
	{"host stalled for memory", NAME_PRESSURE "memory.some", ENTITY_HOST, 2, 0.02},
	{"host stalled for I/O", NAME_PRESSURE "io.some", ENTITY_HOST, 2, 0.1},
	{"read from storage", NAME_READ_STORAGE, ENTITY_JOB, 2, 1e6},
	{"written to storage", NAME_WRITE_STORAGE, ENTITY_JOB, 2, 1e6},
	{"major faults", NAME_MAJOR_FAULTS, ENTITY_PROCESS, 2, 10},
	{"pages re-read after eviction", NAME_REFAULTS, ENTITY_JOB, 2, 100},
	{"host's major faults", NAME_HOST_MAJOR_FAULTS, ENTITY_HOST, 2, 10},
};

static void add_cause(struct slow_iteration *slow, const struct slow_cause *cause)
{
	if (slow->n_causes < SLOW_CAUSES_MAX) {
		slow->causes[slow->n_causes++] = *cause;
	}
}

// Phases ------------------------------------------------------------------------------------------

// The phase, of those not reported yet, that exceeds its median by most; -1 if none does by enough.
static int longest_beyond(const struct slow_iteration *slow, const struct steady *steady,
	const struct phases *p, const bool *told)
{
	double least = LONGER_SHARE * ((double)slow->iteration.length_ns / 1e9 -
					      steady_median(steady, PHASES_MAX));
	int longest = -1;
	for (size_t i = 0; i < p->n; i++) {
		double median = steady_median(steady, i);
		double seconds = (double)slow->iteration.phase_ns[i] / 1e9;
		if (!told[i] && !p->items[i].apart && seconds > LONGER_RATIO * median &&
			seconds - median >= least && seconds - median > 0) {
			least = seconds - median;
			longest = (int)i;
		}
	}
	return longest;
}

static void explain_by_phases(
	struct slow_iteration *slow, const struct steady *steady, const struct phases *p)
{
	bool told[PHASES_MAX] = {false};
	slow->longer = -1;
	for (int n = 0; n < PHASE_CAUSES_MAX && !p->phases_missing; n++) {
		int phase = longest_beyond(slow, steady, p, told);
		if (phase < 0) {
			return;
		}
		slow->longer = n == 0 ? phase : slow->longer;
		told[phase] = true;
		add_cause(slow, &(struct slow_cause){.what = p->items[phase].name,
					.unit = "s",
					.value = (double)slow->iteration.phase_ns[phase] / 1e9,
					.usual = steady_median(steady, (size_t)phase)});
	}
}

// The machine -------------------------------------------------------------------------------------

// Growth per second of a counter over a window from its first to its last reading; NAN with fewer
// than two readings.
static double rate_within(const struct series *s)
{
	size_t first = 0, last = s->n;
	while (first < last && !isfinite(s->values[first])) {
		first++;
	}
	while (last > first && !isfinite(s->values[last - 1])) {
		last--;
	}
	if (last - first < 2 || s->t_us[last - 1] <= s->t_us[first]) {
		return NAN;
	}
	double grown = s->values[last - 1] - s->values[first];
	return grown < 0 ? NAN : grown / ((double)(s->t_us[last - 1] - s->t_us[first]) / 1e6);
}

static const struct entity *entity_of_rate(
	const struct phases_input *in, const struct phases *p, size_t rate)
{
	if (rates[rate].kind == ENTITY_PROCESS) {
		return p->n_ranks > 0 ? entity_find(&in->tables->entities, p->ranks[0].entity)
		                      : NULL;
	}
	return entity_first(&in->tables->entities, rates[rate].kind);
}

static int explain_by_rate(const struct phases_input *in, const struct entity *entity,
	struct slow_iteration *slow, size_t rate, struct error *e)
{
	const struct metric_row *metric = metric_list_find_name(
		&in->tables->metrics, rates[rate].kind, rates[rate].metric);
	double usual = entity && metric ? tables_figure(in->tables, entity->id, rates[rate].metric,
						  FIGURE_P50)
	                                : NAN;
	if (!isfinite(usual)) {
		return 0;
	}
	struct series series = {0};
	int64_t from_us = slow->iteration.start_ns / 1000, to_us = slow->iteration.end_ns / 1000;
	if (to_us - from_us < AROUND_US) {
		from_us -= (AROUND_US - (to_us - from_us)) / 2;
		to_us = from_us + AROUND_US;
	}
	int r = reader_series(
		in->tables->reader, entity->id, rates[rate].metric, from_us, to_us, &series, e);
	double value = r == 0 ? rate_within(&series) : NAN;
	series_done(&series);
	if (value >= rates[rate].least && value >= rates[rate].ratio * usual) {
		add_cause(slow, &(struct slow_cause){.what = rates[rate].what,
					.metric = rates[rate].metric,
					.unit = metric->unit,
					.value = value,
					.usual = usual});
	}
	return r;
}

// Adds the causes to p->slowest. Returns 0, or -errno if some could not be explained.
static int slowest_explain(const struct phases_input *in, const struct steady *steady,
	struct phases *p, struct error *e)
{
	int r = 0;
	for (size_t i = 0; i < p->n_slowest; i++) {
		struct slow_iteration *slow = &p->slowest[i];
		explain_by_phases(slow, steady, p);
		for (size_t k = 0; k < ARRAY_LENGTH(rates) && r == 0; k++) {
			r = explain_by_rate(in, entity_of_rate(in, p, k), slow, k, e);
		}
	}
	return r;
}

// Words -------------------------------------------------------------------------------------------

static void append_pressure(struct text *t, double value)
{
	words_append_percent(t, value);
	text_append_string(t, " of the time");
}

static void append_cpus(struct text *t, double value)
{
	words_append_counted(t, value, "CPU");
}

static void append_bytes_rate(struct text *t, double value)
{
	words_append_bytes(t, value);
	text_append_string(t, "/s");
}

static void append_rate(struct text *t, double value)
{
	words_append_number(t, value);
	text_append_string(t, "/s");
}

static void append_value(struct text *t, const struct slow_cause *cause, double value)
{
	static const char *const cpus[] = {NAME_CPU_TIME, NAME_THROTTLED_TIME};
	bool seconds = strcmp(cause->unit, "s") == 0;
	bool of_cpus = false;
	for (size_t i = 0; cause->metric && i < ARRAY_LENGTH(cpus); i++) {
		of_cpus = of_cpus || strcmp(cause->metric, cpus[i]) == 0;
	}
	void (*const append)(struct text *, double) = !cause->metric ? words_append_seconds
	                                              : of_cpus      ? append_cpus
	                                              : seconds      ? append_pressure
	                                              : strcmp(cause->unit, "By") == 0
	                                                      ? append_bytes_rate
	                                                      : append_rate;
	append(t, value);
}

void slow_iteration_append_why(struct text *t, const struct slow_iteration *slow)
{
	for (size_t i = 0; i < slow->n_causes; i++) {
		const struct slow_cause *cause = &slow->causes[i];
		text_append_string(t, i ? "; " : "");
		text_append_printable(t, cause->what, strlen(cause->what));
		text_append_string(t, " ");
		append_value(t, cause, cause->value);
		text_append_string(t, " instead of ");
		append_value(t, cause, cause->usual);
	}
}

// Phases ------------------------------------------------------------------------------------------

struct gathering {
	const struct phases_input *in;
	struct phases *p;
	struct steady steady;
	struct phase_threads threads;
	struct own_gathering *own;
	size_t epoch; // of the last piece
	size_t iterations_capacity;
	int64_t warm_until_ns;
	bool no_room; // for more iterations
	bool began; // the first iteration has begun
	struct iteration last;
	// Since the last iteration ended:
	double outside_s; // without phases that are apart
	bool saved; // a checkpoint was written
	double idle_s; // part of outside_s in no phase
	struct named_work named[N_NAMED];
	int64_t compiled_ns; // end of the last compilation of the main thread
};

// Time --------------------------------------------------------------------------------------------

// The epoch at t_ns, NULL: none. Lowers *until_ns to the time up to which that holds.
static struct epoch_phases *epoch_of(struct gathering *g, int64_t t_ns, int64_t *until_ns)
{
	const struct epoch_list *epochs = &g->in->tables->epochs;
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
	if (piece->in_iteration && !phase_id_is_apart((enum phase_id)piece->phase)) {
		epoch->iteration_s += s;
	}
}

// Adds a piece to the figures of the run.
static void run_take(struct gathering *g, const struct timeline_piece *piece, double s)
{
	struct phases *p = g->p;
	if (piece->phase >= 0) {
		p->items[piece->phase].total_s += s;
	}
	g->began = g->began || piece->in_iteration;
	if (!g->began) {
		p->startup_s += s;
	} else if (piece->phase >= 0 && phase_id_is_apart((enum phase_id)piece->phase)) {
		p->apart_s += s;
		g->saved = g->saved || piece->phase == PHASE_CHECKPOINT;
	} else if (piece->in_iteration) {
		p->iterations_s += s;
	} else {
		g->outside_s += s;
		g->idle_s += piece->phase < 0 ? s : 0;
	}
}

// The time in which the job was not stopped.
static double running_s(const struct gathering *g, int64_t from_ns, int64_t to_ns)
{
	return (double)(to_ns - from_ns - stops_within(g->in->stops, from_ns, to_ns)) / 1e9;
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

// Iterations --------------------------------------------------------------------------------------

// Keeps every second iteration, once there are twice as many as are kept.
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

// If the numbers of iterations skip some, the time since the last iteration belongs to those whose
// marks were lost.
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

// An iteration of the main thread has ended.
static void settle_named(struct gathering *g, bool steady)
{
	for (size_t i = 0; i < N_NAMED; i++) {
		const struct named_work *pending = &g->named[i];
		struct named_work *work = &g->p->named[i];
		if (steady && pending->count > 0) {
			work->count += pending->count;
			work->seconds += pending->seconds;
			work->iterations++;
			work->since = 0;
		} else {
			work->since += steady;
		}
		g->named[i] = (struct named_work){0};
	}
}

static void main_iteration(struct gathering *g, struct iteration *iteration)
{
	struct phases *p = g->p;
	int64_t middle_ns = iteration->start_ns + (iteration->end_ns - iteration->start_ns) / 2;
	iteration->epoch = epoch_at(&g->in->tables->epochs, middle_ns, 0);
	settle_gap(g, iteration);
	epoch_count(p, iteration);
	settle_named(g, !iteration->stopped && !iteration->cut && !iteration->warm_up);
	if (iteration->stopped) {
		p->stopped++;
	} else if (iteration->compiled) {
		p->compiled++;
		p->compiled_s += (double)iteration->length_ns / 1e9;
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

// The walk ----------------------------------------------------------------------------------------

static void take_piece(
	void *context, const struct timeline_thread *thread, const struct timeline_piece *piece)
{
	struct gathering *g = context;
	if (thread->index == 0) {
		main_piece(g, piece);
	}
	if (piece->phase == PHASE_VALIDATION || piece->phase == PHASE_CHECKPOINT) {
		struct thread_count *count = count_of(&g->threads, thread);
		double s = running_s(g, piece->from_ns, piece->to_ns);
		g->no_room = g->no_room || !count;
		if (count) {
			*(piece->phase == PHASE_VALIDATION ? &count->rank.validation_s
							   : &count->rank.checkpoint_s) += s;
		}
	}
}

static void take_iteration(
	void *context, const struct timeline_thread *thread, const struct iteration *iteration)
{
	struct gathering *g = context;
	struct iteration copy = *iteration;
	copy.stopped = stops_within(g->in->stops, copy.start_ns, copy.end_ns) > 0;
	copy.compiled = copy.compiled && !copy.cut;
	copy.cut = copy.cut || copy.stopped || copy.compiled;
	if (phase_threads_iteration(&g->threads, thread, &copy) < 0) {
		g->no_room = true;
	}
	if (thread->index == 0) {
		main_iteration(g, &copy);
	}
}

static void take_phase(void *context, const struct timeline_thread *thread, int phase, bool nested)
{
	struct gathering *g = context;
	if (thread->index == 0) {
		g->p->items[phase].spans++;
		g->p->items[phase].nested += nested;
	}
}

static int take_prepare(void *context, const struct timeline_thread *thread, int64_t start_ns,
	int64_t end_ns, int64_t samples)
{
	struct gathering *g = context;
	return phase_threads_prepare(
		&g->threads, thread, start_ns, end_ns, samples, g->warm_until_ns);
}

static void add_named(struct named_work pending[N_NAMED], const struct timeline_own *span)
{
	enum named named = named_of_name(span->name);
	if (named < N_NAMED) {
		pending[named].count++;
		pending[named].seconds += (double)(span->end_ns - span->start_ns) / 1e9;
	}
}

static int take_own(
	void *context, const struct timeline_thread *thread, const struct timeline_own *span)
{
	struct gathering *g = context;
	if (thread->index == 0 && named_of_name(span->name) < N_COMPILERS) {
		int64_t from_ns = span->start_ns > g->compiled_ns ? span->start_ns : g->compiled_ns;
		g->p->compilations++;
		g->p->compiling_s += span->end_ns > from_ns ? (double)(span->end_ns - from_ns) / 1e9
		                                            : 0;
		g->compiled_ns = span->end_ns > from_ns ? span->end_ns : g->compiled_ns;
	}
	if (thread->index == 0 && span->phase == PHASE_VALIDATION &&
		named_of_name(span->name) == NAMED_LOADER_START) {
		g->p->validation_starting_s += running_s(g, span->start_ns, span->end_ns);
	}
	bool apart = span->phase >= 0 && span->phase < N_KNOWN_PHASES &&
	             phase_id_is_apart((enum phase_id)span->phase);
	bool between = g->began && !span->inside && !apart;
	if (thread->index == 0 && between && named_of_name(span->name) == NAMED_KERAS_PREDICT) {
		g->p->predicts_between.count++;
		g->p->predicts_between.seconds += running_s(g, span->start_ns, span->end_ns);
	}
	if (thread->index == 0 && span->inside && !apart) {
		add_named(g->named, span);
	}
	int r = is_collection(span) ? phase_threads_collect(&g->threads, thread, span) : 0;
	return r < 0 ? r : own_spans_add(g->own, thread, span);
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
	return r == 0 && g->no_room
	               ? error_errno(e, ENOMEM, "%s", reader_path(g->in->tables->reader))
	               : r;
}

// What is missing ---------------------------------------------------------------------------------

static char *why_no_marks(const struct phases_input *in)
{
	struct missing_marker parts[MISSING_MARKERS_MAX];
	size_t n = tables_missing_markers(in->tables->reader, parts);
	struct text why = {0};
	for (size_t i = 0; i < n; i++) {
		if (parts[i].phases) {
			text_append_string(&why, why.length ? "; " : "");
			text_append_printable(&why, parts[i].reason, strlen(parts[i].reason));
		}
	}
	if (why.length == 0) {
		text_append_string(&why, "the job did not mark iterations");
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

static int say_missing(struct phases *p, const struct phases_input *in, uint64_t left_out)
{
	struct text incomplete = {0};
	append_count(&incomplete, p->unrecorded, "iteration was not recorded",
		"iterations were not recorded");
	append_count(&incomplete, p->cut, "iteration was truncated", "iterations were truncated");
	append_count(&incomplete, left_out,
		"span was left out: too many threads, or nested too "
		"deeply",
		"spans were left out: too many threads, or nested too deeply");
	p->incomplete = incomplete.length > 0 ? text_steal(&incomplete) : NULL;
	p->missing = p->total == 0 ? why_no_marks(in) : NULL;
	p->phases_missing = any_phase(p) ? NULL : why_no_marks(in);
	return incomplete.failed || (p->total == 0 && !p->missing) ||
	                       (!any_phase(p) && !p->phases_missing)
	               ? -ENOMEM
	               : 0;
}

// Ends --------------------------------------------------------------------------------------------

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
		p->items[i].apart = phase_id_is_apart((enum phase_id)i);
	}
}

static int gather(struct gathering *g, struct timeline *t, struct error *e)
{
	struct phases *p = g->p;
	uint64_t whole = timeline_iterations(t);
	uint64_t others = timeline_warm_up(t) + timeline_compiled(t);
	steady_init(&g->steady, whole > others ? whole - others : 0);
	p->compiling = timeline_compiling(t, &p->compiling_in_s);
	g->warm_until_ns = timeline_warm_until_ns(t);
	p->warm_until_s = (double)g->warm_until_ns / 1e9;
	int r = walk(g, t, e);
	if (r == -ENOMEM) {
		return r;
	}
	p->after_s = g->began ? g->outside_s : 0;
	name_phases(p, t);
	epochs_finish(p, &g->in->tables->epochs);
	int more = phase_threads_finish(&g->threads, p);
	number_ranks(&g->in->tables->entities, p);
	double run_s = (double)reader_recorded_ns(g->in->tables->reader) / 1e9;
	more = more < 0 ? more : own_spans_finish(g->own, &g->threads, run_s, p);
	more = more < 0 ? more : say_missing(p, g->in, timeline_left_out(t));
	if (more < 0) {
		return error_errno(e, -more, "%s", reader_path(g->in->tables->reader));
	}
	struct error slow_error = {0};
	if (!g->in->brief) {
		// damaged data is not an error here
		slowest_explain(g->in, &g->steady, p, &slow_error);
	}
	steady_figures(&g->steady, p);
	return r;
}

int phases_load(const struct phases_input *in, struct phases *ret, struct error *e)
{
	struct timeline *t = NULL;
	struct gathering g = {.in = in, .p = ret};
	*ret = (struct phases){.stride = 1, .n_epochs = in->tables->epochs.n};
	ret->epochs = calloc(ret->n_epochs + 1, sizeof(*ret->epochs));
	int opened = ret->epochs && own_spans_new(&g.own) == 0
	                     ? timeline_open(in->tables->reader, &t, e)
	                     : error_errno(e, ENOMEM, "%s", reader_path(in->tables->reader));
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

// Own spans ---------------------------------------------------------------------------------------
// A tree of names. The parent of a span is the span of its thread that began before it and ends
// after it.
// A tree of names: a span is inside those of its thread that began before it and end after it.

#define NODES_MAX 512
#define SLOTS 1024 // size of the hash table of names; more than nodes
#define DEPTH_MAX 64
#define OWN_THREADS_MAX (THREADS_MAX + 1)

struct node {
	char name[PHASE_NAME_MAX];
	size_t parent; // index into nodes; OWN_SPAN_NONE
	bool inside; // inside iterations
	uint64_t count;
	double total_s;
	struct histogram lengths; // seconds
	uint8_t threads[OWN_THREADS_MAX / 8 + 1]; // a bit for each thread with such spans
};

// The open spans of a thread.
struct stack {
	struct {
		size_t node;
		int64_t end_ns;
	} items[DEPTH_MAX];
	size_t n;
};

struct own_gathering {
	struct node *nodes[NODES_MAX];
	size_t n;
	uint16_t slots[SLOTS]; // 1 + index into nodes; 0: free
	struct stack **stacks; // [n_stacks], by thread; NULL if it has no spans
	size_t n_stacks;
	size_t stacks_capacity;
	uint64_t left_out;
};

static int own_spans_new(struct own_gathering **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void own_spans_free(struct own_gathering *own)
{
	if (!own) {
		return;
	}
	for (size_t i = 0; i < own->n; i++) {
		histogram_done(&own->nodes[i]->lengths);
		free(own->nodes[i]);
	}
	for (size_t i = 0; i < own->n_stacks; i++) {
		free(own->stacks[i]);
	}
	free(own->stacks);
	free(own);
}

// Threads -----------------------------------------------------------------------------------------

static struct stack *stack_of(struct own_gathering *own, size_t thread)
{
	void *stacks = own->stacks;
	if (array_reserve(&stacks, &own->stacks_capacity, thread + 1, sizeof(struct stack *)) < 0) {
		return NULL;
	}
	own->stacks = stacks;
	while (own->n_stacks <= thread) {
		own->stacks[own->n_stacks++] = NULL;
	}
	if (!own->stacks[thread]) {
		own->stacks[thread] = calloc(1, sizeof(struct stack));
	}
	return own->stacks[thread];
}

// The parent of a span that begins now: the innermost span that ends after it.
static size_t holder_of(struct stack *stack, const struct timeline_own *span)
{
	while (stack->n > 0 && stack->items[stack->n - 1].end_ns <= span->start_ns) {
		stack->n--;
	}
	for (size_t i = stack->n; i > 0; i--) {
		if (stack->items[i - 1].end_ns >= span->end_ns) {
			return stack->items[i - 1].node;
		}
	}
	return OWN_SPAN_NONE;
}

// Names -------------------------------------------------------------------------------------------

static bool is_node(
	const struct node *node, const char *name, size_t parent, const struct timeline_own *span)
{
	return node->parent == parent && node->inside == span->inside &&
	       strncmp(node->name, name, PHASE_NAME_MAX - 1) == 0;
}

static size_t first_slot(const char *name, size_t parent, bool inside)
{
	uint64_t hash = (uint64_t)parent * 2 + inside + 14695981039346656037u;
	for (size_t i = 0; i < PHASE_NAME_MAX - 1 && name[i]; i++) {
		hash = (hash ^ (unsigned char)name[i]) * 1099511628211u;
	}
	return (size_t)((hash ^ (hash >> 32)) % SLOTS);
}

// *ret is OWN_SPAN_NONE if there is no room for another name.
static int node_of(
	struct own_gathering *own, const struct timeline_own *span, size_t parent, size_t *ret)
{
	size_t slot = first_slot(span->name, parent, span->inside);
	*ret = OWN_SPAN_NONE;
	while (own->slots[slot]) {
		size_t at = (size_t)own->slots[slot] - 1;
		if (is_node(own->nodes[at], span->name, parent, span)) {
			*ret = at;
			return 0;
		}
		slot = (slot + 1) % SLOTS;
	}
	if (own->n == NODES_MAX) {
		return 0;
	}
	struct node *node = calloc(1, sizeof(*node));
	if (!node) {
		return -ENOMEM;
	}
	memcpy(node->name, span->name, strnlen(span->name, PHASE_NAME_MAX - 1));
	node->parent = parent;
	node->inside = span->inside;
	*ret = own->n;
	own->nodes[own->n++] = node;
	own->slots[slot] = (uint16_t)own->n;
	return 0;
}

// 0 or -ENOMEM.
static int own_spans_add(struct own_gathering *own, const struct timeline_thread *thread,
	const struct timeline_own *span)
{
	struct stack *stack = thread->index < OWN_THREADS_MAX ? stack_of(own, thread->index) : NULL;
	size_t at;
	if (!stack) {
		own->left_out++;
		return thread->index < OWN_THREADS_MAX ? -ENOMEM : 0;
	}
	int r = node_of(own, span, holder_of(stack, span), &at);
	if (r < 0 || at == OWN_SPAN_NONE) {
		own->left_out += r == 0;
		return r;
	}
	struct node *node = own->nodes[at];
	double seconds = (double)(span->end_ns - span->start_ns) / 1e9;
	node->count++;
	node->total_s += seconds;
	node->threads[thread->index / 8] |= (uint8_t)(1u << thread->index % 8);
	histogram_add(&node->lengths, seconds, 1);
	if (stack->n < DEPTH_MAX) {
		stack->items[stack->n].node = at;
		stack->items[stack->n++].end_ns = span->end_ns;
	}
	return 0;
}

// What comes out ----------------------------------------------------------------------------------

// The time to which a node's share refers: that of its threads' iterations, or all time of its
// threads.
static double whole_seconds(const struct node *node, const struct phase_threads *threads,
	double run_s, size_t *ret_threads)
{
	double seconds = 0;
	*ret_threads = 0;
	for (size_t i = 0; i < OWN_THREADS_MAX; i++) {
		if (node->threads[i / 8] >> i % 8 & 1) {
			++*ret_threads;
			seconds += node->inside ? phase_threads_iterated_s(threads, i) : run_s;
		}
	}
	return seconds;
}

static void put_node(const struct node *node, const struct phase_threads *threads, double run_s,
	struct own_span *ret)
{
	double whole_s = whole_seconds(node, threads, run_s, &ret->threads);
	memcpy(ret->name, node->name, sizeof(ret->name));
	ret->inside = node->inside;
	ret->count = node->count;
	ret->total_s = node->total_s;
	ret->p50_s = histogram_quantile(&node->lengths, 0.5);
	ret->max_s = node->lengths.total > 0 ? node->lengths.largest : NAN;
	ret->share = whole_s > 0 ? node->total_s / whole_s : NAN;
}

// The child of `parent` with the largest total, of those not output yet; n: none.
static size_t next_child(const struct own_gathering *own, size_t parent, const bool *put)
{
	size_t found = own->n;
	for (size_t i = 0; i < own->n; i++) {
		if (own->nodes[i]->parent == parent && !put[i] &&
			(found == own->n || own->nodes[i]->total_s > own->nodes[found]->total_s)) {
			found = i;
		}
	}
	return found;
}

// Sets own, n_own and own_left_out. Returns 0 or -ENOMEM.
static int own_spans_finish(const struct own_gathering *own, const struct phase_threads *threads,
	double run_s, struct phases *ret)
{
	bool put[NODES_MAX] = {false};
	// nodes on the path, and their indexes in the output
	size_t path[DEPTH_MAX + 2], places[DEPTH_MAX + 2], depth = 0;
	ret->own = calloc(own->n + 1, sizeof(*ret->own));
	if (!ret->own) {
		return -ENOMEM;
	}
	ret->own_left_out = own->left_out;
	path[0] = places[0] = OWN_SPAN_NONE;
	for (;;) {
		size_t child = next_child(own, path[depth], put);
		if (child == own->n) {
			if (depth-- == 0) {
				return 0;
			}
			continue;
		}
		struct own_span *span = &ret->own[ret->n_own];
		put_node(own->nodes[child], threads, run_s, span);
		span->parent = places[depth];
		span->depth = (unsigned)depth;
		put[child] = true;
		path[++depth] = child;
		places[depth] = ret->n_own++;
	}
}

static int compare_totals(const void *left, const void *right)
{
	const struct own_span *a = *(struct own_span *const *)left;
	const struct own_span *b = *(struct own_span *const *)right;
	return a->total_s != b->total_s ? (a->total_s < b->total_s) - (a->total_s > b->total_s)
	                                : (a > b) - (a < b);
}

int phases_longest_own_spans(const struct phases *p, size_t limit, bool *shown)
{
	_cleanup_free_ const struct own_span **order = calloc(
		p->n_own + 1, sizeof(struct own_span *));
	if (!order) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->n_own; i++) {
		order[i] = &p->own[i];
	}
	qsort(order, p->n_own, sizeof(struct own_span *), compare_totals);
	for (size_t i = 0; i < p->n_own && i < limit; i++) {
		for (size_t at = (size_t)(order[i] - p->own); at != OWN_SPAN_NONE;
			at = p->own[at].parent) {
			shown[at] = true;
		}
	}
	return 0;
}
