// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A rule for each cause. Thresholds say where a cause is worth a word, not where it begins: each
// stands in docs/how-to-read.md with its reason.

#include "analyze/causes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define JITTER 0.04 // of an iteration: a wait for data that is no wait
#define WORTH 0.05 // a smaller share has no word
#define SATURATED 0.85 // of the CPUs
#define QUEUED 0.05 // of the time: less is the scheduler's grain
#define QUEUED_LONG 0.10
#define SLOW_WORKER 1.5 // times the median of the others
#define PARALLEL 1.3 // threads that compute
#define DILATED 2.0 // times what an undisturbed step takes
#define BURNT 1.4 // times the CPU time that an undisturbed step can take
#define BLOCKED 0.15 // of the time of preparing
#define WORKERS_IDLE 0.5 // of the time that the busiest prepares: less, and none is waited for
#define OTHERS 0.25 // of the CPUs, used by other programs
#define CPU_STALLED 0.20 // of the time that a task of the host waited for a CPU
#define SLACK 0.05 // CPUs: less is the scheduler's grain
#define USUAL 1.3 // times its 2nd percentile, which a step takes on a quiet machine
#define REFAULTS 0.3 // of what was read from storage
#define MEMORY_STALLED 0.10
#define SHORT_STEP_S 0.002 // calls cost as much as arithmetic
#define UNSEEN 0.05 // of an iteration: what counting CPU time in ticks may miss
#define IMBALANCE 0.10 // between the waits of ranks
#define GPU_BUSY 0.70
#define THROTTLED 0.10
#define STARTUP 0.20 // of the run
#define NOT_FIRST 0.4 // how much of what cannot be taken away counts

static double known(double value)
{
	return isfinite(value) ? value : 0;
}

double facts_share(const struct facts *f, enum phase_id phase)
{
	return known(f->share[phase].value);
}

// How the share of the phases moves the answer: intervals are as wide as that of the phase that the
// cause shows in.
static struct estimate around(double value, struct estimate of)
{
	struct estimate e = {value, NAN, NAN};
	if (isfinite(of.low) && isfinite(of.value)) {
		e.low = fmax(0, value - (of.value - of.low));
		e.high = fmin(1, value + (of.high - of.value));
	}
	return e;
}

// Validation and checkpoints take nothing of an iteration, but of training.
static double iterations_share(const struct facts *f)
{
	double apart = known(f->validation_s) + known(f->checkpoint_s);
	return f->training_s > apart ? 1 - apart / f->training_s : 1;
}

static void put(struct causes *c, enum bottleneck bottleneck, struct estimate share, double weight)
{
	if (share.value >= WORTH && c->n < CAUSES_MAX) {
		c->items[c->n++] = (struct cause){bottleneck, share, weight};
	}
}

// What holds up the host costs at most the time in which the device has nothing to do.
static double device_idle(const struct facts *f, enum bottleneck bottleneck)
{
	static const bool of_device[N_BOTTLENECKS] = {
		[BOTTLENECK_COMPUTE] = true,
		[BOTTLENECK_TRANSFER] = true,
		[BOTTLENECK_GPU_UNUSED] = true,
		[BOTTLENECK_GPU_THROTTLED] = true,
	};
	bool bounded = f->gpu.used && isfinite(f->gpu.busy) && !of_device[bottleneck];
	return bounded ? fmax(0, 1 - f->gpu.busy) : 1;
}

static void put_of_iteration(const struct facts *f, struct causes *c, enum bottleneck bottleneck,
	double share, enum phase_id shows_in)
{
	share = fmin(share, device_idle(f, bottleneck));
	put(c, bottleneck, around(share, f->share[shows_in]), share * iterations_share(f));
}

const struct cause *causes_get(const struct causes *c, enum bottleneck bottleneck)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->items[i].bottleneck == bottleneck) {
			return &c->items[i];
		}
	}
	return NULL;
}

// Input -----------------------------------------------------------------------------------------

