// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Iterations that become longer and longer: each processes the output of all earlier ones (a metric
// over all outputs so far, a list that is searched).

#pragma once

#include <stdbool.h>

struct phases;

struct trend {
	// Medians of the first and the last quarter of each epoch, without waits for data; NAN: no
	// trend.
	double first_s;
	double last_s;
	double share; // of iterations' time: what they take longer than the first one
	bool in_epochs; // each epoch begins again; else the run has one
	bool numbered; // the epochs are marked; else they are stretches of the run
};

// Of the first rank's steady iterations.
struct trend trend_of(const struct phases *p);
