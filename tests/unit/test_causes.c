// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Causes from facts: each is found where it is, with its share, and no more is claimed than is
// known.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/advice.h"
#include "verdict/causes.h"
#include "base/cleanup.h"
#include "job_facts.h"
#include "messages.h"
#include "verdict/verdict.h"

static struct facts slow_worker(void)
{
	struct facts f = job(0.5);
	add_workers(&f, 4, 1.6, 0, 0);
	f.workers.slowest = 4;
	f.workers.slowest_number = 2;
	return f;
}

static struct facts storage_workers(void)
{
	struct facts f = job(0.6);
	add_workers(&f, 2, 0.3, 0, 1.7);
	f.storage.read_rate = f.storage.asked_rate = 30e6;
	f.storage.stalled = 0.5;
	return f;
}

static struct facts storage_alone(void)
{
	struct facts f = job(0.6);
	f.storage.read_rate = f.storage.asked_rate = 30e6;
	f.storage.stalled = 0.5;
	return f;
}

static struct facts thrashing(void)
{
	struct facts f = storage_workers();
	f.storage.refault_rate = 25e6;
	f.memory.limited = true;
	f.memory.limit_bytes = 300e6;
	return f;
}

// Four workers and the training thread on one CPU: each has a part of it.
static struct facts one_cpu(void)
{
	struct facts f = job(0.1);
	f.cpus = 1;
	f.main_cpus = 0.5;
	f.main_queued = 0.4;
	add_workers(&f, 4, 0.5, 1.2, 0);
	return f;
}

static struct facts others(void)
{
	struct facts f = job(0);
	f.main_cpus = f.cpus_used = 0.6;
	f.main_queued = 0.4;
	f.others_cpus = f.host_others_cpus = 3.4;
	return f;
}

static struct facts spinning(void)
{
	struct facts f = job(0);
	f.cpus = 2;
	f.main_cpus = 1.5;
	f.undisturbed_s = 0.002;
	add_workers(&f, 2, 0.5, 1, 0);
	return f;
}

static struct facts computing_unseen(void)
{
	return job(0.01);
}

static struct facts computing(void)
{
	struct facts f = job(0.01);
	add_samples(&f, CODE_KERNELS, 0.99);
	return f;
}

// Time in no phase that nothing explains.
static struct facts unexplained(void)
{
	struct facts f = job(0);
	f.share[PHASE_OTHER] = known(0.6);
	f.share[PHASE_FORWARD] = known(0.15);
	f.share[PHASE_BACKWARD] = known(0.2);
	f.share[PHASE_OPTIMIZER] = known(0.05);
	return f;
}

// The same, of which samples say that Python runs.
static struct facts script(void)
{
	struct facts f = unexplained();
	add_samples(&f, CODE_INTERPRETER, 1);
	f.code.share[CODE_INTERPRETER] = 0.6;
	f.code.share[CODE_KERNELS] = 0.4;
	return f;
}

// The same, of which they say that it is arithmetic: a forward that nobody marked.
static struct facts forward_unmarked(void)
{
	struct facts f = unexplained();
	add_samples(&f, CODE_KERNELS, 1);
	return f;
}

static struct facts beginning(void)
{
	struct facts f = unexplained();
	f.other_at_epochs = 0.58;
	return f;
}

static struct facts handing(void)
{
	struct facts f = job(0.5);
	add_workers(&f, 2, 0.3, 0, 0);
	f.workers.busiest = 0.2;
	return f;
}

static struct facts pool_beside_others(void);

static struct facts tiny(void)
{
	struct facts f = job(0);
	f.length_s = known(0.0004);
	f.compute_s = f.undisturbed_s = 0.0004;
	return f;
}

static struct facts gpu(double busy)
{
	struct facts f = job(0.02);
	f.gpu.n = f.gpu.n_used = 1;
	f.gpu.used = f.gpu.known = true;
	f.gpu.busy = busy;
	return f;
}

static struct facts gpu_computing(void)
{
	return gpu(0.95);
}

static struct facts gpu_launching(void)
{
	return gpu(0.3);
}

static struct facts gpu_throttled(void)
{
	struct facts f = gpu(0.97);
	f.gpu.slowed = 0.9;
	f.gpu.throttled = 0.6;
	f.gpu.slowing = GPU_SLOWED_HEAT;
	return f;
}

static struct facts gpu_unused(void)
{
	struct facts f = job(0.02);
	f.gpu.n = 1;
	f.gpu.known = f.gpu.unused = true;
	return f;
}

static struct facts gpu_not_known(void)
{
	struct facts f = job(0.02);
	f.gpu.n = 1;
	f.gpu.divided = true;
	return f;
}

static struct facts gpu_capped(void)
{
	struct facts f = gpu(0.97);
	f.gpu.capped = 1;
	f.gpu.capped_lost = f.gpu.clock_lost = 0.12;
	f.gpu.slowed = f.gpu.throttled = 0;
	return f;
}

static struct facts gpu_shared(void)
{
	struct facts f = gpu(0.98);
	f.gpu.others = 1;
	f.gpu.others_busy = 0.6;
	f.gpu.job_busy = 0.35;
	f.gpu.shared_index = 0;
	return f;
}

static struct facts gpu_shared_idle(void)
{
	struct facts f = gpu_shared();
	f.gpu.busy = 0.3;
	f.gpu.others_busy = 0.1;
	return f;
}

static struct facts transfer(void)
{
	struct facts f = gpu(0.4);
	f.share[PHASE_TRANSFER] = known(0.6);
	f.share[PHASE_FORWARD] = known(0.14);
	f.share[PHASE_BACKWARD] = known(0.22);
	return f;
}

static struct facts transfer_idle(void)
{
	struct facts f = transfer();
	f.gpu.busy = 0.25;
	return f;
}

static struct facts ranks(void)
{
	struct facts f = job(0);
	f.share[PHASE_COMMUNICATION] = known(0.5);
	f.share[PHASE_FORWARD] = known(0.17);
	f.share[PHASE_BACKWARD] = known(0.30);
	f.ranks = (struct rank_facts){.n = 2, .waits_most = 0.5, .waits_least = 0.01, .slowest = 1};
	return f;
}

static struct facts validation(void)
{
	struct facts f = job(0);
	f.validation_s = 4;
	return f;
}

static struct facts checkpoints(void)
{
	struct facts f = job(0);
	f.checkpoint_s = 5;
	return f;
}

static struct facts starting(void)
{
	struct facts f = job(0.01);
	f.startup_s = 108;
	f.duration_s = 120;
	return f;
}

static struct facts quota(void)
{
	struct facts f = one_cpu();
	f.throttled = 0.9;
	return f;
}

static const struct example {
	const char *name;
	struct facts (*facts)(void);
	enum bottleneck bottleneck;
	double share;
	enum confidence confidence;
} examples[] = {
	{"one worker, all its time on a CPU", input_workers, BOTTLENECK_INPUT, 0.6,
		CONFIDENCE_HIGH},
	{"no worker", input_alone, BOTTLENECK_INPUT, 0.5, CONFIDENCE_HIGH},
	{"one slow worker of four", slow_worker, BOTTLENECK_INPUT, 0.5, CONFIDENCE_HIGH},
	{"workers that wait for reads", storage_workers, BOTTLENECK_STORAGE, 0.6, CONFIDENCE_HIGH},
	{"no worker, reads", storage_alone, BOTTLENECK_STORAGE, 0.6, CONFIDENCE_HIGH},
	{"reads of what was dropped", thrashing, BOTTLENECK_MEMORY, 0.6, CONFIDENCE_HIGH},
	{"one CPU for all", one_cpu, BOTTLENECK_CONTENTION, 0.5, CONFIDENCE_HIGH},
	{"a quota", quota, BOTTLENECK_CPU_QUOTA, 0.5, CONFIDENCE_HIGH},
	{"other programs", others, BOTTLENECK_CONTENTION, 0.4, CONFIDENCE_MEDIUM},
	{"threads that spin, by inference", spinning, BOTTLENECK_THREADS, 0.60, CONFIDENCE_MEDIUM},
	{"computing", computing, BOTTLENECK_COMPUTE, 0.98, CONFIDENCE_HIGH},
	{"computing, without samples", computing_unseen, BOTTLENECK_COMPUTE, 0.98,
		CONFIDENCE_MEDIUM},
	{"time that nothing explains", unexplained, BOTTLENECK_NOT_KNOWN, 0.6, CONFIDENCE_LOW},
	{"Python", script, BOTTLENECK_HOST, 0.6, CONFIDENCE_HIGH},
	{"a forward that is not marked", forward_unmarked, BOTTLENECK_COMPUTE, 1, CONFIDENCE_HIGH},
	{"what each epoch begins with", beginning, BOTTLENECK_HOST, 0.58, CONFIDENCE_MEDIUM},
	{"batches that are handed over", handing, BOTTLENECK_HOST, 0.50, CONFIDENCE_HIGH},
	{"a pool's threads and other programs", pool_beside_others, BOTTLENECK_CONTENTION, 0.45,
		CONFIDENCE_MEDIUM},
	{"steps that are too short", tiny, BOTTLENECK_HOST, 1, CONFIDENCE_MEDIUM},
	{"a busy GPU", gpu_computing, BOTTLENECK_COMPUTE, 0.95, CONFIDENCE_HIGH},
	{"a GPU that waits for the host", gpu_launching, BOTTLENECK_HOST, 0.68, CONFIDENCE_MEDIUM},
	{"a hot GPU", gpu_throttled, BOTTLENECK_GPU_THROTTLED, 0.582, CONFIDENCE_HIGH},
	{"a GPU at its power cap", gpu_capped, BOTTLENECK_COMPUTE, 0.97, CONFIDENCE_HIGH},
	{"a GPU of which it is not known who uses it", gpu_not_known, BOTTLENECK_COMPUTE, 0.97,
		CONFIDENCE_MEDIUM},
	{"a GPU that is shared", gpu_shared, BOTTLENECK_GPU_SHARED, 0.6, CONFIDENCE_HIGH},
	{"a GPU that is shared and has time left", gpu_shared_idle, BOTTLENECK_HOST, 0.68,
		CONFIDENCE_MEDIUM},
	{"an unused GPU", gpu_unused, BOTTLENECK_GPU_UNUSED, 0.97, CONFIDENCE_HIGH},
	{"copies", transfer, BOTTLENECK_TRANSFER, 0.6, CONFIDENCE_MEDIUM},
	{"copies of an idle GPU", transfer_idle, BOTTLENECK_TRANSFER, 0.6, CONFIDENCE_HIGH},
	{"a slow rank", ranks, BOTTLENECK_RANKS, 0.5, CONFIDENCE_HIGH},
	{"validation", validation, BOTTLENECK_VALIDATION, 0.4, CONFIDENCE_HIGH},
	{"checkpoints", checkpoints, BOTTLENECK_CHECKPOINT, 0.5, CONFIDENCE_HIGH},
	{"a long start", starting, BOTTLENECK_STARTUP, 0.9, CONFIDENCE_HIGH},
};

static void each_cause_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(examples); i++) {
		const struct example *example = &examples[i];
		struct facts f = example->facts();
		struct causes c;
		causes_find(&f, &c);
		const char *found = c.n ? bottleneck_name(c.items[0].bottleneck) : "nothing";
		double share = c.n ? c.items[0].share.value : 0;
		enum confidence confidence = causes_confidence(&f, &c);
		if (!c.n || c.items[0].bottleneck != example->bottleneck ||
			!(fabs(share - example->share) < 0.03) ||
			confidence != example->confidence) {
			fail_msg("%s: %s %.2f, %s confidence; expected %s %.2f, %s", example->name,
				found, share, confidence_name(confidence),
				bottleneck_name(example->bottleneck), example->share,
				confidence_name(example->confidence));
		}
		assert_true(c.items[0].share.value <= 1.0);
	}
}

