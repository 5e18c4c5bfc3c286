// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What is advised keeps within CPUs, memory and /dev/shm, and is said once.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "verdict/advice.h"
#include "verdict/causes.h"
#include "job_facts.h"
#include "messages.h"
#include "verdict/verdict.h"

// rate(W, C) = min(1 / computing, W / prepare, C / (c_main + c_prepare))
static void workers_are_advised_by_the_model(void **state)
{
	(void)state;
	struct facts f = input_workers();
	assert_int_equal(advice_workers(&f), 3); // 1 / 0.4 = 2.5
	assert_true(fabs(advice_length_with(&f, 2, 4) - 0.5) < 1e-9);
	assert_true(fabs(advice_length_with(&f, 3, 4) - 0.4) < 1e-9);
	f.cpus = 2; // there is no more than 2 / 1.4 of it
	assert_true(fabs(advice_length_with(&f, 3, 2) - 0.7) < 1e-9);
	assert_int_equal(advice_workers(&f), 2);
	f.cpus = 1;
	assert_int_equal(advice_workers(&f), 1);
	f = input_alone();
	f.length_s = (struct estimate){1, 0.99, 1.01}; // beside which handing over is nothing
	assert_int_equal(advice_workers(&f), 1); // while it computes
	f.length_s = (struct estimate){0.010, 0.0099, 0.0101}; // of 5 ms, 2 to send a batch
	assert_int_equal(advice_workers(&f), 2);
	assert_true(fabs(advice_length_with(&f, 1, 4) - 0.7) < 1e-9);
	f.epoch_iterations = 30; // 0.3 s, and workers to start
	assert_true(fabs(advice_length_with(&f, 1, 4) - 0.9) < 1e-9);
	f.epoch_iterations = NAN;
	f.cpus = 1;
	assert_true(advice_length_with(&f, 1, 1) >= 1 - 1e-9);
	f.main_cpus = NAN; // then nothing is known of more workers
	assert_true(isnan(advice_length_with(&f, 1, 4)));
	assert_int_equal(advice_workers(&f), 0);
}

static void workers_keep_within_memory(void **state)
{
	(void)state;
	struct facts f = input_workers();
	f.memory.peak_bytes = 4e9; // 2 GB each
	f.memory.limit_bytes = 7e9;
	assert_int_equal(advice_workers(&f), 2);
	f.memory.limit_bytes = 5e9;
	assert_int_equal(advice_workers(&f), 1);
	f.memory.limit_bytes = 50e9;
	f.memory.shared_bytes = 30e6;
	f.memory.shared_limit_bytes = 64e6; // a container's /dev/shm
	assert_int_equal(advice_workers(&f), 1);
}

static void assert_advised(const char *loader_at, const char *library, const char *action)
{
	struct facts f = input_workers();
	struct causes c;
	struct verdict v = {0};
	f.loader_at = loader_at;
	f.loader_words = setting_words_of(library);
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_true(v.n_suggestions >= 2);
	bool named = false;
	for (size_t i = 0; i < v.n_suggestions; i++) {
		named |= strcmp(v.suggestions[i].action, action) == 0;
	}
	assert_true(named);
	verdict_done(&v);
}

static void the_same_is_advised_once(void **state)
{
	(void)state;
	struct facts f = input_workers();
	const struct estimate half = {0.5, 0.45, 0.55};
	const struct causes both = {
		.n = 2, .items = {{BOTTLENECK_INPUT, half, 0.5}, {BOTTLENECK_STORAGE, half, 0.5}}};
	struct verdict v = {0};
	assert_int_equal(causes_advise(&f, &both, &v), 0);
	unsigned workers = 0;
	for (size_t i = 0; i < v.n_suggestions; i++) {
		workers += strstr(v.suggestions[i].action, "loader workers") != NULL;
	}
	assert_int_equal(workers, 1);
	verdict_done(&v);
}

static void advice_names_the_line(void **state)
{
	(void)state;
	assert_advised("train.py:42", "torch", "train.py:42  num_workers 1 -> 3");
	assert_advised("train.py:42", "unknown", "train.py:42  num_workers 1 -> 3");
	assert_advised("train.py:42", "transformers", "train.py:42  dataloader_num_workers 1 -> 3");
	assert_advised(NULL, NULL, "loader workers 1 -> 3"); // not everybody's are PyTorch's
}

// What is advised first, and what that rests on.
static void assert_first(const struct facts *f, const char *action, const char *basis)
{
	struct causes c;
	struct verdict v = {0};
	causes_find(f, &c);
	assert_int_equal(causes_advise(f, &c, &v), 0);
	assert_true(v.n_suggestions > 0);
	assert_says(v.suggestions[0].action, action);
	assert_says(v.suggestions[0].basis, basis);
	verdict_done(&v);
}

