// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The scribe: the one thread that writes the run file, so that a slow disk delays no tick.

#pragma once

#include <stdint.h>

#include "base/error.h"
#include "trace/writer.h"

struct scribe;
struct feed;

// Starts the thread. From now on the writer is the scribe's until scribe_stop. hooks: the directory
// in which they speak, borrowed; -1 for none.
int scribe_start(struct writer *writer, struct feed *feed, uint64_t start_ns, int hooks,
	struct scribe **ret, struct error *e);

// Writes what waits, ends the thread, ends the open epoch at end_ns and settles where epochs begin.
// The writer is the caller's again. Frees the scribe.
void scribe_stop(struct scribe *s, int64_t end_ns);
