// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Ways to open a run file for reading. SQLite needs to write beside a file in WAL mode even to read
// it, and maps what is beside it; where the directory does not allow that, or the file is somebody
// else's, who could truncate what is mapped, an immutable file or a private copy does.

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
#include "trace/beside.h"
#include "trace/bounds.h"
#include "trace/database.h"
#include "trace/reader_internal.h"
#include "trace/schema_check.h"
#include "trace/store.h"

enum {
	COPY_TRIES = 5, // of a file that is written meanwhile
	WAL_HEADER_BYTES = 32, // another one: the log began anew
	FORMAT_AT = 18, // in SQLite's header: 1, or 2 for a file in WAL mode
};

// SQLite opens files lazily: reads something. The size bounds what a statement may take, until the
// file is known to be sound.
static int try_open(
	const char *path, enum database_use use, uint64_t bytes, sqlite3 **ret, struct error *e)
{
	sqlite3 *database = NULL;
	int result = database_open(path, use, NULL, &database, e);
	if (result != SQLITE_OK) {
		return result;
	}
	database_bound_statements(
		database, (int64_t)(OPENING_STEPS + OPENING_STEPS_PER_BYTE * bytes));
	result = store_exec(database, "SELECT 1 FROM sqlite_master LIMIT 1");
	if (result != SQLITE_OK) {
		store_error(database, result, e, path);
		database_close(database);
		return result;
	}
	*ret = database;
	return SQLITE_OK;
}

// What was found when it failed: where a descriptor or memory lacked, no file is damaged.
static int say_why(int result, const struct error *why, const char *path, struct error *e)
{
	return result == SQLITE_OK ? 0
	       : why->code         ? error_set(e, why->code, "%s", why->text)
	                           : store_error(NULL, result, e, path);
}

bool reader_has_sibling(const char *path, const char *suffix)
{
	_cleanup_free_ char *name = NULL;
	struct stat st;
	return asprintf(&name, "%s%s", path, suffix) >= 0 && stat(name, &st) == 0 && st.st_size > 0;
}

// A private copy ----------------------------------------------------------------------------------

// What is copied, and how it was found.
struct source {
	int fd; // -1: not there, or not the run's
	struct stat status;
	char wal_header[WAL_HEADER_BYTES];
};

static const char *const copied_suffixes[] = {"", "-wal", "-journal"};
enum { SOURCES_N = ARRAY_LENGTH(copied_suffixes) };

static void sources_close(struct source sources[SOURCES_N])
{
	for (size_t i = 0; i < SOURCES_N; i++) {
		if (sources[i].fd >= 0) {
			close(sources[i].fd);
		}
		sources[i].fd = -1;
	}
}

// Only regular files, and beside the run only what its owner owns: another's is not SQLite's.
static int source_open(
	struct source *s, const char *path, const struct source *run, struct error *e)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (run ? O_NOFOLLOW : 0);
	s->fd = open(path, flags);
	if (s->fd < 0 || fstat(s->fd, &s->status) < 0) {
		return run && (errno == ENOENT || errno == ELOOP)
		               ? 0
		               : error_errno(e, errno, "%s", path);
	}
	bool usable = S_ISREG(s->status.st_mode) &&
	              (!run || s->status.st_uid == run->status.st_uid);
	if (!usable) {
		close(s->fd);
		s->fd = -1;
		return run ? 0 : error_set(e, EINVAL, "%s: no regular file", path);
	}
	if (run && beside_is_shared_journal(s->fd)) {
		return error_set(
			e, EPROTO, "%s: names another file, which no run's journal does", path);
	}
	(void)!pread(s->fd, s->wal_header, sizeof(s->wal_header), 0);
	return 0;
}

