// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The rows of a query as a table, JSON or CSV.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

// Of a table, which measures all cells before it prints any.
enum { QUERY_ROWS_MAX = 10000, QUERY_COLUMNS_MAX = 256 };

struct query_left_out {
	bool rows;
	bool columns;
};

// Step through a prepared query and write its rows. Return SQLite's status, SQLITE_DONE after the
// last row. Columns of a table are as wide as their cells: results are never shortened.
int query_write_table(sqlite3_stmt *row, FILE *stream, struct query_left_out *ret);
// An array of objects, or comma-separated values with a header. Stops where the stream fails.
int query_write_lines(sqlite3_stmt *row, bool json, FILE *stream);
