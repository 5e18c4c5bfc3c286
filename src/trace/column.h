// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One column of a block, encoded and decoded. docs/format.md has the bytes.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace/bytes.h"

// Room that the column of so many rows needs at most: for a residual a varint, for a run of rows
// that are missing its length.
#define COLUMN_ROOM(n_rows) ((size_t)(n_rows)*15 + 64)

// Writes a column, in room that was reserved. scratch has room for n_rows + 1 numbers. `packed`:
// residuals may be split into symbols and bits, which only pays where zstd follows. Returns where
// bits begin that nothing compresses: the column's length where there are none.
size_t column_encode(
	struct bytes *out, const int64_t *values, uint32_t n_rows, uint64_t *scratch, bool packed);

// A position in bytes that may be hostile.
struct input {
	const uint8_t *at;
	const uint8_t *end;
};

// Takes from the input; false, and nothing taken that counts, where it has too little.
bool take_byte(struct input *in, uint8_t *ret);
bool take_varint(struct input *in, uint64_t *ret);
bool take_input(struct input *in, uint64_t length, struct input *ret);

// Reads a column of exactly these bytes. marks has room for n_rows numbers. False where it is
// damaged.
bool column_decode(struct input in, int64_t *values, int64_t *marks, uint32_t n_rows);
