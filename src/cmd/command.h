// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The commands of strain: one file each, cmd/NAME.c. No other code prints or exits. A
// command gets its own arguments (argv[0] is its name) and returns the exit status.

#pragma once

#include <stdint.h>

struct reader;

enum exit_status {
	STATUS_OK = 0,
	STATUS_FAILURE = 1,
	STATUS_USAGE = 2,
	STATUS_RUN_FAILED = 125, // `strain run`, before the job starts
};

// As first word: the command prints completions of the following words, and does nothing else.
#define COMMAND_COMPLETE "--complete"

int command_advise(int argc, char **argv);
int command_compare(int argc, char **argv);
int command_completion(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_export(int argc, char **argv);
int command_finish(int argc, char **argv);
int command_ls(int argc, char **argv);
int command_mark(int argc, char **argv);
int command_report(int argc, char **argv);
int command_run(int argc, char **argv);
int command_show(int argc, char **argv);
int command_sql(int argc, char **argv);
int command_sweep(int argc, char **argv);

// All output on standard error goes through these functions, which escape characters unsafe for a
// terminal (text_append_printable).
//
// Prints "strain: TEXT".
void command_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Prints TEXT on a line of its own.
void command_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Prints prepared lines.
void command_lines(const char *lines);
// Prints a prompt for input.
void command_prompt(const char *prompt);
// Prints TEXT over the current line of progress; the next output must end that line.
void command_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void command_progress_end(void);
// Prints "strain: TEXT" and returns STATUS_FAILURE.
int command_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same for wrong usage: adds where to find help, and returns STATUS_USAGE.
int command_usage(const char *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

// Call after the output. Returns STATUS_OK, or STATUS_FAILURE if standard output could not be
// written; prints the error, except for a closed pipe.
int command_flush(void);

// --- the progress of a long read, as a line on standard error: on terminals only, after two
// seconds

struct progress {
	struct reader *reader; // NULL: nothing is shown
	uint64_t done; // blocks, and parts of spans (span_pass_parts)
	uint64_t total;
	int64_t start_ns;
	int64_t shown_ns; // 0: not shown yet
};

enum progress_of {
	// Reads most blocks for the verdict, or all if the run has no summary yet; and the spans.
	PROGRESS_ANALYSIS = 1,
	PROGRESS_BLOCKS = 2, // reads all blocks
	PROGRESS_PAGE = 4, // replays the spans for pictures
};

// Shows the progress of `reader`, which must live until progress_end. `of`: the operations that
// will be performed.
void progress_start(struct progress *p, struct reader *reader, unsigned of);
// Removes the line.
void progress_end(struct progress *p);

// Progress over many runs.
struct progress_of_runs {
	const char *doing; // "reading runs"; NULL: "reading 12 runs"
	int64_t start_ns;
	int64_t shown_ns; // 0: not shown yet
};
void progress_of_runs_start(struct progress_of_runs *p, const char *doing);
// Callback for catalogue_options; `context` is a struct progress_of_runs.
void progress_of_runs(void *context, uint64_t done, uint64_t total);
void progress_of_runs_end(struct progress_of_runs *p);
