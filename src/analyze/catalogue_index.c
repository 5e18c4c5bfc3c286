// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The index of runs. Whatever fails here costs time only, so nothing is reported: a find finds
// nothing, a put keeps nothing. No WAL, which needs memory shared between those who use it: home
// directories lie on NFS. A power cut may damage the file: entries have sums, and a file that
// SQLite refuses is made anew by whoever has it alone (the lock beside it).

#include "analyze/catalogue_index.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "analyze/query.h"
#include "base/cache_folder.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "trace/crc32.h"
#include "trace/database.h"
#include "trace/store.h"

#define APPLICATION_ID 0x73747269 // "stri"
#define LAYOUT 2 // of the tables; other layouts have files of their own
#define FILE_NAME "runs-2.sqlite"
#define BUSY_TIMEOUT_MS 2000
#define FIGURE_NAME_MAX 400
#define COMMIT_EVERY_NS (NS_PER_S / 2) // what a command that is killed loses; others wait so long
#define KEPT_DAYS 180 // entries that nobody asked for
#define REFRESHED_DAYS 30 // how old the note is that somebody did
#define ENTRIES_MAX 200000
#define FIGURES_MAX 200000

struct catalogue_index {
	char *directory;
	sqlite3 *database;
	sqlite3_stmt *find;
	sqlite3_stmt *put;
	sqlite3_stmt *find_figure;
	sqlite3_stmt *put_figure;
	int lock; // shared while it is used
	uint32_t stamp;
	bool broken; // the file is none
	bool unwritable;
	bool changed;
	uint64_t begun_ns; // the transaction; 0: none
};

static int64_t today(void)
{
	return (int64_t)(clock_realtime_ns() / (86400 * NS_PER_S));
}

// --- the place

static char *name_in(const char *directory, const char *name, const char *suffix)
{
	struct text path = {0};
	text_format(&path, "%s/%s%s", directory, name, suffix);
	return text_steal(&path);
}

// --- opening

static const char schema[] =
	"BEGIN IMMEDIATE;"
	"CREATE TABLE IF NOT EXISTS entry (device INTEGER NOT NULL, inode INTEGER NOT NULL,"
	" stamp INTEGER NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,"
	" ctime_ns INTEGER NOT NULL, job_only INTEGER NOT NULL, used_day INTEGER NOT NULL,"
	" sum INTEGER NOT NULL, data BLOB NOT NULL,"
	" UNIQUE (device, inode, stamp)) STRICT;"
	"CREATE INDEX IF NOT EXISTS entry_used ON entry (used_day);"
	"CREATE TABLE IF NOT EXISTS figure (device INTEGER NOT NULL, inode INTEGER NOT NULL,"
	" stamp INTEGER NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL,"
	" mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, used_day INTEGER NOT NULL,"
	" sum INTEGER NOT NULL, value REAL, reason INTEGER NOT NULL, unit TEXT NOT NULL,"
	" PRIMARY KEY (device, inode, stamp, name)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX IF NOT EXISTS figure_used ON figure (used_day);"
	"PRAGMA application_id = 1937011305; PRAGMA user_version = 2;"
	"COMMIT";

_Static_assert(APPLICATION_ID == 1937011305 && LAYOUT == 2, "the schema names them");

static void configure(sqlite3 *database)
{
	sqlite3_busy_timeout(database, BUSY_TIMEOUT_MS);
	sqlite3_limit(database, SQLITE_LIMIT_LENGTH, 2 * CATALOGUE_ENTRY_MAX);
	store_exec(database, "PRAGMA cache_size = -4096; PRAGMA synchronous = OFF");
}

// Remembers when the file itself is at fault.
static int saw(struct catalogue_index *index, int result)
{
	int primary = result & 0xff;
	index->broken = index->broken || primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB ||
	                primary == SQLITE_ERROR || primary == SQLITE_MISMATCH;
	return result;
}

static int prepare(struct catalogue_index *index)
{
	static const char find[] =
		"SELECT size, mtime_ns, ctime_ns, job_only, used_day, sum, data FROM entry"
		" WHERE device = ?1 AND inode = ?2 AND stamp = ?3";
	static const char put[] =
		"INSERT OR REPLACE INTO entry VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
	static const char find_figure[] =
		"SELECT size, mtime_ns, ctime_ns, used_day, sum, value, reason, unit FROM figure"
		" WHERE device = ?1 AND inode = ?2 AND stamp = ?3 AND name = ?4";
	static const char put_figure[] =
		"INSERT OR REPLACE INTO figure"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
	const struct {
		const char *sql;
		sqlite3_stmt **statement;
	} statements[] = {{find, &index->find}, {put, &index->put},
		{find_figure, &index->find_figure}, {put_figure, &index->put_figure}};
	int result = SQLITE_OK;
	for (size_t i = 0; i < ARRAY_LENGTH(statements) && result == SQLITE_OK; i++) {
		result = sqlite3_prepare_v3(index->database, statements[i].sql, -1,
			SQLITE_PREPARE_PERSISTENT, statements[i].statement, NULL);
	}
	return saw(index, result);
}

