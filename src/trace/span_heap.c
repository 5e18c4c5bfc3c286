// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A binary heap of open blocks.

#include "trace/span_heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void open_block_free(struct open_block *block)
{
	if (block) {
		span_rows_done(&block->rows);
		free(block->wanted);
		free(block);
	}
}

int open_block_choose(struct open_block *block, const char *kind)
{
	block->wanted = malloc(block->rows.n_words + 1);
	for (size_t i = 0; block->wanted && i < block->rows.n_words; i++) {
		block->wanted[i] = !kind || strcmp(kind, block->rows.words[i].kind) == 0;
	}
	return block->wanted ? 0 : -ENOMEM;
}

bool open_block_settle(struct open_block *block)
{
	while (block->at < block->rows.n && !block->wanted[block->rows.items[block->at].words]) {
		block->at++;
	}
	return block->at < block->rows.n;
}

bool open_block_find(struct open_block *block, int64_t id)
{
	for (size_t i = 0; i < block->rows.n; i++) {
		if (block->rows.items[i].id == id) {
			block->at = i;
			return true;
		}
	}
	return false;
}

static bool begins_before(const struct open_block *a, const struct open_block *b)
{
	const struct span_row *left = &a->rows.items[a->at], *right = &b->rows.items[b->at];
	return left->start_ns != right->start_ns ? left->start_ns < right->start_ns
	                                         : left->id < right->id;
}

int span_heap_add(struct span_heap *heap, struct open_block *block)
{
	void *items = heap->items;
	if (array_reserve(&items, &heap->capacity, heap->n + 1, sizeof(struct open_block *)) < 0) {
		return -ENOMEM;
	}
	heap->items = items;
	size_t i = heap->n++;
	heap->items[i] = block;
	while (i > 0 && begins_before(block, heap->items[(i - 1) / 2])) {
		heap->items[i] = heap->items[(i - 1) / 2];
		i = (i - 1) / 2;
		heap->items[i] = block;
	}
	return 0;
}

void span_heap_sink(struct span_heap *heap)
{
	struct open_block **items = heap->items;
	for (size_t i = 0, child; (child = 2 * i + 1) < heap->n; i = child) {
		if (child + 1 < heap->n && begins_before(items[child + 1], items[child])) {
			child++;
		}
		if (!begins_before(items[child], items[i])) {
			return;
		}
		struct open_block *block = items[i];
		items[i] = items[child];
		items[child] = block;
	}
}
