// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run as JSON. Unknown values are null, never 0.

#include "show/page_run.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "run/allocation.h"
#include "run/analysis.h"
#include "run/code_time.h"
#include "run/energy.h"
#include "run/gpu_facts.h"
#include "run/names.h"
#include "run/unit.h"
#include "show/lanes.h"
#include "show/panels.h"
#include "study/prices.h"
#include "verdict/evidence.h"
#include "verdict/causes.h"
#include "verdict/tried.h"
#include "verdict/verdict.h"

static json_t *page_iterations(const struct analysis *a);
static json_t *page_own_spans(const struct phases *p);
static void page_add_lanes(json_t *panels, const struct analysis *a, const struct lane_list *lanes);

// Facts -------------------------------------------------------------------------------------------
//
// Sentences and single figures of the page.

#define FIGURE_BYTES 48

json_t *page_run_string(const char *string)
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

json_t *page_run_format(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *string = NULL;
	json_t *json = vasprintf(&string, format, arguments) < 0 ? NULL : page_run_string(string);
	va_end(arguments);
	free(string);
	return json ? json : json_null();
}

json_t *page_run_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *page_started(const struct analysis *a)
{
	int64_t start_ns = reader_run_i64(a->tables.reader, "start_utc_ns", 0);
	return start_ns > 0 ? json_real((double)start_ns * 1e-9) : json_null();
}

static json_t *page_notice(const struct analysis *a)
{
	const char *notice = reader_notice(a->tables.reader);
	if (!notice && a->overview.partial) {
		_cleanup_text_ struct text part = {0};
		overview_append_recorded(&part, &a->overview);
		return page_run_format(
			"This is only a part of the run: %s.", part.data ? part.data : "");
	}
	if (!notice && a->overview.state == RUN_LIVE) {
		notice = "This run was still being recorded when the report was made.";
	}
	return page_run_string(notice);
}

// Chips -------------------------------------------------------------------------------------------

static int add_label_chip(void *context, sqlite3_stmt *row)
{
	const char *name = (const char *)sqlite3_column_text(row, 0);
	const char *value = (const char *)sqlite3_column_text(row, 1);
	json_array_append_new(
		context, page_run_format("%s %s", name ? name : "", value ? value : ""));
	return 0;
}

static void add_labels(json_t *chips, struct reader *r)
{
	sqlite3_stmt *statement = NULL;
	static const char sql[] = "SELECT name, value FROM label ORDER BY name LIMIT 40";
	// If labels cannot be read, the page has no chips.
	if (sqlite3_prepare_v2(reader_database(r), sql, -1, &statement, NULL) == SQLITE_OK) {
		while (sqlite3_step(statement) == SQLITE_ROW) {
			add_label_chip(chips, statement);
		}
	}
	sqlite3_finalize(statement);
}

// "NVIDIA H100" of "GPU 0 NVIDIA H100".
static const char *model_of(const char *name)
{
	const char *model = name && strncmp(name, "GPU ", 4) == 0 ? name + 4 : NULL;
	model = model ? model + strspn(model, "0123456789") : NULL;
	return model && *model == ' ' && model[1] ? model + 1 : name ? name : "GPU";
}

static json_t *page_chips(const struct analysis *a)
{
	const struct overview *o = &a->overview;
	json_t *chips = json_array();
	char bytes[FIGURE_BYTES];
	add_labels(chips, a->tables.reader);
	if (o->cpus > 0) {
		json_array_append_new(
			chips, page_run_format("%.4g CPU%s", o->cpus, o->cpus == 1 ? "" : "s"));
	}
	if (o->n_gpus > 0) {
		const struct gpu_figures *gpu = &o->gpus[0];
		char count[FIGURE_BYTES] = "";
		if (o->n_gpus > 1) {
			snprintf(count, sizeof(count), "%zu × ", o->n_gpus);
		}
		bool known = gpu->memory_bytes > 0;
		json_array_append_new(chips,
			page_run_format("%s%s%s%s", count, model_of(gpu->name), known ? " " : "",
				known ? text_bytes(bytes, sizeof(bytes), gpu->memory_bytes) : ""));
	}
	return chips;
}

// Tiles -------------------------------------------------------------------------------------------

static void add_tile(json_t *tiles, const char *label, const char *value, const char *of)
{
	json_t *tile = json_object();
	json_object_set_new(tile, "value", page_run_string(value));
	json_object_set_new(tile, "of", of ? page_run_format("of %s", of) : json_null());
	json_object_set_new(tile, "label", page_run_string(label));
	json_array_append_new(tiles, tile);
}

static void add_time_tile(json_t *tiles, const struct analysis *a)
{
	char value[FIGURE_BYTES];
	double epoch = epoch_typical_seconds(&a->tables.epochs);
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

// With several GPUs of the job: the mean of their load, the peak of the fullest.
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
	char all[FIGURE_BYTES];
	if (isfinite(o->storage_read_bytes)) {
		bool part = o->storage_read_bytes <= o->asked_bytes;
		text_bytes(value, sizeof(value), o->storage_read_bytes);
		text_bytes(all, sizeof(all), o->asked_bytes);
		add_tile(tiles, "read from storage", value, part ? all : NULL);
	}
}

static json_t *page_tiles(const struct analysis *a)
{
	json_t *tiles = json_array();
	add_time_tile(tiles, a);
	add_cpu_tile(tiles, &a->overview);
	add_memory_tile(tiles, &a->overview);
	add_gpu_tiles(tiles, a);
	add_read_tiles(tiles, &a->overview);
	return tiles;
}

// Epochs ------------------------------------------------------------------------------------------

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
		               : page_run_format("%.3g", value);
	}
}

static double epoch_value(const struct analysis *a, size_t figure, const struct epoch *epoch)
{
	const struct entity *entity = entity_first(&a->tables.entities, epoch_figures[figure].kind);
	return entity ? tables_epoch_figure(&a->tables, entity->id, epoch_figures[figure].metric,
				epoch->number, epoch_figures[figure].figure)
	              : NAN;
}

