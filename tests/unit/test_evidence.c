// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Causes from what was seen directly: samples of CPU time, looks at blocked threads, quotas,
// growth.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "verdict/advice.h"
#include "verdict/causes.h"
#include "base/cleanup.h"
#include "job_facts.h"
#include "messages.h"
#include "verdict/verdict.h"

static void assert_first(const struct facts *f, enum bottleneck expected, double share,
	enum confidence confidence, const char *says)
{
	struct causes c;
	_cleanup_text_ struct text t = {0};
	causes_find(f, &c);
	assert_true(c.n > 0);
	if (c.items[0].bottleneck != expected || fabs(c.items[0].share.value - share) > 0.015 ||
		causes_confidence(f, &c) != confidence) {
		fail_msg("%s %.3f, %s confidence; expected %s %.3f, %s",
			bottleneck_name(c.items[0].bottleneck), c.items[0].share.value,
			confidence_name(causes_confidence(f, &c)), bottleneck_name(expected), share,
			confidence_name(confidence));
	}
	causes_append_headline(&t, f, &c.items[0]);
	assert_says(t.data, says);
}

static bool is_advised(const struct facts *f, const char *part, struct suggestion *ret)
{
	struct causes c;
	struct verdict v = {0};
	bool found = false;
	causes_find(f, &c);
	assert_int_equal(causes_advise(f, &c, &v), 0);
	for (size_t i = 0; i < v.n_suggestions && !found; i++) {
		found = strstr(v.suggestions[i].action, part) != NULL;
		*ret = v.suggestions[i];
	}
	verdict_done(&v);
	return found;
}

// Two workers that are blocked nearly all the time that they prepare.
static struct facts blocked_workers(enum wait_kind kind)
{
	struct facts f = job(0.84);
	add_workers(&f, 2, 0.1, 0, 1.9);
	add_looks(&f.worker_waits, kind, 0.95);
	return f;
}

static void blocked_workers_are_named_by_what_blocks_them(void **state)
{
	(void)state;
	struct facts f = blocked_workers(WAIT_SLEEP);
	assert_first(&f, BOTTLENECK_INPUT_SLEEP, 0.84, CONFIDENCE_HIGH, "... 84 % ... 2");
	f = blocked_workers(WAIT_LOCK);
	assert_first(&f, BOTTLENECK_INPUT_LOCK, 0.84, CONFIDENCE_HIGH, "... 84 % ... 2");
	f = blocked_workers(WAIT_NETWORK);
	assert_first(&f, BOTTLENECK_INPUT_NETWORK, 0.84, CONFIDENCE_HIGH, "... 84 % ... 2");
	f = blocked_workers(WAIT_STORAGE);
	f.storage.read_rate = f.storage.asked_rate = 30e6;
	assert_first(&f, BOTTLENECK_STORAGE, 0.84, CONFIDENCE_HIGH, "... 84 % ... 30 MB/s");
	f = blocked_workers(WAIT_SLEEP);
	f.worker_waits.looks = 0; // nobody looked
	assert_first(&f, BOTTLENECK_INPUT_BLOCKED, 0.84, CONFIDENCE_MEDIUM, "... 84 % ... 2");
}

// They need no CPU meanwhile: more of them than CPUs gain. At a lock none does.
static void blocked_workers_are_not_capped_by_cpus(void **state)
{
	(void)state;
	struct facts f = blocked_workers(WAIT_SLEEP);
	struct suggestion s;
	f.cpus = f.host_cpus = 2;
	assert_true(advice_workers(&f) >= 8);
	assert_true(is_advised(&f, "loader workers 2 -> ", &s));
	assert_int_equal(s.kind, GAIN_ESTIMATED);
	assert_true(s.gain.value > 4);
	f.memory.peak_bytes = 3e9;
	f.memory.limit_bytes = 6e9; // a GB each
	assert_int_equal(advice_workers(&f), 4);
	f = blocked_workers(WAIT_LOCK);
	assert_false(is_advised(&f, "loader workers", &s));
	assert_true(is_advised(&f, "hold the lock for a shorter time", &s));
	assert_int_equal(s.kind, GAIN_AT_MOST);
}

