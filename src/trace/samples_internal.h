// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The table `samples` for the reader, which counts what was damaged.

#pragma once

#include <sqlite3.h>

struct damage;

// Like samples_register; damaged blocks are added to `damage`, which outlives the connection.
int samples_register_counting(sqlite3 *database, struct damage *damage);
