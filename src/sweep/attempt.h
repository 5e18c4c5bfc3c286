// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One attempt at a trial: recorded under a temporary name, stopped by the plan's rules, and given
// its outcome. Only then is it renamed to a complete trial.

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "run/outcome.h"
#include "run/unit.h"
#include "sweep/sweep.h"

struct attempt {
	enum outcome outcome;
	char *outcome_text; // "" after a success
	double seconds; // of the attempt
	char *run; // path of the run file
	double epoch_seconds; // measures.h; NAN: missing
	double samples_per_second;
	char samples_unit[UNIT_BYTES]; // "samples"; "" before the end
	bool missed_epochs; // a rule on epochs did not apply, because the run has none
};

struct attempt_watch {
	// Number of signals that asked to end: 1 ends the trial with its grace period, more end it
	// at once.
	const volatile sig_atomic_t *interrupts;
	void (*tick)(void *context); // called from time to time while it runs; NULL: not called
	// Called with processes of the trial that could not be ended: "1234 (cp), 1240 (cp)". NULL:
	// not called.
	void (*left)(void *context, const char *processes);
	void *context;
	// For a trial of a scheduler; NULL: it is none. The first is called when the trial was
	// interrupted: it appends a line and returns the outcome of the trial, or N_OUTCOMES if
	// there is none, and attempt_run returns -EINTR. The trial's files are kept in any case.
	enum outcome (*interrupted)(void *context, struct text *why);
	// Called before the trial's files are changed, and before it becomes complete: whether it
	// still may; if not, attempt_run returns -ESTALE and leaves them.
	bool (*may_complete)(void *context);
};

// Runs trial `index` of the sweep's order, and once more if its recorder was killed. Returns 0 if
// the trial is complete, whatever its outcome; -EINTR if it was interrupted; another -errno if
// strain failed (no recorder, a full disk). On failure its files are removed, except a log that has
// the reason.
int attempt_run(const struct sweep *sweep, size_t index, const struct attempt_watch *watch,
	struct attempt *ret, struct error *e);
// Completes a trial of which all processes have ended without doing so, with this outcome and line.
// What has been recorded of it is kept. Errors as above.
int attempt_complete(const struct sweep *sweep, size_t index, enum outcome outcome, const char *why,
	struct attempt *ret, struct error *e);
void attempt_done(struct attempt *a);
