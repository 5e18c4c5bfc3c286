// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tries the advice of a run's verdict, or of the first probe's, and writes what came of it into the
// run.

#include "cmd/advise_try.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "advise/gain.h"
#include "advise/replay.h"
#include "advise/tries.h"
#include "analyze/analysis.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/advise_text.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "render/json.h"
#include "render/table.h"
#include "trace/amend.h"

// Of a job without a run, the first probe gives the verdict: that takes more than a rate.
#define VERDICT_SECONDS 8

struct attempt {
	const struct try_options *o;
	struct reader *reader; // of the run that was named; NULL: none
	struct replay replay;
	bool writes; // what came of it goes into the run
	struct tries tries;
	struct tried_list kept; // that the run had, with what came of it
};

// What to try -------------------------------------------------------------------------------------

bool try_parse_settings(const char *text, struct setting_list *ret, char *word, size_t size)
{
	*ret = (struct setting_list){0};
	for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		snprintf(word, size, "%.*s", (int)length, at);
		at += length;
		_cleanup_free_ char *name = strndup(word, strcspn(word, "="));
		const char *value = strchr(word, '=');
		enum setting_kind kind = name ? setting_kind_of(name) : N_SETTING_KINDS;
		bool variable = kind == N_SETTING_KINDS || kind == SETTING_ENVIRONMENT;
		if (value && (strcmp(value, "=True") == 0 || strcmp(value, "=False") == 0)) {
			value = strcmp(value, "=True") == 0 ? "=1" : "=0";
		}
		if (!value || !setting_add(ret, 0, variable ? SETTING_ENVIRONMENT : kind,
				      variable ? word : value + 1)) {
			return false;
		}
	}
	snprintf(word, size, "%s", text);
	return ret->n > 0;
}

static void add_choices(struct tries *t, const struct suggestion *suggestions, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct suggestion *s = &suggestions[i];
		struct tried wanted = {.promised = s->gain, .at_most = s->kind == GAIN_AT_MOST};
		for (unsigned k = 0; k <= UINT8_MAX; k++) {
			if (setting_choose(&s->settings, k, &wanted.settings)) {
				tries_add(t, &wanted);
			}
		}
	}
}

static void add_verdict(struct tries *t, const struct verdict *v)
{
	add_choices(t, v->suggestions, v->n_suggestions);
	add_choices(t, v->in_vain, v->n_in_vain); // asked once more
}

// What was asked for first, then the verdict's, and of the run what was tried before.
static int add_candidates(struct attempt *a)
{
	struct reader *own = NULL, *reader = a->reader;
	struct analysis analysis;
	struct error e = {0};
	for (size_t i = 0; i < a->o->n_with; i++) {
		const struct tried wanted = {
			.settings = a->o->with[i], .promised = {NAN, NAN, NAN}};
		tries_add(&a->tries, &wanted);
	}
	int r = 0;
	if (!reader && a->o->n_with > 0) {
		return 0; // nobody asked for a verdict
	}
	if (!reader) {
		r = reader_open(a->tries.first_run, &own, &e);
		reader = own;
	}
	r = r < 0 ? r : analysis_load(reader, &analysis, &e);
	if (r == 0) {
		if (a->o->n_with == 0) {
			add_verdict(&a->tries, &analysis.verdict);
			advise_say(analysis.verdict.headline);
		}
		r = tried_read(reader_run(reader, "tried"), &a->kept);
		analysis_done(&analysis);
	}
	reader_free(own);
	return r < 0 ? -command_fail("no verdict: %s", r == -ENOMEM ? "out of memory" : e.text) : 0;
}

// The run -----------------------------------------------------------------------------------------

static bool is_of_this_machine(struct reader *reader)
{
	struct utsname names;
	const char *host = reader_run(reader, "hostname");
	return host && uname(&names) == 0 && strcmp(host, names.nodename) == 0;
}

