// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The virtual table temp.span: all spans of a run, from rows and blocks, ordered by start. It has
// the columns of the table `span` and shadows it.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "runfile/blocks.h"

// Creates the table. Damaged blocks are added to `damage` (ids below 0), which must outlive the
// connection and may be NULL. Returns 0 or -errno.
int spans_table_make(sqlite3 *database, struct damage *damage);
// Whether spans of this kind may exist. Cheap, because no block is decoded: a damaged block is
// detected only when spans are read.
bool spans_table_may_have(sqlite3 *database, const char *kind);
