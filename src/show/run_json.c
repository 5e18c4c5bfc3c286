// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run as a JSON document: the same tables as in the terminal, with every row.

#include "show/run_json.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "run/allocation.h"
#include "run/analysis.h"
#include "run/code_time.h"
#include "run/energy.h"
#include "run/growth.h"
#include "run/plausible.h"
#include "runfile/reader.h"
#include "show/json.h"
#include "show/run_tables.h"
#include "show/table.h"
#include "study/digest.h"
#include "verdict/causes.h"
#include "verdict/evidence.h"
#include "verdict/tried.h"
#include "verdict/verdict.h"

static json_t *known_integer(int value, int unknown)
{
	return value == unknown ? json_null() : json_integer(value);
}

static void put(json_t *object, const char *name, double value)
{
	json_object_set_new(object, name, json_from_number(value));
}

// Without bounds if they are not known, or do not contain the value because of a cap.
static json_t *estimate_json(const struct estimate *e)
{
	json_t *json = json_object();
	bool bounded = e->low <= e->value && e->value <= e->high;
	put(json, "value", e->value);
	put(json, "low", bounded ? e->low : NAN);
	put(json, "high", bounded ? e->high : NAN);
	return json;
}

// The limits of the job, from the keys of the run; null for limits that were not set.
static json_t *limits_json(struct reader *r)
{
	static const struct {
		const char *name;
		const char *key;
	} limits[] = {{"cpus", "limit_cpus"}, {"memory", "limit_memory"},
		{"disk_read", "limit_disk_read"}, {"gpus", "limit_gpus"}};
	json_t *json = json_object();
	for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
		json_object_set_new(
			json, limits[i].name, json_from_text(reader_run(r, limits[i].key)));
	}
	return json;
}

json_t *run_json_labels(const struct run_label *labels, size_t n)
{
	json_t *json = json_object();
	for (size_t i = 0; i < n; i++) {
		struct text name = {0};
		text_append_utf8(&name, labels[i].name, strlen(labels[i].name));
		json_object_set_new(
			json, name.data ? name.data : "", json_from_text(labels[i].value));
		text_done(&name);
	}
	return json;
}

static json_t *facts_json(const struct analysis *a)
{
	const struct overview *o = &a->overview;
	json_t *run = json_object();
	json_object_set_new(run, "path", json_from_text(reader_path(a->tables.reader)));
	json_object_set_new(run, "name", json_from_text(o->name));
	json_object_set_new(run, "command", json_from_text(o->command));
	json_object_set_new(
		run, "hostname", json_from_text(reader_run(a->tables.reader, "hostname")));
	json_object_set_new(run, "state", json_string(overview_state(o)));
	put(run, "start_utc_s", (double)reader_run_i64(a->tables.reader, "start_utc_ns", 0) / 1e9);
	put(run, "duration_s", o->duration_s);
	put(run, "recorded_s", o->recorded_s);
	_cleanup_text_ struct text partial = {0};
	if (o->partial) {
		overview_append_recorded(&partial, o);
	}
	json_object_set_new(run, "partial", json_from_text(partial.data));
	put(run, "stopped_s", a->stops.total_s);
	put(run, "job_stopped_s", o->stopped_s);
	put(run, "suspended_s", (double)reader_run_i64(a->tables.reader, "suspended_ns", 0) / 1e9);
	json_object_set_new(run, "exit_status", known_integer(o->exit_status, -1));
	json_object_set_new(run, "exit_signal", known_integer(o->exit_signal, 0));
	json_object_set_new(run, "outcome", json_string(outcome_word(o->outcome.outcome)));
	json_object_set_new(
		run, "outcome_text", json_from_text(*o->outcome.text ? o->outcome.text : NULL));
	json_object_set_new(run, "output", json_from_text(o->outcome.output));
	json_object_set_new(run, "labels", run_json_labels(o->labels, o->n_labels));
	json_object_set_new(run, "limits", limits_json(a->tables.reader));
	put(run, "damaged_blocks", (double)reader_damage(a->tables.reader));
	return run;
}

