// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The run file being written: puts and commits. Every put runs a prepared statement inside one open
// transaction, the batch. How the file begins and ends is in writer_file.c.

#include "runfile/writer.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "runfile/blocks.h"
#include "runfile/codec.h"
#include "runfile/writer_internal.h"

// Stretches: rows of one entity that were in several blocks, gathered to become one.

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

// Statements --------------------------------------------------------------------------------------

static const char *const sql_texts[N_STATEMENTS] = {
	[PUT_RUN] = "INSERT INTO run VALUES(?1, ?2) ON CONFLICT DO UPDATE SET value = ?2",
	[CLEAR_RUN] = "DELETE FROM run WHERE key GLOB ?1",
	[PUT_LABEL] = "INSERT INTO label VALUES(?1, ?2) ON CONFLICT DO UPDATE SET value = ?2",
	[PUT_METRIC] = "INSERT INTO metric VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, '')"
		       " ON CONFLICT (id) DO UPDATE SET name = ?2, entity_kind = ?3, kind = ?4,"
		       " unit = ?5, scale = ?6, source = ?7",
	[PUT_ENTITY] = "INSERT INTO entity VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
		       " ON CONFLICT (id) DO UPDATE SET kind = ?2, key = ?3, name = ?4,"
		       " parent = ?5, first_ns = ?6, last_ns = coalesce(?7, last_ns),"
		       " attributes = json_patch(attributes, ?8)",
	[END_ENTITY] = "UPDATE entity SET last_ns = ?2, attributes = json_patch(attributes, ?3)"
		       " WHERE id = ?1",
	[PUT_MISSING] = "INSERT INTO missing VALUES(?1, ?2, ?3, ?4, ?5)",
	[PUT_BLOCK] = "INSERT INTO block VALUES(NULL, ?1, ?2, ?8, ?3, ?4, ?5, ?6, ?7)",
	[PUT_CLOCK] = "INSERT INTO clock VALUES(NULL, ?1, ?2, ?3, ?4, ?5)",
	[DELETE_CLOCKS] = "DELETE FROM clock WHERE NOT EXISTS"
			  " (SELECT 1 FROM block WHERE block.clock = clock.id)",
	[PUT_SPAN] = "INSERT INTO span VALUES(?11, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
	[END_SPAN] = "UPDATE span SET end_ns = ?2 WHERE id = ?1",
	[COMPLETE_SPAN] = "UPDATE span SET end_ns = ?2, samples = ?3,"
			  " attributes = json_patch(attributes, ?4) WHERE id = ?1",
	[ADOPT_POINTS] = "UPDATE span SET parent = e.id FROM (SELECT number AS of, min(id) AS id"
			 " FROM span WHERE kind = 'epoch' GROUP BY number) AS e"
			 " WHERE kind = 'point' AND parent IS NULL AND number = e.of",
	[EACH_COMMAND] = "SELECT name, attributes ->> '$.command' AS command FROM entity"
			 " WHERE kind = 'process' AND (name GLOB ?1 OR"
			 " command ->> 0 GLOB ?1 OR command ->> 0 GLOB '*/' || ?1) ORDER BY id",
	[DROP_SPAN] = "DELETE FROM span WHERE id = ?1",
	[MOVE_SPAN] = "UPDATE span SET start_ns = ?2, end_ns = ?3 WHERE id = ?1",
	[PUT_SPANS] = "INSERT INTO span_block VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[SELECT_SPANS] = "SELECT words, payload FROM span_block WHERE id = ?1",
	// The newest of the merged ones grows until it is large.
	[SELECT_SPANS_UNMERGED] =
		"SELECT id, first_ns, last_ns, rows, codec FROM span_block WHERE codec = 1 OR (rows"
		" < ?1 AND id = (SELECT max(id) FROM span_block WHERE codec = 2)) ORDER BY id",
	[DELETE_SPANS] = "DELETE FROM span_block WHERE id = ?1",
	[PUT_EVENT] = "INSERT INTO event VALUES(NULL, ?1, ?2, ?3, ?4, '{}')",
	[PUT_PROFILE_OBJECT] = "INSERT INTO profile_object VALUES(?1, ?2)"
			       " ON CONFLICT DO UPDATE SET path = ?2",
	[PUT_PROFILE_SAMPLE] = "INSERT INTO profile_sample VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[PUT_LINE_SAMPLE] = "INSERT INTO line_sample VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[PUT_PHASE_SAMPLE] = "INSERT INTO phase_sample VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[PUT_PROFILE_SYMBOL] = "INSERT INTO profile_symbol VALUES(?1, ?2, ?3)",
	[DELETE_BLOCK] = "DELETE FROM block WHERE id = ?1",
	[SELECT_BLOCK] = "SELECT source, payload, clock FROM block WHERE id = ?1",
	[SELECT_CANDIDATES] =
		"SELECT id, t_first, t_last, rows, codec FROM block"
		" WHERE entity = ?1 AND t_first >= ?2 AND t_first < ?3 AND t_last < ?3"
		" ORDER BY t_first, id",
	// A block is of the stretch in which it ends: those that reach over a bound are of one,
        // too.
	[SELECT_ENDED] = "SELECT id, t_first, t_last, rows, codec FROM block"
			 " WHERE entity = ?1 AND t_first >= ?2 - ?4 AND t_first < ?3"
			 " AND t_last >= ?2 AND t_last < ?3 ORDER BY t_first, id",
	[SELECT_UNMERGED] = ("SELECT entity, min(t_first), 0, 0, 0 FROM block"
			     " WHERE id > ?1 AND codec = 1 AND t_last < ?2 GROUP BY entity"),
	[SELECT_ENTITIES] = "SELECT id, 0, 0, 0, 0 FROM entity",
	[SELECT_METRIC_KIND] = "SELECT kind FROM metric WHERE id = ?1",
	[UPDATE_EVENT] = "UPDATE event SET text = ?2 WHERE id = ?1",
};

// Prepares (once) and resets a statement. NULL where that fails.
static sqlite3_stmt *writer_statement(struct writer *w, enum statement which)
{
	sqlite3_stmt **statement = &w->statements[which];
	if (!*statement) {
		sqlite3_prepare_v3(w->database, sql_texts[which], -1, SQLITE_PREPARE_PERSISTENT,
			statement, NULL);
	}
	return *statement;
}

