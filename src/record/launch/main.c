// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain-record, to which `strain run` execs: parses the options and starts launcher.c.

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/text.h"
#include "record/launch/launcher.h"
#include "record/options.h"
#include "record/launch/say.h"
#include "record/output/output.h"
#include "runfile/database.h"
#include "runfile/index.h"
#include "runfile/labels.h"

#define INTERVAL_MIN_NS (100 * NS_PER_US)
#define INTERVAL_MAX_NS (60 * NS_PER_S)
#define OVERHEAD_DEFAULT 0.01
#define SIZE_DEFAULT (UINT64_C(256) << 20)
#define SIZE_MIN (UINT64_C(1) << 20)

static const char about[] =
	"Record a job from start to end: the command and its descendants, the host, disks and "
	"GPUs, in one run file.\vThe job keeps its input, output, signals and exit status; strain "
	"writes only to standard error. Exit status: that of the job; 125 if strain failed before "
	"the job started, 126 if the command cannot be executed, 127 if it was not "
	"found.\n\nExamples:\n  strain run python3 train.py --batch-size 64\n  strain run --label "
	"batch_size=64 -o big.strain -- ./train --epochs 3\n  strain run --epoch-pattern '^Epoch "
	"(?<epoch>\\d+).*loss=(?<loss>\\S+)' python3 train.py";

struct parsing {
	struct run_options options;
	size_t labels_capacity;
	bool interval_given;
	bool overhead_given;
	unsigned help; // what argp_help prints; 0: nothing, the job runs
	struct error error;
	bool limit_refused; // its value is invalid on any machine
};

static const struct run_label *find_label(const struct parsing *p, const char *name, size_t length)
{
	for (size_t i = 0; i < p->options.n_labels; i++) {
		const char *known = p->options.labels[i].name;
		if (strncmp(known, name, length) == 0 && known[length] == '\0') {
			return &p->options.labels[i];
		}
	}
	return NULL;
}

static int add_label(struct parsing *p, const char *name, size_t length, const char *value)
{
	struct run_options *options = &p->options;
	char *name_copy = strndup(name, length), *copy = strdup(value);
	if (!copy || !name_copy ||
		array_reserve((void **)&options->labels, &p->labels_capacity, options->n_labels + 1,
			sizeof(*options->labels)) < 0) {
		free(copy);
		free(name_copy);
		return error_errno(&p->error, ENOMEM, "label");
	}
	options->labels[options->n_labels++] = (struct run_label){name_copy, copy};
	return 0;
}

// Options given explicitly take precedence.
static int read_environment(struct parsing *p)
{
	int rc = 0;
	for (size_t i = 0; labels_of_launchers[i] && rc == 0; i++) {
		const char *name = labels_of_launchers[i], *value = getenv(name);
		if (value && *value && strlen(value) < RUN_LABEL_VALUE_BYTES_MAX &&
			!find_label(p, name, strlen(name))) {
			rc = add_label(p, name, strlen(name), value);
		}
	}
	return rc;
}

static int read_label(struct parsing *p, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : 0;
	if (length == 0) {
		return error_set(
			&p->error, EINVAL, "--label: expected NAME=VALUE, found '%s'", text);
	}
	if (length > RUN_LABEL_NAME_BYTES_MAX || strlen(equals + 1) > RUN_LABEL_VALUE_BYTES_MAX) {
		return error_set(&p->error, EINVAL,
			"--label: expected a name of at most %d bytes and a value of at most %d",
			RUN_LABEL_NAME_BYTES_MAX, RUN_LABEL_VALUE_BYTES_MAX);
	}
	for (const char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f || (*c == ' ' && c < equals)) {
			return error_set(&p->error, EINVAL,
				"--label: '%.*s' contains a blank or a control character",
				(int)length, text);
		}
	}
	const struct run_label *given = find_label(p, text, length);
	if (given && strcmp(given->value, equals + 1) != 0) {
		return error_set(&p->error, EINVAL, "--label: '%s' is given twice: '%s' and '%s'",
			given->name, given->value, equals + 1);
	}
	return given ? 0 : add_label(p, text, length, equals + 1);
}

// The label by which the runs of one job find each other (study/joint.h).
static int read_job(struct parsing *p, const char *text)
{
	_cleanup_text_ struct text label = {0};
	text_format(&label, "job=%s", text);
	if (label.failed) {
		return error_errno(&p->error, ENOMEM, "--job");
	}
	if (*text == '\0') {
		return error_set(&p->error, EINVAL, "--job: expected a name, found nothing");
	}
	return read_label(p, label.data);
}

