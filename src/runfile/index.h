// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The newest run, and the directories in which commands look for runs.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// Whether a file name is the name of a run: *.strain.
bool index_run_name_is(const char *name);

// Returns the path of the newest run, or (back > 0) of the run started `back` runs earlier; owned
// by the caller. Returns -ENOENT with a text that names the directories.
int index_newest_run(size_t back, char **ret_path, struct error *e);

// Places ------------------------------------------------------------------------------------------
//
// Directories of runs: the usual one, and the fallback if that is not writable.

// $STRAIN_DIR, else ".". Valid as long as the environment.
const char *places_usual(void);
// $XDG_STATE_HOME/strain, else ~/.local/state/strain. Owned by the caller; NULL: neither variable
// is set.
char *places_fallback(void);

// Directories in which commands look for runs that are not named by a path.
struct places {
	char *paths[2];
	size_t n;
};

// The usual directory, then the fallback, if that exists and the usual one has neither runs nor
// sweeps or is not writable. 0 or -ENOMEM.
int places_find(struct places *ret);
void places_done(struct places *places);
