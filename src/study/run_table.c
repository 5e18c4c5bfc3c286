// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fills and queries the tables. Names and values of labels come from run files: they enter
// queries as bound values or as quoted constants only.

#include "study/run_table.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "runfile/database.h"

// Values ------------------------------------------------------------------------------------------

bool run_table_size(const char *value, double *ret)
{
	char *end;
	uint64_t bytes;
	*ret = strtod(value, &end);
	if (end != value && !*end && isfinite(*ret)) {
		return true;
	}
	size_t length = strlen(value);
	size_t rate = length > 2 && strcmp(value + length - 2, "/s") == 0 ? 2 : 0;
	_cleanup_free_ char *size = strndup(value, length - rate);
	bool is = size && parse_size(size, &bytes, NULL) == 0;
	*ret = is ? (double)bytes : NAN;
	return is;
}

int run_table_compare(const char *a, const char *b)
{
	double x, y;
	if (!a || !b) {
		return !a - !b;
	}
	if (strcmp(a, b) == 0) {
		return 0;
	}
	bool left = run_table_size(a, &x), right = run_table_size(b, &y);
	if (left != right) {
		return left ? -1 : 1;
	}
	int order = left ? (x > y) - (x < y) : 0;
	return order ? order : strcmp(a, b);
}

static int collate(void *nothing, int n_a, const void *a, int n_b, const void *b)
{
	(void)nothing;
	_cleanup_free_ char *left = strndup(a, (size_t)n_a), *right = strndup(b, (size_t)n_b);
	return left && right ? run_table_compare(left, right) : 0;
}

static void is_number(sqlite3_context *context, int n, sqlite3_value **values)
{
	(void)n;
	const char *value = (const char *)sqlite3_value_text(values[0]);
	char *end = NULL;
	if (!value) {
		sqlite3_result_null(context);
	} else {
		(void)strtod(value, &end);
		sqlite3_result_int(context, end != value && !*end);
	}
}

// Filling -----------------------------------------------------------------------------------------

static int create(sqlite3 *database)
{
	_cleanup_text_ struct text sql = {0};
	text_append_string(&sql,
		"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;"
		"CREATE TABLE label (run INTEGER, name TEXT, value TEXT COLLATE label, given "
		"INTEGER,"
		" UNIQUE (name, run));"
		"CREATE INDEX label_by_run ON label (run);"
		"CREATE TABLE run (id INTEGER PRIMARY KEY, command TEXT, start_ns INTEGER,"
		" success INTEGER");
	for (size_t i = 0; i < N_MEASURES; i++) { // outcome and verdict are the last of them
		text_format(&sql, ", %s", measures[i].name);
	}
	text_append_string(&sql, ")");
	return sql.failed ? SQLITE_NOMEM : database_exec(database, sql.data);
}

static sqlite3_stmt *prepare(sqlite3 *database, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
	return statement;
}

static int step(sqlite3_stmt *statement)
{
	int result = sqlite3_step(statement);
	sqlite3_reset(statement);
	return result == SQLITE_DONE ? SQLITE_OK : result;
}

static sqlite3_stmt *prepare_run(sqlite3 *database)
{
	_cleanup_text_ struct text sql = {0};
	text_append_string(&sql, "INSERT INTO run VALUES (?, ?, ?, ?");
	for (size_t i = 0; i < N_MEASURES; i++) {
		text_append_string(&sql, ", ?");
	}
	text_append_string(&sql, ")");
	return sql.failed ? NULL : prepare(database, sql.data);
}

static int insert_run(sqlite3_stmt *insert, const struct digest *run, size_t id)
{
	enum { FIRST_MEASURE = 5 };
	sqlite3_clear_bindings(insert);
	sqlite3_bind_int64(insert, 1, (sqlite3_int64)id);
	sqlite3_bind_text(insert, 2, run->command, -1, SQLITE_STATIC);
	sqlite3_bind_int64(insert, 3, run->start_utc_ns);
	sqlite3_bind_int(insert, 4, outcome_is_success(run->outcome));
	for (size_t i = 0; i < N_MEASURES; i++) {
		int column = FIRST_MEASURE + (int)i;
		if (i == MEASURE_OUTCOME || i == MEASURE_VERDICT) {
			sqlite3_bind_text(insert, column,
				i == MEASURE_OUTCOME ? outcome_word(run->outcome) : run->verdict,
				-1, SQLITE_STATIC);
		} else if (isfinite(run->measures[i])) {
			sqlite3_bind_double(insert, column, run->measures[i]);
		}
	}
	return step(insert);
}

