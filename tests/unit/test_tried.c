// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Settings that may be tried, trials that a run keeps, and what of the advice they leave.

#include "verdict/tried.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "verdict/verdict.h"

static struct setting_list one(enum setting_kind kind, const char *value)
{
	struct setting_list list = {0};
	assert_true(setting_add(&list, 0, kind, value));
	return list;
}

static bool is_allowed(enum setting_kind kind, const char *value)
{
	struct setting_list list = {0};
	return setting_add(&list, 0, kind, value);
}

static void test_only_what_is_harmless_may_be_set(void **state)
{
	(void)state;
	assert_true(is_allowed(SETTING_ENVIRONMENT, "OMP_NUM_THREADS=1"));
	assert_true(is_allowed(SETTING_ENVIRONMENT, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"));
	assert_false(is_allowed(SETTING_ENVIRONMENT, "LD_PRELOAD=libx.so"));
	assert_false(is_allowed(SETTING_ENVIRONMENT, "OMP_NUM_THREADS"));
	assert_false(is_allowed(SETTING_ENVIRONMENT, "OMP_NUM_THREADS="));
	assert_false(is_allowed(SETTING_ENVIRONMENT, "OMP_NUM_THREADS=1;ls"));
	assert_false(is_allowed(SETTING_ENVIRONMENT, "OMP_NUM_THREADS_=1"));
	assert_true(is_allowed(SETTING_WORKERS, "0"));
	assert_false(is_allowed(SETTING_WORKERS, "-1"));
	assert_false(is_allowed(SETTING_WORKERS, "100000"));
	assert_false(is_allowed(SETTING_WORKERS, "2 at=x"));
	assert_false(is_allowed(SETTING_PREFETCH, "0"));
	assert_false(is_allowed(SETTING_PIN, "2"));
	assert_true(is_allowed(SETTING_CPUS, "0-3,8"));
	assert_false(is_allowed(SETTING_CPUS, "0 -o x"));
	assert_false(is_allowed(N_SETTING_KINDS, "1"));
	struct setting_list full = {0};
	for (int i = 0; i < SETTINGS_MAX; i++) {
		assert_true(setting_add(&full, 0, SETTING_WORKERS, "1"));
	}
	assert_false(setting_add(&full, 0, SETTING_WORKERS, "1"));
}

static void test_choices_and_joining(void **state)
{
	(void)state;
	struct setting_list list = {0}, choice, joined;
	setting_add(&list, 0, SETTING_ENVIRONMENT, "OMP_NUM_THREADS=1");
	setting_add(&list, 0, SETTING_WORKERS, "2");
	setting_add(&list, 3, SETTING_ENVIRONMENT, "OMP_WAIT_POLICY=passive");
	assert_true(setting_choose(&list, 0, &choice));
	assert_int_equal(choice.n, 2);
	assert_true(setting_choose(&list, 3, &choice));
	struct setting_list passive = one(SETTING_ENVIRONMENT, "OMP_WAIT_POLICY=passive");
	assert_true(setting_same(&choice, &passive));
	assert_false(setting_choose(&list, 1, &choice));
	struct setting_list two = one(SETTING_WORKERS, "2"), four = one(SETTING_WORKERS, "4");
	assert_true(setting_join(&passive, &two, &joined));
	assert_int_equal(joined.n, 2);
	assert_false(setting_join(&joined, &four, &joined)); // it has two already
	assert_int_equal(joined.n, 2);
	assert_true(setting_join(&joined, &two, &joined)); // the same
	assert_int_equal(joined.n, 2);
	struct setting_list turned = {{joined.items[1], joined.items[0]}, 2};
	assert_true(setting_same(&joined, &turned));
	assert_false(setting_same(&joined, &two));
	// A variable whose name begins like another's is another.
	struct setting_list arenas = one(SETTING_ENVIRONMENT, "MALLOC_ARENA_MAX=1");
	assert_true(setting_join(&passive, &arenas, &joined));
	struct setting_list active = one(SETTING_ENVIRONMENT, "OMP_WAIT_POLICY=active");
	assert_false(setting_join(&passive, &active, &joined));
}

static struct tried trial(struct setting_list settings, double gain, double low, double high)
{
	return (struct tried){.settings = settings,
		.promised = {1.5, NAN, NAN},
		.gain = {gain, low, high},
		.probes = 3};
}

static void test_a_run_keeps_them(void **state)
{
	(void)state;
	struct tried_list list = {0}, read;
	struct text json = {0};
	char reason[] = "the job failed";
	struct tried gained = trial(
		one(SETTING_ENVIRONMENT, "OMP_NUM_THREADS=1"), 1.48, 1.41, 1.55);
	struct tried failed = trial(one(SETTING_WORKERS, "2"), NAN, NAN, NAN);
	failed.missing = reason;
	failed.at_most = true;
	assert_int_equal(tried_add(&list, &gained), 0);
	assert_int_equal(tried_add(&list, &failed), 0);
	assert_int_equal(tried_add(&list, &gained), 0); // in place of the first
	assert_int_equal(list.n, 2);
	tried_append_json(&json, &list);
	assert_int_equal(tried_read(json.data, &read), 0);
	assert_int_equal(read.n, 2);
	const struct tried *found = tried_find(&read, &gained.settings);
	assert_non_null(found);
	assert_true(tried_gained(found) && !tried_in_vain(found));
	assert_true(fabs(found->gain.high - 1.55) < 1e-9 && found->probes == 3);
	assert_true(isnan(found->promised.low));
	found = tried_find(&read, &failed.settings);
	assert_string_equal(found->missing, "the job failed");
	assert_true(found->at_most && !tried_gained(found) && !tried_in_vain(found));
	tried_done(&read);
	tried_done(&list);
	text_done(&json);
}

static void test_what_a_run_says_is_not_believed(void **state)
{
	(void)state;
	static const char *const hostile[] = {
		NULL,
		"",
		"[",
		"7",
		"{\"settings\":[]}",
		"[7,null,[],{}]",
		"[{\"settings\":[],\"gain\":[2,1.5,3]}]",
		"[{\"settings\":[{\"environment\":\"LD_PRELOAD=x.so\"}],\"gain\":[2,1.5,3]}]",
		"[{\"settings\":[{\"num_workers\":2}],\"gain\":[2,1.5,3]}]",
		"[{\"settings\":[{\"nothing\":\"2\"}],\"gain\":[2,1.5,3]}]",
	};
	struct tried_list list;
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		assert_int_equal(tried_read(hostile[i], &list), 0);
		assert_int_equal(list.n, 0);
	}
	// A gain that is none, an interval that does not hold it, what moves a cursor.
	assert_int_equal(tried_read("[{\"settings\":[{\"num_workers\":\"2\"}],\"gain\":[-1,0,3],"
				    "\"probes\":-4,\"missing\":\"\\u001b[2J\"},"
				    "{\"settings\":[{\"num_workers\":\"3\"}],\"gain\":[2,3,4]}]",
				 &list),
		0);
	assert_int_equal(list.n, 2);
	assert_true(isnan(list.items[0].gain.value) && list.items[0].probes == 0);
	assert_null(strchr(list.items[0].missing, '\x1b'));
	assert_true(list.items[1].gain.value == 2 && isnan(list.items[1].gain.low));
	tried_done(&list);
}

static void give(struct verdict *v, size_t i, const char *action, struct setting_list settings)
{
	v->suggestions[i] = (struct suggestion){
		.gain = {NAN, NAN, NAN}, .action = strdup(action), .settings = settings};
}

static void test_what_gained_nothing_is_no_advice(void **state)
{
	(void)state;
	struct verdict v = {.suggestions = calloc(4, sizeof(*v.suggestions)), .n_suggestions = 4};
	struct setting_list threads = one(SETTING_ENVIRONMENT, "OMP_NUM_THREADS=1");
	struct setting_list both = threads, workers = one(SETTING_WORKERS, "2");
	setting_add(&both, 1, SETTING_ENVIRONMENT, "OMP_WAIT_POLICY=passive");
	give(&v, 0, "workers", workers);
	give(&v, 1, "edit", (struct setting_list){0});
	give(&v, 2, "threads, or passive", both);
	give(&v, 3, "pin", one(SETTING_PIN, "1"));
	struct tried in_vain = trial(workers, 1.02, 0.97, 1.07),
		     slower = trial(threads, 0.8, 0.7, 0.9);
	assert_int_equal(tried_add(&v.tried, &in_vain), 0);
	assert_int_equal(tried_add(&v.tried, &slower), 0);
	assert_int_equal(tried_apply(&v), 0);
	assert_int_equal(v.n_in_vain, 1);
	assert_string_equal(v.in_vain[0].action, "workers");
	// The other choice may gain yet.
	assert_int_equal(v.n_suggestions, 3);
	assert_string_equal(v.suggestions[1].action, "threads, or passive");
	assert_null(v.suggestions[1].tried);

	struct tried gained = trial(
		one(SETTING_ENVIRONMENT, "OMP_WAIT_POLICY=passive"), 1.3, 1.2, 1.4);
	assert_int_equal(tried_add(&v.tried, &gained), 0);
	free(v.in_vain[0].action);
	free(v.in_vain);
	v.n_in_vain = 0;
	assert_int_equal(tried_apply(&v), 0);
	assert_int_equal(v.n_suggestions, 3);
	assert_string_equal(v.suggestions[0].action, "threads, or passive"); // tried: the first
	assert_true(v.suggestions[0].tried->gain.value == 1.3);
	assert_true(tried_is_told(&v, v.suggestions[0].tried));
	assert_false(tried_is_told(&v, &v.tried.items[0]));
	verdict_done(&v);
}

static void expect_words(struct tried tried, const char *expected)
{
	struct text t = {0};
	tried_append(&t, &tried);
	assert_string_equal(t.data, expected);
	text_done(&t);
}

static void test_words(void **state)
{
	(void)state;
	char reason[] = "the job failed";
	struct setting_list list = one(SETTING_ENVIRONMENT, "OMP_NUM_THREADS=1");
	expect_words(
		trial(list, 1.48, 1.41, 1.55), "measured: 1.48x (1.41 to 1.55), estimated 1.5x");
	expect_words(trial(list, 1, 0.9, 1.1),
		"measured: no significant gain: 1.00x (0.90 to 1.10), estimated 1.5x");
	struct tried failed = trial(list, NAN, NAN, NAN);
	failed.missing = reason;
	expect_words(failed, "not tried: the job failed");
	struct text t = {0};
	setting_add(&list, 0, SETTING_PERSISTENT, "1");
	setting_add(&list, 0, SETTING_WORKERS, "2");
	setting_append(&t, &list);
	assert_string_equal(
		t.data, "OMP_NUM_THREADS=1 with persistent_workers=True with num_workers=2");
	text_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_what_is_harmless_may_be_set),
		cmocka_unit_test(test_choices_and_joining),
		cmocka_unit_test(test_a_run_keeps_them),
		cmocka_unit_test(test_what_a_run_says_is_not_believed),
		cmocka_unit_test(test_what_gained_nothing_is_no_advice),
		cmocka_unit_test(test_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
