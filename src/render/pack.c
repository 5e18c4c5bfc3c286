// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Rice codes: for differences that scatter around zero nearly as short as can be, in twenty lines
// on either side. A block chooses its own parameter, so quiet stretches cost a bit a value.

#include "render/pack.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define BLOCK 64
#define ALL_ZERO 31 // instead of a parameter
#define LARGEST_PARAMETER 24
#define ESCAPE 24 // a quotient: the value follows in 32 bits
// The largest value is this many units: below, steps become linear.
#define RANGE 16384.0

struct bits {
	struct text bytes;
	uint64_t hold;
	unsigned held;
};

static void put_bits(struct bits *b, uint32_t value, unsigned n)
{
	b->hold |= (uint64_t)value << b->held;
	b->held += n;
	while (b->held >= 8) {
		char byte = (char)(b->hold & 0xff);
		text_append(&b->bytes, &byte, 1);
		b->hold >>= 8;
		b->held -= 8;
	}
}

static void put_rice(struct bits *b, uint32_t value, unsigned parameter)
{
	uint32_t quotient = value >> parameter;
	if (quotient >= ESCAPE) {
		put_bits(b, (UINT32_C(1) << ESCAPE) - 1, ESCAPE);
		put_bits(b, value, 32);
		return;
	}
	put_bits(b, (UINT32_C(1) << quotient) - 1, quotient + 1);
	put_bits(b, value & ((UINT32_C(1) << parameter) - 1), parameter);
}

static uint64_t rice_cost(const uint32_t *values, size_t n, unsigned parameter)
{
	uint64_t cost = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t quotient = values[i] >> parameter;
		cost += quotient >= ESCAPE ? ESCAPE + 32 : quotient + 1 + parameter;
	}
	return cost;
}

static unsigned best_parameter(const uint32_t *values, size_t n)
{
	uint32_t all = 0;
	for (size_t i = 0; i < n; i++) {
		all |= values[i];
	}
	if (all == 0) {
		return ALL_ZERO;
	}
	unsigned best = 0;
	uint64_t least = UINT64_MAX;
	for (unsigned k = 0; k <= LARGEST_PARAMETER; k++) {
		uint64_t cost = rice_cost(values, n, k);
		if (cost > least) {
			break; // the cost falls, then rises
		}
		least = cost;
		best = k;
	}
	return best;
}

static void put_column(struct bits *b, const uint32_t *values, size_t n)
{
	for (size_t start = 0; start < n; start += BLOCK) {
		size_t length = n - start < BLOCK ? n - start : BLOCK;
		unsigned parameter = best_parameter(values + start, length);
		put_bits(b, parameter, 5);
		for (size_t i = start; parameter != ALL_ZERO && i < start + length; i++) {
			put_rice(b, values[i], parameter);
		}
	}
}

enum { INDEX, GAP, MEAN, ABOVE, BELOW, N_COLUMNS };

static uint32_t zigzag(int64_t value)
{
	return (uint32_t)(value < 0 ? -2 * value - 1 : 2 * value);
}

static int64_t code_of(double value, double unit)
{
	return llround(asinh(value / unit) * PACK_STEPS);
}

static void fill_columns(const struct buckets *b, double unit, uint32_t *columns[N_COLUMNS])
{
	int64_t index = -1, code = 0;
	for (size_t i = 0; i < b->n; i++) {
		const struct bucket *bucket = &b->items[i];
		int64_t skipped = bucket->index - index - 1;
		columns[INDEX][i] = skipped < 0            ? 0
		                    : skipped < UINT32_MAX ? (uint32_t)skipped
		                                           : UINT32_MAX;
		index = bucket->index;
		columns[GAP][i] = !(bucket->weight > 0);
		if (columns[GAP][i]) {
			continue;
		}
		int64_t mean = code_of(bucket_mean(bucket), unit);
		int64_t above = code_of((double)bucket->maximum, unit) - mean;
		int64_t below = mean - code_of((double)bucket->minimum, unit);
		columns[MEAN][i] = zigzag(mean - code);
		columns[ABOVE][i] = above > 0 ? (uint32_t)above : 0;
		columns[BELOW][i] = below > 0 ? (uint32_t)below : 0;
		code = mean;
	}
}

static double unit_of(const struct buckets *b)
{
	struct bucket_figures figures = buckets_figures(b);
	double largest = fmax(fabs(figures.minimum), fabs(figures.maximum));
	return largest > 0 ? largest / RANGE : 1;
}

int buckets_pack(const struct buckets *b, struct packed *packed)
{
	uint32_t *values = calloc(N_COLUMNS * b->n + 1, sizeof(*values));
	if (!values) {
		return -ENOMEM;
	}
	uint32_t *columns[N_COLUMNS];
	for (size_t i = 0; i < N_COLUMNS; i++) {
		columns[i] = values + i * b->n;
	}
	packed->unit = unit_of(b);
	fill_columns(b, packed->unit, columns);
	struct bits bits = {0};
	for (size_t i = 0; i < N_COLUMNS; i++) {
		put_column(&bits, columns[i], b->n);
	}
	put_bits(&bits, 0, 7); // fills the last byte
	free(values);
	text_clear(&packed->base64);
	text_append_base64(
		&packed->base64, (const unsigned char *)bits.bytes.data, bits.bytes.length);
	int r = bits.bytes.failed || packed->base64.failed ? -ENOMEM : 0;
	text_done(&bits.bytes);
	return r;
}

void text_append_base64(struct text *t, const unsigned char *bytes, size_t length)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		uint32_t three = (uint32_t)bytes[i] << 16 |
		                 (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
		                 (left > 2 ? (uint32_t)bytes[i + 2] : 0);
		char four[4] = {
			digits[three >> 18],
			digits[three >> 12 & 63],
			left > 1 ? digits[three >> 6 & 63] : '=',
			left > 2 ? digits[three & 63] : '=',
		};
		text_append(t, four, sizeof(four));
	}
}
