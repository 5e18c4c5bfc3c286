// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Throughput by batch size, workers, CPUs and storage: parameters come back, bounds bind.

#include "probe/rate_model.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// A job whose step takes 10 ms and 2 ms a sample, and whose samples take 5 ms of CPU to prepare.
static struct observation seen_with(double batch, int64_t workers)
{
	double compute = 0.010 + 0.002 * batch, prepare = 0.005 * batch;
	double wait = workers == 0 ? prepare : fmax(0, prepare / (double)workers - compute);
	return (struct observation){
		.batch_size = (int64_t)batch,
		.loader_batch_size = (int64_t)batch,
		.workers = workers,
		.cpus = 8,
		.iteration = {compute + wait, compute + wait, compute + wait},
		.iterations = 50,
		.compute = compute,
		.threads = 1,
		.wait = wait,
		.main_cpu = compute + (workers == 0 ? prepare : 0),
		.prepare_cpu = workers == 0 ? NAN : 0.005,
		.asked = 100000,
		.stored = 0,
		.storage_rate = NAN,
	};
}

static double rate_of(const struct rate_model *m, double batch, double workers, double cpus)
{
	struct rate_config at = rate_config_of(m, batch, workers);
	at.cpus = cpus;
	return rate_model_predict(m, &at).rate.value;
}

static void assert_close(double a, double b, double relative)
{
	if (!(fabs(a / b - 1) <= relative)) {
		fail_msg("%g is not %g within %g", a, b, relative);
	}
}

static void test_parameters_come_back(void **state)
{
	(void)state;
	const struct observation seen[] = {seen_with(16, 0), seen_with(64, 0)};
	struct rate_model m;
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	assert_close(m.a, 0.010, 1e-6);
	assert_close(m.b, 0.002, 1e-6);
	assert_close(m.p, 0.005, 1e-6);
	assert_close(m.c0, 0.010, 1e-6);
	assert_close(m.c1, 0.002, 1e-6);
	assert_true(m.prepare_known && !m.one_batch_size);
	// Without workers one after the other.
	assert_close(rate_of(&m, 32, 0, 8), 32 / (0.074 + 0.160), 1e-3);
}

// A process that computes alone is faster by 12 %, as measured (a small CNN, 16 images).
static void test_computing_without_workers_is_told_apart(void **state)
{
	(void)state;
	struct observation seen[] = {seen_with(16, 1), seen_with(64, 1), seen_with(16, 0)};
	struct rate_model m;
	for (size_t i = 0; i < 3; i++) {
		struct observation *o = &seen[i];
		o->prepare_cpu = 0.0001; // light: the loader is ahead
		o->compute = (0.010 + 0.002 * (double)o->batch_size) * (i == 2 ? 0.88 : 1);
		o->wait = i == 2 ? 0.0001 * (double)o->batch_size : 0;
		double s = o->compute + o->wait;
		o->iteration = (struct estimate){s, 0.998 * s, 1.002 * s};
	}
	assert_int_equal(rate_model_fit(seen, 3, &m, NULL), 0);
	assert_close(m.a, 0.010, 1e-6); // the line of those with workers
	assert_close(m.b, 0.002, 1e-6);
	assert_close(m.alone, 0.88, 0.005);
	assert_close(rate_of(&m, 64, 0, 8), 64 / (0.88 * 0.138 + 0.0064), 0.006);
	assert_close(rate_of(&m, 64, 1, 8), 64 / 0.138, 0.005);
	// One with workers and one without, of two batch sizes: whether the batch size or the
	// workers make the difference is not known.
	assert_int_equal(rate_model_fit(&seen[1], 2, &m, NULL), 0);
	assert_close(m.alone, 1, 1e-9);
	// Of the same batch size: it is.
	seen[1] = seen[0];
	assert_int_equal(rate_model_fit(&seen[1], 2, &m, NULL), 0);
	assert_close(m.alone, 0.88, 0.005);
}

