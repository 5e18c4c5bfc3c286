// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The virtual table `samples`. It is eponymous: it exists without CREATE, also in a read-only
// database.

#include "runfile/samples.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "runfile/blocks.h"
#include "runfile/database.h"
#include "runfile/metric.h"

enum { COLUMN_ENTITY, COLUMN_METRIC, COLUMN_T, COLUMN_VALUE };

// Flags from xBestIndex to xFilter for the arguments present, in this order.
enum { PLAN_ENTITY = 1, PLAN_METRIC = 2, PLAN_FROM = 4, PLAN_TO = 8 };

struct samples_table {
	sqlite3_vtab base; // first: SQLite's view of it
	sqlite3 *database;
	struct damage *damage;
};

struct metric_name {
	uint32_t id;
	double scale;
	char *name;
};

struct samples_cursor {
	sqlite3_vtab_cursor base;
	struct block_scan scan;
	struct block block; // the current block
	uint32_t column;
	uint32_t row;
	const struct metric_name *metric; // of the column; NULL if the file does not name it
	struct metric_name *metrics; // [n_metrics], sorted by id
	size_t n_metrics;
	bool at_end;
	sqlite3_int64 rowid;
};

static int connect_table(sqlite3 *database, void *context, int argc, const char *const *argv,
	sqlite3_vtab **ret, char **ret_text)
{
	(void)argc;
	(void)argv;
	(void)ret_text;
	int result = sqlite3_declare_vtab(
		database, "CREATE TABLE x(entity INTEGER, metric TEXT, t REAL, value REAL)");
	struct samples_table *table = result == SQLITE_OK ? sqlite3_malloc(sizeof(*table)) : NULL;
	if (!table) {
		return result == SQLITE_OK ? SQLITE_NOMEM : result;
	}
	*table = (struct samples_table){.database = database, .damage = context};
	sqlite3_vtab_config(database, SQLITE_VTAB_INNOCUOUS);
	*ret = &table->base;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
	sqlite3_free(base);
	return SQLITE_OK;
}

// Returns the plan flag that a constraint can set; 0 for none.
static int plan_of(const struct sqlite3_index_constraint *constraint)
{
	static const struct {
		int column;
		unsigned char operator;
		int plan;
	} plans[] = {
		{COLUMN_ENTITY, SQLITE_INDEX_CONSTRAINT_EQ, PLAN_ENTITY},
		{COLUMN_METRIC, SQLITE_INDEX_CONSTRAINT_EQ, PLAN_METRIC},
		{COLUMN_T, SQLITE_INDEX_CONSTRAINT_GE, PLAN_FROM},
		{COLUMN_T, SQLITE_INDEX_CONSTRAINT_GT, PLAN_FROM},
		{COLUMN_T, SQLITE_INDEX_CONSTRAINT_LE, PLAN_TO},
		{COLUMN_T, SQLITE_INDEX_CONSTRAINT_LT, PLAN_TO},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(plans); i++) {
		if (constraint->usable && plans[i].column == constraint->iColumn &&
			plans[i].operator== constraint->op) {
			return plans[i].plan;
		}
	}
	return 0;
}

// Constraints only select blocks. SQLite checks every row again (omit stays 0), so bounds may be
// loose. Narrow queries get a lower cost; the order is entity, metric, t.
static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	(void)base;
	int chosen[9] = {0}; // index of the constraint + 1, by plan
	for (int i = 0; i < info->nConstraint; i++) {
		int plan = plan_of(&info->aConstraint[i]);
		chosen[plan] = plan ? i + 1 : 0;
	}
	static const struct {
		int plan;
		double factor;
	} order[] = {{PLAN_ENTITY, 0.05}, {PLAN_METRIC, 0.1}, {PLAN_FROM, 0.5}, {PLAN_TO, 0.5}};
	int n_arguments = 0;
	double rows = 1e8;
	for (size_t i = 0; i < ARRAY_LENGTH(order); i++) {
		if (chosen[order[i].plan]) {
			info->aConstraintUsage[chosen[order[i].plan] - 1].argvIndex = ++n_arguments;
			info->idxNum |= order[i].plan;
			rows *= order[i].factor;
		}
	}
	info->estimatedRows = (sqlite3_int64)rows;
	info->estimatedCost = rows;
	int one_series = PLAN_ENTITY | PLAN_METRIC;
	info->orderByConsumed = (info->idxNum & one_series) == one_series && info->nOrderBy == 1 &&
	                        info->aOrderBy[0].iColumn == COLUMN_T && !info->aOrderBy[0].desc;
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	(void)base;
	struct samples_cursor *cursor = sqlite3_malloc(sizeof(*cursor));
	if (!cursor) {
		return SQLITE_NOMEM;
	}
	*cursor = (struct samples_cursor){.at_end = true};
	*ret = &cursor->base;
	return SQLITE_OK;
}

