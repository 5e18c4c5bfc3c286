// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Ids of metrics and entities.

#include "record/sample/source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "record/sample/feed.h"
#include "record/sample/node.h"

// Registry ----------------------------------------------------------------------------------------

// The row of another source whose group has the same metrics of the same kind of entity.
static const struct registry_row *find_same(
	const struct registry *r, const char *source, const struct group *group)
{
	for (size_t i = 0; i < r->n_rows; i++) {
		const struct group *other = r->rows[i].group;
		if (other->metrics == group->metrics && other->entity_kind == group->entity_kind &&
			strcmp(r->rows[i].source, source) != 0) {
			return &r->rows[i];
		}
	}
	return NULL;
}

int registry_add(struct registry *r, const char *source, const struct group *group)
{
	void *rows = r->rows;
	uint32_t *ids = calloc(group->n_metrics ? group->n_metrics : 1, sizeof(*ids));
	if (!ids || array_reserve(&rows, &r->capacity, r->n_rows + 1, sizeof(*r->rows)) < 0) {
		free(ids);
		return -ENOMEM;
	}
	r->rows = rows;
	const struct registry_row *same = find_same(r, source, group);
	for (size_t i = 0; i < group->n_metrics; i++) {
		ids[i] = same ? same->ids[i] : ++r->last_id;
	}
	r->rows[r->n_rows++] = (struct registry_row){.group = group,
		.source = same ? same->source : source,
		.ids = ids,
		.again = same != NULL};
	return 0;
}

const struct registry_row *registry_find(const struct registry *r, const struct group *group)
{
	for (size_t i = 0; i < r->n_rows; i++) {
		if (r->rows[i].group == group) {
			return &r->rows[i];
		}
	}
	return NULL;
}

void registry_done(struct registry *r)
{
	for (size_t i = 0; i < r->n_rows; i++) {
		free(r->rows[i].ids);
	}
	free(r->rows);
	r->rows = NULL;
	r->n_rows = r->capacity = 0;
}

// Sink --------------------------------------------------------------------------------------------
//
// Collects rows until the feed takes them, as columns.

// A stream begins small, because most processes are short-lived, and passes rows on early when
// full.
#define STREAM_FIRST_ROWS 4u
#define STREAM_MAX_ROWS 256u

// Missing values already reported, so that each is reported once. Beyond this number no more are
// reported.
#define SAID_SLOTS 4096u

struct stream {
	struct stream *next;
	struct stream **self; // the pointer that points here
	struct sink *sink;
	const struct registry_row *row;
	int64_t entity;
	uint32_t n_rows;
	uint32_t capacity;
	// [capacity][1 + n_metrics], t first; NULL until the first row. Rows rather than columns,
	// because each tick adds one row to every stream: separate columns would touch a cache line
	// each.
	int64_t *rows;
	int64_t last_t;
	int64_t who; // the entity, in all recorders of the machine; 0: not shared
	int64_t *last; // [n_metrics] of a shared stream: the last values; else NULL
	bool mixed; // has rows of another recorder
};

struct known_entity {
	int64_t id;
	int64_t who;
};