static bool figure_known(const struct analysis *a, size_t figure)
{
	for (size_t i = 0; i < a->tables.epochs.n; i++) {
		if (isfinite(epoch_value(a, figure, &a->tables.epochs.items[i]))) {
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

static const struct epoch_point *epoch_point(const struct epoch *epoch, const char *name)
{
	for (size_t i = 0; i < epoch->n_points; i++) {
		if (strcmp(epoch->points[i].name, name) == 0) {
			return &epoch->points[i];
		}
	}
	return NULL;
}

static json_t *epoch_columns(const struct analysis *a, const bool *known)
{
	const struct epoch *first = &a->tables.epochs.items[0];
	json_t *columns = json_array();
	if (isfinite(epoch_rate(first))) {
		json_array_append_new(
			columns, json_sprintf("%s/s", unit_of_samples(a->tables.reader)));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(epoch_figures); i++) {
		if (known[i]) {
			json_array_append_new(columns, json_string(epoch_figures[i].title));
		}
	}
	for (size_t i = 0; i < first->n_points && i < 4; i++) {
		json_array_append_new(columns, page_run_string(first->points[i].name));
	}
	return columns;
}

static json_t *epoch_row(const struct analysis *a, const bool *known, const struct epoch *epoch)
{
	const struct epoch *first = &a->tables.epochs.items[0];
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
		const struct epoch_point *point = epoch_point(epoch, first->points[i].name);
		json_array_append_new(values, !point ? json_null()
					      : isfinite(point->value)
						      ? figure_json(point->value, EPOCH_NUMBER)
						      : page_run_format("%g", point->value));
	}
	json_object_set_new(row, "name", page_run_format("epoch %lld", (long long)epoch->number));
	json_object_set_new(row, "start", page_run_number((double)epoch->start_ns * 1e-9));
	json_object_set_new(
		row, "end", page_run_number(epoch->open ? NAN : (double)epoch->end_ns * 1e-9));
	json_object_set_new(row, "values", values);
	return row;
}

// Sets epoch_columns and epoch_rows.
static void page_epoch_table(json_t *run, const struct analysis *a)
{
	json_t *rows = json_array();
	bool known[ARRAY_LENGTH(epoch_figures)];
	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		known[i] = figure_known(a, i);
	}
	for (size_t i = 0; i < a->tables.epochs.n && i < MOST_EPOCHS; i++) {
		json_array_append_new(rows, epoch_row(a, known, &a->tables.epochs.items[i]));
	}
	json_object_set_new(run, "epoch_columns",
		a->tables.epochs.n > 0 ? epoch_columns(a, known) : json_array());
	json_object_set_new(run, "epoch_rows", rows);
}

// Notes -------------------------------------------------------------------------------------------

static void add_note(json_t *notes, const char *title, const char *text)
{
	json_t *note = json_object();
	json_object_set_new(note, "title", json_string(title));
	json_object_set_new(note, "text", page_run_string(text));
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
	if (a->tables.epochs.n > MOST_EPOCHS) {
		text_format(&left, "%s%zu more epochs", left.length ? "; " : "",
			a->tables.epochs.n - MOST_EPOCHS);
	}
	if (left.length > 0) {
		text_append_string(&left, ".");
		add_note(notes, "Not drawn", left.data);
	}
}

static json_t *page_notes(const struct analysis *a, const struct panel_list *panels)
{
	json_t *notes = json_array();
	add_cost_note(notes, &a->overview.recording);
	if (a->overview.cpu_inexact) {
		add_note(notes, "Inexact", "CPU time excludes processes that nobody waited for.");
	}
	if (a->overview.memory.kind) {
		_cleanup_text_ struct text kind = {0};
		bool pss = strcmp(a->overview.memory.kind, "PSS") == 0;
		bool largest = strcmp(a->overview.memory.kind, "resident") == 0;
		text_format(&kind, "of the job is %s%s%s.",
			largest ? "the resident size of its largest process" : "its ",
			largest ? "" : a->overview.memory.kind,
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

// About -------------------------------------------------------------------------------------------
//
// The header of a page.

// Whether the name has the version: "python3.11" does, "python3" does not.
static bool is_versioned_python(const char *name)
{
	static const char word[] = "python";
	size_t n = strlen(word);
	return name && strncmp(name, word, n) == 0 && isdigit((unsigned char)name[n]) &&
	       strchr(name + n, '.') && strspn(name + n, "0123456789.") == strlen(name + n);
}

static void add_python(json_t *versions, const struct analysis *a)
{
	for (size_t i = 0; i < a->tables.entities.n; i++) {
		const struct entity *entity = &a->tables.entities.items[i];
		if (entity->kind == ENTITY_PROCESS && is_versioned_python(entity->name)) {
			json_array_append_new(versions,
				page_run_format("Python %s", entity->name + strlen("python")));
			return;
		}
	}
}

// Adds the frameworks of "pytorch 1.13.0: data, backward; jax 0.4.30: step", with what their hooks
// mark.
static void add_frameworks(json_t *versions, const char *hooks)
{
	while (hooks && *hooks) {
		size_t length = strcspn(hooks, ";"), name = strcspn(hooks, ":;");
		if (name > 0 && name < length) {
			json_array_append_new(versions, page_run_format("%.*s", (int)name, hooks));
		}
		hooks += length;
		hooks += strspn(hooks, "; ");
	}
}

// Returns a new reference. Unknown values are null or missing from the versions.
static json_t *page_about(const struct analysis *a)
{
	const struct overview *o = &a->overview;
	const char *version = reader_run(a->tables.reader, "version");
	const char *kernel = reader_run(a->tables.reader, "kernel");
	_cleanup_text_ struct text outcome = {0};
	json_t *json = json_object(), *versions = json_array();
	overview_append_outcome(&outcome, o);
	add_frameworks(versions, reader_run(a->tables.reader, "hooks"));
	add_python(versions, a);
	if (kernel) {
		json_array_append_new(versions, page_run_string(kernel));
	}
	if (version) {
		json_array_append_new(versions, page_run_format("strain %s", version));
	}
	json_object_set_new(
		json, "host", page_run_string(reader_run(a->tables.reader, "hostname")));
	json_object_set_new(json, "lasted", page_run_number(o->duration_s));
	json_object_set_new(
		json, "ended", page_run_string(outcome.length > 0 ? outcome.data : NULL));
	json_object_set_new(json, "versions", versions);
	return json;
}

// Code --------------------------------------------------------------------------------------------
//
// Bars by phase and by role. A class of code has the same colour in all bars.

// Blue is computing, red is lost time, grey is the kernel or unknown code.
static const unsigned hues[N_CODE_CLASSES] = {
	[CODE_SPINNING] = 1,
	[CODE_KERNELS] = 0,
	[CODE_FRAMEWORK] = 4,
	[CODE_INTERPRETER] = 2,
	[CODE_COLLECTION] = 8,
	[CODE_ALLOCATION] = 5,
	[CODE_COPYING] = 3,
	[CODE_DECODING] = 6,
	[CODE_SYSTEM] = 7,
	[CODE_DRIVER] = 5,
	[CODE_OTHER] = 9,
};

static json_t *bar_json(const struct code_bar *named)
{
	const struct code_group_samples *bar = named->group;
	json_t *json = json_object(), *classes = json_array(), *functions = json_array();
	json_object_set_new(json, "name", page_run_string(named->name));
	json_object_set_new(json, "samples", json_integer((json_int_t)bar->samples));
	for (size_t i = 0; i < N_CODE_CLASSES; i++) {
		json_array_append_new(classes, json_integer((json_int_t)bar->by_class[i]));
	}
	for (size_t i = 0; i < bar->n_tops; i++) {
		json_t *top = json_object();
		json_object_set_new(top, "name", page_run_string(bar->tops[i].name));
		json_object_set_new(top, "class", json_integer(bar->tops[i].class));
		json_object_set_new(top, "samples", json_integer((json_int_t)bar->tops[i].samples));
		json_array_append_new(functions, top);
	}
	json_object_set_new(json, "classes", classes);
	json_object_set_new(json, "functions", functions);
	return json;
}

static json_t *bars_json(const struct code_bar *bars, size_t n)
{
	json_t *list = json_array();
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(list, bar_json(&bars[i]));
	}
	return list;
}

static json_t *classes_json(void)
{
	json_t *json = json_array();
	for (size_t i = 0; i < N_CODE_CLASSES; i++) {
		json_t *class = json_object();
		json_object_set_new(
			class, "name", json_string(code_class_title((enum code_class)i)));
		json_object_set_new(class, "hue", json_integer(hues[i]));
		json_array_append_new(json, class);
	}
	return json;
}

static json_t *page_cpu_time(const struct analysis *a)
{
	struct code_time time;
	if (code_time_load(a, &time) < 0) {
		return NULL;
	}
	struct code_bar roles[CODE_BARS_MAX], phases[CODE_BARS_MAX];
	size_t n_roles = code_time_role_bars(&time, roles);
	size_t n_phases = code_time_phase_bars(&time, phases);
	json_t *json = json_object();
	json_object_set_new(json, "rate", json_integer(CODE_SAMPLES_A_SECOND));
	json_object_set_new(json, "classes", classes_json());
	json_object_set_new(json, "phases", bars_json(phases, n_phases));
	json_object_set_new(json, "roles", bars_json(roles, n_roles));
	json_object_set_new(json, "missing", page_run_string(time.missing));
	json_object_set_new(json, "phases_missing", page_run_string(time.phases_missing));
	code_time_done(&time);
	return json;
}

// Run ---------------------------------------------------------------------------------------------

// More than a reader looks through; the page reports how many were left out.
#define MOST_PROCESSES 300
#define MOST_EVENTS 500
#define MOST_SUMMARY_ROWS 2000

// Panels ------------------------------------------------------------------------------------------

// A series of a panel.
json_t *page_run_series(const char *label, const char *help, unsigned hue,
	const struct buckets *buckets, const struct packed *packed)
{
	struct bucket_figures figures = buckets_figures(buckets);
	json_t *json = json_object();
	json_object_set_new(json, "label", page_run_string(label));
	json_object_set_new(json, "help", page_run_string(help));
	json_object_set_new(json, "hue", json_integer(hue));
	json_object_set_new(json, "width", page_run_number(buckets_width_s(buckets)));
	json_object_set_new(json, "points", json_integer((json_int_t)buckets->n));
	json_object_set_new(json, "samples", json_integer((json_int_t)buckets->samples));
	json_object_set_new(json, "unit", page_run_number(packed->unit));
	json_object_set_new(json, "minimum", page_run_number(figures.minimum));
	json_object_set_new(json, "mean", page_run_number(figures.mean));
	json_object_set_new(json, "maximum", page_run_number(figures.maximum));
	const struct text *data = &packed->base64;
	json_object_set_new(json, "data", json_stringn(data->data ? data->data : "", data->length));
	return json;
}

static json_t *detail_json(const struct detail_series *detail, const struct detail_window *window)
{
	json_t *json = json_object();
	const struct text *data = &detail->packed.base64;
	json_object_set_new(json, "from", page_run_number((double)window->from_us / 1e6));
	json_object_set_new(json, "to", page_run_number((double)window->to_us / 1e6));
	json_object_set_new(json, "width", page_run_number(buckets_width_s(&detail->buckets)));
	json_object_set_new(json, "points", json_integer((json_int_t)detail->buckets.n));
	json_object_set_new(json, "unit", page_run_number(detail->packed.unit));
	json_object_set_new(json, "data", json_stringn(data->data, data->length));
	return json;
}

// Windows of the series at full rate.
static json_t *page_details(
	const struct detail_series *details, const struct detail_window *windows, size_t n)
{
	json_t *json = json_array();
	for (size_t i = 0; i < n; i++) {
		if (details[i].packed.base64.length > 0) {
			json_array_append_new(json, detail_json(&details[i], &windows[i]));
		}
	}
	return json;
}

static json_t *line_json(const struct line *line, const struct panel_list *panels)
{
	json_t *json = page_run_series(
		line->label, line->help, line->hue, &line->buckets, &line->packed);
	json_object_set_new(
		json, "details", page_details(line->details, panels->windows, panels->n_windows));
	return json;
}

static json_t *limit_json(const char *label, double value)
{
	json_t *json = json_object();
	json_object_set_new(json, "label", json_string(label));
	json_object_set_new(json, "value", page_run_number(value));
	return json;
}

static void add_limit(json_t *limits, const struct overview *o, enum limit_kind kind)
{
	if (kind == LIMIT_CPUS && o->cpus > 0) {
		json_array_append_new(limits, limit_json("may use", o->cpus));
	}
	if (kind == LIMIT_MEMORY && o->memory_limit_bytes > 0) {
		const char *label = o->memory_limit_is_cgroup ? "job's limit" : "host";
		json_array_append_new(limits, limit_json(label, o->memory_limit_bytes));
	}
	if (kind == LIMIT_GPU_MEMORY && o->n_gpus > 0 && o->gpus[0].memory_bytes > 0) {
		json_array_append_new(limits,
			limit_json(o->n_gpus > 1 ? "each GPU" : "GPU", o->gpus[0].memory_bytes));
	}
}

static json_t *panel_json(
	const struct panel *panel, const struct panel_list *panels, const struct overview *o)
{
	json_t *json = json_object(), *limits = json_array(), *series = json_array();
	const struct panel_spec *spec = panel->spec;
	json_object_set_new(json, "kind", json_string("lines"));
	json_object_set_new(json, "title", page_run_string(panel->title));
	json_object_set_new(json, "unit", json_string(spec->unit));
	json_object_set_new(json, "help", json_string(spec->help));
	json_object_set_new(json, "floor", page_run_number(spec->floor > 0 ? spec->floor : NAN));
	json_object_set_new(
		json, "ceiling", page_run_number(spec->ceiling > 0 ? spec->ceiling : NAN));
	for (size_t i = 0; i < PANEL_LIMITS; i++) {
		add_limit(limits, o, spec->limits[i]);
	}
	for (size_t i = 0; i < panel->n; i++) {
		json_array_append_new(series, line_json(&panel->lines[i], panels));
	}
	json_object_set_new(json, "limits", limits);
	json_object_set_new(json, "series", series);
	return json;
}

static json_t *panels_json(
	const struct analysis *a, const struct panel_list *panels, const struct lane_list *lanes)
{
	json_t *json = json_array();
	for (size_t i = 0; i < panels->n; i++) {
		json_array_append_new(json, panel_json(&panels->items[i], panels, &a->overview));
	}
	page_add_lanes(json, a, lanes);
	return json;
}

// Verdict -----------------------------------------------------------------------------------------

static json_t *suggestion_json(const struct suggestion *suggestion)
{
	json_t *json = json_object();
	const struct tried *tried = suggestion->tried;
	double gain = tried ? tried->gain.value : suggestion->gain.value;
	bool bound = !tried && suggestion->kind == GAIN_AT_MOST;
	_cleanup_text_ struct text text = {0};
	if (tried) {
		tried_append(&text, tried);
	}
	json_object_set_new(json, "gain",
		gain >= 1.05 ? page_run_format("%s%.1fx", bound ? "at most " : "", gain)
			     : json_null());
	json_object_set_new(json, "title", page_run_string(suggestion->action));
	json_object_set_new(
		json, "text", page_run_string(tried && text.data ? text.data : suggestion->basis));
	return json;
}

static void append_line(json_t *lines, const char *before, struct text *line)
{
	if (line->length > 0 && line->data) {
		json_array_append_new(lines, page_run_format("%s%s", before, line->data));
	}
	text_done(line);
}

// The lines below the headline: shares of an iteration, further causes, confidence.
static void verdict_text(const struct verdict *v, json_t *lines)
{
	struct text parts = {0};
	if (*v->shares) {
		json_array_append_new(lines, page_run_string(v->shares));
	}
	causes_append_parts(&parts, v);
	append_line(lines, "Also: ", &parts);
	if (v->confidence != CONFIDENCE_NONE) {
		bool needed = *v->needed && v->confidence != CONFIDENCE_HIGH && v->n_causes > 0;
		json_array_append_new(lines,
			page_run_format("Confidence: %s%s%s.", confidence_name(v->confidence),
				needed ? "; to raise it: " : "", needed ? v->needed : ""));
	}
}

static void add_fact(json_t *evidence, const char *what, struct text *value)
{
	if (value->length > 0 && value->data) {
		json_t *fact = json_object();
		json_object_set_new(fact, "what", page_run_string(what));
		json_object_set_new(fact, "value", page_run_string(value->data));
		json_array_append_new(evidence, fact);
	}
	text_done(value);
}

// Allocated against used, energy, and the cost.
static void cost_facts(const struct analysis *a, const struct page_priced *priced, json_t *evidence)
{
	struct allocation allocation;
	struct energy energy;
	struct text held = {0}, used = {0}, cost = {0};
	allocation_find(a, &allocation);
	energy_find(a, &energy);
	allocation_append(&held, &allocation);
	energy_append(&used, &energy);
	if (priced) {
		prices_append(&cost, priced->prices, priced->run);
	}
	add_fact(evidence, "allocated", &held);
	add_fact(evidence, "energy", &used);
	add_fact(evidence, "cost", &cost);
}

// The contents of memory, as evidence.
static void held_facts(const struct verdict *v, json_t *evidence)
{
	static const char *const titles[] = {"memory contents", "GPU memory contents"};
	for (unsigned i = 0; i < 2; i++) {
		struct text value = {0};
		memory_breakdown_append(&value, &v->memory, i == 1);
		add_fact(evidence, titles[i], &value);
	}
}

// The last output lines of a failed job.
static void output_text(const struct outcome_told *told, json_t *text)
{
	enum { SHOWN = 10 };
	struct cursor lines[SHOWN];
	bool failed = !outcome_is_success(told->outcome) && told->output;
	size_t n = failed ? outcome_last_lines(told->output, SHOWN, lines) : 0;
	for (size_t i = 0; i < n; i++) {
		_cleanup_text_ struct text line = {0};
		text_append(&line, lines[i].at, (size_t)(lines[i].end - lines[i].at));
		json_array_append_new(text, page_run_string(line.data ? line.data : ""));
	}
}

// Tried settings that no suggestion includes: without gain, or joined from several.
static void tried_text(const struct verdict *v, json_t *lines)
{
	for (size_t i = 0; i < v->tried.n; i++) {
		struct text line = {0};
		if (!tried_is_told(v, &v->tried.items[i])) {
			setting_append(&line, &v->tried.items[i].settings);
			text_append_string(&line, ": ");
			tried_append_result(&line, &v->tried.items[i]);
		}
		append_line(lines, "Tried: ", &line);
	}
}

static json_t *verdict_json(const struct analysis *a, const struct page_priced *priced)
{
	const struct verdict *v = a->verdict;
	if (!v->headline || !*v->headline) {
		return json_null();
	}
	json_t *json = json_object(), *text = json_array(), *evidence = json_array();
	json_t *advice = json_array();
	json_object_set_new(json, "title", page_run_string(v->headline));
	output_text(&a->overview.outcome, text);
	verdict_text(v, text);
	tried_text(v, text);
	for (size_t i = 0; i < v->n_evidence; i++) {
		json_t *fact = json_object();
		json_object_set_new(fact, "what", page_run_string(v->evidence[i].what));
		json_object_set_new(fact, "value", page_run_string(v->evidence[i].value));
		json_array_append_new(evidence, fact);
	}
	held_facts(v, evidence);
	cost_facts(a, priced, evidence);
	for (size_t i = 0; i < v->n_suggestions; i++) {
		json_array_append_new(advice, suggestion_json(&v->suggestions[i]));
	}
	if (v->n_suggestions == 0 && v->next && *v->next) {
		// In the terminal, the line begins with the word that is the heading here.
		json_t *next = json_object();
		json_object_set_new(next, "gain", json_null());
		json_object_set_new(
			next, "title", page_run_string(v->action ? v->action : v->next));
		json_object_set_new(next, "text", json_null());
		json_array_append_new(advice, next);
	}
	json_object_set_new(json, "text", text);
	json_object_set_new(json, "evidence", evidence);
	json_object_set_new(json, "advice", advice);
	return json;
}

// Epochs and events -------------------------------------------------------------------------------

static json_t *span_json(const struct epoch *epoch)
{
	json_t *json = json_object();
	json_object_set_new(json, "name", page_run_format("epoch %lld", (long long)epoch->number));
	json_object_set_new(json, "start", page_run_number((double)epoch->start_ns * 1e-9));
	json_object_set_new(
		json, "end", page_run_number(epoch->open ? NAN : (double)epoch->end_ns * 1e-9));
	return json;
}

static json_t *epochs_json(const struct epoch_list *epochs)
{
	json_t *json = json_array();
	for (size_t i = 0; i < epochs->n && i < MOST_EPOCHS; i++) {
		json_array_append_new(json, span_json(&epochs->items[i]));
	}
	return json;
}

static json_t *events_json(const struct event_list *events)
{
	json_t *json = json_array();
	for (size_t i = 0; i < events->n && json_array_size(json) < MOST_EVENTS; i++) {
		// Wall-clock anchors are for programs that align runs, not for people.
		if (strcmp(events->items[i].kind, "wall_clock") == 0) {
			continue;
		}
		json_t *event = json_object();
		json_object_set_new(event, "t", page_run_number(events->items[i].t_s));
		json_object_set_new(event, "kind", page_run_string(events->items[i].kind));
		json_object_set_new(event, "text", page_run_string(events->items[i].text));
		json_array_append_new(json, event);
	}
	return json;
}

// Processes ---------------------------------------------------------------------------------------

static json_t *ending_json(const struct process_row *p)
{
	if (p->exit_signal > 0) {
		return page_run_format("killed by signal %d", p->exit_signal);
	}
	return p->exit_status >= 0 ? page_run_format("exit status %d", p->exit_status)
	                           : json_null();
}

static json_t *process_json(const struct process_row *p)
{
	json_t *json = json_object();
	json_object_set_new(
		json, "pid", p->pid >= 0 ? json_integer((json_int_t)p->pid) : json_null());
	json_object_set_new(json, "role", json_string(role_name(p->role)));
	json_object_set_new(json, "name", page_run_string(p->label));
	json_object_set_new(json, "command", page_run_string(p->command));
	json_object_set_new(json, "cpu_seconds", page_run_number(p->cpu_seconds));
	json_object_set_new(json, "cpu", page_run_number(p->cpu_share));
	json_object_set_new(json, "memory_peak", page_run_number(p->memory_peak_bytes));
	json_object_set_new(json, "asked", page_run_number(p->asked_bytes));
	json_object_set_new(json, "storage", page_run_number(p->storage_bytes));
	json_object_set_new(json, "start", page_run_number(p->first_s));
	json_object_set_new(json, "end", page_run_number(p->ended ? p->last_s : NAN));
	json_object_set_new(json, "ending", ending_json(p));
	return json;
}

static int compare_cpu(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x < y) - (x > y);
}

// CPU time of the least busy process shown; -1: all are shown.
static double least_cpu_shown(const struct process_list *processes)
{
	if (processes->n <= MOST_PROCESSES) {
		return -1;
	}
	double least = -1;
	double *seconds = calloc(processes->n, sizeof(*seconds));
	for (size_t i = 0; seconds && i < processes->n; i++) {
		double cpu = processes->items[i].cpu_seconds;
		seconds[i] = isfinite(cpu) ? cpu : 0;
	}
	if (seconds) {
		qsort(seconds, processes->n, sizeof(*seconds), compare_cpu);
		least = seconds[MOST_PROCESSES - 1];
	}
	free(seconds);
	return least;
}

static json_t *processes_json(const struct process_list *processes)
{
	json_t *json = json_array();
	double least = least_cpu_shown(processes);
	for (size_t i = 0; i < processes->n && json_array_size(json) < MOST_PROCESSES; i++) {
		double cpu = processes->items[i].cpu_seconds;
		if ((isfinite(cpu) ? cpu : 0) >= least) {
			json_array_append_new(json, process_json(&processes->items[i]));
		}
	}
	return json;
}

// Summary -----------------------------------------------------------------------------------------

static json_t *entity_label(const struct entity *entity)
{
	const char *kind = entity_kind_name(entity->kind);
	bool named = entity->kind == ENTITY_GPU || entity->kind == ENTITY_DISK ||
	             entity->kind == ENTITY_NETWORK;
	return named ? page_run_format("%s %s", kind, entity->name) : json_string(kind);
}

static json_t *summary_row_json(const struct analysis *a, const struct summary_row *row)
{
	const struct entity *entity = entity_find(&a->tables.entities, row->entity);
	const struct metric_row *metric = metric_list_find(&a->tables.metrics, row->metric);
	if (!entity || !metric || entity->kind == ENTITY_PROCESS ||
		row->epoch != SUMMARY_WHOLE_RUN) {
		return NULL;
	}
	json_t *json = json_object();
	json_object_set_new(json, "entity", entity_label(entity));
	json_object_set_new(json, "metric", page_run_string(metric->name));
	json_object_set_new(json, "unit", page_run_string(metric->unit));
	for (int f = 0; f < N_FIGURES; f++) {
		json_object_set_new(json, figure_name(f), page_run_number(row->figures[f]));
	}
	return json;
}

static json_t *summary_json(const struct analysis *a)
{
	json_t *json = json_array();
	for (size_t i = 0; i < a->tables.summary.n && json_array_size(json) < MOST_SUMMARY_ROWS;
		i++) {
		json_t *row = summary_row_json(a, &a->tables.summary.rows[i]);
		if (row) {
			json_array_append_new(json, row);
		}
	}
	return json;
}

static void missing_append(json_t *list, const char *what, const char *reason)
{
	json_t *item = json_object();
	json_object_set_new(item, "what", page_run_string(what));
	json_object_set_new(item, "reason", page_run_string(reason));
	json_array_append_new(list, item);
}

static json_t *missing_json(const struct analysis *a)
{
	json_t *json = json_array();
	struct missing_marker parts[MISSING_MARKERS_MAX];
	size_t n = tables_missing_markers(a->tables.reader, parts);
	for (size_t i = 0; i < n; i++) {
		missing_append(json, parts[i].what, parts[i].reason);
	}
	for (size_t i = 0; i < a->tables.missing.n; i++) {
		const struct missing_group *group = &a->tables.missing.items[i];
		_cleanup_text_ struct text subject = {0};
		if (missing_list_append_subjects(
			    &subject, &a->tables.metrics, &a->tables.missing, i)) {
			missing_append(json, subject.data, group->reason);
		}
	}
	return json;
}

json_t *page_run(const struct analysis *a, const struct page_priced *priced,
	const struct panel_list *panels, const struct lane_list *lanes)
{
	const struct overview *o = &a->overview;
	size_t n = a->processes.n;
	json_t *json = json_object();
	if (!json) {
		return NULL;
	}
	json_object_set_new(json, "name", page_run_string(o->name));
	json_object_set_new(json, "command", page_run_string(o->command));
	json_object_set_new(json, "about", page_about(a));
	json_object_set_new(json, "started", page_started(a));
	json_object_set_new(json, "duration", page_run_number(o->end_s));
	json_object_set_new(json, "notice", page_notice(a));
	json_object_set_new(json, "chips", page_chips(a));
	json_object_set_new(json, "verdict", verdict_json(a, priced));
	json_object_set_new(json, "tiles", page_tiles(a));
	json_object_set_new(json, "epochs", epochs_json(&a->tables.epochs));
	page_epoch_table(json, a);
	json_object_set_new(json, "events", events_json(&a->tables.events));
	json_object_set_new(json, "panels", panels_json(a, panels, lanes));
	json_object_set_new(json, "iterations", page_iterations(a));
	json_object_set_new(json, "cpu_time", page_cpu_time(a));
	json_object_set_new(json, "own_spans", page_own_spans(&a->phases));
	json_t *processes = processes_json(&a->processes);
	size_t left_out = n - json_array_size(processes);
	json_object_set_new(json, "processes", processes);
	json_object_set_new(json, "processes_left_out", json_integer((json_int_t)left_out));
	json_object_set_new(json, "summary", summary_json(a));
	json_object_set_new(json, "notes", page_notes(a, panels));
	json_object_set_new(json, "missing", missing_json(a));
	return json;
}

// Phases ------------------------------------------------------------------------------------------
//
// Type Iterations of web/src/contract.ts, and the panels of kind "stack" and "lanes".

#define HISTOGRAM_BINS_MAX 60
#define MOST_RANKS 256
#define OWN_AT_FIRST 12
#define FINE_BUCKETS 1000 // in a window; then no exact pieces are needed
#define TAIL_FROM 3 // times the 95th percentile; longer iterations share one bar

// A phase has the same colour everywhere on the page, and in its style sheet.
static const unsigned known_hues[N_KNOWN_PHASES] = {
	[PHASE_OTHER] = 9,
	[PHASE_DATA] = 1,
	[PHASE_TRANSFER] = 3,
	[PHASE_FORWARD] = 0,
	[PHASE_BACKWARD] = 4,
	[PHASE_OPTIMIZER] = 2,
	[PHASE_COMMUNICATION] = 5,
	[PHASE_STEP] = 0,
	[PHASE_VALIDATION] = 6,
	[PHASE_CHECKPOINT] = 8,
	[PHASE_IMPORT] = 7,
};

static unsigned hue_of(size_t phase)
{
	return phase < N_KNOWN_PHASES ? known_hues[phase] : (unsigned)(phase % 9);
}

static void put(json_t *object, const char *name, double value)
{
	json_object_set_new(object, name, page_run_number(value));
}

// As text: a program with doubles would lose digits of a large number from the job.
static void put_count(json_t *object, const char *name, int64_t value)
{
	char count[32];
	json_object_set_new(object, name,
		value >= 0 ? page_run_string(text_count(count, sizeof(count), (uint64_t)value))
			   : json_null());
}

// Phases ------------------------------------------------------------------------------------------

static bool is_shown(const struct phases *p, size_t phase)
{
	return phase == PHASE_OTHER ? !p->phases_missing && p->items[phase].total_s > 0
	                            : p->items[phase].spans > 0;
}

// The order of stacking: as in an iteration, then time in no phase, then phases that are apart.
static size_t phases_in_order(const struct phases *p, size_t order[static PHASES_MAX])
{
	size_t n = 0;
	for (size_t i = 1; i < p->n; i++) {
		if (is_shown(p, i) && !p->items[i].apart) {
			order[n++] = i;
		}
	}
	if (is_shown(p, PHASE_OTHER)) {
		order[n++] = PHASE_OTHER;
	}
	for (size_t i = 1; i < p->n; i++) {
		if (is_shown(p, i) && p->items[i].apart) {
			order[n++] = i;
		}
	}
	return n;
}

static json_t *phase_json(const struct phase *phase, size_t index)
{
	json_t *json = json_object();
	json_object_set_new(json, "name", page_run_string(phase->name));
	json_object_set_new(json, "hue", json_integer(hue_of(index)));
	json_object_set_new(json, "apart", json_boolean(phase->apart));
	put(json, "share", phase->share.value);
	put(json, "low", phase->share.low);
	put(json, "high", phase->share.high);
	put(json, "mean", phase->mean_s);
	put(json, "p50", phase->p50_s);
	put(json, "p95", phase->p95_s);
	put(json, "total", phase->total_s);
	return json;
}

static json_t *phases_json(const struct phases *p)
{
	size_t order[PHASES_MAX], n = phases_in_order(p, order);
	json_t *json = json_array();
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(json, phase_json(&p->items[order[i]], order[i]));
	}
	return json;
}

static json_t *phase_epochs_json(const struct analysis *a)
{
	const struct phases *p = &a->phases;
	size_t order[PHASES_MAX], n = phases_in_order(p, order);
	json_t *json = json_array();
	for (size_t i = 0; i < p->n_epochs && i < MOST_EPOCHS; i++) {
		const struct epoch_phases *epoch = &p->epochs[i];
		json_t *row = json_object(), *seconds = json_array();
		for (size_t k = 0; k < n; k++) {
			json_array_append_new(seconds, page_run_number(epoch->phase_s[order[k]]));
		}
		json_object_set_new(row, "name",
			page_run_format("epoch %lld", (long long)a->tables.epochs.items[i].number));
		put(row, "start", (double)a->tables.epochs.items[i].start_ns / 1e9);
		put(row, "seconds", epoch->seconds);
		put(row, "iterations", (double)epoch->iterations);
		put(row, "rate", epoch->samples_per_s);
		put(row, "outside", epoch->outside_s + epoch->unrecorded_s);
		json_object_set_new(row, "phases", seconds);
		json_array_append_new(json, row);
	}
	return json;
}

// The distribution --------------------------------------------------------------------------------

static bool counts(const struct iteration *iteration)
{
	return !iteration->warm_up && !iteration->cut;
}

// Bars of equal width up to `end`, and one for longer iterations.
static json_t *histogram_json(const struct phases *p)
{
	double bars[HISTOGRAM_BINS_MAX] = {0}, beyond = 0;
	double end = p->max_s > TAIL_FROM * p->p95_s ? TAIL_FROM * p->p95_s : p->max_s;
	double wanted = sqrt((double)p->steady) + 1;
	size_t n = wanted < 8                    ? 8
	           : wanted > HISTOGRAM_BINS_MAX ? HISTOGRAM_BINS_MAX
	                                         : (size_t)wanted;
	// Starts at 0 if the shortest are near it; otherwise small differences look large.
	double start = p->min_s < end / 4 ? 0 : p->min_s;
	double width = (end - start) / (double)n;
	if (!(width > end * 1e-3)) { // all lengths are alike
		width = end * 1e-3;
	}
	for (size_t i = 0; i < p->n_iterations; i++) {
		if (!counts(&p->iterations[i])) {
			continue;
		}
		double at = ((double)p->iterations[i].length_ns / 1e9 - start) / width;
		if (at <= (double)n) {
			size_t bar = at < 0 ? 0 : at < (double)n ? (size_t)at : n - 1;
			bars[bar] += (double)p->stride;
		} else {
			beyond += (double)p->stride;
		}
	}
	json_t *json = json_object(), *list = json_array();
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(list, page_run_number(bars[i]));
	}
	put(json, "start", start);
	put(json, "width", width);
	json_object_set_new(json, "bars", list);
	put(json, "beyond", beyond);
	return json;
}