// Opens the batch where none is open. 0 or -errno.
static int writer_begin(struct writer *w)
{
	// An error can have rolled the batch back: the connection knows, a flag would not.
	if (!sqlite3_get_autocommit(w->database)) {
		return 0;
	}
	return database_errno(w->database, database_exec(w->database, "BEGIN IMMEDIATE"));
}

// Binds text as valid UTF-8, NULL as NULL.
static void writer_bind_text(struct writer *w, sqlite3_stmt *statement, int index, const char *text)
{
	if (!text) {
		sqlite3_bind_null(statement, index);
		return;
	}
	text_clear(&w->scratch);
	text_append_utf8(&w->scratch, text, strlen(text));
	sqlite3_bind_text(statement, index, w->scratch.data ? w->scratch.data : "",
		(int)w->scratch.length, SQLITE_TRANSIENT);
}

// Stands for "none" in a column that can be NULL.
static void bind_optional(sqlite3_stmt *statement, int index, int64_t value, int64_t none)
{
	if (value == none) {
		sqlite3_bind_null(statement, index);
	} else {
		sqlite3_bind_int64(statement, index, value);
	}
}

// Steps a bound statement and resets it. 0 or -errno.
static int writer_step(struct writer *w, sqlite3_stmt *statement)
{
	int result = sqlite3_step(statement);
	int r = database_errno(w->database, result);
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return r;
}

// Inserts a row without opening a batch or looking for a full disk.
static int writer_insert_event(
	struct writer *w, int64_t t_ns, const char *kind, int64_t entity, const char *text)
{
	sqlite3_stmt *statement = writer_statement(w, PUT_EVENT);
	if (!statement) {
		return -ENOMEM;
	}
	sqlite3_bind_int64(statement, 1, t_ns);
	writer_bind_text(w, statement, 2, kind);
	bind_optional(statement, 3, entity, 0);
	writer_bind_text(w, statement, 4, text);
	return writer_step(w, statement);
}

// Saturates.
static int64_t us_to_ns(int64_t us)
{
	int64_t ns;
	return __builtin_mul_overflow(us, 1000, &ns) ? (us < 0 ? INT64_MIN : INT64_MAX) : ns;
}

// Clocks ------------------------------------------------------------------------------------------
//
// Writing clocks.

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

