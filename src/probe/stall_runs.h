// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The runs that measure the cost of a job's input: warm, compute, cold (probe/stalls.h).

#pragma once

#include <signal.h>
#include <stdint.h>

#include "base/error.h"
#include "probe/dataset.h"
#include "probe/stalls.h"
#include "probe/probe.h"

struct probe_overlay;

struct stall_config {
	char *const *command; // ends with NULL
	const char *folder; // must exist; for the runs, the job's output and lists of files
	const struct probe_overlay *overlay; // of the job's working directory
	double error; // relative error at which a rate is known
	uint64_t limit_ns; // for one run
	void (*say)(const char *text); // called with a line that describes the next step
	const volatile sig_atomic_t *interrupted;
};

struct stall_runs {
	struct probe probes[N_TRIALS];
	char *missing[N_TRIALS]; // why a rate is missing, for people; NULL if it is known
	// Share of the dataset in the page cache at the start; NAN: not known.
	double cached[N_TRIALS];
	struct dataset dataset;
	struct stalls stalls;
	char *failed_output; // of the run that failed; NULL: none
};

// Runs the command two to four times. Returns 0; -EINTR; another -errno if not even the warm run
// gave a rate. Release ret in any case.
int stall_runs_make(const struct stall_config *config, struct stall_runs *ret, struct error *e);
void stall_runs_done(struct stall_runs *runs);

// Removes the folder and its content.
void stall_runs_remove(const char *folder);