// Slow ones, workers ------------------------------------------------------------------------------

static json_t *slow_json(const struct analysis *a, const struct slow_iteration *slow)
{
	const struct iteration *iteration = &slow->iteration;
	json_t *json = json_object();
	_cleanup_text_ struct text why = {0};
	slow_iteration_append_why(&why, slow);
	put(json, "start", (double)iteration->start_ns / 1e9);
	put(json, "end", (double)iteration->end_ns / 1e9);
	put(json, "length", (double)iteration->length_ns / 1e9);
	put_count(json, "epoch",
		iteration->epoch >= 0 ? a->tables.epochs.items[iteration->epoch].number : -1);
	put_count(json, "number", iteration->number);
	json_object_set_new(json, "why", page_run_string(why.data));
	return json;
}

static json_t *slowest_json(const struct analysis *a)
{
	json_t *json = json_array();
	for (size_t i = 0; i < a->phases.n_slowest; i++) {
		json_array_append_new(json, slow_json(a, &a->phases.slowest[i]));
	}
	return json;
}

// A rank's mean iteration by phase, including phases that main never was in.
json_t *page_run_rank_phases(const struct phases *p, const struct phase_rank *rank)
{
	json_t *json = json_array();
	size_t n = p ? p->n : N_KNOWN_PHASES;
	for (size_t i = 0; i < n; i++) {
		size_t phase = i + 1 < n ? i + 1 : PHASE_OTHER; // time in no phase comes last
		bool apart = p ? p->items[phase].apart : phase_id_is_apart((enum phase_id)phase);
		if (rank->phase_s[phase] > 0 && !apart) {
			const char *name = p ? p->items[phase].name
			                     : phase_id_name((enum phase_id)phase);
			json_t *part = json_object();
			json_object_set_new(part, "name", page_run_string(name));
			json_object_set_new(part, "hue", json_integer(hue_of(phase)));
			put(part, "seconds", rank->phase_s[phase] / (double)rank->iterations);
			json_array_append_new(json, part);
		}
	}
	return json;
}

