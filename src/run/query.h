// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Queries over a run's metadata, a row at a time.

#pragma once

#include <sqlite3.h>

#include "base/cleanup.h"
#include "base/error.h"

struct reader;

// Calls `each` for every row. `each` returns 0 to continue or -errno to stop. -EBADMSG: the file is
// damaged; the rows before the damage were delivered.
int query_each(struct reader *r, const char *sql, int (*each)(void *context, sqlite3_stmt *row),
	void *context, struct error *e);

// A copy of a column as a string, "" for NULL. Owned by the caller; NULL: out of memory.
char *query_text(sqlite3_stmt *row, int column);
