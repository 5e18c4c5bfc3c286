// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Chooses rows, columns and values from the labels in which runs differ; lists differences of runs
// that are not measured; warns about repeats.

#include "study/comparison.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/command.h"
#include "base/text.h"
#include "base/words.h"
#include "runfile/database.h"
#include "runfile/labels.h"
#include "runfile/reader.h"
#include "study/catalogue.h"
#include "study/pivot.h"
#include "study/run_table.h"

// Fields ------------------------------------------------------------------------------------------

enum {
	COLUMNS_MAX = 6, // most values of a label that becomes the columns by default
	LABELS_SEEN_MAX = 100, // an expression of SQLite is at most 200 deep
	SIDE_BY_SIDE_MAX = 6, // runs
};

struct difference {
	const char *label;
	unsigned column; // of the table `wide`
	size_t n; // number of distinct values, counting "no value"
	bool is_number;
};

// The labels in which the runs differ, and a table `wide` (id, l0, l1, ...) with a column for each.
struct differences {
	struct difference items[LABELS_SEEN_MAX];
	size_t n;
	struct run_table table;
};

bool comparison_label_is_automatic(const char *label)
{
	static const char *const of_sweeps[] = {"sweep", "trial", "repeat"};
	for (size_t i = 0; i < ARRAY_LENGTH(of_sweeps); i++) {
		if (strcmp(label, of_sweeps[i]) == 0) {
			return true;
		}
	}
	return labels_is_of_launcher(label);
}

// The string in the run, which outlives the query.
static const char *lasting_name(const struct digest *run, const char *name)
{
	for (size_t i = 0; i < run->n_labels; i++) {
		if (strcmp(run->labels[i].name, name) == 0) {
			return run->labels[i].name;
		}
	}
	return strcmp(name, RUN_TABLE_SOURCE) == 0 ? RUN_TABLE_SOURCE : "machine";
}

static void make_wide(struct differences *d)
{
	_cleanup_text_ struct text sql = {0};
	text_append_string(&sql, "CREATE TABLE wide AS SELECT id, command");
	for (size_t i = 0; i < d->n; i++) {
		text_append_string(&sql, ", ");
		run_table_append_label(&sql, d->items[i].label);
		text_format(&sql, " AS l%u", d->items[i].column);
	}
	text_append_string(&sql, " FROM run");
	d->table.failed = d->table.failed || sql.failed;
	run_table_run(&d->table, sql.data);
}

// In the order in which runs have them. -ENOMEM.
static int find_differences(struct differences *d, const struct pivot_request *request)
{
	_cleanup_text_ struct text sql = {0};
	if (run_table_make(request->runs, request->sources, request->n_runs, &d->table) < 0) {
		return -ENOMEM;
	}
	text_format(&sql,
		"SELECT name, min(run), count(DISTINCT value) + (count(*) < %zu) AS n,"
		" min(is_number(value)) FROM label"
		" WHERE given OR name IN ('machine', '" RUN_TABLE_SOURCE "')"
		" GROUP BY name HAVING n > 1 ORDER BY min(rowid)",
		request->n_runs);
	_cleanup_statement_ sqlite3_stmt *query = run_table_query(&d->table, &sql);
	while (run_table_next(&d->table, query) && d->n < LABELS_SEEN_MAX) {
		const char *name = (const char *)sqlite3_column_text(query, 0);
		const struct digest *run = request->runs[sqlite3_column_int64(query, 1)];
		if (name && !comparison_label_is_automatic(name)) {
			d->items[d->n] = (struct difference){lasting_name(run, name),
				(unsigned)d->n, (size_t)sqlite3_column_int64(query, 2),
				sqlite3_column_int(query, 3)};
			d->n++;
		}
	}
	make_wide(d);
	return d->table.failed ? -ENOMEM : 0;
}

// --- values

static bool is_known(const struct pivot_request *request, enum measure_id measure)
{
	for (size_t i = 0; i < request->n_runs; i++) {
		const struct digest *run = request->runs[i];
		if (isfinite(run->measures[measure]) &&
			(request->count_failed || outcome_is_success(run->outcome))) {
			return true;
		}
	}
	return false;
}

// Whether the measure is the share of a phase that no run has: it gets no line.
static bool is_zero_share(const struct pivot_request *request, enum measure_id measure)
{
	bool zero = measure >= MEASURE_DATA_SHARE && measure <= MEASURE_OTHER_SHARE;
	for (size_t i = 0; i < request->n_runs && zero; i++) {
		zero = !(request->runs[i]->measures[measure] > 0);
	}
	return zero;
}

static void add_value(struct comparison_fields *c, enum measure_id measure)
{
	c->values[c->n_values++] = pivot_value_of(measure);
}

// Times in the order of preference.
static const enum measure_id times[] = {MEASURE_EPOCH, MEASURE_TRAINING, MEASURE_STEP};

static enum measure_id first_time(const struct pivot_request *request)
{
	for (size_t i = 0; i < ARRAY_LENGTH(times); i++) {
		if (is_known(request, times[i])) {
			return times[i];
		}
	}
	return MEASURE_DURATION;
}

// Whether all are probes of `strain advise`, which shortens epochs.
static bool are_probes(const struct pivot_request *request)
{
	for (size_t i = 0; i < request->n_runs; i++) {
		if (!request->runs[i]->advice_directory) {
			return false;
		}
	}
	return request->n_runs > 0;
}

// With a price list, the first known cost is a value, too.
static void choose_cost(struct comparison_fields *c, const struct pivot_request *request)
{
	static const enum measure_id costs[] = {
		MEASURE_COST_PER_EPOCH, MEASURE_COST_PER_MILLION_SAMPLES, MEASURE_COST};
	for (size_t i = 0; i < ARRAY_LENGTH(costs); i++) {
		if (is_known(request, costs[i])) {
			add_value(c, costs[i]);
			return;
		}
	}
}

