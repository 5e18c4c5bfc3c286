// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run as JSON. What is not known is null, never 0.

#include "render/page_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/names.h"
#include "analyze/sentence.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "render/page_about.h"
#include "render/page_code.h"
#include "render/page_facts.h"
#include "render/page_phases.h"
#include "render/panels.h"

// More than a person looks through; the page says how many were left out.
#define MOST_PROCESSES 300
#define MOST_EVENTS 500
#define MOST_SUMMARY_ROWS 2000

// Panels ----------------------------------------------------------------------------------------

json_t *page_series(const char *label, const char *help, unsigned hue,
	const struct buckets *buckets, const struct packed *packed)
{
	struct bucket_figures figures = buckets_figures(buckets);
	json_t *json = json_object();
	json_object_set_new(json, "label", page_string(label));
	json_object_set_new(json, "help", page_string(help));
	json_object_set_new(json, "hue", json_integer(hue));
	json_object_set_new(json, "width", page_number(buckets_width_s(buckets)));
	json_object_set_new(json, "points", json_integer((json_int_t)buckets->n));
	json_object_set_new(json, "samples", json_integer((json_int_t)buckets->samples));
	json_object_set_new(json, "unit", page_number(packed->unit));
	json_object_set_new(json, "minimum", page_number(figures.minimum));
	json_object_set_new(json, "mean", page_number(figures.mean));
	json_object_set_new(json, "maximum", page_number(figures.maximum));
	const struct text *data = &packed->base64;
	json_object_set_new(json, "data", json_stringn(data->data ? data->data : "", data->length));
	return json;
}

static json_t *detail_json(const struct detail_series *detail, const struct detail_window *window)
{
	json_t *json = json_object();
	const struct text *data = &detail->packed.base64;
	json_object_set_new(json, "from", page_number((double)window->from_us / 1e6));
	json_object_set_new(json, "to", page_number((double)window->to_us / 1e6));
	json_object_set_new(json, "width", page_number(buckets_width_s(&detail->buckets)));
	json_object_set_new(json, "points", json_integer((json_int_t)detail->buckets.n));
	json_object_set_new(json, "unit", page_number(detail->packed.unit));
	json_object_set_new(json, "data", json_stringn(data->data, data->length));
	return json;
}

json_t *page_details(
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
	json_t *json = page_series(
		line->label, line->help, line->hue, &line->buckets, &line->packed);
	json_object_set_new(
		json, "details", page_details(line->details, panels->windows, panels->n_windows));
	return json;
}

static json_t *limit_json(const char *label, double value)
{
	json_t *json = json_object();
	json_object_set_new(json, "label", json_string(label));
	json_object_set_new(json, "value", page_number(value));
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
	json_object_set_new(json, "title", page_string(panel->title));
	json_object_set_new(json, "unit", json_string(spec->unit));
	json_object_set_new(json, "help", json_string(spec->help));
	json_object_set_new(json, "floor", page_number(spec->floor > 0 ? spec->floor : NAN));
	json_object_set_new(json, "ceiling", page_number(spec->ceiling > 0 ? spec->ceiling : NAN));
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

// Verdict ---------------------------------------------------------------------------------------

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
		gain >= 1.05 ? page_format("%s%.1fx", bound ? "at most " : "", gain) : json_null());
	json_object_set_new(json, "title", page_string(suggestion->action));
	json_object_set_new(
		json, "text", page_string(tried && text.data ? text.data : suggestion->basis));
	return json;
}

static void append_line(json_t *lines, const char *before, struct text *line)
{
	if (line->length > 0 && line->data) {
		json_array_append_new(lines, page_format("%s%s", before, line->data));
	}
	text_done(line);
}

// Below the headline: where an iteration's time goes, what else takes some, how sure that is.
static void verdict_text(const struct verdict *v, json_t *lines)
{
	struct text parts = {0};
	if (*v->shares) {
		json_array_append_new(lines, page_string(v->shares));
	}
	sentence_append_parts(&parts, v);
	append_line(lines, "In part: ", &parts);
	if (v->confidence != CONFIDENCE_NONE) {
		bool surer = *v->surer && v->confidence != CONFIDENCE_HIGH && v->n_causes > 0;
		json_array_append_new(
			lines, page_format("Confidence: %s%s%s.", confidence_name(v->confidence),
				       surer ? "; surer with " : "", surer ? v->surer : ""));
	}
}