static void another_python_thread_holds_the_interpreter(void **state)
{
	(void)state;
	struct facts f = job(0);
	add_samples(&f, CODE_KERNELS, 0.5);
	add_looks(&f.waits, WAIT_GIL, 0.48);
	f.main_cpus = 1.4;
	assert_first(&f, BOTTLENECK_PYTHON_THREADS, 0.48, CONFIDENCE_HIGH, "... GIL ... 48 %");
}

// While it prepares batches, too: what the other thread uses is no work of the training thread.
static void a_held_interpreter_is_no_preparation(void **state)
{
	(void)state;
	struct facts f = job(0.6);
	add_samples(&f, CODE_INTERPRETER, 0.25);
	add_looks(&f.waits, WAIT_GIL, 0.7);
	f.main_cpus = f.cpus_used = 1.2;
	struct causes c;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_PYTHON_THREADS);
	assert_null(causes_get(&c, BOTTLENECK_INPUT_BLOCKED));
	const struct cause *input = causes_get(&c, BOTTLENECK_INPUT);
	assert_true(!input || input->share.value < 0.2);
}

static void processes_that_steps_start_are_named(void **state)
{
	(void)state;
	struct facts f = job(0);
	add_looks(&f.waits, WAIT_CHILD, 0.45);
	f.main_cpus = 0.5;
	f.children = (struct children_facts){8, 0.003, 0.0045, "true"};
	assert_first(&f, BOTTLENECK_CHILDREN, 0.45, CONFIDENCE_HIGH, "... 45 % ... 8 ... \"true\"");
}

static void place(struct facts *f, enum wait_kind kind, double in_data, double in_step)
{
	f->waits.placed = 100;
	for (size_t i = 0; i < N_WAITS; i++) {
		f->waits.in_data[i] = i == kind ? in_data : 0;
		f->waits.in_step[i] = i == kind ? in_step : 0;
	}
}

// The interpreter runs the environment: nothing of that is the host's.
static void environments_are_named(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct suggestion s;
	struct causes c;
	f.named[NAMED_ENVIRONMENT] = (struct named_facts){
		.share = 0.6, .per_iteration = 20, .iterations = 1, .mean_s = 0.003};
	f.cpus_used = 1;
	assert_first(&f, BOTTLENECK_ENVIRONMENT, 0.6, CONFIDENCE_HIGH,
		"environment-bound: ... 60 % of each iteration (20 calls of 3.00 ms per "
		"iteration)");
	assert_true(is_advised(&f, "run several environments in processes beside", &s));
	causes_find(&f, &c);
	const struct cause *host = causes_get(&c, BOTTLENECK_HOST);
	assert_true(!host || host->share.value < 0.41);
	f.named[NAMED_ENVIRONMENT].mean_s = 0.0002;
	assert_true(is_advised(&f, "step many environments in one call", &s));
	// The thread waits for other processes: the same time is no other wait.
	add_looks(&f.waits, WAIT_PIPE, 0.55);
	place(&f, WAIT_PIPE, 0, 0.55);
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_BLOCKED));
	assert_true(is_advised(&f, "use faster environments, or more CPUs and processes", &s));
}

// One that waits at pipes only for its next batch asks nobody.
static void workers_that_ask_a_process_are_named(void **state)
{
	(void)state;
	struct facts f = job(0.6);
	struct suggestion s;
	add_workers(&f, 1, 0.4, 0, 0.55);
	f.workers.preparing = 0.95;
	add_looks(&f.worker_waits, WAIT_NETWORK, 0.01);
	f.worker_waits.left_out = 0.5;
	f.servers_cpus = 0.5;
	assert_first(&f, BOTTLENECK_INPUT_BLOCKED, 0.58, CONFIDENCE_MEDIUM,
		"input-bound (data loading requests data from another process): ... 60 %");
	assert_true(is_advised(&f, "multiprocessing.Manager", &s));
	assert_int_equal(s.kind, GAIN_AT_MOST);
	f.servers_cpus = 0.1;
	assert_false(is_advised(&f, "multiprocessing.Manager", &s));
	f.servers_cpus = 0.5;
	f.workers.preparing = 0.5;
	assert_false(is_advised(&f, "multiprocessing.Manager", &s));
}

