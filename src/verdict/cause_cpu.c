// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Causes of a lack of CPUs: a quota, spinning threads, other programs, too few CPUs; and waits of
// the training thread while other threads of its process, or its children, run.

#include <math.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/words.h"
#include "verdict/advice.h"
#include "verdict/cause_kinds.h"
#include "verdict/thresholds.h"

// Allocation --------------------------------------------------------------------------------------
//
// Memory that a step returns to the kernel and allocates again: each of its pages causes a page
// fault, in which the kernel clears the page. glibc returns large blocks when they are freed.

#define PAGE_BYTES 4096.0 // at least; with larger pages there are fewer faults

static double leader_in_kernel(const struct facts *f)
{
	return cause_code(&f->code, CODE_SYSTEM) * fmin(1, known_or_zero(f->code.cpus));
}

// The kernel time of the training thread, bounded by what its page faults can take. Faults of
// memory that is kept are not counted, and neither is starting processes, which also causes faults
// but has its own row. Computing includes this time too, since the faults happen there.
static struct judgement judge_allocation(const struct facts *f, const struct causes *found)
{
	const struct cause *children = causes_get(found, BOTTLENECK_CHILDREN);
	double kernel = leader_in_kernel(f) - (children ? children->share.value : 0);
	double grown = f->growth.leak ? known_or_zero(f->growth.bytes_per_s) / PAGE_BYTES : 0;
	double most = (known_or_zero(f->page_faults) - grown) * FAULT_MOST_S;
	// Time saved while the batch is not ready is spent waiting for it.
	most -= f->workers.n > 0 ? cause_batches_waiting(f) : 0;
	bool near = f->memory.peak_bytes >= MEMORY_KEPT * f->memory.limit_bytes;
	return (struct judgement){near ? 0 : fmax(0, fmin(kernel, most)), PHASE_FORWARD};
}

// glibc raises both thresholds up to 32 MiB to the size of what is freed, unless the environment
// sets one.
static bool is_low(const char *threshold)
{
	int64_t bytes;
	return threshold && parse_integer(threshold, 0, INT64_MAX, &bytes, NULL) == 0 &&
	       bytes < GLIBC_RAISES_TO;
}

// Samples in the kernel do not show its purpose. Thresholds that make glibc return memory do.
static enum grounds grounds_allocation(const struct facts *f)
{
	return is_low(f->malloc_map) || is_low(f->malloc_trim) ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
}

static void say_allocation(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "the job repeatedly frees and reallocates memory: page faults take ");
	cause_append_share(t, cause);
	cause_append_main_line(t, f);
}

static const char *unset_malloc(const struct facts *f)
{
	bool map = is_low(f->malloc_map), trim = is_low(f->malloc_trim);
	return map && trim ? "unset MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_, or set "
	       : map       ? "unset MALLOC_MMAP_THRESHOLD_, or set "
	       : trim      ? "unset MALLOC_TRIM_THRESHOLD_, or set "
	                   : "";
}

// A line outside all phases that has most of the cause makes new arrays there: a growing buffer, a
// copy of all data.
static void advise_in_place(struct advice_builder *b, const struct cause *cause)
{
	const struct line_place *line = cause_main_line(b->f);
	struct text action = {0}, basis = {0};
	if (!line || *line->phase || line->share < MOST * cause->share.value) {
		return;
	}
	text_append_string(&action, "allocate the arrays of ");
	words_append_place(&action, line->place, 60);
	text_append_string(&action,
		" once and write into them, instead of making new ones (torch.cat, "
		"np.append, copies), or compute only the part that a step needs");
	words_append_percent(&basis, line->share);
	text_append_string(&basis, " of the samples of lines are there, outside all phases");
	double share = fmax(cause->share.value, facts_share(b->f, PHASE_OTHER));
	advice_suggest_at_most(b, share, &action, &basis);
}

// No limit for memory kept at the top of the heap, and no blocks of their own: glibc would have
// them for blocks above 32 MiB, whatever its threshold. Activations of 48 MB: 2.5 times faster, 1.2
// with the largest threshold.
static void advise_allocation(struct advice_builder *b, const struct cause *cause)
{
	static const char trim[] = "MALLOC_TRIM_THRESHOLD_=2000000000";
	static const char map[] = "MALLOC_MMAP_MAX_=0";
	struct text action = {0}, basis = {0};
	advise_in_place(b, cause);
	if (cause_code(&b->f->code, CODE_KERNELS) >= CERTAIN) { // half as many pages, too
		cause_advise_precision(b);
	}
	advice_set(b, 0, SETTING_ENVIRONMENT, "%s", trim);
	advice_set(b, 0, SETTING_ENVIRONMENT, "%s", map);
	text_append_string(&action, unset_malloc(b->f));
	text_format(&action, "%s %s (glibc then keeps freed memory), or jemalloc", trim, map);
	if (is_low(b->f->malloc_map) || is_low(b->f->malloc_trim)) {
		text_append_string(
			&basis, "the job's environment sets when glibc returns memory; ");
	}
	words_append_number(&basis, b->f->page_faults);
	text_append_string(&basis, " page faults per second; the OS kernel takes ");
	words_append_percent(&basis, leader_in_kernel(b->f));
	text_append_string(&basis, " of the training thread's time");
	advice_suggest(b, advice_gain_of(cause->share, 1), &action, &basis);
}

const struct cause_kind cause_allocation = {
	.name = "allocation",
	.part = "page faults",
	.judge = judge_allocation,
	.grounds = grounds_allocation,
	.say = say_allocation,
	.advise = advise_allocation,
};

// Cpu ---------------------------------------------------------------------------------------------

// Owners of the CPUs ------------------------------------------------------------------------------

// Share of the periods of a quota in which it was used up; of the quota of the job's own cgroup, or
// of the tightest one around it.
static double used_up(const struct facts *f)
{
	return fmax(known_or_zero(f->throttled), known_or_zero(f->quota.used_up));
}

static bool cpus_saturated(const struct facts *f)
{
	bool job = f->cpus_used >= SATURATED * f->cpus;
	return job || used_up(f) >= THROTTLED ||
	       f->cpus_used + known_or_zero(f->others_cpus) >= SATURATED * f->cpus;
}

// Threads that compute, from CPU time: CPUs used by the process while its leader ran.
double cause_computing_threads(const struct facts *f)
{
	double waits = f->workers.n > 0 ? facts_share(f, PHASE_DATA) : cause_batches_blocked(f);
	waits += facts_share(f, PHASE_COMMUNICATION) + known_or_zero(f->main_queued);
	return f->main_cpus / fmax(0.05, 1 - waits);
}

// Threads of the framework's pool that were ready without a CPU, on average. They are that without
// others, too, if there are more of them than CPUs.
static double pool_ready(const struct facts *f)
{
	static const enum thread_group pools[] = {
		THREADS_POOL, THREADS_OPENMP, THREADS_BLAS, THREADS_UNNAMED};
	double ready = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(pools); i++) {
		ready += known_or_zero(f->threads.groups[pools[i]].ready);
	}
	return f->threads.known ? ready : 0;
}

