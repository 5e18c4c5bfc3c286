// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static void test_json_escapes_what_would_break_it(void **state)
{
	(void)state;
	struct text t = {0};
	text_append_json(&t, "a\"\\\n\x01\xff\xc3\xa4", 8);
	_cleanup_free_ char *json = text_steal(&t);
	assert_string_equal(json, "\"a\\\"\\\\\\n\\u0001\xef\xbf\xbd\xc3\xa4\"");
}

static void expect_printable(const char *raw, const char *wanted)
{
	struct text t = {0};
	text_append_printable(&t, raw, strlen(raw));
	_cleanup_free_ char *shown = text_steal(&t);
	assert_string_equal(shown, wanted);
}

static void test_printable_escapes_what_is_not_seen(void **state)
{
	(void)state;
	expect_printable("a\x1b[2J\xc2\x9b\U0001f600", "a\\x1b[2J\\u009b\U0001f600");
	expect_printable("a\nb\rc\td\x7f\a", "a\\nb\\rc\\td\\x7f\\x07");
	expect_printable("\xff\xc2 \xe2\x80", "\\xff\\xc2 \\xe2\\x80");
	expect_printable("\u202e\u2066\u200e\u061c\u200b\ufeff\U000e0041",
		"\\u202e\\u2066\\u200e\\u061c\\u200b\\ufeff\\U000e0041");
	expect_printable("\u00e9\u4e2d\u0939\u05d0 \u00a0\u2010\u2070",
		"\u00e9\u4e2d\u0939\u05d0 \u00a0\u2010\u2070");
}

static void test_lines_stay_lines(void **state)
{
	(void)state;
	struct text t = {0};
	text_append_lines(&t, "a\r\nb\x1b\n", 6);
	_cleanup_free_ char *shown = text_steal(&t);
	assert_string_equal(shown, "a\\r\nb\\x1b\n");
}

static void expect_word(const char *raw, const char *wanted)
{
	struct text t = {0};
	text_append_word(&t, raw);
	_cleanup_free_ char *word = text_steal(&t);
	assert_string_equal(word, wanted);
}

static void test_words_are_those_of_a_shell(void **state)
{
	(void)state;
	expect_word("a/b.strain", "a/b.strain");
	expect_word("", "''");
	expect_word("a b", "'a b'");
	expect_word("it's", "'it'\\''s'");
	expect_word("new\nline", "$'new\\nline'");
	expect_word("\x1b'\\\xff", "$'\\x1b\\'\\\\\\xff'");
	expect_word("\u00e9\u202e", "$'\u00e9\\xe2\\x80\\xae'");
}

static void expect_path(const char *raw, const char *wanted)
{
	struct text t = {0};
	text_append_path(&t, raw);
	_cleanup_free_ char *path = text_steal(&t);
	assert_string_equal(path, wanted);
}

static void test_paths_are_no_options(void **state)
{
	(void)state;
	expect_path("-dash.strain", "./-dash.strain");
	expect_path("a-dash.strain", "a-dash.strain");
	expect_path("-new\nline", "$'./-new\\nline'");
}

static void test_nothing_appended_is_an_empty_string(void **state)
{
	(void)state;
	struct text t = {0};
	_cleanup_free_ char *empty = text_steal(&t);
	assert_string_equal(empty, "");
}

static void test_quantities(void **state)
{
	(void)state;
	char b[32];
	assert_string_equal(text_bytes(b, sizeof(b), 3.2e9), "3.2 GB");
	assert_string_equal(text_bytes(b, sizeof(b), 310e6), "310 MB");
	assert_string_equal(text_bytes(b, sizeof(b), 999.7e6), "1.0 GB");
	assert_string_equal(text_bytes(b, sizeof(b), 0), "0 B");
	assert_string_equal(text_bytes_beside(b, sizeof(b), 0x1p32, 0x1p32), "4.0 GiB");
	assert_string_equal(text_bytes_beside(b, sizeof(b), 3.2e9, 0x1p32), "3.0 GiB");
	assert_string_equal(text_bytes_beside(b, sizeof(b), 256 * 0x1p20, 0x1p28), "256 MiB");
	assert_string_equal(text_bytes_beside(b, sizeof(b), 4e9, 4e9), "4.0 GB");
	assert_string_equal(text_bytes_beside(b, sizeof(b), 4e9, NAN), "4.0 GB");
	assert_string_equal(text_seconds(b, sizeof(b), 41.23), "41.2 s");
	assert_string_equal(text_seconds(b, sizeof(b), 124), "2 min 4 s");
	assert_string_equal(text_seconds(b, sizeof(b), 11520), "3 h 12 min");
	assert_string_equal(text_seconds(b, sizeof(b), 0.0123), "12.3 ms");
	assert_string_equal(text_percent(b, sizeof(b), 0.614), "61 %");
	assert_string_equal(text_percent(b, sizeof(b), 0.004), "0.4 %");
	assert_string_equal(text_percent(b, sizeof(b), 0), "0 %");
	assert_string_equal(text_percent(b, sizeof(b), -0.0004), "0 %");
	assert_string_equal(text_percent(b, sizeof(b), -0.071), "-7.1 %");
	assert_string_equal(text_count(b, sizeof(b), 12344), "12,344");
	assert_string_equal(text_count(b, sizeof(b), 7), "7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_escapes_what_would_break_it),
		cmocka_unit_test(test_printable_escapes_what_is_not_seen),
		cmocka_unit_test(test_lines_stay_lines),
		cmocka_unit_test(test_words_are_those_of_a_shell),
		cmocka_unit_test(test_paths_are_no_options),
		cmocka_unit_test(test_nothing_appended_is_an_empty_string),
		cmocka_unit_test(test_quantities),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
