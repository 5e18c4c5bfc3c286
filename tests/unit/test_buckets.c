// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Buckets: bounded, in order, and no spike is lost.

#include "show/buckets.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void keeps_every_reading_of_a_short_run(void **state)
{
	(void)state;
	struct buckets b;
	buckets_init(&b, 1000);
	for (int i = 0; i < 500; i++) {
		assert_int_equal(buckets_add(&b, i * 10000, i, i, i, 1), 0);
	}
	assert_int_equal(b.n, 500);
	assert_int_equal(b.doublings, 0);
	assert_int_equal(b.samples, 500);
	assert_int_equal(b.items[499].index, 499 * 10000 / BUCKET_SHORTEST_US);
	buckets_done(&b);
}

static void keeps_spikes_in_bounded_memory(void **state)
{
	(void)state;
	struct buckets b;
	buckets_init(&b, 64);
	for (int i = 0; i < 100000; i++) {
		double value = i == 77777 ? 1e6 : i == 33333 ? -5 : 1;
		assert_int_equal(buckets_add(&b, (int64_t)i * 10000, value, value, value, 1), 0);
		assert_true(b.n <= 64);
	}
	struct bucket_figures figures = buckets_figures(&b);
	assert_true(figures.maximum == 1e6);
	assert_true(figures.minimum == -5);
	assert_float_equal(figures.mean, (99998.0 + 1e6 - 5) / 100000, 1e-6);
	for (size_t i = 1; i < b.n; i++) {
		assert_true(b.items[i].index > b.items[i - 1].index);
	}
	// The spike is where it was.
	int64_t index = (int64_t)77777 * 10000 / BUCKET_SHORTEST_US >> b.doublings;
	for (size_t i = 0; i < b.n; i++) {
		assert_int_equal(b.items[i].maximum > 1000, b.items[i].index == index);
	}
	buckets_done(&b);
}

static void weighs_the_mean(void **state)
{
	(void)state;
	struct buckets b;
	buckets_init(&b, 8);
	assert_int_equal(buckets_add(&b, 0, 10, 10, 10, 1), 0);
	assert_int_equal(buckets_add(&b, 1, 20, 15, 40, 3), 0);
	assert_int_equal(b.n, 1);
	assert_float_equal(bucket_mean(&b.items[0]), 17.5, 1e-9);
	assert_true(b.items[0].maximum == 40 && b.items[0].minimum == 10);
	buckets_done(&b);
}

static void remembers_gaps_and_prefers_readings(void **state)
{
	(void)state;
	struct buckets b;
	buckets_init(&b, 8);
	assert_int_equal(buckets_add(&b, 0, NAN, NAN, NAN, 1), 0);
	assert_int_equal(buckets_add(&b, 10000, 3, 3, 3, 1), 0);
	assert_int_equal(b.n, 2);
	assert_true(isnan(bucket_mean(&b.items[0])));
	while (b.n > 1) {
		buckets_coarsen(&b);
	}
	assert_float_equal(bucket_mean(&b.items[0]), 3, 1e-9);
	assert_int_equal(b.samples, 1);
	buckets_done(&b);
}

static void takes_no_value_that_cannot_be(void **state)
{
	(void)state;
	struct buckets b;
	buckets_init(&b, 8);
	assert_int_equal(buckets_add(&b, 0, INFINITY, 0, 0, 1), 0);
	assert_int_equal(buckets_add(&b, 10000, 1e300, 1e300, 1e300, 1), 0);
	assert_int_equal(buckets_add(&b, 20000, 1, -INFINITY, 1e300, 1), 0);
	assert_int_equal(buckets_add(&b, 30000, 1, 1, 1, INFINITY), 0);
	assert_int_equal(b.samples, 1);
	struct bucket_figures figures = buckets_figures(&b);
	assert_true(figures.minimum == 1 && figures.mean == 1 && figures.maximum == 1);
	buckets_done(&b);
}

static void says_nothing_of_nothing(void **state)
{
	(void)state;
	struct buckets b;
	buckets_init(&b, 8);
	struct bucket_figures figures = buckets_figures(&b);
	assert_true(isnan(figures.minimum) && isnan(figures.mean) && isnan(figures.maximum));
	buckets_coarsen(&b);
	assert_float_equal(buckets_width_s(&b), 2 * BUCKET_SHORTEST_US * 1e-6, 1e-12);
	buckets_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_every_reading_of_a_short_run),
		cmocka_unit_test(keeps_spikes_in_bounded_memory),
		cmocka_unit_test(weighs_the_mean),
		cmocka_unit_test(remembers_gaps_and_prefers_readings),
		cmocka_unit_test(takes_no_value_that_cannot_be),
		cmocka_unit_test(says_nothing_of_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