// Whether processes of the job that neither train nor prepare batches take many of its CPUs.
static bool has_helpers(const struct facts *f)
{
	return f->helpers_cpus >= OTHERS * f->cpus;
}

// CPUs for which the job had work, on average.
static double causes_needed_cpus(const struct facts *f)
{
	return f->cpus_used + f->ranks.n * known_or_zero(f->main_queued) +
	       known_or_zero(f->workers.queued) + (has_helpers(f) ? pool_ready(f) : 0);
}

enum lack causes_lack(const struct facts *f)
{
	bool own = f->cpus_used >= SATURATED * f->cpus, others = f->host_others_cpus >= SLACK;
	if (own && (causes_needed_cpus(f) > f->cpus + SLACK || used_up(f) >= THROTTLED)) {
		return LACK_OWN;
	}
	if (own) { // its CPUs would suffice if it had them to itself
		return others ? LACK_OTHERS : LACK_OWN;
	}
	// Other programs elsewhere on a larger machine do not matter, unless they leave none of it
	// free.
	bool full = f->cpus_used + known_or_zero(f->others_cpus) >= SATURATED * f->cpus ||
	            f->cpus_used + f->host_others_cpus >= SATURATED * f->host_cpus;
	// A thread waits for others only while they run.
	bool theirs = !(f->host_others_cpus < THEIRS * f->main_queued);
	return !full ? LACK_NOBODY : theirs ? LACK_OTHERS : LACK_OWN;
}

// CPUs that the training processes need to compute as fast as undisturbed, and to prepare their own
// batches.
static double computing_cpus(const struct facts *f, double threads, double alone)
{
	double prepares = f->workers.n > 0 ? 0
	                                   : facts_share(f, PHASE_DATA) - cause_batches_blocked(f);
	return f->ranks.n * (alone * threads + fmax(0, prepares));
}

// Lacking CPUs ------------------------------------------------------------------------------------

// The training thread sleeps while its pool waits for CPUs, which shows only in the length of a
// step. The result is at most what all CPUs used by others would give. A thread that computes alone
// has no pool: what it waited is known (and steps of batches that differ in length differ). If the
// others are of the job, they may run all the time, so that no step is undisturbed.
double cause_dilation(const struct facts *f)
{
	double helpers = known_or_zero(f->helpers_cpus), trains = f->cpus_used - helpers;
	double beside = known_or_zero(f->others_cpus) + helpers;
	bool others = beside >= OTHERS * f->cpus && f->cpu_stalled >= CPU_STALLED &&
	              trains < SATURATED * f->cpus && cpus_saturated(f);
	if (!others || f->gpu.used) {
		return 0;
	}
	double lost = f->compute_s - USUAL * f->undisturbed_s;
	if (has_helpers(f) && pool_ready(f) > 0) {
		double lacks = pool_ready(f) / (pool_ready(f) + f->main_cpus);
		lost = fmax(lost, lacks * f->length_s.value);
	}
	double most = beside / (beside + trains);
	most = f->one_thread ? fmin(most, known_or_zero(f->main_queued)) : most;
	return fmax(0, fmin(most, lost / f->length_s.value));
}

// The gain if every ready thread had a CPU. A thread that was ready for long without a CPU lacked
// one, even if some seem idle: its affinity may be narrower than is known.
static double contention_share(const struct facts *f)
{
	double queued = known_or_zero(f->main_queued), waits = facts_share(f, PHASE_DATA);
	struct preparing p = cause_batches_preparing(f);
	bool lacked = cpus_saturated(f) ? queued >= QUEUED || p.queued >= QUEUED
	                                : queued >= QUEUED_LONG;
	if (!lacked) {
		return cause_dilation(f);
	}
	// Part of the wait for data can be a wait for a CPU: computing takes its CPU time, and the
	// leader had none of that while it was ready without a CPU.
	double threads = fmax(1, round(cause_computing_threads(f)));
	double computes = fmin(f->main_cpus / threads, 1 - queued);
	computes = fmax(computes, fmax(0.05, 1 - waits - queued));
	double input = f->workers.n > 0 ? cause_batches_need(f, false, 1) : waits;
	double left = f->workers.n > 0 ? fmax(computes, input) : computes + input;
	return fmax(cause_dilation(f), 1 - left);
}

// Quota -------------------------------------------------------------------------------------------

// Share of the time in which the training thread neither ran nor waited, so it was ready. Not every
// kernel counts a thread stopped by a quota as ready.
static double leader_ready(const struct facts *f)
{
	double ready = known_or_zero(f->main_queued), asleep = 0;
	if (f->waits.looks < LOOKS_ENOUGH || !isfinite(f->code.cpus)) {
		return ready;
	}
	for (size_t i = 0; i < N_WAITS; i++) {
		asleep += known_or_zero(f->waits.share[i]);
	}
	return fmax(ready, 1 - f->code.cpus - asleep);
}

// A lower bound: CPUs used against the least that was needed (quota_facts). The time of the leader
// confirms it, if that is known.
static struct judgement judge_quota(const struct facts *f, const struct causes *found)
{
	(void)found;
	const struct quota_facts *q = &f->quota;
	double stood = q->needed_cpus > 0 ? 1 - q->used_cpus / q->needed_cpus : 0;
	double share = fmax(fmax(leader_ready(f), stood), contention_share(f));
	return (struct judgement){used_up(f) >= THROTTLED ? fmin(0.98, share) : 0, PHASE_DATA};
}

static enum grounds grounds_quota(const struct facts *f)
{
	(void)f;
	return GROUNDS_DIRECT; // the kernel counts the periods
}

static double cpus_of_quota(const struct facts *f)
{
	return isfinite(f->quota.cpus) ? f->quota.cpus : f->cpus;
}

static void say_quota(struct text *t, const struct facts *f, const struct cause *cause)
{
	cause_append_quota(t, cpus_of_quota(f));
	text_append_string(t, ", which costs ");
	cause_append_share(t, cause);
}

static void advise_quota(struct advice_builder *b, const struct cause *cause)
{
	struct text action = {0}, basis = {0};
	text_append_string(&action, "raise the CPU quota");
	if (b->f->quota.own) {
		text_append_string(&action, " of the cgroup that the job created");
	} else {
		text_append_string(&action, " (docker run --cpus, systemd CPUQuota=)");
	}
	text_append_string(&basis, "used up in ");
	words_append_percent(&basis, used_up(b->f));
	text_append_string(&basis, " of its periods");
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
}

// Threads that spin -------------------------------------------------------------------------------

double cause_spinning_cpus(const struct facts *f)
{
	double cpus = 0;
	const struct code_facts *groups[] = {&f->code, &f->code_threads};
	for (size_t i = 0; i < 2; i++) {
		cpus += cause_code(groups[i], CODE_SPINNING) * known_or_zero(groups[i]->cpus);
	}
	return cause_sampled(&f->code) || cause_sampled(&f->code_threads) ? cpus : NAN;
}

