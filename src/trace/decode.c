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
#include "trace/crc32.h"
#include "trace/metric.h"

struct input {
	const uint8_t *at;
	const uint8_t *end;
};

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

static bool take_signed(struct input *in, uint64_t *ret)
{
	uint64_t value;
	if (!take_varint(in, &value)) {
		return false;
	}
	*ret = value >> 1 ^ (0 - (value & 1));
	return true;
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

static bool decode_residuals(struct input *in, int64_t *values, uint32_t n, enum column_kind kind)
{
	uint64_t unit, first, last, delta = 0;
	if (!take_varint(in, &unit) || !take_signed(in, &first)) {
		return false;
	}
	values[0] = (int64_t)first;
	last = first;
	for (uint32_t i = 1; i < n; i++) {
		uint64_t r;
		if (!take_signed(in, &r)) {
			return false;
		}
		r *= unit;
		delta = kind == COLUMN_DELTA_OF_DELTA ? delta + r : r;
		last = kind == COLUMN_OFFSET ? first + r : last + delta;
		values[i] = (int64_t)last;
	}
	return true;
}

static bool decode_constant(struct input *in, int64_t *values, uint32_t n)
{
	uint64_t value;
	if (!take_signed(in, &value)) {
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		values[i] = (int64_t)value;
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

static bool decode_present(struct input *in, int64_t *values, uint32_t n, enum column_kind kind)
{
	return n > 0 && (kind == COLUMN_CONSTANT ? decode_constant(in, values, n)
						 : decode_residuals(in, values, n, kind));
}

static bool decode_column(struct input *in, int64_t *values, int64_t *marks, uint32_t n_rows)
{
	uint8_t code;
	if (!take_byte(in, &code)) {
		return false;
	}
	enum column_kind kind = code & ~COLUMN_HAS_MISSING;
	bool has_missing = code & COLUMN_HAS_MISSING;
	if (kind >= N_COLUMN_KINDS || (kind == COLUMN_MISSING && has_missing)) {
		return false;
	}
	uint32_t n_present = n_rows;
	if (kind == COLUMN_MISSING) {
		for (uint32_t i = 0; i < n_rows; i++) {
			values[i] = VALUE_MISSING;
		}
		return in->at == in->end;
	}
	if (has_missing && !decode_missing_runs(in, marks, n_rows, &n_present)) {
		return false;
	}
	if (!decode_present(in, values, n_present, kind) || in->at != in->end) {
		return false;
	}
	if (has_missing) {
		spread_present(values, marks, n_rows, n_present);
	}
	return true;
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
	if (!decode_column(in, b->t, marks, b->n_rows)) {
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
			   !decode_column(&column, b->columns[kept++], marks, b->n_rows)) {
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
