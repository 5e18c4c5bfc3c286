// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs probes in turns.

#include "probe/tries.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/installation.h"
#include "base/secret.h"
#include "run/statistics.h"
#include "base/text.h"
#include "runfile/reader.h"

// Gain --------------------------------------------------------------------------------------------
//
// Ratios of rates.

struct estimate tries_gain(
	const double *without, size_t n_without, const double *with, size_t n_with)
{
	struct repeats a = statistics_of(without, n_without), b = statistics_of(with, n_with);
	struct estimate gain = {NAN, NAN, NAN};
	if (!(a.mean > 0) || !(b.mean > 0)) {
		return gain;
	}
	gain.value = b.mean / a.mean;
	double half = statistics_ratio(&a, &b);
	if (isfinite(half)) {
		gain.low = gain.value / exp(half);
		gain.high = gain.value * exp(half);
	}
	return gain;
}

unsigned design_probes(struct design design)
{
	unsigned together = design.candidates > 1 ? 2 * design.repeats : 0;
	return design.repeats * (design.candidates + 1) + together;
}

struct design design_fit(struct design wanted, double seconds_each, double seconds_left)
{
	struct design fits = wanted;
	while (design_probes(fits) * seconds_each > seconds_left) {
		if (fits.repeats > GAIN_REPEATS_MIN) {
			fits.repeats--;
		} else if (fits.candidates > 1) {
			fits.candidates--;
		} else {
			break;
		}
	}
	return fits;
}

unsigned design_turn(struct design design, unsigned round, unsigned i)
{
	return round % 2 == 0 ? i : design.candidates - 1 - i;
}

// Tries -------------------------------------------------------------------------------------------

enum { STRINGS_MOST = 64 };

// A probe was cold if it fetched a larger share of its reads from storage while it iterated, and at
// least so many bytes per second: less slows no job.
#define COLD_FETCHED 0.02
#define COLD_LEAST 1e5

// Strings, terminated by NULL; all are owned.
struct strings {
	char *items[STRINGS_MOST + 1];
	size_t n;
	bool failed;
};

static void strings_add(struct strings *s, struct text *text)
{
	char *made = s->n < STRINGS_MOST ? text_steal(text) : NULL;
	text_done(text);
	s->failed = s->failed || !made;
	if (made) {
		s->items[s->n++] = made;
	}
}

static void strings_add_all(struct strings *s, const char *const *from)
{
	for (; from && *from; from++) {
		struct text copy = {0};
		text_append_string(&copy, *from);
		strings_add(s, &copy);
	}
}

static void strings_done(struct strings *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->items[i]);
	}
}
#define _cleanup_strings_ __attribute__((cleanup(strings_done)))

