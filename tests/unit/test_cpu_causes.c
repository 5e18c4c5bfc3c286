// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Causes from facts: whose use of the CPUs the job lacks them for, its own, its threads' that spin,
// or others'.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/advice.h"
#include "verdict/cause_kinds.h"
#include "verdict/causes.h"
#include "base/cleanup.h"
#include "job_facts.h"
#include "messages.h"
#include "verdict/verdict.h"

static void assert_headline(const struct facts *f, const char *says)
{
	_cleanup_text_ struct text t = {0};
	const struct cause cause = {BOTTLENECK_CONTENTION, {0.2, NAN, NAN}, 0.2};
	causes_append_headline(&t, f, &cause);
	assert_says(t.data, says);
}

// As seen: a job on one CPU of two, and programs on both.
static void others_are_on_other_cpus_too(void **state)
{
	(void)state;
	struct facts f = job(0);
	f.cpus = 1;
	f.host_cpus = 2;
	f.main_cpus = f.cpus_used = 0.91;
	f.main_queued = 0.09;
	f.host_others_cpus = 1.1;
	f.others_cpus = 0.1;
	assert_int_equal(causes_lack(&f), LACK_OTHERS);
	assert_headline(&f, "... 1.1 ... 2 ... 20 %");
	f.main_queued = 0.5; // it has work for more
	assert_int_equal(causes_lack(&f), LACK_OWN);
	assert_headline(&f, "... 1 ... 20 %");
	f.main_queued = 0.09;
	f.throttled = 0.5; // by its quota
	assert_int_equal(causes_lack(&f), LACK_OWN);
	f.throttled = NAN;
	f.host_others_cpus = f.others_cpus = 0;
	f.main_cpus = f.cpus_used = 0.7;
	assert_int_equal(causes_lack(&f), LACK_NOBODY);
	// Of 64 CPUs it is not known on which the others were: that tells nothing of these four.
	f = job(0);
	f.host_cpus = 64;
	f.host_others_cpus = 30;
	f.others_cpus = 0;
	f.main_queued = 0.06;
	struct causes c;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_CONTENTION));
}

// As seen: a script packs files with three processes, on two CPUs, while Keras trains.
static void other_processes_of_the_job_take_its_cpus(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	f.cpus = f.host_cpus = 2;
	f.cpus_used = 1.97;
	f.main_cpus = 0.8;
	f.main_queued = 0.01;
	f.cpu_stalled = 0.87;
	f.host_others_cpus = f.others_cpus = 0.02;
	f.compute_s = f.undisturbed_s = f.length_s.value; // of every step
	f.threads.known = true;
	f.threads.groups[THREADS_POOL].ready = 0.35;
	f.threads.groups[THREADS_UNNAMED].ready = 0.99;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_CONTENTION)); // more threads than CPUs
	f.helpers_cpus = 1.17;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_CONTENTION);
	assert_float_equal(c.items[0].share.value, 0.59, 0.01);
	assert_headline(&f, "... other processes of the job use 1.2 of 2");
}

// Loader workers that leave too little for training: less preparation helps it.
static void workers_take_cpus_from_training(void **state)
{
	(void)state;
	struct facts f = job(0.02);
	struct causes c;
	struct verdict v = {0};
	f.cpus = f.host_cpus = 2;
	f.cpus_used = 1.9;
	f.main_cpus = 0.84;
	f.main_queued = 0.14;
	f.host_others_cpus = f.others_cpus = 0.02;
	f.workers.n = 2;
	f.workers.cpus = 1.06;
	f.workers.preparing = 1.36;
	f.worker_lines.data = (struct line_place){.place = "train.py:30 __getitem__()", .share = 1};
	causes_find(&f, &c);
	assert_non_null(causes_get(&c, BOTTLENECK_CONTENTION));
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "reduce preprocessing");
	assert_non_null(s);
	assert_int_equal(s->kind, GAIN_AT_MOST);
	verdict_done(&v);
}

// What others use of a large machine is not known to be of the few CPUs that the job may use.
static void others_elsewhere_take_no_cpu(void **state)
{
	(void)state;
	struct facts f = job(0);
	f.host_cpus = 64;
	f.main_cpus = 0.5;
	f.main_queued = 0.5;
	f.cpus_used = 1.5;
	f.host_others_cpus = 2;
	f.others_cpus = 0;
	assert_int_equal(causes_lack(&f), LACK_NOBODY);
	assert_headline(&f, "... 4 ... 20 %");
	f.host_others_cpus = 20; // these four may all have been in use, others were not
	assert_int_equal(causes_lack(&f), LACK_NOBODY);
	assert_headline(&f, "... 64 ... 20 %");
	f.host_others_cpus = 58; // of 64: hardly any was left
	assert_int_equal(causes_lack(&f), LACK_OTHERS);
	f.host_others_cpus = 62.5;
	f.others_cpus = 2.5; // at least
	assert_int_equal(causes_lack(&f), LACK_OTHERS);
}

