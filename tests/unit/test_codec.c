// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Blocks: what goes in comes out, and what is damaged is said to be.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runfile/codec.h"
#include "base/crc32.h"
#include "runfile/metric.h"

enum { ROWS = 300, COLUMNS = 9 };

struct sample_block {
	struct block block;
	uint32_t ids[COLUMNS];
	uint8_t aggregates[COLUMNS];
	int64_t t[ROWS];
	int64_t values[COLUMNS][ROWS];
	int64_t *columns[COLUMNS];
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void fill_row(struct sample_block *s, int row, uint64_t *random)
{
	int64_t noise = (int64_t)(next_random(random) % 100);
	s->t[row] = 1000000 + row * 10000 + noise;
	s->values[0][row] = 42; // constant
	s->values[1][row] = row * 9990 + noise; // a counter
	s->values[2][row] = VALUE_MISSING;
	s->values[3][row] = row % 7 < 3 ? VALUE_MISSING : row * 4096; // with holes, in pages
	s->values[4][row] = (int64_t)next_random(random); // anything at all
	s->values[5][row] = row % 2 ? INT64_MAX : INT64_MIN + 1; // differences wrap
	s->values[6][row] = 500 + noise; // a gauge without trend
	s->values[7][row] = (int64_t)row * row * 1000; // a counter that accelerates
	s->values[8][row] = row < ROWS - 1 ? VALUE_MISSING : -3; // one value at the end
}

static void fill(struct sample_block *s)
{
	*s = (struct sample_block){0};
	uint64_t random = 88172645463325252;
	for (int row = 0; row < ROWS; row++) {
		fill_row(s, row, &random);
	}
	for (int i = 0; i < COLUMNS; i++) {
		s->columns[i] = s->values[i];
		s->ids[i] = (uint32_t)i * 100 + 1;
	}
	s->block = (struct block){ROWS, COLUMNS, s->ids, NULL, s->t, s->columns};
}

static void assert_same(const struct block *a, const struct block *b)
{
	assert_int_equal(a->n_rows, b->n_rows);
	assert_int_equal(a->n_columns, b->n_columns);
	assert_memory_equal(a->metric_ids, b->metric_ids, a->n_columns * sizeof(uint32_t));
	assert_memory_equal(a->t, b->t, a->n_rows * sizeof(int64_t));
	for (uint32_t i = 0; i < a->n_columns; i++) {
		assert_memory_equal(a->columns[i], b->columns[i], a->n_rows * sizeof(int64_t));
	}
}

static void test_round_trip(void **state)
{
	(void)state;
	static struct sample_block s;
	fill(&s);
	struct encoder *encoder;
	assert_int_equal(encoder_new(&encoder), 0);
	static const enum codec codecs[] = {CODEC_PLAIN, CODEC_ZSTD, CODEC_PLAIN};
	for (size_t i = 0; i < ARRAY_LENGTH(codecs); i++) {
		for (uint32_t rows = 1; rows <= ROWS; rows += rows < 5 ? 1 : 59) {
			s.block.n_rows = rows;
			const void *data;
			size_t length;
			struct error e = {0};
			struct block decoded;
			assert_int_equal(
				block_encode(encoder, &s.block, codecs[i], &data, &length), 0);
			assert_int_equal(block_decode(data, length, codecs[i], &decoded, &e), 0);
			assert_same(&s.block, &decoded);
			assert_null(decoded.aggregates);
			block_done(&decoded);
		}
	}
	encoder_free(encoder);
}

static void test_aggregates_and_selection(void **state)
{
	(void)state;
	static struct sample_block s;
	fill(&s);
	for (int i = 0; i < COLUMNS; i++) {
		s.aggregates[i] = (uint8_t)(i % 4);
		s.ids[i] = (uint32_t)i / 3;
	}
	s.block.aggregates = s.aggregates;
	struct encoder *encoder;
	assert_int_equal(encoder_new(&encoder), 0);
	const void *data;
	size_t length;
	assert_int_equal(block_encode(encoder, &s.block, CODEC_ZSTD, &data, &length), 0);
	struct block decoded;
	static const uint32_t wanted[] = {1, 77};
	assert_int_equal(
		block_decode_metrics(data, length, CODEC_ZSTD, NULL, wanted, 2, &decoded, NULL), 0);
	assert_int_equal(decoded.n_columns, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(decoded.metric_ids[i], 1);
		assert_int_equal(decoded.aggregates[i], (3 + i) % 4);
		assert_memory_equal(decoded.columns[i], s.values[3 + i], sizeof(s.values[0]));
	}
	block_done(&decoded);
	assert_int_equal(block_decode_header(data, length, &decoded, NULL), 0);
	assert_int_equal(decoded.n_rows, ROWS);
	assert_int_equal(decoded.n_columns, COLUMNS);
	assert_memory_equal(decoded.aggregates, s.aggregates, COLUMNS);
	assert_null(decoded.t);
	block_done(&decoded);
	encoder_free(encoder);
}

static void test_times_of_a_clock(void **state)
{
	(void)state;
	static struct sample_block s;
	fill(&s);
	s.t[7] = s.t[6]; // twice the same time
	struct block clock = {.n_rows = ROWS, .t = s.t}, decoded, decoded_clock;
	int64_t t[ROWS / 3], values[ROWS / 3], *columns[] = {values};
	for (int i = 0; i < ROWS / 3; i++) {
		t[i] = s.t[i * 3];
		values[i] = i;
	}
	struct block b = {ROWS / 3, 1, s.ids, NULL, t, columns};
	struct encoder *encoder;
	const void *data;
	size_t length;
	struct error e = {0};
	assert_int_equal(encoder_new(&encoder), 0);
	assert_int_equal(block_encode(encoder, &clock, CODEC_ZSTD, &data, &length), 0);
	assert_int_equal(block_decode(data, length, CODEC_ZSTD, &decoded_clock, &e), 0);
	assert_int_equal(decoded_clock.n_columns, 0);
	assert_memory_equal(decoded_clock.t, s.t, sizeof(s.t));
	assert_int_equal(block_encode_on_clock(encoder, &b, &clock, CODEC_ZSTD, &data, &length), 0);
	assert_true(length < 60); // places three apart, values one apart: next to nothing
	assert_int_equal(block_decode_metrics(
				 data, length, CODEC_ZSTD, &decoded_clock, NULL, 0, &decoded, &e),
		0);
	assert_same(&b, &decoded);
	block_done(&decoded);
	assert_int_equal(block_decode(data, length, CODEC_ZSTD, &decoded, &e), -EBADMSG);
	decoded_clock.n_rows = ROWS - 3;
	assert_int_equal(block_decode_metrics(
				 data, length, CODEC_ZSTD, &decoded_clock, NULL, 0, &decoded, &e),
		-EBADMSG);
	assert_non_null(strstr(e.text, "not in its clock"));
	t[5]++;
	assert_int_equal(
		block_encode_on_clock(encoder, &b, &clock, CODEC_ZSTD, &data, &length), -ENOENT);
	block_done(&decoded_clock);
	encoder_free(encoder);
}

static void test_what_cannot_be_encoded(void **state)
{
	(void)state;
	static struct sample_block s;
	fill(&s);
	struct encoder *encoder;
	assert_int_equal(encoder_new(&encoder), 0);
	const void *data;
	size_t length;
	s.t[5] = s.t[4] - 1;
	assert_int_equal(block_encode(encoder, &s.block, CODEC_PLAIN, &data, &length), -EINVAL);
	fill(&s);
	s.block.n_rows = 0;
	assert_int_equal(block_encode(encoder, &s.block, CODEC_PLAIN, &data, &length), -EINVAL);
	s.block.n_rows = BLOCK_MAX_ROWS;
	assert_int_equal(block_encode(encoder, &s.block, CODEC_PLAIN, &data, &length), -EINVAL);
	s.block.n_rows = 1;
	assert_int_equal(block_encode(encoder, &s.block, 3, &data, &length), -EINVAL);
	encoder_free(encoder);
}

static void test_every_flipped_bit_is_noticed(void **state)
{
	(void)state;
	static struct sample_block s;
	fill(&s);
	s.block.n_rows = 20;
	struct encoder *encoder;
	assert_int_equal(encoder_new(&encoder), 0);
	static const enum codec codecs[] = {CODEC_PLAIN, CODEC_ZSTD};
	for (size_t i = 0; i < ARRAY_LENGTH(codecs); i++) {
		const void *data;
		size_t length;
		assert_int_equal(block_encode(encoder, &s.block, codecs[i], &data, &length), 0);
		_cleanup_free_ uint8_t *copy = malloc(length);
		memcpy(copy, data, length);
		for (size_t bit = 0; bit < length * 8; bit++) {
			struct error e = {0};
			struct block decoded;
			copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(
				block_decode(copy, length, codecs[i], &decoded, &e), -EBADMSG);
			assert_non_null(strstr(e.text, "damaged block: "));
			copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		for (size_t cut = 0; cut < length; cut++) {
			struct block decoded;
			assert_int_equal(
				block_decode(copy, cut, codecs[i], &decoded, NULL), -EBADMSG);
		}
	}
	encoder_free(encoder);
}

// With a checksum that is right, the decoder has only its own checks.
static int decode_forged(const uint8_t *bytes, size_t length, struct error *e)
{
	uint8_t payload[64];
	memcpy(payload, bytes, length);
	uint32_t crc = crc32_of(bytes, length);
	for (unsigned i = 0; i < 4; i++) {
		payload[length + i] = (uint8_t)(crc >> (8 * i));
	}
	struct block decoded;
	int r = block_decode(payload, length + 4, CODEC_PLAIN, &decoded, e);
	if (r == 0) {
		block_done(&decoded);
	}
	return r;
}

static void test_forged_blocks(void **state)
{
	(void)state;
	static const struct {
		const char *what; // NULL: it is right
		uint8_t length;
		uint8_t bytes[20];
	} forged[] = {
		// flags, rows, columns, id, then t (length, constant 0) and a column (constant 1)
		{NULL, 10, {0, 3, 1, 5, 2, 1, 0, 2, 1, 2}},
		{"clock", 10, {2, 3, 1, 5, 2, 1, 0, 2, 1, 2}},
		{"flags", 10, {4, 3, 1, 5, 2, 1, 0, 2, 1, 2}},
		{"limits", 10, {0, 0, 1, 5, 2, 1, 0, 2, 1, 2}},
		{NULL, 6, {0, 3, 0, 2, 1, 0}}, // a clock
		{"limits", 5, {0, 3, 0x81, 2, 0}},
		{"limits", 5, {0, 0xff, 0xff, 0xff, 0x7f}},
		{"metric id", 9, {0, 3, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		{"aggregate", 11, {1, 3, 1, 5, 4, 2, 1, 0, 2, 1, 2}},
		{"cut off", 8, {0, 3, 1, 5, 2, 1, 0, 2}},
		{"cut off", 7, {0, 3, 1, 5, 2, 1, 0}},
		{"after its last", 11, {0, 3, 1, 5, 2, 1, 0, 2, 1, 2, 0}},
		{"rows it should", 11, {0, 3, 1, 5, 2, 1, 0, 3, 1, 2, 0}}, // bytes after the value
		{"rows it should", 10, {0, 3, 1, 5, 2, 1, 0, 2, 9, 2}}, // no such kind
		{"rows it should", 9, {0, 3, 1, 5, 2, 1, 0, 1, 0x80}}, // missing, and has runs
		// runs of 2 and 2 rows of 3
		{"rows it should", 13, {0, 3, 1, 5, 2, 1, 0, 5, 0x81, 2, 2, 2, 2}},
		{NULL, 13, {0, 3, 1, 5, 2, 1, 0, 5, 0x81, 2, 2, 1, 2}},
		{"rows it should", 12, {0, 3, 1, 5, 2, 1, 0, 4, 0x81, 0, 2, 2}}, // no runs at all
		{"times do not hold", 10, {0, 3, 1, 5, 2, 0, 0, 2, 1, 2}}, // missing, and a byte
		{"times fall", 9, {0, 3, 1, 5, 1, 0, 2, 1, 2}}, // t is missing
		{"times fall", 13, {0, 3, 1, 5, 5, 3, 1, 0, 0, 1, 2, 1, 2}},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(forged); i++) {
		struct error e = {0};
		int r = decode_forged(forged[i].bytes, forged[i].length, &e);
		assert_int_equal(r, forged[i].what ? -EBADMSG : 0);
		if (forged[i].what && !strstr(e.text, forged[i].what)) {
			fail_msg("row %zu: expected '%s', found '%s'", i, forged[i].what, e.text);
		}
	}
}

static void test_crc_is_zlibs(void **state)
{
	(void)state;
	assert_int_equal(crc32_of("123456789", 9), 0xcbf43926);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_aggregates_and_selection),
		cmocka_unit_test(test_times_of_a_clock),
		cmocka_unit_test(test_what_cannot_be_encoded),
		cmocka_unit_test(test_every_flipped_bit_is_noticed),
		cmocka_unit_test(test_forged_blocks),
		cmocka_unit_test(test_crc_is_zlibs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
