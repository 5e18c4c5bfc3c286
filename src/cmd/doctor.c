// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain doctor: reports what this machine can measure, and how to enable the rest.

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "record/readiness.h"
#include "show/json.h"
#include "show/table.h"

// --- what of a source is measured, and what is missing

static bool has_value(const struct availability_value *v)
{
	return v->value != VALUE_MISSING;
}

// Whether there is nothing yet, because no job does anything.
static bool waits_for_job(const struct availability_result *r)
{
	return r->source->needs_job && r->failed.code == 0 && r->n_values == 0;
}

static enum readiness_state state_of(const struct availability_result *r)
{
	size_t values = 0, reasons = 0;
	for (size_t i = 0; i < r->n_values; i++) {
		values += has_value(&r->values[i]);
		reasons += r->values[i].reason != NULL;
	}
	if (waits_for_job(r)) {
		return READINESS_AVAILABLE;
	}
	return values == 0 ? READINESS_MISSING : reasons ? READINESS_PARTLY : READINESS_AVAILABLE;
}

// Adds a word to an array, once.
static void add_word(json_t *list, const char *word)
{
	size_t i;
	json_t *other;
	json_array_foreach(list, i, other)
	{
		if (strcmp(json_string_value(other), word) == 0) {
			return;
		}
	}
	json_array_append_new(list, json_string(word));
}

// Returns "a, b", owned by the caller; takes the list.
static char *join_words(json_t *list)
{
	struct text joined = {0};
	size_t i;
	json_t *word;
	json_array_foreach(list, i, word)
	{
		text_format(&joined, "%s%s", i ? ", " : "", json_string_value(word));
	}
	json_decref(list);
	return text_steal(&joined);
}

static bool stands_for_itself(enum entity_kind kind)
{
	return kind == ENTITY_DISK || kind == ENTITY_NETWORK || kind == ENTITY_GPU;
}

// The groups with values; if each entity is a device, the devices.
static char *describe_measured(const struct availability_result *r)
{
	json_t *list = json_array();
	for (size_t i = 0; waits_for_job(r) && i < r->source->n_groups; i++) {
		add_word(list, readiness_group_words(r->source, &r->source->groups[i]));
	}
	for (size_t i = 0; i < r->n_values; i++) {
		const struct availability_value *v = &r->values[i];
		if (has_value(v)) {
			add_word(list, stands_for_itself(v->group->entity_kind)
					       ? v->entity
					       : readiness_group_words(r->source, v->group));
		}
	}
	return join_words(list);
}

// Whether every metric of the group has this reason, for the entity or (NULL) for all.
static bool is_reason_of_all(const struct availability_result *r, const struct group *group,
	const char *entity, const char *reason)
{
	for (size_t i = 0; i < r->n_values; i++) {
		const struct availability_value *v = &r->values[i];
		if (v->group == group && (!entity || strcmp(v->entity, entity) == 0) &&
			(!v->reason || strcmp(v->reason, reason) != 0)) {
			return false;
		}
	}
	return true;
}

// Adds the name of a missing value: the group if all of it is missing; the group and the entity if
// other entities have it; else the metric.
static void add_missing(
	json_t *list, const struct availability_result *r, const struct availability_value *v)
{
	const char *words = readiness_group_words(r->source, v->group);
	if (is_reason_of_all(r, v->group, NULL, v->reason)) {
		add_word(list, words);
	} else if (v->group->n_metrics > 1 && is_reason_of_all(r, v->group, v->entity, v->reason)) {
		struct text word = {0};
		text_format(&word, "%s of %s", words, v->entity);
		add_word(list, word.data ? word.data : words);
		text_done(&word);
	} else {
		add_word(list, v->group->metrics[v->metric].name);
	}
}

static bool has_reason(const struct availability_value *v, const char *reason)
{
	return v->reason && strcmp(v->reason, reason) == 0;
}

// Whether value i is the first with its reason.
static bool is_first_with_reason(const struct availability_result *r, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (r->values[i].reason && has_reason(&r->values[k], r->values[i].reason)) {
			return false;
		}
	}
	return r->values[i].reason;
}

// All that is missing for a reason: "storage, pressure".
static char *describe_missing(const struct availability_result *r, const char *reason)
{
	json_t *list = json_array();
	for (size_t k = 0; k < r->n_values; k++) {
		if (has_reason(&r->values[k], reason)) {
			add_missing(list, r, &r->values[k]);
		}
	}
	return join_words(list);
}

// --- for people

static void print_words(const char *before, const char *words, const char *after)
{
	_cleanup_text_ struct text shown = {0};
	text_append_printable(&shown, words, strlen(words));
	printf("%s%s%s", before, shown.data ? shown.data : "", after);
}