// The least time that workers need per iteration, as a share, whoever else has CPUs: no iteration
// is shorter.
static double workers_need(const struct facts *f)
{
	struct preparing p = cause_batches_preparing(f);
	double busy = known_or_zero(f->workers.preparing) / fmax(1, f->workers.n);
	return f->workers.n > 0 ? fmin(1, busy) * (p.cpu + p.blocked) : 0;
}

// Time that the leader spins because threads of its team lack a CPU. If the team has its CPUs, the
// leader waits for the slowest part of each product, which takes as long with fewer threads.
static double leader_spins(const struct facts *f)
{
	static const enum thread_group teams[] = {THREADS_OPENMP, THREADS_BLAS, THREADS_UNNAMED};
	double spins = cause_code(&f->code, CODE_SPINNING) * fmin(1, known_or_zero(f->code.cpus));
	double ready = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(teams); i++) {
		ready += known_or_zero(f->threads.groups[teams[i]].ready);
	}
	return f->threads.known ? fmin(spins, ready) : spins;
}

// Spinning has a cost only if another thread lacks the CPU. Without it, the job needs less CPU time
// by as much as it spins. That shortens an iteration at most by the time in which its leader spins,
// is ready without a CPU, or waits for a batch whose workers are ready without a CPU.
static double spinning_seen(const struct facts *f)
{
	double spins = f->ranks.n * cause_spinning_cpus(f);
	double leader = leader_spins(f);
	double lacks = known_or_zero(f->main_queued) + known_or_zero(f->workers.queued);
	if (!(spins >= SPINNING_CPUS) || !cpus_saturated(f) || lacks < QUEUED) {
		return 0;
	}
	double waits = known_or_zero(f->workers.queued) >= QUEUED ? cause_batches_waiting(f) : 0;
	double others = f->others_cpus >= OTHERS * f->cpus ? f->others_cpus : 0;
	double most = spins / (f->cpus_used + others);
	double lost = leader + known_or_zero(f->main_queued) + fmax(0, waits);
	return fmax(0, fmin(fmin(most, lost), 1 - workers_need(f)));
}

// Whether computing takes more CPU time than undisturbed, with as many threads as can run at once
// on a rank's part of the CPUs. A thread that waits asleep takes longer, but uses no more CPU time.
static bool burns_cpus(const struct facts *f, double alone)
{
	double prepares = f->workers.n > 0 ? 0
	                                   : facts_share(f, PHASE_DATA) - cause_batches_blocked(f);
	double turning = fmin(f->cpus / fmax(1, f->ranks.n), f->main_threads);
	return f->main_cpus - prepares >= BURNT * alone * turning;
}

// Without samples: the same step takes far longer, and more CPU time, than undisturbed. The least
// work for the CPUs remains if the spinning is removed.
static double spinning_inferred(const struct facts *f)
{
	double waits = known_or_zero(f->undisturbed_waits_s) / f->length_s.value;
	double threads = cause_computing_threads(f), alone = f->undisturbed_s / f->length_s.value;
	bool passive = f->wait_policy && strcasecmp(f->wait_policy, "passive") == 0;
	bool several = !(f->main_threads < 2) && threads >= PARALLEL;
	if (passive || f->one_thread || !several || !f->openmp || !cpus_saturated(f) ||
		!(f->compute_s >= DILATED * f->undisturbed_s) || !burns_cpus(f, alone)) {
		return 0;
	}
	waits += f->workers.n > 0 ? 0 : facts_share(f, PHASE_DATA);
	threads = fmin(threads, fmin(f->cpus, f->main_threads)); // at most as many as run at once
	double work = (computing_cpus(f, threads, alone) + known_or_zero(f->workers.cpus)) /
	              f->cpus;
	return fmax(0, 1 - fmax(fmax(alone + waits, work), cause_batches_need(f, false, 1)));
}

// Without samples, by the clocks of threads: a team keeps CPUs busy beside workers, and the
// training thread is ready without a CPU. This was seen of teams that spin. A team that only
// computes, beside idle workers, left the training thread ready for at most 7 % of the time.
static double spinning_by_clocks(const struct facts *f)
{
	const struct thread_facts *t = &f->threads;
	bool passive = f->wait_policy && strcasecmp(f->wait_policy, "passive") == 0;
	if (!t->known || !(t->team_cpus >= MOST) || f->workers.n == 0 || passive || !f->openmp ||
		f->one_thread || !cpus_saturated(f) || !(f->main_queued >= QUEUED_LONG)) {
		return 0;
	}
	double waits = known_or_zero(f->workers.queued) >= QUEUED ? cause_batches_waiting(f) : 0;
	return fmin(f->main_queued + waits, t->team_cpus / f->cpus);
}

// Threads that sleep between short operations. For each operation the leader wakes its team, and
// sleeps until the last one is done. That costs the leader's time in the kernel, as far as wakes
// take it and not page faults, and the time asleep while the team runs. One thread would have to
// compute what the others do:
//
//   L(1) = 1 - asleep - kernel + useful
//
// as shares of an iteration. It can be less: a CPU that does not sleep computes faster. A leader
// that sleeps for other ranks, a device or children is not judged.
double cause_sleeping_team(const struct facts *f)
{
	const struct thread_group_facts *team = &f->threads.groups[THREADS_OPENMP];
	const struct code_facts *others = &f->code_threads;
	bool elsewhere = f->ranks.n > 1 || f->ranks.world > 1 ||
	                 facts_share(f, PHASE_COMMUNICATION) > 0 ||
	                 f->children.per_iteration > 0.01 || (f->gpu.n > 0 && !f->gpu.unused);
	bool known = f->threads.known && team->threads >= 1 && f->openmp &&
	             f->waits.placed >= LOOKS_ENOUGH && cause_sampled(&f->code) &&
	             cause_sampled(others);
	if (elsewhere || !known || !(team->runs >= TEAM_WAKES * team->threads)) {
		return 0;
	}
	double asleep = fmin(known_or_zero(f->waits.in_step[WAIT_OTHER]),
		known_or_zero(team->cpus) + known_or_zero(team->ready));
	double faults = known_or_zero(f->page_faults) * FAULT_MOST_S;
	double kernel = fmax(0, leader_in_kernel(f) - faults);
	double useful = (1 - cause_code(others, CODE_SYSTEM)) * known_or_zero(others->cpus);
	return asleep >= WORTH ? fmax(0, asleep + fmin(kernel, team->runs * WAKE_MOST_S) - useful)
	                       : 0;
}

