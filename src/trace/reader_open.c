// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Ways to open a run file for reading. SQLite needs to write beside a file in WAL mode even to read
// it; where the directory does not allow that, an immutable file or a private copy does.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trace/reader_internal.h"
#include "trace/store.h"

#define BUSY_TIMEOUT_MS 5000

// A schema from elsewhere may hold functions and views of any kind: none of them is trusted, and
// nothing is longer than a block can be.
static void harden(sqlite3 *database)
{
	sqlite3_extended_result_codes(database, 1);
	sqlite3_busy_timeout(database, BUSY_TIMEOUT_MS);
	sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(database, SQLITE_LIMIT_LENGTH, (int)(2 * BLOCK_MAX_BYTES));
	store_exec(database, "PRAGMA cell_size_check = ON; PRAGMA cache_size = -8192");
}

// Opens and reads something, because SQLite opens files lazily.
static int try_open(const char *uri, sqlite3 **ret)
{
	sqlite3 *database = NULL;
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
	int result = sqlite3_open_v2(uri, &database, flags, NULL);
	if (result == SQLITE_OK) {
		harden(database);
		result = store_exec(database, "SELECT 1 FROM sqlite_master LIMIT 1");
	}
	if (result != SQLITE_OK) {
		sqlite3_close(database);
		return result;
	}
	*ret = database;
	return SQLITE_OK;
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
	text_format(&uri, "?mode=ro%s", query);
	return text_steal(&uri);
}

bool reader_has_sibling(const char *path, const char *suffix)
{
	_cleanup_free_ char *name = NULL;
	struct stat st;
	return asprintf(&name, "%s%s", path, suffix) >= 0 && stat(name, &st) == 0 && st.st_size > 0;
}

static int copy_file(const char *from, const char *to)
{
	_cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC);
	if (in < 0) {
		return -errno;
	}
	_cleanup_close_ int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0) {
		return -errno;
	}
	ssize_t n;
	while ((n = sendfile(out, in, NULL, 1 << 20)) > 0) {
	}
	return n < 0 ? -errno : 0;
}

static const char *const copied_suffixes[] = {"", "-wal", "-journal"};

static int copy_into(const char *path, const char *directory)
{
	for (size_t i = 0; i < ARRAY_LENGTH(copied_suffixes); i++) {
		_cleanup_free_ char *from = NULL, *to = NULL;
		if (asprintf(&from, "%s%s", path, copied_suffixes[i]) < 0 ||
			asprintf(&to, "%s/run%s", directory, copied_suffixes[i]) < 0) {
			return -ENOMEM;
		}
		int r = copy_file(from, to);
		if (r < 0 && (i == 0 || r != -ENOENT)) {
			return r;
		}
	}
	return 0;
}

static void remove_copy(const char *directory)
{
	static const char *const suffixes[] = {"", "-wal", "-journal", "-shm"};
	for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++) {
		_cleanup_free_ char *name = NULL;
		if (asprintf(&name, "%s/run%s", directory, suffixes[i]) >= 0) {
			unlink(name);
		}
	}
	rmdir(directory);
}

// Writes what WAL or journal hold into the copy, so that it needs nobody beside it.
static int settle_copy(const char *copy)
{
	sqlite3 *database = NULL;
	int result = sqlite3_open_v2(copy, &database, SQLITE_OPEN_READWRITE, NULL);
	if (result == SQLITE_OK) {
		harden(database);
		result = store_exec(database, "PRAGMA journal_mode = DELETE");
	}
	sqlite3_close(database);
	return result;
}

// The copy has no name any more when this returns: it goes with the connection.
static int open_copy(const char *path, sqlite3 **ret, struct error *e)
{
	const char *temporary = getenv("TMPDIR");
	_cleanup_free_ char *directory = NULL, *copy = NULL;
	if (asprintf(&directory, "%s/strain-XXXXXX", temporary ? temporary : "/tmp") < 0) {
		return error_errno(e, ENOMEM, "%s", path);
	}
	if (!mkdtemp(directory)) {
		return error_errno(e, errno, "cannot make a copy of %s in %s", path, directory);
	}
	int result = SQLITE_NOMEM, r = copy_into(path, directory);
	if (r == 0 && asprintf(&copy, "%s/run", directory) >= 0) {
		result = settle_copy(copy);
	}
	_cleanup_free_ char *uri = copy ? make_uri(copy, "&immutable=1") : NULL;
	if (r == 0 && result == SQLITE_OK && uri) {
		result = try_open(uri, ret);
	}
	remove_copy(directory);
	if (r < 0) {
		return error_errno(e, -r, "cannot copy %s to %s", path, directory);
	}
	return result == SQLITE_OK ? 0 : store_error(NULL, result, e, path);
}

int reader_open_database(const char *path, sqlite3 **ret, struct error *e)
{
	_cleanup_free_ char *plain = make_uri(path, ""),
			    *immutable = make_uri(path, "&immutable=1");
	if (!plain || !immutable) {
		return error_errno(e, ENOMEM, "%s", path);
	}
	int result = try_open(plain, ret);
	int primary = result & 0xff;
	if (primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY || primary == SQLITE_IOERR) {
		if (reader_has_sibling(path, "-wal") || reader_has_sibling(path, "-journal")) {
			return open_copy(path, ret, e);
		}
		result = try_open(immutable, ret);
	}
	return result == SQLITE_OK ? 0 : store_error(NULL, result, e, path);
}
