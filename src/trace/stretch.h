// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Stretches: rows of one entity that were in several blocks, gathered to become one.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/codec.h"

struct writer;

// Of the rows of a stretch, times included: bounds the writer's memory and the length of a block.
#define STRETCH_MAX_BYTES (UINT32_C(1) << 20)
#define STRETCH_MAX_ROWS 65536u

// The rows of one stream (source and exact list of columns).
struct stretch {
	char *source;
	struct block block; // its columns have room for `capacity` rows
	uint32_t capacity;
	bool changed; // it differs from the blocks in the file
	int64_t *ids; // [n_ids] of the blocks that it replaces
	size_t n_ids;
	size_t ids_capacity;
};

// The stretches of one entity.
struct stretches {
	struct writer *writer;
	int64_t entity;
	int64_t max_span_us; // of a stretch
	struct stretch *items; // [n]
	size_t n;
	size_t capacity;
};

// Adds a block of the file: `id` is deleted when its rows are written anew. `changed`: it has to be
// written anew, also if nothing else joins it. 0 or -errno.
int stretches_add(
	struct stretches *s, int64_t id, const char *source, const struct block *b, bool changed);
// Writes what was gathered of a source (NULL: of all) and forgets it: the next block of that source
// is not to be joined with what came before.
int stretches_flush(struct stretches *s, const char *source);
// Forgets everything.
void stretches_done(struct stretches *s);