static int read_interval(struct parsing *p, const char *text)
{
	uint64_t interval;
	int rc = parse_duration(text, &interval, &p->error);
	if (rc == 0 && (interval < INTERVAL_MIN_NS || interval > INTERVAL_MAX_NS)) {
		rc = error_set(&p->error, ERANGE, "expected 100us to 60s, found '%s'", text);
	}
	if (rc < 0) {
		return error_prefix(&p->error, "--interval");
	}
	p->options.interval_ns = interval;
	p->interval_given = true;
	return 0;
}

static int read_overhead(struct parsing *p, const char *text)
{
	double ratio;
	int rc = parse_percent(text, &ratio, &p->error);
	if (rc == 0 && !(ratio > 0)) {
		rc = error_set(&p->error, ERANGE, "expected more than 0%%, found '%s'", text);
	}
	if (rc < 0) {
		return error_prefix(&p->error, "--overhead");
	}
	p->options.overhead = ratio;
	p->overhead_given = true;
	return 0;
}

static int read_size(struct parsing *p, const char *text)
{
	uint64_t bytes;
	int rc = parse_size(text, &bytes, &p->error);
	if (rc == 0 && bytes < SIZE_MIN) {
		rc = error_set(&p->error, ERANGE, "expected at least 1MiB, found '%s'", text);
	}
	if (rc < 0) {
		return error_prefix(&p->error, "--max-size");
	}
	p->options.max_bytes = bytes;
	return 0;
}

static int read_pid(struct parsing *p, const char *text)
{
	int64_t pid;
	if (parse_integer(text, 1, INT32_MAX, &pid, &p->error) < 0) {
		return error_prefix(&p->error, "--pid");
	}
	p->options.pid = (pid_t)pid;
	return 0;
}

static int read_pattern(struct parsing *p, const char *text)
{
	struct output_pattern *pattern = NULL;
	if (strcmp(text, OUTPUT_PATTERN_NONE) == 0) {
		free(take_pointer(p->options.epoch_pattern));
		return 0;
	}
	if (output_pattern_new(text, &pattern, &p->error) < 0) {
		return error_prefix(&p->error, "--epoch-pattern");
	}
	output_pattern_free(pattern);
	free(p->options.epoch_pattern);
	p->options.epoch_pattern = strdup(text);
	return p->options.epoch_pattern ? 0 : error_errno(&p->error, ENOMEM, "--epoch-pattern");
}

static int read_output(struct parsing *p, const char *text)
{
	if (*text == '\0' || text[strlen(text) - 1] == '/') {
		return error_set(
			&p->error, EINVAL, "--output: expected a file name, found '%s'", text);
	}
	free(p->options.output);
	p->options.output = strdup(text);
	return p->options.output ? 0 : error_errno(&p->error, ENOMEM, "--output");
}

static int read_limit(struct parsing *p, enum limit limit, const char *text)
{
	int rc = limits_read(&p->options.limits, limit, text, &p->error);
	p->limit_refused = rc == -EINVAL || rc == -ERANGE;
	return rc;
}

