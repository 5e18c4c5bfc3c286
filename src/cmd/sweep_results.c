// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The table that ends a sweep, computed from its runs alone.

#include "cmd/sweep_results.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/catalogue.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "cmd/sweep_text.h"
#include "experiment/sweep.h"
#include "model/statistics.h"
#include "render/json.h"
#include "render/pivot_grid.h"
#include "render/table.h"

enum { FAILURES_SHOWN = 10 };

// What configurations are held against their baseline by: the first that is known.
static const enum measure_id judged_by[] = {
	MEASURE_EPOCH, MEASURE_TRAINING, MEASURE_STEP, MEASURE_DURATION};

struct shown_measure {
	enum measure_id id;
	struct column column;
	double factor; // from the measure's unit to the column's, for people
};

static const struct shown_measure shown[] = {
	{MEASURE_EPOCH, {"epoch_seconds", "EPOCH", COLUMN_SECONDS, 0}, 1},
	{MEASURE_SAMPLES_PER_SECOND, {"samples_per_second", "SAMPLES/S", COLUMN_NUMBER, 0}, 1},
	{MEASURE_STEP, {"step_seconds", "STEP", COLUMN_SECONDS, 3}, 1},
	{MEASURE_DURATION, {"duration_seconds", "DURATION", COLUMN_SECONDS, 2}, 1},
	{MEASURE_DATA_SHARE, {"data_share", "DATA", COLUMN_RATIO, 4}, 0.01},
	{MEASURE_CPUS_USED, {"cpus_used", "CPUS USED", COLUMN_NUMBER, 5}, 1},
	{MEASURE_HOST_MEMORY_PEAK, {"host_memory_peak", "MEMORY", COLUMN_BYTES, 6}, 1},
	{MEASURE_GPU_UTILIZATION, {"gpu_utilization", "GPU", COLUMN_RATIO, 7}, 0.01},
	{MEASURE_DEVICE_MEMORY_PEAK, {"device_memory_peak", "GPU MEMORY", COLUMN_BYTES, 8}, 1},
};

enum { N_SHOWN = ARRAY_LENGTH(shown) };

// A configuration's repeats.
struct result {
	size_t outcomes[N_OUTCOMES];
	size_t n; // that are a success
	double sums[N_SHOWN];
	size_t counts[N_SHOWN];
	const char *verdict; // of the first
	double *judged; // [n_judged], room for the plan's repeats
	size_t n_judged;
	struct repeats repeats; // of these
	size_t base; // the configuration it is held against; 0: none
	bool is_baseline;
	double speed_up; // NAN: not known
	double probability; // of being noise, corrected; NAN: not tested
};

struct results {
	const struct sweep *sweep;
	struct catalogue catalogue;
	struct result *items; // [n_configurations]
	size_t outcomes[N_OUTCOMES];
	double *judged; // that the items' are in
	enum measure_id measure; // of judged_by
	size_t n_tests;
};

// The configuration that a run is of, from its file's name; 0: none.
static size_t configuration_of(const struct sweep *sweep, const struct catalogue_run *run)
{
	struct cursor c = cursor_of(run->name, strlen(run->name));
	uint64_t configuration, repeat;
	bool ours = cursor_u64(&c, &configuration) && cursor_literal(&c, "-") &&
	            cursor_u64(&c, &repeat) && c.at == c.end && configuration > 0 && repeat > 0 &&
	            configuration <= sweep->trials.n_configurations &&
	            repeat <= sweep->plan.repeats;
	return ours ? (size_t)configuration : 0;
}

static void add_run(struct results *r, const struct catalogue_run *run)
{
	size_t configuration = configuration_of(r->sweep, run);
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
	for (size_t i = 0; i < N_SHOWN; i++) {
		double value = run->measures[shown[i].id];
		if (isfinite(value)) {
			result->sums[i] += value * shown[i].factor;
			result->counts[i]++;
		}
	}
	double judged = run->measures[r->measure];
	if (isfinite(judged) && result->n_judged < r->sweep->plan.repeats) {
		result->judged[result->n_judged++] = judged;
	}
}