// A team of more threads than there are CPUs for a rank: what waits at the end of each short
// operation waits for the thread that has no CPU. The share of the time in which the first thread,
// or one of the others on average, is ready without a CPU. Threads may also spin in generated code
// (oneDNN's barriers), which samples do not show. What ten jobs of three and four threads on two
// CPUs gained with two threads was between 24 points less than this share and 27 points more.
double cause_crowded_team(const struct facts *f)
{
	const struct thread_group_facts *team = &f->threads.groups[THREADS_OPENMP];
	double cpus = fmax(1, floor(f->cpus / fmax(1, f->ranks.n)));
	// Of many threads for each CPU, none can run often.
	double runs = team->threads + 1 >= MANY_THREADS * cpus ? cpus : team->threads;
	bool crowded = f->threads.known && team->threads >= 1 && team->threads + 1 > cpus &&
	               f->openmp && team->runs >= TEAM_WAKES * runs;
	bool others = f->others_cpus >= OTHERS * f->cpus || used_up(f) >= THROTTLED;
	if (!crowded || others) {
		return 0;
	}
	double ready = fmin(1, fmax(known_or_zero(f->main_queued), team->ready / team->threads));
	return ready >= QUEUED_LONG ? ready : 0;
}

static double spinning(const struct facts *f)
{
	bool sampled = isfinite(cause_spinning_cpus(f));
	return sampled ? spinning_seen(f) : fmax(spinning_inferred(f), spinning_by_clocks(f));
}

// What is wrong with the threads.
enum team { TEAM_SPINS, TEAM_SLEEPS, TEAM_CROWDED };

static enum team wrong_team(const struct facts *f)
{
	double sleeps = cause_sleeping_team(f), crowded = cause_crowded_team(f);
	double spins = spinning(f);
	return crowded > 0 && crowded >= sleeps && crowded >= spins ? TEAM_CROWDED
	       : sleeps > 0 && sleeps >= spins                      ? TEAM_SLEEPS
	                                                            : TEAM_SPINS;
}

static struct judgement judge_threads(const struct facts *f, const struct causes *found)
{
	(void)found;
	double share = fmax(spinning(f), fmax(cause_sleeping_team(f), cause_crowded_team(f)));
	return (struct judgement){share, PHASE_FORWARD};
}

bool cause_threads_sleep(const struct facts *f)
{
	return wrong_team(f) == TEAM_SLEEPS;
}

static enum grounds grounds_threads(const struct facts *f)
{
	return isfinite(cause_spinning_cpus(f)) && wrong_team(f) == TEAM_SPINS ? GROUNDS_DIRECT
	                                                                       : GROUNDS_INDIRECT;
}

static void say_threads(struct text *t, const struct facts *f, const struct cause *cause)
{
	enum team wrong = wrong_team(f);
	if (wrong == TEAM_CROWDED) {
		text_append_string(t, "too many threads: ");
		words_append_number(t, f->threads.groups[THREADS_OPENMP].threads + 1);
		text_append_string(t, " threads ");
		text_append_string(t, f->ranks.n > 1 ? "of each rank share " : "share ");
		words_append_counted(t, f->cpus, "CPU");
		text_append_string(t, "; waiting for a CPU takes ");
		cause_append_share(t, cause);
		return;
	}
	if (wrong == TEAM_SLEEPS) {
		text_append_string(t, "too many threads: compute threads sleep and are woken ");
		words_append_number(t, f->threads.groups[THREADS_OPENMP].runs /
					       f->threads.groups[THREADS_OPENMP].threads);
		text_append_string(t, " times a second, which costs ");
		cause_append_share(t, cause);
		return;
	}
	text_append_string(t, "too many threads: spinning compute threads compete with ");
	if (f->workers.n > 0) {
		text_format(t, "%u loader worker%s", f->workers.n, f->workers.n == 1 ? "" : "s");
	} else {
		text_append_string(t, "other threads");
	}
	text_append_string(t, " for ");
	words_append_counted(t, f->cpus, "CPU");
	text_append_string(t, ", which costs ");
	cause_append_share(t, cause);
}

// Whether OpenMP's threads spin, not those of a BLAS library, as far as is known.
static bool spins_in_openmp(const struct facts *f)
{
	const struct code_facts *groups[] = {&f->code, &f->code_threads};
	double all = 0, in = 0;
	for (size_t i = 0; i < 2; i++) {
		double cpus = known_or_zero(groups[i]->cpus);
		all += cause_code(groups[i], CODE_SPINNING) * cpus;
		in += cause_sampled(groups[i]) ? known_or_zero(groups[i]->in_openmp) * cpus : 0;
	}
	return in >= MOST * all;
}

// The number of computing threads of a training process: the setting, else the size of its teams,
// else one thread per CPU, whatever the number of ranks.
static double threads_it_has(const struct facts *f)
{
	const struct thread_group_facts *groups = f->threads.groups;
	double team = fmax(known_or_zero(groups[THREADS_OPENMP].threads),
		known_or_zero(groups[THREADS_BLAS].threads));
	return f->omp_threads > 0             ? f->omp_threads
	       : f->threads.known && team > 0 ? team + 1
	                                      : f->cpus;
}

static struct estimate gain_up_to(struct estimate share, double most)
{
	struct estimate gain = advice_gain_of(share, 1);
	if (most < gain.value) {
		double part = most / gain.value;
		gain = (struct estimate){most, gain.low * part, gain.high * part};
	}
	return gain;
}

// The model of cause_sleeping_team is about one thread.
static void advise_sleeping_team(struct advice_builder *b, const struct cause *cause)
{
	struct text action = {0}, basis = {0};
	if (b->f->omp_threads == 1) { // which the script overrides
		text_append_string(&action, "compute with one thread (torch.set_num_threads)");
	} else {
		text_append_string(&action, "OMP_NUM_THREADS=1");
		advice_set(b, 0, SETTING_ENVIRONMENT, "OMP_NUM_THREADS=1");
	}
	text_append_string(&basis, "operations are short: the training thread spends ");
	words_append_percent(&basis, b->f->waits.in_step[WAIT_OTHER]);
	text_append_string(
		&basis, " of the time asleep, waiting for its other threads, which use ");
	words_append_number(&basis, b->f->code_threads.cpus);
	text_append_string(&basis, " CPUs");
	advice_suggest(b, advice_gain_of(cause->share, 1), &action, &basis);
}

// Threads of a rank that have a CPU each beside busy workers.
static double threads_that_fit(const struct facts *f)
{
	double busy = f->workers.cpus + f->workers.queued;
	double free_cpus = (f->cpus - (isfinite(busy) ? busy : 0)) / fmax(1, f->ranks.n);
	return fmax(1, floor(free_cpus));
}

