// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The block codec: readings of one entity as compressed columns. docs/format.md describes the
// bytes. Bytes read from a file are untrusted.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum codec {
	CODEC_PLAIN = 1, // columns: constants elided, delta, zigzag, varint
	CODEC_ZSTD = 2, // the same, the columns through zstd
};

// Limits that the decoder enforces and the writer keeps. BLOCK_MAX_BYTES: size of a decoded block,
// including times.
#define BLOCK_MAX_ROWS (UINT32_C(1) << 20)
#define BLOCK_MAX_COLUMNS 256u
#define BLOCK_MAX_BYTES (UINT32_C(64) << 20)

// The content of a column: every reading of its metric, or (thinned) one figure per bucket.
enum aggregate {
	AGGREGATE_NONE = 0,
	AGGREGATE_MINIMUM = 1,
	AGGREGATE_MEAN = 2,
	AGGREGATE_MAXIMUM = 3,
};

// Columns of n_rows values. t is in microseconds since the run's start and never decreases. A value
// that was not read is VALUE_MISSING. A decoded block owns the arrays (block_done).
struct block {
	uint32_t n_rows;
	uint32_t n_columns; // without t; 0: a clock block, whose times other blocks share
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

// Encodes a block. *ret_data points into the encoder and is valid until its next use. Returns 0,
// -ENOMEM or -EINVAL.
int block_encode(struct encoder *e, const struct block *b, enum codec codec, const void **ret_data,
	size_t *ret_length);

// Encodes a block on a clock: it stores the positions of its times in the clock instead of the
// times. Only t of `clock` is used. Returns -ENOENT if a time is not in the clock.
int block_encode_on_clock(struct encoder *e, const struct block *b, const struct block *clock,
	enum codec codec, const void **ret_data, size_t *ret_length);

// Decodes into *ret, which the caller then owns. Returns -EBADMSG with the cause if the bytes are
// damaged. Reads nothing past `length` and allocates nothing beyond the limits.
int block_decode(
	const void *data, size_t length, enum codec codec, struct block *ret, struct error *e);

// Decodes only t and the columns of these metrics; n_metrics 0: all. Metrics that are not in the
// block are left out, so n_columns may be 0. clock: the block on whose times it was encoded; NULL
// for a block with its own times.
int block_decode_metrics(const void *data, size_t length, enum codec codec,
	const struct block *clock, const uint32_t *metric_ids, size_t n_metrics, struct block *ret,
	struct error *e);

// Decodes only n_rows, n_columns, metric_ids and aggregates. Cheap: nothing is decompressed.
int block_decode_header(const void *data, size_t length, struct block *ret, struct error *e);
