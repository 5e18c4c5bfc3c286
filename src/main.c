// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain: records a deep-learning training job, explains what limits it, and suggests what to
// change.
//
// The program has two parts, connected by the run file:
//
// - base/: errors, cleanup, parsing, clocks, arrays, text, files, secrets
// - machine/: a machine under a root directory: kernel text files, cgroups, NVML, processes
// - runfile/: the run file: schema.sql, codec (blocks), writer, reader, samples and spans as SQL
//   tables, index (the runs of a directory)
// - record/: strain-record, a program of its own
//   - launch/: main.c parses the options of `run`; launcher.c starts recorder and job, keeps
//     terminal, signals and exit status while the job runs, and ends the run
//   - recorder.c is the other process: sample/sampler.c schedules the readings, source/ has one
//     file per kind of measurement (list.c lists them, null.c is a template), mark/ reads the
//     job's marks, output/ finds epochs in the job's output, scribe.c writes the file
//   - job/: limits of the job, the hooks injected into it, the name of its run
// - run/: one run: analysis.c loads it in stages (tables, processes, overview, phases); summary,
//   allocation, energy, measures, outcome
// - verdict/: facts.c gathers numbers, causes.c has the table of causes; each cause has its
//   sentence and its advice in its row; verdict.c puts them together
// - study/: many runs: catalogue.c, digest.c, selection.c, run_table.c (SQL), prices.c, pivot.c,
//   comparison.c, layout.c
// - sweep/: plan (YAML), trials (the matrix), sweep (the directory), executors, results
// - probe/: short runs of a job that measure its largest batch, stalls and the gain of advice,
//   and models of memory and rate
// - show/: tables, JSON, CSV, figure.c (gnuplot draws by figure.gp), page.c, which fills web/
//   with a run's data
// - cmd/: one file per command in the table below; the only place that prints or exits
//
// kernel, NVML -> machine -> source -> sampler -> writer -> run file -> reader -> run -> verdict
//
// docs/architecture.md has more details; docs/format.md describes the run file.

#include <argp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/complete.h"
#include "cmd/reading.h"
#include "record/options.h"
#include "show/json.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary; // NULL: internal command
};

static int help(int argc, char **argv);
static int complete(int argc, char **argv);
static int version(int argc, char **argv);

static const struct command commands[] = {
	{"run", command_run, "record a job from start to end"},
	{"report", command_report, "write an HTML page of runs, or a figure for a paper"},
	{"show", command_show, "show the verdict, epochs, processes and devices of a run"},
	{"ls", command_ls, "list runs, filtered and sorted by label or measure"},
	{"compare", command_compare, "compare runs and sweeps, with tests of significance"},
	{"export", command_export, "print the samples of a run as CSV or JSON"},
	{"sql", command_sql, "query a run with SQL"},
	{"mark", command_mark, "mark epochs and phases of a shell script"},
	{"sweep", command_sweep, "run or resume a matrix of configurations"},
	{"advise", command_advise,
		"measure the limits of a job with short runs, and recommend changes"},
	{"doctor", command_doctor,
		"report what this machine can measure, and how to enable the "
		"rest"},
	{"completion", command_completion, "print a completion script for bash, zsh or fish"},
	{"complete", complete, NULL},
	{"finish", command_finish, NULL},
	{"help", help, NULL},
	{"version", version, NULL},
};

static void print_help(FILE *stream)
{
	fputs("Usage: strain COMMAND [OPTION]...\n\nRecord a deep-learning training job, explain "
	      "what limits it, and suggest what to change.\n\n",
		stream);
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++) {
		if (commands[i].summary) {
			fprintf(stream, "  %-11s %s\n", commands[i].name, commands[i].summary);
		}
	}
	fputs("\nstrain help COMMAND   show the options of a command\nman strain            read "
	      "the manual\nstrain version        print the version\n",
		stream);
}

// Whether a command exists, including those not listed for users.
static bool is_known(const struct command *command)
{
	return command->summary || command->run == help || command->run == version;
}