static void choose_values(struct comparison_fields *c, const struct pivot_request *request)
{
	static const enum measure_id others[] = {MEASURE_SAMPLES_PER_SECOND,
		MEASURE_CPU_UTILIZATION, MEASURE_GPU_UTILIZATION, MEASURE_HOST_MEMORY_PEAK,
		MEASURE_DEVICE_MEMORY_PEAK, MEASURE_DATA_SHARE};
	if (are_probes(request)) {
		add_value(c, MEASURE_SAMPLES_PER_SECOND);
		add_value(c, MEASURE_HOST_MEMORY_PEAK);
		return;
	}
	add_value(c, first_time(request));
	choose_cost(c, request);
	for (size_t i = 0; c->n_columns == 0 && i < ARRAY_LENGTH(others); i++) {
		if (is_known(request, others[i])) {
			add_value(c, others[i]);
		}
	}
}

// Whether other measures have its figures: CPU utilization, or an amount that a line beside it
// multiplies by the duration.
static bool is_repeated(enum measure_id measure)
{
	return measure == MEASURE_CPUS_USED || measure == MEASURE_CPU_HOURS_ALLOCATED ||
	       measure == MEASURE_GB_HOURS_ALLOCATED || measure == MEASURE_IDLE_GB_HOURS ||
	       measure == MEASURE_GPU_HOURS_ALLOCATED;
}

// Whether it is about GPUs that no run had.
static bool is_zero_gpus(const struct pivot_request *request, enum measure_id measure)
{
	bool zero = measure == MEASURE_GPUS_ALLOCATED || measure == MEASURE_IDLE_GPU_HOURS;
	for (size_t i = 0; i < request->n_runs && zero; i++) {
		zero = !(request->runs[i]->measures[MEASURE_GPUS_ALLOCATED] > 0);
	}
	return zero;
}

// For runs side by side: every known measure, except those that repeat another one.
static void choose_all_values(struct comparison_fields *c, const struct pivot_request *request)
{
	add_value(c, MEASURE_OUTCOME);
	add_value(c, MEASURE_VERDICT);
	for (size_t i = 0; i < MEASURE_OUTCOME; i++) {
		if (!is_repeated((enum measure_id)i) && is_known(request, (enum measure_id)i) &&
			!is_zero_share(request, (enum measure_id)i) &&
			!is_zero_gpus(request, (enum measure_id)i)) {
			add_value(c, (enum measure_id)i);
		}
	}
}

// --- labels

static bool is_in(const char *const *labels, size_t n, const char *label)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(labels[i], label) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_used(const struct comparison_fields *c, const char *label)
{
	return is_in(c->rows, c->n_rows, label) || is_in(c->columns, c->n_columns, label);
}

// The label that becomes the columns: the source of the runs, else words before numbers, few values
// before many. NULL: a single label becomes the rows.
static const struct difference *best_column(const struct differences *d)
{
	const struct difference *best = NULL;
	for (size_t i = 0; i < d->n; i++) {
		const struct difference *item = &d->items[i];
		if (strcmp(item->label, RUN_TABLE_SOURCE) == 0) {
			return item;
		}
		if (item->n <= COLUMNS_MAX &&
			(!best || item->is_number < best->is_number ||
				(item->is_number == best->is_number && item->n < best->n))) {
			best = item;
		}
	}
	return d->n > 1 ? best : NULL;
}

static void choose_rows(struct comparison_fields *c, const struct differences *d)
{
	for (int numbers = 0; numbers < 2; numbers++) {
		for (size_t i = 0; i < d->n && c->n_rows < COMPARISON_LABELS_MAX; i++) {
			const struct difference *item = &d->items[i];
			if (item->is_number == numbers && !is_used(c, item->label)) {
				c->rows[c->n_rows++] = item->label;
			}
		}
	}
}

// The name of the run if all names differ, else its path.
static const char *label_of_each(const struct pivot_request *request)
{
	for (size_t i = 1; i < request->n_runs; i++) {
		for (size_t k = 0; k < i; k++) {
			if (run_table_compare(pivot_label(request, i, RUN_TABLE_RUN),
				    pivot_label(request, k, RUN_TABLE_RUN)) == 0) {
				return RUN_TABLE_PATH;
			}
		}
	}
	return RUN_TABLE_RUN;
}

static void choose_labels(struct comparison_fields *c, const struct differences *d,
	const struct pivot_request *request)
{
	bool sources = request->sources != NULL;
	bool none_given = !c->rows_given && !c->columns_given;
	bool from_files = !sources && request->n_runs <= 2;
	c->side_by_side = none_given && !c->of_labels && request->n_runs <= SIDE_BY_SIDE_MAX &&
	                  !sources && (from_files || d->n == 0);
	if (c->side_by_side) {
		c->columns[c->n_columns++] = label_of_each(request);
		return;
	}
	const struct difference *column = none_given ? best_column(d) : NULL;
	if (column) {
		c->columns[c->n_columns++] = column->label;
	}
	if (!c->rows_given) {
		choose_rows(c, d);
	}
}

// Appends the value of a label, which need not be one in which runs differ.
static void append_value(struct text *sql, const struct differences *d, const char *label)
{
	for (size_t i = 0; i < d->n; i++) {
		if (strcmp(d->items[i].label, label) == 0) {
			text_format(sql, "l%u", d->items[i].column);
			return;
		}
	}
	run_table_append_label(sql, label);
}

// Appends the clause that groups runs by the cells of the table.
static void append_cells(
	struct text *sql, const struct differences *d, const struct comparison_fields *c)
{
	text_append_string(sql, " GROUP BY NULL");
	for (size_t i = 0; i < c->n_rows + c->n_columns; i++) {
		text_append_string(sql, ", ");
		append_value(sql, d, i < c->n_rows ? c->rows[i] : c->columns[i - c->n_rows]);
	}
}

// The first label in which runs of one cell differ and which is not in the table; NULL: none.
static const char *merged_label(const struct comparison_fields *c, struct differences *d)
{
	for (size_t i = 0; i < d->n; i++) {
		_cleanup_text_ struct text sql = {0};
		if (is_used(c, d->items[i].label)) {
			continue;
		}
		text_append_string(&sql, "SELECT 1 FROM wide");
		append_cells(&sql, d, c);
		text_format(&sql,
			" HAVING count(DISTINCT l%u) + (count(l%u) < count(*)) > 1 LIMIT 1",
			d->items[i].column, d->items[i].column);
		if (run_table_number(&d->table, &sql)) {
			return d->items[i].label;
		}
	}
	return NULL;
}

