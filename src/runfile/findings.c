// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reading and writing findings.
//
// A finished file is a single file in DELETE mode. It is opened as immutable: SQLite takes no locks
// and opens no file beside it, so files of other users cannot interfere. Its status is compared
// afterwards, because the file may have been changed meanwhile. reader_open's checks, which read
// every page, are left out; the bound on statements ends a query over pages that refer to each
// other.

#include "runfile/findings.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "runfile/database.h"
#include "runfile/writer.h"

enum {
	ROWS_MAX = 3 * RUN_KEYS_MAX,
	TEXT_BYTES_MAX = 1 << 20, // of all rows
	STATEMENT_STEPS = 1 << 22, // SQLite instructions; a run needs some 10,000
};

// Fields of SQLite's header (https://sqlite.org/fileformat2.html), all big-endian.
enum {
	HEADER_BYTES = 100,
	PAGE_SIZE_AT = 16, // 2 bytes; 1 stands for 65536
	WRITE_FORMAT_AT = 18, // 1: a journal; 2: WAL
	PAGES_AT = 28,
	VERSION_AT = 60, // PRAGMA user_version
	APPLICATION_AT = 68,
};

#define FIRST_VERSION 1004 // the first schema version with the table

// Rows --------------------------------------------------------------------------------------------

int findings_add(struct findings *f, enum findings_table table, const char *name, const char *text,
	double number)
{
	size_t name_size = strlen(name) + 1, text_size = text ? strlen(text) + 1 : 0;
	void *rows = f->rows;
	char *copy = malloc(name_size + text_size);
	if (!copy || array_reserve(&rows, &f->capacity, f->n + 1, sizeof(*f->rows)) < 0) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, name, name_size);
	if (text) {
		memcpy(copy + name_size, text, text_size);
	}
	f->rows = rows;
	f->rows[f->n++] = (struct findings_row){
		table, copy, text ? copy + name_size : NULL, isfinite(number) ? number : NAN};
	return 0;
}

void findings_done(struct findings *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->rows[i].name);
	}
	free(f->rows);
	*f = (struct findings){0};
}

static int compare_rows(const void *left, const void *right)
{
	const struct findings_row *a = left, *b = right;
	return a->table != b->table ? (a->table < b->table ? -1 : 1) : strcmp(a->name, b->name);
}

void findings_sort(struct findings *f)
{
	if (f->n > 1) {
		qsort(f->rows, f->n, sizeof(*f->rows), compare_rows);
	}
}

const struct findings_row *findings_find(
	const struct findings *f, enum findings_table table, const char *name)
{
	const struct findings_row wanted = {.table = table, .name = (char *)(uintptr_t)name};
	return f->n > 0 ? bsearch(&wanted, f->rows, f->n, sizeof(*f->rows), compare_rows) : NULL;
}

const char *findings_text(const struct findings *f, enum findings_table table, const char *name)
{
	const struct findings_row *row = findings_find(f, table, name);
	return row ? row->text : NULL;
}

double findings_number(const struct findings *f, const char *name)
{
	const struct findings_row *row = findings_find(f, FINDINGS_FINDING, name);
	return row ? row->number : NAN;
}

// Opening -----------------------------------------------------------------------------------------

static uint64_t header_number(const unsigned char *header, size_t at, size_t bytes)
{
	uint64_t number = 0;
	for (size_t i = 0; i < bytes; i++) {
		number = number << 8 | header[at + i];
	}
	return number;
}

// Whether the file is a complete run that is not in WAL mode.
static bool is_settled(int fd, const struct stat *status)
{
	unsigned char header[HEADER_BYTES];
	if (!S_ISREG(status->st_mode) ||
		pread(fd, header, sizeof(header), 0) != (ssize_t)sizeof(header)) {
		return false;
	}
	uint64_t page = header_number(header, PAGE_SIZE_AT, 2);
	uint64_t bytes = (page == 1 ? 65536 : page) * header_number(header, PAGES_AT, 4);
	return header[WRITE_FORMAT_AT] == 1 &&
	       header_number(header, APPLICATION_AT, 4) == STORE_APPLICATION_ID &&
	       header_number(header, VERSION_AT, 4) / 1000 == STORE_VERSION_MAJOR &&
	       bytes == (uint64_t)status->st_size;
}

// Whether a journal beside the file may have to be played back before the file can be read.
static bool has_log(const char *path)
{
	static const char *const suffixes[] = {"-journal", "-wal"};
	for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++) {
		_cleanup_free_ char *name = NULL;
		struct stat status;
		if (asprintf(&name, "%s%s", path, suffixes[i]) < 0 ||
			(lstat(name, &status) == 0 && status.st_size > 0)) {
			return true;
		}
	}
	return false;
}

