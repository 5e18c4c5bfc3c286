// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Statistics of repeated measurements: mean, confidence interval, significance of a difference. GSL
// provides the distributions.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#define STATISTICS_LEVEL 0.05 // significance level
#define STATISTICS_TEST "Welch's t-test, Holm's correction"

struct repeats {
	size_t n;
	double mean; // NAN where n is 0
	double deviation; // standard, of one repeat; NAN where n is below 2
	double half; // of the 95 % interval of the mean (Student's t); NAN where n is below 2
};

// The 97.5 % quantile of Student's t: 95 % of the distribution lie within plus and minus it.
// degrees: at least 1.
double statistics_t95(double degrees);
// NAN values are skipped.
struct repeats statistics_of(const double *values, size_t n);
// The two-sided p-value of a difference in means; NAN if either has fewer than two repeats. Without
// any variance it is 0 or 1.
double statistics_welch(const struct repeats *a, const struct repeats *b);
// The uncertainty of a ratio of two means: half the 95 % interval of its logarithm, h. It is
// computed by the delta method (relative errors of the means add as squares) with Student's t and
// Welch's degrees of freedom. The interval of the ratio r is r / exp(h) to r * exp(h), and h is the
// same for the inverse ratio. NAN if either has fewer than two repeats, or a mean that is not
// positive.
double statistics_ratio(const struct repeats *a, const struct repeats *b);
// Outliers as hyperfine defines them: farther from the median than this many median absolute
// deviations, which is ten standard deviations of a normal distribution.
#define STATISTICS_OUTLIER 14.826
// Sets ret[i] for outliers and returns their number. Returns 0 for fewer than five values, and if
// most are equal. -ENOMEM.
int statistics_outliers(const double *values, size_t n, bool *ret);
// Applies Holm's correction to n probabilities in place. NAN values are not counted and stay NAN.
// Returns 0 or -ENOMEM.
int statistics_holm(double *probabilities, size_t n);