// A job that computes, on two CPUs.
static struct facts computing(double cpus_used)
{
	struct facts f = job(0.01);
	f.cpus = f.host_cpus = 2;
	f.main_cpus = f.cpus_used = cpus_used;
	return f;
}

// As measured (a linear autoencoder on two CPUs, 28.8 steps a second; with one worker 29.2, with
// one worker and one thread 35.0): the other thread spins.
static struct facts spins_beside_input(void)
{
	struct facts f = job(0.36);
	f.length_s = (struct estimate){0.036, 0.0356, 0.0364};
	f.cpus = f.host_cpus = 2;
	f.main_cpus = f.cpus_used = 1.8;
	f.others_cpus = f.host_others_cpus = 0.1;
	f.main_threads = 2;
	f.loader_at = "train.py:42";
	add_samples(&f, CODE_KERNELS, 1);
	f.code.share[CODE_KERNELS] = 0.9;
	f.code.share[CODE_SPINNING] = 0.1;
	f.code_threads = f.code;
	f.code_threads.cpus = 0.8;
	f.code_threads.share[CODE_KERNELS] = 0.4;
	f.code_threads.share[CODE_SPINNING] = 0.6;
	return f;
}

// The suggestion with a text in its action; NULL.
static const struct suggestion *find_action(const struct verdict *v, const char *text)
{
	for (size_t i = 0; i < v->n_suggestions; i++) {
		if (strstr(v->suggestions[i].action, text)) {
			return &v->suggestions[i];
		}
	}
	return NULL;
}

static void workers_come_with_fewer_threads_that_spin(void **state)
{
	(void)state;
	struct facts f = spins_beside_input();
	struct causes c;
	struct verdict v = {0};
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *both = find_action(
		&v, "num_workers 0 -> 1 with OMP_NUM_THREADS=1");
	assert_non_null(both);
	assert_int_equal(both->settings.n, 2);
	assert_true(both->gain.value > 1.1 && both->gain.value < 1.25); // 35.0 / 28.8 = 1.22
	verdict_done(&v);
	f.omp_threads = 1; // it has but one
	v = (struct verdict){0};
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(find_action(&v, "with OMP_NUM_THREADS"));
	verdict_done(&v);
	f = job(0.6); // as measured: 416 images/s, and 1.5 times as many with two workers
	f.length_s = (struct estimate){0.077, 0.076, 0.078};
	f.cpus = f.host_cpus = 2;
	f.main_cpus = 1.0;
	f.main_queued = 0.07;
	f.main_threads = 2;
	f.loader_at = "train.py:42";
	add_workers(&f, 1, 0.9, 0.09, 0);
	f.others_cpus = f.host_others_cpus = 0;
	add_samples(&f, CODE_KERNELS, 0.35);
	f.code_threads = f.code;
	f.code_threads.cpus = 0.65;
	f.code_threads.share[CODE_KERNELS] = 0.04;
	f.code_threads.share[CODE_SPINNING] = 0.96;
	causes_find(&f, &c);
	v = (struct verdict){0};
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	both = find_action(&v, "num_workers 1 -> 2 with OMP_NUM_THREADS=1");
	assert_non_null(both);
	assert_true(both->gain.value > 1.4 && both->gain.value < 1.7);
	verdict_done(&v);
	f = spins_beside_input();
	f.code_threads.samples = f.code.samples = 0; // nobody looked
	v = (struct verdict){0};
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_null(find_action(&v, "with OMP_NUM_THREADS"));
	verdict_done(&v);
}

// As measured (a small CNN, glibc): 56,000 faults a second, 13 % of the thread's time in the
// kernel.
static void memory_that_is_given_back_is_kept(void **state)
{
	(void)state;
	struct facts f = computing(1);
	struct causes c;
	struct verdict v = {0};
	f.page_faults = 56000;
	add_samples(&f, CODE_KERNELS, 1);
	f.code.share[CODE_KERNELS] = 0.87;
	f.code.share[CODE_SYSTEM] = 0.13;
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_ALLOCATION, 0.13);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	const struct suggestion *keep = find_action(&v, "MALLOC_TRIM_THRESHOLD_=");
	assert_non_null(keep);
	assert_int_equal(keep->settings.n, 2);
	assert_true(fabs(keep->gain.value - 1 / 0.87) < 0.01);
	verdict_done(&v);
	f.page_faults = 1000; // then the kernel does something else
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_ALLOCATION));
	f.page_faults = 56000; // memory that it keeps
	f.growth.leak = true;
	f.growth.bytes_per_s = 55000 * 4096.0;
	causes_find(&f, &c);
	assert_null(causes_get(&c, BOTTLENECK_ALLOCATION));
}