static bool is_unchanged(const char *path, const struct stat *before)
{
	struct stat now;
	return stat(path, &now) == 0 && now.st_dev == before->st_dev &&
	       now.st_ino == before->st_ino && now.st_size == before->st_size &&
	       now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

static int unsuitable(const char *path, struct error *e)
{
	return error_set(e, ENODATA, "%s: has no findings, or is still written", path);
}

static int open_settled(const char *path, sqlite3 **ret, struct stat *ret_status,
	uint64_t *ret_version, struct error *e)
{
	unsigned char version[4] = {0};
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, ret_status) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	if (!is_settled(fd, ret_status) || has_log(path) ||
		pread(fd, version, sizeof(version), VERSION_AT) != (ssize_t)sizeof(version)) {
		return unsuitable(path, e);
	}
	*ret_version = header_number(version, 0, sizeof(version));
	sqlite3 *database = NULL;
	if (database_open(path, DATABASE_FROZEN, NULL, &database, NULL) != SQLITE_OK) {
		return unsuitable(path, e);
	}
	database_bound_statements(database, STATEMENT_STEPS);
	if (database_check_schema(database, NULL) < 0) {
		database_close(database);
		return unsuitable(path, e);
	}
	*ret = database;
	return 0;
}

int findings_open(const char *path, sqlite3 **ret, struct error *e)
{
	struct stat status;
	uint64_t version;
	return open_settled(path, ret, &status, &version, e);
}

// Reading -----------------------------------------------------------------------------------------

static double number_at(sqlite3_stmt *row, int column)
{
	return sqlite3_column_type(row, column) == SQLITE_NULL ? NAN
	                                                       : sqlite3_column_double(row, column);
}

// Returns SQLite's result; SQLITE_TOOBIG for more rows or bytes than a run can have.
static int read_rows(sqlite3 *database, struct findings *f)
{
	static const char sql[] = "SELECT 0, key, value, NULL FROM run"
				  " UNION ALL SELECT 1, name, value, NULL FROM label"
				  " UNION ALL SELECT 2, name, text, number FROM finding";
	_cleanup_statement_ sqlite3_stmt *row = NULL;
	size_t bytes = 0;
	int result = sqlite3_prepare_v2(database, sql, -1, &row, NULL);
	while (result == SQLITE_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(row, 1);
		const char *text = (const char *)sqlite3_column_text(row, 2);
		bytes += (size_t)sqlite3_column_bytes(row, 1) +
		         (size_t)sqlite3_column_bytes(row, 2);
		if (f->n >= ROWS_MAX || bytes > TEXT_BYTES_MAX) {
			return SQLITE_TOOBIG;
		}
		result = name && findings_add(f, (enum findings_table)sqlite3_column_int(row, 0),
					 name, text, number_at(row, 3)) == 0
		                 ? SQLITE_OK
		                 : SQLITE_NOMEM;
	}
	return result;
}

int findings_read(const char *path, struct findings *ret, struct error *e)
{
	struct findings found = {0};
	struct stat before;
	sqlite3 *database = NULL;
	uint64_t version = 0;
	int r = open_settled(path, &database, &before, &version, e);
	if (r < 0) {
		return r;
	}
	int result = version < FIRST_VERSION ? SQLITE_ERROR : read_rows(database, &found);
	findings_sort(&found);
	const char *state = findings_text(&found, FINDINGS_KEY, "state");
	bool usable = result == SQLITE_DONE && is_unchanged(path, &before) && state &&
	              strcmp(state, "finished") == 0 && found.n > 0 &&
	              found.rows[found.n - 1].table == FINDINGS_FINDING;
	database_close(database);
	if (!usable) {
		findings_done(&found);
		return result == SQLITE_NOMEM ? error_errno(e, ENOMEM, "%s", path)
		                              : unsuitable(path, e);
	}
	*ret = found;
	return 0;
}

// Writing -----------------------------------------------------------------------------------------

static int insert(sqlite3_stmt *statement, const struct findings_row *row)
{
	_cleanup_text_ struct text text = {0};
	sqlite3_clear_bindings(statement); // unbound parameters are NULL
	sqlite3_bind_text(statement, 1, row->name, -1, SQLITE_STATIC);
	if (isfinite(row->number)) {
		sqlite3_bind_double(statement, 2, row->number);
	}
	if (row->text) {
		text_append_utf8(&text, row->text, strlen(row->text));
		sqlite3_bind_text(statement, 3, text.data ? text.data : "", -1, SQLITE_TRANSIENT);
	}
	int result = sqlite3_step(statement);
	sqlite3_reset(statement);
	return result == SQLITE_DONE ? SQLITE_OK : result;
}

int findings_put(struct writer *w, const struct findings *f)
{
	sqlite3 *database = writer_database(w);
	_cleanup_statement_ sqlite3_stmt *statement = NULL;
	if (!database_has_table(database, "finding")) {
		return 0;
	}
	int result = database_exec(database, "DELETE FROM finding");
	result = result == SQLITE_OK
	                 ? sqlite3_prepare_v2(database, "INSERT INTO finding VALUES (?1, ?2, ?3)",
				   -1, &statement, NULL)
	                 : result;
	for (size_t i = 0; i < f->n && result == SQLITE_OK; i++) {
		if (f->rows[i].table == FINDINGS_FINDING) {
			result = insert(statement, &f->rows[i]);
		}
	}
	return database_errno(database, result);
}
