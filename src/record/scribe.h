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

// Starts the thread. From now on the writer is the scribe's until scribe_stop. hooks: the directory
// in which they speak, borrowed; -1 for none.
int scribe_start(struct writer *writer, struct feed *feed, uint64_t start_ns, int hooks,
	struct scribe **ret, struct error *e);

// Writes what waits, ends the thread, ends the open epoch at end_ns and settles where epochs begin.
// The writer is the caller's again. Frees the scribe.
void scribe_stop(struct scribe *s, int64_t end_ns);

// Epochs ------------------------------------------------------------------------------------------
//
// Epochs from lines of the job's output. Some jobs print a line when an epoch begins ("Epoch
// 2/10"), some when it has ended ("epoch 2  loss 0.31"). Which of the two is known at the end of
// the run.

struct epoch_line {
	int64_t t_ns; // since the run's start; never falls
	int64_t number; // as printed, -1 where the pattern has no group for it
	int64_t span; // id of the span in the run file
};

// Whether the lines stand at the ends of epochs: next to nothing comes after the last one, measured
// by the time between lines, and something came before the first. Needs two lines at least; false
// otherwise.
bool scribe_epochs_end_at_lines(const struct epoch_line *lines, size_t n, int64_t end_ns);
