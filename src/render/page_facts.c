// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the page says in words and single figures.

#include "render/page_facts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/gpu_facts.h"
#include "analyze/names.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "render/panels.h"

#define FIGURE_BYTES 48

json_t *page_string(const char *string)
{
	if (!string) {
		return json_null();
	}
	json_t *json = json_string(string);
	if (json) {
		return json;
	}
	_cleanup_text_ struct text printable = {0};
	text_append_printable(&printable, string, strlen(string));
	return json_string(printable.data ? printable.data : "");
}

json_t *page_format(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *string = NULL;
	json_t *json = vasprintf(&string, format, arguments) < 0 ? NULL : page_string(string);
	va_end(arguments);
	free(string);
	return json ? json : json_null();
}

json_t *page_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *page_started(const struct analysis *a)
{
	int64_t start_ns = reader_run_i64(a->reader, "start_utc_ns", 0);
	return start_ns > 0 ? json_real((double)start_ns * 1e-9) : json_null();
}

json_t *page_notice(const struct analysis *a)
{
	const char *notice = reader_notice(a->reader);
	if (!notice && a->overview.partial) {
		_cleanup_text_ struct text part = {0};
		overview_append_recorded(&part, &a->overview);
		return page_format("Of this run is only a part: %s.", part.data ? part.data : "");
	}
	if (!notice && a->overview.state == RUN_LIVE) {
		notice = "This run was still being recorded when the report was made.";
	}
	return page_string(notice);
}

// Chips -----------------------------------------------------------------------------------------

static int add_label_chip(void *context, sqlite3_stmt *row)
{
	const char *name = (const char *)sqlite3_column_text(row, 0);
	const char *value = (const char *)sqlite3_column_text(row, 1);
	json_array_append_new(context, page_format("%s %s", name ? name : "", value ? value : ""));
	return 0;
}

static void add_labels(json_t *chips, struct reader *r)
{
	sqlite3_stmt *statement = NULL;
	static const char sql[] = "SELECT name, value FROM label ORDER BY name LIMIT 40";
	// Labels that cannot be read cost the chips, not the page.
	if (sqlite3_prepare_v2(reader_database(r), sql, -1, &statement, NULL) == SQLITE_OK) {
		while (sqlite3_step(statement) == SQLITE_ROW) {
			add_label_chip(chips, statement);
		}
	}
	sqlite3_finalize(statement);
}

json_t *page_chips(const struct analysis *a)
{
	const struct overview *o = &a->overview;
	json_t *chips = json_array();
	char bytes[FIGURE_BYTES];
	add_labels(chips, a->reader);
	if (o->cpus > 0) {
		json_array_append_new(
			chips, page_format("%.4g CPU%s", o->cpus, o->cpus == 1 ? "" : "s"));
	}
	if (o->n_gpus > 0) {
		const struct gpu_figures *gpu = &o->gpus[0];
		char count[FIGURE_BYTES] = "";
		if (o->n_gpus > 1) {
			snprintf(count, sizeof(count), "%zu × ", o->n_gpus);
		}
		bool known = gpu->memory_bytes > 0;
		json_array_append_new(chips,
			page_format("%s%s%s%s", count, gpu->name ? gpu->name : "GPU",
				known ? " " : "",
				known ? text_bytes(bytes, sizeof(bytes), gpu->memory_bytes) : ""));
	}
	return chips;
}

// Tiles -----------------------------------------------------------------------------------------

static void add_tile(json_t *tiles, const char *label, const char *value, const char *of)
{
	json_t *tile = json_object();
	json_object_set_new(tile, "value", page_string(value));
	json_object_set_new(tile, "of", of ? page_format("of %s", of) : json_null());
	json_object_set_new(tile, "label", page_string(label));
	json_array_append_new(tiles, tile);
}

static void add_time_tile(json_t *tiles, const struct analysis *a)
{
	char value[FIGURE_BYTES];
	double epoch = epoch_typical_seconds(&a->epochs);
	bool epochs = isfinite(epoch);
	text_seconds(value, sizeof(value), epochs ? epoch : a->overview.duration_s);
	add_tile(tiles, epochs ? "per epoch, median" : "from start to end", value, NULL);
}

