// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One trial of a sweep, in a task of Slurm: the program that sbatch starts on a node. It records
// the trial as the local executor does, applies the plan's stop rules, and completes it, whether or
// not the sweep that submitted it still runs.

#pragma once

#include <signal.h>

#include "base/error.h"

struct slurm_trial_request {
	const char *ticket; // its stem (slurm_ledger.h)
	const char *directory; // of the sweep
	const volatile sig_atomic_t *interrupts; // as in struct attempt_watch
};

// Returns 0 if the trial is complete; -ENOENT if it is not to run here; -EINTR if it was
// interrupted without an outcome; another -errno, with one line, if strain failed.
int slurm_trial_run(const struct slurm_trial_request *request, struct error *e);
