// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/phases.h"
#include "verdict/trend.h"

#define PER_EPOCH 60
#define MS 1000000

static struct iteration iterations[3 * PER_EPOCH];

// Epochs of iterations that take 10 ms, and so much more with each; a wait for data of 5 ms is no
// part of it.
static struct phases epochs(size_t n, int64_t more_ns)
{
	for (size_t i = 0; i < n * PER_EPOCH; i++) {
		int64_t place = (int64_t)(i % PER_EPOCH);
		iterations[i] = (struct iteration){.epoch = (int64_t)(i / PER_EPOCH),
			.samples = 32,
			.length_ns = 15 * MS + place * more_ns};
		iterations[i].phase_ns[PHASE_DATA] = 5 * MS;
	}
	return (struct phases){.iterations = iterations, .n_iterations = n * PER_EPOCH};
}

static void test_each_epoch_becomes_slower(void **state)
{
	(void)state;
	struct phases p = epochs(3, MS / 2);
	struct trend t = trend_of(&p);
	assert_true(t.in_epochs);
	assert_float_equal(t.first_s, 0.0135, 0.0003);
	assert_float_equal(t.last_s, 0.0358, 0.0005);
	assert_float_equal(
		t.share, 0.01475 / 0.02975, 0.01); // half of 59 times 0.5 ms, of 15 ms more
	p = epochs(1, MS / 2);
	t = trend_of(&p);
	assert_false(t.in_epochs);
	assert_float_equal(t.last_s, 0.0358, 0.0005);
}

static void test_others_have_no_trend(void **state)
{
	(void)state;
	struct phases p = epochs(3, 0);
	assert_true(isnan(trend_of(&p).share));
	p = epochs(3, MS / 20); // a third more
	assert_true(isnan(trend_of(&p).share));
	p = epochs(3, MS / 2);
	for (size_t i = 0; i < PER_EPOCH; i++) { // one epoch without
		iterations[PER_EPOCH + i].length_ns = 15 * MS;
	}
	assert_true(isnan(trend_of(&p).share));
	p = epochs(1, MS / 2);
	for (size_t i = 0; i < PER_EPOCH; i++) { // batches grow
		iterations[i].samples = 32 + (int64_t)i;
	}
	assert_true(isnan(trend_of(&p).share));
	p = epochs(1, MS / 2);
	p.n_iterations = 30; // too few
	assert_true(isnan(trend_of(&p).share));
}

static void test_only_the_first_quarter_is_short(void **state)
{
	(void)state;
	struct phases p = epochs(3, 0);
	for (size_t i = 0; i < 3 * PER_EPOCH; i++) {
		iterations[i].length_ns = i % PER_EPOCH < PER_EPOCH / 4 ? 10 * MS : 25 * MS;
	}
	assert_true(isnan(trend_of(&p).share));
}

static void test_an_epoch_that_was_cut_off(void **state)
{
	(void)state;
	struct phases p = epochs(3, MS / 2);
	p.n_iterations -= 15;
	assert_true(trend_of(&p).share > 0.4);
	for (size_t i = 2 * PER_EPOCH; i < p.n_iterations; i++) { // what follows has no number
		iterations[i].epoch = i < 2 * PER_EPOCH + 30 ? -1 : 2;
	}
	assert_true(trend_of(&p).share > 0.4 && trend_of(&p).numbered);
}

// Episodes that become longer as an agent learns: no epochs, and nobody knows how large they are.
static void test_work_of_unknown_size(void **state)
{
	(void)state;
	struct phases p = epochs(1, MS / 2);
	for (size_t i = 0; i < PER_EPOCH; i++) {
		iterations[i].samples = -1;
	}
	assert_true(isnan(trend_of(&p).share));
	p = epochs(1, MS / 2);
	for (size_t i = 0; i < PER_EPOCH; i++) {
		iterations[i].epoch = -1;
	}
	assert_true(isnan(trend_of(&p).share));
}

