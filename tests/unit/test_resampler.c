// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Buckets of time: means of what stood, last values of counters, gaps and missing readings.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "run/resampler.h"

struct reading {
	int64_t t_us;
	double value;
};

static size_t run_bucketer(enum metric_kind kind, int64_t length_us, const struct reading *readings,
	size_t n, struct resampled *ret)
{
	struct resampler b;
	size_t found = 0;
	resampler_start(&b, kind, length_us);
	for (size_t i = 0; i < n; i++) {
		double value = readings[i].value;
		found += resampler_add(&b, readings[i].t_us, value, value, value, &ret[found]);
	}
	return found + resampler_end(&b, &ret[found]);
}

static void test_a_gauge_is_its_mean_weighted_by_time(void **state)
{
	(void)state;
	// 10 stands for 75, 20 for 25 of the first bucket; 20 stands on into the second.
	const struct reading readings[] = {{0, 10}, {75, 20}, {150, 40}, {190, 40}};
	struct resampled buckets[8];
	assert_int_equal(run_bucketer(METRIC_GAUGE, 100, readings, 4, buckets), 2);
	assert_int_equal(buckets[0].t_us, 0);
	assert_float_equal(buckets[0].value, 12.5, 1e-9);
	assert_float_equal(buckets[0].minimum, 10, 0);
	assert_float_equal(buckets[0].maximum, 20, 0);
	assert_int_equal(buckets[1].t_us, 100);
	assert_float_equal(buckets[1].value, 30, 1e-9);
	assert_float_equal(buckets[1].minimum, 40, 0);
}

static void test_a_counter_is_its_last_value(void **state)
{
	(void)state;
	const struct reading readings[] = {{10, 1}, {90, 5}, {110, 6}, {320, 9}};
	struct resampled buckets[8];
	assert_int_equal(run_bucketer(METRIC_COUNTER, 100, readings, 4, buckets), 3);
	assert_float_equal(buckets[0].value, 5, 0);
	assert_float_equal(buckets[1].value, 6, 0);
	assert_int_equal(buckets[2].t_us, 300); // the empty bucket is left out
	assert_float_equal(buckets[2].value, 9, 0);
}

static void test_missing_readings_count_for_nothing(void **state)
{
	(void)state;
	const struct reading readings[] = {{0, 10}, {50, NAN}, {100, NAN}, {200, 4}, {250, 4}};
	struct resampled buckets[8];
	assert_int_equal(run_bucketer(METRIC_GAUGE, 100, readings, 5, buckets), 3);
	assert_float_equal(buckets[0].value, 10, 1e-9);
	assert_true(isnan(buckets[1].value));
	assert_float_equal(buckets[2].value, 4, 1e-9);
}

static void test_one_reading_is_a_bucket(void **state)
{
	(void)state;
	const struct reading readings[] = {{1234, 7}};
	struct resampled buckets[2];
	assert_int_equal(run_bucketer(METRIC_GAUGE, 100, readings, 1, buckets), 1);
	assert_int_equal(buckets[0].t_us, 1200);
	assert_float_equal(buckets[0].value, 7, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_gauge_is_its_mean_weighted_by_time),
		cmocka_unit_test(test_a_counter_is_its_last_value),
		cmocka_unit_test(test_missing_readings_count_for_nothing),
		cmocka_unit_test(test_one_reading_is_a_bucket),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
