// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Values by metric become rows by time.

#include "cmd/export_wide.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/csv.h"

int wide_init(struct wide *w, const struct metric_list *metrics, const bool *wanted, bool json)
{
	*w = (struct wide){.json = json};
	w->names = calloc(metrics->n + 1, sizeof(*w->names));
	w->column_of = calloc(metrics->n + 1, sizeof(*w->column_of));
	if (!w->names || !w->column_of) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < metrics->n; i++) {
		size_t column = 0;
		const char *name = metrics->items[i].name;
		while (column < w->n_columns && strcmp(w->names[column], name) != 0) {
			column++;
		}
		if (wanted[i] && column == w->n_columns) {
			w->names[w->n_columns++] = name;
		}
		w->column_of[i] = column;
	}
	return 0;
}

void wide_done(struct wide *w)
{
	free(w->names);
	free(w->column_of);
	free(w->times_us);
	free(w->values);
}

void wide_header(const struct wide *w, struct text *out)
{
	if (w->json) {
		return;
	}
	text_append_string(out, "kind,key,name,t_s");
	for (size_t i = 0; i < w->n_columns; i++) {
		text_append_string(out, ",");
		csv_append_text(out, w->names[i]);
	}
	text_append_string(out, "\n");
}

size_t wide_rows_before(const struct wide *w, int64_t t_us)
{
	size_t low = 0, high = w->n_rows;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (w->times_us[middle] < t_us) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

static int reserve_row(struct wide *w)
{
	if (w->n_rows < w->capacity) {
		return 0;
	}
	size_t capacity = w->capacity ? 2 * w->capacity : 256;
	int64_t *times = realloc(w->times_us, capacity * sizeof(*times));
	w->times_us = times ? times : w->times_us;
	double *values = reallocarray(w->values, capacity, (w->n_columns + 1) * sizeof(*values));
	w->values = values ? values : w->values;
	w->capacity = times && values ? capacity : w->capacity;
	return times && values ? 0 : -ENOMEM;
}

int wide_put(struct wide *w, size_t metric, int64_t t_us, double value)
{
	size_t row = wide_rows_before(w, t_us), n = w->n_columns;
	if (row == w->n_rows || w->times_us[row] != t_us) {
		if (reserve_row(w) < 0) {
			return -ENOMEM;
		}
		size_t behind = w->n_rows - row;
		memmove(w->times_us + row + 1, w->times_us + row, behind * sizeof(*w->times_us));
		memmove(w->values + (row + 1) * n, w->values + row * n,
			behind * n * sizeof(*w->values));
		w->times_us[row] = t_us;
		for (size_t i = 0; i < n; i++) {
			w->values[row * n + i] = NAN;
		}
		w->n_rows++;
	}
	w->values[row * n + w->column_of[metric]] = value;
	return 0;
}

static void json_row(
	const struct wide *w, size_t row, const struct entity *entity, struct text *out)
{
	text_format(out, "{\"kind\":\"%s\",\"key\":", entity_kind_name(entity->kind));
	text_append_json_string(out, entity->key);
	text_append_string(out, ",\"name\":");
	text_append_json_string(out, entity->name);
	text_format(out, ",\"t_s\":%.15g", (double)w->times_us[row] / 1e6);
	for (size_t i = 0; i < w->n_columns; i++) {
		double value = w->values[row * w->n_columns + i];
		text_append_string(out, ",");
		text_append_json_string(out, w->names[i]);
		if (isfinite(value)) {
			text_format(out, ":%.15g", value);
		} else {
			text_append_string(out, ":null");
		}
	}
	text_append_string(out, "}");
}

static void csv_row(const struct wide *w, size_t row, const struct entity *entity, struct text *out)
{
	const char *const fields[] = {entity_kind_name(entity->kind), entity->key, entity->name};
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		csv_append_text(out, fields[i]);
		text_append_string(out, ",");
	}
	csv_append_number(out, (double)w->times_us[row] / 1e6);
	for (size_t i = 0; i < w->n_columns; i++) {
		text_append_string(out, ",");
		csv_append_number(out, w->values[row * w->n_columns + i]);
	}
	text_append_string(out, "\n");
}

void wide_row(const struct wide *w, size_t row, const struct entity *entity, struct text *out)
{
	if (w->json) {
		json_row(w, row, entity, out);
	} else {
		csv_row(w, row, entity, out);
	}
}

void wide_drop(struct wide *w, size_t n)
{
	if (n == 0) {
		return; // there may be no rows at all yet
	}
	w->n_rows -= n;
	memmove(w->times_us, w->times_us + n, w->n_rows * sizeof(*w->times_us));
	memmove(w->values, w->values + n * w->n_columns,
		w->n_rows * w->n_columns * sizeof(*w->values));
}