static json_t *job_json(const struct overview *o)
{
	json_t *job = json_object();
	put(job, "cpu_seconds", o->cpu_seconds);
	json_object_set_new(job, "cpu_inexact", json_boolean(o->cpu_inexact));
	put(job, "cpus_used", o->cpus_used);
	put(job, "cpus_used_p95", o->cpus_used_p95);
	put(job, "cpus", o->cpus);
	put(job, "throttled_ratio", o->throttled);
	put(job, "memory_peak_bytes", o->memory.peak_bytes);
	put(job, "memory_peak_at_most_bytes", o->memory.at_most_bytes);
	json_object_set_new(job, "memory_peak_source", json_from_text(o->memory.source));
	put(job, "memory_mean_bytes", o->memory.mean_bytes);
	json_object_set_new(job, "memory_kind", json_from_text(o->memory.kind));
	put(job, "memory_limit_bytes", o->memory_limit_bytes);
	put(job, "io_requested_bytes", o->asked_bytes);
	put(job, "storage_read_bytes", o->storage_read_bytes);
	put(job, "storage_write_bytes", o->storage_write_bytes);
	put(job, "page_cache_ratio", overview_cache_share(o));
	put(job, "host_cpus", o->host_cpus);
	put(job, "host_cpus_used", o->host_cpus_used);
	return job;
}

// Growth of memory over iterations; also set if it is not a leak.
static json_t *growth_json(const struct growth *growth, bool of_gpu)
{
	json_t *json = json_object();
	json_object_set_new(json, "leak", json_boolean(growth->leak));
	json_object_set_new(
		json, "bytes_per_iteration", estimate_json(&growth->bytes_per_iteration));
	put(json, "bytes_per_s", growth->bytes_per_s);
	put(json, "gained_bytes", growth->gained_bytes);
	put(json, "full_in_s", growth->full_in_s);
	if (of_gpu) {
		json_object_set_new(
			json, "gpu", growth->gpu >= 0 ? json_integer(growth->gpu) : json_null());
	}
	return json;
}

static json_t *pressure_json(const struct pressure_figures *pressure)
{
	static const char *const names[N_PRESSURES] = {"cpu", "memory", "io"};
	json_t *json = json_object();
	json_object_set_new(json, "of", json_string(pressure->of_job ? "job" : "host"));
	for (unsigned i = 0; i < N_PRESSURES; i++) {
		json_t *resource = json_object();
		put(resource, "some_ratio", pressure->some[i]);
		put(resource, "full_ratio", pressure->full[i]);
		json_object_set_new(json, names[i], resource);
	}
	return json;
}

static json_t *recording_json(const struct recording_figures *recording)
{
	json_t *json = json_object();
	put(json, "cpu_ratio", recording->cpu_share);
	put(json, "memory_peak_bytes", recording->memory_peak_bytes);
	put(json, "ticks", recording->ticks);
	put(json, "ticks_late", recording->ticks_late);
	put(json, "ticks_missed", recording->ticks_missed);
	put(json, "file_bytes", recording->file_bytes >= 0 ? (double)recording->file_bytes : NAN);
	return json;
}

// Takes the table.
static json_t *rows_json(int result, struct table *t)
{
	json_t *rows = result < 0 ? NULL : table_to_json(t);
	table_free(t);
	return rows;
}

static json_t *causes_json(const struct verdict *v)
{
	json_t *causes = json_array();
	for (size_t i = 0; i < v->n_causes; i++) {
		json_t *cause = json_object();
		json_object_set_new(
			cause, "cause", json_string(bottleneck_name(v->causes[i].bottleneck)));
		json_object_set_new(cause, "share", estimate_json(&v->causes[i].share));
		json_array_append_new(causes, cause);
	}
	return causes;
}

static json_t *settings_json(const struct setting_list *settings)
{
	_cleanup_text_ struct text words = {0};
	setting_append(&words, settings);
	return json_from_text(words.data);
}

static json_t *choices_json(const struct setting_list *settings)
{
	json_t *list = json_array();
	struct setting_list choice;
	for (unsigned i = 0; i <= UINT8_MAX; i++) {
		if (setting_choose(settings, i, &choice)) {
			json_array_append_new(list, settings_json(&choice));
		}
	}
	return list;
}

static json_t *suggestions_json(const struct verdict *v)
{
	json_t *suggestions = json_array();
	for (size_t i = 0; i < v->n_suggestions; i++) {
		const struct suggestion *suggestion = &v->suggestions[i];
		json_t *json = json_object();
		json_object_set_new(json, "gain", json_string(gain_kind_name(suggestion->kind)));
		json_object_set_new(json, "times_faster", estimate_json(&suggestion->gain));
		json_object_set_new(json, "action", json_from_text(suggestion->action));
		json_object_set_new(json, "basis", json_from_text(suggestion->basis));
		json_object_set_new(json, "settings", choices_json(&suggestion->settings));
		json_object_set_new(json, "tried",
			suggestion->tried ? estimate_json(&suggestion->tried->gain) : json_null());
		json_array_append_new(suggestions, json);
	}
	return suggestions;
}

