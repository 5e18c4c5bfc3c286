// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// "Did you mean": the nearest of the words that there are.

#pragma once

struct suggestion_of_word {
	const char *word; // the nearest so far; NULL: none is near
	unsigned distance;
};

// Nothing that is farther away than two edits is near.
#define SUGGEST_NONE ((struct suggestion_of_word){NULL, 3})

// Takes `candidate` where it is nearer to `word` than what was found so far.
void suggest_consider(struct suggestion_of_word *s, const char *word, const char *candidate);