// What memory holds, as evidence.
static void held_facts(const struct verdict *v, json_t *evidence)
{
	static const char *const titles[] = {"memory holds", "GPU memory holds"};
	for (unsigned i = 0; i < 2; i++) {
		struct text value = {0};
		held_append(&value, &v->held, i == 1);
		if (value.length > 0 && value.data) {
			json_t *fact = json_object();
			json_object_set_new(fact, "what", page_string(titles[i]));
			json_object_set_new(fact, "value", page_string(value.data));
			json_array_append_new(evidence, fact);
		}
		text_done(&value);
	}
}

// The last that a job printed which failed.
static void output_text(const struct outcome_told *told, json_t *text)
{
	enum { SHOWN = 10 };
	struct cursor lines[SHOWN];
	bool failed = !outcome_is_success(told->outcome) && told->output;
	size_t n = failed ? outcome_last_lines(told->output, SHOWN, lines) : 0;
	for (size_t i = 0; i < n; i++) {
		_cleanup_text_ struct text line = {0};
		text_append(&line, lines[i].at, (size_t)(lines[i].end - lines[i].at));
		json_array_append_new(text, page_string(line.data ? line.data : ""));
	}
}

// What was tried and is advised no more, or was more than one advice.
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

static json_t *verdict_json(const struct analysis *a)
{
	const struct verdict *v = &a->verdict;
	if (!v->headline || !*v->headline) {
		return json_null();
	}
	json_t *json = json_object(), *text = json_array(), *evidence = json_array();
	json_t *advice = json_array();
	json_object_set_new(json, "title", page_string(v->headline));
	output_text(&a->overview.outcome, text);
	verdict_text(v, text);
	tried_text(v, text);
	for (size_t i = 0; i < v->n_evidence; i++) {
		json_t *fact = json_object();
		json_object_set_new(fact, "what", page_string(v->evidence[i].what));
		json_object_set_new(fact, "value", page_string(v->evidence[i].value));
		json_array_append_new(evidence, fact);
	}
	held_facts(v, evidence);
	for (size_t i = 0; i < v->n_suggestions; i++) {
		json_array_append_new(advice, suggestion_json(&v->suggestions[i]));
	}
	if (v->n_suggestions == 0 && v->next && *v->next) {
		// In the terminal the line begins with what here is the heading.
		json_t *next = json_object();
		json_object_set_new(next, "gain", json_null());
		json_object_set_new(next, "title", page_string(v->action ? v->action : v->next));
		json_object_set_new(next, "text", json_null());
		json_array_append_new(advice, next);
	}
	json_object_set_new(json, "text", text);
	json_object_set_new(json, "evidence", evidence);
	json_object_set_new(json, "advice", advice);
	return json;
}

// Epochs and events -----------------------------------------------------------------------------

static json_t *span_json(const struct epoch *epoch)
{
	json_t *json = json_object();
	json_object_set_new(json, "name", page_format("epoch %lld", (long long)epoch->number));
	json_object_set_new(json, "start", page_number((double)epoch->start_ns * 1e-9));
	json_object_set_new(
		json, "end", page_number(epoch->open ? NAN : (double)epoch->end_ns * 1e-9));
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
		// Anchors of the wall clock are for aligning runs, not for people.
		if (strcmp(events->items[i].kind, "wall_clock") == 0) {
			continue;
		}
		json_t *event = json_object();
		json_object_set_new(event, "t", page_number(events->items[i].t_s));
		json_object_set_new(event, "kind", page_string(events->items[i].kind));
		json_object_set_new(event, "text", page_string(events->items[i].text));
		json_array_append_new(json, event);
	}
	return json;
}

// Processes -------------------------------------------------------------------------------------

static json_t *ending_json(const struct process_row *p)
{
	if (p->exit_signal > 0) {
		return page_format("killed by signal %d", p->exit_signal);
	}
	return p->exit_status >= 0 ? page_format("exit status %d", p->exit_status) : json_null();
}

