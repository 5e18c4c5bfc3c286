// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The catalogue: lists files, takes known runs from the index, and reads the others with several
// threads if there are CPUs for them.

#include "study/catalogue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/cache_folder.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/text.h"
#include "run/analysis.h"
#include "run/query.h"
#include "run/summary.h"
#include "runfile/database.h"
#include "runfile/index.h"
#include "runfile/reader.h"
#include "verdict/causes.h"
#include "verdict/verdict.h"

// Reads the runs that the index does not know, by as many threads as there are CPUs.

struct catalogue_index;

struct catalogue_file {
	char *path; // owned
	char *sweep; // owned; NULL: no trial
	size_t found_by; // as of the run
	struct file_identity identity;
	bool is_there; // identity is known
	bool is_double; // another one is the same file
	struct catalogue_entry entry; // owned; data NULL: not known yet, or not readable
	char *error; // owned; why not
	bool out_of_memory;
};

static uint32_t catalogue_entry_stamp(void);
static void catalogue_index_put(
	struct catalogue_index *index, const struct catalogue_entry *entry, bool job_only);

// Index -------------------------------------------------------------------------------------------
//
// The index of runs. Whatever fails here costs time only, so nothing is reported: a find finds
// nothing, a put keeps nothing. No WAL, which needs memory shared between those who use it: home
// directories lie on NFS. A power cut may damage the file: entries have sums, and a file that
// SQLite refuses is made anew by whoever has it alone (the lock beside it).

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
	database_exec(database, "PRAGMA cache_size = -4096; PRAGMA synchronous = OFF");
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
	result = saw(index, database_exec(index->database, "SELECT 1 FROM sqlite_master LIMIT 1"));
	if (result != SQLITE_OK) {
		return result;
	}
	bool empty = database_number(index->database, "SELECT count(*) FROM sqlite_master", 1) == 0;
	if (empty) {
		result = database_exec(index->database, schema);
		return result == SQLITE_OK ? prepare(index) : result;
	}
	if (database_number(index->database, "PRAGMA application_id", 0) != APPLICATION_ID ||
		database_number(index->database, "PRAGMA user_version", 0) != LAYOUT) {
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

// Fills data and length, which the caller owns. job_only: an entry of the job alone is enough.
static bool catalogue_index_find(struct catalogue_index *index, const struct file_identity *file,
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
	if (index->begun_ns && saw(index, database_exec(index->database, "COMMIT")) != SQLITE_OK) {
		database_exec(index->database, "ROLLBACK");
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
		index->unwritable = saw(index, database_exec(index->database, "BEGIN IMMEDIATE")) !=
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
		database_exec(index->database, "ROLLBACK");
		index->begun_ns = 0;
		index->unwritable = true;
	}
	index->changed = index->changed || kept;
}

static void catalogue_index_put(
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

static bool catalogue_index_find_figure(struct catalogue_index *index,
	const struct file_identity *file, const char *name, struct catalogue_figure *ret)
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
		saw(index, sql ? database_exec(index->database, sql) : SQLITE_NOMEM);
		sqlite3_free(sql);
		if (database_number(index->database, tables[i].count, 0) > tables[i].most) {
			saw(index, database_exec(index->database, tables[i].halve));
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

// Reading -----------------------------------------------------------------------------------------
//
// Threads take one file after the other. Only the caller's own thread touches the index and says
// how far it is.

#define THREADS_MAX_READING 16
#define WAKE_NS (NS_PER_S / 10)

struct reading {
	struct catalogue_file **files; // [n] to be read
	size_t n;
	bool job_only;
	pthread_mutex_t mutex; // for all below
	pthread_cond_t read_one;
	size_t taken;
	size_t *done; // [n_done] indexes, in the order in which they were read
	size_t n_done;
};

static void catalogue_file_done(struct catalogue_file *file)
{
	free(file->path);
	free(file->sweep);
	free(file->entry.data);
	free(file->error);
}

static bool take_one(struct reading *reading, size_t *ret)
{
	pthread_mutex_lock(&reading->mutex);
	bool any = reading->taken < reading->n;
	*ret = any ? reading->taken++ : 0;
	pthread_mutex_unlock(&reading->mutex);
	return any;
}

static void read_one(struct reading *reading, size_t at)
{
	struct catalogue_file *file = reading->files[at];
	struct error e = {0};
	if (catalogue_entry_read(file->path, reading->job_only, &file->entry, &e) < 0) {
		file->error = strdup(e.text);
		file->out_of_memory = e.code == ENOMEM || !file->error;
	}
	pthread_mutex_lock(&reading->mutex);
	reading->done[reading->n_done++] = at;
	pthread_cond_signal(&reading->read_one);
	pthread_mutex_unlock(&reading->mutex);
}

static void *work(void *context)
{
	struct reading *reading = context;
	for (size_t at; take_one(reading, &at);) {
		read_one(reading, at);
	}
	return NULL;
}

static size_t threads_wanted(size_t files)
{
	cpu_set_t cpus;
	size_t n = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (size_t)CPU_COUNT(&cpus) : 1;
	n = n < THREADS_MAX_READING ? n : THREADS_MAX_READING;
	return n < files ? n : files;
}

// Signals are the main thread's. Returns how many there are.
static size_t start_threads(struct reading *reading, pthread_t threads[static THREADS_MAX_READING])
{
	sigset_t all, before;
	size_t wanted = threads_wanted(reading->n), n = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	while (wanted > 1 && n < wanted && pthread_create(&threads[n], NULL, work, reading) == 0) {
		n++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return n;
}

// Waits until more than `seen` are done, or for a moment.
static size_t wait_for_more(struct reading *reading, size_t seen)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)WAKE_NS;
	until.tv_sec += until.tv_nsec / (long)NS_PER_S;
	until.tv_nsec %= (long)NS_PER_S;
	pthread_mutex_lock(&reading->mutex);
	if (reading->n_done == seen) {
		pthread_cond_timedwait(&reading->read_one, &reading->mutex, &until);
	}
	size_t now = reading->n_done;
	pthread_mutex_unlock(&reading->mutex);
	return now;
}

// Follows the threads, or reads by itself where there are none.
static void follow(struct reading *reading, size_t threads, const struct catalogue_options *options,
	struct catalogue_index *index)
{
	for (size_t seen = 0; seen < reading->n;) {
		size_t at;
		if (threads == 0 && take_one(reading, &at)) {
			read_one(reading, at);
		}
		size_t now = wait_for_more(reading, seen);
		for (; seen < now; seen++) {
			const struct catalogue_file *file = reading->files[reading->done[seen]];
			if (file->entry.data) {
				catalogue_index_put(index, &file->entry, reading->job_only);
			}
		}
		if (options->progressed) {
			options->progressed(options->context, seen, reading->n);
		}
	}
}

static void read_all(struct reading *reading, const struct catalogue_options *options,
	struct catalogue_index *index)
{
	pthread_t threads[THREADS_MAX_READING];
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&reading->mutex, NULL);
	pthread_cond_init(&reading->read_one, &clock);
	pthread_condattr_destroy(&clock);
	size_t n = start_threads(reading, threads);
	follow(reading, n, options, index);
	for (size_t i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
	}
	pthread_cond_destroy(&reading->read_one);
	pthread_mutex_destroy(&reading->mutex);
}

// Gives every file that has none an entry or an error, and the index what it can keep. -ENOMEM.
static int catalogue_reading(struct catalogue_file *files, size_t n,
	const struct catalogue_options *options, struct catalogue_index *index, size_t *ret_read,
	struct error *e)
{
	_cleanup_free_ struct catalogue_file **wanted = calloc(n + 1, sizeof(void *));
	_cleanup_free_ size_t *done = calloc(n + 1, sizeof(*done));
	struct reading reading = {.files = wanted, .job_only = options->job_only, .done = done};
	if (!wanted || !done) {
		return error_errno(e, ENOMEM, "cannot read runs");
	}
	for (size_t i = 0; i < n; i++) {
		if (!files[i].is_double && !files[i].entry.data) {
			wanted[reading.n++] = &files[i];
		}
	}
	if (reading.n > 0) {
		read_all(&reading, options, index);
	}
	*ret_read = reading.n;
	for (size_t i = 0; i < reading.n; i++) {
		if (wanted[i]->out_of_memory) {
			return error_errno(e, ENOMEM, "%s", wanted[i]->path);
		}
	}
	return 0;
}

// Catalogue ---------------------------------------------------------------------------------------

static const char run_suffix[] = ".strain";

// --- which files

struct found {
	struct catalogue_file *items;
	size_t n;
	size_t capacity;
	size_t by; // which path is looked at
};

static void found_done(struct found *found)
{
	for (size_t i = 0; i < found->n; i++) {
		catalogue_file_done(&found->items[i]);
	}
	free(found->items);
}

// What stat says of a file, or why it says nothing, is for the reading of it to tell.
static int found_add(struct found *found, const char *path, const char *sweep)
{
	void *items = found->items;
	if (array_reserve(&items, &found->capacity, found->n + 1, sizeof(*found->items)) < 0) {
		return -ENOMEM;
	}
	found->items = items;
	struct catalogue_file file = {
		.path = strdup(path), .sweep = sweep ? strdup(sweep) : NULL, .found_by = found->by};
	struct stat status;
	if (stat(path, &status) == 0) {
		file.identity = file_identity_of(&status);
		file.is_there = true;
	}
	found->items[found->n++] = file;
	return file.path && (file.sweep || !sweep) ? 0 : -ENOMEM;
}

static bool is_run_name(const char *name)
{
	size_t length = strlen(name), n = strlen(run_suffix);
	return length > n && strcmp(name + length - n, run_suffix) == 0;
}

// "0007-2.strain"
static bool is_trial_name(const char *name)
{
	static const char digits[] = "0123456789";
	size_t number = strspn(name, digits);
	size_t repeat = number >= 4 && name[number] == '-' ? strspn(name + number + 1, digits) : 0;
	return repeat > 0 && strcmp(name + number + 1 + repeat, run_suffix) == 0;
}

static bool has_file(const char *directory, const char *name)
{
	_cleanup_free_ char *path = NULL;
	struct stat status;
	return asprintf(&path, "%s/%s", directory, name) >= 0 && stat(path, &status) == 0 &&
	       S_ISREG(status.st_mode);
}

static bool has_trial(const char *directory)
{
	DIR *stream = opendir(directory);
	bool found = false;
	for (struct dirent *entry; stream && !found && (entry = readdir(stream));) {
		found = is_trial_name(entry->d_name);
	}
	if (stream) {
		closedir(stream);
	}
	return found;
}

bool catalogue_is_sweep(const char *directory)
{
	return has_file(directory, "plan.yaml") &&
	       (has_file(directory, "lock") || has_trial(directory));
}

// A path below a directory, owned by the caller; what is in "." has no directory before it.
static char *path_in(const char *directory, const char *name)
{
	char *path = NULL;
	bool here = strcmp(directory, ".") == 0;
	size_t length = strlen(directory);
	const char *slash = here || (length > 0 && directory[length - 1] == '/') ? "" : "/";
	return asprintf(&path, "%s%s%s", here ? "" : directory, slash, name) < 0 ? NULL : path;
}

static bool is_directory(const struct dirent *entry, const char *path)
{
	struct stat status;
	return entry->d_type == DT_DIR ||
	       ((entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) &&
		       stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

static int walk(struct found *found, const char *directory, bool is_sweep, struct error *e);

static int walk_entry(struct found *found, const char *directory, bool is_sweep,
	const struct dirent *entry, struct error *e)
{
	bool is_run = is_run_name(entry->d_name);
	if (entry->d_name[0] == '.' || (!is_run && entry->d_type == DT_REG)) {
		return 0;
	}
	_cleanup_free_ char *path = path_in(directory, entry->d_name);
	if (!path) {
		return error_errno(e, ENOMEM, "%s", directory);
	}
	if (is_directory(entry, path)) {
		return !is_sweep && catalogue_is_sweep(path) ? walk(found, path, true, e) : 0;
	}
	int r = is_run ? found_add(found, path, is_sweep ? directory : NULL) : 0;
	return r < 0 ? error_errno(e, -r, "%s", path) : 0;
}

static int walk(struct found *found, const char *directory, bool is_sweep, struct error *e)
{
	DIR *stream = opendir(directory);
	if (!stream) {
		return error_errno(e, errno, "%s", directory);
	}
	int r = 0;
	struct dirent *entry;
	while (r == 0 && (errno = 0, entry = readdir(stream))) {
		r = walk_entry(found, directory, is_sweep, entry, e);
	}
	if (r == 0 && errno) {
		r = error_errno(e, errno, "%s", directory);
	}
	closedir(stream);
	return r;
}

// A sweep's directory that is named as such knows its trials as well as one that is come upon.
static int find_files(struct found *found, const char *path, struct error *e)
{
	struct stat status;
	if (stat(path, &status) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	if (S_ISDIR(status.st_mode)) {
		return walk(found, path, catalogue_is_sweep(path), e);
	}
	_cleanup_free_ char *directory = strdup(path);
	char *slash = directory ? strrchr(directory, '/') : NULL;
	if (slash) {
		*slash = '\0';
	}
	const char *parent = slash ? directory : ".";
	bool is_trial = is_trial_name(slash ? slash + 1 : path) && catalogue_is_sweep(parent);
	int r = directory ? found_add(found, path, is_trial ? parent : NULL) : -ENOMEM;
	return r < 0 ? error_errno(e, -r, "%s", path) : 0;
}

static int compare_identity(const void *left, const void *right)
{
	const struct catalogue_file *a = *(const struct catalogue_file *const *)left;
	const struct catalogue_file *b = *(const struct catalogue_file *const *)right;
	if (a->identity.device != b->identity.device) {
		return a->identity.device < b->identity.device ? -1 : 1;
	}
	if (a->identity.inode != b->identity.inode) {
		return a->identity.inode < b->identity.inode ? -1 : 1;
	}
	return (a > b) - (a < b);
}

// Of a file that comes twice the first stays.
static int leave_out_doubles(struct found *found)
{
	_cleanup_free_ struct catalogue_file **order = calloc(found->n + 1, sizeof(void *));
	if (!order) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < found->n; i++) {
		order[i] = &found->items[i];
	}
	if (found->n > 0) {
		qsort(order, found->n, sizeof(void *), compare_identity);
	}
	for (size_t i = 1; i < found->n; i++) {
		order[i]->is_double = order[i]->is_there && order[i - 1]->is_there &&
		                      order[i]->identity.device == order[i - 1]->identity.device &&
		                      order[i]->identity.inode == order[i - 1]->identity.inode;
	}
	return 0;
}

// --- rows

static int add_line(char ***lines, size_t *n, const char *path, const char *text)
{
	char **grown = realloc(*lines, (*n + 1) * sizeof(*grown));
	if (!grown) {
		return -ENOMEM;
	}
	*lines = grown;
	int length = path ? asprintf(&grown[*n], "%s: %s", path, text)
	                  : asprintf(&grown[*n], "%s", text);
	*n += length >= 0;
	return length < 0 ? -ENOMEM : 0;
}

static char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t length = strlen(name);
	return strndup(name, is_run_name(name) ? length - strlen(run_suffix) : length);
}

// Moves a file's entry into the catalogue.
static int add_run(struct catalogue *c, struct catalogue_file *file)
{
	struct catalogue_run run = {0};
	const char *notice = NULL;
	int r = catalogue_entry_decode(file->entry.data, file->entry.length, &run, &notice);
	if (r < 0) {
		return r;
	}
	run.name = name_of(file->path);
	run.path = take_pointer(file->path);
	run.found_by = file->found_by;
	run.sweep_directory = take_pointer(file->sweep);
	run.entry = take_pointer(file->entry.data);
	c->runs[c->n++] = run;
	if (!run.name) {
		return -ENOMEM;
	}
	return notice ? add_line(&c->notices, &c->n_notices, run.path, notice) : 0;
}

static int compare_newest_first(const void *left, const void *right)
{
	const struct catalogue_run *a = left, *b = right;
	if (a->start_utc_ns != b->start_utc_ns) {
		return a->start_utc_ns < b->start_utc_ns ? 1 : -1;
	}
	return strcmp(a->path, b->path);
}

static int fill(struct catalogue *c, struct found *found, struct error *e)
{
	c->runs = calloc(found->n + 1, sizeof(*c->runs));
	int r = c->runs ? 0 : -ENOMEM;
	for (size_t i = 0; i < found->n && r == 0; i++) {
		struct catalogue_file *file = &found->items[i];
		if (file->is_double) {
			continue;
		}
		if (!file->entry.data) {
			r = add_line(&c->unreadable, &c->n_unreadable, NULL, file->error);
		} else {
			r = add_run(c, file);
		}
	}
	if (r == 0 && c->n > 0) {
		qsort(c->runs, c->n, sizeof(*c->runs), compare_newest_first);
	}
	return r < 0 ? error_errno(e, -r, "cannot list runs") : 0;
}

// What the index knows: an entry that cannot be looked at is as good as none.
static void ask_index(struct found *found, struct catalogue_index *index, bool job_only)
{
	for (size_t i = 0; i < found->n; i++) {
		struct catalogue_file *file = &found->items[i];
		struct catalogue_run run = {0};
		const char *notice;
		if (file->is_double || !file->is_there ||
			!catalogue_index_find(index, &file->identity, job_only, &file->entry)) {
			continue;
		}
		if (catalogue_entry_decode(file->entry.data, file->entry.length, &run, &notice) <
			0) {
			free(take_pointer(file->entry.data));
		}
		free(run.labels);
	}
}

// Where only so many may be read, the others are as if they were not there.
static void leave_out_unread(struct found *found, size_t most)
{
	size_t n = 0;
	for (size_t i = found->n; most > 0 && i-- > 0;) {
		struct catalogue_file *file = &found->items[i];
		bool read = !file->is_double && !file->entry.data;
		n += read;
		file->is_double = file->is_double || (read && n > most);
	}
}

int catalogue_read_with(char *const *paths, size_t n_paths, const struct catalogue_options *options,
	struct catalogue *ret, struct error *e)
{
	struct found found = {0};
	struct catalogue c = {0};
	int r = 0;
	for (size_t i = 0; i < n_paths && r == 0; i++) {
		found.by = i;
		r = find_files(&found, paths[i], e);
	}
	if (r == 0 && leave_out_doubles(&found) < 0) {
		r = error_errno(e, ENOMEM, "cannot list runs");
	}
	if (r == 0) {
		struct catalogue_index *index = catalogue_index_open();
		ask_index(&found, index, options->job_only);
		leave_out_unread(&found, options->most_read);
		r = catalogue_reading(found.items, found.n, options, index, &c.n_read, e);
		catalogue_index_close(index);
	}
	r = r < 0 ? r : fill(&c, &found, e);
	found_done(&found);
	if (r < 0) {
		catalogue_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}

int catalogue_read(char *const *paths, size_t n_paths, struct catalogue *ret, struct error *e)
{
	return catalogue_read_with(paths, n_paths, &(struct catalogue_options){0}, ret, e);
}

static void free_lines(char **lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(lines[i]);
	}
	free(lines);
}

void catalogue_done(struct catalogue *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct catalogue_run *run = &c->runs[i];
		free(run->path);
		free(run->name);
		free(run->sweep_directory);
		free(run->labels);
		free(run->entry);
	}
	free(c->runs);
	free_lines(c->unreadable, c->n_unreadable);
	free_lines(c->notices, c->n_notices);
	*c = (struct catalogue){0};
}

const char *catalogue_label(const struct catalogue_run *run, const char *name)
{
	for (size_t i = 0; i < run->n_labels; i++) {
		if (strcmp(run->labels[i].name, name) == 0) {
			return run->labels[i].value;
		}
	}
	return strcmp(name, "machine") == 0 && *run->host ? run->host : NULL;
}

// Entry -------------------------------------------------------------------------------------------
//
// Entries of the catalogue. Numbers are as the machine has them: an index is never carried to
// another. Strings have their length before them and a NUL behind, so that a run can point at them.

#define FORMAT 1 // of the bytes: counts up with it
#define LABELS_MAX 4096
#define NO_REASON 0
// Clocks of kernels before 6.13 move every 10 ms at most: of what was written twice within that
// time both look the same. Servers' clocks may differ from ours.
#define SETTLED_NS ((int64_t)(50 * NS_PER_MS))
#define SETTLED_ON_NETWORK_NS ((int64_t)(10 * NS_PER_S))

// Over the sources of this folder: what other rules found is found anew. From sources_sum.c, which
// the build makes.
extern const unsigned analyze_sources_sum;

// --- identity

static int64_t timestamp_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * (int64_t)NS_PER_S + t->tv_nsec;
}