static void clear_cursor(struct samples_cursor *cursor)
{
	block_scan_done(&cursor->scan);
	block_done(&cursor->block);
	for (size_t i = 0; i < cursor->n_metrics; i++) {
		free(cursor->metrics[i].name);
	}
	free(cursor->metrics);
	cursor->metrics = NULL;
	cursor->n_metrics = 0;
	cursor->at_end = true;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct samples_cursor *cursor = (struct samples_cursor *)base;
	clear_cursor(cursor);
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int load_metrics(struct samples_cursor *cursor, sqlite3 *database)
{
	static const char sql[] = "SELECT id, scale, name FROM metric ORDER BY id";
	sqlite3_stmt *statement = NULL;
	size_t capacity = 0;
	int result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
	while (result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
		void *metrics = cursor->metrics;
		const char *name = (const char *)sqlite3_column_text(statement, 2);
		char *copy = strdup(name ? name : "");
		if (!copy || array_reserve(&metrics, &capacity, cursor->n_metrics + 1,
				     sizeof(*cursor->metrics)) < 0) {
			free(copy);
			result = SQLITE_NOMEM;
			break;
		}
		cursor->metrics = metrics;
		cursor->metrics[cursor->n_metrics++] = (struct metric_name){
			(uint32_t)sqlite3_column_int64(statement, 0),
			sqlite3_column_double(statement, 1), copy};
		result = SQLITE_OK;
	}
	sqlite3_finalize(statement);
	return result == SQLITE_DONE ? SQLITE_OK : result;
}

static const struct metric_name *find_metric(const struct samples_cursor *cursor, uint32_t id)
{
	for (size_t low = 0, high = cursor->n_metrics; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (cursor->metrics[middle].id == id) {
			return &cursor->metrics[middle];
		}
		if (cursor->metrics[middle].id < id) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return NULL;
}

// For a thinned gauge the table has only the mean.
static bool is_shown(const struct block *b, uint32_t column)
{
	return !b->aggregates || b->aggregates[column] == AGGREGATE_NONE ||
	       b->aggregates[column] == AGGREGATE_MEAN;
}

// Moves to the first row of the next existing column or block.
static int advance_column(struct samples_cursor *cursor)
{
	cursor->row = 0;
	cursor->column++;
	for (;;) {
		for (; cursor->column < cursor->block.n_columns; cursor->column++) {
			cursor->metric = find_metric(
				cursor, cursor->block.metric_ids[cursor->column]);
			if (cursor->metric && is_shown(&cursor->block, cursor->column)) {
				return SQLITE_OK;
			}
		}
		struct error e = {0};
		block_done(&cursor->block);
		cursor->column = 0;
		int r = block_scan_next(&cursor->scan, &cursor->block, &e);
		if (r <= 0) {
			cursor->at_end = true;
			sqlite3_free(cursor->base.pVtab->zErrMsg);
			cursor->base.pVtab->zErrMsg = r < 0 ? sqlite3_mprintf("%s", e.text) : NULL;
			return r == 0 ? SQLITE_OK : r == -ENOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT;
		}
	}
}

// Converts seconds to microseconds, rounded outwards by one, because rows are checked again.
static int64_t bound_us(double seconds, int64_t slack)
{
	double us = seconds * 1e6;
	if (!(us > -9e18)) {
		return INT64_MIN;
	}
	return us < 9e18 ? (int64_t)us + slack : INT64_MAX;
}

static int filter(
	sqlite3_vtab_cursor *base, int plan, const char *text, int argc, sqlite3_value **argv)
{
	(void)text;
	(void)argc;
	struct samples_cursor *cursor = (struct samples_cursor *)base;
	struct samples_table *table = (struct samples_table *)base->pVtab;
	struct block_query query = {.from_us = INT64_MIN, .to_us = INT64_MAX};
	bool none = false;
	if (plan & PLAN_ENTITY) {
		query.entity = sqlite3_value_int64(*argv++);
		none = query.entity == 0;
	}
	if (plan & PLAN_METRIC) {
		query.metric = (const char *)sqlite3_value_text(*argv++);
		none = none || !query.metric;
	}
	if (plan & PLAN_FROM) {
		query.from_us = bound_us(sqlite3_value_double(*argv++), -1);
	}
	if (plan & PLAN_TO) {
		query.to_us = bound_us(sqlite3_value_double(*argv++), 1);
	}
	clear_cursor(cursor);
	if (none) {
		return SQLITE_OK;
	}
	int result = load_metrics(cursor, table->database);
	if (result == SQLITE_OK &&
		block_scan_start(&cursor->scan, table->database, &query, table->damage, NULL) < 0) {
		result = SQLITE_ERROR;
	}
	if (result != SQLITE_OK) {
		return result;
	}
	cursor->at_end = false;
	cursor->rowid = 0;
	return advance_column(cursor);
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct samples_cursor *cursor = (struct samples_cursor *)base;
	cursor->rowid++;
	return ++cursor->row < cursor->block.n_rows ? SQLITE_OK : advance_column(cursor);
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
	return ((struct samples_cursor *)base)->at_end;
}

static int read_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	const struct samples_cursor *cursor = (const struct samples_cursor *)base;
	int64_t value = cursor->block.columns[cursor->column][cursor->row];
	switch (column) {
	case COLUMN_ENTITY:
		sqlite3_result_int64(context, cursor->scan.entity);
		break;
	case COLUMN_METRIC:
		sqlite3_result_text(context, cursor->metric->name, -1, SQLITE_TRANSIENT);
		break;
	case COLUMN_T:
		sqlite3_result_double(context, (double)cursor->block.t[cursor->row] / 1e6);
		break;
	default:
		if (value == VALUE_MISSING) {
			sqlite3_result_null(context);
		} else {
			sqlite3_result_double(context, (double)value * cursor->metric->scale);
		}
	}
	return SQLITE_OK;
}

static int read_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = ((struct samples_cursor *)base)->rowid;
	return SQLITE_OK;
}

static const sqlite3_module samples_module = {
	.iVersion = 0,
	.xConnect = connect_table,
	.xBestIndex = best_index,
	.xDisconnect = disconnect_table,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next_row,
	.xEof = is_at_end,
	.xColumn = read_column,
	.xRowid = read_rowid,
};

int samples_register(sqlite3 *database, struct damage *damage)
{
	int result = sqlite3_create_module_v2(database, "samples", &samples_module, damage, NULL);
	return database_errno(database, result);
}
