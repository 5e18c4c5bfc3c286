// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The time that the trials of a sweep will take, from earlier runs and from those of this start.

#pragma once

#include <stddef.h>

#include "run/outcome.h"

struct forecast;
struct plan;
struct sweep;

struct time_left {
	const struct sweep *sweep;
	struct forecast *forecast; // NULL: out of memory, nothing is known
	double seconds; // of all trials that have not run; NAN: not known
	double run_bytes; // mean size of existing runs; NAN: there are none
};

// Learns from the runs in the sweep's directory.
void time_left_init(struct time_left *t, const struct sweep *sweep);
void time_left_done(struct time_left *t);
// The forecast for the trial sweep->trials.order[index]; NAN: not known.
double time_left_of_trial(const struct time_left *t, size_t index);
// Learns from a trial that just ended, which sweep->done says.
void time_left_learn(struct time_left *t, size_t index, enum outcome outcome, double seconds);
// The time limit of a trial in the plan; 0: none.
double time_left_limit(const struct plan *plan);
