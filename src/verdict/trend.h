// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Iterations that become longer and longer: each processes the output of all earlier ones (a metric
// over all outputs so far, a list that is searched). Or those of each epoch are longer than those
// of the one before (hooks that each epoch registers once more).

#pragma once

#include <stdbool.h>

struct phases;

struct trend {
	// Medians of the first and the last quarter of each epoch, or of the run's epochs, without
	// waits for data; NAN: no trend.
	double first_s;
	double last_s;
	double share; // of iterations' time: what they take longer than the first one
	bool in_epochs; // each epoch begins again; else the run has one
	bool numbered; // the epochs are marked; else they are stretches of the run
	bool over_epochs; // it is from epoch to epoch, not within them
};

// Of the first rank's steady iterations.
struct trend trend_of(const struct phases *p);
