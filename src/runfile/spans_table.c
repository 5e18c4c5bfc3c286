// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The virtual table temp.span. Blocks overlap, because spans are in the block of the second in
// which they ended. Each block is opened when its first span is due, and a heap of the open blocks
// yields the next span.

#include "runfile/spans_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "runfile/database.h"
#include "runfile/span_rows.h"

// Open blocks of spans. They overlap, so a heap yields the span that begins next.

// An open block. Its next span is rows.items[at].
struct open_block {
	struct span_rows rows;
	bool *wanted; // [rows.n_words]
	size_t at;
};

struct span_heap {
	struct open_block **items; // [n]; the block with the earliest next span at 0
	size_t n;
	size_t capacity;
};

// Span heap ---------------------------------------------------------------------------------------
//
// A binary heap of open blocks.

static void open_block_free(struct open_block *block)
{
	if (block) {
		span_rows_done(&block->rows);
		free(block->wanted);
		free(block);
	}
}

// Selects spans of a kind; NULL: all. Returns 0 or -ENOMEM.
static int open_block_choose(struct open_block *block, const char *kind)
{
	block->wanted = malloc(block->rows.n_words + 1);
	for (size_t i = 0; block->wanted && i < block->rows.n_words; i++) {
		block->wanted[i] = !kind || strcmp(kind, block->rows.words[i].kind) == 0;
	}
	return block->wanted ? 0 : -ENOMEM;
}

// Moves to the next selected span. Returns false if there is none.
static bool open_block_settle(struct open_block *block)
{
	while (block->at < block->rows.n && !block->wanted[block->rows.items[block->at].words]) {
		block->at++;
	}
	return block->at < block->rows.n;
}

// Moves to the span with this id.
static bool open_block_find(struct open_block *block, int64_t id)
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

// Returns 0 or -ENOMEM.
static int span_heap_add(struct span_heap *heap, struct open_block *block)
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

// Restores the order after the first block moved on or was replaced.
static void span_heap_sink(struct span_heap *heap)
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

// Table -------------------------------------------------------------------------------------------

enum {
	COLUMN_ID,
	COLUMN_NAME,
	COLUMN_KIND,
	COLUMN_START,
	COLUMN_END,
	COLUMN_THREAD,
	COLUMN_PARENT,
	COLUMN_NUMBER,
	COLUMN_SAMPLES,
	COLUMN_VALUE,
	COLUMN_ATTRIBUTES
};
#define COLUMNS \
	"id, name, kind, start_ns, end_ns, thread, parent, number, samples, value, attributes"

// Upper bound of open blocks. In a sound file they are as many as open spans that contain others; a
// file with more overlap was made to exhaust memory.
#define OPEN_MAX 1024

// Flags from xBestIndex to xFilter for the arguments present, in this order.
enum { PLAN_ID = 1, PLAN_KIND = 2 };

struct spans_table {
	sqlite3_vtab base; // first: SQLite's view of it
	sqlite3 *database;
	struct damage *damage;
};

// A block with spans still to come.
struct waiting_block {
	int64_t id;
	int64_t first_ns;
};

struct spans_cursor {
	sqlite3_vtab_cursor base;
	sqlite3_stmt *rows; // of main.span; on a row while row_waits
	bool row_waits;
	sqlite3_stmt *snapshot; // open as long as the cursor, so that its view does not change
	sqlite3_stmt *block; // selects one block by id
	struct waiting_block *waiting; // [n_waiting], in order of their first start
	size_t n_waiting;
	size_t waiting_capacity;
	size_t next_waiting;
	struct span_heap open;
	struct open_block *kept; // the block read last by a lookup by id
	int64_t kept_id;
	char *kind; // NULL: all
	int64_t id; // 0: all
	bool from_block; // whether the current span is from a block
	bool at_end;
};

static int connect_table(sqlite3 *database, void *context, int argc, const char *const *argv,
	sqlite3_vtab **ret, char **ret_text)
{
	(void)argc;
	(void)argv;
	(void)ret_text;
	int result = sqlite3_declare_vtab(database,
		"CREATE TABLE x(id INTEGER, name TEXT, kind TEXT, start_ns INTEGER, end_ns INTEGER,"
		" thread INTEGER, parent INTEGER, number INTEGER, samples INTEGER, value REAL,"
		" attributes TEXT)");
	struct spans_table *table = result == SQLITE_OK ? sqlite3_malloc(sizeof(*table)) : NULL;
	if (!table) {
		return result == SQLITE_OK ? SQLITE_NOMEM : result;
	}
	*table = (struct spans_table){.database = database, .damage = context};
	sqlite3_vtab_config(database, SQLITE_VTAB_INNOCUOUS);
	*ret = &table->base;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
	sqlite3_free(base);
	return SQLITE_OK;
}

