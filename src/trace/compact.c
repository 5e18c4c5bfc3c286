// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Compaction: the small plain blocks that a recorder writes each second become large compressed
// ones, entity by entity, so that memory stays bounded. A compressed block that is still small
// (slow groups: one row a second) grows with the next ones until it covers ten minutes.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "trace/compact.h"
#include "trace/stretch.h"
#include "trace/writer_internal.h"

#define MERGED_SPAN_NS INT64_C(600000000000)
// A compressed block of more rows is left alone: to merge it again would cost more than it saves.
#define SMALL_ROWS 512

void candidates_done(struct candidates *list)
{
	free(list->items);
	*list = (struct candidates){0};
}

int candidates_load(struct candidates *list, sqlite3 *database, sqlite3_stmt *statement)
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
	return store_errno(database, result);
}

int candidate_decode(struct writer *w, const struct candidate *candidate, bool wanted,
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
	int64_t last = store_number(w->database, "SELECT max(id) FROM block", 0);
	w->merged_id = store_number(w->database, sql, last);
}

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
		r = store_errno(w->database, store_exec(w->database, "COMMIT"));
	}
	if (!sqlite3_get_autocommit(w->database)) {
		store_exec(w->database, "ROLLBACK");
	}
	return r;
}

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