// What a batch takes of the workers, in parts of one.
struct preparing {
	double cpu;
	double queued;
	double blocked;
};

static struct preparing preparing_parts(const struct facts *f)
{
	const struct worker_facts *w = &f->workers;
	struct preparing p = {known(w->cpus), known(w->queued), known(w->blocked)};
	if (w->n == 0) {
		// The training thread does it: what it neither computed nor waited for a CPU.
		double waits = facts_share(f, PHASE_DATA);
		p.blocked = fmin(waits, fmax(0, 1 - f->main_cpus - known(f->main_queued)));
		p.blocked = isfinite(p.blocked) ? p.blocked : 0;
		p.cpu = waits - p.blocked;
	}
	double sum = p.cpu + p.queued + p.blocked;
	return sum > 0 ? (struct preparing){p.cpu / sum, p.queued / sum, p.blocked / sum}
	               : (struct preparing){1, 0, 0};
}

// Share of an iteration in which a training thread that prepares batches itself waits for storage.
static double preparing_blocked(const struct facts *f)
{
	return facts_share(f, PHASE_DATA) * preparing_parts(f).blocked;
}

// What an iteration waits for batches that workers had long been done with: to hand one over takes
// time too. As an epoch begins there is none yet.
double causes_handing_over(const struct facts *f)
{
	const struct worker_facts *w = &f->workers;
	bool idle = w->n > 0 && w->busiest < WORKERS_IDLE && !(w->slowest >= SLOW_WORKER);
	return idle ? fmax(0, facts_share(f, PHASE_DATA) - known(f->data_at_epochs)) : 0;
}

bool causes_at_epochs(double at_epochs, double share)
{
	return at_epochs >= 0.5 * share;
}

// The wait for batches that were not ready.
static double waiting(const struct facts *f)
{
	return facts_share(f, PHASE_DATA) - causes_handing_over(f);
}

// How much of an iteration the workers need in which parts of their time are left out; of a batch
// that waits for its workers, all of it.
static double input_bound(const struct facts *f, bool queued, bool blocked)
{
	struct preparing p = preparing_parts(f);
	double kept = p.cpu + (queued ? p.queued : 0) + (blocked ? p.blocked : 0);
	if (waiting(f) > JITTER) {
		return f->workers.n > 0 ? kept : 0;
	}
	double busy = known(f->workers.preparing) / fmax(1, f->workers.n);
	return fmin(1, busy) * kept;
}

// What is left of an iteration when batches are always there.
static double without_data(const struct facts *f)
{
	return 1 - waiting(f);
}

static bool reads_storage(const struct facts *f)
{
	return f->storage.read_rate > 0 &&
	       f->storage.read_rate >= 0.05 * known(f->storage.asked_rate);
}

// Storage's part of the wait for data: what an iteration would lose if no read had to wait.
static double storage_share(const struct facts *f)
{
	struct preparing p = preparing_parts(f);
	double waits = waiting(f);
	if (waits <= JITTER || p.blocked < BLOCKED || !reads_storage(f)) {
		return 0;
	}
	if (f->workers.n == 0) {
		return waits * p.blocked;
	}
	return 1 - fmax(without_data(f), input_bound(f, true, false));
}

static void judge_storage(const struct facts *f, struct causes *c)
{
	double share = storage_share(f);
	double dropped = known(f->storage.refault_rate);
	bool thrashes = dropped >= REFAULTS * f->storage.read_rate && f->memory.limited;
	if (f->memory.stalled >= MEMORY_STALLED) {
		thrashes = true;
		share = fmax(share, f->memory.stalled);
	}
	put_of_iteration(
		f, c, thrashes ? BOTTLENECK_MEMORY : BOTTLENECK_STORAGE, share, PHASE_DATA);
}

// CPUs ------------------------------------------------------------------------------------------