// A script that has more threads than the environment says sets their number itself.
static void advise_crowded_team(struct advice_builder *b, const struct cause *cause)
{
	(void)cause;
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	double threads = threads_that_fit(f), has = f->threads.groups[THREADS_OPENMP].threads + 1;
	bool pytorch = f->framework == FRAMEWORK_PYTORCH;
	if (f->omp_threads < has) {
		text_format(&action, "compute with %.0f thread%s%s", threads,
			threads == 1 ? "" : "s", pytorch ? " (torch.set_num_threads)" : "");
	} else {
		text_format(&action, "OMP_NUM_THREADS=%.0f", threads);
		advice_set(b, 0, SETTING_ENVIRONMENT, "OMP_NUM_THREADS=%.0f", threads);
		if (isnan(f->omp_threads) && pytorch) {
			text_append_string(&action, ", or torch.set_num_threads in the script");
		}
	}
	words_append_number(&basis, has);
	text_append_string(&basis,
		f->ranks.n > 1 ? " threads of each rank compute on " : " threads compute on ");
	words_append_counted(&basis, f->cpus, "CPU");
	advice_suggest(b, advice_no_gain, &action, &basis);
}

// Waking a sleeping thread takes time too: fewer threads gain more than passive ones.
static void advise_threads(struct advice_builder *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	enum team wrong = wrong_team(f);
	if (wrong != TEAM_SPINS) {
		(wrong == TEAM_SLEEPS ? advise_sleeping_team : advise_crowded_team)(b, cause);
		return;
	}
	struct text action = {0}, basis = {0};
	double threads = threads_that_fit(f);
	// If they spin: fewer threads than it has, or none of the setting.
	double has = threads_it_has(f);
	bool fewer = has >= 2 || threads < has;
	threads = threads >= has ? fmax(1, has - 1) : threads;
	// The remaining threads must do the useful work of the others.
	double most = 1 / advice_length_with_threads(f, threads);
	fewer = fewer && !(most < LITTLE);
	double spins = cause_spinning_cpus(f);
	bool passive = spins_in_openmp(f);
	if (fewer) {
		text_format(&action, "OMP_NUM_THREADS=%.0f", threads);
		advice_set(b, 0, SETTING_ENVIRONMENT, "OMP_NUM_THREADS=%.0f", threads);
	}
	if (passive || !fewer) {
		text_append_string(&action,
			fewer ? ", or OMP_WAIT_POLICY=passive" : "OMP_WAIT_POLICY=passive");
		advice_set(b, 1, SETTING_ENVIRONMENT, "OMP_WAIT_POLICY=passive");
	}
	if (isfinite(spins)) {
		text_append_string(&basis, "spinning threads use ");
		words_append_number(&basis, spins);
		text_append_string(&basis, " CPUs in each training process");
		if (fewer) {
			advice_suggest(b, gain_up_to(cause->share, most), &action, &basis);
		} else { // waking them takes time too
			advice_suggest_at_most(b, cause->share.value, &action, &basis);
		}
		return;
	}
	text_append_string(&basis, "a step takes ");
	words_append_seconds(&basis, f->compute_s);
	text_append_string(&basis, ", an undisturbed step with as many samples ");
	words_append_seconds(&basis, f->undisturbed_s);
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
}

// Contention --------------------------------------------------------------------------------------

// The gain of a CPU for every ready thread that remains after the spinning is removed.
static double contention_beside_threads(const struct facts *f, double contention, double threads)
{
	if (isfinite(cause_spinning_cpus(f))) {
		return fmax(0, contention - threads);
	}
	double waits = known_or_zero(f->undisturbed_waits_s) / f->length_s.value;
	double alone = f->undisturbed_s / f->length_s.value;
	return fmax(0, 1 - threads - fmax(alone + waits, cause_batches_need(f, false, 1)));
}

// If the quota is used up, the lack of CPUs is its effect: the same time is not reported twice.
static struct judgement judge_contention(const struct facts *f, const struct causes *found)
{
	const struct cause *threads = causes_get(found, BOTTLENECK_THREADS);
	double share = causes_get(found, BOTTLENECK_CPU_QUOTA) ? 0 : contention_share(f);
	if (threads && !cause_threads_sleep(f) && share >= WORTH) {
		share = contention_beside_threads(f, share, threads->share.value);
	}
	return (struct judgement){share, PHASE_DATA};
}

// Threads were ready and no CPU was free: the job itself filled them, or its threads were seen to
// queue.
static enum grounds grounds_contention(const struct facts *f)
{
	bool full = f->cpus_used >= SATURATED * f->cpus;
	return full ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
}

// CPUs that processes of the job use which neither train nor load. If training waits at a pipe,
// they may make its batches.
static double beside_training(const struct facts *f)
{
	bool may_feed = f->workers.n > 0 || known_or_zero(f->waits.share[WAIT_PIPE]) >= WORTH;
	double beside = may_feed || f->ranks.n > 1 ? 0 : f->cpus_used - f->main_cpus;
	return fmax(beside, known_or_zero(f->helpers_cpus));
}

// Whether the job restricted itself to fewer CPUs than it has, as far as no quota does.
static bool restricts_itself(const struct facts *f)
{
	return f->cpus_given - f->cpus >= IDLE_CPUS && !isfinite(f->quota.cpus);
}

static void say_contention(struct text *t, const struct facts *f, const struct cause *cause)
{
	enum lack lack = causes_lack(f);
	if (lack == LACK_NOBODY) {
		// Other programs may have used all CPUs that the job may use.
		bool certain = !(f->cpus_used + f->host_others_cpus >= f->cpus);
		text_append_string(t, "too few usable CPUs: some of ");
		words_append_counted(t, certain ? f->cpus : f->host_cpus, "CPU");
		text_append_string(t, " were idle, but the job waited for a CPU for ");
	} else if (lack == LACK_OTHERS) {
		text_append_string(t, "CPU contention: other programs used ");
		cause_append_cpus(t, f->host_others_cpus, f->host_cpus);
		text_append_string(t, ", which costs ");
	} else if (f->workers.n > 0) {
		text_append_string(t, "CPU-bound: preprocessing and training compete for ");
		words_append_counted(t, f->cpus, "CPU");
		text_append_string(t, ", which costs ");
	} else if (beside_training(f) >= OTHERS * f->cpus) {
		text_append_string(t, "CPU-bound: other processes of the job use ");
		cause_append_cpus(t, beside_training(f), f->cpus);
		text_append_string(t, ", which costs ");
	} else {
		text_append_string(t, "CPU-bound: the job needed more than ");
		words_append_counted(t, f->cpus, "CPU");
		text_append_string(t, ", which costs ");
	}
	cause_append_share(t, cause);
}

// The share of an iteration that the job's own workers cost by the CPUs that they take: at most the
// time for which training waited, or what its steps take longer than undisturbed ones.
static double own_workers_cost(const struct facts *f, const struct cause *cause)
{
	if (!(f->workers.n > 0) || !(f->workers.cpus >= OTHERS * f->cpus)) {
		return NAN;
	}
	double longer = f->compute_s >= USUAL * f->undisturbed_s
	                        ? (f->compute_s - f->undisturbed_s) / f->length_s.value
	                        : 0;
	return fmax(cause->share.value, longer);
}