static int unknown_command(const char *name)
{
	struct suggestion_of_word nearest = SUGGEST_NONE;
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++) {
		if (is_known(&commands[i])) {
			suggest_consider(&nearest, name, commands[i].name);
		}
	}
	_cleanup_text_ struct text shown = {0};
	text_append_printable(&shown, name, strlen(name));
	name = shown.data ? shown.data : "";
	if (nearest.word) {
		command_fail("no command '%s'; did you mean '%s'?", name, nearest.word);
	} else {
		command_fail("no command '%s' (strain --help)", name);
	}
	return STATUS_USAGE;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++) {
		if (strcmp(name, commands[i].name) == 0) {
			return &commands[i];
		}
	}
	return NULL;
}

static int help(int argc, char **argv)
{
	char option[] = "--help";
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_help(stdout);
		return command_flush();
	}
	const struct command *command = find_command(argv[1]);
	if (!command || !is_known(command)) {
		return unknown_command(argv[1]);
	}
	if (argc > 2) {
		command_fail("expected one command, also found '%s' (strain --help)", argv[2]);
		return STATUS_USAGE;
	}
	char *words[] = {argv[1], option, NULL};
	return command->run(2, words);
}

static const struct argp_option version_options[] = {
	{"json", 256, NULL, 0, "print one JSON document", 0},
	{0},
};

static error_t parse_version(int key, char *argument, struct argp_state *state)
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

static int version(int argc, char **argv)
{
	static const struct argp argp = {
		version_options, parse_version, NULL, "Print the version.", NULL, NULL, NULL};
	bool json = false;
	reading_options(&argp, argc, argv, &json);
	if (!json) {
		printf("strain %s\n", STRAIN_VERSION);
		return command_flush();
	}
	int r = json_write(json_pack("{s:s}", "version", STRAIN_VERSION), stdout);
	return r < 0 ? command_fail("cannot write: %s", strerrordesc_np(-r)) : command_flush();
}

static void complete_command(const char *typed)
{
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++) {
		const char *summary = commands[i].summary;
		if (is_known(&commands[i])) {
			complete_candidate(typed, commands[i].name, summary ? summary : "");
		}
	}
	if (*typed == '-') {
		complete_candidate(typed, "--help", "list the commands");
		complete_candidate(typed, "--version", "print the version");
	}
}

// strain complete WORD...: prints completions of the last word of a `strain` command line. Each
// command knows its own options.
static int complete(int argc, char **argv)
{
	const struct command *command = argc > 2 ? find_command(argv[1]) : NULL;
	char word[] = COMMAND_COMPLETE;
	if (argc < 3 || (command && command->run == help && argc == 3)) {
		complete_command(argc > 1 ? argv[argc - 1] : "");
		return STATUS_OK;
	}
	if (!command || !is_known(command) || command->run == help) {
		return STATUS_OK;
	}
	if (command->run == command_run) { // its options are in the main of another program
		complete_print(argv[1], run_option_table, argc - 2, argv + 2);
		return STATUS_OK;
	}
	argv[0] = argv[1];
	argv[1] = word;
	return command->run(argc, argv);
}

// Truncating a mapped file, such as the memory that SQLite shares beside a live run, kills its
// readers by SIGBUS. This prints a line and ends without a core dump.
static void file_was_cut(int signal_number)
{
	static const char text[] = "strain: a file was truncated while it was read\n";
	(void)signal_number;
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(STATUS_FAILURE);
}

static void watch_mapped_files(void)
{
	struct sigaction action = {.sa_handler = file_was_cut};
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL); // execve resets it: jobs have their own
}

int main(int argc, char **argv)
{
	watch_mapped_files();
	if (argc < 2) {
		print_help(stderr);
		return STATUS_USAGE;
	}
	const char *name = argv[1];
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		print_help(stdout);
		return command_flush();
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		printf("strain %s\n", STRAIN_VERSION);
		return command_flush();
	}
	const struct command *command = find_command(name);
	return command ? command->run(argc - 1, argv + 1) : unknown_command(name);
}