static void generation_is_named(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct suggestion s;
	f.named[NAMED_GENERATE] = (struct named_facts){
		.share = 0.7, .per_iteration = 1, .iterations = 1, .mean_s = 0.09};
	assert_first(&f, BOTTLENECK_GENERATION, 0.7, CONFIDENCE_HIGH,
		"generation-bound: generating text takes 70 % of each iteration (1 call of 90.0 ms "
		"per iteration)");
	assert_true(is_advised(&f, "generate text with an inference engine", &s));
	assert_int_equal(s.kind, GAIN_AT_MOST);
	// On a GPU that is idle for half of that, too: its idle time there is not the host's.
	struct causes c;
	f.gpu.used = true;
	f.gpu.n = 1;
	f.gpu.busy = 0.5;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_GENERATION);
	const struct cause *host = causes_get(&c, BOTTLENECK_HOST);
	assert_true(!host || host->share.value < 0.16);
}

// Its other threads spin meanwhile: CPU time of the process says nothing.
static void a_step_that_sleeps_is_named(void **state)
{
	(void)state;
	struct facts f = job(0.02);
	struct suggestion s;
	struct causes c;
	add_looks(&f.waits, WAIT_SLEEP, 0.6);
	place(&f, WAIT_SLEEP, 0, 0.6);
	f.main_cpus = 1.1;
	assert_first(&f, BOTTLENECK_BLOCKED, 0.6, CONFIDENCE_HIGH, "... 60 %");
	assert_true(is_advised(
		&f, "remove the sleep (a rate limit, polling, a callback) from the loop", &s));
	assert_int_equal(s.kind, GAIN_ESTIMATED);
	causes_find(&f, &c);
	assert_true(causes_get(&c, BOTTLENECK_COMPUTE)->share.value < 0.41);
	f.gpu.used = true; // whose work it may sleep for
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_BLOCKED));
}

// Asynchronous training: each process updates the shared parameters in turn.
static void processes_that_take_turns_at_a_lock_are_named(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct suggestion s;
	struct causes c;
	f.share[PHASE_OTHER] = known(0.6);
	f.share[PHASE_FORWARD] = known(0.2);
	f.share[PHASE_BACKWARD] = known(0.2);
	add_looks(&f.waits, WAIT_LOCK, 0.6);
	place(&f, WAIT_LOCK, 0, 0.6);
	f.ranks.n = 2;
	f.main_cpus = 0.4;
	assert_first(&f, BOTTLENECK_BLOCKED, 0.6, CONFIDENCE_HIGH, "... 60 %");
	assert_true(is_advised(&f, "hold the lock for a shorter time", &s));
	f.ranks.world = 2; // they exchange gradients, and may wait for that
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_BLOCKED));
}

static void a_batch_that_sleeps_is_input(void **state)
{
	(void)state;
	struct facts f = job(0.65);
	struct causes c;
	add_looks(&f.waits, WAIT_SLEEP, 0.6);
	place(&f, WAIT_SLEEP, 0.6, 0);
	f.main_cpus = 1.3; // beside it, its team spins
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_INPUT_SLEEP);
	assert_null(causes_get(&c, BOTTLENECK_BLOCKED));
	place(&f, WAIT_SLEEP, 0.1, 0.5);
	f.share[PHASE_DATA].value = 0.15;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_BLOCKED);
	assert_float_equal(c.items[0].share.value, 0.5, 0.001);
	f.waits.placed = 0; // nobody knows when: no more than what is not in data
	causes_find(&f, &c);
	assert_float_equal(causes_get(&c, BOTTLENECK_BLOCKED)->share.value, 0.45, 0.001);
}

// Ranks wait for each other at sockets.
static void ranks_are_not_blocked(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	add_looks(&f.waits, WAIT_NETWORK, 0.5);
	place(&f, WAIT_NETWORK, 0, 0.5);
	causes_find(&f, &c);
	assert_non_null(causes_get(&c, BOTTLENECK_BLOCKED));
	f.ranks.n = 2;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_BLOCKED));
}

