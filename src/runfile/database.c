// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Opening databases, hardened.

#include "runfile/database.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "runfile/codec.h"

// Store -------------------------------------------------------------------------------------------
//
// SQLite errors and small statements.

static bool is_no_room(int code)
{
	return code == ENOSPC || code == EDQUOT || code == EFBIG;
}

int database_errno(sqlite3 *database, int result)
{
	static const struct {
		int result;
		int code;
	} codes[] = {
		{SQLITE_OK, 0},
		{SQLITE_DONE, 0},
		{SQLITE_ROW, 0},
		{SQLITE_FULL, ENOSPC},
		{SQLITE_BUSY, EBUSY},
		{SQLITE_LOCKED, EBUSY},
		{SQLITE_NOMEM, ENOMEM},
		{SQLITE_CONSTRAINT, EINVAL},
		{SQLITE_TOOBIG, EINVAL},
		{SQLITE_READONLY, EROFS},
		{SQLITE_PERM, EACCES},
		{SQLITE_AUTH, EACCES},
		{SQLITE_CORRUPT, EBADMSG},
		{SQLITE_NOTADB, EBADMSG},
		{SQLITE_SCHEMA, EBADMSG},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(codes); i++) {
		if (codes[i].result == (result & 0xff)) {
			return -codes[i].code;
		}
	}
	// After SQLITE_IOERR and SQLITE_CANTOPEN, the errno of the system call is more precise.
	int code = database ? sqlite3_system_errno(database) : 0;
	return is_no_room(code) ? -ENOSPC : code > 0 ? -code : -EIO;
}

int database_error(sqlite3 *database, int result, struct error *e, const char *context)
{
	int r = database_errno(database, result);
	const char *text = database ? sqlite3_errmsg(database) : sqlite3_errstr(result);
	if (r == -ENOSPC) { // for callers one case, for users three
		int code = database_no_room(database);
		return error_set(e, ENOSPC, "%s: %s", context, strerrordesc_np(code));
	}
	return r == -EIO || r == -EINVAL || r == -EBADMSG
	               ? error_set(e, -r, "%s: %s", context, text)
	               : error_errno(e, -r, "%s", context);
}

int database_no_room(sqlite3 *database)
{
	int code = database ? sqlite3_system_errno(database) : 0;
	return is_no_room(code) ? code : ENOSPC;
}

int database_exec(sqlite3 *database, const char *sql)
{
	return sqlite3_exec(database, sql, NULL, NULL, NULL);
}

sqlite3_int64 database_number(sqlite3 *database, const char *sql, sqlite3_int64 otherwise)
{
	sqlite3_stmt *statement = NULL;
	sqlite3_int64 number = otherwise;
	if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK &&
		sqlite3_step(statement) == SQLITE_ROW &&
		sqlite3_column_type(statement, 0) == SQLITE_INTEGER) {
		number = sqlite3_column_int64(statement, 0);
	}
	sqlite3_finalize(statement);
	return number;
}

bool database_is_on_network(const char *path)
{
	// From linux/magic.h and the file systems' sources; f_type is 32 bits of a long.
	static const unsigned network[] = {
		0x6969, // NFS
		0x0bd00bd0, // Lustre
		0x47504653, // GPFS
		0x19830326, // BeeGFS
		0x00c36400, // Ceph
		0xff534d42, // CIFS
		0xfe534d42, // SMB2
		0x517b, // SMB
		0x5346414f, // AFS
		0x6b414653, // kAFS
		0x564c, // NCP
		0x01161970, // GFS2
		0x7461636f, // OCFS2
		0x01021997, // 9P: no shared mapping
	};
	struct statfs fs;
	if (statfs(path, &fs) < 0) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(network); i++) {
		if ((unsigned)fs.f_type == network[i]) {
			return true;
		}
	}
	return false;
}

// Beside ------------------------------------------------------------------------------------------
//
// Files beside a database.

static const char *const beside_suffixes[BESIDE_N] = {"-wal", "-shm", "-journal"};

static const char journal_suffix[] = "-journal";

