// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The program that a command line runs.

#include "base/command.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

// Program -----------------------------------------------------------------------------------------
//
// Search for a command.

// Returns 0 or the errno value that exec would give.
static int program_problem(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0) {
		return errno;
	}
	return !S_ISREG(st.st_mode) ? EACCES : access(path, X_OK) < 0 ? errno : 0;
}

// Searches like a shell: the first executable file; "not executable" if only others were found.
// Nothing is found in a directory that cannot be entered.
static int search_problem(const char *name, const char *path)
{
	int problem = ENOENT;
	for (const char *at = path ? path : "/bin:/usr/bin"; problem != 0;) {
		size_t length = strcspn(at, ":");
		_cleanup_text_ struct text candidate = {0};
		text_append(&candidate, length > 0 ? at : ".", length > 0 ? length : 1);
		text_format(&candidate, "/%s", name);
		struct stat st;
		bool there = !candidate.failed && stat(candidate.data, &st) == 0;
		int found = candidate.failed ? ENOMEM
		            : there          ? program_problem(candidate.data)
		                             : ENOENT;
		problem = found == 0 || found == EACCES ? found : problem;
		if (at[length] == '\0') {
			break;
		}
		at += length + 1;
	}
	return problem;
}

int command_check_program(const char *name, const char *path)
{
	return *name == '\0'       ? ENOENT
	       : strchr(name, '/') ? program_problem(name)
	                           : search_problem(name, path);
}

// Name --------------------------------------------------------------------------------------------

// Programs whose arguments name the program that really runs.
struct runner {
	const char *name; // matched with its version: python also matches python3.11
	enum {
		RUNS_PROGRAM, // env, nice: the next word is again a program
		RUNS_SCRIPT, // python, bash: the next word is a script; -m a module
		RUNS_PYTHON, // torchrun: the first *.py among its arguments
	} kind;
	const char *valued; // one-letter options with the next word as value
	const char *inlined; // one-letter options followed by the program itself
};

