// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Buckets whose length grows, so that their number is bounded.

#include "show/buckets.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

// Buckets -----------------------------------------------------------------------------------------

#define LARGEST 1e30

void buckets_init(struct buckets *b, size_t most)
{
	*b = (struct buckets){.most = most};
}

void buckets_done(struct buckets *b)
{
	free(b->items);
	*b = (struct buckets){0};
}

// Joins `from` into `into`; a bucket without readings is ignored.
static void bucket_join(struct bucket *into, const struct bucket *from)
{
	if (from->weight <= 0) {
		return;
	}
	if (into->weight <= 0) {
		int64_t index = into->index;
		*into = *from;
		into->index = index;
		return;
	}
	into->sum += from->sum;
	into->weight += from->weight;
	into->minimum = fminf(into->minimum, from->minimum);
	into->maximum = fmaxf(into->maximum, from->maximum);
}

void buckets_coarsen(struct buckets *b)
{
	size_t n = 0;
	for (size_t i = 0; i < b->n; i++) {
		struct bucket moved = b->items[i];
		moved.index >>= 1; // rounds down, also for negative numbers
		if (n > 0 && b->items[n - 1].index == moved.index) {
			bucket_join(&b->items[n - 1], &moved);
		} else {
			b->items[n++] = moved;
		}
	}
	b->n = n;
	b->doublings++;
}

int buckets_add(struct buckets *b, int64_t t_us, double value, double minimum, double maximum,
	double weight)
{
	// Larger values, which only a damaged file has, would make sums of floats infinite.
	bool there = fabs(value) < LARGEST && weight > 0 && weight < LARGEST;
	minimum = fabs(minimum) < LARGEST ? minimum : value;
	maximum = fabs(maximum) < LARGEST ? maximum : value;
	struct bucket reading = {
		.index = (t_us / BUCKET_SHORTEST_US) >> b->doublings,
		.sum = there ? value * weight : 0,
		.minimum = there ? (float)minimum : 0,
		.maximum = there ? (float)maximum : 0,
		.weight = there ? (float)weight : 0,
	};
	b->samples += there;
	if (b->n > 0 && b->items[b->n - 1].index >= reading.index) {
		bucket_join(&b->items[b->n - 1], &reading);
		return 0;
	}
	while (b->n >= b->most) {
		buckets_coarsen(b);
		reading.index = (t_us / BUCKET_SHORTEST_US) >> b->doublings;
	}
	if (b->n > 0 && b->items[b->n - 1].index >= reading.index) {
		bucket_join(&b->items[b->n - 1], &reading);
		return 0;
	}
	void *items = b->items;
	int r = array_reserve(&items, &b->capacity, b->n + 1, sizeof(*b->items));
	b->items = items;
	if (r == 0) {
		b->items[b->n++] = reading;
	}
	return r;
}

double buckets_width_s(const struct buckets *b)
{
	return ldexp(BUCKET_SHORTEST_US * 1e-6, (int)b->doublings);
}

double bucket_mean(const struct bucket *bucket)
{
	return bucket->weight > 0 ? bucket->sum / (double)bucket->weight : NAN;
}

struct bucket_figures buckets_figures(const struct buckets *b)
{
	struct bucket_figures figures = {NAN, NAN, NAN};
	double sum = 0, weight = 0;
	for (size_t i = 0; i < b->n; i++) {
		const struct bucket *bucket = &b->items[i];
		if (bucket->weight > 0) {
			sum += bucket->sum;
			weight += (double)bucket->weight;
			// fmin and fmax ignore the initial NAN.
			figures.minimum = fmin(figures.minimum, (double)bucket->minimum);
			figures.maximum = fmax(figures.maximum, (double)bucket->maximum);
		}
	}
	if (weight > 0) {
		figures.mean = sum / weight;
	}
	return figures;
}

// Pack --------------------------------------------------------------------------------------------
//
// Rice codes: nearly optimal for differences that scatter around zero, and short to write on both
// sides. Each block has its own parameter, so that quiet stretches cost one bit per value.

#define BLOCK 64
#define ALL_ZERO 31 // in place of a parameter
#define LARGEST_PARAMETER 24
#define ESCAPE 24 // as quotient: the value follows in 32 bits
// The largest value is this many units; values near a unit and below have linear steps.
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

// Coarse ------------------------------------------------------------------------------------------
//
// Spreads buckets over columns by the time that they share.

enum { TOP = 254, NOTHING = 255 };

struct column {
	double sum; // of mean times seconds
	double seconds;
	double maximum;
};

