// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Creating and completing a run file. Nothing is synced to disk: committed data survive the death
// of this process, and a recorder that makes the kernel flush would slow the job.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "runfile/database.h"
#include "runfile/reader.h"
#include "runfile/writer.h"
#include "runfile/writer_internal.h"

#define RESERVE_BYTES (256 * 1024)
#define BUSY_TIMEOUT_MS 2000
#define SETTLE_TIMEOUT_MS 100
#define FORMAT_AT 18 // in SQLite's header: 1, or 2 for a file in WAL mode
#define SMALL_FILE_BYTES (8 * 1024 * 1024)

// Holds disk space in an unnamed file, which disappears with the process in any case.
static int reserve_open(const char *path, struct error *e)
{
	_cleanup_free_ char *name = NULL;
	if (asprintf(&name, "%s-reserve", path) < 0) {
		return error_errno(e, ENOMEM, "%s", path);
	}
	_cleanup_close_ int fd = open(
		name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		return error_errno(e, errno, "%s", name);
	}
	unlink(name);
	int code = fallocate(fd, 0, 0, RESERVE_BYTES) == 0 ? 0 : errno;
	static const char zeros[4096];
	for (off_t at = 0; code == EOPNOTSUPP && at < RESERVE_BYTES; at += sizeof(zeros)) {
		ssize_t n = pwrite(fd, zeros, sizeof(zeros), at);
		code = n == sizeof(zeros) ? EOPNOTSUPP : n < 0 ? errno : ENOSPC;
	}
	if (code && code != EOPNOTSUPP) {
		return error_errno(e, code, "%s", path);
	}
	return take_fd(fd);
}

static bool is_the_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

// Whether SQLite opened the held file, and beside it only files of ours: names can belong to other
// users by the time they are opened.
static int check_opened(struct writer *w, const struct stat *held, struct error *e)
{
	struct stat now;
	if (stat(w->path, &now) < 0) {
		return error_errno(e, errno, "%s", w->path);
	}
	if (!is_the_same(&now, held) || !database_is_open_beside(held, w->held)) {
		return error_set(e, ESTALE, "%s: was replaced while it was opened", w->path);
	}
	return database_check_open_beside(w->path, held, e);
}

// Creates our own journal before SQLite needs one, and keeps it until the end.
static int use_own_journal(struct writer *w, const struct stat *held, struct error *e)
{
	int r = database_claim_journal(w->path, held, e);
	w->claimed = w->claimed || r == 0;
	return r;
}

static bool is_in_wal_mode(const struct writer *w)
{
	unsigned char format = 0;
	return pread(w->held, &format, 1, FORMAT_AT) == 1 && format == 2;
}

// w->held is the file.
static int open_database(struct writer *w, const char *vfs, struct error *e)
{
	struct stat held;
	if (fstat(w->held, &held) < 0) {
		return error_errno(e, errno, "%s", w->path);
	}
	w->device = held.st_dev;
	w->inode = held.st_ino;
	int r = database_check_beside(w->path, &held, e);
	bool has_journal = held.st_size > 0 && !is_in_wal_mode(w);
	r = r == 0 && has_journal ? use_own_journal(w, &held, e) : r;
	if (r < 0) {
		return r;
	}
	struct error why = {0};
	int result = database_open(w->path, DATABASE_WRITE, vfs, &w->database, &why);
	if (result != SQLITE_OK) {
		return error_set(e, why.code, "%s", why.text);
	}
	sqlite3_busy_timeout(w->database, BUSY_TIMEOUT_MS);
	if (has_journal) {
		database_exec(w->database, "PRAGMA journal_mode = TRUNCATE");
	}
	if (held.st_size > 0) {
		database_exec(
			w->database, "SELECT 1 FROM sqlite_master LIMIT 1"); // it opens lazily
	}
	return check_opened(w, &held, e);
}

// WAL needs memory shared by all that open the file.
static bool try_wal(struct writer *w)
{
	sqlite3_stmt *statement = NULL;
	bool wal = !database_is_on_network(w->path) &&
	           sqlite3_prepare_v2(w->database, "PRAGMA journal_mode = WAL", -1, &statement,
			   NULL) == SQLITE_OK &&
	           sqlite3_step(statement) == SQLITE_ROW &&
	           sqlite3_stricmp((const char *)sqlite3_column_text(statement, 0), "wal") == 0;
	sqlite3_finalize(statement);
	// The mode works only if the shared memory could be mapped.
	wal = wal && database_exec(w->database, "BEGIN IMMEDIATE; COMMIT") == SQLITE_OK;
	if (!wal) {
		struct stat held;
		database_exec(w->database, "ROLLBACK");
		database_exec(w->database, "PRAGMA journal_mode = DELETE");
		if (fstat(w->held, &held) == 0 && use_own_journal(w, &held, NULL) == 0) {
			database_exec(w->database, "PRAGMA journal_mode = TRUNCATE");
		}
	}
	return wal;
}

