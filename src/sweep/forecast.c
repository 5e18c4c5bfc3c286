// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Ridge regression by coordinate descent: each effect in turn is fitted to the residual of the
// others.

#include "sweep/forecast.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/parse.h"
#include "study/catalogue.h"
#include "sweep/sweep.h"
#include "sweep/trials.h"

enum { ROUNDS = 30 };

#define EFFECT_RIDGE 0.3 // weight of a pseudo-trial in which the value has no effect
#define SLOPE_RIDGE 0.02
#define GROWTH 1.05 // factor by which the number of trials grows until the next fit
#define SHORTEST_S 1e-3

// Trials of one configuration that have run.
struct seen {
	size_t configuration; // from 1
	double n;
	double seconds; // of all of them
	double rest; // residual of the logarithm
};

struct forecast_factor {
	bool varies;
	bool numeric;
	size_t n_levels; // 0: an interval, which only has a slope
	const double *logs; // by choice: logarithms of values that are numbers
	double *own_logs; // [n_levels]; those of an interval are in drawn_logs
	double *effects; // [n_levels], on the logarithm
	double *sums; // [n_levels]
	double *weights; // [n_levels]
	double slope;
	double centre; // mean of the logarithms of the numbers seen
};

struct forecast {
	const struct trials *trials;
	struct forecast_factor *factors; // [trials->plan->n_factors]
	double *drawn_logs; // [trials->n_drawn]
	struct seen *seen;
	size_t n_seen;
	size_t seen_capacity;
	size_t *place_of; // [trials->n_configurations] index into `seen`, from 1; 0: has not run
	size_t n; // trials
	double due; // number of trials at which to fit again
	double mean; // of the logarithms
	double scale; // ratio of the actual to the fitted seconds of all trials
};

// The logarithm of a positive number or size; NAN for other values.
static double log_of(const char *value)
{
	char *end;
	double number = strtod(value, &end);
	uint64_t bytes;
	if (end == value || *end) {
		number = parse_size(value, &bytes, NULL) == 0 ? (double)bytes : NAN;
	}
	return isfinite(number) && number > 0 ? log(number) : NAN;
}

static bool make_listed(const struct plan_factor *from, struct forecast_factor *ret)
{
	size_t n = from->n_values;
	*ret = (struct forecast_factor){.varies = n > 1, .numeric = true, .n_levels = n};
	ret->own_logs = calloc(4 * n + 1, sizeof(*ret->own_logs));
	if (!ret->own_logs) {
		return false;
	}
	ret->logs = ret->own_logs;
	ret->effects = ret->own_logs + n;
	ret->sums = ret->effects + n;
	ret->weights = ret->sums + n;
	for (size_t i = 0; i < n; i++) {
		ret->own_logs[i] = log_of(from->values[i]);
		ret->numeric = ret->numeric && !isnan(ret->own_logs[i]);
	}
	return true;
}

static bool make_factors(struct forecast *f)
{
	const struct trials *trials = f->trials;
	f->factors = calloc(trials->plan->n_factors + 1, sizeof(*f->factors));
	f->drawn_logs = calloc(trials->n_drawn + 1, sizeof(*f->drawn_logs));
	f->place_of = calloc(trials->n_configurations + 1, sizeof(*f->place_of));
	bool made = f->factors && f->drawn_logs && f->place_of;
	for (size_t i = 0; i < trials->n_drawn && made; i++) {
		f->drawn_logs[i] = log_of(trials->drawn[i]);
	}
	for (size_t i = 0; i < trials->plan->n_factors && made; i++) {
		const struct plan_factor *from = &trials->plan->factors[i];
		if (from->distribution == DISTRIBUTION_VALUES) {
			made = make_listed(from, &f->factors[i]);
		} else {
			f->factors[i] = (struct forecast_factor){.varies = true,
				.numeric = from->minimum > 0,
				.logs = f->drawn_logs};
		}
	}
	return made;
}

struct forecast *forecast_new(const struct trials *trials)
{
	struct forecast *f = calloc(1, sizeof(*f));
	if (f) {
		f->trials = trials;
	}
	if (!f || !make_factors(f)) {
		forecast_free(f);
		return NULL;
	}
	return f;
}

void forecast_free(struct forecast *f)
{
	if (!f) {
		return;
	}
	for (size_t i = 0; f->factors && i < f->trials->plan->n_factors; i++) {
		free(f->factors[i].own_logs);
	}
	free(f->factors);
	free(f->drawn_logs);
	free(f->place_of);
	free(f->seen);
	free(f);
}