struct file_identity file_identity_of(const struct stat *status)
{
	return (struct file_identity){
		.device = status->st_dev,
		.inode = status->st_ino,
		.size = status->st_size,
		.mtime_ns = timestamp_ns(&status->st_mtim),
		.ctime_ns = timestamp_ns(&status->st_ctim),
	};
}

static bool file_identity_same(const struct file_identity *a, const struct file_identity *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

// What SQLite keeps beside a file that is not settled.
static bool has_sibling(const char *path)
{
	static const char *const suffixes[] = {"-wal", "-journal"};
	for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++) {
		struct text name = {0};
		struct stat status;
		text_format(&name, "%s%s", path, suffixes[i]);
		bool there = name.data && stat(name.data, &status) == 0 && status.st_size > 0;
		text_done(&name);
		if (there) {
			return true;
		}
	}
	return false;
}

static bool is_settled(const char *path, const struct file_identity *file)
{
	int64_t now_ns = (int64_t)clock_realtime_ns();
	return now_ns - file->ctime_ns >=
	       (database_is_on_network(path) ? SETTLED_ON_NETWORK_NS : SETTLED_NS);
}

// Whether what was read of a file since it was `before` is of it as it is now, and will be of any
// file that looks the same. Of a run that is recorded no more.
static bool file_identity_is_lasting(const char *path, const struct file_identity *before)
{
	struct stat status;
	if (stat(path, &status) < 0) {
		return false;
	}
	struct file_identity now = file_identity_of(&status);
	return file_identity_same(before, &now) && !has_sibling(path) && is_settled(path, &now);
}