static void sentences_and_advice_fit(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(examples); i++) {
		struct facts f = examples[i].facts();
		struct causes c;
		struct verdict v = {0};
		_cleanup_text_ struct text headline = {0}, shares = {0}, needed = {0};
		causes_find(&f, &c);
		causes_append_headline(&headline, &f, &c.items[0]);
		causes_append_shares(&shares, &f);
		causes_append_needed(&needed, &f, &c);
		assert_non_null(headline.data);
		assert_null(strstr(headline.data, "?")); // everything it says is known
		if (headline.length > 120) {
			fail_msg("%zu columns: %s", headline.length, headline.data);
		}
		message_note(headline.data);
		assert_int_equal(causes_advise(&f, &c, &v), 0);
		assert_true(v.n_suggestions > 0);
		for (size_t j = 0; j < v.n_suggestions; j++) {
			message_note(v.suggestions[j].action);
			message_note(v.suggestions[j].basis);
			assert_true(v.suggestions[j].kind == GAIN_UNKNOWN ||
				    v.suggestions[j].gain.value >= 1);
		}
		verdict_done(&v);
	}
}

// However sure the phases are: what nothing else supports, or is seen too seldom, is not sure.
static void a_thread_that_computes_waits_for_no_unknown_gpu(void **state)
{
	(void)state;
	struct facts f = gpu(0.95);
	f.gpu.known = false;
	f.gpu.n_used = 0;
	f.code.samples = 200;
	f.code.cpus = 1;
	f.code.share[CODE_INTERPRETER] = 0.7;
	struct facts asleep = f, calls = f, held = f;
	facts_doubt_gpu(&f);
	assert_false(f.gpu.used);
	asleep.code.cpus = 0.1;
	facts_doubt_gpu(&asleep);
	assert_true(asleep.gpu.used);
	calls.code.share[CODE_DRIVER] = 0.05;
	facts_doubt_gpu(&calls);
	assert_true(calls.gpu.used);
	held.gpu.held = true;
	facts_doubt_gpu(&held);
	assert_true(held.gpu.used);
	// Its load says nothing of the job where nobody knows.
	struct causes c;
	causes_find(&asleep, &c);
	assert_int_equal(causes_confidence(&asleep, &c), CONFIDENCE_MEDIUM);
	struct facts unknown = gpu(NAN);
	_cleanup_text_ struct text headline = {0};
	causes_find(&unknown, &c);
	causes_append_headline(&headline, &unknown, &c.items[0]);
	assert_non_null(strstr(headline.data, "how busy the GPU was is not known"));
	assert_int_equal(causes_confidence(&unknown, &c), CONFIDENCE_LOW);
}

static void a_full_link_takes_what_the_gpu_leaves(void **state)
{
	(void)state;
	struct facts f = gpu(0.3);
	struct causes c;
	f.gpu.to_device_rate = 0.8e9;
	f.gpu.link_rate = 1e9;
	f.gpu.link_best = 16e9;
	f.gpu.link_busy = 0.3;
	causes_find(&f, &c);
	assert_float_equal(causes_get(&c, BOTTLENECK_TRANSFER)->share.value, 0.5, 1e-6);
	f.gpu.to_device_rate = 0.4e9;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_TRANSFER));
}

static void what_is_not_known_is_not_sure(void **state)
{
	(void)state;
	struct facts f = input_workers();
	struct causes c;
	f.steady = 20;
	causes_find(&f, &c);
	assert_int_equal(causes_confidence(&f, &c), CONFIDENCE_MEDIUM);
	f.steady = 5;
	assert_int_equal(causes_confidence(&f, &c), CONFIDENCE_LOW);
	f.steady = 1000;
	f.workers.cpus = NAN;
	assert_int_equal(causes_confidence(&f, &c), CONFIDENCE_MEDIUM);
	f = input_workers();
	f.lost = true;
	assert_int_equal(causes_confidence(&f, &c), CONFIDENCE_MEDIUM);
	f = input_workers();
	f.validation_s = 6; // of ten seconds: two that are alike
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_VALIDATION);
	_cleanup_text_ struct text t = {0};
	f.validates_alone = 0;
	causes_append_headline(&t, &f, &c.items[0]);
	assert_non_null(strstr(t.data, ", on rank 0 only"));
	struct verdict v = {0};
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(suggests(&v, "validate half as often, or on all ranks, each a part"));
	// 60 % of training: 50 times less often, it takes 2.9 % of what remains.
	const struct suggestion *rarely = suggests(&v, "validate 50 times less often");
	assert_non_null(rarely);
	assert_float_equal(rarely->gain.value, 1 / (1 - 0.6 * 49 / 50), 0.02);
	verdict_done(&v);
	f.parts = false;
	causes_find(&f, &c);
	assert_int_equal(c.n, 0);
	facts_init(&f); // nothing at all
	f.parts = true;
	causes_find(&f, &c);
	assert_int_equal(c.n, 0);
}

static void both_parts_of_a_wait_are_told(void **state)
{
	(void)state;
	struct facts f = job(0.6);
	add_workers(&f, 2, 1.2, 0, 0.8); // reads and decodes, one after the other
	f.storage.read_rate = f.storage.asked_rate = 30e6;
	f.storage.stalled = 0.4;
	struct causes c;
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_STORAGE, 0.4);
	assert_share(&c, BOTTLENECK_INPUT, 0.6); // reads alone keep up
}

// Workers that sleep between reads: without looks at their waits, only pressure says that they wait
// for the disk.
static void reads_alone_do_not_say_who_waits(void **state)
{
	(void)state;
	struct facts f = storage_workers();
	struct causes c;
	f.worker_waits.looks = 3;
	f.storage.stalled = NAN;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_STORAGE));
	assert_true(c.n > 0);
	assert_int_not_equal(causes_confidence(&f, &c), CONFIDENCE_HIGH);
	f.storage.stalled = 0.01;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_STORAGE));
	f.storage.stalled = 0.5;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_STORAGE);
}

// A worker that others keep from its CPU prepares all the same.
static void preparation_counts_its_own_queue(void **state)
{
	(void)state;
	struct facts f = job(0.8);
	f.others_cpus = f.host_others_cpus = 3;
	add_workers(&f, 1, 0.4, 0.6, 0);
	struct causes c;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_INPUT);
	assert_true(fabs(c.items[0].share.value - 0.8) < 0.01);
	assert_true(fabs(causes_get(&c, BOTTLENECK_CONTENTION)->share.value - 0.6) < 0.01);
	assert_int_equal(causes_confidence(&f, &c), CONFIDENCE_MEDIUM);
}

// A worker that mostly has nothing to do is not what an iteration waits for.
static void what_is_handed_over_was_prepared(void **state)
{
	(void)state;
	struct facts f = job(0.10);
	add_workers(&f, 1, 0.15, 0, 0);
	f.workers.busiest = 0.15;
	struct causes c;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_INPUT));
	assert_share(&c, BOTTLENECK_HOST, 0.11); // with the script's own
	f.data_at_epochs = 0.08; // then there was none yet
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_INPUT, 0.08);
	assert_null(causes_get(&c, BOTTLENECK_HOST));
	f.data_at_epochs = 0;
	f.workers.slowest = 4; // all wait for one
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_INPUT, 0.10);
	f.workers.slowest = NAN;
	f.workers.busiest = 0.9;
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_INPUT, 0.10);
}

// As seen: TensorFlow's AlexNet on two CPUs, of which others used 1.4.
static struct facts pool_beside_others(void)
{
	struct facts f = job(0.02);
	f.length_s.value = 1.28;
	f.compute_s = 1.2;
	f.undisturbed_s = 0.48;
	f.cpus = f.host_cpus = 2;
	f.main_threads = 15;
	f.main_cpus = f.cpus_used = 0.5;
	f.main_queued = 0.01; // it waits for its threads, asleep
	f.others_cpus = f.host_others_cpus = 1.4;
	f.cpu_stalled = 0.9;
	return f;
}

static void others_keep_threads_of_a_pool_from_cpus(void **state)
{
	(void)state;
	struct facts f = pool_beside_others();
	struct causes c;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_CONTENTION);
	assert_share(&c, BOTTLENECK_CONTENTION, (1.2 - 1.3 * 0.48) / 1.28);
	assert_int_equal(causes_confidence(&f, &c), CONFIDENCE_MEDIUM);
	f.compute_s = 1.3 * f.undisturbed_s; // no longer than without them
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_CONTENTION));
	f = pool_beside_others();
	f.cpu_stalled = 0.05; // nobody waited for a CPU
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_CONTENTION));
	f = pool_beside_others();
	f.others_cpus = f.host_others_cpus = 0.4;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_CONTENTION));
	// One thread that computes alone waits as it was seen to. As seen: a translation, whose
	// shortest batches take 0.44 of the mean; it waited 33 % of the time and lost 54 % by them.
	f = pool_beside_others();
	f.one_thread = true;
	f.main_queued = 0.33;
	f.main_cpus = f.cpus_used = 0.66;
	causes_find(&f, &c);
	assert_true(causes_get(&c, BOTTLENECK_CONTENTION)->share.value <= 0.34);
}

// Threads that take longer because others work beside them do not spin.
static void sharing_is_not_spinning(void **state)
{
	(void)state;
	struct facts f = spinning();
	f.undisturbed_s = 0.006; // of 10 ms
	f.main_queued = 0.2;
	struct causes c;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_THREADS));
	assert_non_null(causes_get(&c, BOTTLENECK_CONTENTION));
	f = spinning();
	f.main_threads = 1; // nobody to wait for
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_THREADS));
	f = spinning();
	f.main_threads = 3; // two of them feed workers
	f.one_thread = true;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_THREADS));
}

// Where a step is nothing but calls, so is what the training thread does for its batch.
static void a_small_batch_is_calls_too(void **state)
{
	(void)state;
	struct facts f = job(0.2);
	f.length_s.value = 0.0004;
	f.main_cpus = f.cpus_used = 1;
	struct causes c;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	assert_share(&c, BOTTLENECK_HOST, 1);
	f = job(0.7); // more than calls: it is prepared
	f.length_s.value = 0.0004;
	f.main_cpus = f.cpus_used = 1;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_INPUT);
}

// A GPU that always has work gains nothing from CPUs, however short they are.
static void a_busy_gpu_bounds_what_the_host_costs(void **state)
{
	(void)state;
	struct facts f = one_cpu();
	f.gpu.n = 1;
	f.gpu.used = true;
	f.gpu.busy = 0.96;
	struct causes c;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_null(causes_get(&c, BOTTLENECK_CONTENTION));
	f.gpu.busy = 0.5;
	causes_find(&f, &c);
	assert_true(causes_get(&c, BOTTLENECK_CONTENTION)->share.value <= 0.5);
}

static void who_computes_uses_a_cpu(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	causes_find(&f, &c);
	assert_non_null(causes_get(&c, BOTTLENECK_COMPUTE));
	f.main_cpus = f.cpus_used = 0.04;
	causes_find(&f, &c);
	const struct cause *compute = causes_get(&c, BOTTLENECK_COMPUTE);
	assert_true(!compute || compute->share.value < 0.1);
	assert_int_not_equal(causes_confidence(&f, &c), CONFIDENCE_HIGH);
}

// A second thread that helps now and then does not hide that the first one lacks a CPU.
static void a_helping_thread_hides_no_queue(void **state)
{
	(void)state;
	struct facts f = job(0.02);
	struct causes c;
	add_workers(&f, 2, 0.1, 0, 0);
	f.main_cpus = 1.1;
	f.main_queued = 0.15;
	causes_find(&f, &c);
	const struct cause *contention = causes_get(&c, BOTTLENECK_CONTENTION);
	assert_non_null(contention);
	assert_float_equal(contention->share.value, 0.15, 1e-9);
}

// Backward holds the wait for a slow rank: that part of it is no computing, and never sure.
static void a_wait_in_backward_is_no_computing(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	f.ranks = (struct rank_facts){.n = 2,
		.waits_most = 0.5,
		.waits_least = 0,
		.own = 0.5,
		.inferred = true,
		.slowest = 1};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_RANKS);
	assert_float_equal(c.items[0].share.value, 0.5, 1e-9);
	assert_true(causes_get(&c, BOTTLENECK_COMPUTE)->share.value < 0.5);
	assert_int_equal(causes_confidence(&f, &c), CONFIDENCE_MEDIUM);
}