// The fit -----------------------------------------------------------------------------------------

static size_t level_of(const struct forecast *f, size_t configuration, size_t factor)
{
	size_t n = f->trials->plan->n_factors;
	return f->trials->choices[(configuration - 1) * n + factor];
}

static double distance(const struct forecast *f, size_t configuration, size_t factor)
{
	const struct forecast_factor *of = &f->factors[factor];
	return of->logs[level_of(f, configuration, factor)] - of->centre;
}

static double effect_of(const struct forecast *f, size_t configuration, size_t factor)
{
	const struct forecast_factor *of = &f->factors[factor];
	double effect = 0;
	if (of->varies && of->n_levels > 0) {
		effect += of->effects[level_of(f, configuration, factor)];
	}
	if (of->varies && of->numeric) {
		effect += of->slope * distance(f, configuration, factor);
	}
	return effect;
}

static void begin_fit(struct forecast *f)
{
	double sum = 0, weight = 0;
	for (size_t i = 0; i < f->n_seen; i++) {
		struct seen *s = &f->seen[i];
		s->rest = log(fmax(s->seconds / s->n, SHORTEST_S));
		sum += s->n * s->rest;
		weight += s->n;
	}
	f->mean = sum / weight;
	for (size_t i = 0; i < f->n_seen; i++) {
		f->seen[i].rest -= f->mean;
	}
	for (size_t k = 0; k < f->trials->plan->n_factors; k++) {
		struct forecast_factor *of = &f->factors[k];
		of->slope = of->centre = 0;
		for (size_t i = 0; i < of->n_levels; i++) {
			of->effects[i] = 0;
		}
		for (size_t i = 0; i < f->n_seen && of->numeric; i++) {
			of->centre += of->logs[level_of(f, f->seen[i].configuration, k)] /
			              (double)f->n_seen;
		}
	}
}

static void fit_slope(struct forecast *f, size_t factor)
{
	struct forecast_factor *of = &f->factors[factor];
	double product = 0, square = SLOPE_RIDGE, was = of->slope;
	for (size_t i = 0; i < f->n_seen; i++) {
		double x = distance(f, f->seen[i].configuration, factor);
		product += f->seen[i].n * (f->seen[i].rest + was * x) * x;
		square += f->seen[i].n * x * x;
	}
	of->slope = product / square;
	for (size_t i = 0; i < f->n_seen; i++) {
		double x = distance(f, f->seen[i].configuration, factor);
		f->seen[i].rest += (was - of->slope) * x;
	}
}

static void fit_levels(struct forecast *f, size_t factor)
{
	struct forecast_factor *of = &f->factors[factor];
	for (size_t i = 0; i < of->n_levels; i++) {
		of->sums[i] = of->weights[i] = 0;
	}
	for (size_t i = 0; i < f->n_seen; i++) {
		size_t level = level_of(f, f->seen[i].configuration, factor);
		of->sums[level] += f->seen[i].n * (f->seen[i].rest + of->effects[level]);
		of->weights[level] += f->seen[i].n;
	}
	for (size_t i = 0; i < of->n_levels; i++) { // the sums become the changes of the residuals
		double effect = of->sums[i] / (of->weights[i] + EFFECT_RIDGE);
		of->sums[i] = of->effects[i] - effect;
		of->effects[i] = effect;
	}
	for (size_t i = 0; i < f->n_seen; i++) {
		f->seen[i].rest += of->sums[level_of(f, f->seen[i].configuration, factor)];
	}
}

static double fitted(const struct forecast *f, size_t configuration)
{
	double sum = f->mean;
	for (size_t k = 0; k < f->trials->plan->n_factors; k++) {
		sum += effect_of(f, configuration, k);
	}
	return exp(sum);
}

static void fit(struct forecast *f)
{
	begin_fit(f);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (size_t k = 0; k < f->trials->plan->n_factors; k++) {
			if (f->factors[k].varies && f->factors[k].numeric) {
				fit_slope(f, k);
			}
			if (f->factors[k].varies && f->factors[k].n_levels > 0) {
				fit_levels(f, k);
			}
		}
	}
	double took = 0, said = 0;
	for (size_t i = 0; i < f->n_seen; i++) {
		took += f->seen[i].seconds;
		said += f->seen[i].n * fitted(f, f->seen[i].configuration);
	}
	f->scale = took / said;
}

// Queries -----------------------------------------------------------------------------------------

