// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The directory of a run's mark rings, named by STRAIN_MARKERS: in memory (/dev/shm) if there is
// room, else in /tmp. Everybody can create names there, and the job can write anything inside. The
// directory is therefore held by descriptor from its creation, and its path is not followed again.

#pragma once

#include "base/error.h"

struct marker_directory {
	char *path; // owned; NULL: no directory
	int fd; // of the directory; -1: no directory
};

#define MARKER_DIRECTORY_NONE ((struct marker_directory){NULL, -1})

// Creates it, accessible to this user only, and removes those that this user's killed runs have
// left: those that nobody has locked. The lock ends with the last process that has the descriptor.
// Returns -errno with the reason if that fails.
int marker_directory_make(struct marker_directory *ret, struct error *e);
// Removes the content and then the directory, unless another process already has. Launcher and
// recorder may both call it.
void marker_directory_remove(const struct marker_directory *d);
// Closes and frees; removes nothing.
void marker_directory_done(struct marker_directory *d);
