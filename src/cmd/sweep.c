// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain sweep: runs the trials of a plan, or resumes it.

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/secret.h"
#include "run/statistics.h"
#include "base/text.h"
#include "base/words.h"
#include "cmd/command.h"
#include "cmd/reading.h"
#include "show/json.h"
#include "show/pivot_write.h"
#include "show/table.h"
#include "study/catalogue.h"
#include "sweep/attempt.h"
#include "sweep/forecast.h"
#include "sweep/sweep.h"
#include "sweep/template.h"

// Progress of `strain sweep` on standard error: a line that is updated, on a terminal; else a line
// for each trial.

struct attempt;

struct forecast;

struct sweep;

struct sweep_progress {
	const struct sweep *sweep;
	bool terminal;
	size_t index; // of the current trial
	size_t done; // completed trials
	size_t to_run; // trials to run now
	struct forecast *forecast; // from earlier runs, then also from those of this start
	double left_s; // time of all trials that have not run; NAN: not known
	uint64_t trial_start_ns;
	uint64_t shown_ns;
	char last[160]; // the last result
};

struct sweep;

struct column;

struct plan;

struct sweep;

struct text;

static void sweep_progress_tick(void *context); // of attempt_watch

// Text --------------------------------------------------------------------------------------------
//
// Messages and tables of `strain sweep`.

// Prints a line on standard error.
static void sweep_say(const char *text)
{
	command_note("%s", text);
}

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
static void sweep_append_counts(struct text *t, const struct sweep *sweep)
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

// --dry-run: prints what there is to do, and the trials in their order. Returns the exit status.
static int sweep_print_trials(const struct sweep *sweep, bool json)
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
		return command_fail("out of memory");
	}
	int result = 0;
	if (json) {
		result = json_write(table_to_json(table), stdout);
	} else {
		_cleanup_text_ struct text counts = {0};
		sweep_append_counts(&counts, sweep);
		printf("%s\n\n", counts.data ? counts.data : "");
		const struct table_style style = table_style_for(stdout);
		result = table_print(table, stdout, &style);
	}
	table_free(table);
	return result < 0 ? command_fail("cannot write: %s", strerrordesc_np(-result))
	                  : reading_finish();
}

// Progress ----------------------------------------------------------------------------------------
//
// Shows the progress of a sweep.

#define SHOW_EVERY_NS (NS_PER_S / 2)
#define LABEL_COLUMNS 60 // on the line that is updated
#define LABEL_COLUMNS_MOST 200

// Before the trials -------------------------------------------------------------------------------

// The time limit of a trial in the plan; 0: none.
static double longest_s(const struct plan *plan)
{
	return plan->stop.seconds > 0 && plan->timeout_s > 0
	               ? fmin(plan->stop.seconds, plan->timeout_s)
	               : fmax(plan->stop.seconds, plan->timeout_s);
}

static double trial_s(const struct sweep_progress *p, size_t index)
{
	double most = longest_s(&p->sweep->plan);
	double seconds = p->forecast ? forecast_seconds(p->forecast,
					       p->sweep->trials.order[index].configuration)
	                             : NAN;
	return most > 0 && seconds > most ? most : seconds;
}

