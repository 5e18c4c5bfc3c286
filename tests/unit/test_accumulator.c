// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Figures of readings: what each is, and how near percentiles come to the exact ones.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "run/histogram.h"
#include "run/summary.h"

static void feed(struct accumulator *t, int64_t t_us, double value)
{
	accumulator_add(t, t_us, value, value);
}

static void test_a_counter_that_begins_with_its_entity(void **state)
{
	(void)state;
	struct accumulator t = {0};
	double f[N_FIGURES];
	accumulator_start(&t, METRIC_COUNTER);
	feed(&t, 0, 0.5);
	feed(&t, 1000000, 1.5);
	feed(&t, 2000000, 4.5);
	accumulator_figures(&t, INT64_MIN, true, f);
	assert_float_equal(f[FIGURE_TOTAL], 4.5, 1e-9);
	assert_float_equal(
		f[FIGURE_MEAN], 2, 1e-9); // what came before the first reading has no time
	assert_float_equal(f[FIGURE_P50], 1, 0.004);
	assert_float_equal(f[FIGURE_P95], 3, 0.012);
	assert_float_equal(f[FIGURE_MAX], 3, 1e-9);
	accumulator_done(&t);
}

static void test_a_counter_that_was_there_before(void **state)
{
	(void)state;
	struct accumulator t = {0};
	double f[N_FIGURES];
	accumulator_start(&t, METRIC_COUNTER);
	feed(&t, 0, 1000);
	accumulator_figures(&t, INT64_MIN, false, f);
	assert_true(isnan(f[FIGURE_TOTAL])); // one reading tells nothing
	accumulator_start(&t, METRIC_COUNTER);
	feed(&t, 0, 1000);
	feed(&t, 1000000, 1003);
	accumulator_figures(&t, INT64_MIN, false, f);
	assert_float_equal(f[FIGURE_TOTAL], 3, 1e-9);
	accumulator_done(&t);
}

static void test_a_counter_that_steps_back_adds_nothing(void **state)
{
	(void)state;
	struct accumulator t = {0};
	double f[N_FIGURES];
	accumulator_start(&t, METRIC_COUNTER);
	feed(&t, 0, 10);
	feed(&t, 1000000, 12);
	feed(&t, 2000000, 1); // reset
	feed(&t, 3000000, 2);
	accumulator_figures(&t, INT64_MIN, false, f);
	assert_float_equal(f[FIGURE_TOTAL], 3, 1e-9);
	accumulator_done(&t);
}

static void test_rates_are_over_windows(void **state)
{
	(void)state;
	struct accumulator t = {0};
	double f[N_FIGURES];
	accumulator_start(&t, METRIC_COUNTER);
	// One CPU for 10 of every 100 ms: no window of 100 ms shows more than a tenth.
	for (int64_t i = 0; i <= 1000; i++) {
		feed(&t, i * 10000, (double)((i + 9) / 10) * 0.01);
	}
	accumulator_figures(&t, INT64_MIN, true, f);
	assert_float_equal(f[FIGURE_MAX], 0.1, 1e-6);
	assert_float_equal(f[FIGURE_MEAN], 0.1, 1e-6);
	accumulator_done(&t);
}

static void test_a_gauge_is_weighted_by_how_long_it_stood(void **state)
{
	(void)state;
	struct accumulator t = {0};
	double f[N_FIGURES];
	accumulator_start(&t, METRIC_GAUGE);
	feed(&t, 0, 10);
	feed(&t, 900000, 1000); // a spike of a tenth
	feed(&t, 1000000, 10);
	feed(&t, 1000000, NAN);
	accumulator_figures(&t, INT64_MIN, true, f);
	assert_true(isnan(f[FIGURE_TOTAL]));
	assert_float_equal(f[FIGURE_MEAN], 109, 1e-6);
	assert_float_equal(f[FIGURE_P50], 10, 0.04);
	assert_float_equal(f[FIGURE_P95], 1000, 4);
	assert_float_equal(f[FIGURE_MAX], 1000, 0);
	accumulator_done(&t);
}