// What changes with the meaning of the bytes or of a measure. The index keeps entries of several.
static uint32_t catalogue_entry_stamp(void)
{
	struct text about = {0};
	text_format(&about, "%s %d %u", STRAIN_VERSION, FORMAT, analyze_sources_sum);
	for (size_t i = 0; i < N_MEASURES; i++) {
		text_format(&about, " %s", measures[i].name);
	}
	uint32_t stamp = about.data ? crc32_of(about.data, about.length) : 0;
	text_done(&about);
	return stamp;
}

// --- writing

struct packer {
	struct bytes bytes;
	bool failed;
};

static void pack(struct packer *p, const void *data, size_t length)
{
	p->failed = p->failed || bytes_reserve(&p->bytes, length) < 0;
	if (!p->failed) {
		bytes_put(&p->bytes, data, length);
	}
}

static void pack_integer(struct packer *p, int64_t value)
{
	pack(p, &value, sizeof(value));
}

static void pack_string(struct packer *p, const char *string)
{
	const char *text = string ? string : "";
	uint32_t length = (uint32_t)strlen(text);
	pack(p, &length, sizeof(length));
	pack(p, text, length + 1);
}

// Reasons repeat: each is written once, and a measure has its number.
static void pack_measures(struct packer *p, const struct analysis *a, bool job_only)
{
	double values[N_MEASURES];
	const char *reasons[N_MEASURES];
	const char *distinct[N_MEASURES];
	uint8_t numbers[N_MEASURES] = {0};
	size_t n = 0;
	struct text no_iterations = {0};
	measures_compute(a, job_only, values, reasons);
	if (a->phases.missing) { // "the job marked none" is an answer to another question
		text_format(&no_iterations, "no iterations: %s", a->phases.missing);
	}
	for (size_t i = 0; i < N_MEASURES; i++) {
		size_t at = 0;
		if (reasons[i] && reasons[i] == a->phases.missing && no_iterations.data) {
			reasons[i] = no_iterations.data;
		}
		while (reasons[i] && at < n && strcmp(distinct[at], reasons[i]) != 0) {
			at++;
		}
		if (reasons[i] && at == n) {
			distinct[n++] = reasons[i];
		}
		numbers[i] = reasons[i] ? (uint8_t)(at + 1) : NO_REASON;
	}
	pack(p, values, sizeof(values));
	pack(p, numbers, sizeof(numbers));
	pack_integer(p, (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		pack_string(p, distinct[i]);
	}
	text_done(&no_iterations);
}

struct judged {
	enum outcome outcome;
	const char *text;
	const char *notice;
	bool job_only;
};

// In the order in which catalogue_entry_decode takes it.
static void pack_run(struct packer *p, const struct analysis *a, const struct judged *judged)
{
	const struct overview *o = &a->overview;
	const int64_t numbers[] = {judged->job_only,
		reader_run_i64(a->tables.reader, "start_utc_ns", 0), o->state, o->damaged,
		o->exit_status, o->exit_signal, judged->outcome};
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
		pack_integer(p, numbers[i]);
	}
	const char *const strings[] = {reader_run(a->tables.reader, "hostname"), o->command,
		judged->text, o->memory.kind,
		judged->job_only ? "" : bottleneck_name(a->verdict->bottleneck),
		judged->job_only ? "" : a->verdict->headline, judged->notice};
	for (size_t i = 0; i < ARRAY_LENGTH(strings); i++) {
		pack_string(p, strings[i]);
	}
	_cleanup_text_ struct text partial = {0};
	if (o->partial) {
		overview_append_recorded(&partial, o);
	}
	p->failed = p->failed || partial.failed;
	pack_string(p, partial.data);
	pack(p, &o->recorded_s, sizeof(o->recorded_s));
	pack_measures(p, a, judged->job_only);
	size_t n = o->n_labels < LABELS_MAX ? o->n_labels : LABELS_MAX;
	pack_integer(p, (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		pack_string(p, o->labels[i].name);
		pack_string(p, o->labels[i].value);
	}
}

// --- looking

struct unpacker {
	const char *at;
	const char *end;
	bool failed;
};

static const void *unpack(struct unpacker *u, size_t length)
{
	if (u->failed || (size_t)(u->end - u->at) < length) {
		u->failed = true;
		return NULL;
	}
	const void *data = u->at;
	u->at += length;
	return data;
}

// Between least and most: of anything else it is no entry.
static int64_t unpack_integer(struct unpacker *u, int64_t least, int64_t most)
{
	int64_t value = least;
	const void *data = unpack(u, sizeof(value));
	if (data) {
		memcpy(&value, data, sizeof(value));
	}
	u->failed = u->failed || value < least || value > most;
	return u->failed ? least : value;
}

static const char *unpack_string(struct unpacker *u)
{
	uint32_t length = 0;
	const void *size = unpack(u, sizeof(length));
	if (size) {
		memcpy(&length, size, sizeof(length));
	}
	const char *string = unpack(u, (size_t)length + 1);
	u->failed = u->failed || string[length] != '\0';
	return u->failed ? "" : string;
}

static void unpack_measures(struct unpacker *u, struct catalogue_run *run)
{
	const char *distinct[N_MEASURES] = {0};
	const void *values = unpack(u, sizeof(run->measures));
	const uint8_t *numbers = unpack(u, N_MEASURES);
	size_t n = (size_t)unpack_integer(u, 0, N_MEASURES);
	for (size_t i = 0; i < n; i++) {
		distinct[i] = unpack_string(u);
	}
	if (u->failed) {
		return;
	}
	memcpy(run->measures, values, sizeof(run->measures));
	for (size_t i = 0; i < N_MEASURES; i++) {
		bool known = isfinite(run->measures[i]);
		u->failed = u->failed || numbers[i] > n || isinf(run->measures[i]);
		run->reasons[i] = !known && !u->failed && numbers[i] ? distinct[numbers[i] - 1]
		                                                     : NULL;
	}
}

static int unpack_labels(struct unpacker *u, struct catalogue_run *run)
{
	size_t n = (size_t)unpack_integer(u, 0, LABELS_MAX);
	struct run_label *labels = n ? calloc(n, sizeof(*labels)) : NULL;
	if (n && !labels) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		// Never written through: a run's strings are looked at.
		labels[i].name = (char *)(uintptr_t)unpack_string(u);
		labels[i].value = (char *)(uintptr_t)unpack_string(u);
	}
	run->labels = labels;
	run->n_labels = n;
	return 0;
}