// Adds looks at the training thread: a share of all, and of those that are placed a share in steps.
static void add_step_waits(
	struct facts *f, enum wait_kind kind, double share, uint64_t placed, double in_step)
{
	add_looks(&f->waits, kind, share);
	f->waits.placed = placed;
	for (size_t i = 0; i < N_WAITS; i++) {
		f->waits.in_data[i] = 0;
		f->waits.in_step[i] = i == kind ? in_step : 0;
	}
}

static void assert_ranks_headline(struct facts *f, const char *says)
{
	_cleanup_text_ struct text t = {0};
	const struct cause cause = {BOTTLENECK_RANKS, {0.6, NAN, NAN}, 0.6};
	causes_append_headline(&t, f, &cause);
	assert_says(t.data, says);
}

static void why_a_rank_is_slower(void **state)
{
	(void)state;
	struct facts f = ranks();
	assert_ranks_headline(&f, "... rank 1 of 2 is slower than the others");
	f.ranks.slow_phase = PHASE_DATA;
	f.ranks.slow_phase_s = 0.025;
	assert_ranks_headline(
		&f, "... slower than the others: its data phase takes 25.0 ms longer");
	f.ranks.slow_phase = PHASE_OTHER;
	assert_ranks_headline(&f, "... its time outside phases takes 25.0 ms longer");
	f.ranks.slow_wait = 0.61;
	f.ranks.slow_wait_kind = WAIT_NETWORK;
	assert_ranks_headline(&f, "... it waits for the network 61 % of the time");
	struct causes c;
	struct verdict v = {0};
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "... to a background thread");
	verdict_done(&v);
}

// A step that reads the output of a process waits at a pipe, as one that uses a long-lived process.
static void the_output_of_processes(void **state)
{
	(void)state;
	struct facts f = job(0.02);
	struct causes c;
	f.main_cpus = f.cpus_used = 0.5;
	add_step_waits(&f, WAIT_PIPE, 0.44, 200, 0.42);
	causes_find(&f, &c);
	assert_float_equal(causes_get(&c, BOTTLENECK_BLOCKED)->share.value, 0.42, 1e-9);
	assert_null(causes_get(&c, BOTTLENECK_CHILDREN));
	f.children = (struct children_facts){2, 0.005, 0, "cat"};
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_BLOCKED));
	assert_float_equal(causes_get(&c, BOTTLENECK_CHILDREN)->share.value, 0.42, 1e-9);
	f.children.per_iteration = 0.01; // a process now and then
	causes_find(&f, &c);
	assert_float_equal(causes_get(&c, BOTTLENECK_BLOCKED)->share.value, 0.42, 1e-9);
}

// As seen: a reward that asks a database for each step.
static void libraries_that_a_step_calls(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.python = true;
	f.framework = FRAMEWORK_PYTORCH;
	f.share[PHASE_DATA] = (struct estimate){NAN, NAN, NAN};
	f.share[PHASE_OTHER] = known(0.85);
	f.share[PHASE_FORWARD] = known(0.14);
	f.share[PHASE_BACKWARD] = known(0.01);
	add_samples(&f, CODE_OTHER, 1);
	f.code.share[CODE_OTHER] = 0.89;
	f.code.share[CODE_FRAMEWORK] = 0.11;
	f.native_in_other = 0.85;
	snprintf(f.native, sizeof(f.native), "sqlite3VdbeExec (libsqlite3.so.0)");
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	assert_float_equal(c.items[0].share.value, 0.85, 1e-9);
	assert_int_equal(causes_confidence(&f, &c), CONFIDENCE_HIGH);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(t.data, "host-bound: libraries ... 85 % of each iteration, mostly "
			    "sqlite3VdbeExec (libsqlite3.so.0)");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "call NumPy and other libraries");
	verdict_done(&v);
	f.native_in_other = NAN; // in no phase, or that is not known
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_HOST));
	f.native_in_other = 0.85; // of another thread
	f.code.share[CODE_OTHER] = 0.01;
	f.code.share[CODE_FRAMEWORK] = 0.99;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_HOST));
	f.code.share[CODE_OTHER] = 0.89;
	f.python = false; // a program: its own code is what it computes
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_HOST));
}

// As seen: an LSTM cell in a Python loop over 200 time steps.
static void steps_of_short_operations(void **state)
{
	(void)state;
	struct facts f = job(0.01);
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.python = true;
	f.framework = FRAMEWORK_PYTORCH;
	f.length_s = (struct estimate){0.076, 0.075, 0.077};
	f.compute_s = f.undisturbed_s = 0.074;
	f.share[PHASE_FORWARD] = known(0.42);
	f.share[PHASE_BACKWARD] = known(0.56);
	f.share[PHASE_OPTIMIZER] = known(0.005);
	f.share[PHASE_OTHER] = known(0.005);
	add_samples(&f, CODE_FRAMEWORK, 1);
	f.code.share[CODE_FRAMEWORK] = 0.61;
	f.code.share[CODE_COPYING] = 0.15;
	f.code.share[CODE_INTERPRETER] = 0.16;
	f.code.share[CODE_KERNELS] = 0.08;
	f.calls_of_steps = 0.58;
	f.calls_in_steps = 0.60;
	f.python_in_steps = 0.15;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	double share = c.items[0].share.value;
	assert_float_equal(share, 0.60 + 0.15, 0.01); // some of Python's prepares the batches
	const struct cause *compute = causes_get(&c, BOTTLENECK_COMPUTE);
	assert_true(!compute || compute->share.value < 0.26);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(t.data,
		"host-bound: Python and the many short operations of forward ... take 75 %");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "call fewer, larger operations in the model");
	assert_non_null(strstr(v.suggestions[0].action, "torch.compile"));
	verdict_done(&v);
	f.compiled = true;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(strstr(v.suggestions[0].action, "torch.compile"));
	assert_float_equal(v.suggestions[0].gain.value, 1 / (1 - share), 1e-9);
	verdict_done(&v);
	f.calls_of_steps = 0.37; // as in a small Transformer: it computes
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	f.calls_of_steps = 0.58;
	f.gpu.used = true; // the framework may wait for it
	causes_find(&f, &c);
	const struct cause *host = causes_get(&c, BOTTLENECK_HOST);
	assert_true(!host || host->share.value < 0.5);
}

// As seen: a metric after the step, with t[i].item() for each coordinate of each box.
static struct facts loop_over_elements(void)
{
	struct facts f = job(0.02);
	f.python = true;
	f.framework = FRAMEWORK_PYTORCH;
	f.share[PHASE_FORWARD] = known(0.24);
	f.share[PHASE_BACKWARD] = known(0.30);
	f.share[PHASE_OPTIMIZER] = known(0.03);
	f.share[PHASE_OTHER] = known(0.41);
	add_samples(&f, CODE_FRAMEWORK, 1);
	f.code.share[CODE_FRAMEWORK] = 0.42;
	f.code.share[CODE_KERNELS] = 0.32;
	f.code.share[CODE_INTERPRETER] = 0.20;
	f.code.share[CODE_OTHER] = 0.06;
	f.python_in_other = 0.13;
	f.calls_in_other = 0.21;
	f.native_in_other = 0.06;
	return f;
}

static void short_operations_outside_phases(void **state)
{
	(void)state;
	struct facts f = loop_over_elements();
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0}, line = {0};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	assert_float_equal(c.items[0].share.value, 0.18 + 0.21 + 0.06, 1e-9);
	assert_true(causes_get(&c, BOTTLENECK_COMPUTE)->share.value <= 0.57);
	assert_int_equal(causes_confidence(&f, &c), CONFIDENCE_HIGH);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(t.data, "host-bound: Python and the short operations ... outside all phases "
			    "take 34 % of each iteration");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "call fewer, larger operations");
	assert_float_equal(v.suggestions[0].gain.value, 1 / (1 - 0.41), 1e-9); // all of it
	assert_says(v.suggestions[1].action, "find the responsible lines");
	verdict_done(&v);
	f.arithmetic_in_other = 0.21 + 0.05; // of which 0.05 is no short operation
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_float_equal(v.suggestions[0].gain.value, 1 / (1 - 0.40), 1e-9);
	verdict_done(&v);
	f.lines.looks = 300;
	f.lines.outside = (struct line_place){.share = 0.62, .place = "train.py:62 iou()"};
	causes_append_headline(&line, &f, &c.items[0]);
	assert_says(line.data, "... mostly in train.py:62 iou()");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(
		v.suggestions[0].basis, "... 62 % of the samples there are in train.py:62 iou()");
	verdict_done(&v);
}

// Samples of large tensors, of a device that is waited for, of another framework; and a script that
// mostly runs Python.
static void operations_that_are_not_short(void **state)
{
	(void)state;
	struct facts f = loop_over_elements();
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.calls_in_other = 0.02;
	f.python_in_other = 0.01;
	f.native_in_other = 0;
	f.code.share[CODE_FRAMEWORK] = 0.58;
	f.code.share[CODE_INTERPRETER] = 0.04;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_null(causes_get(&c, BOTTLENECK_HOST));
	f.calls_in_other = 0.21;
	f.framework = FRAMEWORK_JAX;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_HOST));
	f = loop_over_elements();
	f.python_in_other = 0.31;
	f.calls_in_other = 0.06;
	f.native_in_other = 0;
	f.code.share[CODE_FRAMEWORK] = 0.27;
	f.code.share[CODE_INTERPRETER] = 0.35;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(t.data, "host-bound: Python and the short operations that it calls take 39 % "
			    "of each iteration");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "find the responsible lines");
	verdict_done(&v);
}

// As seen: large tensors are computed after the step, beside other programs. The phases of a step
// take longer than they compute, so their length says nothing of the time outside.
static void arithmetic_outside_phases_without_a_cpu(void **state)
{
	(void)state;
	struct facts f = job(0.03);
	struct causes c;
	f.share[PHASE_FORWARD] = known(0.18);
	f.share[PHASE_BACKWARD] = known(0.28);
	f.share[PHASE_OPTIMIZER] = known(0.01);
	f.share[PHASE_OTHER] = known(0.50);
	f.cpus = f.host_cpus = 2;
	f.main_cpus = f.cpus_used = 0.8;
	f.others_cpus = f.host_others_cpus = 1.2;
	f.main_queued = 0.2;
	add_samples(&f, CODE_FRAMEWORK, 0.8);
	f.code.share[CODE_FRAMEWORK] = 0.53;
	f.code.share[CODE_KERNELS] = 0.25;
	f.code.share[CODE_SYSTEM] = 0.20;
	f.undisturbed_s = 0.002;
	f.arithmetic_in_other = 0.32;
	causes_find(&f, &c);
	assert_non_null(causes_get(&c, BOTTLENECK_CONTENTION));
	assert_share(&c, BOTTLENECK_COMPUTE, 0.47 - 0.20 + 0.32);
	assert_share(&c, BOTTLENECK_NOT_KNOWN, 0.50 - 0.32 - 0.20 * 0.50);
	f.arithmetic_in_other = NAN; // no samples by phase
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_NOT_KNOWN, 0.50 - 0.12 - 0.20 * 0.50);
}

// As seen: a thread that fetches at a limited rate, into a queue of one.
static void a_thread_that_waits_itself(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	f.main_cpus = f.cpus_used = 0.3;
	add_step_waits(&f, WAIT_OTHER, 0.47, 300, 0.49);
	f.threads.known = true;
	f.threads.others_cpus = 0.02;
	causes_find(&f, &c);
	assert_float_equal(causes_get(&c, BOTTLENECK_BLOCKED)->share.value, 0.49, 1e-9);
	assert_true(causes_confidence(&f, &c) <= CONFIDENCE_MEDIUM);
	f.threads.others_cpus = 0.6; // they compute
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_BLOCKED));
	f.threads.others_cpus = 0.02;
	f.ranks.world = 2; // it may wait for another rank
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_BLOCKED));
}

