// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain advise: short runs of a job that answer a question. --stalls: what its input costs.

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

#include "advise/stall_runs.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "cmd/advise_text.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "render/json.h"

enum { OPTION_STALLS = 256, OPTION_ERROR, OPTION_LIMIT, OPTION_JSON };

struct advise_options {
	bool stalls;
	bool json;
	const char *folder; // NULL: a temporary one
	double error;
	uint64_t limit_ns;
	char **command;
};

static const struct argp_option options[] = {
	{"stalls", OPTION_STALLS, NULL, 0,
		"what preparing and fetching the data costs, from three short runs", 0},
	{"error", OPTION_ERROR, "PERCENT", 0, "end a run when its rate is so sure (3%)", 0},
	{"limit", OPTION_LIMIT, "TIME", 0, "end a run after this time in any case (2min)", 0},
	{"output", 'o', "DIR", 0, "keep the runs in this new folder", 0},
	{"json", OPTION_JSON, NULL, 0, "print JSON", 0},
	{0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct advise_options *o = state->input;
	struct error e = {0};
	int result = 0;
	switch (key) {
	case OPTION_STALLS:
		o->stalls = true;
		break;
	case OPTION_JSON:
		o->json = true;
		break;
	case 'o':
		o->folder = argument;
		break;
	case OPTION_ERROR:
		result = parse_percent(argument, &o->error, &e);
		if (result == 0 && o->error < 0.001) {
			result = error_set(
				&e, EINVAL, "expected at least 0.1%%, found '%s'", argument);
		}
		break;
	case OPTION_LIMIT:
		result = parse_duration(argument, &o->limit_ns, &e);
		if (result == 0 && (o->limit_ns < 5 * NS_PER_S || o->limit_ns > 86400 * NS_PER_S)) {
			result = error_set(&e, EINVAL, "expected 5s to 24h, found '%s'", argument);
		}
		break;
	case ARGP_KEY_ARG:
		o->command = state->argv + state->next - 1;
		state->next = state->argc;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	if (result < 0) {
		reading_option_error(
			state, "--%s: %s", key == OPTION_ERROR ? "error" : "limit", e.text);
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
	return folder;
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
		.limit_ns = o->limit_ns,
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

int command_advise(int argc, char **argv)
{
	static const struct argp argp = {options, parse_option, "[--] COMMAND...",
		"Run a job for a short while, several times, to answer a question.\v"
		"With --stalls: once as it is (warm: its data in the page cache), once with "
		"prepared "
		"batches handed out again (compute), once with its data dropped from the page "
		"cache "
		"(cold). The job is interrupted when its rate is known; it may leave behind what "
		"it "
		"leaves behind at Ctrl-C.",
		NULL, NULL, NULL};
	struct advise_options o = {.error = 0.03, .limit_ns = 120 * NS_PER_S};
	reading_options_before(&argp, argc, argv, &o);
	if (!o.stalls) {
		return command_usage("advise", "advise: expected a question: --stalls");
	}
	if (!o.command || !o.command[0]) {
		return command_usage("advise", "advise: expected a command to run");
	}
	_cleanup_free_ char *folder = make_folder(&o);
	if (!folder) {
		return STATUS_FAILURE;
	}
	catch_signals();
	int status = advise_stalls(&o, folder);
	if (!o.folder) {
		stall_runs_remove(folder);
	}
	return status;
}