static void set_missing(struct candidate *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void set_missing(struct candidate *c, const char *format, ...)
{
	char *reason = NULL;
	va_list arguments;
	va_start(arguments, format);
	if (vasprintf(&reason, format, arguments) < 0) {
		reason = NULL;
	}
	va_end(arguments);
	free(c->result.missing);
	c->result.missing = reason;
}

// Settings of a probe -----------------------------------------------------------------------------

static bool is_of_hooks(enum setting_kind kind)
{
	return kind == SETTING_WORKERS || kind == SETTING_PREFETCH || kind == SETTING_PIN ||
	       kind == SETTING_PERSISTENT || kind == SETTING_FLUSH_DENORMAL;
}

static bool sets_by_hooks(const struct setting_list *settings)
{
	for (size_t i = 0; i < settings->n; i++) {
		if (is_of_hooks(settings->items[i].kind)) {
			return true;
		}
	}
	return false;
}

// Sets "STRAIN_SET=num_workers=2 at=train.py:42", for hooks/python/strain_set.py.
static void add_for_hooks(
	const struct tries *t, const struct setting_list *settings, struct strings *s)
{
	struct text set = {0};
	if (!sets_by_hooks(settings)) {
		return;
	}
	text_append_string(&set, "STRAIN_SET=");
	for (size_t i = 0; i < settings->n; i++) {
		if (is_of_hooks(settings->items[i].kind)) {
			text_format(&set, "%s=%s ", setting_kind_name(settings->items[i].kind),
				settings->items[i].value);
		}
	}
	if (t->loader_at) {
		text_format(&set, "at=%s", t->loader_at);
	}
	strings_add(s, &set);
}

static void find_environment(
	const struct tries *t, const struct setting_list *settings, struct strings *ret)
{
	strings_add_all(ret, t->config->environment);
	for (size_t i = 0; i < settings->n; i++) {
		if (settings->items[i].kind == SETTING_ENVIRONMENT) {
			strings_add_all(ret, (const char *const[]){settings->items[i].value, NULL});
		}
	}
	add_for_hooks(t, settings, ret);
}

// The last option counts. A single number would mean a number of CPUs, so it is written as a range.
static void add_cpus(const char *list, struct strings *s)
{
	struct text value = {0};
	text_append_string(&value, list);
	if (!strpbrk(list, ",-")) {
		text_format(&value, "-%s", list);
	}
	strings_add_all(s, (const char *const[]){"--cpus", NULL});
	strings_add(s, &value);
}

// The CPUs of a setting; NULL: all that this process may use.
static const char *find_cpus(const struct setting_list *settings)
{
	for (size_t i = 0; i < settings->n; i++) {
		if (settings->items[i].kind == SETTING_CPUS) {
			return settings->items[i].value;
		}
	}
	return NULL;
}

static void find_options(
	const struct tries *t, const struct setting_list *settings, struct strings *ret)
{
	strings_add_all(ret, (const char *const[]){"--no-verdict", NULL});
	strings_add_all(ret, t->config->options);
	if (find_cpus(settings)) {
		add_cpus(find_cpus(settings), ret);
	}
}

// Whether the run records these settings.
static bool run_has(struct reader *reader, const struct setting_list *settings)
{
	static const char *const keys[N_SETTING_KINDS] = {
		[SETTING_WORKERS] = "loader_workers",
		[SETTING_PREFETCH] = "loader_prefetch_factor",
		[SETTING_PIN] = "loader_pin_memory",
		[SETTING_PERSISTENT] = "loader_persistent_workers",
		[SETTING_FLUSH_DENORMAL] = "optimizer_flush_denormal",
	};
	bool has = reader_run(reader, "loader_set") != NULL;
	for (size_t i = 0; has && i < settings->n; i++) {
		const char *key = keys[settings->items[i].kind];
		const char *value = key ? reader_run(reader, key) : NULL;
		has = !key || (value && strcmp(value, settings->items[i].value) == 0);
	}
	return has;
}

// Checks that the settings were applied, else sets the reason and returns false: they were not
// tried.
static bool was_applied(struct candidate *c, const char *run)
{
	struct reader *reader = NULL;
	if (!sets_by_hooks(&c->result.settings)) {
		return true;
	}
	if (reader_open(run, &reader, NULL) < 0) {
		set_missing(c, "its run cannot be read");
		return false;
	}
	bool applied = run_has(reader, &c->result.settings);
	if (!applied) {
		const char *why = reader_run(reader, "loader_set_missing");
		why = why ? why : reader_run(reader, "hooks_missing");
		set_missing(c, "the loader was not created with these settings: %s",
			why ? why
			    : "no hook saw the training loader that the unmodified job "
			      "creates");
	}
	reader_free(reader);
	return applied;
}

// A probe -----------------------------------------------------------------------------------------

static double seconds_since(uint64_t start_ns)
{
	return (double)(clock_monotonic_ns() - start_ns) / 1e9;
}

static char *path_of(const struct tries *t, const char *ending)
{
	struct text path = {0};
	text_format(&path, "%s/probe-%02u%s", t->config->folder, t->probes + 1, ending);
	return text_steal(&path);
}

static void describe_status(int status, char *buffer, size_t size)
{
	if (WIFSIGNALED(status)) {
		snprintf(buffer, size, "signal %d", WTERMSIG(status));
	} else {
		snprintf(buffer, size, "exit status %d", WEXITSTATUS(status));
	}
}

// Sets the reason why strain run started nothing: the end of its output.
static void take_refusal(struct candidate *c, const char *output)
{
	char end[400] = "";
	_cleanup_fclose_ FILE *file = fopen(output, "re");
	for (char line[400]; file && fgets(line, sizeof(line), file);) {
		memcpy(end, line, sizeof(end));
	}
	end[strcspn(end, "\n")] = '\0';
	_cleanup_text_ struct text said = {0}, masked = {0};
	text_append_utf8(&said, end, strlen(end));
	// masked, since a run stores it
	secret_append_text(&masked, said.data ? said.data : "", said.length);
	set_missing(c, "nothing was recorded: %s", masked.data ? masked.data : "");
}

// Takes the result of a probe: a rate, or the reason why there is none. A failure of the job is an
// error only without settings.
static int take_probe(struct tries *t, struct candidate *c, const struct probe *probe,
	const char *run, struct error *e)
{
	char status[32];
	const struct probe_rate *rate = &probe->rate;
	bool first = t->probes == 1;
	if (probe->end == PROBE_INTERRUPTED) {
		t->interrupted = true;
		return 0;
	}
	if (probe->end == PROBE_JOB_FAILED) {
		describe_status(probe->status, status, sizeof(status));
		set_missing(c, "the job failed (%s)", status);
		return error_set(e, ECHILD, "the job failed (%s)", status);
	}
	if (!isfinite(rate->rate.value)) {
		set_missing(c, "no rate: %s", probe->no_rate ? probe->no_rate : "no iterations");
		return error_set(e, ENODATA, "%s", c->result.missing ? c->result.missing : "");
	}
	if (probe_is_primed(probe)) {
		set_missing(c,
			"%" PRIu64 " iterations are too few: %" PRIu64
			" batches were prepared ahead",
			rate->iterations, probe->ahead);
		return error_set(e, ENODATA, "%s", c->result.missing ? c->result.missing : "");
	}
	if (!first && rate->of_samples != t->of_samples) {
		set_missing(c, "only one of the runs counts samples");
		return error_set(e, ENODATA, "only some of the runs count samples");
	}
	t->of_samples = rate->of_samples;
	if (c == &t->without && c->n < ARRAY_LENGTH(t->stored_rate)) {
		t->stored_rate[c->n] = probe->stored_rate;
		t->asked_rate[c->n] = probe->asked_rate;
	}
	if (was_applied(c, run)) {
		c->rates[c->n++] = rate->rate.value;
		c->result.probes++;
	}
	return 0;
}

static int probe(struct tries *t, struct candidate *c, struct error *e)
{
	const struct tries_config *config = t->config;
	_cleanup_free_ char *run = path_of(t, ".strain"), *output = path_of(t, ".out");
	_cleanup_strings_ struct strings environment = {0}, options = {0};
	struct probe probe;
	find_environment(t, &c->result.settings, &environment);
	find_options(t, &c->result.settings, &options);
	if (!run || !output || environment.failed || options.failed) {
		return error_set(e, ENOMEM, "out of memory");
	}
	int result = probe_run(&(struct probe_config){.strain = t->strain,
				       .command = config->command,
				       .run = run,
				       .output = output,
				       .directory = config->directory,
				       .overlay = config->overlay,
				       .options = (const char *const *)options.items,
				       .cpus = find_cpus(&c->result.settings),
				       .environment = (const char *const *)environment.items,
				       .error = config->error,
				       .seconds = t->probes == 0 ? config->first_seconds : 0,
				       .limit_ns = config->limit_ns,
				       .interrupted = config->interrupted},
		&probe, e);
	t->probes++;
	if (result < 0) {
		take_refusal(c, output);
	} else {
		if (t->probes == 1) {
			probe_note_end(&probe, run);
		}
		result = take_probe(t, c, &probe, run, e);
		probe_done(&probe);
	}
	if (result < 0) {
		free(t->failed_output);
		t->failed_output = take_pointer(output);
	}
	if (t->probes == 1) {
		t->first_run = take_pointer(run);
	}
	t->seconds = seconds_since(t->start_ns);
	return result;
}

// In turns ----------------------------------------------------------------------------------------

struct turns {
	struct tries *t;
	unsigned left; // remaining probes
};

static double seconds_each(const struct tries *t)
{
	return t->seconds / fmax(1, t->probes);
}

static void say_probe(const struct turns *turns, const struct candidate *c)
{
	const struct tries *t = turns->t;
	char left[32];
	_cleanup_text_ struct text line = {0};
	text_format(&line, "probe %u of %u, about %s left: ", t->probes + 1,
		t->probes + turns->left,
		text_seconds(left, sizeof(left), turns->left * seconds_each(t)));
	if (c->result.settings.n == 0) {
		text_append_string(&line, "the unmodified job");
	} else {
		setting_append(&line, &c->result.settings);
	}
	t->config->say(line.data ? line.data : "");
}

// Whether there is time for another probe.
static bool goes_on(struct turns *turns)
{
	struct tries *t = turns->t;
	t->interrupted = t->interrupted || *t->config->interrupted;
	t->out_of_time = t->out_of_time ||
	                 seconds_since(t->start_ns) * 1e9 >= (double)t->config->time_ns;
	return !t->interrupted && !t->out_of_time;
}

// Returns -errno only if the job failed without settings, or out of memory.
static int take_turn(struct turns *turns, struct candidate *c, struct error *e)
{
	struct error why = {0};
	bool unmodified = c == &turns->t->without;
	turns->left = turns->left > 0 ? turns->left : 1;
	if (c->result.missing) {
		turns->left--; // it failed before and would fail again
		return 0;
	}
	say_probe(turns, c);
	int result = probe(turns->t, c, &why);
	turns->left--;
	if (result < 0 && !unmodified) {
		return result == -ENOMEM ? error_set(e, ENOMEM, "out of memory") : 0;
	}
	return result < 0 ? error_set(e, -result, "unmodified: %.200s", why.text) : 0;
}

// Rounds of the candidates from `first` on; each round ends with an unmodified probe.
static int make_rounds(struct turns *turns, size_t first, struct design design, struct error *e)
{
	struct tries *t = turns->t;
	for (unsigned round = 0; round < design.repeats; round++) {
		for (unsigned i = 0; i < design.candidates; i++) {
			struct candidate *c = &t->items[first + design_turn(design, round, i)];
			int result = goes_on(turns) ? take_turn(turns, c, e) : 0;
			if (result < 0) {
				return result;
			}
		}
		int result = goes_on(turns) ? take_turn(turns, &t->without, e) : 0;
		if (result < 0) {
			return result;
		}
	}
	return 0;
}

static bool add(struct tries *t, const struct tried *wanted, size_t most)
{
	if (wanted->settings.n == 0 || t->n >= most) {
		return false;
	}
	for (size_t i = 0; i < t->n; i++) {
		if (setting_same(&t->items[i].result.settings, &wanted->settings)) {
			return false;
		}
	}
	struct tried *result = &t->items[t->n].result;
	t->items[t->n++] = (struct candidate){0};
	*result = *wanted;
	result->gain = (struct estimate){NAN, NAN, NAN};
	result->probes = 0;
	result->missing = NULL;
	return true;
}

bool tries_first_is_cold(const struct tries *t)
{
	double stored = t->stored_rate[0];
	return t->without.n > GAIN_REPEATS_MIN && stored >= COLD_LEAST &&
	       stored > COLD_FETCHED * t->asked_rate[0] && t->stored_rate[1] < stored / 2;
}

// If the job failed once with these settings, their gain is not known.
static void find_gain(const struct tries *t, struct candidate *c)
{
	if (!c->result.missing && c->n < GAIN_REPEATS_MIN) {
		set_missing(c, t->interrupted ? "interrupted" : "no time was left");
	}
	if (!c->result.missing) {
		size_t first = tries_first_is_cold(t);
		c->result.gain = tries_gain(
			t->without.rates + first, t->without.n - first, c->rates, c->n);
	}
}

static void find_gains(struct tries *t)
{
	for (size_t i = 0; i < t->n; i++) {
		find_gain(t, &t->items[i]);
	}
}

struct gained {
	double gain;
	size_t index; // of the candidate
};

static int compare_gains(const void *left, const void *right)
{
	const struct gained *a = left, *b = right;
	return (a->gain < b->gain) - (a->gain > b->gain);
}

// Joins all settings that gained, except those that contradict settings that gained more.
static bool join_gains(const struct tries *t, struct setting_list *ret)
{
	struct gained gained[TRIES_MOST];
	size_t n = 0, joined = 0;
	for (size_t i = 0; i < t->n; i++) {
		if (tried_gained(&t->items[i].result)) {
			gained[n++] = (struct gained){t->items[i].result.gain.value, i};
		}
	}
	qsort(gained, n, sizeof(*gained), compare_gains);
	*ret = (struct setting_list){0};
	for (size_t i = 0; i < n; i++) {
		joined += setting_join(ret, &t->items[gained[i].index].result.settings, ret);
	}
	return joined > 1;
}

// Returns 0 also if there is nothing to try together.
static int make_together(struct turns *turns, unsigned repeats, struct error *e)
{
	struct tries *t = turns->t;
	struct tried joined = {.promised = {NAN, NAN, NAN}};
	if (!join_gains(t, &joined.settings) || !goes_on(turns) ||
		!add(t, &joined, ARRAY_LENGTH(t->items))) {
		return 0;
	}
	t->together = true;
	turns->left = 2 * repeats;
	int result = make_rounds(turns, t->n - 1, (struct design){1, repeats}, e);
	find_gain(t, &t->items[t->n - 1]);
	return result;
}

int tries_make(struct tries *t, struct error *e)
{
	const struct design wanted = {(unsigned)t->n, t->config->repeats};
	double left = (double)t->config->time_ns / 1e9 - seconds_since(t->start_ns);
	struct design design = design_fit(wanted, seconds_each(t), left);
	struct turns turns = {t, design_probes(design)};
	if (t->n == 0) {
		return 0;
	}
	int result = make_rounds(&turns, 0, design, e);
	find_gains(t);
	result = result < 0 ? result : make_together(&turns, design.repeats, e);
	t->out_of_time = t->out_of_time || design.candidates < wanted.candidates ||
	                 design.repeats < wanted.repeats;
	return result;
}

// Life --------------------------------------------------------------------------------------------

int tries_begin(const struct tries_config *config, struct tries *ret, struct error *e)
{
	*ret = (struct tries){.config = config, .start_ns = clock_monotonic_ns()};
	ret->strain = installation_find("strain", X_OK, e);
	if (!ret->strain) {
		return -ENOENT;
	}
	config->say("the unmodified job, to measure its rate and the duration of a probe");
	int result = probe(ret, &ret->without, e);
	if (result == 0 && ret->interrupted) {
		result = error_set(e, EINTR, "interrupted");
	}
	struct reader *reader = NULL;
	if (result == 0 && reader_open(ret->first_run, &reader, NULL) == 0) {
		const char *at = reader_run(reader, "loader_at");
		ret->loader_at = at ? strdup(at) : NULL;
		reader_free(reader);
	}
	return result;
}

bool tries_add(struct tries *t, const struct tried *wanted)
{
	return add(t, wanted, TRIES_MOST);
}

void tries_done(struct tries *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->items[i].result.missing);
	}
	free(t->without.result.missing);
	free(t->strain);
	free(t->loader_at);
	free(t->first_run);
	free(t->failed_output);
	*t = (struct tries){0};
}
