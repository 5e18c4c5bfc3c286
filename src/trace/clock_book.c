// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Writing clocks.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/writer_internal.h"

// Shorter ones cost more as rows of a table than they save.
#define CLOCK_MIN_ROWS 64

void clock_book_done(struct clock_book *book)
{
	for (unsigned i = 0; i < book->n; i++) {
		block_done(&book->entries[i].clock);
	}
	*book = (struct clock_book){0};
}

static bool covers(const struct block *clock, const struct block *b)
{
	return b->t[0] >= clock->t[0] && b->t[b->n_rows - 1] <= clock->t[clock->n_rows - 1];
}

static int insert_clock(struct writer *w, const struct block *clock, int64_t *ret_id)
{
	const void *data;
	size_t length;
	int r = block_encode(w->encoder, clock, CODEC_ZSTD, &data, &length);
	sqlite3_stmt *statement = r == 0 ? writer_statement(w, PUT_CLOCK) : NULL;
	if (!statement) {
		return r < 0 ? r : -ENOMEM;
	}
	sqlite3_bind_int64(statement, 1, us_to_ns(clock->t[0]));
	sqlite3_bind_int64(statement, 2, us_to_ns(clock->t[clock->n_rows - 1]));
	sqlite3_bind_int64(statement, 3, clock->n_rows);
	sqlite3_bind_int64(statement, 4, CODEC_ZSTD);
	sqlite3_bind_blob64(statement, 5, data, length, SQLITE_STATIC);
	r = writer_step(w, statement);
	*ret_id = sqlite3_last_insert_rowid(w->database);
	return r;
}

static int add_clock(struct clock_book *book, struct writer *w, const struct block *b,
	const struct book_entry **ret)
{
	struct book_entry entry = {.clock = {.n_rows = b->n_rows}};
	entry.clock.t = malloc(b->n_rows * sizeof(*b->t));
	if (!entry.clock.t) {
		return -ENOMEM;
	}
	memcpy(entry.clock.t, b->t, b->n_rows * sizeof(*b->t));
	int r = insert_clock(w, &entry.clock, &entry.id);
	if (r < 0) {
		block_done(&entry.clock);
		return r;
	}
	unsigned at = book->n < BOOK_CLOCKS ? book->n++ : book->oldest++ % BOOK_CLOCKS;
	block_done(&book->entries[at].clock);
	book->entries[at] = entry;
	*ret = &book->entries[at];
	return 0;
}

int clock_book_encode(struct clock_book *book, struct writer *w, const struct block *b,
	const void **ret_data, size_t *ret_length, int64_t *ret_clock)
{
	*ret_clock = 0;
	if (b->n_rows < CLOCK_MIN_ROWS) {
		return block_encode(w->encoder, b, CODEC_ZSTD, ret_data, ret_length);
	}
	for (unsigned i = 0; i < book->n; i++) {
		const struct book_entry *entry = &book->entries[i];
		int r = covers(&entry->clock, b)
		                ? block_encode_on_clock(w->encoder, b, &entry->clock, CODEC_ZSTD,
					  ret_data, ret_length)
		                : -ENOENT;
		if (r != -ENOENT) {
			*ret_clock = entry->id;
			return r;
		}
	}
	const struct book_entry *added = NULL;
	int r = add_clock(book, w, b, &added);
	if (r < 0) {
		return r;
	}
	*ret_clock = added->id;
	return block_encode_on_clock(
		w->encoder, b, &added->clock, CODEC_ZSTD, ret_data, ret_length);
}