// As seen: unpickling nested lists. Time in data is not counted again as time of the interpreter.
static void objects_that_are_handed_over(void **state)
{
	(void)state;
	struct facts f = handing();
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.share[PHASE_DATA] = known(0.84);
	f.share[PHASE_FORWARD] = known(0.09);
	f.share[PHASE_BACKWARD] = known(0.06);
	f.data_at_epochs = 0;
	f.main_cpus = f.cpus_used = 0.8;
	add_samples(&f, CODE_INTERPRETER, 0.8);
	f.code.share[CODE_INTERPRETER] = 0.75;
	f.code.share[CODE_KERNELS] = 0.25;
	f.python_in_data = 0.57;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	assert_float_equal(c.items[0].share.value, 0.84 + 0.6 - 0.57, 1e-9);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(t.data, "... receiving batches that are already prepared");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "return tensors");
	verdict_done(&v);
	f.batch_tensors = 160; // lists of tensors, as the dataset makes them
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "combine the tensors of a batch");
	assert_says(v.suggestions[0].basis, "a batch has 160 tensors");
	verdict_done(&v);
	f.batch_tensors = 1000; // the hooks count no more
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].basis, "a batch has at least 1000 tensors");
	verdict_done(&v);
}

// A Python without symbols: samples say interpreter, the hooks timed the collections.
static void collections_that_hooks_timed(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	add_samples(&f, CODE_INTERPRETER, 1);
	f.code.share[CODE_INTERPRETER] = 0.75;
	f.code.share[CODE_KERNELS] = 0.25;
	f.collections = (struct collection_facts){0, 0.6, 0.08, 1, NAN};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(t.data, "... Python's garbage collection takes 60 % of each iteration");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_string_equal(v.suggestions[0].action, "do not call gc.collect() in each step");
	assert_float_equal(v.suggestions[0].gain.value, 2.5, 1e-9);
	assert_int_equal(v.suggestions[0].kind, GAIN_ESTIMATED);
	assert_says(v.suggestions[0].basis, "... which takes 80.0 ms");
	verdict_done(&v);
	v = (struct verdict){0};

	// Without samples, the collections alone are known.
	f.code = job(0).code;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	assert_float_equal(c.items[0].share.value, 0.6, 1e-9);
}

// Spans of the hooks: functions that JAX compiles in each iteration, and short calls of Keras'
// predict.
static void work_that_spans_name(void **state)
{
	(void)state;
	struct facts f = job(0.01);
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.framework = FRAMEWORK_JAX;
	f.named[NAMED_JAX_COMPILE] = (struct named_facts){0.91, 0.95, 0.95, 1.8, 0};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_string_equal(t.data,
		"host-bound: recompiling functions takes 91 % of each iteration "
		"(0.9 times per iteration)");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(suggests(&v, "keep shapes and static arguments the same"));
	verdict_done(&v);
	f.named[NAMED_TORCH_COMPILE] = (struct named_facts){0.92, 0.5, 0.5, 4, 20};
	f.named[NAMED_JAX_COMPILE].share = 0;
	f.steady = 100;
	text_clear(&t);
	causes_find(&f, &c);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_string_equal(t.data,
		"host-bound: recompiling functions takes 92 % of each iteration "
		"(0.5 times per iteration, none in the last 20)");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(suggests(&v, "mark the dimension that varies as dynamic"));
	verdict_done(&v);
	f.named[NAMED_TORCH_COMPILE].share = 0;
	f.compile_limit_at = "net.py:31";
	f.compile_limit = 8;
	f.named[NAMED_JAX_COMPILE].share = 0.91;
	f.steady = 100;
	f.named[NAMED_JAX_COMPILE].iterations = 0.04; // as in any job
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *gave_up = suggests(&v, "mark the dimension that varies");
	assert_non_null(gave_up);
	assert_string_equal(gave_up->basis, "torch.compile gave up on net.py:31 after 8 graphs: "
					    "since then it has run uncompiled");
	verdict_done(&v);

	f.framework = FRAMEWORK_KERAS;
	f.named[NAMED_KERAS_PREDICT] = (struct named_facts){0.8, 4, 1, 0.06, 0};
	text_clear(&t);
	causes_find(&f, &c);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_string_equal(t.data,
		"host-bound: short calls of Model.predict take 80 % of each iteration "
		"(4 times per iteration)");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "call model(x, training=False)");
	assert_non_null(s);
	assert_float_equal(s->gain.value, 5, 1e-6);
	verdict_done(&v);
	f.named[NAMED_KERAS_PREDICT].mean_s = 2; // an evaluation
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
}

// A metric over all outputs so far, in each step.
static void iterations_that_become_longer(void **state)
{
	(void)state;
	struct facts f = job(0.01);
	struct causes c;
	struct verdict v = {0};
	f.trend = (struct trend){0.0269, 0.0581, 0.5, true, true, false};
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(
		v.suggestions[0].action, "find the work that grows with the number of iterations");
	assert_string_equal(v.suggestions[0].basis, "without waits for data, an iteration takes "
						    "26.9 ms in the first quarter of each epoch "
						    "and 58.1 ms in the last");
	assert_float_equal(v.suggestions[0].gain.value, 2, 1e-6);
	verdict_done(&v);
	f.trend.in_epochs = false;
	f.host_others_cpus = 3.4; // which may have become more and more
	f.others_cpus = 3.4;
	f.main_queued = 0.4;
	f.cpus_used = 0.6;
	causes_find(&f, &c);
	assert_non_null(causes_get(&c, BOTTLENECK_CONTENTION));
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "find the work"));
	verdict_done(&v);
}

// As seen: five widths of batches, each compiled in its first iteration, which takes seconds; then
// 20 ms an iteration.
static void shapes_that_are_compiled_once_each(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.framework = FRAMEWORK_PYTORCH;
	f.training_s = 50;
	f.compiling_s = 47;
	f.compiling = 5;
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_COMPILE, 0.94);
	causes_append_headline(&t, &f, causes_get(&c, BOTTLENECK_COMPILE));
	assert_non_null(strstr(t.data, "takes 94 % of training: 47.0 s, in 5 iterations"));
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *pad = suggests(&v, "pad batches to one size");
	assert_non_null(pad);
	assert_float_equal(pad->gain.value, 1 / (1 - 0.94 * 4 / 5), 0.02);
	verdict_done(&v);
	f.compiling = 3; // a model, its last batch and its validation
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_COMPILE));
	f.compiling = 5;
	f.training_s = 500; // a long run
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_COMPILE));
}

// As seen: gradients are compiled, the update is not.
static void operations_that_are_not_compiled(void **state)
{
	(void)state;
	struct facts f = job(0.01);
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.framework = FRAMEWORK_JAX;
	f.uncompiled = true;
	f.share[PHASE_FORWARD] = f.share[PHASE_BACKWARD] = f.share[PHASE_OPTIMIZER] = known(0);
	f.share[PHASE_OTHER] = known(0.98);
	add_samples(&f, CODE_FRAMEWORK, 1);
	f.code.share[CODE_FRAMEWORK] = 0.5;
	f.code.share[CODE_INTERPRETER] = 0.4;
	f.code.cpus = 0.5;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_string_equal(
		t.data, "host-bound: operations that are not compiled take 50 % of each iteration");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "update the parameters in the jitted function");
	verdict_done(&v);
}

// Batches that the training thread prepares itself, or workers do: part of it is collections.
static void collections_while_batches_are_prepared(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.share[PHASE_DATA] = known(0.7);
	f.collections = (struct collection_facts){0.5, 0, 0.08, 0.01, NAN};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_INPUT);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(t.data, "... Python's garbage collection takes 50 %");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *freeze = suggests(
		&v, "call gc.freeze() after building the dataset");
	assert_non_null(freeze);
	assert_float_equal(freeze->gain.value, 2, 1e-9);
	assert_int_equal(freeze->kind, GAIN_AT_MOST);
	verdict_done(&v);
	v = (struct verdict){0};

	// One worker of two collects for a quarter of the time in which it prepares.
	f = job(0.7);
	add_workers(&f, 2, 1.9, 0, 0);
	f.collections.of_preparing = 0.25;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_INPUT);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(suggests(&v, "call gc.freeze()"));
	verdict_done(&v);
}

// As seen: a helper sorts while it holds the lock that the training thread needs.
static void a_lock_that_a_computing_thread_holds(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	_cleanup_text_ struct text t = {0};
	f.framework = FRAMEWORK_PYTORCH;
	f.share[PHASE_OTHER] = known(0.40);
	f.share[PHASE_FORWARD] = known(0.26);
	f.share[PHASE_BACKWARD] = known(0.27);
	f.share[PHASE_OPTIMIZER] = known(0.07);
	f.main_cpus = f.cpus_used = 1;
	add_samples(&f, CODE_KERNELS, 0.646);
	f.threads.known = true;
	f.threads.others_cpus = f.code_threads.cpus = 0.38;
	f.threads.groups[THREADS_UNNAMED].cpus = 0.38;
	add_step_waits(&f, WAIT_OTHER, 0.34, 290, 0.34);
	f.all_in_other = 0.41;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_BLOCKED);
	assert_float_equal(c.items[0].share.value, 0.34, 0.001);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(t.data, "... computation in another of its threads, which takes 34 %");

	f.all_in_other = NAN; // no samples by phase
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_BLOCKED));
	f.all_in_other = 0.41;
	f.threads.groups[THREADS_OPENMP].cpus = 0.3; // it may wait for PyTorch's own threads
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_BLOCKED));
}

static void add_line(struct facts *f, struct line_place line)
{
	f->lines.looks = 200;
	f->lines.tops[f->lines.n_tops++] = line;
}

// As seen: a database that commits each row. Looks miss most of the short waits.
static void short_waits_for_fsync(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.share[PHASE_OTHER] = known(0.47);
	f.share[PHASE_FORWARD] = known(0.20);
	f.share[PHASE_BACKWARD] = known(0.28);
	f.main_cpus = f.cpus_used = 0.7;
	f.framework = FRAMEWORK_PYTORCH;
	add_samples(&f, CODE_KERNELS, 0.7);
	add_step_waits(&f, WAIT_FSYNC, 0.11, 239, 0.11);
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_CHECKPOINT, 0.3);
	causes_append_headline(&t, &f, causes_get(&c, BOTTLENECK_CHECKPOINT));
	assert_says(t.data, "flushing files to disk (fsync) takes 30 % of training");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(suggests(&v, "write and commit half as often"));
	verdict_done(&v);

	// A function holds most of the time there: commits are in it, and their CPU time.
	v = (struct verdict){0};
	add_line(&f,
		(struct line_place){.share = 0.32, .error = 0.005, .place = "train.py:63 log()"});
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *commit = suggests(
		&v, "write and commit less often in train.py:63 log()");
	assert_non_null(commit);
	assert_int_equal(commit->kind, GAIN_AT_MOST);
	assert_float_equal(commit->gain.value, 1 / (1 - 0.33), 0.01);
	verdict_done(&v);

	v = (struct verdict){0};
	f.lines.tops[0].share = 0.1; // the waits fit beside it
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(suggests(&v, "write and commit half as often"));
	verdict_done(&v);

	f.waits.share[WAIT_SLEEP] = 0.1; // the rest may be sleep
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_CHECKPOINT, 0.11);
}

// A line with most of forward is named beside computing; the loop's call of the model is not.
static void a_line_with_most_of_forward(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	_cleanup_text_ struct text t = {0}, loop = {0};
	f.share[PHASE_FORWARD] = known(0.4);
	f.share[PHASE_BACKWARD] = known(0.6);
	add_samples(&f, CODE_KERNELS, 1);
	f.lines.looks = 200;
	f.lines.forward = (struct line_place){
		.share = 0.7, .error = 0.05, .place = "train.py:56 and 58 Block.forward()"};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(
		t.data, "compute-bound: ... forward mostly in train.py:56 and 58 Block.forward()");
	f.lines.forward.loop = true;
	causes_append_headline(&loop, &f, &c.items[0]);
	assert_null(strstr(loop.data, "forward mostly"));
}

// All ranks wait equally: fewer exchanges are worth naming before others.
static void gradients_exchanged_in_each_pass(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	struct verdict v = {0};
	f.framework = FRAMEWORK_PYTORCH;
	f.ranks.n = 2;
	f.ranks.waits_most = f.ranks.waits_least = 0.4;
	f.share[PHASE_COMMUNICATION] = known(0.4);
	f.share[PHASE_FORWARD] = known(0.3);
	f.share[PHASE_BACKWARD] = known(0.3);
	f.backward_synced = 4;
	causes_find(&f, &c);
	assert_non_null(causes_get(&c, BOTTLENECK_RANKS));
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *once = suggests(&v, "exchange gradients once for each step");
	assert_non_null(once);
	assert_float_equal(once->gain.value, 1 / (1 - 0.4 * 3 / 4), 0.02);
	verdict_done(&v);

	v = (struct verdict){0};
	f.backward_synced = NAN;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "exchange gradients once"));
	verdict_done(&v);

	v = (struct verdict){0};
	f.backward_synced = 4;
	f.ranks.n = 1; // with nobody
	f.ranks.world = 1;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "exchange gradients once"));
	verdict_done(&v);
}

