// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whether a database's schema is a run's: compared as text, since what a table of another text does
// when it is asked is anybody's guess (docs/format.md).

#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "base/error.h"

// The schema of its version (PRAGMA user_version) and nothing else; a newer minor version may have
// tables and indexes besides. 0; -EBADMSG with a text "a trigger, 'x', that no run has", without
// the path.
int schema_check(sqlite3 *database, struct error *e);

// Whether the table of that name is ours, whatever the rest of the schema is.
bool schema_has_table(sqlite3 *database, const char *name);

// Makes the view of the schema a TEMP one of the connection: those in files are not believed. 0 or
// SQLite's result.
int schema_make_views(sqlite3 *database);