// Sorted by number, at most as many as a reader looks through.
static json_t *ranks_json(const struct phases *p)
{
	json_t *json = json_array();
	for (size_t place = 0; place < p->n_ranks && place < MOST_RANKS; place++) {
		const struct phase_rank *rank = p->ranks;
		while (rank->place != (int)place) {
			rank++;
		}
		json_t *row = json_object();
		json_object_set_new(row, "name", page_run_format("rank %d", rank->number));
		json_object_set_new(row, "leads", json_boolean(rank == p->ranks));
		json_object_set_new(row, "slowest", json_boolean(rank->slowest));
		put(row, "iterations", (double)rank->iterations);
		put(row, "p50", rank->p50_s);
		put(row, "rate", rank->samples_per_s);
		put(row, "waits", rank->waits);
		json_object_set_new(row, "phases", page_run_rank_phases(p, rank));
		json_array_append_new(json, row);
	}
	return json;
}

static json_t *own_json(const struct own_span *span, bool first)
{
	json_t *json = json_object();
	json_object_set_new(json, "name", page_run_string(span->name));
	json_object_set_new(json, "depth", json_integer((json_int_t)span->depth));
	json_object_set_new(json, "first", json_boolean(first));
	json_object_set_new(json, "inside", json_boolean(span->inside));
	json_object_set_new(json, "threads", json_integer((json_int_t)span->threads));
	put(json, "count", (double)span->count);
	put(json, "p50", span->p50_s);
	put(json, "max", span->max_s);
	put(json, "total", span->total_s);
	put(json, "share", span->share);
	return json;
}

