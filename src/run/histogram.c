// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A bin is the leading bits of a double: the exponent and HISTOGRAM_BITS of the fraction. This
// needs no logarithm and gives the same relative width everywhere.

#include "run/histogram.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SHIFT (52 - HISTOGRAM_BITS)

static int32_t bin_of(double magnitude)
{
	uint64_t bits;
	memcpy(&bits, &magnitude, sizeof(bits));
	return (int32_t)(bits >> SHIFT);
}

static double bin_middle(int32_t bin)
{
	uint64_t bits = ((uint64_t)bin << SHIFT) | (UINT64_C(1) << (SHIFT - 1));
	double middle;
	memcpy(&middle, &bits, sizeof(middle));
	return middle;
}

// Makes room for a bin. Grows by at least a quarter octave, on the side that needs it.
static double *side_slot(struct histogram_side *side, int32_t bin)
{
	enum { SPARE = 32 };
	int32_t last = side->first + (int32_t)side->n; // one past the last bin
	if (side->n > 0 && bin >= side->first && bin < last) {
		return &side->weights[bin - side->first];
	}
	int32_t first = side->n == 0 || bin < side->first ? bin - SPARE : side->first;
	int32_t end = side->n == 0 || bin >= last ? bin + SPARE : last;
	first = first < 0 ? 0 : first;
	double *weights = calloc((size_t)(end - first), sizeof(*weights));
	if (!weights) {
		return NULL;
	}
	if (side->n > 0) {
		memcpy(weights + (side->first - first), side->weights, side->n * sizeof(*weights));
	}
	free(side->weights);
	*side = (struct histogram_side){first, (size_t)(end - first), weights};
	return &side->weights[bin - first];
}

void histogram_add(struct histogram *h, double value, double weight)
{
	if (!isfinite(value) || !(weight > 0) || !isfinite(weight)) {
		return;
	}
	double *slot = value > 0   ? side_slot(&h->positive, bin_of(value))
	               : value < 0 ? side_slot(&h->negative, bin_of(-value))
	                           : &h->zero;
	if (!slot) {
		return;
	}
	bool first = !(h->total > 0);
	h->smallest = first || value < h->smallest ? value : h->smallest;
	h->largest = first || value > h->largest ? value : h->largest;
	*slot += weight;
	h->total += weight;
}

static double within(const struct histogram *h, double value)
{
	return fmin(fmax(value, h->smallest), h->largest);
}

double histogram_quantile(const struct histogram *h, double share)
{
	if (!(h->total > 0)) {
		return NAN;
	}
	// Sums of doubles are rounded: the tolerance makes sure that an exact half is found.
	double wanted = h->total * share * (1 - 1e-12), seen = 0;
	for (size_t i = h->negative.n; i-- > 0;) {
		seen += h->negative.weights[i];
		if (seen >= wanted && seen > 0) {
			return within(h, -bin_middle(h->negative.first + (int32_t)i));
		}
	}
	seen += h->zero;
	if (seen >= wanted && seen > 0) {
		return 0;
	}
	for (size_t i = 0; i < h->positive.n; i++) {
		seen += h->positive.weights[i];
		if (seen >= wanted && seen > 0) {
			return within(h, bin_middle(h->positive.first + (int32_t)i));
		}
	}
	return h->largest;
}

static void side_clear(struct histogram_side *side)
{
	if (side->n > 0) {
		memset(side->weights, 0, side->n * sizeof(*side->weights));
	}
}

void histogram_clear(struct histogram *h)
{
	side_clear(&h->positive);
	side_clear(&h->negative);
	h->zero = h->total = h->smallest = h->largest = 0;
}

void histogram_done(struct histogram *h)
{
	free(h->positive.weights);
	free(h->negative.weights);
	*h = (struct histogram){0};
}