bool writer_is_displaced(struct writer *w)
{
	struct stat status;
	if (stat(w->path, &status) < 0) {
		w->displaced = w->displaced || errno == ENOENT || errno == ENOTDIR;
	} else if (status.st_dev != w->device || status.st_ino != w->inode) {
		w->displaced = true;
	}
	return w->displaced;
}

static int configure(struct writer *w, struct error *e)
{
	// 1 MiB of cache, because the recorder's memory is bounded. In DELETE mode it must hold a
	// batch of 10 s, because spilled pages lock readers out until the commit.
	char sql[256];
	snprintf(sql, sizeof(sql),
		"PRAGMA synchronous = OFF; PRAGMA cache_size = -%d; PRAGMA wal_autocheckpoint = "
		"256;"
		"PRAGMA journal_size_limit = 1048576; PRAGMA temp_store = MEMORY",
		w->wal ? 1024 : 4096);
	int result = database_exec(w->database, sql);
	return result == SQLITE_OK ? 0 : database_error(w->database, result, e, w->path);
}

static int create_schema(struct writer *w, struct error *e)
{
	char sql[256];
	snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d;",
		STORE_APPLICATION_ID, STORE_VERSION);
	int result = database_exec(w->database, "BEGIN IMMEDIATE");
	if (result == SQLITE_OK) {
		result = database_exec(w->database, sql);
	}
	if (result == SQLITE_OK) {
		result = database_exec(w->database, schema_sql);
	}
	if (result == SQLITE_OK) {
		result = database_exec(
			w->database, "INSERT INTO run VALUES('state', 'recording'); COMMIT");
	}
	return result == SQLITE_OK ? 0 : database_error(w->database, result, e, w->path);
}

// SQLite's own files beside the run. Those left by an earlier run would be taken for this run's.
static const char *const siblings[] = {"-wal", "-shm", "-journal", "-reserve", NULL};
static const char *const all_files[] = {"", "-wal", "-shm", "-journal", "-reserve", NULL};

// Atomically replaces the old file by an empty one. The name is never free in between, so a run
// that starts at the same moment cannot take it.
static int replace_file(const char *path, int *ret_fd, struct error *e)
{
	_cleanup_free_ char *fresh = NULL;
	if (asprintf(&fresh, "%s.XXXXXX", path) < 0) {
		fresh = NULL;
		return error_errno(e, ENOMEM, "%s", path);
	}
	_cleanup_close_ int fd = mkostemp(fresh, O_CLOEXEC);
	if (fd < 0) {
		return error_errno(e, errno, "cannot replace %s", path);
	}
	if (rename(fresh, path) < 0) {
		int code = errno;
		unlink(fresh);
		return error_errno(e, code, "cannot replace %s", path);
	}
	*ret_fd = take_fd(fd);
	return 0;
}

// A run that is being recorded is not replaced: it would be lost.
static int check_not_recorded(const char *path, struct error *e)
{
	struct reader *reader = NULL;
	struct error why = {0};
	int r = reader_open(path, &reader, &why);
	if (r == -EBADMSG || r == -ENOENT) {
		return 0; // not a run, or nothing is left of it
	}
	if (r < 0) {
		return error_set(e, -r,
			"not overwritten: cannot tell whether it is still being recorded: %s",
			why.text);
	}
	const char *pid = reader_run(reader, "recorder_pid"),
		   *host = reader_run(reader, "hostname");
	if (reader_state(reader) == RUN_LIVE && pid) {
		r = error_set(e, EBUSY,
			"%s: not overwritten: process %.20s on %.64s is recording it", path, pid,
			host ? host : "another machine");
	}
	reader_free(reader);
	return r;
}

static int create_file(const char *path, bool replace, int *ret_fd, struct error *e)
{
	struct stat st = {0};
	_cleanup_close_ int fd = open(
		path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 && errno != EEXIST) {
		return error_errno(e, errno, "%s", path);
	}
	if (fd < 0) {
		bool regular = lstat(path, &st) == 0 && S_ISREG(st.st_mode);
		if (!replace || !regular) {
			bool directory = !regular && S_ISDIR(st.st_mode);
			return error_errno(e, directory ? EISDIR : EEXIST, "%s", path);
		}
		int rc = st.st_size > 0 ? check_not_recorded(path, e) : 0;
		rc = rc < 0 ? rc : replace_file(path, &fd, e);
		if (rc < 0) {
			return rc;
		}
	}
	beneath_unlink(path, beneath_file_of(fd), siblings);
	*ret_fd = take_fd(fd);
	return 0;
}