// Encodes the block on the clock that has all its times, on a new one where none has and it is long
// enough to be one; else with its own times. *ret_clock: the clock's id, 0 for none.
static int clock_book_encode(struct clock_book *book, struct writer *w, const struct block *b,
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

static int writer_insert_block(struct writer *w, int64_t entity, const char *source,
	const struct block *b, enum codec codec)
{
	const void *payload;
	size_t length;
	int64_t clock = 0;
	int r = codec == CODEC_PLAIN
	                ? block_encode(w->encoder, b, codec, &payload, &length)
	                : clock_book_encode(&w->clocks, w, b, &payload, &length, &clock);
	if (r < 0) {
		return r;
	}
	sqlite3_stmt *statement = writer_statement(w, PUT_BLOCK);
	if (!statement) {
		return -ENOMEM;
	}
	sqlite3_bind_int64(statement, 1, entity);
	writer_bind_text(w, statement, 2, source);
	sqlite3_bind_int64(statement, 3, us_to_ns(b->t[0]));
	sqlite3_bind_int64(statement, 4, us_to_ns(b->t[b->n_rows - 1]));
	sqlite3_bind_int64(statement, 5, b->n_rows);
	sqlite3_bind_int64(statement, 6, codec);
	sqlite3_bind_blob64(statement, 7, payload, length, SQLITE_STATIC);
	bind_optional(statement, 8, clock, 0);
	return writer_step(w, statement);
}

// Stretches ---------------------------------------------------------------------------------------
//
// Gathering the rows of many small blocks into few large ones.

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

// Adds a block of the file: `id` is deleted when its rows are written anew. `changed`: it has to be
// written anew, also if nothing else joins it. 0 or -errno.
static int stretches_add(
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

// Writes what was gathered of a source (NULL: of all) and forgets it: the next block of that source
// is not to be joined with what came before.
static int stretches_flush(struct stretches *s, const char *source)
{
	int r = 0;
	for (size_t i = s->n; r == 0 && i-- > 0;) {
		if (!source || strcmp(s->items[i].source, source) == 0) {
			r = flush_at(s, i);
		}
	}
	return r;
}

// Forgets everything.
static void stretches_done(struct stretches *s)
{
	for (size_t i = 0; i < s->n; i++) {
		stretch_done(&s->items[i]);
	}
	free(s->items);
	s->items = NULL;
	s->n = s->capacity = 0;
}

// Compaction --------------------------------------------------------------------------------------
//
// Compaction: the small plain blocks that a recorder writes each second become large compressed
// ones, entity by entity, so that memory stays bounded. A compressed block that is still small
// (slow groups: one row a second) grows with the next ones until it covers ten minutes.

#define MERGED_SPAN_NS INT64_C(600000000000)
// A compressed block of more rows is left alone: to merge it again would cost more than it saves.
#define SMALL_ROWS 512

static void candidates_done(struct candidates *list)
{
	free(list->items);
	*list = (struct candidates){0};
}

// Runs a bound statement that gives id, t_first, t_last, rows and codec; replaces the list.
static int candidates_load(struct candidates *list, sqlite3 *database, sqlite3_stmt *statement)
{
	int result;
	list->n = 0;
	while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
		void *items = list->items;
		if (array_reserve(&items, &list->capacity, list->n + 1, sizeof(*list->items)) < 0) {
			result = SQLITE_NOMEM;
			break;
		}
		list->items = items;
		list->items[list->n++] = (struct candidate){
			.id = sqlite3_column_int64(statement, 0),
			.t_first = sqlite3_column_int64(statement, 1),
			.t_last = sqlite3_column_int64(statement, 2),
			.rows = sqlite3_column_int64(statement, 3),
			.codec = sqlite3_column_int(statement, 4),
		};
	}
	sqlite3_reset(statement);
	return database_errno(database, result);
}

// The block's source, owned by the caller, and (where wanted) its rows. -EBADMSG where it is
// damaged.
static int candidate_decode(struct writer *w, const struct candidate *candidate, bool wanted,
	char **ret_source, struct block *ret)
{
	sqlite3_stmt *statement = writer_statement(w, SELECT_BLOCK);
	if (!statement) {
		return -ENOMEM;
	}
	sqlite3_bind_int64(statement, 1, candidate->id);
	int r = sqlite3_step(statement) == SQLITE_ROW ? 0 : -EBADMSG;
	const char *source = r == 0 ? (const char *)sqlite3_column_text(statement, 0) : NULL;
	*ret_source = source ? strdup(source) : NULL;
	r = r == 0 && !*ret_source ? -ENOMEM : r;
	if (r == 0 && wanted) {
		const void *payload = sqlite3_column_blob(statement, 1);
		size_t length = (size_t)sqlite3_column_bytes(statement, 1);
		const struct block *clock = NULL;
		r = clock_cache_get(&w->clock_cache, w->database,
			sqlite3_column_int64(statement, 2), &clock, NULL);
		r = r < 0 ? r
		          : block_decode_metrics(payload, length, (enum codec)candidate->codec,
				    clock, NULL, 0, ret, NULL);
	}
	sqlite3_reset(statement);
	return r;
}

static int merge_candidate(struct stretches *s, const struct candidate *candidate)
{
	_cleanup_free_ char *source = NULL;
	struct block block = {0};
	bool plain = candidate->codec == CODEC_PLAIN;
	bool wanted = plain || candidate->rows < SMALL_ROWS;
	int r = candidate_decode(s->writer, candidate, wanted, &source, &block);
	if (r == -EBADMSG) {
		return 0; // stays as it is, for the reader to complain about
	}
	if (r == 0) {
		r = wanted ? stretches_add(s, candidate->id, source, &block, plain)
		           : stretches_flush(s, source);
	}
	block_done(&block);
	return r;
}

static int merge_entity(
	struct writer *w, int64_t entity, int64_t from_ns, int64_t now_ns, struct candidates *list)
{
	sqlite3_stmt *statement = writer_statement(w, SELECT_CANDIDATES);
	if (!statement) {
		return -ENOMEM;
	}
	sqlite3_bind_int64(statement, 1, entity);
	sqlite3_bind_int64(statement, 2, from_ns);
	sqlite3_bind_int64(statement, 3, now_ns);
	int r = candidates_load(list, w->database, statement);
	struct stretches s = {.writer = w, .entity = entity, .max_span_us = MERGED_SPAN_NS / 1000};
	for (size_t i = 0; r == 0 && i < list->n; i++) {
		r = merge_candidate(&s, &list->items[i]);
	}
	if (r == 0) {
		r = stretches_flush(&s, NULL);
	}
	stretches_done(&s);
	return r;
}

// Entities with blocks that were not merged yet. Found by the ids of the last minutes: to look
// through all blocks each time would cost more with every hour.
static int find_entities(
	struct writer *w, int64_t now_ns, struct candidates *list, int64_t *ret_from_ns)
{
	sqlite3_stmt *statement = writer_statement(w, SELECT_UNMERGED);
	if (!statement) {
		return -ENOMEM;
	}
	sqlite3_bind_int64(statement, 1, w->merged_id);
	sqlite3_bind_int64(statement, 2, now_ns);
	int r = candidates_load(list, w->database, statement);
	int64_t from_ns = now_ns;
	for (size_t i = 0; i < list->n; i++) {
		from_ns = list->items[i].t_first < from_ns ? list->items[i].t_first : from_ns;
	}
	*ret_from_ns = from_ns > INT64_MIN + MERGED_SPAN_NS ? from_ns - MERGED_SPAN_NS : from_ns;
	return r;
}

// The id before the first block that is not merged.
static void remember_merged(struct writer *w)
{
	char sql[128];
	snprintf(sql, sizeof(sql), "SELECT min(id) - 1 FROM block WHERE id > %lld AND codec = %d",
		(long long)w->merged_id, CODEC_PLAIN);
	int64_t last = database_number(w->database, "SELECT max(id) FROM block", 0);
	w->merged_id = database_number(w->database, sql, last);
}

static int writer_merge_spans(struct writer *w);

static int merge(struct writer *w, int64_t now_ns)
{
	struct candidates entities = {0}, list = {0};
	int64_t from_ns = 0;
	int r = find_entities(w, now_ns, &entities, &from_ns);
	for (size_t i = 0; r == 0 && i < entities.n; i++) {
		r = merge_entity(w, entities.items[i].id, from_ns, now_ns, &list);
	}
	candidates_done(&entities);
	candidates_done(&list);
	return r < 0 ? r : writer_merge_spans(w);
}

// One transaction of its own: where it fails, the recording goes on with its small blocks.
static int in_transaction(struct writer *w, int (*work)(struct writer *, int64_t), int64_t now_ns)
{
	int r = writer_begin(w);
	if (r == 0) {
		r = work(w, now_ns);
	}
	// The ids of clocks are worth nothing where they are rolled back.
	clock_book_done(&w->clocks);
	clock_cache_done(&w->clock_cache);
	if (r == 0) {
		r = database_errno(w->database, database_exec(w->database, "COMMIT"));
	}
	if (!sqlite3_get_autocommit(w->database)) {
		database_exec(w->database, "ROLLBACK");
	}
	return r;
}

static int thin(struct writer *w, int64_t now_ns);

int writer_compact(struct writer *w, int64_t now_ns, struct error *e)
{
	int r = writer_commit_now(w, e);
	if (r == -EBUSY) {
		return 0; // a minute later then
	}
	if (r == 0) {
		r = in_transaction(w, merge, now_ns);
		remember_merged(w);
	}
	if (r == 0 && w->max_bytes) {
		r = in_transaction(w, thin, now_ns);
	}
	// Merging needs room for both forms at once. A disk that lacks it is not full yet.
	if (r == -ENOSPC || r == -EBUSY) {
		return w->full ? error_errno(e, ENOSPC, "%s", w->path) : 0;
	}
	return r < 0 && e && !e->code ? error_errno(e, -r, "cannot compact %s", w->path) : r;
}

// Thinning ----------------------------------------------------------------------------------------
//
// Keeping the file under its limit: of the oldest readings only one row a tenth of a second is
// kept, then one a second, and so on where that is not enough. A gauge keeps its minimum, mean and
// maximum, so that no spike disappears; a counter its last value, from which every rate follows; a
// state its last value.

#define FIRST_BUCKET_US INT64_C(100000)
#define FIRST_WINDOW_NS INT64_C(60000000000)
static int64_t bucket_us(int level)
{
	int64_t us = FIRST_BUCKET_US;
	while (level-- > 0) {
		us *= 10;
	}
	return us;
}

// How much is thinned in one step: about as many rows at every level.
static int64_t window_ns(int level)
{
	int64_t ns = FIRST_WINDOW_NS;
	while (level-- > 0 && ns < BLOCK_MAX_SPAN_NS) {
		ns *= 10;
	}
	return ns < BLOCK_MAX_SPAN_NS ? ns : BLOCK_MAX_SPAN_NS;
}

static uint64_t used_bytes(struct writer *w)
{
	int64_t pages = database_number(w->database, "PRAGMA page_count", 0) -
	                database_number(w->database, "PRAGMA freelist_count", 0);
	return (uint64_t)pages * (uint64_t)database_number(w->database, "PRAGMA page_size", 4096);
}

// What the file will take once the newest blocks are merged too, as far as that can be told: until
// then they are ten times as large, and count for nothing.
static uint64_t merged_bytes(struct writer *w)
{
	uint64_t used = used_bytes(w);
	char newest[128];
	snprintf(newest, sizeof(newest),
		"SELECT count(*) FROM (SELECT 1 FROM block WHERE id > %lld AND codec = %d LIMIT 1)",
		(long long)w->merged_id, CODEC_PLAIN);
	// The whole table is looked through, so not where the answer is of no interest.
	if (used <= w->max_bytes / 2 || database_number(w->database, newest, 0) == 0) {
		return used;
	}
	// A row and its places in two indexes take about a hundred bytes.
	int64_t merged = database_number(w->database,
		"SELECT (SELECT coalesce(sum(length(payload) + 100), 0) FROM block WHERE codec = 2)"
		" + (SELECT coalesce(sum(length(payload) + 50), 0) FROM clock WHERE codec = 2)"
		" + (SELECT coalesce(sum(length(payload) + length(words)), 0) FROM span_block)",
		0);
	return merged >= 0 && (uint64_t)merged < used ? (uint64_t)merged : used;
}

static bool is_gauge(struct writer *w, uint32_t metric)
{
	sqlite3_stmt *statement = writer_statement(w, SELECT_METRIC_KIND);
	if (!statement) {
		return false;
	}
	sqlite3_bind_int64(statement, 1, metric);
	const char *kind = sqlite3_step(statement) == SQLITE_ROW
	                           ? (const char *)sqlite3_column_text(statement, 0)
	                           : NULL;
	bool gauge = kind && strcmp(kind, metric_kind_name(METRIC_GAUGE)) == 0;
	sqlite3_reset(statement);
	return gauge;
}

// One column of the thinned block: which column it is made of, and how.
struct recipe {
	uint32_t column;
	enum aggregate aggregate;
};

static uint32_t make_recipes(struct writer *w, const struct block *b, struct recipe *recipes)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < b->n_columns; i++) {
		enum aggregate aggregate = b->aggregates ? b->aggregates[i] : AGGREGATE_NONE;
		bool split = aggregate == AGGREGATE_NONE && is_gauge(w, b->metric_ids[i]);
		enum aggregate last = split ? AGGREGATE_MAXIMUM : aggregate;
		for (enum aggregate a = split ? AGGREGATE_MINIMUM : aggregate; a <= last; a++) {
			if (n == BLOCK_MAX_COLUMNS) {
				return 0;
			}
			recipes[n++] = (struct recipe){i, a};
		}
	}
	return n;
}

