// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What settings gain, and how many probes there is time for.

#include "probe/tries.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/statistics.h"

static void test_ratio_of_rates(void **state)
{
	(void)state;
	const double without[] = {100, 102, 98, 100}, with[] = {150, 153, 147},
		     same[] = {101, 97, 103};
	struct estimate gain = tries_gain(without, 4, with, 3);
	assert_true(fabs(gain.value - 1.5) < 1e-12);
	struct estimate none = tries_gain(without, 4, same, 3);
	// Relative errors of the means: 1.63 % of 4, 2 % of 3; t of 3.9 degrees is 2.8.
	assert_true(gain.low > 1.43 && gain.low < 1.47 && gain.high > 1.53 && gain.high < 1.57);
	assert_true(fabs(gain.low * gain.high - 2.25) < 1e-9); // the same whichever way round
	assert_true(none.low < 1 && none.high > 1);
}

static void test_what_is_missing(void **state)
{
	(void)state;
	const double rates[] = {100, 102}, one[] = {150};
	struct estimate gain = tries_gain(rates, 2, one, 1);
	assert_true(gain.value > 1 && isnan(gain.low) && isnan(gain.high));
	gain = tries_gain(rates, 2, one, 0);
	assert_true(isnan(gain.value) && isnan(gain.low));
	gain = tries_gain(rates, 0, one, 1);
	assert_true(isnan(gain.value));
}

static void test_a_design_fits_the_time(void **state)
{
	(void)state;
	const struct design wanted = {3, 3};
	assert_int_equal(design_probes(wanted), 3 * 4 + 6);
	assert_int_equal(design_probes((struct design){1, 3}), 6); // nothing to put together
	struct design fits = design_fit(wanted, 10, 200);
	assert_true(fits.candidates == 3 && fits.repeats == 3);
	fits = design_fit(wanted, 10, 130); // 12 probes
	assert_true(fits.candidates == 3 && fits.repeats == 2);
	fits = design_fit(wanted, 10, 105); // 10 probes
	assert_true(fits.candidates == 2 && fits.repeats == 2);
	fits = design_fit(wanted, 10, 1);
	assert_true(fits.candidates == 1 && fits.repeats == GAIN_REPEATS_MIN);
}

static void test_a_first_probe_is_cold_by_evidence(void **state)
{
	(void)state;
	static const struct {
		double stored[2], asked;
		size_t probes;
		bool cold;
	} cases[] = {
		{{2e6, 0}, 2e6, 3, true},
		{{2e6, 1.5e6}, 2e6, 3, false}, // both were
		{{2e6, 0}, 2e6, 2, false}, // too few without it
		{{2e6, 0}, 2e9, 3, false}, // a small part of what it read
		{{4e3, 0}, 4e3, 3, false}, // all of next to nothing: it has no data
		{{NAN, 0}, 2e6, 3, false},
		{{2e6, 0}, NAN, 3, false},
		{{2e6, NAN}, 2e6, 3, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct tries t = {.without = {.n = cases[i].probes},
			.stored_rate = {cases[i].stored[0], cases[i].stored[1]},
			.asked_rate = {cases[i].asked, cases[i].asked}};
		assert_int_equal(tries_first_is_cold(&t), cases[i].cold);
	}
}

static void test_rounds_go_forth_and_back(void **state)
{
	(void)state;
	const struct design design = {3, 2};
	assert_int_equal(design_turn(design, 0, 0), 0);
	assert_int_equal(design_turn(design, 0, 2), 2);
	assert_int_equal(design_turn(design, 1, 0), 2);
	assert_int_equal(design_turn(design, 1, 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ratio_of_rates),
		cmocka_unit_test(test_what_is_missing),
		cmocka_unit_test(test_a_design_fits_the_time),
		cmocka_unit_test(test_a_first_probe_is_cold_by_evidence),
		cmocka_unit_test(test_rounds_go_forth_and_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
