// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What repeats tell of a number: its mean, how sure that is, and whether two differ by more than
// noise. Distributions are GSL's; built without it there are means, but no intervals and no tests.

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

bool statistics_has_distributions(void);
// Values that are NAN are left out.
struct repeats statistics_of(const double *values, size_t n);
// Probability of a difference as large as this if there were none (two-sided); NAN where either has
// fewer than two repeats. Two that never vary differ for sure, or not at all.
double statistics_welch(const struct repeats *a, const struct repeats *b);
// Corrects n probabilities in place for there being n of them. NAN is none of them, and stays.
// -ENOMEM.
int statistics_holm(double *probabilities, size_t n);
