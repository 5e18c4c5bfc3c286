// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The clocks that were written in one pass of compaction: everything that is read at the same ticks
// has the same times, which are a third of a run when each stream keeps its own.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "trace/codec.h"

#define BOOK_CLOCKS 8

struct writer;

struct book_entry {
	int64_t id;
	struct block clock; // owned: t only
};

struct clock_book {
	struct book_entry entries[BOOK_CLOCKS];
	unsigned n;
	unsigned oldest; // the next to be given up for a new one
};

// Encodes the block on the clock that has all its times, on a new one where none has and it is long
// enough to be one; else with its own times. *ret_clock: the clock's id, 0 for none.
int clock_book_encode(struct clock_book *book, struct writer *w, const struct block *b,
	const void **ret_data, size_t *ret_length, int64_t *ret_clock);
void clock_book_done(struct clock_book *book);
