// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What three rates say about the input.

#include "probe/stalls.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct probe_rate rate(double value, double half)
{
	return (struct probe_rate){
		.rate = {value, value - half, value + half}, .iterations = 100, .of_samples = true};
}

static const struct probe_rate nothing = {.rate = {NAN, NAN, NAN}};

static void near(double found, double expected)
{
	assert_true(fabs(found - expected) < 1e-9);
}

static void test_shares_of_time(void **state)
{
	(void)state;
	const struct probe_rate rates[N_STALL_RUNS] = {[PROBE_COMPUTE] = rate(400, 4),
		[PROBE_WARM] = rate(300, 3),
		[PROBE_COLD] = rate(150, 15)};
	struct stalls s;
	stalls_compute(rates, &s);
	near(s.prep.value, 0.25);
	near(s.prep.high - s.prep.low, 2 * 0.75 * sqrt(2) * 0.01);
	near(s.fetch.value, 0.5);
	near(s.fetch.high - s.fetch.value, 0.5 * sqrt(0.01 * 0.01 + 0.1 * 0.1));
	assert_true(stall_is_sure(&s.prep));
	assert_true(stall_is_sure(&s.fetch));
}

static void test_chance_is_no_stall(void **state)
{
	(void)state;
	const struct probe_rate rates[N_STALL_RUNS] = {[PROBE_COMPUTE] = rate(300, 9),
		[PROBE_WARM] = rate(298, 9),
		[PROBE_COLD] = rate(305, 9)};
	struct stalls s;
	stalls_compute(rates, &s);
	assert_true(s.prep.value > 0 && s.prep.low < 0);
	assert_false(stall_is_sure(&s.prep));
	near(s.fetch.value, 1 - 305.0 / 298); // faster cold than warm stays in the interval
	assert_true(s.fetch.low < s.fetch.value && s.fetch.high > 0);
	near(stall_noise(&s.fetch), 305.0 / 298 * hypot(9.0 / 305, 9.0 / 298));
	assert_false(stall_is_sure(&s.fetch));
	assert_false(s.contention);
}

// Warm is faster than compute by more than either run varies: something else slowed compute down.
static void test_contention_makes_intervals_wide(void **state)
{
	(void)state;
	const struct probe_rate rates[N_STALL_RUNS] = {[PROBE_COMPUTE] = rate(250, 2.5),
		[PROBE_WARM] = rate(300, 3),
		[PROBE_COLD] = rate(270, 2.7)};
	struct stalls s;
	stalls_compute(rates, &s);
	near(s.prep.value, -0.2);
	assert_true(s.contention);
	near(stall_noise(&s.prep), hypot(1.2 * sqrt(2) * 0.01, 1.96 * 0.2));
	assert_true(s.prep.low < -0.5 && s.prep.high > 0.1);
	near(s.fetch.value, 0.1); // which would have been sure
	near(stall_noise(&s.fetch), hypot(0.9 * sqrt(2) * 0.01, 1.96 * 0.2));
	assert_false(stall_is_sure(&s.fetch));
}

static void test_what_is_missing(void **state)
{
	(void)state;
	struct probe_rate rates[N_STALL_RUNS] = {[PROBE_COMPUTE] = nothing,
		[PROBE_WARM] = rate(300, 9),
		[PROBE_COLD] = rate(100, 1)};
	struct stalls s;
	stalls_compute(rates, &s);
	assert_true(isnan(s.prep.value) && isnan(s.prep.low));
	assert_true(isfinite(s.fetch.value));
	rates[PROBE_COLD].of_samples = false; // iterations a second, not samples
	stalls_compute(rates, &s);
	assert_true(isnan(s.fetch.value));
	rates[PROBE_COLD] = rate(0, 0);
	stalls_compute(rates, &s);
	assert_true(isnan(s.fetch.value));
	// A rate from too few iterations has no interval: neither has the stall.
	rates[PROBE_COLD] = rate(100, NAN);
	stalls_compute(rates, &s);
	assert_true(isfinite(s.fetch.value) && isnan(s.fetch.low));
	assert_false(stall_is_sure(&s.fetch));
}

static struct phases run_of(uint64_t steady, double seconds, double half)
{
	return (struct phases){.steady = steady,
		.iterations_s = seconds,
		.length_s = {0.1, 0.1 - half, 0.1 + half},
		.samples_per_s = {NAN, NAN, NAN}};
}

static void test_when_a_rate_is_known(void **state)
{
	(void)state;
	struct phases p = run_of(100, 10, 0.002);
	assert_true(probe_rate_is_known(&p, 0.03, PROBE_SECONDS));
	assert_false(probe_rate_is_known(&p, 0.01, PROBE_SECONDS));
	p.n_workers = 11; // each of which prepared batches before the first was taken
	assert_false(probe_rate_is_known(&p, 0.03, PROBE_SECONDS));
	p = run_of(10, 10, 0.002);
	assert_false(probe_rate_is_known(&p, 0.03, PROBE_SECONDS));
	p = run_of(100, 1, 0.002);
	assert_false(probe_rate_is_known(&p, 0.03, PROBE_SECONDS));
	p = run_of(100, 10, NAN);
	assert_false(probe_rate_is_known(&p, 0.03, PROBE_SECONDS));
}

static void test_iterations_where_nobody_counts_samples(void **state)
{
	(void)state;
	struct phases p = run_of(100, 10, 0.02);
	struct probe_rate found;
	probe_rate_of(&p, &found);
	assert_false(found.of_samples);
	near(found.rate.value, 10);
	near(found.rate.low, 1 / 0.12);
	near(found.rate.high, 1 / 0.08);
	p.samples_per_s = (struct estimate){320, 310, 330};
	probe_rate_of(&p, &found);
	assert_true(found.of_samples);
	near(found.rate.value, 320);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares_of_time),
		cmocka_unit_test(test_chance_is_no_stall),
		cmocka_unit_test(test_contention_makes_intervals_wide),
		cmocka_unit_test(test_what_is_missing),
		cmocka_unit_test(test_when_a_rate_is_known),
		cmocka_unit_test(test_iterations_where_nobody_counts_samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
