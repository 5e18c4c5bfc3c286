// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Figures that no machine can have are left out and noted; those that one can have stay.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "run/analysis.h"
#include "verdict/facts.h"
#include "run/plausible.h"

// Two CPUs, 16 GB, a run of ten seconds.
static const struct machine_bounds machine = {2, 16e9, 10, 8};

static void test_what_is_possible_stays(void **state)
{
	(void)state;
	struct facts f, before;
	struct implausible_list notes = {0};
	facts_init(&f);
	f.cpus_used = 2.01; // as clocks that are read one after the other have it
	f.main_cpus = 0;
	f.training_s = 10;
	f.workers.n = 2;
	f.workers.preparing = 2;
	f.workers.cpus = 1.9;
	f.share[PHASE_DATA].value = 1;
	f.gpu.to_device_rate = 12e9;
	f.gpu.link_rate = f.gpu.link_best = 15.8e9;
	before = f;
	facts_check_plausible(&machine, &f, &notes);
	assert_memory_equal(&f, &before, sizeof(f));
	assert_int_equal(notes.n, 0);
}

static void test_what_is_not_is_left_out_and_noted(void **state)
{
	(void)state;
	struct facts f;
	struct implausible_list notes = {0};
	facts_init(&f);
	f.workers.n = 1;
	f.workers.cpus = 2.5;
	f.workers.preparing = 1.5;
	f.share[PHASE_FORWARD].value = -0.1;
	f.training_s = 57.6;
	f.gpu.to_device_rate = 40e9;
	f.gpu.link_rate = f.gpu.link_best = 15.8e9;
	f.storage.read_rate = 1e15;
	f.cpus_used = INFINITY;
	facts_check_plausible(&machine, &f, &notes);
	assert_true(isnan(f.workers.cpus) && isnan(f.workers.preparing));
	assert_true(isnan(f.share[PHASE_FORWARD].value) && isnan(f.training_s));
	assert_true(isnan(f.gpu.to_device_rate) && isnan(f.storage.read_rate));
	assert_true(isnan(f.cpus_used));
	assert_int_equal(notes.n, 7);
	assert_string_equal(notes.items[2], "loader workers, CPUs: 2.5 of at most 2.053");
	f.workers.cpus = 2.5; // gathered anew: it is noted once
	facts_check_plausible(&machine, &f, &notes);
	assert_int_equal(notes.n, 7);
	facts_check_plausible(&machine, &f, NULL);
	implausible_list_done(&notes);
}

// Of a stretch of 10 ms clocks in ticks say nothing.
static void test_short_stretches(void **state)
{
	(void)state;
	const struct machine_bounds brief = {2, 16e9, 0.01, 0.01};
	const struct machine_bounds unknown = {NAN, NAN, NAN, NAN};
	struct facts f;
	facts_init(&f);
	f.cpus_used = 4;
	facts_check_plausible(&brief, &f, NULL);
	assert_true(f.cpus_used == 4);
	f.cpus_used = 4000;
	f.training_s = 4000;
	facts_check_plausible(&unknown, &f, NULL);
	assert_true(f.cpus_used == 4000 && f.training_s == 4000);
}

static void test_notes_are_bounded(void **state)
{
	(void)state;
	struct facts f;
	struct implausible_list notes = {0};
	for (size_t i = 0; i < 2 * (size_t)IMPLAUSIBLE_MAX; i++) {
		facts_init(&f);
		f.cpus_used = 100 + (double)i;
		facts_check_plausible(&machine, &f, &notes);
		assert_true(isnan(f.cpus_used));
	}
	assert_int_equal(notes.n, IMPLAUSIBLE_MAX);
	implausible_list_done(&notes);
}

static void test_the_overview(void **state)
{
	(void)state;
	struct gpu_figures gpu = {.busy = 1.5, .memory_bytes = 8e9, .memory_peak_bytes = 9e9};
	struct implausible_list notes = {0};
	struct analysis a = {.overview = {.host_cpus = 2,
				     .recorded_s = 10,
				     .running_s = 10,
				     .cpu_seconds = 30,
				     .cpus_used = 3,
				     .cpus_used_p95 = 2.2,
				     .throttled = 0.5,
				     .gpus = &gpu,
				     .n_gpus = 1}};
	plausible_overview(&a.tables, &a.overview, &notes);
	assert_true(isnan(a.overview.cpu_seconds) && isnan(a.overview.cpus_used));
	assert_true(a.overview.cpus_used_p95 == 2.2 && a.overview.throttled == 0.5);
	assert_true(isnan(gpu.busy) && isnan(gpu.memory_peak_bytes));
	assert_int_equal(notes.n, 4);
	implausible_list_done(&notes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_possible_stays),
		cmocka_unit_test(test_what_is_not_is_left_out_and_noted),
		cmocka_unit_test(test_short_stretches),
		cmocka_unit_test(test_notes_are_bounded),
		cmocka_unit_test(test_the_overview),
	};
	return cmocka_run_group_tests_name("plausible", tests, NULL, NULL);
}
