// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// How the job of a run is started again: its command, its directory, its limits, and those
// variables of its environment that a run knows.

#pragma once

#include <stddef.h>

#include "base/error.h"

struct reader;

enum { REPLAY_OPTIONS = 16, REPLAY_VARIABLES = 4 };

struct replay {
	char **command; // ends with NULL
	char *directory;
	// Both end with NULL; what is in them is owned.
	char *options[REPLAY_OPTIONS + 1]; // of strain run: the limits, the pattern of epochs
	char *environment[REPLAY_VARIABLES + 1]; // "OMP_NUM_THREADS=4", "OMP_WAIT_POLICY": unset
};

// Whether a run may decide what is executed: it is the effective user's own, and nobody else can
// write it, or put another file in its place. 0; -EPERM with the reason.
int replay_allowed(const char *path, struct error *e);
// -errno with the reason where the run does not tell enough: a command in which a secret was
// masked, one rank of several, a process that ran already. ret must be released in any case.
int replay_read(struct reader *reader, struct replay *ret, struct error *e);
void replay_done(struct replay *r);
