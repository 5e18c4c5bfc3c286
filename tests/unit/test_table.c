// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tables for people and for programs, CSV and JSON: widths, what is missing, hostile names.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "show/csv.h"
#include "show/json.h"
#include "show/table.h"

static const struct column columns[] = {
	{"name", "NAME", COLUMN_TEXT, 0},
	{"memory_bytes", "MEMORY", COLUMN_BYTES, 0},
	{"share_ratio", "SHARE", COLUMN_RATIO, 1},
	{"never", "NEVER", COLUMN_NUMBER, 0},
	{"hidden", NULL, COLUMN_WHOLE, 0},
};

static struct table *make_table(void)
{
	struct table *t;
	assert_int_equal(table_new(columns, ARRAY_LENGTH(columns), &t), 0);
	assert_int_equal(table_row(t), 0);
	table_text(t, 0, "a long name that a narrow terminal has no room for");
	table_number(t, 1, 3.2e9);
	table_number(t, 2, 0.614);
	table_number(t, 4, 7);
	assert_int_equal(table_row(t), 0);
	table_text(t, 0, "b\xff\x1b[2J\xc3\xa4");
	table_number(t, 1, NAN);
	return t;
}

static char *print(const struct table *t, struct table_style style)
{
	char *printed = NULL;
	size_t length;
	FILE *stream = open_memstream(&printed, &length);
	assert_non_null(stream);
	assert_int_equal(table_print(t, stream, &style), 0);
	fclose(stream);
	return printed;
}

static void test_a_table_has_titles_of_its_own(void **state)
{
	(void)state;
	struct table *t = make_table();
	table_set_title(t, 2, "FIRST");
	table_set_title(t, 2, "STEPS/S");
	_cleanup_free_ char *printed = print(t, (struct table_style){0});
	assert_non_null(strstr(printed, "MEMORY  STEPS/S"));
	assert_null(strstr(printed, "SHARE"));
	assert_null(strstr(printed, "FIRST"));
	json_t *json = table_to_json(t);
	assert_non_null(json_object_get(json_array_get(json, 0), "share_ratio"));
	json_decref(json);
	table_free(t);
}

static void test_people_see_units(void **state)
{
	(void)state;
	struct table *t = make_table();
	_cleanup_free_ char *printed = print(t, (struct table_style){.width = 100, .indent = 2});
	assert_string_equal(printed,
		"  NAME                                                MEMORY  SHARE\n"
		"  a long name that a narrow terminal has no room for  3.2 GB   61 %\n"
		"  b\\xff\\x1b[2J\xc3\xa4                                            -      -\n");
	table_free(t);
}

static void test_a_wide_interval_is_marked_for_people(void **state)
{
	(void)state;
	static const struct column rates[] = {
		{"low", "FROM", COLUMN_NUMBER, 0}, {NULL, "", COLUMN_LABEL, 0}};
	struct table *t;
	assert_int_equal(table_new(rates, ARRAY_LENGTH(rates), &t), 0);
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(table_row(t), 0);
		table_number(t, 0, 10);
		table_wide(t, 1, 10, i * 30);
	}
	_cleanup_free_ char *printed = print(t, (struct table_style){0});
	assert_string_equal(printed, "FROM\n  10\n  10  interval says little (factor of 6)\n");
	json_t *json = table_to_json(t);
	assert_int_equal(json_object_size(json_array_get(json, 1)), 1);
	json_decref(json);
	table_free(t);
}

static void test_narrow_terminals(void **state)
{
	(void)state;
	struct table *t = make_table();
	_cleanup_free_ char *narrow = print(t, (struct table_style){.width = 36});
	assert_string_equal(narrow, "NAME                   MEMORY  SHARE\n"
				    "a long name that a n\xe2\x80\xa6  3.2 GB   61 %\n"
				    "b\\xff\\x1b[2J\xc3\xa4               -      -\n");
	_cleanup_free_ char *narrower = print(t, (struct table_style){.width = 26});
	assert_null(strstr(narrower, "61 %"));
	assert_non_null(strstr(narrower, "3.2 GB"));
	assert_non_null(strstr(narrower, "\nnot shown in 26 columns:\nSHARE\n"));
	assert_null(strstr(narrow, "not shown"));
	table_free(t);
}

