// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which runs there are. "The newest run" is the newest start in the folders below.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// Whether a file's name is a run's: *.strain.
bool index_run_name_is(const char *name);

// The path of the newest run, or (back > 0) of the one that started `back` runs before it; owned by
// the caller. -ENOENT with a text that names the directories.
int index_newest_run(size_t back, char **ret_path, struct error *e);

// Places ------------------------------------------------------------------------------------------
//
// The folders in which runs are: the usual one, and the one that takes the runs that the usual one
// cannot.

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
