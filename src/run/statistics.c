// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Welch's test does not assume equal variances: a slow configuration varies more than a fast one.

#include "run/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include <gsl/gsl_cdf.h>

#include "base/cleanup.h"

double statistics_t95(double degrees)
{
	return gsl_cdf_tdist_Pinv(0.975, degrees);
}

static double student_beyond(double t, double degrees)
{
	return 2 * gsl_cdf_tdist_Q(fabs(t), degrees);
}

struct repeats statistics_of(const double *values, size_t n)
{
	struct repeats r = {0, NAN, NAN, NAN};
	double mean = 0, squares = 0;
	for (size_t i = 0; i < n; i++) {
		if (isfinite(values[i])) { // Welford's method: does not subtract large sums
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
		r.half = statistics_t95((double)(r.n - 1)) * r.deviation / sqrt((double)r.n);
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
		return a->mean == b->mean ? 1 : 0;
	}
	double degrees = variance * variance /
	                 (left * left / (double)(a->n - 1) + right * right / (double)(b->n - 1));
	return student_beyond((a->mean - b->mean) / sqrt(variance), fmax(degrees, 1));
}

double statistics_ratio(const struct repeats *a, const struct repeats *b)
{
	if (a->n < 2 || b->n < 2 || !(a->mean > 0) || !(b->mean > 0)) {
		return NAN;
	}
	double left = pow(a->deviation / a->mean, 2) / (double)a->n;
	double right = pow(b->deviation / b->mean, 2) / (double)b->n;
	double variance = left + right;
	if (!(variance > 0)) {
		return 0;
	}
	double degrees = variance * variance /
	                 (left * left / (double)(a->n - 1) + right * right / (double)(b->n - 1));
	return statistics_t95(fmax(degrees, 1)) * sqrt(variance);
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

// Sorts `values`.
static double median_of(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare_doubles);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int statistics_outliers(const double *values, size_t n, bool *ret)
{
	enum { LEAST = 5 };
	_cleanup_free_ double *sorted = calloc(n + 1, sizeof(*sorted));
	int found = 0;
	if (!sorted) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		sorted[i] = values[i];
		ret[i] = false;
	}
	if (n < LEAST) {
		return 0;
	}
	double middle = median_of(sorted, n);
	for (size_t i = 0; i < n; i++) {
		sorted[i] = fabs(values[i] - middle);
	}
	double deviation = median_of(sorted, n);
	for (size_t i = 0; i < n && deviation > 0; i++) {
		ret[i] = fabs(values[i] - middle) > STATISTICS_OUTLIER * deviation;
		found += ret[i];
	}
	return found;
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
		// A corrected probability is never below that of a smaller one.
		before = fmax(before, fmin(1, *order[i] * (double)(m - i)));
		*order[i] = before;
	}
	return 0;
}
