// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Blocks of spans. The first byte's bit 0: through zstd; two bytes: how long the words are; then
// words and payload, whose checksum is made right. What decodes, and is no more than a writer
// writes, encodes and decodes to the same again.

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/crc32.h"
#include "runfile/span_rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
	if (!right) {
		abort();
	}
}

static bool is_same(const struct writer_span *a, const struct writer_span *b)
{
	return a->start_ns == b->start_ns && a->end_ns == b->end_ns && a->id == b->id &&
	       a->parent == b->parent && a->number == b->number && a->samples == b->samples &&
	       a->thread == b->thread && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->kind, b->kind) == 0 && strcmp(a->attributes, b->attributes) == 0;
}

static void check_same(const struct span_rows *a, const struct span_rows *b)
{
	check(a->n == b->n);
	for (size_t i = 0; i < a->n; i++) {
		struct writer_span left = span_rows_get(a, i), right = span_rows_get(b, i);
		check(is_same(&left, &right));
	}
}

// Encoding sorts, and makes words valid UTF-8: what came out of it once changes no more.
static void encode(struct span_rows *rows, struct span_rows *ret)
{
	_cleanup_text_ struct text words = {0};
	struct encoder *encoder;
	const void *payload;
	size_t length;
	struct error e = {0};
	check(encoder_new(&encoder) == 0);
	check(span_rows_encode(rows, encoder, CODEC_ZSTD, &words, &payload, &length) == 0);
	check(span_rows_decode(words.data, words.length, payload, length, CODEC_ZSTD, ret, &e) ==
		0);
	encoder_free(encoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span_rows rows, once, twice;
	struct error e = {0};
	if (size < 3) {
		return 0;
	}
	size_t words = (size_t)data[1] << 8 | data[2];
	words = words < size - 3 ? words : size - 3;
	size_t length = size - 3 - words;
	_cleanup_free_ uint8_t *payload = malloc(length + 4);
	check(payload);
	memcpy(payload, data + 3 + words, length);
	uint32_t crc = crc32_of(payload, length);
	for (unsigned i = 0; i < 4; i++) {
		payload[length + i] = (uint8_t)(crc >> (8 * i));
	}
	if (span_rows_decode(data + 3, words, payload, length + 4,
		    data[0] & 1 ? CODEC_ZSTD : CODEC_PLAIN, &rows, &e) < 0) {
		check(e.code && e.text[0]);
		return 0;
	}
	encode(&rows, &once);
	encode(&once, &twice);
	check_same(&once, &twice);
	span_rows_done(&rows);
	span_rows_done(&once);
	span_rows_done(&twice);
	return 0;
}
