// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The scribe: the one thread that writes the run file, so that a slow disk delays no tick.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "runfile/writer.h"

struct scribe;
struct feed;

// Starts the thread, which owns the writer until scribe_stop. hooks: the directory of the hooks'
// reports, borrowed; -1: none.
int scribe_start(struct writer *writer, struct feed *feed, uint64_t start_ns, int hooks,
	struct scribe **ret, struct error *e);

// Writes queued rows, ends the thread, closes the open epoch at end_ns, decides where epochs begin,
// and frees the scribe. The caller owns the writer again.
void scribe_stop(struct scribe *s, int64_t end_ns);

// Epochs ------------------------------------------------------------------------------------------
//
// Epochs from lines of the job's output. Some jobs print a line at the start of an epoch ("Epoch
// 2/10"), some at its end ("epoch 2  loss 0.31"). Which one it is, is decided at the end of the
// run.

struct epoch_line {
	int64_t t_ns; // since the run's start; never falls
	int64_t number; // as printed, -1 where the pattern has no group for it
	int64_t span; // id of the span in the run file
};

// Whether the lines mark the ends of epochs: relative to the time between lines, almost nothing
// follows the last one, and some time precedes the first. Needs at least two lines; false
// otherwise.
bool scribe_epochs_end_at_lines(const struct epoch_line *lines, size_t n, int64_t end_ns);
