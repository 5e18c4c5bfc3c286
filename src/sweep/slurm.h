// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The executor `slurm`: submits trials as arrays, and waits for the runs that they leave in the
// sweep's folder. Whether a trial waits, runs or was ended is asked of Slurm at most every 10 s,
// with one squeue for all trials.

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "sweep/attempt.h"
#include "sweep/sweep.h"

struct slurm_counts {
	size_t waiting;
	size_t running;
	size_t submitted; // of which neither is known yet
	size_t to_submit;
};

enum slurm_answer_to_interrupt { SLURM_LEAVE, SLURM_CANCEL, SLURM_GO_ON };

struct slurm_watch {
	const volatile sig_atomic_t *interrupts;
	void (*tick)(void *context, const struct slurm_counts *counts);
	void (*result)(void *context, size_t index, const struct attempt *attempt);
	void (*say)(void *context, const char *text); // a line for people
	// After a signal, where trials are in Slurm. Clears `interrupts` if it goes on.
	enum slurm_answer_to_interrupt (*ask)(void *context, const struct slurm_counts *counts);
	void *context;
};

// Returns 0 if all trials have an outcome; -EINTR if it was interrupted; another -errno, with one
// line, if it cannot continue: trials in Slurm then go on.
int slurm_run(struct sweep *sweep, const struct slurm_watch *watch, struct error *e);
