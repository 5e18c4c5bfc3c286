// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reading runs.

#include "runfile/reader.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "machine/file.h"
#include "machine/process.h"
#include "runfile/database.h"
#include "runfile/metric.h"
#include "runfile/reader_internal.h"
#include "runfile/samples.h"
#include "runfile/spans_table.h"

// Open --------------------------------------------------------------------------------------------
//
// Ways to open a run file for reading. Even to read a file in WAL mode, SQLite must write beside
// it, and it maps the files there. If the directory is read-only, or a file there belongs to
// another user, who could truncate a mapped file, the run is opened as immutable or from a private
// copy.

enum {
	COPY_TRIES = 5, // of a file that is written meanwhile
	WAL_HEADER_BYTES = 32, // a different header: the log was restarted
	FORMAT_AT = 18, // in SQLite's header: 1, or 2 for a file in WAL mode
};

// SQLite opens files lazily, so this reads something. The file's size bounds statements until the
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
	result = database_exec(database, "SELECT 1 FROM sqlite_master LIMIT 1");
	if (result != SQLITE_OK) {
		database_error(database, result, e, path);
		database_close(database);
		return result;
	}
	*ret = database;
	return SQLITE_OK;
}

// Sets the error. If descriptors or memory ran out, the file is not called damaged.
static int say_why(int result, const struct error *why, const char *path, struct error *e)
{
	return result == SQLITE_OK ? 0
	       : why->code         ? error_set(e, why->code, "%s", why->text)
	                           : database_error(NULL, result, e, path);
}

// Whether a file with this suffix ("-wal", "-journal") exists and is not empty.
static bool reader_has_sibling(const char *path, const char *suffix)
{
	_cleanup_free_ char *name = NULL;
	struct stat st;
	return asprintf(&name, "%s%s", path, suffix) >= 0 && stat(name, &st) == 0 && st.st_size > 0;
}

// A private copy ----------------------------------------------------------------------------------

// A file to be copied, and its status when it was opened.
struct source {
	int fd; // -1: missing, or not the run's
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

// Opens only regular files, and beside the run only files of the run's owner: SQLite did not create
// others.
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
		return run ? 0 : error_set(e, EINVAL, "%s: not a regular file", path);
	}
	int r = run ? database_check_journal(s->fd, path, e) : 0;
	(void)!pread(s->fd, s->wal_header, sizeof(s->wal_header), 0);
	return r;
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
	unlink(to); // left by the previous try
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

// Whether the files are unchanged. A log may have grown: the copied part is its beginning.
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

