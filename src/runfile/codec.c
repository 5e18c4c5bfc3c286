// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Blocks, encoded and decoded. docs/format.md describes the bytes.

#include "runfile/codec.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/crc32.h"
#include "runfile/metric.h"

// Definitions shared by encoder and decoder: the codes and limits of docs/format.md.

enum column_kind {
	COLUMN_MISSING, // no value was read
	COLUMN_CONSTANT, // a single value
	COLUMN_OFFSET, // residual: value less the first value
	COLUMN_DELTA, // residual: value less the previous value
	COLUMN_DELTA_OF_DELTA, // residual: delta less the previous delta (for the second value: its
	                       // delta)
	COLUMN_LINEAR, // the first value and a constant step
	N_COLUMN_KINDS,
};

#define COLUMN_HAS_MISSING 0x80u // a flag beside the kind: lengths of runs follow
#define COLUMN_IS_PACKED 0x40u // residuals are symbols and bits
#define SYMBOL_MAX 251u // for a number of 64 bits
#define HEADER_HAS_AGGREGATES 0x01u
#define HEADER_HAS_CLOCK 0x02u // the first column has positions in a clock
#define VARINT_MAX_BYTES 10
#define CRC_BYTES 4
// zstd level 3: docs/format.md has the measurement.
#define ZSTD_LEVEL 3

// Whether a decoded block of this shape is within the limits: t and columns take at most
// BLOCK_MAX_BYTES.
static inline bool block_fits(uint64_t n_rows, uint64_t n_columns)
{
	return n_rows >= 1 && n_rows <= BLOCK_MAX_ROWS && n_columns <= BLOCK_MAX_COLUMNS &&
	       n_rows * (n_columns + 1) * sizeof(int64_t) <= BLOCK_MAX_BYTES;
}

// Encoding and decoding a column. docs/format.md describes the bytes.

// Upper bound of an encoded column's size: a varint for each residual, and a length for each run of
// missing rows.
#define COLUMN_ROOM(n_rows) ((size_t)(n_rows)*15 + 64)

// A position in untrusted bytes.
struct input {
	const uint8_t *at;
	const uint8_t *end;
};

// Column ------------------------------------------------------------------------------------------
//
// The encoder of a column.

// Number of values examined to choose a column's kind. Of a short column every fourth is used,
// because a block of one second lives for only two minutes.
#define CHOICE_VALUES 512
#define SHORT_STRIDE 4
#define PACKED_MARGIN 0.95

// The residual of value i under a column kind: its difference from the prediction by earlier
// values. Unsigned, because differences wrap.
static inline uint64_t residual(const uint64_t *v, size_t i, enum column_kind kind)
{
	if (kind == COLUMN_OFFSET) {
		return v[i] - v[0];
	}
	uint64_t delta = v[i] - v[i - 1];
	return kind == COLUMN_DELTA || i < 2 ? delta : delta - (v[i - 1] - v[i - 2]);
}

// Number of bits that a residual needs, at least one.
static inline unsigned bits_of(uint64_t residual)
{
	return 64 - (unsigned)__builtin_clzll(zigzag(residual) | 1);
}

// Chooses the prediction that leaves the fewest bits. Bits rather than varint bytes, because zstd's
// result follows the column's entropy. Some hundred values are enough.
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

// Replaces values 1 to n - 1 by their residuals, from the last to the first, because each needs the
// values before it.
static void make_residuals(uint64_t *v, size_t n, enum column_kind kind)
{
	for (size_t i = n; i-- > 1;) {
		v[i] = residual(v, i, kind);
	}
}

// The largest common divisor of the residuals: 10,000 for CPU time that the kernel counts in ticks,
// 4,096 for pages. A noisy column yields 1 after a few values.
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

// Number of bits that an ideal entropy code takes for these symbols.
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

// A number up to 7 is its own symbol. For a larger number the symbol encodes the position of the
// highest bit and the two bits below it. The rest are raw bits, which are incompressible.
static inline uint8_t symbol_of(uint64_t number, unsigned *ret_bits)
{
	unsigned bits = number < 8 ? 0 : 61 - (unsigned)__builtin_clzll(number);
	*ret_bits = bits;
	return (uint8_t)((bits << 2) + (unsigned)(number >> bits));
}