int catalogue_entry_decode(
	const void *data, size_t length, struct catalogue_run *ret, const char **ret_notice)
{
	struct unpacker u = {data, (const char *)data + length, false};
	struct catalogue_run run = {0};
	run.job_only = unpack_integer(&u, 0, 1);
	run.start_utc_ns = unpack_integer(&u, INT64_MIN, INT64_MAX);
	run.state = (enum run_state)unpack_integer(&u, RUN_FINISHED, RUN_CUT_OFF);
	run.damaged = unpack_integer(&u, 0, 1);
	run.exit_status = (int)unpack_integer(&u, -1, 255);
	run.exit_signal = (int)unpack_integer(&u, 0, 127);
	run.outcome = (enum outcome)unpack_integer(&u, 0, N_OUTCOMES - 1);
	run.host = unpack_string(&u);
	run.command = unpack_string(&u);
	run.outcome_text = unpack_string(&u);
	run.memory_kind = unpack_string(&u);
	run.verdict = unpack_string(&u);
	run.headline = unpack_string(&u);
	const char *notice = unpack_string(&u);
	run.partial = unpack_string(&u);
	const void *recorded_s = unpack(&u, sizeof(run.recorded_s));
	memcpy(&run.recorded_s, recorded_s ? recorded_s : &(double){NAN}, sizeof(run.recorded_s));
	u.failed = u.failed || isinf(run.recorded_s);
	unpack_measures(&u, &run);
	int r = unpack_labels(&u, &run);
	if (r < 0 || u.failed || u.at != u.end) {
		free(run.labels);
		return r < 0 ? r : -EBADMSG;
	}
	*ret = run;
	*ret_notice = *notice ? notice : NULL;
	return 0;
}

