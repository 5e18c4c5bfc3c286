// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Rows in columns, until the feed takes them.

#include "record/source/sink.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "record/source/feed.h"
#include "record/source/registry.h"
#include "record/source/source.h"

// A stream begins small, since most processes live shortly, and hands on early when it is full.
#define STREAM_FIRST_ROWS 16u
#define STREAM_MAX_ROWS 256u

// What was said to be missing, so that it is said once. Beyond this many the file has said enough.
#define SAID_SLOTS 4096u

struct stream {
	struct stream *next;
	struct stream **self; // the pointer that points here
	struct sink *sink;
	const struct registry_row *row;
	int64_t entity;
	uint32_t n_rows;
	uint32_t capacity;
	int64_t *data; // [1 + n_metrics][capacity]; t first; NULL until the first row
	int64_t last_t;
};

struct sink {
	struct registry *registry;
	struct feed *feed;
	uint64_t start_ns;
	struct stream *streams;
	uint64_t said[SAID_SLOTS]; // open addressing; 0 is free
	size_t n_said;
};

int sink_new(struct registry *registry, struct feed *feed, uint64_t start_ns, struct sink **ret)
{
	struct sink *s = calloc(1, sizeof(*s));
	if (!s) {
		return -ENOMEM;
	}
	s->registry = registry;
	s->feed = feed;
	s->start_ns = start_ns;
	*ret = s;
	return 0;
}

static int64_t since_start(const struct sink *s, uint64_t t_ns)
{
	return t_ns > s->start_ns ? (int64_t)(t_ns - s->start_ns) : 0;
}

static void put_entity(struct sink *s, int64_t id, const struct sink_entity *entity)
{
	feed_put(s->feed, &(struct item){
				  .kind = ITEM_ENTITY,
				  .entity = id,
				  .entity_kind = entity->kind,
				  .key = entity->key,
				  .name = entity->name,
				  .text = entity->attributes,
				  .parent = entity->parent,
				  .t_ns = since_start(s, entity->first_ns),
				  .last_ns = -1,
			  });
}

int64_t sink_entity(struct sink *s, const struct sink_entity *entity)
{
	int64_t id = atomic_fetch_add(&s->registry->last_entity, 1) + 1;
	put_entity(s, id, entity);
	return id;
}

void sink_entity_update(struct sink *s, int64_t id, const struct sink_entity *entity)
{
	put_entity(s, id, entity);
}

void sink_entity_end(struct sink *s, int64_t id, uint64_t last_ns, const char *attributes)
{
	feed_put(s->feed, &(struct item){.kind = ITEM_ENTITY_END,
				  .entity = id,
				  .last_ns = since_start(s, last_ns),
				  .text = attributes});
}

struct stream *sink_stream(struct sink *s, int64_t entity, const struct group *group)
{
	const struct registry_row *row = registry_find(s->registry, group);
	struct stream *stream = row ? calloc(1, sizeof(*stream)) : NULL;
	if (!stream) {
		return NULL;
	}
	*stream = (struct stream){
		.next = s->streams, .self = &s->streams, .sink = s, .row = row, .entity = entity};
	if (s->streams) {
		s->streams->self = &stream->next;
	}
	s->streams = stream;
	return stream;
}

// Gives the collected rows to the feed; the stream begins an empty buffer with the next row.
static void stream_flush(struct stream *stream)
{
	if (stream->n_rows == 0) {
		return;
	}
	size_t n = stream->row->group->n_metrics;
	// The column pointers stand behind the columns, in the same allocation.
	int64_t **columns = (int64_t **)(stream->data + (1 + n) * stream->capacity);
	for (size_t i = 0; i < n; i++) {
		columns[i] = stream->data + (1 + i) * stream->capacity;
	}
	feed_put(stream->sink->feed, &(struct item){
					     .kind = ITEM_BLOCK,
					     .entity = stream->entity,
					     .source = stream->row->source,
					     .storage = stream->data,
					     .block =
						     {
							     .n_rows = stream->n_rows,
							     .n_columns = (uint32_t)n,
							     .metric_ids = stream->row->ids,
							     .t = stream->data,
							     .columns = columns,
						     },
				     });
	stream->data = NULL;
	stream->n_rows = 0;
}

