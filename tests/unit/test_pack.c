// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Packed series: what is read back, by a decoder written from web/README.md, is what went in, as
// exactly as the page promises.

#include "show/buckets.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 4096, N_COLUMNS = 5 };

struct bit_reader {
	unsigned char bytes[1 << 18];
	size_t length;
	size_t at; // bit
};

static void read_base64(struct bit_reader *r, const struct text *text)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	r->length = r->at = 0;
	uint32_t hold = 0;
	unsigned held = 0;
	assert_int_equal(text->length % 4, 0);
	for (size_t i = 0; i < text->length && text->data[i] != '='; i++) {
		const char *digit = strchr(digits, text->data[i]);
		assert_non_null(digit);
		hold = hold << 6 | (uint32_t)(digit - digits);
		held += 6;
		if (held >= 8) {
			held -= 8;
			r->bytes[r->length++] = (unsigned char)(hold >> held);
		}
	}
}

static uint64_t read_bits(struct bit_reader *r, unsigned n)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < n; i++, r->at++) {
		assert_true(r->at / 8 < r->length);
		value |= (uint64_t)(r->bytes[r->at / 8] >> (r->at % 8) & 1) << i;
	}
	return value;
}

static uint64_t read_rice(struct bit_reader *r, unsigned parameter)
{
	unsigned quotient = 0;
	while (quotient < 24 && read_bits(r, 1)) {
		quotient++;
	}
	return quotient == 24 ? read_bits(r, 32)
	                      : ((uint64_t)quotient << parameter) + read_bits(r, parameter);
}

static void read_column(struct bit_reader *r, uint64_t *values, size_t n)
{
	for (size_t start = 0; start < n; start += 64) {
		unsigned parameter = (unsigned)read_bits(r, 5);
		for (size_t i = start; i < n && i < start + 64; i++) {
			values[i] = parameter == 31 ? 0 : read_rice(r, parameter);
		}
	}
}

static void assert_near(double expected, double found, double unit)
{
	// Half a step of asinh: a two-thousandth of the value, and of the unit near zero.
	assert_true(fabs(found - expected) <= (fabs(expected) + unit) * 0.0006);
}

// Reads back and compares.
static void assert_round_trip(const struct buckets *b)
{
	static struct bit_reader reader;
	static uint64_t columns[N_COLUMNS][MOST];
	struct packed packed = {0};
	assert_int_equal(buckets_pack(b, &packed), 0);
	assert_true(b->n <= MOST);
	read_base64(&reader, &packed.base64);
	for (size_t i = 0; i < N_COLUMNS; i++) {
		read_column(&reader, columns[i], b->n);
	}
	int64_t index = -1, code = 0;
	for (size_t i = 0; i < b->n; i++) {
		const struct bucket *bucket = &b->items[i];
		index += (int64_t)columns[0][i] + 1;
		assert_int_equal(index, bucket->index);
		assert_int_equal(columns[1][i], isnan(bucket_mean(bucket)));
		if (columns[1][i]) {
			continue;
		}
		uint64_t zigzag = columns[2][i];
		code += zigzag % 2 ? -(int64_t)(zigzag / 2) - 1 : (int64_t)(zigzag / 2);
		double low = packed.unit *
		             sinh((double)(code - (int64_t)columns[4][i]) / PACK_STEPS);
		double high = packed.unit *
		              sinh((double)(code + (int64_t)columns[3][i]) / PACK_STEPS);
		assert_near(bucket_mean(bucket), packed.unit * sinh((double)code / PACK_STEPS),
			packed.unit);
		assert_near((double)bucket->minimum, low, packed.unit);
		assert_near((double)bucket->maximum, high, packed.unit);
	}
	text_done(&packed.base64);
}

static void packs_nothing(void **state)
{
	(void)state;
	struct buckets b;
	buckets_init(&b, 8);
	assert_round_trip(&b);
	buckets_done(&b);
}

static void packs_values_of_every_size(void **state)
{
	(void)state;
	struct buckets b;
	buckets_init(&b, MOST);
	srand(1);
	for (int i = 0; i < 3000; i++) {
		double size = pow(10, rand() % 13 - 3);
		double value = size * ((double)rand() / RAND_MAX - 0.3);
		double range = rand() % 3 ? 0 : fabs(value) * 0.4;
		bool gap = rand() % 20 == 0;
		int64_t t_us = (int64_t)i * 10000 + rand() % 5000;
		assert_int_equal(
			buckets_add(&b, t_us, gap ? NAN : value, value - range, value + range, 1),
			0);
	}
	assert_round_trip(&b);
	buckets_done(&b);
}

static void packs_one_far_reading(void **state)
{
	(void)state;
	struct buckets b;
	buckets_init(&b, 8);
	assert_int_equal(
		buckets_add(&b, INT64_C(30) * 86400 * 1000000 / 100, 5e12, 5e12, 5e12, 1), 0);
	assert_round_trip(&b);
	buckets_done(&b);
}

static void quiet_series_cost_little(void **state)
{
	(void)state;
	struct buckets b;
	struct packed packed = {0};
	buckets_init(&b, MOST);
	for (int i = 0; i < MOST; i++) {
		assert_int_equal(buckets_add(&b, (int64_t)i * BUCKET_SHORTEST_US, 7, 7, 7, 1), 0);
	}
	assert_int_equal(buckets_pack(&b, &packed), 0);
	assert_true(packed.base64.length < MOST / 8);
	text_done(&packed.base64);
	buckets_done(&b);
}

static void base64_of_every_length(void **state)
{
	(void)state;
	static const char *const expected[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE="};
	for (size_t n = 0; n < sizeof(expected) / sizeof(*expected); n++) {
		struct text t = {0};
		text_append_base64(&t, (const unsigned char *)"foobar", n);
		assert_string_equal(t.data ? t.data : "", expected[n]);
		text_done(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs_nothing),
		cmocka_unit_test(packs_values_of_every_size),
		cmocka_unit_test(packs_one_far_reading),
		cmocka_unit_test(quiet_series_cost_little),
		cmocka_unit_test(base64_of_every_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