// An empty file is one that nobody has begun yet; anything that is neither that nor ours is broken.
static int open_database(struct catalogue_index *index, const char *path)
{
	int result = saw(index, database_open(path, DATABASE_CREATE, NULL, &index->database, NULL));
	if (result != SQLITE_OK) {
		return result;
	}
	configure(index->database);
	result = saw(index, store_exec(index->database, "SELECT 1 FROM sqlite_master LIMIT 1"));
	if (result != SQLITE_OK) {
		return result;
	}
	bool empty = store_number(index->database, "SELECT count(*) FROM sqlite_master", 1) == 0;
	if (empty) {
		result = store_exec(index->database, schema);
		return result == SQLITE_OK ? prepare(index) : result;
	}
	if (store_number(index->database, "PRAGMA application_id", 0) != APPLICATION_ID ||
		store_number(index->database, "PRAGMA user_version", 0) != LAYOUT) {
		index->broken = true;
		return SQLITE_NOTADB;
	}
	return prepare(index);
}

static void close_database(struct catalogue_index *index)
{
	sqlite3_finalize(index->find);
	sqlite3_finalize(index->put);
	sqlite3_finalize(index->find_figure);
	sqlite3_finalize(index->put_figure);
	database_close(index->database);
	index->find = index->put = index->find_figure = index->put_figure = NULL;
	index->database = NULL;
}

// Takes a file away that is no index, if nobody else uses it.
static void remove_broken(const struct catalogue_index *index)
{
	static const char *const suffixes[] = {"", "-journal", "-wal", "-shm"};
	if (index->lock < 0 || flock(index->lock, LOCK_EX | LOCK_NB) < 0) {
		return;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++) {
		_cleanup_free_ char *path = name_in(index->directory, FILE_NAME, suffixes[i]);
		if (path) {
			unlink(path);
		}
	}
	flock(index->lock, LOCK_SH | LOCK_NB);
}

// Of anything but a file the opening alone could wait for ever.
static bool is_file_or_none(const char *path)
{
	struct stat status;
	return lstat(path, &status) < 0 || S_ISREG(status.st_mode);
}

static int open_file(struct catalogue_index *index)
{
	_cleanup_free_ char *path = name_in(index->directory, FILE_NAME, ""),
			    *lock = name_in(index->directory, FILE_NAME, ".lock");
	if (!path || !lock || !is_file_or_none(path) || !is_file_or_none(lock)) {
		return SQLITE_CANTOPEN;
	}
	index->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (index->lock >= 0) {
		flock(index->lock, LOCK_SH | LOCK_NB);
	}
	int result = open_database(index, path);
	if (result != SQLITE_OK && index->broken) {
		close_database(index);
		remove_broken(index);
		index->broken = false;
		result = open_database(index, path);
	}
	return result;
}

struct catalogue_index *catalogue_index_open(void)
{
	_cleanup_free_ char *directory = cache_folder(NULL);
	struct catalogue_index *index = directory ? calloc(1, sizeof(*index)) : NULL;
	if (!index) {
		return NULL;
	}
	index->directory = take_pointer(directory);
	index->lock = -1;
	index->stamp = catalogue_entry_stamp();
	if (open_file(index) != SQLITE_OK) {
		catalogue_index_close(index);
		return NULL;
	}
	return index;
}

// --- entries

static uint32_t entry_sum(
	const struct file_identity *file, bool job_only, const void *data, size_t length)
{
	const int64_t about[] = {(int64_t)file->device, (int64_t)file->inode, file->size,
		file->mtime_ns, file->ctime_ns, job_only, crc32_of(data, length)};
	return crc32_of(about, sizeof(about));
}

// Whether the row that was found is of this file, whole, and has what is wanted.
static bool row_fits(sqlite3_stmt *row, const struct file_identity *file, bool job_only)
{
	const void *data = sqlite3_column_blob(row, 6);
	size_t length = (size_t)sqlite3_column_bytes(row, 6);
	bool has_job_only = sqlite3_column_int64(row, 3) != 0;
	return data && sqlite3_column_int64(row, 0) == file->size &&
	       sqlite3_column_int64(row, 1) == file->mtime_ns &&
	       sqlite3_column_int64(row, 2) == file->ctime_ns && (job_only || !has_job_only) &&
	       sqlite3_column_int64(row, 5) == entry_sum(file, has_job_only, data, length);
}

