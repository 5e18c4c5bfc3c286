// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The folders in which runs are: the usual one, and the one that takes the runs that the usual one
// cannot.

#pragma once

#include <stddef.h>

// $STRAIN_DIR, else ".". Lives as long as the environment.
const char *places_usual(void);
// $XDG_STATE_HOME/strain, else ~/.local/state/strain. Owned by the caller; NULL where neither is
// set.
char *places_fallback(void);

// Where a command looks for runs that are not named by their path.
struct places {
	char *paths[2];
	size_t n;
};

// The usual folder; behind it the fallback, where that is there and the usual one holds neither a
// run nor a sweep, or cannot be written. 0 or -ENOMEM.
int places_find(struct places *ret);
void places_done(struct places *places);