// As seen: 37.8 ms, and with one thread 28.1.
static struct facts spinning_beside_workers(void)
{
	struct facts f = job(0.05);
	f.length_s.value = 0.0378;
	f.compute_s = 0.0361;
	f.undisturbed_s = 0.0053;
	f.cpus = 2;
	f.main_threads = 2;
	f.main_cpus = 0.82;
	f.main_queued = 0.62;
	add_workers(&f, 4, 1.15, 1.98, 0.14);
	f.wait_policy = "active";
	return f;
}

// A setting of the job comes before a larger machine, which would gain as much again.
static void spinning_comes_before_a_lack_of_cpus(void **state)
{
	(void)state;
	struct facts f = spinning_beside_workers();
	struct causes c;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_THREADS);
	assert_share(&c, BOTTLENECK_THREADS, 1 - (2 * 0.0053 / 0.0378 + 1.15) / 2);
	assert_share(&c, BOTTLENECK_COMPUTE, 0.0053 / 0.0378); // the rest of a step is waiting
	const struct cause *contention = causes_get(&c, BOTTLENECK_CONTENTION);
	assert_non_null(contention);
	assert_true(contention->share.value + c.items[0].share.value < 1);
	f.wait_policy = "passive"; // then it is a lack of CPUs alone
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_THREADS));
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_CONTENTION);
}

// As seen: `make demo`, whose threads wait asleep by a setting of its own, beside 1.4 CPUs of
// others.
static void who_waits_asleep_burns_no_cpu(void **state)
{
	(void)state;
	struct facts f = job(0.053);
	f.length_s.value = 0.03805;
	f.compute_s = 0.03604;
	f.undisturbed_s = 0.0122;
	f.cpus = f.host_cpus = f.main_threads = 2;
	f.main_cpus = 0.55;
	f.main_queued = 0.531;
	f.others_cpus = f.host_others_cpus = 1.38;
	add_workers(&f, 2, 0.07, 0.273, 0);
	struct causes c;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_THREADS));
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_CONTENTION);
	assert_int_equal(causes_lack(&f), LACK_OTHERS);
	f.main_cpus = 1.2; // twice the work: they spin
	f.cpus_used = 1.27;
	f.others_cpus = f.host_others_cpus = 0.7;
	causes_find(&f, &c);
	assert_non_null(causes_get(&c, BOTTLENECK_THREADS));
}

// What the CPUs have to do at least is the work of all ranks.
static void ranks_that_spin_have_work_too(void **state)
{
	(void)state;
	struct facts f = job(0);
	f.length_s.value = 0.026;
	f.compute_s = 0.0225;
	f.undisturbed_s = 0.0052;
	f.share[PHASE_COMMUNICATION] = known(0.11);
	f.cpus = f.main_threads = 2;
	f.main_cpus = 0.98;
	f.main_queued = 0.44;
	f.cpus_used = 1.97;
	f.ranks = (struct rank_facts){.n = 2, .waits_most = 0.12, .waits_least = 0.1};
	struct causes c;
	struct verdict v = {0};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_THREADS);
	assert_share(&c, BOTTLENECK_THREADS, 1 - 2 * 2 * 0.0052 / 0.026 / 2);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_string_equal(
		v.suggestions[0].action, "OMP_NUM_THREADS=1, or OMP_WAIT_POLICY=passive");
	verdict_done(&v);
}

// Four ranks of eight threads on eight CPUs: each can have two of them.
static void a_rank_burns_its_part_of_the_cpus(void **state)
{
	(void)state;
	struct facts f = job(0.02);
	f.length_s.value = 0.1;
	f.compute_s = 0.099;
	f.undisturbed_s = 0.03;
	f.cpus = f.host_cpus = f.main_threads = 8;
	f.main_cpus = 1.95;
	f.main_queued = 0.05;
	f.cpus_used = 7.8;
	f.ranks = (struct rank_facts){.n = 4, .waits_most = 0.02, .waits_least = 0.01};
	struct causes c;
	struct verdict v = {0};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_THREADS);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_string_equal(
		v.suggestions[0].action, "OMP_NUM_THREADS=2, or OMP_WAIT_POLICY=passive");
	verdict_done(&v);
	f.main_cpus = 1.95 * 0.3; // no more than undisturbed
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_THREADS));
}