// --- reading

static int pack_analysis(const struct analysis *a, const struct judged *judged,
	struct catalogue_entry *ret, struct error *e)
{
	struct packer p = {0};
	pack_run(&p, a, judged);
	if (p.failed) {
		free(p.bytes.data);
		return error_errno(e, ENOMEM, "%s", reader_path(a->tables.reader));
	}
	ret->data = p.bytes.data;
	ret->length = p.bytes.length;
	return 0;
}

int catalogue_entry_make(const struct analysis *a, enum outcome outcome, const char *outcome_text,
	struct catalogue_entry *ret, struct error *e)
{
	const struct judged judged = {.outcome = outcome, .text = outcome_text};
	*ret = (struct catalogue_entry){0};
	return pack_analysis(a, &judged, ret, e);
}

static int encode(
	struct reader *reader, bool job_only, struct catalogue_entry *ret, struct error *e)
{
	struct analysis a;
	struct judged judged = {.job_only = job_only};
	int r = job_only ? analysis_load_job(reader, &a, e) : analysis_load_brief(reader, &a, e);
	struct verdict verdict = {0};
	r = r < 0 || job_only ? r : verdict_judge(&a, &verdict, e);
	if (r < 0) {
		return r;
	}
	judged.outcome = a.overview.outcome.outcome;
	judged.text = a.overview.outcome.text;
	judged.notice = reader_is_damaged(reader) ? reader_notice(reader) : NULL;
	r = pack_analysis(&a, &judged, ret, e);
	verdict_done(&verdict);
	analysis_done(&a);
	return r;
}