// As seen with two ranks and gloo: backward waits, and the other threads move data in the kernel.
// All ranks do so equally, so that their backward passes show no wait.
static void gradients_that_other_threads_send(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	struct verdict v = {0};
	f.framework = FRAMEWORK_PYTORCH;
	f.ranks.n = 2;
	f.ranks.inferred = true;
	f.ranks.waits_most = f.ranks.waits_least = 0;
	f.share[PHASE_FORWARD] = known(0.09);
	f.share[PHASE_BACKWARD] = known(0.87);
	f.waits.looks = f.waits.placed = 255;
	f.waits.in_step[WAIT_OTHER] = 0.48;
	f.code_threads = (struct code_facts){.samples = 1302, .cpus = 0.4};
	f.code_threads.share[CODE_SYSTEM] = 0.88;
	f.code_threads.share[CODE_FRAMEWORK] = 0.12;
	f.backward_synced = 8;
	causes_find(&f, &c);
	const struct cause *ranks = causes_get(&c, BOTTLENECK_RANKS);
	assert_non_null(ranks);
	assert_float_equal(ranks->share.value, 0.48 - 0.4 * 0.12, 0.01);
	_cleanup_text_ struct text said = {0};
	cause_ranks.say(&said, &f, ranks);
	assert_non_null(strstr(said.data, "exchanging gradients with other ranks takes 43 %"));
	f.code_threads.share[CODE_SYSTEM] = 0.1; // they compute
	f.code_threads.share[CODE_FRAMEWORK] = 0.9;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_RANKS));
	f.code_threads.share[CODE_SYSTEM] = 0.88;
	f.gpu.used = true; // it may wait for that
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_RANKS));
	verdict_done(&v);
}

// Python functions of a tf.data pipeline are seen in TensorFlow's threads.
static void a_pipeline_that_runs_python(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	struct verdict v = {0};
	struct text said = {0};
	f.framework = FRAMEWORK_KERAS;
	f.pipeline = true;
	f.share[PHASE_DATA] = known(0.7);
	f.share[PHASE_STEP] = known(0.3);
	f.thread_lines.looks = 100;
	f.thread_lines.n_tops = 1;
	f.thread_lines.data = (struct line_place){.share = 0.9, .place = "train.py:14 smooth()"};
	causes_find(&f, &c);
	causes_append_headline(&said, &f, causes_get(&c, BOTTLENECK_INPUT));
	assert_non_null(strstr(said.data, "mostly in train.py:14 smooth()"));
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(suggests(&v, "prepare in several processes"));
	assert_null(suggests(&v, "prefetch batches with more threads"));
	assert_null(suggests(&v, "reduce preprocessing: map whole batches"));
	verdict_done(&v);

	v = (struct verdict){0};
	// A thread of the script that prepares nothing.
	f.thread_lines.data = (struct line_place){0};
	f.thread_lines.tops[0] = (struct line_place){.share = 0.9, .place = "train.py:80 watch()"};
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(suggests(&v, "prefetch batches with more threads"));
	assert_non_null(suggests(&v, "reduce preprocessing: map whole batches where"));
	verdict_done(&v);
	v = (struct verdict){0};
	f.cpus_used = f.cpus; // no CPU is there for more threads
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "prefetch batches with more threads"));
	assert_non_null(suggests(&v, "reduce preprocessing: map whole batches where"));
	verdict_done(&v);
	text_clear(&said);
	causes_append_headline(&said, &f, causes_get(&c, BOTTLENECK_INPUT));
	assert_null(strstr(said.data, "mostly in"));
	text_done(&said);
}

// torch.utils.checkpoint, where memory would do.
static void forward_passes_done_again(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	struct verdict v = {0};
	f.framework = FRAMEWORK_PYTORCH;
	f.share[PHASE_FORWARD] = known(0.3);
	f.share[PHASE_BACKWARD] = known(0.65);
	f.lines.looks = 200;
	f.lines.recomputed = 0.4;
	f.memory.peak_bytes = 1e9;
	f.memory.limit_bytes = 8e9;
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *without = suggests(&v, "remove torch.utils.checkpoint");
	assert_non_null(without);
	assert_float_equal(without->gain.value, 1 / (1 - 0.65 * 0.4), 0.02);
	assert_non_null(strstr(without->basis, "used up to 1.0 of 8.0 GB of memory"));
	verdict_done(&v);

	const double too_few[] = {NAN, 0, 0.05};
	for (size_t i = 0; i < sizeof(too_few) / sizeof(*too_few); i++) {
		v = (struct verdict){0};
		f.lines.recomputed = too_few[i];
		assert_int_equal(causes_advise(&f, &c, &v), 0);
		assert_null(suggests(&v, "remove torch.utils.checkpoint"));
		verdict_done(&v);
	}
}

// What a function does outside of all phases need not be known to name it.
static void a_function_outside_of_phases(void **state)
{
	(void)state;
	struct facts f = job(0);
	struct causes c;
	struct verdict v = {0};
	f.python = true;
	f.framework = FRAMEWORK_PYTORCH;
	f.share[PHASE_OTHER] = known(0.2);
	f.share[PHASE_FORWARD] = known(0.3);
	f.share[PHASE_BACKWARD] = known(0.45);
	f.share[PHASE_OPTIMIZER] = known(0.05);
	add_samples(&f, CODE_KERNELS, 0.7);
	add_line(
		&f, (struct line_place){.share = 0.15, .error = 0.02, .place = "train.py:7 ema()"});
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *made = suggests(
		&v, "make train.py:7 ema() faster, or call it less often");
	assert_non_null(made);
	assert_float_equal(made->gain.value, 1 / (1 - 0.19), 0.01);
	verdict_done(&v);

	static const struct line_place others[] = {
		{.share = 0.15, .error = 0.02, .place = "train.py:9 main()", .loop = true},
		{.share = 0.15, .error = 0.02, .place = "train.py:8 f()", .phase = "forward"},
		{.share = 0.15, .error = 0.06, .place = "train.py:7 ema()"}, // too few samples
		{.share = 0.80, .error = 0.02, .place = "train.py:7 ema()"}, // the job itself
		{.share = 0.40, .error = 0.02, .place = "train.py:3 load()"}, // before training
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		v = (struct verdict){0};
		f.lines.tops[0] = others[i];
		assert_int_equal(causes_advise(&f, &c, &v), 0);
		assert_null(suggests(&v, "make train.py"));
		verdict_done(&v);
	}
}

static void settings_for_debugging(void **state)
{
	(void)state;
	static const struct {
		const char *settings, *action;
	} cases[] = {
		{"detect_anomaly", "turn anomaly detection off"},
		{"launch_blocking profiler", "turn the profiler off"},
		{"profiler launch_blocking", "unset CUDA_LAUNCH_BLOCKING"},
		{"disable_jit", "turn jax_disable_jit off"},
		{"detect_anomaly2 profilers", NULL},
		{NULL, NULL},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct facts f = computing();
		struct causes c;
		struct verdict v = {0};
		f.debug_settings = cases[i].settings;
		causes_find(&f, &c);
		assert_int_equal(causes_advise(&f, &c, &v), 0);
		if (cases[i].action) {
			assert_non_null(suggests(&v, cases[i].action));
			assert_true(strncmp(v.suggestions[0].action, "turn ", 5) == 0 ||
				    strncmp(v.suggestions[1].action, "turn ", 5) == 0);
		} else {
			assert_null(suggests(&v, "turn "));
		}
		verdict_done(&v);
	}
	// Where steps are not what takes the time, it is a remark.
	struct facts f = slow_worker();
	struct causes c;
	struct verdict v = {0};
	f.debug_settings = "detect_anomaly";
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_true(v.n_suggestions > 1);
	assert_says(v.suggestions[v.n_suggestions - 1].action, "turn anomaly detection off");
	verdict_done(&v);
}

static void workers_that_start_for_each_validation(void **state)
{
	(void)state;
	struct facts f = validation();
	struct causes c;
	struct verdict v = {0};
	f.validation_starting_s = 3;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_VALIDATION);
	assert_float_equal(c.items[0].share.value, f.validation_s / f.training_s, 1e-9);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "persistent_workers=True for the loader of");
	assert_non_null(s);
	assert_int_equal(s->kind, GAIN_AT_MOST);
	assert_float_equal(s->gain.value, f.training_s / (f.training_s - 3), 1e-6);
	assert_non_null(strstr(s->basis, "which waits 3.0 s for their first batches"));
	verdict_done(&v);

	v = (struct verdict){0};
	f.validation_starting_s = 0.01 * f.training_s;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "persistent_workers"));
	verdict_done(&v);
}

// As seen: a frozen backbone in front of a small head.
static void forward_without_gradients(void **state)
{
	(void)state;
	struct facts f = computing();
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.loader_at = "train.py:50";
	f.share[PHASE_FORWARD] = known(0.95);
	f.share[PHASE_BACKWARD] = known(0.03);
	f.share[PHASE_OPTIMIZER] = known(0.01);
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_non_null(strstr(t.data, "; most of forward is without gradients"));
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "compute the outputs of layers without gradients");
	assert_float_equal(v.suggestions[0].hidden_bound, 1 / (1 - 0.92), 1e-6);
	verdict_done(&v);
	for (int i = 0; i < 3; i++) {
		struct facts other = f;
		other.loader_at = i == 0 ? NULL : f.loader_at; // an agent that acts
		other.share[PHASE_BACKWARD] = known(i == 1 ? 0.25 : 0.03);
		other.code.share[CODE_KERNELS] = i == 2 ? 0.2 : 0.99; // a metric
		v = (struct verdict){0};
		causes_find(&other, &c);
		assert_int_equal(causes_advise(&other, &c, &v), 0);
		assert_null(suggests(&v, "compute the outputs of layers without"));
		verdict_done(&v);
	}
}

// As seen: an agent that acts in each of 32 environments, 20 times for each update.
static void a_model_that_is_called_for_single_samples(void **state)
{
	(void)state;
	struct facts f = tiny();
	struct causes c;
	struct verdict v = {0};
	f.forward_calls = 643;
	f.forward_call_s = 0.000115;
	f.backward_calls = 1;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "call the model on batches");
	assert_non_null(s);
	assert_says(s->basis, "it is called 643 times in each iteration, for 115 us each");
	verdict_done(&v);
	for (int i = 0; i < 3; i++) {
		struct facts other = f;
		other.backward_calls = i == 0 ? 643 : 1; // accumulation of gradients
		other.forward_call_s = i == 1 ? 0.05 : 0.000115; // it computes
		other.forward_calls = i == 2 ? 2 : 643;
		v = (struct verdict){0};
		assert_int_equal(causes_advise(&other, &c, &v), 0);
		assert_null(suggests(&v, "call the model on batches"));
		verdict_done(&v);
	}
}

// As seen: a measure of rank correlation over all pairs of samples, in Python, after each epoch.
static void work_between_epochs(void **state)
{
	(void)state;
	struct facts f = computing();
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.between_s = 8;
	f.between_epochs = 1;
	f.python = true;
	f.lines.looks = 119;
	f.lines.n_tops = 1;
	f.lines.tops[0] = (struct line_place){
		.place = "survival.py:37 concordance()", .phase = "", .share = 0.86, .error = 0.03};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_BETWEEN);
	assert_float_equal(c.items[0].share.value, 0.8, 1e-9);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_string_equal(t.data, "work between epochs takes 80 % of training: 8.0 s of 10.0 s, "
				    "mostly in survival.py:37 concordance()");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "call survival.py:37 concordance() less often");
	assert_float_equal(v.suggestions[0].gain.value, 5, 1e-6);
	assert_int_equal(v.suggestions[0].kind, GAIN_AT_MOST);
	verdict_done(&v);

	// Calls of predict(): many and short ones.
	v = (struct verdict){0};
	f.lines.n_tops = 0;
	f.predicts_between = 300;
	f.predicts_between_s = 6;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "call predict() once with all samples");
	assert_float_equal(v.suggestions[0].gain.value, 2.5, 1e-6);
	verdict_done(&v);
	v = (struct verdict){0};
	f.predicts_between = 6;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "call predict()"));
	assert_non_null(suggests(&v, "find out what runs between epochs"));
	verdict_done(&v);
	v = (struct verdict){0};
	f.between_epochs = 0.2; // every hundred iterations
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(suggests(&v, "find out what runs between iterations"));
	verdict_done(&v);

	// The end of loader workers that start for each epoch is theirs.
	f.workers.n = 2;
	f.workers.restart = true;
	f.between_s = 1;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_BETWEEN));
	f.workers.restart = false;
	causes_find(&f, &c);
	assert_non_null(causes_get(&c, BOTTLENECK_BETWEEN));
}

