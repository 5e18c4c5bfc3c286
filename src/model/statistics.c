// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Repeats. Welch's test needs no equal variances: a slow configuration varies more than a fast one.

#include "model/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#ifdef HAVE_GSL
#include <gsl/gsl_cdf.h>
#endif

#include "base/cleanup.h"

bool statistics_has_distributions(void)
{
#ifdef HAVE_GSL
	return true;
#else
	return false;
#endif
}

// The t that 95 % of the distribution lie within; degrees at least 1.
static double student_t95(double degrees)
{
#ifdef HAVE_GSL
	return gsl_cdf_tdist_Pinv(0.975, degrees);
#else
	(void)degrees;
	return NAN;
#endif
}

static double student_beyond(double t, double degrees)
{
#ifdef HAVE_GSL
	return 2 * gsl_cdf_tdist_Q(fabs(t), degrees);
#else
	(void)t;
	(void)degrees;
	return NAN;
#endif
}

struct repeats statistics_of(const double *values, size_t n)
{
	struct repeats r = {0, NAN, NAN, NAN};
	double mean = 0, squares = 0;
	for (size_t i = 0; i < n; i++) {
		if (isfinite(values[i])) { // Welford's way: no large sums are subtracted
			double step = values[i] - mean;
			mean += step / (double)++r.n;
			squares += step * (values[i] - mean);
		}
	}
	if (r.n > 0) {
		r.mean = mean;
	}
	if (r.n > 1) {
		r.deviation = sqrt(squares / (double)(r.n - 1));
		r.half = student_t95((double)(r.n - 1)) * r.deviation / sqrt((double)r.n);
	}
	return r;
}

double statistics_welch(const struct repeats *a, const struct repeats *b)
{
	if (a->n < 2 || b->n < 2) {
		return NAN;
	}
	double left = a->deviation * a->deviation / (double)a->n;
	double right = b->deviation * b->deviation / (double)b->n;
	double variance = left + right;
	if (!(variance > 0)) {
		return !statistics_has_distributions() ? NAN : a->mean == b->mean ? 1 : 0;
	}
	double degrees = variance * variance /
	                 (left * left / (double)(a->n - 1) + right * right / (double)(b->n - 1));
	return student_beyond((a->mean - b->mean) / sqrt(variance), fmax(degrees, 1));
}

static int compare_probabilities(const void *left, const void *right)
{
	double a = **(double *const *)left, b = **(double *const *)right;
	return (a > b) - (a < b);
}

int statistics_holm(double *probabilities, size_t n)
{
	_cleanup_free_ double **order = calloc(n + 1, sizeof(*order));
	size_t m = 0;
	if (!order) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		if (!isnan(probabilities[i])) {
			order[m++] = &probabilities[i];
		}
	}
	if (m > 0) {
		qsort(order, m, sizeof(*order), compare_probabilities);
	}
	double before = 0;
	for (size_t i = 0; i < m; i++) {
		// None becomes likelier than a less likely one.
		before = fmax(before, fmin(1, *order[i] * (double)(m - i)));
		*order[i] = before;
	}
	return 0;
}
