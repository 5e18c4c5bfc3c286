// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The only place that opens SQLite databases. Every file is untrusted, including those that this
// process writes: SQLite's page "Defense Against The Dark Arts" explains the settings.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

enum database_use {
	DATABASE_READ, // while a writer may be writing
	DATABASE_FROZEN, // immutable: no locks, and no file beside it is opened
	DATABASE_DAMAGED, // to read a damaged file; its schema may be invalid
	DATABASE_DAMAGED_FROZEN,
	DATABASE_WRITE, // the file exists
	DATABASE_CREATE, // created if it does not exist
	DATABASE_PRIVATE, // temporary, without a name; the path is ignored
};

// vfs: SQLite's name of one; NULL: its default. SQLITE_OK and a connection for database_close, or
// SQLite's result and a text in e that begins with the path.
int database_open(
	const char *path, enum database_use use, const char *vfs, sqlite3 **ret, struct error *e);
// Accepts NULL.
void database_close(sqlite3 *database);

// Bounds the instructions of SQLite that a statement may execute before it fails with
// SQLITE_INTERRUPT; 0: no bound, for statements that a user typed. After database_open it is two
// billion.
void database_bound_statements(sqlite3 *database, int64_t instructions);

// Store -------------------------------------------------------------------------------------------
//
// Common to writer and reader: SQLite's errors as -errno, and the identification of run files.

// "stra", in the header field that file(1) and SQLite use.
#define STORE_APPLICATION_ID 0x73747261
#define STORE_VERSION_MAJOR 1
#define STORE_VERSION_MINOR 4
#define STORE_VERSION (STORE_VERSION_MAJOR * 1000 + STORE_VERSION_MINOR)

// schema.sql, embedded.
extern const char schema_sql[];

// SQLite's result as -errno. -ENOSPC: a full disk, a quota, or a limit on the file size.
int database_errno(sqlite3 *database, int result);

// Why the last write of the connection, which was -ENOSPC, failed: ENOSPC, EDQUOT or EFBIG.
int database_no_room(sqlite3 *database);

// Text of the event `disk_full` begins like this, unless a quota or a limit was the reason.
#define DISK_IS_FULL "the disk is full"

// Fills e from the last failure of the connection: "CONTEXT: text", and returns -errno.
int database_error(sqlite3 *database, int result, struct error *e, const char *context);

// Runs statements without results. 0 or SQLite's (extended) result.
int database_exec(sqlite3 *database, const char *sql);

// The integer result of a query with one row and one column; `otherwise` if there is none.
sqlite3_int64 database_number(sqlite3 *database, const char *sql, sqlite3_int64 otherwise);

static inline void database_finalize(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
}
#define _cleanup_statement_ __attribute__((cleanup(database_finalize)))

// Whether the file is on a file system of several machines, where a WAL's shared memory would not
// be shared (NFS, Lustre, ...).
bool database_is_on_network(const char *path);

// Beside ------------------------------------------------------------------------------------------
//
// Files that SQLite keeps beside a database and finds by name: PATH-wal, PATH-shm, PATH-journal. In
// a directory that others can write, such a file may be another user's, who could read what is
// written to it, and whose content SQLite would play back.

#define BESIDE_N 3

// Checks that files beside `path`, a file with this status, are regular files of its owner with one
// name each. 0; -EPERM "PATH-wal: belongs to user 7, not to 5 as the run does";
// -EPROTO: a shared journal (below); -errno.
int database_check_beside(const char *path, const struct stat *file, struct error *e);
// The same, and checks that this process has these very files open, so that SQLite found no others.
// Call it after SQLite has opened them.
int database_check_open_beside(const char *path, const struct stat *file, struct error *e);
// Whether a descriptor of this process other than `but` (-1: any) refers to this file.
bool database_is_open_beside(const struct stat *file, int but);
// Creates an empty journal before SQLite does, so that nobody else can. 0, also if the owner's
// journal exists; else as database_check_beside.
int database_claim_journal(const char *path, const struct stat *file, struct error *e);
// Removes the journal if it is empty and belongs to the effective user.
void database_release_journal(const char *path);
// -EPROTO if a journal belongs to a transaction over several databases: SQLite would delete the
// file that such a journal names, and no run has one. Else 0.
int database_check_journal(int fd, const char *name, struct error *e);

// Schema check ------------------------------------------------------------------------------------
//
// Whether the schema of a database is that of a run. It is compared as text, because queries to
// tables with other definitions could do anything (docs/format.md).

// 0: exactly the schema of its version (PRAGMA user_version); a newer minor version may have
// additional tables and indexes. -EBADMSG with a text "a trigger, 'x', which is not part of it",
// without the path.
int database_check_schema(sqlite3 *database, struct error *e);

// Whether the table with this name is defined as in schema.sql, whatever the rest of the schema is.
bool database_has_table(sqlite3 *database, const char *name);

// Creates the views of schema.sql as TEMP views of the connection; those in files are not trusted.
// 0 or SQLite's result.
int database_make_views(sqlite3 *database);

// Bounds ------------------------------------------------------------------------------------------
//
// How large a run may be for a reader (docs/format.md, "Bounds"). Blocks of constants take a few
// bytes each: without bounds, a file of 100 kB can hold more rows than there is memory. A job of 48
// hours with 64 processes, read each 10 ms and never thinned, is within each of them.

#define RUN_BYTES_MAX (UINT64_C(64) << 30) // the file
#define RUN_ROWS_MAX (INT64_C(1) << 31) // of all blocks; that job has 1.2e9
#define RUN_STREAM_ROWS_MAX (INT64_C(1) << 25) // of one entity and source; that job has 1.7e7
// Values of all blocks, each with its times and its clock's, by the bytes of the file. A real run
// has some: what does not change takes no bytes, but when it was read does, once for all that was
// read then. 64 idle processes of 12 metrics, read each 10 ms, have about 650.
#define RUN_VALUES_MIN (INT64_C(1) << 26) // any run may have as many
#define RUN_VALUES_PER_BYTE 4096
#define RUN_SPANS_MAX (INT64_C(1) << 23) // a recorder writes 2,000,000, and 1,000,000 points
#define RUN_ENTITIES_MAX (INT64_C(1) << 18)
#define RUN_METRICS_MAX 4096
#define RUN_EVENTS_MAX (INT64_C(1) << 20)
#define RUN_MISSING_MAX (INT64_C(1) << 20)
#define RUN_SUMMARY_MAX (INT64_C(1) << 24)
#define RUN_KEYS_MAX 4096 // keys, labels
#define RUN_KEYS_BYTES_MAX (UINT64_C(16) << 20) // of keys with their values, of labels with theirs
// What a user may give as a label.
#define RUN_LABEL_NAME_BYTES_MAX 128
#define RUN_LABEL_VALUE_BYTES_MAX 4096

// Instructions of SQLite that a statement may take while a file is opened and checked: a row takes
// some hundred, and no less than four bytes.
#define OPENING_STEPS (UINT64_C(1) << 24)
#define OPENING_STEPS_PER_BYTE UINT64_C(64)
#define SQLITE_BYTES_MAX (INT64_C(512) << 20) // SQLite's memory, all connections of the process
#define COPY_BYTES_MAX (UINT64_C(1) << 30) // a copy of a run that cannot be read in its place
