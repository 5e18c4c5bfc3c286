// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Ratios of rates.

#include "advise/gain.h"

#include <math.h>

#include "model/statistics.h"

struct estimate gain_of(const double *without, size_t n_without, const double *with, size_t n_with)
{
	struct repeats a = statistics_of(without, n_without), b = statistics_of(with, n_with);
	struct estimate gain = {NAN, NAN, NAN};
	if (!(a.mean > 0) || !(b.mean > 0)) {
		return gain;
	}
	gain.value = b.mean / a.mean;
	double half = statistics_ratio(&a, &b);
	if (isfinite(half)) {
		gain.low = gain.value / exp(half);
		gain.high = gain.value * exp(half);
	}
	return gain;
}

unsigned design_probes(struct design design)
{
	unsigned together = design.candidates > 1 ? 2 * design.repeats : 0;
	return design.repeats * (design.candidates + 1) + together;
}

struct design design_fit(struct design wanted, double seconds_each, double seconds_left)
{
	struct design fits = wanted;
	while (design_probes(fits) * seconds_each > seconds_left) {
		if (fits.repeats > GAIN_REPEATS_MIN) {
			fits.repeats--;
		} else if (fits.candidates > 1) {
			fits.candidates--;
		} else {
			break;
		}
	}
	return fits;
}

unsigned design_turn(struct design design, unsigned round, unsigned i)
{
	return round % 2 == 0 ? i : design.candidates - 1 - i;
}