static void advise_contention(struct advice_builder *b, const struct cause *cause)
{
	const struct facts *f = b->f;
	struct text action = {0}, basis = {0};
	double needed = causes_needed_cpus(f);
	enum lack lack = causes_lack(f);
	if (lack == LACK_NOBODY) {
		// Where the job may use all of them, only its threads can be bound.
		text_append_string(&action, f->cpus >= f->host_cpus
						    ? "do not bind threads to CPUs (OMP_PROC_BIND, "
						      "KMP_AFFINITY), or use a dedicated machine"
						    : "widen the CPU affinity (taskset, numactl, "
						      "cpuset)");
		text_append_string(&basis, "the job waited for a CPU ");
		words_append_percent(&basis, f->main_queued);
		text_append_string(&basis, " of the time while others were idle");
	} else if (lack == LACK_OTHERS) {
		text_append_string(&action, "use a dedicated machine, or dedicated CPUs");
		text_append_string(&basis, "other programs used ");
		words_append_number(&basis, f->host_others_cpus);
		text_append_string(&basis, f->cpus < f->host_cpus ? " of the machine's " : " of ");
		words_append_counted(&basis, f->host_cpus, "CPU");
	} else if (restricts_itself(f)) {
		text_append_string(&action, "widen the CPU affinity that the job sets "
					    "(sched_setaffinity, taskset)");
		text_append_string(&basis, "the job uses ");
		words_append_counted(&basis, f->cpus, "CPU");
		text_append_string(&basis, " and had ");
		words_append_number(&basis, f->cpus_given);
	} else {
		if (beside_training(f) >= OTHERS * f->cpus) {
			text_append_string(&action, "run fewer other processes of the job, lower "
						    "their priority (nice), or ");
		}
		text_append_string(&action, "use more CPUs, up to ");
		words_append_number(&action, fmax(ceil(needed), floor(f->cpus) + 1));
		text_append_string(&basis, "the job has ");
		words_append_counted(&basis, f->cpus, "CPU");
		text_append_string(&basis, " and could have used ");
		words_append_number(&basis, needed);
		text_append_string(&basis, " on average");
	}
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
	double own = lack == LACK_OWN && !restricts_itself(f) ? own_workers_cost(f, cause) : NAN;
	if (own >= WORTH) {
		cause_advise_less_preparation(b, own);
	}
}

// Waits of the training thread --------------------------------------------------------------------

static double waits_in(const struct facts *f, enum wait_kind kind)
{
	return f->waits.looks >= LOOKS_ENOUGH ? known_or_zero(f->waits.share[kind]) : 0;
}

static enum grounds grounds_waits(const struct facts *f)
{
	(void)f;
	return GROUNDS_DIRECT; // samples found the thread in just this wait
}

static struct judgement judge_python_threads(const struct facts *f, const struct causes *found)
{
	(void)found;
	return (struct judgement){waits_in(f, WAIT_GIL), PHASE_FORWARD};
}

static void say_python_threads(struct text *t, const struct facts *f, const struct cause *cause)
{
	const struct line_place *top = &f->thread_lines.tops[0];
	text_append_string(t, "another Python thread holds the interpreter lock (GIL): waiting for "
			      "it takes ");
	cause_append_share(t, cause);
	if (f->thread_lines.n_tops > 0 && f->thread_lines.looks >= LOOKS_ENOUGH) {
		cause_append_line(t, "; other threads run mostly in ", top, 1);
	}
}

// No bound: the other thread also takes a CPU from computing threads. Without one, a job ran 13
// times faster, although waits for the lock were half of its time.
static void advise_python_threads(struct advice_builder *b, const struct cause *cause)
{
	(void)cause;
	advice_suggest_unknown(b,
		"move the work of the other Python threads into a separate process",
		"only one thread at a time executes Python code");
}

// Waits of one kind in steps: a wait while it takes a batch belongs to input. of_ranks: ranks wait
// for each other in this way, too.
static double waits_in_steps(const struct facts *f, enum wait_kind kind, bool of_ranks)
{
	bool exchange = f->ranks.world > 1 || facts_share(f, PHASE_COMMUNICATION) > 0;
	// Processes that train beside each other, and exchange nothing as far as is known, take
	// turns at a lock because the script says so.
	bool ranks = exchange || (f->ranks.n > 1 && kind != WAIT_LOCK);
	double all = waits_in(f, kind);
	if (of_ranks && ranks) {
		return 0;
	}
	return f->waits.placed >= LOOKS_ENOUGH ? known_or_zero(f->waits.in_step[kind])
	                                       : fmax(0, all - facts_share(f, PHASE_DATA));
}

// Where most steps start a process, waits at pipes are those for its output.
static double reads_children(const struct facts *f)
{
	return f->children.per_iteration >= CHILDREN_EACH ? waits_in_steps(f, WAIT_PIPE, true) : 0;
}

// Starting a process copies the page tables of a process with a framework in it. That is kernel
// time of the training thread, in a job whose children come and go all the time.
static double starts_children(const struct facts *f)
{
	double cpus = f->children.cpu_s / f->length_s.value;
	bool seen = f->workers.n == 0 || f->children.command; // workers come and go, too
	bool start = cpus >= CHILDREN_CPUS && cause_sampled(&f->code) && seen;
	return start ? cause_code(&f->code, CODE_SYSTEM) * fmin(1, known_or_zero(f->code.cpus)) : 0;
}

static struct judgement judge_children(const struct facts *f, const struct causes *found)
{
	(void)found;
	double waits = f->children.waits_s / f->length_s.value;
	waits = fmax(waits_in(f, WAIT_CHILD), known_or_zero(waits)) + reads_children(f);
	return (struct judgement){fmin(1, waits + starts_children(f)), PHASE_FORWARD};
}

static enum grounds grounds_children(const struct facts *f)
{
	bool seen = waits_in(f, WAIT_CHILD) + reads_children(f) >= WORTH;
	return seen ? GROUNDS_DIRECT : GROUNDS_INDIRECT;
}

// Appends "8 per iteration, mostly \"convert\"", as far as it is known.
static void append_children(struct text *t, const struct facts *f)
{
	const struct children_facts *c = &f->children;
	const char *comma = "";
	if (c->per_iteration >= 0.5) {
		words_append_number(t, c->per_iteration);
		text_append_string(t, " per iteration");
		comma = ", ";
	}
	if (c->command && *c->command) {
		text_append_string(t, comma);
		text_append_string(t, "mostly \"");
		words_append_place(t, c->command, 24);
		text_append_string(t, "\"");
	}
}

static void say_children(struct text *t, const struct facts *f, const struct cause *cause)
{
	_cleanup_text_ struct text which = {0};
	text_append_string(t, "the training process starts child processes in each step; waiting "
			      "for them takes ");
	cause_append_share(t, cause);
	append_children(&which, f);
	if (which.length > 0) {
		text_format(t, " (%s)", which.data);
	}
	cause_append_line(t, ", mostly in ", &f->lines.outside,
		cause->share.value / facts_share(f, PHASE_OTHER));
}