static void computing_with_doubles(void **state)
{
	(void)state;
	struct facts f = computing();
	struct causes c;
	struct verdict v = {0};
	f.double_precision = true;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "compute with float32");
	assert_non_null(s);
	assert_int_equal(s->kind, GAIN_UNKNOWN); // convolutions: 4 to 7 times, seen
	verdict_done(&v);
}

// As seen: boxes matched in Python, within what the marks call forward.
static void python_in_a_function_of_the_loss(void **state)
{
	(void)state;
	struct facts f = job(0.01);
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.python = true;
	f.framework = FRAMEWORK_PYTORCH;
	f.share[PHASE_FORWARD] = known(0.81);
	f.share[PHASE_BACKWARD] = known(0.17);
	f.share[PHASE_OPTIMIZER] = known(0.01);
	add_samples(&f, CODE_INTERPRETER, 1);
	f.code.share[CODE_INTERPRETER] = 0.63;
	f.code.share[CODE_FRAMEWORK] = 0.15;
	f.code.share[CODE_KERNELS] = 0.2;
	f.lines.looks = 130;
	f.lines.main = (struct line_place){
		.share = 0.66, .error = 0.04, .place = "train.py:99 Loss.assign()"};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_non_null(strstr(t.data, "; train.py:99 Loss.assign() has 66 % of the samples"));
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "vectorise train.py:99 Loss.assign()");
	assert_non_null(s);
	assert_int_equal(s->kind, GAIN_AT_MOST);
	assert_float_equal(s->gain.value, 1 / (1 - 0.66 - 0.08), 1e-3);
	verdict_done(&v);

	v = (struct verdict){0}; // a layer's
	snprintf(f.lines.main.phase, sizeof(f.lines.main.phase), "forward");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "vectorise"));
	verdict_done(&v);
	v = (struct verdict){0}; // one that is mostly not Python
	f.lines.main.phase[0] = '\0';
	f.code.share[CODE_INTERPRETER] = 0.28;
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "vectorise"));
	verdict_done(&v);
}

// A function is named only where the cause must be mostly in it.
static void lines_of_causes(void **state)
{
	(void)state;
	const struct line_place most = {.share = 0.8, .error = 0.02, .place = "train.py:7 log()"};
	const struct line_place half = {.share = 0.52, .error = 0.05, .place = "train.py:7 log()"};
	const struct line_place none = {.share = 1};
	assert_true(cause_has_line(&most, 1));
	assert_true(cause_has_line(&most, 0.5));
	assert_false(cause_has_line(&most, 0.3)); // may be all of the rest
	assert_false(cause_has_line(&most, 1.5)); // it is elsewhere, too
	assert_false(cause_has_line(&most, NAN));
	assert_false(cause_has_line(&half, 1)); // by chance
	assert_false(cause_has_line(&none, 1));
}

// As seen: thresholds of 128 KiB in the environment.
static void malloc_thresholds_of_the_environment(void **state)
{
	(void)state;
	struct facts f = computing();
	struct causes c;
	struct verdict v = {0};
	f.page_faults = 300000;
	f.code.share[CODE_SYSTEM] = 0.6;
	f.code.share[CODE_KERNELS] = 0.4;
	f.malloc_map = "131072";
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_ALLOCATION);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *unset = suggests(
		&v, "unset MALLOC_MMAP_THRESHOLD_, or set MALLOC_TRIM_THRESHOLD_=");
	assert_non_null(unset);
	assert_int_equal(unset->kind, GAIN_ESTIMATED); // the environment explains the page faults
	verdict_done(&v);
	v = (struct verdict){0};
	f.malloc_map = "33554432"; // as large as glibc's own can be
	f.malloc_trim = "2000000000";
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "unset"));
	const struct suggestion *set = suggests(
		&v, "MALLOC_TRIM_THRESHOLD_=2000000000 MALLOC_MMAP_MAX_=0");
	assert_non_null(set);
	assert_int_equal(set->kind, GAIN_UNKNOWN);
	assert_null(suggests(&v, "allocate the arrays"));
	verdict_done(&v);
	v = (struct verdict){0};
	f.double_precision = true; // half as many pages, and half of the arithmetic
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "compute with float32");
	assert_non_null(suggests(&v, "MALLOC_TRIM_THRESHOLD_"));
	verdict_done(&v);
	v = (struct verdict){0};
	f.code.share[CODE_KERNELS] = 0.05;
	f.code.share[CODE_FRAMEWORK] = 0.35;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(strstr(v.suggestions[0].action, "MALLOC_TRIM_THRESHOLD_"));
	verdict_done(&v);
	f.double_precision = false;
	f.code.share[CODE_KERNELS] = 0.4;
	f.code.share[CODE_FRAMEWORK] = 0;
	v = (struct verdict){0};
	f.lines.looks = 140; // as seen: a buffer that torch.cat makes anew for each step
	f.lines.main = (struct line_place){
		.share = 0.45, .place = "replay.py:20 ReplayBuffer.add()"};
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(
		suggests(&v, "allocate the arrays of replay.py:20 ReplayBuffer.add() once"));
	verdict_done(&v);
	v = (struct verdict){0};
	snprintf(f.lines.main.phase, sizeof(f.lines.main.phase), "forward"); // of the model
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "allocate the arrays"));
	verdict_done(&v);
}

// As seen: quantiles of all parameters and gradients after each step.
static void computing_outside_the_model(void **state)
{
	(void)state;
	struct facts f = unexplained();
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.python = true;
	f.framework = FRAMEWORK_PYTORCH;
	f.share[PHASE_OTHER] = known(0.75);
	f.share[PHASE_FORWARD] = known(0.09);
	f.share[PHASE_BACKWARD] = known(0.14);
	f.share[PHASE_OPTIMIZER] = known(0.02);
	add_samples(&f, CODE_FRAMEWORK, 1);
	f.code.share[CODE_FRAMEWORK] = 0.77;
	f.code.share[CODE_KERNELS] = 0.20;
	f.arithmetic_in_other = 0.69;
	f.calls_in_other = 0;
	f.lines.outside = (struct line_place){.share = 0.95, .place = "train.py:41 describe()"};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_non_null(strstr(t.data,
		"outside modules, backward and optimizer, mostly in train.py:41 describe()"));
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "run train.py:41 describe() less often");
	assert_int_equal(v.suggestions[0].kind, GAIN_AT_MOST);
	// With the page faults and the code that go with it: all but other causes there.
	assert_float_equal(v.suggestions[0].gain.value, 1 / (1 - 0.75), 0.01);
	verdict_done(&v);

	v = (struct verdict){0};
	f.lines.outside.share = 0.4;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "run train.py:41"));
	assert_non_null(suggests(&v, "run metrics, statistics and targets less often"));
	verdict_done(&v);

	v = (struct verdict){0};
	f.lines.in_backward = 0.4; // torch.autograd.grad(), which has no mark
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "less often, or on fewer values"));
	verdict_done(&v);
	f.lines.in_backward = 0;

	v = (struct verdict){0};
	f.share[PHASE_FORWARD] = known(0); // the script calls no module
	f.share[PHASE_OTHER] = known(0.84);
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "less often, or on fewer values"));
	verdict_done(&v);
}

static void gradients_that_no_optimizer_uses(void **state)
{
	(void)state;
	struct facts f = computing();
	struct causes c;
	struct verdict v = {0};
	f.parameters = 5130;
	f.parameters_omitted = 11176512;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "call requires_grad_(False)");
	assert_non_null(s);
	assert_float_equal(s->gain.value, 1 / (1 - f.share[PHASE_BACKWARD].value), 1e-6);
	assert_int_equal(s->kind, GAIN_AT_MOST);
	verdict_done(&v);

	v = (struct verdict){0};
	f.parameters_omitted = 200; // an unused head
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "call requires_grad_(False)"));
	verdict_done(&v);
}

static void gradients_that_are_zeroed(void **state)
{
	(void)state;
	struct facts f = computing();
	struct causes c;
	double backward = f.share[PHASE_BACKWARD].value;
	f.backward_wasted = 0.4;
	causes_find(&f, &c);
	for (int last = 0; last < 2; last++) {
		struct verdict v = {0};
		f.wasted_last = last;
		assert_int_equal(causes_advise(&f, &c, &v), 0);
		const struct suggestion *s = suggests(&v,
			last ? "call requires_grad_(False)" : "use torch.no_grad() for the output");
		assert_non_null(s);
		assert_float_equal(s->gain.value, 1 / (1 - backward * 0.4 / (1 + last)), 1e-6);
		assert_int_equal(s->kind, GAIN_AT_MOST);
		verdict_done(&v);
	}

	struct verdict v = {0};
	f.backward_wasted = 0.01;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "call requires_grad_(False)"));
	verdict_done(&v);
}

static void denormal_numbers(void **state)
{
	(void)state;
	for (int kernels = 0; kernels < 2; kernels++) {
		struct facts f = computing();
		struct causes c;
		struct verdict v = {0};
		f.denormals = true;
		add_samples(&f, CODE_FRAMEWORK, 1);
		f.code.share[CODE_FRAMEWORK] = kernels ? 0.2 : 0.9;
		f.code.share[CODE_KERNELS] = kernels ? 0.8 : 0.1;
		causes_find(&f, &c);
		assert_int_equal(causes_advise(&f, &c, &v), 0);
		const struct suggestion *s = suggests(&v, "torch.set_flush_denormal(True)");
		assert_true((s != NULL) == !kernels);
		assert_true(!s || (s->settings.n == 1 &&
					  s->settings.items[0].kind == SETTING_FLUSH_DENORMAL));
		verdict_done(&v);
	}
}

// As seen: features of audio by NumPy, between the optimizer and forward.
static void numpy_outside_phases(void **state)
{
	(void)state;
	struct facts f = loop_over_elements();
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.calls_in_other = f.python_in_other = 0.01;
	f.native_in_other = 0;
	f.arithmetic_in_other = 0.04;
	f.arrays_in_other = 0.25;
	f.code.share[CODE_FRAMEWORK] = 0.46;
	f.code.share[CODE_KERNELS] = 0.35;
	f.code.share[CODE_INTERPRETER] = 0.02;
	snprintf(f.native, sizeof(f.native), "NumPy");
	causes_find(&f, &c);
	const struct cause *host = causes_get(&c, BOTTLENECK_HOST);
	assert_non_null(host);
	assert_float_equal(host->share.value, 0.25 + 0.02, 0.011);
	const struct cause *compute = causes_get(&c, BOTTLENECK_COMPUTE);
	assert_true(!compute || compute->share.value <= 0.57 + 0.04 + 1e-9);
	causes_append_headline(&t, &f, host);
	assert_says(t.data, "host-bound: libraries outside the framework take 25 % of each "
			    "iteration, mostly NumPy");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "call NumPy and other libraries");
	assert_non_null(s);
	// Page faults of its arrays may go with it: all but 0.04 - 0.01 of arithmetic there.
	assert_float_equal(s->gain.value, 1 / (1 - (f.share[PHASE_OTHER].value - 0.03)), 1e-6);
	verdict_done(&v);

	f.kernel_in_other = 0.4; // page faults of the arrays
	f.code.share[CODE_SYSTEM] = 0.12;
	f.lines.outside = (struct line_place){.share = 0.8, .place = "train.py:33 features()"};
	text_clear(&t);
	causes_find(&f, &c);
	host = causes_get(&c, BOTTLENECK_HOST);
	assert_float_equal(host->share.value, 1.4 * 0.25 + 0.02, 0.011);
	causes_append_headline(&t, &f, host);
	assert_says(t.data, "host-bound: libraries outside the framework take 35 % of each "
			    "iteration, mostly NumPy, called in train.py:33 features()");
	f.lines.outside.share = 0.4; // not most of it
	text_clear(&t);
	causes_append_headline(&t, &f, host);
	assert_null(strstr(t.data, "train.py:33"));
}

