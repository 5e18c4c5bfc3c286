// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain advise: advises with short runs of a job. Alone: the largest batch that fits, and the
// batch size and workers that train fastest. --stalls measures the cost of its input, --try the
// gain of advice.

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/command.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "base/words.h"
#include "cmd/advise.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "probe/advice.h"
#include "probe/placeholders.h"
#include "probe/replay.h"
#include "probe/stalls.h"
#include "probe/tries.h"
#include "record/job/limits.h"
#include "record/job/name.h"
#include "run/analysis.h"
#include "runfile/amend.h"
#include "runfile/database.h"
#include "show/advice_answer.h"
#include "show/json.h"
#include "show/table.h"
#include "study/digest.h"
#include "study/kept_advice.h"
#include "study/prices.h"
#include "verdict/setting.h"
#include "verdict/verdict.h"

// Output of `strain advise`.

struct stall_runs;

// strain advise --try.

enum { TRY_WITH_MOST = 8 };

struct try_options {
	const char *run; // as given by the user; NULL: none
	char **command; // ends with NULL; NULL: that of the run
	struct setting_list with[TRY_WITH_MOST]; // settings of --with
	size_t n_with;
	const char *folder; // for the probes; exists
	double error;
	uint64_t limit_ns; // per probe
	uint64_t time_ns; // for all probes
	unsigned repeats;
	bool json;
	bool in_place;
	const volatile sig_atomic_t *interrupted; // number of the signal; 0: continue
};

// The overlay of the runs -------------------------------------------------------------------------

bool advise_overlay_find(
	const char *directory, const char *folder, bool in_place, struct probe_overlay *ret)
{
	struct error e = {0};
	const char *why = in_place ? "--in-place was given" : NULL;
	if (probe_overlay_find(directory, folder, why, ret, &e) < 0) {
		command_fail("%s", e.text);
		probe_overlay_done(ret);
		return false;
	}
	_cleanup_free_ char *sentence = probe_overlay_sentence(ret);
	if (sentence) {
		command_note("%s", sentence);
	}
	return true;
}

void advise_overlay_json(json_t *json, const struct probe_overlay *overlay)
{
	json_object_set_new(
		json, "in_place", overlay ? json_boolean(overlay->in_place != NULL) : json_null());
	json_object_set_new(
		json, "in_place_reason", json_from_text(overlay ? overlay->in_place : NULL));
}

// Text --------------------------------------------------------------------------------------------
//
// Stalls as a table, as sentences and as JSON.

enum { TAIL_BYTES = 2000 };

// In the order of the text: the possible rate, the actual one, the worst one.
static const enum probe_kind shown[N_STALL_RUNS] = {PROBE_COMPUTE, PROBE_WARM, PROBE_COLD};

// Prints a line on standard error while it works.
static void advise_say(const char *text)
{
	command_note("%s", text);
}

// Prints the end of a file on standard error: the job's output before it failed.
static void advise_print_tail(const char *path)
{
	char tail[TAIL_BYTES];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	ssize_t n = size < 0 ? -1
	                     : pread(fd, tail, sizeof(tail),
				       size > TAIL_BYTES ? size - TAIL_BYTES : 0);
	for (char *at = tail, *end = tail + (n > 0 ? n : 0); at < end;) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);
		command_detail("        %.*s", (int)length, at);
		at += length + 1;
	}
}

// Rates -------------------------------------------------------------------------------------------

enum {
	RATE_RUN,
	RATE_RATE,
	RATE_LOW,
	RATE_HIGH,
	RATE_ITERATIONS,
	RATE_SECONDS,
	RATE_CACHED,
	RATE_NOTE,
	N_RATE
};

static const struct column samples_columns[N_RATE] = {
	[RATE_RUN] = {"run", "RUN", COLUMN_LABEL, 0},
	[RATE_RATE] = {"rate", "SAMPLES/S", COLUMN_NUMBER, 0},
	[RATE_LOW] = {"rate_low", "FROM", COLUMN_NUMBER, 2},
	[RATE_HIGH] = {"rate_high", "TO (95 %)", COLUMN_NUMBER, 2},
	[RATE_ITERATIONS] = {"iterations", "ITERATIONS", COLUMN_WHOLE, 3},
	[RATE_SECONDS] = {"seconds", "TOOK", COLUMN_SECONDS, 4},
	[RATE_CACHED] = {"cached_at_start", "CACHED BEFORE", COLUMN_RATIO, 1},
	[RATE_NOTE] = {NULL, "", COLUMN_LABEL, 0},
};

static struct table *rates_table(const struct stall_runs *runs, const struct column *columns)
{
	struct table *table = NULL;
	if (table_new(columns, N_RATE, &table) < 0) {
		return NULL;
	}
	for (size_t i = 0; i < N_STALL_RUNS; i++) {
		const struct probe *p = &runs->probes[shown[i]];
		if (!isfinite(p->rate.rate.value) || table_row(table) < 0) {
			continue;
		}
		table_text(table, RATE_RUN, stalls_probe_name(shown[i]));
		table_number(table, RATE_RATE, p->rate.rate.value);
		table_number(table, RATE_LOW, p->rate.rate.low);
		table_number(table, RATE_HIGH, p->rate.rate.high);
		table_number(table, RATE_ITERATIONS, (double)p->rate.iterations);
		table_number(table, RATE_SECONDS, p->seconds);
		table_number(table, RATE_CACHED, runs->cached[shown[i]]);
		table_wide(table, RATE_NOTE, p->rate.rate.low, p->rate.rate.high);
	}
	return table;
}

static void print_rates(const struct stall_runs *runs)
{
	struct column columns[N_RATE];
	memcpy(columns, samples_columns, sizeof(columns));
	if (!runs->probes[PROBE_WARM].rate.of_samples) {
		columns[RATE_RATE].title = "ITERATIONS/S";
	}
	struct table *table = rates_table(runs, columns);
	struct table_style style = table_style_for(stdout);
	if (table) {
		table_print(table, stdout, &style);
	}
	table_free(table);
}

// Stalls ------------------------------------------------------------------------------------------

struct saying {
	const char *name;
	const char *of; // what the share refers to
	const char *means;
};

static void print_interval(const struct estimate *stall)
{
	char low[32], high[32];
	if (isfinite(stall->low)) {
		printf(" (95 %%: %s to %s)", text_percent(low, sizeof(low), stall->low),
			text_percent(high, sizeof(high), stall->high));
	}
}

static void print_stall(
	const struct saying *says, const struct estimate *stall, const char *missing)
{
	char value[32];
	printf("%-11s  ", says->name);
	if (!isfinite(stall->value)) {
		printf("missing: %s\n", missing ? missing : "a rate is missing");
		return;
	}
	text_percent(value, sizeof(value), fabs(stall->value));
	if (stall->value < 0) {
		printf("none found: -%s of %s", value, says->of);
	} else {
		printf("%s of %s", value, says->of);
	}
	print_interval(stall);
	if (stall_is_sure(stall)) {
		printf(": %s\n", says->means);
	} else if (isfinite(stall->low)) {
		printf(", not significant; these runs cannot detect a stall below %s\n",
			text_percent(value, sizeof(value), stall_noise(stall)));
	} else {
		puts(": too few iterations for a test of significance");
	}
}