// Applies the WAL or journal to the copy, so that it needs no other file.
static int settle_copy(const char *copy, struct error *e)
{
	sqlite3 *database = NULL;
	int result = database_open(copy, DATABASE_WRITE, NULL, &database, e);
	if (result == SQLITE_OK) {
		result = database_exec(
			database, "PRAGMA synchronous = OFF; PRAGMA journal_mode = DELETE");
		if (result != SQLITE_OK) {
			database_error(database, result, e, copy);
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

// The copy is already unlinked when this returns, so it disappears with the connection.
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

// *ret_copied: the file cannot be read in place.
static int look_at(const char *path, struct stat *ret, bool *ret_copied, struct error *e)
{
	struct error why = {0};
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, ret) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	if (!S_ISREG(ret->st_mode)) {
		return error_set(e, EINVAL, "%s: not a regular file", path);
	}
	int beside = database_check_beside(path, ret, &why);
	if (beside == -EPROTO) {
		return error_set(e, EPROTO, "%s", why.text);
	}
	*ret_copied = beside == -EPERM || (ret->st_uid != geteuid() && is_in_wal_mode(fd));
	return 0;
}

// Whether SQLite opened the file that was examined: the name may belong to another file by then.
static bool is_as_found(const char *path, const struct stat *status)
{
	return database_is_open_beside(status, -1) &&
	       database_check_open_beside(path, status, NULL) == 0;
}

// Whether the file is read from a private copy, because files beside it cannot be trusted.
static bool reader_is_copied(const char *path)
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
	if (r == 0 &&
		(database_number(database, "PRAGMA application_id", 0) != STORE_APPLICATION_ID ||
			database_check_schema(database, &why) < 0)) {
		database_close(database);
		return error_set(e, EBADMSG, "%s: not a run file%s%s", path,
			why.text[0] ? ": " : "", why.text);
	}
	if (r == 0) {
		*ret = database;
	}
	return r;
}

// Salvage -----------------------------------------------------------------------------------------
//
// Copies the readable rows of a truncated or damaged database into a private one, so that all other
// code can read it like any run and needs no knowledge of damage.

// Upper bound of unreadable places in a table, one after the other.
#define GAPS_MAX 10000
#define UNNUMBERED_MAX 100000
// Minimum of bytes that may be copied, in addition to the file's size.
#define COPIED_MIN_BYTES (UINT64_C(1) << 20)
#define COPIED_PER_BYTE 2
// Range searched after an unreadable place for readable rows.
#define GAP_MAX (INT64_C(1) << 40)

static const struct salvaged_table {
	const char *name;
	const char *key; // by which the table is ordered
	bool by_number; // rows can be found by rowid
} tables[] = {
	{"run", "key", false},
	{"label", "name", false},
	{"entity", "id", true},
	{"metric", "id", true},
	{"missing", "rowid", true},
	{"clock", "id", true},
	{"block", "id", true},
	{"span", "id", true},
	{"span_block", "id", true},
	{"event", "id", true},
	{"profile_object", "id", true},
	{"profile_sample", "rowid", true},
	{"profile_symbol", "rowid", true},
	{"phase_sample", "rowid", true},
	{"line_sample", "rowid", true},
	{"summary", "rowid", true},
	{"finding", "name", false},
};

struct salvage {
	sqlite3 *from;
	sqlite3 *to;
	const struct salvaged_table *table;
	char *columns; // of the target's schema: a newer file may have more
	sqlite3_stmt *insert;
	uint64_t rows;
	sqlite3_int64 last; // rowid of the last row copied
	uint64_t bytes_left; // that may still be copied: rows that share pages can exceed the
	                     // file's size
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
	// The first column is the row's key, then come the table's columns.
	int n = sqlite3_column_count(row);
	uint64_t bytes = 0;
	for (int i = 1; i < n; i++) {
		bytes += (uint64_t)sqlite3_column_bytes(row, i);
	}
	s->bytes_left -= bytes < s->bytes_left ? bytes : s->bytes_left;
	for (int i = 1; i < n; i++) {
		sqlite3_bind_value(s->insert, i, sqlite3_column_value(row, i));
	}
	// A row that violates the schema is lost like an unreadable one.
	if (sqlite3_step(s->insert) == SQLITE_DONE) {
		s->rows++;
	}
	sqlite3_reset(s->insert);
}

static sqlite3_stmt *prepare_select(const struct salvage *s, const char *columns, const char *rest)
{
	struct text sql = {0};
	sqlite3_stmt *statement = NULL;
	text_format(&sql, "SELECT %s, %s FROM %s NOT INDEXED %s", s->table->key, columns,
		s->table->name, rest);
	sqlite3_prepare_v2(s->from, sql.data ? sql.data : "", -1, &statement, NULL);
	text_done(&sql);
	return statement;
}

// Copies rows to the end (returns true) or to the first unreadable row. Pages that refer to each
// other can repeat rows for ever: rowids that do not increase are damage, and the number of rows
// without rowids is bounded.
static bool copy_rows(struct salvage *s, const char *order, sqlite3_int64 from)
{
	sqlite3_stmt *statement = prepare_select(s, s->columns, order);
	int result = SQLITE_ERROR;
	sqlite3_bind_int64(statement, 1, from);
	for (uint64_t n = 0; statement && (result = sqlite3_step(statement)) == SQLITE_ROW; n++) {
		sqlite3_int64 number = sqlite3_column_int64(statement, 0);
		if (s->bytes_left == 0 ||
			(s->table->by_number ? number <= s->last : n >= UNNUMBERED_MAX)) {
			result = SQLITE_CORRUPT;
			break;
		}
		copy_row(s, statement);
		s->last = number;
	}
	sqlite3_finalize(statement);
	return result == SQLITE_DONE;
}

// Whether the first row from this id on can be found, or there is none.
static bool can_seek(sqlite3_stmt *seek, sqlite3_int64 id)
{
	sqlite3_bind_int64(seek, 1, id);
	int result = sqlite3_step(seek);
	sqlite3_reset(seek);
	return result == SQLITE_ROW || result == SQLITE_DONE;
}

// Finds the first id after `bad` from which rows are readable; a damaged page hides a range of ids.
// 0: none.
static sqlite3_int64 find_end_of_gap(sqlite3_stmt *seek, sqlite3_int64 bad)
{
	sqlite3_int64 step = 1;
	while (!can_seek(seek, bad + step)) {
		step *= 2;
		if (step > GAP_MAX) {
			return 0;
		}
	}
	sqlite3_int64 low = bad + step / 2, high = bad + step;
	while (high - low > 1) {
		sqlite3_int64 middle = low + (high - low) / 2;
		if (can_seek(seek, middle)) {
			high = middle;
		} else {
			low = middle;
		}
	}
	return high;
}

static void salvage_numbered(struct salvage *s)
{
	static const char rest[] = "WHERE rowid >= ?1 ORDER BY rowid";
	sqlite3_stmt *seek = prepare_select(s, "rowid", rest);
	sqlite3_int64 from = 1;
	for (unsigned gaps = 0; seek && gaps < GAPS_MAX && s->bytes_left > 0; gaps++) {
		s->last = from - 1;
		if (copy_rows(s, rest, from) || s->last > INT64_MAX - 2 * GAP_MAX) {
			break;
		}
		from = find_end_of_gap(seek, s->last + 1);
		if (from == 0) {
			break;
		}
	}
	sqlite3_finalize(seek);
}

// A table without rowids is read from the front, then from the back.
static void salvage_rows(struct salvage *s)
{
	if (s->table->by_number) {
		salvage_numbered(s);
		return;
	}
	char backwards[32];
	snprintf(backwards, sizeof(backwards), "ORDER BY %s DESC", s->table->key);
	if (!copy_rows(s, "", 0)) {
		copy_rows(s, backwards, 0);
	}
}

static void salvage_table(struct salvage *s)
{
	// A table with another text could do anything: a generated column, a view that never ends.
	if (!database_has_table(s->from, s->table->name)) {
		return;
	}
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

static int open_damaged(const char *path, sqlite3 **ret, uint64_t *ret_bytes, struct error *e)
{
	struct stat status;
	if (stat(path, &status) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	*ret_bytes = (uint64_t)status.st_size;
	bool frozen = reader_is_copied(path);
	int result = database_open(
		path, frozen ? DATABASE_DAMAGED_FROZEN : DATABASE_DAMAGED, NULL, ret, e);
	return result == SQLITE_OK ? 0 : -EBADMSG;
}

static int create_target(const char *path, sqlite3 **ret, struct error *e)
{
	int result = database_open(path, DATABASE_PRIVATE, NULL, ret, e);
	if (result != SQLITE_OK) {
		return database_errno(NULL, result);
	}
	result = database_exec(
		*ret, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN");
	result = result == SQLITE_OK ? database_exec(*ret, schema_sql) : result;
	return result == SQLITE_OK ? 0 : database_error(*ret, result, e, path);
}

// Copies every readable row into a private database. *ret_rows counts them.
static int salvage_database(const char *path, sqlite3 **ret, uint64_t *ret_rows, struct error *e)
{
	struct salvage s = {0};
	uint64_t bytes = 0;
	int r = open_damaged(path, &s.from, &bytes, e);
	r = r < 0 ? r : create_target(path, &s.to, e);
	s.bytes_left = COPIED_MIN_BYTES + COPIED_PER_BYTE * bytes;
	for (size_t i = 0; r == 0 && i < ARRAY_LENGTH(tables); i++) {
		s.table = &tables[i];
		salvage_table(&s);
	}
	if (r == 0) {
		int result = database_exec(s.to, "COMMIT; PRAGMA query_only = ON");
		r = result == SQLITE_OK ? 0 : database_error(s.to, result, e, path);
	}
	database_close(s.from);
	if (r < 0) {
		database_close(s.to);
		return r;
	}
	*ret = s.to;
	*ret_rows = s.rows;
	return 0;
}

// Liveness ----------------------------------------------------------------------------------------
//
// Whether the recorder of a run without an end is still writing it.

#define RECENT_S 30

// Reads a short file of /proc as one line. Returns false if it cannot be read.
static bool was_written_recently(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-journal"};
	int64_t now_s = (int64_t)(clock_realtime_ns() / NS_PER_S);
	for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++) {
		_cleanup_free_ char *name = NULL;
		struct stat st;
		if (asprintf(&name, "%s%s", path, suffixes[i]) >= 0 && stat(name, &st) == 0 &&
			now_s - st.st_mtim.tv_sec <= RECENT_S) {
			return true;
		}
	}
	return false;
}

static const char *pairs_get(const struct pairs *pairs, const char *name);

static int64_t pairs_number(const struct pairs *pairs, const char *name)
{
	const char *text = pairs_get(pairs, name);
	int64_t number;
	return text && parse_integer(text, 0, INT64_MAX, &number, NULL) == 0 ? number : 0;
}

static enum process_answer find_recorder(const struct pairs *run)
{
	const char *boot_id = pairs_get(run, "boot_id"), *hostname = pairs_get(run, "hostname");
	char our_boot_id[64], our_hostname[256] = "";
	gethostname(our_hostname, sizeof(our_hostname) - 1);
	if (boot_id && hostname && strcmp(hostname, our_hostname) == 0 &&
		file_read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", our_boot_id,
			sizeof(our_boot_id)) &&
		strcmp(boot_id, our_boot_id) != 0) {
		return PROCESS_NO; // on this machine, before it was last booted
	}
	const struct process_name recorder = {
		.pid = pairs_number(run, "recorder_pid"),
		.start_ticks = (uint64_t)pairs_number(run, "recorder_start_ticks"),
		.boot_id = boot_id,
		.pid_namespace = pairs_get(run, "pid_namespace"),
	};
	return process_find(&recorder, NULL);
}

// Whether the run's recorder is alive, from the keys of table `run`. If that cannot be determined
// (another machine, another container, hidden), from the time of the last write.
static bool recorder_is_alive(const char *path, const struct pairs *run)
{
	enum process_answer answer = find_recorder(run);
	return answer == PROCESS_YES ||
	       (answer == PROCESS_CANNOT_TELL && was_written_recently(path));
}

// Whether the recorder is known to have ended, so that nothing writes the file.
static bool recorder_has_ended(const struct pairs *run)
{
	return find_recorder(run) == PROCESS_NO;
}

// Series ------------------------------------------------------------------------------------------
//
// Blocks of a run, and a metric of an entity as a series.

int reader_blocks(struct reader *r, int64_t entity,
	int (*each)(void *context, int64_t entity, const struct block *b), void *context,
	struct error *e)
{
	struct block_query query = {.entity = entity, .from_us = INT64_MIN, .to_us = INT64_MAX};
	struct block_scan scan;
	int code = block_scan_start(&scan, r->database, &query, &r->damage, e);
	if (code < 0) {
		return code;
	}
	struct block block;
	while ((code = block_scan_next(&scan, &block, e)) == 1) {
		int stop = each(context, scan.entity, &block);
		block_done(&block);
		reader_progress(r);
		if (stop) {
			code = 0;
			break;
		}
	}
	block_scan_done(&scan);
	return code;
}

void series_done(struct series *s)
{
	if (s->minimum != s->values) {
		free(s->minimum);
	}
	if (s->maximum != s->values) {
		free(s->maximum);
	}
	free(s->t_us);
	free(s->values);
	*s = (struct series){0};
}

struct collector {
	struct series series;
	size_t capacity;
	double scale;
	int64_t from_us;
	int64_t to_us;
};

static int grow_array(void *array, size_t capacity)
{
	void **items = array;
	void *moved = realloc(*items, capacity * sizeof(double));
	if (!moved) {
		return -ENOMEM;
	}
	*items = moved;
	return 0;
}

// minimum and maximum become separate arrays only after something was thinned.
static int reserve(struct collector *c, size_t more)
{
	struct series *s = &c->series;
	if (s->n + more > RUN_STREAM_ROWS_MAX) {
		return -EFBIG; // a run that grew after it was opened
	}
	if (s->n + more <= c->capacity) {
		return 0;
	}
	size_t capacity = s->n + more + c->capacity / 2;
	bool shared = s->minimum == s->values;
	int r = grow_array(&s->t_us, capacity);
	if (r == 0) {
		r = grow_array(&s->values, capacity);
	}
	if (shared) {
		s->minimum = s->maximum = s->values;
	}
	if (r == 0 && !shared) {
		r = grow_array(&s->minimum, capacity);
	}
	if (r == 0 && !shared) {
		r = grow_array(&s->maximum, capacity);
	}
	if (r == 0) {
		c->capacity = capacity;
	}
	return r;
}

static int separate_extremes(struct collector *c)
{
	struct series *s = &c->series;
	if (s->minimum != s->values) {
		return 0;
	}
	double *minimum = malloc((c->capacity + 1) * sizeof(*minimum));
	double *maximum = malloc((c->capacity + 1) * sizeof(*maximum));
	if (!minimum || !maximum) {
		free(minimum);
		free(maximum);
		return -ENOMEM;
	}
	if (s->n) {
		memcpy(minimum, s->values, s->n * sizeof(*minimum));
		memcpy(maximum, s->values, s->n * sizeof(*maximum));
	}
	s->minimum = minimum;
	s->maximum = maximum;
	return 0;
}

static double scaled(int64_t value, double scale)
{
	return value == VALUE_MISSING ? NAN : (double)value * scale;
}

static const int64_t *find_column(const struct block *b, enum aggregate aggregate)
{
	for (uint32_t i = 0; i < b->n_columns; i++) {
		if ((b->aggregates ? b->aggregates[i] : AGGREGATE_NONE) == aggregate) {
			return b->columns[i];
		}
	}
	return NULL;
}

static int collect_block(struct collector *c, const struct block *b)
{
	const int64_t *plain = find_column(b, AGGREGATE_NONE);
	const int64_t *mean = plain ? plain : find_column(b, AGGREGATE_MEAN);
	const int64_t *minimum = plain ? plain : find_column(b, AGGREGATE_MINIMUM);
	const int64_t *maximum = plain ? plain : find_column(b, AGGREGATE_MAXIMUM);
	if (!mean) {
		return 0;
	}
	int r = reserve(c, b->n_rows);
	r = r == 0 && !plain ? separate_extremes(c) : r;
	if (r < 0) {
		return r;
	}
	struct series *s = &c->series;
	for (uint32_t i = 0; i < b->n_rows; i++) {
		// Blocks of one stream do not overlap; forged ones may, but times must never
		// decrease.
		bool falls = s->n > 0 && b->t[i] < s->t_us[s->n - 1];
		if (falls || b->t[i] < c->from_us || b->t[i] > c->to_us) {
			continue;
		}
		s->t_us[s->n] = b->t[i];
		s->values[s->n] = scaled(mean[i], c->scale);
		if (s->minimum != s->values) {
			s->minimum[s->n] = scaled(minimum ? minimum[i] : mean[i], c->scale);
			s->maximum[s->n] = scaled(maximum ? maximum[i] : mean[i], c->scale);
		}
		s->n++;
	}
	return 0;
}

// Finds the scale of the metric for this entity's kind. Returns false if there is none.
static bool find_scale(struct reader *r, int64_t entity, const char *metric, double *ret)
{
	static const char sql[] = "SELECT m.scale FROM metric m JOIN entity e"
				  " ON e.kind = m.entity_kind WHERE e.id = ?1 AND m.name = ?2";
	if (!r->scale && sqlite3_prepare_v2(r->database, sql, -1, &r->scale, NULL) != SQLITE_OK) {
		return false;
	}
	sqlite3_bind_int64(r->scale, 1, entity);
	sqlite3_bind_text(r->scale, 2, metric, -1, SQLITE_STATIC);
	bool found = sqlite3_step(r->scale) == SQLITE_ROW;
	if (found) {
		*ret = sqlite3_column_double(r->scale, 0);
	}
	sqlite3_reset(r->scale);
	sqlite3_clear_bindings(r->scale);
	return found;
}

// The table of metrics cannot change while the run is held.
static bool knows_metrics(struct reader *r)
{
	if (r->held && !r->metrics_tried) {
		r->metrics_tried = true;
		(void)metric_rows_load(r->database, &r->metrics);
	}
	return r->metrics.n > 0;
}

// The same as find_scale(), from the metric's rows in memory.
static bool find_known_scale(
	struct reader *r, int64_t entity, const struct metric_entry *rows, size_t n, double *ret)
{
	static const char sql[] = "SELECT kind FROM entity WHERE id = ?1";
	if (!r->kind && sqlite3_prepare_v2(r->database, sql, -1, &r->kind, NULL) != SQLITE_OK) {
		return false;
	}
	sqlite3_bind_int64(r->kind, 1, entity);
	const char *kind = sqlite3_step(r->kind) == SQLITE_ROW
	                           ? (const char *)sqlite3_column_text(r->kind, 0)
	                           : NULL;
	bool found = false;
	for (size_t i = 0; i < n && kind && !found; i++) {
		found = strcmp(rows[i].kind, kind) == 0;
		*ret = found ? rows[i].scale : *ret;
	}
	sqlite3_reset(r->kind);
	return found;
}

// Finds the scale, and sets the query's metric. Returns false if the entity lacks the metric.
static bool find_metric(struct reader *r, struct block_query *query, double *ret)
{
	if (!knows_metrics(r)) {
		return find_scale(r, query->entity, query->metric, ret);
	}
	size_t n;
	const struct metric_entry *rows = metric_rows_find(&r->metrics, query->metric, &n);
	if (rows && metric_rows_have_one_source(rows, n)) {
		query->known = rows;
		query->n_known = n;
	}
	return rows && find_known_scale(r, query->entity, rows, n, ret);
}

int reader_series(struct reader *r, int64_t entity, const char *metric, int64_t from_us,
	int64_t to_us, struct series *ret, struct error *e)
{
	struct collector c = {.from_us = from_us, .to_us = to_us};
	struct block_query query = {.entity = entity,
		.metric = metric,
		.from_us = from_us,
		.to_us = to_us,
		.kept = &r->statements};
	struct block_scan scan;
	if (!entity || !find_metric(r, &query, &c.scale)) {
		*ret = (struct series){0};
		return 0;
	}
	int code = block_scan_start(&scan, r->database, &query, &r->damage, e);
	if (code < 0) {
		return code;
	}
	struct block block;
	while ((code = block_scan_next(&scan, &block, e)) == 1) {
		int collected = collect_block(&c, &block);
		block_done(&block);
		reader_progress(r);
		if (collected < 0) {
			code = error_errno(e, -collected, "cannot read %s", metric);
			break;
		}
	}
	block_scan_done(&scan);
	if (code < 0) {
		series_done(&c.series);
		return code;
	}
	*ret = c.series;
	return 0;
}

// Reader ------------------------------------------------------------------------------------------

// Returns the value of a key, or NULL.
static const char *pairs_get(const struct pairs *pairs, const char *name)
{
	for (size_t i = 0; i < pairs->n; i++) {
		if (strcmp(pairs->items[i].name, name) == 0) {
			return pairs->items[i].value;
		}
	}
	return NULL;
}

static void pairs_done(struct pairs *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		free(pairs->items[i].name);
		free(pairs->items[i].value);
	}
	free(pairs->items);
	*pairs = (struct pairs){0};
}

static int pairs_add(struct pairs *pairs, const unsigned char *name, const unsigned char *value)
{
	void *items = pairs->items;
	pairs->bytes += strlen(name ? (const char *)name : "") +
	                strlen(value ? (const char *)value : "");
	if (pairs->n >= RUN_KEYS_MAX || pairs->bytes > RUN_KEYS_BYTES_MAX) {
		return SQLITE_TOOBIG;
	}
	struct pair pair = {
		strdup(name ? (const char *)name : ""), strdup(value ? (const char *)value : "")};
	if (!pair.name || !pair.value ||
		array_reserve(&items, &pairs->capacity, pairs->n + 1, sizeof(pair)) < 0) {
		free(pair.name);
		free(pair.value);
		return SQLITE_NOMEM;
	}
	pairs->items = items;
	pairs->items[pairs->n++] = pair;
	return SQLITE_OK;
}

static int pairs_load(struct pairs *pairs, sqlite3 *database, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
	while (result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
		result = pairs_add(pairs, sqlite3_column_text(statement, 0),
			sqlite3_column_text(statement, 1));
	}
	sqlite3_finalize(statement);
	return result == SQLITE_DONE ? SQLITE_OK : result;
}

// Adds to the problems found while opening, for the notice.
static void note_trouble(struct reader *r, const char *text)
{
	size_t length = strlen(r->trouble);
	snprintf(
		r->trouble + length, sizeof(r->trouble) - length, "%s%s", length ? "; " : "", text);
}

// The first bytes of every SQLite database.
struct database_header {
	char magic[16];
	uint8_t rest[84];
};

static uint32_t header_number(const struct database_header *header, size_t offset)
{
	const uint8_t *at = header->rest + offset - sizeof(header->magic);
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

// Finds problems that SQLite would report less clearly. *ret_missing: number of bytes that the
// header promises but the file lacks.
static int check_file(const char *path, uint64_t *ret_missing, struct error *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0) {
		return error_errno(e, errno, "%s", path);
	}
	if (!S_ISREG(st.st_mode)) {
		int code = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		return error_set(e, code, "%s: expected a run file, found %s", path,
			code == EISDIR ? "a directory" : "no regular file");
	}
	struct database_header header = {0};
	ssize_t n = pread(fd, &header, sizeof(header), 0);
	if (n <= 0) {
		return error_set(e, EBADMSG, "%s: expected a run file, found an empty file", path);
	}
	if (memcmp(header.magic, "SQLite format 3", sizeof(header.magic)) != 0) {
		return error_set(e, EBADMSG, "%s: not a run file", path);
	}
	if (n < (ssize_t)sizeof(header)) {
		return error_set(e, EBADMSG, "%s: truncated: only %zd bytes are left", path, n);
	}
	uint64_t page = header_number(&header, 16) >> 16;
	uint64_t expected = (page == 1 ? 65536 : page) * header_number(&header, 28);
	uint64_t found = (uint64_t)st.st_size;
	if (found > RUN_BYTES_MAX) {
		return error_set(e, EFBIG, "%s: expected a run of at most %u GiB, found %llu GiB",
			path, (unsigned)(RUN_BYTES_MAX >> 30), (unsigned long long)(found >> 30));
	}
	*ret_missing = expected > found ? expected - found : 0;
	return 0;
}

static int check_identity(struct reader *r, struct error *e)
{
	sqlite3_int64 version = database_number(r->database, "PRAGMA user_version", -1);
	sqlite3_int64 major = version / 1000, minor = version % 1000;
	if (database_number(r->database, "PRAGMA application_id", -1) != STORE_APPLICATION_ID ||
		major < 1) {
		return error_set(e, EBADMSG, "%s: not a run file but another database", r->path);
	}
	if (major > STORE_VERSION_MAJOR) {
		return error_set(e, EPROTONOSUPPORT,
			"%s: schema %lld.%lld is newer than this strain, which reads up to schema "
			"%d; update strain",
			r->path, (long long)major, (long long)minor, STORE_VERSION_MAJOR);
	}
	if (minor > STORE_VERSION_MINOR) {
		char text[96];
		snprintf(text, sizeof(text),
			"written by a newer strain (schema %lld.%lld): its additions are not shown",
			(long long)major, (long long)minor);
		note_trouble(r, text);
	}
	return 0;
}

// Limits of a run: see database.h.
static const struct {
	const char *sql;
	int64_t most;
	const char *what;
} bounds[] = {
	{"SELECT count(*) FROM run", RUN_KEYS_MAX, "keys"},
	{"SELECT count(*) FROM label", RUN_KEYS_MAX, "labels"},
	{"SELECT count(*) FROM entity", RUN_ENTITIES_MAX, "entities"},
	{"SELECT count(*) FROM metric", RUN_METRICS_MAX, "metrics"},
	{"SELECT count(*) FROM missing", RUN_MISSING_MAX, "missing values"},
	{"SELECT count(*) FROM event", RUN_EVENTS_MAX, "events"},
	{"SELECT count(*) FROM summary", RUN_SUMMARY_MAX, "rows of its summary"},
	{"SELECT count(*) FROM finding", RUN_KEYS_MAX, "findings"},
	{"SELECT count(*) FROM main.span", RUN_SPANS_MAX, "spans"},
	// A block's content is compared with its row when it is decoded.
	{"SELECT sum(min(max(rows, 0), 1048576)) FROM span_block", RUN_SPANS_MAX,
		"spans in blocks"},
	{"SELECT sum(min(max(rows, 0), 1048576)) FROM clock", RUN_ROWS_MAX, "rows of clocks"},
	{"SELECT sum(min(max(rows, 0), 1048576)) FROM block", RUN_ROWS_MAX, "rows of samples"},
	{"SELECT max(n) FROM (SELECT sum(min(max(rows, 0), 1048576)) AS n FROM block"
	 " GROUP BY entity, source)",
		RUN_STREAM_ROWS_MAX, "rows of samples of one entity"},
};

// Number of values to decode to read all blocks once. INT64_MAX if unknown.
static int64_t count_values(sqlite3 *database)
{
	static const char sql[] = "SELECT payload, (SELECT rows FROM clock WHERE id = block.clock)"
				  " FROM block";
	sqlite3_stmt *statement = NULL;
	int64_t n = 0;
	int result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
	while (result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
		struct block header = {0};
		const void *payload = sqlite3_column_blob(statement, 0);
		size_t length = (size_t)sqlite3_column_bytes(statement, 0);
		int r = block_decode_header(payload, length, &header, NULL);
		int64_t clock = sqlite3_column_int64(statement, 1);
		if (r == 0) {
			n += (int64_t)header.n_rows * (header.n_columns + 1);
			n += clock > 0 && clock <= BLOCK_MAX_ROWS ? clock : 0;
		}
		block_done(&header);
		result = r == -ENOMEM ? SQLITE_NOMEM : SQLITE_OK;
	}
	sqlite3_finalize(statement);
	return result == SQLITE_DONE ? n : INT64_MAX;
}

// Rejects files that expand too much: bytes cost their sender something, values nothing. See
// database.h.
static int check_density(struct reader *r, struct error *e)
{
	// No block has more columns, so a run of few rows need not be examined.
	static_assert(BLOCK_MAX_COLUMNS + 1 == 257 && BLOCK_MAX_ROWS == 1048576, "as in the SQL");
	static const char most[] =
		"SELECT sum(min(max(rows, 0), 1048576) * 257 +"
		" ifnull((SELECT min(max(rows, 0), 1048576) FROM clock WHERE id = block.clock), 0))"
		" FROM block";
	int64_t pages = database_number(r->database, "PRAGMA page_count", 0) -
	                database_number(r->database, "PRAGMA freelist_count", 0);
	int64_t bytes = pages * database_number(r->database, "PRAGMA page_size", 0);
	int64_t limit = bytes < (int64_t)RUN_BYTES_MAX ? bytes * RUN_VALUES_PER_BYTE : INT64_MAX;
	limit = limit > RUN_VALUES_MIN ? limit : RUN_VALUES_MIN;
	if (database_number(r->database, most, 0) <= limit || count_values(r->database) <= limit) {
		return 0;
	}
	return error_set(e, EFBIG,
		"%s: more than %lld values of samples in %lld bytes, which no run has", r->path,
		(long long)limit, (long long)bytes);
}

static int check_bounds(struct reader *r, struct error *e)
{
	for (size_t i = 0; i < ARRAY_LENGTH(bounds); i++) {
		sqlite3_int64 found = database_number(r->database, bounds[i].sql, 0);
		if (found > bounds[i].most) {
			return error_set(e, EFBIG, "%s: %lld %s, more than the %lld of any run",
				r->path, (long long)found, bounds[i].what,
				(long long)bounds[i].most);
		}
	}
	return check_density(r, e);
}

static int load_pairs(struct reader *r)
{
	pairs_done(&r->run);
	pairs_done(&r->labels);
	int result = pairs_load(&r->run, r->database, "SELECT key, value FROM run");
	return result == SQLITE_OK
	               ? pairs_load(&r->labels, r->database, "SELECT name, value FROM label")
	               : result;
}

static enum run_state find_state(const struct reader *r)
{
	const char *state = pairs_get(&r->run, "state");
	if (pairs_get(&r->run, "end_ns")) {
		return state && strcmp(state, "cut_off") == 0 ? RUN_CUT_OFF : RUN_FINISHED;
	}
	return recorder_is_alive(r->path, &r->run) ? RUN_LIVE : RUN_CUT_OFF;
}

// Includes indexes: a dangling index entry makes SQLite abort a whole query.
static bool is_whole(sqlite3 *database)
{
	sqlite3_stmt *statement = NULL;
	bool whole = sqlite3_prepare_v2(database, "PRAGMA integrity_check(1)", -1, &statement,
			     NULL) == SQLITE_OK &&
	             sqlite3_step(statement) == SQLITE_ROW &&
	             strcmp((const char *)sqlite3_column_text(statement, 0), "ok") == 0;
	sqlite3_finalize(statement);
	return whole;
}

static bool is_readable(sqlite3 *database)
{
	return database_exec(database, "SELECT name FROM sqlite_master") == SQLITE_OK;
}

static void note_truncated(struct reader *r, uint64_t missing_bytes)
{
	char text[128], bytes[32];
	snprintf(text, sizeof(text), "truncated: %s at its end are missing; the rest is read",
		text_bytes(bytes, sizeof(bytes), (double)missing_bytes));
	note_trouble(r, text);
	r->incomplete = true;
}

static int open_salvaged(struct reader *r, uint64_t missing_bytes, struct error *e)
{
	uint64_t rows = 0;
	database_close(r->database);
	r->database = NULL;
	int code = salvage_database(r->path, &r->database, &rows, e);
	code = code < 0 ? code : check_bounds(r, e);
	if (code < 0) {
		return code;
	}
	const char *what = missing_bytes ? "truncated" : "damaged";
	if (rows == 0 || load_pairs(r) != SQLITE_OK || r->run.n == 0) {
		return error_set(
			e, EBADMSG, "%s: %s: no part of the run is readable", r->path, what);
	}
	if (missing_bytes) {
		note_truncated(r, missing_bytes);
	} else {
		note_trouble(r, "damaged: what can still be read is read");
		r->incomplete = true;
	}
	return 0;
}

static bool is_damage(int code)
{
	return code == -EBADMSG || code == -EIO;
}

// Opens the database and reads its identity and keys; from a private copy of the remains if it is
// damaged.
static int open_checked(struct reader *r, struct error *e)
{
	uint64_t missing = 0;
	int code = check_file(r->path, &missing, e);
	if (code < 0) {
		return code;
	}
	code = reader_open_unchecked(r->path, &r->database, e);
	if (code < 0) {
		return is_damage(code) ? open_salvaged(r, missing, e) : code;
	}
	code = check_identity(r, e);
	if (code < 0) {
		return code;
	}
	struct error why = {0};
	if (database_check_schema(r->database, &why) < 0) {
		// A file that SQLite cannot read is damaged; one that it can read is another
		// program's.
		return is_readable(r->database)
		               ? error_set(e, EBADMSG, "%s: not a run file: %s", r->path, why.text)
		               : open_salvaged(r, missing, e);
	}
	// Before any query: pages that refer to each other make queries endless.
	if (!is_whole(r->database)) {
		return open_salvaged(r, missing, e);
	}
	code = check_bounds(r, e);
	if (code < 0) {
		return code;
	}
	int result = load_pairs(r);
	if (result == SQLITE_TOOBIG) {
		return error_set(e, EFBIG, "%s: more keys and labels than any run has", r->path);
	}
	if (result != SQLITE_OK) {
		return open_salvaged(r, missing, e);
	}
	database_bound_statements(r->database, INT64_MAX);
	r->state = find_state(r);
	// SQLite reads a missing part of the last page as zeros. Pages in a WAL are not missing.
	if (missing && !reader_has_sibling(r->path, "-wal")) {
		note_truncated(r, missing);
	}
	return 0;
}

static void note_cut_off(struct reader *r)
{
	char text[96], duration[32];
	snprintf(text, sizeof(text), "cut off: nothing was recorded after %s",
		text_seconds(duration, sizeof(duration), (double)reader_end_ns(r) / 1e9));
	note_trouble(r, text);
}

// Creates tables besides those of the file: decoded samples, all spans, our own views.
static int make_tables(struct reader *r, struct error *e)
{
	bool locked = database_number(r->database, "PRAGMA query_only", 0) == 1;
	database_exec(r->database, "PRAGMA query_only = OFF");
	bool made = samples_register(r->database, &r->damage) == 0 &&
	            spans_table_make(r->database, &r->damage) == 0 &&
	            database_make_views(r->database) == SQLITE_OK;
	if (locked) {
		database_exec(r->database, "PRAGMA query_only = ON");
	}
	return made ? 0 : error_errno(e, ENOMEM, "%s", r->path);
}

static int open_run(struct reader *r, struct error *e)
{
	int code = open_checked(r, e);
	if (code < 0) {
		return code;
	}
	r->state = find_state(r);
	if (r->state == RUN_CUT_OFF) {
		note_cut_off(r);
	}
	return make_tables(r, e);
}

int reader_open(const char *path, struct reader **ret, struct error *e)
{
	struct reader *r = calloc(1, sizeof(*r));
	if (!r || !(r->path = strdup(path))) {
		reader_free(r);
		return error_errno(e, ENOMEM, "%s", path);
	}
	int code = open_run(r, e);
	if (code < 0) {
		reader_free(r);
		return code;
	}
	*ret = r;
	return 0;
}

void reader_free(struct reader *r)
{
	if (r) {
		free(r->part);
		sqlite3_finalize(r->scale);
		sqlite3_finalize(r->kind);
		metric_rows_done(&r->metrics);
		block_statements_done(&r->statements);
		database_close(r->database);
		pairs_done(&r->run);
		pairs_done(&r->labels);
		damage_done(&r->damage);
		free(r->path);
		free(r);
	}
}

const char *reader_path(const struct reader *r)
{
	return r->path;
}

enum run_state reader_state(const struct reader *r)
{
	return r->state;
}

bool reader_is_unclosed(const struct reader *r)
{
	bool finished = r->state == RUN_FINISHED || pairs_get(&r->run, "end_ns");
	return finished ? database_number(r->database,
				  "SELECT journal_mode = 'wal' FROM pragma_journal_mode", 0) == 1
	                : r->state == RUN_CUT_OFF && recorder_has_ended(&r->run);
}

void reader_watch(struct reader *r, void (*progressed)(void *context), void *context)
{
	r->progressed = progressed;
	r->progress_context = context;
}

void reader_progress(const struct reader *r)
{
	if (r->progressed) {
		r->progressed(r->progress_context);
	}
}

bool reader_is_damaged(const struct reader *r)
{
	return r->incomplete || r->damage.n > 0;
}

uint64_t reader_damage(const struct reader *r)
{
	return r->damage.n;
}

const char *reader_notice(struct reader *r)
{
	char blocks[64] = "";
	if (r->damage.n) {
		snprintf(blocks, sizeof(blocks), "%s%zu damaged block%s left out",
			r->trouble[0] ? "; " : "", r->damage.n, r->damage.n == 1 ? "" : "s");
	}
	snprintf(r->notice, sizeof(r->notice), "%s%s", r->trouble, blocks);
	return r->notice[0] ? r->notice : NULL;
}

const char *reader_run(struct reader *r, const char *key)
{
	return pairs_get(&r->run, key);
}

int64_t reader_run_i64(struct reader *r, const char *key, int64_t otherwise)
{
	const char *text = pairs_get(&r->run, key);
	int64_t value;
	return text && parse_integer(text, INT64_MIN, INT64_MAX, &value, NULL) == 0 ? value
	                                                                            : otherwise;
}

const char *reader_label(struct reader *r, const char *name)
{
	return pairs_get(&r->labels, name);
}

void reader_hold(struct reader *r)
{
	r->held = database_exec(r->database, "BEGIN") == SQLITE_OK;
}

void reader_release(struct reader *r)
{
	metric_rows_done(&r->metrics); // more may be added from now on
	r->held = r->metrics_tried = false;
	(void)database_exec(r->database, "COMMIT");
}

bool reader_has_samples(struct reader *r)
{
	return database_has_table(r->database, "profile_sample");
}

bool reader_has_lines(struct reader *r)
{
	return database_has_table(r->database, "line_sample");
}

bool reader_has_phase_samples(struct reader *r)
{
	return database_has_table(r->database, "phase_sample");
}

sqlite3 *reader_database(struct reader *r)
{
	return r->database;
}

// If some rows are far apart, the blocks that began last may not be the ones that end last.
static const char last_block[] = "SELECT max((SELECT max(t_last) FROM (SELECT t_last FROM block"
				 " WHERE entity = e.id ORDER BY t_first DESC LIMIT 32)))"
				 " FROM entity e";

// The last time in the file, in ns since the start.
static int64_t last_recorded_ns(sqlite3 *database)
{
	// Each query uses an index or reads from the end: a run can have millions of spans.
	static const char *const queries[] = {
		last_block,
		"SELECT t_ns FROM event ORDER BY id DESC LIMIT 1",
		"SELECT max(start_ns, ifnull(end_ns, 0)) FROM main.span ORDER BY id DESC LIMIT 1",
		"SELECT last_ns FROM span_block ORDER BY id DESC LIMIT 1",
	};
	int64_t last = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(queries); i++) {
		int64_t t = database_number(database, queries[i], 0);
		last = t > last ? t : last;
	}
	return last;
}

