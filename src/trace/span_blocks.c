// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Spans on their way into the run file: those of a second become a plain block with the commit,
// and those blocks large compressed ones when the file is compacted.

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "trace/compact.h"
#include "trace/writer_internal.h"

#define SMALL_ROWS 4096 // a merged block of fewer grows

// Epochs are added to later, points have values; both are few.
bool span_is_packable(const struct writer_span *span)
{
	return span->id > 0 && span->start_ns >= 0 && span->end_ns >= span->start_ns &&
	       isnan(span->value) && strcmp(span->kind, "epoch") != 0 &&
	       strcmp(span->kind, "point") != 0;
}

static void bind_bounds(const struct span_rows *rows, sqlite3_stmt *statement)
{
	int64_t last_ns = 0, first_id = INT64_MAX, last_id = 0;
	for (size_t i = 0; i < rows->n; i++) {
		const struct span_row *row = &rows->items[i];
		last_ns = row->end_ns > last_ns ? row->end_ns : last_ns;
		first_id = row->id < first_id ? row->id : first_id;
		last_id = row->id > last_id ? row->id : last_id;
	}
	sqlite3_bind_int64(statement, 1, rows->items[0].start_ns); // they are sorted
	sqlite3_bind_int64(statement, 2, last_ns);
	sqlite3_bind_int64(statement, 3, first_id);
	sqlite3_bind_int64(statement, 4, last_id);
	sqlite3_bind_int64(statement, 5, (int64_t)rows->n);
}

// Binds and steps a statement of PUT_SPANS; the rows are empty afterwards.
static int insert(struct writer *w, struct span_rows *rows, enum codec codec,
	sqlite3_stmt *statement, int (*step)(struct writer *, sqlite3_stmt *))
{
	_cleanup_text_ struct text words = {0};
	const void *payload;
	size_t length;
	int r = span_rows_encode(rows, w->encoder, codec, &words, &payload, &length);
	if (r == 0) {
		bind_bounds(rows, statement);
		sqlite3_bind_int64(statement, 6, codec);
		sqlite3_bind_blob64(statement, 7, words.data, words.length, SQLITE_STATIC);
		sqlite3_bind_blob64(statement, 8, payload, length, SQLITE_STATIC);
		r = step(w, statement);
	}
	span_rows_clear(rows);
	return r;
}

int writer_flush_spans(struct writer *w)
{
	sqlite3_stmt *statement;
	if (w->spans.n == 0) {
		return 0;
	}
	int r = writer_put_begin(w, PUT_SPANS, &statement);
	if (r < 0) {
		if (r != -EBUSY) {
			span_rows_clear(&w->spans);
		}
		return r;
	}
	return insert(w, &w->spans, CODEC_PLAIN, statement, writer_put_end);
}

int writer_pack_span(struct writer *w, const struct writer_span *span)
{
	if (w->full || w->displaced) {
		return w->full ? -ENOSPC : -ESTALE;
	}
	int r = span_rows_add(&w->spans, span);
	if (r == -ENOBUFS) {
		r = writer_flush_spans(w);
		r = r < 0 ? r : span_rows_add(&w->spans, span);
	}
	return r;
}

// Merging ---------------------------------------------------------------------------------------

// The rows of one block join those that wait; those that have no room are written before.
static int merge_block(struct writer *w, struct span_rows *gathered, const struct span_rows *block)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < block->n; i++) {
		struct writer_span span = span_rows_get(block, i);
		r = span_rows_add(gathered, &span);
		if (r == -ENOBUFS) {
			sqlite3_stmt *statement = writer_statement(w, PUT_SPANS);
			r = statement ? insert(w, gathered, CODEC_ZSTD, statement, writer_step)
			              : -ENOMEM;
			r = r < 0 ? r : span_rows_add(gathered, &span);
		}
	}
	return r;
}

static int read_block(
	struct writer *w, const struct candidate *candidate, struct span_rows *ret, struct error *e)
{
	sqlite3_stmt *statement = writer_statement(w, SELECT_SPANS);
	if (!statement) {
		return -ENOMEM;
	}
	sqlite3_bind_int64(statement, 1, candidate->id);
	int r = sqlite3_step(statement) != SQLITE_ROW
	                ? -EBADMSG
	                : span_rows_decode(sqlite3_column_blob(statement, 0),
				  (size_t)sqlite3_column_bytes(statement, 0),
				  sqlite3_column_blob(statement, 1),
				  (size_t)sqlite3_column_bytes(statement, 1),
				  (enum codec)candidate->codec, ret, e);
	sqlite3_reset(statement);
	return r;
}

static int merge_candidate(
	struct writer *w, const struct candidate *candidate, struct span_rows *gathered)
{
	struct span_rows block = {0};
	int r = read_block(w, candidate, &block, NULL);
	if (r == -EBADMSG) {
		return 0; // stays as it is, for the reader to complain about
	}
	sqlite3_stmt *statement = r == 0 ? writer_statement(w, DELETE_SPANS) : NULL;
	if (r == 0 && !statement) {
		r = -ENOMEM;
	}
	if (r == 0) {
		sqlite3_bind_int64(statement, 1, candidate->id);
		r = writer_step(w, statement);
	}
	if (r == 0) {
		r = merge_block(w, gathered, &block);
	}
	span_rows_done(&block);
	return r;
}

int writer_merge_spans(struct writer *w)
{
	struct candidates list = {0};
	struct span_rows gathered = {0};
	sqlite3_stmt *statement = writer_statement(w, SELECT_SPANS_UNMERGED);
	if (!statement) {
		return 0; // a file of an older version has no such table
	}
	sqlite3_bind_int64(statement, 1, SMALL_ROWS);
	int r = candidates_load(&list, w->database, statement);
	bool any = list.n > 1 || (list.n == 1 && list.items[0].codec == CODEC_PLAIN);
	for (size_t i = 0; r == 0 && i < list.n && any; i++) {
		r = merge_candidate(w, &list.items[i], &gathered);
	}
	if (r == 0 && gathered.n > 0) {
		statement = writer_statement(w, PUT_SPANS);
		r = statement ? insert(w, &gathered, CODEC_ZSTD, statement, writer_step) : -ENOMEM;
	}
	span_rows_done(&gathered);
	candidates_done(&list);
	return r;
}
