// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Spans as columns of the block codec: starts are the block's times, the rest are small
// differences.

#include "runfile/span_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/parse.h"

#define WORDS_MAX 256u // upper bound in one block, because they are searched for each span
#define N_STRINGS 4u // name, kind, thread, attributes

enum {
	COLUMN_LENGTH,
	COLUMN_WORDS,
	COLUMN_ID,
	COLUMN_PARENT,
	COLUMN_NUMBER,
	COLUMN_SAMPLES,
	N_COLUMNS
};

static void words_clear(struct span_rows *rows)
{
	for (size_t i = 0; i < rows->n_words; i++) {
		free(rows->words[i].memory);
	}
	rows->n_words = 0;
}

void span_rows_clear(struct span_rows *rows)
{
	words_clear(rows);
	rows->n = 0;
}

void span_rows_done(struct span_rows *rows)
{
	words_clear(rows);
	free(rows->words);
	free(rows->items);
	*rows = (struct span_rows){0};
}

// Words -------------------------------------------------------------------------------------------

// Three strings in one allocation.
static int words_add(struct span_rows *rows, const struct span_words *words)
{
	void *list = rows->words;
	size_t name = strlen(words->name) + 1, kind = strlen(words->kind) + 1;
	size_t attributes = strlen(words->attributes) + 1;
	char *memory = malloc(name + kind + attributes);
	if (!memory || array_reserve(&list, &rows->words_capacity, rows->n_words + 1,
			       sizeof(*rows->words)) < 0) {
		free(memory);
		return -ENOMEM;
	}
	rows->words = list;
	memcpy(memory, words->name, name);
	memcpy(memory + name, words->kind, kind);
	memcpy(memory + name + kind, words->attributes, attributes);
	rows->words[rows->n_words++] = (struct span_words){
		.name = memory,
		.kind = memory + name,
		.attributes = memory + name + kind,
		.thread = words->thread,
		.memory = memory,
	};
	return 0;
}

static bool words_equal(const struct span_words *a, const struct span_words *b)
{
	return a->thread == b->thread && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->kind, b->kind) == 0 && strcmp(a->attributes, b->attributes) == 0;
}

static int words_find(struct span_rows *rows, const struct span_words *words, uint32_t *ret)
{
	for (size_t i = 0; i < rows->n_words; i++) {
		if (words_equal(&rows->words[i], words)) {
			*ret = (uint32_t)i;
			return 0;
		}
	}
	*ret = (uint32_t)rows->n_words;
	return rows->n_words < WORDS_MAX ? words_add(rows, words) : -ENOBUFS;
}

// Rows --------------------------------------------------------------------------------------------

int span_rows_add(struct span_rows *rows, const struct writer_span *span)
{
	struct span_row row = {
		.start_ns = span->start_ns,
		.end_ns = span->end_ns,
		.id = span->id,
		.parent = span->parent,
		.number = span->number,
		.samples = span->samples,
	};
	void *items = rows->items;
	if (rows->n >= SPAN_ROWS_MAX) {
		return -ENOBUFS;
	}
	if (array_reserve(&items, &rows->capacity, rows->n + 1, sizeof(row)) < 0) {
		return -ENOMEM;
	}
	rows->items = items;
	int r = words_find(rows,
		&(struct span_words){
			.name = span->name,
			.kind = span->kind,
			.attributes = span->attributes ? span->attributes : "{}",
			.thread = span->thread,
		},
		&row.words);
	if (r == 0) {
		rows->items[rows->n++] = row;
	}
	return r;
}

struct writer_span span_rows_get(const struct span_rows *rows, size_t i)
{
	const struct span_row *row = &rows->items[i];
	const struct span_words *words = &rows->words[row->words];
	return (struct writer_span){
		.name = words->name,
		.kind = words->kind,
		.start_ns = row->start_ns,
		.end_ns = row->end_ns,
		.thread = words->thread,
		.parent = row->parent,
		.number = row->number,
		.samples = row->samples,
		.value = NAN,
		.attributes = words->attributes,
		.id = row->id,
	};
}

// Encoding ----------------------------------------------------------------------------------------

static int row_compare(const void *left, const void *right)
{
	const struct span_row *a = left, *b = right;
	return a->start_ns != b->start_ns
	               ? (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns)
	               : (a->id > b->id) - (a->id < b->id);
}

// A string ends at its NUL, in the file too.
static void write_words(const struct span_rows *rows, struct text *out)
{
	text_clear(out);
	for (size_t i = 0; i < rows->n_words; i++) {
		const struct span_words *words = &rows->words[i];
		text_append_utf8(out, words->name, strlen(words->name));
		text_append(out, "", 1);
		text_append_utf8(out, words->kind, strlen(words->kind));
		text_append(out, "", 1);
		text_format(out, "%" PRId64, words->thread);
		text_append(out, "", 1);
		text_append_utf8(out, words->attributes, strlen(words->attributes));
		text_append(out, "", 1);
	}
}

// 0 means no parent: no span is its own parent.
static int64_t parent_distance(const struct span_row *row)
{
	return row->parent ? (int64_t)((uint64_t)row->id - (uint64_t)row->parent) : 0;
}