// One value for the rows [from, to) of a column.
static int64_t aggregate_rows(
	const int64_t *values, uint32_t from, uint32_t to, enum aggregate aggregate)
{
	int64_t minimum = INT64_MAX, maximum = VALUE_MISSING, last = VALUE_MISSING;
	double sum = 0;
	uint32_t n = 0;
	for (uint32_t i = from; i < to; i++) {
		if (values[i] == VALUE_MISSING) {
			continue;
		}
		last = values[i];
		minimum = last < minimum ? last : minimum;
		maximum = last > maximum ? last : maximum;
		sum += (double)last;
		n++;
	}
	if (n == 0 || aggregate == AGGREGATE_NONE) {
		return last;
	}
	if (aggregate != AGGREGATE_MEAN) {
		return aggregate == AGGREGATE_MINIMUM ? minimum : maximum;
	}
	// Rounded, a mean of values near 2^63 could pass them; it never lies outside of its bounds.
	double mean = sum / n;
	return mean <= (double)minimum   ? minimum
	       : mean >= (double)maximum ? maximum
	                                 : (int64_t)mean;
}

static int64_t bucket_of(int64_t t, int64_t bucket)
{
	return t / bucket - (t % bucket < 0);
}

static void fill_rows(
	const struct block *b, const struct recipe *recipes, int64_t bucket, struct block *to)
{
	for (uint32_t from = 0, end; from < b->n_rows; from = end) {
		end = from + 1;
		while (end < b->n_rows &&
			bucket_of(b->t[end], bucket) == bucket_of(b->t[from], bucket)) {
			end++;
		}
		to->t[to->n_rows] = b->t[end - 1];
		for (uint32_t i = 0; i < to->n_columns; i++) {
			to->columns[i][to->n_rows] = aggregate_rows(
				b->columns[recipes[i].column], from, end, recipes[i].aggregate);
		}
		to->n_rows++;
	}
}

