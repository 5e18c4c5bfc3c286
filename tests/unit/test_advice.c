// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What is advised keeps within CPUs, memory and /dev/shm, and is said once.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "analyze/advice.h"
#include "analyze/causes.h"
#include "job_facts.h"

// rate(W, C) = min(1 / computing, W / prepare, C / (c_main + c_prepare))
static void workers_are_advised_by_the_model(void **state)
{
	(void)state;
	struct facts f = input_workers();
	assert_int_equal(advice_workers(&f), 3); // 1 / 0.4 = 2.5
	assert_true(fabs(advice_length_with(&f, 2, 4) - 0.5) < 1e-9);
	assert_true(fabs(advice_length_with(&f, 3, 4) - 0.4) < 1e-9);
	f.cpus = 2; // there is no more than 2 / 1.4 of it
	assert_true(fabs(advice_length_with(&f, 3, 2) - 0.7) < 1e-9);
	assert_int_equal(advice_workers(&f), 2);
	f.cpus = 1;
	assert_int_equal(advice_workers(&f), 1);
	f = input_alone();
	assert_int_equal(advice_workers(&f), 1); // while it computes
	f.cpus = 1;
	assert_true(advice_length_with(&f, 1, 1) >= 1 - 1e-9);
}

static void workers_keep_within_memory(void **state)
{
	(void)state;
	struct facts f = input_workers();
	f.memory.peak_bytes = 4e9; // 2 GB each
	f.memory.limit_bytes = 7e9;
	assert_int_equal(advice_workers(&f), 2);
	f.memory.limit_bytes = 5e9;
	assert_int_equal(advice_workers(&f), 1);
	f.memory.limit_bytes = 50e9;
	f.memory.shared_bytes = 30e6;
	f.memory.shared_limit_bytes = 64e6; // a container's /dev/shm
	assert_int_equal(advice_workers(&f), 1);
}

static void assert_advised(const char *loader_at, const char *action)
{
	struct facts f = input_workers();
	struct causes c;
	struct verdict v = {0};
	f.loader_at = loader_at;
	causes_find(&f, &c);
	assert_int_equal(advice_build(&f, &c, &v), 0);
	assert_true(v.n_suggestions >= 2);
	bool named = false;
	for (size_t i = 0; i < v.n_suggestions; i++) {
		named |= strcmp(v.suggestions[i].action, action) == 0;
	}
	assert_true(named);
	verdict_done(&v);
}

static void the_same_is_advised_once(void **state)
{
	(void)state;
	struct facts f = input_workers();
	const struct estimate half = {0.5, 0.45, 0.55};
	const struct causes both = {
		.n = 2, .items = {{BOTTLENECK_INPUT, half, 0.5}, {BOTTLENECK_STORAGE, half, 0.5}}};
	struct verdict v = {0};
	assert_int_equal(advice_build(&f, &both, &v), 0);
	unsigned workers = 0;
	for (size_t i = 0; i < v.n_suggestions; i++) {
		workers += strstr(v.suggestions[i].action, "loader workers") != NULL;
	}
	assert_int_equal(workers, 1);
	verdict_done(&v);
}

static void advice_names_the_line(void **state)
{
	(void)state;
	assert_advised("train.py:42", "train.py:42  num_workers 1 -> 3");
	assert_advised(NULL, "loader workers 1 -> 3"); // not everybody's are PyTorch's
}

// A step that uses no CPU and no GPU computes nothing: it waits for something.

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_are_advised_by_the_model),
		cmocka_unit_test(workers_keep_within_memory),
		cmocka_unit_test(the_same_is_advised_once),
		cmocka_unit_test(advice_names_the_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