// As measured: 423 images/s with a BLAS pool that spins beside a worker, 406 with one thread: the
// worker, which decodes all the time, is what is waited for.
static void a_busy_worker_is_the_limit_whoever_spins(void **state)
{
	(void)state;
	struct facts f = job(0.59);
	struct causes c;
	f.cpus = f.host_cpus = 2;
	f.main_cpus = 1.1;
	f.main_queued = 0.12;
	add_workers(&f, 1, 0.89, 0.10, 0);
	f.others_cpus = f.host_others_cpus = 0;
	add_samples(&f, CODE_KERNELS, 0.32);
	f.code_threads = f.code;
	f.code_threads.cpus = 0.75;
	f.code_threads.share[CODE_KERNELS] = 0.03;
	f.code_threads.share[CODE_SPINNING] = 0.97;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_INPUT);
	const struct cause *threads = causes_get(&c, BOTTLENECK_THREADS);
	assert_true(!threads || threads->share.value < 0.13);
	f.main_cpus = 1.6;
	add_workers(&f, 1, 0.3, 0.2, 0); // it has time to spare, and no CPU
	causes_find(&f, &c);
	assert_true(causes_get(&c, BOTTLENECK_THREADS)->share.value > 0.3);
}

// As measured of a small LSTM on two CPUs, with OMP_WAIT_POLICY=passive: 796 sentences/s with two
// threads, 1,434 with one.
static struct facts two_threads_that_sleep(void)
{
	struct facts f = job(0.04);
	f.length_s.value = 0.0402;
	f.compute_s = f.undisturbed_s = 0.0386;
	f.cpus = f.host_cpus = f.main_threads = 2;
	f.main_cpus = f.cpus_used = 1.1;
	f.others_cpus = f.host_others_cpus = 0.05;
	f.threads.known = true;
	f.threads.groups[THREADS_MAIN] = (struct thread_group_facts){1, 0.75, 0.01, 5558};
	f.threads.groups[THREADS_OPENMP] = (struct thread_group_facts){1, 0.33, 0.02, 8455};
	add_looks(&f.waits, WAIT_OTHER, 0.27);
	f.waits.in_step[WAIT_OTHER] = 0.27;
	f.waits.placed = 500;
	add_samples(&f, CODE_KERNELS, 0.75);
	f.code.share[CODE_KERNELS] = 0.74;
	f.code.share[CODE_SYSTEM] = 0.26;
	f.code_threads = f.code;
	f.code_threads.cpus = 0.33;
	f.code_threads.share[CODE_KERNELS] = 0.63;
	f.code_threads.share[CODE_SYSTEM] = 0.37;
	return f;
}

static void threads_that_sleep_between_short_operations(void **state)
{
	(void)state;
	struct facts f = two_threads_that_sleep();
	struct causes c;
	struct verdict v = {0};
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_THREADS, 0.27 + 0.26 * 0.75 - 0.63 * 0.33);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	bool advised = false;
	for (size_t i = 0; i < v.n_suggestions; i++) {
		advised = advised || strcmp(v.suggestions[i].action, "OMP_NUM_THREADS=1") == 0;
	}
	assert_true(advised);
	verdict_done(&v);
	// page faults explain the kernel's time
	f.page_faults = 1e5;
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_THREADS, 0.27 - 0.63 * 0.33);
	// long operations: the team seldom sleeps; or it computes more than the leader waits
	f = two_threads_that_sleep();
	f.threads.groups[THREADS_OPENMP].runs = 600;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_THREADS));
	f = two_threads_that_sleep();
	f.code_threads.cpus = 0.9;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_THREADS));
	// it sleeps for something else: a GPU, other ranks, more than the team runs; or that is not
	// known
	for (int i = 0; i < 4; i++) {
		f = two_threads_that_sleep();
		f.gpu.n = i == 0;
		f.ranks.world = i == 1 ? 2 : 0;
		f.threads.groups[THREADS_OPENMP].cpus = i == 2 ? 0.01 : 0.33;
		f.waits.placed = i == 3 ? 3 : 500;
		causes_find(&f, &c);
		assert_null(causes_get(&c, BOTTLENECK_THREADS));
	}
	// eight threads of a pool, each seldom woken
	f = two_threads_that_sleep();
	f.threads.groups[THREADS_OPENMP].threads = 8;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_THREADS));
}

