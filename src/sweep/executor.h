// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Ways to run the trials of a sweep, one row for each. A row runs all trials, because a scheduler
// takes them together; what happens to one of them on its machine is in attempt.h.

#pragma once

#include <signal.h>
#include <stddef.h>

#include "base/error.h"
#include "sweep/attempt.h"
#include "sweep/slurm.h"
#include "sweep/sweep.h"

struct executor_watch {
	const volatile sig_atomic_t *interrupts; // as in struct attempt_watch
	void (*begin)(void *context, size_t index); // a trial is started
	void (*tick)(void *context); // called from time to time
	void (*left)(void *context, const char *processes); // as in struct attempt_watch
	void (*result)(void *context, size_t index, const struct attempt *attempt); // it ended
	struct slurm_watch slurm; // for the executor of that name
	void *context;
};

// Runs the trials that have no run yet, and notes in `sweep` which are done. Returns 0 if all have
// an outcome; -EINTR if it was interrupted; another -errno, with one line, if strain failed.
int executor_run(struct sweep *sweep, const struct executor_watch *watch, struct error *e);