static void test_prose_goes_on_below(void **state)
{
	(void)state;
	static const struct column prose[] = {
		{"kind", "KIND", COLUMN_LABEL, 0},
		{"text", "TEXT", COLUMN_PROSE, 0},
		{"n", "N", COLUMN_WHOLE, 0},
	};
	struct table *t;
	assert_int_equal(table_new(prose, ARRAY_LENGTH(prose), &t), 0);
	table_row(t);
	table_text(t, 0, "one");
	table_text(t, 1, "words that do not fit, averylongwordofmany \xc3\xa4\xc3\xb6\xc3\xbc");
	table_number(t, 2, 5);
	table_row(t);
	table_text(t, 0, "two");
	table_text(t, 1, "short");
	_cleanup_free_ char *printed = print(t, (struct table_style){.width = 25});
	assert_string_equal(printed, "KIND  TEXT              N\n"
				     "one   words that do     5\n"
				     "      not fit,\n"
				     "      averylongwordofm\n"
				     "      any \xc3\xa4\xc3\xb6\xc3\xbc\n"
				     "two   short             -\n");
	table_free(t);
}

static void test_programs_see_numbers(void **state)
{
	(void)state;
	struct table *t = make_table();
	json_t *rows = table_to_json(t);
	_cleanup_free_ char *text = json_dumps(rows, JSON_COMPACT | JSON_REAL_PRECISION(15));
	assert_string_equal(text,
		"[{\"name\":\"a long name that a narrow terminal has no room for\","
		"\"memory_bytes\":3200000000,\"share_ratio\":0.614,\"never\":null,\"hidden\":7},"
		"{\"name\":\"b\xef\xbf\xbd\\u001B[2J\xc3\xa4\",\"memory_bytes\":null,"
		"\"share_ratio\":null,\"never\":null,\"hidden\":null}]");
	json_decref(rows);
	table_free(t);
}

static void test_an_empty_table_is_nothing(void **state)
{
	(void)state;
	struct table *t;
	assert_int_equal(table_new(columns, ARRAY_LENGTH(columns), &t), 0);
	table_text(t, 0, "no row yet");
	_cleanup_free_ char *printed = print(t, (struct table_style){.width = 80});
	assert_string_equal(printed, "");
	table_free(t);
}

static void test_csv_quotes_what_needs_it(void **state)
{
	(void)state;
	struct text t = {0};
	csv_append_text(&t, "plain");
	text_append_string(&t, ";");
	csv_append_text(&t, "a,\"b\"\n");
	text_append_string(&t, ";");
	csv_append_text(&t, NULL);
	text_append_string(&t, ";");
	csv_append_number(&t, NAN);
	csv_append_number(&t, 0.1);
	_cleanup_free_ char *line = text_steal(&t);
	assert_string_equal(line, "plain;\"a,\"\"b\"\"\n\";;0.1");
}

static void test_csv_has_no_formulas(void **state)
{
	(void)state;
	static const struct {
		const char *field;
		const char *written;
	} rows[] = {{"=1+1", "'=1+1"}, {"+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"},
		{"-lr", "'-lr"}, {"-", "'-"}, {"@SUM(1)", "'@SUM(1)"}, {"\t=1", "'\t=1"},
		{"=1,2", "\"'=1,2\""}, {"\r=1", "\"'\r=1\""}, {"-nan", "'-nan"}, {"-0x1", "'-0x1"},
		{"-1e999", "'-1e999"},
		// what they are
		{"-1", "-1"}, {"+5", "+5"}, {"-3.5e-2", "-3.5e-2"}, {"a=b", "a=b"}, {"", ""},
		{"1-2", "1-2"}, {"'", "'"}};
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		_cleanup_text_ struct text t = {0};
		csv_append_text(&t, rows[i].field);
		assert_string_equal(t.data ? t.data : "", rows[i].written);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_people_see_units),
		cmocka_unit_test(test_a_table_has_titles_of_its_own),
		cmocka_unit_test(test_a_wide_interval_is_marked_for_people),
		cmocka_unit_test(test_narrow_terminals),
		cmocka_unit_test(test_prose_goes_on_below),
		cmocka_unit_test(test_programs_see_numbers),
		cmocka_unit_test(test_an_empty_table_is_nothing),
		cmocka_unit_test(test_csv_quotes_what_needs_it),
		cmocka_unit_test(test_csv_has_no_formulas),
	};
	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