// Examines the names in /proc, which lead to the open files, because another thread may be closing
// a descriptor at the same time.
bool database_is_open_beside(const struct stat *file, int but)
{
	DIR *folder = opendir("/proc/self/fd");
	bool found = !folder; // cannot be determined
	for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
		int64_t fd;
		struct stat other;
		found = parse_integer(entry->d_name, 0, INT32_MAX, &fd, NULL) == 0 && fd != but &&
		        fstatat(dirfd(folder), entry->d_name, &other, 0) == 0 &&
		        other.st_dev == file->st_dev && other.st_ino == file->st_ino;
	}
	if (folder) {
		closedir(folder);
	}
	return found;
}

int database_check_journal(int fd, const char *name, struct error *e)
{
	static const unsigned char magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
	unsigned char end[sizeof(magic)];
	struct stat status;
	bool shared = fstat(fd, &status) == 0 && status.st_size >= 2 * (off_t)sizeof(end) &&
	              pread(fd, end, sizeof(end), status.st_size - (off_t)sizeof(end)) ==
	                      (ssize_t)sizeof(end) &&
	              memcmp(end, magic, sizeof(magic)) == 0;
	return shared ? error_set(e, EPROTO,
				"%s: refusing to use this journal: it refers to another database",
				name)
	              : 0;
}

static int check_status(
	const char *name, const struct stat *status, const struct stat *file, struct error *e)
{
	if (!S_ISREG(status->st_mode)) {
		return error_set(e, EPERM, "%s: expected a regular file of SQLite", name);
	}
	if (status->st_uid != file->st_uid) {
		return error_set(e, EPERM, "%s: belongs to user %u, but the run belongs to user %u",
			name, (unsigned)status->st_uid, (unsigned)file->st_uid);
	}
	if (status->st_nlink != 1) {
		return error_set(e, EPERM, "%s: has more than one hard link", name);
	}
	return 0;
}

static int check_journal(const char *name, struct error *e)
{
	_cleanup_close_ int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	return fd >= 0 ? database_check_journal(fd, name, e) : 0;
}