// Whether the label's value follows from those of `labels`. Values that no two configurations share
// determine anything, as where a search drew them at random: one label needs a value that is
// shared; several together, that most of their combinations are.
static bool is_determined_by(struct differences *d, const struct difference *item,
	const struct difference *const *labels, size_t n)
{
	_cleanup_text_ struct text sql = {0};
	text_format(&sql,
		"SELECT max(differ) = 1 AND %s FROM (SELECT"
		" count(DISTINCT l%u) + (count(l%u) < count(*)) AS differ, count(DISTINCT ''",
		n == 1 ? "sum(configurations > 1) > 0" : "2 * sum(configurations > 1) > count(*)",
		item->column, item->column);
	for (size_t i = 0; i < d->n; i++) {
		text_format(&sql, " || quote(l%u)", d->items[i].column);
	}
	text_append_string(&sql, ") AS configurations FROM wide GROUP BY NULL");
	for (size_t i = 0; i < n; i++) {
		text_format(&sql, ", l%u", labels[i]->column);
	}
	text_append_string(&sql, ")");
	return run_table_number(&d->table, &sql) != 0;
}

// Whether the label's value follows from that of another with fewer values (of a number also from
// words with as many), or from those of all such: the number of samples from the dataset. Then it
// would only make the table wider, and its cells empty. What changes together with as many values
// stays.
static bool is_determined(struct differences *d, const struct difference *item)
{
	const struct difference *others[COMPARISON_LABELS_MAX];
	size_t n = 0;
	if (strcmp(item->label, RUN_TABLE_SOURCE) == 0) {
		return false;
	}
	for (size_t i = 0; i < d->n && n < COMPARISON_LABELS_MAX; i++) {
		const struct difference *other = &d->items[i];
		bool simpler = other->n < item->n ||
		               (other->n == item->n && item->is_number && !other->is_number);
		if (other != item && simpler) {
			others[n++] = other;
			if (is_determined_by(d, item, &other, 1)) {
				return true;
			}
		}
	}
	return n > 1 && is_determined_by(d, item, others, n);
}

// Leaves numbers out before words, which are easier to read.
static void leave_out_determined(struct comparison_fields *c, struct differences *d)
{
	for (int words = 0; words < 2; words++) {
		for (size_t i = d->n; i-- > 0;) {
			if (d->items[i].is_number == !words &&
				c->n_determined < COMPARISON_LABELS_MAX &&
				!is_used(c, d->items[i].label) && is_determined(d, &d->items[i])) {
				c->determined[c->n_determined++] = d->items[i].label;
				memmove(&d->items[i], &d->items[i + 1],
					(--d->n - i) * sizeof(d->items[0]));
			}
		}
	}
}

// Whether a cell has runs of different commands that no label tells apart. The commands of a sweep
// contain its labels and the number of the trial.
static bool merges_jobs(const struct comparison_fields *c, struct differences *d)
{
	_cleanup_text_ struct text sql = {0};
	text_append_string(&sql, "SELECT 1 FROM wide");
	append_cells(&sql, d, c);
	for (size_t i = 0; i < d->n; i++) {
		text_format(&sql, ", l%u", d->items[i].column);
	}
	text_append_string(&sql, ", ");
	run_table_append_label(&sql, "trial");
	text_append_string(&sql, ", ");
	run_table_append_label(&sql, "repeat");
	text_append_string(&sql, " HAVING count(DISTINCT command) > 1 LIMIT 1");
	return run_table_number(&d->table, &sql) != 0;
}

// Fills rows, columns and values that were not given. request->sources: NULL if all runs are from
// one place. -ENOMEM.
static int complete_fields(struct comparison_fields *fields, const struct pivot_request *request)
{
	struct differences *d = calloc(1, sizeof(*d));
	int r = d ? find_differences(d, request) : -ENOMEM;
	if (r == 0) {
		if (!fields->rows_given && d->n > 2) {
			leave_out_determined(fields, d);
		}
		choose_labels(fields, d, request);
		if (!fields->side_by_side) {
			fields->merged = merged_label(fields, d);
			fields->merged_jobs = merges_jobs(fields, d);
		}
		r = d->table.failed ? -ENOMEM : 0;
		struct pivot_request counted = *request;
		counted.count_failed = fields->count_failed || fields->side_by_side;
		if (!fields->values_given && fields->side_by_side) {
			choose_all_values(fields, &counted);
		} else if (!fields->values_given) {
			choose_values(fields, &counted);
		}
	}
	if (d) {
		run_table_done(&d->table);
	}
	free(d);
	return r;
}

static bool is_of_baseline(const struct pivot_request *request, size_t run)
{
	for (size_t i = 0; i < request->n_baseline; i++) {
		const struct pivot_match *match = &request->baseline[i];
		if (run_table_compare(pivot_label(request, run, match->label), match->value) != 0) {
			return false;
		}
	}
	return true;
}

// Whether some runs of the baseline and some others have a measure.
static bool is_on_both_sides(const struct pivot_request *request, enum measure_id measure)
{
	bool sides[2] = {false, false};
	for (size_t i = 0; i < request->n_runs; i++) {
		const struct digest *run = request->runs[i];
		if (isfinite(run->measures[measure]) &&
			(request->count_failed || outcome_is_success(run->outcome))) {
			sides[is_of_baseline(request, i)] = true;
		}
	}
	return sides[false] && sides[true];
}

// Replaces the first value, a time, by one that the baseline has, too. Changes nothing if values
// were given.
static void suit_baseline(struct comparison_fields *fields, const struct pivot_request *request)
{
	if (fields->values_given || fields->side_by_side || request->n_baseline == 0) {
		return;
	}
	enum measure_id measure = MEASURE_DURATION;
	for (size_t i = ARRAY_LENGTH(times); i-- > 0;) {
		measure = is_on_both_sides(request, times[i]) ? times[i] : measure;
	}
	if (is_on_both_sides(request, measure)) {
		fields->values[0] = pivot_value_of(measure);
	}
}

