// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Results of a sweep.

#include "sweep/results.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "sweep/sweep.h"

// Measures for the comparison with the baseline: the first known one is used.
static const enum measure_id judged_by[] = {
	MEASURE_EPOCH, MEASURE_TRAINING, MEASURE_STEP, MEASURE_DURATION};

const struct result_measure result_measures[N_RESULT_MEASURES] = {
	{MEASURE_EPOCH, 1},
	{MEASURE_SAMPLES_PER_SECOND, 1},
	{MEASURE_STEP, 1},
	{MEASURE_DURATION, 1},
	{MEASURE_DATA_SHARE, 0.01},
	{MEASURE_CPUS_USED, 1},
	{MEASURE_HOST_MEMORY_PEAK, 1},
	{MEASURE_GPU_UTILIZATION, 0.01},
	{MEASURE_DEVICE_MEMORY_PEAK, 1},
	{MEASURE_COST, 1},
	{MEASURE_COST_PER_EPOCH, 1},
};

size_t results_configuration_of(const struct sweep *sweep, const struct digest *run)
{
	struct cursor c = cursor_of(run->name, strlen(run->name));
	uint64_t configuration, repeat;
	bool ours = cursor_u64(&c, &configuration) && cursor_literal(&c, "-") &&
	            cursor_u64(&c, &repeat) && c.at == c.end && configuration > 0 && repeat > 0 &&
	            configuration <= sweep->trials.n_configurations &&
	            repeat <= sweep->plan.repeats;
	return ours ? (size_t)configuration : 0;
}

static void add_run(struct results *r, const struct digest *run)
{
	size_t configuration = results_configuration_of(r->sweep, run);
	if (configuration == 0) {
		return;
	}
	struct result *result = &r->items[configuration - 1];
	result->outcomes[run->outcome]++;
	r->outcomes[run->outcome]++;
	if (!outcome_is_success(run->outcome)) {
		return;
	}
	result->n++;
	result->verdict = result->verdict ? result->verdict : run->verdict;
	for (size_t i = 0; i < N_RESULT_MEASURES; i++) {
		double value = run->measures[result_measures[i].id];
		if (isfinite(value)) {
			result->sums[i] += value * result_measures[i].factor;
			result->counts[i]++;
		}
	}
	double judged = run->measures[r->measure];
	if (isfinite(judged) && result->n_judged < r->sweep->plan.repeats) {
		result->judged[result->n_judged++] = judged;
	}
}

double result_mean(const struct result *result, size_t measure)
{
	return result->counts[measure] > 0 ? result->sums[measure] / (double)result->counts[measure]
	                                   : NAN;
}

// For how many configurations both they and their baseline have the measure. Without any baseline,
// 1 if any configuration has it.
static size_t count_pairs(const struct results *r, enum measure_id measure, bool *has)
{
	size_t n_configurations = r->sweep->trials.n_configurations, n = 0, n_pairs = 0;
	bool has_baseline = false;
	memset(has, 0, (n_configurations + 1) * sizeof(*has));
	for (size_t i = 0; i < r->catalogue.n; i++) {
		const struct digest *run = &r->catalogue.runs[i];
		size_t configuration = results_configuration_of(r->sweep, run);
		if (configuration > 0 && outcome_is_success(run->outcome) &&
			isfinite(run->measures[measure])) {
			has[configuration] = true;
		}
	}
	for (size_t i = 1; i <= n_configurations; i++) {
		size_t base = r->items[i - 1].base;
		has_baseline = has_baseline || base > 0;
		n += has[i];
		n_pairs += base > 0 && base != i && has[base] && has[i];
	}
	return has_baseline ? n_pairs : n > 0;
}

// The first measure with the most such pairs. A job without output has no epochs, but it can still
// be compared by another measure.
static int find_measure(struct results *r)
{
	_cleanup_free_ bool *has = calloc(r->sweep->trials.n_configurations + 1, sizeof(*has));
	size_t most = 0;
	r->measure = MEASURE_DURATION;
	for (size_t i = 0; has && i < ARRAY_LENGTH(judged_by); i++) {
		size_t n = count_pairs(r, judged_by[i], has);
		if (n > most) {
			most = n;
			r->measure = judged_by[i];
		}
	}
	return has ? 0 : -ENOMEM;
}

static void hold_against(struct result *result, const struct result *base, enum measure_id measure)
{
	result->is_baseline = result == base;
	if (result != base && result->n_judged > 0 && base->n_judged > 0) {
		result->speed_up = measure_against(
			measure, result->repeats.mean, base->repeats.mean);
	}
	if (isfinite(result->speed_up)) {
		result->probability = statistics_welch(&result->repeats, &base->repeats);
	}
}

// Compares like strain compare.
static int compare_all(struct results *r)
{
	size_t n = r->sweep->trials.n_configurations;
	_cleanup_free_ double *probabilities = calloc(n + 1, sizeof(*probabilities));
	if (!probabilities) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		struct result *result = &r->items[i];
		result->repeats = statistics_of(result->judged, result->n_judged);
		result->speed_up = result->probability = NAN;
	}
	for (size_t i = 0; i < n; i++) {
		size_t base = r->items[i].base;
		if (base > 0) {
			hold_against(&r->items[i], &r->items[base - 1], r->measure);
		}
		probabilities[i] = r->items[i].probability;
		r->n_tests += !isnan(probabilities[i]);
	}
	int result = statistics_holm(probabilities, n);
	for (size_t i = 0; i < n; i++) {
		r->items[i].probability = probabilities[i];
	}
	return result;
}

bool result_beyond_noise(const struct result *result)
{
	return result->probability < STATISTICS_LEVEL;
}

void results_done(struct results *r)
{
	catalogue_done(&r->catalogue);
	free(r->items);
	free(r->judged);
}

int results_read(
	const struct sweep *sweep, const struct prices *prices, struct results *r, struct error *e)
{
	*r = (struct results){.sweep = sweep};
	size_t n = sweep->trials.n_configurations, repeats = sweep->plan.repeats;
	char *const paths[] = {sweep->directory};
	const struct catalogue_options options = {.prices = prices};
	int result = catalogue_read_with(paths, 1, &options, &r->catalogue, e);
	if (result < 0) {
		return result;
	}
	r->items = calloc(n + 1, sizeof(*r->items));
	r->judged = calloc(n * repeats + 1, sizeof(*r->judged));
	bool failed = !r->items || !r->judged;
	for (size_t i = 0; !failed && i < n; i++) {
		r->items[i].base = trials_baseline(&sweep->trials, i + 1);
		r->items[i].judged = &r->judged[i * repeats];
	}
	failed = failed || find_measure(r) < 0;
	for (size_t i = 0; !failed && i < r->catalogue.n; i++) {
		add_run(r, &r->catalogue.runs[i]);
	}
	return failed || compare_all(r) < 0 ? error_errno(e, ENOMEM, "cannot read the results") : 0;
}

const char *results_why_untested(const struct results *r)
{
	bool baseline_has = false;
	for (size_t i = 0; i < r->sweep->trials.n_configurations; i++) {
		const struct result *result = &r->items[i];
		if (isfinite(result->speed_up)) {
			return "not tested: a test needs at least two runs of each";
		}
		baseline_has = baseline_has || (result->is_baseline && result->n_judged > 0);
	}
	return baseline_has ? "none: only the baseline has this value"
	                    : "none: the baseline has no such value";
}