static double mean_of(const struct result *result, size_t measure)
{
	return result->counts[measure] > 0 ? result->sums[measure] / (double)result->counts[measure]
	                                   : NAN;
}

static void append_outcomes(struct text *t, const size_t counts[static N_OUTCOMES], bool numbers)
{
	for (size_t i = 0; i < N_OUTCOMES; i++) {
		if (counts[i] > 0) {
			text_append_string(t, t->length > 0 ? ", " : "");
			if (numbers) {
				text_format(t, "%zu ", counts[i]);
			}
			text_append_string(t, outcome_word((enum outcome)i));
		}
	}
}

// Of how many configurations that ran both they and what they are held against have a measure;
// where nothing is held against anything, how many have it.
static size_t count_pairs(const struct results *r, enum measure_id measure, bool *has)
{
	size_t n_configurations = r->sweep->trials.n_configurations, n = 0, n_pairs = 0;
	bool has_baseline = false;
	memset(has, 0, (n_configurations + 1) * sizeof(*has));
	for (size_t i = 0; i < r->catalogue.n; i++) {
		const struct catalogue_run *run = &r->catalogue.runs[i];
		size_t configuration = configuration_of(r->sweep, run);
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

// The first that every pair has, else that most of them have: a job that is quiet has no epochs,
// and those that are not can still be held against it.
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

// As strain compare does it.
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

static bool beyond_noise(const struct result *result)
{
	return result->probability < STATISTICS_LEVEL;
}

// "1.33x*", "baseline"
static void put_speed_up(struct table *table, size_t column, const struct result *result)
{
	_cleanup_text_ struct text t = {0};
	if (isfinite(result->speed_up)) {
		grid_append_against(&t, result->speed_up);
		text_append_string(&t, beyond_noise(result) ? "x*" : "x");
	} else if (result->is_baseline) {
		text_append_string(&t, "baseline");
	}
	table_text(table, column, t.data);
}

enum { CELL_N, CELL_OUTCOMES, CELL_SPEED_UP, CELL_MEASURES };

static const struct column leading[] = {
	[CELL_N] = {"n", "N", COLUMN_WHOLE, 0},
	[CELL_OUTCOMES] = {"outcomes", "OUTCOME", COLUMN_LABEL, 0},
	[CELL_SPEED_UP] = {NULL, "SPEED-UP", COLUMN_NUMBER, 0},
};

static int fill_row(const struct results *r, size_t configuration, struct table *table)
{
	const struct result *result = &r->items[configuration - 1];
	const struct plan *plan = &r->sweep->plan;
	_cleanup_text_ struct text outcomes = {0};
	size_t total = 0;
	for (size_t i = 0; i < N_OUTCOMES; i++) {
		total += result->outcomes[i];
	}
	append_outcomes(&outcomes, result->outcomes, result->n != total && total > 1);
	if (table_row(table) < 0 || outcomes.failed) {
		return -ENOMEM;
	}
	table_integer(table, 0, (int64_t)configuration);
	for (size_t f = 0; f < plan->n_factors; f++) {
		table_text(table, 1 + f, trials_value(&r->sweep->trials, configuration, f));
	}
	size_t at = 1 + plan->n_factors;
	table_integer(table, at + CELL_N, (int64_t)result->n);
	table_text(table, at + CELL_OUTCOMES, outcomes.data ? outcomes.data : "to do");
	put_speed_up(table, at + CELL_SPEED_UP, result);
	for (size_t i = 0; i < N_SHOWN; i++) {
		table_number(table, at + CELL_MEASURES + i, mean_of(result, i));
	}
	table_text(table, at + CELL_MEASURES + N_SHOWN,
		result->verdict && *result->verdict ? result->verdict : NULL);
	return 0;
}

// Whether the plan wrote a size in MiB or GiB.
static bool has_binary_sizes(const struct results *r)
{
	const struct sweep *sweep = r->sweep;
	for (size_t i = 1; i <= sweep->trials.n_configurations; i++) {
		for (size_t f = 0; f < sweep->plan.n_factors; f++) {
			if (pivot_is_binary_size(trials_value(&sweep->trials, i, f))) {
				return true;
			}
		}
	}
	return false;
}

static int make_table(
	const struct results *r, struct column **ret_columns, struct table **ret_table)
{
	struct column more[CELL_MEASURES + N_SHOWN + 1];
	bool binary = has_binary_sizes(r);
	memcpy(more, leading, sizeof(leading));
	for (size_t i = 0; i < N_SHOWN; i++) {
		more[CELL_MEASURES + i] = shown[i].column;
		if (binary && shown[i].column.kind == COLUMN_BYTES) {
			more[CELL_MEASURES + i].kind = COLUMN_BINARY_BYTES;
		}
	}
	more[CELL_MEASURES + N_SHOWN] = (struct column){"verdict", "VERDICT", COLUMN_LABEL, 1};
	static const struct column first = {"configuration", "NO", COLUMN_WHOLE, 0};
	*ret_columns = sweep_columns(&r->sweep->plan, &first, more, ARRAY_LENGTH(more));
	size_t n = 1 + r->sweep->plan.n_factors + ARRAY_LENGTH(more);
	if (!*ret_columns || table_new(*ret_columns, n, ret_table) < 0) {
		return -ENOMEM;
	}
	int result = 0;
	for (size_t i = 1; i <= r->sweep->trials.n_configurations && result == 0; i++) {
		result = fill_row(r, i, *ret_table);
	}
	return result;
}

static void print_failures(const struct results *r)
{
	size_t n = 0;
	for (size_t i = r->catalogue.n; i > 0; i--) { // the oldest first
		const struct catalogue_run *run = &r->catalogue.runs[i - 1];
		if (configuration_of(r->sweep, run) == 0 || outcome_is_success(run->outcome)) {
			continue;
		}
		if (n++ < FAILURES_SHOWN) {
			_cleanup_text_ struct text line = {0};
			text_append_printable(&line, run->outcome_text, strlen(run->outcome_text));
			printf("%s%s %s: %s\n", n == 1 ? "\n" : "", run->name,
				outcome_word(run->outcome), line.data ? line.data : "");
		}
	}
	if (n > FAILURES_SHOWN) {
		printf("and %zu more\n", n - FAILURES_SHOWN);
	}
}

// Why no speed-up is tested.
static const char *why_untested(const struct results *r)
{
	bool baseline_has = false;
	for (size_t i = 0; i < r->sweep->trials.n_configurations; i++) {
		const struct result *result = &r->items[i];
		if (isfinite(result->speed_up)) {
			return "none is tested: that takes at least two runs of both";
		}
		baseline_has = baseline_has || (result->is_baseline && result->n_judged > 0);
	}
	return baseline_has ? "there is none: nothing but the baseline has such a value"
	                    : "there is none: the baseline has no such value";
}

static void print_baseline(const struct results *r)
{
	const struct plan *plan = &r->sweep->plan;
	_cleanup_text_ struct text line = {0};
	for (size_t i = 0; i < plan->baseline.n; i++) {
		const struct plan_pair *pair = &plan->baseline.items[i];
		text_append_string(&line, i ? ", " : "");
		text_append_printable(&line, pair->name, strlen(pair->name));
		text_append_string(&line, "=");
		text_append_printable(&line, pair->value, strlen(pair->value));
	}
	if (line.length == 0) {
		return;
	}
	printf("\nspeed-up: times as fast as %s, by the %s; ", line.data ? line.data : "",
		measures[r->measure].title);
	if (r->n_tests > 0) {
		printf("* is beyond noise (" STATISTICS_TEST
		       " over %zu comparison%s, %.0f %% level)\n",
			r->n_tests, r->n_tests > 1 ? "s" : "", 100 * STATISTICS_LEVEL);
	} else {
		puts(why_untested(r));
	}
}

static void print_end(const struct results *r)
{
	_cleanup_text_ struct text outcomes = {0}, next = {0};
	append_outcomes(&outcomes, r->outcomes, true);
	print_baseline(r);
	print_failures(r);
	text_append_word(&next, r->sweep->directory);
	const char *directory = next.data ? next.data : "";
	printf("\n%zu of %zu trials: %s\n", r->sweep->n_done, r->sweep->trials.n,
		outcomes.data ? outcomes.data : "none is there");
	printf("strain compare %s\nstrain report %s -o report.html\n", directory, directory);
}

// A measure has one unit for programs, here, in compare and in ls.
static void put_in_units(json_t *row, const struct result *result)
{
	for (size_t i = 0; i < N_SHOWN; i++) {
		if (shown[i].factor != 1) {
			json_object_set_new(row, shown[i].column.name,
				json_from_number(mean_of(result, i) / shown[i].factor));
		}
	}
}

static json_t *configurations_json(const struct results *r, const struct table *table)
{
	json_t *rows = table_to_json(table);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		json_t *row = json_array_get(rows, i);
		const struct result *result = &r->items[i];
		put_in_units(row, result);
		json_object_set_new(row, "speed_up", json_from_number(result->speed_up));
		json_object_set_new(row, "probability", json_from_number(result->probability));
		json_object_set_new(row, "beyond_noise",
			isnan(result->probability) ? json_null()
						   : json_boolean(beyond_noise(result)));
		json_object_set_new(row, "is_baseline", json_boolean(result->is_baseline));
	}
	return rows;
}

static json_t *results_json(const struct results *r, const struct table *table)
{
	json_t *json = json_object(), *outcomes = json_object();
	for (size_t i = 0; i < N_OUTCOMES; i++) {
		if (r->outcomes[i] > 0) {
			json_object_set_new(outcomes, outcome_word((enum outcome)i),
				json_integer((json_int_t)r->outcomes[i]));
		}
	}
	json_object_set_new(json, "sweep", json_from_text(r->sweep->stem));
	json_object_set_new(json, "directory", json_from_text(r->sweep->directory));
	json_object_set_new(json, "trials", json_integer((json_int_t)r->sweep->trials.n));
	json_object_set_new(json, "complete", json_integer((json_int_t)r->sweep->n_done));
	json_object_set_new(json, "outcomes", outcomes);
	json_object_set_new(json, "speed_up_of", json_from_text(measures[r->measure].name));
	json_object_set_new(json, "configurations", configurations_json(r, table));
	return json;
}

static int print(const struct results *r, bool json)
{
	_cleanup_free_ struct column *columns = NULL;
	struct table *table = NULL;
	int result = make_table(r, &columns, &table);
	if (result == 0 && json) {
		result = json_write(results_json(r, table), stdout);
	} else if (result == 0) {
		const struct table_style style = table_style_for(stdout);
		result = table_print(table, stdout, &style);
		print_end(r);
	}
	table_free(table);
	return result < 0 ? command_fail("cannot write: %s", strerrordesc_np(-result))
	                  : reading_finish();
}

static void results_done(struct results *r)
{
	catalogue_done(&r->catalogue);
	free(r->items);
	free(r->judged);
}

static int read_results(struct results *r, struct error *e)
{
	const struct sweep *sweep = r->sweep;
	size_t n = sweep->trials.n_configurations, repeats = sweep->plan.repeats;
	char *const paths[] = {sweep->directory};
	int result = catalogue_read(paths, 1, &r->catalogue, e);
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

int sweep_print_results(const struct sweep *sweep, bool json)
{
	struct results r = {.sweep = sweep};
	struct error e = {0};
	if (read_results(&r, &e) < 0) {
		results_done(&r);
		return command_fail("%s", e.text);
	}
	for (size_t i = 0; i < r.catalogue.n_unreadable; i++) {
		sweep_say(r.catalogue.unreadable[i]);
	}
	int status = print(&r, json);
	results_done(&r);
	return status;
}