// Compare lines -----------------------------------------------------------------------------------
//
// Names and order of at most a dozen runs in a figure.

// Whether the runs differ in a label that a user gave them.
static bool tells_apart(const struct digest *const *runs, size_t n, const char *label)
{
	if (comparison_label_is_automatic(label)) {
		return false;
	}
	const char *first = digest_label(runs[0], label);
	for (size_t i = 1; i < n; i++) {
		const char *value = digest_label(runs[i], label);
		if ((first == NULL) != (value == NULL) || (value && strcmp(first, value) != 0)) {
			return true;
		}
	}
	return false;
}

static bool line_is_number(const char *value)
{
	return value && *value >= '0' && *value <= '9';
}

// Compares two runs by the labels, numbers or words, in which the runs of `all` differ.
static int compare_by(const struct digest *a, const struct digest *b,
	const struct digest *const *all, size_t n, bool numbers)
{
	for (size_t i = 0; i < a->n_labels; i++) {
		const char *label = a->labels[i].name, *value = a->labels[i].value;
		if (line_is_number(value) != numbers || !tells_apart(all, n, label)) {
			continue;
		}
		const char *other = digest_label(b, label);
		int order = run_table_compare(value, other ? other : "");
		if (order != 0) {
			return order;
		}
	}
	return 0;
}

static int compare_line_runs(
	const struct digest *a, const struct digest *b, const struct digest *const *all, size_t n)
{
	int order = compare_by(a, b, all, n, false);
	return order ? order : compare_by(a, b, all, n, true);
}

void comparison_sort_lines(const struct digest **ret, const struct digest *const *runs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t j = i;
		for (; j > 0 && compare_line_runs(ret[j - 1], runs[i], runs, n) > 0; j--) {
			ret[j] = ret[j - 1];
		}
		ret[j] = runs[i];
	}
}

static void append_line_value(struct text *t, const struct run_label *label)
{
	text_append_string(t, t->length > 0 ? " " : "");
	for (const char *c = label->name; line_is_number(label->value) && *c; c++) {
		text_append(t, *c == '_' ? " " : c, 1);
	}
	text_format(t, "%s%s", line_is_number(label->value) ? " " : "", label->value);
}

static void append_differences(
	struct text *t, const struct digest *const *runs, size_t n, const struct digest *run)
{
	for (int numbers = 0; numbers < 2; numbers++) {
		for (size_t i = 0; i < run->n_labels; i++) {
			if (line_is_number(run->labels[i].value) == (numbers == 1) &&
				tells_apart(runs, n, run->labels[i].name)) {
				append_line_value(t, &run->labels[i]);
			}
		}
	}
}

void comparison_append_line_name(
	struct text *t, const struct digest *const *runs, size_t n, size_t which)
{
	struct text own = {0};
	append_differences(&own, runs, n, runs[which]);
	bool alone = own.length > 0;
	for (size_t i = 0; i < n && alone; i++) {
		struct text other = {0};
		append_differences(&other, runs, n, runs[i]);
		alone = i == which || !other.data || strcmp(own.data, other.data) != 0;
		text_done(&other);
	}
	text_append_string(t, alone ? own.data : runs[which]->name);
	text_done(&own);
}

// Compare context ---------------------------------------------------------------------------------
//
// Differences of runs, from the keys of their files. Arguments that all commands share are left
// out.

enum { RUNS_READ = 64, ARGUMENTS_MAX = 128 };

enum { CONTEXT_VALUES_MAX = 48 };

struct compare_context {
	struct pivot_value values[CONTEXT_VALUES_MAX]; // words, in which runs differ
	size_t n_values;
	const char **words; // [CONTEXT_VALUES_MAX * n] the arrays of `values`
	char **owned; // [n_owned] strings of `words`
	size_t n_owned;
	char *unlike; // why the runs are of different jobs; NULL: they are of one
};

// A parsed command. An option and its value are one argument.
struct job {
	char *items[ARGUMENTS_MAX]; // [n] owned
	size_t n;
	char *program; // "python train.py", without the version of the interpreter
	char *interpreter; // "/usr/bin/python3"
};

static void job_done(struct job *job)
{
	for (size_t i = 0; i < job->n; i++) {
		free(job->items[i]);
	}
	free(job->program);
	free(job->interpreter);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

// "python3.11" is "python".
static size_t length_without_version(const char *name)
{
	size_t length = strlen(name);
	while (length > 1 && strchr("0123456789.", name[length - 1])) {
		length--;
	}
	return length;
}

// Whether the program runs the script that its first argument without `-` names.
static bool is_interpreter(const char *name, size_t length)
{
	static const char *const names[] = {"python", "bash", "sh", "dash", "perl", "Rscript",
		"node", "julia", "ruby", "torchrun", "ipython", "pypy"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0) {
			return true;
		}
	}
	return false;
}

static const char *argument(const json_t *command, size_t i)
{
	const char *text = json_string_value(json_array_get(command, i));
	return text ? text : "";
}

// The number of arguments, from `at` on, with which an interpreter names its script: they are not
// arguments of the job.
static size_t script_at(const json_t *command, size_t *at)
{
	size_t n = json_array_size(command), i = 1;
	while (i < n && argument(command, i)[0] == '-') {
		const char *option = argument(command, i);
		if ((strcmp(option, "-m") == 0 || strcmp(option, "-c") == 0) && i + 1 < n) {
			*at = i;
			return 2;
		}
		i++;
	}
	*at = i;
	return i < n ? 1 : 0;
}

static char *joined(const char *one, const char *other)
{
	struct text t = {0};
	text_append_string(&t, one);
	text_append_string(&t, other && *one ? " " : "");
	text_append_string(&t, other ? other : "");
	return text_steal(&t);
}

