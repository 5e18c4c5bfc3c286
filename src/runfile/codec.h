// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The block codec: rows of one entity's readings as compressed columns. docs/format.md describes
// the bytes; bytes that come from a file are hostile.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum codec {
	CODEC_PLAIN = 1, // columns: constants elided, delta, zigzag, varint
	CODEC_ZSTD = 2, // the same, the columns through zstd
};

// Limits that the decoder enforces and the writer keeps. BLOCK_MAX_BYTES: of a block decoded, times
// included.
#define BLOCK_MAX_ROWS (UINT32_C(1) << 20)
#define BLOCK_MAX_COLUMNS 256u
#define BLOCK_MAX_BYTES (UINT32_C(64) << 20)

// What a column holds of its metric: every reading, or (thinned) one figure of each bucket.
enum aggregate {
	AGGREGATE_NONE = 0,
	AGGREGATE_MINIMUM = 1,
	AGGREGATE_MEAN = 2,
	AGGREGATE_MAXIMUM = 3,
};

// Columns of n_rows values. t is in microseconds since the run's start and never falls. A value
// that was not read is VALUE_MISSING. On decode the arrays belong to the block (block_done).
struct block {
	uint32_t n_rows;
	uint32_t n_columns; // without t; 0: a clock, times that other blocks share
	uint32_t *metric_ids; // [n_columns]
	uint8_t *aggregates; // [n_columns], enum aggregate; NULL: AGGREGATE_NONE for all
	int64_t *t; // [n_rows]
	int64_t **columns; // [n_columns][n_rows]
};

// Frees what block_decode allocated. Accepts a zeroed block.
void block_done(struct block *b);

// Reusable encoder state: buffers and the zstd context. One per thread.
struct encoder;
int encoder_new(struct encoder **ret);
void encoder_free(struct encoder *e);

// Encodes. *ret_data points into the encoder and lives until its next use. 0 or -ENOMEM, -EINVAL.
int block_encode(struct encoder *e, const struct block *b, enum codec codec, const void **ret_data,
	size_t *ret_length);

// Encodes on a clock: instead of its times the block holds their places among those of the clock
// (a block, of which only t is looked at). -ENOENT where a time is not among them.
int block_encode_on_clock(struct encoder *e, const struct block *b, const struct block *clock,
	enum codec codec, const void **ret_data, size_t *ret_length);

// Decodes into *ret, which is owned by the caller afterwards. -EBADMSG with a text that names what
// was wrong where the bytes are damaged; reads nothing past `length`, allocates nothing past the
// limits.
int block_decode(
	const void *data, size_t length, enum codec codec, struct block *ret, struct error *e);

// Decodes only the columns of these metrics (and t); n_metrics 0: all. What was asked for and is
// not in the block is left out, so that n_columns may be 0. clock: the block whose times it was
// encoded on; NULL for one with times of its own.
int block_decode_metrics(const void *data, size_t length, enum codec codec,
	const struct block *clock, const uint32_t *metric_ids, size_t n_metrics, struct block *ret,
	struct error *e);

// Decodes n_rows, n_columns, metric_ids and aggregates only: cheap, nothing is decompressed.
int block_decode_header(const void *data, size_t length, struct block *ret, struct error *e);