static const char *first_missing(const struct stall_runs *runs, enum probe_kind kind)
{
	return runs->missing[kind] ? runs->missing[kind] : runs->missing[PROBE_WARM];
}

// Prints the rates, the stalls and their meaning to standard output.
static void advise_stalls_print(const struct stall_runs *runs)
{
	static const struct saying prep = {"prep stall", "the time, data cached",
		"the job waits for its batches to be prepared"};
	static const struct saying fetch = {
		"fetch stall", "the time, data on storage", "the job waits for storage"};
	char bytes[32], files[32];
	print_rates(runs);
	putchar('\n');
	print_stall(&prep, &runs->stalls.prep, first_missing(runs, PROBE_COMPUTE));
	print_stall(&fetch, &runs->stalls.fetch, first_missing(runs, PROBE_COLD));
	if (runs->stalls.contention) {
		puts("note         a run with more work was faster, because the machine was busy "
		     "with something else; the intervals account for it");
	}
	if (runs->dataset.n > 0) {
		printf("data         %s in %s file%s%s\n",
			text_bytes(bytes, sizeof(bytes), (double)runs->dataset.bytes),
			text_count(files, sizeof(files), runs->dataset.n),
			runs->dataset.n > 1 ? "s" : "",
			runs->dataset.too_many ? " (and more)" : "");
	}
	if (runs->probes[PROBE_COMPUTE].edited) {
		puts("note         the job modifies its batches in place: the compute run copied "
		     "each batch, and its time includes the copies");
	}
}

// JSON --------------------------------------------------------------------------------------------

static json_t *estimate_json(const struct estimate *e, const char *missing)
{
	json_t *json = json_object();
	json_object_set_new(json, "value", json_from_number(e->value));
	json_object_set_new(json, "low", json_from_number(e->low));
	json_object_set_new(json, "high", json_from_number(e->high));
	json_object_set_new(json, "noise", json_from_number(stall_noise(e)));
	if (!isfinite(e->value)) {
		json_object_set_new(json, "missing", json_from_text(missing));
	}
	return json;
}

// The same as JSON; a new reference.
static json_t *advise_stalls_json(
	const struct stall_runs *runs, const struct probe_overlay *overlay)
{
	json_t *json = json_object(), *stalls = json_object(), *data = json_object();
	struct table *table = rates_table(runs, samples_columns);
	json_object_set_new(json, "unit",
		json_string(
			runs->probes[PROBE_WARM].rate.of_samples ? "samples/s" : "iterations/s"));
	json_object_set_new(json, "runs", table ? table_to_json(table) : json_null());
	table_free(table);
	json_object_set_new(stalls, "prep",
		estimate_json(&runs->stalls.prep, first_missing(runs, PROBE_COMPUTE)));
	json_object_set_new(stalls, "fetch",
		estimate_json(&runs->stalls.fetch, first_missing(runs, PROBE_COLD)));
	json_object_set_new(stalls, "contention", json_boolean(runs->stalls.contention));
	json_object_set_new(json, "stalls", stalls);
	json_object_set_new(data, "files", json_integer((json_int_t)runs->dataset.n));
	json_object_set_new(data, "bytes", json_integer((json_int_t)runs->dataset.bytes));
	json_object_set_new(json, "data", data);
	json_object_set_new(
		json, "batches_edited_in_place", json_boolean(runs->probes[PROBE_COMPUTE].edited));
	advise_overlay_json(json, overlay);
	return json;
}

// Try ---------------------------------------------------------------------------------------------
//
// Tries the advice of the verdict of a run, or of the first probe, and writes the results into the
// run.

// For a job without a run, the first probe also gives the verdict, which needs more than a rate.
#define VERDICT_SECONDS 8

struct attempt {
	const struct try_options *o;
	struct reader *reader; // of the named run; NULL: none
	struct replay replay;
	struct probe_overlay overlay;
	bool writes; // the results are written into the run
	struct tries tries;
	struct tried_list kept; // trials of the run, then with the results
};

// Candidates --------------------------------------------------------------------------------------

// Parses the value of --with: "OMP_NUM_THREADS=1 num_workers=2". False: the wrong part is copied to
// `word` (of size bytes).
static bool try_parse_settings(const char *text, struct setting_list *ret, char *word, size_t size)
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
	add_choices(t, v->in_vain, v->n_in_vain); // tried again
}

// Adds the settings of --with first, then those of the verdict. Also reads the run's earlier
// trials.
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
		return 0; // no verdict is needed
	}
	if (!reader) {
		r = reader_open(a->tries.first_run, &own, &e);
		reader = own;
	}
	struct verdict verdict;
	r = r < 0 ? r : analysis_load(reader, &analysis, &e);
	r = r < 0 ? r : verdict_judge(&analysis, &verdict, &e);
	if (r == 0) {
		if (a->o->n_with == 0) {
			add_verdict(&a->tries, &verdict);
			advise_say(verdict.headline);
		}
		r = tried_read(reader_run(reader, "tried"), &a->kept);
		verdict_done(&verdict);
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

// False after it has printed the reason, and a command that works.
static bool find_command(struct attempt *a)
{
	struct error e = {0};
	const char *path = reader_path(a->reader);
	if (replay_allowed(path, &e) < 0) {
		_cleanup_text_ struct text word = {0};
		text_append_path(&word, a->o->run ? a->o->run : path);
		command_fail("%s", e.text);
		command_detail("        strain does not take the command from a file that others "
			       "can write; enter it: strain advise --try %s -- COMMAND...",
			word.data ? word.data : "");
		return false;
	}
	if (replay_read(a->reader, &a->replay, &e) < 0) {
		command_fail("%s: cannot restart its job: %s", path, e.text);
		command_detail("        start it as you did, from the same directory: strain "
			       "advise --try %s -- COMMAND...",
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
		command_fail("%s is still being recorded: probes would slow it down",
			reader_path(a->reader));
		return false;
	}
	a->writes = replay_allowed(reader_path(a->reader), &e) == 0;
	if (!a->writes && o->command) {
		command_note("results are not written into the run: %s", e.text);
	}
	if (a->writes && !is_of_this_machine(a->reader)) {
		command_note("results are not written into the run: it was recorded on another "
			     "machine");
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

// Adds the results to the trials of the run. Returns an exit status.
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
	reader_free(a->reader); // otherwise it keeps the file open
	a->reader = NULL;
	if (json.failed || !path) {
		return command_fail("out of memory");
	}
	const struct amendment item = {AMEND_KEY, "tried", json.data};
	a->writes = amend_run(path, &item, 1, &e) == 0;
	return a->writes ? STATUS_OK : command_fail("%s", e.text);
}

// Results -----------------------------------------------------------------------------------------

enum {
	TRY_SETTINGS,
	TRY_GAIN,
	TRY_LOW,
	TRY_HIGH,
	TRY_PROMISED,
	TRY_RATE,
	TRY_PROBES,
	TRY_NOTE,
	N_TRY
};

static const struct column try_samples_columns[N_TRY] = {
	[TRY_SETTINGS] = {"settings", "TRIED", COLUMN_LABEL, 0},
	[TRY_GAIN] = {"gain", "SPEED-UP", COLUMN_NUMBER, 0},
	[TRY_LOW] = {"gain_low", "FROM", COLUMN_NUMBER, 1},
	[TRY_HIGH] = {"gain_high", "TO (95 %)", COLUMN_NUMBER, 1},
	[TRY_PROMISED] = {"estimated", "ESTIMATE", COLUMN_NUMBER, 2},
	[TRY_RATE] = {"rate", "SAMPLES/S", COLUMN_NUMBER, 3},
	[TRY_PROBES] = {"probes", "PROBES", COLUMN_WHOLE, 4},
	[TRY_NOTE] = {NULL, "", COLUMN_LABEL, 0},
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
	if (result->settings.n > 0) {
		table_wide(table, TRY_NOTE, result->gain.low, result->gain.high);
	}
}

static void print_table(const struct tries *t)
{
	struct column columns[N_TRY];
	struct table *table = NULL;
	memcpy(columns, try_samples_columns, sizeof(columns));
	if (!t->of_samples) {
		columns[TRY_RATE].title = "ITERATIONS/S";
	}
	if (table_new(columns, N_TRY, &table) < 0) {
		return;
	}
	put_row(table, &t->without);
	for (size_t i = 0; i < t->n; i++) {
		if (!t->items[i].result.missing || t->items[i].n > 0) {
			put_row(table, &t->items[i]);
		}
	}
	struct table_style style = table_style_for(stdout);
	table_print(table, stdout, &style);
	table_free(table);
}

// The largest gain; NULL: nothing gained.
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
		puts("no setting gained significantly");
	}
}

static void print_text(const struct attempt *a)
{
	const struct tries *t = &a->tries;
	if (t->n == 0) {
		puts("nothing to try: all of the verdict's advice requires editing the job (--with "
		     "SETTINGS tries others)");
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
			printf(": %s: %s\n",
				t->items[i].n > 0 ? "too few probes for a gain" : "not tried",
				words.data ? words.data : "");
		}
	}
	print_best(t);
	if (tries_first_is_cold(t)) {
		char first[32], next[32];
		printf("the first probe is excluded: it read %s/s from storage while it iterated, "
		       "the next one %s/s\n",
			text_bytes(first, sizeof(first), t->stored_rate[0]),
			text_bytes(next, sizeof(next), t->stored_rate[1]));
	}
	if (t->out_of_time) {
		puts("the time ran out before all settings had the requested number of repeats "
		     "(--time, --repeats)");
	}
}

