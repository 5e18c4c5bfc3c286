// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Steps through the rows of a query.

#include "run/query.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runfile/database.h"
#include "runfile/reader.h"

static int query_failed(struct reader *r, int status, struct error *e)
{
	if (status == SQLITE_NOMEM) {
		return error_errno(e, ENOMEM, "%s", reader_path(r));
	}
	return error_set(e, EBADMSG, "%s: %s", reader_path(r), sqlite3_errmsg(reader_database(r)));
}

int query_each(struct reader *r, const char *sql, int (*each)(void *context, sqlite3_stmt *row),
	void *context, struct error *e)
{
	_cleanup_statement_ sqlite3_stmt *statement = NULL;
	int status = sqlite3_prepare_v2(reader_database(r), sql, -1, &statement, NULL);
	if (status != SQLITE_OK) {
		return query_failed(r, status, e);
	}
	while ((status = sqlite3_step(statement)) == SQLITE_ROW) {
		int result = each(context, statement);
		if (result < 0) {
			return error_errno(e, -result, "%s", reader_path(r));
		}
	}
	return status == SQLITE_DONE ? 0 : query_failed(r, status, e);
}

char *query_text(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return strdup(text ? text : "");
}
