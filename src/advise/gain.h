// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What settings gain, from probes of a job with and without them, and how many probes there is time
// for.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "analyze/phases.h"

// Fewer have no interval.
#define GAIN_REPEATS_MIN 2

// Mean rate with settings over that without. The 95 % interval of the ratio is by the spread of
// repeats (statistics_ratio): it has in it what differs from run to run, which no run can know of
// itself. low and high NAN: too few repeats, or no distributions; all NAN: no rate of either.
struct estimate gain_of(const double *without, size_t n_without, const double *with, size_t n_with);

// What is left to do after the first probe without settings.
struct design {
	unsigned candidates; // that are tried, each alone
	unsigned repeats; // of each
};

// Probes that a design needs after the first: each candidate in each round, one without any behind
// each round, and where more than one candidate may gain as much again for all together.
unsigned design_probes(struct design design);
// The most of what is wanted that there is time for: fewer repeats first, then fewer candidates. At
// least one candidate with GAIN_REPEATS_MIN repeats: else nothing would be known.
struct design design_fit(struct design wanted, double seconds_each, double seconds_left);
// Which candidate is the i-th of a round: each other round goes backwards, so that none is always
// next to the probe without settings.
unsigned design_turn(struct design design, unsigned round, unsigned i);
