// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What `strain sweep` says before and while it runs: on standard error, a line that changes where
// that is a terminal, else a line for each trial.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attempt;
struct forecast;
struct sweep;

struct sweep_progress {
	const struct sweep *sweep;
	bool terminal;
	size_t index; // of the trial that runs
	size_t done; // trials that are there
	size_t to_run; // of this start
	struct forecast *forecast; // from runs there before, then from those of this start
	double left_s; // of all that have no run yet; NAN: not known
	uint64_t trial_start_ns;
	uint64_t shown_ns;
	char last[160]; // the last result
};

// How many trials, how long, how much disk.
void sweep_progress_begin(struct sweep_progress *p, const struct sweep *sweep);
void sweep_progress_trial(struct sweep_progress *p, size_t index);
void sweep_progress_tick(void *context); // of attempt_watch
void sweep_progress_left(void *context, const char *processes); // of attempt_watch
void sweep_progress_result(struct sweep_progress *p, const struct attempt *attempt);
// Takes the line away; another trial may follow.
void sweep_progress_end(struct sweep_progress *p);
void sweep_progress_done(struct sweep_progress *p);