static json_t *tried_json(const struct verdict *v)
{
	json_t *list = json_array();
	for (size_t i = 0; i < v->tried.n; i++) {
		const struct tried *tried = &v->tried.items[i];
		json_t *json = json_object();
		json_object_set_new(json, "settings", settings_json(&tried->settings));
		json_object_set_new(json, "gain", estimate_json(&tried->gain));
		json_object_set_new(json, "estimated", estimate_json(&tried->promised));
		json_object_set_new(json, "probes", json_integer(tried->probes));
		json_object_set_new(json, "refuted", json_boolean(tried_in_vain(tried)));
		json_object_set_new(json, "missing", json_from_text(tried->missing));
		json_array_append_new(list, json);
	}
	return list;
}

static json_t *held_json(const struct memory_breakdown *memory)
{
	json_t *rows = json_array();
	for (unsigned i = 0; i < N_HOLDINGS; i++) {
		json_t *row = json_object();
		json_object_set_new(row, "what", json_string(holding_name(i)));
		json_object_set_new(row, "of", json_string(holding_is_of_gpu(i) ? "gpu" : "host"));
		json_object_set_new(row, "metric", json_string(holding_metric(i)));
		put(row, "bytes", memory->bytes[i]);
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *verdict_json(const struct analysis *a)
{
	struct table *t = NULL;
	json_t *verdict = json_object();
	json_object_set_new(
		verdict, "bottleneck", json_string(bottleneck_name(a->verdict->bottleneck)));
	json_object_set_new(
		verdict, "confidence", json_string(confidence_name(a->verdict->confidence)));
	json_object_set_new(verdict, "headline", json_from_text(a->verdict->headline));
	json_object_set_new(verdict, "next", json_from_text(a->verdict->next));
	json_object_set_new(verdict, "marking", json_from_text(a->verdict->marking));
	json_object_set_new(verdict, "needed", json_from_text(a->verdict->needed));
	json_object_set_new(verdict, "causes", causes_json(a->verdict));
	json_object_set_new(verdict, "suggestions", suggestions_json(a->verdict));
	json_object_set_new(verdict, "tried", tried_json(a->verdict));
	json_object_set_new(verdict, "memory_contents", held_json(&a->verdict->memory));
	int r = run_table_evidence(a, NULL, &t);
	json_object_set_new(verdict, "evidence", rows_json(r, t));
	return verdict;
}

struct section {
	const char *name;
	int (*build)(const struct analysis *a, struct table **ret);
};

static int all_events(const struct analysis *a, struct table **ret)
{
	return run_table_events(a, SIZE_MAX, true, ret);
}

static json_t *implausible_json(const struct implausible_list *list)
{
	json_t *json = json_array();
	for (size_t i = 0; list && i < list->n; i++) {
		json_array_append_new(json, json_from_text(list->items[i]));
	}
	return json;
}

static json_t *epochs_json(const struct analysis *a)
{
	struct epoch_table epochs = {0};
	json_t *rows = epoch_table_build(a, &epochs) < 0 ? NULL : table_to_json(epochs.table);
	epoch_table_done(&epochs);
	return rows;
}

static json_t *bar_json(const struct code_bar *named)
{
	const struct code_group_samples *bar = named->group;
	json_t *json = json_object(), *classes = json_array(), *functions = json_array();
	json_object_set_new(json, "of", json_string(named->name));
	json_object_set_new(json, "samples", json_integer((json_int_t)bar->samples));
	json_object_set_new(json, "share_ratio", json_from_number(named->share));
	for (size_t i = 0; i < N_CODE_CLASSES; i++) {
		if (bar->by_class[i] > 0) {
			json_t *class = json_object();
			json_object_set_new(
				class, "class", json_string(code_class_name((enum code_class)i)));
			json_object_set_new(
				class, "samples", json_integer((json_int_t)bar->by_class[i]));
			json_array_append_new(classes, class);
		}
	}
	for (size_t i = 0; i < bar->n_tops; i++) {
		json_t *top = json_object();
		json_object_set_new(top, "function", json_from_text(bar->tops[i].name));
		json_object_set_new(top, "class", json_string(code_class_name(bar->tops[i].class)));
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

// CPU time by class of code, over the whole run.
static json_t *code_time_json(const struct analysis *a)
{
	struct code_time time;
	if (code_time_load(a, &time) < 0) {
		return NULL;
	}
	struct code_bar roles[CODE_BARS_MAX], phases[CODE_BARS_MAX];
	size_t n_roles = code_time_role_bars(&time, roles);
	size_t n_phases = code_time_phase_bars(&time, phases);
	json_t *json = json_object();
	json_object_set_new(json, "roles", bars_json(roles, n_roles));
	json_object_set_new(json, "phases", bars_json(phases, n_phases));
	json_object_set_new(json, "missing", json_from_text(time.missing));
	json_object_set_new(json, "phases_missing", json_from_text(time.phases_missing));
	code_time_done(&time);
	return json;
}

// What the job was allocated against what it used: CPUs, bytes, GPUs; products in seconds.
static json_t *allocation_json(const struct analysis *a)
{
	static const char *const names[N_ALLOCATED] = {[ALLOCATED_CPUS] = "cpus",
		[ALLOCATED_MEMORY] = "memory_bytes",
		[ALLOCATED_GPUS] = "gpus"};
	struct allocation allocation;
	json_t *json = json_object();
	allocation_find(a, &allocation);
	put(json, "ranks", allocation.ranks);
	for (size_t i = 0; i < N_ALLOCATED; i++) {
		const struct allocated *of = &allocation.of[i];
		json_t *part = json_object();
		const char *why;
		double idle = allocated_idle(&allocation, i, &why);
		bool known = isfinite(of->amount);
		put(part, "allocated", of->amount);
		put(part, "machine", of->machine);
		json_object_set_new(part, "by", json_from_text(known ? of->by : NULL));
		put(part, "held_s", allocated_held(&allocation, i));
		put(part, "used_s", of->used);
		put(part, "idle_s", idle);
		json_object_set_new(part, "missing", json_from_text(why));
		json_object_set_new(json, names[i], part);
	}
	return json;
}

// Joules, by each source.
static json_t *energy_json(const struct analysis *a)
{
	struct energy energy;
	json_t *json = json_object();
	energy_find(a, &energy);
	put(json, "host_j", energy.host);
	put(json, "platform_j", energy.platform);
	put(json, "gpus_j", energy.gpus);
	put(json, "gpus_sampled_j", energy.gpus_sampled);
	return json;
}

// The measures of a price list, and why some are missing; null without a list.
static json_t *cost_json(const struct digest *priced)
{
	if (!priced) {
		return json_null();
	}
	json_t *json = json_object(), *missing = json_object();
	json_object_set_new(json, "currency", json_from_text(priced->currency));
	for (size_t i = 0; i < N_MEASURES; i++) {
		if (measure_is_priced((enum measure_id)i)) {
			put(json, measures[i].name, priced->measures[i]);
			if (priced->reasons[i]) {
				json_object_set_new(missing, measures[i].name,
					json_from_text(priced->reasons[i]));
			}
		}
	}
	json_object_set_new(json, "missing", missing);
	return json;
}

int run_json_write(const struct analysis *a, const struct digest *priced, FILE *stream)
{
	static const struct section sections[] = {
		{"processes", run_table_processes},
		{"waits", run_table_waits},
		{"threads", run_table_threads},
		{"code", run_table_code},
		{"lines", run_table_lines},
		{"gpus", run_table_gpus},
		{"devices", run_table_devices},
		{"events", all_events},
		{"missing", run_table_missing},
	};
	json_t *json = json_object();
	int failed = json_object_set_new(json, "run", facts_json(a));
	failed |= json_object_set_new(json, "verdict", verdict_json(a));
	json_t *job = job_json(&a->overview);
	failed |= json_object_set_new(job, "memory_growth", growth_json(&a->growth, false));
	failed |= json_object_set_new(job, "gpu_memory_growth", growth_json(&a->gpu_growth, true));
	failed |= json_object_set_new(json, "job", job);
	failed |= json_object_set_new(json, "allocation", allocation_json(a));
	failed |= json_object_set_new(json, "energy", energy_json(a));
	failed |= json_object_set_new(json, "cost", cost_json(priced));
	failed |= json_object_set_new(json, "epochs", epochs_json(a));
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		struct table *t = NULL;
		int r = sections[i].build(a, &t);
		failed |= json_object_set_new(json, sections[i].name, rows_json(r, t));
	}
	failed |= json_object_set_new(json, "cpu_time", code_time_json(a));
	failed |= json_object_set_new(json, "implausible", implausible_json(a->implausible));
	failed |= run_table_phases_json(json, a);
	failed |= json_object_set_new(json, "pressure", pressure_json(&a->overview.pressure));
	failed |= json_object_set_new(json, "recording", recording_json(&a->overview.recording));
	if (failed) {
		json_decref(json);
		return -ENOMEM;
	}
	return json_write(json, stream);
}
