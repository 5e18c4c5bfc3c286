// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What can still be read of a database that is truncated or damaged, copied into a private one, so
// that everything that reads runs reads this one too and knows nothing of damage.

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trace/database.h"
#include "trace/reader_internal.h"
#include "trace/schema_check.h"
#include "trace/store.h"

// Places in a table that cannot be read, one after the other, before it is given up.
#define GAPS_MAX 10000
#define UNNUMBERED_MAX 100000
// What is copied, beside the file's own bytes.
#define COPIED_MIN_BYTES (UINT64_C(1) << 20)
#define COPIED_PER_BYTE 2
// How far behind a place that cannot be read others are looked for.
#define GAP_MAX (INT64_C(1) << 40)

static const struct salvaged_table {
	const char *name;
	const char *key; // what the table is ordered by
	bool by_number; // rows can be asked for by rowid
} tables[] = {
	{"run", "key", false},
	{"label", "name", false},
	{"entity", "id", true},
	{"metric", "id", true},
	{"missing", "rowid", true},
	{"clock", "id", true},
	{"block", "id", true},
	{"span", "id", true},
	{"span_block", "id", true},
	{"event", "id", true},
	{"profile_object", "id", true},
	{"profile_sample", "rowid", true},
	{"profile_symbol", "rowid", true},
	{"phase_sample", "rowid", true},
	{"line_sample", "rowid", true},
	{"summary", "rowid", true},
};

struct salvage {
	sqlite3 *from;
	sqlite3 *to;
	const struct salvaged_table *table;
	char *columns; // of the target's schema: a newer file may have more
	sqlite3_stmt *insert;
	uint64_t rows;
	sqlite3_int64 last; // rowid of the last row that was copied
	uint64_t bytes_left; // that may be copied: rows that share pages can be more than the file
};

static char *list_columns(sqlite3 *database, const char *table)
{
	struct text list = {0};
	sqlite3_stmt *statement = NULL;
	if (sqlite3_prepare_v2(database, "SELECT name FROM pragma_table_info(?1)", -1, &statement,
		    NULL) == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
		while (sqlite3_step(statement) == SQLITE_ROW) {
			text_format(&list, "%s\"%s\"", list.length ? ", " : "",
				(const char *)sqlite3_column_text(statement, 0));
		}
	}
	sqlite3_finalize(statement);
	return text_steal(&list);
}

static char *make_insert(sqlite3 *database, const struct salvaged_table *table, const char *columns)
{
	struct text sql = {0};
	sqlite3_stmt *statement = NULL;
	text_format(&sql, "SELECT %s FROM %s", columns, table->name);
	sqlite3_prepare_v2(database, sql.data ? sql.data : "", -1, &statement, NULL);
	int n = sqlite3_column_count(statement);
	sqlite3_finalize(statement);
	text_clear(&sql);
	text_format(&sql, "INSERT OR IGNORE INTO %s (%s) VALUES (", table->name, columns);
	for (int i = 1; i <= n; i++) {
		text_format(&sql, "%s?%d", i > 1 ? ", " : "", i);
	}
	text_append_string(&sql, ")");
	return text_steal(&sql);
}

static void copy_row(struct salvage *s, sqlite3_stmt *row)
{
	// The first column is the row's key; the table's columns follow.
	int n = sqlite3_column_count(row);
	uint64_t bytes = 0;
	for (int i = 1; i < n; i++) {
		bytes += (uint64_t)sqlite3_column_bytes(row, i);
	}
	s->bytes_left -= bytes < s->bytes_left ? bytes : s->bytes_left;
	for (int i = 1; i < n; i++) {
		sqlite3_bind_value(s->insert, i, sqlite3_column_value(row, i));
	}
	// A row that does not fit the schema is lost like one that cannot be read.
	if (sqlite3_step(s->insert) == SQLITE_DONE) {
		s->rows++;
	}
	sqlite3_reset(s->insert);
}

static sqlite3_stmt *prepare_select(const struct salvage *s, const char *columns, const char *rest)
{
	struct text sql = {0};
	sqlite3_stmt *statement = NULL;
	text_format(&sql, "SELECT %s, %s FROM %s NOT INDEXED %s", s->table->key, columns,
		s->table->name, rest);
	sqlite3_prepare_v2(s->from, sql.data ? sql.data : "", -1, &statement, NULL);
	text_done(&sql);
	return statement;
}

// Copies rows until the end (true) or the first that cannot be read. Pages that refer to each other
// can give the same rows for ever: numbers that do not rise are damage, and of rows without
// numbers there are not so many.
static bool copy_rows(struct salvage *s, const char *order, sqlite3_int64 from)
{
	sqlite3_stmt *statement = prepare_select(s, s->columns, order);
	int result = SQLITE_ERROR;
	sqlite3_bind_int64(statement, 1, from);
	for (uint64_t n = 0; statement && (result = sqlite3_step(statement)) == SQLITE_ROW; n++) {
		sqlite3_int64 number = sqlite3_column_int64(statement, 0);
		if (s->bytes_left == 0 ||
			(s->table->by_number ? number <= s->last : n >= UNNUMBERED_MAX)) {
			result = SQLITE_CORRUPT;
			break;
		}
		copy_row(s, statement);
		s->last = number;
	}
	sqlite3_finalize(statement);
	return result == SQLITE_DONE;
}