static bool is_saturated(const struct facts *f)
{
	bool job = f->cpus_used >= SATURATED * f->cpus;
	return job || known(f->throttled) >= THROTTLED ||
	       f->cpus_used + known(f->others_cpus) >= SATURATED * f->cpus;
}

// Threads that compute, as far as the CPU time tells: what the process used while its leader ran.
static double computing_threads(const struct facts *f)
{
	double waits = f->workers.n > 0 ? facts_share(f, PHASE_DATA) : preparing_blocked(f);
	waits += facts_share(f, PHASE_COMMUNICATION) + known(f->main_queued);
	return f->main_cpus / fmax(0.05, 1 - waits);
}

// CPUs that the training processes need for what they compute, as long as it takes undisturbed, and
// for batches that they prepare themselves.
static double computing_cpus(const struct facts *f, double threads, double alone)
{
	double prepares = f->workers.n > 0 ? 0 : facts_share(f, PHASE_DATA) - preparing_blocked(f);
	return f->ranks.n * (alone * threads + fmax(0, prepares));
}

// Whether computing takes more CPU time than it does undisturbed, on as many threads as can turn,
// of CPUs that the ranks share: who waits asleep takes longer, and no more of it.
static bool burns_cpus(const struct facts *f, double alone)
{
	double prepares = f->workers.n > 0 ? 0 : facts_share(f, PHASE_DATA) - preparing_blocked(f);
	double turning = fmin(f->cpus / fmax(1, f->ranks.n), f->main_threads);
	return f->main_cpus - prepares >= BURNT * alone * turning;
}

// The computing threads wait for each other, spinning, while others have their CPUs: the same step
// takes far longer than where they are alone. What is left without them is what the CPUs have to do
// at least.
static double threads_share(const struct facts *f)
{
	double waits = known(f->undisturbed_waits_s) / f->length_s.value;
	double threads = computing_threads(f), alone = f->undisturbed_s / f->length_s.value;
	bool passive = f->wait_policy && strcasecmp(f->wait_policy, "passive") == 0;
	bool several = !(f->main_threads < 2) && threads >= PARALLEL;
	if (passive || f->one_thread || !several || !is_saturated(f) ||
		!(f->compute_s >= DILATED * f->undisturbed_s) || !burns_cpus(f, alone)) {
		return 0;
	}
	waits += f->workers.n > 0 ? 0 : facts_share(f, PHASE_DATA);
	threads = fmin(threads, fmin(f->cpus, f->main_threads)); // no more than turn at once
	double work = (computing_cpus(f, threads, alone) + known(f->workers.cpus)) / f->cpus;
	return fmax(0, 1 - fmax(fmax(alone + waits, work), input_bound(f, false, true)));
}

// What other programs cost a job whose computing threads are not the one that marks: that one waits
// for them asleep while they wait for CPUs, which shows in how long a step takes. At most as much
// as all that the others used would give.
static double dilation_share(const struct facts *f)
{
	bool others = f->others_cpus >= OTHERS * f->cpus && f->cpu_stalled >= CPU_STALLED &&
	              f->cpus_used < SATURATED * f->cpus && is_saturated(f);
	if (!others || f->gpu.used) {
		return 0;
	}
	double lost = f->compute_s - USUAL * f->undisturbed_s;
	double most = f->others_cpus / (f->others_cpus + f->cpus_used);
	return fmax(0, fmin(most, lost / f->length_s.value));
}

// What a CPU for everyone who is ready would save. Who was ready for long and had none lacked one,
// whatever seems to have been idle: its affinity may be narrower than anybody knows.
static double contention_share(const struct facts *f)
{
	double queued = known(f->main_queued), waits = facts_share(f, PHASE_DATA);
	struct preparing p = preparing_parts(f);
	bool lacked = is_saturated(f) ? queued >= QUEUED || p.queued >= QUEUED
	                              : queued >= QUEUED_LONG;
	if (!lacked) {
		return dilation_share(f);
	}
	// Part of the wait for data can be a wait for a CPU: what is computed takes its CPU time,
	// of which the leader had none while it was ready without one.
	double threads = fmax(1, round(computing_threads(f)));
	double computes = fmin(f->main_cpus / threads, 1 - queued);
	computes = fmax(computes, fmax(0.05, 1 - waits - queued));
	double input = f->workers.n > 0 ? input_bound(f, false, true) : waits;
	double left = f->workers.n > 0 ? fmax(computes, input) : computes + input;
	return fmax(dilation_share(f), 1 - left);
}

