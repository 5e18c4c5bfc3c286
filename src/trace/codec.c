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
#include "trace/bytes.h"
#include "trace/codec_format.h"
#include "trace/column.h"
#include "trace/crc32.h"
#include "trace/metric.h"

// Shorter stretches are compressed with the next one: tables cost some ten bytes.
#define CUT_MIN_BYTES 256
#define ZSTD_BLOCK_OVERHEAD 32

struct encoder {
	struct bytes column; // of the column in work
	struct bytes body; // columns, before compression
	struct bytes payload;
	void *scratch; // uint64_t: of column_encode
	size_t scratch_capacity;
	void *places; // int64_t: of a block's times in a clock
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

// Where what is alike ends: zstd codes each stretch with tables of its own. Columns of other noise,
// and bits that nothing compresses, would spoil each other's.
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

// Compresses the body up to each cut; a flush ends zstd's block and its tables.
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
	// The room is enough for all at once: anything left is an error.
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
