// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Times of trials that have not run, told from those that have.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants these before it.
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sweep/forecast.h"
#include "sweep/trials.h"

struct study {
	struct plan plan;
	struct trials trials;
	struct forecast *forecast;
};

static void open_study(struct study *s, const char *yaml)
{
	assert_int_equal(plan_read("plan.yaml", yaml, strlen(yaml), &s->plan, NULL), 0);
	assert_int_equal(trials_make(&s->plan, &s->trials, NULL), 0);
	s->forecast = forecast_new(&s->trials);
	assert_non_null(s->forecast);
}

static void close_study(struct study *s)
{
	forecast_free(s->forecast);
	trials_done(&s->trials);
	plan_done(&s->plan);
}

static bool has_value(
	const struct study *s, size_t configuration, const char *name, const char *value)
{
	return strcmp(trials_value_of(&s->trials, configuration, name), value) == 0;
}

// Factors that multiply, as they do in a training job.
static double true_seconds(const struct study *s, size_t configuration)
{
	double samples = strtod(trials_value_of(&s->trials, configuration, "samples"), NULL);
	double batch_size = strtod(trials_value_of(&s->trials, configuration, "batch_size"), NULL);
	double each = has_value(s, configuration, "framework", "tensorflow") ? 0.5e-3 : 1e-3;
	each *= has_value(s, configuration, "model", "resnet50") ? 20 : 1;
	return samples * each / pow(batch_size, 0.2);
}

static const char grid[] = "command: [job, \"${args}\"]\n"
			   "parameters:\n"
			   "  framework: {values: [pytorch, tensorflow]}\n"
			   "  model: {values: [cnn, resnet50]}\n"
			   "  batch_size: {values: [32, 64, 128, 256, 512]}\n"
			   "  samples: {values: [1000, 10000]}\n"
			   "  epochs: 3\n"
			   "repeats: 2\n";

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9 * b;
}

static void test_nothing_has_run(void **state)
{
	(void)state;
	struct study s;
	open_study(&s, grid);
	assert_true(isnan(forecast_seconds(s.forecast, 1)));
	close_study(&s);
}

static void test_one_has_run(void **state)
{
	(void)state;
	struct study s;
	open_study(&s, grid);
	assert_true(forecast_learn(s.forecast, 7, 12));
	for (size_t i = 1; i <= s.trials.n_configurations; i++) {
		assert_true(near(forecast_seconds(s.forecast, i), 12));
	}
	close_study(&s);
}

static double left_truly(const struct study *s, size_t from)
{
	double seconds = 0;
	for (size_t i = from; i < s->trials.n; i++) {
		seconds += true_seconds(s, s->trials.order[i].configuration);
	}
	return seconds;
}

static double left_told(const struct study *s, size_t from)
{
	double seconds = 0;
	for (size_t i = from; i < s->trials.n; i++) {
		seconds += forecast_seconds(s->forecast, s->trials.order[i].configuration);
	}
	return seconds;
}

static void test_factors_multiply(void **state)
{
	(void)state;
	struct study s;
	size_t n = 16;
	open_study(&s, grid);
	for (size_t i = 0; i < n; i++) {
		size_t configuration = s.trials.order[i].configuration;
		forecast_learn(s.forecast, configuration, true_seconds(&s, configuration));
	}
	double truly = left_truly(&s, n), told = left_told(&s, n);
	assert_true(fabs(told / truly - 1) < 0.1);
	// Trials from 1 to 400 times as long as another: each by itself, too.
	for (size_t i = n; i < s.trials.n; i++) {
		size_t configuration = s.trials.order[i].configuration;
		double ratio = forecast_seconds(s.forecast, configuration) /
		               true_seconds(&s, configuration);
		assert_true(ratio > 0.5 && ratio < 2);
	}
	close_study(&s);
}

static void test_a_repeat_is_known(void **state)
{
	(void)state;
	struct study s;
	open_study(&s, grid);
	forecast_learn(s.forecast, 3, 10);
	forecast_learn(s.forecast, 9, 500);
	forecast_learn(s.forecast, 3, 14);
	assert_true(near(forecast_seconds(s.forecast, 3), 12));
	assert_true(near(forecast_seconds(s.forecast, 9), 500));
	close_study(&s);
}

// What no trial had, a slope tells; what is no number, the mean.
static void test_values_not_seen(void **state)
{
	(void)state;
	struct study s;
	open_study(&s, "command: [job, \"${args}\"]\n"
		       "parameters: {samples: {values: [1000, 2000, 4000, 16000]}, way: {values: "
		       "[a, b]}}\n"
		       "constraints: [\"way == 'a' or samples == 1000\"]\n"
		       "order: plan\n");
	assert_int_equal(s.trials.n_configurations, 5);
	for (size_t i = 1; i <= s.trials.n_configurations; i++) {
		if (has_value(&s, i, "way", "a") && !has_value(&s, i, "samples", "16000")) {
			forecast_learn(s.forecast, i,
				strtod(trials_value_of(&s.trials, i, "samples"), NULL) / 100);
		}
	}
	for (size_t i = 1; i <= s.trials.n_configurations; i++) {
		double told = forecast_seconds(s.forecast, i);
		if (has_value(&s, i, "samples", "16000")) {
			assert_true(told > 100 && told < 200);
		} else if (has_value(&s, i, "way", "b")) {
			assert_true(told > 8 && told < 14);
		}
	}
	close_study(&s);
}

static void test_intervals(void **state)
{
	(void)state;
	struct study s;
	open_study(&s, "command: [job, \"${args}\"]\n"
		       "method: random\ntrials: 60\nseed: 3\n"
		       "parameters:\n"
		       "  samples: {distribution: int_uniform, min: 100, max: 10000}\n"
		       "  rate: {distribution: uniform, min: -1, max: 1}\n");
	for (size_t i = 1; i <= 20; i++) {
		forecast_learn(s.forecast, i,
			strtod(trials_value_of(&s.trials, i, "samples"), NULL) / 100);
	}
	double truly = 0, told = 0;
	for (size_t i = 21; i <= 60; i++) {
		truly += strtod(trials_value_of(&s.trials, i, "samples"), NULL) / 100;
		told += forecast_seconds(s.forecast, i);
	}
	assert_true(fabs(told / truly - 1) < 0.1);
	close_study(&s);
}

// 100,000 trials must not be fitted anew 100,000 times.
static void test_many_are_not_looked_at_each_time(void **state)
{
	(void)state;
	struct study s;
	size_t fits = 0;
	open_study(&s, grid);
	for (size_t i = 0; i < 10000; i++) {
		size_t configuration = 1 + i % s.trials.n_configurations;
		fits += forecast_learn(s.forecast, configuration, true_seconds(&s, configuration));
	}
	assert_true(fits > 20 && fits < 200);
	close_study(&s);
}

static void test_times_of_nothing(void **state)
{
	(void)state;
	struct study s;
	open_study(&s, grid);
	forecast_learn(s.forecast, 1, 0);
	forecast_learn(s.forecast, 2, 1e9);
	for (size_t i = 1; i <= s.trials.n_configurations; i++) {
		double told = forecast_seconds(s.forecast, i);
		assert_true(isfinite(told) && told >= 0);
	}
	close_study(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_has_run),
		cmocka_unit_test(test_one_has_run),
		cmocka_unit_test(test_factors_multiply),
		cmocka_unit_test(test_a_repeat_is_known),
		cmocka_unit_test(test_values_not_seen),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_many_are_not_looked_at_each_time),
		cmocka_unit_test(test_times_of_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