struct sink {
	struct registry *registry;
	struct feed *feed;
	uint64_t start_ns;
	struct stream *streams;
	uint64_t said[SAID_SLOTS]; // open addressing; 0: free
	size_t n_said;
	struct known_entity *known; // [n_known] of kinds that are shared
	size_t n_known, known_capacity;
	const struct group *collected; // NULL: none
	struct node_rows *collecting;
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

// An entity of the machine has the same number in all its recorders: a hash of its key.
static void remember_entity(struct sink *s, int64_t id, const struct sink_entity *entity)
{
	bool shared = !entity->own && (entity->kind == ENTITY_GPU || entity->kind == ENTITY_DISK ||
					      entity->kind == ENTITY_NETWORK);
	void *known = s->known;
	if (!shared ||
		array_reserve(&known, &s->known_capacity, s->n_known + 1, sizeof(*s->known)) < 0) {
		return;
	}
	s->known = known;
	uint64_t who = hash_add(HASH_START + entity->kind, entity->key, strlen(entity->key));
	s->known[s->n_known++] = (struct known_entity){id, (int64_t)(who | 1)};
}

static int64_t who_is(const struct sink *s, int64_t id, const struct group *group)
{
	if (group->entity_kind == ENTITY_HOST) {
		return 1;
	}
	for (size_t i = 0; i < s->n_known; i++) {
		if (s->known[i].id == id) {
			return s->known[i].who;
		}
	}
	return 0;
}

int64_t sink_entity(struct sink *s, const struct sink_entity *entity)
{
	int64_t id = atomic_fetch_add(&s->registry->last_entity, 1) + 1;
	remember_entity(s, id, entity);
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
	*stream = (struct stream){.next = s->streams,
		.self = &s->streams,
		.sink = s,
		.row = row,
		.entity = entity,
		.who = group->sharing == SHARED_NOT ? 0 : who_is(s, entity, group)};
	if (stream->who != 0) {
		stream->last = malloc(group->n_metrics * sizeof(*stream->last));
		for (size_t i = 0; stream->last && i < group->n_metrics; i++) {
			stream->last[i] = VALUE_MISSING;
		}
		stream->who = stream->last ? stream->who : 0;
	}
	if (s->streams) {
		s->streams->self = &stream->next;
	}
	s->streams = stream;
	return stream;
}

// Converts rows to columns: [1 + n_metrics][n_rows], t first, followed in the same allocation by
// the pointers to the columns except t. Returns NULL if out of memory.
static int64_t *columns_of(const struct stream *stream, int64_t ***ret_columns)
{
	size_t n = 1 + stream->row->group->n_metrics, n_rows = stream->n_rows;
	int64_t *data = malloc(n * n_rows * sizeof(*data) + n * sizeof(int64_t *));
	if (!data) {
		return NULL;
	}
	int64_t **columns = (int64_t **)(data + n * n_rows);
	for (size_t i = 0; i < n; i++) {
		int64_t *column = data + i * n_rows;
		for (size_t row = 0; row < n_rows; row++) {
			column[row] = stream->rows[row * n + i];
		}
		if (i > 0) {
			columns[i - 1] = column;
		}
	}
	*ret_columns = columns;
	return data;
}

// Passes the collected rows to the feed.
static void stream_flush(struct stream *stream)
{
	int64_t **columns;
	int64_t *data = stream->n_rows ? columns_of(stream, &columns) : NULL;
	if (!data) {
		return; // out of memory: keep the rows for the next time, as far as there is space
	}
	feed_put(stream->sink->feed,
		&(struct item){
			.kind = ITEM_BLOCK,
			.entity = stream->entity,
			.entity_kind = stream->row->group->entity_kind,
			.source = stream->row->source,
			.storage = data,
			.block =
				{
					.n_rows = stream->n_rows,
					.n_columns = (uint32_t)stream->row->group->n_metrics,
					.metric_ids = stream->row->ids,
					.t = data,
					.columns = columns,
				},
		});
	stream->n_rows = 0;
}

// Reserves space for one more row.
static bool stream_reserve(struct stream *stream)
{
	if (stream->n_rows < stream->capacity) {
		return true;
	}
	if (stream->capacity >= STREAM_MAX_ROWS) {
		stream_flush(stream);
		return stream->n_rows < stream->capacity;
	}
	size_t row_bytes = (1 + stream->row->group->n_metrics) * sizeof(*stream->rows);
	uint32_t grown = stream->capacity ? stream->capacity * 2 : STREAM_FIRST_ROWS;
	int64_t *rows = realloc(stream->rows, grown * row_bytes);
	if (!rows) {
		return false;
	}
	stream->rows = rows;
	stream->capacity = grown;
	return true;
}

// The kernel's idle time can go back by a tick, which each recorder hides from itself only.
#define BACK_MOST 2

static void keep_growing(struct stream *stream, int64_t *values)
{
	const struct group *group = stream->row->group;
	for (size_t i = 0; i < group->n_metrics; i++) {
		if (values[i] == VALUE_MISSING || group->metrics[i].kind != METRIC_COUNTER) {
			continue;
		}
		int64_t back;
		bool overflows = __builtin_sub_overflow(stream->last[i], values[i], &back);
		if (stream->mixed && stream->last[i] != VALUE_MISSING && !overflows && back > 0 &&
			back <= BACK_MOST) {
			values[i] = stream->last[i];
		}
		stream->last[i] = values[i];
	}
}

static void put_row(struct stream *stream, uint64_t now_ns, const int64_t *values)
{
	int64_t t = since_start(stream->sink, now_ns) / (int64_t)NS_PER_US;
	// A driver's buffer has samples that another recorder read already.
	if ((stream->mixed && t <= stream->last_t) || !stream_reserve(stream)) {
		return;
	}
	stream->last_t = t > stream->last_t ? t : stream->last_t;
	size_t n = stream->row->group->n_metrics;
	int64_t *row = stream->rows + stream->n_rows++ * (1 + n);
	row[0] = stream->last_t;
	memcpy(row + 1, values, n * sizeof(*values));
	if (stream->last) {
		keep_growing(stream, row + 1);
	}
}

void stream_row(struct stream *stream, uint64_t now_ns, const int64_t *values)
{
	if (!stream) {
		return;
	}
	const struct sink *s = stream->sink;
	put_row(stream, now_ns, values);
	if (s->collected == stream->row->group && stream->who != 0) {
		node_rows_add(s->collecting, stream->who, now_ns, values);
	}
}

// Common readings ---------------------------------------------------------------------------------

void sink_collect(struct sink *s, const struct group *group, struct node_rows *rows)
{
	node_rows_begin(rows, group->n_metrics);
	s->collected = group;
	s->collecting = rows;
}

// A driver may have had nothing new about an entity that was read: a row without a time tells that.
void sink_collect_end(struct sink *s)
{
	for (struct stream *stream = s->streams; stream; stream = stream->next) {
		if (stream->row->group == s->collected && stream->who != 0 &&
			!node_rows_have(s->collecting, stream->who)) {
			node_rows_add(s->collecting, stream->who, 0, stream->last);
		}
	}
	s->collected = NULL;
}

static struct stream *stream_of(struct sink *s, const struct group *group, int64_t who)
{
	for (struct stream *stream = s->streams; stream; stream = stream->next) {
		if (stream->row->group == group && stream->who == who) {
			return stream;
		}
	}
	return NULL;
}

bool sink_put_rows(
	struct sink *s, const struct group *group, const struct node_rows *rows, uint64_t *foreign)
{
	bool any = false;
	for (struct stream *stream = s->streams; stream; stream = stream->next) {
		if (stream->row->group != group) {
			continue;
		}
		if (stream->who == 0 || !node_rows_have(rows, stream->who)) {
			return false;
		}
		any = true;
	}
	*foreign = 0;
	for (size_t i = 0; i < rows->n && any; i++) {
		const int64_t *row = rows->cells + i * (2 + rows->n_columns);
		struct stream *stream = stream_of(s, group, row[0]);
		uint64_t t_ns = (uint64_t)row[1];
		if (!stream) {
			// of several rows once: their number differs from reading to reading
			const struct node_rows before = {
				.n = i, .n_columns = rows->n_columns, .cells = rows->cells};
			*foreign += node_rows_have(&before, row[0]) ? 0 : (uint64_t)row[0];
		} else {
			stream->mixed = true;
			put_row(stream, t_ns, row + 2);
		}
	}
	return any;
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
	free(stream->rows);
	free(stream->last);
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
		free(s->streams->rows);
		free(s->streams->last);
		free(s->streams);
		s->streams = next;
	}
	free(s->known);
	free(s);
}

