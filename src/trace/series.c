// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Blocks of a run, and one metric of one entity as a series.

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "trace/bounds.h"
#include "trace/metric.h"
#include "trace/reader_internal.h"
#include "trace/store.h"

int reader_blocks(struct reader *r, int64_t entity,
	int (*each)(void *context, int64_t entity, const struct block *b), void *context,
	struct error *e)
{
	struct block_query query = {.entity = entity, .from_us = INT64_MIN, .to_us = INT64_MAX};
	struct block_scan scan;
	int code = block_scan_start(&scan, r->database, &query, &r->damage, e);
	if (code < 0) {
		return code;
	}
	struct block block;
	while ((code = block_scan_next(&scan, &block, e)) == 1) {
		int stop = each(context, scan.entity, &block);
		block_done(&block);
		reader_progress(r);
		if (stop) {
			code = 0;
			break;
		}
	}
	block_scan_done(&scan);
	return code;
}

void series_done(struct series *s)
{
	if (s->minimum != s->values) {
		free(s->minimum);
	}
	if (s->maximum != s->values) {
		free(s->maximum);
	}
	free(s->t_us);
	free(s->values);
	*s = (struct series){0};
}

struct collector {
	struct series series;
	size_t capacity;
	double scale;
	int64_t from_us;
	int64_t to_us;
};

static int grow_array(void *array, size_t capacity)
{
	void **items = array;
	void *moved = realloc(*items, capacity * sizeof(double));
	if (!moved) {
		return -ENOMEM;
	}
	*items = moved;
	return 0;
}

// minimum and maximum are arrays of their own only once something was thinned.
static int reserve(struct collector *c, size_t more)
{
	struct series *s = &c->series;
	if (s->n + more > RUN_STREAM_ROWS_MAX) {
		return -EFBIG; // a run that grew after it was opened
	}
	if (s->n + more <= c->capacity) {
		return 0;
	}
	size_t capacity = s->n + more + c->capacity / 2;
	bool shared = s->minimum == s->values;
	int r = grow_array(&s->t_us, capacity);
	if (r == 0) {
		r = grow_array(&s->values, capacity);
	}
	if (shared) {
		s->minimum = s->maximum = s->values;
	}
	if (r == 0 && !shared) {
		r = grow_array(&s->minimum, capacity);
	}
	if (r == 0 && !shared) {
		r = grow_array(&s->maximum, capacity);
	}
	if (r == 0) {
		c->capacity = capacity;
	}
	return r;
}

static int separate_extremes(struct collector *c)
{
	struct series *s = &c->series;
	if (s->minimum != s->values) {
		return 0;
	}
	double *minimum = malloc((c->capacity + 1) * sizeof(*minimum));
	double *maximum = malloc((c->capacity + 1) * sizeof(*maximum));
	if (!minimum || !maximum) {
		free(minimum);
		free(maximum);
		return -ENOMEM;
	}
	if (s->n) {
		memcpy(minimum, s->values, s->n * sizeof(*minimum));
		memcpy(maximum, s->values, s->n * sizeof(*maximum));
	}
	s->minimum = minimum;
	s->maximum = maximum;
	return 0;
}

static double scaled(int64_t value, double scale)
{
	return value == VALUE_MISSING ? NAN : (double)value * scale;
}

static const int64_t *find_column(const struct block *b, enum aggregate aggregate)
{
	for (uint32_t i = 0; i < b->n_columns; i++) {
		if ((b->aggregates ? b->aggregates[i] : AGGREGATE_NONE) == aggregate) {
			return b->columns[i];
		}
	}
	return NULL;
}

static int collect_block(struct collector *c, const struct block *b)
{
	const int64_t *plain = find_column(b, AGGREGATE_NONE);
	const int64_t *mean = plain ? plain : find_column(b, AGGREGATE_MEAN);
	const int64_t *minimum = plain ? plain : find_column(b, AGGREGATE_MINIMUM);
	const int64_t *maximum = plain ? plain : find_column(b, AGGREGATE_MAXIMUM);
	if (!mean) {
		return 0;
	}
	int r = reserve(c, b->n_rows);
	r = r == 0 && !plain ? separate_extremes(c) : r;
	if (r < 0) {
		return r;
	}
	struct series *s = &c->series;
	for (uint32_t i = 0; i < b->n_rows; i++) {
		// Blocks of one stream do not overlap; forged ones may, and times never fall.
		bool falls = s->n > 0 && b->t[i] < s->t_us[s->n - 1];
		if (falls || b->t[i] < c->from_us || b->t[i] > c->to_us) {
			continue;
		}
		s->t_us[s->n] = b->t[i];
		s->values[s->n] = scaled(mean[i], c->scale);
		if (s->minimum != s->values) {
			s->minimum[s->n] = scaled(minimum ? minimum[i] : mean[i], c->scale);
			s->maximum[s->n] = scaled(maximum ? maximum[i] : mean[i], c->scale);
		}
		s->n++;
	}
	return 0;
}

