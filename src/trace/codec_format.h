// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What encoder and decoder agree on: the codes and limits of docs/format.md.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/codec.h"

enum column_kind {
	COLUMN_MISSING, // no value was read
	COLUMN_CONSTANT, // one value
	COLUMN_OFFSET, // residuals: value less the first value
	COLUMN_DELTA, // value less the value before
	COLUMN_DELTA_OF_DELTA, // delta less the delta before (of the second value: its delta)
	COLUMN_LINEAR, // the first value and a step, for all
	N_COLUMN_KINDS,
};

#define COLUMN_HAS_MISSING 0x80u // beside the kind: lengths of runs follow
#define COLUMN_IS_PACKED 0x40u // residuals are symbols and bits
#define SYMBOL_MAX 251u // of a number of 64 bits
#define HEADER_HAS_AGGREGATES 0x01u
#define HEADER_HAS_CLOCK 0x02u // the first column holds places in a clock
#define VARINT_MAX_BYTES 10
#define CRC_BYTES 4
// Level 3 of zstd: see docs/format.md for the measurement.
#define ZSTD_LEVEL 3

// Whether a block of this shape keeps the limits: decoded, t and columns are BLOCK_MAX_BYTES at
// most.
static inline bool block_fits(uint64_t n_rows, uint64_t n_columns)
{
	return n_rows >= 1 && n_rows <= BLOCK_MAX_ROWS && n_columns <= BLOCK_MAX_COLUMNS &&
	       n_rows * (n_columns + 1) * sizeof(int64_t) <= BLOCK_MAX_BYTES;
}