// Reports an argument that argp rejected: an unknown option, or one without its value.
static void explain_option(struct parsing *p, const struct argp_state *state)
{
	const struct argp_option *const tables[] = {run_option_table};
	const char *word = suggest_refused_word(state, tables, ARRAY_LENGTH(tables));
	_cleanup_text_ struct text said = {0};
	suggest_append_refused(&said, word, tables, ARRAY_LENGTH(tables));
	error_set(&p->error, EINVAL, "%s", said.data ? said.data : word);
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct parsing *p = state->input;
	switch (key) {
	case 'o':
		return -read_output(p, argument);
	case OPTION_FORCE:
		p->options.force = true;
		return 0;
	case OPTION_INTERVAL:
		return -read_interval(p, argument);
	case OPTION_OVERHEAD:
		return -read_overhead(p, argument);
	case OPTION_LABEL:
		return -read_label(p, argument);
	case OPTION_JOB:
		return -read_job(p, argument);
	case OPTION_EPOCH_PATTERN:
		return -read_pattern(p, argument);
	case OPTION_MAX_SIZE:
		return -read_size(p, argument);
	case OPTION_PID:
		return -read_pid(p, argument);
	case OPTION_CPUS:
	case OPTION_MEMORY:
	case OPTION_DISK_READ:
	case OPTION_GPUS:
		return -read_limit(p, (enum limit)(key - OPTION_CPUS), argument);
	case OPTION_NO_CGROUP:
		p->options.no_cgroup = true;
		return 0;
	case OPTION_NO_MARKERS:
		p->options.no_markers = true;
		return 0;
	case OPTION_NO_HOOKS:
		p->options.no_hooks = true;
		return 0;
	case OPTION_NO_PROFILE:
		p->options.no_profile = true;
		return 0;
	case OPTION_LINES:
		p->options.lines = true;
		return 0;
	case OPTION_NO_VERDICT:
		p->options.no_verdict = true;
		return 0;
	case OPTION_SUPERVISED:
		p->options.supervised = true;
		return 0;
	case OPTION_OVERLAY:
		p->options.overlay = argument;
		return 0;
	case OPTION_HELP:
	case OPTION_USAGE:
		p->help = key == OPTION_HELP ? ARGP_HELP_STD_HELP & ~(unsigned)ARGP_HELP_EXIT_OK
		                             : ARGP_HELP_USAGE;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_ARG:
		// The first word that is not an option begins the command; all following words
		// belong to it.
		p->options.command = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_ERROR:
		if (p->error.code == 0) {
			explain_option(p, state);
		}
		return ARGP_ERR_UNKNOWN;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// `-o mine` becomes mine.strain, which all commands find. An existing path that is not a regular
// file is kept, and cannot be written.
static int complete_output(struct parsing *p)
{
	const char *output = p->options.output;
	struct stat status;
	char *completed = NULL;
	bool whole = !output || p->options.supervised || index_run_name_is(output) ||
	             (stat(output, &status) == 0 && !S_ISREG(status.st_mode));
	if (whole) {
		return 0;
	}
	if (asprintf(&completed, "%s.strain", output) < 0) {
		return error_errno(&p->error, ENOMEM, "--output");
	}
	free(p->options.output);
	p->options.output = completed;
	return 0;
}

static int check_options(struct parsing *p)
{
	struct run_options *options = &p->options;
	if (options->pid > 0 && options->command) {
		return error_set(
			&p->error, EINVAL, "--pid records a running process and takes no command");
	}
	if (options->pid > 0 && options->epoch_pattern) {
		return error_set(&p->error, EINVAL,
			"--epoch-pattern needs a command: the output of a running process cannot "
			"be read");
	}
	for (int i = 0; options->pid > 0 && i < N_LIMITS; i++) {
		if (options->limits.wanted[i]) {
			return error_set(&p->error, EINVAL,
				"%s needs a command: a running process cannot be limited",
				limit_option((enum limit)i));
		}
	}
	if (options->pid > 0 && options->lines) {
		return error_set(&p->error, EINVAL,
			"--lines needs a command: a running process cannot be hooked");
	}
	if (options->lines && options->no_hooks) {
		return error_set(&p->error, EINVAL,
			"--lines cannot be combined with --no-hooks: the hooks sample the lines");
	}
	if (options->lines && options->no_markers) {
		return error_set(&p->error, EINVAL,
			"--lines cannot be combined with --no-markers: the hooks need the "
			"directory for marks");
	}
	if (options->overlay && !options->command) {
		return error_set(&p->error, EINVAL, "--overlay needs a command");
	}
	if (options->pid == 0 && !options->command) {
		return error_set(&p->error, EINVAL, "expected a command to run");
	}
	options->overhead = p->overhead_given   ? options->overhead
	                    : p->interval_given ? 0
	                                        : OVERHEAD_DEFAULT;
	return complete_output(p);
}

static const struct argp parser = {
	.options = run_option_table,
	.parser = parse_option,
	.args_doc = "[--] COMMAND [ARGUMENT]...",
	.doc = about,
};

static int parse_options(struct parsing *p, int argc, char **argv)
{
	// argp's own messages take two lines, and disabling them disables its help.
	unsigned flags = ARGP_IN_ORDER | ARGP_NO_ERRS | ARGP_NO_HELP;
	int rc = argp_parse(&parser, argc, argv, flags, NULL, p);
	return rc != 0 ? -rc : p->help ? 0 : check_options(p);
}

static void free_options(struct parsing *p)
{
	for (size_t i = 0; i < p->options.n_labels; i++) {
		free(p->options.labels[i].name);
		free(p->options.labels[i].value);
	}
	free(p->options.labels);
	free(p->options.epoch_pattern);
	free(p->options.output);
	limits_wanted_done(&p->options.limits);
}

int main(int argc, char **argv)
{
	struct parsing p = {
		.options = {.max_bytes = SIZE_DEFAULT},
	};
	int status = LAUNCHER_FAILED;
	if (parse_options(&p, argc, argv) < 0 || read_environment(&p) < 0) {
		say("%s (strain run --help)", p.error.text);
		status = p.limit_refused && p.options.supervised ? LAUNCH_REFUSED : status;
	} else if (p.help) {
		char name[] = "strain run";
		argp_help(&parser, stdout, p.help, name);
		status = 0;
	} else {
		status = launcher_run(&p.options);
	}
	free_options(&p);
	return status;
}