// Whether symbols and bits are shorter than varints after zstd, by the entropy of some of the
// numbers. With a margin, because zstd also finds repetitions, but only in varints.
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

// Writes bits from the lowest up, bytes in order.
struct bit_output {
	uint8_t *at;
	uint64_t held;
	unsigned n_held; // fewer than 8
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

// Returns the offset of the bits of packed residuals; the end if they are varints.
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

// Writes the number of runs, then their lengths: read, missing, read, ...
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

// Copies the values that were read and returns their number.
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

// Whether each value is the previous one plus the same step.
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

// Writes a column into reserved space. scratch has space for n_rows + 1 numbers. `packed`:
// residuals may be split into symbols and bits, which only helps if zstd follows. Returns the
// offset of the incompressible bits, or the column's length if there are none.
static size_t column_encode(
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

// Column decode -----------------------------------------------------------------------------------
//
// The decoder of a column. All bytes are untrusted.

// Takes from the input. Returns false if it has too little; the position is then meaningless.
static bool take_byte(struct input *in, uint8_t *ret)
{
	if (in->at >= in->end) {
		return false;
	}
	*ret = *in->at++;
	return true;
}

static bool take_varint(struct input *in, uint64_t *ret)
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

static bool take_input(struct input *in, uint64_t length, struct input *ret)
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

// Marks missing rows in `values` and counts the others. The first run is of values that were read.
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

// Reads bits from the lowest up, bytes in order.
struct bit_input {
	struct input *in;
	uint64_t held;
	unsigned n_held; // fewer than 8
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

// The symbols come first, then the remaining bits of larger numbers.
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

// Moves the n values at the front of the array to their rows, from the last to the first, so that
// none is overwritten before it has moved. `marks` has the missing rows.
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

// Decodes the n values that were read to the front of the array.
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

// Decodes a column of exactly these bytes. marks has space for n_rows numbers. Returns false if it
// is damaged.
static bool column_decode(struct input in, int64_t *values, int64_t *marks, uint32_t n_rows)
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

// Codec -------------------------------------------------------------------------------------------

// Shorter stretches are compressed together with the next one: tables cost some ten bytes.
#define CUT_MIN_BYTES 256
#define ZSTD_BLOCK_OVERHEAD 32

struct encoder {
	struct bytes column; // the column being encoded
	struct bytes body; // columns before compression
	struct bytes payload;
	void *scratch; // uint64_t: for column_encode
	size_t scratch_capacity;
	void *places; // int64_t: positions of a block's times in a clock
	size_t places_capacity;
	size_t cuts[2 * BLOCK_MAX_COLUMNS + 2]; // offsets in the body
	size_t n_cuts;
	ZSTD_CCtx *zstd;
};

int encoder_new(struct encoder **ret)
{
	struct encoder *e = calloc(1, sizeof(*e));
	if (!e) {
		return -ENOMEM;
	}
	*ret = e;
	return 0;
}

void encoder_free(struct encoder *e)
{
	if (e) {
		free(e->column.data);
		free(e->body.data);
		free(e->payload.data);
		free(e->scratch);
		free(e->places);
		ZSTD_freeCCtx(e->zstd);
		free(e);
	}
}

// Marks the end of similar data: zstd codes each stretch with its own tables. Columns with
// different noise, and incompressible bits, would spoil each other's tables.
static void cut_at(struct encoder *e, size_t offset)
{
	size_t last = e->n_cuts ? e->cuts[e->n_cuts - 1] : 0;
	if (offset >= last + CUT_MIN_BYTES) {
		e->cuts[e->n_cuts++] = offset;
	}
}

static int append_column(struct encoder *e, const int64_t *values, uint32_t n_rows, bool packed)
{
	e->column.length = 0;
	int r = bytes_reserve(&e->column, COLUMN_ROOM(n_rows));
	if (r < 0) {
		return r;
	}
	size_t bits_at = column_encode(&e->column, values, n_rows, e->scratch, packed);
	r = bytes_reserve(&e->body, e->column.length + VARINT_MAX_BYTES);
	if (r < 0) {
		return r;
	}
	cut_at(e, e->body.length);
	bytes_put_varint(&e->body, e->column.length);
	cut_at(e, e->body.length + bits_at);
	bytes_put(&e->body, e->column.data, e->column.length);
	return 0;
}

static int encode_body(
	struct encoder *e, const struct block *b, const int64_t *times, enum codec codec)
{
	bool packed = codec == CODEC_ZSTD;
	int r = array_reserve(
		&e->scratch, &e->scratch_capacity, (size_t)b->n_rows + 1, sizeof(uint64_t));
	e->body.length = 0;
	e->n_cuts = 0;
	if (r == 0) {
		r = append_column(e, times, b->n_rows, packed);
	}
	for (uint32_t i = 0; r == 0 && i < b->n_columns; i++) {
		r = append_column(e, b->columns[i], b->n_rows, packed);
	}
	return r;
}

static bool has_aggregates(const struct block *b)
{
	for (uint32_t i = 0; b->aggregates && i < b->n_columns; i++) {
		if (b->aggregates[i] != AGGREGATE_NONE) {
			return true;
		}
	}
	return false;
}

static int encode_header(struct encoder *e, const struct block *b, bool has_clock)
{
	e->payload.length = 0;
	int r = bytes_reserve(&e->payload, 1 + (size_t)(b->n_columns + 2) * (VARINT_MAX_BYTES + 1));
	if (r < 0) {
		return r;
	}
	bool aggregates = has_aggregates(b);
	bytes_put_byte(&e->payload, (uint8_t)((aggregates ? HEADER_HAS_AGGREGATES : 0) |
					      (has_clock ? HEADER_HAS_CLOCK : 0)));
	bytes_put_varint(&e->payload, b->n_rows);
	bytes_put_varint(&e->payload, b->n_columns);
	for (uint32_t i = 0; i < b->n_columns; i++) {
		bytes_put_varint(&e->payload, b->metric_ids[i]);
	}
	if (aggregates) {
		bytes_put(&e->payload, b->aggregates, b->n_columns);
	}
	return 0;
}

// Compresses the body up to each cut. A flush ends zstd's block and its tables.
static size_t compress(struct encoder *e, void *data, size_t size)
{
	ZSTD_outBuffer out = {data, size, 0};
	ZSTD_inBuffer in = {e->body.data, 0, 0};
	ZSTD_CCtx_reset(e->zstd, ZSTD_reset_session_and_parameters);
	ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	ZSTD_CCtx_setPledgedSrcSize(e->zstd, e->body.length);
	size_t left = 0;
	for (size_t i = 0; i <= e->n_cuts && !ZSTD_isError(left); i++) {
		in.size = i < e->n_cuts ? e->cuts[i] : e->body.length;
		left = ZSTD_compressStream2(
			e->zstd, &out, &in, i < e->n_cuts ? ZSTD_e_flush : ZSTD_e_end);
	}
	// The output has space for everything, so any remainder is an error.
	return left == 0 ? out.pos : 0;
}

static int append_compressed(struct encoder *e)
{
	if (!e->zstd) {
		e->zstd = ZSTD_createCCtx();
	}
	size_t bound = ZSTD_compressBound(e->body.length) + e->n_cuts * ZSTD_BLOCK_OVERHEAD;
	if (!e->zstd || bytes_reserve(&e->payload, bound + CRC_BYTES) < 0) {
		return -ENOMEM;
	}
	size_t n = compress(e, (uint8_t *)e->payload.data + e->payload.length, bound);
	e->payload.length += n;
	return n ? 0 : -ENOMEM;
}

static int append_body(struct encoder *e, enum codec codec)
{
	if (codec == CODEC_ZSTD) {
		return append_compressed(e);
	}
	int r = bytes_reserve(&e->payload, e->body.length + CRC_BYTES);
	if (r == 0) {
		bytes_put(&e->payload, e->body.data, e->body.length);
	}
	return r;
}

static void append_crc(struct bytes *payload)
{
	uint32_t crc = crc32_of(payload->data, payload->length);
	for (unsigned shift = 0; shift < 32; shift += 8) {
		bytes_put_byte(payload, (uint8_t)(crc >> shift));
	}
}

static bool is_encodable(const struct block *b, enum codec codec)
{
	bool known = codec == CODEC_PLAIN || codec == CODEC_ZSTD;
	if (!known || !block_fits(b->n_rows, b->n_columns) || b->t[0] == VALUE_MISSING) {
		return false;
	}
	for (uint32_t i = 1; i < b->n_rows; i++) {
		if (b->t[i] < b->t[i - 1]) {
			return false;
		}
	}
	return true;
}

static int encode(struct encoder *e, const struct block *b, const int64_t *places, enum codec codec,
	const void **ret_data, size_t *ret_length)
{
	int r = encode_header(e, b, places != NULL);
	if (r == 0) {
		r = encode_body(e, b, places ? places : b->t, codec);
	}
	if (r == 0) {
		r = append_body(e, codec);
	}
	if (r < 0) {
		return r;
	}
	append_crc(&e->payload);
	*ret_data = e->payload.data;
	*ret_length = e->payload.length;
	return 0;
}

int block_encode(struct encoder *e, const struct block *b, enum codec codec, const void **ret_data,
	size_t *ret_length)
{
	return is_encodable(b, codec) ? encode(e, b, NULL, codec, ret_data, ret_length) : -EINVAL;
}

// Both arrays are sorted, so one pass finds all. Of equal times the first is as good as any.
static int find_places(const struct block *b, const struct block *clock, int64_t *places)
{
	uint32_t at = 0;
	for (uint32_t i = 0; i < b->n_rows; i++) {
		while (at < clock->n_rows && clock->t[at] < b->t[i]) {
			at++;
		}
		if (at == clock->n_rows || clock->t[at] != b->t[i]) {
			return -ENOENT;
		}
		places[i] = at;
	}
	return 0;
}

int block_encode_on_clock(struct encoder *e, const struct block *b, const struct block *clock,
	enum codec codec, const void **ret_data, size_t *ret_length)
{
	if (!is_encodable(b, codec)) {
		return -EINVAL;
	}
	int r = array_reserve(&e->places, &e->places_capacity, b->n_rows, sizeof(int64_t));
	if (r == 0) {
		r = find_places(b, clock, e->places);
	}
	return r < 0 ? r : encode(e, b, e->places, codec, ret_data, ret_length);
}

// Decode ------------------------------------------------------------------------------------------
//
// The block decoder. All bytes are untrusted. Allocations depend on limits that are checked first,
// and every loop is bounded by the rows and columns within those limits.

void block_done(struct block *b)
{
	free(b->metric_ids);
	free(b->aggregates);
	free(b->t); // the columns are in the same allocation
	free(b->columns);
	*b = (struct block){0};
}

static int damaged(struct error *e, const char *what)
{
	return error_set(e, EBADMSG, "damaged block: %s", what);
}

// Checks the checksum and returns the bytes that it covers.
static int check_payload(const void *data, size_t length, struct input *ret, struct error *e)
{
	if (length < CRC_BYTES + 1) {
		return damaged(e, "shorter than a checksum");
	}
	const uint8_t *bytes = data, *crc = bytes + length - CRC_BYTES;
	uint32_t expected = (uint32_t)crc[0] | (uint32_t)crc[1] << 8 | (uint32_t)crc[2] << 16 |
	                    (uint32_t)crc[3] << 24;
	if (crc32_of(bytes, length - CRC_BYTES) != expected) {
		return damaged(e, "its checksum does not match its bytes");
	}
	*ret = (struct input){bytes, crc};
	return 0;
}

static int decode_metrics(struct input *in, bool aggregates, struct block *b, struct error *e)
{
	b->metric_ids = calloc((size_t)b->n_columns + 1, sizeof(*b->metric_ids));
	b->aggregates = aggregates ? calloc((size_t)b->n_columns + 1, 1) : NULL;
	if (!b->metric_ids || (aggregates && !b->aggregates)) {
		return error_errno(e, ENOMEM, "cannot decode a block");
	}
	for (uint32_t i = 0; i < b->n_columns; i++) {
		uint64_t id;
		if (!take_varint(in, &id) || id > UINT32_MAX) {
			return damaged(e, "a metric id is not a 32-bit number");
		}
		b->metric_ids[i] = (uint32_t)id;
	}
	for (uint32_t i = 0; aggregates && i < b->n_columns; i++) {
		if (!take_byte(in, &b->aggregates[i]) || b->aggregates[i] > AGGREGATE_MAXIMUM) {
			return damaged(e, "an aggregate is unknown");
		}
	}
	return 0;
}

static int decode_header(struct input *in, struct block *b, bool *ret_has_clock, struct error *e)
{
	uint8_t flags;
	uint64_t n_rows, n_columns;
	if (!take_byte(in, &flags) || (flags & ~(HEADER_HAS_AGGREGATES | HEADER_HAS_CLOCK)) != 0) {
		return damaged(e, "its header has unknown flags");
	}
	if (!take_varint(in, &n_rows) || !take_varint(in, &n_columns) ||
		!block_fits(n_rows, n_columns)) {
		return damaged(e, "its rows or columns are outside the limits");
	}
	b->n_rows = (uint32_t)n_rows;
	b->n_columns = (uint32_t)n_columns;
	*ret_has_clock = flags & HEADER_HAS_CLOCK;
	return decode_metrics(in, flags & HEADER_HAS_AGGREGATES, b, e);
}

static bool is_time(const int64_t *t, uint32_t n_rows)
{
	if (t[0] == VALUE_MISSING) {
		return false;
	}
	for (uint32_t i = 1; i < n_rows; i++) {
		if (t[i] < t[i - 1]) {
			return false;
		}
	}
	return true;
}

// Replaces positions in the clock by times.
static bool look_up_times(int64_t *t, uint32_t n_rows, const struct block *clock)
{
	for (uint32_t i = 0; i < n_rows; i++) {
		if (t[i] < 0 || t[i] >= clock->n_rows) {
			return false;
		}
		t[i] = clock->t[t[i]];
	}
	return true;
}

static bool is_wanted(uint32_t metric, const uint32_t *wanted, size_t n_wanted)
{
	for (size_t i = 0; i < n_wanted; i++) {
		if (wanted[i] == metric) {
			return true;
		}
	}
	return n_wanted == 0;
}

// Removes columns that were not requested from the header; skip[i] marks them.
static void select_columns(struct block *b, const uint32_t *wanted, size_t n_wanted, bool *skip)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < b->n_columns; i++) {
		skip[i] = !is_wanted(b->metric_ids[i], wanted, n_wanted);
		if (!skip[i]) {
			b->metric_ids[kept] = b->metric_ids[i];
			if (b->aggregates) {
				b->aggregates[kept] = b->aggregates[i];
			}
			kept++;
		}
	}
	b->n_columns = kept;
}

static int allocate_columns(struct block *b, struct error *e)
{
	b->t = malloc((size_t)b->n_rows * (b->n_columns + 1) * sizeof(*b->t));
	b->columns = calloc((size_t)b->n_columns + 1, sizeof(*b->columns));
	if (!b->t || !b->columns) {
		return error_errno(e, ENOMEM, "cannot decode a block of %u rows", b->n_rows);
	}
	for (uint32_t i = 0; i < b->n_columns; i++) {
		b->columns[i] = b->t + (size_t)b->n_rows * (i + 1);
	}
	return 0;
}

// Parameters of decoding a block.
struct request {
	const struct block *clock; // NULL: the block has its own times
	const uint32_t *metric_ids; // [n_metrics]; 0: all
	size_t n_metrics;
};

static int decode_times(struct input *in, const struct request *request, struct block *b,
	int64_t *marks, struct error *e)
{
	if (!column_decode(*in, b->t, marks, b->n_rows)) {
		return damaged(e, "its times do not hold the rows they should");
	}
	if (request->clock && !look_up_times(b->t, b->n_rows, request->clock)) {
		return damaged(e, "its times are not in its clock");
	}
	return is_time(b->t, b->n_rows) ? 0 : damaged(e, "its times fall");
}

static int decode_columns(struct input *in, const struct request *request, uint32_t n_stored,
	const bool *skip, struct block *b, int64_t *marks, struct error *e)
{
	for (uint32_t stored = 0, kept = 0; stored <= n_stored; stored++) {
		struct input column;
		uint64_t length;
		int r = 0;
		if (!take_varint(in, &length) || !take_input(in, length, &column)) {
			return damaged(e, "a column is cut off");
		}
		if (stored == 0) {
			r = decode_times(&column, request, b, marks, e);
		} else if (!skip[stored - 1] &&
			   !column_decode(column, b->columns[kept++], marks, b->n_rows)) {
			r = damaged(e, "a column does not hold the rows it should");
		}
		if (r < 0) {
			return r;
		}
	}
	return in->at == in->end ? 0 : damaged(e, "bytes after its last column");
}

static int decode_body(
	struct input in, const struct request *request, struct block *b, struct error *e)
{
	bool skip[BLOCK_MAX_COLUMNS];
	uint32_t n_stored = b->n_columns;
	select_columns(b, request->metric_ids, request->n_metrics, skip);
	int r = allocate_columns(b, e);
	if (r < 0) {
		return r;
	}
	_cleanup_free_ int64_t *marks = malloc(b->n_rows * sizeof(*marks));
	if (!marks) {
		return error_errno(e, ENOMEM, "cannot decode a block of %u rows", b->n_rows);
	}
	return decode_columns(&in, request, n_stored, skip, b, marks, e);
}

static int decompress(struct input *in, void **ret_buffer, struct error *e)
{
	size_t stored = (size_t)(in->end - in->at);
	unsigned long long length = ZSTD_getFrameContentSize(in->at, stored);
	// zstd's two error values are the two largest numbers.
	if (length > BLOCK_MAX_BYTES) {
		return damaged(e, "its compressed part is not a zstd frame of allowed length");
	}
	void *buffer = malloc(length ? length : 1);
	if (!buffer) {
		return error_errno(e, ENOMEM, "cannot decompress a block");
	}
	size_t n = ZSTD_decompress(buffer, length, in->at, stored);
	if (ZSTD_isError(n) || n != length) {
		free(buffer);
		return damaged(e, "zstd cannot decompress it");
	}
	*in = (struct input){buffer, (const uint8_t *)buffer + n};
	*ret_buffer = buffer;
	return 0;
}

int block_decode_header(const void *data, size_t length, struct block *ret, struct error *e)
{
	struct block b = {0};
	struct input in;
	bool has_clock;
	int r = check_payload(data, length, &in, e);
	if (r == 0) {
		r = decode_header(&in, &b, &has_clock, e);
	}
	if (r < 0) {
		block_done(&b);
		return r;
	}
	*ret = b;
	return 0;
}

static int decode(struct input in, enum codec codec, struct request *request, struct block *b,
	struct error *e)
{
	_cleanup_free_ void *buffer = NULL;
	bool has_clock = false;
	int r = decode_header(&in, b, &has_clock, e);
	if (r == 0 && has_clock && !request->clock) {
		r = damaged(e, "its clock cannot be read");
	}
	if (!has_clock) {
		request->clock = NULL;
	}
	if (r == 0 && codec == CODEC_ZSTD) {
		r = decompress(&in, &buffer, e);
	}
	return r < 0 ? r : decode_body(in, request, b, e);
}

int block_decode_metrics(const void *data, size_t length, enum codec codec,
	const struct block *clock, const uint32_t *metric_ids, size_t n_metrics, struct block *ret,
	struct error *e)
{
	struct block b = {0};
	struct input in;
	struct request request = {clock, metric_ids, n_metrics};
	if (codec != CODEC_PLAIN && codec != CODEC_ZSTD) {
		return damaged(e, "its codec is unknown");
	}
	int r = check_payload(data, length, &in, e);
	if (r == 0) {
		r = decode(in, codec, &request, &b, e);
	}
	if (r < 0) {
		block_done(&b);
		return r;
	}
	*ret = b;
	return 0;
}

int block_decode(
	const void *data, size_t length, enum codec codec, struct block *ret, struct error *e)
{
	return block_decode_metrics(data, length, codec, NULL, NULL, 0, ret, e);
}
