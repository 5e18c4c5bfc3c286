// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Choosing rows, columns and values.

#include "cmd/compare_choice.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	COLUMNS_MAX = 6, // keys of a label that becomes the columns by itself
	LABELS_SEEN_MAX = 256,
	SIDE_BY_SIDE_MAX = 6, // runs
};

struct difference {
	const char *label;
	size_t n; // distinct values, none counted as one
	bool is_number;
};

struct differences {
	struct difference items[LABELS_SEEN_MAX];
	size_t n;
};

bool choice_label_is_automatic(const char *label)
{
	static const char *const prefixes[] = {"SLURM_", "OMPI_", "PMI_"};
	static const char *const names[] = {"sweep", "trial", "repeat", "LOCAL_RANK", "GROUP_RANK",
		"NODE_RANK", "PBS_JOBID", "LSB_JOBID"};
	for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++) {
		if (strncmp(label, prefixes[i], strlen(prefixes[i])) == 0) {
			return true;
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (strcmp(label, names[i]) == 0) {
			return true;
		}
	}
	return false;
}

static bool has(const struct differences *d, const char *label)
{
	for (size_t i = 0; i < d->n; i++) {
		if (strcmp(d->items[i].label, label) == 0) {
			return true;
		}
	}
	return false;
}

static int compare_values(const void *left, const void *right)
{
	return pivot_compare_labels(*(const char *const *)left, *(const char *const *)right);
}

static bool is_number(const char *value)
{
	char *end;
	return value && (strtod(value, &end), end != value && !*end);
}

// Counts the values of a label; notes it where there is more than one.
static int add_label(struct differences *d, const struct pivot_request *request, const char *label)
{
	_cleanup_free_ const char **values = calloc(request->n_runs + 1, sizeof(*values));
	if (!values) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < request->n_runs; i++) {
		values[i] = pivot_label(request, i, label);
	}
	qsort(values, request->n_runs, sizeof(*values), compare_values);
	struct difference found = {label, 1, is_number(values[0])};
	for (size_t i = 1; i < request->n_runs; i++) {
		found.n += pivot_compare_labels(values[i - 1], values[i]) != 0;
		found.is_number = found.is_number && (!values[i] || is_number(values[i]));
	}
	if (found.n > 1 && d->n < LABELS_SEEN_MAX) {
		d->items[d->n++] = found;
	}
	return 0;
}

// Every label of any run, once.
static int find_differences(struct differences *d, const struct pivot_request *request)
{
	struct differences seen = {.n = 0};
	int r = 0;
	for (size_t i = 0; i < request->n_runs && r == 0; i++) {
		const struct catalogue_run *run = request->runs[i];
		for (size_t k = 0; k < run->n_labels && r == 0; k++) {
			const char *label = run->labels[k].name;
			if (choice_label_is_automatic(label) || has(&seen, label) ||
				seen.n == LABELS_SEEN_MAX) {
				continue;
			}
			seen.items[seen.n++].label = label;
			r = add_label(d, request, label);
		}
	}
	if (r == 0 && !has(&seen, "machine")) {
		r = add_label(d, request, "machine");
	}
	return r == 0 && request->sources ? add_label(d, request, PIVOT_LABEL_SOURCE) : r;
}

// --- values

static bool is_known(const struct pivot_request *request, enum measure_id measure)
{
	for (size_t i = 0; i < request->n_runs; i++) {
		const struct catalogue_run *run = request->runs[i];
		if (isfinite(run->measures[measure]) &&
			(request->count_failed || outcome_is_success(run->outcome))) {
			return true;
		}
	}
	return false;
}

// A phase that no run has is no line.
static bool is_zero_share(const struct pivot_request *request, enum measure_id measure)
{
	bool zero = measure >= MEASURE_DATA_SHARE && measure <= MEASURE_OTHER_SHARE;
	for (size_t i = 0; i < request->n_runs && zero; i++) {
		zero = !(request->runs[i]->measures[measure] > 0);
	}
	return zero;
}