static json_t *try_estimate_json(const struct estimate *e)
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
		json_object_set_new(json, "gain", try_estimate_json(&c->result.gain));
		json_object_set_new(json, "estimated", try_estimate_json(&c->result.promised));
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
	json_object_set_new(json, "first_excluded", json_boolean(tries_first_is_cold(t)));
	json_object_set_new(json, "tried", tried);
	json_object_set_new(json, "best", json_from_text(best ? name.data : NULL));
	json_object_set_new(json, "complete", json_boolean(!t->out_of_time && !t->interrupted));
	json_object_set_new(json, "written", json_boolean(a->writes && t->n > 0));
	advise_overlay_json(json, &a->overlay);
	return json;
}

static int print_results(const struct attempt *a)
{
	if (!a->o->json) {
		print_text(a);
	} else if (json_write(results_json(a), stdout) < 0) {
		return command_fail("cannot write: %s", strerrordesc_np(errno));
	}
	return command_flush();
}

// The whole command -------------------------------------------------------------------------------

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
	bool own = !o->command; // the command of the run
	const char *directory = own ? a->replay.directory : NULL;
	if (!advise_overlay_find(directory, o->folder, o->in_place, &a->overlay)) {
		return STATUS_FAILURE;
	}
	const struct tries_config config = {
		.command = own ? a->replay.command : o->command,
		.directory = directory,
		.overlay = &a->overlay,
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

// Returns an exit status.
static int advise_try(const struct try_options *o)
{
	struct attempt a = {.o = o, .overlay = PROBE_OVERLAY_NONE};
	int status = STATUS_FAILURE;
	if ((o->command && !o->run) || open_run(&a)) {
		say_command(&a);
		status = try_all(&a);
	}
	tries_done(&a.tries);
	tried_done(&a.kept);
	replay_done(&a.replay);
	probe_overlay_done(&a.overlay);
	reader_free(a.reader);
	return status;
}

// Advise ------------------------------------------------------------------------------------------

enum {
	OPTION_STALLS = 256,
	OPTION_TRY,
	OPTION_WITH,
	OPTION_REPEATS,
	OPTION_TIME,
	OPTION_ERROR,
	OPTION_LIMIT,
	OPTION_JSON,
	OPTION_MEMORY,
	OPTION_CPUS,
	OPTION_MARGIN,
	OPTION_SBATCH,
	OPTION_DOCKER,
	OPTION_KUBERNETES,
	OPTION_VALIDATE,
	OPTION_PATTERN,
	OPTION_SCALE,
	OPTION_THESIS,
	OPTION_FROM,
	OPTION_DISK_READ,
	OPTION_GPU_SPEED,
	OPTION_GPU_MEMORY,
	OPTION_CPU_SPEED,
	OPTION_VERIFY,
	OPTION_EPOCHS,
	OPTION_LABEL,
	OPTION_IN_PLACE,
	OPTION_PRICES,
};

enum { FROM_MOST = 64 };

#define STALLS_LIMIT_NS (120 * NS_PER_S)
// Probes are based on a few seconds, since there are many of them.
#define TRY_LIMIT_NS (30 * NS_PER_S)

struct advise_options {
	bool stalls;
	bool tries;
	bool json;
	const char *folder; // NULL: a temporary folder
	double error;
	uint64_t limit_ns; // 0: the default of the question
	uint64_t time_ns;
	int64_t repeats;
	bool repeats_given;
	struct setting_list with[TRY_WITH_MOST];
	size_t n_with;
	const char *run; // argument before "--"
	char **command;
	uint64_t memory_bytes; // 0: the limit that applies
	uint64_t gpu_memory_bytes; // 0: that of the GPUs
	int64_t cpus; // 0: all that strain may use
	double margin;
	enum advise_request request;
	uint64_t converge_ns; // --validate; 0: no
	const char *pattern;
	enum advice_scaling scaling;
	bool thesis;
	bool from;
	char *runs[FROM_MOST]; // of --from
	size_t n_runs;
	struct what_if_values wanted; // of --from, without memory and CPUs
	bool verify;
	int64_t epochs; // 0: not known
	const char *labels[ADVICE_LABELS_MAX]; // "NAME=VALUE"
	size_t n_labels;
	bool in_place;
	const char *prices_path; // NULL: as STRAIN_PRICES says
	const struct prices *prices; // NULL: none
};

static const struct argp_option options[] = {
	{"memory", OPTION_MEMORY, "SIZE", 0,
		"find the largest batch for a memory limit of SIZE (default: the limit that "
		"applies here)",
		0},
	{"gpu-memory", OPTION_GPU_MEMORY, "SIZE", 0,
		"find the largest batch for a GPU with SIZE of memory (PyTorch; default: the GPU's "
		"own)",
		0},
	{"cpus", OPTION_CPUS, "N", 0, "run the job on N CPUs (default: all available)", 0},
	{"margin", OPTION_MARGIN, "PERCENT", 0, "keep PERCENT of the memory limit free (0%)", 0},
	{"stalls", OPTION_STALLS, NULL, 0,
		"measure the cost of preparing and fetching the data, with three short runs", 0},
	{"try", OPTION_TRY, NULL, 0,
		"try the advice of a verdict that needs no edit of the job, and measure its gain "
		"with alternating short runs",
		0},
	{"with", OPTION_WITH, "SETTINGS", 0,
		"--try: try these settings instead of the verdict's (\"OMP_NUM_THREADS=1 "
		"num_workers=2\"); may be repeated; each is tried separately",
		0},
	{"repeats", OPTION_REPEATS, "N", 0, "--try: run the job N times with each setting (3)", 0},
	{"time", OPTION_TIME, "TIME", 0, "do not start a run after TIME (10min); not with --stalls",
		0},
	{"for", OPTION_TIME, NULL, OPTION_ALIAS, NULL, 0},
	{"prices", OPTION_PRICES, READING_PRICES_ARGUMENT, 0, READING_PRICES_HELP, 0},
	{"label", OPTION_LABEL, "NAME=VALUE", 0,
		"attach a label to the runs (model=resnet50), for comparing answers; may be "
		"repeated",
		0},
	{"sbatch", OPTION_SBATCH, NULL, 0,
		"print the header of a Slurm job script for the advised configuration", 0},
	{"docker", OPTION_DOCKER, NULL, 0,
		"print a docker run command for the advised configuration", 0},
	{"kubernetes", OPTION_KUBERNETES, NULL, 0,
		"print the resources of a Kubernetes container for the advised configuration", 0},
	{"epochs", OPTION_EPOCHS, "N", 0, "--sbatch: request the time of N epochs", 0},
	{"validate", OPTION_VALIDATE, "TIME", OPTION_ARG_OPTIONAL,
		"also train with the present and the advised batch size, each for at most TIME "
		"(10min), and compare the validation loss and accuracy that the job prints",
		0},
	{"epoch-pattern", OPTION_PATTERN, "REGEX", 0,
		"--validate: match the lines that end an epoch, with the groups (?<loss>...) and "
		"(?<accuracy>...)",
		0},
	{"scale-learning-rate", OPTION_SCALE, "RULE", 0,
		"--validate: scale {learning_rate=X} with the batch size: linear, sqrt or none "
		"(none)",
		0},
	{"thesis", OPTION_THESIS, NULL, 0,
		"also print the estimates of Tripathi 2019 from the same runs", 0},
	{"from", OPTION_FROM, "RUN", OPTION_ARG_OPTIONAL,
		"predict a recorded job on another machine, from its runs (files or folders); set "
		"--cpus, --memory, --disk-read, --gpu-speed, --cpu-speed (default: double each)",
		0},
	{"disk-read", OPTION_DISK_READ, "RATE", 0,
		"--from: assume storage that delivers RATE (500MB/s)", 0},
	{"gpu-speed", OPTION_GPU_SPEED, "FACTOR", 0,
		"--from: assume GPUs that compute FACTOR times as fast (2x)", 0},
	{"cpu-speed", OPTION_CPU_SPEED, "FACTOR", 0,
		"--from: assume CPUs that compute FACTOR times as fast (1.5x)", 0},
	{"verify", OPTION_VERIFY, NULL, 0,
		"also run the job under exactly the resources to request; --from: under each "
		"limit that this machine can set, and print the errors of the predictions",
		0},
	{"in-place", OPTION_IN_PLACE, NULL, 0,
		"run the job directly in its directory; it may overwrite files there (default: "
		"over an overlay)",
		0},
	{"error", OPTION_ERROR, "PERCENT", 0,
		"end a run when its rate is known to within PERCENT "
		"(3%)",
		0},
	{"limit", OPTION_LIMIT, "TIME", 0,
		"end a run after at most TIME (2min; --try, --from: 30s)", 0},
	{"output", 'o', "DIR", 0,
		"keep the runs in the new folder DIR (default: PROGRAM-DATE-TIME.advice; with "
		"--stalls and --try none)",
		0},
	{"json", OPTION_JSON, NULL, 0, "print JSON", 0},
	{0},
};

static int parse_error(const char *argument, struct advise_options *o, struct error *e)
{
	int result = parse_percent(argument, &o->error, e);
	if (result == 0 && o->error < 0.001) {
		result = error_set(e, EINVAL, "expected at least 0.1%%, found '%s'", argument);
	}
	return result;
}

static int parse_time(const char *argument, uint64_t *ret, struct error *e)
{
	int result = parse_duration(argument, ret, e);
	if (result == 0 && (*ret < 5 * NS_PER_S || *ret > 86400 * NS_PER_S)) {
		result = error_set(e, EINVAL, "expected 5s to 24h, found '%s'", argument);
	}
	return result;
}

static int parse_with(const char *argument, struct advise_options *o, struct error *e)
{
	char wrong[80];
	if (o->n_with == TRY_WITH_MOST) {
		return error_set(e, E2BIG, "expected at most %d settings", TRY_WITH_MOST);
	}
	if (!try_parse_settings(argument, &o->with[o->n_with], wrong, sizeof(wrong))) {
		return error_set(e, EINVAL,
			"'%s' cannot be tried; expected num_workers=N, prefetch_factor=N, "
			"pin_memory=1, persistent_workers=1, flush_denormal=1, cpus=0-3, "
			"OMP_NUM_THREADS=N or similar",
			wrong);
	}
	o->n_with++;
	return 0;
}

static int parse_label(const char *argument, struct advise_options *o, struct error *e)
{
	const char *equals = strchr(argument, '=');
	size_t length = equals ? (size_t)(equals - argument) : 0;
	bool plain = strcspn(argument, " ") >= length;
	for (const char *c = argument; *c; c++) {
		plain = plain && (unsigned char)*c >= ' ' && *c != 0x7f;
	}
	if (length == 0 || length > RUN_LABEL_NAME_BYTES_MAX ||
		strlen(argument) - length - 1 > RUN_LABEL_VALUE_BYTES_MAX || !plain) {
		return error_set(e, EINVAL, "expected NAME=VALUE, found '%s'", argument);
	}
	if (o->n_labels == ADVICE_LABELS_MAX) {
		return error_set(e, E2BIG, "expected at most %d labels", ADVICE_LABELS_MAX);
	}
	o->labels[o->n_labels++] = argument;
	return 0;
}

static int parse_memory(const char *argument, struct advise_options *o, struct error *e)
{
	int result = parse_size(argument, &o->memory_bytes, e);
	if (result == 0 && o->memory_bytes < LIMIT_MEMORY_MIN) {
		result = error_set(e, EINVAL, "expected at least 1 MiB, found '%s'", argument);
	}
	return result;
}

static int parse_gpu_memory(const char *argument, struct advise_options *o, struct error *e)
{
	int result = parse_size(argument, &o->gpu_memory_bytes, e);
	if (result == 0 && o->gpu_memory_bytes < LIMIT_MEMORY_MIN) {
		result = error_set(e, EINVAL, "expected at least 1 MiB, found '%s'", argument);
	}
	return result;
}

static int parse_disk_read(const char *argument, struct advise_options *o, struct error *e)
{
	uint64_t rate = 0;
	int result = parse_rate(argument, &rate, e);
	if (result == 0 && rate < LIMIT_RATE_MIN) {
		result = error_set(e, EINVAL, "expected at least 4 KiB/s, found '%s'", argument);
	}
	o->wanted.of[WHAT_IF_DISK_READ] = (double)rate;
	return result;
}

static int parse_factor(const char *argument, double *ret, struct error *e)
{
	char *end;
	double factor = strtod(argument, &end);
	end += *end == 'x';
	if (end == argument || *end || !(factor >= 0.01) || !(factor <= 1000)) {
		return error_set(e, EINVAL, "expected 0.01x to 1000x, found '%s'", argument);
	}
	*ret = factor;
	return 0;
}

static int parse_validate(const char *argument, struct advise_options *o, struct error *e)
{
	o->converge_ns = 600 * NS_PER_S;
	return argument ? parse_time(argument, &o->converge_ns, e) : 0;
}

static int parse_scaling(const char *argument, struct advise_options *o, struct error *e)
{
	static const char *const names[] = {[ADVICE_SCALE_NONE] = "none",
		[ADVICE_SCALE_LINEAR] = "linear",
		[ADVICE_SCALE_SQRT] = "sqrt"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (strcmp(argument, names[i]) == 0) {
			o->scaling = (enum advice_scaling)i;
			return 0;
		}
	}
	return error_set(e, EINVAL, "expected linear, sqrt or none, found '%s'", argument);
}

static int parse_margin(const char *argument, struct advise_options *o, struct error *e)
{
	int result = parse_percent(argument, &o->margin, e);
	if (result == 0 && o->margin > 0.9) {
		result = error_set(e, EINVAL, "expected 0%% to 90%%, found '%s'", argument);
	}
	return result;
}

static void add_from(struct advise_options *o, char *run, struct argp_state *state)
{
	if (o->n_runs == FROM_MOST) {
		reading_option_error(state, "--from: expected at most %d runs", FROM_MOST);
	}
	o->runs[o->n_runs++] = run;
}

static void add_request(
	struct advise_options *o, enum advise_request request, struct argp_state *state)
{
	if (o->request != REQUEST_NONE && o->request != request) {
		reading_option_error(
			state, "advise: --sbatch, --docker and --kubernetes cannot be combined");
	}
	o->request = request;
}

// A run comes before "--", a command after it. With --stalls, and alone, all arguments are the
// command.
static void take_argument(struct advise_options *o, char *argument, struct argp_state *state)
{
	int at = state->next - 1;
	bool quoted = state->quoted > 0 && at >= state->quoted;
	if (o->from && !quoted) {
		add_from(o, argument, state);
	} else if (!o->tries || quoted) {
		o->command = state->argv + at;
		state->next = state->argc;
	} else if (!o->run) {
		o->run = argument;
	} else {
		reading_option_error(state,
			"advise: expected one RUN; put a command behind --: strain advise --try -- "
			"%s",
			o->run);
	}
}

// Options of --from.
static error_t parse_from(int key, char *argument, struct argp_state *state)
{
	struct advise_options *o = state->input;
	struct error e = {0};
	const char *option = "";
	int result = 0;
	switch (key) {
	case OPTION_FROM:
		o->from = true;
		if (argument) {
			add_from(o, argument, state);
		}
		break;
	case OPTION_DISK_READ:
		option = "disk-read";
		result = parse_disk_read(argument, o, &e);
		break;
	case OPTION_GPU_MEMORY:
		option = "gpu-memory";
		result = parse_gpu_memory(argument, o, &e);
		break;
	case OPTION_GPU_SPEED:
		option = "gpu-speed";
		result = parse_factor(argument, &o->wanted.of[WHAT_IF_GPU_SPEED], &e);
		break;
	case OPTION_CPU_SPEED:
		option = "cpu-speed";
		result = parse_factor(argument, &o->wanted.of[WHAT_IF_CPU_SPEED], &e);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	if (result < 0) {
		reading_option_error(state, "--%s: %s", option, e.text);
	}
	return 0;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct advise_options *o = state->input;
	struct error e = {0};
	const char *option = "";
	int result = 0;
	switch (key) {
	case OPTION_STALLS:
		o->stalls = true;
		break;
	case OPTION_TRY:
		o->tries = true;
		break;
	case OPTION_JSON:
		o->json = true;
		break;
	case 'o':
		o->folder = argument;
		break;
	case OPTION_WITH:
		option = "with";
		result = parse_with(argument, o, &e);
		break;
	case OPTION_REPEATS:
		option = "repeats";
		o->repeats_given = true;
		result = parse_integer(
			argument, GAIN_REPEATS_MIN, TRIES_REPEATS_MOST - 1, &o->repeats, &e);
		break;
	case OPTION_TIME:
		option = "time";
		result = parse_time(argument, &o->time_ns, &e);
		break;
	case OPTION_ERROR:
		option = "error";
		result = parse_error(argument, o, &e);
		break;
	case OPTION_MEMORY:
		option = "memory";
		result = parse_memory(argument, o, &e);
		break;
	case OPTION_CPUS:
		option = "cpus";
		result = parse_integer(argument, 1, CPUS_MAX, &o->cpus, &e);
		break;
	case OPTION_SBATCH:
	case OPTION_DOCKER:
	case OPTION_KUBERNETES:
		add_request(o, REQUEST_SBATCH + (enum advise_request)(key - OPTION_SBATCH), state);
		break;
	case OPTION_VALIDATE:
		option = "validate";
		result = parse_validate(argument, o, &e);
		break;
	case OPTION_PATTERN:
		o->pattern = argument;
		break;
	case OPTION_SCALE:
		option = "scale-learning-rate";
		result = parse_scaling(argument, o, &e);
		break;
	case OPTION_LABEL:
		option = "label";
		result = parse_label(argument, o, &e);
		break;
	case OPTION_THESIS:
		o->thesis = true;
		break;
	case OPTION_VERIFY:
		o->verify = true;
		break;
	case OPTION_EPOCHS:
		option = "epochs";
		result = parse_integer(argument, 1, 1000000, &o->epochs, &e);
		break;
	case OPTION_PRICES:
		o->prices_path = argument;
		break;
	case OPTION_IN_PLACE:
		o->in_place = true;
		break;
	case OPTION_MARGIN:
		option = "margin";
		result = parse_margin(argument, o, &e);
		break;
	case OPTION_LIMIT:
		option = "limit";
		result = parse_time(argument, &o->limit_ns, &e);
		break;
	case ARGP_KEY_ARG:
		take_argument(o, argument, state);
		break;
	default:
		return parse_from(key, argument, state);
	}
	if (result < 0) {
		reading_option_error(state, "--%s: %s", option, e.text);
	}
	return 0;
}

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	interrupted = signal;
}

static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = interrupt};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGPIPE, &action, NULL); // who read the progress has ended
}