static int writer_new(const char *path, struct writer **ret, struct error *e)
{
	struct writer *w = calloc(1, sizeof(*w));
	if (!w) {
		return error_errno(e, ENOMEM, "%s", path);
	}
	w->reserve = w->held = -1;
	w->path = strdup(path);
	if (!w->path || encoder_new(&w->encoder) < 0) {
		writer_free(w);
		return error_errno(e, ENOMEM, "%s", path);
	}
	*ret = w;
	return 0;
}

static int check_schema(struct writer *w, struct error *e)
{
	struct error why = {0};
	return database_check_schema(w->database, &why) < 0
	               ? error_set(e, EBADMSG, "%s: not a run file: %s", w->path, why.text)
	               : 0;
}

static int create_database(struct writer *w, const char *vfs, struct error *e)
{
	int r = open_database(w, vfs, e);
	if (r < 0) {
		return r;
	}
	// The last two settings work only before the first page is written. Small pages, because
	// most tables are small and a block's last page is half empty: for a run of two minutes the
	// file is a fifth smaller than with 4,096 bytes. auto_vacuum lets a finished run free
	// unused space. Without the first setting, auto_vacuum, which writes the first page, waits
	// for the disk four times, and switching to WAL six times, and the job would wait too.
	database_exec(w->database, "PRAGMA synchronous = OFF; PRAGMA page_size = 2048;"
				   "PRAGMA auto_vacuum = INCREMENTAL");
	w->wal = try_wal(w);
	r = configure(w, e);
	r = r < 0 ? r : create_schema(w, e);
	// Files that others put beside it meanwhile may have been played back into it.
	struct stat held;
	r = r == 0 && fstat(w->held, &held) == 0 ? check_opened(w, &held, e) : r;
	return r < 0 ? r : check_schema(w, e);
}

int writer_create(const char *path, const struct writer_options *options, struct writer **ret,
	struct error *e)
{
	struct writer *w = NULL;
	int fd = -1;
	int r = create_file(path, options->replace, &fd, e);
	if (r < 0) {
		return r;
	}
	const struct beneath_file made = beneath_file_of(fd);
	if (options->made) {
		options->made(options->context, made);
	}
	r = writer_new(path, &w, e);
	if (r < 0) {
		close(fd);
	}
	if (r == 0) {
		w->held = fd;
		w->max_bytes = options->max_bytes;
		r = create_database(w, options->vfs, e);
	}
	if (r == 0) {
		w->reserve = reserve_open(path, e);
		r = w->reserve < 0 ? w->reserve : 0;
	}
	if (r < 0) {
		writer_free(w);
		beneath_unlink(path, made, all_files);
		return r;
	}
	w->committed_ns = clock_monotonic_ns();
	*ret = w;
	return 0;
}

static int check_identity(struct writer *w, struct error *e)
{
	sqlite3_int64 version = database_number(w->database, "PRAGMA user_version", -1);
	if (database_number(w->database, "PRAGMA application_id", -1) != STORE_APPLICATION_ID) {
		return error_set(e, EBADMSG, "%s: not a run file", w->path);
	}
	if (version / 1000 != STORE_VERSION_MAJOR) {
		return error_set(e, EBADMSG,
			"%s: expected a run file of schema %d, found schema %lld", w->path,
			STORE_VERSION_MAJOR, (long long)(version / 1000));
	}
	return check_schema(w, e);
}

