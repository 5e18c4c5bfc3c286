// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Blocks: what the encoder writes. The decoder is in decode.c, the bytes are in docs/format.md.

#include "trace/codec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "trace/codec_format.h"
#include "trace/crc32.h"
#include "trace/metric.h"

// Values of a column that are looked at to choose its kind; of a short one each fourth, because a
// block of a second lives for a minute only.
#define CHOICE_VALUES 512
#define SHORT_STRIDE 4

// Bytes that grow. The owner reserves before it writes, so that writing cannot fail.
struct bytes {
	void *data;
	size_t length;
	size_t capacity;
};

struct encoder {
	struct bytes column; // of the column in work
	struct bytes body; // columns, before compression
	struct bytes payload;
	void *present; // int64_t: the values of a column that were read
	size_t present_capacity;
	void *places; // int64_t: of a block's times in a clock
	size_t places_capacity;
	ZSTD_CCtx *zstd;
};

static int bytes_reserve(struct bytes *b, size_t more)
{
	return array_reserve(&b->data, &b->capacity, b->length + more, 1);
}

static void bytes_put(struct bytes *b, const void *data, size_t length)
{
	memcpy((uint8_t *)b->data + b->length, data, length);
	b->length += length;
}

static void bytes_put_byte(struct bytes *b, uint8_t byte)
{
	((uint8_t *)b->data)[b->length++] = byte;
}

static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

static void bytes_put_varint(struct bytes *b, uint64_t value)
{
	uint8_t *end = put_varint((uint8_t *)b->data + b->length, value);
	b->length = (size_t)(end - (uint8_t *)b->data);
}

static inline uint64_t zigzag(uint64_t value)
{
	return value << 1 ^ (0 - (value >> 63));
}

static void bytes_put_signed(struct bytes *b, uint64_t value)
{
	bytes_put_varint(b, zigzag(value));
}

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
		free(e->present);
		free(e->places);
		ZSTD_freeCCtx(e->zstd);
		free(e);
	}
}

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

static void put_residuals(struct bytes *out, uint64_t *v, size_t n, enum column_kind kind)
{
	make_residuals(v, n, kind);
	uint64_t unit = common_unit(v + 1, n - 1);
	bytes_put_varint(out, unit);
	bytes_put_signed(out, v[0]);
	// A pointer of our own: `out` could be what the bytes are written to, for all the compiler
	// knows.
	uint8_t *at = (uint8_t *)out->data + out->length;
	for (size_t i = 1; i < n; i++) {
		uint64_t r = v[i];
		if (r && unit != 1) {
			r = (uint64_t)((int64_t)r / (int64_t)unit);
		}
		at = put_varint(at, zigzag(r));
	}
	out->length = (size_t)(at - (uint8_t *)out->data);
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

static bool is_constant(const uint64_t *v, uint32_t n)
{
	uint64_t difference = 0;
	for (uint32_t i = 1; i < n; i++) {
		difference |= v[i] ^ v[0];
	}
	return difference == 0;
}

static void encode_column(struct bytes *out, uint64_t *present, uint32_t n_present,
	const int64_t *values, uint32_t n_rows)
{
	if (n_present == 0) {
		bytes_put_byte(out, COLUMN_MISSING);
		return;
	}
	bool constant = is_constant(present, n_present);
	enum column_kind kind = constant ? COLUMN_CONSTANT : choose_kind(present, n_present);
	bytes_put_byte(out, (uint8_t)(kind | (n_present < n_rows ? COLUMN_HAS_MISSING : 0)));
	if (n_present < n_rows) {
		put_missing_runs(out, values, n_rows);
	}
	if (constant) {
		bytes_put_signed(out, present[0]);
	} else {
		put_residuals(out, present, n_present, kind);
	}
}

static int append_column(struct encoder *e, const int64_t *values, uint32_t n_rows)
{
	uint64_t *present = e->present;
	uint32_t n_present = collect_present(present, values, n_rows);
	e->column.length = 0;
	// A residual and a run's length per row at most, each a varint; kind, unit and first value.
	int r = bytes_reserve(&e->column, (size_t)n_rows * (VARINT_MAX_BYTES + 5) + 64);
	if (r < 0) {
		return r;
	}
	encode_column(&e->column, present, n_present, values, n_rows);
	r = bytes_reserve(&e->body, e->column.length + VARINT_MAX_BYTES);
	if (r < 0) {
		return r;
	}
	bytes_put_varint(&e->body, e->column.length);
	bytes_put(&e->body, e->column.data, e->column.length);
	return 0;
}

static int encode_body(struct encoder *e, const struct block *b, const int64_t *times)
{
	int r = array_reserve(
		&e->present, &e->present_capacity, (size_t)b->n_rows + 1, sizeof(int64_t));
	e->body.length = 0;
	if (r == 0) {
		r = append_column(e, times, b->n_rows);
	}
	for (uint32_t i = 0; r == 0 && i < b->n_columns; i++) {
		r = append_column(e, b->columns[i], b->n_rows);
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

static int append_compressed(struct encoder *e)
{
	if (!e->zstd) {
		e->zstd = ZSTD_createCCtx();
	}
	size_t bound = ZSTD_compressBound(e->body.length);
	if (!e->zstd || bytes_reserve(&e->payload, bound + CRC_BYTES) < 0) {
		return -ENOMEM;
	}
	size_t n = ZSTD_compressCCtx(e->zstd, (uint8_t *)e->payload.data + e->payload.length, bound,
		e->body.data, e->body.length, ZSTD_LEVEL);
	if (ZSTD_isError(n)) {
		return -ENOMEM;
	}
	e->payload.length += n;
	return 0;
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
		r = encode_body(e, b, places ? places : b->t);
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

// Both rise, so that one walk finds all. Of equal times the first is as good as the others.
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
