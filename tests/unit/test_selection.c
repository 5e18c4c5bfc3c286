// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "study/selection.h"
#include "made_runs.h"

// Whether a run has one condition.
static bool has(const struct digest *run, const char *condition)
{
	struct selection s = {0};
	struct error e = {0};
	assert_int_equal(selection_add(&s, condition, &e), 0);
	bool result = selection_has(&s, run);
	selection_done(&s);
	return result;
}

static void test_labels_are_compared_as_numbers_or_words(void **state)
{
	(void)state;
	struct made_runs r = {0};
	const struct digest *run = made_runs_add(&r, "batch_size=32 framework=pytorch", 0, 0);
	assert_true(has(run, "batch_size=32"));
	assert_true(has(run, "batch_size<=32"));
	assert_true(has(run, "batch_size<128")); // as words, 128 is before 32
	assert_false(has(run, "batch_size>128"));
	assert_true(has(run, "framework=pytorch"));
	assert_false(has(run, "framework!=pytorch"));
	assert_true(has(run, "machine=here"));
	made_runs_done(&r);
}

static void test_measures_are_compared_where_a_run_has_them(void **state)
{
	(void)state;
	struct made_runs r = {0};
	const struct digest *run = made_runs_add(&r, "a=1", MEASURE_EPOCH, 41.5);
	assert_true(has(run, "epoch_seconds<60"));
	assert_true(has(run, "epoch_seconds=41.5"));
	assert_false(has(run, "step_seconds<60")); // not known
	assert_false(has(run, "nothing=1"));
	assert_true(has(run, "nothing!=1"));
	made_runs_done(&r);
}

static void test_outcomes_are_words(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct digest *run = made_runs_add(&r, "a=1", 0, 0);
	run->outcome = OUTCOME_OUT_OF_MEMORY;
	assert_true(has(run, "outcome=out_of_memory"));
	assert_true(has(run, "outcome=out of memory"));
	assert_true(has(run, "outcome!=success"));
	made_runs_done(&r);
}

static void test_wrong_conditions_are_errors(void **state)
{
	(void)state;
	static const char *const wrong[] = {"a", "=3", "outcome=bogus", "epoch_seconds<x",
		"epoch_seconds<", "epoch_seconds=nan"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct selection s = {0};
		struct error e = {0};
		assert_int_equal(selection_add(&s, wrong[i], &e), -EINVAL);
		assert_true(strlen(e.text) > 0);
		selection_done(&s);
	}
}

static void test_the_number_of_conditions_is_bounded(void **state)
{
	(void)state;
	struct selection s = {0};
	struct error e = {0};
	for (size_t i = 0; i < WHERE_MAX; i++) {
		assert_int_equal(selection_add(&s, "a=1", &e), 0);
	}
	assert_int_equal(selection_add(&s, "a=1", &e), -EINVAL);
	selection_done(&s);
}

static void test_unknown_names_are_found(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct selection s = {0};
	struct error e = {0};
	struct text line = {0};
	made_runs_add(&r, "batch_size=32", 0, 0);
	const struct catalogue c = {.runs = r.runs, .n = r.n};
	assert_int_equal(selection_add(&s, "batch_size=32", &e), 0);
	assert_int_equal(selection_add(&s, "epoch_seconds<60", &e), 0);
	assert_null(selection_unknown_name(&s, &c));
	assert_int_equal(selection_add(&s, "batchsize=32", &e), 0);
	assert_string_equal(selection_unknown_name(&s, &c), "batchsize");
	selection_append_unknown(&line, &c, "--where", "batchsize", true);
	assert_non_null(strstr(line.data, "'batch_size'"));
	text_done(&line);
	selection_done(&s);
	made_runs_done(&r);
}

static void test_selected_runs_are_in_the_order_of_the_paths(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct selected selected;
	struct selection s = {0};
	char first[] = "first", second[] = "second";
	char *const paths[] = {first, second};
	made_runs_add(&r, "a=newest", 0, 0)->found_by = 1;
	made_runs_add(&r, "a=newer", 0, 0)->found_by = 0;
	made_runs_add(&r, "a=oldest", 0, 0)->found_by = 0;
	const struct catalogue c = {.runs = r.runs, .n = r.n};
	assert_int_equal(selected_find(&s, &c, paths, &selected), 0);
	assert_int_equal(selected.n, 3);
	assert_ptr_equal(selected.runs[0], r.list[2]);
	assert_ptr_equal(selected.runs[1], r.list[1]);
	assert_ptr_equal(selected.runs[2], r.list[0]);
	assert_string_equal(selected.sources[0], "first");
	assert_string_equal(selected.sources[2], "second");
	selected_done(&selected);
	made_runs_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels_are_compared_as_numbers_or_words),
		cmocka_unit_test(test_measures_are_compared_where_a_run_has_them),
		cmocka_unit_test(test_outcomes_are_words),
		cmocka_unit_test(test_wrong_conditions_are_errors),
		cmocka_unit_test(test_the_number_of_conditions_is_bounded),
		cmocka_unit_test(test_unknown_names_are_found),
		cmocka_unit_test(test_selected_runs_are_in_the_order_of_the_paths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
