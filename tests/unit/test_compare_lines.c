// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "study/comparison.h"
#include "made_runs.h"

static void assert_name(const struct made_runs *r, size_t which, const char *expected)
{
	_cleanup_text_ struct text name = {0};
	comparison_append_line_name(&name, r->list, r->n, which);
	assert_string_equal(name.data, expected);
}

static void test_names_and_order_by_what_differs(void **state)
{
	(void)state;
	struct made_runs r = {0};
	const struct digest *sorted[4];
	made_runs_add(&r, "batch_size=128 framework=tensorflow dataset=dt1 trial=1", 0, 0);
	made_runs_add(&r, "batch_size=32 framework=tensorflow dataset=dt1 trial=2", 0, 0);
	made_runs_add(&r, "batch_size=128 framework=pytorch dataset=dt1 trial=3", 0, 0);
	made_runs_add(&r, "framework=pytorch dataset=dt1 trial=4", 0, 0);
	assert_name(&r, 0, "tensorflow batch size 128");
	assert_name(&r, 3, "pytorch");
	comparison_sort_lines(sorted, r.list, r.n);
	assert_true(sorted[2] == r.list[1] && sorted[3] == r.list[0]); // 32, 128 of TensorFlow
	made_runs_done(&r);
}

static void test_repeats_have_their_names(void **state)
{
	(void)state;
	struct made_runs r = {0};
	const struct digest *sorted[3];
	made_runs_add(&r, "workers=2 repeat=1", 0, 0)->name = (char *)(uintptr_t) "0001-1";
	made_runs_add(&r, "workers=2 repeat=2", 0, 0)->name = (char *)(uintptr_t) "0001-2";
	made_runs_add(&r, "workers=0 repeat=1", 0, 0);
	assert_name(&r, 0, "0001-1");
	assert_name(&r, 1, "0001-2");
	assert_name(&r, 2, "workers 0");
	comparison_sort_lines(sorted, r.list, r.n);
	assert_true(sorted[0] == r.list[2] && sorted[1] == r.list[0] && sorted[2] == r.list[1]);
	r.n = 1;
	assert_name(&r, 0, "0001-1");
	r.n = 3;
	made_runs_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_order_by_what_differs),
		cmocka_unit_test(test_repeats_have_their_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