// Whether this was reported before; remembers it.
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
	sink_missing_since(s, entity, group, metric, clock_monotonic_ns(), reason);
}

void sink_missing_since(struct sink *s, int64_t entity, const struct group *group, size_t metric,
	uint64_t since_ns, const char *reason)
{
	const struct registry_row *row = registry_find(s->registry, group);
	if (!row || metric >= group->n_metrics ||
		said_before(s, (uint64_t)entity << 16 | row->ids[metric])) {
		return;
	}
	feed_put(s->feed, &(struct item){
				  .kind = ITEM_MISSING,
				  .entity = entity,
				  .metric = row->ids[metric],
				  .t_ns = since_start(s, since_ns),
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

void sink_profile_object(struct sink *s, int64_t id, const char *path)
{
	feed_put(s->feed, &(struct item){.kind = ITEM_OBJECT, .number = id, .name = path});
}

void sink_profile(struct sink *s, const struct sink_samples *samples)
{
	int64_t *pairs = malloc(2 * samples->n * sizeof(*pairs) + 1);
	if (!pairs || samples->n == 0) {
		free(pairs);
		return;
	}
	memcpy(pairs, samples->pairs, 2 * samples->n * sizeof(*pairs));
	feed_put(s->feed, &(struct item){
				  .kind = samples->by_phase ? ITEM_PHASE_SAMPLES : ITEM_SAMPLES,
				  .entity = samples->entity,
				  .thread = samples->leader,
				  .t_ns = since_start(s, samples->from_ns),
				  .last_ns = since_start(s, samples->to_ns),
				  .number = samples->object,
				  .text = samples->phase,
				  .samples = (int64_t)samples->n,
				  .storage = pairs,
			  });
}