bool forecast_learn(struct forecast *f, size_t configuration, double seconds)
{
	size_t place = f->place_of[configuration - 1];
	if (place == 0) {
		if (array_reserve((void **)&f->seen, &f->seen_capacity, f->n_seen + 1,
			    sizeof(*f->seen)) < 0) {
			return false;
		}
		f->seen[f->n_seen] = (struct seen){.configuration = configuration};
		place = f->place_of[configuration - 1] = ++f->n_seen;
	}
	f->seen[place - 1].n++;
	f->seen[place - 1].seconds += fmax(seconds, SHORTEST_S);
	f->n++;
	if ((double)f->n < f->due) {
		return false;
	}
	fit(f);
	f->due = (double)f->n * GROWTH;
	return true;
}

double forecast_seconds(const struct forecast *f, size_t configuration)
{
	size_t place = f->place_of[configuration - 1];
	if (f->n_seen == 0) {
		return NAN;
	}
	if (place > 0) {
		return f->seen[place - 1].seconds / f->seen[place - 1].n;
	}
	return fitted(f, configuration) * f->scale;
}

// --- the time left of a sweep

double time_left_limit(const struct plan *plan)
{
	return plan->stop.seconds > 0 && plan->timeout_s > 0
	               ? fmin(plan->stop.seconds, plan->timeout_s)
	               : fmax(plan->stop.seconds, plan->timeout_s);
}

double time_left_of_trial(const struct time_left *t, size_t index)
{
	double most = time_left_limit(&t->sweep->plan);
	double seconds = t->forecast ? forecast_seconds(t->forecast,
					       t->sweep->trials.order[index].configuration)
	                             : NAN;
	return most > 0 && seconds > most ? most : seconds;
}

static void add_up(struct time_left *t)
{
	t->seconds = 0;
	for (size_t i = 0; i < t->sweep->trials.n; i++) {
		t->seconds += t->sweep->done[i] ? 0 : time_left_of_trial(t, i);
	}
}

// The configuration of "0007-2"; 0: not a trial of this plan.
static size_t configuration_of(const struct sweep *sweep, const char *name)
{
	struct cursor c = cursor_of(name, strlen(name));
	uint64_t configuration;
	return cursor_u64(&c, &configuration) && configuration <= sweep->trials.n_configurations
	               ? (size_t)configuration
	               : 0;
}

// Whether the duration predicts that of similar trials; that of a failed trial does not.
static bool tells_time(enum outcome outcome)
{
	return outcome_is_success(outcome) || outcome == OUTCOME_TIME_LIMIT;
}

// Learns the durations of existing runs. Returns their mean size in bytes; NAN: there are none.
static double learn_from_runs(struct time_left *t)
{
	struct catalogue catalogue;
	char *const paths[] = {t->sweep->directory};
	const struct catalogue_options options = {.job_only = true};
	if (t->sweep->n_done == 0 ||
		catalogue_read_with(paths, 1, &options, &catalogue, NULL) < 0) {
		return NAN;
	}
	double bytes = 0;
	size_t n = 0;
	for (size_t i = 0; i < catalogue.n; i++) {
		struct stat status;
		double duration = catalogue.runs[i].measures[MEASURE_DURATION];
		size_t configuration = configuration_of(t->sweep, catalogue.runs[i].name);
		if (isfinite(duration) && stat(catalogue.runs[i].path, &status) == 0) {
			bytes += (double)status.st_size;
			n++;
		}
		if (isfinite(duration) && configuration > 0 && t->forecast &&
			tells_time(catalogue.runs[i].outcome)) {
			forecast_learn(t->forecast, configuration, duration);
		}
	}
	catalogue_done(&catalogue);
	return n > 0 ? bytes / (double)n : NAN;
}

void time_left_init(struct time_left *t, const struct sweep *sweep)
{
	*t = (struct time_left){.sweep = sweep, .forecast = forecast_new(&sweep->trials)};
	t->run_bytes = learn_from_runs(t);
	add_up(t);
}

void time_left_done(struct time_left *t)
{
	forecast_free(t->forecast);
	t->forecast = NULL;
}

void time_left_learn(struct time_left *t, size_t index, enum outcome outcome, double seconds)
{
	size_t configuration = t->sweep->trials.order[index].configuration;
	double told = time_left_of_trial(t, index);
	if (t->forecast && tells_time(outcome) &&
		forecast_learn(t->forecast, configuration, seconds)) {
		add_up(t);
	} else {
		t->seconds -= told;
	}
}
