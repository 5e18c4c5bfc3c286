// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Blocks of spans that are read side by side, since they overlap: a heap of them gives the span
// that begins next.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/span_rows.h"

// A block in work. Its next span is rows.items[at].
struct open_block {
	struct span_rows rows;
	bool *wanted; // [rows.n_words]
	size_t at;
};

struct span_heap {
	struct open_block **items; // [n]; the one whose span begins first at 0
	size_t n;
	size_t capacity;
};

void open_block_free(struct open_block *block); // accepts NULL
// Spans of which kind are asked for; NULL: all. 0 or -ENOMEM.
int open_block_choose(struct open_block *block, const char *kind);
// Moves to the next span that is asked for. False: there is none.
bool open_block_settle(struct open_block *block);
// Moves to the span of this id.
bool open_block_find(struct open_block *block, int64_t id);

// 0 or -ENOMEM.
int span_heap_add(struct span_heap *heap, struct open_block *block);
// After the first has moved on, or another was put in its place.
void span_heap_sink(struct span_heap *heap);