static int thin_block(struct writer *w, const struct block *b, int64_t bucket, struct block *ret)
{
	struct recipe recipes[BLOCK_MAX_COLUMNS];
	uint32_t n = make_recipes(w, b, recipes);
	if (n == 0) {
		return -E2BIG;
	}
	struct block to = {
		.n_columns = n,
		.metric_ids = calloc(n, sizeof(*to.metric_ids)),
		.aggregates = calloc(n, 1),
		.t = malloc((size_t)b->n_rows * (n + 1) * sizeof(*to.t)),
		.columns = calloc(n, sizeof(*to.columns)),
	};
	if (!to.metric_ids || !to.aggregates || !to.t || !to.columns) {
		block_done(&to);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		to.metric_ids[i] = b->metric_ids[recipes[i].column];
		to.aggregates[i] = (uint8_t)recipes[i].aggregate;
		to.columns[i] = to.t + (size_t)b->n_rows * (i + 1);
	}
	fill_rows(b, recipes, bucket, &to);
	*ret = to;
	return 0;
}

// Rows that are apart by nearly a bucket already gain nothing.
static bool is_dense(const struct candidate *c, int64_t bucket)
{
	int64_t buckets = (c->t_last - c->t_first) / 1000 / bucket + 1;
	return c->codec == CODEC_ZSTD && c->t_last >= c->t_first && c->rows >= 2 * buckets;
}

static int thin_candidate(struct stretches *s, const struct candidate *c, int64_t bucket)
{
	_cleanup_free_ char *source = NULL;
	struct block block = {0}, thinned = {0};
	bool dense = is_dense(c, bucket);
	int r = candidate_decode(s->writer, c, dense, &source, &block);
	if (r == 0 && dense) {
		r = thin_block(s->writer, &block, bucket, &thinned);
	}
	if (r == 0) {
		r = dense ? stretches_add(s, c->id, source, &thinned, true)
		          : stretches_flush(s, source);
	}
	block_done(&block);
	block_done(&thinned);
	return r == -EBADMSG || r == -E2BIG ? 0 : r;
}

static int thin_entity(struct writer *w, int64_t entity, int level, int64_t to_ns)
{
	struct candidates list = {0};
	sqlite3_stmt *statement = writer_statement(w, SELECT_ENDED);
	if (!statement) {
		return -ENOMEM;
	}
	sqlite3_bind_int64(statement, 1, entity);
	sqlite3_bind_int64(statement, 2, w->thinned_ns[level]);
	sqlite3_bind_int64(statement, 3, to_ns);
	sqlite3_bind_int64(statement, 4, BLOCK_MAX_SPAN_NS);
	int r = candidates_load(&list, w->database, statement);
	struct stretches s = {
		.writer = w, .entity = entity, .max_span_us = BLOCK_MAX_SPAN_NS / 1000};
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		r = thin_candidate(&s, &list.items[i], bucket_us(level));
	}
	if (r == 0) {
		r = stretches_flush(&s, NULL);
	}
	stretches_done(&s);
	candidates_done(&list);
	return r;
}

static int thin_window(struct writer *w, int level, int64_t to_ns)
{
	sqlite3_stmt *statement = writer_statement(w, SELECT_ENTITIES);
	struct candidates entities = {0};
	int r = statement ? candidates_load(&entities, w->database, statement) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < entities.n; i++) {
		r = thin_entity(w, entities.items[i].id, level, to_ns);
	}
	candidates_done(&entities);
	return r;
}

int writer_delete_clocks(struct writer *w)
{
	sqlite3_stmt *statement = writer_statement(w, DELETE_CLOCKS);
	return statement ? writer_step(w, statement) : -ENOMEM;
}

// One event for each level, which moves on with it.
static int say_thinned(struct writer *w, int level)
{
	char text[160], limit[32], until[32], bucket[32];
	snprintf(text, sizeof(text),
		"the file reached its limit of %s: before %s only one row each %s is kept",
		text_bytes(limit, sizeof(limit), (double)w->max_bytes),
		text_seconds(until, sizeof(until), (double)w->thinned_ns[level] / 1e9),
		text_seconds(bucket, sizeof(bucket), (double)bucket_us(level) / 1e6));
	if (w->thin_events[level] == 0) {
		int r = writer_insert_event(w, w->last_ns, "thinned", 0, text);
		w->thin_events[level] = sqlite3_last_insert_rowid(w->database);
		return r;
	}
	sqlite3_stmt *statement = writer_statement(w, UPDATE_EVENT);
	if (!statement) {
		return -ENOMEM;
	}
	sqlite3_bind_int64(statement, 1, w->thin_events[level]);
	writer_bind_text(w, statement, 2, text);
	return writer_step(w, statement);
}

// The lowest level with a whole window to thin, or, where part_ns is given, at least as much; and
// up to when. A level follows the one before it. -1: none.
static int next_level(const struct writer *w, int n_levels, int64_t whole_from_ns, int64_t part_ns,
	int64_t *ret_to_ns)
{
	int64_t limit_ns = whole_from_ns;
	for (int level = 0; level < n_levels; level++) {
		int64_t there_ns = limit_ns - w->thinned_ns[level];
		int64_t least_ns = part_ns ? part_ns : window_ns(level);
		if (there_ns >= least_ns) {
			int64_t step_ns = there_ns < window_ns(level) ? there_ns : window_ns(level);
			*ret_to_ns = w->thinned_ns[level] + step_ns;
			return level;
		}
		limit_ns = w->thinned_ns[level];
	}
	return -1;
}

static int thin_step(struct writer *w, int level, int64_t to_ns)
{
	int r = thin_window(w, level, to_ns);
	r = r < 0 ? r : writer_delete_clocks(w);
	// Ids of what was deleted can come again.
	clock_book_done(&w->clocks);
	clock_cache_done(&w->clock_cache);
	w->thinned_ns[level] = to_ns;
	return r < 0 ? r : say_thinned(w, level);
}

// How far thinning goes: what lies before the last whole_ns, by the first n_levels, in whole
// windows or (which leaves small blocks) also in parts of at least part_ns.
struct extent {
	int64_t whole_ns;
	int64_t part_ns; // 0: whole windows only
	int n_levels;
};