static void add_cpu_tile(json_t *tiles, const struct overview *o)
{
	if (!isfinite(o->cpus_used)) {
		return;
	}
	char value[FIGURE_BYTES], of[FIGURE_BYTES];
	snprintf(value, sizeof(value), "%.*f", o->cpus_used < 9.95 ? 1 : 0, o->cpus_used);
	snprintf(of, sizeof(of), "%.4g", o->cpus);
	add_tile(tiles, "CPUs in use, mean", value, o->cpus > 0 ? of : NULL);
}

static void add_memory_tile(json_t *tiles, const struct overview *o)
{
	if (!isfinite(o->memory.peak_bytes)) {
		return;
	}
	char value[FIGURE_BYTES], of[FIGURE_BYTES];
	bool limited = o->memory_limit_bytes > 0 && o->memory_limit_is_cgroup;
	double limit = limited ? o->memory_limit_bytes : NAN;
	text_bytes_beside(value, sizeof(value), o->memory.peak_bytes, limit);
	text_bytes_beside(of, sizeof(of), o->memory_limit_bytes, limit);
	add_tile(tiles, o->memory.at_least ? "host memory, peak, at least" : "host memory, peak",
		value, limited ? of : NULL);
}

// Of several GPUs of the job: the mean of how busy they were, the peak of the fullest.
static void add_gpu_tiles(json_t *tiles, const struct analysis *a)
{
	const struct overview *o = &a->overview;
	double busy = 0, peak = NAN, memory = NAN;
	size_t n = 0;
	for (size_t i = 0; i < o->n_gpus; i++) {
		if (gpu_owner(a, i) != GPU_OF_JOB) {
			continue;
		}
		n++;
		busy += o->gpus[i].busy;
		if (!(o->gpus[i].memory_peak_bytes <= peak)) {
			peak = o->gpus[i].memory_peak_bytes;
			memory = o->gpus[i].memory_bytes;
		}
	}
	char value[FIGURE_BYTES], of[FIGURE_BYTES];
	if (n > 0 && isfinite(busy)) {
		text_percent(value, sizeof(value), busy / (double)n);
		add_tile(tiles, n > 1 ? "GPUs busy, mean" : "GPU busy, mean", value, NULL);
	}
	if (isfinite(peak)) {
		text_bytes(value, sizeof(value), peak);
		text_bytes(of, sizeof(of), memory);
		add_tile(tiles, "GPU memory, peak", value, memory > 0 ? of : NULL);
	}
}

static void add_read_tiles(json_t *tiles, const struct overview *o)
{
	char value[FIGURE_BYTES];
	if (isfinite(o->storage_read_bytes)) {
		text_bytes(value, sizeof(value), o->storage_read_bytes);
		add_tile(tiles, "read from storage", value, NULL);
	}
	double share = overview_cache_share(o);
	// Too little was read to speak of a share.
	if (isfinite(share) && o->asked_bytes > 1e6) {
		text_percent(value, sizeof(value), share);
		add_tile(tiles, "read from page cache", value, NULL);
	}
}

json_t *page_tiles(const struct analysis *a)
{
	json_t *tiles = json_array();
	add_time_tile(tiles, a);
	add_cpu_tile(tiles, &a->overview);
	add_memory_tile(tiles, &a->overview);
	add_gpu_tiles(tiles, a);
	add_read_tiles(tiles, &a->overview);
	return tiles;
}

// Epochs ----------------------------------------------------------------------------------------

enum epoch_format { EPOCH_NUMBER, EPOCH_BYTES, EPOCH_PERCENT };

static const struct {
	const char *title;
	enum entity_kind kind;
	const char *metric;
	enum figure figure;
	enum epoch_format format;
} epoch_figures[] = {
	{"CPUs", ENTITY_JOB, NAME_CPU_TIME, FIGURE_MEAN, EPOCH_NUMBER},
	{"GPU busy", ENTITY_GPU, NAME_GPU_BUSY, FIGURE_MEAN, EPOCH_PERCENT},
	{"asked for", ENTITY_JOB, NAME_READ_ASKED, FIGURE_TOTAL, EPOCH_BYTES},
	{"from storage", ENTITY_JOB, NAME_READ_STORAGE, FIGURE_TOTAL, EPOCH_BYTES},
};

