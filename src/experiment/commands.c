// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Commands, before the first trial: one that is mistyped is one error, and not a crash for each.

#include "experiment/commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/program.h"
#include "experiment/sweep.h"
#include "experiment/template.h"

// A command that was looked up, and where. Trials after each other mostly have the same.
struct lookup {
	char *name;
	char *path; // PATH as the trial has it; NULL: not set
	int problem;
};

static void lookup_done(struct lookup *l)
{
	free(l->name);
	free(l->path);
	*l = (struct lookup){0};
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

// The last counts, as putenv has it.
static const char *path_of(char *const *environment)
{
	const char *path = getenv("PATH");
	for (size_t i = 0; environment[i]; i++) {
		if (strncmp(environment[i], "PATH=", strlen("PATH=")) == 0) {
			path = environment[i] + strlen("PATH=");
		}
	}
	return path;
}

static int look_up(const struct sweep *sweep, size_t configuration, struct lookup *l)
{
	char **command = trials_command(&sweep->trials, configuration);
	char **environment = trials_environment(&sweep->trials, configuration);
	int result = command && environment ? 0 : -ENOMEM;
	const char *path = result == 0 ? path_of(environment) : NULL;
	if (result == 0 && !(is_same(l->name, command[0]) && is_same(l->path, path))) {
		lookup_done(l);
		l->name = strdup(command[0]);
		l->path = path ? strdup(path) : NULL;
		l->problem = program_check(command[0], path);
		result = l->name && (l->path || !path) ? 0 : -ENOMEM;
	}
	template_free_words(command);
	template_free_words(environment);
	return result;
}

int commands_check(const struct sweep *sweep, struct error *e)
{
	_cleanup_(lookup_done) struct lookup l = {0};
	_cleanup_free_ char *wrong = NULL;
	size_t n = 0, n_to_run = sweep->trials.n - sweep->n_done;
	int problem = 0;
	for (size_t i = 0; i < sweep->trials.n; i++) {
		if (sweep->done && sweep->done[i]) {
			continue;
		}
		int result = look_up(sweep, sweep->trials.order[i].configuration, &l);
		if (result == 0 && l.problem && !wrong) {
			wrong = strdup(l.name);
			problem = l.problem;
			result = wrong ? 0 : -ENOMEM;
		}
		if (result < 0) {
			return error_errno(e, -result, "%s", sweep->directory);
		}
		n += l.problem == problem && wrong && strcmp(l.name, wrong) == 0;
	}
	const char *why = strerrordesc_np(problem);
	return wrong ? error_set(e, problem,
			       "cannot run '%.200s': %s (the command of %zu of %zu trials)", wrong,
			       why ? why : "unknown error", n, n_to_run)
	             : 0;
}
