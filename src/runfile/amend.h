// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Adds keys, labels and events to a finished run file, and creates the run file of a trial that
// never ran.

#pragma once

#include <stddef.h>

#include "base/error.h"

enum amendment_kind {
	AMEND_KEY, // of table run
	AMEND_LABEL,
	AMEND_EVENT, // at the run's end; name is its kind
};

struct amendment {
	enum amendment_kind kind;
	const char *name;
	const char *value; // valid UTF-8
};

// All or nothing. What has the same name is replaced (events: added). 0, or -errno with a text that
// names the path: -ENOSPC where the disk is full.
int amend_run(const char *path, const struct amendment *items, size_t n, struct error *e);

struct writer;

// Calls `put` with a writer whose transaction is open, commits what it put into the run, and writes
// the file to the disk. All or nothing. put returns 0 or -errno; its statements go through
// writer_database.
int amend_with(const char *path, int (*put)(struct writer *w, void *context), void *context,
	struct error *e);

// A finished run file with nothing but these, and when and where it was made: of a job that could
// not be started. -EEXIST, -ENOSPC, ...
int amend_write_empty(const char *path, const struct amendment *items, size_t n, struct error *e);

// Gives a finished run its last name. Who reads it at that moment may keep SQLite's log beside it,
// which a rename would part from it: the run is then written anew under that name. Its old name is
// free afterwards. 0, or -errno: the run is where it was. -EEXIST: there is a file of that name,
// which is not replaced.
int amend_rename(const char *from, const char *to, struct error *e);

// Closes a run that nobody else will: gives one that was cut off its end, the last time in it, and
// makes one that is left with a log beside it a single file. Only the effective user's own runs;
// others, those that are damaged, live, or of a newer version are left as they are. 0, also where
// nothing was to do; -errno.
int amend_close(const char *path, struct error *e);