static json_t *figure_json(double value, enum epoch_format format)
{
	char figure[FIGURE_BYTES];
	if (!isfinite(value)) {
		return json_null();
	}
	switch (format) {
	case EPOCH_BYTES:
		return json_string(text_bytes(figure, sizeof(figure), value));
	case EPOCH_PERCENT:
		return json_string(text_percent(figure, sizeof(figure), value));
	default:
		return value >= 999.5 && value < 1e15
		               ? json_string(text_count(
					 figure, sizeof(figure), (uint64_t)llround(value)))
		               : page_format("%.3g", value);
	}
}

static double epoch_value(const struct analysis *a, size_t figure, const struct epoch *epoch)
{
	const struct entity *entity = entity_first(&a->entities, epoch_figures[figure].kind);
	return entity ? analysis_epoch_figure(a, entity->id, epoch_figures[figure].metric,
				epoch->number, epoch_figures[figure].figure)
	              : NAN;
}

static bool figure_known(const struct analysis *a, size_t figure)
{
	for (size_t i = 0; i < a->epochs.n; i++) {
		if (isfinite(epoch_value(a, figure, &a->epochs.items[i]))) {
			return true;
		}
	}
	return false;
}

static double epoch_rate(const struct epoch *epoch)
{
	double seconds = epoch_length_s(epoch);
	return epoch->samples > 0 && seconds > 0 ? (double)epoch->samples / seconds : NAN;
}

static double epoch_point(const struct epoch *epoch, const char *name)
{
	for (size_t i = 0; i < epoch->n_points; i++) {
		if (strcmp(epoch->points[i].name, name) == 0) {
			return epoch->points[i].value;
		}
	}
	return NAN;
}

static json_t *epoch_columns(const struct analysis *a, const bool *known)
{
	const struct epoch *first = &a->epochs.items[0];
	json_t *columns = json_array();
	if (isfinite(epoch_rate(first))) {
		json_array_append_new(columns, json_string("samples/s"));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(epoch_figures); i++) {
		if (known[i]) {
			json_array_append_new(columns, json_string(epoch_figures[i].title));
		}
	}
	for (size_t i = 0; i < first->n_points && i < 4; i++) {
		json_array_append_new(columns, page_string(first->points[i].name));
	}
	return columns;
}

static json_t *epoch_row(const struct analysis *a, const bool *known, const struct epoch *epoch)
{
	const struct epoch *first = &a->epochs.items[0];
	json_t *row = json_object(), *values = json_array();
	if (isfinite(epoch_rate(first))) {
		json_array_append_new(values, figure_json(epoch_rate(epoch), EPOCH_NUMBER));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(epoch_figures); i++) {
		if (known[i]) {
			double value = epoch_value(a, i, epoch);
			json_array_append_new(values, figure_json(value, epoch_figures[i].format));
		}
	}
	for (size_t i = 0; i < first->n_points && i < 4; i++) {
		double value = epoch_point(epoch, first->points[i].name);
		json_array_append_new(values, figure_json(value, EPOCH_NUMBER));
	}
	json_object_set_new(row, "name", page_format("epoch %lld", (long long)epoch->number));
	json_object_set_new(row, "start", page_number((double)epoch->start_ns * 1e-9));
	json_object_set_new(
		row, "end", page_number(epoch->open ? NAN : (double)epoch->end_ns * 1e-9));
	json_object_set_new(row, "values", values);
	return row;
}

void page_epoch_table(json_t *run, const struct analysis *a)
{
	json_t *rows = json_array();
	bool known[ARRAY_LENGTH(epoch_figures)];
	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		known[i] = figure_known(a, i);
	}
	for (size_t i = 0; i < a->epochs.n && i < MOST_EPOCHS; i++) {
		json_array_append_new(rows, epoch_row(a, known, &a->epochs.items[i]));
	}
	json_object_set_new(
		run, "epoch_columns", a->epochs.n > 0 ? epoch_columns(a, known) : json_array());
	json_object_set_new(run, "epoch_rows", rows);
}