static bool take_row(
	sqlite3_stmt *row, const struct file_identity *file, struct catalogue_entry *ret)
{
	size_t length = (size_t)sqlite3_column_bytes(row, 6);
	void *data = malloc(length);
	if (!data) {
		return false;
	}
	memcpy(data, sqlite3_column_blob(row, 6), length);
	*ret = (struct catalogue_entry){.data = data, .length = length, .file = *file};
	return true;
}

bool catalogue_index_find(struct catalogue_index *index, const struct file_identity *file,
	bool job_only, struct catalogue_entry *ret)
{
	if (!index || index->broken) {
		return false;
	}
	sqlite3_bind_int64(index->find, 1, (sqlite3_int64)file->device);
	sqlite3_bind_int64(index->find, 2, (sqlite3_int64)file->inode);
	sqlite3_bind_int64(index->find, 3, index->stamp);
	bool found = false, stale = false, has_job_only = false;
	if (saw(index, sqlite3_step(index->find)) == SQLITE_ROW &&
		row_fits(index->find, file, job_only)) {
		has_job_only = sqlite3_column_int64(index->find, 3) != 0;
		stale = sqlite3_column_int64(index->find, 4) < today() - REFRESHED_DAYS;
		found = take_row(index->find, file, ret);
	}
	sqlite3_reset(index->find);
	if (found && stale) {
		struct catalogue_entry again = *ret;
		again.lasting = true;
		catalogue_index_put(index, &again, has_job_only);
	}
	return found;
}

static void commit(struct catalogue_index *index)
{
	if (index->begun_ns && saw(index, store_exec(index->database, "COMMIT")) != SQLITE_OK) {
		store_exec(index->database, "ROLLBACK");
		index->unwritable = true; // busy for too long, or a full disk
	}
	index->begun_ns = 0;
}

static bool begin(struct catalogue_index *index)
{
	if (index->begun_ns && clock_monotonic_ns() - index->begun_ns > COMMIT_EVERY_NS) {
		commit(index);
	}
	if (!index->begun_ns && !index->unwritable) {
		index->unwritable = saw(index, store_exec(index->database, "BEGIN IMMEDIATE")) !=
		                    SQLITE_OK;
		index->begun_ns = index->unwritable ? 0 : clock_monotonic_ns();
	}
	return index->begun_ns != 0;
}

// Takes a step that puts a row.
static void keep(struct catalogue_index *index, sqlite3_stmt *put)
{
	bool kept = saw(index, sqlite3_step(put)) == SQLITE_DONE;
	sqlite3_reset(put);
	sqlite3_clear_bindings(put);
	if (!kept) {
		store_exec(index->database, "ROLLBACK");
		index->begun_ns = 0;
		index->unwritable = true;
	}
	index->changed = index->changed || kept;
}

void catalogue_index_put(
	struct catalogue_index *index, const struct catalogue_entry *entry, bool job_only)
{
	if (!index || index->broken || !entry->lasting || entry->length > CATALOGUE_ENTRY_MAX ||
		!begin(index)) {
		return;
	}
	const struct file_identity *file = &entry->file;
	const sqlite3_int64 numbers[] = {(sqlite3_int64)file->device, (sqlite3_int64)file->inode,
		index->stamp, file->size, file->mtime_ns, file->ctime_ns, job_only, today(),
		entry_sum(file, job_only, entry->data, entry->length)};
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
		sqlite3_bind_int64(index->put, (int)i + 1, numbers[i]);
	}
	sqlite3_bind_blob64(index->put, (int)ARRAY_LENGTH(numbers) + 1, entry->data, entry->length,
		SQLITE_STATIC);
	keep(index, index->put);
}

// --- figures

static uint32_t figure_sum(
	const struct file_identity *file, const char *name, const struct catalogue_figure *figure)
{
	int64_t value;
	memcpy(&value, &figure->value, sizeof(value));
	const int64_t about[] = {(int64_t)file->device, (int64_t)file->inode, file->size,
		file->mtime_ns, file->ctime_ns, isnan(figure->value) ? 0 : value, figure->reason,
		crc32_of(name, strlen(name)), crc32_of(figure->unit, strlen(figure->unit))};
	return crc32_of(about, sizeof(about));
}