// Until a quarter of the limit is free.
static int thin_extent(struct writer *w, int64_t last_ns, const struct extent *extent)
{
	int64_t from_ns = last_ns - extent->whole_ns + 1, to_ns = 0;
	int r = 0;
	while (r == 0 && merged_bytes(w) > w->max_bytes - w->max_bytes / 4) {
		int level = next_level(w, extent->n_levels, from_ns, 0, &to_ns);
		if (level < 0 && extent->part_ns) {
			level = next_level(w, extent->n_levels, from_ns, extent->part_ns, &to_ns);
		}
		if (level < 0) {
			break;
		}
		r = thin_step(w, level, to_ns);
	}
	return r;
}

// Thins the oldest blocks until the file keeps max_bytes, or nothing is left to thin.
static int thin(struct writer *w, int64_t now_ns)
{
	const int64_t s = INT64_C(1000000000);
	// A long run is thinned more and more the older it is, and its last minute stays whole. In
	// a fast run under a small limit not even that fits: then fewer seconds stay whole, before
	// of what was there before only rows far apart remain.
	const struct extent extents[] = {
		{60 * s, 0, THIN_LEVELS},
		{15 * s, 15 * s, 1},
		{4 * s, 4 * s, 1},
		{60 * s, 60 * s, 2},
		{4 * s, 4 * s, 2},
		{0, s, 2},
		{0, s, THIN_LEVELS},
	};
	int64_t last_ns = now_ns < w->last_ns ? now_ns : w->last_ns;
	int r = 0;
	// An eighth is left for the blocks to come, another so that this is seldom.
	for (size_t i = 0; r == 0 && i < ARRAY_LENGTH(extents) &&
			   merged_bytes(w) > w->max_bytes - w->max_bytes / 8;
		i++) {
		r = thin_extent(w, last_ns, &extents[i]);
	}
	return r;
}

bool writer_is_over_limit(struct writer *w)
{
	return w->max_bytes && used_bytes(w) > w->max_bytes;
}

// Spans -------------------------------------------------------------------------------------------
//
// Spans on their way into the run file: those of a second become a plain block with the commit,
// and those blocks large compressed ones when the file is compacted.

#define SMALL_SPAN_ROWS 4096 // a merged block of fewer grows

// Whether a span can be in a block; then it is put into the next one. 0 or -errno.
// Epochs are added to later, points have values; both are few.
static bool span_is_packable(const struct writer_span *span)
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

static int writer_put_begin(struct writer *w, enum statement which, sqlite3_stmt **ret);

static int writer_put_end(struct writer *w, sqlite3_stmt *statement);

// Writes the spans that wait as a block of its own. 0 or -errno.
static int writer_flush_spans(struct writer *w)
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

static int writer_pack_span(struct writer *w, const struct writer_span *span)
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

// Merging -----------------------------------------------------------------------------------------

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

static int merge_span_candidate(
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

// Blocks of seconds become blocks of thousands of spans. In the open transaction. 0 or -errno.
static int writer_merge_spans(struct writer *w)
{
	struct candidates list = {0};
	struct span_rows gathered = {0};
	sqlite3_stmt *statement = writer_statement(w, SELECT_SPANS_UNMERGED);
	if (!statement) {
		return 0; // a file of an older version has no such table
	}
	sqlite3_bind_int64(statement, 1, SMALL_SPAN_ROWS);
	int r = candidates_load(&list, w->database, statement);
	bool any = list.n > 1 || (list.n == 1 && list.items[0].codec == CODEC_PLAIN);
	for (size_t i = 0; r == 0 && i < list.n && any; i++) {
		r = merge_span_candidate(w, &list.items[i], &gathered);
	}
	if (r == 0 && gathered.n > 0) {
		statement = writer_statement(w, PUT_SPANS);
		r = statement ? insert(w, &gathered, CODEC_ZSTD, statement, writer_step) : -ENOMEM;
	}
	span_rows_done(&gathered);
	candidates_done(&list);
	return r;
}

// Puts and commits --------------------------------------------------------------------------------

#define COMMIT_INTERVAL_WITHOUT_WAL_NS (10 * NS_PER_S)

// The disk is full: the batch is given up, the reserve makes room for saying so.
static void disk_is_full(struct writer *w)
{
	int code = database_no_room(w->database);
	w->full = true;
	span_rows_clear(&w->spans); // of the same batch; the end of the run needs the room
	if (!sqlite3_get_autocommit(w->database)) {
		database_exec(w->database, "ROLLBACK");
	}
	if (w->reserve >= 0) {
		close(w->reserve);
		w->reserve = -1;
	}
	if (writer_begin(w) == 0 &&
		writer_insert_event(w, w->last_ns, "disk_full", 0,
			code == EFBIG    ? "the limit of file sizes was reached: nothing is "
					   "recorded after this"
			: code == EDQUOT ? "the disk quota was used up: nothing is recorded after "
					   "this"
					 : DISK_IS_FULL ": nothing is recorded after this") == 0) {
		database_exec(w->database, "COMMIT");
	}
	if (!sqlite3_get_autocommit(w->database)) {
		database_exec(w->database, "ROLLBACK");
	}
}

// Opens the batch and hands out a statement to bind, which put_end steps. What either answers where
// the disk is full is -ENOSPC, and the batch is given up.
static int writer_put_begin(struct writer *w, enum statement which, sqlite3_stmt **ret)
{
	if (w->full || w->displaced) {
		return w->full ? -ENOSPC : -ESTALE;
	}
	int r = writer_begin(w);
	if (r == -ENOSPC) {
		disk_is_full(w);
	}
	if (r < 0) {
		return r;
	}
	*ret = writer_statement(w, which);
	return *ret ? 0 : database_errno(w->database, sqlite3_errcode(w->database));
}

static int writer_put_end(struct writer *w, sqlite3_stmt *statement)
{
	int r = writer_step(w, statement);
	if (r == -ENOSPC) {
		disk_is_full(w);
	}
	return r;
}

static void note_time(struct writer *w, int64_t t_ns)
{
	if (t_ns > w->last_ns) {
		w->last_ns = t_ns;
	}
}

static int put_pair(struct writer *w, enum statement which, const char *name, const char *value)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, which, &statement);
	if (r < 0) {
		return r;
	}
	writer_bind_text(w, statement, 1, name);
	writer_bind_text(w, statement, 2, value);
	return writer_put_end(w, statement);
}