static void tables_with_dense_gradients(void **state)
{
	(void)state;
	struct facts f = computing();
	struct causes c;
	struct verdict v = {0};
	add_samples(&f, CODE_KERNELS, 1);
	f.code.share[CODE_KERNELS] = 0.5;
	f.code.share[CODE_FRAMEWORK] = 0.4;
	f.share[PHASE_OPTIMIZER] = known(0.2);
	f.embeddings = 2e7;
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "use nn.Embedding(sparse=True)");
	assert_non_null(s);
	assert_int_equal(s->kind, GAIN_AT_MOST);
	assert_true(s->gain.value >= 1 / (1 - 0.2) && s->gain.value <= 1 / (1 - 0.4) + 1e-6);
	verdict_done(&v);

	v = (struct verdict){0};
	f.share[PHASE_OPTIMIZER] = known(0.05);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "nn.Embedding"));
	verdict_done(&v);

	v = (struct verdict){0}; // an optimizer that takes most of the time
	f.share[PHASE_FORWARD] = known(0.1);
	f.share[PHASE_BACKWARD] = known(0.2);
	f.share[PHASE_OPTIMIZER] = known(0.7);
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_OPTIMIZER);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(suggests(&v, "use nn.Embedding(sparse=True)"));
	assert_null(suggests(&v, "use foreach=True"));
	verdict_done(&v);
}

// As seen: the adjacency of a graph of 6,000 nodes.
static void a_matrix_of_zeros_goes_into_the_model(void **state)
{
	(void)state;
	struct facts f = computing();
	struct causes c;
	struct verdict v = {0};
	add_samples(&f, CODE_KERNELS, 1);
	f.code.share[CODE_KERNELS] = 0.6;
	f.code.cpus = 1;
	f.matrix_elements = 36e6;
	f.matrix_zeros = 0.998;
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "pass the input matrix");
	assert_non_null(s);
	assert_int_equal(s->kind, GAIN_AT_MOST);
	assert_float_equal(s->gain.value, 2.5, 1e-6);
	assert_non_null(strstr(s->basis, "input of the model, and only 0.2"));
	verdict_done(&v);
	v = (struct verdict){0};
	f.code.share[CODE_KERNELS] = 0.05; // it is not what takes the time
	f.code.share[CODE_FRAMEWORK] = 0.9;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "pass the input matrix"));
	verdict_done(&v);
}

// If another cause is first, only advice against unneeded computing is given.
static void needless_computing_beside_validation(void **state)
{
	(void)state;
	struct facts f = computing();
	struct causes c;
	struct verdict v = {0};
	add_samples(&f, CODE_KERNELS, 1);
	f.code.share[CODE_KERNELS] = 0.6;
	f.code.cpus = 1;
	f.validation_s = 6; // of ten seconds
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_VALIDATION);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "pass the input matrix"));
	assert_null(suggests(&v, "compute with float32"));
	assert_null(suggests(&v, "faster CPUs"));
	verdict_done(&v);

	v = (struct verdict){0};
	f.matrix_elements = 36e6;
	f.matrix_zeros = 0.998;
	f.double_precision = true;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(suggests(&v, "pass the input matrix"));
	assert_non_null(suggests(&v, "compute with float32"));
	assert_null(suggests(&v, "faster CPUs"));
	verdict_done(&v);
}

static void functions_that_watch_modules(void **state)
{
	(void)state;
	struct facts f = computing();
	struct causes c;
	struct verdict v = {0};
	f.callbacks = 12;
	f.callback_at = "train.py:60";
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "run the module hooks (train.py:60)");
	assert_non_null(s);
	assert_says(s->basis, "12 hook functions of the script");
	verdict_done(&v);
}

// Keras with run_eagerly.
static void operations_one_by_one(void **state)
{
	(void)state;
	struct facts f = job(0.01);
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.framework = FRAMEWORK_KERAS;
	f.eager = true;
	f.code = (struct code_facts){.samples = 1000, .cpus = 1};
	f.code.share[CODE_INTERPRETER] = 0.57;
	f.code.share[CODE_FRAMEWORK] = 0.43;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(t.data,
		"host-bound: Keras runs eagerly (run_eagerly), one operation at a time; "
		"the Python interpreter takes");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "compile the step: remove run_eagerly=True");
	verdict_done(&v);

	// As seen: a loop around a tape, in which Adam's operations took most of the time.
	v = (struct verdict){0};
	f.eager = false;
	f.eager_tape = true;
	f.share[PHASE_FORWARD] = known(0.23);
	f.share[PHASE_BACKWARD] = known(0.12);
	f.share[PHASE_OPTIMIZER] = known(0.60);
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	text_done(&t);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(t.data, "host-bound: the step is not compiled (tf.function), one operation");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_says(v.suggestions[0].action, "compile the step: @tf.function on the function");
	verdict_done(&v);
}

static void sequences_that_are_padded(void **state)
{
	(void)state;
	struct facts f = computing();
	struct causes c;
	struct verdict v = {0};
	f.padding = 0.5;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "batch sequences of similar length");
	assert_non_null(s);
	double passes = f.share[PHASE_FORWARD].value + f.share[PHASE_BACKWARD].value;
	double padded = fmin(c.items[0].share.value, passes);
	assert_float_equal(s->gain.value, 1 / (1 - padded * 0.75), 1e-6);
	assert_int_equal(s->kind, GAIN_AT_MOST);
	verdict_done(&v);

	v = (struct verdict){0};
	f.padding = 0.86;
	f.padding_common = 0.75;
	_cleanup_text_ struct text t = {0};
	causes_append_headline(&t, &f, &c.items[0]);
	assert_non_null(strstr(t.data, "; 86 % of the tokens are padding"));
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	s = suggests(&v, "batch sequences of similar length"); // 0.11 of the remaining 0.25
	assert_non_null(s);
	assert_string_equal(s->action, "batch sequences of similar length");
	assert_float_equal(s->gain.value, 1 / (1 - padded * (1 - 0.56 * 0.56)), 1e-6);
	s = suggests(&v, "pad each batch only to its longest sequence, not to a fixed length");
	assert_non_null(s);
	assert_float_equal(s->gain.value, 1 / (1 - padded * 0.9375), 1e-6);
	assert_int_equal(s->kind, GAIN_AT_MOST);
	verdict_done(&v);

	// Of shorter sequences, attention takes less. (As measured: 4.5 times as fast without 79
	// %.)
	v = (struct verdict){0};
	f.padded_length = 128;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	s = suggests(&v, "pad each batch only to its longest sequence, not to a fixed length");
	assert_float_equal(s->gain.value, 1 / (1 - padded * (1 - 0.25 * 1.0625 / 1.25)), 1e-6);
	s = suggests(&v, "batch sequences of similar length"); // now of 32
	assert_float_equal(s->gain.value, 1 / (1 - padded * (1 - 0.56 * 1.035 / 1.0625)), 1e-6);
	f.padded_length = NAN;
	verdict_done(&v);

	// of nearly all tokens: no figure, but before a smaller bound
	v = (struct verdict){0};
	f.padding = 0.995;
	f.padding_common = 0.99;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	s = &v.suggestions[0];
	assert_says(s->action, "pad each batch only to its longest sequence");
	assert_int_equal(s->kind, GAIN_UNKNOWN);
	assert_true(isnan(s->gain.value));
	assert_float_equal(s->hidden_bound, 1 / (1 - padded * (1 - 1e-4)), 1e-6);
	s = suggests(&v, "batch sequences of similar length"); // half of the rest
	assert_float_equal(s->gain.value, 1 / (1 - padded * 0.75), 1e-3);
	assert_true(isnan(s->hidden_bound));
	verdict_done(&v);

	v = (struct verdict){0};
	f.padding = 0.1;
	f.padding_common = NAN;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "batch sequences"));
	verdict_done(&v);
}

static void passes_that_keep_the_graph(void **state)
{
	(void)state;
	struct facts f = computing();
	struct causes c;
	struct verdict v = {0};
	f.backward_passes = 3;
	f.backward_kept = 3; // of the last one, too
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "add the losses of a step");
	assert_non_null(s);
	assert_float_equal(s->gain.value, 1 / (1 - f.share[PHASE_BACKWARD].value * 2 / 3), 1e-6);
	assert_int_equal(s->kind, GAIN_AT_MOST);
	verdict_done(&v);

	v = (struct verdict){0};
	f.backward_kept = 3;
	add_samples(&f, CODE_KERNELS, 1);
	f.code.share[CODE_KERNELS] = 0.88;
	f.code.share[CODE_SYSTEM] = 0.12;
	f.page_faults = 50000; // a smaller cause, whose advice is an estimate
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(suggests(&v, "MALLOC_TRIM_THRESHOLD_"));
	assert_says(v.suggestions[0].action, "add the losses of a step");
	verdict_done(&v);

	v = (struct verdict){0};
	f.backward_kept = 1; // the others have graphs of their own
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "add the losses of a step"));
	verdict_done(&v);
}

// As seen: two workers prepare 44 % of the time, but a batch in 177 is late by 248 ms, while
// garbage is collected.
static void few_batches_are_late(void **state)
{
	(void)state;
	struct facts f = job(0.55);
	struct causes c;
	struct verdict v = {0};
	_cleanup_text_ struct text t = {0};
	f.framework = FRAMEWORK_PYTORCH;
	f.length_s = known(0.044);
	f.data_at_epochs = 0;
	add_workers(&f, 2, 0.9, 0, 0);
	f.workers.busiest = 0.45;
	f.long_waits = (struct long_wait_facts){0.32, 1 / 177.0, 0.3};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_INPUT);
	assert_float_equal(c.items[0].share.value, 0.32, 1e-9);
	causes_append_headline(&t, &f, &c.items[0]);
	assert_says(t.data, "... one batch in 177 is late, by 300 ms on average; waiting for late "
			    "batches takes 32 %");
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_true(suggests(&v, "prefetch_factor=10") && !suggests(&v, "call gc.freeze()"));
	verdict_done(&v);
	v = (struct verdict){0};
	f.prefetch = 8; // late in spite of that
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_true(suggests(&v, "prefetch_factor=16"));
	verdict_done(&v);
	v = (struct verdict){0};

	f.collections.of_preparing = 0.71;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_true(suggests(&v, "call gc.freeze()") && !suggests(&v, "prefetch_factor"));
	verdict_done(&v);

	f.long_waits.each = 0.2; // these are not few
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
}

// One of two ranks, which sleeps in the training loop. As seen: 88 % of the looks, 0.07 CPUs.
static struct facts asleep_rank(void)
{
	struct facts f = job(0);
	f.ranks.world = 2;
	f.main_cpus = f.cpus_used = 0.07;
	add_step_waits(&f, WAIT_OTHER, 0.88, 100, 0.88);
	return f;
}

// A rank that sleeps in the training loop waits for ranks that are in other runs, as far as nothing
// of it runs meanwhile. As seen: 88 % of the looks, 0.07 CPUs.
static void a_rank_that_was_recorded_alone_waits_for_the_others(void **state)
{
	(void)state;
	struct facts f = asleep_rank();
	struct causes c;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_RANKS);
	assert_float_equal(c.items[0].share.value, 0.88, 1e-9);
	assert_int_equal(causes_confidence(&f, &c), CONFIDENCE_MEDIUM);
	f.main_cpus = 0.8; // other threads of it run: it may wait for those
	causes_find(&f, &c);
	assert_float_equal(causes_get(&c, BOTTLENECK_RANKS)->share.value, 0.2, 1e-9);
	f.ranks.world = 1;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_RANKS));
	f.ranks.world = 2;
	f.main_cpus = 0.07;
	f.gpu.used = true; // it may wait for the GPU
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_RANKS));
}

