// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/clock.h"
#include "record/source/traffic.h"

#define GEN5 UINT64_C(63000000000)

static void test_a_counter_counts_from_its_first_reading(void **state)
{
	(void)state;
	struct traffic_counter c = {0};
	assert_true(traffic_count(&c, 5000, 0, GEN5));
	assert_int_equal(c.total, 0);
	assert_true(traffic_count(&c, 5100, 40 * NS_PER_MS, GEN5));
	assert_int_equal(c.total, 100);
}

static void test_a_wrap_at_32_bits_is_undone(void **state)
{
	(void)state;
	struct traffic_counter c = {0};
	traffic_count(&c, UINT32_MAX - 9, 0, GEN5);
	assert_true(traffic_count(&c, 90, 40 * NS_PER_MS, GEN5));
	assert_int_equal(c.total, 100);
}

static void test_a_reading_too_late_is_not_believed(void **state)
{
	(void)state;
	struct traffic_counter c = {0};
	traffic_count(&c, 0, 0, GEN5);
	assert_false(traffic_count(&c, 100, 100 * NS_PER_MS, GEN5));
	assert_int_equal(c.total, 100); // a lower bound
	assert_true(traffic_count(&c, 200, 40 * NS_PER_MS, GEN5));
	assert_int_equal(c.total, 200);
	// A slower link has more time.
	assert_true(traffic_count(&c, 300, 200 * NS_PER_MS, GEN5 / 4));
}

static void test_a_wide_counter_has_all_the_time(void **state)
{
	(void)state;
	struct traffic_counter c = {0};
	traffic_count(&c, UINT64_C(1) << 33, 0, GEN5);
	assert_true(traffic_count(&c, UINT64_C(3) << 33, 3600 * NS_PER_S, GEN5));
	assert_int_equal(c.total, UINT64_C(1) << 34);
	// It fell: the driver was loaded anew.
	assert_false(traffic_count(&c, 7, 40 * NS_PER_MS, GEN5));
	assert_int_equal(c.total, (UINT64_C(1) << 34) + 7);
}

static void test_rates_that_no_link_has_are_refused(void **state)
{
	(void)state;
	struct traffic_counter c = {0};
	assert_true(traffic_add_rate(&c, 1e9, NS_PER_S / 2));
	assert_int_equal(c.total, 500000000);
	assert_false(traffic_add_rate(&c, (double)NAN, NS_PER_S));
	assert_false(traffic_add_rate(&c, (double)INFINITY, NS_PER_S));
	assert_false(traffic_add_rate(&c, -1, NS_PER_S));
	assert_false(traffic_add_rate(&c, 1e20, NS_PER_S));
	assert_int_equal(c.total, 500000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_counter_counts_from_its_first_reading),
		cmocka_unit_test(test_a_wrap_at_32_bits_is_undone),
		cmocka_unit_test(test_a_reading_too_late_is_not_believed),
		cmocka_unit_test(test_a_wide_counter_has_all_the_time),
		cmocka_unit_test(test_rates_that_no_link_has_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
