// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Iterations have a trend if the medians of an epoch's quarters rise, in the second half of it as
// well: if only the first quarter is short, something was filled then (a cache, a GPU's queue). The
// means of several epochs' quarters may pause between two, since other programs disturb a few; but
// every epoch must rise: a clock that is throttled, or another program, does not begin anew with
// each.
//
// Without such a trend, there is one from epoch to epoch if each is at least as slow as the one
// before, and the last much slower than the first, while backward passes are as long as they were:
// another program, or a slower clock, would prolong these, too.
//
// Epochs without numbers (loops without a loader) end where iterations become short again. What
// grows there may be the work itself, such as an agent's episodes: backward must not grow with it.

#include "verdict/trend.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "run/histogram.h"
#include "run/phases.h"
#include "verdict/thresholds.h"

#define QUARTERS 4
#define LAST (QUARTERS - 1)
#define SHORTEST 0.02 // quantile of the first quarter

struct epoch {
	size_t n;
	bool numbered;
	double own_s[QUARTERS]; // medians
	double least_s; // of the first quarter
	double samples[QUARTERS]; // means; NAN: not known
	double backward_s[QUARTERS]; // medians
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

// The first iteration from `from` on with which shorter ones begin; `end` if there is none.
static size_t find_reset(const struct phases *p, size_t from, size_t end)
{
	size_t block = (size_t)fmax(TREND_BLOCK, (double)p->n_iterations / TREND_BLOCKS);
	double before = 0;
	for (size_t i = from; i + block <= end; i += block) {
		struct histogram lengths = {0};
		for (size_t k = i; k < i + block; k++) {
			if (counts(&p->iterations[k])) {
				histogram_add(&lengths, own_s(&p->iterations[k]), 1);
			}
		}
		double median = histogram_quantile(&lengths, 0.5);
		histogram_done(&lengths);
		if (median < TREND_RESET * before) {
			return i;
		}
		before = median > 0 ? median : before;
	}
	return end;
}

// The iterations from `from` on that are in the same epoch. Returns the first one after them.
static size_t take_epoch(const struct phases *p, size_t from, struct epoch *ret)
{
	struct histogram quarters[QUARTERS] = {0}, backward[QUARTERS] = {0};
	double samples[QUARTERS] = {0}, of[QUARTERS] = {0};
	size_t end = from, place = 0;
	*ret = (struct epoch){.numbered = p->iterations[from].epoch >= 0};
	while (end < p->n_iterations && p->iterations[end].epoch == p->iterations[from].epoch) {
		end++;
	}
	end = ret->numbered ? end : find_reset(p, from, end);
	for (size_t i = from; i < end; i++) {
		ret->n += counts(&p->iterations[i]);
	}
	for (size_t i = from; i < end; i++) {
		const struct iteration *iteration = &p->iterations[i];
		if (counts(iteration)) {
			size_t quarter = place++ * QUARTERS / ret->n;
			histogram_add(&quarters[quarter], own_s(iteration), 1);
			histogram_add(&backward[quarter],
				(double)iteration->phase_ns[PHASE_BACKWARD] / 1e9, 1);
			samples[quarter] += iteration->samples < 0 ? NAN
			                                           : (double)iteration->samples;
			of[quarter]++;
			ret->sum_s += own_s(iteration);
			ret->length_s += (double)iteration->length_ns / 1e9;
		}
	}
	ret->least_s = histogram_quantile(&quarters[0], SHORTEST);
	for (size_t i = 0; i < QUARTERS; i++) {
		ret->own_s[i] = histogram_quantile(&quarters[i], 0.5);
		ret->samples[i] = samples[i] / of[i];
		ret->backward_s[i] = histogram_quantile(&backward[i], 0.5);
		histogram_done(&quarters[i]);
		histogram_done(&backward[i]);
	}
	return end;
}

// As far as is known: samples themselves may become longer. An agent's episodes, in no epoch, do.
static bool has_equal_work(const struct epoch *e)
{
	bool samples = fabs(e->samples[LAST] / e->samples[0] - 1) <= TREND_SAMPLES;
	bool backward = e->backward_s[0] > 0 &&
	                e->backward_s[LAST] <= TREND_BACKWARD * e->backward_s[0];
	return e->numbered ? samples : backward && (samples || isnan(e->samples[0]));
}

static bool rises(const struct epoch *e, double rise)
{
	double second_half = e->own_s[LAST] - e->own_s[1];
	bool rises = e->own_s[LAST] >= TREND * e->own_s[0] &&
	             second_half >= TREND_SECOND_HALF * (e->own_s[LAST] - e->own_s[0]);
	for (size_t i = 1; i < QUARTERS; i++) {
		rises = rises && e->own_s[i] >= rise * e->own_s[i - 1];
	}
	return rises;
}

// Extrapolated from the first two quarters, whose medians are at 1/8 and 3/8, but not below what
// was seen.
static double start_s(const struct epoch *e)
{
	return fmax(e->least_s, e->own_s[0] - (e->own_s[1] - e->own_s[0]) / 2);
}

static void add_epoch(struct epoch *sum, const struct epoch *one)
{
	for (size_t i = 0; i < QUARTERS; i++) {
		sum->own_s[i] += one->own_s[i];
	}
	sum->least_s += one->least_s;
	sum->sum_s += one->sum_s;
	sum->length_s += one->length_s;
	sum->n += one->n;
}

static size_t longest_epoch(const struct phases *p)
{
	size_t longest = 0;
	struct epoch one;
	for (size_t i = 0; i < p->n_iterations;) {
		i = take_epoch(p, i, &one);
		longest = one.n > longest ? one.n : longest;
	}
	return longest;
}

static double mean_of(const double quarters[QUARTERS])
{
	double sum = 0;
	for (size_t i = 0; i < QUARTERS; i++) {
		sum += quarters[i];
	}
	return sum / QUARTERS;
}

static size_t count_epochs(const struct phases *p)
{
	size_t epochs = 0;
	struct epoch one;
	for (size_t i = 0; i < p->n_iterations;) {
		i = take_epoch(p, i, &one);
		epochs += one.n >= TREND_EPOCH_LEAST;
	}
	return epochs;
}

// The epochs of each quarter of the run as if they were the iterations of one epoch. False: one is
// shorter than the one before, or one has no backward pass.
static bool take_run(const struct phases *p, size_t epochs, struct epoch *run)
{
	struct epoch one;
	size_t of[QUARTERS] = {0}, place = 0;
	double before_s = 0;
	*run = (struct epoch){.numbered = true};
	for (size_t i = 0; i < p->n_iterations;) {
		i = take_epoch(p, i, &one);
		double own_s = mean_of(one.own_s), backward_s = mean_of(one.backward_s);
		if (one.n < TREND_EPOCH_LEAST) {
			continue;
		}
		if (!one.numbered || own_s < TREND_PAUSE * before_s || !(backward_s > 0)) {
			return false;
		}
		size_t quarter = place++ * QUARTERS / epochs;
		run->own_s[quarter] += own_s;
		run->backward_s[quarter] += backward_s;
		run->samples[quarter] += mean_of(one.samples);
		run->sum_s += one.sum_s;
		run->length_s += one.length_s;
		run->n += one.n;
		of[quarter]++;
		before_s = own_s;
	}
	for (size_t i = 0; i < QUARTERS; i++) {
		run->own_s[i] /= (double)of[i];
		run->backward_s[i] /= (double)of[i];
		run->samples[i] /= (double)of[i];
	}
	return true;
}

static struct trend trend_over_epochs(const struct phases *p)
{
	const struct trend none = {NAN, NAN, NAN, false, false, false};
	struct epoch run;
	size_t epochs = count_epochs(p);
	if (epochs < TREND_EPOCHS || !take_run(p, epochs, &run) || !rises(&run, TREND_PAUSE)) {
		return none;
	}
	double backward = run.backward_s[LAST] / run.backward_s[0] - 1;
	double longer = run.own_s[LAST] / run.own_s[0] - 1;
	if (!(fabs(run.samples[LAST] / run.samples[0] - 1) <= TREND_SAMPLES) ||
		!(backward <= TREND_BACKWARD_PART * longer)) {
		return none;
	}
	double longer_s = run.sum_s - start_s(&run) * (double)run.n;
	return (struct trend){
		run.own_s[0], run.own_s[LAST], longer_s / run.length_s, false, true, true};
}

static struct trend trend_in_epochs(const struct phases *p)
{
	const struct trend none = {NAN, NAN, NAN, false, false, false};
	size_t all = 0;
	// The last epoch may have been cut off.
	double least = fmax(TREND_LEAST, TREND_WHOLE * (double)longest_epoch(p)), n = 0;
	struct epoch mean = {.numbered = true}, one;
	for (size_t i = 0; i < p->n_iterations;) {
		i = take_epoch(p, i, &one);
		all += one.n;
		if ((double)one.n < least) {
			continue;
		}
		if (!(one.own_s[LAST] >= TREND_EACH * one.own_s[0]) || !has_equal_work(&one)) {
			return none;
		}
		add_epoch(&mean, &one);
		mean.numbered = mean.numbered && one.numbered;
		n++;
	}
	for (size_t i = 0; i < QUARTERS; i++) {
		mean.own_s[i] /= n;
	}
	mean.least_s /= n;
	bool most = mean.numbered || (double)mean.n >= TREND_MOST * (double)all;
	if (!(n > 0) || !most || !rises(&mean, n > 1 ? TREND_PAUSE : TREND_RISE)) {
		return none;
	}
	double longer_s = mean.sum_s - start_s(&mean) * (double)mean.n;
	return (struct trend){mean.own_s[0], mean.own_s[LAST], longer_s / mean.length_s, n > 1,
		mean.numbered, false};
}

struct trend trend_of(const struct phases *p)
{
	struct trend within = trend_in_epochs(p);
	return isfinite(within.share) ? within : trend_over_epochs(p);
}