// Makes room for one more row. The capacity of the last second is kept for the next.
static bool stream_reserve(struct stream *stream)
{
	size_t n = 1 + stream->row->group->n_metrics;
	if (stream->data && stream->n_rows < stream->capacity) {
		return true;
	}
	if (stream->data && stream->capacity >= STREAM_MAX_ROWS) {
		stream_flush(stream);
	}
	uint32_t grown = !stream->capacity ? STREAM_FIRST_ROWS
	                 : stream->data    ? stream->capacity * 2
	                                   : stream->capacity;
	int64_t *data = malloc(n * grown * sizeof(*data) + n * sizeof(int64_t *));
	if (!data) {
		return false;
	}
	for (size_t i = 0; i < n && stream->data; i++) {
		memcpy(data + i * grown, stream->data + i * stream->capacity,
			stream->n_rows * sizeof(*data));
	}
	free(stream->data);
	stream->data = data;
	stream->capacity = grown;
	return true;
}

void stream_row(struct stream *stream, uint64_t now_ns, const int64_t *values)
{
	if (!stream || !stream_reserve(stream)) {
		return;
	}
	int64_t t = since_start(stream->sink, now_ns) / (int64_t)NS_PER_US;
	stream->last_t = t > stream->last_t ? t : stream->last_t;
	uint32_t row = stream->n_rows++;
	stream->data[row] = stream->last_t;
	for (size_t i = 0; i < stream->row->group->n_metrics; i++) {
		stream->data[(1 + i) * stream->capacity + row] = values[i];
	}
}

void stream_close(struct stream *stream)
{
	if (!stream) {
		return;
	}
	stream_flush(stream);
	*stream->self = stream->next;
	if (stream->next) {
		stream->next->self = stream->self;
	}
	free(stream);
}

void sink_flush(struct sink *s)
{
	for (struct stream *stream = s->streams; stream; stream = stream->next) {
		stream_flush(stream);
	}
}

void sink_free(struct sink *s)
{
	if (!s) {
		return;
	}
	while (s->streams) {
		struct stream *next = s->streams->next;
		free(s->streams->data);
		free(s->streams);
		s->streams = next;
	}
	free(s);
}

// Whether this was said before; remembers it.
static bool said_before(struct sink *s, uint64_t key)
{
	uint64_t slot = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 52;
	for (; s->said[slot] != 0; slot = (slot + 1) % SAID_SLOTS) {
		if (s->said[slot] == key) {
			return true;
		}
	}
	if (s->n_said >= SAID_SLOTS - SAID_SLOTS / 8) {
		return true;
	}
	s->said[slot] = key;
	s->n_said++;
	return false;
}

void sink_missing(struct sink *s, int64_t entity, const struct group *group, size_t metric,
	const char *reason)
{
	const struct registry_row *row = registry_find(s->registry, group);
	if (!row || metric >= group->n_metrics ||
		said_before(s, (uint64_t)entity << 16 | row->ids[metric])) {
		return;
	}
	int64_t now = since_start(s, clock_monotonic_ns());
	feed_put(s->feed, &(struct item){
				  .kind = ITEM_MISSING,
				  .entity = entity,
				  .metric = row->ids[metric],
				  .t_ns = now,
				  .last_ns = -1,
				  .text = reason,
			  });
}

void sink_missing_group(
	struct sink *s, int64_t entity, const struct group *group, const char *reason)
{
	for (size_t i = 0; i < group->n_metrics; i++) {
		sink_missing(s, entity, group, i, reason);
	}
}

void sink_event(
	struct sink *s, uint64_t now_ns, const char *kind, int64_t entity, const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	feed_put(s->feed, &(struct item){
				  .kind = ITEM_EVENT,
				  .entity = entity,
				  .t_ns = since_start(s, now_ns),
				  .event = kind,
				  .text = text,
			  });
}