int writer_put_run(struct writer *w, const char *key, const char *value)
{
	return put_pair(w, PUT_RUN, key, value);
}

int writer_clear_run(struct writer *w, const char *pattern)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, CLEAR_RUN, &statement);
	if (r < 0) {
		return r;
	}
	writer_bind_text(w, statement, 1, pattern);
	return writer_put_end(w, statement);
}

int writer_put_label(struct writer *w, const char *name, const char *value)
{
	return put_pair(w, PUT_LABEL, name, value);
}

int writer_put_metric(struct writer *w, uint32_t id, const struct metric *metric,
	enum entity_kind entity_kind, const char *source)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, PUT_METRIC, &statement);
	if (r < 0) {
		return r;
	}
	sqlite3_bind_int64(statement, 1, id);
	writer_bind_text(w, statement, 2, metric->name);
	writer_bind_text(w, statement, 3, entity_kind_name(entity_kind));
	writer_bind_text(w, statement, 4, metric_kind_name(metric->kind));
	writer_bind_text(w, statement, 5, metric->unit);
	sqlite3_bind_double(statement, 6, metric->scale);
	writer_bind_text(w, statement, 7, source);
	return writer_put_end(w, statement);
}

int writer_put_entity(struct writer *w, const struct writer_entity *entity)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, PUT_ENTITY, &statement);
	if (r < 0) {
		return r;
	}
	sqlite3_bind_int64(statement, 1, entity->id);
	writer_bind_text(w, statement, 2, entity_kind_name(entity->kind));
	writer_bind_text(w, statement, 3, entity->key);
	writer_bind_text(w, statement, 4, entity->name);
	bind_optional(statement, 5, entity->parent, 0);
	sqlite3_bind_int64(statement, 6, entity->first_ns);
	bind_optional(statement, 7, entity->last_ns, -1);
	writer_bind_text(w, statement, 8, entity->attributes ? entity->attributes : "{}");
	note_time(w, entity->first_ns);
	note_time(w, entity->last_ns);
	return writer_put_end(w, statement);
}

int writer_end_entity(struct writer *w, int64_t id, int64_t last_ns, const char *attributes)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, END_ENTITY, &statement);
	if (r < 0) {
		return r;
	}
	sqlite3_bind_int64(statement, 1, id);
	sqlite3_bind_int64(statement, 2, last_ns);
	writer_bind_text(w, statement, 3, attributes ? attributes : "{}");
	note_time(w, last_ns);
	return writer_put_end(w, statement);
}

int writer_put_missing(struct writer *w, int64_t entity, uint32_t metric, int64_t from_ns,
	int64_t to_ns, const char *reason)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, PUT_MISSING, &statement);
	if (r < 0) {
		return r;
	}
	bind_optional(statement, 1, entity, 0);
	sqlite3_bind_int64(statement, 2, metric);
	sqlite3_bind_int64(statement, 3, from_ns);
	bind_optional(statement, 4, to_ns, -1);
	writer_bind_text(w, statement, 5, reason);
	return writer_put_end(w, statement);
}

int writer_put_block(struct writer *w, int64_t entity, const char *source, const struct block *b)
{
	if (b->n_rows == 0) {
		return 0;
	}
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, PUT_BLOCK, &statement);
	if (r < 0) {
		return r;
	}
	note_time(w, us_to_ns(b->t[b->n_rows - 1]));
	r = writer_insert_block(w, entity, source, b, CODEC_PLAIN);
	if (r == -ENOSPC) {
		disk_is_full(w);
	}
	return r;
}

int writer_put_span(struct writer *w, const struct writer_span *span, int64_t *ret_id)
{
	sqlite3_stmt *statement;
	if (span_is_packable(span)) {
		note_time(w, span->start_ns);
		note_time(w, span->end_ns);
		if (ret_id) {
			*ret_id = span->id;
		}
		return writer_pack_span(w, span);
	}
	int r = writer_put_begin(w, PUT_SPAN, &statement);
	if (r < 0) {
		return r;
	}
	writer_bind_text(w, statement, 1, span->name);
	writer_bind_text(w, statement, 2, span->kind);
	sqlite3_bind_int64(statement, 3, span->start_ns);
	bind_optional(statement, 4, span->end_ns, -1);
	bind_optional(statement, 5, span->thread, 0);
	bind_optional(statement, 6, span->parent, 0);
	bind_optional(statement, 7, span->number, -1);
	bind_optional(statement, 8, span->samples, -1);
	// SQLite stores NAN as NULL: no value.
	sqlite3_bind_double(statement, 9, span->value);
	writer_bind_text(w, statement, 10, span->attributes ? span->attributes : "{}");
	bind_optional(statement, 11, span->id, 0);
	note_time(w, span->start_ns);
	note_time(w, span->end_ns);
	r = writer_put_end(w, statement);
	if (r == 0 && ret_id) {
		*ret_id = sqlite3_last_insert_rowid(w->database);
	}
	return r;
}

int writer_end_span(struct writer *w, int64_t id, int64_t end_ns)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, END_SPAN, &statement);
	if (r < 0) {
		return r;
	}
	sqlite3_bind_int64(statement, 1, id);
	sqlite3_bind_int64(statement, 2, end_ns);
	note_time(w, end_ns);
	return writer_put_end(w, statement);
}

int writer_complete_span(
	struct writer *w, int64_t id, int64_t end_ns, int64_t samples, const char *attributes)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, COMPLETE_SPAN, &statement);
	if (r < 0) {
		return r;
	}
	sqlite3_bind_int64(statement, 1, id);
	bind_optional(statement, 2, end_ns, -1);
	bind_optional(statement, 3, samples, -1);
	writer_bind_text(w, statement, 4, attributes ? attributes : "{}");
	note_time(w, end_ns);
	return writer_put_end(w, statement);
}

