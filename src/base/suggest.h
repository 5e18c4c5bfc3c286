// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// "Did you mean": finds the word nearest to a mistyped one.

#pragma once

struct suggestion_of_word {
	const char *word; // the nearest so far; NULL: none is near
	unsigned distance;
};

// A word more than two edits away is not near.
#define SUGGEST_NONE ((struct suggestion_of_word){NULL, 3})

// Keeps `candidate` if it is nearer to `word` than the best so far.
void suggest_consider(struct suggestion_of_word *s, const char *word, const char *candidate);
