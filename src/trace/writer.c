// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The run file being written: puts and commits. Every put runs a prepared statement inside one open
// transaction, the batch. How the file begins and ends is in writer_file.c.

#include "trace/writer.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "trace/writer_internal.h"

#define COMMIT_INTERVAL_WITHOUT_WAL_NS (10 * NS_PER_S)

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

sqlite3_stmt *writer_statement(struct writer *w, enum statement which)
{
	sqlite3_stmt **statement = &w->statements[which];
	if (!*statement) {
		sqlite3_prepare_v3(w->database, sql_texts[which], -1, SQLITE_PREPARE_PERSISTENT,
			statement, NULL);
	}
	return *statement;
}

int writer_begin(struct writer *w)
{
	// An error can have rolled the batch back: the connection knows, a flag would not.
	if (!sqlite3_get_autocommit(w->database)) {
		return 0;
	}
	return store_errno(w->database, store_exec(w->database, "BEGIN IMMEDIATE"));
}

void writer_bind_text(struct writer *w, sqlite3_stmt *statement, int index, const char *text)
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

int writer_step(struct writer *w, sqlite3_stmt *statement)
{
	int result = sqlite3_step(statement);
	int r = store_errno(w->database, result);
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return r;
}

int writer_insert_event(
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

// The disk is full: the batch is given up, the reserve makes room for saying so.
static void disk_is_full(struct writer *w)
{
	w->full = true;
	span_rows_clear(&w->spans); // of the same batch; the end of the run needs the room
	if (!sqlite3_get_autocommit(w->database)) {
		store_exec(w->database, "ROLLBACK");
	}
	if (w->reserve >= 0) {
		close(w->reserve);
		w->reserve = -1;
	}
	if (writer_begin(w) == 0 &&
		writer_insert_event(w, w->last_ns, "disk_full", 0,
			"the disk is full: nothing is recorded after this") == 0) {
		store_exec(w->database, "COMMIT");
	}
	if (!sqlite3_get_autocommit(w->database)) {
		store_exec(w->database, "ROLLBACK");
	}
}

int writer_put_begin(struct writer *w, enum statement which, sqlite3_stmt **ret)
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
	return *ret ? 0 : store_errno(w->database, sqlite3_errcode(w->database));
}

int writer_put_end(struct writer *w, sqlite3_stmt *statement)
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

int64_t us_to_ns(int64_t us)
{
	int64_t ns;
	return __builtin_mul_overflow(us, 1000, &ns) ? (us < 0 ? INT64_MIN : INT64_MAX) : ns;
}

int writer_insert_block(struct writer *w, int64_t entity, const char *source, const struct block *b,
	enum codec codec)
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
	return r == SQLITE_DONE || r == SQLITE_ROW ? 0 : store_errno(w->database, r);
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
			store_exec(w->database, "ROLLBACK");
		}
		return error_set(e, ESTALE, "%s: was removed or replaced", w->path);
	}
	if (!batch) {
		return w->full ? error_errno(e, ENOSPC, "%s", w->path) : 0;
	}
	int result = store_exec(w->database, "COMMIT");
	int r = store_errno(w->database, result);
	if (r == -EBUSY) {
		// A reader holds the file (only without WAL): the batch stays open.
		return error_set(e, EBUSY, "%s: a reader keeps it from being written", w->path);
	}
	w->committed_ns = clock_monotonic_ns();
	if (r < 0) {
		store_error(w->database, result, e, w->path);
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
