// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Adding to a finished run.

#include "runfile/amend.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "runfile/database.h"
#include "runfile/reader.h"
#include "runfile/writer_internal.h"

enum {
	COMMIT_TRIES = 8, // of two seconds each, while a reader holds the file
	SETTLE_TRIES = 10, // at most
	SETTLE_TRY_BYTES = 24 << 20, // take as long to write anew as one try, about 120 ms
	SETTLE_PAUSE_MS = 20,
	FORMAT_AT = 18, // in SQLite's header: 1, or 2 for a file in WAL mode
};

static int put_item(struct writer *w, const struct amendment *item, int64_t end_ns)
{
	switch (item->kind) {
	case AMEND_KEY:
		return writer_put_run(w, item->name, item->value);
	case AMEND_LABEL:
		return writer_put_label(w, item->name, item->value);
	default:
		return writer_put_event(w, end_ns, item->name, 0, item->value);
	}
}

// One batch: a writer commits by itself only in the mode that writes all the time.
static int put_all(struct writer *w, const struct amendment *items, size_t n, struct error *e)
{
	int64_t end_ns = database_number(
		w->database, "SELECT CAST(value AS INTEGER) FROM run WHERE key = 'end_ns'", 0);
	for (size_t i = 0; i < n; i++) {
		int result = put_item(w, &items[i], end_ns);
		if (result < 0) {
			return error_errno(e, -result, "%s: cannot add %s", w->path, items[i].name);
		}
	}
	return 0;
}

// A reader keeps a file that is not in WAL mode from being written.
static int commit_patiently(struct writer *w, struct error *e)
{
	int result = writer_commit_now(w, e);
	for (int i = 1; result == -EBUSY && i < COMMIT_TRIES; i++) {
		result = writer_commit_now(w, e);
	}
	return result;
}

// Once for all: waiting for the disk four times, as SQLite does for a transaction, would only order
// writes of a file that the recorder has written without waiting at all.
static void sync_file(sqlite3 *database)
{
	sqlite3_file *file = NULL;
	if (sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, (void *)&file) ==
			SQLITE_OK &&
		file && file->pMethods) {
		(void)file->pMethods->xSync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
	}
}

int amend_with(const char *path, int (*put)(struct writer *w, void *context), void *context,
	struct error *e)
{
	struct writer *w = NULL;
	int result = writer_open(path, &w, e);
	if (result < 0) {
		return result;
	}
	result = database_errno(w->database, database_exec(w->database, "BEGIN IMMEDIATE"));
	result = result < 0 ? result : put(w, context);
	if (result < 0) {
		error_set(e, -result, "%s: %s", path, sqlite3_errmsg(w->database));
	}
	result = result < 0 ? result : commit_patiently(w, e);
	if (result < 0 && !sqlite3_get_autocommit(w->database)) {
		database_exec(w->database, "ROLLBACK");
	}
	if (result == 0) {
		sync_file(w->database);
	}
	writer_free(w);
	return result;
}

int amend_run(const char *path, const struct amendment *items, size_t n, struct error *e)
{
	struct writer *w = NULL;
	int result = writer_open(path, &w, e);
	if (result < 0) {
		return result;
	}
	result = put_all(w, items, n, e);
	result = result < 0 ? result : commit_patiently(w, e);
	if (result < 0 && !sqlite3_get_autocommit(w->database)) {
		database_exec(w->database, "ROLLBACK");
	}
	writer_free(w);
	return result;
}

static int put_start(struct writer *w)
{
	char now[24];
	struct utsname names;
	snprintf(now, sizeof(now), "%" PRIu64, clock_realtime_ns());
	int result = writer_put_run(w, "start_utc_ns", now);
	result = result < 0 ? result : writer_put_run(w, "version", STRAIN_VERSION);
	if (result == 0 && uname(&names) == 0) {
		result = writer_put_run(w, "hostname", names.nodename);
	}
	return result;
}

int amend_write_empty(const char *path, const struct amendment *items, size_t n, struct error *e)
{
	const struct writer_options options = {0};
	struct writer *w = NULL;
	int result = writer_create(path, &options, &w, e);
	if (result < 0) {
		return result;
	}
	result = put_start(w);
	if (result < 0) {
		error_errno(e, -result, "%s", path);
	}
	result = result < 0 ? result : put_all(w, items, n, e);
	result = result < 0 ? result : writer_finish(w, 0, -1, e);
	writer_free(w);
	if (result < 0) {
		remove(path);
	}
	return result;
}

// ---- after a recorder that was killed