// Spans are ordered by start_ns and id.
static bool is_their_order(const sqlite3_index_info *info)
{
	static const int order[] = {COLUMN_START, COLUMN_ID};
	for (int i = 0; i < info->nOrderBy; i++) {
		if (i >= (int)ARRAY_LENGTH(order) || info->aOrderBy[i].desc ||
			info->aOrderBy[i].iColumn != order[i]) {
			return false;
		}
	}
	return info->nOrderBy > 0;
}

// Whether a kind is compared byte by byte, not with COLLATE NOCASE, which matches more kinds.
static bool is_exact(sqlite3_index_info *info, int constraint)
{
	return sqlite3_stricmp(sqlite3_vtab_collation(info, constraint), "BINARY") == 0;
}

// SQLite checks every row again (omit stays 0).
static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	(void)base;
	int id = -1, kind = -1, n_arguments = 0;
	for (int i = 0; i < info->nConstraint; i++) {
		const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
		bool equal = constraint->usable && constraint->op == SQLITE_INDEX_CONSTRAINT_EQ;
		id = equal && constraint->iColumn == COLUMN_ID ? i : id;
		kind = equal && constraint->iColumn == COLUMN_KIND && is_exact(info, i) ? i : kind;
	}
	if (id >= 0) {
		info->aConstraintUsage[id].argvIndex = ++n_arguments;
		info->idxNum |= PLAN_ID;
	}
	if (kind >= 0) {
		info->aConstraintUsage[kind].argvIndex = ++n_arguments;
		info->idxNum |= PLAN_KIND;
	}
	info->estimatedRows = id >= 0 ? 1 : kind >= 0 ? 100000 : 1000000;
	info->estimatedCost = id >= 0 ? 100 : (double)info->estimatedRows;
	info->orderByConsumed = is_their_order(info);
	return SQLITE_OK;
}

// Reading blocks ----------------------------------------------------------------------------------

static void note_damage(const struct spans_cursor *cursor, int64_t id)
{
	const struct spans_table *table = (const struct spans_table *)cursor->base.pVtab;
	if (table->damage) {
		damage_add(table->damage, ~id); // below 0 for any id
	}
}

// *ret is NULL if the block is damaged or gone.
static int read_block(
	struct spans_cursor *cursor, const struct waiting_block *which, struct open_block **ret)
{
	struct open_block *block = calloc(1, sizeof(*block));
	*ret = NULL;
	if (!block) {
		return SQLITE_NOMEM;
	}
	sqlite3_stmt *statement = cursor->block;
	sqlite3_bind_int64(statement, 1, which->id);
	int r = sqlite3_step(statement) != SQLITE_ROW
	                ? -EBADMSG
	                : span_rows_decode(sqlite3_column_blob(statement, 1),
				  (size_t)sqlite3_column_bytes(statement, 1),
				  sqlite3_column_blob(statement, 2),
				  (size_t)sqlite3_column_bytes(statement, 2),
				  (enum codec)sqlite3_column_int(statement, 0), &block->rows, NULL);
	// The counts made when the run was opened are those of the rows.
	if (r == 0 && sqlite3_column_int64(statement, 3) != (sqlite3_int64)block->rows.n) {
		r = -EBADMSG;
	}
	sqlite3_reset(statement);
	// Spans that begin before it says would come after others that begin later.
	if (r == 0 && block->rows.n > 0 && block->rows.items[0].start_ns < which->first_ns) {
		r = -EBADMSG;
	}
	if (r == 0) {
		r = open_block_choose(block, cursor->kind);
	}
	if (r == -EBADMSG) {
		note_damage(cursor, which->id);
	}
	if (r < 0) {
		open_block_free(block);
		return r == -EBADMSG ? SQLITE_OK : SQLITE_NOMEM;
	}
	*ret = block;
	return SQLITE_OK;
}

// Cursors -----------------------------------------------------------------------------------------

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	(void)base;
	struct spans_cursor *cursor = sqlite3_malloc(sizeof(*cursor));
	if (!cursor) {
		return SQLITE_NOMEM;
	}
	*cursor = (struct spans_cursor){.at_end = true};
	*ret = &cursor->base;
	return SQLITE_OK;
}

