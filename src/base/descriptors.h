// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Ownership of descriptors. Those that strain inherited belong to the job; those that strain opens
// never reach it; helpers keep none of the job's open.

#pragma once

#include <stddef.h>

// What was open when strain started, above standard error.
struct descriptors {
	int *items; // owned
	size_t n;
};

// Opens close-on-exec /dev/null in place of standard streams that are closed, so that nothing of
// ours takes their numbers (the job finds them closed again), and notes what else is open.
void descriptors_inherit(struct descriptors *ret);
// Closes what was inherited: the job alone decides how long a pipe it was given stays open.
void descriptors_release(struct descriptors *d);

// Puts /dev/null in place of a standard stream.
void descriptors_null(int fd);
// Closes everything from 3 on but the n in `keep` (-1 is skipped). Sorts `keep`.
void descriptors_keep(int *keep, size_t n);
