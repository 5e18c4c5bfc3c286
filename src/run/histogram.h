// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A weighted histogram with bins of constant relative width: quantiles of any number of values in
// bounded memory.

#pragma once

#include <stddef.h>
#include <stdint.h>

struct histogram_side {
	int32_t first; // the bin of weights[0]
	size_t n;
	double *weights;
};

struct histogram {
	struct histogram_side positive;
	struct histogram_side negative;
	double zero;
	double total;
	double smallest;
	double largest;
};

// 128 bins an octave: a quantile is at most 0.4 % from the exact one.
#define HISTOGRAM_BITS 7

// A zeroed histogram is empty. Ignores values that are not finite and weights that are not
// positive. If memory runs out, the value is dropped.
void histogram_add(struct histogram *h, double value, double weight);
// The smallest value that has at least `share` of the weight at or below it; NAN: empty.
double histogram_quantile(const struct histogram *h, double share);
// Empties it and keeps its memory.
void histogram_clear(struct histogram *h);
void histogram_done(struct histogram *h);
