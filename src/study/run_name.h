// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Names of runs as users type them: a path, a name as printed by `strain ls`, the beginning of one,
// or a position from the end (-1).

#pragma once

#include <stdbool.h>

#include "base/error.h"

// Whether a word is a position from the end, as in Python: "-1" is the newest run, "-2" the one
// started before it.
bool run_name_is_back(const char *word);

// What names may refer to.
enum run_name_kind {
	RUN_NAME_FILE, // a run
	RUN_NAME_ANY, // a run, a sweep, a folder of `strain advise`, or a directory of runs
	RUN_NAME_LISTED, // the same, for strain ls: errors do not refer to it
};

// Finds the path that `name` refers to, owned by the caller. An existing path is returned
// unchanged. A path that does not exist is returned too, and opening it gives the error. Names are
// searched in the folders of runfile/index.h. Returns 0; -ENOENT; -EINVAL if several names begin
// like this, which e lists.
int run_name_find(const char *name, enum run_name_kind kind, char **ret_path, struct error *e);

// The names that begin with `start`, sorted: runs without extension, folders with a "/". The names
// and the array, which ends with NULL, are owned by the caller. NULL: out of memory.
char **run_name_list(const char *start, enum run_name_kind kind);
void run_name_list_free(char **names);