// As measured (a small CNN): 1031, 1145 and 1085 samples a second with 16, 64 and 384.
static void test_the_line_is_corrected_where_runs_deviate(void **state)
{
	(void)state;
	const double batches[] = {16, 64, 384}, rates[] = {1031, 1145, 1085};
	struct observation seen[3];
	struct rate_model m;
	for (size_t i = 0; i < 3; i++) {
		double s = batches[i] / rates[i];
		seen[i] = seen_with(batches[i], 1);
		seen[i].iteration = (struct estimate){s, 0.995 * s, 1.005 * s};
		seen[i].compute = seen[i].main_cpu = s;
		seen[i].wait = 0;
		seen[i].prepare_cpu = 0.0001;
	}
	assert_int_equal(rate_model_fit(seen, 3, &m, NULL), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_close(rate_of(&m, batches[i], 1, 8), rates[i], 0.015);
	}
	double between = rate_of(&m, 192, 1, 8);
	assert_true(between > 1085 && between < 1145);
	assert_true(rate_of(&m, 96, 1, 8) > between);
	// Runs that are not sure correct less.
	seen[1].iteration.low *= 0.7;
	seen[1].iteration.high *= 1.3;
	assert_int_equal(rate_model_fit(seen, 3, &m, NULL), 0);
	assert_true(rate_of(&m, 64, 1, 8) < 1130);
	assert_close(rate_of(&m, 384, 1, 8), 1085, 0.015);
	seen[1].iteration.low = seen[1].iteration.high = NAN; // three iterations, for example
	double unsure;
	assert_int_equal(rate_model_fit(seen, 3, &m, NULL), 0);
	unsure = rate_of(&m, 64, 1, 8);
	assert_true(unsure < 1130);
	// Between what ran, the interval is that of the line alone.
	struct rate_config at = rate_config_of(&m, 128, 1);
	assert_true(m.bent >= m.residual);
	struct estimate rate = rate_model_predict(&m, &at).rate;
	assert_true(rate.high / rate.value - 1 >= m.bent - 1e-9);
}

// Two workers and the training process share two CPUs, and need 9 % longer than their CPU time
// says.
static void test_sharing_cpus_costs_what_was_seen(void **state)
{
	(void)state;
	struct observation seen[] = {seen_with(16, 1), seen_with(64, 1), seen_with(64, 2)};
	struct rate_model m;
	for (size_t i = 0; i < 3; i++) {
		seen[i].cpus = 2;
	}
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	double promised = rate_of(&m, 64, 2, 2), s = 64 / promised * 1.09;
	assert_close(promised, 64 / 0.229, 0.05);
	seen[2].iteration = (struct estimate){s, s, s};
	seen[2].wait = s - seen[2].compute;
	assert_int_equal(rate_model_fit(seen, 3, &m, NULL), 0);
	assert_close(m.cpu_loss, 1.09, 0.005);
	assert_close(rate_of(&m, 64, 2, 2), promised / 1.09, 0.01);
	assert_close(rate_of(&m, 64, 1, 2), 200, 0.03); // not where one worker is too slow
}

// Four ranks share eight CPUs: each has two for 0.138 s of computing and 0.320 s of preparing.
static void test_ranks_share_the_cpus(void **state)
{
	(void)state;
	struct observation seen[] = {seen_with(16, 0), seen_with(64, 0)};
	struct rate_model m;
	seen[0].ranks = seen[1].ranks = 4;
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	assert_close(rate_of(&m, 64, 0, 8), 64 / 0.458, 1e-3);
	assert_close(rate_of(&m, 64, 6, 8), 64 / 0.229, 0.02);
	assert_close(rate_of(&m, 64, 6, 32), 64 / 0.138, 0.02);
	struct rate_config at = rate_config_of(&m, 64, 6);
	assert_int_equal(rate_model_predict(&m, &at).bound, RATE_CPU);
}