static void test_nothing_read_is_no_figure(void **state)
{
	(void)state;
	struct accumulator t = {0};
	double f[N_FIGURES];
	accumulator_start(&t, METRIC_GAUGE);
	feed(&t, 0, NAN);
	feed(&t, 10, NAN);
	accumulator_figures(&t, INT64_MIN, true, f);
	for (unsigned i = 0; i < N_FIGURES; i++) {
		assert_true(isnan(f[i]));
	}
	accumulator_done(&t);
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static void test_quantiles_are_near_the_exact_ones(void **state)
{
	(void)state;
	enum { N = 10000 };
	static double values[N];
	struct histogram h = {0};
	uint32_t random = 12345;
	for (int i = 0; i < N; i++) {
		random = random * 1664525 + 1013904223;
		double unit = (double)(random >> 8) / (1 << 24);
		values[i] = i % 7 == 0 ? 0 : (i % 5 == 0 ? -1 : 1) * exp(unit * 40 - 20);
		histogram_add(&h, values[i], 1);
	}
	histogram_add(&h, NAN, 1);
	histogram_add(&h, INFINITY, 1);
	histogram_add(&h, 1, -1);
	qsort(values, N, sizeof(values[0]), compare);
	const double shares[] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1};
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		double exact = values[(size_t)ceil(shares[i] * N) - 1];
		assert_true(fabs(histogram_quantile(&h, shares[i]) - exact) <= 0.004 * fabs(exact));
	}
	histogram_clear(&h);
	assert_true(isnan(histogram_quantile(&h, 0.5)));
	histogram_done(&h);
}

// Rows together say what they say one after the other, also where many have the same value.
static void test_rows_together(void **state)
{
	(void)state;
	enum { N = 20000 };
	static int64_t t_us[N];
	static double values[N];
	for (enum metric_kind kind = METRIC_COUNTER; kind <= METRIC_GAUGE; kind++) {
		uint64_t random = 88172645463325252;
		double value = 5;
		for (int i = 0; i < N; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			bool idle = i / 500 % 3 == 0;
			value += idle ? 0 : (double)(random % 1000) / 1000;
			t_us[i] = (i ? t_us[i - 1] : 0) + 9000 + (int64_t)(random >> 20) % 2000;
			values[i] = i % 777 == 0 ? NAN : value;
		}
		struct accumulator one = {0}, together = {0};
		double f[N_FIGURES], g[N_FIGURES];
		accumulator_start(&one, kind);
		accumulator_start(&together, kind);
		for (int i = 0; i < N; i++) {
			feed(&one, t_us[i], values[i]);
		}
		for (int i = 0; i < N; i += 4000) { // as blocks bring them
			accumulator_add_rows(&together, t_us + i, values + i, values + i, 4000);
		}
		assert_int_equal(one.readings, together.readings);
		accumulator_figures(&one, INT64_MIN, true, f);
		accumulator_figures(&together, INT64_MIN, true, g);
		for (unsigned i = 0; i < N_FIGURES; i++) {
			assert_true(isnan(f[i]) == isnan(g[i]));
			// After a rest, a counter's windows begin at another reading.
			double tolerance = kind == METRIC_COUNTER && i >= FIGURE_P50 ? 0.1 : 1e-9;
			assert_true(isnan(f[i]) || fabs(f[i] - g[i]) <= tolerance * fabs(f[i]));
		}
		accumulator_done(&one);
		accumulator_done(&together);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_counter_that_begins_with_its_entity),
		cmocka_unit_test(test_a_counter_that_was_there_before),
		cmocka_unit_test(test_a_counter_that_steps_back_adds_nothing),
		cmocka_unit_test(test_rates_are_over_windows),
		cmocka_unit_test(test_a_gauge_is_weighted_by_how_long_it_stood),
		cmocka_unit_test(test_nothing_read_is_no_figure),
		cmocka_unit_test(test_quantiles_are_near_the_exact_ones),
		cmocka_unit_test(test_rows_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