static void threads_are_advised_where_one_computes(void **state)
{
	(void)state;
	struct facts f = computing(0.95);
	f.main_threads = 2; // one of them feeds a loader's worker
	f.one_thread = true;
	assert_first(&f, "... OMP_NUM_THREADS=2 ... GPU", "... 1.0 ... 2");
	f.others_cpus = f.host_others_cpus = 0.9; // then none is idle
	assert_first(&f, "... GPU", "... 0.2 ... 2");
	f.others_cpus = f.host_others_cpus =
		0.1; // as seen: `make demo`, whose two threads were told to be two
	f.one_thread = false;
	f.main_cpus = f.cpus_used = 1.2;
	assert_first(&f, "... GPU", "... 2 ... 1.2 ... 2");
	f.main_cpus = f.cpus_used = 1.8;
	assert_first(&f, "... GPU", "");
}

// The CPUs that are idle are for all ranks, and so are those in use.
static void ranks_share_what_is_idle(void **state)
{
	(void)state;
	struct facts f = job(0.01);
	f.cpus = f.host_cpus = 16;
	f.main_threads = 1;
	f.main_cpus = 0.99;
	f.cpus_used = 3.96;
	f.others_cpus = f.host_others_cpus = 0;
	f.ranks.n = 4;
	f.one_thread = true;
	assert_first(&f, "... OMP_NUM_THREADS=4 ... GPU", "... 12 ... 16");
	f.cpus = f.host_cpus = 6; // two each would be too many
	assert_first(&f, "... GPU", "... 2.0 ... 6");
	f.cpus = f.host_cpus = 16;
	f.one_thread = false;
	f.main_threads = 4;
	f.main_cpus = 3.5;
	f.cpus_used = 14;
	assert_first(&f, "... GPU", "");
	f.main_cpus = 2.475;
	f.cpus_used = 9.9;
	assert_first(&f, "... GPU", "... 4 ... 10 ... 16");
}

// torch.set_num_threads(6), whatever OMP_NUM_THREADS=1 in the environment said before.
static void who_uses_six_cpus_has_more_than_a_thread(void **state)
{
	(void)state;
	struct facts f = job(0.01);
	f.main_threads = 8;
	f.main_cpus = 6;
	assert_false(facts_one_thread(&f, 0, true));
	f.main_cpus = 1.02;
	assert_true(facts_one_thread(&f, 0, true));
	assert_false(facts_one_thread(&f, 0, false));
	assert_true(facts_one_thread(&f, 7, false)); // the others feed workers
	f.main_cpus = NAN;
	assert_true(facts_one_thread(&f, 0, true));
}

static void an_optimised_blas_is_advised_where_the_reference_multiplies(void **state)
{
	(void)state;
	struct facts f = computing(1.0);
	f.reference_blas = "/usr/lib/blas/libblas.so.3.11.0";
	assert_first(&f, "... BLAS ... libopenblas0-openmp",
		"... BLAS ... /usr/lib/blas/libblas.so.3.11.0");
	f.reference_blas = "\x1b[31m";
	assert_first(&f, "... BLAS ... libopenblas0-openmp", "... BLAS ... \\x1b[31m");
}

// While an epoch begins nobody computes: that says nothing of how many CPUs are used else.
static void cpus_are_counted_while_it_computes(void **state)
{
	(void)state;
	struct facts f = computing(1.2);
	f.main_threads = 15;
	f.share[PHASE_OTHER] = known(0.3);
	f.other_at_epochs = 0.29;
	struct causes c;
	struct verdict v = {0};
	causes_find(&f, &c);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	bool more = false;
	for (size_t i = 0; i < v.n_suggestions; i++) {
		more |= strcmp(v.suggestions[i].action, "use more or faster CPUs, or a GPU") == 0;
	}
	assert_true(more);
	assert_string_equal(v.suggestions[0].action, "use one input pipeline for all epochs");
	assert_true(fabs(v.suggestions[0].gain.value - 1 / (1 - 0.29)) < 1e-9);
	verdict_done(&v);
}

