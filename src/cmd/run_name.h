// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs as a person types them: a path, a name as `strain ls` prints it, the beginning of one, or
// its place from the end (-1).

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

// Whether a word says where a run is, from the end, as an index in Python does: "-1" is the newest,
// "-2" the one that started before it.
bool run_name_is_back(const char *word);

// What the names may stand for.
enum run_name_kind {
	RUN_NAME_FILE, // a run
	RUN_NAME_ANY, // a run, a sweep, or a directory of them
};

// The path that `name` means, owned by the caller. A path that is there is taken as it is, and one
// that looks like a path but is not there is left for the opening to refuse. Names are looked for
// in the folders of runfile/index.h. -ENOENT, and -EINVAL for the beginning of several names, which
// e lists.
int run_name_find(const char *name, enum run_name_kind kind, char **ret_path, struct error *e);

// The names that begin with `start`, sorted, each owned by the caller, as the array is: of runs
// without their ending, of sweeps with a "/". NULL after the last; NULL: out of memory.
char **run_name_list(const char *start, enum run_name_kind kind);
void run_name_list_free(char **names);