// Creates PROGRAM-DATE-TIME.advice in the current directory, or a -2, -3, ... of it. NULL: it
// cannot be created.
static char *make_named_folder(const struct advise_options *o)
{
	char name[256];
	name_of_run(o->command, time(NULL), name, sizeof(name));
	for (unsigned i = 1; i < 100; i++) {
		_cleanup_text_ struct text path = {0};
		text_format(&path, i > 1 ? "%s-%u.advice" : "%s.advice", name, i);
		if (path.data && mkdir(path.data, 0700) == 0) {
			return realpath(path.data, NULL);
		}
		if (errno != EEXIST) {
			break;
		}
	}
	return NULL;
}

// Creates a folder for the runs. NULL after it has printed the reason.
static char *make_folder(const struct advise_options *o)
{
	if (!o->folder && !o->stalls && !o->tries && !o->from) {
		char *named = make_named_folder(o);
		if (named) {
			return named;
		}
	}
	if (o->folder) {
		if (mkdir(o->folder, 0700) < 0) {
			command_fail(
				"cannot keep the runs: %s: %s", o->folder, strerrordesc_np(errno));
			return NULL;
		}
		return realpath(o->folder, NULL);
	}
	const char *parent = secure_getenv("TMPDIR");
	struct text path = {0};
	text_format(&path, "%s/strain-advise-XXXXXX", parent && *parent ? parent : "/tmp");
	char *folder = text_steal(&path);
	if (!folder || !mkdtemp(folder)) {
		command_fail("cannot create a folder for the runs: %s", strerrordesc_np(errno));
		free(folder);
		return NULL;
	}
	char *absolute = realpath(folder, NULL); // the job may run in another directory
	free(folder);
	return absolute;
}