// False after it has said why not, and what to type instead.
static bool find_command(struct attempt *a)
{
	struct error e = {0};
	const char *path = reader_path(a->reader);
	if (replay_allowed(path, &e) < 0) {
		command_fail("%s", e.text);
		command_detail(
			"        a run that others can write does not decide what is executed; "
			"type it: strain advise --try %s -- COMMAND...",
			a->o->run ? a->o->run : path);
		return false;
	}
	if (replay_read(a->reader, &a->replay, &e) < 0) {
		command_fail("%s: its job cannot be started again: %s", path, e.text);
		command_detail("        where and how you started it: strain advise --try %s -- "
			       "COMMAND...",
			a->o->run ? a->o->run : path);
		return false;
	}
	return true;
}

static bool open_run(struct attempt *a)
{
	const struct try_options *o = a->o;
	struct error e = {0};
	a->reader = reading_open(o->run);
	if (!a->reader) {
		return false;
	}
	if (reader_state(a->reader) == RUN_LIVE) {
		command_fail("%s is still being recorded: what is tried beside it would slow it",
			reader_path(a->reader));
		return false;
	}
	a->writes = replay_allowed(reader_path(a->reader), &e) == 0;
	if (!a->writes && o->command) {
		command_note("nothing is written into the run: %s", e.text);
	}
	if (a->writes && !is_of_this_machine(a->reader)) {
		command_note("nothing is written into the run: it is of another machine");
		a->writes = false;
	}
	return o->command || find_command(a);
}

static void say_command(const struct attempt *a)
{
	_cleanup_text_ struct text line = {0};
	for (char **word = a->replay.command; word && *word; word++) {
		text_append_string(&line, " ");
		text_append_word(&line, *word);
	}
	if (line.data) {
		command_note("in %s:%s", a->replay.directory, line.data);
	}
}

// Adds what came of it to the run's trials. An exit status.
static int write_results(struct attempt *a)
{
	struct error e = {0};
	_cleanup_text_ struct text json = {0};
	int r = 0;
	for (size_t i = 0; i < a->tries.n && r == 0; i++) {
		r = tried_add(&a->kept, &a->tries.items[i].result);
	}
	if (r < 0) {
		return command_fail("out of memory");
	}
	if (!a->writes || a->tries.n == 0) {
		return STATUS_OK;
	}
	tried_append_json(&json, &a->kept);
	_cleanup_free_ char *path = strdup(reader_path(a->reader));
	reader_free(a->reader); // else it would hold the file
	a->reader = NULL;
	if (json.failed || !path) {
		return command_fail("out of memory");
	}
	const struct amendment item = {AMEND_KEY, "tried", json.data};
	a->writes = run_amend(path, &item, 1, &e) == 0;
	return a->writes ? STATUS_OK : command_fail("%s", e.text);
}

// What came of it ---------------------------------------------------------------------------------

enum { TRY_SETTINGS, TRY_GAIN, TRY_LOW, TRY_HIGH, TRY_PROMISED, TRY_RATE, TRY_PROBES, N_TRY };

static const struct column samples_columns[N_TRY] = {
	[TRY_SETTINGS] = {"settings", "TRIED", COLUMN_LABEL, 0},
	[TRY_GAIN] = {"gain", "TIMES FASTER", COLUMN_NUMBER, 0},
	[TRY_LOW] = {"gain_low", "FROM", COLUMN_NUMBER, 1},
	[TRY_HIGH] = {"gain_high", "TO (95 %)", COLUMN_NUMBER, 1},
	[TRY_PROMISED] = {"promised", "PROMISED", COLUMN_NUMBER, 2},
	[TRY_RATE] = {"rate", "SAMPLES/S", COLUMN_NUMBER, 3},
	[TRY_PROBES] = {"probes", "PROBES", COLUMN_WHOLE, 4},
};

static double mean_rate(const struct candidate *c)
{
	double sum = 0;
	for (size_t i = 0; i < c->n; i++) {
		sum += c->rates[i];
	}
	return c->n > 0 ? sum / (double)c->n : NAN;
}