static bool is_to_be_closed(struct reader *r)
{
	struct stat status;
	return reader_is_unclosed(r) && stat(reader_path(r), &status) == 0 &&
	       status.st_uid == geteuid() && !reader_is_damaged(r) &&
	       database_number(reader_database(r), "PRAGMA user_version", 0) <= STORE_VERSION;
}

int amend_close(const char *path, struct error *e)
{
	struct reader *reader = NULL;
	struct writer *w = NULL;
	int result = reader_open(path, &reader, e);
	if (result < 0) {
		return result;
	}
	bool wanted = is_to_be_closed(reader), cut_off = reader_state(reader) == RUN_CUT_OFF;
	int64_t end_ns = reader_end_ns(reader);
	reader_free(reader); // else the file could not leave WAL mode
	if (!wanted) {
		return 0;
	}
	result = writer_open(path, &w, e);
	if (result == 0 && cut_off) {
		result = writer_finish_cut_off(w, end_ns, e);
	} else if (result == 0) {
		writer_settle(w);
	}
	writer_free(w);
	return result;
}

// ---- its last name

// Whether nothing that belongs to the run is beside it, nor will be.
static bool is_one_file(const char *path)
{
	unsigned char format = 0;
	_cleanup_free_ char *log = NULL;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && pread(fd, &format, 1, FORMAT_AT) == 1 && format == 1 &&
	       asprintf(&log, "%s-wal", path) >= 0 && access(log, F_OK) < 0 && errno == ENOENT;
}

// Who reads it is waited for as long as writing it anew would take.
static int settle_tries(const char *path)
{
	struct stat file;
	off_t tries = stat(path, &file) == 0 ? 1 + file.st_size / SETTLE_TRY_BYTES : 1;
	return tries < SETTLE_TRIES ? (int)tries : SETTLE_TRIES;
}

static bool settle(const char *path)
{
	int tries = settle_tries(path);
	const struct timespec pause = {.tv_nsec = SETTLE_PAUSE_MS * (long)NS_PER_MS};
	for (int i = 0; i < tries && !is_one_file(path); i++) {
		struct writer *w = NULL;
		if (i > 0) {
			nanosleep(&pause, NULL);
		}
		if (writer_open(path, &w, NULL) == 0) {
			writer_settle(w);
			writer_free(w);
		}
	}
	return is_one_file(path);
}

static int write_anew(const char *from, const char *to, struct error *e)
{
	struct writer *w = NULL;
	sqlite3_stmt *copy = NULL;
	int result = writer_open(from, &w, e);
	if (result < 0) {
		return result;
	}
	unlink(to);
	_cleanup_close_ int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) { // SQLite would make one that anybody can read
		result = error_errno(e, errno, "%s", to);
		writer_free(w);
		return result;
	}
	int code = sqlite3_prepare_v2(w->database, "VACUUM INTO ?1", -1, &copy, NULL);
	code = code == SQLITE_OK ? sqlite3_bind_text(copy, 1, to, -1, SQLITE_STATIC) : code;
	code = code == SQLITE_OK ? sqlite3_step(copy) : code;
	if (code != SQLITE_DONE) {
		result = database_error(w->database, code, e, from);
	}
	sqlite3_finalize(copy);
	writer_free(w);
	return result;
}

// Not every kernel or file system supports RENAME_NOREPLACE, NFS for one; nor links.
static int rename_new(const char *from, const char *to)
{
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
		return 0;
	}
	if (errno != EINVAL && errno != ENOSYS) {
		return -errno;
	}
	if (link(from, to) == 0) {
		unlink(from);
		return 0;
	}
	if (errno == EEXIST || access(to, F_OK) == 0) {
		return -EEXIST;
	}
	return rename(from, to) < 0 ? -errno : 0;
}

static int rename_or_fail(const char *from, const char *to, struct error *e)
{
	int result = rename_new(from, to);
	return result < 0 ? error_errno(e, -result, "%s", to) : 0;
}

int amend_rename(const char *from, const char *to, struct error *e)
{
	if (settle(from)) {
		return rename_or_fail(from, to, e);
	}
	_cleanup_free_ char *copy = NULL, *log = NULL, *index = NULL;
	if (asprintf(&copy, "%s-copy", from) < 0 || asprintf(&log, "%s-wal", from) < 0 ||
		asprintf(&index, "%s-shm", from) < 0) {
		return error_errno(e, ENOMEM, "%s", from);
	}
	int result = write_anew(from, copy, e);
	result = result < 0 ? result : rename_or_fail(copy, to, e);
	if (result < 0) {
		unlink(copy);
		return result;
	}
	unlink(from); // first: nobody may take the log for one of another file
	unlink(log);
	unlink(index);
	return 0;
}