// Notes -----------------------------------------------------------------------------------------

static void add_note(json_t *notes, const char *title, const char *text)
{
	json_t *note = json_object();
	json_object_set_new(note, "title", json_string(title));
	json_object_set_new(note, "text", page_string(text));
	json_array_append_new(notes, note);
}

static void say_ticks(struct text *cost, const struct recording_figures *recording)
{
	char count[FIGURE_BYTES];
	if (!isfinite(recording->ticks)) {
		return;
	}
	text_format(cost, ". %s ticks",
		text_count(count, sizeof(count), (uint64_t)fmax(0, recording->ticks)));
	if (isfinite(recording->ticks_missed)) {
		text_format(cost, ", %s missed",
			recording->ticks_missed > 0 ? text_count(count, sizeof(count),
							      (uint64_t)recording->ticks_missed)
						    : "none");
	}
	if (isfinite(recording->ticks_late)) {
		text_format(cost, ", %s late by more than one",
			recording->ticks_late > 0
				? text_count(count, sizeof(count), (uint64_t)recording->ticks_late)
				: "none");
	}
}

static void add_cost_note(json_t *notes, const struct recording_figures *recording)
{
	_cleanup_text_ struct text cost = {0};
	char figure[FIGURE_BYTES];
	if (isfinite(recording->cpu_share)) {
		text_format(&cost, "%s of one CPU",
			text_percent(figure, sizeof(figure), recording->cpu_share));
	}
	if (isfinite(recording->memory_peak_bytes)) {
		text_format(&cost, "%s%s of memory", cost.length ? ", " : "",
			text_bytes(figure, sizeof(figure), recording->memory_peak_bytes));
	}
	if (recording->file_bytes > 0) {
		text_format(&cost, "%sa file of %s", cost.length ? ", " : "",
			text_bytes(figure, sizeof(figure), (double)recording->file_bytes));
	}
	if (cost.length > 0) {
		say_ticks(&cost, recording);
		text_append_string(&cost, ".");
		add_note(notes, "Recording cost", cost.data);
	}
}

static void add_left_out_note(
	json_t *notes, const struct analysis *a, const struct panel_list *panels)
{
	_cleanup_text_ struct text left = {0};
	for (size_t i = 0; i < panels->n; i++) {
		if (panels->items[i].left_out > 0) {
			text_format(&left, "%s%s: %zu more devices", left.length ? "; " : "",
				panels->items[i].title, panels->items[i].left_out);
		}
	}
	if (a->epochs.n > MOST_EPOCHS) {
		text_format(&left, "%s%zu more epochs", left.length ? "; " : "",
			a->epochs.n - MOST_EPOCHS);
	}
	if (left.length > 0) {
		text_append_string(&left, ".");
		add_note(notes, "Not drawn", left.data);
	}
}

json_t *page_notes(const struct analysis *a, const struct panel_list *panels)
{
	json_t *notes = json_array();
	add_cost_note(notes, &a->overview.recording);
	if (a->overview.cpu_inexact) {
		add_note(notes, "Inexact", "CPU time misses processes that nobody waited for.");
	}
	if (a->overview.memory.kind) {
		_cleanup_text_ struct text kind = {0};
		bool pss = strcmp(a->overview.memory.kind, "PSS") == 0;
		text_format(&kind, "of the job is its %s%s.", a->overview.memory.kind,
			pss ? ", and between the readings of that what its cgroup counts, or what "
			      "each process has of its own, with what PSS had beyond it"
			    : "");
		add_note(notes, "Memory", kind.data);
	}
	if (panels->idle.length > 0) {
		_cleanup_text_ struct text idle = {0};
		text_format(&idle, "%s.", panels->idle.data);
		add_note(notes, "Nothing moved", idle.data);
	}
	add_left_out_note(notes, a, panels);
	return notes;
}
