// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One attempt of a trial: recorded under a temporary name, stopped by the plan's rules, given its
// outcome, and only then renamed to a complete trial.

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "run/outcome.h"
#include "sweep/sweep.h"

struct attempt {
	enum outcome outcome;
	char *outcome_text; // "" after a success
	double seconds; // from its start to its end
	char *run; // path of the run file
	double epoch_seconds; // measures.h; NAN: missing
	double samples_per_second;
	bool missed_epochs; // a rule on epochs could not end it: the run has none
};

struct attempt_watch {
	const volatile sig_atomic_t *interrupts; // how many signals asked to end: 1 with patience,
	                                         // more at once
	void (*tick)(void *context); // now and then while it runs; NULL
	// Processes of the trial that could not be ended: "1234 (cp), 1240 (cp)". NULL.
	void (*left)(void *context, const char *processes);
	void *context;
};

// Runs trial `index` of the sweep's order, once more where its recorder was killed. 0 where it is
// complete, whatever became of the job. -EINTR where it was interrupted, and -errno where strain
// could not do its part (no recorder, a full disk): nothing of it is left then, but its log where
// that says why.
int attempt_run(const struct sweep *sweep, size_t index, const struct attempt_watch *watch,
	struct attempt *ret, struct error *e);
void attempt_done(struct attempt *a);
