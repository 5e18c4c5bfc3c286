// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain ls: the runs of a directory.

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyze/analysis.h"
#include "base/cleanup.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "render/json.h"
#include "render/table.h"
#include "trace/index.h"

enum { WHERE_MAX = 32 };

struct condition {
	const char *name;
	size_t name_length;
	const char *value;
};

struct ls_options {
	const char *directory; // NULL: $STRAIN_DIR, else here
	struct condition where[WHERE_MAX];
	size_t n_where;
	const char *sort;
	bool reverse;
	bool json;
};

// A run in the list: its overview, and what is not in there.
struct listed {
	char *path;
	int64_t start_utc_ns; // 0: not known
	struct overview overview;
};

struct listing {
	struct listed *runs;
	size_t n;
};

// --- order

typedef int run_order(const struct listed *a, const struct listed *b);

static int order_numbers(double a, double b) // the largest first, what is not known last
{
	if (isfinite(a) != isfinite(b)) {
		return isfinite(a) ? -1 : 1;
	}
	return isfinite(a) ? (a < b) - (a > b) : 0;
}

static int by_start(const struct listed *a, const struct listed *b)
{
	return (a->start_utc_ns < b->start_utc_ns) - (a->start_utc_ns > b->start_utc_ns);
}

static int by_duration(const struct listed *a, const struct listed *b)
{
	return order_numbers(a->overview.duration_s, b->overview.duration_s);
}

static int by_name(const struct listed *a, const struct listed *b)
{
	return strcmp(a->overview.name, b->overview.name);
}

static int by_cpu(const struct listed *a, const struct listed *b)
{
	return order_numbers(a->overview.cpus_used, b->overview.cpus_used);
}

static int by_memory(const struct listed *a, const struct listed *b)
{
	return order_numbers(a->overview.memory.peak_bytes, b->overview.memory.peak_bytes);
}

static const struct {
	const char *name;
	run_order *compare;
} orders[] = {
	{"start", by_start},
	{"duration", by_duration},
	{"name", by_name},
	{"cpu", by_cpu},
	{"memory", by_memory},
};

static const char *label_of(const struct overview *o, const char *name, size_t length)
{
	for (size_t i = 0; i < o->n_labels; i++) {
		if (strlen(o->labels[i].name) == length &&
			memcmp(o->labels[i].name, name, length) == 0) {
			return o->labels[i].value;
		}
	}
	return NULL;
}

static bool is_number(const char *text, double *ret)
{
	char *end;
	*ret = strtod(text, &end);
	return end != text && !*end && isfinite(*ret);
}

// Numbers by size, other labels as text, runs without it last.
static int by_label(const struct listed *a, const struct listed *b, const char *label)
{
	const char *left = label_of(&a->overview, label, strlen(label));
	const char *right = label_of(&b->overview, label, strlen(label));
	double x, y;
	if (!left || !right) {
		return !left - !right;
	}
	if (is_number(left, &x) && is_number(right, &y)) {
		return (x > y) - (x < y);
	}
	return strcmp(left, right);
}

// Whether a key orders the runs at all: a mistyped one does not.
static bool is_key(const struct listing *l, const char *key)
{
	for (size_t i = 0; i < ARRAY_LENGTH(orders); i++) {
		if (strcmp(orders[i].name, key) == 0) {
			return true;
		}
	}
	for (size_t i = 0; i < l->n; i++) {
		if (label_of(&l->runs[i].overview, key, strlen(key))) {
			return true;
		}
	}
	return l->n == 0;
}

static int compare_runs(const void *left, const void *right, void *context)
{
	const struct ls_options *options = context;
	const struct listed *a = left, *b = right;
	for (size_t i = 0; i < ARRAY_LENGTH(orders); i++) {
		if (strcmp(orders[i].name, options->sort) == 0) {
			int order = orders[i].compare(a, b);
			return options->reverse ? -order : order;
		}
	}
	int order = by_label(a, b, options->sort);
	return options->reverse ? -order : order;
}

// --- reading

static bool is_wanted(const struct overview *o, const struct ls_options *options)
{
	for (size_t i = 0; i < options->n_where; i++) {
		const struct condition *condition = &options->where[i];
		const char *value = label_of(o, condition->name, condition->name_length);
		if (!value || strcmp(value, condition->value) != 0) {
			return false;
		}
	}
	return true;
}