// What a lookup by id kept stays, for the next, and so does the snapshot: in another one the kept
// block's id can be another block's.
static void clear_cursor(struct spans_cursor *cursor)
{
	for (size_t i = 0; i < cursor->open.n; i++) {
		if (cursor->open.items[i] != cursor->kept) {
			open_block_free(cursor->open.items[i]);
		}
	}
	sqlite3_finalize(cursor->rows);
	sqlite3_finalize(cursor->block);
	cursor->rows = cursor->block = NULL;
	free(cursor->kind);
	cursor->kind = NULL;
	cursor->open.n = cursor->n_waiting = cursor->next_waiting = 0;
	cursor->row_waits = false;
	cursor->at_end = true;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct spans_cursor *cursor = (struct spans_cursor *)base;
	clear_cursor(cursor);
	sqlite3_finalize(cursor->snapshot);
	open_block_free(cursor->kept);
	free(cursor->waiting);
	free(cursor->open.items);
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int step_rows(struct spans_cursor *cursor)
{
	int result = sqlite3_step(cursor->rows);
	cursor->row_waits = result == SQLITE_ROW;
	return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static int prepare_rows(struct spans_cursor *cursor, sqlite3 *database)
{
	static const char by_id[] = "SELECT " COLUMNS " FROM main.span WHERE id = ?1";
	static const char by_kind[] = "SELECT " COLUMNS
				      " FROM main.span WHERE kind = ?2 ORDER BY start_ns, id";
	static const char all[] = "SELECT " COLUMNS " FROM main.span ORDER BY start_ns, id";
	int result = sqlite3_prepare_v2(database,
		cursor->id     ? by_id
		: cursor->kind ? by_kind
			       : all,
		-1, &cursor->rows, NULL);
	if (result == SQLITE_OK) {
		sqlite3_bind_int64(cursor->rows, 1, cursor->id);
		sqlite3_bind_text(cursor->rows, 2, cursor->kind, -1, SQLITE_STATIC);
		result = step_rows(cursor);
	}
	return result;
}

// A file of an older version has no such table: then there are no blocks.
static int list_blocks(struct spans_cursor *cursor, sqlite3 *database)
{
	static const char by_id[] = "SELECT id, first_ns FROM main.span_block"
				    " WHERE first_id <= ?1 AND last_id >= ?1";
	static const char all[] = "SELECT id, first_ns FROM main.span_block ORDER BY first_ns, id";
	sqlite3_stmt *statement = NULL;
	if (sqlite3_prepare_v2(database,
		    "SELECT codec, words, payload, rows FROM main.span_block"
		    " WHERE id = ?1",
		    -1, &cursor->block, NULL) != SQLITE_OK) {
		return SQLITE_OK;
	}
	int result = sqlite3_prepare_v2(database, cursor->id ? by_id : all, -1, &statement, NULL);
	sqlite3_bind_int64(statement, 1, cursor->id);
	while (result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
		void *waiting = cursor->waiting;
		result = array_reserve(&waiting, &cursor->waiting_capacity, cursor->n_waiting + 1,
				 sizeof(*cursor->waiting)) < 0
		                 ? SQLITE_NOMEM
		                 : SQLITE_OK;
		cursor->waiting = waiting;
		if (result == SQLITE_OK) {
			cursor->waiting[cursor->n_waiting++] = (struct waiting_block){
				sqlite3_column_int64(statement, 0),
				sqlite3_column_int64(statement, 1)};
		}
	}
	sqlite3_finalize(statement);
	return result == SQLITE_DONE ? SQLITE_OK : result;
}

// Whether the row of main.span begins before this.
static bool row_is_before(const struct spans_cursor *cursor, int64_t start_ns, int64_t id)
{
	int64_t row_ns = sqlite3_column_int64(cursor->rows, COLUMN_START);
	return row_ns != start_ns ? row_ns < start_ns
	                          : sqlite3_column_int64(cursor->rows, COLUMN_ID) < id;
}

// Opens the blocks that could hold the span that is next.
static int open_due_blocks(struct spans_cursor *cursor)
{
	int result = SQLITE_OK;
	while (result == SQLITE_OK && cursor->next_waiting < cursor->n_waiting) {
		const struct waiting_block *waiting = &cursor->waiting[cursor->next_waiting];
		const struct open_block *first = cursor->open.n ? cursor->open.items[0] : NULL;
		if (first ? first->rows.items[first->at].start_ns < waiting->first_ns
			  : cursor->row_waits && row_is_before(cursor, waiting->first_ns, 0)) {
			break;
		}
		struct open_block *block = NULL;
		if (cursor->open.n < OPEN_MAX) {
			result = read_block(cursor, waiting, &block);
		} else {
			note_damage(cursor, waiting->id);
		}
		cursor->next_waiting++;
		if (block && open_block_settle(block)) {
			result = span_heap_add(&cursor->open, block) < 0 ? SQLITE_NOMEM : SQLITE_OK;
		} else {
			open_block_free(block);
		}
	}
	return result;
}

static int choose_next(struct spans_cursor *cursor)
{
	int result = open_due_blocks(cursor);
	const struct open_block *first = cursor->open.n ? cursor->open.items[0] : NULL;
	const struct span_row *row = first ? &first->rows.items[first->at] : NULL;
	cursor->from_block = row &&
	                     !(cursor->row_waits && row_is_before(cursor, row->start_ns, row->id));
	cursor->at_end = !row && !cursor->row_waits;
	return result;
}

// One span ----------------------------------------------------------------------------------------

// Who asks for one asks for those beside it as well (JOIN span p ON p.id = s.parent): the block in
// which one was found is looked into first.
static int look_up(struct spans_cursor *cursor)
{
	int result = SQLITE_OK;
	bool found = cursor->kept && open_block_find(cursor->kept, cursor->id);
	for (size_t i = 0; i < cursor->n_waiting && !found && result == SQLITE_OK; i++) {
		struct open_block *block = NULL;
		if (cursor->waiting[i].id != cursor->kept_id) {
			result = read_block(cursor, &cursor->waiting[i], &block);
		}
		if (block && open_block_find(block, cursor->id)) {
			open_block_free(cursor->kept);
			cursor->kept = block;
			cursor->kept_id = cursor->waiting[i].id;
			found = true;
		} else {
			open_block_free(block);
		}
	}
	cursor->next_waiting = cursor->n_waiting;
	if (found && result == SQLITE_OK) {
		result = span_heap_add(&cursor->open, cursor->kept) < 0 ? SQLITE_NOMEM : SQLITE_OK;
	}
	return result;
}

static int take_snapshot(struct spans_cursor *cursor, sqlite3 *database)
{
	if (cursor->snapshot) {
		return SQLITE_OK;
	}
	int result = sqlite3_prepare_v2(
		database, "SELECT 1 FROM main.sqlite_master", -1, &cursor->snapshot, NULL);
	if (result == SQLITE_OK) {
		result = sqlite3_step(cursor->snapshot);
	}
	return result == SQLITE_ROW ? SQLITE_OK : result;
}

static int filter(
	sqlite3_vtab_cursor *base, int plan, const char *text, int argc, sqlite3_value **argv)
{
	(void)text;
	(void)argc;
	struct spans_cursor *cursor = (struct spans_cursor *)base;
	sqlite3 *database = ((struct spans_table *)base->pVtab)->database;
	clear_cursor(cursor);
	cursor->id = 0;
	if (plan & PLAN_ID) {
		cursor->id = sqlite3_value_int64(*argv++);
		if (cursor->id == 0) {
			return SQLITE_OK; // none has it
		}
	}
	if (plan & PLAN_KIND) {
		const char *kind = (const char *)sqlite3_value_text(*argv++);
		if (!kind) {
			return SQLITE_OK;
		}
		cursor->kind = strdup(kind);
		if (!cursor->kind) {
			return SQLITE_NOMEM;
		}
	}
	int result = take_snapshot(cursor, database);
	if (result == SQLITE_OK) {
		result = prepare_rows(cursor, database);
	}
	bool found = cursor->id && cursor->row_waits;
	result = result == SQLITE_OK && !found ? list_blocks(cursor, database) : result;
	if (result == SQLITE_OK && cursor->id && !found) {
		result = look_up(cursor);
	}
	return result == SQLITE_OK ? choose_next(cursor) : result;
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct spans_cursor *cursor = (struct spans_cursor *)base;
	if (!cursor->from_block) {
		int result = step_rows(cursor);
		return result == SQLITE_OK ? choose_next(cursor) : result;
	}
	struct open_block *first = cursor->open.items[0];
	first->at++;
	if (cursor->id || !open_block_settle(first)) {
		cursor->open.items[0] = cursor->open.items[--cursor->open.n];
		if (first != cursor->kept) {
			open_block_free(first);
		}
	}
	span_heap_sink(&cursor->open);
	return choose_next(cursor);
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
	return ((struct spans_cursor *)base)->at_end;
}

static void give_optional(sqlite3_context *context, int64_t value, int64_t none)
{
	if (value == none) {
		sqlite3_result_null(context);
	} else {
		sqlite3_result_int64(context, value);
	}
}

static void give_column(sqlite3_context *context, const struct writer_span *span, int column)
{
	switch (column) {
	case COLUMN_ID:
		sqlite3_result_int64(context, span->id);
		break;
	case COLUMN_NAME:
		sqlite3_result_text(context, span->name, -1, SQLITE_TRANSIENT);
		break;
	case COLUMN_KIND:
		sqlite3_result_text(context, span->kind, -1, SQLITE_TRANSIENT);
		break;
	case COLUMN_START:
		sqlite3_result_int64(context, span->start_ns);
		break;
	case COLUMN_END:
		sqlite3_result_int64(context, span->end_ns);
		break;
	case COLUMN_THREAD:
		give_optional(context, span->thread, 0);
		break;
	case COLUMN_PARENT:
		give_optional(context, span->parent, 0);
		break;
	case COLUMN_NUMBER:
		give_optional(context, span->number, -1);
		break;
	case COLUMN_SAMPLES:
		give_optional(context, span->samples, -1);
		break;
	case COLUMN_ATTRIBUTES:
		sqlite3_result_text(context, span->attributes, -1, SQLITE_TRANSIENT);
		break;
	default: // a value is a point's, and points are rows
		sqlite3_result_null(context);
	}
}

static int read_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	const struct spans_cursor *cursor = (const struct spans_cursor *)base;
	if (cursor->from_block) {
		const struct open_block *block = cursor->open.items[0];
		struct writer_span span = span_rows_get(&block->rows, block->at);
		give_column(context, &span, column);
	} else {
		sqlite3_result_value(context, sqlite3_column_value(cursor->rows, column));
	}
	return SQLITE_OK;
}

static int read_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	const struct spans_cursor *cursor = (const struct spans_cursor *)base;
	*ret = cursor->from_block ? cursor->open.items[0]->rows.items[cursor->open.items[0]->at].id
	                          : sqlite3_column_int64(cursor->rows, COLUMN_ID);
	return SQLITE_OK;
}