static void advise_children(struct advice_builder *b, const struct cause *cause)
{
	struct text action = {0}, basis = {0};
	text_append_string(&action, "do not start processes in a step: use a long-lived process, "
				    "or a library");
	append_children(&basis, b->f);
	if (basis.length == 0) {
		text_append_string(&basis, "the training thread waits for a child process");
	}
	advice_suggest(b, advice_gain_of(cause->share, 1), &action, &basis);
}

// Environments of reinforcement learning: what they do is not training, wherever it runs.
static struct judgement judge_environment(const struct facts *f, const struct causes *found)
{
	(void)found;
	return (struct judgement){fmin(1, f->named[NAMED_ENVIRONMENT].share), PHASE_OTHER};
}

static enum grounds grounds_named(const struct facts *f)
{
	(void)f;
	return GROUNDS_DIRECT; // the hooks time each call
}

// "7.4 calls of 10.8 ms per iteration".
static void append_calls(struct text *t, const struct named_facts *calls)
{
	words_append_counted(t, calls->per_iteration, "call");
	text_append_string(t, " of ");
	words_append_seconds(t, calls->mean_s);
	text_append_string(t, " per iteration");
}

static void say_environment(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "environment-bound: environment calls take ");
	cause_append_share(t, cause);
	text_append_string(t, " (");
	append_calls(t, &f->named[NAMED_ENVIRONMENT]);
	text_append_string(t, ")");
}

// Whether they run in other processes: the training thread waits for these.
static bool runs_environments_beside(const struct facts *f, double share)
{
	return waits_in_steps(f, WAIT_PIPE, true) >= MOST * share;
}

// As many as there are idle CPUs can run beside the first. A call that is shorter than what it
// costs to send its results does not become faster so.
static void advise_environment(struct advice_builder *b, const struct cause *cause)
{
	struct text action = {0}, basis = {0};
	double idle = floor(advice_idle_cpus(b->f) + 1 - IDLE_WHOLE);
	bool brief = b->f->named[NAMED_ENVIRONMENT].mean_s < ENVIRONMENT_BRIEF_S;
	append_calls(&basis, &b->f->named[NAMED_ENVIRONMENT]);
	if (runs_environments_beside(b->f, cause->share.value)) {
		text_append_string(&action, "use faster environments, or more CPUs and processes "
					    "for them");
		text_append_string(&basis, "; the training thread waits for other processes; ");
		advice_append_idle(&basis, b->f);
		advice_suggest_at_most(b, cause->share.value, &action, &basis);
	} else if (brief || idle < 1) {
		text_append_string(&action, "step many environments in one call (vectorised, or "
					    "on the GPU), or use a faster environment");
		advice_suggest_at_most(b, cause->share.value, &action, &basis);
	} else {
		text_append_string(&action, "run several environments in processes beside the "
					    "training process (gymnasium's AsyncVectorEnv, "
					    "Stable-Baselines3's SubprocVecEnv)");
		text_append_string(&basis, "; ");
		advice_append_idle(&basis, b->f);
		advice_suggest_at_most(b, cause->share.value * idle / (1 + idle), &action, &basis);
	}
}

// Text that is generated to train on it, token by token.
static struct judgement judge_generation(const struct facts *f, const struct causes *found)
{
	(void)found;
	return (struct judgement){fmin(1, f->named[NAMED_GENERATE].share), PHASE_FORWARD};
}

static void say_generation(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_append_string(t, "generation-bound: generating text takes ");
	cause_append_share(t, cause);
	text_append_string(t, " (");
	append_calls(t, &f->named[NAMED_GENERATE]);
	text_append_string(t, ")");
}

static void advise_generation(struct advice_builder *b, const struct cause *cause)
{
	struct text action = {0}, basis = {0};
	text_append_string(&action, "generate text with an inference engine (vLLM; use_vllm=True "
				    "in trl), for more prompts at a time, or generate fewer "
				    "tokens");
	text_append_string(
		&basis, "generate() of transformers calls the model once for each token; ");
	append_calls(&basis, &b->f->named[NAMED_GENERATE]);
	advice_suggest_at_most(b, cause->share.value, &action, &basis);
}

// A wait in a step for something outside the process that no other row covers. Ranks wait for each
// other at sockets and in shared memory.
struct step_wait {
	enum wait_kind kind;
	bool of_others; // ranks wait for each other in this way, too
	const char *says, *action, *basis;
};

static const struct step_wait step_waits[] = {
	{WAIT_SLEEP, false, "sleeps in the training loop",
		"remove the sleep (a rate limit, polling, a callback) from the loop",
		"no computation happens during sleep"},
	{WAIT_NETWORK, true, "waits for the network in the training loop",
		"send and fetch in a background thread, or less often",
		"the training thread waits for a socket"},
	{WAIT_LOCK, true, "waits in the training loop for a lock that another process holds",
		"hold the lock for a shorter time (only around what it protects), or avoid it",
		"another process holds it"},
	{WAIT_PIPE, true, "waits in the training loop for another process (pipe or local socket)",
		"let the other process run ahead, and buffer several of its results in a queue",
		"the training thread waits for a pipe"},
	{WAIT_STORAGE, false, "waits for file I/O in the training loop",
		"read and write in a background thread, in larger pieces or less often; keep data "
		"that is read repeatedly in memory (load it once, or leave room for it in the page "
		"cache)",
		"the training thread waits for storage"},
	{WAIT_OTHER, true, "waits in its steps for another of its threads that is also idle",
		"let the other thread work ahead, with a queue of several results, or use several",
		"the training thread waits for another thread, which is itself waiting"},
};

// Whether the other threads of the process are idle: a team that computes is waited for, too, and
// so is another machine.
static bool threads_idle(const struct facts *f)
{
	bool others = f->children.per_iteration >= 0.01 || isfinite(f->network.busy) ||
	              cause_sleeping_team(f) > 0;
	return f->threads.known && f->threads.others_cpus < THREADS_IDLE &&
	       !(f->code_threads.cpus >= THREADS_IDLE) && !others;
}

// Whether the framework's threads are idle, as far as they are known by their names. (XLA's are
// not.)
static bool pools_idle(const struct facts *f)
{
	const struct thread_group_facts *groups = f->threads.groups;
	double cpus = known_or_zero(groups[THREADS_OPENMP].cpus) +
	              known_or_zero(groups[THREADS_BLAS].cpus) +
	              known_or_zero(groups[THREADS_POOL].cpus);
	return f->framework == FRAMEWORK_PYTORCH && f->threads.known && cpus < THREADS_IDLE;
}

// The part of such waits that is outside of all phases, while another thread of the process
// computes there: a lock that it holds, or its result. In a phase, the thread waits for the
// framework's pool.
static double waits_for_computing(const struct facts *f, double waits)
{
	double other = facts_share(f, PHASE_OTHER);
	double phases = 1 - other - facts_share(f, PHASE_DATA);
	double elsewhere = f->code.cpus - phases; // the thread's own computing, outside phases
	double asleep = fmin(other, waits + fmin(0, elsewhere));
	double others = f->all_in_other - fmax(0, elsewhere);
	bool known = isfinite(elsewhere) && isfinite(others) && pools_idle(f) &&
	             cause_sleeping_team(f) <= 0;
	return known ? fmax(0, fmin(asleep, others)) : 0;
}