// What of a run cannot be read is said; one of which nothing can be read is left out.
static int listing_add(struct listing *l, const char *path, const struct ls_options *options)
{
	struct error e = {0};
	_cleanup_reader_ struct reader *reader = NULL;
	struct analysis analysis;
	int r = reader_open(path, &reader, &e);
	r = r < 0 ? r : analysis_load_job(reader, &analysis, &e);
	if (r < 0) {
		command_fail("%s", e.text);
		return r;
	}
	if (reader_is_damaged(reader)) {
		reading_notice(reader);
	}
	if (is_wanted(&analysis.overview, options)) {
		l->runs[l->n++] = (struct listed){
			.path = strdup(path),
			.start_utc_ns = reader_run_i64(reader, "start_utc_ns", 0),
			.overview = analysis.overview,
		};
		analysis.overview = (struct overview){0}; // the list's now
	}
	analysis_done(&analysis);
	return 0;
}

static void listing_done(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->runs[i].path);
		overview_done(&l->runs[i].overview);
	}
	free(l->runs);
}

// --- showing

enum {
	LS_RUN,
	LS_PATH,
	LS_START,
	LS_START_S,
	LS_OUTCOME,
	LS_STATE,
	LS_STATUS,
	LS_SIGNAL,
	LS_DURATION,
	LS_CPUS,
	LS_CPU_SECONDS,
	LS_MEMORY,
	LS_MEMORY_KIND,
	LS_LABELS,
	N_LS_COLUMNS,
};

static const struct column columns[N_LS_COLUMNS] = {
	[LS_RUN] = {"name", "RUN", COLUMN_LABEL, 0},
	[LS_PATH] = {"path", NULL, COLUMN_TEXT, 0},
	[LS_START] = {NULL, "START", COLUMN_LABEL, 4},
	[LS_START_S] = {"start_utc_s", NULL, COLUMN_NUMBER, 0},
	[LS_OUTCOME] = {NULL, "STATE", COLUMN_LABEL, 0},
	[LS_STATE] = {"state", NULL, COLUMN_LABEL, 0},
	[LS_STATUS] = {"exit_status", NULL, COLUMN_WHOLE, 0},
	[LS_SIGNAL] = {"exit_signal", NULL, COLUMN_WHOLE, 0},
	[LS_DURATION] = {"duration_s", "TIME", COLUMN_SECONDS, 0},
	[LS_CPUS] = {"cpus_used", "CPUS", COLUMN_NUMBER, 2},
	[LS_CPU_SECONDS] = {"cpu_seconds", NULL, COLUMN_SECONDS, 0},
	[LS_MEMORY] = {"memory_peak_bytes", "MEMORY", COLUMN_BYTES, 3},
	[LS_MEMORY_KIND] = {"memory_kind", NULL, COLUMN_TEXT, 0},
	[LS_LABELS] = {NULL, "LABELS", COLUMN_TEXT, 1},
};

static void put_start(struct table *t, int64_t start_utc_ns)
{
	char text[32];
	struct tm local;
	time_t seconds = start_utc_ns / 1000000000;
	if (start_utc_ns > 0 && localtime_r(&seconds, &local) &&
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &local) > 0) {
		table_text(t, LS_START, text);
		table_number(t, LS_START_S, (double)start_utc_ns / 1e9);
	}
}

static void put_state(struct table *t, const struct overview *o)
{
	_cleanup_text_ struct text outcome = {0};
	overview_append_outcome(&outcome, o);
	table_text(t, LS_OUTCOME, outcome.data);
	table_text(t, LS_STATE, overview_state(o));
	table_number(t, LS_STATUS, o->exit_status >= 0 ? o->exit_status : NAN);
	table_number(t, LS_SIGNAL, o->exit_signal > 0 ? o->exit_signal : NAN);
}

static void put_labels(struct table *t, const struct overview *o)
{
	struct text labels = {0};
	for (size_t i = 0; i < o->n_labels; i++) {
		text_append_string(&labels, i ? " " : "");
		text_append_string(&labels, o->labels[i].name);
		text_append_string(&labels, "=");
		text_append_string(&labels, o->labels[i].value);
	}
	table_text(t, LS_LABELS, labels.data);
	text_done(&labels);
}

