// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Opening databases, hardened.

#include "trace/database.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trace/bounds.h"
#include "trace/codec.h"
#include "trace/store.h"

#define BUSY_TIMEOUT_MS 5000

static const struct {
	int option;
	int value;
} settings[] = {
	{SQLITE_DBCONFIG_DEFENSIVE, 1},
	{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
	{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
	{SQLITE_DBCONFIG_ENABLE_VIEW, 0}, // those in the file; TEMP views are ours
	{SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
};

// A block and what belongs to it is the longest value. The schema is short, and no query of ours is
// deep.
static const struct {
	int id;
	int value;
} limits[] = {
	{SQLITE_LIMIT_LENGTH, 2 * BLOCK_MAX_BYTES},
	{SQLITE_LIMIT_COLUMN, 512},
	{SQLITE_LIMIT_EXPR_DEPTH, 200},
	{SQLITE_LIMIT_TRIGGER_DEPTH, 1},
	{SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
	{SQLITE_LIMIT_WORKER_THREADS, 0},
};

static int too_long(void *nothing)
{
	(void)nothing;
	return 1;
}

void database_bound_statements(sqlite3 *database, int64_t instructions)
{
	// SQLite asks each time that a statement has taken so many: the first time is the last.
	int n = instructions > INT_MAX ? INT_MAX : (int)instructions;
	sqlite3_progress_handler(database, n, n ? too_long : NULL, NULL);
}

static int harden(sqlite3 *database, enum database_use use)
{
	bool damaged = use == DATABASE_DAMAGED || use == DATABASE_DAMAGED_FROZEN;
	sqlite3_extended_result_codes(database, 1);
	sqlite3_busy_timeout(database, BUSY_TIMEOUT_MS);
	for (size_t i = 0; i < ARRAY_LENGTH(settings); i++) {
		// DEFENSIVE would not let a damaged schema be passed over.
		if (settings[i].option != SQLITE_DBCONFIG_DEFENSIVE || !damaged) {
			sqlite3_db_config(database, settings[i].option, settings[i].value, NULL);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
		sqlite3_limit(database, limits[i].id, limits[i].value);
	}
	database_bound_statements(database, INT_MAX);
	if (damaged) {
		// Lets SQLite open a file that is shorter than its header says.
		store_exec(database, "PRAGMA writable_schema = ON");
	}
	store_exec(database, "PRAGMA cache_size = -8192"); // reads the file, which may be none
	return store_exec(database, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0");
}

// "file:PATH?QUERY" with everything but plain characters escaped. NULL: out of memory.
static char *make_uri(const char *path, const char *query)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
	struct text uri = {0};
	// An empty authority, because a path that begins with two slashes would be one.
	text_append_string(&uri, path[0] == '/' ? "file://" : "file:");
	for (const char *c = path; *c; c++) {
		if (strchr(plain, *c)) {
			text_append(&uri, c, 1);
		} else {
			text_format(&uri, "%%%02x", (unsigned char)*c);
		}
	}
	text_append_string(&uri, query);
	return text_steal(&uri);
}

int database_open(
	const char *path, enum database_use use, const char *vfs, sqlite3 **ret, struct error *e)
{
	static const struct {
		int flags;
		const char *query;
	} ways[] = {
		[DATABASE_READ] = {SQLITE_OPEN_READONLY, "?mode=ro"},
		[DATABASE_FROZEN] = {SQLITE_OPEN_READONLY, "?mode=ro&immutable=1"},
		[DATABASE_DAMAGED] = {SQLITE_OPEN_READONLY, "?mode=ro"},
		[DATABASE_DAMAGED_FROZEN] = {SQLITE_OPEN_READONLY, "?mode=ro&immutable=1"},
		[DATABASE_WRITE] = {SQLITE_OPEN_READWRITE, ""},
		[DATABASE_CREATE] = {SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ""},
		[DATABASE_PRIVATE] = {SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL},
	};
	_cleanup_free_ char *uri = ways[use].query ? make_uri(path, ways[use].query) : strdup("");
	sqlite3 *database = NULL;
	if (!uri) {
		error_errno(e, ENOMEM, "%s", path);
		return SQLITE_NOMEM;
	}
	sqlite3_hard_heap_limit64(SQLITE_BYTES_MAX);
	int result = sqlite3_open_v2(
		uri, &database, ways[use].flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, vfs);
	result = result == SQLITE_OK ? harden(database, use) : result;
	if (result != SQLITE_OK) {
		store_error(database, result, e, path);
		sqlite3_close(database);
		return result;
	}
	*ret = database;
	return SQLITE_OK;
}

void database_close(sqlite3 *database)
{
	sqlite3_close(database);
}