// A loop without a loader: a list that is emptied twice, or never. The gradients' work stays the
// same.
static void test_epochs_without_numbers(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 3; n += 2) {
		struct phases p = epochs(n, MS / 2);
		for (size_t i = 0; i < p.n_iterations; i++) {
			iterations[i].epoch = -1;
			iterations[i].phase_ns[PHASE_BACKWARD] = 4 * MS;
		}
		struct trend t = trend_of(&p);
		assert_false(t.numbered);
		assert_true(t.in_epochs == (n > 1));
		assert_float_equal(t.share, 0.5, 0.05);
		for (size_t i = 0; i < p.n_iterations; i++) { // the work grows
			iterations[i].phase_ns[PHASE_BACKWARD] = iterations[i].length_ns / 4;
		}
		assert_true(isnan(trend_of(&p).share));
	}
	struct phases p = epochs(3, MS / 2);
	for (size_t i = 0; i < p.n_iterations; i++) { // only in one of three
		iterations[i].epoch = -1;
		iterations[i].phase_ns[PHASE_BACKWARD] = 4 * MS;
		iterations[i].length_ns = i / PER_EPOCH == 1 ? iterations[i].length_ns : 15 * MS;
	}
	assert_true(isnan(trend_of(&p).share));
}

// Ten epochs of iterations of 20 ms, 4 of them backward; so much more from epoch to epoch, of which
// a part is backward's.
static struct phases growing_epochs(int64_t more_ns, double of_backward)
{
	static struct iteration all[10 * 20];
	for (size_t i = 0; i < 200; i++) {
		int64_t more = (int64_t)(i / 20) * more_ns;
		all[i] = (struct iteration){
			.epoch = (int64_t)(i / 20), .samples = 32, .length_ns = 20 * MS + more};
		all[i].phase_ns[PHASE_BACKWARD] = 4 * MS + (int64_t)((double)more * of_backward);
	}
	return (struct phases){.iterations = all, .n_iterations = 200};
}

static void test_from_epoch_to_epoch(void **state)
{
	(void)state;
	struct phases p = growing_epochs(3 * MS, 0);
	struct trend t = trend_of(&p);
	assert_true(t.over_epochs && !t.in_epochs);
	assert_true(t.first_s > 0.020 && t.first_s < 0.026 && t.last_s > 0.042);
	assert_float_equal(t.share, 13.5 / 33.5, 0.05);
	p = growing_epochs(3 * MS, 0.05);
	assert_true(trend_of(&p).over_epochs);
	p = growing_epochs(3 * MS, 0.2); // backward grows as all does: a slower clock
	assert_true(isnan(trend_of(&p).share));
	p = growing_epochs(3 * MS, 0);
	for (size_t i = 0; i < 200; i++) { // it is not known whether batches are larger
		p.iterations[i].samples = -1;
	}
	assert_true(isnan(trend_of(&p).share));
	p = growing_epochs(MS / 2, 0); // by a quarter in all
	assert_true(isnan(trend_of(&p).share));
	p = growing_epochs(3 * MS, 0);
	for (size_t i = 100; i < 120; i++) { // one epoch is as short as the first
		p.iterations[i].length_ns = 20 * MS;
	}
	assert_true(isnan(trend_of(&p).share));
	p = growing_epochs(3 * MS, 0);
	for (size_t i = 0; i < 200; i++) { // larger batches
		p.iterations[i].samples = 32 + (int64_t)(i / 20) * 4;
	}
	assert_true(isnan(trend_of(&p).share));
	p = growing_epochs(3 * MS, 0);
	p.n_iterations = 4 * 20; // too few epochs
	assert_true(isnan(trend_of(&p).share));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_epoch_becomes_slower),
		cmocka_unit_test(test_others_have_no_trend),
		cmocka_unit_test(test_only_the_first_quarter_is_short),
		cmocka_unit_test(test_an_epoch_that_was_cut_off),
		cmocka_unit_test(test_work_of_unknown_size),
		cmocka_unit_test(test_epochs_without_numbers),
		cmocka_unit_test(test_from_epoch_to_epoch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
