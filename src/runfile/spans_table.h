// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The virtual table temp.span: all spans of a run, from rows and blocks, in order of their start.
// It has the columns of the table `span` and replaces it.

#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "runfile/blocks.h"

// Makes it. Damaged blocks are added to `damage` (ids below 0), which outlives the connection; it
// may be NULL. 0 or -errno.
int spans_table_make(sqlite3 *database, struct damage *damage);
// Whether there may be spans of this kind: cheap, since no block is decoded. That a block is
// damaged is seen by who reads spans.
bool spans_table_may_have(sqlite3 *database, const char *kind);