int catalogue_entry_read(
	const char *path, bool job_only, struct catalogue_entry *ret, struct error *e)
{
	struct stat before;
	struct reader *reader = NULL;
	struct catalogue_entry entry = {0};
	bool was_there = stat(path, &before) == 0;
	int r = reader_open(path, &reader, e);
	if (r < 0) {
		return r;
	}
	bool ended = reader_state(reader) != RUN_LIVE && reader_run(reader, "end_ns");
	r = encode(reader, job_only, &entry, e);
	reader_free(reader);
	if (r < 0) {
		return r;
	}
	if (was_there) {
		entry.file = file_identity_of(&before);
		entry.lasting = ended && file_identity_is_lasting(path, &entry.file);
	}
	*ret = entry;
	return 0;
}

// Metric ------------------------------------------------------------------------------------------
//
// Figures of metrics, run by run.

// Kinds of entities, the one that is meant first where several have the metric.
static const char *const kinds[] = {"job", "host", "gpu", "disk", "network", "recorder"};

struct asked {
	char *metric; // owned
	enum figure figure;
};

static int parse_name(const char *name, struct asked *ret, struct error *e)
{
	const char *colon = strrchr(name, ':');
	for (size_t i = 0; colon && i < N_FIGURES; i++) {
		if (strcmp(colon + 1, figure_name((enum figure)i)) == 0) {
			*ret = (struct asked){
				strndup(name, (size_t)(colon - name)), (enum figure)i};
			return ret->metric ? 0 : error_errno(e, ENOMEM, "%s", name);
		}
	}
	return error_set(e, EINVAL,
		"'%s': expected METRIC:AGGREGATE, with total, mean, p50, p95 or max", name);
}

