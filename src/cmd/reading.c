// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Common to the commands that read runs: options, opening.

#include "cmd/reading.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/complete.h"
#include "run/analysis.h"
#include "runfile/amend.h"
#include "runfile/index.h"
#include "study/catalogue.h"
#include "study/prices.h"
#include "study/selection.h"

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

// Whether the option takes an argument.
static bool takes_argument(const struct argp *argp, const char *word)
{
	for (const struct argp_option *o = argp->options; o && o->name; o++) {
		bool is_long = strncmp(word, "--", 2) == 0 &&
		               strncmp(word + 2, o->name, strcspn(word + 2, "=")) == 0;
		bool is_short = word[0] == '-' && word[1] == o->key && o->key < 256;
		if (o->arg && (is_long || is_short)) {
			return true;
		}
	}
	return false;
}

// Whether the word after this one is the argument of an option.
static bool is_valued(const struct argp *argp, const char *word)
{
	bool complete = word[0] != '-' ||
	                (word[1] == '-' ? strchr(word, '=') != NULL : word[1] && word[2] != '\0');
	return !complete && takes_argument(argp, word);
}

// Options of every command. argp's own --help cannot be used together with our messages: argp's
// take two lines.
enum { OPTION_USAGE = 512 };
static const struct argp_option common_options[] = {
	{"help", 'h', NULL, 0, "print this help", -1},
	{"usage", OPTION_USAGE, NULL, 0, "print the list of options", -1},
	{0},
};

struct common {
	const struct argp *argp; // of the command
	const struct argp *all; // with the common options
	void *input;
	// Words such as -1, which argp would take for options, and the words that it sees instead,
	// in the same order.
	char **given; // [n_backs], from argv
	char **disguised;
	size_t n_backs;
};

static __attribute__((noreturn)) void refuse_option(
	const struct argp *argp, const struct argp_state *state)
{
	const struct argp_option *const tables[] = {common_options, argp->options};
	const size_t n = argp->options ? 2 : 1;
	const char *word = suggest_refused_word(state, tables, n);
	struct text said = {0};
	suggest_append_refused(&said, word, tables, n);
	reading_option_error(state, "%s", said.data ? said.data : word);
}

static error_t parse_common(int key, char *argument, struct argp_state *state)
{
	(void)argument;
	const struct common *common = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->input;
		return 0;
	case 'h':
	case OPTION_USAGE:
		argp_help(common->all, stdout, key == 'h' ? ARGP_HELP_STD_HELP : ARGP_HELP_USAGE,
			state->name);
		exit(STATUS_OK);
	case ARGP_KEY_ERROR:
		refuse_option(common->argp, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// Calls the command's own parser with the original words.
static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	struct common *common = state->input;
	for (size_t i = 0; key == ARGP_KEY_ARG && i < common->n_backs; i++) {
		argument = argument == common->disguised[i] ? common->given[i] : argument;
	}
	state->input = common->input;
	error_t result = common->argp->parser(key, argument, state);
	state->input = common;
	return result;
}

// Disguises words such as -1: they are runs, unless they follow an option that takes an argument.
static void disguise_backs(struct common *common, int argc, char **argv)
{
	common->given = calloc((size_t)argc + 1, sizeof(char *));
	common->disguised = calloc((size_t)argc + 1, sizeof(char *));
	for (int i = 1; i < argc && common->given && common->disguised; i++) {
		char *copy = NULL;
		if (strcmp(argv[i], "--") == 0) {
			return;
		}
		if (!run_name_is_back(argv[i]) || is_valued(common->argp, argv[i - 1]) ||
			!(copy = strdup(argv[i]))) {
			continue;
		}
		*copy = '+';
		common->given[common->n_backs] = argv[i];
		common->disguised[common->n_backs++] = copy;
		argv[i] = copy;
	}
}

static void undisguise_backs(struct common *common, int argc, char **argv)
{
	for (size_t k = 0; k < common->n_backs; k++) {
		for (int i = 1; i < argc; i++) {
			argv[i] = argv[i] == common->disguised[k] ? common->given[k] : argv[i];
		}
		free(common->disguised[k]);
	}
	free(common->given);
	free(common->disguised);
}

static void parse_options(
	const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
	struct argp own = *argp;
	own.parser = parse_own;
	const struct argp_child children[] = {{&own, 0, NULL, 0}, {0}};
	const struct argp all = {common_options, parse_common, NULL, NULL, children, NULL, NULL};
	struct common common = {.argp = argp, .all = &all, .input = input};
	struct text name = {0};
	text_format(&name, "strain %s", argv[0]);
	// Tables count characters, and all text of runs is valid UTF-8 or made so.
	setlocale(LC_CTYPE, "C.UTF-8");
	_cleanup_free_ char *shown = text_steal(&name);
	char *given = argv[0];
	argv[0] = shown ? shown : given;
	if (!(flags & ARGP_IN_ORDER)) {
		disguise_backs(&common, argc, argv);
	}
	if (argp_parse(&all, argc, argv, flags | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, &common) != 0) {
		command_usage(given, "wrong options");
		exit(STATUS_USAGE);
	}
	undisguise_backs(&common, argc, argv);
	argv[0] = given;
}

// Answers a shell's request for completions (COMMAND_COMPLETE).
static void complete_if_asked(const struct argp *argp, int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], COMMAND_COMPLETE) == 0) {
		complete_print(argv[0], argp->options, argc - 2, argv + 2);
		exit(command_flush());
	}
}