static void a_pipeline_has_no_workers(void **state)
{
	(void)state;
	struct facts f = input_alone();
	f.pipeline = true;
	assert_first(&f, "... prefetch ... tf.data ... prefetch ... num_parallel_calls",
		"... 2.9 ... 4");
	f.stages = (struct pipeline_facts){.known = true, .parallel = true};
	assert_first(&f, "... with more threads (Dataset.prefetch())", "");
	f.stages.parallel = false;
	assert_first(&f, "... (Dataset.prefetch(), map(num_parallel_calls=...))", "");
	f.stages = (struct pipeline_facts){
		.known = true, .ahead = true, .parallel = true, .each = true};
	assert_first(&f, "... before the costly map", "... one sample at a time");
	f.stages.each = false; // it has all of this
	assert_first(&f, "... preprocessing", "");
	f.stages.known = false;
	f.data_at_epochs = 0.45;
	assert_first(&f, "... dataset.repeat() ... steps_per_epoch", "");
	// As measured (decoded images shuffled behind a cache of files, on two CPUs): its threads
	// compute while an epoch starts. What they use may also be of the steps, if more CPUs are
	// left.
	f.threads.others_cpus = 0.85;
	f.cpus = 2;
	f.others_cpus = 1;
	assert_first(&f, "... Dataset.cache() after that map",
		"... at least 0.7 CPUs while an epoch starts");
	f.others_cpus = 0;
	assert_first(&f, "... dataset.repeat() ... steps_per_epoch", "");
	f = input_workers();
	f.data_at_epochs = 0.5;
	f.workers.restart = true;
	f.loader_at = "train.py:42";
	assert_first(&f, "train.py:42  persistent_workers=True", "");
}

// As seen: spawned workers, for which training waits 14 s in 12 epochs, and validation 17 s.
static void workers_that_start_for_each_epoch_and_validation(void **state)
{
	(void)state;
	struct facts f = input_workers();
	struct causes c;
	struct verdict v = {0};
	f.data_at_epochs = 0.5;
	f.workers.restart = true;
	f.loader_at = "train.py:42";
	f.validation_s = 6;
	f.validation_starting_s = 5;
	f.between_s = 0.5;
	causes_find(&f, &c);
	assert_int_equal(c.items[0].bottleneck, BOTTLENECK_INPUT);
	const struct cause *validation = causes_get(&c, BOTTLENECK_VALIDATION);
	assert_non_null(validation);
	assert_float_equal(validation->share.value, 1 / f.training_s, 1e-9);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_non_null(strstr(v.suggestions[0].action, "persistent_workers=True"));
	assert_non_null(strstr(v.suggestions[0].basis, "and of each validation"));
	double left_s = f.training_s - 0.5 * (f.training_s - 6.5) - 5 - 0.5;
	assert_float_equal(v.suggestions[0].gain.value, f.training_s / left_s, 1e-6);
	verdict_done(&v);

	// If those of training persist, it is validation.
	v = (struct verdict){0};
	f.workers.restart = false;
	causes_find(&f, &c);
	assert_share(&c, BOTTLENECK_VALIDATION, 6 / f.training_s);
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	bool advised = false;
	for (size_t i = 0; i < v.n_suggestions; i++) {
		advised |= strstr(v.suggestions[i].action, "persistent_workers=True for the loader "
							   "of validation") != NULL;
	}
	assert_true(advised);
	verdict_done(&v);
}

static void no_more_cpus_than_there_are(void **state)
{
	(void)state;
	struct facts f = job(0);
	f.cpus = f.host_cpus = 2;
	f.main_cpus = 1.6;
	f.cpus_used = 1.75;
	f.main_queued = 0.15;
	f.others_cpus = f.host_others_cpus = 0.2;
	struct verdict v = {0};
	const struct estimate part = {0.1, NAN, NAN};
	const struct causes c = {.n = 1, .items = {{BOTTLENECK_CONTENTION, part, 0.1}}};
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_string_equal(v.suggestions[0].action, "use a dedicated machine, or dedicated CPUs");
	verdict_done(&v);
	f.others_cpus = f.host_others_cpus = 0;
	v = (struct verdict){0};
	assert_int_equal(causes_advise(&f, &c, &v), 0);
	assert_string_equal(v.suggestions[0].action, "use more CPUs, up to 3");
	verdict_done(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_are_advised_by_the_model),
		cmocka_unit_test(workers_keep_within_memory),
		cmocka_unit_test(the_same_is_advised_once),
		cmocka_unit_test(advice_names_the_line),
		cmocka_unit_test(workers_come_with_fewer_threads_that_spin),
		cmocka_unit_test(memory_that_is_given_back_is_kept),
		cmocka_unit_test(threads_are_advised_where_one_computes),
		cmocka_unit_test(ranks_share_what_is_idle),
		cmocka_unit_test(who_uses_six_cpus_has_more_than_a_thread),
		cmocka_unit_test(an_optimised_blas_is_advised_where_the_reference_multiplies),
		cmocka_unit_test(cpus_are_counted_while_it_computes),
		cmocka_unit_test(a_pipeline_has_no_workers),
		cmocka_unit_test(workers_that_start_for_each_epoch_and_validation),
		cmocka_unit_test(no_more_cpus_than_there_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
