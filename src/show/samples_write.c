// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Streams the readings of a run. A run of a day needs no more memory than one of a minute.

#include "show/samples_write.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "run/resampler.h"
#include "runfile/reader.h"
#include "show/csv.h"

// --- wide: values that arrive metric by metric become rows by time, with a column for each metric

// Converts values that arrive metric by metric to a table with a column for each metric and a row
// for each time (and entity).

// The rows of the current entity wait until every metric has passed them.
struct wide {
	const char **names; // [n_columns], names of metrics; borrowed
	size_t n_columns;
	size_t *column_of; // [n_metrics]
	int64_t *times_us; // [n_rows], ascending
	double *values; // [n_rows][n_columns]; NAN: missing
	size_t n_rows;
	size_t capacity;
	bool json;
};

// wanted: [metrics->n]. Metrics of the same name share a column. Returns 0 or -ENOMEM.
static int wide_init(
	struct wide *w, const struct metric_list *metrics, const bool *wanted, bool json)
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

static void wide_done(struct wide *w)
{
	free(w->names);
	free(w->column_of);
	free(w->times_us);
	free(w->values);
}

// Appends the names of the columns; nothing for JSON, whose rows have them.
static void wide_header(const struct wide *w, struct text *out)
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

// The number of rows before a time.
static size_t wide_rows_before(const struct wide *w, int64_t t_us)
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

// Adds a value; `metric` is the index in the list. Returns 0 or -ENOMEM.
static int wide_put(struct wide *w, size_t metric, int64_t t_us, double value)
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