static int insert_label(
	sqlite3_stmt *insert, size_t run, const char *name, const char *value, bool given)
{
	if (!value) {
		return SQLITE_OK;
	}
	sqlite3_bind_int64(insert, 1, (sqlite3_int64)run);
	sqlite3_bind_text(insert, 2, name, -1, SQLITE_STATIC);
	sqlite3_bind_text(insert, 3, value, -1, SQLITE_STATIC);
	sqlite3_bind_int(insert, 4, given);
	return step(insert);
}

static int fill(
	sqlite3 *database, const struct digest *const *runs, const char *const *sources, size_t n)
{
	_cleanup_statement_ sqlite3_stmt *run = prepare_run(database);
	_cleanup_statement_ sqlite3_stmt *label = prepare(
		database, "INSERT OR IGNORE INTO label VALUES (?, ?, ?, ?)");
	int result = run && label ? SQLITE_OK : SQLITE_NOMEM;
	for (size_t i = 0; i < n && result == SQLITE_OK; i++) {
		result = insert_run(run, runs[i], i);
		for (size_t k = 0; k < runs[i]->n_labels && result == SQLITE_OK; k++) {
			const struct run_label *own = &runs[i]->labels[k];
			result = insert_label(label, i, own->name, own->value, true);
		}
	}
	for (size_t i = 0; i < n && result == SQLITE_OK; i++) {
		const struct {
			const char *name, *value;
		} known[] = {{"machine", *runs[i]->host ? runs[i]->host : NULL},
			{RUN_TABLE_SOURCE, sources ? sources[i] : NULL},
			{RUN_TABLE_RUN, runs[i]->name}, {RUN_TABLE_PATH, runs[i]->path}};
		for (size_t k = 0; k < ARRAY_LENGTH(known) && result == SQLITE_OK; k++) {
			result = insert_label(label, i, known[k].name, known[k].value, false);
		}
	}
	return result == SQLITE_OK ? database_exec(database, "COMMIT") : result;
}

int run_table_make(const struct digest *const *runs, const char *const *sources, size_t n,
	struct run_table *ret)
{
	sqlite3 *database = NULL;
	int result = database_open("", DATABASE_PRIVATE, NULL, &database, NULL);
	if (result == SQLITE_OK) {
		result = sqlite3_create_collation(database, "label", SQLITE_UTF8, NULL, collate);
	}
	if (result == SQLITE_OK) {
		result = sqlite3_create_function(database, "is_number", 1,
			SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, is_number, NULL, NULL);
	}
	result = result == SQLITE_OK ? create(database) : result;
	result = result == SQLITE_OK ? fill(database, runs, sources, n) : result;
	if (result != SQLITE_OK) {
		database_close(database);
		return -ENOMEM;
	}
	*ret = (struct run_table){.database = database, .n = n};
	return 0;
}

void run_table_done(struct run_table *t)
{
	database_close(t->database);
	*t = (struct run_table){0};
}

// Queries -----------------------------------------------------------------------------------------

void run_table_append_text(struct text *sql, const char *string)
{
	char *quoted = sqlite3_mprintf("%Q", string);
	text_append_string(sql, quoted ? quoted : "NULL");
	sql->failed = sql->failed || !quoted;
	sqlite3_free(quoted);
}

void run_table_append_label(struct text *sql, const char *label)
{
	text_append_string(sql, "(SELECT value FROM label WHERE run = id AND name = ");
	run_table_append_text(sql, label);
	text_append_string(sql, ") COLLATE label"); // that of a column ends at its subquery
}

sqlite3_stmt *run_table_query(struct run_table *t, const struct text *sql)
{
	sqlite3_stmt *query = sql->failed ? NULL : prepare(t->database, sql->data);
	t->failed = t->failed || !query;
	return query;
}

bool run_table_next(struct run_table *t, sqlite3_stmt *query)
{
	int result = query ? sqlite3_step(query) : SQLITE_DONE;
	t->failed = t->failed || (result != SQLITE_ROW && result != SQLITE_DONE);
	return result == SQLITE_ROW;
}

int64_t run_table_number(struct run_table *t, const struct text *sql)
{
	_cleanup_statement_ sqlite3_stmt *query = run_table_query(t, sql);
	return run_table_next(t, query) ? sqlite3_column_int64(query, 0) : 0;
}

void run_table_run(struct run_table *t, const char *sql)
{
	t->failed = t->failed || database_exec(t->database, sql) != SQLITE_OK;
}