static void fill_columns(const struct span_rows *rows, const struct block *b)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct span_row *row = &rows->items[i];
		b->t[i] = row->start_ns;
		b->columns[COLUMN_LENGTH][i] = row->end_ns - row->start_ns;
		b->columns[COLUMN_WORDS][i] = row->words;
		b->columns[COLUMN_ID][i] = row->id;
		b->columns[COLUMN_PARENT][i] = parent_distance(row);
		b->columns[COLUMN_NUMBER][i] = row->number;
		b->columns[COLUMN_SAMPLES][i] = row->samples;
	}
}

int span_rows_encode(struct span_rows *rows, struct encoder *encoder, enum codec codec,
	struct text *words, const void **ret_data, size_t *ret_length)
{
	uint32_t ids[N_COLUMNS];
	int64_t *columns[N_COLUMNS];
	_cleanup_free_ int64_t *values = malloc((rows->n + 1) * (N_COLUMNS + 1) * sizeof(*values));
	if (!values) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < N_COLUMNS; i++) {
		ids[i] = i;
		columns[i] = values + (i + 1) * rows->n;
	}
	qsort(rows->items, rows->n, sizeof(*rows->items), row_compare);
	struct block b = {(uint32_t)rows->n, N_COLUMNS, ids, NULL, values, columns};
	fill_columns(rows, &b);
	write_words(rows, words);
	return words->failed ? -ENOMEM : block_encode(encoder, &b, codec, ret_data, ret_length);
}

// Decoding ----------------------------------------------------------------------------------------

static int damaged(struct error *e, const char *what)
{
	return error_set(e, EBADMSG, "damaged block of spans: %s", what);
}

static int read_words(const char *at, size_t length, struct span_rows *rows, struct error *e)
{
	const char *end = at + length;
	while (at < end) {
		const char *strings[N_STRINGS];
		struct span_words words = {0};
		for (size_t i = 0; i < N_STRINGS; i++) {
			const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
			if (!nul) {
				return damaged(e, "its words are cut off");
			}
			strings[i] = at;
			at = nul + 1;
		}
		if (rows->n_words >= SPAN_ROWS_MAX) {
			return damaged(e, "it has more words than spans");
		}
		struct cursor c = cursor_of(strings[2], strlen(strings[2]));
		if (!cursor_i64(&c, &words.thread)) {
			return damaged(e, "a thread is no number");
		}
		words.name = strings[0];
		words.kind = strings[1];
		words.attributes = strings[3];
		if (words_add(rows, &words) < 0) {
			return error_errno(e, ENOMEM, "cannot decode a block of spans");
		}
	}
	return 0;
}

static bool has_columns(const struct block *b)
{
	if (b->n_columns < N_COLUMNS) {
		return false;
	}
	for (uint32_t i = 0; i < N_COLUMNS; i++) {
		if (b->metric_ids[i] != i) {
			return false;
		}
	}
	return true;
}

static bool take_row(const struct block *b, size_t i, size_t n_words, struct span_row *ret)
{
	int64_t words = b->columns[COLUMN_WORDS][i], distance = b->columns[COLUMN_PARENT][i];
	*ret = (struct span_row){
		.start_ns = b->t[i],
		.id = b->columns[COLUMN_ID][i],
		.number = b->columns[COLUMN_NUMBER][i],
		.samples = b->columns[COLUMN_SAMPLES][i],
		.words = (uint32_t)words,
	};
	ret->parent = distance ? (int64_t)((uint64_t)ret->id - (uint64_t)distance) : 0;
	return words >= 0 && (uint64_t)words < n_words && b->columns[COLUMN_LENGTH][i] >= 0 &&
	       !__builtin_add_overflow(b->t[i], b->columns[COLUMN_LENGTH][i], &ret->end_ns);
}

int span_rows_decode(const void *words, size_t words_length, const void *data, size_t length,
	enum codec codec, struct span_rows *ret, struct error *e)
{
	struct block b = {0};
	struct span_rows rows = {0};
	int r = block_decode(data, length, codec, &b, e);
	if (r == 0 && !has_columns(&b)) {
		r = damaged(e, "it lacks columns");
	}
	if (r == 0 && b.n_rows > SPAN_ROWS_MAX) {
		r = damaged(e, "it has too many spans");
	}
	if (r == 0) {
		r = read_words(words, words_length, &rows, e);
	}
	rows.items = r == 0 ? malloc(b.n_rows * sizeof(*rows.items)) : NULL;
	if (r == 0 && !rows.items) {
		r = error_errno(e, ENOMEM, "cannot decode a block of spans");
	}
	for (size_t i = 0; r == 0 && i < b.n_rows; i++) {
		if (!take_row(&b, i, rows.n_words, &rows.items[i])) {
			r = damaged(e, "a span is not possible");
		}
	}
	rows.n = rows.capacity = r == 0 ? b.n_rows : 0;
	block_done(&b);
	if (r < 0) {
		span_rows_done(&rows);
		return r;
	}
	*ret = rows;
	return 0;
}
