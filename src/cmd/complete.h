// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Completion candidates for a command line, for shells.

#pragma once

#include <argp.h>

// Prints the words that the last of `words` may become, a line each: the word, a tab, what it is. A
// line ":files", ":directories" or ":program" says that these are meant instead. options: of the
// command, may be NULL.
void complete_print(
	const char *command, const struct argp_option *options, int n_words, char *const *words);
// One candidate, where it begins as what was typed.
void complete_candidate(const char *typed, const char *word, const char *what);