// What the entities of one kind have.
struct gathered {
	size_t n;
	double sum;
	double largest;
	char unit[48];
};

static size_t kind_of(const char *kind)
{
	size_t i = 0;
	while (i < ARRAY_LENGTH(kinds) && (!kind || strcmp(kinds[i], kind) != 0)) {
		i++;
	}
	return i;
}

// A counter's rates are per second: seconds per second are a number.
static void take_unit(char *ret, size_t size, const char *unit, bool is_rate)
{
	bool seconds = strcmp(unit, "s") == 0;
	snprintf(ret, size, "%s%s", is_rate && seconds ? "1" : unit,
		is_rate && !seconds ? "/s" : "");
}

static void gather(sqlite3_stmt *row, enum figure figure, struct gathered *all)
{
	size_t kind = kind_of((const char *)sqlite3_column_text(row, 0));
	const char *unit = (const char *)sqlite3_column_text(row, 1);
	const char *sort = (const char *)sqlite3_column_text(row, 2);
	double value = sqlite3_column_double(row, 3);
	if (kind == ARRAY_LENGTH(kinds) || !isfinite(value)) {
		return;
	}
	struct gathered *g = &all[kind];
	bool is_rate = sort && strcmp(sort, "counter") == 0 && figure != FIGURE_TOTAL;
	take_unit(g->unit, sizeof(g->unit), unit ? unit : "", is_rate);
	g->sum += value;
	g->largest = g->n++ == 0 || value > g->largest ? value : g->largest;
}

// Why there is none, by the numbers that the index keeps.
enum { WHY_NONE_MISSING, WHY_NO_METRIC, WHY_NO_SUMMARY, WHY_UNREADABLE, N_WHYS };
static const char *const whys[N_WHYS] = {
	[WHY_NO_METRIC] = "the summary of the run does not contain this metric",
	[WHY_NO_SUMMARY] = "the run has no summary",
	[WHY_UNREADABLE] = "the run can no longer be read",
};

static struct catalogue_figure metric_take_figure(const struct gathered *all, enum figure figure)
{
	struct catalogue_figure found = {.value = NAN, .reason = WHY_NO_METRIC};
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		if (all[i].n > 0) {
			found.value = figure == FIGURE_TOTAL ? all[i].sum
			              : figure == FIGURE_MAX ? all[i].largest
			                                     : all[i].sum / (double)all[i].n;
			found.reason = WHY_NONE_MISSING;
			snprintf(found.unit, sizeof(found.unit), "%s", all[i].unit);
			break;
		}
	}
	return found;
}

static struct catalogue_figure read_file(const char *path, const struct asked *asked)
{
	static const char sql[] =
		"SELECT s.entity_kind, s.unit, (SELECT kind FROM metric AS m WHERE m.name = "
		"s.metric AND m.entity_kind = s.entity_kind LIMIT 1), s.value FROM summary_by_name "
		"AS s WHERE s.metric = ?1 AND s.aggregate = ?2 AND s.epoch IS NULL LIMIT 10000";
	_cleanup_statement_ sqlite3_stmt *statement = NULL;
	struct gathered all[ARRAY_LENGTH(kinds)] = {0};
	struct reader *reader = NULL;
	if (reader_open(path, &reader, NULL) < 0) {
		return (struct catalogue_figure){.value = NAN, .reason = WHY_UNREADABLE};
	}
	int result = sqlite3_prepare_v2(reader_database(reader), sql, -1, &statement, NULL);
	if (result == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, asked->metric, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 2, figure_name(asked->figure), -1, SQLITE_STATIC);
		while (sqlite3_step(statement) == SQLITE_ROW) {
			gather(statement, asked->figure, all);
		}
	}
	sqlite3_finalize(take_pointer(statement));
	reader_free(reader);
	struct catalogue_figure found = metric_take_figure(all, asked->figure);
	if (result != SQLITE_OK) {
		found.reason = WHY_NO_SUMMARY;
	}
	return found;
}