// False where the row is of another file, or not what was kept.
static bool take_figure(sqlite3_stmt *row, const struct file_identity *file, const char *name,
	struct catalogue_figure *ret)
{
	bool missing = sqlite3_column_type(row, 5) == SQLITE_NULL;
	const char *unit = (const char *)sqlite3_column_text(row, 7);
	sqlite3_int64 reason = sqlite3_column_int64(row, 6);
	if (!unit || strlen(unit) >= sizeof(ret->unit) || reason < 0 || reason > UINT8_MAX ||
		sqlite3_column_int64(row, 0) != file->size ||
		sqlite3_column_int64(row, 1) != file->mtime_ns ||
		sqlite3_column_int64(row, 2) != file->ctime_ns) {
		return false;
	}
	ret->value = missing ? NAN : sqlite3_column_double(row, 5);
	ret->reason = (uint8_t)reason;
	snprintf(ret->unit, sizeof(ret->unit), "%s", unit);
	return sqlite3_column_int64(row, 4) == figure_sum(file, name, ret);
}

static void bind_file(struct catalogue_index *index, sqlite3_stmt *statement,
	const struct file_identity *file, const char *name)
{
	sqlite3_bind_int64(statement, 1, (sqlite3_int64)file->device);
	sqlite3_bind_int64(statement, 2, (sqlite3_int64)file->inode);
	sqlite3_bind_int64(statement, 3, index->stamp);
	sqlite3_bind_text(statement, 4, name, -1, SQLITE_STATIC);
}

bool catalogue_index_find_figure(struct catalogue_index *index, const struct file_identity *file,
	const char *name, struct catalogue_figure *ret)
{
	if (!index || index->broken) {
		return false;
	}
	struct catalogue_figure figure = {0};
	bind_file(index, index->find_figure, file, name);
	bool found = saw(index, sqlite3_step(index->find_figure)) == SQLITE_ROW &&
	             take_figure(index->find_figure, file, name, &figure);
	bool stale = found &&
	             sqlite3_column_int64(index->find_figure, 3) < today() - REFRESHED_DAYS;
	sqlite3_reset(index->find_figure);
	if (stale) {
		catalogue_index_put_figure(index, file, name, &figure);
	}
	if (found) {
		*ret = figure;
	}
	return found;
}

void catalogue_index_put_figure(struct catalogue_index *index, const struct file_identity *file,
	const char *name, const struct catalogue_figure *figure)
{
	if (!index || index->broken || strlen(name) > FIGURE_NAME_MAX || !begin(index)) {
		return;
	}
	sqlite3_stmt *put = index->put_figure;
	const sqlite3_int64 numbers[] = {file->size, file->mtime_ns, file->ctime_ns, today(),
		figure_sum(file, name, figure)};
	bind_file(index, put, file, name);
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
		sqlite3_bind_int64(put, (int)i + 5, numbers[i]);
	}
	if (isnan(figure->value)) {
		sqlite3_bind_null(put, 10);
	} else {
		sqlite3_bind_double(put, 10, figure->value);
	}
	sqlite3_bind_int64(put, 11, figure->reason);
	sqlite3_bind_text(put, 12, figure->unit, -1, SQLITE_STATIC);
	keep(index, put);
}

// --- the end

// What nobody asked for long ago; half of a table that has grown too large, the oldest.
static void prune(struct catalogue_index *index)
{
	static const struct {
		const char *too_old;
		const char *count;
		int64_t most;
		const char *halve;
	} tables[] = {
		{"DELETE FROM entry WHERE used_day < %lld", "SELECT count(*) FROM entry",
			ENTRIES_MAX,
			"DELETE FROM entry WHERE rowid IN (SELECT rowid FROM entry"
			" ORDER BY used_day LIMIT (SELECT count(*) / 2 FROM entry))"},
		{"DELETE FROM figure WHERE used_day < %lld", "SELECT count(*) FROM figure",
			FIGURES_MAX,
			"DELETE FROM figure WHERE (device, inode, stamp, name) IN"
			" (SELECT device, inode, stamp, name FROM figure"
			" ORDER BY used_day LIMIT (SELECT count(*) / 2 FROM figure))"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(tables); i++) {
		char *sql = sqlite3_mprintf(tables[i].too_old, (long long)(today() - KEPT_DAYS));
		saw(index, sql ? store_exec(index->database, sql) : SQLITE_NOMEM);
		sqlite3_free(sql);
		if (store_number(index->database, tables[i].count, 0) > tables[i].most) {
			saw(index, store_exec(index->database, tables[i].halve));
		}
	}
}

void catalogue_index_close(struct catalogue_index *index)
{
	if (!index) {
		return;
	}
	if (index->changed && begin(index)) {
		prune(index);
	}
	commit(index);
	close_database(index);
	if (index->broken) {
		remove_broken(index);
	}
	if (index->lock >= 0) {
		close(index->lock);
	}
	free(index->directory);
	free(index);
}