static int sources_open(struct source sources[SOURCES_N], const char *path, struct error *e)
{
	_cleanup_free_ char *real = realpath(path, NULL);
	uint64_t bytes = 0;
	int r = 0;
	for (size_t i = 0; i < SOURCES_N; i++) {
		sources[i] = (struct source){.fd = -1};
	}
	for (size_t i = 0; i < SOURCES_N && r == 0; i++) {
		_cleanup_free_ char *name = NULL;
		if (asprintf(&name, "%s%s", real ? real : path, copied_suffixes[i]) < 0) {
			return error_errno(e, ENOMEM, "%s", path);
		}
		r = source_open(&sources[i], name, i ? &sources[0] : NULL, e);
		bytes += sources[i].fd >= 0 ? (uint64_t)sources[i].status.st_size : 0;
		if (r == 0 && bytes > COPY_BYTES_MAX) {
			r = error_set(e, EFBIG,
				"%s: a copy is needed to read it, and more than %u MiB are not "
				"copied",
				path, (unsigned)(COPY_BYTES_MAX >> 20));
		}
	}
	return r;
}

static int copy_file(const struct source *from, const char *to)
{
	unlink(to); // of the try before
	if (from->fd < 0) {
		return 0;
	}
	_cleanup_close_ int out = open(
		to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (out < 0) {
		return -errno;
	}
	off_t at = 0;
	while (at < from->status.st_size) {
		ssize_t n = sendfile(out, from->fd, &at, (size_t)(from->status.st_size - at));
		if (n <= 0) {
			return n < 0 ? -errno : 0;
		}
	}
	return 0;
}

// Whether the files are as they were: a log may have grown, what was copied of it is the log's
// beginning.
static bool is_unchanged(const struct source sources[SOURCES_N])
{
	struct stat now;
	const struct stat *then = &sources[0].status;
	char header[WAL_HEADER_BYTES] = "";
	bool same = fstat(sources[0].fd, &now) == 0 && now.st_size == then->st_size &&
	            now.st_mtim.tv_sec == then->st_mtim.tv_sec &&
	            now.st_mtim.tv_nsec == then->st_mtim.tv_nsec;
	if (same && sources[1].fd >= 0) {
		(void)!pread(sources[1].fd, header, sizeof(header), 0);
		same = memcmp(header, sources[1].wal_header, sizeof(header)) == 0;
	}
	return same;
}

static int copy_once(const char *path, const char *directory, bool *ret_unchanged, struct error *e)
{
	struct source sources[SOURCES_N];
	int r = sources_open(sources, path, e);
	for (size_t i = 0; i < SOURCES_N && r == 0; i++) {
		_cleanup_free_ char *to = NULL;
		r = asprintf(&to, "%s/run%s", directory, copied_suffixes[i]) < 0
		            ? -ENOMEM
		            : copy_file(&sources[i], to);
		if (r < 0) {
			error_errno(e, -r, "cannot copy %s to %s", path, directory);
		}
	}
	*ret_unchanged = r == 0 && is_unchanged(sources);
	sources_close(sources);
	return r;
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
static int settle_copy(const char *copy, struct error *e)
{
	sqlite3 *database = NULL;
	int result = database_open(copy, DATABASE_WRITE, NULL, &database, e);
	if (result == SQLITE_OK) {
		result = store_exec(
			database, "PRAGMA synchronous = OFF; PRAGMA journal_mode = DELETE");
		if (result != SQLITE_OK) {
			store_error(database, result, e, copy);
		}
	}
	database_close(database);
	return result;
}

static int open_settled(const char *path, const char *directory, sqlite3 **ret, struct error *e)
{
	_cleanup_free_ char *copy = NULL;
	struct stat status;
	struct error why = {0};
	if (asprintf(&copy, "%s/run", directory) < 0) {
		return error_errno(e, ENOMEM, "%s", path);
	}
	int result = settle_copy(copy, &why);
	if (result == SQLITE_OK) {
		uint64_t bytes = stat(copy, &status) == 0 ? (uint64_t)status.st_size : 0;
		result = try_open(copy, DATABASE_FROZEN, bytes, ret, &why);
	}
	return say_why(result, &why, path, e);
}

// The copy has no name any more when this returns: it goes with the connection.
static int open_copy(const char *path, sqlite3 **ret, struct error *e)
{
	const char *temporary = secure_getenv("TMPDIR");
	_cleanup_free_ char *directory = NULL;
	if (asprintf(&directory, "%s/strain-XXXXXX", temporary ? temporary : "/tmp") < 0) {
		return error_errno(e, ENOMEM, "%s", path);
	}
	if (!mkdtemp(directory)) {
		return error_errno(e, errno, "cannot make a copy of %s in %s", path, directory);
	}
	bool unchanged = false;
	int r = 0;
	for (int i = 0; i < COPY_TRIES && r == 0 && !unchanged; i++) {
		r = copy_once(path, directory, &unchanged, e);
	}
	if (r == 0 && !unchanged) {
		r = error_set(e, EAGAIN, "%s: changes faster than it can be copied", path);
	}
	r = r < 0 ? r : open_settled(path, directory, ret, e);
	remove_copy(directory);
	return r;
}

// In its place ------------------------------------------------------------------------------------

static bool is_in_wal_mode(int fd)
{
	unsigned char format = 0;
	return pread(fd, &format, 1, FORMAT_AT) == 1 && format == 2;
}

// *ret_copied: it cannot be read where it is.
static int look_at(const char *path, struct stat *ret, bool *ret_copied, struct error *e)
{
	struct error why = {0};
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, ret) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	if (!S_ISREG(ret->st_mode)) {
		return error_set(e, EINVAL, "%s: no regular file", path);
	}
	int beside = beside_check(path, ret, &why);
	if (beside == -EPROTO) {
		return error_set(e, EPROTO, "%s", why.text);
	}
	*ret_copied = beside == -EPERM || (ret->st_uid != geteuid() && is_in_wal_mode(fd));
	return 0;
}

// That what SQLite found is what was looked at: a name can be somebody else's by then.
static bool is_as_found(const char *path, const struct stat *status)
{
	return beside_is_open(status, -1) && beside_check_open(path, status, NULL) == 0;
}

bool reader_is_copied(const char *path)
{
	struct stat status;
	bool copied = false;
	return look_at(path, &status, &copied, NULL) == 0 && copied;
}

int reader_open_unchecked(const char *path, sqlite3 **ret, struct error *e)
{
	struct stat status;
	struct error why = {0};
	bool copied = false;
	int r = look_at(path, &status, &copied, e);
	if (r < 0) {
		return r;
	}
	if (copied) {
		return open_copy(path, ret, e);
	}
	uint64_t bytes = (uint64_t)status.st_size;
	int result = try_open(path, DATABASE_READ, bytes, ret, &why);
	if (result == SQLITE_OK && !is_as_found(path, &status)) {
		database_close(*ret);
		*ret = NULL;
		return open_copy(path, ret, e);
	}
	int primary = result & 0xff;
	if (primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY || primary == SQLITE_IOERR) {
		if (reader_has_sibling(path, "-wal") || reader_has_sibling(path, "-journal")) {
			return open_copy(path, ret, e);
		}
		result = try_open(path, DATABASE_FROZEN, bytes, ret, &why);
	}
	return say_why(result, &why, path, e);
}

int reader_open_database(const char *path, sqlite3 **ret, struct error *e)
{
	sqlite3 *database = NULL;
	struct error why = {0};
	int r = reader_open_unchecked(path, &database, e);
	if (r == 0 && (store_number(database, "PRAGMA application_id", 0) != STORE_APPLICATION_ID ||
			      schema_check(database, &why) < 0)) {
		database_close(database);
		return error_set(e, EBADMSG, "%s: not a run file%s%s", path,
			why.text[0] ? ": " : "", why.text);
	}
	if (r == 0) {
		*ret = database;
	}
	return r;
}
