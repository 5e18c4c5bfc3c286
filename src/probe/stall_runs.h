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

struct stall_config {
	char *const *command; // ends with NULL
	const char *folder; // exists; the runs, what the job printed and lists of files go there
	double error; // at which a rate is known
	uint64_t limit_ns; // of one run
	void (*say)(const char *text); // what happens now; a line
	const volatile sig_atomic_t *interrupted;
};

struct stall_runs {
	struct probe probes[N_TRIALS];
	char *missing[N_TRIALS]; // why there is no such rate, for people; NULL where there is one
	double cached[N_TRIALS]; // share of the dataset in the page cache as it began; NAN: not
	                         // known
	struct dataset dataset;
	struct stalls stalls;
	char *failed_output; // of the run that failed, where one did
};

// Runs the command two to four times. 0; -errno where not even the warm run gave a rate, or
// -EINTR. ret must be released in any case.
int stall_runs_make(const struct stall_config *config, struct stall_runs *ret, struct error *e);
void stall_runs_done(struct stall_runs *runs);

// Removes the folder with everything in it.
void stall_runs_remove(const char *folder);