static json_t *process_json(const struct process_row *p)
{
	json_t *json = json_object();
	json_object_set_new(
		json, "pid", p->pid >= 0 ? json_integer((json_int_t)p->pid) : json_null());
	json_object_set_new(json, "role", json_string(role_name(p->role)));
	json_object_set_new(json, "name", page_string(p->label));
	json_object_set_new(json, "command", page_string(p->command));
	json_object_set_new(json, "cpu_seconds", page_number(p->cpu_seconds));
	json_object_set_new(json, "cpu", page_number(p->cpu_share));
	json_object_set_new(json, "memory_peak", page_number(p->memory_peak_bytes));
	json_object_set_new(json, "asked", page_number(p->asked_bytes));
	json_object_set_new(json, "storage", page_number(p->storage_bytes));
	json_object_set_new(json, "start", page_number(p->first_s));
	json_object_set_new(json, "end", page_number(p->ended ? p->last_s : NAN));
	json_object_set_new(json, "ending", ending_json(p));
	return json;
}

static int compare_cpu(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x < y) - (x > y);
}

// CPU time of the least busy process that is shown; -1 where all are.
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

// Summary ---------------------------------------------------------------------------------------

static json_t *entity_label(const struct entity *entity)
{
	const char *kind = entity_kind_name(entity->kind);
	bool named = entity->kind == ENTITY_GPU || entity->kind == ENTITY_DISK ||
	             entity->kind == ENTITY_NETWORK;
	return named ? page_format("%s %s", kind, entity->name) : json_string(kind);
}

static json_t *summary_row_json(const struct analysis *a, const struct summary_row *row)
{
	const struct entity *entity = entity_find(&a->entities, row->entity);
	const struct metric_row *metric = metric_by_id(&a->metrics, row->metric);
	if (!entity || !metric || entity->kind == ENTITY_PROCESS ||
		row->epoch != SUMMARY_WHOLE_RUN) {
		return NULL;
	}
	json_t *json = json_object();
	json_object_set_new(json, "entity", entity_label(entity));
	json_object_set_new(json, "metric", page_string(metric->name));
	json_object_set_new(json, "unit", page_string(metric->unit));
	for (int f = 0; f < N_FIGURES; f++) {
		json_object_set_new(json, figure_name(f), page_number(row->figures[f]));
	}
	return json;
}

static json_t *summary_json(const struct analysis *a)
{
	json_t *json = json_array();
	for (size_t i = 0; i < a->summary.n && json_array_size(json) < MOST_SUMMARY_ROWS; i++) {
		json_t *row = summary_row_json(a, &a->summary.rows[i]);
		if (row) {
			json_array_append_new(json, row);
		}
	}
	return json;
}

static void missing_append(json_t *list, const char *what, const char *reason)
{
	json_t *item = json_object();
	json_object_set_new(item, "what", page_string(what));
	json_object_set_new(item, "reason", page_string(reason));
	json_array_append_new(list, item);
}

static json_t *missing_json(const struct analysis *a)
{
	json_t *json = json_array();
	struct part_missing parts[PARTS_MAX];
	size_t n = parts_missing(a->reader, parts);
	for (size_t i = 0; i < n; i++) {
		missing_append(json, parts[i].what, parts[i].reason);
	}
	for (size_t i = 0; i < a->missing.n; i++) {
		const struct missing_group *group = &a->missing.items[i];
		_cleanup_text_ struct text subject = {0};
		missing_append_subject(&subject, &a->metrics, group);
		missing_append(json, subject.data, group->reason);
	}
	return json;
}

json_t *page_run(
	const struct analysis *a, const struct panel_list *panels, const struct lane_list *lanes)
{
	const struct overview *o = &a->overview;
	size_t n = a->processes.n;
	json_t *json = json_object();
	if (!json) {
		return NULL;
	}
	json_object_set_new(json, "name", page_string(o->name));
	json_object_set_new(json, "command", page_string(o->command));
	json_object_set_new(json, "about", page_about(a));
	json_object_set_new(json, "started", page_started(a));
	json_object_set_new(json, "duration", page_number(o->end_s));
	json_object_set_new(json, "notice", page_notice(a));
	json_object_set_new(json, "chips", page_chips(a));
	json_object_set_new(json, "verdict", verdict_json(a));
	json_object_set_new(json, "tiles", page_tiles(a));
	json_object_set_new(json, "epochs", epochs_json(&a->epochs));
	page_epoch_table(json, a);
	json_object_set_new(json, "events", events_json(&a->events));
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