static void print_machine(const struct machine *m)
{
	char buffer[32];
	print_words("", *m->name ? m->name : "this machine", ": ");
	if (m->cpus) {
		printf("%u CPUs", m->cpus);
	} else {
		printf("CPUs unknown");
	}
	if (*m->cpu_model) {
		print_words(" (", m->cpu_model, ")");
	}
	if (m->nodes > 1) {
		printf(", %u NUMA nodes", m->nodes);
	}
	if (m->memory_bytes) {
		printf(", %s", text_bytes(buffer, sizeof(buffer), (double)m->memory_bytes));
	}
	if (*m->kernel) {
		print_words(", Linux ", m->kernel, "");
	}
	if (m->cpus_allowed && m->cpus_allowed < m->cpus) {
		printf("; affinity: %u CPUs", m->cpus_allowed);
	}
	if (m->cpu_quota > 0) {
		printf("; quota: %.4g CPUs", m->cpu_quota);
	}
	if (m->memory_limit_bytes) {
		double limit = (double)m->memory_limit_bytes;
		printf("; limit: %s", text_bytes_beside(buffer, sizeof(buffer), limit, limit));
	}
	printf("\n\n");
}

static void add_row(struct table *t, const char *name, const char *state, const char *detail)
{
	table_row(t);
	table_text(t, 0, name);
	table_text(t, 1, state);
	table_text(t, 2, detail);
}

static void add_source(struct table *t, const struct availability_result *r)
{
	enum readiness_state state = state_of(r);
	_cleanup_free_ char *measured = describe_measured(r);
	const char *name = r->source->name, *word = readiness_state_name(state);
	if (state == READINESS_MISSING) {
		bool nothing_said = r->n_values == 0 || !r->values[0].reason;
		add_row(t, name, word,
			r->failed.code ? r->failed.text
			: nothing_said ? "nothing to measure here"
				       : r->values[0].reason);
		return;
	}
	add_row(t, name, word, measured);
	for (size_t i = 0; i < r->n_values; i++) {
		if (is_first_with_reason(r, i)) {
			const char *reason = r->values[i].reason;
			_cleanup_free_ char *missing = describe_missing(r, reason);
			_cleanup_text_ struct text line = {0};
			text_format(&line, "%s missing: %s", missing ? missing : "", reason);
			add_row(t, "", "", line.data ? line.data : reason);
		}
	}
}

static int print_overview(const struct readiness *f)
{
	static const struct column columns[] = {
		{"source", "SOURCE", COLUMN_LABEL, 0},
		{"state", "STATE", COLUMN_LABEL, 0},
		{"detail", "", COLUMN_PROSE, 0},
	};
	struct table *t;
	size_t n;
	const struct availability_result *results = availability_results(f->tried, &n);
	int r = table_new(columns, ARRAY_LENGTH(columns), &t);
	if (r < 0) {
		return r;
	}
	for (size_t i = 0; i < n; i++) {
		add_source(t, &results[i]);
	}
	for (size_t i = 0; i < f->n_checks; i++) {
		const struct readiness_check *c = &f->checks[i];
		add_row(t, c->name, readiness_state_name(c->state), c->detail);
	}
	struct table_style style = table_style_for(stdout);
	print_machine(&f->machine);
	r = table_print(t, stdout, &style);
	table_free(t);
	return r;
}

// "25,276,514,304 B", "70.44 s", "12": all digits, for comparison.
static void format_value(char *buffer, size_t size, const struct metric *metric, int64_t value)
{
	double scaled = (double)value * metric->scale;
	if (metric->unit[0] == '{' || strcmp(metric->unit, "1") == 0) {
		snprintf(buffer, size, "%.12g", scaled);
	} else {
		bool bytes = strcmp(metric->unit, "By") == 0;
		snprintf(buffer, size, "%.15g %s", scaled, bytes ? "B" : metric->unit);
	}
}

static void add_metric(struct table *t, const char *source, const struct availability_value *v)
{
	const struct metric *metric = &v->group->metrics[v->metric];
	char value[64] = "";
	if (has_value(v)) {
		format_value(value, sizeof(value), metric, v->value);
	}
	table_row(t);
	table_text(t, 0, source);
	table_text(t, 1, *v->entity ? v->entity : entity_kind_name(v->group->entity_kind));
	table_text(t, 2, metric->name);
	table_text(t, 3, has_value(v) ? value : v->reason ? v->reason : "no value yet");
}

static int print_metrics(const struct readiness *f)
{
	static const struct column columns[] = {
		{"source", "SOURCE", COLUMN_LABEL, 0},
		{"entity", "ENTITY", COLUMN_LABEL, 0},
		{"metric", "METRIC", COLUMN_LABEL, 0},
		{"value", "VALUE, OR WHY NOT", COLUMN_PROSE, 0},
	};
	struct table *t;
	size_t n;
	const struct availability_result *results = availability_results(f->tried, &n);
	int r = table_new(columns, ARRAY_LENGTH(columns), &t);
	if (r < 0) {
		return r;
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < results[i].n_values; k++) {
			add_metric(t, results[i].source->name, &results[i].values[k]);
		}
	}
	struct table_style style = table_style_for(stdout);
	r = table_print(t, stdout, &style);
	table_free(t);
	return r;
}

// --- for programs

static json_t *metric_to_json(const struct availability_value *v)
{
	const struct metric *metric = &v->group->metrics[v->metric];
	json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "metric", metric->name, "entity_kind",
		entity_kind_name(v->group->entity_kind), "entity", v->entity, "unit", metric->unit);
	if (has_value(v)) {
		json_object_set_new(o, "value", json_real((double)v->value * metric->scale));
	} else {
		json_object_set_new(o, "value", json_null());
		json_object_set_new(o, "reason", v->reason ? json_string(v->reason) : json_null());
	}
	return o;
}