int64_t reader_end_ns(struct reader *r)
{
	int64_t end = reader_run_i64(r, "end_ns", -1);
	return end >= 0 ? end : last_recorded_ns(r->database);
}

// Finds the first event after which nothing was recorded: "recorder was killed (signal 9); nothing
// ...".
static void find_part(struct reader *r)
{
	sqlite3_stmt *row = NULL;
	r->part_known = true;
	if (r->state != RUN_FINISHED ||
		sqlite3_prepare_v2(r->database,
			"SELECT t_ns, kind = 'disk_full', text FROM event WHERE kind IN "
			"('disk_full',"
			" 'recorder_died') ORDER BY t_ns, id LIMIT 1",
			-1, &row, NULL) != SQLITE_OK ||
		sqlite3_step(row) != SQLITE_ROW) {
		sqlite3_finalize(row);
		return;
	}
	// A batch of data written each second may have been lost: samples show how far the
	// recording goes.
	int64_t last_ns = database_number(r->database, last_block, 0);
	int64_t event_ns = sqlite3_column_int64(row, 0), end_ns = reader_end_ns(r);
	last_ns = last_ns < event_ns ? last_ns : event_ns;
	r->part_end_ns = last_ns < 0 ? 0 : last_ns < end_ns ? last_ns : end_ns;
	const char *text = (const char *)sqlite3_column_text(row, 2);
	_cleanup_text_ struct text why = {0};
	bool no_room = sqlite3_column_int(row, 1);
	if (!text || (no_room && strncmp(text, DISK_IS_FULL, strlen(DISK_IS_FULL)) == 0)) {
		text_append_string(&why, "the disk was full");
	} else {
		text_append_string(&why, no_room ? "" : "the ");
		text_append_printable(&why, text, strcspn(text, no_room ? ":" : ";"));
	}
	r->part = text_steal(&why);
	sqlite3_finalize(row);
}

const char *reader_partial(struct reader *r)
{
	if (!r->part_known) {
		find_part(r);
	}
	return r->part;
}

int64_t reader_recorded_ns(struct reader *r)
{
	return reader_partial(r) ? r->part_end_ns : reader_end_ns(r);
}
