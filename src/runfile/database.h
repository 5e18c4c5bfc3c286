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
	DATABASE_READ, // beside its writer
	DATABASE_FROZEN, // nobody writes it: no locks, and no file beside it is looked at
	DATABASE_DAMAGED, // to read; its schema may make no sense
	DATABASE_DAMAGED_FROZEN,
	DATABASE_WRITE, // the file is there
	DATABASE_CREATE, // made where it is not there
	DATABASE_PRIVATE, // without a name; gone when it is closed. The path is not looked at
};

// vfs: SQLite's name of one; NULL: its default. SQLITE_OK and a connection for database_close, or
// SQLite's result and a text in e that begins with the path.
int database_open(
	const char *path, enum database_use use, const char *vfs, sqlite3 **ret, struct error *e);
// Accepts NULL.
void database_close(sqlite3 *database);

// How many instructions of SQLite a statement may take from now on before it fails with
// SQLITE_INTERRUPT; 0: as many as it likes, for statements that a user typed. After database_open
// it is two billion.
void database_bound_statements(sqlite3 *database, int64_t instructions);

// Store -------------------------------------------------------------------------------------------
//
// What the writer and the reader share of SQLite: its errors as ours, and the marks by which a run
// file is known.

// "stra", where file(1) and SQLite look for it.
#define STORE_APPLICATION_ID 0x73747261
#define STORE_VERSION_MAJOR 1
#define STORE_VERSION_MINOR 4
#define STORE_VERSION (STORE_VERSION_MAJOR * 1000 + STORE_VERSION_MINOR)

// schema.sql, embedded.
extern const char schema_sql[];

// SQLite's result as -errno. ENOSPC stands for every way of having no room: a full disk, a quota, a
// limit on the file's size.
int database_errno(sqlite3 *database, int result);

// Fills e from the last failure of the connection: "CONTEXT: text", and returns -errno.
int database_error(sqlite3 *database, int result, struct error *e, const char *context);

// Runs statements without results. 0 or SQLite's (extended) result.
int database_exec(sqlite3 *database, const char *sql);

// The number that a statement of one row and one column gives; `otherwise` where it gives none.
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
// The files that SQLite keeps beside a database and finds by their names: PATH-wal, PATH-shm,
// PATH-journal. In a folder where others can make names one of them may be somebody else's: what is
// written would be theirs to read, and what they wrote would be played back.

#define BESIDE_N 3

// Whether what is beside the file `path`, which has this status, is its owner's alone: regular
// files, each with one name. 0; -EPERM "PATH-wal: belongs to user 7, not to 5 as the run does";
// -EPROTO: a shared journal (below); -errno.
int database_check_beside(const char *path, const struct stat *file, struct error *e);
// The same, and that what is there is what this process has open: SQLite found no other file by the
// name. Call it when SQLite has opened what it needs.
int database_check_open_beside(const char *path, const struct stat *file, struct error *e);
// Whether a descriptor of this process besides `but` (-1: none) leads to this very file.
bool database_is_open_beside(const struct stat *file, int but);
// Makes the file's journal, empty, before SQLite would, so that nobody else does. 0, also where it
// is there and the owner's; else as beside_check.
int database_claim_journal(const char *path, const struct stat *file, struct error *e);
// Removes a journal that is empty and the effective user's.
void database_release_journal(const char *path);
// Whether a journal says that it belongs to a transaction of several databases: SQLite would remove
// the file that it names. No run has one.
bool database_is_shared_journal(int fd);

// Schema check ------------------------------------------------------------------------------------
//
// Whether a database's schema is a run's: compared as text, since what a table of another text does
// when it is asked is anybody's guess (docs/format.md).

// The schema of its version (PRAGMA user_version) and nothing else; a newer minor version may have
// tables and indexes besides. 0; -EBADMSG with a text "a trigger, 'x', that no run has", without
// the path.
int database_check_schema(sqlite3 *database, struct error *e);

// Whether the table of that name is ours, whatever the rest of the schema is.
bool database_has_table(sqlite3 *database, const char *name);

// Makes the view of the schema a TEMP one of the connection: those in files are not believed. 0 or
// SQLite's result.
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

// Instructions of SQLite that a statement may take while a file is opened and checked: a row takes
// some hundred, and no less than four bytes.
#define OPENING_STEPS (UINT64_C(1) << 24)
#define OPENING_STEPS_PER_BYTE UINT64_C(64)
#define SQLITE_BYTES_MAX (INT64_C(512) << 20) // SQLite's memory, all connections of the process
#define COPY_BYTES_MAX (UINT64_C(1) << 30) // a copy of a run that cannot be read in its place
