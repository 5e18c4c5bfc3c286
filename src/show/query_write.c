// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Writes the rows of a query.

#include "show/query_write.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "show/csv.h"
#include "show/table.h"

// --- a value as a cell

static void append_value(struct text *t, sqlite3_stmt *row, int column)
{
	switch (sqlite3_column_type(row, column)) {
	case SQLITE_INTEGER:
		text_format(t, "%lld", (long long)sqlite3_column_int64(row, column));
		break;
	case SQLITE_FLOAT:
		text_format(t, "%.15g", sqlite3_column_double(row, column));
		break;
	case SQLITE_BLOB:
		text_format(t, "<%d bytes>", sqlite3_column_bytes(row, column));
		break;
	case SQLITE_TEXT:
		text_append(t, (const char *)sqlite3_column_text(row, column),
			(size_t)sqlite3_column_bytes(row, column));
		break;
	default:
		break;
	}
}

static bool is_number(sqlite3_stmt *row, int column)
{
	int type = sqlite3_column_type(row, column);
	return type == SQLITE_INTEGER ||
	       (type == SQLITE_FLOAT && isfinite(sqlite3_column_double(row, column)));
}

static void append_json_value(struct text *t, sqlite3_stmt *row, int column)
{
	int type = sqlite3_column_type(row, column);
	if (is_number(row, column)) {
		append_value(t, row, column);
	} else if (type == SQLITE_NULL || type == SQLITE_FLOAT) {
		text_append_string(t, "null");
	} else {
		struct text value = {0};
		append_value(&value, row, column);
		text_append_json(t, value.data ? value.data : "", value.length);
		text_done(&value);
	}
}

// Appends the name of a column, made unique: {"a":1,"a_2":2}.
static void append_json_name(struct text *t, sqlite3_stmt *row, int column)
{
	const char *name = sqlite3_column_name(row, column);
	int same = 1;
	for (int i = 0; i < column; i++) {
		same += strcmp(sqlite3_column_name(row, i), name) == 0;
	}
	struct text unique = {0};
	text_append_string(&unique, name);
	if (same > 1) {
		text_format(&unique, "_%d", same);
	}
	text_append_json(t, unique.data ? unique.data : "", unique.length);
	text_done(&unique);
}

// --- outputs: begin, a row, end

static void json_line(struct text *line, sqlite3_stmt *row, bool first)
{
	text_append_string(line, first ? "{" : ",\n{");
	for (int c = 0; c < sqlite3_column_count(row); c++) {
		text_append_string(line, c ? "," : "");
		append_json_name(line, row, c);
		text_append_string(line, ":");
		append_json_value(line, row, c);
	}
	text_append_string(line, "}");
}

static void csv_line(struct text *line, sqlite3_stmt *row)
{
	for (int c = 0; c < sqlite3_column_count(row); c++) {
		text_append_string(line, c ? "," : "");
		if (sqlite3_column_type(row, c) != SQLITE_NULL) {
			struct text value = {0};
			append_value(&value, row, c);
			csv_append_text(line, value.data ? value.data : "");
			text_done(&value);
		}
	}
	text_append_string(line, "\n");
}

static void csv_header(struct text *line, sqlite3_stmt *row)
{
	for (int c = 0; c < sqlite3_column_count(row); c++) {
		text_append_string(line, c ? "," : "");
		csv_append_text(line, sqlite3_column_name(row, c));
	}
	text_append_string(line, "\n");
}

int query_write_lines(sqlite3_stmt *row, bool json, FILE *stream)
{
	struct text line = {0};
	text_append_string(&line, json ? "[\n" : "");
	if (!json) {
		csv_header(&line, row);
	}
	int status = SQLITE_ROW;
	for (bool first = true; !line.failed && !ferror(stream); first = false) {
		json ? (void)fwrite(line.data, 1, line.length, stream)
		     : csv_print(line.data, line.length, stream);
		text_clear(&line);
		status = sqlite3_step(row);
		if (status != SQLITE_ROW) {
			break;
		}
		if (json) {
			json_line(&line, row, first);
		} else {
			csv_line(&line, row);
		}
	}
	status = line.failed ? SQLITE_NOMEM : status;
	text_done(&line);
	fputs(json ? "\n]\n" : "", stream);
	return status;
}

static void table_values(struct table *t, sqlite3_stmt *row, int n_columns)
{
	for (int c = 0; c < n_columns; c++) {
		struct text value = {0};
		append_value(&value, row, c);
		if (sqlite3_column_type(row, c) != SQLITE_NULL) {
			table_text(t, (size_t)c, value.data ? value.data : "");
		}
		text_done(&value);
	}
}

int query_write_table(sqlite3_stmt *row, FILE *stream, struct query_left_out *ret)
{
	struct column columns[QUERY_COLUMNS_MAX] = {0};
	struct table *t = NULL;
	int n = sqlite3_column_count(row);
	*ret = (struct query_left_out){.columns = n > QUERY_COLUMNS_MAX};
	n = n > QUERY_COLUMNS_MAX ? QUERY_COLUMNS_MAX : n;
	for (int c = 0; c < n; c++) {
		columns[c] = (struct column){NULL, sqlite3_column_name(row, c), COLUMN_LABEL, 0};
	}
	int r = table_new(columns, (size_t)n, &t), status = SQLITE_ROW;
	while (r == 0 && table_rows(t) < QUERY_ROWS_MAX &&
		(status = sqlite3_step(row)) == SQLITE_ROW) {
		for (int c = 0; c < n; c++) {
			bool number = is_number(row, c);
			columns[c].kind = table_rows(t) == 0 && number ? COLUMN_WHOLE
			                  : !number && sqlite3_column_type(row, c) != SQLITE_NULL
			                          ? COLUMN_LABEL
			                          : columns[c].kind;
		}
		r = table_row(t);
		table_values(t, row, n);
	}
	struct table_style style = {.width = 0, .all_columns = true};
	r = r < 0 ? r : table_print(t, stream, &style);
	table_free(t);
	ret->rows = r == 0 && status == SQLITE_ROW && sqlite3_step(row) == SQLITE_ROW;
	return r < 0                                           ? SQLITE_NOMEM
	       : SQLITE_DONE == status || status == SQLITE_ROW ? SQLITE_DONE
	                                                       : status;
}
