// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Iterations have a trend if the medians of an epoch's quarters rise. The means of several epochs'
// quarters may pause between two, since other programs disturb a few; but every epoch must rise: a
// clock that is throttled, or another program, does not begin anew with each. A single epoch must
// rise from each quarter to the next.

#include "verdict/trend.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "run/histogram.h"
#include "run/phases.h"

#define QUARTERS 4
#define EPOCH_LEAST 40 // iterations of an epoch that counts
#define RISE 1.1 // from a quarter of a single epoch to the next
#define PAUSE 0.97 // the same of the means of several epochs, where it may be less than 1
#define RISEN 1.5 // from the first quarter to the last
#define EACH_RISEN 1.3 // the same of each of several epochs
#define SAME_SAMPLES 0.05 // of a batch, from the first quarter to the last

struct epoch {
	size_t n;
	bool numbered;
	double own_s[QUARTERS]; // medians
	double samples[QUARTERS]; // means; NAN: not known
	double sum_s, length_s;
};

static bool counts(const struct iteration *iteration)
{
	return !iteration->warm_up && !iteration->cut;
}

static double own_s(const struct iteration *iteration)
{
	return (double)(iteration->length_ns - iteration->phase_ns[PHASE_DATA]) / 1e9;
}

// The iterations from `from` on that are in the same epoch. Returns the first one after them.
static size_t take_epoch(const struct phases *p, size_t from, struct epoch *ret)
{
	struct histogram quarters[QUARTERS] = {0};
	double samples[QUARTERS] = {0}, of[QUARTERS] = {0};
	size_t end = from, place = 0;
	*ret = (struct epoch){.numbered = p->iterations[from].epoch >= 0};
	while (end < p->n_iterations && p->iterations[end].epoch == p->iterations[from].epoch) {
		ret->n += counts(&p->iterations[end++]);
	}
	for (size_t i = from; i < end; i++) {
		const struct iteration *iteration = &p->iterations[i];
		if (counts(iteration)) {
			size_t quarter = place++ * QUARTERS / ret->n;
			histogram_add(&quarters[quarter], own_s(iteration), 1);
			samples[quarter] += iteration->samples < 0 ? NAN
			                                           : (double)iteration->samples;
			of[quarter]++;
			ret->sum_s += own_s(iteration);
			ret->length_s += (double)iteration->length_ns / 1e9;
		}
	}
	for (size_t i = 0; i < QUARTERS; i++) {
		ret->own_s[i] = histogram_quantile(&quarters[i], 0.5);
		ret->samples[i] = samples[i] / of[i];
		histogram_done(&quarters[i]);
	}
	return end;
}

// In an epoch of a loader, or with batches, iterations have equal work; an episode of an agent is
// one sample, and may become longer as it learns.
static bool has_equal_work(const struct epoch *e)
{
	double more = e->samples[QUARTERS - 1] / e->samples[0] - 1;
	return (e->numbered || e->samples[0] > 1) && !(fabs(more) > SAME_SAMPLES);
}

static bool rises(const struct epoch *e, double rise)
{
	bool rises = e->own_s[QUARTERS - 1] >= RISEN * e->own_s[0];
	for (size_t i = 1; i < QUARTERS; i++) {
		rises = rises && e->own_s[i] >= rise * e->own_s[i - 1];
	}
	return rises;
}

// Extrapolated from the first two quarters, whose medians are at 1/8 and 3/8.
static double start_s(const struct epoch *e)
{
	return fmax(0, e->own_s[0] - (e->own_s[1] - e->own_s[0]) / 2);
}

static void add_epoch(struct epoch *sum, const struct epoch *one)
{
	for (size_t i = 0; i < QUARTERS; i++) {
		sum->own_s[i] += one->own_s[i];
	}
	sum->sum_s += one->sum_s;
	sum->length_s += one->length_s;
	sum->n += one->n;
}

struct trend trend_of(const struct phases *p)
{
	const struct trend none = {NAN, NAN, NAN, false};
	struct epoch mean = {0}, one;
	double n = 0;
	for (size_t i = 0; i < p->n_iterations;) {
		i = take_epoch(p, i, &one);
		if (one.n < EPOCH_LEAST) {
			continue;
		}
		bool risen = one.own_s[QUARTERS - 1] >= EACH_RISEN * one.own_s[0];
		if (!risen || !has_equal_work(&one)) {
			return none;
		}
		add_epoch(&mean, &one);
		n++;
	}
	for (size_t i = 0; i < QUARTERS; i++) {
		mean.own_s[i] /= n;
	}
	if (!(n > 0) || !rises(&mean, n > 1 ? PAUSE : RISE)) {
		return none;
	}
	double longer_s = mean.sum_s - start_s(&mean) * (double)mean.n;
	return (struct trend){
		mean.own_s[0], mean.own_s[QUARTERS - 1], longer_s / mean.length_s, n > 1};
}