void reading_options(const struct argp *argp, int argc, char **argv, void *input)
{
	complete_if_asked(argp, argc, argv);
	parse_options(argp, argc, argv, 0, input);
}

void reading_options_before(const struct argp *argp, int argc, char **argv, void *input)
{
	complete_if_asked(argp, argc, argv);
	parse_options(argp, argc, argv, ARGP_IN_ORDER, input);
}

static void print_notice(const char *notice)
{
	command_note("%s", notice);
}

// Prints the notice of the reader, if there is one.
static void reading_notice(struct reader *reader)
{
	const char *notice = reader_notice(reader);
	if (notice) {
		_cleanup_text_ struct text line = {0};
		text_format(&line, "%s: %s", reader_path(reader), notice);
		print_notice(line.data ? line.data : notice);
	}
}

struct reader *reading_open(const char *name)
{
	struct error e = {0};
	_cleanup_free_ char *path = NULL;
	struct reader *reader = NULL;
	int r = name ? run_name_find(name, RUN_NAME_FILE, &path, &e)
	             : index_newest_run(0, &path, &e);
	r = r < 0 ? r : reader_open(path, &reader, &e);
	if (r == 0 && reader_is_unclosed(reader)) {
		reader_free(reader);
		reader = NULL;
		(void)amend_close(path, NULL); // if possible
		r = reader_open(path, &reader, &e);
	}
	if (r < 0) {
		print_notice(e.text);
		return NULL;
	}
	reading_notice(reader);
	return reader;
}

bool reading_find_all(char **names, size_t n, enum run_name_kind kind)
{
	bool found = true;
	for (size_t i = 0; i < n; i++) {
		struct error e = {0};
		char *path = NULL;
		if (run_name_find(names[i], kind, &path, &e) < 0) {
			print_notice(e.text);
			found = false;
		}
		names[i] = path;
	}
	return found;
}

size_t reading_find_places(char **names)
{
	struct places places;
	if (places_find(&places) < 0) {
		return 0;
	}
	// Of two, the first is the one that could not be written; it need not exist.
	size_t skipped = places.n > 1 && access(places.paths[0], R_OK | X_OK) < 0;
	if (skipped) {
		command_note("%s: %s; its runs are in %s", places.paths[0], strerrordesc_np(errno),
			places.paths[1]);
		free(places.paths[0]);
	}
	memcpy(names, places.paths + skipped, (places.n - skipped) * sizeof(*names));
	return places.n - skipped;
}

