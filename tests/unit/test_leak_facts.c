// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which growth of memory is a leak: series as jobs have them, made of arithmetic.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "run/growth.h"
#include "base/text.h"

#define MB 1e6
enum { N = 1000 };

// What a job holds, in MB, at a part of its iterations from 0 to 1.
typedef double held_by(double part, double noise);

struct judged {
	bool leak;
	struct estimate slope; // MB an iteration
	double gained; // MB
};

// Readings of 500 iterations, with noise between -1 and 1 that is the same each time.
static struct judged judge(held_by *held)
{
	static double at[N], bytes[N];
	struct judged j;
	uint32_t random = 1;
	for (size_t i = 0; i < N; i++) {
		double part = (double)i / (N - 1);
		random = random * 1664525 + 1013904223;
		at[i] = 20 + 500 * part;
		bytes[i] = MB * held(part, (double)random / 2147483648.0 - 1);
	}
	j.leak = growth_judge(at, bytes, N, &j.slope, &j.gained);
	j.slope.value /= MB;
	j.slope.low /= MB;
	j.slope.high /= MB;
	j.gained /= MB;
	return j;
}

static double grows(double part, double noise)
{
	return 300 + 500 * part + 5 * noise; // 1 MB an iteration
}

static void test_a_leak(void **state)
{
	(void)state;
	struct judged j = judge(grows);
	assert_true(j.leak);
	assert_true(fabs(j.slope.value - 1) < 0.02);
	assert_true(j.slope.low <= 1 && j.slope.high >= 1);
	assert_true(j.slope.low > 0.9 && j.slope.high < 1.1);
	assert_true(fabs(j.gained - 490) < 20);
}

// Each step takes up to 150 MB and gives them back: readings hit it anywhere.
static double grows_below_steps(double part, double noise)
{
	return 300 + 500 * part + 75 * (noise + 1);
}

static void test_a_leak_below_what_steps_take(void **state)
{
	(void)state;
	struct judged j = judge(grows_below_steps);
	assert_true(j.leak);
	assert_true(j.slope.low <= 1 && j.slope.high >= 1);
}

// 30 MB more, each twentieth of the run.
static double grows_by_steps(double part, double noise)
{
	return 300 + 30 * floor(20 * part) + noise;
}

// An epoch fills 100 MB and gives back 80 of them; there are ten.
static double grows_by_epochs(double part, double noise)
{
	return 300 + 20 * floor(10 * part) + 100 * (10 * part - floor(10 * part)) + noise;
}

static void test_leaks_by_steps_and_by_epochs(void **state)
{
	(void)state;
	assert_true(judge(grows_by_steps).leak);
	assert_true(judge(grows_by_epochs).leak);
}

static double fills_up(double part, double noise)
{
	return 300 + fmin(1, 2.5 * part) * 800 + 5 * noise;
}

static double saturates(double part, double noise)
{
	return 300 + 800 * (1 - exp(-3 * part)) + 2 * noise;
}

static double fills_late(double part, double noise)
{
	return 300 + (part < 0.7 ? 0 : 800 * (part - 0.7)) + noise;
}

static void test_caches_that_fill_and_level_off(void **state)
{
	(void)state;
	assert_false(judge(fills_up).leak);
	assert_false(judge(saturates).leak);
	assert_false(judge(fills_late).leak);
}

static double two_epochs(double part, double noise)
{
	return 300 + 600 * (2 * part - floor(2 * part)) + noise;
}

static double ten_epochs(double part, double noise)
{
	return 300 + 600 * (10 * part - floor(10 * part)) + noise;
}

static void test_epochs_that_give_back_what_they_take(void **state)
{
	(void)state;
	assert_false(judge(two_epochs).leak);
	assert_false(judge(ten_epochs).leak);
}

static double is_noise(double part, double noise)
{
	(void)part;
	return 2000 + 500 * noise;
}

static double grows_little(double part, double noise)
{
	return 300 + 50 * part + noise;
}

static double shrinks(double part, double noise)
{
	return 900 - 500 * part + noise;
}

static void test_noise_and_little(void **state)
{
	(void)state;
	assert_false(judge(is_noise).leak);
	assert_false(judge(grows_little).leak);
	assert_false(judge(shrinks).leak);
	assert_true(judge(shrinks).slope.high < 0);
}

// A single reading that has fallen does not hide it, nor do readings that are missing.
static double grows_with_gaps(double part, double noise)
{
	int number = (int)lround(part * (N - 1));
	return number % 100 == 50 ? 1 : number % 7 == 0 ? NAN : grows(part, noise);
}

static void test_gaps(void **state)
{
	(void)state;
	assert_true(judge(grows_with_gaps).leak);
}

static void test_too_little_to_tell(void **state)
{
	(void)state;
	struct estimate slope;
	double gained, at[40], bytes[40];
	for (size_t i = 0; i < 40; i++) {
		at[i] = (double)i;
		bytes[i] = 100 * MB * (double)i;
	}
	assert_true(growth_judge(at, bytes, 40, &slope, &gained));
	assert_false(growth_judge(at, bytes, 20, &slope, &gained));
	assert_true(isnan(slope.value) && isnan(slope.low) && isnan(gained));
	assert_false(growth_judge(at, bytes, 0, &slope, &gained));
	for (size_t i = 0; i < 40; i++) {
		at[i] = 3; // one iteration
	}
	assert_false(growth_judge(at, bytes, 40, &slope, &gained));
}

static void test_warning(void **state)
{
	(void)state;
	_cleanup_text_ struct text t = {0};
	struct growth growth = {.bytes_per_iteration = {16 * MB, 15.9 * MB, 16.1 * MB},
		.full_in_s = 2400,
		.gained_bytes = 2000 * MB,
		.gpu = -1};
	growth_append_warning(&t, &growth);
	assert_int_equal(t.length, 0);
	growth.leak = true;
	growth_append_warning(&t, &growth);
	assert_string_equal(t.data,
		"memory grows by 16 MB per iteration, 2.0 GB so far: at this rate "
		"memory is exhausted in 40 min 0 s");
	text_clear(&t);
	growth.bytes_per_iteration.low = 10 * MB;
	growth.full_in_s = NAN;
	growth_append_warning(&t, &growth);
	assert_string_equal(
		t.data, "memory grows by 16 MB per iteration (10 MB to 16 MB), 2.0 GB so far");
	text_clear(&t);
	growth.bytes_per_iteration.low = 16 * MB;
	growth.one_epoch = true;
	growth_append_warning(&t, &growth);
	assert_string_equal(t.data, "memory grows by 16 MB per iteration, 2.0 GB within one epoch");
	text_clear(&t);
	growth.gpu = 2;
	growth_append_warning(&t, &growth);
	assert_string_equal(
		t.data, "memory of GPU 2 grows by 16 MB per iteration, 2.0 GB within one epoch");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_leak),
		cmocka_unit_test(test_a_leak_below_what_steps_take),
		cmocka_unit_test(test_leaks_by_steps_and_by_epochs),
		cmocka_unit_test(test_caches_that_fill_and_level_off),
		cmocka_unit_test(test_epochs_that_give_back_what_they_take),
		cmocka_unit_test(test_noise_and_little),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_too_little_to_tell),
		cmocka_unit_test(test_warning),
	};
	return cmocka_run_group_tests_name("leak_facts", tests, NULL, NULL);
}
