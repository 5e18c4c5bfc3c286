// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The table of metrics in memory, sorted.

#include "trace/metric_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "trace/store.h"

// A recorder writes some hundred. A forged file may have any number: they stay where they are.
#define ROWS_MAX 8192

static void row_done(struct metric_entry *row)
{
	free(row->name);
	free(row->kind);
	free(row->source);
}

void metric_rows_done(struct metric_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		row_done(&rows->items[i]);
	}
	free(rows->items);
	*rows = (struct metric_rows){0};
}

static char *text_of(sqlite3_stmt *statement, int column)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);
	return strdup(text ? text : "");
}

static int add_row(struct metric_rows *rows, sqlite3_stmt *statement)
{
	void *items = rows->items;
	if (rows->n == ROWS_MAX) {
		return -EFBIG;
	}
	if (array_reserve(&items, &rows->capacity, rows->n + 1, sizeof(*rows->items)) < 0) {
		return -ENOMEM;
	}
	rows->items = items;
	struct metric_entry row = {.name = text_of(statement, 1),
		.kind = text_of(statement, 2),
		.source = text_of(statement, 3),
		.scale = sqlite3_column_double(statement, 4),
		.id = (uint32_t)sqlite3_column_int64(statement, 0)};
	if (!row.name || !row.kind || !row.source) {
		row_done(&row);
		return -ENOMEM;
	}
	rows->items[rows->n++] = row;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct metric_entry *one = a, *other = b;
	int order = strcmp(one->name, other->name);
	return order ? order : (one->id > other->id) - (one->id < other->id);
}

int metric_rows_load(sqlite3 *database, struct metric_rows *ret)
{
	static const char sql[] = "SELECT id, name, entity_kind, source, scale FROM metric";
	struct metric_rows rows = {0};
	sqlite3_stmt *statement = NULL;
	int r = 0, result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
	while (r == 0 && result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
		r = add_row(&rows, statement);
		result = SQLITE_OK;
	}
	if (r == 0 && result != SQLITE_DONE) {
		r = store_errno(database, result);
	}
	sqlite3_finalize(statement);
	if (r < 0) {
		metric_rows_done(&rows);
		return r;
	}
	if (rows.n > 0) {
		qsort(rows.items, rows.n, sizeof(*rows.items), compare);
	}
	*ret = rows;
	return 0;
}

const struct metric_entry *metric_rows_find(
	const struct metric_rows *rows, const char *name, size_t *ret_n)
{
	size_t low = 0, high = rows->n, n = 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(rows->items[middle].name, name) < 0) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	while (low + n < rows->n && strcmp(rows->items[low + n].name, name) == 0) {
		n++;
	}
	*ret_n = n;
	return n > 0 ? &rows->items[low] : NULL;
}

bool metric_rows_have_one_source(const struct metric_entry *rows, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (strcmp(rows[i].source, rows[0].source) != 0) {
			return false;
		}
	}
	return true;
}
