// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain show: what a run says, for a person or (--json) for a program.

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "cmd/show_json.h"
#include "cmd/show_text.h"

struct show_options {
	const char *run; // NULL: the newest
	struct show_text_options text;
	bool json;
};

enum { OPTION_JSON = 256 };

static const struct argp_option options[] = {
	{"all", 'a', NULL, 0, "every process and every event", 0},
	{"iterations", 'i', NULL, 0,
		"the phases of each epoch, every loader worker, and the slowest iterations with "
		"what was otherwise in them",
		0},
	{"json", OPTION_JSON, NULL, 0, "print one JSON document", 0},
	{0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct show_options *show = state->input;
	switch (key) {
	case 'a':
		show->text.all = true;
		return 0;
	case 'i':
		show->text.iterations = true;
		return 0;
	case OPTION_JSON:
		show->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (show->run) {
			reading_option_error(state, "expected one run, found '%s' too", argument);
		}
		show->run = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int command_show(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "[RUN]",
		"Show what a run says: verdict, evidence, iterations and phases, epochs, "
		"processes, devices, what recording cost and what is missing. Without RUN: the "
		"newest in $STRAIN_DIR, else in the current directory.",
		NULL, NULL, NULL};
	struct show_options show = {0};
	reading_options(&argp, argc, argv, &show);
	_cleanup_reader_ struct reader *reader = reading_open(show.run);
	struct analysis analysis;
	struct error e = {0};
	if (!reader) {
		return STATUS_FAILURE;
	}
	struct progress progress;
	progress_start(&progress, reader, PROGRESS_ANALYSIS);
	int loaded = analysis_load(reader, &analysis, &e);
	progress_end(&progress);
	if (loaded < 0) {
		return command_fail("%s", e.text);
	}
	reading_damage(&analysis);
	int r = show.json ? show_json(&analysis, stdout) : show_text(&analysis, &show.text, stdout);
	analysis_done(&analysis);
	return r < 0 ? command_fail("cannot show: %s", strerrordesc_np(-r)) : reading_finish();
}
