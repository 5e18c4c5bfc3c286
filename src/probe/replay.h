// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// How to start the job of a run again: its command, its directory, its limits, and the variables of
// its environment that a run records.

#pragma once

#include <stddef.h>

#include "base/error.h"

struct reader;

enum { REPLAY_OPTIONS = 16, REPLAY_VARIABLES = 4 };

struct replay {
	char **command; // ends with NULL
	char *directory;
	// Both end with NULL; the strings are owned.
	char *options[REPLAY_OPTIONS + 1]; // of strain run: limits, epoch pattern
	// "OMP_NUM_THREADS=4"; "OMP_WAIT_POLICY" to unset it
	char *environment[REPLAY_VARIABLES + 1];
};

// Whether the command of a run may be executed: the effective user owns the file, and nobody else
// can write or replace it. Returns 0, or -EPERM with the reason.
int replay_allowed(const char *path, struct error *e);
// Returns -errno with the reason if the run does not have everything needed: the command had a
// masked secret, the job was one of several ranks or ran before the recording. Release ret in any
// case.
int replay_read(struct reader *reader, struct replay *ret, struct error *e);
void replay_done(struct replay *r);