static void add_value(struct choice *c, enum measure_id measure)
{
	c->values[c->n_values++] = pivot_value_of(measure);
}

// The time that says most: of an epoch, else of the run.
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

static void choose_values(struct choice *c, const struct pivot_request *request)
{
	static const enum measure_id others[] = {MEASURE_SAMPLES_PER_SECOND,
		MEASURE_CPU_UTILIZATION, MEASURE_GPU_UTILIZATION, MEASURE_HOST_MEMORY_PEAK,
		MEASURE_DEVICE_MEMORY_PEAK, MEASURE_DATA_SHARE};
	add_value(c, first_time(request));
	for (size_t i = 0; c->n_columns == 0 && i < ARRAY_LENGTH(others); i++) {
		if (is_known(request, others[i])) {
			add_value(c, others[i]);
		}
	}
}

// Two runs beside each other: all there is, but what another one says too.
static void choose_all_values(struct choice *c, const struct pivot_request *request)
{
	add_value(c, MEASURE_OUTCOME);
	add_value(c, MEASURE_VERDICT);
	for (size_t i = 0; i < MEASURE_OUTCOME; i++) {
		if (i != MEASURE_CPUS_USED && is_known(request, (enum measure_id)i) &&
			!is_zero_share(request, (enum measure_id)i)) {
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

static bool is_used(const struct choice *c, const char *label)
{
	return is_in(c->rows, c->n_rows, label) || is_in(c->columns, c->n_columns, label);
}

// Where runs are from, else words before numbers, and few before many.
static const struct difference *best_column(const struct differences *d)
{
	const struct difference *best = NULL;
	for (size_t i = 0; i < d->n; i++) {
		const struct difference *item = &d->items[i];
		if (strcmp(item->label, PIVOT_LABEL_SOURCE) == 0) {
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

static void choose_rows(struct choice *c, const struct differences *d)
{
	for (int numbers = 0; numbers < 2; numbers++) {
		for (size_t i = 0; i < d->n && c->n_rows < CHOICE_LABELS_MAX; i++) {
			const struct difference *item = &d->items[i];
			if (item->is_number == numbers && !is_used(c, item->label)) {
				c->rows[c->n_rows++] = item->label;
			}
		}
	}
}

// Of few runs: their name, where it is another one in each.
static const char *label_of_each(const struct pivot_request *request)
{
	for (size_t i = 1; i < request->n_runs; i++) {
		for (size_t k = 0; k < i; k++) {
			if (pivot_compare_labels(pivot_label(request, i, PIVOT_LABEL_RUN),
				    pivot_label(request, k, PIVOT_LABEL_RUN)) == 0) {
				return PIVOT_LABEL_PATH;
			}
		}
	}
	return PIVOT_LABEL_RUN;
}

static void choose_labels(
	struct choice *c, const struct differences *d, const struct pivot_request *request)
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

struct sorting {
	const struct choice *choice;
	const struct pivot_request *request;
	const char *label;
	const struct differences *differences;
};

static int compare_cells(const struct sorting *s, size_t a, size_t b)
{
	const struct choice *c = s->choice;
	int order = 0;
	for (size_t i = 0; i < c->n_rows + c->n_columns && order == 0; i++) {
		const char *label = i < c->n_rows ? c->rows[i] : c->columns[i - c->n_rows];
		order = pivot_compare_labels(
			pivot_label(s->request, a, label), pivot_label(s->request, b, label));
	}
	return order;
}

static int compare_runs(const void *left, const void *right, void *context)
{
	return compare_cells(context, *(const size_t *)left, *(const size_t *)right);
}

// Whether runs of one cell have different values of a label.
static bool is_merged(const struct sorting *s, size_t *order)
{
	for (size_t i = 0; i < s->request->n_runs; i++) {
		order[i] = i;
	}
	qsort_r(order, s->request->n_runs, sizeof(*order), compare_runs, (struct sorting[]){*s});
	for (size_t i = 1; i < s->request->n_runs; i++) {
		if (compare_cells(s, order[i - 1], order[i]) == 0 &&
			pivot_compare_labels(pivot_label(s->request, order[i - 1], s->label),
				pivot_label(s->request, order[i], s->label)) != 0) {
			return true;
		}
	}
	return false;
}

static const char *merged_label(
	const struct choice *c, const struct differences *d, const struct pivot_request *request)
{
	_cleanup_free_ size_t *order = calloc(request->n_runs + 1, sizeof(*order));
	for (size_t i = 0; order && i < d->n; i++) {
		const struct sorting sorting = {
			.choice = c, .request = request, .label = d->items[i].label};
		if (!is_used(c, sorting.label) && is_merged(&sorting, order)) {
			return sorting.label;
		}
	}
	return NULL;
}

static bool are_of_one_configuration(const struct sorting *s, size_t a, size_t b)
{
	for (size_t i = 0; i < s->differences->n; i++) {
		const char *label = s->differences->items[i].label;
		if (pivot_compare_labels(pivot_label(s->request, a, label),
			    pivot_label(s->request, b, label)) != 0) {
			return false;
		}
	}
	return true;
}

// Whether a label's value follows from those that the choice's rows have. Values that no two
// configurations share tell anything, as where a search drew them at random: one label needs a
// value that is shared; several together, that most of their combinations are.
static bool is_told_by(const struct sorting *s, size_t *order)
{
	size_t n_runs = s->request->n_runs, n = 0, n_shared = 0;
	if (is_merged(s, order)) {
		return false;
	}
	for (size_t i = 0, end; i < n_runs; i = end) {
		bool shared = false;
		for (end = i; end < n_runs && compare_cells(s, order[i], order[end]) == 0; end++) {
			shared = shared || !are_of_one_configuration(s, order[i], order[end]);
		}
		n++;
		n_shared += shared;
	}
	return s->choice->n_rows == 1 ? n_shared > 0 : 2 * n_shared > n;
}

// Whether the label's value follows from that of another with fewer values (of a number also from
// words with as many), or from those of all such: the number of samples from the dataset. Then it
// would only make the table wider, and its cells empty. What changes together with as many values
// stays.
static bool is_told(const struct differences *d, size_t label, const struct pivot_request *request,
	size_t *order)
{
	const struct difference *item = &d->items[label];
	struct choice others = {.n_rows = 0};
	struct sorting sorting = {.request = request, .label = item->label, .differences = d};
	bool told = false;
	for (size_t i = 0; i < d->n && others.n_rows < CHOICE_LABELS_MAX && !told; i++) {
		const struct difference *other = &d->items[i];
		bool simpler = other->n < item->n ||
		               (other->n == item->n && item->is_number && !other->is_number);
		if (i != label && simpler) {
			struct choice one = {.rows = {other->label}, .n_rows = 1};
			others.rows[others.n_rows++] = other->label;
			sorting.choice = &one;
			told = is_told_by(&sorting, order);
		}
	}
	sorting.choice = &others;
	return strcmp(item->label, PIVOT_LABEL_SOURCE) != 0 &&
	       (told || (others.n_rows > 1 && is_told_by(&sorting, order)));
}

// Numbers first: words say more.
static void leave_out_told(
	struct choice *c, struct differences *d, const struct pivot_request *request)
{
	_cleanup_free_ size_t *order = calloc(request->n_runs + 1, sizeof(*order));
	for (int words = 0; order && words < 2; words++) {
		for (size_t i = d->n; i-- > 0;) {
			if (d->items[i].is_number == !words && c->n_told < CHOICE_LABELS_MAX &&
				!is_used(c, d->items[i].label) && is_told(d, i, request, order)) {
				c->told[c->n_told++] = d->items[i].label;
				memmove(&d->items[i], &d->items[i + 1],
					(--d->n - i) * sizeof(d->items[0]));
			}
		}
	}
}

// Everything but the command that may tell runs apart: what the recorder sets of the runs of one
// sweep stands in their commands, too.
static int compare_all_labels(const struct sorting *s, size_t a, size_t b)
{
	static const char *const of_sweep[] = {"trial", "repeat"};
	int order = compare_cells(s, a, b);
	for (size_t i = 0; i < s->differences->n && order == 0; i++) {
		const char *label = s->differences->items[i].label;
		order = pivot_compare_labels(
			pivot_label(s->request, a, label), pivot_label(s->request, b, label));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(of_sweep) && order == 0; i++) {
		order = pivot_compare_labels(catalogue_label(s->request->runs[a], of_sweep[i]),
			catalogue_label(s->request->runs[b], of_sweep[i]));
	}
	return order;
}

static int compare_labels_of_runs(const void *left, const void *right, void *context)
{
	return compare_all_labels(context, *(const size_t *)left, *(const size_t *)right);
}

// Whether a cell has runs of different commands that no label tells apart.
static bool merges_jobs(
	const struct choice *c, const struct differences *d, const struct pivot_request *request)
{
	_cleanup_free_ size_t *order = calloc(request->n_runs + 1, sizeof(*order));
	struct sorting s = {.choice = c, .request = request, .differences = d};
	for (size_t i = 0; order && i < request->n_runs; i++) {
		order[i] = i;
	}
	if (order) {
		qsort_r(order, request->n_runs, sizeof(*order), compare_labels_of_runs, &s);
	}
	for (size_t i = 1; order && i < request->n_runs; i++) {
		if (compare_all_labels(&s, order[i - 1], order[i]) == 0 &&
			strcmp(request->runs[order[i - 1]]->command,
				request->runs[order[i]]->command) != 0) {
			return true;
		}
	}
	return false;
}

int choice_complete(struct choice *choice, const struct pivot_request *request)
{
	struct differences *d = calloc(1, sizeof(*d));
	int r = d ? find_differences(d, request) : -ENOMEM;
	if (r == 0) {
		if (!choice->rows_given && d->n > 2) {
			leave_out_told(choice, d, request);
		}
		choose_labels(choice, d, request);
		if (!choice->side_by_side) {
			choice->merged = merged_label(choice, d, request);
			choice->merged_jobs = merges_jobs(choice, d, request);
		}
		struct pivot_request counted = *request;
		counted.count_failed = choice->count_failed || choice->side_by_side;
		if (!choice->values_given && choice->side_by_side) {
			choose_all_values(choice, &counted);
		} else if (!choice->values_given) {
			choose_values(choice, &counted);
		}
	}
	free(d);
	return r;
}

static bool is_of_baseline(const struct pivot_request *request, size_t run)
{
	for (size_t i = 0; i < request->n_baseline; i++) {
		const struct pivot_match *match = &request->baseline[i];
		if (pivot_compare_labels(pivot_label(request, run, match->label), match->value) !=
			0) {
			return false;
		}
	}
	return true;
}

// Whether runs of the baseline have a measure, and others have it too.
static bool is_on_both_sides(const struct pivot_request *request, enum measure_id measure)
{
	bool sides[2] = {false, false};
	for (size_t i = 0; i < request->n_runs; i++) {
		const struct catalogue_run *run = request->runs[i];
		if (isfinite(run->measures[measure]) &&
			(request->count_failed || outcome_is_success(run->outcome))) {
			sides[is_of_baseline(request, i)] = true;
		}
	}
	return sides[false] && sides[true];
}

void choice_suit_baseline(struct choice *choice, const struct pivot_request *request)
{
	if (choice->values_given || choice->side_by_side || request->n_baseline == 0) {
		return;
	}
	enum measure_id measure = MEASURE_DURATION;
	for (size_t i = ARRAY_LENGTH(times); i-- > 0;) {
		measure = is_on_both_sides(request, times[i]) ? times[i] : measure;
	}
	if (is_on_both_sides(request, measure)) {
		choice->values[0] = pivot_value_of(measure);
	}
}
