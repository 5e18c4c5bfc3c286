// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What clocks of groups of threads say: teams, Python threads, one thread that computes.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "verdict/facts.h"
#include "base/text.h"
#include "job_facts.h"

static void put(struct facts *f, enum thread_group group, double threads, double cpus)
{
	f->threads.groups[group] = (struct thread_group_facts){threads, cpus, 0, 0};
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

// Every group is known, and has no threads but the first.
static struct facts alone(double data)
{
	struct facts f = job(data);
	f.framework = FRAMEWORK_PYTORCH;
	for (size_t i = 0; i < N_THREAD_GROUPS; i++) {
		put(&f, (enum thread_group)i, i == THREADS_MAIN, i == THREADS_MAIN ? 1 - data : 0);
	}
	return f;
}

static void test_one_thread_computes(void **state)
{
	(void)state;
	struct facts f = alone(0.2);
	thread_facts_conclude(&f.threads, &f, 0, 0);
	assert_true(f.threads.known);
	assert_true(f.threads.others_cpus == 0);
	assert_true(isnan(f.threads.team_cpus) && isnan(f.threads.team_outside));
	struct text text = {0};
	thread_facts_append(&text, &f.threads);
	assert_string_equal(text.data, "main thread 0.8 CPUs");
	text_done(&text);
}

static void test_a_team_that_runs_while_nothing_computes(void **state)
{
	(void)state;
	struct facts f = alone(0.4); // forward, backward and optimizer are 59 %
	put(&f, THREADS_OPENMP, 3, 2.7);
	put(&f, THREADS_BLAS, 3, 0.3);
	thread_facts_conclude(&f.threads, &f, 0, 0.31);
	assert_true(near(f.threads.team_cpus, 3.0));
	assert_true(near(f.threads.team_threads, 6));
	assert_true(near(f.threads.team_busy, 0.9));
	assert_true(near(f.threads.team_outside, 0.9 - 0.59));
	assert_true(near(f.threads.team_alone, 0.31));
	assert_true(near(f.threads.others_cpus, 3.0));
}

static void test_a_team_that_computes(void **state)
{
	(void)state;
	struct facts f = alone(0.1);
	put(&f, THREADS_BLAS, 1, 0.7);
	thread_facts_conclude(&f.threads, &f, 0, 0);
	assert_true(f.threads.team_outside == 0);
}

static void test_unnamed_threads_are_a_team_where_they_never_wait(void **state)
{
	(void)state;
	struct facts f = alone(0.1);
	put(&f, THREADS_UNNAMED, 1, 0.8);
	struct thread_facts t = f.threads;
	thread_facts_conclude(&t, &f, 8, 0);
	assert_true(t.unnamed_poll && near(t.team_cpus, 0.8));
	t = f.threads; // nobody may look
	thread_facts_conclude(&t, &f, 0, 0);
	assert_false(t.unnamed_poll);
	assert_true(isnan(t.team_cpus));
	t = f.threads;
	f.framework = FRAMEWORK_UNKNOWN; // without Python, any thread that computes always runs
	thread_facts_conclude(&t, &f, 8, 0);
	assert_false(t.unnamed_poll);
}

static void test_python_threads_share_one_cpu(void **state)
{
	(void)state;
	struct facts f = alone(0.1);
	put(&f, THREADS_MAIN, 1, 0.15);
	put(&f, THREADS_PYTHON, 2, 0.9);
	thread_facts_conclude(&f.threads, &f, 0, 0.7);
	assert_true(near(f.threads.python_together, 1.05));
	assert_true(isnan(f.threads.team_cpus));
}

static void test_an_unnamed_thread_that_holds_the_lock(void **state)
{
	(void)state;
	struct facts f = alone(0.1);
	put(&f, THREADS_MAIN, 1, 0.1);
	put(&f, THREADS_UNNAMED, 2, 0.94);
	struct thread_facts t = f.threads;
	thread_facts_conclude(&t, &f, 5, 0.7);
	assert_true(t.unnamed_alone);
	assert_false(t.unnamed_poll);
	t = f.threads;
	t.groups[THREADS_MAIN].cpus = 0.6; // two that do not take turns
	thread_facts_conclude(&t, &f, 5, 0.4);
	assert_false(t.unnamed_alone);
	t = f.threads;
	thread_facts_conclude(&t, &f, 5, NAN);
	assert_false(t.unnamed_alone);
}

static void test_time_before_a_name_is_moved(void **state)
{
	(void)state;
	struct facts f = alone(0.1);
	put(&f, THREADS_UNNAMED, 2, 1.0);
	double earlier[N_THREAD_GROUPS] = {[THREADS_BLAS] = 6, [THREADS_PYTHON] = NAN};
	thread_facts_rename(&f.threads, earlier, 8);
	assert_true(near(f.threads.groups[THREADS_BLAS].cpus, 0.75));
	assert_true(near(f.threads.groups[THREADS_UNNAMED].cpus, 0.25));
	assert_true(f.threads.groups[THREADS_PYTHON].cpus == 0);
	// What cannot be: more than all of it.
	earlier[THREADS_BLAS] = 100;
	thread_facts_rename(&f.threads, earlier, 8);
	assert_true(f.threads.groups[THREADS_UNNAMED].cpus == 0);
	thread_facts_rename(&f.threads, earlier, NAN);
	assert_true(near(f.threads.groups[THREADS_BLAS].cpus, 1.0));
}

static void test_nothing_known(void **state)
{
	(void)state;
	struct facts f = job(0.1);
	thread_facts_conclude(&f.threads, &f, NAN, NAN);
	assert_false(f.threads.known);
	assert_true(isnan(f.threads.others_cpus));
	struct text text = {0};
	thread_facts_append(&text, &f.threads);
	assert_int_equal(text.length, 0);
	text_done(&text);
	f = alone(0.1);
	put(&f, THREADS_OPENMP, 1, 0.9);
	f.share[PHASE_FORWARD] = f.share[PHASE_BACKWARD] = f.share[PHASE_OPTIMIZER] =
		(struct estimate){NAN, NAN, NAN};
	thread_facts_conclude(&f.threads, &f, 0, 0);
	assert_true(isnan(f.threads.team_outside));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread_computes),
		cmocka_unit_test(test_a_team_that_runs_while_nothing_computes),
		cmocka_unit_test(test_a_team_that_computes),
		cmocka_unit_test(test_unnamed_threads_are_a_team_where_they_never_wait),
		cmocka_unit_test(test_python_threads_share_one_cpu),
		cmocka_unit_test(test_an_unnamed_thread_that_holds_the_lock),
		cmocka_unit_test(test_time_before_a_name_is_moved),
		cmocka_unit_test(test_nothing_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