// As seen: four threads on two CPUs, 92 samples/s; 262 with one thread.
static struct facts four_threads_on_two_cpus(void)
{
	struct facts f = two_threads_that_sleep();
	f.framework = FRAMEWORK_PYTORCH;
	f.main_cpus = f.cpus_used = 1.6;
	f.main_queued = 0.45;
	f.others_cpus = f.host_others_cpus = 0.1;
	f.threads.groups[THREADS_MAIN] = (struct thread_group_facts){1, 0.42, 0.45, 5400};
	f.threads.groups[THREADS_OPENMP] = (struct thread_group_facts){3, 1.2, 0.78, 15537};
	f.waits.in_step[WAIT_OTHER] = f.waits.share[WAIT_OTHER] = 0.16;
	f.code.share[CODE_KERNELS] = 0.83;
	f.code.share[CODE_SYSTEM] = 0.17;
	f.code.cpus = 0.42;
	f.code_threads.share[CODE_KERNELS] = 0.83;
	f.code_threads.share[CODE_SYSTEM] = 0.17;
	f.code_threads.cpus = 1.2;
	return f;
}

static void more_threads_than_cpus(void **state)
{
	(void)state;
	struct facts f = four_threads_on_two_cpus();
	struct causes c;
	_cleanup_text_ struct text t = {0};
	struct verdict v = {0};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_THREADS);
	assert_share(&c, BOTTLENECK_THREADS, 0.45);
	assert_null(causes_get(&c, BOTTLENECK_CONTENTION));
	assert_int_equal(causes_confidence(&f, &c), CONFIDENCE_MEDIUM);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(t.data, "... 4 threads ... 2 CPUs ... 45 %");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "OMP_NUM_THREADS=2, or torch.set_num_threads");
	verdict_done(&v);
	// the script overrides the environment
	f.omp_threads = 1;
	v = (struct verdict){0};
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_string_equal(
		v.suggestions[0].action, "compute with 2 threads (torch.set_num_threads)");
	verdict_done(&v);
	// with the team's share of the leader's wait, if that is larger
	f.main_queued = 0.09;
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_THREADS, 0.78 / 3);
}

// As seen: torch.set_num_threads(16) on two CPUs, small recurrent layers.
static void many_more_threads_than_cpus(void **state)
{
	(void)state;
	struct facts f = four_threads_on_two_cpus();
	struct causes c;
	f.main_queued = 0.81;
	f.main_cpus = f.cpus_used = 1.74;
	f.threads.groups[THREADS_MAIN] = (struct thread_group_facts){1, 0.15, 0.81, 901};
	f.threads.groups[THREADS_OPENMP] = (struct thread_group_facts){15, 1.59, 12.3, 13452};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_THREADS);
	assert_share(&c, BOTTLENECK_THREADS, 0.82);
	assert_null(causes_get(&c, BOTTLENECK_CONTENTION));
	f.threads.groups[THREADS_OPENMP].runs = 2000; // long operations
	assert_true(cause_crowded_team(&f) == 0);
}

static void threads_that_have_their_cpus(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct facts f = four_threads_on_two_cpus();
		f.cpus = i == 0 ? 4 : 2;
		f.others_cpus = i == 1 ? 0.6 : 0.1; // other programs are in the way
		f.threads.groups[THREADS_OPENMP].runs = i == 2 ? 300 : 15537; // long operations
		f.main_queued = i == 3 ? 0.02 : 0.45;
		f.threads.groups[THREADS_OPENMP].ready = i == 3 ? 0.06 : 0.78;
		f.throttled = i == 4 ? 0.5 : 0;
		assert_true(cause_crowded_team(&f) == 0);
	}
}

// A thread waits for other programs only while these run.
static void little_load_of_others_explains_no_long_wait(void **state)
{
	(void)state;
	struct facts f = four_threads_on_two_cpus();
	f.threads.known = false;
	assert_int_equal(causes_lack(&f), LACK_OWN);
	f.host_others_cpus = f.others_cpus = 0.4;
	assert_int_equal(causes_lack(&f), LACK_OTHERS);
}