// What is left to gain by a CPU for everyone once nobody spins: then a step takes what it takes
// undisturbed.
static double contention_beside_threads(const struct facts *f, double threads)
{
	double waits = known(f->undisturbed_waits_s) / f->length_s.value;
	double alone = f->undisturbed_s / f->length_s.value;
	return fmax(0, 1 - threads - fmax(alone + waits, input_bound(f, false, true)));
}

double causes_needed_cpus(const struct facts *f)
{
	return f->cpus_used + f->ranks.n * known(f->main_queued) + known(f->workers.queued);
}

enum lack causes_lack(const struct facts *f)
{
	bool own = f->cpus_used >= SATURATED * f->cpus, others = f->host_others_cpus >= SLACK;
	if (own && (causes_needed_cpus(f) > f->cpus + SLACK || f->throttled >= THROTTLED)) {
		return LACK_OWN;
	}
	if (own) { // those that it may use would do if it had them to itself
		return others ? LACK_OTHERS : LACK_OWN;
	}
	// Others anywhere on a larger machine are no reason, unless they leave nothing of it.
	bool full = f->cpus_used + known(f->others_cpus) >= SATURATED * f->cpus ||
	            f->cpus_used + f->host_others_cpus >= SATURATED * f->host_cpus;
	return full ? LACK_OTHERS : LACK_NOBODY;
}

static void judge_cpus(const struct facts *f, struct causes *c)
{
	double threads = threads_share(f), contention = contention_share(f);
	bool spins = threads >= WORTH, quota = known(f->throttled) >= THROTTLED;
	size_t before = c->n;
	put_of_iteration(f, c, BOTTLENECK_THREADS, threads, PHASE_FORWARD);
	if (spins && contention >= WORTH) {
		contention = contention_beside_threads(f, threads);
	}
	put_of_iteration(
		f, c, quota ? BOTTLENECK_CPU_QUOTA : BOTTLENECK_CONTENTION, contention, PHASE_DATA);
	if (c->n == before + 2) {
		// A setting of the job comes before a larger machine.
		c->items[before + 1].weight *= NOT_FIRST;
	}
}

// Without preparation nobody queues for a CPU to prepare on either: only reads are left.
static void judge_input(const struct facts *f, struct causes *c)
{
	double waits = waiting(f);
	struct preparing p = preparing_parts(f);
	double reads = reads_storage(f) ? p.blocked : 0;
	double share = f->workers.n > 0 ? 1 - fmax(without_data(f), reads) : waits * (1 - reads);
	if (waits > JITTER) {
		put_of_iteration(f, c, BOTTLENECK_INPUT, share, PHASE_DATA);
	}
}

// The device, the host beside it, and others ----------------------------------------------------

static double step_share(const struct facts *f)
{
	return facts_share(f, PHASE_FORWARD) + facts_share(f, PHASE_BACKWARD) +
	       facts_share(f, PHASE_OPTIMIZER) + facts_share(f, PHASE_STEP);
}

static enum phase_id largest_step_phase(const struct facts *f)
{
	static const enum phase_id phases[] = {
		PHASE_FORWARD, PHASE_BACKWARD, PHASE_OPTIMIZER, PHASE_STEP};
	enum phase_id largest = PHASE_FORWARD;
	for (size_t i = 0; i < ARRAY_LENGTH(phases); i++) {
		largest = facts_share(f, phases[i]) > facts_share(f, largest) ? phases[i] : largest;
	}
	return largest;
}