// Names of the metrics with a value (reason NULL), or missing for a reason; all of those that a job
// would have.
static json_t *metric_names(const struct availability_result *r, const char *reason)
{
	json_t *names = json_array();
	for (size_t i = 0; waits_for_job(r) && !reason && i < r->source->n_groups; i++) {
		const struct group *group = &r->source->groups[i];
		for (size_t k = 0; k < group->n_metrics; k++) {
			add_word(names, group->metrics[k].name);
		}
	}
	for (size_t i = 0; i < r->n_values; i++) {
		const struct availability_value *v = &r->values[i];
		if (reason ? has_reason(v, reason) : has_value(v)) {
			add_word(names, v->group->metrics[v->metric].name);
		}
	}
	return names;
}

static json_t *device_names(const struct availability_result *r)
{
	json_t *names = json_array();
	for (size_t i = 0; i < r->n_values; i++) {
		const struct availability_value *v = &r->values[i];
		if (has_value(v) && stands_for_itself(v->group->entity_kind)) {
			add_word(names, v->entity);
		}
	}
	return names;
}

static json_t *missing_to_json(const struct availability_result *r, const char *reason)
{
	_cleanup_free_ char *what = describe_missing(r, reason);
	return json_pack("{s:s?, s:o, s:s}", "what", what, "metrics", metric_names(r, reason),
		"reason", reason);
}

static json_t *source_to_json(const struct availability_result *r, bool metrics)
{
	json_t *missing = json_array(), *list = json_array();
	for (size_t i = 0; i < r->n_values; i++) {
		if (is_first_with_reason(r, i)) {
			json_array_append_new(missing, missing_to_json(r, r->values[i].reason));
		}
		if (metrics) {
			json_array_append_new(list, metric_to_json(&r->values[i]));
		}
	}
	json_t *o = json_pack("{s:s, s:s, s:s, s:o, s:o, s:s?, s:o}", "source", r->source->name,
		"help", r->source->help, "state", readiness_state_name(state_of(r)), "measured",
		metric_names(r, NULL), "devices", device_names(r), "reason",
		r->failed.code ? r->failed.text : NULL, "missing", missing);
	if (metrics) {
		json_object_set(o, "metrics", list);
	}
	json_decref(list);
	return o;
}

static int print_json(const struct readiness *f, bool metrics)
{
	size_t n;
	const struct availability_result *results = availability_results(f->tried, &n);
	json_t *sources = json_array(), *checks = json_array();
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(sources, source_to_json(&results[i], metrics));
	}
	for (size_t i = 0; i < f->n_checks; i++) {
		const struct readiness_check *c = &f->checks[i];
		json_array_append_new(
			checks, json_pack("{s:s, s:s, s:s}", "check", c->name, "state",
					readiness_state_name(c->state), "detail", c->detail));
	}
	_cleanup_free_ char *attributes = machine_attributes(&f->machine);
	json_t *machine = attributes ? json_loads(attributes, 0, NULL) : NULL;
	json_t *all = json_pack(
		"{s:o?, s:o, s:o}", "machine", machine, "sources", sources, "checks", checks);
	return json_write(all, stdout);
}

// --- options

struct options {
	const char *sysroot;
	bool metrics;
	bool json;
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case 's':
		o->sysroot = argument;
		return 0;
	case 'm':
		o->metrics = true;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case ARGP_KEY_ARG:
		reading_option_error(state, "unexpected argument '%s'", argument);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int command_doctor(int argc, char **argv)
{
	static const struct argp_option argp_options[] = {
		{"metrics", 'm', NULL, 0,
			"show each metric with its value, or the reason why it "
			"is missing",
			0},
		{"json", 'j', NULL, 0, "print JSON", 0},
		{"sysroot", 's', "DIR", 0,
			"examine a captured /proc and /sys tree instead: a folder with proc "
			"and sys",
			0},
		{0},
	};
	static const struct argp argp = {argp_options, parse_option, NULL,
		"Report what this machine can measure, and how to enable the rest.", NULL, NULL,
		NULL};
	struct options options = {0};
	reading_options(&argp, argc, argv, &options);
	const char *root = options.sysroot ? options.sysroot : "/";
	_cleanup_close_ int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0) {
		return command_fail("cannot examine %s: %s", root, strerrordesc_np(errno));
	}
	struct readiness readiness;
	struct error e = {0};
	if (readiness_find(root_fd, options.sysroot != NULL, &readiness, &e) < 0) {
		return command_fail("%s", e.text);
	}
	int r = options.json      ? print_json(&readiness, options.metrics)
	        : options.metrics ? print_metrics(&readiness)
	                          : print_overview(&readiness);
	readiness_done(&readiness);
	if (r < 0 || fflush(stdout) != 0) {
		return command_fail("cannot print: %s", strerrordesc_np(r < 0 ? -r : errno));
	}
	return STATUS_OK;
}
