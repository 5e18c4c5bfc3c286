// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Chooses the batch sizes that run under the limit.

#include "probe/batch_search.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>

// Runs under the limit; and if they do not agree with the line.
enum { VERIFIES_MAX = 3, VERIFIES_BENT = BATCH_SEARCH_RUNS_MAX };

// With irregular memory, the first batch size to run under the limit is too large with this
// probability.
#define CAREFUL 0.3
#define NORMAL_95 1.96
// With an allocator whose memory is regular, the line's answer is too large by a sample or two.
#define OVERSHOOT 0.992
// A batch size that failed before any fitted is followed by one of at most this share of it.
#define BELOW_REGULAR 0.96
#define BELOW_IRREGULAR 0.95
// An answer is narrow enough if the next size to verify is within this factor of one that fits.
#define NARROW 1.015
#define NEAR 1.03 // too near to say more, where the line says little
#define WIDE 1.5 // more runs are worth their time
// Of one that fits, where the line has no answer above it; and where it had one below it, so that
// memory grows less than the line says, if it grows at all.
#define GROWTH 1.4
#define GROWTH_FREE 2.5
#define NARROW_IRREGULAR 1.12 // runs of the same size differ by as much

// The batch size below which the largest one lies with this probability, by the line's interval and
// by what ran: more than `fits`, less than `fails` (0: not known).
static double batch_quantile(const struct estimate *line, double fits, double fails, double share)
{
	double deviation = (line->high - line->low) / (2 * NORMAL_95);
	if (!(deviation > 0)) {
		return fails > 0 ? fmin(line->value, (fits + fails) / 2) : line->value;
	}
	double below = fits > 0 ? gsl_cdf_gaussian_P(fits - line->value, deviation) : 0;
	double above = fails > 0 ? gsl_cdf_gaussian_P(fails - line->value, deviation) : 1;
	double x = line->value + gsl_cdf_gaussian_Pinv(below + share * (above - below), deviation);
	// If the line says little, halve what lies between.
	double quarter = (fails - fits) / 4;
	bool unlikely = !isfinite(x) || x < fits + quarter || x > fails - quarter;
	return fails > 0 && unlikely ? (fits + fails) / 2 : x;
}

// Before any batch size fitted: just below the line's answer if memory is regular, else one that
// fits more likely than not, and at least what was measured; and below what failed.
static int64_t first_to_run(const struct batch_search *s)
{
	double fails = (double)s->fails, measured = (double)s->measured;
	if (s->failures > 1 && measured > 0 && measured < fails) { // it is no line
		double between = sqrt(measured * fails);
		return between > NARROW * measured ? (int64_t)between : 0;
	}
	double first = s->pinned ? fmax(floor(OVERSHOOT * s->line.value), s->line.low)
	                         : fmax(batch_quantile(&s->line, 0, 0, CAREFUL), measured);
	if (fails > 0) {
		double below = s->pinned ? BELOW_REGULAR : BELOW_IRREGULAR;
		first = fmin(pow(below, fmax(1, 2 * s->failures - 1)) * fails, first);
	}
	return fails > 0 && first < 1 ? 0 : (int64_t)fmax(1, first);
}

// Whether the line and what ran leave more than a factor of WIDE between the bounds.
static bool is_wide(const struct batch_search *s)
{
	double low = fmax(1, (double)s->fits);
	double high = s->fails > 0 ? fmin((double)s->fails, s->line.high) : s->line.high;
	return high > WIDE * low;
}

int64_t batch_search_next(const struct batch_search *s)
{
	double fits = (double)s->fits, fails = (double)s->fails;
	if (s->fits == 0) {
		return first_to_run(s);
	}
	double next = s->pinned && s->fails == 0 ? s->line.value
	              : s->fails > 0 && (s->pinned || s->bent)
	                      ? (fits + fails) / 2
	                      : batch_quantile(&s->line, fits, fails, 0.5);
	if (s->fails == 0 && next <= NEAR * fits && is_wide(s)) { // the line says little
		next = (fits > NARROW_IRREGULAR * s->line.value ? GROWTH_FREE : GROWTH) * fits;
	}
	next = s->regular ? next : fmin(next, 2 * fmax(fits, (double)s->measured));
	next = floor(s->fails > 0 ? next : fmin(next, s->line.high));
	if (s->pinned && s->fails == 0 && next <= NARROW * fits) { // the line is reached
		next = fmax(next, (double)s->between);
	}
	bool worth = next > fits && next > (s->regular ? NARROW : NARROW_IRREGULAR) * fits;
	return worth ? (int64_t)next : 0;
}

int batch_search_run(struct batch_search *s, const struct batch_search_calls *calls)
{
	bool bent = false; // more runs are worth their time
	s->failures = 0;
	for (int i = 0; i < (bent || is_wide(s) ? VERIFIES_BENT : VERIFIES_MAX); i++) {
		s->bent = bent;
		int64_t batch = batch_search_next(s);
		int r = batch < 1 ? -ENODATA : calls->verify(s, batch, calls->context);
		if (r < 0) {
			s->bent = s->failures > 1;
			return r == -ENODATA ? 0 : r;
		}
		s->failures += r == 0;
		bent = bent || s->failures > 1;
		if (r == 0 && s->fits == 0 && !bent) {
			r = calls->measure_nearer(s, calls->context);
			if (r < 0) {
				return r;
			}
			s->failures = r == 1 ? 0 : s->failures;
			bent = r == 1;
		}
	}
	s->bent = s->failures > 1;
	return 0;
}