static void garbage_collection_is_named(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct suggestion s;
	f.main_cpus = 1;
	add_samples(&f, CODE_COLLECTION, 0.8);
	assert_first(&f, BOTTLENECK_HOST, 0.8, CONFIDENCE_HIGH, "... 80 %");
	assert_true(is_advised(&f, "do not call gc.collect() in each step", &s));
}

static void workers_that_start_anew_are_named(void **state)
{
	(void)state;
	struct facts f = job(0.4);
	struct suggestion s;
	add_workers(&f, 2, 0.2, 0, 0.1);
	f.workers.restart = true;
	f.data_at_epochs = 0.38;
	f.between_s = 2;
	f.training_s = 20;
	causes_find(&f, &(struct causes){0});
	assert_true(is_advised(&f, "persistent_workers=True", &s));
	assert_int_equal(s.kind, GAIN_AT_MOST);
	assert_float_equal(s.gain.value, 20 / (20 - 0.38 * 18 - 2), 1e-6);
}

// As seen: a VAE on two CPUs with a loader worker; OMP_NUM_THREADS=1 gave 1.5x.
static struct facts spinning_vae(void)
{
	struct facts f = job(0.2);
	f.cpus = f.host_cpus = 2;
	f.main_threads = 4;
	f.main_cpus = 1.4;
	f.main_queued = 0.3;
	add_workers(&f, 1, 0.6, 0.35, 0);
	f.others_cpus = f.host_others_cpus = 0;
	add_samples(&f, CODE_KERNELS, 0.65);
	f.code_threads.samples = 300;
	f.code_threads.share[CODE_SPINNING] = 0.9;
	f.code_threads.share[CODE_KERNELS] = 0.1;
	f.code_threads.cpus = 0.75;
	return f;
}

static void spinning_is_seen(void **state)
{
	(void)state;
	struct facts f = spinning_vae();
	struct causes c;
	struct suggestion s;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_THREADS);
	assert_share(&c, BOTTLENECK_THREADS, 0.9 * 0.75 / 2);
	assert_true(is_advised(&f, "OMP_NUM_THREADS=1", &s));
	assert_int_equal(s.kind, GAIN_ESTIMATED);
	assert_true(fabs(s.gain.value - 1.5) < 0.05);
	f.main_queued = f.workers.queued = 0; // nobody lacks the CPU that they burn
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_THREADS));
}

// Steps that take far longer than the shortest are no evidence where samples find no spinning.
static void samples_refute_what_steps_suggest(void **state)
{
	(void)state;
	struct facts f = job(0);
	f.cpus = f.host_cpus = f.main_threads = 2;
	f.main_cpus = f.cpus_used = 1.9;
	f.undisturbed_s = 0.002; // of 10 ms
	struct causes c;
	causes_find(&f, &c);
	assert_non_null(causes_get(&c, BOTTLENECK_THREADS));
	assert_int_not_equal(causes_confidence(&f, &c), CONFIDENCE_HIGH);
	add_samples(&f, CODE_KERNELS, 1);
	assert_first(&f, BOTTLENECK_COMPUTE, 1, CONFIDENCE_HIGH, "... 100 % ... 1.9 ... 2");
}

// OMP_NUM_THREADS means nothing to the pools of TensorFlow and XLA.
static void advice_fits_the_framework(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct suggestion s;
	f.one_thread = true;
	f.main_threads = 1;
	assert_true(is_advised(&f, "OMP_NUM_THREADS", &s));
	f.openmp = false;
	assert_false(is_advised(&f, "OMP_NUM_THREADS", &s));
	f = job(0);
	f.cpus = f.host_cpus = f.main_threads = 2;
	f.main_cpus = f.cpus_used = 1.9;
	f.undisturbed_s = 0.002;
	f.openmp = false;
	struct causes c;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_THREADS));
}

