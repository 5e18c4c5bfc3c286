// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Blocks: the decoder. Every byte may be hostile. What is allocated depends on limits that are
// checked first; every loop is bounded by the rows and columns that the limits allow.

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "trace/codec.h"
#include "trace/codec_format.h"
#include "trace/column.h"
#include "trace/crc32.h"
#include "trace/metric.h"

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

// Splits the payload into what the checksum covers, after checking it.
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

// Places in the clock become times.
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

// Drops the columns that nobody asked for from the header; skip[i] says which they were.
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

// What a block is decoded with.
struct request {
	const struct block *clock; // NULL: it has times of its own
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
	// Errors and "unknown" are the two largest numbers.
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
