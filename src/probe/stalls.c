// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Rates, and stalls as ratios of rates.

#include "probe/stalls.h"

#include <math.h>

// Least number of iterations for a rate. Batches that loader workers prepare in advance (usually
// two each) are then at most a fifth of them.
#define ITERATIONS_MIN 24
#define ITERATIONS_PER_WORKER 10
#define NORMAL_95 1.96 // quantile of a normal distribution for 95 %

const char *stalls_probe_name(enum probe_kind kind)
{
	static const char *const names[N_TRIALS] = {
		[PROBE_WARM] = "warm", [PROBE_COMPUTE] = "compute", [PROBE_COLD] = "cold"};
	return names[kind];
}

static double error_of(const struct estimate *e)
{
	return (e->high - e->low) / 2 / e->value;
}

// 1 - slow / fast, with relative errors of the ratio added as squares (first order). It is negative
// if the run that should be slower was faster: that is noise, and equal noise is to be expected in
// the other direction.
static struct estimate stall_between(const struct probe_rate *slow, const struct probe_rate *fast)
{
	struct estimate none = {NAN, NAN, NAN};
	double ratio = slow->rate.value / fast->rate.value;
	if (slow->of_samples != fast->of_samples || !(ratio > 0) || !isfinite(ratio)) {
		return none;
	}
	double half = ratio * hypot(error_of(&slow->rate), error_of(&fast->rate));
	return (struct estimate){
		.value = 1 - ratio,
		.low = isfinite(half) ? 1 - ratio - half : NAN,
		.high = isfinite(half) ? fmin(1 - ratio + half, 1) : NAN,
	};
}

// Whether the run that should be slower was faster by more than its own noise.
static bool is_impossible(const struct estimate *stall)
{
	return stall->high < 0;
}

static void widen(struct estimate *stall, double deviation)
{
	double half = hypot(stall->value - stall->low, NORMAL_95 * deviation);
	stall->low = stall->value - half;
	stall->high = fmin(stall->value + half, 1);
}

// A run does not show other load on the machine, which slows all of it down. If there is evidence
// of such load, its size counts as one standard deviation between runs, for both stalls.
static void allow_for_contention(struct stalls *s)
{
	double deviation = fmax(is_impossible(&s->prep) ? -s->prep.value : 0,
		is_impossible(&s->fetch) ? -s->fetch.value : 0);
	if (deviation > 0) {
		widen(&s->prep, deviation);
		widen(&s->fetch, deviation);
	}
	s->contention = deviation > 0;
}

void stalls_compute(const struct probe_rate rates[N_TRIALS], struct stalls *ret)
{
	ret->prep = stall_between(&rates[PROBE_WARM], &rates[PROBE_COMPUTE]);
	ret->fetch = stall_between(&rates[PROBE_COLD], &rates[PROBE_WARM]);
	allow_for_contention(ret);
}

bool stall_is_sure(const struct estimate *stall)
{
	return stall->low > 0;
}

double stall_noise(const struct estimate *stall)
{
	return stall->value - stall->low;
}

void probe_rate_of(const struct phases *p, struct probe_rate *ret)
{
	ret->iterations = p->steady;
	ret->of_samples = isfinite(p->samples_per_s.value);
	ret->rate = p->samples_per_s;
	if (!ret->of_samples) {
		ret->rate = (struct estimate){
			1 / p->length_s.value, 1 / p->length_s.high, 1 / p->length_s.low};
	}
}

bool stalls_rate_is_known(const struct phases *p, double error, double seconds)
{
	struct probe_rate rate;
	uint64_t needed = ITERATIONS_PER_WORKER * p->n_workers;
	probe_rate_of(p, &rate);
	return p->iterations_s >= seconds && p->steady >= ITERATIONS_MIN && p->steady >= needed &&
	       error_of(&rate.rate) <= error;
}
