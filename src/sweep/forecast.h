// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Forecasts the time of trials that have not run, from those that have. Factors multiply (a dataset
// ten times larger, a model half as fast), so the logarithm of the time is a sum: a mean, an effect
// of each value of a factor, and a slope over the logarithm of each numeric factor, which covers
// values that have not been seen. Effects and slopes are shrunk towards zero (ridge regression), so
// that few trials do not have too much influence. For a configuration that has run, its own times
// are used.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "run/outcome.h"

struct plan;
struct sweep;
struct trials;

struct forecast;

// `trials` is borrowed. NULL: out of memory.
struct forecast *forecast_new(const struct trials *trials);
void forecast_free(struct forecast *f);

// Adds the time of a trial of this configuration (from 1). True: forecasts were fitted again. With
// many trials this does not happen for each.
bool forecast_learn(struct forecast *f, size_t configuration, double seconds);

// The forecast for a trial of this configuration; NAN: no trial has run.
double forecast_seconds(const struct forecast *f, size_t configuration);

// --- the time that the trials of a sweep will take, from earlier runs and from those of this start

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