static void spread(const struct buckets *b, double seconds, struct column *columns, size_t n)
{
	double width = buckets_width_s(b), step = seconds / (double)n;
	for (size_t i = 0; i < b->n; i++) {
		const struct bucket *bucket = &b->items[i];
		double from = (double)bucket->index * width, mean = bucket_mean(bucket);
		if (!isfinite(mean) || from < 0 || from >= seconds) {
			continue;
		}
		double to = fmin(from + width, seconds);
		for (size_t c = (size_t)(from / step); c < n && (double)c * step < to; c++) {
			double shared = fmin(to, (double)(c + 1) * step) -
			                fmax(from, (double)c * step);
			columns[c].sum += mean * fmax(shared, 0);
			columns[c].seconds += fmax(shared, 0);
			columns[c].maximum = fmax(columns[c].maximum, (double)bucket->maximum);
		}
	}
}

// If readings are further apart than columns, some columns are empty. Up to `longest` of them keep
// the value before.
static void hold(struct column *columns, size_t n, double longest)
{
	size_t last = n;
	for (size_t c = 0; c < n; c++) {
		if (columns[c].seconds > 0) {
			last = c;
		} else if (last < n && (double)(c - last) <= longest) {
			columns[c] = columns[last];
		}
	}
}

static unsigned char code(double value, double most)
{
	return (unsigned char)lrint(fmin(fmax(value / most, 0), 1) * TOP);
}

bool buckets_append_coarse(
	struct text *t, const struct buckets *b, double seconds, size_t n, double *ret_most)
{
	double most = buckets_figures(b).maximum;
	if (!(most > 0) || !isfinite(most) || !(seconds > 0) || n == 0 || b->n == 0) {
		return false;
	}
	_cleanup_free_ struct column *columns = calloc(n, sizeof(*columns));
	_cleanup_free_ unsigned char *bytes = malloc(2 * n);
	if (!columns || !bytes) {
		return false;
	}
	spread(b, seconds, columns, n);
	// A gap of up to four mean reading intervals is not a pause.
	hold(columns, n, 4 * (double)n / (double)b->n);
	for (size_t c = 0; c < n; c++) {
		bool there = columns[c].seconds > 0;
		bytes[c] = there ? code(columns[c].sum / columns[c].seconds, most) : NOTHING;
		bytes[n + c] = there ? code(columns[c].maximum, most) : NOTHING;
	}
	text_append_base64(t, bytes, 2 * n);
	*ret_most = most;
	return true;
}

// Details -----------------------------------------------------------------------------------------
//
// The page shows an iteration with an equal time before and after it (timeline.ts). Somewhat more
// is stored, so that users can pan.

#define LEAST_US 10000 // least time before and after, as in timeline.ts
#define MORE 1.5

size_t buckets_detail_windows(const struct phases *p, struct detail_window ret[static DETAILS_MAX])
{
	size_t n = p->n_slowest < DETAILS_MAX ? p->n_slowest : DETAILS_MAX;
	for (size_t i = 0; i < n; i++) {
		const struct iteration *iteration = &p->slowest[i].iteration;
		int64_t from_us = iteration->start_ns / 1000, to_us = iteration->end_ns / 1000;
		double length_us = (double)(to_us - from_us);
		length_us = length_us > LEAST_US ? length_us : LEAST_US;
		int64_t margin_us = (int64_t)(MORE * length_us);
		ret[i].from_us = from_us > margin_us ? from_us - margin_us : 0;
		ret[i].to_us = to_us + margin_us;
	}
	return n;
}

int buckets_add_detail(struct detail_series *details, const struct detail_window *windows, size_t n,
	int64_t t_us, double value, double minimum, double maximum, double weight)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (t_us >= windows[i].from_us && t_us <= windows[i].to_us) {
			details[i].buckets.most = DETAIL_MOST;
			r = buckets_add(&details[i].buckets, t_us, value, minimum, maximum, weight);
		}
	}
	return r;
}

int buckets_pack_details(struct detail_series *details, size_t n, const struct buckets *whole)
{
	int r = 0;
	bool coarse = whole->samples > whole->n + whole->n / 16;
	for (size_t i = 0; i < n && coarse && r == 0; i++) {
		if (details[i].buckets.n > 0) {
			r = buckets_pack(&details[i].buckets, &details[i].packed);
		}
	}
	return r;
}

void buckets_details_done(struct detail_series *details, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buckets_done(&details[i].buckets);
		text_done(&details[i].packed.base64);
	}
}