static int finish(const struct advise_options *o, const struct stall_runs *runs,
	const struct probe_overlay *overlay)
{
	if (o->json) {
		if (json_write(advise_stalls_json(runs, overlay), stdout) < 0) {
			return command_fail("cannot write: %s", strerrordesc_np(errno));
		}
	} else {
		advise_stalls_print(runs);
	}
	return command_flush();
}

static int advise_stalls(const struct advise_options *o, const char *folder)
{
	struct stall_runs runs;
	struct error e = {0};
	struct probe_overlay overlay;
	if (!advise_overlay_find(NULL, folder, o->in_place, &overlay)) {
		return STATUS_FAILURE;
	}
	const struct stall_config config = {
		.command = o->command,
		.folder = folder,
		.overlay = &overlay,
		.error = o->error,
		.limit_ns = o->limit_ns ? o->limit_ns : STALLS_LIMIT_NS,
		.say = advise_say,
		.interrupted = &interrupted,
	};
	int result = stall_runs_make(&config, &runs, &e);
	int status = STATUS_FAILURE;
	if (result < 0) {
		command_fail("%s", e.text);
		if (runs.failed_output) {
			advise_print_tail(runs.failed_output);
		}
	} else {
		status = finish(o, &runs, &overlay);
	}
	stall_runs_done(&runs);
	probe_overlay_done(&overlay);
	return interrupted ? 128 + interrupted : status;
}

