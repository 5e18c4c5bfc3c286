// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which runs there are. "The newest run" is the newest start in the folders below.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct stat;

struct run_list {
	char **paths; // [n + n_unreadable] runs sorted by start, newest first; then the others
	size_t n;
	size_t n_unreadable; // files of that name of which nothing of a run can be read
};

// Whether a file's name is a run's: *.strain.
bool index_run_name_is(const char *name);

// Every run file (*.strain) directly in `directory`, also what is left of a damaged one.
int run_list_read(const char *directory, struct run_list *ret, struct error *e);
void run_list_done(struct run_list *list);

// Somebody who knows when runs began, so that their files need not be opened.
struct run_starts {
	bool (*find)(void *context, const char *path, const struct stat *status, int64_t *ret_ns);
	void (*found)(void *context, const char *path, const struct stat *status, int64_t start_ns);
	void *context;
};

// The path of the newest run, or (back > 0) of the one that started so many before it; owned by the
// caller. -ENOENT with a text that says where was looked. starts: NULL: nobody.
int index_newest_run(
	const struct run_starts *starts, size_t back, char **ret_path, struct error *e);

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