// The same rank, over a link of 100 Mbit/s. As seen: 94 % of the time, at 12 MB/s.
static void a_rank_whose_data_are_on_their_way_waits_for_the_network(void **state)
{
	(void)state;
	struct facts f = asleep_rank();
	struct causes c;
	f.network.busy = 0.7;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_NETWORK);
	assert_float_equal(
		c.items[0].share.value, (0.58 + 0.7) / 2, 1e-9); // both fit not one after the other
	assert_float_equal(causes_get(&c, BOTTLENECK_RANKS)->share.value, 0.24, 1e-9);
	assert_int_equal(causes_confidence(&f, &c), CONFIDENCE_HIGH);
	f.network.busy = 0.1; // the rank that waits for it
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_RANKS);
	assert_float_equal(c.items[0].share.value, 0.83, 1e-9);
	// It may have sent while it computed.
	f.waits.in_step[WAIT_OTHER] = 0.4;
	f.network.busy = 0.4;
	causes_find(&f, &c);
	assert_float_equal(causes_get(&c, BOTTLENECK_NETWORK)->share.value, 0.2, 1e-9);
	assert_float_equal(causes_get(&c, BOTTLENECK_RANKS)->share.value, 0.2, 1e-9);
	assert_int_not_equal(causes_confidence(&f, &c), CONFIDENCE_HIGH);
	f.ranks.world = 1; // no rank is elsewhere: it sends to a server
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_NETWORK));
	f.ranks.world = 2;
	// With a GPU it is not known what a rank waits for, but a link that is always busy is the
	// limit.
	f.gpu.used = true;
	f.network.busy = 0.7;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_NETWORK));
	f.network.busy = 0.9;
	causes_find(&f, &c);
	assert_float_equal(causes_get(&c, BOTTLENECK_NETWORK)->share.value, 0.9, 1e-9);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_NETWORK);
	assert_int_not_equal(causes_confidence(&f, &c), CONFIDENCE_HIGH); // no wait was seen
	f.ranks.world = 0; // no ranks: logs, a dataset
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_NETWORK));
}

// As seen: 290 us an iteration of JAX, 198 between compiled calls; the script's generator takes 30.
static void a_short_step_of_jax_waits_for_no_data(void **state)
{
	(void)state;
	struct facts f = job(0.68);
	struct causes c;
	f.length_s = (struct estimate){290e-6, 288e-6, 292e-6};
	f.framework = FRAMEWORK_JAX;
	add_samples(&f, CODE_INTERPRETER, 1);
	facts_doubt_data(&f);
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
	assert_null(causes_get(&c, BOTTLENECK_INPUT));
	f = job(0.68);
	f.framework = FRAMEWORK_JAX; // of 10 ms: a batch that is made by the script
	f.main_cpus = f.cpus_used = 1;
	facts_doubt_data(&f);
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_INPUT);
}

// As seen: the AUC of all predictions of an epoch so far, in each step.
static void metrics_that_sort(void **state)
{
	(void)state;
	struct facts f = job(0.01);
	struct causes c;
	struct verdict v = {0};
	f.framework = FRAMEWORK_PYTORCH;
	add_samples(&f, CODE_FRAMEWORK, 0.6);
	f.code.share[CODE_KERNELS] = 0.3;
	f.functions[0] = (struct code_top){"__introsort_loop", CODE_FRAMEWORK, f.code.samples / 4};
	f.functions[1] = (struct code_top){"sort_kernel", CODE_FRAMEWORK, f.code.samples / 20};
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *s = suggests(&v, "sort less in each step");
	assert_non_null(s);
	assert_int_equal(s->kind, GAIN_UNKNOWN);
	verdict_done(&v);
	v = (struct verdict){0};
	f.lines.looks = 140;
	f.lines.forward = (struct line_place){
		.share = 0.65, .place = "train.py:66 RiskModel.training_step()"};
	f.share[PHASE_FORWARD] = known(0.64);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	s = suggests(&v, "sort less in each step");
	assert_non_null(s);
	assert_int_equal(s->kind, GAIN_AT_MOST);
	assert_float_equal(s->gain.value, 1 / (1 - 0.65 * 0.64), 1e-6);
	verdict_done(&v);
	v = (struct verdict){0};
	f.functions[0].samples = f.code.samples / 20;
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(suggests(&v, "sort less in each step"));
	verdict_done(&v);
}

// As seen: the script adds up losses, and waits there for the step that JAX has only begun.
static void waits_of_jax_for_its_own_step_are_computing(void **state)
{
	(void)state;
	struct facts f = job(0.55);
	struct causes c;
	f.framework = FRAMEWORK_JAX;
	f.main_cpus = f.cpus_used = 1.9;
	f.threads.groups[THREADS_POOL].cpus = f.threads.others_cpus = 1.84;
	f.waits.in_data[WAIT_OTHER] = 0.54;
	facts_doubt_waits(&f);
	assert_float_equal(f.share[PHASE_DATA].value, 0.01, 1e-9);
	struct text shares = {0};
	causes_append_shares(&shares, &f);
	assert_non_null(strstr(shares.data, "step includes 54 % that is marked as data"));
	text_done(&shares);
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	f = job(0.55);
	f.framework = FRAMEWORK_JAX; // a thread of the script prepares
	f.main_cpus = f.cpus_used = 1.9;
	f.threads.groups[THREADS_POOL].cpus = 0.6;
	f.threads.others_cpus = 1.6;
	f.waits.in_data[WAIT_OTHER] = 0.54;
	facts_doubt_waits(&f);
	assert_float_equal(f.share[PHASE_DATA].value, 0.55, 1e-9);
}

// As seen: of three epochs one began with 2.4 s of reading, 37 % of the time, 0 to 75.
static void one_slow_start_of_an_epoch_is_not_first(void **state)
{
	(void)state;
	struct facts f = job(0.01);
	struct causes c;
	f.share[PHASE_OTHER] = (struct estimate){0.37, 0, 0.75};
	f.share[PHASE_FORWARD] = (struct estimate){0.62, 0.25, 1};
	f.share[PHASE_BACKWARD] = f.share[PHASE_OPTIMIZER] = (struct estimate){NAN, NAN, NAN};
	f.other_at_epochs = 0.36;
	f.main_cpus = 0.7;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_non_null(causes_get(&c, BOTTLENECK_HOST));
	_cleanup_text_ struct text second = {0};
	causes_append_second(&second, &f, &c); // nor is it shown to be there
	assert_int_equal(second.length, 0);
	f.share[PHASE_OTHER].low = 0.33; // each of them begins so
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_HOST);
}

static void what_can_be_taken_away_is_named_beside_computing(void **state)
{
	(void)state;
	struct facts f = job(0.01);
	struct causes c;
	add_looks(&f.waits, WAIT_CHILD, 0.16);
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	_cleanup_text_ struct text second = {0};
	causes_append_second(&second, &f, &c);
	assert_string_equal(second.data, "; next cause: child processes, 16 %");
	add_looks(&f.waits, WAIT_CHILD, 0.07);
	causes_find(&f, &c);
	_cleanup_text_ struct text little = {0};
	causes_append_second(&little, &f, &c);
	assert_int_equal(little.length, 0);
}

// The training thread prepares batches itself, and its pipeline's threads, or XLA's, compute.
static void waits_for_its_own_threads_are_no_blocked_input(void **state)
{
	(void)state;
	struct facts f = job(0.3);
	struct causes c;
	f.main_cpus = f.cpus_used = 1.8;
	add_samples(&f, CODE_KERNELS, 0.1);
	add_looks(&f.waits, WAIT_OTHER, 0.9);
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_INPUT_BLOCKED));
	add_looks(&f.waits, WAIT_SLEEP, 0.9);
	causes_find(&f, &c);
	assert_non_null(causes_get(&c, BOTTLENECK_INPUT_SLEEP));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_cause_is_found),
		cmocka_unit_test(who_computes_uses_a_cpu),
		cmocka_unit_test(a_wait_in_backward_is_no_computing),
		cmocka_unit_test(why_a_rank_is_slower),
		cmocka_unit_test(the_output_of_processes),
		cmocka_unit_test(libraries_that_a_step_calls),
		cmocka_unit_test(steps_of_short_operations),
		cmocka_unit_test(short_operations_outside_phases),
		cmocka_unit_test(numpy_outside_phases),
		cmocka_unit_test(operations_that_are_not_short),
		cmocka_unit_test(work_that_spans_name),
		cmocka_unit_test(shapes_that_are_compiled_once_each),
		cmocka_unit_test(operations_that_are_not_compiled),
		cmocka_unit_test(iterations_that_become_longer),
		cmocka_unit_test(arithmetic_outside_phases_without_a_cpu),
		cmocka_unit_test(a_thread_that_waits_itself),
		cmocka_unit_test(objects_that_are_handed_over),
		cmocka_unit_test(collections_that_hooks_timed),
		cmocka_unit_test(collections_while_batches_are_prepared),
		cmocka_unit_test(few_batches_are_late),
		cmocka_unit_test(a_lock_that_a_computing_thread_holds),
		cmocka_unit_test(short_waits_for_fsync),
		cmocka_unit_test(a_function_outside_of_phases),
		cmocka_unit_test(gradients_exchanged_in_each_pass),
		cmocka_unit_test(gradients_that_other_threads_send),
		cmocka_unit_test(forward_passes_done_again),
		cmocka_unit_test(a_pipeline_that_runs_python),
		cmocka_unit_test(a_line_with_most_of_forward),
		cmocka_unit_test(settings_for_debugging),
		cmocka_unit_test(workers_that_start_for_each_validation),
		cmocka_unit_test(work_between_epochs),
		cmocka_unit_test(a_model_that_is_called_for_single_samples),
		cmocka_unit_test(forward_without_gradients),
		cmocka_unit_test(computing_with_doubles),
		cmocka_unit_test(computing_outside_the_model),
		cmocka_unit_test(python_in_a_function_of_the_loss),
		cmocka_unit_test(malloc_thresholds_of_the_environment),
		cmocka_unit_test(lines_of_causes),
		cmocka_unit_test(gradients_that_no_optimizer_uses),
		cmocka_unit_test(gradients_that_are_zeroed),
		cmocka_unit_test(denormal_numbers),
		cmocka_unit_test(passes_that_keep_the_graph),
		cmocka_unit_test(a_matrix_of_zeros_goes_into_the_model),
		cmocka_unit_test(needless_computing_beside_validation),
		cmocka_unit_test(functions_that_watch_modules),
		cmocka_unit_test(sequences_that_are_padded),
		cmocka_unit_test(operations_one_by_one),
		cmocka_unit_test(tables_with_dense_gradients),
		cmocka_unit_test(a_rank_that_was_recorded_alone_waits_for_the_others),
		cmocka_unit_test(a_rank_whose_data_are_on_their_way_waits_for_the_network),
		cmocka_unit_test(a_helping_thread_hides_no_queue),
		cmocka_unit_test(sentences_and_advice_fit),
		cmocka_unit_test(a_thread_that_computes_waits_for_no_unknown_gpu),
		cmocka_unit_test(a_full_link_takes_what_the_gpu_leaves),
		cmocka_unit_test(what_is_not_known_is_not_sure),
		cmocka_unit_test(both_parts_of_a_wait_are_told),
		cmocka_unit_test(reads_alone_do_not_say_who_waits),
		cmocka_unit_test(preparation_counts_its_own_queue),
		cmocka_unit_test(what_is_handed_over_was_prepared),
		cmocka_unit_test(others_keep_threads_of_a_pool_from_cpus),
		cmocka_unit_test(sharing_is_not_spinning),
		cmocka_unit_test(a_small_batch_is_calls_too),
		cmocka_unit_test(a_busy_gpu_bounds_what_the_host_costs),
		cmocka_unit_test(a_short_step_of_jax_waits_for_no_data),
		cmocka_unit_test(metrics_that_sort),
		cmocka_unit_test(waits_of_jax_for_its_own_step_are_computing),
		cmocka_unit_test(one_slow_start_of_an_epoch_is_not_first),
		cmocka_unit_test(what_can_be_taken_away_is_named_beside_computing),
		cmocka_unit_test(waits_for_its_own_threads_are_no_blocked_input),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
