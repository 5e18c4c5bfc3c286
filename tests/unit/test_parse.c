// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"

static void test_cursor_numbers(void **state)
{
	(void)state;
	const char text[] = " 12 -7\t18446744073709551616 x";
	struct cursor c = cursor_of(text, sizeof(text) - 1);
	uint64_t u;
	int64_t i;
	assert_true(cursor_u64(&c, &u));
	assert_int_equal(u, 12);
	assert_false(cursor_u64(&c, &u));
	assert_true(cursor_i64(&c, &i));
	assert_int_equal(i, -7);
	assert_false(cursor_u64(&c, &u)); // passes 64 bits: nothing moves
	struct cursor word;
	assert_true(cursor_word(&c, &word));
	assert_true(cursor_is(word, "18446744073709551616"));
}

static void test_cursor_lines_need_no_newline_at_the_end(void **state)
{
	(void)state;
	struct cursor c = cursor_of("a\n\nb", 4), line;
	assert_true(cursor_line(&c, &line));
	assert_true(cursor_is(line, "a"));
	assert_true(cursor_line(&c, &line));
	assert_true(cursor_is(line, ""));
	assert_true(cursor_line(&c, &line));
	assert_true(cursor_is(line, "b"));
	assert_false(cursor_line(&c, &line));
}

static void test_durations(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {{"10ms", 10000000}, {"1.5s", 1500000000}, {"250us", 250000},
		{"1min", 60000000000}, {"2 h", 7200000000000}, {"0s", 0}};
	for (size_t i = 0; i < ARRAY_LENGTH(good); i++) {
		uint64_t ns;
		assert_int_equal(parse_duration(good[i].text, &ns, NULL), 0);
		assert_int_equal(ns, good[i].ns);
	}
	static const char *const bad[] = {"", "10", "ms", "-1s", "1 parsec", "nan s", "inf s",
		"0x10s", "1e300s", " 1s", "1s x"};
	for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
		struct error e = {0};
		uint64_t ns = 77;
		assert_true(parse_duration(bad[i], &ns, &e) < 0);
		assert_int_equal(ns, 77);
		assert_non_null(strstr(e.text, "expected a duration"));
		assert_non_null(strstr(e.text, "found"));
	}
}

static void test_sizes_and_percentages(void **state)
{
	(void)state;
	uint64_t bytes;
	assert_int_equal(parse_size("256MiB", &bytes, NULL), 0);
	assert_int_equal(bytes, 268435456);
	assert_int_equal(parse_size("1.5 GB", &bytes, NULL), 0);
	assert_int_equal(bytes, 1500000000);
	uint64_t with_unit = 0;
	assert_int_equal(parse_size("4G", &bytes, NULL), 0);
	assert_int_equal(parse_size("4GiB", &with_unit, NULL), 0);
	assert_int_equal(bytes, with_unit);
	assert_int_equal(parse_size("1.5T", &bytes, NULL), 0);
	assert_int_equal(bytes, UINT64_C(3) << 39);
	assert_int_equal(parse_size("512K", &bytes, NULL), 0);
	assert_int_equal(bytes, 512 << 10);
	assert_int_equal(parse_rate("100M/s", &bytes, NULL), 0);
	assert_int_equal(bytes, 100 << 20);
	assert_true(parse_size("4g", &bytes, NULL) < 0);
	assert_int_equal(parse_size("4096", &bytes, NULL), 0);
	assert_int_equal(bytes, 4096);
	assert_int_equal(parse_rate("2.5MB/s", &bytes, NULL), 0);
	assert_int_equal(bytes, 2500000);
	assert_true(parse_rate("2MB", &bytes, NULL) < 0);
	assert_true(parse_rate("/s", &bytes, NULL) < 0);
	assert_true(parse_size("12 apples", &bytes, NULL) < 0);
	double ratio;
	assert_int_equal(parse_percent("0.5 %", &ratio, NULL), 0);
	assert_float_equal(ratio, 0.005, 1e-12);
	assert_true(parse_percent("101%", &ratio, NULL) < 0);
	assert_true(parse_percent("0.5", &ratio, NULL) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cursor_numbers),
		cmocka_unit_test(test_cursor_lines_need_no_newline_at_the_end),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_sizes_and_percentages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
