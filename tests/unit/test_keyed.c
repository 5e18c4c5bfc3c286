// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "record/source/keyed.h"

enum { USED, FREE, CACHED, EVENTS, N };
static const struct metric metrics[N] = {
	[USED] = {"used", METRIC_GAUGE, "By", 1024, ""},
	[FREE] = {"free", METRIC_GAUGE, "By", 1024, ""},
	[CACHED] = {"cached", METRIC_GAUGE, "By", 1024, ""},
	[EVENTS] = {"events", METRIC_COUNTER, "{event}", 1, ""},
};
static const struct keyed_row rows[] = {
	{"total", KEYED_ADD, USED},
	{"free", KEYED_ADD, FREE},
	{"free", KEYED_SUBTRACT, USED},
	{"cached", KEYED_ADD, CACHED},
	{"slab", KEYED_ADD_KNOWN, CACHED},
	{"slab", KEYED_SUBTRACT_KNOWN, USED},
	{"events_new", KEYED_ADD, EVENTS},
	{"events", KEYED_ELSE, EVENTS},
};
static const struct keyed_file file = {"proc/none", rows, ARRAY_LENGTH(rows), KEYED_PLAIN};

static size_t take(const struct keyed_file *f, const char *text, int64_t values[N])
{
	for (size_t i = 0; i < N; i++) {
		values[i] = VALUE_MISSING;
	}
	return keyed_values(f, cursor_of(text, strlen(text)), metrics, values);
}

static void test_rows_add_up(void **state)
{
	(void)state;
	int64_t values[N];
	assert_int_equal(
		take(&file,
			"total 102400\nfree: 20 kB\ncached 10240\nslab 3072\nevents_new 7\n"
			"events 9\n",
			values),
		6);
	assert_int_equal(values[USED], 100 - 20 - 3);
	assert_int_equal(values[FREE], 20);
	assert_int_equal(values[CACHED], 13);
	assert_int_equal(values[EVENTS], 7);
}

static void test_a_key_that_is_absent(void **state)
{
	(void)state;
	int64_t values[N];
	assert_int_equal(take(&file, "cached 10240\ntotal 102400\nevents 9\n", values), 3);
	assert_true(values[USED] == VALUE_MISSING); // free is not known
	assert_true(values[FREE] == VALUE_MISSING);
	assert_int_equal(values[CACHED], 10); // slab need not be there
	assert_int_equal(values[EVENTS], 9); // the older name
	assert_int_equal(take(&file, "", values), 0);
	assert_true(values[EVENTS] == VALUE_MISSING);
}

static void test_numbers_that_cannot_be(void **state)
{
	(void)state;
	int64_t values[N];
	take(&file, "total 1024\nfree 4096\ncached 9223372036854775807\nslab 1024\n", values);
	assert_int_equal(values[USED], 0); // not negative
	assert_true(values[CACHED] == VALUE_MISSING); // overflow
	take(&file, "free -9223372036854775807\ntotal 9223372036854775807\n", values);
	assert_true(values[USED] == VALUE_MISSING);
}

static void test_units(void **state)
{
	(void)state;
	static const struct metric seconds[] = {{"time", METRIC_COUNTER, "s", 1e-6, ""}};
	static const struct keyed_row alone[] = {{NULL, KEYED_ADD, 0}};
	static const struct {
		enum keyed_unit unit;
		const char *text;
		int64_t value;
	} cases[] = {
		{KEYED_MICROSECONDS, "1234\n", 1234},
		{KEYED_NANOSECONDS, "1234567\n", 1234},
		{KEYED_TICKS, "3\n", 30000},
		{KEYED_TICKS, "9223372036854775807\n", VALUE_MISSING},
		{KEYED_NANOSECONDS, "none\n", VALUE_MISSING},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const struct keyed_file f = {"proc/none", alone, 1, cases[i].unit};
		int64_t value = VALUE_MISSING;
		keyed_values(&f, cursor_of(cases[i].text, strlen(cases[i].text)), seconds, &value);
		assert_true(value == cases[i].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_add_up),
		cmocka_unit_test(test_a_key_that_is_absent),
		cmocka_unit_test(test_numbers_that_cannot_be),
		cmocka_unit_test(test_units),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
