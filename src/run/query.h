// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Queries over a run's metadata, a row at a time.

#pragma once

#include <sqlite3.h>

#include "base/cleanup.h"
#include "base/error.h"

struct reader;

// Calls `each` for every row; it returns 0 to go on, or -errno. -EBADMSG where the file is damaged
// there: the rows before were delivered.
int query_each(struct reader *r, const char *sql, int (*each)(void *context, sqlite3_stmt *row),
	void *context, struct error *e);

// A column as a string of its own, "" where it is NULL; NULL: out of memory.
char *query_text(sqlite3_stmt *row, int column);
