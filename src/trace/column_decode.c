// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One column of a block: the decoder. Every byte may be hostile.

#include "trace/codec_format.h"
#include "trace/column.h"
#include "trace/metric.h"

bool take_byte(struct input *in, uint8_t *ret)
{
	if (in->at >= in->end) {
		return false;
	}
	*ret = *in->at++;
	return true;
}

bool take_varint(struct input *in, uint64_t *ret)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
		uint64_t byte = *in->at++;
		if (shift == 63 && byte > 1) {
			return false;
		}
		value |= (byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret = value;
			return true;
		}
	}
	return false;
}

bool take_input(struct input *in, uint64_t length, struct input *ret)
{
	if (length > (uint64_t)(in->end - in->at)) {
		return false;
	}
	*ret = (struct input){in->at, in->at + length};
	in->at += length;
	return true;
}

static uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

static bool take_signed(struct input *in, uint64_t *ret)
{
	uint64_t value;
	if (!take_varint(in, &value)) {
		return false;
	}
	*ret = unzigzag(value);
	return true;
}

// Marks missing rows in values and counts the others. The first run is of values that were read.
static bool decode_missing_runs(
	struct input *in, int64_t *values, uint32_t n_rows, uint32_t *ret_present)
{
	uint64_t n_runs, length;
	uint32_t row = 0, n_present = 0;
	if (!take_varint(in, &n_runs) || n_runs > (uint64_t)n_rows + 1) {
		return false;
	}
	for (uint64_t run = 0; run < n_runs; run++) {
		if (!take_varint(in, &length) || length > n_rows - row) {
			return false;
		}
		for (uint64_t i = 0; i < length; i++) {
			values[row++] = run % 2 ? VALUE_MISSING : 0;
		}
		n_present += run % 2 ? 0 : (uint32_t)length;
	}
	*ret_present = n_present;
	return row == n_rows;
}

// Bits from the lowest up, in bytes from the first on.
struct bit_input {
	struct input *in;
	uint64_t held;
	unsigned n_held; // under 8
};

static bool take_bits(struct bit_input *bits, unsigned n, uint64_t *ret)
{
	uint64_t value = 0;
	for (unsigned got = 0; got < n;) {
		if (bits->n_held == 0) {
			uint8_t byte;
			if (!take_byte(bits->in, &byte)) {
				return false;
			}
			bits->held = byte;
			bits->n_held = 8;
		}
		unsigned take = n - got < bits->n_held ? n - got : bits->n_held;
		value |= (bits->held & ((UINT64_C(1) << take) - 1)) << got;
		bits->held >>= take;
		bits->n_held -= take;
		got += take;
	}
	*ret = value;
	return true;
}

// Symbols first, then the bits that the larger ones lack.
static bool take_packed(struct input *in, int64_t *numbers, uint32_t n)
{
	struct input symbols;
	struct bit_input bits = {.in = in};
	if (!take_input(in, n, &symbols)) {
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint64_t low, symbol = symbols.at[i];
		if (symbol < 8) {
			numbers[i] = (int64_t)symbol;
			continue;
		}
		unsigned n_bits = (unsigned)(symbol >> 2) - 1;
		if (symbol > SYMBOL_MAX || !take_bits(&bits, n_bits, &low)) {
			return false;
		}
		numbers[i] = (int64_t)((4 + (symbol & 3)) << n_bits | low);
	}
	return true;
}

static bool take_varints(struct input *in, int64_t *numbers, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t number;
		if (!take_varint(in, &number)) {
			return false;
		}
		numbers[i] = (int64_t)number;
	}
	return true;
}

static bool decode_residuals(
	struct input *in, int64_t *values, uint32_t n, enum column_kind kind, bool packed)
{
	uint64_t unit, first, last, delta = 0;
	if (!take_varint(in, &unit) || !take_signed(in, &first)) {
		return false;
	}
	if (!(packed ? take_packed(in, values + 1, n - 1) : take_varints(in, values + 1, n - 1))) {
		return false;
	}
	values[0] = (int64_t)first;
	last = first;
	for (uint32_t i = 1; i < n; i++) {
		uint64_t r = unzigzag((uint64_t)values[i]) * unit;
		delta = kind == COLUMN_DELTA_OF_DELTA ? delta + r : r;
		last = kind == COLUMN_OFFSET ? first + r : last + delta;
		values[i] = (int64_t)last;
	}
	return true;
}

static bool decode_linear(struct input *in, int64_t *values, uint32_t n, bool constant)
{
	uint64_t first, step = 0;
	if (!take_signed(in, &first) || (!constant && !take_signed(in, &step))) {
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		values[i] = (int64_t)(first + i * step);
	}
	return true;
}

// Moves the n values that were read from the front of the array to their rows. From the back, so
// that none is overwritten before it has moved; `missing` holds the marks.
static void spread_present(int64_t *values, const int64_t *marks, uint32_t n_rows, uint32_t n)
{
	for (uint32_t row = n_rows; row-- > 0;) {
		values[row] = marks[row] == VALUE_MISSING ? VALUE_MISSING : values[--n];
	}
}

static bool decode_missing(int64_t *values, uint32_t n_rows)
{
	for (uint32_t i = 0; i < n_rows; i++) {
		values[i] = VALUE_MISSING;
	}
	return true;
}

// The n values that were read, at the front of the array.
static bool decode_present(
	struct input *in, int64_t *values, uint32_t n, enum column_kind kind, bool packed)
{
	bool linear = kind == COLUMN_CONSTANT || kind == COLUMN_LINEAR;
	if (n == 0 || (linear && packed)) {
		return false;
	}
	return linear ? decode_linear(in, values, n, kind == COLUMN_CONSTANT)
	              : decode_residuals(in, values, n, kind, packed);
}

bool column_decode(struct input in, int64_t *values, int64_t *marks, uint32_t n_rows)
{
	uint8_t code;
	if (!take_byte(&in, &code)) {
		return false;
	}
	bool has_missing = code & COLUMN_HAS_MISSING, packed = code & COLUMN_IS_PACKED;
	enum column_kind kind = code & ~(COLUMN_HAS_MISSING | COLUMN_IS_PACKED);
	if (code == COLUMN_MISSING) {
		return decode_missing(values, n_rows) && in.at == in.end;
	}
	uint32_t n_present = n_rows;
	if (kind >= N_COLUMN_KINDS || kind == COLUMN_MISSING ||
		(has_missing && !decode_missing_runs(&in, marks, n_rows, &n_present)) ||
		!decode_present(&in, values, n_present, kind, packed) || in.at != in.end) {
		return false;
	}
	if (has_missing) {
		spread_present(values, marks, n_rows, n_present);
	}
	return true;
}
