// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One column of a block: what the encoder writes.

#include "trace/column.h"

#include <math.h>

#include "trace/codec_format.h"
#include "trace/metric.h"

// Values of a column that are looked at to choose its kind; of a short one each fourth, because a
// block of a second lives for two minutes only.
#define CHOICE_VALUES 512
#define SHORT_STRIDE 4
#define PACKED_MARGIN 0.95

// The residual of value i under a column kind: what is left after the values before it predicted
// it. Unsigned, because differences wrap.
static inline uint64_t residual(const uint64_t *v, size_t i, enum column_kind kind)
{
	if (kind == COLUMN_OFFSET) {
		return v[i] - v[0];
	}
	uint64_t delta = v[i] - v[i - 1];
	return kind == COLUMN_DELTA || i < 2 ? delta : delta - (v[i - 1] - v[i - 2]);
}

// Bits that a residual needs, at least one.
static inline unsigned bits_of(uint64_t residual)
{
	return 64 - (unsigned)__builtin_clzll(zigzag(residual) | 1);
}

// Which prediction leaves the fewest bits. Bits, not varint bytes: what zstd makes of a column
// follows its entropy. Some hundred values tell as much as all.
static enum column_kind choose_kind(const uint64_t *v, size_t n)
{
	uint64_t bits[N_COLUMN_KINDS] = {0};
	size_t stride = n < CHOICE_VALUES ? SHORT_STRIDE : n / CHOICE_VALUES + 1;
	for (size_t i = 2; i < n; i += stride) {
		bits[COLUMN_OFFSET] += bits_of(residual(v, i, COLUMN_OFFSET));
		bits[COLUMN_DELTA] += bits_of(residual(v, i, COLUMN_DELTA));
		bits[COLUMN_DELTA_OF_DELTA] += bits_of(residual(v, i, COLUMN_DELTA_OF_DELTA));
	}
	enum column_kind best = COLUMN_DELTA;
	if (bits[COLUMN_OFFSET] < bits[best]) {
		best = COLUMN_OFFSET;
	}
	if (bits[COLUMN_DELTA_OF_DELTA] < bits[best]) {
		best = COLUMN_DELTA_OF_DELTA;
	}
	return best;
}

static uint64_t magnitude(uint64_t value)
{
	return value >> 63 ? 0 - value : value;
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

// The residuals of values 1 to n - 1, in place. From the back, because each needs the values before
// it.
static void make_residuals(uint64_t *v, size_t n, enum column_kind kind)
{
	for (size_t i = n; i-- > 1;) {
		v[i] = residual(v, i, kind);
	}
}

// The unit that all residuals are multiples of: 10,000 for CPU time that the kernel counts in
// ticks, 4,096 for pages. 1 is found after a few values of a noisy column.
static uint64_t common_unit(const uint64_t *residuals, size_t n)
{
	uint64_t unit = 0, known = 0;
	for (size_t i = 0; i < n && unit != 1; i++) {
		uint64_t r = residuals[i];
		if (r != 0 && r != known) {
			unit = greatest_common_divisor(unit, magnitude(r));
			known = r;
		}
	}
	return unit == 0 || unit > INT64_MAX ? 1 : unit;
}

// Bits that a code for these symbols takes which knows how often each comes.
static double entropy_bits(const uint32_t *counts, size_t n_symbols)
{
	double total = 0, bits = 0;
	for (size_t i = 0; i < n_symbols; i++) {
		total += counts[i];
	}
	for (size_t i = 0; i < n_symbols; i++) {
		bits += counts[i] ? counts[i] * log2(total / counts[i]) : 0;
	}
	return bits;
}

// A number up to 7 is its own symbol. Of a larger one the symbol holds the place of the highest bit
// and the two bits below it; the rest are bits that nothing can compress.
static inline uint8_t symbol_of(uint64_t number, unsigned *ret_bits)
{
	unsigned bits = number < 8 ? 0 : 61 - (unsigned)__builtin_clzll(number);
	*ret_bits = bits;
	return (uint8_t)((bits << 2) + (unsigned)(number >> bits));
}

// Whether symbols and bits are shorter than varints once zstd has coded either: by the entropy of
// some of the numbers. A margin, because zstd also finds repetitions, and those in varints only.
static bool is_better_packed(const uint64_t *numbers, size_t n)
{
	uint32_t of_varints[256] = {0}, of_symbols[256] = {0};
	uint64_t bits = 0;
	size_t stride = n / (2 * CHOICE_VALUES) + 1;
	for (size_t i = 0; i < n; i += stride) {
		uint64_t number = numbers[i];
		unsigned more;
		of_symbols[symbol_of(number, &more)]++;
		bits += more;
		for (; number >= 0x80; number >>= 7) {
			of_varints[(number & 0x7f) | 0x80]++;
		}
		of_varints[number]++;
	}
	return entropy_bits(of_symbols, 256) + (double)bits <
	       PACKED_MARGIN * entropy_bits(of_varints, 256);
}

// Bits from the lowest up, in bytes from the first on.
struct bit_output {
	uint8_t *at;
	uint64_t held;
	unsigned n_held; // under 8
};

static inline void put_bits(struct bit_output *out, uint64_t value, unsigned n)
{
	if (n > 32) {
		put_bits(out, value & UINT32_MAX, 32);
		value >>= 32;
		n -= 32;
	}
	out->held |= value << out->n_held;
	out->n_held += n;
	while (out->n_held >= 8) {
		*out->at++ = (uint8_t)out->held;
		out->held >>= 8;
		out->n_held -= 8;
	}
}

static uint8_t *put_packed(uint8_t *at, const uint64_t *numbers, size_t n)
{
	struct bit_output out = {.at = at + n};
	for (size_t i = 0; i < n; i++) {
		unsigned bits;
		at[i] = symbol_of(numbers[i], &bits);
		put_bits(&out, numbers[i] & ((UINT64_C(1) << bits) - 1), bits);
	}
	if (out.n_held) {
		*out.at++ = (uint8_t)out.held;
	}
	return out.at;
}

// Divides the residuals by their unit and makes them unsigned.
static void reduce(uint64_t *residuals, size_t n, uint64_t unit)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t r = residuals[i];
		if (r && unit != 1) {
			r = (uint64_t)((int64_t)r / (int64_t)unit);
		}
		residuals[i] = zigzag(r);
	}
}

