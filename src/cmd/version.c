// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain version: prints the version.

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/reading.h"
#include "show/json.h"

static const struct argp_option options[] = {
	{"json", 256, NULL, 0, "print one JSON document", 0},
	{0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	bool *json = state->input;
	switch (key) {
	case 256:
		*json = true;
		return 0;
	case ARGP_KEY_ARG:
		reading_option_error(state, "unexpected argument '%s'", argument);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int command_version(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, NULL, "Print the version.", NULL, NULL, NULL};
	bool json = false;
	reading_options(&argp, argc, argv, &json);
	if (!json) {
		printf("strain %s\n", STRAIN_VERSION);
		return reading_finish();
	}
	int r = json_write(json_pack("{s:s}", "version", STRAIN_VERSION), stdout);
	return r < 0 ? command_fail("cannot write: %s", strerrordesc_np(-r)) : reading_finish();
}