// Whether the first row from this id on can be found, or that there is none.
static bool can_seek(sqlite3_stmt *seek, sqlite3_int64 id)
{
	sqlite3_bind_int64(seek, 1, id);
	int result = sqlite3_step(seek);
	sqlite3_reset(seek);
	return result == SQLITE_ROW || result == SQLITE_DONE;
}

// The first id behind `bad` from which rows can be found; a page that is damaged hides a range of
// them. 0: none.
static sqlite3_int64 find_end_of_gap(sqlite3_stmt *seek, sqlite3_int64 bad)
{
	sqlite3_int64 step = 1;
	while (!can_seek(seek, bad + step)) {
		step *= 2;
		if (step > GAP_MAX) {
			return 0;
		}
	}
	sqlite3_int64 low = bad + step / 2, high = bad + step;
	while (high - low > 1) {
		sqlite3_int64 middle = low + (high - low) / 2;
		if (can_seek(seek, middle)) {
			high = middle;
		} else {
			low = middle;
		}
	}
	return high;
}

static void salvage_numbered(struct salvage *s)
{
	static const char rest[] = "WHERE rowid >= ?1 ORDER BY rowid";
	sqlite3_stmt *seek = prepare_select(s, "rowid", rest);
	sqlite3_int64 from = 1;
	for (unsigned gaps = 0; seek && gaps < GAPS_MAX && s->bytes_left > 0; gaps++) {
		s->last = from - 1;
		if (copy_rows(s, rest, from) || s->last > INT64_MAX - 2 * GAP_MAX) {
			break;
		}
		from = find_end_of_gap(seek, s->last + 1);
		if (from == 0) {
			break;
		}
	}
	sqlite3_finalize(seek);
}

// A table without numbers is read from the front, then from the back.
static void salvage_rows(struct salvage *s)
{
	if (s->table->by_number) {
		salvage_numbered(s);
		return;
	}
	char backwards[32];
	snprintf(backwards, sizeof(backwards), "ORDER BY %s DESC", s->table->key);
	if (!copy_rows(s, "", 0)) {
		copy_rows(s, backwards, 0);
	}
}

static void salvage_table(struct salvage *s)
{
	// Of another text, it could do anything: a generated column, a view that never ends.
	if (!schema_has_table(s->from, s->table->name)) {
		return;
	}
	_cleanup_free_ char *columns = list_columns(s->to, s->table->name);
	_cleanup_free_ char *insert = columns ? make_insert(s->to, s->table, columns) : NULL;
	if (!insert || sqlite3_prepare_v2(s->to, insert, -1, &s->insert, NULL) != SQLITE_OK) {
		return;
	}
	s->columns = columns;
	salvage_rows(s);
	sqlite3_finalize(s->insert);
	s->insert = NULL;
	s->columns = NULL;
}

static int open_damaged(const char *path, sqlite3 **ret, uint64_t *ret_bytes, struct error *e)
{
	struct stat status;
	if (stat(path, &status) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	*ret_bytes = (uint64_t)status.st_size;
	bool frozen = reader_is_copied(path);
	int result = database_open(
		path, frozen ? DATABASE_DAMAGED_FROZEN : DATABASE_DAMAGED, NULL, ret, e);
	return result == SQLITE_OK ? 0 : -EBADMSG;
}

static int create_target(const char *path, sqlite3 **ret, struct error *e)
{
	int result = database_open(path, DATABASE_PRIVATE, NULL, ret, e);
	if (result != SQLITE_OK) {
		return store_errno(NULL, result);
	}
	result = store_exec(*ret, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN");
	result = result == SQLITE_OK ? store_exec(*ret, schema_sql) : result;
	return result == SQLITE_OK ? 0 : store_error(*ret, result, e, path);
}

int salvage_database(const char *path, sqlite3 **ret, uint64_t *ret_rows, struct error *e)
{
	struct salvage s = {0};
	uint64_t bytes = 0;
	int r = open_damaged(path, &s.from, &bytes, e);
	r = r < 0 ? r : create_target(path, &s.to, e);
	s.bytes_left = COPIED_MIN_BYTES + COPIED_PER_BYTE * bytes;
	for (size_t i = 0; r == 0 && i < ARRAY_LENGTH(tables); i++) {
		s.table = &tables[i];
		salvage_table(&s);
	}
	if (r == 0) {
		int result = store_exec(s.to, "COMMIT; PRAGMA query_only = ON");
		r = result == SQLITE_OK ? 0 : store_error(s.to, result, e, path);
	}
	database_close(s.from);
	if (r < 0) {
		database_close(s.to);
		return r;
	}
	*ret = s.to;
	*ret_rows = s.rows;
	return 0;
}