static int advise_tries(const struct advise_options *o, const char *folder)
{
	struct try_options t = {
		.run = o->run,
		.command = o->command,
		.n_with = o->n_with,
		.folder = folder,
		.error = o->error,
		.limit_ns = o->limit_ns ? o->limit_ns : TRY_LIMIT_NS,
		.time_ns = o->time_ns,
		.repeats = (unsigned)o->repeats,
		.json = o->json,
		.in_place = o->in_place,
		.interrupted = &interrupted,
	};
	memcpy(t.with, o->with, sizeof(t.with));
	int status = advise_try(&t);
	return interrupted ? 128 + interrupted : status;
}

// The words of an array without secrets; a new reference; NULL: out of memory.
static json_t *mask_words(const json_t *words)
{
	_cleanup_text_ struct text masked = {0};
	_cleanup_free_ char **list = calloc(json_array_size(words) + 1, sizeof(*list));
	for (size_t i = 0; list && i < json_array_size(words); i++) {
		// Only read.
		list[i] = (char *)(uintptr_t)json_string_value(json_array_get(words, i));
	}
	if (list) {
		secret_append_arguments(&masked, list);
	}
	return list && !masked.failed ? json_loads(masked.data, 0, NULL) : NULL;
}

// Keeps the answer as FOLDER/advice.json, without secrets. An exit status.
static int keep_answer(const json_t *answer, const char *folder)
{
	_cleanup_text_ struct text path = {0};
	struct error e = {0};
	text_format(&path, "%s/" KEPT_ADVICE_NAME, folder);
	json_t *json = json_deep_copy(answer);
	json_t *command = mask_words(json_object_get(answer, "command"));
	bool failed = json_object_set_new(json, "command", command) < 0;
	_cleanup_free_ char *whole = failed ? NULL : json_to_text(json);
	json_decref(json);
	if (!whole || path.failed) {
		return command_fail("out of memory");
	}
	return whole_file_write(path.data, whole, strlen(whole), &e) < 0
	               ? command_fail("%s", e.text)
	               : STATUS_OK;
}

// --- the cost of a million samples, which is not kept: prices change

struct advised_cost {
	double now, advised; // of a million samples; NAN: not known
	struct error why; // why `now` is not known
	unsigned line; // of the price list; 0: none
};

// Both by what the run of the present configuration held, since the others ran under limits of
// their own, and by the rates of the answer.
static void find_cost(
	const struct advise_options *o, const struct advice *a, struct advised_cost *ret)
{
	struct digest run = {0};
	bool other = a->measured && !a->keep;
	double now = advice_present_rate(a).value,
	       advised = other ? a->measured->seen.rate.value : NAN;
	*ret = (struct advised_cost){.now = NAN, .advised = NAN};
	if (digest_read(a->now->run, false, &run, &ret->why) < 0) {
		return;
	}
	if (prices_tell(o->prices, &run) == 0) {
		const struct price_entry *entry = prices_entry(o->prices, &run);
		const char *why = run.reasons[MEASURE_COST];
		ret->now = now > 0 ? prices_per_second(&run) * 1e6 / now : NAN;
		ret->advised = advised > 0 ? prices_per_second(&run) * 1e6 / advised : NAN;
		ret->line = entry ? entry->line : 0;
		error_set(&ret->why, ENODATA, "%s", why ? why : "the rate is not known");
	}
	digest_done(&run);
}

static void print_costs(const struct advise_options *o, const struct advice *a)
{
	struct advised_cost cost;
	_cleanup_text_ struct text line = {0};
	find_cost(o, a, &cost);
	if (isfinite(cost.now)) {
		prices_append_amount(&line, cost.now, o->prices->currency);
		text_append_string(&line, " for a million samples at ");
		words_append_number(&line, advice_present_rate(a).value);
		text_append_string(&line, " samples/s");
	} else {
		text_append_string(&line, "not known: ");
		text_append_printable(&line, cost.why.text, strlen(cost.why.text));
	}
	if (isfinite(cost.advised)) {
		text_append_string(&line, " now, ");
		prices_append_amount(&line, cost.advised, o->prices->currency);
		text_append_string(&line, " as advised");
	}
	if (cost.line > 0) {
		text_format(&line, " (%s:%u)", o->prices->path, cost.line);
	}
	printf("cost           %s\n", line.data ? line.data : "");
}

