// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The line of memory over batch size: regimes, intervals, the largest batch size.

#include "probe/memory_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MIB 1048576.0

static double line(double batch)
{
	return 300 * MIB + 4 * MIB * batch;
}

static void test_two_points_give_the_line(void **state)
{
	(void)state;
	struct memory_point points[] = {{64, line(64), false}, {16, line(16), false}};
	struct memory_model m;
	assert_true(memory_model_fit(points, 2, MEMORY_DEVIATION_PINNED, &m));
	assert_true(fabs(m.intercept - 300 * MIB) < 1);
	assert_true(fabs(m.slope - 4 * MIB) < 1);
	assert_true(isnan(m.residual) && !m.flat && m.used == 2 && m.left_out == 0);
	assert_true(m.batch_min == 16 && m.batch_max == 64);
	struct estimate largest = memory_model_largest(&m, 1000 * MIB, 1 << 20);
	assert_true(largest.value == 175);
	assert_true(largest.low < 175 && largest.low > 165);
	assert_true(largest.high > 175 && largest.high < 185);
}

static void test_the_interval_grows_with_the_distance(void **state)
{
	(void)state;
	struct memory_point points[] = {{16, line(16), false}, {64, line(64), false}};
	struct memory_model m;
	assert_true(memory_model_fit(points, 2, MEMORY_DEVIATION_PINNED, &m));
	struct estimate near = memory_model_bytes(&m, 64), far = memory_model_bytes(&m, 640);
	assert_true((far.high - far.low) / far.value > (near.high - near.low) / near.value);
	assert_true(near.low < near.value && near.value < near.high);
}

static void test_a_small_batch_in_another_regime_is_left_out(void **state)
{
	(void)state;
	struct memory_point points[] = {
		{8, 1.1 * line(8), false},
		{32, line(32), false},
		{64, line(64), false},
		{128, line(128), false},
	};
	struct memory_model m;
	assert_true(memory_model_fit(points, 4, MEMORY_DEVIATION_PINNED, &m));
	assert_true(m.left_out == 1 && m.used == 3);
	assert_true(points[0].left_out && points[0].batch == 8);
	assert_true(m.batch_min == 32);
	assert_true(memory_model_covers(&m, 32) && !memory_model_covers(&m, 31));
	assert_true(fabs(m.slope - 4 * MIB) < 1);
	assert_true(memory_model_largest(&m, 1000 * MIB, 1 << 20).value == 175);
}

static void test_noise_of_repeats_widens_the_interval(void **state)
{
	(void)state;
	struct memory_point quiet[] = {{16, line(16), false}, {16, line(16), false},
		{64, line(64), false}, {64, line(64), false}};
	struct memory_point noisy[] = {{16, 0.93 * line(16), false}, {16, 1.07 * line(16), false},
		{64, 0.93 * line(64), false}, {64, 1.07 * line(64), false}};
	struct memory_model of_quiet, of_noisy;
	assert_true(memory_model_fit(quiet, 4, MEMORY_DEVIATION_PINNED, &of_quiet));
	assert_true(memory_model_fit(noisy, 4, MEMORY_DEVIATION_PINNED, &of_noisy));
	assert_true(of_noisy.deviation > 0.07 && of_quiet.deviation < 0.01);
	struct estimate a = memory_model_largest(&of_quiet, 1000 * MIB, 1 << 20);
	struct estimate b = memory_model_largest(&of_noisy, 1000 * MIB, 1 << 20);
	assert_true(b.high - b.low > 3 * (a.high - a.low));
	assert_true(b.low < 175 && b.high > 175);
}

static void test_a_curve_widens_the_interval(void **state)
{
	(void)state;
	// 3 % above the line in the middle.
	struct memory_point points[] = {
		{16, line(16), false}, {64, 1.03 * line(64), false}, {128, line(128), false}};
	struct memory_model m;
	assert_true(memory_model_fit(points, 3, 0.02, &m));
	assert_true(m.left_out == 0 && m.residual > 0.01);
	assert_true(m.deviation >= 0.02);
}

static void test_memory_that_does_not_grow_is_flat(void **state)
{
	(void)state;
	struct memory_point points[] = {{16, 1.001 * line(16), false}, {64, line(16), false}};
	struct memory_model m;
	assert_true(memory_model_fit(points, 2, MEMORY_DEVIATION_PINNED, &m));
	assert_true(m.flat);
	assert_true(memory_model_largest(&m, 1000 * MIB, 4096).high == 4096);
}

static void test_nothing_fits(void **state)
{
	(void)state;
	struct memory_point points[] = {{16, line(16), false}, {64, line(64), false}};
	struct memory_model m;
	assert_true(memory_model_fit(points, 2, MEMORY_DEVIATION_PINNED, &m));
	struct estimate largest = memory_model_largest(&m, 250 * MIB, 1 << 20);
	assert_true(largest.value == 0 && largest.low == 0 && largest.high == 0);
	assert_true(memory_model_largest(&m, line(1), 1 << 20).value == 1);
}

static void test_what_cannot_be_fitted(void **state)
{
	(void)state;
	struct memory_model m;
	struct memory_point same[] = {{16, line(16), false}, {16, line(16), false}};
	assert_false(memory_model_fit(same, 2, MEMORY_DEVIATION_PINNED, &m));
	assert_false(memory_model_fit(same, 1, MEMORY_DEVIATION_PINNED, &m));
	assert_false(memory_model_fit(same, 0, MEMORY_DEVIATION_PINNED, &m));
	struct memory_point missing[] = {{16, line(16), false}, {64, NAN, false}};
	assert_false(memory_model_fit(missing, 2, MEMORY_DEVIATION_PINNED, &m));
	struct memory_point zero[] = {{0, line(16), false}, {64, line(64), false}};
	assert_false(memory_model_fit(zero, 2, MEMORY_DEVIATION_PINNED, &m));
}

// Of lines with known errors, the interval has to hold the next run about as often as it says.
static void test_the_interval_holds_what_it_says(void **state)
{
	(void)state;
	unsigned held = 0;
	enum { TIMES = 4000 };
	srand48(1);
	for (int i = 0; i < TIMES; i++) {
		struct memory_point points[4];
		struct memory_model m;
		double next = 0;
		for (size_t k = 0; k < 5; k++) {
			double batch = k == 4 ? 150 : k < 2 ? 16 : 64, z = 0;
			for (int j = 0; j < 12; j++) { // Irwin and Hall: close to normal
				z += drand48();
			}
			double bytes = line(batch) * (1 + 0.03 * (z - 6));
			if (k == 4) {
				next = bytes;
			} else {
				points[k] = (struct memory_point){batch, bytes, false};
			}
		}
		assert_true(memory_model_fit(points, 4, MEMORY_DEVIATION_DEFAULT, &m));
		struct estimate bytes = memory_model_bytes(&m, 150);
		held += next >= bytes.low && next <= bytes.high;
	}
	assert_in_range(held, 93 * TIMES / 100, 99 * TIMES / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_points_give_the_line),
		cmocka_unit_test(test_the_interval_grows_with_the_distance),
		cmocka_unit_test(test_a_small_batch_in_another_regime_is_left_out),
		cmocka_unit_test(test_noise_of_repeats_widens_the_interval),
		cmocka_unit_test(test_a_curve_widens_the_interval),
		cmocka_unit_test(test_memory_that_does_not_grow_is_flat),
		cmocka_unit_test(test_nothing_fits),
		cmocka_unit_test(test_what_cannot_be_fitted),
		cmocka_unit_test(test_the_interval_holds_what_it_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
