// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Spans of the job's own as `strain show` tells of them.

#include "cmd/show_spans.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "render/json.h"

enum {
	SPAN_NAME,
	SPAN_COUNT,
	SPAN_MEDIAN,
	SPAN_LONGEST,
	SPAN_TOTAL,
	SPAN_SHARE,
	SPAN_OF,
	SPAN_THREADS,
	N_SPAN_COLUMNS,
};

static const struct column columns[N_SPAN_COLUMNS] = {
	[SPAN_NAME] = {NULL, "SPAN", COLUMN_TEXT, 0},
	[SPAN_COUNT] = {NULL, "TIMES", COLUMN_WHOLE, 2},
	[SPAN_MEDIAN] = {NULL, "MEDIAN", COLUMN_SECONDS, 0},
	[SPAN_LONGEST] = {NULL, "LONGEST", COLUMN_SECONDS, 4},
	[SPAN_TOTAL] = {NULL, "TOTAL", COLUMN_SECONDS, 3},
	[SPAN_SHARE] = {NULL, "SHARE", COLUMN_RATIO, 0},
	[SPAN_OF] = {NULL, "OF", COLUMN_LABEL, 1},
	[SPAN_THREADS] = {NULL, "THREADS", COLUMN_WHOLE, 5},
};

static bool any_of_several_threads(const struct phases *p)
{
	for (size_t i = 0; i < p->n_own; i++) {
		if (p->own[i].threads > 1) {
			return true;
		}
	}
	return false;
}

static void span_cells(struct table *t, const struct own_span *span, bool threads)
{
	_cleanup_text_ struct text name = {0};
	text_format(&name, "%*s", 2 * (int)span->depth, "");
	text_append_string(&name, span->name);
	table_text(t, SPAN_NAME, name.data);
	table_number(t, SPAN_COUNT, (double)span->count);
	table_number(t, SPAN_MEDIAN, span->p50_s);
	table_number(t, SPAN_LONGEST, span->count > 1 ? span->max_s : NAN);
	table_number(t, SPAN_TOTAL, span->total_s);
	table_number(t, SPAN_SHARE, span->share);
	table_text(t, SPAN_OF, span->inside ? "iterations" : "the run");
	table_number(t, SPAN_THREADS, threads ? (double)span->threads : NAN);
}

int span_table_build(const struct analysis *a, size_t limit, struct table **ret)
{
	const struct phases *p = &a->phases;
	_cleanup_free_ bool *shown = calloc(p->n_own + 1, sizeof(*shown));
	bool threads = any_of_several_threads(p);
	int r = table_new(columns, N_SPAN_COLUMNS, ret);
	if (r == 0) {
		r = shown ? own_spans_longest(p, limit, shown) : -ENOMEM;
	}
	for (size_t i = 0; i < p->n_own && r == 0; i++) {
		if (shown[i]) {
			r = table_row(*ret);
			span_cells(*ret, &p->own[i], threads);
		}
	}
	return r;
}

static json_t *span_json(const struct own_span *span)
{
	json_t *row = json_object();
	json_object_set_new(row, "name", json_from_text(span->name));
	json_object_set_new(row, "parent",
		span->parent == OWN_SPAN_NONE ? json_null()
					      : json_integer((json_int_t)span->parent));
	json_object_set_new(row, "count", json_integer((json_int_t)span->count));
	json_object_set_new(row, "total_s", json_from_number(span->total_s));
	json_object_set_new(row, "p50_s", json_from_number(span->p50_s));
	json_object_set_new(row, "max_s", json_from_number(span->max_s));
	json_object_set_new(row, "share_ratio", json_from_number(span->share));
	json_object_set_new(row, "of", json_string(span->inside ? "iterations" : "run"));
	json_object_set_new(row, "threads", json_integer((json_int_t)span->threads));
	return row;
}

json_t *span_list_json(const struct phases *p)
{
	json_t *json = json_array();
	for (size_t i = 0; json && i < p->n_own; i++) {
		json_array_append_new(json, span_json(&p->own[i]));
	}
	return json;
}
