// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain completion SHELL: prints the script that completes strain's command lines in a shell
// (completions/).

#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/command.h"
#include "cmd/reading.h"

extern const char completion_bash[], completion_fish[], completion_zsh[];

static const struct {
	const char *shell;
	const char *script;
} scripts[] = {
	{"bash", completion_bash},
	{"zsh", completion_zsh},
	{"fish", completion_fish},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	const char **script = state->input;
	switch (key) {
	case ARGP_KEY_ARG:
		for (size_t i = 0; i < ARRAY_LENGTH(scripts) && !*script; i++) {
			*script = strcmp(argument, scripts[i].shell) == 0 ? scripts[i].script
			                                                  : NULL;
		}
		if (!*script || state->arg_num > 0) {
			reading_option_error(
				state, "expected bash, zsh or fish, found '%s'", argument);
		}
		return 0;
	case ARGP_KEY_NO_ARGS:
		reading_option_error(state, "expected a shell: bash, zsh or fish");
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int command_completion(int argc, char **argv)
{
	static const struct argp argp = {NULL, parse, "SHELL",
		"Print a script that lets a shell (bash, zsh, fish) complete commands, options, "
		"and the names of runs, labels and metrics.\vExample:\n  source <(strain "
		"completion bash)",
		NULL, NULL, NULL};
	const char *script = NULL;
	reading_options(&argp, argc, argv, &script);
	fputs(script, stdout);
	return command_flush();
}
