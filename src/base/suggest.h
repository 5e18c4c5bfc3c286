// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// "Did you mean": finds the word nearest to a mistyped one.

#pragma once

#include <argp.h>
#include <stddef.h>

struct text;

struct suggestion_of_word {
	const char *word; // the nearest so far; NULL: none is near
	unsigned distance;
};

// A word more than two edits away is not near.
#define SUGGEST_NONE ((struct suggestion_of_word){NULL, 3})

// Keeps `candidate` if it is nearer to `word` than the best so far, and at most a third of the
// longer one's letters differ.
void suggest_consider(struct suggestion_of_word *s, const char *word, const char *candidate);

// The word at which argp stopped, given the options that exist, each table as argp wants it.
const char *suggest_refused_word(
	const struct argp_state *state, const struct argp_option *const *tables, size_t n_tables);

// Appends why argp refused an option, `word`: it has no value or one too many, several options
// begin like this, or none does.
void suggest_append_refused(
	struct text *t, const char *word, const struct argp_option *const *tables, size_t n_tables);
