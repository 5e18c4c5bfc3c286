// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Coarse lines: means and greatest values by time, gaps where nothing was read.

#include "show/buckets.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = strchr(digits, c);
	return found ? (unsigned)(found - digits) : 0;
}

static size_t decode(const struct text *t, unsigned char *bytes)
{
	size_t n = 0;
	for (size_t i = 0; i + 3 < t->length; i += 4) {
		unsigned three = digit(t->data[i]) << 18 | digit(t->data[i + 1]) << 12 |
		                 digit(t->data[i + 2]) << 6 | digit(t->data[i + 3]);
		bytes[n++] = (unsigned char)(three >> 16);
		bytes[n++] = (unsigned char)(three >> 8);
		bytes[n++] = (unsigned char)three;
	}
	return n;
}

static void add(struct buckets *b, double t_s, double value)
{
	assert_int_equal(buckets_add(b, (int64_t)(t_s * 1e6), value, value, value, 1), 0);
}

static void means_and_peaks_of_each_column(void **state)
{
	(void)state;
	struct buckets b;
	struct text text = {0};
	unsigned char bytes[64];
	double most = 0;
	buckets_init(&b, 100000);
	for (int i = 0; i < 1000; i++) { // 10 s; 1, then 2, with one peak of 4
		add(&b, i * 0.01, i == 700 ? 4 : i < 500 ? 1 : 2);
	}
	assert_true(buckets_append_coarse(&text, &b, 10, 4, &most));
	assert_float_equal(most, 4, 1e-9);
	assert_true(decode(&text, bytes) >= 8);
	assert_in_range(bytes[0], 63, 64);
	assert_in_range(bytes[1], 63, 64);
	assert_in_range(bytes[2], 127, 129);
	assert_in_range(bytes[3], 126, 128);
	assert_int_equal(bytes[4 + 1], bytes[1]);
	assert_int_equal(bytes[4 + 2], 254);
	assert_int_equal(bytes[4 + 3], bytes[3]);
	text_done(&text);
	buckets_done(&b);
}

static void a_pause_is_a_gap_and_rare_readings_are_none(void **state)
{
	(void)state;
	struct buckets b;
	struct text text = {0};
	unsigned char bytes[64];
	double most;
	buckets_init(&b, 100000);
	for (int i = 0; i < 1000; i++) {
		if (i < 300 || i >= 700) {
			add(&b, i * 0.01, 1);
		}
	}
	assert_true(buckets_append_coarse(&text, &b, 10, 10, &most));
	decode(&text, bytes);
	for (size_t c = 0; c < 10; c++) {
		assert_int_equal(bytes[c], c >= 3 && c < 7 ? 255 : 254);
	}
	text_clear(&text);
	buckets_done(&b);
	buckets_init(&b, 100000);
	for (int i = 0; i < 5; i++) { // one every two seconds, ten columns a second
		add(&b, i * 2.0, 3);
	}
	assert_true(buckets_append_coarse(&text, &b, 10, 20, &most));
	decode(&text, bytes);
	for (size_t c = 0; c < 20; c++) {
		assert_int_equal(bytes[c], 254);
	}
	text_done(&text);
	buckets_done(&b);
}

static void nothing_to_draw(void **state)
{
	(void)state;
	struct buckets b;
	struct text text = {0};
	double most;
	buckets_init(&b, 100);
	assert_false(buckets_append_coarse(&text, &b, 10, 10, &most));
	add(&b, 1, 0);
	assert_false(buckets_append_coarse(&text, &b, 10, 10, &most));
	add(&b, 2, NAN);
	assert_false(buckets_append_coarse(&text, &b, 10, 10, &most));
	add(&b, 3, 5);
	assert_false(buckets_append_coarse(&text, &b, 0, 10, &most));
	assert_false(buckets_append_coarse(&text, &b, NAN, 10, &most));
	assert_false(buckets_append_coarse(&text, &b, 10, 0, &most));
	assert_int_equal(text.length, 0);
	assert_true(buckets_append_coarse(&text, &b, 2, 10, &most)); // later than the end: left out
	text_done(&text);
	buckets_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(means_and_peaks_of_each_column),
		cmocka_unit_test(a_pause_is_a_gap_and_rare_readings_are_none),
		cmocka_unit_test(nothing_to_draw),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