// must_be_open: if the file exists, SQLite must have it open.
static int check_all(const char *path, const struct stat *file, bool must_be_open, struct error *e)
{
	// SQLite follows links, and looks beside the target.
	_cleanup_free_ char *real = realpath(path, NULL);
	for (size_t i = 0; i < BESIDE_N; i++) {
		_cleanup_free_ char *name = NULL;
		struct stat status;
		if (asprintf(&name, "%s%s", real ? real : path, beside_suffixes[i]) < 0) {
			return error_errno(e, ENOMEM, "%s", path);
		}
		if (lstat(name, &status) < 0) {
			if (errno == ENOENT) {
				continue;
			}
			return error_errno(e, errno, "%s", name);
		}
		bool is_journal = strcmp(beside_suffixes[i], journal_suffix) == 0;
		int r = check_status(name, &status, file, e);
		if (r == 0 && is_journal && !must_be_open) {
			r = check_journal(name, e);
		}
		if (r == 0 && !is_journal && must_be_open &&
			!database_is_open_beside(&status, -1)) {
			r = error_set(e, ESTALE, "%s: was replaced while it was opened", name);
		}
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

int database_check_beside(const char *path, const struct stat *file, struct error *e)
{
	return check_all(path, file, false, e);
}

int database_check_open_beside(const char *path, const struct stat *file, struct error *e)
{
	return check_all(path, file, true, e);
}

static char *journal_of(const char *path)
{
	_cleanup_free_ char *real = realpath(path, NULL);
	char *name = NULL;
	return asprintf(&name, "%s%s", real ? real : path, journal_suffix) < 0 ? NULL : name;
}

int database_claim_journal(const char *path, const struct stat *file, struct error *e)
{
	_cleanup_free_ char *name = journal_of(path);
	struct stat status;
	if (!name) {
		return error_errno(e, ENOMEM, "%s", path);
	}
	_cleanup_close_ int fd = open(
		name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		return 0;
	}
	if (errno != EEXIST || lstat(name, &status) < 0) {
		return error_errno(e, errno, "%s", name);
	}
	int r = check_status(name, &status, file, e);
	return r < 0 ? r : check_journal(name, e);
}

void database_release_journal(const char *path)
{
	_cleanup_free_ char *name = journal_of(path);
	struct stat status;
	if (name && lstat(name, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0 &&
		status.st_uid == geteuid()) {
		unlink(name);
	}
}

// Schema check ------------------------------------------------------------------------------------
//
// Compares the texts in sqlite_schema with those in schema.sql. SQLite keeps statements as written,
// and the embedded text has no comments or anything else that differs between builds.

#define STATEMENTS_MAX 32
// Tables that older versions lack.
static const struct {
	const char *statement; // its beginning
	sqlite3_int64 first; // the first PRAGMA user_version that has it
} additions[] = {
	{"CREATE TABLE span_block ", 1001},
	{"CREATE TABLE profile_", 1002},
	{"CREATE TABLE phase_sample ", 1003},
	{"CREATE TABLE line_sample ", 1003},
	{"CREATE TABLE finding ", 1004},
};
#define VIEW "CREATE VIEW "

struct statement {
	const char *text;
	size_t length;
};

// Splits schema.sql into its statements, without semicolons.
static size_t split_schema(struct statement ret[STATEMENTS_MAX])
{
	size_t n = 0;
	for (const char *at = schema_sql + strspn(schema_sql, " \t\n");
		*at && n < STATEMENTS_MAX;) {
		size_t length = strcspn(at, ";");
		ret[n++] = (struct statement){at, length};
		at += length;
		at += strspn(at, "; \t\n");
	}
	return n;
}

static bool begins_with(const struct statement *s, const char *text)
{
	return s->length >= strlen(text) && memcmp(s->text, text, strlen(text)) == 0;
}

// Returns a word of the statement, after skipping some.
static struct statement word_of(const struct statement *s, unsigned skip)
{
	const char *at = s->text, *end = s->text + s->length;
	for (; skip > 0; skip--) {
		const char *space = memchr(at, ' ', (size_t)(end - at));
		at = space ? space + 1 : end;
	}
	const char *space = memchr(at, ' ', (size_t)(end - at));
	return (struct statement){at, (size_t)((space ? space : end) - at)};
}

static bool is_word(const struct statement *word, const char *text, bool any_case)
{
	return strlen(text) == word->length &&
	       (any_case ? sqlite3_strnicmp(word->text, text, (int)word->length)
			 : memcmp(word->text, text, word->length)) == 0;
}

// A row of sqlite_schema, with "" for NULL.
struct entry {
	const char *type;
	const char *name;
	const char *table;
	const char *sql;
	size_t sql_length;
};

static const char *text_at(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return text ? text : "";
}

static struct entry entry_of(sqlite3_stmt *row)
{
	return (struct entry){text_at(row, 0), text_at(row, 1), text_at(row, 2), text_at(row, 3),
		(size_t)sqlite3_column_bytes(row, 3)};
}

// For an index, the word after "ON" names the table.
static bool is_of(const struct entry *entry, const struct statement *s)
{
	struct statement type = word_of(s, 1), name = word_of(s, 2),
			 table = word_of(s, begins_with(s, "CREATE INDEX ") ? 4 : 2);
	return entry->sql_length == s->length && memcmp(entry->sql, s->text, s->length) == 0 &&
	       is_word(&type, entry->type, true) && is_word(&name, entry->name, false) &&
	       is_word(&table, entry->table, false);
}

// SQLite's own index for UNIQUE, which has no text.
static bool is_automatic(const struct entry *entry)
{
	return strcmp(entry->type, "index") == 0 && entry->sql_length == 0 &&
	       strcmp(entry->name, "sqlite_autoindex_entity_1") == 0 &&
	       strcmp(entry->table, "entity") == 0;
}

static size_t find(const struct entry *entry, const struct statement *statements, size_t n)
{
	size_t i = 0;
	while (i < n && !is_of(entry, &statements[i])) {
		i++;
	}
	return i;
}

static bool names_ours(const char *name, const struct statement *statements, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct statement word = word_of(&statements[i], 2);
		if (is_word(&word, name, true)) {
			return true;
		}
	}
	return false;
}

// Whether a newer minor version may have added the entry: an ordinary table, or an index on one.
static bool is_addition(const struct entry *entry, const struct statement *statements, size_t n)
{
	return (strcmp(entry->type, "table") == 0 || strcmp(entry->type, "index") == 0) &&
	       sqlite3_strnicmp(entry->sql, "CREATE VIRTUAL", 14) != 0 &&
	       !names_ours(entry->name, statements, n) && !names_ours(entry->table, statements, n);
}

static bool is_younger(const struct statement *s, sqlite3_int64 version)
{
	for (size_t i = 0; i < ARRAY_LENGTH(additions); i++) {
		if (begins_with(s, additions[i].statement) && version < additions[i].first) {
			return true;
		}
	}
	return false;
}

static int refuse(const struct entry *entry, bool known, struct error *e)
{
	char name[41];
	snprintf(name, sizeof(name), "%s", entry->name);
	name[strcspn(name, "\n\r")] = '\0';
	bool vowel = strcmp(entry->type, "index") == 0;
	return error_set(e, EBADMSG, "its schema is not that of a run: found %s %.10s, '%s', %s",
		vowel ? "an" : "a", entry->type, name,
		known ? "with an unknown definition" : "which is not part of it");
}

static int check_rows(sqlite3_stmt *row, sqlite3_int64 version, struct error *e)
{
	struct statement statements[STATEMENTS_MAX];
	bool seen[STATEMENTS_MAX] = {false};
	size_t n = split_schema(statements);
	int result;
	while ((result = sqlite3_step(row)) == SQLITE_ROW) {
		struct entry entry = entry_of(row);
		size_t i = find(&entry, statements, n);
		bool ours = i < n && !seen[i];
		if (!ours && !is_automatic(&entry) &&
			!(version > STORE_VERSION && is_addition(&entry, statements, n))) {
			return refuse(&entry, names_ours(entry.name, statements, n), e);
		}
		seen[i < n ? i : STATEMENTS_MAX - 1] = true;
	}
	for (size_t i = 0; i < n && result == SQLITE_DONE; i++) {
		if (!seen[i] && !is_younger(&statements[i], version)) {
			struct statement name = word_of(&statements[i], 2);
			return error_set(e, EBADMSG,
				"its schema is not that of a run: '%.*s' is missing or differs",
				(int)name.length, name.text);
		}
	}
	return result == SQLITE_DONE ? 0 : -EBADMSG;
}

int database_check_schema(sqlite3 *database, struct error *e)
{
	sqlite3_stmt *row = NULL;
	sqlite3_int64 version = database_number(database, "PRAGMA user_version", -1);
	int result = sqlite3_prepare_v2(
		database, "SELECT type, name, tbl_name, sql FROM sqlite_master", -1, &row, NULL);
	int r = result == SQLITE_OK ? check_rows(row, version, e) : -EBADMSG;
	if (r < 0 && e && !e->code) {
		database_error(database, result == SQLITE_OK ? SQLITE_CORRUPT : result, e,
			"its schema cannot be read");
	}
	sqlite3_finalize(row);
	return r;
}

bool database_has_table(sqlite3 *database, const char *name)
{
	struct statement statements[STATEMENTS_MAX];
	size_t n = split_schema(statements), ours = 0, others = 0;
	sqlite3_stmt *row = NULL;
	if (sqlite3_prepare_v2(database,
		    "SELECT type, name, tbl_name, sql FROM sqlite_master"
		    " WHERE name = ?1 COLLATE NOCASE",
		    -1, &row, NULL) != SQLITE_OK) {
		return false;
	}
	sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
	while (sqlite3_step(row) == SQLITE_ROW) {
		struct entry entry = entry_of(row);
		bool found = strcmp(entry.type, "table") == 0 && find(&entry, statements, n) < n;
		ours += found;
		others += !found;
	}
	sqlite3_finalize(row);
	return ours == 1 && others == 0;
}

int database_make_views(sqlite3 *database)
{
	struct statement statements[STATEMENTS_MAX];
	size_t n = split_schema(statements);
	int result = SQLITE_OK;
	for (size_t i = 0; i < n && result == SQLITE_OK; i++) {
		if (begins_with(&statements[i], VIEW)) {
			_cleanup_text_ struct text sql = {0};
			text_format(&sql, "CREATE TEMP VIEW %.*s",
				(int)(statements[i].length - strlen(VIEW)),
				statements[i].text + strlen(VIEW));
			result = sql.failed ? SQLITE_NOMEM : database_exec(database, sql.data);
		}
	}
	return result;
}

// Memory ------------------------------------------------------------------------------------------
//
// SQLite's own memory limit takes a mutex at each allocation: two threads that open many small
// files spend half of their time waiting for it. This allocator counts without a mutex.

static _Atomic int64_t allocated_bytes;

static bool account(int64_t bytes)
{
	if (atomic_fetch_add(&allocated_bytes, bytes) + bytes <= SQLITE_BYTES_MAX || bytes <= 0) {
		return true;
	}
	atomic_fetch_sub(&allocated_bytes, bytes);
	return false;
}

static void *bounded_malloc(int size)
{
	void *block = malloc((size_t)size);
	if (block && !account((int64_t)malloc_usable_size(block))) {
		free(block);
		return NULL;
	}
	return block;
}

static void bounded_free(void *block)
{
	account(-(int64_t)malloc_usable_size(block));
	free(block);
}

static void *bounded_realloc(void *block, int size)
{
	int64_t before = (int64_t)malloc_usable_size(block);
	if (size > before && !account(size - before)) {
		return NULL;
	}
	void *moved = realloc(block, (size_t)size);
	int64_t counted = size > before ? size : before;
	account((int64_t)malloc_usable_size(moved ? moved : block) - counted);
	return moved;
}

static int block_size(void *block)
{
	return block ? (int)malloc_usable_size(block) : 0;
}

static int round_up(int size)
{
	return (size + 7) & ~7;
}

static int nothing_to_begin(void *nothing)
{
	(void)nothing;
	return SQLITE_OK;
}

static void nothing_to_end(void *nothing)
{
	(void)nothing;
}

static void bound_memory(void)
{
	static const sqlite3_mem_methods methods = {bounded_malloc, bounded_free, bounded_realloc,
		block_size, round_up, nothing_to_begin, nothing_to_end, NULL};
	// If SQLite was used before, it keeps its own allocator and limit.
	if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK ||
		sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) != SQLITE_OK) {
		sqlite3_hard_heap_limit64(SQLITE_BYTES_MAX);
	}
}