static void test_workers_hide_the_preparation(void **state)
{
	(void)state;
	const struct observation seen[] = {seen_with(16, 0), seen_with(64, 0)};
	struct rate_model m;
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	// One worker prepares 200 samples a second; six are ahead of the training process.
	assert_close(rate_of(&m, 64, 1, 8), 200, 0.02);
	assert_close(rate_of(&m, 64, 6, 8), 64 / 0.138, 0.02);
	struct rate_config at = rate_config_of(&m, 64, 1);
	assert_int_equal(rate_model_predict(&m, &at).bound, RATE_PREPARE);
	at.workers = 8;
	assert_int_equal(rate_model_predict(&m, &at).bound, RATE_COMPUTE);
}

static void test_a_small_batch_costs_what_sending_costs(void **state)
{
	(void)state;
	struct observation seen[] = {seen_with(2, 0), seen_with(16, 0), seen_with(2, 1)};
	struct rate_model m;
	// A batch of two samples takes the worker 10 ms, and 90 ms to send, 20 ms of it CPU time.
	seen[2].iteration = (struct estimate){0.100, 0.100, 0.100};
	seen[2].wait = 0.100 - seen[2].compute;
	seen[2].prepare_cpu = (0.010 + 0.020) / 2;
	assert_int_equal(rate_model_fit(seen, 3, &m, NULL), 0);
	assert_close(m.p, 0.005, 1e-6);
	assert_close(m.send, 0.090, 1e-6);
	assert_close(m.send_cpu, 0.020, 1e-6);
	assert_close(rate_of(&m, 2, 1, 8), 2 / 0.100, 0.02);
	assert_close(rate_of(&m, 200, 1, 8), 200 / 1.090, 0.02);
	assert_true(rate_of(&m, 2, 1, 8) < rate_of(&m, 2, 0, 8));
	// A worker that is ahead shows nothing of it.
	seen[2] = seen_with(2, 6);
	assert_int_equal(rate_model_fit(seen, 3, &m, NULL), 0);
	assert_true(m.send == 0 && m.send_cpu == 0);
}

static void test_workers_start_in_each_epoch(void **state)
{
	(void)state;
	struct observation seen[] = {seen_with(16, 0), seen_with(64, 0), seen_with(16, 2)};
	struct rate_model m;
	for (size_t i = 0; i < 3; i++) {
		seen[i].epoch_samples = 1000;
	}
	seen[2].epoch_start = 0.200;
	assert_int_equal(rate_model_fit(seen, 3, &m, NULL), 0);
	assert_close(m.start, 0.060, 1e-6); // without 16 x 5 ms, the first batch
	// An epoch of 1000 samples with six workers: 1000 x 2.16 ms of computing, 0.36 s of
	// starting, 0.32 s until the first batch is prepared.
	double per_sample = 0.138 / 64 + 0.68 / 1000;
	assert_close(rate_of(&m, 64, 6, 8), 1 / per_sample, 0.02);
	// Epochs of unknown length are taken as long.
	seen[0].epoch_samples = NAN;
	assert_int_equal(rate_model_fit(seen, 3, &m, NULL), 0);
	assert_close(rate_of(&m, 64, 6, 8), 64 / 0.138, 0.02);
}

static void test_all_processes_share_the_cpus(void **state)
{
	(void)state;
	const struct observation seen[] = {seen_with(16, 0), seen_with(64, 0)};
	struct rate_model m;
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	// 64 samples take 138 ms of the training process and 320 ms of preparation.
	assert_close(rate_of(&m, 64, 8, 2), 64 / (0.458 / 2), 0.02);
	struct rate_config at = rate_config_of(&m, 64, 8);
	at.cpus = 2;
	assert_int_equal(rate_model_predict(&m, &at).bound, RATE_CPU);
	assert_true(rate_of(&m, 64, 8, 1) < rate_of(&m, 64, 8, 2));
}

