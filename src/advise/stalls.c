// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Rates, and what their ratios say.

#include "advise/stalls.h"

#include <math.h>

// A rate from fewer is none, and the batches that loader workers prepare ahead (two each is usual)
// are at most a fifth of those it rests on.
#define ITERATIONS_MIN 24
#define ITERATIONS_PER_WORKER 10
// Machines and storage change their minds more slowly than a few iterations show.
#define SECONDS_MIN 3

const char *trial_name(enum trial_kind kind)
{
	static const char *const names[N_TRIALS] = {
		[TRIAL_WARM] = "warm", [TRIAL_COMPUTE] = "compute", [TRIAL_COLD] = "cold"};
	return names[kind];
}

static double error_of(const struct estimate *e)
{
	return (e->high - e->low) / 2 / e->value;
}

static double at_least_0(double share)
{
	return share > 0 ? share : 0;
}

// 1 - slow / fast. First order: relative errors of a ratio add as squares.
static struct estimate stall_between(const struct trial_rate *slow, const struct trial_rate *fast)
{
	struct estimate none = {NAN, NAN, NAN};
	double ratio = slow->rate.value / fast->rate.value;
	if (slow->of_samples != fast->of_samples || !(ratio > 0) || !isfinite(ratio)) {
		return none;
	}
	double half = ratio * hypot(error_of(&slow->rate), error_of(&fast->rate));
	return (struct estimate){
		.value = at_least_0(1 - ratio),
		.low = isfinite(half) ? at_least_0(1 - ratio - half) : NAN,
		.high = isfinite(half) ? at_least_0(fmin(1 - ratio + half, 1)) : NAN,
	};
}

void stalls_compute(const struct trial_rate rates[N_TRIALS], struct stalls *ret)
{
	ret->prep = stall_between(&rates[TRIAL_WARM], &rates[TRIAL_COMPUTE]);
	ret->fetch = stall_between(&rates[TRIAL_COLD], &rates[TRIAL_WARM]);
}

bool stall_is_sure(const struct estimate *stall)
{
	return stall->low > 0;
}

void trial_rate_of(const struct phases *p, struct trial_rate *ret)
{
	ret->iterations = p->steady;
	ret->of_samples = isfinite(p->samples_per_s.value);
	ret->rate = p->samples_per_s;
	if (!ret->of_samples) {
		ret->rate = (struct estimate){
			1 / p->length_s.value, 1 / p->length_s.high, 1 / p->length_s.low};
	}
}

bool trial_is_known(const struct phases *p, double error)
{
	struct trial_rate rate;
	uint64_t needed = ITERATIONS_PER_WORKER * p->n_workers;
	trial_rate_of(p, &rate);
	return p->iterations_s >= SECONDS_MIN && p->steady >= ITERATIONS_MIN &&
	       p->steady >= needed && error_of(&rate.rate) <= error;
}
