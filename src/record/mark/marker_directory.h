// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The directory of a run's rings of marks, which STRAIN_MARKERS names: in memory (/dev/shm) where
// there is room, else in /tmp. Everybody can make names there, and the job anything within, so it
// is held by descriptor from the moment it was made: what its name leads to later is not looked at.

#pragma once

#include "base/error.h"

struct marker_directory {
	char *path; // owned; NULL: there is none
	int fd; // of the directory; -1: there is none
};

#define MARKER_DIRECTORY_NONE ((struct marker_directory){NULL, -1})

// Makes it, for this user alone. -errno, with the reason why there is none.
int marker_directory_make(struct marker_directory *ret, struct error *e);
// Removes what it holds, and then it, unless another process has already. Where both the launcher
// and the recorder have it, each may.
void marker_directory_remove(const struct marker_directory *d);
// Closes and frees; nothing is removed.
void marker_directory_done(struct marker_directory *d);
