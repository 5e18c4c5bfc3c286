// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Differences of runs, by the keys that their files have. Arguments that all commands have are left
// out of each: what is left is what was changed.

#include "cmd/compare_context.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/command_name.h"
#include "base/text.h"
#include "cmd/compare_choice.h"
#include "trace/reader.h"

enum { RUNS_READ = 64, ARGUMENTS_MAX = 128 };

// A command, taken apart: an option and what follows it are one argument.
struct job {
	char *items[ARGUMENTS_MAX]; // [n] owned
	size_t n;
	char *program; // "python train.py": what is run, whichever the interpreter's version
	char *interpreter; // "/usr/bin/python3"
};

static void job_done(struct job *job)
{
	for (size_t i = 0; i < job->n; i++) {
		free(job->items[i]);
	}
	free(job->program);
	free(job->interpreter);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

// "python3.11" is "python".
static size_t length_without_version(const char *name)
{
	size_t length = strlen(name);
	while (length > 1 && strchr("0123456789.", name[length - 1])) {
		length--;
	}
	return length;
}

// Whether what a program runs is named by its first argument that is no option.
static bool is_interpreter(const char *name, size_t length)
{
	static const char *const names[] = {"python", "bash", "sh", "dash", "perl", "Rscript",
		"node", "julia", "ruby", "torchrun", "ipython", "pypy"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0) {
			return true;
		}
	}
	return false;
}

static const char *argument(const json_t *command, size_t i)
{
	const char *text = json_string_value(json_array_get(command, i));
	return text ? text : "";
}

// Of an interpreter, how many arguments name what it runs, from `at` on; they are not those of the
// job.
static size_t script_at(const json_t *command, size_t *at)
{
	size_t n = json_array_size(command), i = 1;
	while (i < n && argument(command, i)[0] == '-') {
		const char *option = argument(command, i);
		if ((strcmp(option, "-m") == 0 || strcmp(option, "-c") == 0) && i + 1 < n) {
			*at = i;
			return 2;
		}
		i++;
	}
	*at = i;
	return i < n ? 1 : 0;
}

static char *joined(const char *one, const char *other)
{
	struct text t = {0};
	text_append_string(&t, one);
	text_append_string(&t, other && *one ? " " : "");
	text_append_string(&t, other ? other : "");
	return text_steal(&t);
}

// An option with the word behind it, unless that is another option.
static bool takes_next(const json_t *command, size_t i, size_t n)
{
	const char *option = argument(command, i);
	return option[0] == '-' && option[1] && !strchr(option, '=') && i + 1 < n &&
	       argument(command, i + 1)[0] != '-';
}

static int take_arguments(struct job *job, const json_t *command, size_t script, size_t n_script)
{
	size_t n = json_array_size(command);
	for (size_t i = 1; i < n && job->n < ARGUMENTS_MAX; i++) {
		if (i >= script && i < script + n_script) {
			continue;
		}
		bool both = takes_next(command, i, n) && i + 1 != script;
		char *item = joined(argument(command, i), both ? argument(command, i + 1) : NULL);
		if (!item) {
			return -ENOMEM;
		}
		job->items[job->n++] = item;
		i += both;
	}
	return 0;
}

// Takes off what only starts the program: nice, env and its variables, timeout.
static void skip_runners(json_t *command)
{
	size_t n = json_array_size(command);
	char **words = calloc(n + 1, sizeof(*words));
	for (size_t i = 0; words && i < n; i++) {
		const char *word = argument(command, i);
		memcpy(&words[i], &word, sizeof(word)); // not written to
	}
	size_t skipped = words && n > 0 ? (size_t)(command_program(words) - words) : 0;
	free(words);
	while (skipped-- > 0) {
		json_array_remove(command, 0);
	}
}

static int job_parse(const char *text, struct job *ret)
{
	json_t *command = text ? json_loads(text, 0, NULL) : NULL;
	skip_runners(command);
	struct text program = {0};
	size_t at = 1, n_script = 0;
	const char *first = argument(command, 0), *name = base_name(first);
	size_t length = length_without_version(name);
	text_append(&program, name, length);
	if (json_array_size(command) > 0 && is_interpreter(name, length)) {
		n_script = script_at(command, &at);
		for (size_t i = at; i < at + n_script; i++) {
			text_append_string(&program, " ");
			text_append_string(&program, n_script == 1 ? base_name(argument(command, i))
								   : argument(command, i));
		}
	}
	ret->interpreter = strdup(first);
	int r = take_arguments(ret, command, at, n_script);
	ret->program = text_steal(&program);
	json_decref(command);
	return r == 0 && ret->program && ret->interpreter ? 0 : -ENOMEM;
}

