// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Statistics of repeated measurements: mean, confidence interval, significance of a difference. GSL
// provides the distributions.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#define STATISTICS_LEVEL 0.05 // what counts as noise comes out by chance more often than this
#define STATISTICS_TEST "Welch's t-test, Holm's correction"

struct repeats {
	size_t n;
	double mean; // NAN where n is 0
	double deviation; // standard, of one repeat; NAN where n is below 2
	double half; // of the 95 % interval of the mean (Student's t); NAN where n is below 2
};

// Student's t: 95 % of the distribution lie within. degrees at least 1.
double statistics_t95(double degrees);
// Values that are NAN are left out.
struct repeats statistics_of(const double *values, size_t n);
// Probability of a difference as large as this if there were none (two-sided); NAN where either has
// fewer than two repeats. Two that never vary differ for sure, or not at all.
double statistics_welch(const struct repeats *a, const struct repeats *b);
// How sure a ratio of two means is: half the 95 % interval of its logarithm h, by the delta method
// (relative errors of the means add as squares) and Student's t with Welch's degrees of freedom.
// The interval of the ratio r is r / exp(h) to r * exp(h), whichever is held against the other. NAN
// where either has fewer than two repeats, or a mean that is not above 0.
double statistics_ratio(const struct repeats *a, const struct repeats *b);
// Outliers, as hyperfine finds them: farther from the median than this many median absolute
// deviations, which is ten standard deviations of a normal distribution.
#define STATISTICS_OUTLIER 14.826
// How many of n values are such; ret[i] says which. 0 of fewer than five, and where most are equal.
// -ENOMEM.
int statistics_outliers(const double *values, size_t n, bool *ret);
// Corrects n probabilities in place for there being n of them. NAN is none of them, and stays.
// -ENOMEM.
int statistics_holm(double *probabilities, size_t n);