static void test_storage(void **state)
{
	(void)state;
	struct observation seen[] = {seen_with(16, 4), seen_with(64, 4)};
	for (size_t i = 0; i < 2; i++) {
		seen[i].stored = 100000;
		seen[i].storage_rate = 50e6;
		seen[i].waits_for_storage = true;
	}
	struct rate_model m;
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	struct rate_config at = rate_config_of(&m, 64, 8);
	assert_close(rate_model_predict(&m, &at).rate.value, 64 / 0.138, 0.08);
	at.storage_rate = 10e6; // 100 samples a second
	struct rate_prediction slow = rate_model_predict(&m, &at);
	assert_close(slow.rate.value, 100, 0.01);
	assert_int_equal(slow.bound, RATE_STORAGE);
	assert_true(slow.extrapolated);
	at.hit = 0.5; // half of the bytes from the page cache
	assert_close(rate_model_predict(&m, &at).rate.value, 200, 0.01);
}

// Without workers, reading and preparing are told apart by the CPU time of the wait.
static void test_storage_without_workers(void **state)
{
	(void)state;
	struct observation seen[] = {seen_with(16, 0), seen_with(64, 0)};
	for (size_t i = 0; i < 2; i++) {
		double reading = 0.002 * (double)seen[i].batch_size; // 100 kB at 50 MB/s
		seen[i].stored = 100000;
		seen[i].storage_rate = 1e6; // over the whole iteration
		seen[i].waits_for_storage = true;
		seen[i].wait += reading;
		seen[i].iteration.value += reading;
	}
	struct rate_model m;
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	assert_close(m.p, 0.005, 1e-6);
	assert_close(m.storage_rate, 50e6, 1e-6);
	assert_close(rate_of(&m, 32, 0, 8), 32 / (0.074 + 0.160 + 0.064), 1e-3);
	seen[0].waits_for_storage = seen[1].waits_for_storage = false; // it is preparation
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	assert_close(m.p, 0.007, 1e-6);
	assert_true(isnan(m.storage_rate));
}

static void test_a_faster_device_helps_until_another_bound(void **state)
{
	(void)state;
	const struct observation seen[] = {seen_with(16, 0), seen_with(64, 0)};
	struct rate_model m;
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	struct rate_config at = rate_config_of(&m, 64, 4);
	double now = rate_model_predict(&m, &at).rate.value;
	at.gpu_speed = 2;
	assert_close(rate_model_predict(&m, &at).rate.value, now, 1e-9); // no GPU computes
	m.gpu_share = 1;
	struct rate_prediction fast = rate_model_predict(&m, &at);
	assert_true(fast.rate.value > now && fast.extrapolated);
	at.gpu_speed = 100;
	fast = rate_model_predict(&m, &at);
	assert_int_equal(fast.bound, RATE_PREPARE);
	assert_close(fast.rate.value, 800, 0.02); // four workers
}

// A step of 160 ms on one CPU, three quarters of which more CPUs divide.
static struct observation seen_on(double cpus)
{
	struct observation o = seen_with(16, 0);
	o.cpus = cpus;
	o.threads = fmin(4, cpus);
	o.compute = 0.160 * (0.25 + 0.75 / cpus);
	o.wait = 0;
	o.main_cpu = 0.160;
	o.iteration = (struct estimate){o.compute, o.compute, o.compute};
	return o;
}

static void test_more_cpus_divide_computing(void **state)
{
	(void)state;
	const struct observation seen[] = {seen_on(4), seen_on(2)};
	struct rate_model m;
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	assert_close(m.parallel, 0.75, 1e-6);
	assert_close(rate_of(&m, 16, 0, 4), 16 / 0.070, 1e-6);
	assert_close(rate_of(&m, 16, 0, 2), 16 / 0.100, 1e-6);
	assert_close(rate_of(&m, 16, 0, 8), 16 / 0.055, 1e-6);
	// With one number of CPUs it is not known: nothing is gained, or everything.
	assert_int_equal(rate_model_fit(seen, 1, &m, NULL), 0);
	assert_true(isnan(m.parallel));
	struct rate_config at = rate_config_of(&m, 16, 0);
	at.cpus = 8;
	struct rate_prediction more = rate_model_predict(&m, &at);
	assert_close(more.rate.value, 16 / 0.070, 1e-6);
	assert_true(more.rate.high >= 2 * more.rate.value && more.extrapolated);
	// One thread gains nothing.
	struct observation one = seen[0];
	one.threads = 1;
	assert_int_equal(rate_model_fit(&one, 1, &m, NULL), 0);
	more = rate_model_predict(&m, &at);
	assert_true(more.rate.high < 1.5 * more.rate.value);
}

