// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the writer and the reader share of SQLite: its errors as ours, and the marks by which a run
// file is known.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "base/error.h"

// "stra", where file(1) and SQLite look for it.
#define STORE_APPLICATION_ID 0x73747261
#define STORE_VERSION_MAJOR 1
#define STORE_VERSION_MINOR 3
#define STORE_VERSION (STORE_VERSION_MAJOR * 1000 + STORE_VERSION_MINOR)

// schema.sql, embedded.
extern const char schema_sql[];

// SQLite's result as -errno. ENOSPC stands for every way of having no room: a full disk, a quota, a
// limit on the file's size.
int store_errno(sqlite3 *database, int result);

// Fills e from the last failure of the connection: "CONTEXT: text", and returns -errno.
int store_error(sqlite3 *database, int result, struct error *e, const char *context);

// Runs statements without results. 0 or SQLite's (extended) result.
int store_exec(sqlite3 *database, const char *sql);

// The number that a statement of one row and one column gives; `otherwise` where it gives none.
sqlite3_int64 store_number(sqlite3 *database, const char *sql, sqlite3_int64 otherwise);

// Whether the file is on a file system of several machines, where a WAL's shared memory would not
// be shared (NFS, Lustre, ...).
bool store_is_on_network(const char *path);
