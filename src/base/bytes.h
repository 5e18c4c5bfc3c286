// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Bytes that an encoder writes: numbers as varints.

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"

// Bytes that grow. The owner reserves before it writes, so that writing cannot fail.
struct bytes {
	void *data;
	size_t length;
	size_t capacity;
};

static inline int bytes_reserve(struct bytes *b, size_t more)
{
	return array_reserve(&b->data, &b->capacity, b->length + more, 1);
}

static inline void bytes_put(struct bytes *b, const void *data, size_t length)
{
	memcpy((uint8_t *)b->data + b->length, data, length);
	b->length += length;
}

static inline void bytes_put_byte(struct bytes *b, uint8_t byte)
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

static inline void bytes_put_varint(struct bytes *b, uint64_t value)
{
	uint8_t *end = put_varint((uint8_t *)b->data + b->length, value);
	b->length = (size_t)(end - (uint8_t *)b->data);
}

static inline uint64_t zigzag(uint64_t value)
{
	return value << 1 ^ (0 - (value >> 63));
}

static inline void bytes_put_signed(struct bytes *b, uint64_t value)
{
	bytes_put_varint(b, zigzag(value));
}
