// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The summary as a list, and in the run file's table.

#include "analyze/summary.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/entities.h"
#include "analyze/query.h"
#include "analyze/summary_compute.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "trace/reader.h"
#include "trace/writer.h"

static const char *const figure_names[N_FIGURES] = {
	[FIGURE_TOTAL] = "total",
	[FIGURE_MEAN] = "mean",
	[FIGURE_P50] = "p50",
	[FIGURE_P95] = "p95",
	[FIGURE_MAX] = "max",
};

const char *figure_name(enum figure figure)
{
	return figure_names[figure];
}

void summary_done(struct summary *s)
{
	free(s->rows);
	*s = (struct summary){0};
}

static int row_compare(const void *left, const void *right)
{
	const struct summary_row *a = left, *b = right;
	if (a->entity != b->entity) {
		return a->entity < b->entity ? -1 : 1;
	}
	if (a->metric != b->metric) {
		return a->metric < b->metric ? -1 : 1;
	}
	return (a->epoch > b->epoch) - (a->epoch < b->epoch);
}

void summary_sort(struct summary *s)
{
	if (s->n > 0) {
		qsort(s->rows, s->n, sizeof(*s->rows), row_compare);
	}
}

struct summary_row *summary_append(
	struct summary *s, int64_t entity, uint32_t metric, int64_t epoch)
{
	void *rows = s->rows;
	int r = array_reserve(&rows, &s->capacity, s->n + 1, sizeof(*s->rows));
	s->rows = rows;
	if (r < 0) {
		return NULL;
	}
	struct summary_row *row = &s->rows[s->n++];
	*row = (struct summary_row){.entity = entity, .metric = metric, .epoch = epoch};
	for (unsigned i = 0; i < N_FIGURES; i++) {
		row->figures[i] = NAN;
	}
	return row;
}

static const struct summary_row *row_find(
	const struct summary *s, int64_t entity, uint32_t metric, int64_t epoch)
{
	struct summary_row wanted = {.entity = entity, .metric = metric, .epoch = epoch};
	return s->n ? bsearch(&wanted, s->rows, s->n, sizeof(*s->rows), row_compare) : NULL;
}

bool summary_is_steady(const struct summary_row *row)
{
	bool counter = isfinite(row->figures[FIGURE_TOTAL]);
	return counter ? row->figures[FIGURE_TOTAL] == 0
	               : row->figures[FIGURE_MEAN] == row->figures[FIGURE_MAX];
}

double summary_figure(
	const struct summary *s, int64_t entity, uint32_t metric, int64_t epoch, enum figure figure)
{
	const struct summary_row *row = row_find(s, entity, metric, epoch);
	if (!row) {
		row = row_find(s, entity, metric, SUMMARY_WHOLE_RUN);
		row = row && summary_is_steady(row) ? row : NULL;
	}
	return row ? row->figures[figure] : NAN;
}

// --- the table in the file

#define STORED_MAX 9.2e18 // what fits into 64 bits

bool summary_pack(double figure, double scale, int64_t *ret)
{
	double stored = round(figure / scale * 1000);
	if (!(fabs(stored) < STORED_MAX)) {
		return false;
	}
	*ret = (int64_t)stored;
	return true;
}

double summary_round(double figure, double scale)
{
	int64_t stored;
	return summary_pack(figure, scale, &stored) ? (double)stored * scale / 1000 : NAN;
}

struct summary_loader {
	struct summary *summary;
	const struct entity_list *entities;
	const struct metric_list *metrics;
};

static int stored_row(void *context, sqlite3_stmt *row)
{
	const struct summary_loader *loader = context;
	int64_t entity = sqlite3_column_int64(row, 0), number = sqlite3_column_int64(row, 1);
	const struct metric_row *metric = number >= 0 && number <= UINT32_MAX
	                                          ? metric_by_id(loader->metrics, (uint32_t)number)
	                                          : NULL;
	if (!metric || !entity_find(loader->entities, entity)) {
		return 0;
	}
	int64_t epoch = sqlite3_column_type(row, 2) == SQLITE_NULL ? SUMMARY_WHOLE_RUN
	                                                           : sqlite3_column_int64(row, 2);
	struct summary_row *target = summary_append(loader->summary, entity, metric->id, epoch);
	if (!target) {
		return -ENOMEM;
	}
	for (int i = 0; i < N_FIGURES; i++) {
		if (sqlite3_column_type(row, 3 + i) != SQLITE_NULL) {
			target->figures[i] = (double)sqlite3_column_int64(row, 3 + i) *
			                     metric->scale / 1000;
		}
	}
	return 0;
}

