// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Options and runs for the commands that read.

#include "cmd/reading.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/catalogue.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/command.h"
#include "render/json.h"

void reading_option_error(const struct argp_state *state, const char *format, ...)
{
	struct text said = {0};
	char line[480];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	text_append_printable(&said, line, strlen(line));
	// "strain show" without its first word
	command_usage(strchr(state->argv[0], ' ') + 1, "%s", said.data ? said.data : "");
	exit(STATUS_USAGE);
}

// Whether an option of that name takes an argument.
static bool takes_argument(const struct argp *argp, const char *word)
{
	for (const struct argp_option *o = argp->options; o->name; o++) {
		bool is_long = strncmp(word, "--", 2) == 0 &&
		               strncmp(word + 2, o->name, strcspn(word + 2, "=")) == 0;
		bool is_short = word[0] == '-' && word[1] == o->key && o->key < 256;
		if (o->arg && (is_long || is_short)) {
			return true;
		}
	}
	return false;
}

// Options of every command. argp's own --help would go with its messages, which take two lines.
enum { OPTION_USAGE = 512 };
static const struct argp_option common_options[] = {
	{"help", 'h', NULL, 0, "print this", -1},
	{"usage", OPTION_USAGE, NULL, 0, "print the options in short", -1},
	{0},
};

struct common {
	const struct argp *argp; // of the command
	const struct argp *all; // with the common options
	void *input;
};

static error_t parse_common(int key, char *argument, struct argp_state *state)
{
	(void)argument;
	const struct common *common = state->input;
	const char *word = state->next > 0 && state->next <= state->argc
	                           ? state->argv[state->next - 1]
	                           : "";
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = common->input;
		return 0;
	case 'h':
	case OPTION_USAGE:
		argp_help(common->all, stdout, key == 'h' ? ARGP_HELP_STD_HELP : ARGP_HELP_USAGE,
			state->name);
		exit(STATUS_OK);
	case ARGP_KEY_ERROR:
		reading_option_error(state,
			takes_argument(common->argp, word) ? "option '%s' needs an argument"
							   : "no option '%s'",
			word);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void parse_options(
	const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
	const struct argp_child children[] = {{argp, 0, NULL, 0}, {0}};
	const struct argp all = {common_options, parse_common, NULL, NULL, children, NULL, NULL};
	struct common common = {argp, &all, input};
	struct text name = {0};
	text_format(&name, "strain %s", argv[0]);
	// Tables count characters, in every language: what runs hold is UTF-8 or made so.
	setlocale(LC_CTYPE, "C.UTF-8");
	_cleanup_free_ char *shown = text_steal(&name);
	char *given = argv[0];
	argv[0] = shown ? shown : given;
	if (argp_parse(&all, argc, argv, flags | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, &common) != 0) {
		command_usage(given, "wrong options");
		exit(STATUS_USAGE);
	}
	argv[0] = given;
}

void reading_options(const struct argp *argp, int argc, char **argv, void *input)
{
	parse_options(argp, argc, argv, 0, input);
}

void reading_options_before(const struct argp *argp, int argc, char **argv, void *input)
{
	parse_options(argp, argc, argv, ARGP_IN_ORDER, input);
}

static void print_notice(const char *notice)
{
	struct text shown = {0};
	text_append_printable(&shown, notice, strlen(notice));
	fprintf(stderr, "strain: %s\n", shown.data ? shown.data : "");
	text_done(&shown);
}

// Says what opening the run found.
static void reading_notice(struct reader *reader)
{
	const char *notice = reader_notice(reader);
	if (notice) {
		_cleanup_text_ struct text line = {0};
		text_format(&line, "%s: %s", reader_path(reader), notice);
		print_notice(line.data ? line.data : notice);
	}
}

struct reader *reading_open(const char *path)
{
	struct error e = {0};
	_cleanup_free_ char *newest = NULL;
	struct reader *reader = NULL;
	int r = path ? 0 : catalogue_newest(&newest, &e);
	r = r < 0 ? r : reader_open(path ? path : newest, &reader, &e);
	if (r < 0) {
		print_notice(e.text);
		return NULL;
	}
	reading_notice(reader);
	return reader;
}

void reading_damaged_blocks(const struct reader *reader)
{
	uint64_t blocks = reader_damage(reader);
	if (blocks > 0) {
		fprintf(stderr, "strain: %s: %llu damaged block%s left out\n", reader_path(reader),
			(unsigned long long)blocks, blocks > 1 ? "s" : "");
	}
}

void reading_damage(const struct analysis *a)
{
	if (a->damage.code) {
		print_notice(a->damage.text);
	}
	reading_damaged_blocks(a->reader);
}

json_t *reading_labels(const struct overview *o)
{
	json_t *labels = json_object();
	for (size_t i = 0; i < o->n_labels; i++) {
		struct text name = {0};
		text_append_utf8(&name, o->labels[i].name, strlen(o->labels[i].name));
		json_object_set_new(
			labels, name.data ? name.data : "", json_from_text(o->labels[i].value));
		text_done(&name);
	}
	return labels;
}

int reading_finish(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout)) {
		return STATUS_OK;
	}
	// Whoever reads the other end has seen enough.
	return errno == EPIPE ? STATUS_OK
	                      : command_fail("cannot write: %s", strerrordesc_np(errno));
}