void reading_damaged_blocks(const struct reader *reader)
{
	uint64_t blocks = reader_damage(reader);
	if (blocks > 0) {
		command_note("%s: %llu damaged block%s skipped", reader_path(reader),
			(unsigned long long)blocks, blocks > 1 ? "s" : "");
	}
}

void reading_damage(const struct analysis *a)
{
	if (a->damage.code) {
		print_notice(a->damage.text);
	}
	reading_damaged_blocks(a->tables.reader);
}

// The text after the path in "PATH: TEXT".
static const char *said_of(const char *line)
{
	const char *colon = strstr(line, ": ");
	return colon ? colon + 2 : line;
}

static bool was_said(char *const *lines, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (strcmp(said_of(lines[k]), said_of(lines[i])) == 0) {
			return true;
		}
	}
	return false;
}

// Prints lines "PATH: TEXT"; equal texts once: "3 runs: TEXT (a.strain, b.strain, ...)".
static void say_grouped(char *const *lines, size_t n)
{
	enum { NAMED = 3 };
	for (size_t i = 0; i < n; i++) {
		_cleanup_text_ struct text names = {0}, line = {0};
		size_t same = 0;
		if (was_said(lines, i)) {
			continue;
		}
		for (size_t k = i; k < n; k++) {
			const char *what = said_of(lines[k]);
			if (strcmp(what, said_of(lines[i])) == 0 && same++ < NAMED) {
				text_append_string(&names, same > 1 ? ", " : "");
				text_append(&names, lines[k],
					what > lines[k] ? (size_t)(what - lines[k]) - 2 : 0);
			}
		}
		text_format(&line, "%zu runs: %s (%s%s)", same, said_of(lines[i]),
			names.data ? names.data : "", same > NAMED ? ", ..." : "");
		print_notice(same > 1 && line.data ? line.data : lines[i]);
	}
}

int reading_catalogue(
	char *const *paths, size_t n, const struct catalogue_options *wanted, struct catalogue *ret)
{
	struct error e = {0};
	struct progress_of_runs progress;
	struct catalogue_options options = *wanted;
	options.progressed = progress_of_runs;
	options.context = &progress;
	progress_of_runs_start(&progress, NULL);
	int r = catalogue_read_with(paths, n, &options, ret, &e);
	progress_of_runs_end(&progress);
	if (r < 0) {
		print_notice(e.text);
		return STATUS_FAILURE;
	}
	say_grouped(ret->unreadable, ret->n_unreadable);
	say_grouped(ret->notices, ret->n_notices);
	return STATUS_OK;
}

void reading_condition(struct selection *s, const char *argument, const struct argp_state *state)
{
	struct error e = {0};
	if (selection_add(s, argument, &e) < 0) {
		reading_option_error(state, "--where: %s", e.text);
	}
}

void reading_unknown_label(
	const struct catalogue *c, const char *option, const char *name, bool measures_too)
{
	_cleanup_text_ struct text line = {0};
	selection_append_unknown(&line, c, option, name, measures_too);
	print_notice(line.data ? line.data : "");
}

bool reading_knows_conditions(const struct selection *s, const struct catalogue *c)
{
	const char *unknown = selection_unknown_name(s, c);
	if (unknown) {
		reading_unknown_label(c, "--where", unknown, true);
	}
	return !unknown;
}

bool reading_has_prices(
	const struct selection *s, const struct catalogue *c, const struct prices *prices)
{
	const char *priced = prices ? NULL : selection_needs_prices(s, c);
	if (priced) {
		command_fail("--where %s: needs a price list (--prices FILE)", priced);
	}
	return !priced;
}

bool reading_prices(const char *path, struct prices *room, const struct prices **ret)
{
	struct error e = {0};
	const char *chosen = path ? path : secure_getenv("STRAIN_PRICES");
	*ret = NULL;
	*room = (struct prices){0};
	if (!chosen || (!path && !*chosen)) {
		return true;
	}
	if (prices_open(chosen, room, &e) < 0) {
		command_fail("%s%s", path ? "--prices: " : "STRAIN_PRICES: ", e.text);
		return false;
	}
	*ret = room;
	return true;
}
