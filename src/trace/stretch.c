// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Gathering the rows of many small blocks into few large ones.

#include "trace/stretch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "trace/writer_internal.h"

static uint8_t aggregate_of(const struct block *b, uint32_t column)
{
	return b->aggregates ? b->aggregates[column] : AGGREGATE_NONE;
}

static bool has_same_columns(const struct block *a, const struct block *b)
{
	if (a->n_columns != b->n_columns) {
		return false;
	}
	for (uint32_t i = 0; i < a->n_columns; i++) {
		if (a->metric_ids[i] != b->metric_ids[i] ||
			aggregate_of(a, i) != aggregate_of(b, i)) {
			return false;
		}
	}
	return true;
}

static void stretch_done(struct stretch *stretch)
{
	block_done(&stretch->block);
	free(stretch->source);
	free(stretch->ids);
	*stretch = (struct stretch){0};
}

// Pages of the columns that no row reaches are never touched, so that room for the largest stretch
// costs nothing.
static int stretch_init(struct stretch *stretch, const char *source, const struct block *b)
{
	uint32_t capacity = STRETCH_MAX_BYTES / (sizeof(int64_t) * (b->n_columns + 1));
	capacity = capacity < STRETCH_MAX_ROWS ? capacity : STRETCH_MAX_ROWS;
	capacity = capacity > b->n_rows ? capacity : b->n_rows;
	struct block room = {
		.n_columns = b->n_columns,
		.metric_ids = calloc(b->n_columns, sizeof(*room.metric_ids)),
		.aggregates = calloc(b->n_columns, 1),
		.t = malloc((size_t)capacity * (b->n_columns + 1) * sizeof(*room.t)),
		.columns = calloc(b->n_columns, sizeof(*room.columns)),
	};
	*stretch = (struct stretch){.source = strdup(source), .block = room, .capacity = capacity};
	if (!stretch->source || !room.metric_ids || !room.aggregates || !room.t || !room.columns) {
		stretch_done(stretch);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < b->n_columns; i++) {
		room.metric_ids[i] = b->metric_ids[i];
		room.aggregates[i] = aggregate_of(b, i);
		room.columns[i] = room.t + (size_t)capacity * (i + 1);
	}
	return 0;
}

static int append_rows(struct stretch *stretch, int64_t id, const struct block *b)
{
	void *ids = stretch->ids;
	if (array_reserve(&ids, &stretch->ids_capacity, stretch->n_ids + 1, sizeof(id)) < 0) {
		return -ENOMEM;
	}
	stretch->ids = ids;
	stretch->ids[stretch->n_ids++] = id;
	struct block *to = &stretch->block;
	memcpy(to->t + to->n_rows, b->t, b->n_rows * sizeof(*b->t));
	for (uint32_t i = 0; i < b->n_columns; i++) {
		memcpy(to->columns[i] + to->n_rows, b->columns[i],
			b->n_rows * sizeof(*b->columns[i]));
	}
	to->n_rows += b->n_rows;
	return 0;
}

static int write_stretch(struct stretches *s, const struct stretch *stretch)
{
	struct writer *w = s->writer;
	if (!stretch->changed) {
		return 0;
	}
	int r = writer_insert_block(w, s->entity, stretch->source, &stretch->block, CODEC_ZSTD);
	for (size_t i = 0; r == 0 && i < stretch->n_ids; i++) {
		sqlite3_stmt *statement = writer_statement(w, DELETE_BLOCK);
		if (!statement) {
			return -ENOMEM;
		}
		sqlite3_bind_int64(statement, 1, stretch->ids[i]);
		r = writer_step(w, statement);
	}
	return r;
}

// Writes the stretch and takes it off the list.
static int flush_at(struct stretches *s, size_t i)
{
	int r = write_stretch(s, &s->items[i]);
	stretch_done(&s->items[i]);
	s->items[i] = s->items[--s->n];
	return r;
}

static bool fits(const struct stretches *s, const struct stretch *stretch, const struct block *b)
{
	const struct block *to = &stretch->block;
	int64_t span;
	return b->n_rows <= stretch->capacity - to->n_rows && b->t[0] >= to->t[to->n_rows - 1] &&
	       !__builtin_sub_overflow(b->t[b->n_rows - 1], to->t[0], &span) &&
	       span <= s->max_span_us;
}

static int add_stretch(struct stretches *s, const char *source, const struct block *b)
{
	void *items = s->items;
	if (array_reserve(&items, &s->capacity, s->n + 1, sizeof(*s->items)) < 0) {
		return -ENOMEM;
	}
	s->items = items;
	int r = stretch_init(&s->items[s->n], source, b);
	s->n += r == 0;
	return r;
}

int stretches_add(
	struct stretches *s, int64_t id, const char *source, const struct block *b, bool changed)
{
	size_t i = 0;
	while (i < s->n && (strcmp(s->items[i].source, source) != 0 ||
				   !has_same_columns(&s->items[i].block, b))) {
		i++;
	}
	int r = 0;
	if (i < s->n && !fits(s, &s->items[i], b)) {
		r = flush_at(s, i);
		i = s->n;
	}
	if (r == 0 && i == s->n) {
		r = add_stretch(s, source, b);
	}
	if (r == 0) {
		s->items[i].changed = s->items[i].changed || changed;
		r = append_rows(&s->items[i], id, b);
	}
	return r;
}

int stretches_flush(struct stretches *s, const char *source)
{
	int r = 0;
	for (size_t i = s->n; r == 0 && i-- > 0;) {
		if (!source || strcmp(s->items[i].source, source) == 0) {
			r = flush_at(s, i);
		}
	}
	return r;
}

void stretches_done(struct stretches *s)
{
	for (size_t i = 0; i < s->n; i++) {
		stretch_done(&s->items[i]);
	}
	free(s->items);
	s->items = NULL;
	s->n = s->capacity = 0;
}
