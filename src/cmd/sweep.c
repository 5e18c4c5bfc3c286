// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain sweep: runs the trials of a plan, and goes on where it was.

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "analyze/catalogue_keep.h"
#include "analyze/words.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "cmd/sweep_progress.h"
#include "cmd/sweep_results.h"
#include "cmd/sweep_text.h"
#include "experiment/attempt.h"
#include "experiment/sweep.h"

// A run of `true` takes 40 kB, one that a limit refused 14 kB.
#define SMALLEST_RUN_BYTES 16384

enum { KEPT_AT_ONCE = 100 }; // runs, until the index is told of them

enum { OPTION_FORCE = 256, OPTION_DRY_RUN, OPTION_JSON, OPTION_JOBS };

struct sweep_command {
	struct sweep_options options;
	bool dry_run;
	bool json;
};

static const struct argp_option options[] = {
	{"output", 'o', "DIR", 0, "the sweep's folder (PLAN.sweep here)", 0},
	{"dry-run", OPTION_DRY_RUN, NULL, 0, "print the trials in their order, and run none", 0},
	{"force", OPTION_FORCE, NULL, 0, "go on with a plan changed after the start", 0},
	{"json", OPTION_JSON, NULL, 0, "print JSON", 0},
	{"jobs", OPTION_JOBS, "N", OPTION_HIDDEN, NULL, 0}, // to say why not
	{0},
};

static const char no_jobs[] =
	"--jobs %s: trials run one at a time: side by side they would share the CPUs, memory, disk "
	"and GPUs that are measured; a plan would have to give each trial its own";

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
	case OPTION_JOBS:
		if (strcmp(argument, "1") != 0) {
			reading_option_error(state, no_jobs, argument);
		}
		return 0;
	case ARGP_KEY_ARG:
		if (c->options.plan) {
			reading_option_error(state, "expected one plan, found '%s' too", argument);
		}
		c->options.plan = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// Signals ----------------------------------------------------------------------------------------

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
		            before.sa_handler == SIG_IGN; // nohup
		if (!kept) {
			sigaction(caught[i], &action, NULL);
		}
	}
}

// Running ----------------------------------------------------------------------------------------

static int say_interrupted(const struct sweep *sweep)
{
	_cleanup_text_ struct text line = {0};
	text_format(&line, "interrupted: %zu of %zu trials are there; to go on: strain sweep ",
		sweep->n_done, sweep->trials.n);
	text_append_word(&line, sweep->directory);
	sweep_say(line.data ? line.data : "");
	return 128 + interrupted_by;
}

static int run_trials(
	struct sweep *sweep, struct sweep_progress *progress, struct catalogue_keep *keep)
{
	const struct attempt_watch watch = {
		&interrupts, sweep_progress_tick, sweep_progress_left, progress};
	for (size_t i = 0; i < sweep->trials.n && interrupts == 0; i++) {
		struct attempt attempt;
		struct error e = {0};
		if (sweep->done[i]) {
			continue;
		}
		sweep_progress_trial(progress, i);
		int result = attempt_run(sweep, i, &watch, &attempt, &e);
		if (result == -EINTR) {
			break;
		}
		if (result < 0) {
			_cleanup_free_ char *name = sweep_trial_name(sweep->trials.order[i]);
			sweep_progress_end(progress);
			return command_fail("trial %s: %s", name ? name : "", e.text);
		}
		sweep->done[i] = true;
		sweep->n_done++;
		sweep_progress_result(progress, &attempt);
		catalogue_keep_add(keep, &attempt.entry, attempt.run);
		if (keep->n >= KEPT_AT_ONCE) {
			catalogue_keep_flush(keep);
		}
		attempt_done(&attempt);
	}
	sweep_progress_end(progress);
	return interrupts > 0 && sweep->n_done < sweep->trials.n ? say_interrupted(sweep)
	                                                         : STATUS_OK;
}

// A disk that would be full before the last trial, however small they are. What is less certain is
// only said: the disk may have more when it is needed.
static int check_space(const struct sweep *sweep)
{
	struct statvfs disk;
	double needed = (double)(sweep->trials.n - sweep->n_done) * SMALLEST_RUN_BYTES;
	if (statvfs(sweep->directory, &disk) < 0 || disk.f_blocks == 0) {
		return STATUS_OK;
	}
	double there = (double)disk.f_bfree * (double)disk.f_frsize;
	if (needed <= there) {
		return STATUS_OK;
	}
	_cleanup_text_ struct text line = {0};
	text_format(&line, "%s: no space for %zu more trials: they take ", sweep->directory,
		sweep->trials.n - sweep->n_done);
	words_append_bytes(&line, needed);
	text_append_string(&line, " at least, free are ");
	words_append_bytes(&line, there);
	return command_fail("%s", line.data ? line.data : "");
}

static int run_sweep(struct sweep *sweep, bool json)
{
	struct sweep_progress progress;
	struct catalogue_keep keep = {0};
	if (check_space(sweep) != STATUS_OK) {
		return STATUS_FAILURE;
	}
	sweep_progress_begin(&progress, sweep);
	catch_signals();
	int status = run_trials(sweep, &progress, &keep);
	catalogue_keep_flush(&keep);
	sweep_progress_done(&progress);
	return status == STATUS_OK ? sweep_print_results(sweep, json) : status;
}

int command_sweep(int argc, char **argv)
{
	static const struct argp argp = {options, parse_option, "PLAN.yaml|DIR",
		"Run every trial of a plan, each recorded into a file of the sweep's folder, and "
		"print what came out.\v"
		"Started again, with the plan or the folder, it goes on where it was: what is "
		"complete stays, a trial that was cut off is run again. man strain-sweep describes "
		"plans.",
		NULL, NULL, NULL};
	struct sweep_command c = {.options = {.say = sweep_say}};
	struct sweep sweep;
	struct error e = {0};
	reading_options(&argp, argc, argv, &c);
	if (!c.options.plan) {
		return command_usage("sweep", "sweep: expected a plan: PLAN.yaml");
	}
	if (sweep_open(&c.options, &sweep, &e) < 0) {
		return command_fail("%s", e.text);
	}
	int status = c.dry_run ? sweep_print_trials(&sweep, c.json) : run_sweep(&sweep, c.json);
	sweep_close(&sweep);
	return status;
}