static json_t *costs_json(const struct advise_options *o, const struct advice *a)
{
	struct advised_cost cost;
	json_t *json = json_object();
	find_cost(o, a, &cost);
	json_object_set_new(json, "currency", json_from_text(o->prices->currency));
	json_object_set_new(json, "now", json_from_number(cost.now));
	json_object_set_new(json, "advised", json_from_number(cost.advised));
	json_object_set_new(
		json, "missing", json_from_text(isfinite(cost.now) ? NULL : cost.why.text));
	return json;
}

// A folder of the current directory by its name, another one by its path.
static const char *name_here(const char *folder)
{
	_cleanup_free_ char *here = realpath(".", NULL);
	size_t length = here ? strlen(here) : 0;
	const char *name = strrchr(folder, '/');
	bool within = name && here && (size_t)(name - folder) == length &&
	              strncmp(folder, here, length) == 0;
	return within ? name + 1 : folder;
}

// Keeps the answer and prints it.
static int write_answer(
	const struct advise_options *o, const struct advice *a, const struct advice_config *config)
{
	const char *folder = name_here(config->folder);
	json_t *json = advice_answer_json(a, config);
	advise_overlay_json(json, config->overlay);
	json_t *page = advice_answer_page(a, config, folder, o->thesis);
	if (json_object_set_new(json, "page", page) < 0) {
		json_decref(json);
		return command_fail("out of memory");
	}
	int status = keep_answer(json, config->folder);
	if (o->json) {
		if (o->prices) {
			json_object_set_new(json, "cost", costs_json(o, a));
		}
		if (json_write(json, stdout) < 0) {
			return command_fail("cannot write: %s", strerrordesc_np(errno));
		}
	} else if (o->request != REQUEST_NONE) {
		struct error e = {0};
		json_decref(json);
		if (advice_answer_request(stdout, a, config, o->request, &e) < 0) {
			return command_fail("%s", e.text);
		}
		if (o->prices) {
			fputs("# ", stdout);
			print_costs(o, a);
		}
	} else {
		json_decref(json);
		advice_answer_print(stdout, a, config, folder);
		if (o->thesis) {
			advice_answer_print_thesis(stdout, a);
		}
		if (o->prices) {
			print_costs(o, a);
		}
	}
	int written = command_flush();
	return status != STATUS_OK ? status : written;
}

// The first run failed. Says what of it is kept. If the run has no iterations and its output was
// printed, nothing is, unless the user has named the folder.
static void leave_failed(const struct advise_options *o, const struct advice *a, const char *folder)
{
	struct stat status;
	bool iterates = false;
	bool cut = a->failed_output && !interrupted && stat(a->failed_output, &status) == 0 &&
	           status.st_size > TAIL_BYTES;
	for (size_t i = 0; i < a->n; i++) {
		iterates = iterates || a->probes[i].seen.iterations > 0;
	}
	const char *here = name_here(folder);
	if (cut) {
		command_detail(
			"        all of its output: %s%s", here, strrchr(a->failed_output, '/'));
	}
	if (iterates) {
		_cleanup_text_ struct text path = {0}, word = {0};
		text_format(&path, "%s%s", here, strrchr(a->probes[a->n - 1].run, '/'));
		text_append_path(&word, path.data ? path.data : "");
		command_detail("        its run: strain show %s", word.data ? word.data : "");
	}
	if (cut || iterates) {
		return;
	}
	static const char *const endings[] = {".strain", ".out"};
	for (size_t i = 0; i < 2 * (a->n + 1) && !o->folder; i++) {
		_cleanup_text_ struct text path = {0};
		text_format(&path, "%s/%02zu-%s%s", folder, i / 2 + 1, advice_step_name(ADVICE_NOW),
			endings[i % 2]);
		if (path.data) {
			unlink(path.data);
		}
	}
	if (!o->folder) {
		rmdir(folder);
	}
}

static int advise_all(const struct advise_options *o, const char *folder)
{
	struct advice *a = calloc(1, sizeof(*a));
	struct error e = {0};
	struct probe_overlay overlay;
	const struct advice_config config = {
		.command = o->command,
		.folder = folder,
		.labels = o->labels,
		.n_labels = o->n_labels,
		.overlay = &overlay,
		.memory_bytes = o->memory_bytes,
		.gpu_memory_bytes = o->gpu_memory_bytes,
		.cpus = (unsigned)o->cpus,
		.margin = o->margin,
		.error = o->error,
		.limit_ns = o->limit_ns ? o->limit_ns : STALLS_LIMIT_NS,
		.time_ns = o->time_ns,
		.converge_ns = o->converge_ns,
		.pattern = o->pattern,
		.scaling = o->scaling,
		.epochs = (uint64_t)o->epochs,
		.verify = o->verify,
		.say = advise_say,
		.interrupted = &interrupted,
	};
	if (!a) {
		return command_fail("out of memory");
	}
	if (!advise_overlay_find(NULL, folder, o->in_place, &overlay)) {
		leave_failed(o, a, folder);
		free(a);
		return STATUS_FAILURE;
	}
	int status = STATUS_FAILURE, result = advice_make(&config, a, &e);
	if (result < 0) {
		command_fail("%s", e.text);
		if (a->failed_output && !interrupted) {
			advise_print_tail(a->failed_output);
		}
	}
	if (a->now) {
		int written = write_answer(o, a, &config);
		status = result < 0 ? STATUS_FAILURE : written;
	}
	probe_overlay_done(&overlay);
	if (!a->now) {
		leave_failed(o, a, folder);
	}
	advice_done(a);
	free(a);
	return interrupted ? 128 + interrupted : status;
}

static int advise_from(struct advise_options *o, const char *folder)
{
	struct what_if_options w = {
		.runs = o->runs,
		.n_runs = o->n_runs,
		.wanted = o->wanted,
		.json = o->json,
		.verify = o->verify,
		.in_place = o->in_place,
		.command = o->command,
		.folder = folder,
		.error = o->error,
		.limit_ns = o->limit_ns,
		.interrupted = &interrupted,
	};
	w.wanted.of[WHAT_IF_CPUS] = o->cpus > 0 ? (double)o->cpus : NAN;
	w.wanted.of[WHAT_IF_MEMORY] = o->memory_bytes > 0 ? (double)o->memory_bytes : NAN;
	if (!reading_find_all(o->runs, o->n_runs, RUN_NAME_ANY)) {
		return STATUS_FAILURE;
	}
	int status = advise_what_if(&w);
	for (size_t i = 0; i < o->n_runs; i++) {
		free(o->runs[i]);
	}
	return interrupted ? 128 + interrupted : status;
}

// The questions that an option belongs to.
enum { OF_ADVICE = 1, OF_STALLS = 2, OF_TRY = 4, OF_FROM = 8 };