// Time of the host in which the device has nothing to do: between phases; on a GPU also in them.
static double launch_share(const struct facts *f)
{
	double outside = facts_share(f, PHASE_OTHER), step = step_share(f);
	if (f->gpu.used && isfinite(f->gpu.busy)) {
		double waits = facts_share(f, PHASE_DATA) + facts_share(f, PHASE_COMMUNICATION);
		return fmax(0, 1 - waits - f->gpu.busy);
	}
	// A batch that the training thread puts together itself in less than that is calls too.
	double data = f->workers.n == 0 ? facts_share(f, PHASE_DATA) : 0;
	double calls = step + (data < step ? data : 0);
	bool tiny = calls * f->length_s.value < SHORT_STEP_S && computing_threads(f) < PARALLEL;
	return outside + causes_handing_over(f) + (tiny && outside < step ? calls : 0);
}

static void judge_device(const struct facts *f, struct causes *c)
{
	double launch = launch_share(f), step = step_share(f);
	const struct cause *contention = causes_get(c, BOTTLENECK_CONTENTION);
	double lost = contention ? fmax(known(f->main_queued), dilation_share(f)) : 0;
	bool idle = f->gpu.n > 0 && !f->gpu.used;
	put_of_iteration(f, c, BOTTLENECK_LAUNCH, launch, PHASE_OTHER);
	double computes = f->gpu.used && isfinite(f->gpu.busy) ? fmin(step, f->gpu.busy)
	                  : launch > step                      ? 0
	                                                       : step;
	// However long it is kept from a CPU, what a step takes undisturbed is computing.
	double least = fmin(computes, known(f->undisturbed_s) / f->length_s.value);
	computes = fmax(least, computes - lost);
	computes = fmax(0, computes - (f->ranks.inferred ? known(f->ranks.own) : 0));
	if (!f->gpu.used && isfinite(f->main_cpus)) {
		// Who computes on a CPU uses it: the rest of a step is a wait that nobody named.
		computes = fmin(computes, f->main_cpus + known(f->main_queued) + UNSEEN);
	}
	if (causes_get(c, BOTTLENECK_THREADS)) {
		// The rest of a step is spent on waiting for each other and for CPUs.
		computes = fmin(computes, f->undisturbed_s / f->length_s.value);
	}
	bool slowed = f->gpu.used && f->gpu.busy >= GPU_BUSY && f->gpu.throttled >= THROTTLED;
	put_of_iteration(f, c, idle ? BOTTLENECK_GPU_UNUSED : BOTTLENECK_COMPUTE, computes,
		largest_step_phase(f));
	put_of_iteration(f, c, BOTTLENECK_GPU_THROTTLED, slowed ? f->gpu.throttled : 0,
		largest_step_phase(f));
	put_of_iteration(f, c, BOTTLENECK_TRANSFER, facts_share(f, PHASE_TRANSFER), PHASE_TRANSFER);
}

static void judge_ranks(const struct facts *f, struct causes *c)
{
	double own = facts_share(f, PHASE_COMMUNICATION);
	double most = f->ranks.n > 1 ? fmax(own, known(f->ranks.waits_most)) : own;
	put_of_iteration(f, c, BOTTLENECK_RANKS, most,
		f->ranks.inferred ? PHASE_BACKWARD : PHASE_COMMUNICATION);
}

static void judge_apart(const struct facts *f, struct causes *c)
{
	double validation = known(f->validation_s) / f->training_s;
	double checkpoint = known(f->checkpoint_s) / f->training_s;
	double startup = f->startup_s / f->duration_s;
	put(c, BOTTLENECK_VALIDATION, (struct estimate){validation, NAN, NAN}, validation);
	put(c, BOTTLENECK_CHECKPOINT, (struct estimate){checkpoint, NAN, NAN}, checkpoint);
	if (startup >= STARTUP) {
		put(c, BOTTLENECK_STARTUP, (struct estimate){startup, NAN, NAN}, startup / 2);
	}
}

