// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The virtual table samples(entity, metric, t, value): entity is entity.id, metric the name, t in
// seconds since the run's start, value in the metric's unit (NULL if missing). Constraints on
// entity, metric and t select blocks, so that a narrow query decodes few of them.

#pragma once

#include <sqlite3.h>

struct damage;

// Registers the table with a connection to a run file. Damaged blocks are added to `damage`, which
// must outlive the connection and may be NULL. Returns 0 or -errno.
int samples_register(sqlite3 *database, struct damage *damage);
