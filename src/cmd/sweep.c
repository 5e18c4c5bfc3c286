// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain sweep: runs the trials of a plan, or resumes it.

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/words.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "show/sweep_tables.h"
#include "study/prices.h"
#include "sweep/attempt.h"
#include "sweep/executor.h"
#include "sweep/forecast.h"
#include "sweep/results.h"
#include "sweep/slurm_trial.h"
#include "sweep/sweep.h"

#define SHOW_EVERY_NS (NS_PER_S / 2)
#define LABEL_COLUMNS 60 // on the line that is updated
#define LABEL_COLUMNS_MOST 200

// --- progress on standard error: a line that is updated, on a terminal; else a line for each trial

struct sweep_progress {
	const struct sweep *sweep;
	bool terminal;
	size_t index; // of the current trial
	size_t done; // completed trials
	size_t to_run; // trials to run now
	struct time_left left;
	uint64_t trial_start_ns;
	uint64_t shown_ns;
	bool together; // trials run side by side: the time left is that of their rate
	uint64_t begin_ns;
	size_t ended; // trials since then
	char last[160]; // the last result
};

// Prints a line on standard error.
static void sweep_say(const char *text)
{
	command_note("%s", text);
}

static void append_time(struct text *t, const struct sweep_progress *p)
{
	double most = time_left_limit(&p->sweep->plan);
	if (p->together) {
		text_append_string(t, "the remaining time depends on Slurm");
		return;
	}
	if (isfinite(p->left.seconds)) {
		text_append_string(t, "about ");
		words_append_seconds(t, p->left.seconds);
		return;
	}
	text_append_string(t, "the remaining time is known after the first trial");
	if (most > 0) {
		text_append_string(t, " (at most ");
		words_append_seconds(t, most * (double)p->to_run);
		text_append_string(t, ")");
	}
}

