// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Progress of a sweep.

#include "cmd/sweep_progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "analyze/catalogue.h"
#include "analyze/words.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/sweep_text.h"
#include "experiment/attempt.h"
#include "experiment/forecast.h"
#include "experiment/sweep.h"

#define SHOW_EVERY_NS (NS_PER_S / 2)
#define LABEL_COLUMNS 60 // of the line that changes
#define LABEL_COLUMNS_MOST 200

// Before -----------------------------------------------------------------------------------------

// What the plan allows a trial at most; 0: no limit.
static double longest_s(const struct plan *plan)
{
	return plan->stop.seconds > 0 && plan->timeout_s > 0
	               ? fmin(plan->stop.seconds, plan->timeout_s)
	               : fmax(plan->stop.seconds, plan->timeout_s);
}

static double trial_s(const struct sweep_progress *p, size_t index)
{
	double most = longest_s(&p->sweep->plan);
	double seconds = p->forecast ? forecast_seconds(p->forecast,
					       p->sweep->trials.order[index].configuration)
	                             : NAN;
	return most > 0 && seconds > most ? most : seconds;
}

static void add_up(struct sweep_progress *p)
{
	p->left_s = 0;
	for (size_t i = 0; i < p->sweep->trials.n; i++) {
		p->left_s += p->sweep->done[i] ? 0 : trial_s(p, i);
	}
}

// "0007-2"; 0: no trial of this plan.
static size_t configuration_of(const struct sweep *sweep, const char *name)
{
	struct cursor c = cursor_of(name, strlen(name));
	uint64_t configuration;
	return cursor_u64(&c, &configuration) && configuration <= sweep->trials.n_configurations
	               ? (size_t)configuration
	               : 0;
}

// One that failed took less than those like it will, or more.
static bool tells_time(enum outcome outcome)
{
	return outcome_is_success(outcome) || outcome == OUTCOME_TIME_LIMIT;
}

// The runs that are there tell how long trials take. Returns their bytes, on average; NAN: none.
static double learn_from_runs(struct sweep_progress *p)
{
	struct catalogue catalogue;
	char *const paths[] = {p->sweep->directory};
	const struct catalogue_options options = {.job_only = true};
	if (p->sweep->n_done == 0 ||
		catalogue_read_with(paths, 1, &options, &catalogue, NULL) < 0) {
		return NAN;
	}
	double bytes = 0;
	size_t n = 0;
	for (size_t i = 0; i < catalogue.n; i++) {
		struct stat status;
		double duration = catalogue.runs[i].measures[MEASURE_DURATION];
		size_t configuration = configuration_of(p->sweep, catalogue.runs[i].name);
		if (isfinite(duration) && stat(catalogue.runs[i].path, &status) == 0) {
			bytes += (double)status.st_size;
			n++;
		}
		if (isfinite(duration) && configuration > 0 && p->forecast &&
			tells_time(catalogue.runs[i].outcome)) {
			forecast_learn(p->forecast, configuration, duration);
		}
	}
	catalogue_done(&catalogue);
	return n > 0 ? bytes / (double)n : NAN;
}

static void append_time(struct text *t, const struct sweep_progress *p)
{
	double most = longest_s(&p->sweep->plan);
	if (isfinite(p->left_s)) {
		text_append_string(t, "about ");
		words_append_seconds(t, p->left_s);
		return;
	}
	text_append_string(t, "time not known until the first has run");
	if (most > 0) {
		text_append_string(t, " (at most ");
		words_append_seconds(t, most * (double)p->to_run);
		text_append_string(t, ")");
	}
}

static void append_disk(struct text *t, const struct sweep_progress *p, double bytes)
{
	struct statvfs status;
	double free_bytes = NAN;
	if (statvfs(p->sweep->directory, &status) == 0) {
		free_bytes = (double)status.f_bavail * (double)status.f_frsize;
	}
	if (isfinite(bytes)) {
		text_append_string(t, "; disk: about ");
		words_append_bytes(t, bytes * (double)p->to_run);
	} else {
		text_append_string(t, "; disk: at most 256 MiB each");
	}
	if (isfinite(free_bytes)) {
		text_append_string(t, ", ");
		words_append_bytes(t, free_bytes);
		text_append_string(t, " free");
		if (bytes * (double)p->to_run > free_bytes) {
			text_append_string(t, ": TOO LITTLE");
		}
	}
}

void sweep_progress_begin(struct sweep_progress *p, const struct sweep *sweep)
{
	_cleanup_text_ struct text line = {0};
	*p = (struct sweep_progress){
		.sweep = sweep,
		.forecast = forecast_new(&sweep->trials),
		.terminal = isatty(STDERR_FILENO),
		.done = sweep->n_done,
		.to_run = sweep->trials.n - sweep->n_done,
	};
	double bytes = learn_from_runs(p);
	add_up(p);
	sweep_append_counts(&line, sweep);
	if (p->to_run > 0) {
		text_append_string(&line, ": ");
		append_time(&line, p);
		append_disk(&line, p, bytes);
	}
	sweep_say(line.data ? line.data : "");
}

// While ------------------------------------------------------------------------------------------

static void append_labels(struct text *t, const struct sweep *sweep, size_t index, size_t columns)
{
	_cleanup_text_ struct text labels = {0};
	struct trial_place place = sweep->trials.order[index];
	for (size_t f = 0; f < sweep->plan.n_factors; f++) {
		if (sweep->plan.factors[f].n_values != 1) { // what is the same everywhere says
			                                    // nothing
			text_format(&labels, "%s%s=%s", labels.length > 0 ? " " : "",
				sweep->plan.factors[f].name,
				trials_value(&sweep->trials, place.configuration, f));
		}
	}
	words_append_elided(t, labels.data ? labels.data : "", columns);
}

