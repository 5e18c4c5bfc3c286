// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The one way to open an SQLite database. Every file is taken for hostile, the one that this
// process writes too: SQLite's page "Defense Against The Dark Arts" says what is set and why.

#pragma once

#include <sqlite3.h>
#include <stdint.h>

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