// The spans named by the job's author.
static json_t *page_own_spans(const struct phases *p)
{
	_cleanup_free_ bool *first = calloc(p->n_own + 1, sizeof(*first));
	json_t *json = json_array();
	if (!first || phases_longest_own_spans(p, OWN_AT_FIRST, first) < 0) {
		return json;
	}
	for (size_t i = 0; i < p->n_own; i++) {
		json_array_append_new(json, own_json(&p->own[i], first[i]));
	}
	return json;
}

// Null if nothing was marked.
static json_t *page_iterations(const struct analysis *a)
{
	const struct phases *p = &a->phases;
	if (p->total == 0 && p->phases_missing) {
		return json_null();
	}
	json_t *json = json_object();
	put(json, "count", (double)p->total);
	put(json, "steady", (double)p->steady);
	put(json, "warm_up", (double)p->warm_up);
	put(json, "compiled", (double)p->compiled);
	put(json, "compiled_s", p->compiled_s);
	put(json, "mean", p->length_s.value);
	put(json, "low", p->length_s.low);
	put(json, "high", p->length_s.high);
	put(json, "p50", p->p50_s);
	put(json, "p95", p->p95_s);
	put(json, "p99", p->p99_s);
	put(json, "max", p->max_s);
	put(json, "rate", p->samples_per_s.value);
	put(json, "rate_low", p->samples_per_s.low);
	put(json, "rate_high", p->samples_per_s.high);
	json_object_set_new(json, "unit", json_string(unit_of_samples(a->tables.reader)));
	json_object_set_new(json, "missing", page_run_string(p->missing));
	json_object_set_new(json, "phases_missing", page_run_string(p->phases_missing));
	json_object_set_new(json, "incomplete", page_run_string(p->incomplete));
	json_object_set_new(json, "phases", phases_json(p));
	json_object_set_new(json, "epochs", phase_epochs_json(a));
	json_object_set_new(json, "ranks", p->n_ranks > 1 ? ranks_json(p) : json_array());
	json_object_set_new(json, "histogram", p->steady > 0 ? histogram_json(p) : json_null());
	json_object_set_new(json, "slowest", slowest_json(a));
	return json;
}