static size_t count_of(const struct job *job, const char *item)
{
	size_t n = 0;
	for (size_t i = 0; i < job->n; i++) {
		n += strcmp(job->items[i], item) == 0;
	}
	return n;
}

// Whether all jobs have the argument, and equally often.
static bool is_common(const struct job *jobs, size_t n, const char *item)
{
	for (size_t i = 1; i < n; i++) {
		if (count_of(&jobs[i], item) != count_of(&jobs[0], item)) {
			return false;
		}
	}
	return true;
}

// --- rows

struct reading {
	struct compare_context *context;
	const struct catalogue_run *const *runs;
	size_t n; // in all
	size_t n_read;
};

// NULL: no memory, which costs a word.
static const char *keep(struct compare_context *c, char *text)
{
	char **grown = text ? realloc(c->owned, (c->n_owned + 1) * sizeof(*grown)) : NULL;
	if (!grown) {
		free(text);
		return NULL;
	}
	c->owned = grown;
	return grown[c->n_owned++] = text;
}

// The words of the next row; NULL where there are enough.
static const char **next_row(struct reading *r)
{
	struct compare_context *c = r->context;
	return c->n_values < CONTEXT_VALUES_MAX ? &c->words[c->n_values * r->n] : NULL;
}

static bool differ(const char **words, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		const char *a = words[0], *b = words[i];
		if ((a == NULL) != (b == NULL) || (a && strcmp(a, b) != 0)) {
			return true;
		}
	}
	return false;
}

// Keeps the row where runs differ in it.
static void add_row(struct reading *r, const char *name)
{
	struct compare_context *c = r->context;
	const char **words = next_row(r);
	if (differ(words, r->n_read)) {
		c->values[c->n_values++] = (struct pivot_value){.name = name,
			.title = name,
			.unit = "",
			.kind = MEASURE_KIND_WORDS,
			.measure = N_MEASURES,
			.words = words};
	} else {
		memset(words, 0, r->n * sizeof(*words));
	}
}