static int hold(struct writer *w, struct error *e)
{
	struct stat status;
	w->held = open(w->path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (w->held < 0 || fstat(w->held, &status) < 0) {
		return error_errno(e, errno, "%s", w->path);
	}
	return S_ISREG(status.st_mode)
	               ? 0
	               : error_set(e, EINVAL, "%s: expected a run file, found no regular file",
				 w->path);
}

int writer_open(const char *path, struct writer **ret, struct error *e)
{
	struct writer *w = NULL;
	int r = writer_new(path, &w, e);
	if (r == 0) {
		r = hold(w, e);
	}
	if (r == 0) {
		r = open_database(w, NULL, e);
	}
	if (r == 0) {
		r = check_identity(w, e);
	}
	if (r == 0) {
		// The mode is kept: WAL if the recorder could use it, else DELETE.
		r = configure(w, e);
	}
	if (r < 0) {
		writer_free(w);
		return r;
	}
	w->wal = true; // no interval of 10 s: the data put here are few and should appear at once
	*ret = w;
	return 0;
}

static int put_end_of_run(struct writer *w, const char *state, int64_t end_ns, int status)
{
	char end[24], status_text[16];
	snprintf(end, sizeof(end), "%lld", (long long)end_ns);
	snprintf(status_text, sizeof(status_text), "%d", status);
	int r = writer_put_run(w, "end_ns", end);
	if (r == 0 && status >= 0) {
		r = writer_put_run(w, "status", status_text);
	}
	return r < 0 ? r : writer_put_run(w, "state", state);
}

void writer_settle(struct writer *w)
{
	if (writer_is_displaced(w)) {
		return;
	}
	struct stat held;
	if (fstat(w->held, &held) < 0 || use_own_journal(w, &held, NULL) < 0) {
		return; // another user's journal is in the way
	}
	// Does not wait long for readers: that would delay the job's end.
	sqlite3_busy_timeout(w->database, SETTLE_TIMEOUT_MS);
	database_exec(w->database, "PRAGMA incremental_vacuum");
	database_exec(w->database, "PRAGMA wal_checkpoint(TRUNCATE)");
	database_exec(w->database, "PRAGMA journal_mode = TRUNCATE");
	// In a small file half-empty pages matter: a tenth of the file of a two-minute run,
	// rewritten in 10 ms. Does nothing if there is a reader or no space.
	if (writer_file_bytes(w) < SMALL_FILE_BYTES) {
		database_exec(w->database, "PRAGMA temp_store = FILE; PRAGMA auto_vacuum = NONE;"
					   "PRAGMA page_size = 512; VACUUM");
	}
	sqlite3_busy_timeout(w->database, BUSY_TIMEOUT_MS);
}

static int finish(struct writer *w, const char *state, int64_t end_ns, int status, struct error *e)
{
	if (writer_is_displaced(w)) {
		return error_set(
			e, ESTALE, "%s: was removed or replaced while it was recorded", w->path);
	}
	bool was_full = w->full;
	int r = was_full ? 0 : writer_compact(w, INT64_MAX, e);
	// On a full disk, the end either fits into the space of the reserve or is missing.
	w->full = false;
	int put = put_end_of_run(w, state, end_ns, status);
	if (put == 0 && !was_full) {
		writer_delete_clocks(w); // in the same batch
	}
	if (put < 0 && r == 0) {
		r = error_errno(e, -put, "%s: cannot write the end of the run", w->path);
	}
	int committed = writer_commit_now(w, r == 0 ? e : NULL);
	r = r == 0 ? committed : r;
	if (committed == 0) {
		writer_settle(w);
	}
	w->full = w->full || was_full;
	return r == 0 && was_full ? error_errno(e, ENOSPC, "%s", w->path) : r;
}

int writer_finish(struct writer *w, int64_t end_ns, int status, struct error *e)
{
	return finish(w, "finished", end_ns, status, e);
}

int writer_finish_cut_off(struct writer *w, int64_t end_ns, struct error *e)
{
	return finish(w, "cut_off", end_ns, -1, e);
}

void writer_free(struct writer *w)
{
	if (!w) {
		return;
	}
	if (w->database && (!sqlite3_get_autocommit(w->database) || w->spans.n > 0)) {
		writer_commit_now(w, NULL);
	}
	if (w->database && w->inode != 0 && writer_is_displaced(w)) {
		sqlite3_db_config(w->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	}
	clock_book_done(&w->clocks);
	clock_cache_done(&w->clock_cache);
	for (size_t i = 0; i < N_STATEMENTS; i++) {
		sqlite3_finalize(w->statements[i]);
	}
	database_close(w->database);
	if (w->claimed) {
		database_release_journal(w->path);
	}
	if (w->held >= 0) {
		close(w->held); // last, because closing it drops all locks on the file
	}
	if (w->reserve >= 0) {
		close(w->reserve);
	}
	encoder_free(w->encoder);
	span_rows_done(&w->spans);
	text_done(&w->scratch);
	free(w->path);
	free(w);
}

void writer_discard(struct writer *w)
{
	_cleanup_free_ char *path = w ? strdup(w->path) : NULL;
	const struct beneath_file made = beneath_file_of(w ? w->held : -1);
	writer_free(w); // with its log
	if (path) {
		beneath_unlink(path, made, all_files);
	}
}