static void put_row(struct table *table, const struct candidate *c)
{
	const struct tried *result = &c->result;
	_cleanup_text_ struct text name = {0};
	setting_append(&name, &result->settings);
	if (table_row(table) < 0) {
		return;
	}
	table_text(table, TRY_SETTINGS, result->settings.n > 0 ? name.data : "unmodified");
	table_number(table, TRY_GAIN, result->settings.n > 0 ? result->gain.value : NAN);
	table_number(table, TRY_LOW, result->settings.n > 0 ? result->gain.low : NAN);
	table_number(table, TRY_HIGH, result->settings.n > 0 ? result->gain.high : NAN);
	table_number(table, TRY_PROMISED, result->settings.n > 0 ? result->promised.value : NAN);
	table_number(table, TRY_RATE, mean_rate(c));
	table_number(table, TRY_PROBES, (double)c->n);
}

static void print_table(const struct tries *t)
{
	struct column columns[N_TRY];
	struct table *table = NULL;
	memcpy(columns, samples_columns, sizeof(columns));
	if (!t->of_samples) {
		columns[TRY_RATE].title = "ITERATIONS/S";
	}
	if (table_new(columns, N_TRY, &table) < 0) {
		return;
	}
	put_row(table, &t->without);
	for (size_t i = 0; i < t->n; i++) {
		if (!t->items[i].result.missing) {
			put_row(table, &t->items[i]);
		}
	}
	struct table_style style = table_style_for(stdout);
	table_print(table, stdout, &style);
	table_free(table);
}

// The largest of those that gained; NULL: none did.
static const struct tried *best_of(const struct tries *t)
{
	const struct tried *best = NULL;
	for (size_t i = 0; i < t->n; i++) {
		const struct tried *result = &t->items[i].result;
		if (tried_gained(result) && (!best || result->gain.value > best->gain.value)) {
			best = result;
		}
	}
	return best;
}

static void print_settings(
	const char *before, const struct setting_list *settings, const char *after)
{
	_cleanup_text_ struct text name = {0};
	setting_append(&name, settings);
	printf("%s%s%s", before, name.data ? name.data : "", after);
}

static void print_best(const struct tries *t)
{
	const struct tried *best = best_of(t);
	_cleanup_text_ struct text words = {0};
	if (best) {
		tried_append(&words, best);
		print_settings("best: ", &best->settings, "");
		printf("; %s\n", words.data ? words.data : "");
		return;
	}
	bool known = false;
	for (size_t i = 0; i < t->n; i++) {
		known = known || tried_in_vain(&t->items[i].result);
	}
	if (known) {
		puts("nothing that was tried gained more than chance");
	}
}

static void print_text(const struct attempt *a)
{
	const struct tries *t = &a->tries;
	if (t->n == 0) {
		puts("nothing to try: no advice of the verdict goes without an edit "
		     "(--with SETTING tries another)");
		return;
	}
	print_table(t);
	putchar('\n');
	for (size_t i = 0; i < t->n; i++) {
		const struct tried *result = &t->items[i].result;
		_cleanup_text_ struct text words = {0};
		if (result->missing) {
			text_append_printable(&words, result->missing, strlen(result->missing));
			print_settings("", &result->settings, "");
			printf(": not tried: %s\n", words.data ? words.data : "");
		}
	}
	print_best(t);
	if (tries_first_is_cold(t)) {
		puts("the first probe is left out of gains: its data came from storage, that of "
		     "the "
		     "others from memory");
	}
	if (t->out_of_time) {
		puts("its time was up before all was tried as often as asked (--time, --repeats)");
	}
}

static json_t *estimate_json(const struct estimate *e)
{
	json_t *json = json_object();
	json_object_set_new(json, "value", json_from_number(e->value));
	json_object_set_new(json, "low", json_from_number(e->low));
	json_object_set_new(json, "high", json_from_number(e->high));
	return json;
}