static int listing_table(const struct listing *l, struct table **ret)
{
	int r = table_new(columns, N_LS_COLUMNS, ret);
	for (size_t i = 0; i < l->n && r == 0; i++) {
		const struct overview *o = &l->runs[i].overview;
		r = table_row(*ret);
		table_text(*ret, LS_RUN, o->name);
		table_text(*ret, LS_PATH, l->runs[i].path);
		put_start(*ret, l->runs[i].start_utc_ns);
		put_state(*ret, o);
		table_number(*ret, LS_DURATION, o->duration_s);
		table_number(*ret, LS_CPUS, o->cpus_used);
		table_number(*ret, LS_CPU_SECONDS, o->cpu_seconds);
		table_number(*ret, LS_MEMORY, o->memory.peak_bytes);
		table_text(*ret, LS_MEMORY_KIND, o->memory.kind);
		put_labels(*ret, o);
	}
	return r;
}

static int print_json(const struct listing *l, const struct table *t)
{
	json_t *rows = table_to_json(t);
	for (size_t i = 0; rows && i < l->n; i++) {
		const struct overview *o = &l->runs[i].overview;
		json_object_set_new(json_array_get(rows, i), "labels", reading_labels(o));
	}
	return json_write(rows, stdout);
}

static int print_listing(const struct listing *l, bool json)
{
	struct table *t = NULL;
	struct table_style style = table_style_for(stdout);
	int r = listing_table(l, &t);
	if (r == 0) {
		r = json ? print_json(l, t) : table_print(t, stdout, &style);
	}
	table_free(t);
	return r < 0 ? command_fail("cannot list: %s", strerrordesc_np(-r)) : reading_finish();
}

// --- the command

static const struct argp_option options[] = {
	{"where", 'w', "LABEL=VALUE", 0, "only runs with this label; several must all hold", 0},
	{"sort", 's', "KEY", 0,
		"start (the default: the newest first), duration, name, cpu, memory, or a label's "
		"name",
		0},
	{"reverse", 'r', NULL, 0, "the other way round", 0},
	{"json", 256, NULL, 0, "print one JSON array", 0},
	{0},
};

static void parse_where(struct ls_options *ls, const char *argument, struct argp_state *state)
{
	const char *equals = strchr(argument, '=');
	if (!equals || equals == argument) {
		reading_option_error(state, "--where: expected LABEL=VALUE, found '%s'", argument);
	} else if (ls->n_where == WHERE_MAX) {
		reading_option_error(state, "--where: more than %d of them", WHERE_MAX);
	} else {
		ls->where[ls->n_where++] = (struct condition){
			argument, (size_t)(equals - argument), equals + 1};
	}
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct ls_options *ls = state->input;
	switch (key) {
	case 'w':
		parse_where(ls, argument, state);
		return 0;
	case 's':
		ls->sort = argument;
		return 0;
	case 'r':
		ls->reverse = true;
		return 0;
	case 256:
		ls->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (ls->directory) {
			reading_option_error(
				state, "expected one directory, found '%s' too", argument);
		}
		ls->directory = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int command_ls(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "[DIR]",
		"List the runs in a directory ($STRAIN_DIR, else the current one).", NULL, NULL,
		NULL};
	struct ls_options ls = {.sort = "start"};
	reading_options(&argp, argc, argv, &ls);
	const char *home = getenv("STRAIN_DIR");
	const char *directory = ls.directory ? ls.directory : home && *home ? home : ".";
	struct run_list paths = {0};
	struct error e = {0};
	if (run_list_read(directory, &paths, &e) < 0) {
		return command_fail("%s", e.text);
	}
	size_t n = paths.n + paths.n_unreadable;
	struct listing listing = {.runs = calloc(n + 1, sizeof(struct listed))};
	for (size_t i = 0; listing.runs && i < n; i++) {
		listing_add(&listing, paths.paths[i], &ls);
	}
	run_list_done(&paths);
	if (!is_key(&listing, ls.sort)) {
		fprintf(stderr, "strain: --sort: none of these runs has a label '%s'\n", ls.sort);
	}
	qsort_r(listing.runs, listing.n, sizeof(struct listed), compare_runs, &ls);
	int status = listing.n == 0 && !ls.json ? 0 : print_listing(&listing, ls.json);
	if (listing.n == 0 && !ls.json) {
		fprintf(stderr, "strain: no runs in %s%s\n", directory,
			ls.n_where ? " with these labels" : "");
	}
	listing_done(&listing);
	return status;
}
