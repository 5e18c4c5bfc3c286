// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Figures of steady iterations, with intervals from batch means. Only phases.c needs this.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analyze/phases.h"

#define BATCHES_MAX 32

struct steady_batch {
	double length_s;
	double samples;
	double phase_s[PHASES_MAX];
	uint64_t n;
};

struct steady {
	uint64_t expected; // iterations
	uint64_t n;
	size_t n_batches; // 0: too few for intervals
	struct steady_batch batches[BATCHES_MAX];
	struct steady_batch sum;
	bool samples_unknown; // of one at least
	struct histogram lengths;
	struct histogram samples;
	struct histogram phases[PHASES_MAX];
};

void steady_init(struct steady *s, uint64_t expected);
void steady_add(struct steady *s, const struct iteration *iteration);
// Fills the figures of *ret, whose phases are named already, and gives it the histogram of lengths.
void steady_figures(struct steady *s, struct phases *ret);
void steady_done(struct steady *s);
// The median of a phase, or (PHASES_MAX) of the length, in seconds.
double steady_median(const struct steady *s, size_t phase);
