// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What can still be read of a database that is truncated or damaged, copied into a private one, so
// that everything that reads runs reads this one too and knows nothing of damage.

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trace/reader_internal.h"
#include "trace/store.h"

// Rows are looked for one by one so far behind the last that was found.
#define PROBES_MAX 20000

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
	{"event", "id", true},
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
	for (int i = 1; i < n; i++) {
		sqlite3_bind_value(s->insert, i, sqlite3_column_value(row, i));
	}
	// A row that does not fit the schema is lost like one that cannot be read.
	if (sqlite3_step(s->insert) == SQLITE_DONE) {
		s->rows++;
	}
	sqlite3_reset(s->insert);
	s->last = sqlite3_column_int64(row, 0);
}

static sqlite3_stmt *prepare_select(const struct salvage *s, const char *rest)
{
	struct text sql = {0};
	sqlite3_stmt *statement = NULL;
	text_format(&sql, "SELECT %s, %s FROM %s NOT INDEXED %s", s->table->key, s->columns,
		s->table->name, rest);
	sqlite3_prepare_v2(s->from, sql.data ? sql.data : "", -1, &statement, NULL);
	text_done(&sql);
	return statement;
}

// Copies rows until the end (true) or the first that cannot be read.
static bool copy_rows(struct salvage *s, const char *order)
{
	sqlite3_stmt *statement = prepare_select(s, order);
	int result = SQLITE_ERROR;
	while (statement && (result = sqlite3_step(statement)) == SQLITE_ROW) {
		copy_row(s, statement);
	}
	sqlite3_finalize(statement);
	return result == SQLITE_DONE;
}

static void probe_rows(struct salvage *s, sqlite3_int64 from, sqlite3_int64 to)
{
	sqlite3_stmt *statement = prepare_select(s, "WHERE rowid = ?1");
	unsigned failed = 0;
	for (sqlite3_int64 id = from; statement && id < to && failed < PROBES_MAX; id++) {
		sqlite3_bind_int64(statement, 1, id);
		int result = sqlite3_step(statement);
		if (result == SQLITE_ROW) {
			copy_row(s, statement);
		}
		failed = result == SQLITE_ROW ? 0 : failed + 1;
		sqlite3_reset(statement);
	}
	sqlite3_finalize(statement);
}

// From the front, from the back, then one by one what lies between.
static void salvage_rows(struct salvage *s)
{
	s->last = 0;
	if (copy_rows(s, "")) {
		return;
	}
	sqlite3_int64 front = s->last;
	s->last = INT64_MAX;
	copy_rows(s, s->table->by_number ? "ORDER BY rowid DESC" : "");
	if (s->table->by_number && front < INT64_MAX) {
		probe_rows(s, front + 1, s->last);
	}
}

static void salvage_table(struct salvage *s)
{
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

static int open_damaged(const char *path, sqlite3 **ret)
{
	int result = sqlite3_open_v2(path, ret, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
	if (result == SQLITE_OK) {
		sqlite3_db_config(*ret, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		sqlite3_limit(*ret, SQLITE_LIMIT_LENGTH, (int)(2 * BLOCK_MAX_BYTES));
		// Lets SQLite open a file that is shorter than its header says.
		store_exec(*ret, "PRAGMA writable_schema = ON; PRAGMA cell_size_check = ON");
	}
	return result;
}

static int create_target(sqlite3 **ret)
{
	// "" is a database in a file of its own that SQLite removes.
	int result = sqlite3_open_v2(
		"", ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (result == SQLITE_OK) {
		result = store_exec(*ret, "PRAGMA journal_mode = OFF; BEGIN");
	}
	return result == SQLITE_OK ? store_exec(*ret, schema_sql) : result;
}

int salvage_database(const char *path, sqlite3 **ret, uint64_t *ret_rows, struct error *e)
{
	struct salvage s = {0};
	int result = open_damaged(path, &s.from);
	if (result == SQLITE_OK) {
		result = create_target(&s.to);
	}
	for (size_t i = 0; result == SQLITE_OK && i < ARRAY_LENGTH(tables); i++) {
		s.table = &tables[i];
		salvage_table(&s);
	}
	if (result == SQLITE_OK) {
		result = store_exec(s.to, "COMMIT; PRAGMA query_only = ON");
	}
	sqlite3_close(s.from);
	if (result != SQLITE_OK) {
		sqlite3_close(s.to);
		return store_error(NULL, result, e, path);
	}
	*ret = s.to;
	*ret_rows = s.rows;
	return 0;
}
