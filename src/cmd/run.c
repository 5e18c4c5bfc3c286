// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain run: executes strain-record, which links few libraries and starts in milliseconds. Without
// it (an installation with a part missing), the job runs and is not recorded.

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/command.h"
#include "base/installation.h"
#include "base/launch_status.h"
#include "cmd/command.h"
#include "record/options.h"

// Whether a job must not run without what the option asks for (IF RECORDING FAILS, strain-run(1)),
// or the option asks for no job.
static bool is_demanded(int key)
{
	static const int demanded[] = {'o', OPTION_PID, OPTION_CPUS, OPTION_MEMORY,
		OPTION_DISK_READ, OPTION_GPUS, OPTION_OVERLAY, OPTION_SUPERVISED, OPTION_HELP,
		OPTION_USAGE};
	for (size_t i = 0; i < ARRAY_LENGTH(demanded); i++) {
		if (demanded[i] == key) {
			return true;
		}
	}
	return false;
}

// The option of a word; NULL: none.
static const struct argp_option *option_of(const char *word)
{
	size_t length = strcspn(word + 2, "=");
	for (const struct argp_option *o = run_option_table; o->name || o->key; o++) {
		bool same = word[1] == '-' ? o->name && strlen(o->name) == length &&
		                                     strncmp(o->name, word + 2, length) == 0
		                           : o->key == word[1];
		if (same) {
			return o;
		}
	}
	return NULL;
}

// The job's command behind the options; NULL: none, or the options need strain-record.
static char **find_command(char **argv)
{
	for (char **word = argv + 1; *word; word++) {
		if (strcmp(*word, "--") == 0) {
			return word[1] ? word + 1 : NULL;
		}
		if (word[0][0] != '-' || !word[0][1]) {
			return word;
		}
		const struct argp_option *o = option_of(*word);
		if (!o || is_demanded(o->key)) {
			return NULL;
		}
		bool is_long = word[0][1] == '-';
		bool joined = is_long ? strchr(*word, '=') != NULL : word[0][2] != '\0';
		if (joined && !o->arg) { // a value that it does not take, or several letters
			return NULL;
		}
		if (o->arg && !joined && !*++word) {
			return NULL;
		}
	}
	return NULL;
}

// Returns the exit status if the job cannot be executed.
static int run_unrecorded(char **command, const char *why)
{
	struct error e = {0};
	command_note("not recording: %s", why);
	execvp(command[0], command);
	int code = errno;
	command_cannot_run(command[0], code, &e);
	command_fail("%s", e.text);
	return code == ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
}

int command_run(int argc, char **argv)
{
	(void)argc;
	struct error e = {0};
	_cleanup_free_ char *recorder = installation_find("strain-record", X_OK, &e);
	if (recorder) {
		execv(recorder, argv);
		error_set(&e, errno, "%s: %s", recorder, strerrordesc_np(errno));
	}
	char **command = find_command(argv);
	if (command) {
		return run_unrecorded(command, e.text);
	}
	command_fail("cannot record: %s", e.text);
	return STATUS_RUN_FAILED;
}