static const sqlite3_module spans_module = {
	.iVersion = 0,
	.xCreate = connect_table,
	.xConnect = connect_table,
	.xBestIndex = best_index,
	.xDisconnect = disconnect_table,
	.xDestroy = disconnect_table,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next_row,
	.xEof = is_at_end,
	.xColumn = read_column,
	.xRowid = read_rowid,
};

int spans_table_make(sqlite3 *database, struct damage *damage)
{
	int result = sqlite3_create_module_v2(
		database, "strain_spans", &spans_module, damage, NULL);
	bool locked = database_number(database, "PRAGMA query_only", 0) == 1;
	if (result == SQLITE_OK) {
		result = database_exec(database,
			"PRAGMA query_only = OFF;"
			"CREATE VIRTUAL TABLE temp.span USING strain_spans");
	}
	if (locked) {
		database_exec(database, "PRAGMA query_only = ON");
	}
	return database_errno(database, result);
}

static bool any_row(sqlite3 *database, const char *sql, const void *kind, size_t length)
{
	sqlite3_stmt *statement = NULL;
	bool any = sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK &&
	           sqlite3_bind_blob(statement, 1, kind, (int)length, SQLITE_STATIC) == SQLITE_OK &&
	           sqlite3_step(statement) == SQLITE_ROW;
	sqlite3_finalize(statement);
	return any;
}

bool spans_table_may_have(sqlite3 *database, const char *kind)
{
	char word[64]; // a kind stands between two NULs
	size_t length = strnlen(kind, sizeof(word) - 2);
	memset(word, 0, sizeof(word));
	memcpy(word + 1, kind, length);
	return any_row(database, "SELECT 1 FROM main.span_block WHERE instr(words, ?1) > 0 LIMIT 1",
		       word, length + 2) ||
	       any_row(database, "SELECT 1 FROM main.span WHERE kind = CAST(?1 AS TEXT) LIMIT 1",
		       kind, length);
}
