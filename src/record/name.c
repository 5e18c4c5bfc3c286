// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The default name of a run file.

#include "record/name.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trace/places.h"

// Programs whose arguments name what really runs.
struct runner {
	const char *name; // matched with its version: python is also python3.11
	enum {
		RUNS_PROGRAM, // env, nice: the next word is a program again
		RUNS_SCRIPT, // python, bash: the next word is a script; -m a module
		RUNS_PYTHON, // torchrun: the first *.py among its arguments
	} kind;
	const char *valued; // one-letter options that take the next word
	const char *inlined; // one-letter options whose program is the next word itself
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

// FOO=1, and what options take that we do not know: 10s, 0-3, 0xff, 4.
static bool is_operand(const char *word)
{
	size_t name = strspn(
		word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
	return word[name] == '=' || isdigit((unsigned char)*word);
}

// The word after a runner's options that it runs; NULL where there is none.
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

// What names a run: a program, a script, or a module (its last part then).
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

// The length of a name without the endings of scripts.
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

void name_of_command(char *const *command, char *buffer, size_t size)
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

void name_of_run(char *const *command, time_t start, char *buffer, size_t size)
{
	static const char *const ranks[] = {
		"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
	char name[80], date[32] = "";
	name_of_command(command, name, sizeof(name));
	struct tm local;
	if (localtime_r(&start, &local)) {
		strftime(date, sizeof(date), "-%Y%m%d-%H%M%S", &local);
	}
	const char *rank = NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(ranks) && !rank; i++) {
		const char *value = getenv(ranks[i]);
		bool number = value && *value && strlen(value) < 10 &&
		              strspn(value, "0123456789") == strlen(value);
		rank = number ? value : NULL;
	}
	snprintf(buffer, size, "%s%s%s%s", name, date, rank ? "-rank" : "", rank ? rank : "");
}

void name_of_attached(pid_t pid, time_t start, char *buffer, size_t size)
{
	enum { LINE_BYTES = 4096, WORDS_MAX = 64 };
	char path[32], line[LINE_BYTES], *words[WORDS_MAX + 1] = {NULL};
	size_t n = 0;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	char *end = line + (length > 0 ? length : 0);
	*end = '\0';
	for (char *at = line; at < end && n < WORDS_MAX; at += strlen(at) + 1) {
		words[n++] = at;
	}
	if (n == 0 || *words[0] == '\0') {
		snprintf(line, sizeof(line), "pid-%d", (int)pid);
		words[0] = line;
		words[1] = NULL;
	}
	name_of_run(words, start, buffer, size);
}

// What SQLite would take for the run's, and somebody put there who knew the name before: it is
// another run's, or an attack.
static bool has_something_beside(const char *path)
{
	static const char *const endings[] = {"-wal", "-shm", "-journal", "-reserve"};
	bool found = false;
	for (size_t i = 0; i < ARRAY_LENGTH(endings) && !found; i++) {
		_cleanup_text_ struct text name = {0};
		struct stat status;
		text_format(&name, "%s%s", path, endings[i]);
		found = name.failed || lstat(name.data, &status) == 0;
	}
	return found;
}

// Creates DIRECTORY/NAME[-N].strain. The file is empty and ours alone, so that two runs of one
// second do not share a name.
static int reserve_in(const char *directory, const char *name, char **ret_path)
{
	for (unsigned attempt = 1; attempt < 10000; attempt++) {
		_cleanup_text_ struct text path = {0};
		bool here = strcmp(directory, ".") == 0;
		text_format(&path, "%s%s%s", here ? "" : directory, here ? "" : "/", name);
		if (attempt > 1) {
			text_format(&path, "-%u", attempt);
		}
		text_append_string(&path, ".strain");
		if (path.failed) {
			return -ENOMEM;
		}
		int fd = open(
			path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0 && has_something_beside(path.data)) {
			close(fd);
			unlink(path.data);
			continue;
		}
		if (fd >= 0) {
			close(fd);
			*ret_path = text_steal(&path);
			return *ret_path ? 0 : -ENOMEM;
		}
		if (errno != EEXIST) {
			return -errno;
		}
	}
	return -EEXIST;
}

static void make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	mkdir(path, 0700);
}

int name_reserve(const char *name, char **ret_path, char **ret_notice, struct error *e)
{
	const char *directory = places_usual();
	bool here = strcmp(directory, ".") == 0;
	*ret_notice = NULL;
	if (!here) {
		mkdir(directory, 0700);
	}
	int first = reserve_in(directory, name, ret_path);
	if (first == 0) {
		return 0;
	}
	_cleanup_free_ char *state = places_fallback();
	const char *shown = here ? "the current directory" : directory;
	if (state) {
		make_directories(state);
	}
	if (!state || reserve_in(state, name, ret_path) < 0) {
		return error_errno(e, -first, "cannot write to %s", shown);
	}
	struct text notice = {0};
	text_format(&notice, "cannot write to %s (%s): recording to %s", shown,
		strerrordesc_np(-first), *ret_path);
	*ret_notice = text_steal(&notice);
	return 0;
}