// The scale of the metric as it is said of this entity's kind. False where there is none.
static bool find_scale(struct reader *r, int64_t entity, const char *metric, double *ret)
{
	static const char sql[] = "SELECT m.scale FROM metric m JOIN entity e"
				  " ON e.kind = m.entity_kind WHERE e.id = ?1 AND m.name = ?2";
	if (!r->scale && sqlite3_prepare_v2(r->database, sql, -1, &r->scale, NULL) != SQLITE_OK) {
		return false;
	}
	sqlite3_bind_int64(r->scale, 1, entity);
	sqlite3_bind_text(r->scale, 2, metric, -1, SQLITE_STATIC);
	bool found = sqlite3_step(r->scale) == SQLITE_ROW;
	if (found) {
		*ret = sqlite3_column_double(r->scale, 0);
	}
	sqlite3_reset(r->scale);
	sqlite3_clear_bindings(r->scale);
	return found;
}

// The table of metrics cannot change while the run is held.
static bool knows_metrics(struct reader *r)
{
	if (r->held && !r->metrics_tried) {
		r->metrics_tried = true;
		(void)metric_rows_load(r->database, &r->metrics);
	}
	return r->metrics.n > 0;
}

// As find_scale(), from the metric's rows.
static bool find_known_scale(
	struct reader *r, int64_t entity, const struct metric_entry *rows, size_t n, double *ret)
{
	static const char sql[] = "SELECT kind FROM entity WHERE id = ?1";
	if (!r->kind && sqlite3_prepare_v2(r->database, sql, -1, &r->kind, NULL) != SQLITE_OK) {
		return false;
	}
	sqlite3_bind_int64(r->kind, 1, entity);
	const char *kind = sqlite3_step(r->kind) == SQLITE_ROW
	                           ? (const char *)sqlite3_column_text(r->kind, 0)
	                           : NULL;
	bool found = false;
	for (size_t i = 0; i < n && kind && !found; i++) {
		found = strcmp(rows[i].kind, kind) == 0;
		*ret = found ? rows[i].scale : *ret;
	}
	sqlite3_reset(r->kind);
	return found;
}

// The scale, and what is known of the metric for the query. False where the entity has none.
static bool find_metric(struct reader *r, struct block_query *query, double *ret)
{
	if (!knows_metrics(r)) {
		return find_scale(r, query->entity, query->metric, ret);
	}
	size_t n;
	const struct metric_entry *rows = metric_rows_find(&r->metrics, query->metric, &n);
	if (rows && metric_rows_have_one_source(rows, n)) {
		query->known = rows;
		query->n_known = n;
	}
	return rows && find_known_scale(r, query->entity, rows, n, ret);
}

int reader_series(struct reader *r, int64_t entity, const char *metric, int64_t from_us,
	int64_t to_us, struct series *ret, struct error *e)
{
	struct collector c = {.from_us = from_us, .to_us = to_us};
	struct block_query query = {.entity = entity,
		.metric = metric,
		.from_us = from_us,
		.to_us = to_us,
		.kept = &r->statements};
	struct block_scan scan;
	if (!entity || !find_metric(r, &query, &c.scale)) {
		*ret = (struct series){0};
		return 0;
	}
	int code = block_scan_start(&scan, r->database, &query, &r->damage, e);
	if (code < 0) {
		return code;
	}
	struct block block;
	while ((code = block_scan_next(&scan, &block, e)) == 1) {
		int collected = collect_block(&c, &block);
		block_done(&block);
		reader_progress(r);
		if (collected < 0) {
			code = error_errno(e, -collected, "cannot read %s", metric);
			break;
		}
	}
	block_scan_done(&scan);
	if (code < 0) {
		series_done(&c.series);
		return code;
	}
	*ret = c.series;
	return 0;
}