// Returns where the bits of packed residuals begin; the end where they are varints.
static size_t put_residuals(
	struct bytes *out, uint64_t *v, size_t n, enum column_kind kind, bool packed)
{
	make_residuals(v, n, kind);
	uint64_t unit = common_unit(v + 1, n - 1);
	bytes_put_varint(out, unit);
	bytes_put_signed(out, v[0]);
	reduce(v + 1, n - 1, unit);
	uint8_t *at = (uint8_t *)out->data + out->length;
	size_t bits_at = out->length + n - 1;
	packed = packed && is_better_packed(v + 1, n - 1);
	if (packed) {
		at = put_packed(at, v + 1, n - 1);
	} else {
		for (size_t i = 1; i < n; i++) {
			at = put_varint(at, v[i]);
		}
	}
	out->length = (size_t)(at - (uint8_t *)out->data);
	return packed ? bits_at : out->length;
}

// Lengths of the runs of values: read, missing, read, ... with their number before them.
static void put_missing_runs(struct bytes *out, const int64_t *values, uint32_t n_rows)
{
	uint32_t n_runs = values[0] == VALUE_MISSING ? 2 : 1;
	for (uint32_t i = 1; i < n_rows; i++) {
		n_runs += (values[i] == VALUE_MISSING) != (values[i - 1] == VALUE_MISSING);
	}
	bytes_put_varint(out, n_runs);
	bool missing = false;
	uint32_t start = 0;
	for (uint32_t i = 0; i < n_rows; i++) {
		if ((values[i] == VALUE_MISSING) != missing) {
			bytes_put_varint(out, i - start);
			start = i;
			missing = !missing;
		}
	}
	bytes_put_varint(out, n_rows - start);
}

// Copies the values that were read; returns their number.
static uint32_t collect_present(uint64_t *present, const int64_t *values, uint32_t n_rows)
{
	uint32_t n_missing = 0, n = 0;
	for (uint32_t i = 0; i < n_rows; i++) {
		n_missing += values[i] == VALUE_MISSING;
	}
	if (n_missing == 0) {
		memcpy(present, values, n_rows * sizeof(*values));
		return n_rows;
	}
	for (uint32_t i = 0; i < n_rows; i++) {
		present[n] = (uint64_t)values[i];
		n += values[i] != VALUE_MISSING;
	}
	return n;
}

// Whether each value is the one before and the same step.
static bool is_linear(const uint64_t *v, uint32_t n, uint64_t step)
{
	for (uint32_t i = 1; i < n; i++) {
		if (v[i] - v[i - 1] != step) {
			return false;
		}
	}
	return true;
}

static enum column_kind find_kind(const uint64_t *v, uint32_t n)
{
	uint64_t step = n > 1 ? v[1] - v[0] : 0;
	if (!is_linear(v, n, step)) {
		return choose_kind(v, n);
	}
	return step == 0 ? COLUMN_CONSTANT : COLUMN_LINEAR;
}

size_t column_encode(
	struct bytes *out, const int64_t *values, uint32_t n_rows, uint64_t *scratch, bool packed)
{
	uint32_t n_present = collect_present(scratch, values, n_rows);
	if (n_present == 0) {
		bytes_put_byte(out, COLUMN_MISSING);
		return out->length;
	}
	size_t code_at = out->length;
	enum column_kind kind = find_kind(scratch, n_present);
	uint8_t code = (uint8_t)(kind | (n_present < n_rows ? COLUMN_HAS_MISSING : 0));
	bytes_put_byte(out, code);
	if (n_present < n_rows) {
		put_missing_runs(out, values, n_rows);
	}
	if (kind == COLUMN_CONSTANT || kind == COLUMN_LINEAR) {
		bytes_put_signed(out, scratch[0]);
		if (kind == COLUMN_LINEAR) {
			bytes_put_signed(out, scratch[1] - scratch[0]);
		}
		return out->length;
	}
	size_t bits_at = put_residuals(out, scratch, n_present, kind, packed);
	if (bits_at < out->length) {
		((uint8_t *)out->data)[code_at] = (uint8_t)(code | COLUMN_IS_PACKED);
	}
	return bits_at;
}
