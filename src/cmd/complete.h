// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Completion candidates for a command line, for shells.

#pragma once

#include <argp.h>

// Prints the completions of the last of `words`, a line each: word, tab, description. A line
// ":files", ":directories" or ":program" tells the shell to complete these instead. options: of the
// command, may be NULL.
void complete_print(
	const char *command, const struct argp_option *options, int n_words, char *const *words);
// Prints a completion if it begins with `typed`.
void complete_candidate(const char *typed, const char *word, const char *what);