static const struct runner runners[] = {
	{"accelerate", RUNS_PYTHON, "", "m"},
	{"bash", RUNS_SCRIPT, "oO", "c"},
	{"chrt", RUNS_PROGRAM, "TPD", ""},
	{"dash", RUNS_SCRIPT, "o", "c"},
	{"deepspeed", RUNS_PYTHON, "", "m"},
	{"env", RUNS_PROGRAM, "uCS", ""},
	{"horovodrun", RUNS_PROGRAM, "npH", ""},
	{"ionice", RUNS_PROGRAM, "cn", ""},
	{"julia", RUNS_SCRIPT, "JtpL", "e"},
	{"mpiexec", RUNS_PROGRAM, "nNHfx", ""},
	{"mpirun", RUNS_PROGRAM, "nNHfx", ""},
	{"nice", RUNS_PROGRAM, "n", ""},
	{"node", RUNS_SCRIPT, "r", "e"},
	{"nohup", RUNS_PROGRAM, "", ""},
	{"numactl", RUNS_PROGRAM, "NmCpiP", ""},
	{"perl", RUNS_SCRIPT, "I", "e"},
	{"python", RUNS_SCRIPT, "WXQ", "cm"},
	{"Rscript", RUNS_SCRIPT, "", "e"},
	{"ruby", RUNS_SCRIPT, "Ir", "e"},
	{"setsid", RUNS_PROGRAM, "", ""},
	{"sh", RUNS_SCRIPT, "o", "c"},
	{"srun", RUNS_PROGRAM, "nNcptwxJoeiADGqLM", ""},
	{"stdbuf", RUNS_PROGRAM, "ioe", ""},
	{"taskset", RUNS_PROGRAM, "", ""},
	{"time", RUNS_PROGRAM, "fo", ""},
	{"timeout", RUNS_PROGRAM, "ks", ""},
	{"torchrun", RUNS_PYTHON, "", "m"},
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

static const struct runner *find_runner(const char *word)
{
	const char *name = base_name(word);
	for (size_t i = 0; i < ARRAY_LENGTH(runners); i++) {
		size_t length = strlen(runners[i].name);
		if (strncmp(name, runners[i].name, length) == 0 &&
			strspn(name + length, "0123456789.") == strlen(name + length)) {
			return &runners[i];
		}
	}
	return NULL;
}

static bool ends_with(const char *word, const char *ending)
{
	size_t length = strlen(word), ending_length = strlen(ending);
	return length > ending_length && strcmp(word + length - ending_length, ending) == 0;
}

// FOO=1, or a value of an unknown option: 10s, 0-3, 0xff, 4.
static bool is_operand(const char *word)
{
	size_t name = strspn(
		word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
	return word[name] == '=' || isdigit((unsigned char)*word);
}

// Returns the word that a runner runs, after its options; NULL if there is none.
static char *const *skip_options(const struct runner *runner, char *const *at, bool *ret_inlined)
{
	for (at++; *at; at++) {
		const char *word = *at;
		bool option = word[0] == '-' && word[1];
		char last = word[strlen(word) - (*word != '\0')];
		if (strcmp(word, "--") == 0) {
			return at[1] ? at + 1 : NULL;
		}
		if (option && word[1] != '-' && strchr(runner->inlined, last)) {
			*ret_inlined = true;
			return at[1] ? at + 1 : NULL;
		}
		if (option && word[1] != '-' && !word[2] && strchr(runner->valued, word[1]) &&
			at[1]) {
			at++;
		} else if (!option && !(runner->kind == RUNS_PROGRAM && is_operand(word))) {
			return at;
		}
	}
	return NULL;
}

// The name of a run: a program, a script, or the last part of a module.
struct naming {
	const char *word;
	bool module;
};

static struct naming find_script(char *const *at)
{
	for (; *at; at++) {
		if (ends_with(*at, ".py")) {
			return (struct naming){*at, false};
		}
		if (strcmp(*at, "-m") == 0 && at[1]) {
			return (struct naming){at[1], true};
		}
	}
	return (struct naming){NULL, false};
}

char *const *command_program(char *const *command)
{
	const struct runner *runner = *command ? find_runner(*command) : NULL;
	while (runner && runner->kind == RUNS_PROGRAM) {
		bool inlined = false;
		char *const *next = skip_options(runner, command, &inlined);
		if (!next) {
			break;
		}
		command = next;
		runner = find_runner(*command);
	}
	return command;
}

static struct naming find_naming(char *const *at)
{
	for (;;) {
		const struct runner *runner = find_runner(*at);
		struct naming here = {*at, false};
		if (!runner) {
			return here;
		}
		if (runner->kind == RUNS_PYTHON) {
			struct naming script = find_script(at + 1);
			return script.word ? script : here;
		}
		bool inlined = false;
		char *const *next = skip_options(runner, at, &inlined);
		if (!next) {
			return here;
		}
		if (runner->kind == RUNS_SCRIPT) {
			// python -m pkg.train names the module; sh -c '...' only the shell.
			bool module = inlined && ends_with(next[-1], "m");
			return inlined && !module ? here : (struct naming){*next, module};
		}
		at = next;
	}
}

// The length of a name without script suffixes.
static size_t stem_length(const char *name)
{
	static const char *const endings[] = {
		".py", ".sh", ".pl", ".R", ".jl", ".js", ".rb", ".bash"};
	for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
		if (ends_with(name, endings[i])) {
			return strlen(name) - strlen(endings[i]);
		}
	}
	return strlen(name);
}

void command_name(char *const *command, char *buffer, size_t size)
{
	struct naming naming = find_naming(command);
	const char *dot = naming.module ? strrchr(naming.word, '.') : NULL;
	const char *name = dot && dot[1] ? dot + 1 : base_name(naming.word);
	size_t length = stem_length(name), used = 0, limit = size - 1 < 64 ? size - 1 : 64;
	for (size_t i = 0; i < length && used < limit; i++) {
		bool plain = isalnum((unsigned char)name[i]) || strchr("_+", name[i]) ||
		             (used > 0 && strchr(".-", name[i]));
		if (plain || used > 0) {
			buffer[used++] = plain ? name[i] : '_';
		}
	}
	buffer[used] = '\0';
	if (used == 0) {
		snprintf(buffer, size, "run");
	}
}

void command_cannot_run(const char *name, int code, struct error *e)
{
	bool here = code == ENOENT && !strchr(name, '/') && access(name, F_OK) == 0;
	if (here) {
		error_set(e, code,
			"cannot run '%s': it is not in the PATH; to run the file in this "
			"directory, write ./%s, or python3 %s if it is a Python script",
			name, name, name);
	} else {
		error_errno(e, code, "cannot run '%s'", name);
	}
}
