// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs that their own maker tells the index of, so that nobody has to read them again. Several at
// once: opening the index takes longer than what is kept in it.

#pragma once

#include <stddef.h>

#include "analyze/catalogue_entry.h"

struct catalogue_keep {
	struct catalogue_entry *items;
	size_t n;
	size_t capacity;
};

// Takes the entry of the run that is at `path` now and that nobody will write any more. Nothing of
// it is needed: what cannot be kept is read again.
void catalogue_keep_add(
	struct catalogue_keep *keep, struct catalogue_entry *entry, const char *path);
// Puts them into the index.
void catalogue_keep_flush(struct catalogue_keep *keep);