// Finds an option that the question does not have: it would change nothing.
static int check_questions(const struct advise_options *o, struct error *e)
{
	const double *wanted = o->wanted.of;
	const struct {
		const char *name;
		bool given;
		unsigned of;
	} uses[] = {
		{"--memory", o->memory_bytes > 0, OF_ADVICE | OF_FROM},
		{"--cpus", o->cpus > 0, OF_ADVICE | OF_FROM},
		{"--gpu-memory", o->gpu_memory_bytes > 0, OF_ADVICE},
		{"--margin", o->margin > 0, OF_ADVICE},
		{"--sbatch", o->request == REQUEST_SBATCH, OF_ADVICE},
		{"--docker", o->request == REQUEST_DOCKER, OF_ADVICE},
		{"--kubernetes", o->request == REQUEST_KUBERNETES, OF_ADVICE},
		{"--epochs", o->epochs > 0, OF_ADVICE},
		{"--verify", o->verify, OF_ADVICE | OF_FROM},
		{"--validate", o->converge_ns > 0, OF_ADVICE},
		{"--thesis", o->thesis, OF_ADVICE},
		{"--label", o->n_labels > 0, OF_ADVICE},
		{"--prices", o->prices_path != NULL, OF_ADVICE},
		{"--with", o->n_with > 0, OF_TRY},
		{"--repeats", o->repeats_given, OF_TRY},
		{"--disk-read", isfinite(wanted[WHAT_IF_DISK_READ]), OF_FROM},
		{"--gpu-speed", isfinite(wanted[WHAT_IF_GPU_SPEED]), OF_FROM},
		{"--cpu-speed", isfinite(wanted[WHAT_IF_CPU_SPEED]), OF_FROM},
	};
	unsigned asked = o->from ? OF_FROM : o->stalls ? OF_STALLS : o->tries ? OF_TRY : OF_ADVICE;
	const char *question = o->from ? "--from" : o->stalls ? "--stalls" : "--try";
	if ((o->from != 0) + o->stalls + o->tries > 1) {
		return error_set(e, EINVAL, "expected one of --from, --stalls and --try");
	}
	for (size_t i = 0; i < ARRAY_LENGTH(uses); i++) {
		if (uses[i].given && !(uses[i].of & asked)) {
			bool needs = asked == OF_ADVICE;
			return error_set(e, EINVAL, "%s %s %s", uses[i].name,
				needs ? "needs" : "cannot be combined with",
				!needs                 ? question
				: uses[i].of == OF_TRY ? "--try"
						       : "--from");
		}
	}
	return 0;
}

// Checks options that depend on each other.
static int check_options(const struct advise_options *o, struct error *e)
{
	double unused;
	bool command = o->command && o->command[0], scales = o->scaling != ADVICE_SCALE_NONE;
	int r = check_questions(o, e);
	if (r < 0) {
		return r;
	}
	const struct {
		bool wrong;
		const char *why;
	} checks[] = {
		{o->from && o->n_runs == 0, "--from: expected a run"},
		{o->from && o->command && !o->verify, "--from takes a command only with --verify"},
		{o->from && o->folder && !o->verify,
			"--from keeps no runs: --output needs --verify"},
		{o->json && o->request != REQUEST_NONE,
			"--json cannot be combined with --sbatch, --docker or --kubernetes"},
		{o->epochs > 0 && !o->json && o->request != REQUEST_SBATCH,
			"--epochs needs --sbatch or --json, which have the time of a job"},
		{(o->pattern || scales) && !o->converge_ns,
			"--epoch-pattern and --scale-learning-rate need --validate"},
		{scales && !(command &&
				   placeholders_has(
					   o->command, PLACEHOLDER_LEARNING_RATE, &unused) &&
				   unused > 0),
			"--scale-learning-rate needs {learning_rate=X} in the command"},
		{!o->from && ((!o->tries && !command) || (o->command && !command)),
			"expected a command to run"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(checks); i++) {
		if (checks[i].wrong) {
			return error_set(e, EINVAL, "%s", checks[i].why);
		}
	}
	return 0;
}

// Checks what only the machine and the command tell, before anything runs.
static int check_values(const struct advise_options *o, struct error *e)
{
	bool alone = !o->from && !o->tries && !o->stalls;
	_cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (alone && o->cpus > 0 && limits_check_cpus((unsigned)o->cpus, root, e) < 0) {
		return error_prefix(e, "--cpus");
	}
	return o->command && placeholders_check(o->command, e) < 0 ? error_prefix(e, "advise") : 0;
}

static void free_filled(char ***command)
{
	placeholders_free(*command);
}

int command_advise(int argc, char **argv)
{
	static const struct argp argp = {options, parse_option,
		"[--] COMMAND...\n--stalls [--] COMMAND...\n--try [RUN] [-- COMMAND...]\n"
		"--from RUN...",
		"Find, with short runs of a job, the largest batch that fits, the fastest batch "
		"size and number of workers, and the effect of more CPUs.\vCOMMAND may contain "
		"the placeholders {batch_size} (or {batch_size=32}, with the present value) and "
		"{workers}. Without them, the hooks set both in PyTorch's loaders, and the batch "
		"size in Keras' fit. Hooks shorten the epochs, so that a short run contains "
		"validation and a second epoch.\n\n"
		"--stalls runs the unmodified job with its data in the page cache (warm), with "
		"prepared batches reused (compute), and with its data dropped from the page cache "
		"(cold).\n\n"
		"--try tries each setting separately, then those that gained together, and writes "
		"the results into RUN. The default RUN is the newest one. With a command and no "
		"RUN, a first run gives the verdict.\n\n"
		"strain interrupts the job when its rate is known. With --in-place the job may "
		"leave files behind, as after Ctrl-C.",
		NULL, NULL, NULL};
	struct advise_options o = {.error = 0.03,
		.time_ns = 600 * NS_PER_S,
		.repeats = 3,
		.wanted = what_if_unchanged()};
	reading_options_before(&argp, argc, argv, &o);
	struct error e = {0};
	if (check_options(&o, &e) < 0) {
		return command_usage("advise", "advise: %s", e.text);
	}
	if (check_values(&o, &e) < 0) {
		return command_usage("advise", "%s", e.text);
	}
	int missing = o.command ? command_check_program(o.command[0], getenv("PATH")) : 0;
	if (missing) {
		command_cannot_run(o.command[0], missing, &e);
		return command_fail("%s", e.text);
	}
	_cleanup_(prices_done) struct prices room;
	if (!reading_prices(o.prices_path, &room, &o.prices)) {
		return STATUS_FAILURE;
	}
	// These run the present configuration only.
	_cleanup_(free_filled) char **filled = NULL;
	if (o.command && (o.from || o.tries || o.stalls)) {
		filled = placeholders_fill(
			o.command, &(struct placeholder_values){.batch_size = -1, .workers = -1});
		if (!filled) {
			return command_fail("out of memory");
		}
		o.command = filled;
	}
	bool runs = !o.from || o.verify;
	_cleanup_free_ char *folder = runs ? make_folder(&o) : NULL;
	if (runs && !folder) {
		return STATUS_FAILURE;
	}
	catch_signals();
	int status = o.from     ? advise_from(&o, folder)
	             : o.tries  ? advise_tries(&o, folder)
	             : o.stalls ? advise_stalls(&o, folder)
	                        : advise_all(&o, folder);
	if (!o.folder && folder && (o.tries || o.stalls || o.from)) {
		probe_remove_folder(folder);
	}
	return status;
}