// Panels ------------------------------------------------------------------------------------------

json_t *page_run_panel(const char *kind, const char *title, const char *unit, const char *help)
{
	json_t *json = json_object();
	json_object_set_new(json, "kind", json_string(kind));
	json_object_set_new(json, "title", json_string(title));
	json_object_set_new(json, "unit", json_string(unit));
	json_object_set_new(json, "help", json_string(help));
	json_object_set_new(json, "floor", json_null());
	json_object_set_new(json, "ceiling", strcmp(unit, "1") == 0 ? json_real(1) : json_null());
	json_object_set_new(json, "limits", json_array());
	return json;
}

static size_t place_of(size_t index, const size_t *places, size_t n)
{
	size_t place = 0;
	while (place < n && places[place] != index) {
		place++;
	}
	return place;
}

static json_t *phase_detail_json(const struct detail_window *window,
	const struct lane_detail *detail, const size_t *places, size_t n_places)
{
	json_t *json = json_object(), *pieces = json_array();
	for (size_t k = 0; k < detail->n; k++) {
		const struct lane_piece *piece = &detail->pieces[k];
		size_t place = place_of(piece->place, places, n_places);
		const int64_t numbers[] = {(int64_t)place, piece->from_ns / 1000 - window->from_us,
			piece->to_ns / 1000 - window->from_us};
		for (size_t i = 0; i < ARRAY_LENGTH(numbers) && place < n_places; i++) {
			json_array_append_new(pieces, json_integer(numbers[i]));
		}
	}
	put(json, "from", (double)window->from_us / 1e6);
	put(json, "to", (double)window->to_us / 1e6);
	json_object_set_new(json, "pieces", pieces);
	return json;
}

