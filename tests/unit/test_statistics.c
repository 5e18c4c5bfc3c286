// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Repeats against published values.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/cleanup.h"
#include "run/statistics.h"

static void near(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance)) {
		fail_msg("%.12g, expected %.12g", value, expected);
	}
}

static void test_a_mean_and_its_interval(void **state)
{
	(void)state;
	const double values[] = {4.1, NAN, 4.5, 3.9, 4.3, NAN};
	struct repeats r = statistics_of(values, ARRAY_LENGTH(values));
	assert_int_equal(r.n, 4);
	near(r.mean, 4.2, 1e-12);
	near(r.deviation, 0.2581988897, 1e-9);
	near(r.half, 3.182446305 * 0.2581988897 / 2, 1e-8); // t of 3 degrees, from tables
}

static void test_few_repeats_have_no_interval(void **state)
{
	(void)state;
	const double values[] = {NAN, 7, NAN};
	struct repeats one = statistics_of(values, 3), none = statistics_of(values, 1);
	assert_true(one.n == 1 && one.mean == 7 && isnan(one.half) && isnan(one.deviation));
	assert_true(none.n == 0 && isnan(none.mean));
	assert_true(isnan(statistics_welch(&one, &one)));
}

// NIST/SEMATECH e-Handbook 1.3.5.3 (miles per gallon, unequal variances): t = -12.94627 with
// 136.8750 degrees of freedom.
static void test_welch_against_the_handbook(void **state)
{
	(void)state;
	struct repeats american = {249, 20.14458, 6.414700, NAN};
	struct repeats japanese = {79, 30.48101, 6.107710, NAN};
	double p = statistics_welch(&american, &japanese);
	assert_true(p > 0 && p < 1e-24);
}

// Student's own data (sleep, 1908), as every statistics package has it: Welch gives t = -1.8608
// with 17.776 degrees of freedom, p = 0.07939.
static void test_welch_on_students_sleep(void **state)
{
	(void)state;
	const double first[] = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
	const double second[] = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
	struct repeats a = statistics_of(first, 10), b = statistics_of(second, 10);
	near(statistics_welch(&a, &b), 0.07939, 5e-6);
	near(statistics_welch(&b, &a), 0.07939, 5e-6);
}

static void test_what_never_varies(void **state)
{
	(void)state;
	const double threes[] = {3, 3}, fours[] = {4, 4, 4};
	struct repeats a = statistics_of(threes, 2), b = statistics_of(fours, 3);
	near(statistics_welch(&a, &b), 0, 0);
	near(statistics_welch(&a, &a), 1, 0);
	near(a.half, 0, 0);
}

// As R's p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.9), "holm").
static void test_holm(void **state)
{
	(void)state;
	double p[] = {0.03, 0.01, NAN, 0.9, 0.02, 0.04};
	const double adjusted[] = {0.09, 0.05, NAN, 0.9, 0.08, 0.09};
	assert_int_equal(statistics_holm(p, ARRAY_LENGTH(p)), 0);
	for (size_t i = 0; i < ARRAY_LENGTH(p); i++) {
		if (isnan(adjusted[i])) {
			assert_true(isnan(p[i]));
		} else {
			near(p[i], adjusted[i], 1e-12);
		}
	}
}

// t of 4 degrees of freedom is 2.776445 in every table: two configurations of three repeats that
// vary by a tenth each. h = 2.776445 * sqrt(2 * 0.1^2 / 3).
static void test_a_ratio_has_an_interval(void **state)
{
	(void)state;
	const double fast[] = {18, 20, 22}, slow[] = {36, 40, 44}, one[] = {20}, same[] = {20, 20};
	struct repeats a = statistics_of(slow, 3), b = statistics_of(fast, 3);
	double h = statistics_ratio(&a, &b);
	assert_float_equal(h, 0.226696, 1e-5);
	assert_float_equal(2 / exp(h), 1.594327, 1e-5);
	assert_float_equal(statistics_ratio(&b, &a), h, 1e-12);
	struct repeats c = statistics_of(one, 1), d = statistics_of(same, 2);
	assert_true(isnan(statistics_ratio(&a, &c)));
	assert_float_equal(statistics_ratio(&d, &d), 0, 0);
	const double below[] = {-1, 1};
	struct repeats e = statistics_of(below, 2);
	assert_true(isnan(statistics_ratio(&a, &e)));
}

static void test_outliers(void **state)
{
	(void)state;
	const double values[] = {10, 10.1, 9.9, 10.05, 14, 9.95}, equal[] = {1, 1, 1, 1, 2};
	bool outlier[6];
	assert_int_equal(statistics_outliers(values, 6, outlier), 1);
	assert_true(outlier[4]);
	assert_int_equal(statistics_outliers(values, 4, outlier), 0);
	assert_int_equal(statistics_outliers(values + 2, 4, outlier), 0); // too few to say so
	assert_int_equal(statistics_outliers(equal, 5, outlier), 0);
	assert_int_equal(statistics_outliers(NULL, 0, outlier), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_ratio_has_an_interval),
		cmocka_unit_test(test_outliers),
		cmocka_unit_test(test_a_mean_and_its_interval),
		cmocka_unit_test(test_few_repeats_have_no_interval),
		cmocka_unit_test(test_welch_against_the_handbook),
		cmocka_unit_test(test_welch_on_students_sleep),
		cmocka_unit_test(test_what_never_varies),
		cmocka_unit_test(test_holm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
