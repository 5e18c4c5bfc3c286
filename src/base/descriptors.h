// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Ownership of descriptors. Inherited descriptors belong to the job. The job never receives those
// that strain opens, and helpers keep none of the job's open.

#pragma once

#include <stddef.h>

// The descriptors above standard error that were open when strain started.
struct descriptors {
	int *items; // owned
	size_t n;
};

// Opens a close-on-exec /dev/null in place of closed standard streams, so that no descriptor of
// ours takes their numbers (they are closed in the job again). Stores the other open descriptors in
// *ret.
void descriptors_inherit(struct descriptors *ret);
// Closes the inherited descriptors: only the job decides how long its pipes stay open.
void descriptors_release(struct descriptors *d);

// Replaces a standard stream by /dev/null.
void descriptors_null(int fd);
// Closes all descriptors from 3 on except the n in `keep` (-1 is skipped). Sorts `keep`.
void descriptors_keep(int *keep, size_t n);
