// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Figures as words.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/words.h"
#include "base/cleanup.h"

static void test_progress(void **state)
{
	(void)state;
	static const struct {
		uint64_t done, total;
		double seconds;
		const char *expected; // NULL: nothing is said
	} cases[] = {
		{10, 100, 1.9, NULL},
		{2, 100, 2, "2 %"},
		{50, 100, 4, "50 %, 4 s left"},
		{25, 100, 100, "25 %, 5 min 0 s left"},
		{100, 100, 10, "99 %, 1 s left"},
		{700, 100, 10, "99 %, 1 s left"}, // what was estimated wrongly
		{5, 0, 3, "0 %"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		_cleanup_text_ struct text line = {0};
		bool said = words_append_progress(
			&line, cases[i].done, cases[i].total, cases[i].seconds);
		assert_int_equal(said, cases[i].expected != NULL);
		if (said) {
			assert_string_equal(line.data, cases[i].expected);
		}
	}
}

static void place(const char *full, size_t columns, const char *expected)
{
	struct text t = {0};
	words_append_place(&t, full, columns);
	assert_string_equal(t.data, expected);
	text_done(&t);
}

static void test_a_place_keeps_its_file_and_line(void **state)
{
	(void)state;
	place("train.py:42", 40, "train.py:42");
	place("/home/me/train.py:42", 40, "/home/me/train.py:42");
	place("/scratch/project/users/me/net/train.py:42", 24, "\u2026/me/net/train.py:42");
	place("/scratch/project/users/me/net/train.py:42", 4, "\u2026/train.py:42");
	place("a_file_with_a_very_long_name.py:1234", 10, "a_file_with_a_very_long_name.py:1234");
	place("/tmp/\x1b[31mred.py:1", 8, "\u2026/\\x1b[31mred.py:1");
}

static void test_a_wide_interval_says_little(void **state)
{
	(void)state;
	static const struct {
		double low, high;
		const char *expected;
	} cases[] = {{10, 73, "interval says little (factor of 7.3)"}, {10, 50, ""},
		{0, 40, "interval says little"}, {-3, 1, "interval says little"}, {-3, -1, ""},
		{NAN, 40, ""}, {10, NAN, ""}, {0, 0, ""}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct text t = {0};
		words_append_wide(&t, cases[i].low, cases[i].high);
		assert_string_equal(t.data ? t.data : "", cases[i].expected);
		assert_int_equal(words_is_wide(cases[i].low, cases[i].high), t.length > 0);
		text_done(&t);
	}
}

static void test_a_number_keeps_its_unit(void **state)
{
	(void)state;
	assert_int_equal(words_unbroken("3.1 %, other"), 6);
	assert_int_equal(words_unbroken("(+-2.0 %, 92 iterations)"), 9);
	assert_int_equal(words_unbroken("12 iterations"), 2);
	assert_int_equal(words_unbroken("3 min 4 s left"), 5);
	assert_int_equal(words_unbroken("MB of"), 2);
	assert_int_equal(words_unbroken("5 MB"), 4);
	assert_int_equal(words_unbroken(" % x"), 0);
	assert_int_equal(words_unbroken(""), 0);
}

static void test_folding(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t column, indent, width;
		const char *expected;
	} cases[] = {{"one two three", 0, 0, 7, "one two\nthree"},
		{"one two three", 4, 4, 11, "one two\n    three"},
		{"one two", 2, 6, 80, "    one two"},
		{"unbreakable words", 3, 3, 5, "unbreakable\n   words"},
		{"takes 3.1 MB of it", 0, 0, 10, "takes\n3.1 MB of\nit"}, {"", 3, 8, 80, ""},
		{"a\x1b[31m b", 0, 0, 80, "a\\x1b[31m b"}, {"a  b   c", 0, 0, 80, "a b c"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_text_ struct text t = {0};
		words_append_folded(
			&t, cases[i].text, cases[i].column, cases[i].indent, cases[i].width);
		assert_string_equal(t.data ? t.data : "", cases[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folding),
		cmocka_unit_test(test_a_wide_interval_says_little),
		cmocka_unit_test(test_a_number_keeps_its_unit),
		cmocka_unit_test(test_a_place_keeps_its_file_and_line),
		cmocka_unit_test(test_progress),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