// The exact pieces of each window in which they are finer than the buckets: index into the panel's
// series, start, end, ..., in microseconds from the start of the window.
static json_t *exact_json(const struct lane_list *lanes, const struct lane_detail *details,
	double bucket_s, const size_t *places, size_t n_places)
{
	json_t *json = json_array();
	for (size_t i = 0; i < lanes->n_windows; i++) {
		const struct detail_window *window = &lanes->windows[i];
		double length_s = (double)(window->to_us - window->from_us) / 1e6;
		if (details[i].n > 0 && details[i].n <= LANE_PIECES_MAX &&
			bucket_s > length_s / FINE_BUCKETS) {
			json_array_append_new(
				json, phase_detail_json(window, &details[i], places, n_places));
		}
	}
	return json;
}

static json_t *lengths_panel(const struct analysis *a, const struct lane_list *lanes)
{
	json_t *json = page_run_panel("lines", "Iterations", "s",
		"Duration of each iteration, at its end. Dots mark the slowest; click one to see "
		"it.");
	json_t *series = json_array(), *marks = json_array();
	json_t *lengths = page_run_series("one iteration", "from marks of the job", 0,
		&lanes->lengths.buckets, &lanes->lengths.packed);
	json_object_set_new(lengths, "details",
		page_details(lanes->lengths_details, lanes->windows, lanes->n_windows));
	json_array_append_new(series, lengths);
	for (size_t i = 0; i < a->phases.n_slowest; i++) {
		const struct iteration *iteration = &a->phases.slowest[i].iteration;
		json_t *mark = json_object();
		put(mark, "t", (double)iteration->end_ns / 1e9);
		put(mark, "start", (double)iteration->start_ns / 1e9);
		put(mark, "value", (double)iteration->length_ns / 1e9);
		json_array_append_new(marks, mark);
	}
	json_object_set_new(json, "series", series);
	json_object_set_new(json, "marks", marks);
	return json;
}