static int summary_read(struct reader *r, const struct entity_list *entities,
	const struct metric_list *metrics, struct summary *ret, struct error *e)
{
	struct summary_loader loader = {ret, entities, metrics};
	int result = query_each(r,
		"SELECT entity, metric, epoch, total, mean, p50, p95, max FROM summary", stored_row,
		&loader, e);
	summary_sort(ret);
	return result;
}

int summary_load(struct reader *r, const struct entity_list *entities,
	const struct metric_list *metrics, const struct epoch_list *epochs, struct summary *ret,
	struct error *e)
{
	bool complete = reader_state(r) == RUN_FINISHED && !reader_is_damaged(r);
	if (complete && summary_read(r, entities, metrics, ret, e) == 0 && ret->n > 0) {
		return 0;
	}
	summary_done(ret);
	return summary_compute(r, entities, metrics, epochs, ret, e);
}

// --- writing

static void writer_close(struct writer **writer)
{
	writer_free(*writer);
}

static int insert_row(sqlite3_stmt *insert, const struct summary_row *row, double scale)
{
	sqlite3_clear_bindings(insert); // what is not bound is NULL
	sqlite3_bind_int64(insert, 1, row->entity);
	sqlite3_bind_int64(insert, 2, row->metric);
	if (row->epoch != SUMMARY_WHOLE_RUN) {
		sqlite3_bind_int64(insert, 3, row->epoch);
	}
	for (int i = 0; i < N_FIGURES; i++) {
		int64_t stored;
		if (summary_pack(row->figures[i], scale, &stored)) {
			sqlite3_bind_int64(insert, 4 + i, stored);
		}
	}
	int status = sqlite3_step(insert);
	sqlite3_reset(insert);
	return status == SQLITE_DONE ? SQLITE_OK : status;
}

static int insert_rows(
	sqlite3 *database, const struct summary *s, const struct metric_list *metrics)
{
	_cleanup_statement_ sqlite3_stmt *insert = NULL;
	int status = sqlite3_exec(
		database, "BEGIN IMMEDIATE; DELETE FROM summary", NULL, NULL, NULL);
	if (status == SQLITE_OK) {
		status = sqlite3_prepare_v2(database,
			"INSERT INTO summary (entity, metric, epoch, total, mean, p50, p95, max)"
			" VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			-1, &insert, NULL);
	}
	for (size_t i = 0; i < s->n && status == SQLITE_OK; i++) {
		const struct metric_row *metric = metric_by_id(metrics, s->rows[i].metric);
		status = metric ? insert_row(insert, &s->rows[i], metric->scale) : SQLITE_OK;
	}
	if (status == SQLITE_OK) {
		status = sqlite3_exec(database, "COMMIT", NULL, NULL, NULL);
	}
	return status;
}

// Once for all: waiting for the disk four times, as SQLite does for a transaction, would only order
// writes of a file that the recorder has written without waiting at all.
static void sync_file(sqlite3 *database)
{
	sqlite3_file *file = NULL;
	if (sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, (void *)&file) ==
			SQLITE_OK &&
		file && file->pMethods) {
		(void)file->pMethods->xSync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
	}
}

int summary_write(const char *path, const struct summary *s, const struct metric_list *metrics,
	struct error *e)
{
	_cleanup_(writer_close) struct writer *writer = NULL;
	int r = writer_open(path, &writer, e);
	if (r < 0) {
		return error_prefix(e, "cannot write the summary");
	}
	sqlite3 *database = writer_database(writer);
	int status = insert_rows(database, s, metrics);
	if (status == SQLITE_OK) {
		sync_file(database);
	}
	if (status != SQLITE_OK) {
		// Closing the connection rolls an open transaction back.
		return error_set(
			e, EIO, "cannot write the summary: %s: %s", path, sqlite3_errmsg(database));
	}
	return 0;
}