static struct catalogue_figure find_figure(struct catalogue_index *index,
	const struct catalogue_run *run, const struct asked *asked, const char *name)
{
	struct catalogue_figure figure;
	struct file_identity file = {0};
	struct stat status;
	bool is_there = stat(run->path, &status) == 0;
	if (is_there) {
		file = file_identity_of(&status);
	}
	if (is_there && catalogue_index_find_figure(index, &file, name, &figure) &&
		figure.reason < N_WHYS &&
		(figure.reason != WHY_NONE_MISSING) == isnan(figure.value)) {
		return figure;
	}
	figure = read_file(run->path, asked);
	if (is_there && figure.reason != WHY_UNREADABLE && run->state != RUN_LIVE &&
		file_identity_is_lasting(run->path, &file)) {
		catalogue_index_put_figure(index, &file, name, &figure);
	}
	return figure;
}

int catalogue_metric_read(const struct catalogue_run *const *runs, size_t n, const char *name,
	struct catalogue_metric *ret, struct error *e)
{
	struct asked asked = {0};
	int r = parse_name(name, &asked, e);
	if (r < 0) {
		return r;
	}
	_cleanup_free_ char *metric = asked.metric;
	struct catalogue_metric found = {.numbers = calloc(n + 1, sizeof(*found.numbers)),
		.reasons = calloc(n + 1, sizeof(*found.reasons))};
	size_t known = 0;
	struct catalogue_index *index = catalogue_index_open();
	for (size_t i = 0; found.numbers && found.reasons && i < n; i++) {
		struct catalogue_figure figure = find_figure(index, runs[i], &asked, name);
		found.numbers[i] = figure.value;
		found.reasons[i] = whys[figure.reason];
		if (figure.reason == WHY_NONE_MISSING) {
			snprintf(found.unit, sizeof(found.unit), "%s", figure.unit);
			known++;
		}
	}
	catalogue_index_close(index);
	if (!found.numbers || !found.reasons || known == 0) {
		catalogue_metric_done(&found);
		return known == 0 ? error_set(e, ENOENT,
					    "no run has a metric '%s' with that aggregate "
					    "(docs/metrics.md lists them)",
					    metric)
		                  : error_errno(e, ENOMEM, "%s", name);
	}
	*ret = found;
	return 0;
}

void catalogue_metric_done(struct catalogue_metric *metric)
{
	free(metric->numbers);
	free(metric->reasons);
	*metric = (struct catalogue_metric){0};
}

// Newest ------------------------------------------------------------------------------------------
//
// The newest run of a directory, by what the index knows of starts.

#define START "start_utc_ns" // no METRIC:AGGREGATE is called so

static bool find(void *context, const char *path, const struct stat *status, int64_t *ret_ns)
{
	(void)path;
	const struct file_identity file = file_identity_of(status);
	struct catalogue_figure figure;
	if (!catalogue_index_find_figure(context, &file, START, &figure) ||
		!(figure.value > 0 && figure.value < 9e18)) {
		return false;
	}
	*ret_ns = (int64_t)figure.value;
	return true;
}

// Also of runs that are still recorded: when they began is all that is told.
static void newest_found(
	void *context, const char *path, const struct stat *status, int64_t start_ns)
{
	const struct file_identity file = file_identity_of(status);
	if (file_identity_is_lasting(path, &file)) {
		const struct catalogue_figure figure = {.value = (double)start_ns, .unit = "ns"};
		catalogue_index_put_figure(context, &file, START, &figure);
	}
}

int catalogue_newest(size_t back, char **ret_path, struct error *e)
{
	struct catalogue_index *index = catalogue_index_open();
	const struct run_starts starts = {.find = find, .found = newest_found, .context = index};
	int r = index_newest_run(index ? &starts : NULL, back, ret_path, e);
	catalogue_index_close(index);
	return r;
}

// Keep --------------------------------------------------------------------------------------------
//
// Entries on their way into the index.

void catalogue_keep_add(
	struct catalogue_keep *keep, struct catalogue_entry *entry, const char *path)
{
	struct stat status;
	struct catalogue_entry taken = *entry;
	*entry = (struct catalogue_entry){0};
	if (!taken.data || stat(path, &status) < 0 ||
		array_reserve((void **)&keep->items, &keep->capacity, keep->n + 1,
			sizeof(*keep->items)) < 0) {
		free(taken.data);
		return;
	}
	taken.file = file_identity_of(&status);
	taken.lasting = true;
	keep->items[keep->n++] = taken;
}

void catalogue_keep_flush(struct catalogue_keep *keep)
{
	struct catalogue_index *index = keep->n > 0 ? catalogue_index_open() : NULL;
	for (size_t i = 0; i < keep->n; i++) {
		catalogue_index_put(index, &keep->items[i], false);
		free(keep->items[i].data);
	}
	catalogue_index_close(index);
	free(keep->items);
	*keep = (struct catalogue_keep){0};
}