static void test_fewer_cpus_cost_what_threads_used(void **state)
{
	(void)state;
	struct observation one = seen_on(4); // 2.3 of 4 threads at a time
	struct rate_model m;
	one.threads = one.main_cpu / one.compute;
	assert_int_equal(rate_model_fit(&one, 1, &m, NULL), 0);
	struct rate_config at = rate_config_of(&m, 16, 0);
	at.cpus = 1;
	struct rate_prediction fewer = rate_model_predict(&m, &at);
	assert_close(fewer.rate.value, 16 / 0.160, 1e-6);
	assert_true(fewer.rate.high > 16 / 0.110 && fewer.rate.high < 16 / 0.070);
	// Threads that wait busily for each other look as if they computed.
	one.threads = 4;
	assert_int_equal(rate_model_fit(&one, 1, &m, NULL), 0);
	fewer = rate_model_predict(&m, &at);
	assert_close(fewer.rate.value, 16 / 0.280, 1e-6);
	// One thread loses nothing.
	one.threads = 1;
	assert_int_equal(rate_model_fit(&one, 1, &m, NULL), 0);
	assert_close(rate_of(&m, 16, 0, 1), 16 / 0.070, 1e-6);
}

// Frameworks start as many threads as there are CPUs.
static void test_one_cpu_does_not_show_one_thread(void **state)
{
	(void)state;
	const struct observation seen = seen_on(1);
	struct rate_model m;
	assert_int_equal(rate_model_fit(&seen, 1, &m, NULL), 0);
	assert_true(isnan(m.parallel));
	struct rate_config at = rate_config_of(&m, 16, 0);
	at.cpus = 16;
	struct rate_prediction more = rate_model_predict(&m, &at);
	assert_close(more.rate.value, 16 / 0.160, 1e-6);
	assert_true(more.rate.high >= 16 * 16 / 0.160);
}

static void test_far_from_the_runs_the_interval_is_wider(void **state)
{
	(void)state;
	const struct observation seen[] = {seen_with(16, 0), seen_with(64, 0)};
	struct rate_model m;
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	struct rate_config inside = rate_config_of(&m, 32, 0), far = rate_config_of(&m, 512, 0);
	struct rate_prediction a = rate_model_predict(&m, &inside);
	struct rate_prediction b = rate_model_predict(&m, &far);
	assert_false(a.extrapolated);
	assert_true(b.extrapolated);
	assert_true(b.rate.high / b.rate.low > a.rate.high / a.rate.low);
}

static void test_one_batch_size(void **state)
{
	(void)state;
	const struct observation seen[] = {seen_with(32, 0)};
	struct rate_model m;
	assert_int_equal(rate_model_fit(seen, 1, &m, NULL), 0);
	assert_true(m.one_batch_size && m.a == 0);
	assert_close(rate_of(&m, 32, 0, 8), 32 / 0.234, 1e-6);
}

static void test_a_falling_step_time_is_no_negative_slope(void **state)
{
	(void)state;
	struct observation seen[] = {seen_with(16, 0), seen_with(64, 0)};
	seen[1].compute = seen[0].compute / 2;
	struct rate_model m;
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	assert_true(m.a > 0 && m.b == 0);
	assert_true(rate_of(&m, 128, 0, 8) > 0);
}

