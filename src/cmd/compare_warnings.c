// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Warnings about runs beside each other.

#include "cmd/compare_warnings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/catalogue_metric.h"
#include "analyze/words.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"

#define OTHERS_CPUS 0.25 // that other programs may use before it is worth a line
#define OTHERS_SHARE 0.05 // the same, of the machine's CPUs
#define FIRST_MORE \
	0.1 // so much slower than the slowest of the rest, and than three times their spread
#define RUNS_LOOKED_AT 64 // for other load, which an index that is cold has to read

static int add_line(struct compare_warnings *w, struct text *line)
{
	char **grown = realloc(w->lines, (w->n + 1) * sizeof(*grown));
	char *text = text_steal(line);
	if (!grown || !text) {
		w->lines = grown ? grown : w->lines;
		free(text);
		return -ENOMEM;
	}
	w->lines = grown;
	grown[w->n++] = text;
	return 0;
}

static void append_foreign(struct text *t, const char *text)
{
	words_append_elided(t, text, 48);
}

// --- repeats

struct group {
	const struct catalogue_run **runs; // [n] the oldest first
	double *seconds; // [n] a time, or the inverse of a rate
	size_t n;
};

static bool is_same_key(const struct pivot_request *request, size_t a, size_t b)
{
	bool same = !request->apart;
	for (size_t i = 0; i < request->n_rows + request->n_columns && same; i++) {
		const char *label = i < request->n_rows ? request->rows[i]
		                                        : request->columns[i - request->n_rows];
		same = pivot_compare_labels(
			       pivot_label(request, a, label), pivot_label(request, b, label)) == 0;
	}
	return same;
}

// The first of the values that tells how fast a job is; N_MEASURES where none does.
static enum measure_id measure_of(const struct pivot_request *request)
{
	for (size_t i = 0; i < request->n_values; i++) {
		enum measure_id measure = request->values[i].measure;
		if (measure < N_MEASURES && measure_is_speed(measure)) {
			return measure;
		}
	}
	return N_MEASURES;
}

static void insert(struct group *g, const struct catalogue_run *run, enum measure_id measure)
{
	double value = run->measures[measure];
	size_t i = g->n++;
	for (; i > 0 && g->runs[i - 1]->start_utc_ns > run->start_utc_ns; i--) {
		g->runs[i] = g->runs[i - 1];
		g->seconds[i] = g->seconds[i - 1];
	}
	g->runs[i] = run;
	g->seconds[i] = measures[measure].better == BETTER_MORE ? 1 / value : value;
}

// Those that count, and have the measure, of the same key as `first`.
static void fill_group(struct group *g, const struct pivot_request *request, size_t first,
	enum measure_id measure, bool *seen)
{
	g->n = 0;
	for (size_t i = first; i < request->n_runs; i++) {
		const struct catalogue_run *run = request->runs[i];
		if (seen[i] || !is_same_key(request, first, i)) {
			continue;
		}
		seen[i] = true;
		bool counts = request->count_failed || outcome_is_success(run->outcome);
		if (counts && run->measures[measure] > 0) {
			insert(g, run, measure);
		}
	}
}

static void append_times(struct text *t, double one, const char *between, double other)
{
	char buffer[32];
	text_append_string(t, text_seconds(buffer, sizeof(buffer), one));
	text_append_string(t, between);
	text_append_string(t, text_seconds(buffer, sizeof(buffer), other));
}