// Database ----------------------------------------------------------------------------------------

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

// The longest values are a block and its associated data. The schema is short, and none of our
// queries is deep.
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
	// SQLite calls the handler each time a statement has run this many instructions. The first
	// call ends the statement.
	int n = instructions > INT_MAX ? INT_MAX : (int)instructions;
	sqlite3_progress_handler(database, n, n ? too_long : NULL, NULL);
}

static int harden(sqlite3 *database, enum database_use use)
{
	bool damaged = use == DATABASE_DAMAGED || use == DATABASE_DAMAGED_FROZEN;
	sqlite3_extended_result_codes(database, 1);
	sqlite3_busy_timeout(database, BUSY_TIMEOUT_MS);
	for (size_t i = 0; i < ARRAY_LENGTH(settings); i++) {
		// DEFENSIVE would not allow ignoring a damaged schema.
		if (settings[i].option != SQLITE_DBCONFIG_DEFENSIVE || !damaged) {
			sqlite3_db_config(database, settings[i].option, settings[i].value, NULL);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
		sqlite3_limit(database, limits[i].id, limits[i].value);
	}
	database_bound_statements(database, INT_MAX);
	if (damaged) {
		// Allows SQLite to open a file that is shorter than its header says.
		database_exec(database, "PRAGMA writable_schema = ON");
	}
	database_exec(database, "PRAGMA cache_size = -8192"); // reads: is it a database?
	return database_exec(database, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0");
}

// Makes "file:PATH?QUERY", escaping all but plain characters. NULL: out of memory.
static char *make_uri(const char *path, const char *query)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
	struct text uri = {0};
	// With an empty authority, because a path that begins with two slashes would be read as
	// one.
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
	static pthread_once_t bounded = PTHREAD_ONCE_INIT;
	pthread_once(&bounded, bound_memory);
	int result = sqlite3_open_v2(
		uri, &database, ways[use].flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, vfs);
	result = result == SQLITE_OK ? harden(database, use) : result;
	if (result != SQLITE_OK) {
		database_error(database, result, e, path);
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