static json_t *candidate_json(const struct candidate *c)
{
	json_t *json = json_object(), *rates = json_array();
	_cleanup_text_ struct text name = {0};
	setting_append(&name, &c->result.settings);
	for (size_t i = 0; i < c->n; i++) {
		json_array_append_new(rates, json_from_number(c->rates[i]));
	}
	if (c->result.settings.n > 0) {
		json_object_set_new(json, "settings", json_from_text(name.data));
		json_object_set_new(json, "gain", estimate_json(&c->result.gain));
		json_object_set_new(json, "promised", estimate_json(&c->result.promised));
		json_object_set_new(json, "missing", json_from_text(c->result.missing));
	}
	json_object_set_new(json, "rates", rates);
	return json;
}

static json_t *results_json(const struct attempt *a)
{
	json_t *json = json_object(), *tried = json_array();
	const struct tries *t = &a->tries;
	const struct tried *best = best_of(t);
	_cleanup_text_ struct text name = {0};
	for (size_t i = 0; i < t->n; i++) {
		json_array_append_new(tried, candidate_json(&t->items[i]));
	}
	if (best) {
		setting_append(&name, &best->settings);
	}
	json_object_set_new(
		json, "unit", json_string(t->of_samples ? "samples/s" : "iterations/s"));
	json_object_set_new(json, "unmodified", candidate_json(&t->without));
	json_object_set_new(json, "first_left_out", json_boolean(tries_first_is_cold(t)));
	json_object_set_new(json, "tried", tried);
	json_object_set_new(json, "best", json_from_text(best ? name.data : NULL));
	json_object_set_new(json, "complete", json_boolean(!t->out_of_time && !t->interrupted));
	json_object_set_new(json, "written", json_boolean(a->writes && t->n > 0));
	return json;
}

static int print_results(const struct attempt *a)
{
	if (!a->o->json) {
		print_text(a);
	} else if (json_write(results_json(a), stdout) < 0) {
		return command_fail("cannot write: %s", strerrordesc_np(errno));
	}
	return reading_finish();
}

// All of it ---------------------------------------------------------------------------------------

static int fail(const struct attempt *a, const struct error *e)
{
	command_fail("%s", e->text);
	if (a->tries.failed_output) {
		advise_print_tail(a->tries.failed_output);
	}
	return STATUS_FAILURE;
}

static int try_all(struct attempt *a)
{
	const struct try_options *o = a->o;
	struct error e = {0};
	bool own = !o->command; // the run's command
	const struct tries_config config = {
		.command = own ? a->replay.command : o->command,
		.directory = own ? a->replay.directory : NULL,
		.options = own ? (const char *const *)a->replay.options : NULL,
		.environment = own ? (const char *const *)a->replay.environment : NULL,
		.folder = o->folder,
		.error = o->error,
		.first_seconds = a->reader || o->n_with > 0 ? 0 : VERDICT_SECONDS,
		.limit_ns = o->limit_ns,
		.time_ns = o->time_ns,
		.repeats = o->repeats,
		.say = advise_say,
		.interrupted = o->interrupted,
	};
	if (tries_begin(&config, &a->tries, &e) < 0) {
		return fail(a, &e);
	}
	if (add_candidates(a) < 0) {
		return STATUS_FAILURE;
	}
	int made = tries_make(&a->tries, &e);
	int written = write_results(a), printed = print_results(a);
	if (made < 0) {
		return fail(a, &e);
	}
	return written != STATUS_OK ? written : printed;
}

int advise_try(const struct try_options *o)
{
	struct attempt a = {.o = o};
	int status = STATUS_FAILURE;
	if ((o->command && !o->run) || open_run(&a)) {
		say_command(&a);
		status = try_all(&a);
	}
	tries_done(&a.tries);
	tried_done(&a.kept);
	replay_done(&a.replay);
	reader_free(a.reader);
	return status;
}
