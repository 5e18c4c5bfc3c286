// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tables of a sweep: its trials, and its results.

#include "show/sweep_tables.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/secret.h"
#include "base/text.h"
#include "run/statistics.h"
#include "show/json.h"
#include "show/pivot_write.h"
#include "show/table.h"
#include "study/catalogue.h"
#include "sweep/results.h"
#include "sweep/sweep.h"
#include "sweep/template.h"

static void append_word(void *context, const char *masked, size_t length)
{
	struct text *t = context;
	_cleanup_free_ char *word = strndup(masked, length);
	t->failed = t->failed || !word;
	text_append_string(t, t->length > 0 ? " " : "");
	text_append_word(t, word ? word : "");
}

// Returns "sh -c 'exit 1'".
static char *command_text(const struct trials *trials, size_t configuration)
{
	struct text t = {0};
	bool failed = false;
	char **words = trials_command(trials, configuration);
	if (words) {
		secret_each_argument(words, append_word, &t, &failed);
	}
	t.failed = t.failed || failed || !words;
	template_free_words(words);
	return text_steal(&t);
}

// Returns `first`, a column for each factor, `more`. Owned by the caller; NULL: out of memory.
static struct column *sweep_columns(const struct plan *plan, const struct column *first,
	const struct column *more, size_t n_more)
{
	struct column *columns = calloc(1 + plan->n_factors + n_more, sizeof(*columns));
	if (!columns) {
		return NULL;
	}
	columns[0] = *first;
	for (size_t i = 0; i < plan->n_factors; i++) {
		columns[1 + i] = (struct column){
			plan->factors[i].name, plan->factors[i].name, COLUMN_LABEL, 0};
	}
	memcpy(columns + 1 + plan->n_factors, more, n_more * sizeof(*more));
	return columns;
}

static int fill_trials(const struct sweep *sweep, struct table *table)
{
	const struct plan *plan = &sweep->plan;
	for (size_t i = 0; i < sweep->trials.n; i++) {
		struct trial_place place = sweep->trials.order[i];
		_cleanup_free_ char *name = sweep_trial_name(place);
		_cleanup_free_ char *command = command_text(&sweep->trials, place.configuration);
		if (!name || !command || table_row(table) < 0) {
			return -ENOMEM;
		}
		table_text(table, 0, name);
		for (size_t f = 0; f < plan->n_factors; f++) {
			table_text(
				table, 1 + f, trials_value(&sweep->trials, place.configuration, f));
		}
		table_text(table, 1 + plan->n_factors, sweep->done[i] ? "there" : "to do");
		table_text(table, 2 + plan->n_factors, command);
	}
	return 0;
}

// Appends "40 trials of 20 configurations (16 excluded by constraints), 12 there, into plan.sweep".
void sweep_tables_append_counts(struct text *t, const struct sweep *sweep)
{
	char trials[32], configurations[32];
	text_count(trials, sizeof(trials), sweep->trials.n);
	text_count(configurations, sizeof(configurations), sweep->trials.n_configurations);
	text_format(t, "%s trial%s of %s configuration%s", trials, sweep->trials.n == 1 ? "" : "s",
		configurations, sweep->trials.n_configurations == 1 ? "" : "s");
	if (sweep->trials.excluded > 0) {
		text_format(t, " (%zu excluded by constraints)", sweep->trials.excluded);
	}
	if (sweep->n_done > 0) {
		text_format(t, ", %zu complete", sweep->n_done);
	}
	text_format(t, ", into %s", sweep->directory);
}

int sweep_tables_trials(const struct sweep *sweep, bool json, FILE *stream)
{
	static const struct column first = {"trial", "TRIAL", COLUMN_LABEL, 0};
	static const struct column more[] = {
		{"state", "STATE", COLUMN_LABEL, 0},
		{"command", "COMMAND", COLUMN_TEXT, 0},
	};
	struct table *table = NULL;
	_cleanup_free_ struct column *columns = sweep_columns(
		&sweep->plan, &first, more, ARRAY_LENGTH(more));
	size_t n = 1 + sweep->plan.n_factors + ARRAY_LENGTH(more);
	if (!columns || table_new(columns, n, &table) < 0 || fill_trials(sweep, table) < 0) {
		table_free(table);
		return -ENOMEM;
	}
	int result = 0;
	if (json) {
		result = json_write(table_to_json(table), stream);
	} else {
		_cleanup_text_ struct text counts = {0};
		sweep_tables_append_counts(&counts, sweep);
		fprintf(stream, "%s\n\n", counts.data ? counts.data : "");
		const struct table_style style = table_style_for(stream);
		result = table_print(table, stream, &style);
	}
	table_free(table);
	return result;
}

