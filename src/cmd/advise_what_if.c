// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain advise --from.

#include "cmd/advise_what_if.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/installation.h"
#include "base/text.h"
#include "cmd/advise_overlay.h"
#include "cmd/command.h"
#include "machine/cpus.h"
#include "probe/probe.h"
#include "probe/replay.h"
#include "runfile/reader.h"
#include "show/json.h"
#include "show/table.h"
#include "study/catalogue.h"

enum { RUNS_MOST = 64, CASES_MOST = N_WHAT_IF + 2, OPTIONS_MOST = REPLAY_OPTIONS + 10 };

// A case, and what --verify measured.
struct checked {
	struct what_if_case c;
	bool together; // all changes
	struct estimate measured; // samples/s; NAN: it did not run
	double error; // of the prediction, relative
	char *missing; // why it was not measured
};

struct asked {
	const struct what_if_options *o;
	struct observation *seen; // [n]
	char **names; // [n] of their files
	size_t n;
	char *first; // path of the first run
	struct what_if what;
	struct checked cases[CASES_MOST]; // the first: as recorded
	size_t n_cases;
	struct probe_overlay overlay; // of --verify
	bool started; // the runs of --verify
};

// Runs --------------------------------------------------------------------------------------------

// Of the runs that `strain advise` keeps, some are under a limit, or with other settings.
static bool is_comparable(const char *path)
{
	static const char *const others[] = {"setting", "verify", "converge"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	if (!isdigit((unsigned char)name[0]) || !isdigit((unsigned char)name[1]) ||
		name[2] != '-') {
		return true;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		size_t length = strlen(others[i]);
		if (strncmp(name + 3, others[i], length) == 0 &&
			strcmp(name + 3 + length, ".strain") == 0) {
			return false;
		}
	}
	return true;
}

// Reads a run. One without a rate is left out, and said. False: out of memory.
static bool add_run(struct asked *a, const char *path)
{
	struct error e = {0};
	struct observation *o = &a->seen[a->n];
	if (observation_read(path, o, &e) < 0) {
		command_note("left out: %s", e.text);
	} else if (!(o->rate.value > 0)) {
		command_note("left out: %s: %s", path,
			o->rate_missing ? o->rate_missing : "the job does not count its samples");
	} else {
		a->names[a->n] = strdup(path);
		a->first = a->n == 0 ? strdup(path) : a->first;
		return a->names[a->n++] && a->first;
	}
	observation_done(o);
	return true;
}

// The runs of a file, of a folder or of a sweep, oldest first. Returns an exit status.
static int add_runs(struct asked *a, char *path)
{
	const struct catalogue_options options = {.job_only = true};
	struct catalogue found;
	struct error e = {0};
	int status = STATUS_OK;
	if (catalogue_read_with(&path, 1, &options, &found, &e) < 0) {
		return command_fail("%s", e.text);
	}
	for (size_t i = 0; i < found.n_unreadable; i++) {
		command_note("left out: %s", found.unreadable[i]);
	}
	for (size_t i = found.n; i-- > 0 && status == STATUS_OK;) {
		const char *run = found.runs[i].path;
		if (a->n == RUNS_MOST) {
			status = command_fail("%s: expected at most %d runs", path, RUNS_MOST);
		} else if (is_comparable(run) && !add_run(a, run)) {
			status = command_fail("out of memory");
		}
	}
	catalogue_done(&found);
	return status;
}

static int read_runs(struct asked *a)
{
	int status = STATUS_OK;
	a->seen = calloc(RUNS_MOST, sizeof(*a->seen));
	a->names = calloc(RUNS_MOST, sizeof(*a->names));
	if (!a->seen || !a->names) {
		return command_fail("out of memory");
	}
	for (size_t i = 0; i < a->o->n_runs && status == STATUS_OK; i++) {
		status = add_runs(a, a->o->runs[i]);
	}
	if (status == STATUS_OK && a->n == 0) {
		status = command_fail("no run has the time of an iteration");
	}
	return status;
}

// Cases -------------------------------------------------------------------------------------------

static void add_case(struct asked *a, const struct what_if_values *values, bool together)
{
	a->cases[a->n_cases++] = (struct checked){.c = what_if_predict(&a->what, values),
		.together = together,
		.measured = {NAN, NAN, NAN},
		.error = NAN};
}

// Each change alone, and all together; without any, each resource doubled.
static void list_cases(struct asked *a)
{
	struct what_if_values none = what_if_unchanged(), recorded = what_if_recorded(&a->what);
	size_t asked = 0;
	add_case(a, &none, false);
	for (enum what_if_kind i = 0; i < N_WHAT_IF; i++) {
		asked += isfinite(a->o->wanted.of[i]);
	}
	for (enum what_if_kind i = 0; i < N_WHAT_IF; i++) {
		struct what_if_values one = none;
		one.of[i] = asked > 0 ? a->o->wanted.of[i] : 2 * recorded.of[i];
		if (isfinite(one.of[i])) {
			add_case(a, &one, false);
		}
	}
	if (asked > 1) {
		add_case(a, &a->o->wanted, true);
	}
}

// Verification ------------------------------------------------------------------------------------

// Why this machine cannot stand for the other; NULL: it can.
static const char *find_obstacle(const struct asked *a, const struct what_if_case *c)
{
	const double *of = c->values.of;
	struct what_if_values recorded = what_if_recorded(&a->what);
	struct cpus allowed;
	if (isfinite(of[WHAT_IF_GPU_SPEED]) || isfinite(of[WHAT_IF_CPU_SPEED])) {
		return "this machine cannot change the speed of its processors";
	}
	if (isfinite(of[WHAT_IF_CPUS]) &&
		(cpus_of_self(&allowed) < 0 || of[WHAT_IF_CPUS] > cpus_count(&allowed))) {
		return "this machine has fewer CPUs";
	}
	if (isfinite(of[WHAT_IF_MEMORY]) && !(of[WHAT_IF_MEMORY] <= recorded.of[WHAT_IF_MEMORY])) {
		return "only less memory can be tried";
	}
	return c->too_small ? c->note : NULL;
}

// Replaces the value of an option of `strain run`, or adds it.
static void set_option(const char **options, size_t *n, const char *name, const char *value)
{
	for (size_t i = 0; i + 1 < *n; i += 2) {
		if (strcmp(options[i], name) == 0) {
			options[i + 1] = value;
			return;
		}
	}
	options[(*n)++] = name;
	options[(*n)++] = value;
}

// What starts the runs.
struct starter {
	char *strain; // path of the program
	struct replay replay;
	const struct probe_overlay *overlay;
};

static int verify_case(const struct asked *a, size_t at, const struct starter *starter,
	struct checked *ret, struct error *e)
{
	const struct replay *replay = &starter->replay;
	static const struct {
		enum what_if_kind kind;
		const char *option;
	} limited[] = {{WHAT_IF_CPUS, "--cpus"}, {WHAT_IF_MEMORY, "--memory"},
		{WHAT_IF_DISK_READ, "--disk-read"}};
	const char *options[OPTIONS_MOST] = {NULL};
	char values[ARRAY_LENGTH(limited)][40];
	size_t n = 0;
	for (size_t i = 0; replay->options[i]; i++) {
		options[n++] = replay->options[i];
	}
	for (size_t i = 0; i < ARRAY_LENGTH(limited); i++) {
		double value = ret->c.values.of[limited[i].kind];
		if (isfinite(value)) {
			snprintf(values[i], sizeof(values[i]), "%.0f%s", value,
				limited[i].kind == WHAT_IF_DISK_READ ? "B/s" : "");
			set_option(options, &n, limited[i].option, values[i]);
		}
	}
	options[n] = "--no-verdict";
	_cleanup_text_ struct text run = {0}, output = {0};
	text_format(&run, "%s/%02zu-what-if.strain", a->o->folder, at + 1);
	text_format(&output, "%s/%02zu-what-if.out", a->o->folder, at + 1);
	if (run.failed || output.failed) {
		return error_set(e, ENOMEM, "out of memory");
	}
	struct probe probe;
	int r = probe_run(&(struct probe_config){.strain = starter->strain,
				  .command = a->o->command ? a->o->command : replay->command,
				  .directory = a->o->command ? NULL : replay->directory,
				  .overlay = starter->overlay,
				  .run = run.data,
				  .output = output.data,
				  .options = options,
				  .environment = (const char *const *)replay->environment,
				  .error = a->o->error,
				  .limit_ns = a->o->limit_ns,
				  .interrupted = a->o->interrupted},
		&probe, e);
	if (r == 0) {
		ret->measured = probe.rate.rate;
		if (!isfinite(ret->measured.value)) {
			ret->missing = strdup(probe.no_rate ? probe.no_rate : "it has no rate");
		}
		probe_done(&probe);
	}
	return r;
}

// Runs each case that this machine can stand for. The run as recorded comes first: the machine may
// be busier or quieter now, and the errors are relative to it.
static void verify_cases(struct asked *a, const struct starter *starter)
{
	for (size_t i = 0; i < a->n_cases && !*a->o->interrupted; i++) {
		struct checked *k = &a->cases[i];
		struct error e = {0};
		const char *obstacle = i > 0 ? find_obstacle(a, &k->c) : NULL;
		if (obstacle) {
			k->missing = strdup(obstacle);
			continue;
		}
		command_note("run %zu of %zu", i + 1, a->n_cases);
		if (verify_case(a, i, starter, k, &e) < 0) {
			k->missing = strdup(e.text);
		}
		double before = a->cases[0].measured.value / a->cases[0].c.at.rate.value;
		k->error = k->c.at.rate.value * before / k->measured.value - 1;
	}
}

// How the job of the first run is started.
static int find_start(const struct asked *a, struct replay *ret, struct error *e)
{
	struct reader *reader = NULL;
	int r = replay_allowed(a->first, e);
	r = r < 0 ? r : reader_open(a->first, &reader, e);
	r = r < 0 ? r : replay_read(reader, ret, e);
	reader_free(reader);
	return r;
}

static int verify(struct asked *a)
{
	struct starter starter = {0};
	struct error e = {0};
	int status = STATUS_OK;
	starter.strain = installation_find("strain", X_OK, &e);
	if (!starter.strain) {
		status = command_fail("%s", e.text);
	} else if (!a->o->command && find_start(a, &starter.replay, &e) < 0) {
		status = command_fail("%s: cannot restart its job: %s", a->first, e.text);
		command_detail("        enter the command: strain advise --from %s --verify -- "
			       "COMMAND...",
			a->o->runs[0]);
	} else if (!advise_overlay_find(a->o->command ? NULL : starter.replay.directory,
			   a->o->folder, a->o->in_place, &a->overlay)) {
		status = STATUS_FAILURE;
	} else {
		a->started = true;
		starter.overlay = &a->overlay;
		verify_cases(a, &starter);
	}
	replay_done(&starter.replay);
	free(starter.strain);
	return status;
}

// Output ------------------------------------------------------------------------------------------

enum {
	CASE_CHANGE,
	CASE_RATE,
	CASE_LOW,
	CASE_HIGH,
	CASE_GAIN,
	CASE_EPOCH,
	CASE_BOUND,
	CASE_MEASURED,
	CASE_ERROR,
	CASE_NOTE,
	N_CASE
};

static const struct column case_columns[N_CASE] = {
	[CASE_CHANGE] = {"change", "", COLUMN_LABEL, 0},
	[CASE_RATE] = {"rate", "SAMPLES/S", COLUMN_NUMBER, 0},
	[CASE_LOW] = {"rate_low", "FROM", COLUMN_NUMBER, 2},
	[CASE_HIGH] = {"rate_high", "TO (90 %)", COLUMN_NUMBER, 2},
	[CASE_GAIN] = {"gain", "TIMES", COLUMN_NUMBER, 0},
	[CASE_EPOCH] = {"epoch_s", "EPOCH", COLUMN_SECONDS, 0},
	[CASE_BOUND] = {"limited_by", "LIMITED BY", COLUMN_LABEL, 0},
	[CASE_MEASURED] = {"measured", "MEASURED", COLUMN_NUMBER, 0},
	[CASE_ERROR] = {"error", "ERROR", COLUMN_RATIO, 0},
	[CASE_NOTE] = {"note", "", COLUMN_PROSE, 0},
};

static void append_value(struct text *t, enum what_if_kind kind, double value)
{
	char bytes[32];
	switch (kind) {
	case WHAT_IF_CPUS:
		text_format(t, "%.3g", value);
		break;
	case WHAT_IF_MEMORY:
		text_append_string(t, text_bytes(bytes, sizeof(bytes), value));
		break;
	case WHAT_IF_DISK_READ:
		text_format(t, "%s/s", text_bytes(bytes, sizeof(bytes), value));
		break;
	default:
		text_format(t, "%.3gx", value);
		break;
	}
}

// "cpus 4 to 16"
static void append_change(struct text *t, const struct asked *a, const struct checked *k)
{
	static const char *const words[N_WHAT_IF] = {
		[WHAT_IF_CPUS] = "CPUs",
		[WHAT_IF_MEMORY] = "memory",
		[WHAT_IF_DISK_READ] = "storage",
		[WHAT_IF_GPU_SPEED] = "GPU speed",
		[WHAT_IF_CPU_SPEED] = "CPU speed",
	};
	struct what_if_values recorded = what_if_recorded(&a->what);
	for (enum what_if_kind i = 0; i < N_WHAT_IF && !k->together; i++) {
		double value = k->c.values.of[i];
		bool speed = i == WHAT_IF_GPU_SPEED || i == WHAT_IF_CPU_SPEED;
		if (!isfinite(value)) {
			continue;
		}
		text_format(t, "%s ", words[i]);
		if (isfinite(recorded.of[i]) && !speed) {
			append_value(t, i, recorded.of[i]);
			text_append_string(t, " to ");
		}
		append_value(t, i, value);
	}
	if (k->together) {
		text_append_string(t, "all together");
	} else if (t->length == 0) {
		text_append_string(t, "as recorded");
	}
}

static void append_note(struct text *t, const struct checked *k)
{
	if (k->c.at.extrapolated && isfinite(k->c.at.rate.value)) {
		text_append_string(t, "extrapolated beyond the observed range");
	}
	if (k->c.note) {
		text_format(t, "%s%s", t->length > 0 ? "; " : "", k->c.note);
	}
	if (k->missing && k->missing != k->c.note) {
		text_format(t, "%snot tried: %s", t->length > 0 ? "; " : "", k->missing);
	}
}

static struct table *cases_table(const struct asked *a)
{
	struct table *table = NULL;
	if (table_new(case_columns, N_CASE, &table) < 0) {
		return NULL;
	}
	for (size_t i = 0; i < a->n_cases && table_row(table) == 0; i++) {
		const struct checked *k = &a->cases[i];
		_cleanup_text_ struct text change = {0}, note = {0};
		append_change(&change, a, k);
		append_note(&note, k);
		table_text(table, CASE_CHANGE, change.data);
		table_number(table, CASE_RATE, k->c.at.rate.value);
		table_number(table, CASE_LOW, k->c.at.rate.low);
		table_number(table, CASE_HIGH, k->c.at.rate.high);
		table_number(table, CASE_GAIN, k->c.gain.value);
		table_number(table, CASE_EPOCH, k->c.epoch.value);
		table_text(table, CASE_BOUND,
			isfinite(k->c.at.rate.value) ? rate_bound_name(k->c.at.bound) : NULL);
		table_number(table, CASE_MEASURED, k->measured.value);
		table_number(table, CASE_ERROR, i > 0 ? k->error : NAN);
		table_text(table, CASE_NOTE, note.data);
	}
	return table;
}

static void print_cases(const struct asked *a)
{
	struct table *table = cases_table(a);
	struct table_style style = table_style_for(stdout);
	const struct observation *base = &a->what.base;
	char bytes[32];
	printf("%s: batch size %" PRId64, a->first,
		base->batch_size > 0 ? base->batch_size : base->loader_batch_size);
	if (base->workers >= 0) {
		printf(", %" PRId64 " worker%s", base->workers, base->workers == 1 ? "" : "s");
	}
	if (base->cpus > 0) {
		printf(", %.3g CPUs", base->cpus);
	}
	if (isfinite(a->what.data)) {
		printf(", reads %s per epoch", text_bytes(bytes, sizeof(bytes), a->what.data));
	}
	puts("\n");
	if (table) {
		table_print(table, stdout, &style);
	}
	table_free(table);
	printf("\nrests on %zu run%s; rates that were not measured are estimates", a->n,
		a->n == 1 ? "" : "s");
	if (isfinite(a->what.between)) {
		char seconds[32];
		printf("; the %s per epoch outside iterations are assumed to stay the same",
			text_seconds(seconds, sizeof(seconds), a->what.between));
	} else if (a->what.base.epoch_samples > 0) {
		printf("; no whole epoch was recorded, so EPOCH is the time of the iterations "
		       "alone");
	} else {
		printf("; no whole epoch was recorded");
	}
	puts("");
}

static json_t *values_json(const struct what_if_values *values)
{
	json_t *json = json_object();
	for (enum what_if_kind i = 0; i < N_WHAT_IF; i++) {
		json_object_set_new(json, what_if_name(i), json_from_number(values->of[i]));
	}
	return json;
}

static json_t *answer_json(const struct asked *a)
{
	json_t *json = json_object(), *runs = json_array(), *cases = json_array();
	struct what_if_values recorded = what_if_recorded(&a->what);
	struct table *table = cases_table(a);
	json_t *rows = table ? table_to_json(table) : json_array();
	for (size_t i = 0; i < a->n; i++) {
		json_array_append_new(runs, json_from_text(a->names[i]));
	}
	for (size_t i = 0; i < a->n_cases && i < json_array_size(rows); i++) {
		const struct what_if_case *c = &a->cases[i].c;
		json_t *row = json_array_get(rows, i);
		json_object_set_new(row, "values", values_json(&c->values));
		json_object_set_new(row, "epoch_low_s", json_from_number(c->epoch.low));
		json_object_set_new(row, "epoch_high_s", json_from_number(c->epoch.high));
		json_object_set_new(row, "page_cache_ratio", json_from_number(c->hit.value));
		json_object_set_new(row, "observed", json_boolean(!c->at.extrapolated));
		json_array_append(cases, row);
	}
	json_decref(rows);
	table_free(table);
	json_object_set_new(json, "runs", runs);
	json_object_set_new(json, "batch_size",
		json_integer(a->what.base.batch_size > 0 ? a->what.base.batch_size
							 : a->what.base.loader_batch_size));
	json_object_set_new(json, "workers",
		a->what.base.workers >= 0 ? json_integer(a->what.base.workers) : json_null());
	json_object_set_new(json, "recorded", values_json(&recorded));
	json_object_set_new(json, "epoch_bytes", json_from_number(a->what.data));
	json_object_set_new(json, "held_bytes", json_from_number(a->what.held));
	json_object_set_new(json, "cases", cases);
	advise_overlay_json(json, a->started ? &a->overlay : NULL);
	return json;
}

static void free_asked(struct asked *a)
{
	for (size_t i = 0; i < a->n; i++) {
		observation_done(&a->seen[i]);
		free(a->names[i]);
	}
	for (size_t i = 0; i < a->n_cases; i++) {
		free(a->cases[i].missing);
	}
	probe_overlay_done(&a->overlay);
	free(a->seen);
	free(a->names);
	free(a->first);
}

int advise_what_if(const struct what_if_options *o)
{
	struct asked a = {.o = o, .overlay = PROBE_OVERLAY_NONE};
	struct error e = {0};
	int status = read_runs(&a);
	if (status == STATUS_OK && what_if_begin(a.seen, a.n, &a.what, &e) < 0) {
		status = command_fail("%s", e.text);
	}
	if (status == STATUS_OK) {
		list_cases(&a);
		status = o->verify ? verify(&a) : STATUS_OK;
	}
	if (status == STATUS_OK && o->json) {
		status = json_write(answer_json(&a), stdout) < 0
		                 ? command_fail("cannot write: %s", strerrordesc_np(errno))
		                 : command_flush();
	} else if (status == STATUS_OK) {
		print_cases(&a);
		status = command_flush();
	}
	free_asked(&a);
	return status;
}