static void append_disk(struct text *t, const struct sweep_progress *p)
{
	double bytes = p->left.run_bytes;
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

// Prints the number of trials, their time and disk space.
static void sweep_progress_begin(struct sweep_progress *p, const struct sweep *sweep)
{
	_cleanup_text_ struct text line = {0};
	*p = (struct sweep_progress){
		.sweep = sweep,
		.terminal = isatty(STDERR_FILENO),
		.done = sweep->n_done,
		.to_run = sweep->trials.n - sweep->n_done,
		.together = strcmp(sweep->plan.executor, PLAN_SLURM) == 0,
		.begin_ns = clock_monotonic_ns(),
	};
	time_left_init(&p->left, sweep);
	sweep_tables_append_counts(&line, sweep);
	if (p->to_run > 0) {
		text_append_string(&line, ": ");
		append_time(&line, p);
		append_disk(&line, p);
	}
	sweep_say(line.data ? line.data : "");
}

static void append_labels(struct text *t, const struct sweep *sweep, size_t index, size_t columns)
{
	_cleanup_text_ struct text labels = {0};
	struct trial_place place = sweep->trials.order[index];
	for (size_t f = 0; f < sweep->plan.n_factors; f++) {
		// A constant factor is not shown.
		if (sweep->plan.factors[f].n_values != 1) {
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

// Seconds until the last trial, at the rate of those that have ended.
static double seconds_at_rate(const struct sweep_progress *p)
{
	double passed = (double)(clock_monotonic_ns() - p->begin_ns) / 1e9;
	return passed / (double)p->ended * (double)(p->sweep->trials.n - p->done);
}

static void append_left(struct text *t, double seconds)
{
	if (isfinite(seconds)) {
		text_append_string(t, "; ");
		append_whole_seconds(t, fmax(seconds, 1));
		text_append_string(t, " left");
	}
}

static size_t terminal_columns(void)
{
	struct winsize size;
	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

static void sweep_progress_tick(void *context)
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
	append_left(&line, p->left.seconds - fmin(passed, time_left_of_trial(&p->left, p->index)));
	if (*p->last) {
		text_format(&line, "; last: %s", p->last);
	}
	words_append_elided(&shown, line.data ? line.data : "", terminal_columns() - 1);
	command_progress("%s", shown.data ? shown.data : "");
	p->shown_ns = now_ns;
}

static void sweep_progress_trial(struct sweep_progress *p, size_t index)
{
	p->index = index;
	p->trial_start_ns = clock_monotonic_ns();
	p->shown_ns = 0;
	sweep_progress_tick(p);
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
		text_format(t, " %s/s", attempt->samples_unit);
	}
}

// Prints a message about the trial; on a terminal, above the line of progress.
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

static void sweep_progress_left(void *context, const char *processes)
{
	_cleanup_text_ struct text what = {0};
	text_format(&what, "could not be ended and still runs: %s", processes);
	say_of_trial(context, what.data ? what.data : "");
}

static void say_missed_epochs(const struct sweep_progress *p, const struct attempt *attempt)
{
	if (attempt->missed_epochs) {
		say_of_trial(p,
			"no epoch was detected, so stop.epochs had no effect (set epoch_pattern to "
			"a regular expression that matches its output)");
	}
}

static void sweep_progress_result(struct sweep_progress *p, const struct attempt *attempt)
{
	_cleanup_text_ struct text last = {0}, line = {0};
	p->done++;
	p->ended++;
	time_left_learn(&p->left, p->index, attempt->outcome,
		p->together ? attempt->seconds
			    : (double)(clock_monotonic_ns() - p->trial_start_ns) / 1e9);
	say_missed_epochs(p, attempt);
	outcome_append_shown(&last, attempt->outcome);
	text_append_string(&last, ", ");
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
		append_left(&line, p->together ? seconds_at_rate(p) : p->left.seconds);
	}
	sweep_say(line.data ? line.data : "");
}

// Removes the line; another trial may follow.
static void sweep_progress_end(struct sweep_progress *p)
{
	if (p->terminal) {
		command_progress_end();
	}
}

// --- tables

// Prints the trials in their order; an exit status.
static int print_trials(const struct sweep *sweep, bool json)
{
	int r = sweep_tables_trials(sweep, json, stdout);
	return r == -ENOMEM ? command_fail("out of memory")
	       : r < 0      ? command_fail("cannot write: %s", strerrordesc_np(-r))
	                    : command_flush();
}

// Reads the runs and prints the results; an exit status.
static int print_results(const struct sweep *sweep, const struct prices *prices, bool json)
{
	struct results results;
	struct error e = {0};
	int status = STATUS_FAILURE;
	if (results_read(sweep, prices, &results, &e) < 0) {
		command_fail("%s", e.text);
	} else {
		for (size_t i = 0; i < results.catalogue.n_unreadable; i++) {
			sweep_say(results.catalogue.unreadable[i]);
		}
		int r = sweep_tables_results(&results, json, stdout);
		status = r < 0 ? command_fail("cannot write: %s", strerrordesc_np(-r))
		               : command_flush();
	}
	results_done(&results);
	return status;
}

// --- options

enum {
	OPTION_FORCE = 256,
	OPTION_DRY_RUN,
	OPTION_JSON,
	OPTION_JOBS,
	OPTION_PRICES,
	OPTION_SLURM_TRIAL
};

struct sweep_command {
	struct sweep_options options;
	bool dry_run;
	bool json;
	const char *prices; // path; NULL: as STRAIN_PRICES says
	const char *slurm_ticket; // of a trial to run in a task of Slurm; NULL
};

static const struct argp_option options[] = {
	{"output", 'o', "DIR", 0, "use DIR as the folder of the sweep (PLAN.sweep)", 0},
	{"dry-run", OPTION_DRY_RUN, NULL, 0, "print the trials in their order without running them",
		0},
	{"force", OPTION_FORCE, NULL, 0, "resume with a plan that changed after the start", 0},
	{"json", OPTION_JSON, NULL, 0, "print JSON", 0},
	{"prices", OPTION_PRICES, READING_PRICES_ARGUMENT, 0, READING_PRICES_HELP, 0},
	// for an error message that explains why not
	{"jobs", OPTION_JOBS, "N", OPTION_HIDDEN, NULL, 0},
	// in the script that the executor slurm submits
	{"slurm-trial", OPTION_SLURM_TRIAL, "TICKET", OPTION_HIDDEN, NULL, 0},
	{0},
};

static const char no_jobs[] =
	"--jobs %s: trials run one at a time, because parallel trials would share the measured "
	"CPUs, memory, disk and GPUs";

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct sweep_command *c = state->input;
	switch (key) {
	case 'o':
		c->options.directory = argument;
		return 0;
	case OPTION_DRY_RUN:
		c->dry_run = c->options.look = true;
		return 0;
	case OPTION_FORCE:
		c->options.force = true;
		return 0;
	case OPTION_JSON:
		c->json = true;
		return 0;
	case OPTION_PRICES:
		c->prices = argument;
		return 0;
	case OPTION_JOBS:
		if (strcmp(argument, "1") != 0) {
			reading_option_error(state, no_jobs, argument);
		}
		return 0;
	case OPTION_SLURM_TRIAL:
		c->slurm_ticket = argument;
		return 0;
	case ARGP_KEY_ARG:
		if (c->options.plan) {
			reading_option_error(state, "expected one plan, also found '%s'", argument);
		}
		c->options.plan = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// --- signals

static volatile sig_atomic_t interrupts;
static volatile sig_atomic_t interrupted_by;

static void interrupt(int signal_number)
{
	interrupted_by = signal_number;
	interrupts = interrupts < 100 ? interrupts + 1 : interrupts;
}

static void catch_signals(void)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
	const struct sigaction action = {.sa_handler = interrupt};
	for (size_t i = 0; i < ARRAY_LENGTH(caught); i++) {
		struct sigaction before;
		bool kept = sigaction(caught[i], NULL, &before) == 0 && caught[i] == SIGHUP &&
		            before.sa_handler == SIG_IGN; // started with nohup
		if (!kept) {
			sigaction(caught[i], &action, NULL);
		}
	}
}

// --- running

static int say_interrupted(const struct sweep *sweep)
{
	_cleanup_text_ struct text line = {0};
	text_format(&line,
		"interrupted: %zu of %zu trials are complete; resume with: strain sweep ",
		sweep->n_done, sweep->trials.n);
	text_append_path(&line, sweep->directory);
	sweep_say(line.data ? line.data : "");
	return 128 + interrupted_by;
}

// Under Slurm, trials run together: the line of progress has their numbers.
static void tick_slurm(void *context, const struct slurm_counts *counts)
{
	struct sweep_progress *p = context;
	uint64_t now_ns = clock_monotonic_ns();
	if (!p->terminal || now_ns - p->shown_ns < SHOW_EVERY_NS) {
		return;
	}
	_cleanup_text_ struct text line = {0}, shown = {0};
	text_format(&line, "strain: %zu of %zu complete; in Slurm: %zu running, %zu waiting",
		p->done, p->sweep->trials.n, counts->running, counts->waiting + counts->submitted);
	if (counts->to_submit > 0) {
		text_format(&line, "; %zu to submit", counts->to_submit);
	}
	if (p->ended > 0) {
		append_left(&line, seconds_at_rate(p));
	}
	if (*p->last) {
		text_format(&line, "; last: %s", p->last);
	}
	words_append_elided(&shown, line.data ? line.data : "", terminal_columns() - 1);
	command_progress("%s", shown.data ? shown.data : "");
	p->shown_ns = now_ns;
}

static void say_slurm(void *context, const char *text)
{
	const struct sweep_progress *p = context;
	if (p->terminal) {
		command_progress_end();
	}
	sweep_say(text);
}

static void append_in_slurm(struct text *t, const struct slurm_counts *counts)
{
	size_t n = counts->running + counts->waiting + counts->submitted;
	text_format(t, "%zu trial%s in Slurm", n, n == 1 ? " is" : "s are");
}

// After a signal: leaves the trials in Slurm, unless a user at a terminal says otherwise.
static enum slurm_answer_to_interrupt ask_slurm(void *context, const struct slurm_counts *counts)
{
	const struct sweep_progress *p = context;
	_cleanup_text_ struct text line = {0};
	append_in_slurm(&line, counts);
	if (interrupted_by == SIGINT && p->terminal && isatty(STDIN_FILENO)) {
		char answer[16] = "";
		command_progress_end();
		command_progress(
			"strain: %s: leave them there (l), cancel them (c), or go on (g)? [l] ",
			line.data ? line.data : "");
		interrupts = 0;
		ssize_t n = read(STDIN_FILENO, answer, sizeof(answer) - 1); // Ctrl-C ends it: leave
		command_progress_end();
		if (n > 0 && (*answer == 'g' || *answer == 'G')) {
			return SLURM_GO_ON;
		}
		interrupts = 1;
		if (n > 0 && (*answer == 'c' || *answer == 'C')) {
			sweep_say("cancelling them; they run again when the sweep is resumed");
			return SLURM_CANCEL;
		}
	}
	text_append_string(&line, " and continue without this process");
	sweep_say(line.data ? line.data : "");
	return SLURM_LEAVE;
}

static void begin_trial(void *context, size_t index)
{
	sweep_progress_trial(context, index);
}

static void take_result(void *context, size_t index, const struct attempt *attempt)
{
	struct sweep_progress *p = context;
	p->index = index;
	sweep_progress_result(p, attempt);
}

static int run_trials(struct sweep *sweep, struct sweep_progress *progress)
{
	const struct executor_watch watch = {
		.interrupts = &interrupts,
		.begin = begin_trial,
		.tick = sweep_progress_tick,
		.left = sweep_progress_left,
		.result = take_result,
		.slurm = {&interrupts, tick_slurm, take_result, say_slurm, ask_slurm, progress},
		.context = progress,
	};
	struct error e = {0};
	int result = executor_run(sweep, &watch, &e);
	sweep_progress_end(progress);
	if (result < 0 && result != -EINTR) {
		return command_fail("%s", e.text);
	}
	return interrupts > 0 && sweep->n_done < sweep->trials.n ? say_interrupted(sweep)
	                                                         : STATUS_OK;
}

static int run_sweep(struct sweep *sweep, const struct prices *prices, bool json)
{
	struct sweep_progress progress;
	struct error e = {0};
	if (sweep_check_space(sweep, &e) < 0) {
		return command_fail("%s", e.text);
	}
	sweep_progress_begin(&progress, sweep);
	catch_signals();
	int status = run_trials(sweep, &progress);
	time_left_done(&progress.left);
	return status == STATUS_OK ? print_results(sweep, prices, json) : status;
}

// A task of Slurm. What it prints is in the folder `slurm` of the sweep.
static int run_slurm_trial(const struct sweep_command *c)
{
	const struct slurm_trial_request request = {c->slurm_ticket, c->options.plan, &interrupts};
	struct error e = {0};
	catch_signals();
	int result = slurm_trial_run(&request, &e);
	if (result == -EINTR) {
		return 128 + interrupted_by;
	}
	return result < 0 ? command_fail("%s", e.text) : STATUS_OK;
}

int command_sweep(int argc, char **argv)
{
	static const struct argp argp = {options, parse_option, "PLAN.yaml|DIR",
		"Run every trial of a plan, record each into a file in the sweep's folder, and "
		"print the results.\vTo resume, start it again with the plan or the folder: "
		"complete trials are kept, an interrupted one runs again. man strain-sweep "
		"describes plans.",
		NULL, NULL, NULL};
	struct sweep_command c = {.options = {.say = sweep_say}};
	struct sweep sweep;
	struct error e = {0};
	reading_options(&argp, argc, argv, &c);
	if (!c.options.plan) {
		return command_usage("sweep", "sweep: expected a plan: PLAN.yaml");
	}
	if (c.slurm_ticket) {
		return run_slurm_trial(&c);
	}
	_cleanup_(prices_done) struct prices room;
	const struct prices *prices;
	if (!reading_prices(c.prices, &room, &prices)) {
		return STATUS_FAILURE; // before any trial runs
	}
	if (sweep_open(&c.options, &sweep, &e) < 0) {
		return command_fail("%s", e.text);
	}
	int status = c.dry_run ? print_trials(&sweep, c.json) : run_sweep(&sweep, prices, c.json);
	sweep_close(&sweep);
	return status;
}