static json_t *phases_panel(const struct phases *p, const struct lane_list *lanes)
{
	size_t order[PHASES_MAX], n = phases_in_order(p, order), places[PHASES_MAX], n_places = 0;
	double bucket_s = 0;
	json_t *json = page_run_panel("stack", "Training thread", "1",
		"Phases of the training thread. Empty: outside iterations and phases.");
	json_t *series = json_array();
	for (size_t i = 0; i < n; i++) {
		const struct lane_series *lane = &lanes->phases[order[i]];
		if (lane->buckets.n > 0) {
			places[n_places++] = order[i];
			bucket_s = buckets_width_s(&lane->buckets);
			json_array_append_new(series,
				page_run_series(p->items[order[i]].name, "from marks of the job",
					hue_of(order[i]), &lane->buckets, &lane->packed));
		}
	}
	json_object_set_new(json, "series", series);
	json_object_set_new(
		json, "exact", exact_json(lanes, lanes->phase_details, bucket_s, places, n_places));
	return json;
}

// Sorted by number, if they have numbers.
static void rows_in_order(const struct lane_row *rows, size_t n, size_t order[static LANE_ROWS_MAX])
{
	for (size_t i = 0; i < n; i++) {
		size_t place = i;
		while (place > 0 && rows[order[place - 1]].number > rows[i].number) {
			order[place] = order[place - 1];
			place--;
		}
		order[place] = i;
	}
}

static json_t *row_json(const struct lane_row *row, unsigned hue)
{
	_cleanup_text_ struct text label = {0};
	text_append_string(&label, row->label ? row->label : "");
	if (row->in_turn > 1) {
		text_format(&label, ", %zu in turn", row->in_turn);
	}
	return page_run_series(label.data, "from marks of the job", hue, &row->series.buckets,
		&row->series.packed);
}

// Adds a row for each thread that did the same kind of work at the same time.
static void add_rows(json_t *panel, const struct lane_list *lanes, const struct lane_row *rows,
	size_t n, const struct lane_detail *details, unsigned hue)
{
	json_t *series = json_array();
	size_t places[LANE_ROWS_MAX];
	rows_in_order(rows, n, places);
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(series, row_json(&rows[places[i]], hue));
	}
	json_object_set_new(panel, "series", series);
	json_object_set_new(panel, "exact",
		exact_json(lanes, details, buckets_width_s(&rows[0].series.buckets), places, n));
}

static json_t *workers_panel(const struct lane_list *lanes)
{
	json_t *json = page_run_panel("lanes", "Loader workers", "1",
		"Share of time in which each worker prepares a batch (darker is more).");
	json_object_set_new(json, "verb", json_string("prepare"));
	add_rows(json, lanes, lanes->workers, lanes->n_workers, lanes->worker_details,
		known_hues[PHASE_DATA]);
	return json;
}

static json_t *ranks_panel(const struct phases *p, const struct lane_list *lanes)
{
	json_t *json = page_run_panel("lanes", "Ranks", "1",
		p->waits_inferred
			? "Share of time in which each rank is in an iteration (darker is more). "
			  "Its waits for other ranks are in its backward passes, unmarked."
			: "Share of time in which each rank works and does not wait for the others "
			  "(darker is more).");
	json_object_set_new(json, "verb", json_string("work"));
	add_rows(json, lanes, lanes->ranks, lanes->n_ranks, lanes->rank_details,
		known_hues[PHASE_FORWARD]);
	return json;
}

// Inserts the panels of iterations, of the main thread, of ranks and of loader workers before the
// others.
static void page_add_lanes(json_t *panels, const struct analysis *a, const struct lane_list *lanes)
{
	size_t at = 0;
	if (lanes->lengths.buckets.n > 0) {
		json_array_insert_new(panels, at++, lengths_panel(a, lanes));
	}
	if (!a->phases.phases_missing) {
		json_array_insert_new(panels, at++, phases_panel(&a->phases, lanes));
	}
	if (lanes->n_ranks > 0) {
		json_array_insert_new(panels, at++, ranks_panel(&a->phases, lanes));
	}
	if (lanes->n_workers > 0) {
		json_array_insert_new(panels, at++, workers_panel(lanes));
	}
}
