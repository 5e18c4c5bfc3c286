// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Options and errors common to the commands that read runs.

#pragma once

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "runfile/reader.h"
#include "study/run_name.h"

struct catalogue;
struct catalogue_options;
struct prices;
struct selection;

// Parses options with argp. --help and --usage print and exit. A wrong option is reported in one
// line, and the program exits with STATUS_USAGE. argv[0] is the command's name. A word such as -1
// is an argument (a run), not an option.
void reading_options(const struct argp *argp, int argc, char **argv, void *input);
// The same if the arguments are a command: words after the first one are not options.
void reading_options_before(const struct argp *argp, int argc, char **argv, void *input);
// For use in a parser: argp_error would print two lines.
void reading_option_error(const struct argp_state *state, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

// Opens the run that `name` refers to (run_name.h), or the newest for NULL. Prints notices on
// standard error. NULL after it has printed the error.
struct reader *reading_open(const char *name);

// Replaces names of runs, sweeps and directories by their paths, owned by the caller. False after
// it has printed what is wrong with each. kind: RUN_NAME_ANY or RUN_NAME_LISTED.
bool reading_find_all(char **names, size_t n, enum run_name_kind kind);

// Sets `names` (room for two) to the folders whose runs a command uses by default, without one that
// cannot be read if there is another; owned by the caller. Returns their number, 0: out of memory.
size_t reading_find_places(char **names);

// Reports on standard error which parts of the run could not be read.
struct analysis;
void reading_damage(const struct analysis *a);
void reading_damaged_blocks(const struct reader *reader);

// Reads the catalogue, with progress, and prints what cannot be read. An exit status.
int reading_catalogue(char *const *paths, size_t n, const struct catalogue_options *wanted,
	struct catalogue *ret);

// For use in a parser: adds the condition of --where; a wrong one ends the program.
void reading_condition(struct selection *s, const char *argument, const struct argp_state *state);
// Prints that no run has this label (selection_append_unknown).
void reading_unknown_label(
	const struct catalogue *c, const char *option, const char *name, bool measures_too);
// False after it has printed that a condition names neither a label of these runs nor a measure.
bool reading_knows_conditions(const struct selection *s, const struct catalogue *c);
// False after it has printed that a condition needs a price list. prices: of reading_prices.
bool reading_has_prices(
	const struct selection *s, const struct catalogue *c, const struct prices *prices);

// The text of option --prices in the table of a command's options.
#define READING_PRICES_ARGUMENT "FILE"
#define READING_PRICES_HELP                                                                \
	"compute costs from this price list (default: $STRAIN_PRICES); strain-compare(1) " \
	"describes it"

// Reads the price list of option --prices; of $STRAIN_PRICES, if `path` is NULL and it is set. *ret
// is `room`, or NULL if neither is given. False after it has printed what is wrong.
bool reading_prices(const char *path, struct prices *room, const struct prices **ret);