// --- results

enum { FAILURES_SHOWN = 10 };

// In the order of result_measures.
static const struct column shown[N_RESULT_MEASURES] = {
	{"epoch_seconds", "EPOCH", COLUMN_SECONDS, 0},
	{"samples_per_second", "SAMPLES/S", COLUMN_NUMBER, 0},
	{"step_seconds", "STEP", COLUMN_SECONDS, 3},
	{"duration_seconds", "DURATION", COLUMN_SECONDS, 2},
	{"data_share", "DATA", COLUMN_RATIO, 4},
	{"cpus_used", "CPUS USED", COLUMN_NUMBER, 5},
	{"host_memory_peak", "PEAK MEMORY", COLUMN_BYTES, 6},
	{"gpu_utilization", "GPU", COLUMN_RATIO, 7},
	{"device_memory_peak", "PEAK GPU MEMORY", COLUMN_BYTES, 8},
	{"cost", "COST", COLUMN_NUMBER, 2},
	{"cost_per_epoch", "COST/EPOCH", COLUMN_NUMBER, 2},
};

static void append_outcomes(struct text *t, const size_t counts[static N_OUTCOMES], bool numbers)
{
	for (size_t i = 0; i < N_OUTCOMES; i++) {
		if (counts[i] > 0) {
			text_append_string(t, t->length > 0 ? ", " : "");
			if (numbers) {
				text_format(t, "%zu ", counts[i]);
			}
			outcome_append_shown(t, (enum outcome)i);
		}
	}
}

// Appends "1.33x*" or "baseline".
static void put_speed_up(struct table *table, size_t column, const struct result *result)
{
	_cleanup_text_ struct text t = {0};
	if (isfinite(result->speed_up)) {
		grid_append_against(&t, result->speed_up);
		text_append_string(&t, result_beyond_noise(result) ? "x*" : "x");
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
	for (size_t i = 0; i < N_RESULT_MEASURES; i++) {
		table_number(table, at + CELL_MEASURES + i, result_mean(result, i));
	}
	table_text(table, at + CELL_MEASURES + N_RESULT_MEASURES,
		result->verdict && *result->verdict ? result->verdict : NULL);
	return 0;
}

// Whether the plan has sizes in MiB or GiB.
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
	struct column more[CELL_MEASURES + N_RESULT_MEASURES + 1];
	bool binary = has_binary_sizes(r);
	memcpy(more, leading, sizeof(leading));
	for (size_t i = 0; i < N_RESULT_MEASURES; i++) {
		more[CELL_MEASURES + i] = shown[i];
		if (binary && shown[i].kind == COLUMN_BYTES) {
			more[CELL_MEASURES + i].kind = COLUMN_BINARY_BYTES;
		}
	}
	more[CELL_MEASURES + N_RESULT_MEASURES] = (struct column){
		"verdict", "VERDICT", COLUMN_LABEL, 1};
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

static void print_failures(const struct results *r, FILE *stream)
{
	size_t n = 0;
	for (size_t i = r->catalogue.n; i > 0; i--) { // oldest first
		const struct digest *run = &r->catalogue.runs[i - 1];
		if (results_configuration_of(r->sweep, run) == 0 ||
			outcome_is_success(run->outcome)) {
			continue;
		}
		if (n++ < FAILURES_SHOWN) {
			_cleanup_text_ struct text line = {0}, outcome = {0};
			outcome_append_shown(&outcome, run->outcome);
			text_append_printable(&line, run->outcome_text, strlen(run->outcome_text));
			fprintf(stream, "%s%s %s: %s\n", n == 1 ? "\n" : "", run->name,
				outcome.data ? outcome.data : "", line.data ? line.data : "");
		}
	}
	if (n > FAILURES_SHOWN) {
		fprintf(stream, "and %zu more\n", n - FAILURES_SHOWN);
	}
}

static void print_baseline(const struct results *r, FILE *stream)
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
	fprintf(stream, "\nspeed-up: how many times as fast as %s, by %s; ",
		line.data ? line.data : "", measures[r->measure].title);
	if (r->n_tests > 0) {
		fprintf(stream,
			"* is significant (" STATISTICS_TEST
			" over %zu comparison%s, %.0f %% level)\n",
			r->n_tests, r->n_tests > 1 ? "s" : "", 100 * STATISTICS_LEVEL);
	} else {
		fprintf(stream, "%s\n", results_why_untested(r));
	}
}

