// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain advise: short runs of a job that answer a question. --stalls: what its input costs. --try:
// what advice gains.

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advise/gain.h"
#include "advise/stall_runs.h"
#include "advise/tries.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "cmd/advise_text.h"
#include "cmd/advise_try.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "render/json.h"

enum {
	OPTION_STALLS = 256,
	OPTION_TRY,
	OPTION_WITH,
	OPTION_REPEATS,
	OPTION_TIME,
	OPTION_ERROR,
	OPTION_LIMIT,
	OPTION_JSON,
};

#define STALLS_LIMIT_NS (120 * NS_PER_S)
// A probe rests on few seconds: there are many of them.
#define TRY_LIMIT_NS (30 * NS_PER_S)

struct advise_options {
	bool stalls;
	bool tries;
	bool json;
	const char *folder; // NULL: a temporary one
	double error;
	uint64_t limit_ns; // 0: the question's own
	uint64_t time_ns;
	int64_t repeats;
	struct setting_list with[TRY_WITH_MOST];
	size_t n_with;
	const char *run; // before "--"
	char **command;
};

static const struct argp_option options[] = {
	{"stalls", OPTION_STALLS, NULL, 0,
		"what preparing and fetching the data costs, from three short runs", 0},
	{"try", OPTION_TRY, NULL, 0,
		"what the advice of a run gains that needs no edit of the job: short runs with it "
		"and "
		"without, in turns",
		0},
	{"with", OPTION_WITH, "SETTINGS", 0,
		"--try: these in place of the verdict's, \"OMP_NUM_THREADS=1 num_workers=2\"; may "
		"be "
		"repeated, each is tried alone",
		0},
	{"repeats", OPTION_REPEATS, "N", 0, "--try: run the job so often with each advice (3)", 0},
	{"time", OPTION_TIME, "TIME", 0, "--try: begin no run after this time (10min)", 0},
	{"error", OPTION_ERROR, "PERCENT", 0, "end a run when its rate is so sure (3%)", 0},
	{"limit", OPTION_LIMIT, "TIME", 0,
		"end a run after this time in any case (--stalls: 2min; --try: 30s)", 0},
	{"output", 'o', "DIR", 0, "keep the runs in this new folder", 0},
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
		return error_set(e, E2BIG, "at most %d may be tried", TRY_WITH_MOST);
	}
	if (!try_parse_settings(argument, &o->with[o->n_with], wrong, sizeof(wrong))) {
		return error_set(e, EINVAL,
			"'%s' is no setting that can be tried; there are: num_workers=N, "
			"prefetch_factor=N, pin_memory=1, persistent_workers=1, cpus=0-3, "
			"OMP_NUM_THREADS=N and the like (man strain-advise)",
			wrong);
	}
	o->n_with++;
	return 0;
}

// A run is before "--", a command behind it; of --stalls all is the command.
static void take_argument(struct advise_options *o, char *argument, struct argp_state *state)
{
	int at = state->next - 1;
	if (!o->tries || (state->quoted > 0 && at >= state->quoted)) {
		o->command = state->argv + at;
		state->next = state->argc;
	} else if (!o->run) {
		o->run = argument;
	} else {
		reading_option_error(state,
			"advise: expected one RUN; a command goes behind --: strain advise --try "
			"-- %s",
			o->run);
	}
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
	case OPTION_LIMIT:
		option = "limit";
		result = parse_time(argument, &o->limit_ns, &e);
		break;
	case ARGP_KEY_ARG:
		take_argument(o, argument, state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
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
}

// The folder of the runs: a new one. NULL after it has said why not.
static char *make_folder(const struct advise_options *o)
{
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
		command_fail("cannot make a folder for the runs: %s", strerrordesc_np(errno));
		free(folder);
		return NULL;
	}
	char *absolute = realpath(folder, NULL); // a job may run elsewhere
	free(folder);
	return absolute;
}

static int finish(const struct advise_options *o, const struct stall_runs *runs)
{
	if (o->json) {
		if (json_write(advise_stalls_json(runs), stdout) < 0) {
			return command_fail("cannot write: %s", strerrordesc_np(errno));
		}
	} else {
		advise_stalls_print(runs);
	}
	return reading_finish();
}

static int advise_stalls(const struct advise_options *o, const char *folder)
{
	struct stall_runs runs;
	struct error e = {0};
	const struct stall_config config = {
		.command = o->command,
		.folder = folder,
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
		status = finish(o, &runs);
	}
	stall_runs_done(&runs);
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
		.interrupted = &interrupted,
	};
	memcpy(t.with, o->with, sizeof(t.with));
	int status = advise_try(&t);
	return interrupted ? 128 + interrupted : status;
}

// What is wrong with what was asked; NULL: nothing.
static const char *find_wrong(const struct advise_options *o)
{
	if (o->stalls == o->tries) {
		return o->stalls ? "advise: expected one question: --stalls or --try"
		                 : "advise: expected a question: --stalls or --try";
	}
	bool command = o->command && o->command[0];
	return (o->stalls && !command) || (o->command && !command)
	               ? "advise: expected a command to run"
	               : NULL;
}

int command_advise(int argc, char **argv)
{
	static const struct argp argp = {options, parse_option,
		"--stalls [--] COMMAND...\n--try [RUN] [-- COMMAND...]",
		"Run a job for a short while, several times, to answer a question.\v"
		"With --stalls: once as it is (warm: its data in the page cache), once with "
		"prepared batches handed out again (compute), once with its data dropped from the "
		"page cache (cold). With --try: the advice of RUN's verdict (the newest run's; "
		"with "
		"a command alone, of its first run) that goes without an edit of the job, each "
		"alone, "
		"then together what gained; what came of it is written into RUN. The job is "
		"interrupted when its rate is known; it may leave behind what it leaves behind at "
		"Ctrl-C.",
		NULL, NULL, NULL};
	struct advise_options o = {.error = 0.03, .time_ns = 600 * NS_PER_S, .repeats = 3};
	reading_options_before(&argp, argc, argv, &o);
	const char *wrong = find_wrong(&o);
	if (wrong) {
		return command_usage("advise", "%s", wrong);
	}
	_cleanup_free_ char *folder = make_folder(&o);
	if (!folder) {
		return STATUS_FAILURE;
	}
	catch_signals();
	int status = o.tries ? advise_tries(&o, folder) : advise_stalls(&o, folder);
	if (!o.folder) {
		stall_runs_remove(folder);
	}
	return status;
}