// As seen: four processes that rebuild an index beside training; and a job that binds itself to one
// CPU.
static void other_processes_of_the_job_and_fewer_cpus(void **state)
{
	(void)state;
	struct facts f = job(0.02);
	struct causes c;
	struct verdict v = {0};
	f.cpus = f.host_cpus = f.cpus_given = 2;
	f.main_cpus = 0.35;
	f.cpus_used = 1.95;
	f.main_queued = 0.6;
	f.others_cpus = f.host_others_cpus = 0;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_CONTENTION);
	assert_headline(&f, "CPU-bound: other processes of the job use 1.6 of 2 CPUs");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "run fewer other processes of the job");
	verdict_done(&v);
	f.cpus = 1;
	f.main_cpus = 0.4;
	f.cpus_used = 1;
	v = (struct verdict){0};
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "widen the CPU affinity");
	verdict_done(&v);
}

// With an interpreter that takes a part of each step, operations are short: two threads made such
// jobs slower (0.6 and 0.8 times as fast), and those without faster (1.3 to 1.7 times).
static void more_threads_are_not_advised_for_short_operations(void **state)
{
	(void)state;
	struct facts f = job(0.02);
	struct causes c;
	f.one_thread = true;
	f.cpus = f.host_cpus = 2;
	add_samples(&f, CODE_KERNELS, 0.98);
	for (int i = 0; i < 2; i++) {
		struct verdict v = {0};
		bool threads = false;
		f.code.share[CODE_KERNELS] = i == 0 ? 0.97 : 0.85;
		f.code.share[CODE_INTERPRETER] = i == 0 ? 0.03 : 0.15;
		causes_find(&f, &c);
		assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
		assert_int_equal(causes_advise(&f, &c, &v), 0);
		for (size_t k = 0; k < v.n_suggestions; k++) {
			threads = threads || strstr(v.suggestions[k].action, "OMP_NUM_THREADS");
		}
		assert_int_equal(threads, i == 0);
		verdict_done(&v);
	}
}

// As seen: 768 random reads of 2 KB in each step, outside of all phases. Samples found the thread
// waiting for storage 17 % of the time, and in the kernel 48 %.
static void short_reads_in_steps(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	f.framework = FRAMEWORK_PYTORCH;
	f.share[PHASE_OTHER] = known(0.9);
	f.share[PHASE_FORWARD] = f.share[PHASE_BACKWARD] = known(0.05);
	f.waits.looks = f.waits.placed = 892;
	f.waits.in_step[WAIT_STORAGE] = 0.17;
	f.system_in_other = 0.63; // of all threads
	f.code = (struct code_facts){.samples = 2028, .cpus = 0.6};
	f.code.share[CODE_SYSTEM] = 0.8;
	f.page_faults = 100;
	f.storage.read_rate = 28e6;
	f.storage.asked_rate = 14e6;
	causes_find(&f, &c);
	const struct cause *blocked = causes_get(&c, BOTTLENECK_BLOCKED);
	assert_non_null(blocked);
	assert_float_equal(blocked->share.value, 0.17 + 0.6 * 0.8, 0.01);
	assert_int_equal(cause_blocked.grounds(&f), GROUNDS_INDIRECT); // mostly the kernel's time
	f.storage.asked_rate = 280e6; // from the page cache: the kernel copies
	causes_find(&f, &c);
	assert_float_equal(causes_get(&c, BOTTLENECK_BLOCKED)->share.value, 0.17, 0.01);
	f.storage.asked_rate = 14e6;
	f.page_faults = 1e5; // it fills memory
	causes_find(&f, &c);
	assert_float_equal(causes_get(&c, BOTTLENECK_BLOCKED)->share.value, 0.17, 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_reads_in_steps),
		cmocka_unit_test(others_are_on_other_cpus_too),
		cmocka_unit_test(other_processes_of_the_job_take_its_cpus),
		cmocka_unit_test(workers_take_cpus_from_training),
		cmocka_unit_test(others_elsewhere_take_no_cpu),
		cmocka_unit_test(spinning_comes_before_a_lack_of_cpus),
		cmocka_unit_test(who_waits_asleep_burns_no_cpu),
		cmocka_unit_test(ranks_that_spin_have_work_too),
		cmocka_unit_test(a_rank_burns_its_part_of_the_cpus),
		cmocka_unit_test(a_busy_worker_is_the_limit_whoever_spins),
		cmocka_unit_test(threads_that_sleep_between_short_operations),
		cmocka_unit_test(more_threads_than_cpus),
		cmocka_unit_test(many_more_threads_than_cpus),
		cmocka_unit_test(threads_that_have_their_cpus),
		cmocka_unit_test(other_processes_of_the_job_and_fewer_cpus),
		cmocka_unit_test(little_load_of_others_explains_no_long_wait),
		cmocka_unit_test(more_threads_are_not_advised_for_short_operations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
