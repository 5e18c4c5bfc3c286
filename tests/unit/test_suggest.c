// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/text.h"

static void test_a_near_word_has_most_letters(void **state)
{
	(void)state;
	static const struct {
		const char *typed, *known;
		bool near;
	} cases[] = {
		{"shw", "show", true},
		{"epoch_second", "epoch_seconds", true},
		{"lables", "labels", true},
		{"ls", "ls", true},
		{"rn", "run", true},
		{"-x", "ls", false},
		{"t1", "io1", false},
		{"t1", "t2", false},
		{"abcd", "abef", false},
		{"abcdefghi", "zzzdefghi", false},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct suggestion_of_word s = SUGGEST_NONE;
		suggest_consider(&s, cases[i].typed, cases[i].known);
		assert_int_equal(s.word != NULL, cases[i].near);
	}
}

static void expect_refused(const char *word, const char *wanted)
{
	static const struct argp_option first[] = {{"help", 'h', NULL, 0, "", 0}, {0}};
	static const struct argp_option second[] = {
		{"json", 'j', NULL, 0, "", 0},
		{"interval", 1, "TIME", 0, "", 0},
		{"no-hooks", 2, NULL, 0, "", 0},
		{"no-markers", 3, NULL, 0, "", 0},
		{"output", 'o', "FILE", 0, "", 0},
		{"label", 4, "NAME", 0, "", 0},
		{"labels", 5, NULL, 0, "", 0},
		{"secret", 6, NULL, OPTION_HIDDEN, "", 0},
		{0},
	};
	const struct argp_option *const tables[] = {first, second};
	_cleanup_text_ struct text t = {0};
	suggest_append_refused(&t, word, tables, ARRAY_LENGTH(tables));
	assert_string_equal(t.data, wanted);
}

static void test_a_refused_option_has_its_reason(void **state)
{
	(void)state;
	expect_refused("--jsn", "no option '--jsn'; did you mean '--json'?");
	expect_refused("--intervall=5", "no option '--intervall'; did you mean '--interval'?");
	expect_refused("--frob", "no option '--frob'");
	expect_refused("--secre", "no option '--secre'");
	expect_refused("--json=3", "option '--json' takes no value, found '3'");
	expect_refused("--js=3", "option '--json' takes no value, found '3'");
	expect_refused("--interval", "option '--interval' needs a value: TIME");
	expect_refused("--label", "option '--label' needs a value: NAME");
	expect_refused("--no", "option '--no' is ambiguous: --no-hooks, --no-markers");
	expect_refused("-o", "option '-o' needs a value: FILE");
	expect_refused("-x", "no option '-x'");
	expect_refused("-jx", "no option '-jx'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_near_word_has_most_letters),
		cmocka_unit_test(test_a_refused_option_has_its_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