static void test_an_anchored_model_passes_through_its_observation(void **state)
{
	(void)state;
	struct observation seen[] = {seen_with(16, 0), seen_with(64, 0), seen_with(32, 0)};
	struct rate_model m;
	seen[2].iteration.value *= 1.2; // slower than the others promise
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	double before = rate_of(&m, 64, 0, 8);
	rate_model_anchor(&m, &seen[2]);
	assert_close(rate_of(&m, 32, 0, 8), 32 / seen[2].iteration.value, 1e-9);
	assert_close(rate_of(&m, 64, 0, 8), before / 1.2, 1e-9);
	rate_model_anchor(&m, &seen[2]);
	assert_close(rate_of(&m, 64, 0, 8), before / 1.2, 1e-9);
}

// The observation may have run on fewer CPUs than others.
static void test_an_anchor_has_its_own_cpus(void **state)
{
	(void)state;
	struct observation seen[] = {seen_with(32, 4), seen_with(32, 4)};
	struct rate_model m;
	for (size_t i = 0; i < 2; i++) { // all computing is divided among the CPUs
		struct observation *o = &seen[i];
		o->cpus = i == 0 ? 2 : 8;
		o->threads = o->cpus;
		o->main_cpu = 0.8;
		o->prepare_cpu = 1e-9;
		o->compute = 0.8 / o->cpus;
		o->wait = 0;
		o->iteration = (struct estimate){o->compute, o->compute, o->compute};
	}
	assert_int_equal(rate_model_fit(seen, 2, &m, NULL), 0);
	rate_model_anchor(&m, &seen[0]);
	assert_close(rate_of(&m, 32, 4, 2), 80, 0.01);
	assert_close(rate_of(&m, 32, 4, 8), 320, 0.15);
}

// A sweep has many runs with equal CPUs, which say nothing of other CPUs, before some that do.
static void test_many_runs_on_equal_cpus(void **state)
{
	(void)state;
	struct observation seen[24];
	struct rate_model m;
	for (size_t i = 0; i < 24; i++) {
		seen[i] = seen_with(32, 0);
		seen[i].cpus = i < 16 ? 1 : 2;
		seen[i].threads = seen[i].cpus;
	}
	assert_int_equal(rate_model_fit(seen, 24, &m, NULL), 0);
	assert_true(isfinite(m.parallel));
}

static void test_nothing_seen(void **state)
{
	(void)state;
	struct rate_model m;
	struct error e = {0};
	struct observation seen = seen_with(16, 0);
	seen.iteration.value = NAN;
	char why[] = "no iterations";
	seen.rate_missing = why;
	assert_int_equal(rate_model_fit(&seen, 1, &m, &e), -ENODATA);
	assert_non_null(strstr(e.text, "no iterations"));
	assert_int_equal(rate_model_fit(NULL, 0, &m, &e), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parameters_come_back),
		cmocka_unit_test(test_computing_without_workers_is_told_apart),
		cmocka_unit_test(test_workers_hide_the_preparation),
		cmocka_unit_test(test_the_line_is_corrected_where_runs_deviate),
		cmocka_unit_test(test_sharing_cpus_costs_what_was_seen),
		cmocka_unit_test(test_ranks_share_the_cpus),
		cmocka_unit_test(test_a_small_batch_costs_what_sending_costs),
		cmocka_unit_test(test_workers_start_in_each_epoch),
		cmocka_unit_test(test_all_processes_share_the_cpus),
		cmocka_unit_test(test_storage),
		cmocka_unit_test(test_storage_without_workers),
		cmocka_unit_test(test_a_faster_device_helps_until_another_bound),
		cmocka_unit_test(test_more_cpus_divide_computing),
		cmocka_unit_test(test_fewer_cpus_cost_what_threads_used),
		cmocka_unit_test(test_one_cpu_does_not_show_one_thread),
		cmocka_unit_test(test_far_from_the_runs_the_interval_is_wider),
		cmocka_unit_test(test_one_batch_size),
		cmocka_unit_test(test_a_falling_step_time_is_no_negative_slope),
		cmocka_unit_test(test_an_anchored_model_passes_through_its_observation),
		cmocka_unit_test(test_an_anchor_has_its_own_cpus),
		cmocka_unit_test(test_many_runs_on_equal_cpus),
		cmocka_unit_test(test_nothing_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