int writer_each_command(struct writer *w, const char *pattern,
	bool (*take)(void *context, const char *name, const char *command), void *context)
{
	sqlite3_stmt *statement = writer_statement(w, EACH_COMMAND);
	int r = SQLITE_DONE;
	bool more = statement != NULL;
	if (statement) {
		writer_bind_text(w, statement, 1, pattern);
	}
	while (more && (r = sqlite3_step(statement)) == SQLITE_ROW) {
		more = take(context, (const char *)sqlite3_column_text(statement, 0),
			(const char *)sqlite3_column_text(statement, 1));
	}
	sqlite3_reset(statement);
	return r == SQLITE_DONE || r == SQLITE_ROW ? 0 : database_errno(w->database, r);
}

int writer_adopt_points(struct writer *w)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, ADOPT_POINTS, &statement);
	return r < 0 ? r : writer_put_end(w, statement);
}

int writer_drop_span(struct writer *w, int64_t id)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, DROP_SPAN, &statement);
	if (r < 0) {
		return r;
	}
	sqlite3_bind_int64(statement, 1, id);
	return writer_put_end(w, statement);
}

int writer_move_span(struct writer *w, int64_t id, int64_t start_ns, int64_t end_ns)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, MOVE_SPAN, &statement);
	if (r < 0) {
		return r;
	}
	sqlite3_bind_int64(statement, 1, id);
	sqlite3_bind_int64(statement, 2, start_ns);
	sqlite3_bind_int64(statement, 3, end_ns);
	note_time(w, end_ns);
	return writer_put_end(w, statement);
}

int writer_put_event(
	struct writer *w, int64_t t_ns, const char *kind, int64_t entity, const char *text)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, PUT_EVENT, &statement);
	if (r < 0) {
		return r;
	}
	note_time(w, t_ns);
	r = writer_insert_event(w, t_ns, kind, entity, text);
	if (r == -ENOSPC) {
		disk_is_full(w);
	}
	return r;
}

int writer_put_profile_object(struct writer *w, int64_t id, const char *path)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, PUT_PROFILE_OBJECT, &statement);
	if (r < 0) {
		return r;
	}
	sqlite3_bind_int64(statement, 1, id);
	writer_bind_text(w, statement, 2, path);
	return writer_put_end(w, statement);
}

int writer_put_profile_sample(struct writer *w, const struct writer_sample *sample)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, PUT_PROFILE_SAMPLE, &statement);
	if (r < 0) {
		return r;
	}
	note_time(w, sample->to_ns);
	sqlite3_bind_int64(statement, 1, sample->entity);
	sqlite3_bind_int64(statement, 2, sample->leader);
	sqlite3_bind_int64(statement, 3, sample->from_ns);
	sqlite3_bind_int64(statement, 4, sample->to_ns);
	sqlite3_bind_int64(statement, 5, sample->object);
	sqlite3_bind_int64(statement, 6, sample->address);
	sqlite3_bind_int64(statement, 7, sample->samples);
	return writer_put_end(w, statement);
}

int writer_put_phase_sample(struct writer *w, const char *phase, const struct writer_sample *sample)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, PUT_PHASE_SAMPLE, &statement);
	if (r < 0) {
		return r;
	}
	sqlite3_bind_int64(statement, 1, sample->entity);
	writer_bind_text(w, statement, 2, phase);
	sqlite3_bind_int64(statement, 3, sample->leader);
	sqlite3_bind_int64(statement, 4, sample->object);
	sqlite3_bind_int64(statement, 5, sample->address);
	sqlite3_bind_int64(statement, 6, sample->samples);
	return writer_put_end(w, statement);
}

int writer_put_line_sample(struct writer *w, const struct writer_line *line)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, PUT_LINE_SAMPLE, &statement);
	if (r < 0) {
		return r;
	}
	sqlite3_bind_int64(statement, 1, line->entity);
	writer_bind_text(w, statement, 2, line->phase);
	writer_bind_text(w, statement, 3, line->file);
	sqlite3_bind_int64(statement, 4, line->line);
	writer_bind_text(w, statement, 5, line->function);
	sqlite3_bind_int64(statement, 6, line->samples);
	return writer_put_end(w, statement);
}

int writer_put_profile_symbol(struct writer *w, int64_t object, int64_t address, const char *name)
{
	sqlite3_stmt *statement;
	int r = writer_put_begin(w, PUT_PROFILE_SYMBOL, &statement);
	if (r < 0) {
		return r;
	}
	sqlite3_bind_int64(statement, 1, object);
	sqlite3_bind_int64(statement, 2, address);
	writer_bind_text(w, statement, 3, name);
	return writer_put_end(w, statement);
}

int writer_commit_now(struct writer *w, struct error *e)
{
	writer_flush_spans(w); // a full disk is told of below
	bool batch = !sqlite3_get_autocommit(w->database);
	if (writer_is_displaced(w)) {
		if (batch) {
			database_exec(w->database, "ROLLBACK");
		}
		return error_set(e, ESTALE, "%s: was removed or replaced", w->path);
	}
	if (!batch) {
		return w->full ? error_errno(e, ENOSPC, "%s", w->path) : 0;
	}
	int result = database_exec(w->database, "COMMIT");
	int r = database_errno(w->database, result);
	if (r == -EBUSY) {
		// A reader holds the file (only without WAL): the batch stays open.
		return error_set(e, EBUSY,
			"%s: cannot write: another program holds a read lock on the run file",
			w->path);
	}
	w->committed_ns = clock_monotonic_ns();
	if (r < 0) {
		database_error(w->database, result, e, w->path);
	}
	if (r == -ENOSPC) {
		disk_is_full(w);
	}
	return r;
}

int writer_commit(struct writer *w, struct error *e)
{
	uint64_t since_ns = clock_monotonic_ns() - w->committed_ns;
	if (!w->wal && !w->full && since_ns < COMMIT_INTERVAL_WITHOUT_WAL_NS) {
		return 0;
	}
	int r = writer_commit_now(w, e);
	return r == -EBUSY ? 0 : r;
}

sqlite3 *writer_database(struct writer *w)
{
	return w->database;
}

bool writer_uses_wal(const struct writer *w)
{
	return w->wal;
}

uint64_t writer_file_bytes(const struct writer *w)
{
	struct stat st;
	return stat(w->path, &st) == 0 ? (uint64_t)st.st_size : 0;
}