static void append_whole_seconds(struct text *t, double seconds)
{
	if (seconds < 100) {
		text_format(t, "%.0f s", seconds);
	} else {
		words_append_seconds(t, round(seconds));
	}
}

static void append_left(struct text *t, double seconds)
{
	if (isfinite(seconds)) {
		text_append_string(t, "; ");
		append_whole_seconds(t, fmax(seconds, 1));
		text_append_string(t, " left");
	}
}

void sweep_progress_trial(struct sweep_progress *p, size_t index)
{
	p->index = index;
	p->trial_start_ns = clock_monotonic_ns();
	p->shown_ns = 0;
	sweep_progress_tick(p);
}

static size_t terminal_columns(void)
{
	struct winsize size;
	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

void sweep_progress_tick(void *context)
{
	struct sweep_progress *p = context;
	uint64_t now_ns = clock_monotonic_ns();
	if (!p->terminal || now_ns - p->shown_ns < SHOW_EVERY_NS) {
		return;
	}
	_cleanup_text_ struct text line = {0}, shown = {0};
	_cleanup_free_ char *name = sweep_trial_name(p->sweep->trials.order[p->index]);
	double passed = (double)(now_ns - p->trial_start_ns) / 1e9;
	text_format(&line, "strain: %zu of %zu: %s ", p->done + 1, p->sweep->trials.n,
		name ? name : "");
	append_labels(&line, p->sweep, p->index, LABEL_COLUMNS);
	text_append_string(&line, ": ");
	append_whole_seconds(&line, floor(passed));
	append_left(&line, p->left_s - fmin(passed, trial_s(p, p->index)));
	if (*p->last) {
		text_format(&line, "; last: %s", p->last);
	}
	words_append_elided(&shown, line.data ? line.data : "", terminal_columns() - 1);
	command_progress("%s", shown.data ? shown.data : "");
	p->shown_ns = now_ns;
}

static void append_measures(struct text *t, const struct attempt *attempt)
{
	if (isfinite(attempt->epoch_seconds)) {
		text_append_string(t, ", epoch ");
		words_append_seconds(t, attempt->epoch_seconds);
	}
	if (isfinite(attempt->samples_per_second)) {
		text_append_string(t, ", ");
		words_append_number(t, attempt->samples_per_second);
		text_append_string(t, " samples/s");
	}
}

static void learn(struct sweep_progress *p, enum outcome outcome)
{
	double seconds = (double)(clock_monotonic_ns() - p->trial_start_ns) / 1e9;
	size_t configuration = p->sweep->trials.order[p->index].configuration;
	double told = trial_s(p, p->index);
	if (p->forecast && tells_time(outcome) &&
		forecast_learn(p->forecast, configuration, seconds)) {
		add_up(p);
	} else {
		p->left_s -= told;
	}
}

// On a terminal above the line of what runs.
static void say_of_trial(const struct sweep_progress *p, const char *what)
{
	_cleanup_text_ struct text line = {0};
	_cleanup_free_ char *name = sweep_trial_name(p->sweep->trials.order[p->index]);
	if (p->terminal) {
		command_progress_end();
	}
	text_format(&line, "%s: %s", name ? name : "", what);
	sweep_say(line.data ? line.data : "");
}

void sweep_progress_left(void *context, const char *processes)
{
	_cleanup_text_ struct text what = {0};
	text_format(&what, "left running, as they could not be ended: %s", processes);
	say_of_trial(context, what.data ? what.data : "");
}

static void say_missed_epochs(const struct sweep_progress *p, const struct attempt *attempt)
{
	if (attempt->missed_epochs) {
		say_of_trial(p,
			"no epoch was seen, so stop.epochs could not end it (epoch_pattern: a "
			"regular expression finds them in its output)");
	}
}

void sweep_progress_result(struct sweep_progress *p, const struct attempt *attempt)
{
	_cleanup_text_ struct text last = {0}, line = {0};
	p->done++;
	learn(p, attempt->outcome);
	say_missed_epochs(p, attempt);
	text_format(&last, "%s, ", outcome_word(attempt->outcome));
	words_append_seconds(&last, attempt->seconds);
	append_measures(&last, attempt);
	snprintf(p->last, sizeof(p->last), "%s", last.data ? last.data : "");
	if (p->terminal) {
		p->shown_ns = 0;
		return;
	}
	_cleanup_free_ char *name = sweep_trial_name(p->sweep->trials.order[p->index]);
	text_format(&line, "%zu of %zu: %s ", p->done, p->sweep->trials.n, name ? name : "");
	append_labels(&line, p->sweep, p->index, LABEL_COLUMNS_MOST);
	text_format(&line, ": %s", p->last);
	if (*attempt->outcome_text && !outcome_is_success(attempt->outcome)) {
		text_append_string(&line, ": ");
		words_append_elided(&line, attempt->outcome_text, 200);
	}
	if (p->done < p->sweep->trials.n) {
		append_left(&line, p->left_s);
	}
	sweep_say(line.data ? line.data : "");
}

void sweep_progress_end(struct sweep_progress *p)
{
	if (p->terminal) {
		command_progress_end();
	}
}

void sweep_progress_done(struct sweep_progress *p)
{
	forecast_free(p->forecast);
	p->forecast = NULL;
}
