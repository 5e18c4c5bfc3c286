// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// How long trials that have not run will take, from those that have. Factors act by multiplying (a
// dataset ten times larger, a model half as fast), so the logarithm of the time is a sum: a mean,
// an effect of each value of a factor, and a slope over the logarithm of each factor that is a
// number, which tells about values that have not been seen. Effects and slopes are drawn towards
// zero (ridge regression), so that few trials do not say more than they know; a configuration that
// has run tells of its repeats itself.

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct trials;

struct forecast;

// `trials` is borrowed. NULL: out of memory.
struct forecast *forecast_new(const struct trials *trials);
void forecast_free(struct forecast *f);

// A trial of this configuration (from 1) has taken so long. True: what forecast_seconds says of the
// others is another now; it is not each time when there are many.
bool forecast_learn(struct forecast *f, size_t configuration, double seconds);

// Seconds that a trial of this configuration is going to take; NAN: none has run.
double forecast_seconds(const struct forecast *f, size_t configuration);
