// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Closed spans, collected and encoded as a block (docs/format.md, "Blocks of spans"). A span takes
// 87 bytes as a row of the run file and less than ten in a block.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "runfile/codec.h"

struct writer_span {
	const char *name;
	const char *kind; // "epoch", "iteration", "phase", "user", "point"
	int64_t start_ns;
	int64_t end_ns; // -1 while open
	int64_t thread; // 0 for none
	int64_t parent; // 0 for none
	int64_t number; // -1 for none
	int64_t samples; // -1 for none
	double value; // NAN for none
	const char *attributes; // JSON object, or NULL for {}
	int64_t id; // 0: the next free id
};

#define SPAN_ROWS_MAX 8192u // in a block: a reader has many blocks open at once

// Properties shared by many spans. None: thread 0, as in struct writer_span.
struct span_words {
	const char *name;
	const char *kind;
	const char *attributes;
	int64_t thread;
	char *memory; // of the strings; owned by the rows
};

struct span_row {
	int64_t start_ns;
	int64_t end_ns;
	int64_t id;
	int64_t parent;
	int64_t number;
	int64_t samples;
	uint32_t words; // index into span_rows.words
};

struct span_rows {
	struct span_row *items; // [n]
	size_t n;
	size_t capacity;
	struct span_words *words; // [n_words]
	size_t n_words;
	size_t words_capacity;
};

void span_rows_done(struct span_rows *rows);
void span_rows_clear(struct span_rows *rows);
// Copies a span. Returns -ENOBUFS if full or with too many different words; -ENOMEM.
int span_rows_add(struct span_rows *rows, const struct writer_span *span);
// Returns row i. Its strings are valid as long as the rows.
struct writer_span span_rows_get(const struct span_rows *rows, size_t i);

// Sorts the rows by start and encodes them: the words, each string with its NUL, into *words; the
// numbers into *ret_data, which is valid until the encoder's next use. Returns 0 or -errno.
int span_rows_encode(struct span_rows *rows, struct encoder *encoder, enum codec codec,
	struct text *words, const void **ret_data, size_t *ret_length);

// Decodes untrusted bytes from a file. Returns 0 and rows sorted by start, which the caller owns;
// -EBADMSG with a text; or -ENOMEM.
int span_rows_decode(const void *words, size_t words_length, const void *data, size_t length,
	enum codec codec, struct span_rows *ret, struct error *e);