static void add_up(struct sweep_progress *p)
{
	p->left_s = 0;
	for (size_t i = 0; i < p->sweep->trials.n; i++) {
		p->left_s += p->sweep->done[i] ? 0 : trial_s(p, i);
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
static double learn_from_runs(struct sweep_progress *p)
{
	struct catalogue catalogue;
	char *const paths[] = {p->sweep->directory};
	const struct catalogue_options options = {.job_only = true};
	if (p->sweep->n_done == 0 ||
		catalogue_read_with(paths, 1, &options, &catalogue, NULL) < 0) {
		return NAN;
	}
	double bytes = 0;
	size_t n = 0;
	for (size_t i = 0; i < catalogue.n; i++) {
		struct stat status;
		double duration = catalogue.runs[i].measures[MEASURE_DURATION];
		size_t configuration = configuration_of(p->sweep, catalogue.runs[i].name);
		if (isfinite(duration) && stat(catalogue.runs[i].path, &status) == 0) {
			bytes += (double)status.st_size;
			n++;
		}
		if (isfinite(duration) && configuration > 0 && p->forecast &&
			tells_time(catalogue.runs[i].outcome)) {
			forecast_learn(p->forecast, configuration, duration);
		}
	}
	catalogue_done(&catalogue);
	return n > 0 ? bytes / (double)n : NAN;
}

static void append_time(struct text *t, const struct sweep_progress *p)
{
	double most = longest_s(&p->sweep->plan);
	if (isfinite(p->left_s)) {
		text_append_string(t, "about ");
		words_append_seconds(t, p->left_s);
		return;
	}
	text_append_string(t, "the remaining time is known after the first trial");
	if (most > 0) {
		text_append_string(t, " (at most ");
		words_append_seconds(t, most * (double)p->to_run);
		text_append_string(t, ")");
	}
}

static void append_disk(struct text *t, const struct sweep_progress *p, double bytes)
{
	struct statvfs status;
	double free_bytes = NAN;
	if (statvfs(p->sweep->directory, &status) == 0) {
		free_bytes = (double)status.f_bavail * (double)status.f_frsize;
	}
	if (isfinite(bytes)) {
		text_append_string(t, "; disk: about ");
		words_append_bytes(t, bytes * (double)p->to_run);
	} else {
		text_append_string(t, "; disk: at most 256 MiB each");
	}
	if (isfinite(free_bytes)) {
		text_append_string(t, ", ");
		words_append_bytes(t, free_bytes);
		text_append_string(t, " free");
		if (bytes * (double)p->to_run > free_bytes) {
			text_append_string(t, ": TOO LITTLE");
		}
	}
}

// Prints the number of trials, their time and disk space.
static void sweep_progress_begin(struct sweep_progress *p, const struct sweep *sweep)
{
	_cleanup_text_ struct text line = {0};
	*p = (struct sweep_progress){
		.sweep = sweep,
		.forecast = forecast_new(&sweep->trials),
		.terminal = isatty(STDERR_FILENO),
		.done = sweep->n_done,
		.to_run = sweep->trials.n - sweep->n_done,
	};
	double bytes = learn_from_runs(p);
	add_up(p);
	sweep_append_counts(&line, sweep);
	if (p->to_run > 0) {
		text_append_string(&line, ": ");
		append_time(&line, p);
		append_disk(&line, p, bytes);
	}
	sweep_say(line.data ? line.data : "");
}

// During the trials -------------------------------------------------------------------------------

static void append_labels(struct text *t, const struct sweep *sweep, size_t index, size_t columns)
{
	_cleanup_text_ struct text labels = {0};
	struct trial_place place = sweep->trials.order[index];
	for (size_t f = 0; f < sweep->plan.n_factors; f++) {
		// A constant factor is not shown.
		if (sweep->plan.factors[f].n_values != 1) {
			text_format(&labels, "%s%s=%s", labels.length > 0 ? " " : "",
				sweep->plan.factors[f].name,
				trials_value(&sweep->trials, place.configuration, f));
		}
	}
	words_append_elided(t, labels.data ? labels.data : "", columns);
}

static void append_whole_seconds(struct text *t, double seconds)
{
	if (seconds < 100) {
		text_format(t, "%.0f s", seconds);
	} else {
		words_append_seconds(t, round(seconds));
	}
}

static void append_left(struct text *t, double seconds)
{
	if (isfinite(seconds)) {
		text_append_string(t, "; ");
		append_whole_seconds(t, fmax(seconds, 1));
		text_append_string(t, " left");
	}
}

static void sweep_progress_trial(struct sweep_progress *p, size_t index)
{
	p->index = index;
	p->trial_start_ns = clock_monotonic_ns();
	p->shown_ns = 0;
	sweep_progress_tick(p);
}

static size_t terminal_columns(void)
{
	struct winsize size;
	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

static void sweep_progress_tick(void *context)
{
	struct sweep_progress *p = context;
	uint64_t now_ns = clock_monotonic_ns();
	if (!p->terminal || now_ns - p->shown_ns < SHOW_EVERY_NS) {
		return;
	}
	_cleanup_text_ struct text line = {0}, shown = {0};
	_cleanup_free_ char *name = sweep_trial_name(p->sweep->trials.order[p->index]);
	double passed = (double)(now_ns - p->trial_start_ns) / 1e9;
	text_format(&line, "strain: %zu of %zu: %s ", p->done + 1, p->sweep->trials.n,
		name ? name : "");
	append_labels(&line, p->sweep, p->index, LABEL_COLUMNS);
	text_append_string(&line, ": ");
	append_whole_seconds(&line, floor(passed));
	append_left(&line, p->left_s - fmin(passed, trial_s(p, p->index)));
	if (*p->last) {
		text_format(&line, "; last: %s", p->last);
	}
	words_append_elided(&shown, line.data ? line.data : "", terminal_columns() - 1);
	command_progress("%s", shown.data ? shown.data : "");
	p->shown_ns = now_ns;
}

static void append_measures(struct text *t, const struct attempt *attempt)
{
	if (isfinite(attempt->epoch_seconds)) {
		text_append_string(t, ", epoch ");
		words_append_seconds(t, attempt->epoch_seconds);
	}
	if (isfinite(attempt->samples_per_second)) {
		text_append_string(t, ", ");
		words_append_number(t, attempt->samples_per_second);
		text_append_string(t, " samples/s");
	}
}

static void learn(struct sweep_progress *p, enum outcome outcome)
{
	double seconds = (double)(clock_monotonic_ns() - p->trial_start_ns) / 1e9;
	size_t configuration = p->sweep->trials.order[p->index].configuration;
	double told = trial_s(p, p->index);
	if (p->forecast && tells_time(outcome) &&
		forecast_learn(p->forecast, configuration, seconds)) {
		add_up(p);
	} else {
		p->left_s -= told;
	}
}

// Prints a message about the trial; on a terminal, above the line of progress.
static void say_of_trial(const struct sweep_progress *p, const char *what)
{
	_cleanup_text_ struct text line = {0};
	_cleanup_free_ char *name = sweep_trial_name(p->sweep->trials.order[p->index]);
	if (p->terminal) {
		command_progress_end();
	}
	text_format(&line, "%s: %s", name ? name : "", what);
	sweep_say(line.data ? line.data : "");
}

static void sweep_progress_left(void *context, const char *processes)
{
	_cleanup_text_ struct text what = {0};
	text_format(&what, "could not be ended and still runs: %s", processes);
	say_of_trial(context, what.data ? what.data : "");
}

static void say_missed_epochs(const struct sweep_progress *p, const struct attempt *attempt)
{
	if (attempt->missed_epochs) {
		say_of_trial(p,
			"no epoch was detected, so stop.epochs had no effect (set epoch_pattern to "
			"a regular expression that matches its output)");
	}
}

static void sweep_progress_result(struct sweep_progress *p, const struct attempt *attempt)
{
	_cleanup_text_ struct text last = {0}, line = {0};
	p->done++;
	learn(p, attempt->outcome);
	say_missed_epochs(p, attempt);
	text_format(&last, "%s, ", outcome_word(attempt->outcome));
	words_append_seconds(&last, attempt->seconds);
	append_measures(&last, attempt);
	snprintf(p->last, sizeof(p->last), "%s", last.data ? last.data : "");
	if (p->terminal) {
		p->shown_ns = 0;
		return;
	}
	_cleanup_free_ char *name = sweep_trial_name(p->sweep->trials.order[p->index]);
	text_format(&line, "%zu of %zu: %s ", p->done, p->sweep->trials.n, name ? name : "");
	append_labels(&line, p->sweep, p->index, LABEL_COLUMNS_MOST);
	text_format(&line, ": %s", p->last);
	if (*attempt->outcome_text && !outcome_is_success(attempt->outcome)) {
		text_append_string(&line, ": ");
		words_append_elided(&line, attempt->outcome_text, 200);
	}
	if (p->done < p->sweep->trials.n) {
		append_left(&line, p->left_s);
	}
	sweep_say(line.data ? line.data : "");
}

// Removes the line; another trial may follow.
static void sweep_progress_end(struct sweep_progress *p)
{
	if (p->terminal) {
		command_progress_end();
	}
}

static void sweep_progress_done(struct sweep_progress *p)
{
	forecast_free(p->forecast);
	p->forecast = NULL;
}

// Results -----------------------------------------------------------------------------------------
//
// The table at the end of a sweep, computed only from its runs.

enum { FAILURES_SHOWN = 10 };

// Measures for the comparison with the baseline: the first known one is used.
static const enum measure_id judged_by[] = {
	MEASURE_EPOCH, MEASURE_TRAINING, MEASURE_STEP, MEASURE_DURATION};

struct shown_measure {
	enum measure_id id;
	struct column column;
	double factor; // from the unit of the measure to that of the column, for people
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

// The repeats of a configuration.
struct result {
	size_t outcomes[N_OUTCOMES];
	size_t n; // number of successful runs
	double sums[N_SHOWN];
	size_t counts[N_SHOWN];
	const char *verdict; // of the first run
	// [n_judged] values of the compared measure, with room for the plan's repeats
	double *judged;
	size_t n_judged;
	struct repeats repeats; // of these values
	size_t base; // configuration of its baseline; 0: none
	bool is_baseline;
	double speed_up; // NAN: not known
	double probability; // corrected p-value; NAN: not tested
};

struct results {
	const struct sweep *sweep;
	struct catalogue catalogue;
	struct result *items; // [n_configurations]
	size_t outcomes[N_OUTCOMES];
	double *judged; // memory of the items' `judged`
	enum measure_id measure; // the one chosen from judged_by
	size_t n_tests;
};

// The configuration of a run, from its file's name; 0: none.
static size_t results_configuration_of(const struct sweep *sweep, const struct digest *run)
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

static bool beyond_noise(const struct result *result)
{
	return result->probability < STATISTICS_LEVEL;
}

// Appends "1.33x*" or "baseline".
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
	for (size_t i = r->catalogue.n; i > 0; i--) { // oldest first
		const struct digest *run = &r->catalogue.runs[i - 1];
		if (results_configuration_of(r->sweep, run) == 0 ||
			outcome_is_success(run->outcome)) {
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
			return "not tested: a test needs at least two runs of both";
		}
		baseline_has = baseline_has || (result->is_baseline && result->n_judged > 0);
	}
	return baseline_has ? "none: only the baseline has this value"
	                    : "none: the baseline has no such value";
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
		printf("* is significant (" STATISTICS_TEST
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
		outcomes.data ? outcomes.data : "none complete");
	printf("strain compare %s\nstrain report %s -o report.html\n", directory, directory);
}

// For programs, a measure has the same unit here, in compare and in ls.
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

// Reads the runs and prints the table, the outcomes of failed trials, and commands for further
// analysis. Returns the exit status.
static int sweep_print_results(const struct sweep *sweep, bool json)
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

// Sweep -------------------------------------------------------------------------------------------

// A run of `true` takes 40 kB, a trial refused by a limit 14 kB.
#define SMALLEST_RUN_BYTES 16384

enum { OPTION_FORCE = 256, OPTION_DRY_RUN, OPTION_JSON, OPTION_JOBS };

struct sweep_command {
	struct sweep_options options;
	bool dry_run;
	bool json;
};

static const struct argp_option options[] = {
	{"output", 'o', "DIR", 0, "use DIR as the folder of the sweep (PLAN.sweep)", 0},
	{"dry-run", OPTION_DRY_RUN, NULL, 0, "print the trials in their order without running them",
		0},
	{"force", OPTION_FORCE, NULL, 0, "resume with a plan that changed after the start", 0},
	{"json", OPTION_JSON, NULL, 0, "print JSON", 0},
	// for an error message that explains why not
	{"jobs", OPTION_JOBS, "N", OPTION_HIDDEN, NULL, 0},
	{0},
};

static const char no_jobs[] =
	"--jobs %s: trials run one at a time, because parallel trials would share the measured "
	"CPUs, memory, disk and GPUs";

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct sweep_command *c = state->input;
	switch (key) {
	case 'o':
		c->options.directory = argument;
		return 0;
	case OPTION_DRY_RUN:
		c->dry_run = c->options.look = true;
		return 0;
	case OPTION_FORCE:
		c->options.force = true;
		return 0;
	case OPTION_JSON:
		c->json = true;
		return 0;
	case OPTION_JOBS:
		if (strcmp(argument, "1") != 0) {
			reading_option_error(state, no_jobs, argument);
		}
		return 0;
	case ARGP_KEY_ARG:
		if (c->options.plan) {
			reading_option_error(state, "expected one plan, found '%s' too", argument);
		}
		c->options.plan = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// Signals -----------------------------------------------------------------------------------------

static volatile sig_atomic_t interrupts;
static volatile sig_atomic_t interrupted_by;

static void interrupt(int signal_number)
{
	interrupted_by = signal_number;
	interrupts = interrupts < 100 ? interrupts + 1 : interrupts;
}

static void catch_signals(void)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
	const struct sigaction action = {.sa_handler = interrupt};
	for (size_t i = 0; i < ARRAY_LENGTH(caught); i++) {
		struct sigaction before;
		bool kept = sigaction(caught[i], NULL, &before) == 0 && caught[i] == SIGHUP &&
		            before.sa_handler == SIG_IGN; // started with nohup
		if (!kept) {
			sigaction(caught[i], &action, NULL);
		}
	}
}

// Running -----------------------------------------------------------------------------------------

static int say_interrupted(const struct sweep *sweep)
{
	_cleanup_text_ struct text line = {0};
	text_format(&line,
		"interrupted: %zu of %zu trials are complete; resume with: strain sweep ",
		sweep->n_done, sweep->trials.n);
	text_append_word(&line, sweep->directory);
	sweep_say(line.data ? line.data : "");
	return 128 + interrupted_by;
}

static int run_trials(struct sweep *sweep, struct sweep_progress *progress)
{
	const struct attempt_watch watch = {
		&interrupts, sweep_progress_tick, sweep_progress_left, progress};
	for (size_t i = 0; i < sweep->trials.n && interrupts == 0; i++) {
		struct attempt attempt;
		struct error e = {0};
		if (sweep->done[i]) {
			continue;
		}
		sweep_progress_trial(progress, i);
		int result = attempt_run(sweep, i, &watch, &attempt, &e);
		if (result == -EINTR) {
			break;
		}
		if (result < 0) {
			_cleanup_free_ char *name = sweep_trial_name(sweep->trials.order[i]);
			sweep_progress_end(progress);
			return command_fail("trial %s: %s", name ? name : "", e.text);
		}
		sweep->done[i] = true;
		sweep->n_done++;
		sweep_progress_result(progress, &attempt);
		attempt_done(&attempt);
	}
	sweep_progress_end(progress);
	return interrupts > 0 && sweep->n_done < sweep->trials.n ? say_interrupted(sweep)
	                                                         : STATUS_OK;
}

// Fails if the disk would be full before the last trial even with the smallest runs. A less certain
// lack of space is only reported, since space may become free.
static int check_space(const struct sweep *sweep)
{
	struct statvfs disk;
	double needed = (double)(sweep->trials.n - sweep->n_done) * SMALLEST_RUN_BYTES;
	if (statvfs(sweep->directory, &disk) < 0 || disk.f_blocks == 0) {
		return STATUS_OK;
	}
	double there = (double)disk.f_bfree * (double)disk.f_frsize;
	if (needed <= there) {
		return STATUS_OK;
	}
	_cleanup_text_ struct text line = {0};
	text_format(&line, "%s: not enough space for %zu more trials: they need at least ",
		sweep->directory, sweep->trials.n - sweep->n_done);
	words_append_bytes(&line, needed);
	text_append_string(&line, ", available: ");
	words_append_bytes(&line, there);
	return command_fail("%s", line.data ? line.data : "");
}

static int run_sweep(struct sweep *sweep, bool json)
{
	struct sweep_progress progress;
	if (check_space(sweep) != STATUS_OK) {
		return STATUS_FAILURE;
	}
	sweep_progress_begin(&progress, sweep);
	catch_signals();
	int status = run_trials(sweep, &progress);
	sweep_progress_done(&progress);
	return status == STATUS_OK ? sweep_print_results(sweep, json) : status;
}

int command_sweep(int argc, char **argv)
{
	static const struct argp argp = {options, parse_option, "PLAN.yaml|DIR",
		"Run every trial of a plan, record each into a file in the sweep's folder, and "
		"print the results.\vTo resume, start it again with the plan or the folder: "
		"complete trials are kept, an interrupted one runs again. man strain-sweep "
		"describes plans.",
		NULL, NULL, NULL};
	struct sweep_command c = {.options = {.say = sweep_say}};
	struct sweep sweep;
	struct error e = {0};
	reading_options(&argp, argc, argv, &c);
	if (!c.options.plan) {
		return command_usage("sweep", "sweep: expected a plan: PLAN.yaml");
	}
	if (sweep_open(&c.options, &sweep, &e) < 0) {
		return command_fail("%s", e.text);
	}
	int status = c.dry_run ? sweep_print_trials(&sweep, c.json) : run_sweep(&sweep, c.json);
	sweep_close(&sweep);
	return status;
}