// An option with its value: the next word, unless that is an option.
static bool takes_next(const json_t *command, size_t i, size_t n)
{
	const char *option = argument(command, i);
	return option[0] == '-' && option[1] && !strchr(option, '=') && i + 1 < n &&
	       argument(command, i + 1)[0] != '-';
}

static int take_arguments(struct job *job, const json_t *command, size_t script, size_t n_script)
{
	size_t n = json_array_size(command);
	for (size_t i = 1; i < n && job->n < ARGUMENTS_MAX; i++) {
		if (i >= script && i < script + n_script) {
			continue;
		}
		bool both = takes_next(command, i, n) && i + 1 != script;
		char *item = joined(argument(command, i), both ? argument(command, i + 1) : NULL);
		if (!item) {
			return -ENOMEM;
		}
		job->items[job->n++] = item;
		i += both;
	}
	return 0;
}

// Removes wrappers: nice, env and its variables, timeout.
static void skip_runners(json_t *command)
{
	size_t n = json_array_size(command);
	char **words = calloc(n + 1, sizeof(*words));
	for (size_t i = 0; words && i < n; i++) {
		const char *word = argument(command, i);
		memcpy(&words[i], &word, sizeof(word)); // not written to
	}
	size_t skipped = words && n > 0 ? (size_t)(command_program(words) - words) : 0;
	free(words);
	while (skipped-- > 0) {
		json_array_remove(command, 0);
	}
}

static int job_parse(const char *text, struct job *ret)
{
	json_t *command = text ? json_loads(text, 0, NULL) : NULL;
	skip_runners(command);
	struct text program = {0};
	size_t at = 1, n_script = 0;
	const char *first = argument(command, 0), *name = base_name(first);
	size_t length = length_without_version(name);
	text_append(&program, name, length);
	if (json_array_size(command) > 0 && is_interpreter(name, length)) {
		n_script = script_at(command, &at);
		for (size_t i = at; i < at + n_script; i++) {
			text_append_string(&program, " ");
			text_append_string(&program, n_script == 1 ? base_name(argument(command, i))
								   : argument(command, i));
		}
	}
	ret->interpreter = strdup(first);
	int r = take_arguments(ret, command, at, n_script);
	ret->program = text_steal(&program);
	json_decref(command);
	return r == 0 && ret->program && ret->interpreter ? 0 : -ENOMEM;
}

static size_t count_of(const struct job *job, const char *item)
{
	size_t n = 0;
	for (size_t i = 0; i < job->n; i++) {
		n += strcmp(job->items[i], item) == 0;
	}
	return n;
}

// Whether all jobs have the argument the same number of times.
static bool is_common(const struct job *jobs, size_t n, const char *item)
{
	for (size_t i = 1; i < n; i++) {
		if (count_of(&jobs[i], item) != count_of(&jobs[0], item)) {
			return false;
		}
	}
	return true;
}

// --- rows

struct reading {
	struct compare_context *context;
	const struct digest *const *runs;
	size_t n; // in all
	size_t n_read;
};

// NULL: out of memory, and a word is missing.
static const char *keep(struct compare_context *c, char *text)
{
	char **grown = text ? realloc(c->owned, (c->n_owned + 1) * sizeof(*grown)) : NULL;
	if (!grown) {
		free(text);
		return NULL;
	}
	c->owned = grown;
	return grown[c->n_owned++] = text;
}

// The words of the next row; NULL: there is no room.
static const char **next_row(struct reading *r)
{
	struct compare_context *c = r->context;
	return c->n_values < CONTEXT_VALUES_MAX ? &c->words[c->n_values * r->n] : NULL;
}

static bool differ(const char **words, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		const char *a = words[0], *b = words[i];
		if ((a == NULL) != (b == NULL) || (a && strcmp(a, b) != 0)) {
			return true;
		}
	}
	return false;
}

// Keeps the row if runs differ in it.
static void add_row(struct reading *r, const char *name)
{
	struct compare_context *c = r->context;
	const char **words = next_row(r);
	if (differ(words, r->n_read)) {
		c->values[c->n_values++] = (struct pivot_value){.name = name,
			.title = name,
			.unit = "",
			.kind = MEASURE_KIND_WORDS,
			.measure = N_MEASURES,
			.words = words};
	} else {
		memset(words, 0, r->n * sizeof(*words));
	}
}