static void a_heavy_optimizer_is_named(void **state)
{
	(void)state;
	struct facts f = job(0);
	f.share[PHASE_FORWARD] = known(0.1);
	f.share[PHASE_BACKWARD] = known(0.19);
	f.share[PHASE_OPTIMIZER] = known(0.7);
	assert_first(&f, BOTTLENECK_OPTIMIZER, 0.7, CONFIDENCE_HIGH, "... 70 %");
}

// What a quota starves comes after it, whatever that seems to wait for.
static void a_quota_comes_before_what_it_starves(void **state)
{
	(void)state;
	struct facts f = job(0.45);
	f.cpus = 0.5;
	f.host_cpus = 2;
	f.main_cpus = f.cpus_used = 0.5;
	f.quota.cpus = f.quota.used_cpus = 0.5;
	f.quota.used_up = 0.99;
	f.quota.needed_cpus = 2;
	f.quota.own = true;
	struct suggestion s;
	assert_first(&f, BOTTLENECK_CPU_QUOTA, 0.75, CONFIDENCE_HIGH, "... 0.5 ... 75 %");
	assert_true(is_advised(&f, "raise the CPU quota of the cgroup that the job created", &s));
	assert_false(is_advised(&f, "CPU affinity", &s));
}

// A leak has no share: it is in the list, and last.
static void growth_costs_memory_and_no_time(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct suggestion s;
	f.growth.leak = true;
	f.growth.bytes_per_iteration = known(16e6);
	f.growth.full_in_s = 2400;
	struct causes c;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_int_equal(c.items[c.n - 1].bottleneck, BOTTLENECK_LEAK);
	assert_true(isnan(c.items[c.n - 1].share.value));
	assert_true(is_advised(&f, "do not keep results of earlier iterations", &s));
	assert_int_equal(s.kind, GAIN_UNKNOWN);
}

// A large gain needs something that was seen; of what takes nearly all, a bound says nothing.
static void a_large_gain_needs_direct_evidence(void **state)
{
	(void)state;
	struct facts f = blocked_workers(WAIT_SLEEP);
	struct suggestion s;
	f.worker_waits.looks = 0;
	assert_true(is_advised(&f, "prefetch the data", &s));
	assert_int_equal(s.kind, GAIN_UNKNOWN);
	f = job(0.95);
	f.main_cpus = f.cpus_used = 1;
	assert_true(is_advised(&f, "reduce preprocessing", &s));
	assert_int_equal(s.kind, GAIN_UNKNOWN);
	f = job(0.5);
	f.main_cpus = f.cpus_used = 1;
	assert_true(is_advised(&f, "reduce preprocessing", &s));
	assert_int_equal(s.kind, GAIN_AT_MOST);
	assert_true(fabs(s.gain.value - 2) < 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocked_workers_are_named_by_what_blocks_them),
		cmocka_unit_test(blocked_workers_are_not_capped_by_cpus),
		cmocka_unit_test(another_python_thread_holds_the_interpreter),
		cmocka_unit_test(a_held_interpreter_is_no_preparation),
		cmocka_unit_test(processes_that_steps_start_are_named),
		cmocka_unit_test(environments_are_named),
		cmocka_unit_test(workers_that_ask_a_process_are_named),
		cmocka_unit_test(generation_is_named),
		cmocka_unit_test(a_step_that_sleeps_is_named),
		cmocka_unit_test(processes_that_take_turns_at_a_lock_are_named),
		cmocka_unit_test(a_batch_that_sleeps_is_input),
		cmocka_unit_test(ranks_are_not_blocked),
		cmocka_unit_test(garbage_collection_is_named),
		cmocka_unit_test(workers_that_start_anew_are_named),
		cmocka_unit_test(spinning_is_seen),
		cmocka_unit_test(samples_refute_what_steps_suggest),
		cmocka_unit_test(advice_fits_the_framework),
		cmocka_unit_test(a_heavy_optimizer_is_named),
		cmocka_unit_test(a_quota_comes_before_what_it_starves),
		cmocka_unit_test(growth_costs_memory_and_no_time),
		cmocka_unit_test(a_large_gain_needs_direct_evidence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