static void wide_json_row(
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

static void wide_csv_row(
	const struct wide *w, size_t row, const struct entity *entity, struct text *out)
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

static void wide_row(
	const struct wide *w, size_t row, const struct entity *entity, struct text *out)
{
	if (w->json) {
		wide_json_row(w, row, entity, out);
	} else {
		wide_csv_row(w, row, entity, out);
	}
}

// Removes the first rows.
static void wide_drop(struct wide *w, size_t n)
{
	if (n == 0) {
		return; // there are no rows yet
	}
	w->n_rows -= n;
	memmove(w->times_us, w->times_us + n, w->n_rows * sizeof(*w->times_us));
	memmove(w->values, w->values + n * w->n_columns,
		w->n_rows * w->n_columns * sizeof(*w->values));
}

// --- export

enum { FLUSH_BYTES = 1 << 16 };

// An output format: text before, between and after the rows, and the writer of a row. The part of a
// row that is constant for a series is built once.
struct samples_format {
	const char *name;
	const char *before;
	const char *between;
	const char *after;
	void (*prefix)(
		struct text *t, const struct entity *entity, const struct metric_row *metric);
	void (*row)(struct text *t, const struct text *prefix, double t_s, double value);
	void (*print)(const char *data, size_t length, FILE *stream);
};

// The state of a series.
struct column_state {
	const struct metric_row *metric;
	bool wanted;
	bool begun; // for the current entity
	struct text prefix;
	struct resampler resampler;
};

struct export
{
	const struct samples_request *request;
	FILE *stream;
	const struct entity *entity;
	struct column_state *columns; // [n_columns], one per metric, by id
	size_t n_columns;
	struct wide wide;
	struct text out;
	bool first; // no row yet
	bool failed; // writing to the stream, or out of memory
};

// --- formats

static void csv_prefix(struct text *t, const struct entity *entity, const struct metric_row *metric)
{
	const char *const fields[] = {entity_kind_name(entity->kind), entity->key, entity->name,
		metric->name, metric->unit};
	for (size_t i = 0; i < ARRAY_LENGTH(fields); i++) {
		csv_append_text(t, fields[i]);
		text_append(t, ",", 1);
	}
}

static void csv_row(struct text *t, const struct text *prefix, double t_s, double value)
{
	text_append(t, prefix->data, prefix->length);
	csv_append_number(t, t_s);
	text_append(t, ",", 1);
	csv_append_number(t, value);
	text_append(t, "\n", 1);
}

static void json_prefix(
	struct text *t, const struct entity *entity, const struct metric_row *metric)
{
	text_format(t, "{\"kind\":\"%s\",\"key\":", entity_kind_name(entity->kind));
	text_append_json_string(t, entity->key);
	text_append_string(t, ",\"name\":");
	text_append_json_string(t, entity->name);
	text_append_string(t, ",\"metric\":");
	text_append_json_string(t, metric->name);
	text_append_string(t, ",\"unit\":");
	text_append_json_string(t, metric->unit);
	text_append_string(t, ",\"t_s\":");
}

static void json_row(struct text *t, const struct text *prefix, double t_s, double value)
{
	text_append(t, prefix->data, prefix->length);
	text_format(t, "%.15g,\"value\":", t_s);
	if (isfinite(value)) {
		text_format(t, "%.15g}", value);
	} else {
		text_append_string(t, "null}");
	}
}

// JSON has escapes of its own.
static void print_json(const char *data, size_t length, FILE *stream)
{
	fwrite(data, 1, length, stream);
}

static const struct samples_format formats[] = {
	{"csv", "kind,key,name,metric,unit,t_s,value\n", "", "", csv_prefix, csv_row, csv_print},
	{"json", "[\n", ",\n", "\n]\n", json_prefix, json_row, print_json},
	{"jsonl", "", "\n", "\n", json_prefix, json_row, print_json},
};

// --- rows

static void flush_out(struct export *x, size_t above)
{
	if (x->out.length > above) {
		x->request->format->print(x->out.data, x->out.length, x->stream);
		x->failed = x->failed || x->out.failed || ferror(x->stream);
		text_clear(&x->out);
	}
}

// Writes the rows of a wide table before a time.
static void put_wide_rows(struct export *x, int64_t before_us)
{
	size_t n = wide_rows_before(&x->wide, before_us);
	for (size_t i = 0; i < n; i++) {
		text_append_string(&x->out, x->first ? "" : x->request->format->between);
		x->first = false;
		wide_row(&x->wide, i, x->entity, &x->out);
		flush_out(x, FLUSH_BYTES);
	}
	wide_drop(&x->wide, n);
}

// Later values are not before `block_us`, and the next value of a metric is that of its open
// bucket.
static void put_finished_rows(struct export *x, int64_t block_us)
{
	int64_t before_us = block_us - x->request->bucket_us;
	for (size_t i = 0; i < x->n_columns; i++) {
		const struct column_state *column = &x->columns[i];
		bool open = column->begun && column->resampler.open;
		before_us = open && column->resampler.bucket.t_us < before_us
		                    ? column->resampler.bucket.t_us
		                    : before_us;
	}
	put_wide_rows(x, before_us);
}

static void put_row(struct export *x, const struct column_state *column, int64_t t_us, double value)
{
	const struct samples_format *format = x->request->format;
	if (x->request->wide) {
		x->failed = wide_put(&x->wide, (size_t)(column - x->columns), t_us, value) < 0 ||
		            x->failed;
		return;
	}
	text_append_string(&x->out, x->first ? "" : format->between);
	x->first = false;
	format->row(&x->out, &column->prefix, (double)t_us / 1e6, value);
	flush_out(x, FLUSH_BYTES);
}

static void put_reading(struct export *x, struct column_state *column, int64_t t_us, double value)
{
	struct resampled bucket;
	if (x->request->bucket_us == 0) {
		put_row(x, column, t_us, value);
	} else if (resampler_add(&column->resampler, t_us, value, value, value, &bucket)) {
		put_row(x, column, bucket.t_us, bucket.value);
	}
}

static int column_compare(const void *key, const void *item)
{
	uint32_t id = *(const uint32_t *)key;
	uint32_t other = ((const struct column_state *)item)->metric->id;
	return (id > other) - (id < other);
}

static struct column_state *column_begin(struct export *x, uint32_t metric)
{
	struct column_state *column = bsearch(
		&metric, x->columns, x->n_columns, sizeof(*x->columns), column_compare);
	if (!column || !column->wanted) {
		return NULL;
	}
	if (!column->begun) {
		column->begun = true;
		text_clear(&column->prefix);
		if (!x->request->wide) {
			x->request->format->prefix(&column->prefix, x->entity, column->metric);
		}
		if (x->request->bucket_us) {
			resampler_start(
				&column->resampler, column->metric->kind, x->request->bucket_us);
		}
	}
	return column;
}

static int put_block(void *context, int64_t entity, const struct block *b)
{
	(void)entity;
	struct export *x = context;
	if (x->request->wide && b->n_rows > 0) {
		put_finished_rows(x, b->t[0]);
	}
	for (uint32_t c = 0; c < b->n_columns; c++) {
		// In a thinned run, the mean is exported.
		bool bound = b->aggregates && (b->aggregates[c] == AGGREGATE_MINIMUM ||
						      b->aggregates[c] == AGGREGATE_MAXIMUM);
		struct column_state *column = bound ? NULL : column_begin(x, b->metric_ids[c]);
		for (uint32_t row = 0; column && row < b->n_rows; row++) {
			int64_t stored = b->columns[c][row];
			put_reading(x, column, b->t[row],
				stored == VALUE_MISSING ? NAN
							: (double)stored * column->metric->scale);
		}
	}
	return x->failed || x->out.failed ? -EIO : 0;
}

static int put_entity(struct export *x, struct reader *reader, struct error *e)
{
	int r = reader_blocks(reader, x->entity->id, put_block, x, e);
	for (size_t i = 0; i < x->n_columns; i++) {
		struct column_state *column = &x->columns[i];
		struct resampled bucket;
		if (column->begun && x->request->bucket_us &&
			resampler_end(&column->resampler, &bucket)) {
			put_row(x, column, bucket.t_us, bucket.value);
		}
		column->begun = false;
	}
	if (x->request->wide) {
		put_wide_rows(x, INT64_MAX);
	}
	return r;
}

// --- what is wanted

static bool is_wanted(const struct samples_request *request, const struct metric_row *metric)
{
	bool wanted = request->n_metrics == 0;
	for (size_t i = 0; i < request->n_metrics; i++) {
		wanted = wanted || strcmp(request->metrics[i], metric->name) == 0;
	}
	return wanted && (request->every_kind || request->kind == metric->entity_kind);
}

// A name that no metric has is an error, not an empty result.
static const char *unknown_metric(
	const struct samples_request *request, const struct metric_list *metrics)
{
	for (size_t i = 0; i < request->n_metrics; i++) {
		bool known = false;
		for (size_t k = 0; k < metrics->n; k++) {
			known = known || strcmp(request->metrics[i], metrics->items[k].name) == 0;
		}
		if (!known) {
			return request->metrics[i];
		}
	}
	return NULL;
}

// Skips the blocks of entities without wanted metrics.
static bool has_wanted(const struct export *x, enum entity_kind kind)
{
	for (size_t i = 0; i < x->n_columns; i++) {
		if (x->columns[i].wanted && x->columns[i].metric->entity_kind == kind) {
			return true;
		}
	}
	return false;
}

static int export_entities(struct export *x, struct reader *reader,
	const struct entity_list *entities, struct error *e)
{
	int result = 0;
	bool csv = x->request->format == formats;
	if (x->request->wide) {
		wide_header(&x->wide, &x->out);
	}
	text_append_string(&x->out, x->request->wide && csv ? "" : x->request->format->before);
	for (size_t i = 0; i < entities->n && !x->failed; i++) {
		x->entity = &entities->items[i];
		if (has_wanted(x, x->entity->kind)) {
			int r = put_entity(x, reader, e);
			result = r < 0 ? r : result;
		}
	}
	bool lines = strcmp(x->request->format->name, "jsonl") == 0;
	text_append_string(&x->out, lines && x->first ? "" : x->request->format->after);
	flush_out(x, 0);
	if (x->failed && !ferror(x->stream)) { // the caller reports errors of the stream
		return error_errno(e, ENOMEM, "cannot export");
	}
	return x->failed ? 0 : result;
}

static int export_init(struct export *x, const struct metric_list *metrics)
{
	_cleanup_free_ bool *wanted = calloc(metrics->n + 1, sizeof(*wanted));
	x->columns = calloc(metrics->n + 1, sizeof(*x->columns));
	if (!wanted || !x->columns) {
		return -ENOMEM;
	}
	x->n_columns = metrics->n;
	for (size_t i = 0; i < metrics->n; i++) {
		x->columns[i].metric = &metrics->items[i];
		x->columns[i].wanted = wanted[i] = is_wanted(x->request, &metrics->items[i]);
	}
	bool json = x->request->format != formats;
	return x->request->wide ? wide_init(&x->wide, metrics, wanted, json) : 0;
}

static void export_done(struct export *x)
{
	for (size_t i = 0; i < x->n_columns; i++) {
		text_done(&x->columns[i].prefix);
	}
	free(x->columns);
	wide_done(&x->wide);
	text_done(&x->out);
}

int samples_write(
	struct reader *reader, const struct samples_request *request, FILE *stream, struct error *e)
{
	struct entity_list entities = {0};
	struct metric_list metrics = {0};
	struct export x = {.request = request, .stream = stream, .first = true};
	int r = entity_list_load(reader, false, &entities, e);
	r = r < 0 ? r : metric_list_load(reader, &metrics, e);
	const char *unknown = r < 0 ? NULL : unknown_metric(request, &metrics);
	if (unknown) {
		r = error_set(
			e, ENOENT, "%s: no metric '%s' in this run", reader_path(reader), unknown);
	} else if (r == 0) {
		r = export_init(&x, &metrics) < 0 ? error_errno(e, ENOMEM, "cannot export")
		                                  : export_entities(&x, reader, &entities, e);
	}
	export_done(&x);
	entity_list_done(&entities);
	metric_list_done(&metrics);
	return r;
}

const struct samples_format *samples_format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(formats); i++) {
		if (strcmp(name, formats[i].name) == 0) {
			return &formats[i];
		}
	}
	return NULL;
}
