// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The block codec. The first byte says how the rest is taken: bit 0, as a block through zstd; bit
// 1, on a clock. The checksum is made right, so that the decoder is on its own. What decodes must
// encode and decode to the same again.

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runfile/codec.h"
#include "base/crc32.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
	if (!right) {
		abort();
	}
}

static bool is_same(const struct block *a, const struct block *b)
{
	if (a->n_rows != b->n_rows || a->n_columns != b->n_columns ||
		memcmp(a->t, b->t, a->n_rows * sizeof(*a->t)) != 0) {
		return false;
	}
	for (uint32_t i = 0; i < a->n_columns; i++) {
		uint8_t of_a = a->aggregates ? a->aggregates[i] : AGGREGATE_NONE;
		uint8_t of_b = b->aggregates ? b->aggregates[i] : AGGREGATE_NONE;
		if (a->metric_ids[i] != b->metric_ids[i] || of_a != of_b ||
			memcmp(a->columns[i], b->columns[i], a->n_rows * sizeof(int64_t)) != 0) {
			return false;
		}
	}
	return true;
}

static void check_round_trip(const struct block *b, enum codec codec)
{
	struct encoder *encoder;
	const void *payload;
	size_t length;
	struct block again;
	check(encoder_new(&encoder) == 0);
	check(block_encode(encoder, b, codec, &payload, &length) == 0);
	check(block_decode(payload, length, codec, &again, NULL) == 0);
	check(is_same(b, &again));
	block_done(&again);
	encoder_free(encoder);
}

static void check_selection(const void *payload, size_t length, enum codec codec,
	const struct block *clock, const struct block *b)
{
	struct block header, some;
	uint32_t wanted[] = {b->n_columns ? b->metric_ids[0] : 1};
	check(block_decode_header(payload, length, &header, NULL) == 0);
	check(header.n_rows == b->n_rows && header.n_columns == b->n_columns);
	block_done(&header);
	check(block_decode_metrics(payload, length, codec, clock, wanted, 1, &some, NULL) == 0);
	check(some.n_columns <= b->n_columns);
	block_done(&some);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1) {
		return 0;
	}
	int64_t ticks[300];
	for (int64_t i = 0; i < 300; i++) {
		ticks[i] = i * 10000 + i % 7;
	}
	struct block clock_block = {.n_rows = 300, .t = ticks};
	const struct block *clock = data[0] & 2 ? &clock_block : NULL;
	enum codec codec = data[0] & 1 ? CODEC_ZSTD : CODEC_PLAIN;
	size_t length = size - 1 + 4;
	_cleanup_free_ uint8_t *payload = calloc(1, length);
	check(payload);
	memcpy(payload, data + 1, size - 1);
	uint32_t crc = crc32_of(payload, size - 1);
	for (unsigned i = 0; i < 4; i++) {
		payload[size - 1 + i] = (uint8_t)(crc >> (8 * i));
	}
	struct block b;
	struct error e = {0};
	if (block_decode_metrics(payload, length, codec, clock, NULL, 0, &b, &e) < 0) {
		check(e.code && e.text[0]);
		return 0;
	}
	check_round_trip(&b, CODEC_PLAIN);
	check_round_trip(&b, CODEC_ZSTD);
	check_selection(payload, length, codec, clock, &b);
	block_done(&b);
	return 0;
}
