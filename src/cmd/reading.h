// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Options and errors common to the commands that read runs.

#pragma once

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "runfile/reader.h"

// Parses options with argp: --help and --usage print and exit; a wrong one is said in one line and
// ends the program with STATUS_USAGE. argv[0] is the command's name. A word such as -1 is a run, an
// argument and no option.
void reading_options(const struct argp *argp, int argc, char **argv, void *input);
// The same for a command whose arguments are another's: what follows its first word is no option.
void reading_options_before(const struct argp *argp, int argc, char **argv, void *input);
// The same from within a parser, where argp_error would take two lines.
void reading_option_error(const struct argp_state *state, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

// Opens a run: the one that `name` means (run_name.h), else (NULL) the newest. Says what is worth a
// line on standard error. NULL after it has said why it cannot.
struct reader *reading_open(const char *name);

// Puts the paths in place of the names of runs, sweeps and directories, owned by the caller. False
// after it has said of each what is wrong.
bool reading_find_all(char **names, size_t n);

// Makes `names` (room for two) the folders whose runs a command means where none is named; owned by
// the caller. Returns how many, 0 where there is no memory.
size_t reading_find_places(char **names);

// Says on standard error what of the run could not be read.
struct analysis;
void reading_damage(const struct analysis *a);
void reading_damaged_blocks(const struct reader *reader);

// A run's labels as a JSON object; a new reference.
struct overview;
struct json_t *reading_labels(const struct overview *o);

// After the output: STATUS_OK, or STATUS_FAILURE where standard output could not be written (said,
// but for a closed pipe).
int reading_finish(void);