static bool has_row(const struct compare_context *c, const char *name)
{
	for (size_t i = 0; i < c->n_values; i++) {
		if (strcmp(c->values[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

static void add_labels(struct reading *r)
{
	for (size_t i = 0; i < r->n_read; i++) {
		for (size_t k = 0; k < r->runs[i]->n_labels; k++) {
			const char *label = r->runs[i]->labels[k].name;
			const char **words = next_row(r);
			if (!words || choice_label_is_automatic(label) ||
				has_row(r->context, label)) {
				continue;
			}
			for (size_t j = 0; j < r->n_read; j++) {
				words[j] = catalogue_label(r->runs[j], label);
			}
			add_row(r, label);
		}
	}
}

static void add_jobs(struct reading *r, const struct job *jobs)
{
	const char **words = next_row(r);
	for (size_t i = 0; words && i < r->n_read; i++) {
		words[i] = keep(r->context, strdup(jobs[i].program));
	}
	if (words) {
		add_row(r, "command");
	}
	words = next_row(r);
	for (size_t i = 0; words && i < r->n_read; i++) {
		struct text changed = {0};
		for (size_t k = 0; k < jobs[i].n; k++) {
			if (!is_common(jobs, r->n_read, jobs[i].items[k])) {
				text_append_string(&changed, changed.length ? " " : "");
				text_append_string(&changed, jobs[i].items[k]);
			}
		}
		words[i] = keep(r->context, text_steal(&changed));
	}
	if (words) {
		add_row(r, "arguments");
	}
	words = next_row(r);
	for (size_t i = 0; words && i < r->n_read; i++) {
		words[i] = keep(r->context, strdup(jobs[i].interpreter));
	}
	if (words) {
		add_row(r, "program");
	}
}

static const struct key {
	const char *name; // of the row
	const char *key; // of table run
	char until; // what follows is no version; 0: all of it
} keys[] = {
	{"host", "hostname", 0},
	{"kernel", "kernel", 0},
	{"framework", "hooks", ':'},
	{"blas", "blas", 0},
	{"strain", "version", 0},
	{"directory", "directory", 0},
	{"limit_cpus", "limit_cpus", 0},
	{"limit_memory", "limit_memory", 0},
	{"limit_disk_read", "limit_disk_read", 0},
	{"limit_gpus", "limit_gpus", 0},
	{"omp_num_threads", "omp_num_threads", 0},
	{"loader_workers", "loader_workers", 0},
	{"loader_batch_size", "loader_batch_size", 0},
};

static void add_keys(struct reading *r, struct reader **readers)
{
	for (size_t k = 0; k < ARRAY_LENGTH(keys); k++) {
		const char **words = next_row(r);
		for (size_t i = 0; words && i < r->n_read; i++) {
			const char *value = readers[i] ? reader_run(readers[i], keys[k].key) : NULL;
			size_t length = value && keys[k].until
			                        ? strcspn(value, (char[]){keys[k].until, 0})
			                : value ? strlen(value)
			                        : 0;
			words[i] = value ? keep(r->context, strndup(value, length)) : NULL;
		}
		if (words) {
			add_row(r, keys[k].name);
		}
	}
}

// --- one job?

static char *say_unlike(const struct job *one, const struct job *other)
{
	struct text t = {0};
	text_format(&t, "'%.60s' and '%.60s' are different jobs", one->program, other->program);
	return text_steal(&t);
}

// Trials of one sweep are what its plan compares, whatever they run.
static bool in_one_sweep(const char *one, const char *other)
{
	const char *slash = strrchr(one, '/');
	size_t length = slash ? (size_t)(slash - one) : 0;
	bool together = slash && strncmp(one, other, length + 1) == 0 &&
	                !strchr(other + length + 1, '/');
	_cleanup_free_ char *folder = together ? strndup(one, length) : NULL;
	return folder && catalogue_is_sweep(folder);
}

static void tell_unlike(struct reading *r, const struct job *jobs, bool outcomes)
{
	struct compare_context *c = r->context;
	for (size_t i = 1; i < r->n_read && !c->unlike; i++) {
		if (strcmp(jobs[0].program, jobs[i].program) != 0 &&
			!in_one_sweep(r->runs[0]->path, r->runs[i]->path)) {
			c->unlike = say_unlike(&jobs[0], &jobs[i]);
		} else if (outcomes && r->runs[0]->outcome != r->runs[i]->outcome) {
			struct text t = {0};
			text_format(&t, "they ended differently (%s, %s)",
				outcome_word(r->runs[0]->outcome),
				outcome_word(r->runs[i]->outcome));
			c->unlike = text_steal(&t);
		}
	}
}

int compare_context_read(const struct catalogue_run *const *runs, size_t n, bool outcomes,
	struct compare_context *ret)
{
	struct reading r = {ret, runs, n, n < RUNS_READ ? n : RUNS_READ};
	_cleanup_free_ struct reader **readers = calloc(r.n_read + 1, sizeof(struct reader *));
	struct job *jobs = calloc(r.n_read + 1, sizeof(*jobs));
	*ret = (struct compare_context){0};
	ret->words = calloc((n + 1) * CONTEXT_VALUES_MAX, sizeof(*ret->words));
	int result = readers && jobs && ret->words ? 0 : -ENOMEM;
	for (size_t i = 0; i < r.n_read && result == 0; i++) {
		struct error ignored = {0};
		if (reader_open(runs[i]->path, &readers[i], &ignored) < 0) {
			readers[i] = NULL;
		}
		result = job_parse(readers[i] ? reader_run(readers[i], "command") : NULL, &jobs[i]);
	}
	if (result == 0) {
		tell_unlike(&r, jobs, outcomes);
		add_jobs(&r, jobs);
		add_labels(&r);
		add_keys(&r, readers);
	}
	for (size_t i = 0; jobs && i < r.n_read; i++) {
		job_done(&jobs[i]);
		if (readers) {
			reader_free(readers[i]);
		}
	}
	free(jobs);
	return result;
}

void compare_context_done(struct compare_context *c)
{
	for (size_t i = 0; i < c->n_owned; i++) {
		free(c->owned[i]);
	}
	free(c->owned);
	free(c->words);
	free(c->unlike);
	*c = (struct compare_context){0};
}