// Of many short reads, the request takes the kernel as long as the wait for the device: its time
// outside of all phases, if the thread was seen to wait for storage, most of what it reads comes
// from there, and page faults do not explain it.
static double requests_reads(const struct facts *f, double waits)
{
	const struct storage_facts *s = &f->storage;
	bool reads = waits >= WORTH && s->read_rate >= READS_MUCH &&
	             s->read_rate >= MOST * s->asked_rate;
	double kernel = fmin(known_or_zero(f->system_in_other), leader_in_kernel(f));
	kernel = fmin(kernel, facts_share(f, PHASE_OTHER) - waits);
	double faults = known_or_zero(f->page_faults) * FAULT_MOST_S;
	return reads && kernel > 0 && faults < (1 - MOST) * kernel ? kernel : 0;
}

double cause_read_calls(const struct facts *f)
{
	return requests_reads(f, waits_in_steps(f, WAIT_STORAGE, false));
}

static double step_wait_share(const struct facts *f, const struct step_wait *wait)
{
	double share = waits_in_steps(f, wait->kind, wait->of_others);
	return wait->kind == WAIT_STORAGE                     ? share + requests_reads(f, share)
	       : wait->kind == WAIT_PIPE                      ? share - reads_children(f)
	       : wait->kind == WAIT_OTHER && !threads_idle(f) ? waits_for_computing(f, share)
	                                                      : share;
}

static const char *says_of(const struct facts *f, const struct step_wait *wait)
{
	return wait->kind == WAIT_OTHER && !threads_idle(f)
	               ? "waits, outside all phases, for computation in another of its threads"
	               : wait->says;
}

static const struct step_wait *largest_step_wait(const struct facts *f)
{
	const struct step_wait *largest = &step_waits[0];
	for (size_t i = 1; i < ARRAY_LENGTH(step_waits); i++) {
		if (step_wait_share(f, &step_waits[i]) > step_wait_share(f, largest)) {
			largest = &step_waits[i];
		}
	}
	return largest;
}

static struct judgement judge_blocked(const struct facts *f, const struct causes *found)
{
	static const enum phase_id phases[] = {
		PHASE_OTHER, PHASE_FORWARD, PHASE_BACKWARD, PHASE_OPTIMIZER, PHASE_STEP};
	enum phase_id shows_in = PHASE_OTHER;
	double sum = 0;
	if (f->gpu.used) { // the thread may sleep until the GPU is done
		return (struct judgement){0, PHASE_OTHER};
	}
	for (size_t i = 0; i < ARRAY_LENGTH(step_waits); i++) {
		sum += step_wait_share(f, &step_waits[i]);
	}
	const struct cause *environment = causes_get(found, BOTTLENECK_ENVIRONMENT);
	if (environment && runs_environments_beside(f, environment->share.value)) {
		sum = fmax(0, sum - environment->share.value);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(phases); i++) {
		bool larger = facts_share(f, phases[i]) > facts_share(f, shows_in);
		shows_in = larger ? phases[i] : shows_in;
	}
	return (struct judgement){fmin(1, sum), shows_in};
}

// If it is not known whether the job uses a GPU, the thread may wait for one.
static enum grounds grounds_blocked(const struct facts *f)
{
	const struct step_wait *wait = largest_step_wait(f);
	double seen = waits_in_steps(f, wait->kind, wait->of_others);
	bool thread = wait->kind == WAIT_OTHER; // as far as is known
	bool inferred = seen < MOST * step_wait_share(f, wait); // the requests' part
	return thread || inferred || (f->gpu.n > 0 && !f->gpu.unused) ? GROUNDS_INDIRECT
	                                                              : GROUNDS_DIRECT;
}

static void say_blocked(struct text *t, const struct facts *f, const struct cause *cause)
{
	text_format(t, "the training process %s, which takes ", says_of(f, largest_step_wait(f)));
	cause_append_share(t, cause);
	cause_append_line(t, ", mostly in ", &f->lines.outside,
		cause->share.value / facts_share(f, PHASE_OTHER));
}

static void advise_blocked(struct advice_builder *b, const struct cause *cause)
{
	const struct step_wait *wait = largest_step_wait(b->f);
	if (wait->kind == WAIT_SLEEP) { // can be removed completely
		struct text action = {0}, basis = {0};
		text_append_string(&action, wait->action);
		text_append_string(&basis, wait->basis);
		advice_suggest(b, advice_gain_of(cause->share, 1), &action, &basis);
		return;
	}
	if (wait->kind == WAIT_OTHER && !threads_idle(b->f)) {
		advice_suggest_plain_at_most(b, cause->share.value,
			"hold the lock for a shorter time, or let the other thread work ahead",
			"the training thread waits for a lock that the other thread holds, or for "
			"its result");
		return;
	}
	advice_suggest_plain_at_most(b, cause->share.value, wait->action, wait->basis);
}

// Rows --------------------------------------------------------------------------------------------

const struct cause_kind cause_quota = {
	.name = "cpu-quota",
	.part = "CPU quota",
	.judge = judge_quota,
	.grounds = grounds_quota,
	.say = say_quota,
	.advise = advise_quota,
};

const struct cause_kind cause_threads = {
	.name = "threads",
	.part = "too many threads",
	.judge = judge_threads,
	.grounds = grounds_threads,
	.say = say_threads,
	.advise = advise_threads,
};

const struct cause_kind cause_contention = {
	.name = "contention",
	.part = "CPU contention",
	.judge = judge_contention,
	.grounds = grounds_contention,
	.say = say_contention,
	.advise = advise_contention,
};

const struct cause_kind cause_python_threads = {
	.name = "python-threads",
	.part = "GIL contention",
	.judge = judge_python_threads,
	.grounds = grounds_waits,
	.say = say_python_threads,
	.advise = advise_python_threads,
};

const struct cause_kind cause_children = {
	.name = "children",
	.part = "child processes",
	.judge = judge_children,
	.grounds = grounds_children,
	.say = say_children,
	.advise = advise_children,
};

const struct cause_kind cause_environment = {
	.name = "environment",
	.part = "the environment",
	.judge = judge_environment,
	.grounds = grounds_named,
	.say = say_environment,
	.advise = advise_environment,
};

const struct cause_kind cause_generation = {
	.name = "generation",
	.part = "generation",
	.of_device = true,
	.judge = judge_generation,
	.grounds = grounds_named,
	.say = say_generation,
	.advise = advise_generation,
};

const struct cause_kind cause_blocked = {
	.name = "blocked",
	.part = "waits in the training loop",
	.judge = judge_blocked,
	.grounds = grounds_blocked,
	.say = say_blocked,
	.advise = advise_blocked,
};