static int compare_seconds(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static int warn_of_outliers(
	struct compare_warnings *w, const struct group *g, const char *title, bool *outlier)
{
	_cleanup_free_ double *sorted = calloc(g->n + 1, sizeof(*sorted));
	int found = statistics_outliers(g->seconds, g->n, outlier);
	struct text line = {0};
	if (found <= 0 || !sorted) {
		return found < 0 || !sorted ? -ENOMEM : 0;
	}
	memcpy(sorted, g->seconds, g->n * sizeof(*sorted));
	qsort(sorted, g->n, sizeof(*sorted), compare_seconds);
	text_format(&line, "outliers in the %s: ", title);
	for (size_t i = 0, shown = 0; i < g->n; i++) {
		if (outlier[i]) {
			text_append_string(&line, shown++ ? ", " : "");
			append_foreign(&line, g->runs[i]->name);
			text_append_string(&line, " ");
			append_times(
				&line, g->seconds[i], ", where the median is ", sorted[g->n / 2]);
		}
	}
	text_format(&line, " (of %zu runs)", g->n);
	return add_line(w, &line);
}

// Caches that it filled make the others faster.
static int warn_of_first(struct compare_warnings *w, const struct group *g, const char *title)
{
	double least = INFINITY, most = 0;
	struct text line = {0};
	for (size_t i = 1; i < g->n; i++) {
		least = fmin(least, g->seconds[i]);
		most = fmax(most, g->seconds[i]);
	}
	if (g->n < 3 || g->seconds[0] <= most + fmax(3 * (most - least), FIRST_MORE * most)) {
		return 0;
	}
	text_format(&line, "the first run was slower than the rest in the %s: ", title);
	append_foreign(&line, g->runs[0]->name);
	text_append_string(&line, " ");
	append_times(&line, g->seconds[0], ", the others at most ", most);
	text_append_string(&line,
		"; caches were cold, perhaps: leave it out, or start with one that "
		"does not count");
	return add_line(w, &line);
}

static int warn_of_repeats(struct compare_warnings *w, const struct pivot_request *request)
{
	enum measure_id measure = measure_of(request);
	size_t n = request->n_runs;
	_cleanup_free_ bool *seen = calloc(2 * n + 1, sizeof(*seen));
	_cleanup_free_ const struct catalogue_run **runs = calloc(n + 1, sizeof(*runs));
	_cleanup_free_ double *numbers = calloc(n + 1, sizeof(*numbers));
	struct group g = {runs, numbers, 0};
	int r = seen && runs && numbers ? 0 : -ENOMEM;
	for (size_t i = 0; i < n && r == 0 && measure < N_MEASURES; i++) {
		if (!seen[i]) {
			const char *title = measures[measure].better == BETTER_MORE
			                            ? "time of a sample"
			                            : measures[measure].title;
			fill_group(&g, request, i, measure, seen);
			r = warn_of_outliers(w, &g, title, seen + n);
			r = r == 0 ? warn_of_first(w, &g, title) : r;
		}
	}
	return r;
}

// --- other load

struct load {
	double *busy; // [n] CPUs that all programs of the machine used, on average; NAN: not known
	double *cpus; // [n] that there are
};

static int read_part(const struct pivot_request *request, const char *name, double *sum, bool first)
{
	struct catalogue_metric metric = {0};
	struct error ignored = {0};
	int r = catalogue_metric_read(request->runs, request->n_runs, name, &metric, &ignored);
	for (size_t i = 0; i < request->n_runs; i++) {
		double part = r < 0 ? NAN : metric.numbers[i];
		sum[i] = first ? part : sum[i] + (isfinite(part) ? part : 0);
	}
	catalogue_metric_done(&metric);
	return r == -ENOMEM ? r : 0;
}

// The first part must be known.
static int read_load(const struct pivot_request *request, struct load *load)
{
	static const char *const parts[] = {"system.cpu.time.user:mean",
		"system.cpu.time.nice:mean", "system.cpu.time.system:mean",
		"system.cpu.time.irq:mean", "system.cpu.time.softirq:mean",
		"system.cpu.time.steal:mean"};
	static const char *const idle[] = {
		"system.cpu.time.idle:mean", "system.cpu.time.iowait:mean"};
	int r = 0;
	for (size_t k = 0; k < ARRAY_LENGTH(parts) && r == 0; k++) {
		r = read_part(request, parts[k], load->busy, k == 0);
	}
	memcpy(load->cpus, load->busy, request->n_runs * sizeof(*load->cpus));
	for (size_t k = 0; k < ARRAY_LENGTH(idle) && r == 0; k++) {
		r = read_part(request, idle[k], load->cpus, false);
	}
	return r;
}

static int warn_of_load(struct compare_warnings *w, const struct pivot_request *request)
{
	enum { NAMED = 4 };
	_cleanup_free_ double *numbers = calloc(2 * request->n_runs + 1, sizeof(*numbers));
	struct load load = {numbers, numbers ? numbers + request->n_runs : NULL};
	struct text names = {0}, line = {0};
	size_t n = 0;
	double most = 0;
	int r = numbers ? read_load(request, &load) : -ENOMEM;
	for (size_t i = 0; i < request->n_runs && r == 0; i++) {
		const double *of_run = request->runs[i]->measures;
		double own = of_run[MEASURE_CPUS_USED],
		       recorder = of_run[MEASURE_RECORDER_CPU] / 100;
		double others = load.busy[i] - own - (isfinite(recorder) ? recorder : 0);
		if (others >= fmax(OTHERS_CPUS, OTHERS_SHARE * load.cpus[i])) {
			most = fmax(most, others);
			text_append_string(&names, n == 0 ? "" : n < NAMED ? ", " : "");
			if (n++ < NAMED) {
				append_foreign(&names, request->runs[i]->name);
			}
		}
	}
	if (r == 0 && n > 0) {
		text_format(&line, "other programs used up to %.1f CPUs during %zu of %zu runs: %s",
			most, n, request->n_runs, names.data ? names.data : "");
		text_append_string(&line, n > NAMED ? ", ..." : "");
		r = add_line(w, &line);
	}
	text_done(&names);
	return r;
}

int compare_warnings_find(const struct pivot_request *request, struct compare_warnings *ret)
{
	*ret = (struct compare_warnings){0};
	int r = warn_of_repeats(ret, request);
	if (r == 0 && request->n_runs <= RUNS_LOOKED_AT) {
		r = warn_of_load(ret, request);
	}
	return r;
}

void compare_warnings_done(struct compare_warnings *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->lines[i]);
	}
	free(w->lines);
	*w = (struct compare_warnings){0};
}
