// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Observations: accumulated batches, and runs that cannot be read.

#include "probe/observation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_accumulated_batches_count_each(void **state)
{
	(void)state;
	struct observation o = {.batch_size = 480,
		.accumulated = 1,
		.iterations = 10,
		.rate = {240, 235, 245},
		.iteration = {2.0, 1.9, 2.1},
		.compute = 1.6,
		.wait = 0.4,
		.main_cpu = 1.2,
		.prepare_cpu = 0.001,
		.leak_per_iteration = NAN};
	observation_divide(&o, 40);
	assert_true(o.batch_size == 12 && o.accumulated == 40 && o.iterations == 400);
	assert_true(fabs((double)o.batch_size / o.iteration.value - o.rate.value) < 1e-9);
	assert_true(fabs(o.compute + o.wait - o.iteration.value) < 1e-12);
	assert_true(fabs(o.iteration.high - 0.0525) < 1e-12 && fabs(o.main_cpu - 0.03) < 1e-12);
	assert_true(o.rate.value == 240 && o.prepare_cpu == 0.001);
	assert_true(isnan(o.leak_per_iteration));
}

static void test_parts_that_are_not_known_are_not_held(void **state)
{
	(void)state;
	struct observation o = {.anonymous = 100, .shared = NAN, .kernel = 5};
	assert_true(observation_held(&o) == 105);
	o.anonymous = NAN;
	assert_true(isnan(observation_held(&o)));
}

static void test_no_run(void **state)
{
	(void)state;
	struct observation o;
	struct error e = {0};
	assert_true(observation_read("/nonexistent/run.strain", &o, &e) < 0);
	assert_true(e.text[0] != '\0' && isnan(o.rate.value) && o.batch_size == -1);
	observation_done(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accumulated_batches_count_each),
		cmocka_unit_test(test_parts_that_are_not_known_are_not_held),
		cmocka_unit_test(test_no_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