static bool has_row(const struct compare_context *c, const char *name)
{
	for (size_t i = 0; i < c->n_values; i++) {
		if (strcmp(c->values[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

static void add_labels(struct reading *r)
{
	for (size_t i = 0; i < r->n_read; i++) {
		for (size_t k = 0; k < r->runs[i]->n_labels; k++) {
			const char *label = r->runs[i]->labels[k].name;
			const char **words = next_row(r);
			if (!words || comparison_label_is_automatic(label) ||
				has_row(r->context, label)) {
				continue;
			}
			for (size_t j = 0; j < r->n_read; j++) {
				words[j] = digest_label(r->runs[j], label);
			}
			add_row(r, label);
		}
	}
}

static void add_jobs(struct reading *r, const struct job *jobs)
{
	const char **words = next_row(r);
	for (size_t i = 0; words && i < r->n_read; i++) {
		words[i] = keep(r->context, strdup(jobs[i].program));
	}
	if (words) {
		add_row(r, "command");
	}
	words = next_row(r);
	for (size_t i = 0; words && i < r->n_read; i++) {
		struct text changed = {0};
		for (size_t k = 0; k < jobs[i].n; k++) {
			if (!is_common(jobs, r->n_read, jobs[i].items[k])) {
				text_append_string(&changed, changed.length ? " " : "");
				text_append_string(&changed, jobs[i].items[k]);
			}
		}
		words[i] = keep(r->context, text_steal(&changed));
	}
	if (words) {
		add_row(r, "arguments");
	}
	words = next_row(r);
	for (size_t i = 0; words && i < r->n_read; i++) {
		words[i] = keep(r->context, strdup(jobs[i].interpreter));
	}
	if (words) {
		add_row(r, "program");
	}
}

static const struct key {
	const char *name; // of the row
	const char *key; // of table run
	char until; // the value ends before this character; 0: use all of it
} keys[] = {
	{"host", "hostname", 0},
	{"kernel", "kernel", 0},
	{"framework", "hooks", ':'},
	{"blas", "blas", 0},
	{"strain", "version", 0},
	{"directory", "directory", 0},
	{"limit_cpus", "limit_cpus", 0},
	{"limit_memory", "limit_memory", 0},
	{"limit_disk_read", "limit_disk_read", 0},
	{"limit_gpus", "limit_gpus", 0},
	{"omp_num_threads", "omp_num_threads", 0},
	{"loader_workers", "loader_workers", 0},
	{"loader_batch_size", "loader_batch_size", 0},
};

static void add_keys(struct reading *r, struct reader **readers)
{
	for (size_t k = 0; k < ARRAY_LENGTH(keys); k++) {
		const char **words = next_row(r);
		for (size_t i = 0; words && i < r->n_read; i++) {
			const char *value = readers[i] ? reader_run(readers[i], keys[k].key) : NULL;
			size_t length = value && keys[k].until
			                        ? strcspn(value, (char[]){keys[k].until, 0})
			                : value ? strlen(value)
			                        : 0;
			words[i] = value ? keep(r->context, strndup(value, length)) : NULL;
		}
		if (words) {
			add_row(r, keys[k].name);
		}
	}
}

// --- one job?

static char *say_unlike(const struct job *one, const struct job *other)
{
	struct text t = {0};
	text_format(&t, "'%.60s' and '%.60s' are different jobs", one->program, other->program);
	return text_steal(&t);
}

// Trials of one sweep are comparable whatever they run: the plan says so.
static bool in_one_sweep(const char *one, const char *other)
{
	const char *slash = strrchr(one, '/');
	size_t length = slash ? (size_t)(slash - one) : 0;
	bool together = slash && strncmp(one, other, length + 1) == 0 &&
	                !strchr(other + length + 1, '/');
	_cleanup_free_ char *folder = together ? strndup(one, length) : NULL;
	return folder && catalogue_is_sweep(folder);
}

static void tell_unlike(struct reading *r, const struct job *jobs, bool outcomes)
{
	struct compare_context *c = r->context;
	for (size_t i = 1; i < r->n_read && !c->unlike; i++) {
		if (strcmp(jobs[0].program, jobs[i].program) != 0 &&
			!in_one_sweep(r->runs[0]->path, r->runs[i]->path)) {
			c->unlike = say_unlike(&jobs[0], &jobs[i]);
		} else if (outcomes && r->runs[0]->outcome != r->runs[i]->outcome) {
			struct text t = {0};
			text_format(&t, "they ended differently (%s, %s)",
				outcome_word(r->runs[0]->outcome),
				outcome_word(r->runs[i]->outcome));
			c->unlike = text_steal(&t);
		}
	}
}

// Reads the files of the first 64 runs; what cannot be read is missing. outcomes: runs with
// different outcomes are of different jobs, too. 0, -ENOMEM.
static int compare_context_read(
	const struct digest *const *runs, size_t n, bool outcomes, struct compare_context *ret)
{
	struct reading r = {ret, runs, n, n < RUNS_READ ? n : RUNS_READ};
	_cleanup_free_ struct reader **readers = calloc(r.n_read + 1, sizeof(struct reader *));
	struct job *jobs = calloc(r.n_read + 1, sizeof(*jobs));
	*ret = (struct compare_context){0};
	ret->words = calloc((n + 1) * CONTEXT_VALUES_MAX, sizeof(*ret->words));
	int result = readers && jobs && ret->words ? 0 : -ENOMEM;
	for (size_t i = 0; i < r.n_read && result == 0; i++) {
		struct error ignored = {0};
		if (reader_open(runs[i]->path, &readers[i], &ignored) < 0) {
			readers[i] = NULL;
		}
		result = job_parse(readers[i] ? reader_run(readers[i], "command") : NULL, &jobs[i]);
	}
	if (result == 0) {
		tell_unlike(&r, jobs, outcomes);
		add_jobs(&r, jobs);
		add_labels(&r);
		add_keys(&r, readers);
	}
	for (size_t i = 0; jobs && i < r.n_read; i++) {
		job_done(&jobs[i]);
		if (readers) {
			reader_free(readers[i]);
		}
	}
	free(jobs);
	return result;
}

static void compare_context_done(struct compare_context *c)
{
	for (size_t i = 0; i < c->n_owned; i++) {
		free(c->owned[i]);
	}
	free(c->owned);
	free(c->words);
	free(c->unlike);
	*c = (struct compare_context){0};
}

// Compare warnings --------------------------------------------------------------------------------
//
// Outliers, first runs, other load.

#define OTHERS_CPUS 0.25 // CPUs that other programs may use without a warning
#define OTHERS_SHARE 0.05 // the same, as a share of all CPUs
#define FIRST_MORE \
	0.1 // slower than the slowest of the others by this share, and by three times their spread

struct compare_warnings {
	char **lines; // [n] printable
	size_t n;
};

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
	const struct digest **runs; // [n] the oldest first
	double *seconds; // [n] a time, or the inverse of a rate
	size_t n;
};

static bool is_same_key(const struct pivot_request *request, size_t a, size_t b)
{
	bool same = !request->apart;
	for (size_t i = 0; i < request->n_rows + request->n_columns && same; i++) {
		const char *label = i < request->n_rows ? request->rows[i]
		                                        : request->columns[i - request->n_rows];
		same = run_table_compare(
			       pivot_label(request, a, label), pivot_label(request, b, label)) == 0;
	}
	return same;
}

// The first value that measures speed; N_MEASURES: none does.
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

static void insert(struct group *g, const struct digest *run, enum measure_id measure)
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

// The runs with the same labels as `first` that count and have the measure.
static void fill_group(struct group *g, const struct pivot_request *request, size_t first,
	enum measure_id measure, bool *seen)
{
	g->n = 0;
	for (size_t i = first; i < request->n_runs; i++) {
		const struct digest *run = request->runs[i];
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
			append_times(&line, g->seconds[i], "; the median is ", sorted[g->n / 2]);
		}
	}
	text_format(&line, " (of %zu runs)", g->n);
	return add_line(w, &line);
}

// The first run may have filled caches for the others.
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
	text_format(&line, "the first run was slower than the others in the %s: ", title);
	append_foreign(&line, g->runs[0]->name);
	text_append_string(&line, " ");
	append_times(&line, g->seconds[0], ", the others at most ", most);
	text_append_string(&line,
		"; possibly because of cold caches: leave it out, or start with a run that does "
		"not count");
	return add_line(w, &line);
}

static int warn_of_repeats(struct compare_warnings *w, const struct pivot_request *request)
{
	enum measure_id measure = measure_of(request);
	size_t n = request->n_runs;
	_cleanup_free_ bool *seen = calloc(2 * n + 1, sizeof(*seen));
	_cleanup_free_ const struct digest **runs = calloc(n + 1, sizeof(struct digest *));
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

static int warn_of_load(struct compare_warnings *w, const struct pivot_request *request)
{
	enum { NAMED = 4 };
	struct text names = {0}, line = {0};
	size_t n = 0;
	double most = 0;
	int r = 0;
	for (size_t i = 0; i < request->n_runs; i++) {
		const struct digest *run = request->runs[i];
		const double *of_run = run->measures;
		double own = of_run[MEASURE_CPUS_USED],
		       recorder = of_run[MEASURE_RECORDER_CPU] / 100;
		double others = run->host_cpus_used - own - (isfinite(recorder) ? recorder : 0);
		if (others >= fmax(OTHERS_CPUS, OTHERS_SHARE * run->host_cpus)) {
			most = fmax(most, others);
			text_append_string(&names, n == 0 ? "" : n < NAMED ? ", " : "");
			if (n++ < NAMED) {
				append_foreign(&names, request->runs[i]->name);
			}
		}
	}
	if (n > 0) {
		text_format(&line, "other programs used up to %.1f CPUs during %zu of %zu runs: %s",
			most, n, request->n_runs, names.data ? names.data : "");
		text_append_string(&line, n > NAMED ? ", ..." : "");
		r = add_line(w, &line);
	}
	text_done(&names);
	return r;
}

// --- units

// Whether a value of the table is a rate or a price of samples.
static bool shows_samples(const struct pivot_request *request)
{
	for (size_t i = 0; i < request->n_values; i++) {
		size_t measure = request->values[i].measure;
		if (measure == MEASURE_SAMPLES_PER_SECOND || measure == MEASURE_SAMPLES_PER_COST ||
			measure == MEASURE_COST_PER_MILLION_SAMPLES) {
			return true;
		}
	}
	return false;
}

static bool is_first_of_unit(const struct pivot_request *request, size_t run)
{
	for (size_t i = 0; i < run; i++) {
		if (strcmp(request->runs[i]->unit, request->runs[run]->unit) == 0) {
			return false;
		}
	}
	return true;
}

// Names what samples are, if a job says it: rates of different units are not comparable.
static int warn_of_units(struct compare_warnings *w, const struct pivot_request *request)
{
	enum { NAMED = 6 };
	struct text line = {0};
	size_t n = 0;
	bool said = false;
	for (size_t i = 0; i < request->n_runs; i++) {
		const char *unit = request->runs[i]->unit;
		if (!is_first_of_unit(request, i) || n++ >= NAMED) {
			continue;
		}
		size_t runs = 0;
		for (size_t j = i; j < request->n_runs; j++) {
			runs += strcmp(request->runs[j]->unit, unit) == 0;
		}
		said = said || *unit;
		text_append_string(&line, n == 1 ? "samples are " : ", ");
		text_append_string(&line, *unit ? unit : "what the job calls a sample");
		text_format(&line, " (%zu of %zu runs)", runs, request->n_runs);
	}
	text_append_string(&line, n > NAMED ? ", ..." : "");
	int r = said && shows_samples(request) ? add_line(w, &line) : 0;
	text_done(&line);
	return r;
}

// Runs with the same rows and columns of the request are repeats. 0, -ENOMEM.
static int compare_warnings_find(const struct pivot_request *request, struct compare_warnings *ret)
{
	*ret = (struct compare_warnings){0};
	int r = warn_of_repeats(ret, request);
	r = r < 0 ? r : warn_of_load(ret, request);
	return r < 0 ? r : warn_of_units(ret, request);
}

// --- the comparison

static const char *unknown_of(const struct comparison *c, const char *const *labels, size_t n)
{
	const struct pivot_request request = {
		.runs = c->runs, .n_runs = c->n_runs, .sources = c->sources};
	for (size_t i = 0; i < n; i++) {
		bool known = false;
		for (size_t k = 0; k < c->n_runs && !known; k++) {
			known = pivot_label(&request, k, labels[i]) != NULL;
		}
		if (!known) {
			return labels[i];
		}
	}
	return NULL;
}

const char *comparison_unknown_label(const struct comparison *c, bool *ret_columns)
{
	const char *unknown = unknown_of(c, c->fields.rows, c->fields.n_rows);
	*ret_columns = !unknown;
	return unknown ? unknown : unknown_of(c, c->fields.columns, c->fields.n_columns);
}

static enum measure_kind kind_of_unit(const char *unit)
{
	return strcmp(unit, "s") == 0    ? MEASURE_KIND_SECONDS
	       : strcmp(unit, "By") == 0 ? MEASURE_KIND_BYTES
	       : strcmp(unit, "W") == 0  ? MEASURE_KIND_WATTS
	       : strcmp(unit, "J") == 0  ? MEASURE_KIND_JOULES
	                                 : MEASURE_KIND_NUMBER;
}

// Reads values that are not measures from the run files.
static int read_metrics(struct comparison *c, struct error *e)
{
	int r = 0;
	for (size_t i = 0; i < c->fields.n_values && r == 0; i++) {
		struct pivot_value *value = &c->fields.values[i];
		struct catalogue_metric *metric = &c->metrics[i];
		if (value->measure < N_MEASURES) {
			continue;
		}
		r = catalogue_metric_read(c->runs, c->n_runs, value->name, metric, e);
		value->title = value->name;
		value->unit = metric->unit;
		value->kind = kind_of_unit(metric->unit);
		value->numbers = metric->numbers;
		value->reasons = metric->reasons;
	}
	return r < 0 ? error_prefix(e, "--value") : 0;
}

int comparison_choose(struct comparison *c, struct error *e)
{
	struct comparison_fields *fields = &c->fields;
	if (read_metrics(c, e) < 0) {
		return -e->code;
	}
	c->request = (struct pivot_request){.runs = c->runs,
		.n_runs = c->n_runs,
		.sources = c->several_sources ? c->sources : NULL,
		.baseline = c->baseline,
		.n_baseline = c->n_baseline};
	fields->of_labels = c->figure;
	int r = complete_fields(fields, &c->request);
	for (size_t i = 0; i < fields->n_values; i++) {
		enum measure_id measure = fields->values[i].measure;
		if (measure < N_MEASURES) {
			fields->values[i] = pivot_value_for(measure, c->runs, c->n_runs);
		}
	}
	bool by_source = fields->n_columns == 1 &&
	                 strcmp(fields->columns[0], RUN_TABLE_SOURCE) == 0;
	c->request.sources = c->sources;
	c->request.rows = fields->rows;
	c->request.n_rows = fields->n_rows;
	c->request.columns = fields->columns;
	c->request.n_columns = fields->n_columns;
	c->request.values = fields->values;
	c->request.n_values = fields->n_values;
	c->request.apart = fields->side_by_side;
	c->request.count_failed = fields->count_failed || fields->side_by_side;
	c->request.first_is_baseline = !c->baseline_given &&
	                               ((fields->side_by_side && c->n_runs > 1) || by_source);
	c->request.keep_order = fields->side_by_side || by_source;
	return r < 0 ? error_errno(e, -r, "cannot compare") : 0;
}

bool comparison_takes_plan(const struct comparison *c)
{
	return !c->baseline_given && !c->request.first_is_baseline && !c->figure;
}

static bool is_on_axis(const struct pivot_request *request, const char *label)
{
	for (size_t i = 0; i < request->n_rows + request->n_columns; i++) {
		const char *one = i < request->n_rows ? request->rows[i]
		                                      : request->columns[i - request->n_rows];
		if (strcmp(one, label) == 0) {
			return true;
		}
	}
	return false;
}

static bool all_have(const struct pivot_request *request, const struct pivot_match *match)
{
	for (size_t i = 0; i < request->n_runs; i++) {
		if (run_table_compare(pivot_label(request, i, match->label), match->value) != 0) {
			return false;
		}
	}
	return true;
}

void comparison_take_plan(struct comparison *c, const struct pivot_match *matches, size_t n)
{
	struct pivot_request *request = &c->request;
	request->baseline = c->planned;
	request->n_baseline = 0;
	for (size_t i = 0; i < n && request->n_baseline < COMPARISON_BASELINE_MAX; i++) {
		if (is_on_axis(request, matches[i].label) || !all_have(request, &matches[i])) {
			c->planned[request->n_baseline++] = matches[i];
		}
	}
	request->baseline_from = "the plan's baseline";
}

// Adds the differences of runs or directories as first rows. Runs of different jobs are not ranked
// unless a baseline is given.
static int put_context(struct comparison *c)
{
	struct pivot_request *request = &c->request;
	c->context = calloc(1, sizeof(*c->context));
	int r = c->context ? compare_context_read(request->runs, request->n_runs,
				     c->fields.side_by_side, c->context)
	                   : -ENOMEM;
	if (r < 0) {
		return r;
	}
	if (c->context->unlike && request->first_is_baseline) {
		request->unranked = c->context->unlike;
		request->first_is_baseline = false;
	}
	size_t n = c->fields.values_given ? 0 : c->context->n_values;
	c->values = calloc(n + request->n_values + 1, sizeof(*c->values));
	if (!c->values) {
		return -ENOMEM;
	}
	memcpy(c->values, c->context->values, n * sizeof(*c->values));
	memcpy(c->values + n, request->values, request->n_values * sizeof(*c->values));
	request->values = c->values;
	request->n_values += n;
	return 0;
}

static int put_beside(struct comparison *c)
{
	struct compare_warnings warnings = {0};
	int r = c->request.keep_order && c->request.n_rows == 0 ? put_context(c) : 0;
	r = r < 0 ? r : compare_warnings_find(&c->request, &warnings);
	c->warnings = warnings.lines;
	c->n_warnings = warnings.n;
	c->request.warnings = (const char *const *)c->warnings;
	c->request.n_warnings = c->n_warnings;
	return r;
}

int comparison_build(struct comparison *c, struct error *e)
{
	struct pivot_request *request = &c->request;
	if (!request->first_is_baseline && !c->figure) {
		suit_baseline(&c->fields, request);
	}
	int r = c->figure ? 0 : put_beside(c);
	if (r < 0) {
		return error_errno(e, -r, "cannot compare");
	}
	r = pivot_build(request, &c->pivot, e);
	if (r == -EINVAL && request->baseline_from) { // no run has the plan's
		_cleanup_text_ struct text note = {0};
		text_format(&note, "the plan's %s: no baseline is used", e->text);
		c->note = text_steal(&note);
		request->n_baseline = 0;
		request->baseline_from = NULL;
		*e = (struct error){0};
		r = pivot_build(request, &c->pivot, e);
	}
	c->built = r == 0;
	return r;
}

void comparison_done(struct comparison *c)
{
	if (c->built) {
		pivot_done(&c->pivot);
	}
	if (c->context) {
		compare_context_done(c->context);
	}
	free(c->context);
	free(c->values);
	free(c->note);
	for (size_t i = 0; i < c->n_warnings; i++) {
		free(c->warnings[i]);
	}
	free(c->warnings);
	for (size_t i = 0; i < N_MEASURES; i++) {
		catalogue_metric_done(&c->metrics[i]);
	}
}