// The currency of the costs, or why the newest run has none.
static void print_currency(const struct results *r, FILE *stream)
{
	const struct digest *run = r->catalogue.n > 0 ? &r->catalogue.runs[0] : NULL;
	if (run && run->currency) {
		_cleanup_text_ struct text why = {0};
		const char *reason = run->reasons[MEASURE_COST];
		text_append_printable(&why, reason ? reason : "", reason ? strlen(reason) : 0);
		fprintf(stream, "\ncost: in %s%s%s\n", run->currency, reason ? "; missing: " : "",
			why.data ? why.data : "");
	}
}

static bool is_first_of_unit(const struct catalogue *c, size_t run)
{
	for (size_t i = 0; i < run; i++) {
		if (strcmp(c->runs[i].unit, c->runs[run].unit) == 0) {
			return false;
		}
	}
	return true;
}

// What samples are, if jobs say it.
static void print_units(const struct catalogue *c, FILE *stream)
{
	for (size_t i = 0; i < c->n; i++) {
		const char *unit = c->runs[i].unit;
		size_t runs = 0;
		for (size_t j = i; j < c->n && *unit; j++) {
			runs += strcmp(c->runs[j].unit, unit) == 0;
		}
		if (runs > 0 && is_first_of_unit(c, i)) {
			fprintf(stream, "\nsamples are %s in %zu of %zu trials\n", unit, runs,
				c->n);
		}
	}
}

static void print_end(const struct results *r, FILE *stream)
{
	_cleanup_text_ struct text outcomes = {0}, next = {0};
	append_outcomes(&outcomes, r->outcomes, true);
	print_baseline(r, stream);
	print_currency(r, stream);
	print_failures(r, stream);
	print_units(&r->catalogue, stream);
	text_append_path(&next, r->sweep->directory);
	const char *directory = next.data ? next.data : "";
	fprintf(stream, "\n%zu of %zu trials: %s\n", r->sweep->n_done, r->sweep->trials.n,
		outcomes.data ? outcomes.data : "none complete");
	fprintf(stream, "strain compare %s\nstrain report %s -o report.html\n", directory,
		directory);
}

// For programs, a measure has the same unit here, in compare and in ls.
static void put_in_units(json_t *row, const struct result *result)
{
	for (size_t i = 0; i < N_RESULT_MEASURES; i++) {
		if (result_measures[i].factor != 1) {
			json_object_set_new(row, shown[i].name,
				json_from_number(
					result_mean(result, i) / result_measures[i].factor));
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
						   : json_boolean(result_beyond_noise(result)));
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
	json_object_set_new(json, "currency",
		json_from_text(r->catalogue.n > 0 ? r->catalogue.runs[0].currency : NULL));
	json_object_set_new(json, "speed_up_of", json_from_text(measures[r->measure].name));
	json_object_set_new(json, "configurations", configurations_json(r, table));
	return json;
}

int sweep_tables_results(const struct results *r, bool json, FILE *stream)
{
	_cleanup_free_ struct column *columns = NULL;
	struct table *table = NULL;
	int result = make_table(r, &columns, &table);
	if (result == 0 && json) {
		result = json_write(results_json(r, table), stream);
	} else if (result == 0) {
		const struct table_style style = table_style_for(stream);
		result = table_print(table, stream, &style);
		print_end(r, stream);
	}
	table_free(table);
	return result;
}