// Computing is what the job is for: it is named first only where nothing that could be taken away
// has as much as two fifths of its time.
static double claim(const struct cause *cause)
{
	return cause->weight * (cause->bottleneck == BOTTLENECK_COMPUTE ? NOT_FIRST : 1);
}

static int cause_compare(const void *left, const void *right)
{
	double a = claim(left), b = claim(right);
	return (a < b) - (a > b);
}

void causes_find(const struct facts *f, struct causes *ret)
{
	static void (*const judges[])(const struct facts *, struct causes *) = {
		judge_cpus, judge_storage, judge_input, judge_device, judge_ranks, judge_apart};
	*ret = (struct causes){.n = 0};
	for (size_t i = 0; f->parts && i < ARRAY_LENGTH(judges); i++) {
		judges[i](f, ret);
	}
	qsort(ret->items, ret->n, sizeof(*ret->items), cause_compare);
}

// How sure ---------------------------------------------------------------------------------------

static bool supports_input(const struct facts *f)
{
	const struct worker_facts *w = &f->workers;
	if (w->n == 0) {
		return f->main_cpus >= 0.7; // it was busy, not blocked
	}
	return w->cpus >= 0.5 * w->n || w->slowest >= SLOW_WORKER;
}

static bool supports_storage(const struct facts *f)
{
	return reads_storage(f) && f->storage.stalled >= 0.1;
}

static bool supports_contention(const struct facts *f)
{
	return f->cpus_used >= SATURATED * f->cpus;
}

static bool supports_threads(const struct facts *f)
{
	return f->compute_s >= 3 * f->undisturbed_s && f->cpus_used >= SATURATED * f->cpus;
}

static bool supports_compute(const struct facts *f)
{
	return f->gpu.used ? f->gpu.busy >= GPU_BUSY : f->main_cpus >= 0.7;
}

static bool supports_ranks(const struct facts *f)
{
	return !f->ranks.inferred && f->ranks.waits_most - f->ranks.waits_least >= IMBALANCE;
}

static bool supports_launch(const struct facts *f)
{
	return f->main_cpus >= 0.7 && facts_share(f, PHASE_OTHER) >= 0.2;
}

// Whether something besides the phases says the same.
static bool is_supported(const struct facts *f, enum bottleneck bottleneck)
{
	static bool (*const supports[N_BOTTLENECKS])(const struct facts *) = {
		[BOTTLENECK_INPUT] = supports_input,
		[BOTTLENECK_STORAGE] = supports_storage,
		[BOTTLENECK_MEMORY] = supports_storage,
		[BOTTLENECK_CONTENTION] = supports_contention,
		[BOTTLENECK_CPU_QUOTA] = supports_contention,
		[BOTTLENECK_THREADS] = supports_threads,
		[BOTTLENECK_COMPUTE] = supports_compute,
		[BOTTLENECK_RANKS] = supports_ranks,
		[BOTTLENECK_LAUNCH] = supports_launch,
	};
	return !supports[bottleneck] || supports[bottleneck](f);
}

static bool has_rival(const struct causes *c)
{
	return c->n > 1 && c->items[1].bottleneck != BOTTLENECK_COMPUTE &&
	       claim(&c->items[1]) >= 0.6 * claim(&c->items[0]);
}

enum confidence causes_confidence(const struct facts *f, const struct causes *c)
{
	enum { FEW = 10, ENOUGH = 30 };
	if (c->n == 0 || f->steady < FEW) {
		return CONFIDENCE_LOW;
	}
	const struct cause *first = &c->items[0];
	bool narrow = !(first->share.high - first->share.low > 0.1);
	bool sure = f->steady >= ENOUGH && !f->lost && narrow && !has_rival(c) &&
	            first->weight >= 0.15 && is_supported(f, first->bottleneck);
	return sure ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM;
}
