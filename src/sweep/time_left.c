// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The time left of a sweep.

#include "sweep/time_left.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/parse.h"
#include "study/catalogue.h"
#include "sweep/forecast.h"
#include "sweep/sweep.h"

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
