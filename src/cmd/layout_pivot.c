// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// From runs, and what was published, to a pivot.

#include "cmd/layout_pivot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/published.h"

#define SOURCE_HERE "here"
#define SOURCE_PUBLISHED "published"

// What a published table calls a label.
struct published_label {
	const char *label;
	const char *column;
	const char *unit; // written behind
};

static const struct published_label published_labels[] = {
	{"machine", "machine", ""},
	{"framework", "framework", ""},
	{"dataset", "dataset", ""},
	{"model", "model", ""},
	{"batch_size", "batch_size", ""},
	{"workers", "workers", ""},
	{"memory", "dram_gb", "GB"},
};

// What was published, as runs ------------------------------------------------------------------

static bool is_shown(const struct layout *l, const struct published *table, size_t row)
{
	if (!l->published_only.label) {
		return true;
	}
	const char *field = published_field(table, row, l->published_only.label);
	return field && strcmp(field, l->published_only.value) == 0;
}

static int add_label(struct layout_pivot *p, struct run_label *label,
	const struct published_label *from, const char *field)
{
	_cleanup_text_ struct text name = {0}, value = {0};
	text_append_string(&name, from->label);
	text_format(&value, "%s%s", field, from->unit);
	label->name = p->texts[p->n_texts++] = text_steal(&name);
	label->value = p->texts[p->n_texts++] = text_steal(&value);
	return label->name && label->value ? 0 : -ENOMEM;
}

static int add_published(struct layout_pivot *p, const struct published *table, size_t row)
{
	struct catalogue_run *run = &p->published[p->n_published];
	run->labels = &p->labels[p->n_published * ARRAY_LENGTH(published_labels)];
	run->outcome = OUTCOME_SUCCESS;
	run->host = run->command = run->outcome_text = run->memory_kind = "";
	run->verdict = run->headline = "";
	run->path = run->name = p->texts[0];
	for (size_t i = 0; i < N_MEASURES; i++) {
		run->measures[i] = NAN;
		run->reasons[i] = "not published";
	}
	for (size_t i = 0; i < ARRAY_LENGTH(published_labels); i++) {
		const struct published_label *from = &published_labels[i];
		const char *field = published_field(table, row, from->column);
		if (field && add_label(p, &run->labels[run->n_labels++], from, field) < 0) {
			return -ENOMEM;
		}
	}
	for (size_t i = 0; i < LAYOUT_VALUES && p->layout->values[i].measure; i++) {
		const struct layout_value *value = &p->layout->values[i];
		bool same = measure_by_name(value->measure) == p->values[i].measure;
		if (value->published && same) {
			double number = published_number(table, row, value->published);
			run->measures[p->values[i].measure] = number * value->published_scale;
		}
	}
	p->runs[p->n_runs] = run;
	p->sources[p->n_runs++] = SOURCE_PUBLISHED;
	p->n_published++;
	return 0;
}

static int add_published_table(struct layout_pivot *p, const struct published *table)
{
	size_t labels = table->n_rows * ARRAY_LENGTH(published_labels);
	void *runs = reallocarray(p->runs, p->n_runs + table->n_rows + 1, sizeof(void *));
	p->runs = runs ? runs : p->runs;
	void *sources = reallocarray(p->sources, p->n_runs + table->n_rows + 1, sizeof(void *));
	p->sources = sources ? sources : p->sources;
	p->published = calloc(table->n_rows + 1, sizeof(*p->published));
	p->labels = calloc(labels + 1, sizeof(*p->labels));
	p->texts = calloc(2 * labels + 1, sizeof(void *));
	if (!runs || !sources || !p->published || !p->labels || !p->texts) {
		return -ENOMEM;
	}
	p->texts[p->n_texts++] = strdup(SOURCE_PUBLISHED);
	int r = p->texts[0] ? 0 : -ENOMEM;
	for (size_t row = 0; r == 0 && row < table->n_rows; row++) {
		r = is_shown(p->layout, table, row) ? add_published(p, table, row) : 0;
	}
	return r;
}

static int read_published(struct layout_pivot *p, struct layout_selection *s, struct error *e)
{
	const struct layout *l = p->layout;
	const char *source = documents[l->document].source;
	bool numbers = false;
	for (size_t i = 0; i < LAYOUT_VALUES && l->values[i].measure; i++) {
		numbers = numbers || (l->published && l->values[i].published);
	}
	if (!numbers) {
		text_format(&s->notes, "%s, %s: the document gives no values%s%s\n", source,
			l->item, l->said ? "; its text says: " : "", l->said ? l->said : "");
		return 0;
	}
	struct published table;
	int r = published_read(l->published, &table, e);
	if (r < 0) {
		return r;
	}
	r = add_published_table(p, &table);
	published_done(&table);
	text_format(&s->notes,
		SOURCE_PUBLISHED ": %s, %s; measured by its authors on their machines\n", source,
		l->item);
	return r < 0 ? error_errno(e, -r, "cannot read what was published") : 0;
}

// Values ------------------------------------------------------------------------------------------

static bool any_has(const struct layout_selection *s, enum measure_id measure, const char **why)
{
	for (size_t i = 0; i < s->n; i++) {
		if (isfinite(s->runs[i]->measures[measure])) {
			return true;
		}
		*why = s->runs[i]->reasons[measure] ? s->runs[i]->reasons[measure] : *why;
	}
	return false;
}

static void note_instead(struct layout_selection *s, const struct measure *wanted,
	const struct measure *got, const char *why)
{
	_cleanup_text_ struct text reason = {0};
	const char *remedy = strstr(why, "; ");
	text_append_printable(&reason, why, remedy ? (size_t)(remedy - why) : strlen(why));
	text_format(&s->notes, "no run has the %s%s%s%s; the %s instead\n", wanted->title,
		reason.length > 0 ? " (" : "", reason.data ? reason.data : "",
		reason.length > 0 ? ")" : "", got->title);
}

static size_t find_values(struct layout_pivot *p, struct layout_selection *s)
{
	size_t n = 0;
	for (; n < LAYOUT_VALUES && p->layout->values[n].measure; n++) {
		const struct layout_value *value = &p->layout->values[n];
		enum measure_id measure = measure_by_name(value->measure);
		const char *why = "", *other = "";
		if (!any_has(s, measure, &why) && value->instead &&
			any_has(s, measure_by_name(value->instead), &other)) {
			enum measure_id instead = measure_by_name(value->instead);
			note_instead(s, &measures[measure], &measures[instead], why);
			measure = instead;
		}
		p->values[n] = pivot_value_of(measure);
	}
	return n;
}

// Numbers that come of several runs --------------------------------------------------------------

static bool agree(
	const struct layout_pivot *p, size_t a, size_t b, const char *const *labels, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *x = pivot_label(&p->request, a, labels[i]);
		const char *y = pivot_label(&p->request, b, labels[i]);
		if ((x == NULL) != (y == NULL) || (x && strcmp(x, y) != 0)) {
			return false;
		}
	}
	return true;
}

// Whether two runs stand in one cell, `first` rows aside.
static bool share_cell(const struct layout_pivot *p, size_t a, size_t b, size_t first)
{
	const struct pivot_request *q = &p->request;
	return agree(p, a, b, q->rows + first, q->n_rows - first) &&
	       agree(p, a, b, q->columns, q->n_columns);
}

static bool has_label(
	const struct layout_pivot *p, size_t run, const char *label, const char *value)
{
	const char *found = pivot_label(&p->request, run, label);
	return found && strcmp(found, value) == 0;
}

static double number_of(const struct layout_pivot *p, size_t run)
{
	const struct catalogue_run *r = p->runs[run];
	return outcome_is_success(r->outcome) ? r->measures[p->values[0].measure] : NAN;
}

struct mean {
	double sum;
	size_t n;
};

static void mean_add(struct mean *mean, double value)
{
	mean->sum += isfinite(value) ? value : 0;
	mean->n += isfinite(value);
}

static double mean_of(const struct mean *mean)
{
	return mean->n > 0 ? mean->sum / (double)mean->n : NAN;
}

// To the mean of the runs of the same series with the least x that has a value.
static double by_first(const struct layout_pivot *p, size_t run)
{
	const char *x = p->request.rows[0], *least = NULL;
	struct mean base = {0, 0};
	for (size_t i = 0; i < p->n_runs; i++) {
		const char *at = pivot_label(&p->request, i, x);
		if (!at || !isfinite(number_of(p, i)) || !share_cell(p, run, i, 1)) {
			continue;
		}
		int order = least ? pivot_compare_labels(at, least) : -1;
		if (order < 0) {
			least = at;
			base = (struct mean){0, 0};
		}
		if (order <= 0) {
			mean_add(&base, number_of(p, i));
		}
	}
	return number_of(p, run) / mean_of(&base);
}

static double ratio(const struct layout_pivot *p, size_t run)
{
	const struct layout *l = p->layout;
	struct mean base = {0, 0};
	if (!has_label(p, run, l->ratio.label, l->ratio.to)) {
		return NAN;
	}
	for (size_t i = 0; i < p->n_runs; i++) {
		if (has_label(p, i, l->ratio.label, l->ratio.from) && share_cell(p, run, i, 0)) {
			mean_add(&base, number_of(p, i));
		}
	}
	return number_of(p, run) / mean_of(&base);
}

// Mean over the runs of the cell with the same value of the label `best` as this one.
static double mean_of_kind(const struct layout_pivot *p, size_t run)
{
	struct mean mean = {0, 0};
	for (size_t i = 0; i < p->n_runs; i++) {
		if (share_cell(p, run, i, 0) && agree(p, run, i, &p->layout->best, 1)) {
			mean_add(&mean, number_of(p, i));
		}
	}
	return mean_of(&mean);
}

// The label's value where no other of the cell has a smaller mean, of its first run only: it is one
// number, whose repeats would say nothing.
static double best(const struct layout_pivot *p, size_t run, const double *means)
{
	const char *value = pivot_label(&p->request, run, p->layout->best);
	for (size_t i = 0; i < p->n_runs; i++) {
		bool better = means[i] < means[run] || (i < run && means[i] == means[run]);
		if (better && share_cell(p, run, i, 0)) {
			return NAN;
		}
	}
	return value && isfinite(means[run]) ? strtod(value, NULL) : NAN;
}

static int find_best(struct layout_pivot *p)
{
	_cleanup_free_ double *means = calloc(p->n_runs + 1, sizeof(*means));
	if (!means) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->n_runs; i++) {
		means[i] = mean_of_kind(p, i);
	}
	for (size_t i = 0; i < p->n_runs; i++) {
		// what was published is the answer already
		bool published = strcmp(p->sources[i], SOURCE_PUBLISHED) == 0;
		p->numbers[i] = published ? p->runs[i]->measures[p->values[0].measure]
		                          : best(p, i, means);
	}
	return 0;
}

static int change_numbers(struct layout_pivot *p)
{
	const struct layout *l = p->layout;
	if (l->kind != LAYOUT_BEST && l->change == CHANGE_NONE) {
		return 0;
	}
	p->numbers = calloc(p->n_runs + 1, sizeof(*p->numbers));
	p->reasons = calloc(p->n_runs + 1, sizeof(void *));
	int r = p->numbers && p->reasons ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < p->n_runs; i++) {
		p->reasons[i] = "no run to hold it against";
	}
	if (r == 0 && l->kind == LAYOUT_BEST) {
		r = find_best(p);
	}
	for (size_t i = 0; r == 0 && l->kind != LAYOUT_BEST && i < p->n_runs; i++) {
		p->numbers[i] = l->change == CHANGE_RATIO ? ratio(p, i) : by_first(p, i);
	}
	p->values[0] = (struct pivot_value){
		.name = l->kind == LAYOUT_BEST      ? l->best
	                : l->change == CHANGE_RATIO ? "gain"
	                                            : "relative",
		.title = l->kind == LAYOUT_BEST ? l->title : "relative throughput",
		.unit = "",
		.kind = l->kind == LAYOUT_BEST ? MEASURE_KIND_COUNT : MEASURE_KIND_NUMBER,
		.better = l->kind == LAYOUT_BEST ? BETTER_NEITHER : BETTER_MORE,
		.measure = N_MEASURES,
		.numbers = p->numbers,
		.reasons = p->reasons,
	};
	return r;
}

// All together ------------------------------------------------------------------------------------

static int copy_runs(struct layout_pivot *p, const struct layout_selection *s)
{
	p->runs = calloc(s->n + 1, sizeof(void *));
	p->sources = calloc(s->n + 1, sizeof(void *));
	if (!p->runs || !p->sources) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->n; i++) {
		p->runs[i] = s->runs[i];
		p->sources[i] = SOURCE_HERE;
	}
	p->n_runs = s->n;
	return 0;
}

static int spread_gpus(struct layout_pivot *p, struct layout_selection *s)
{
	if (!p->layout->each_gpu) {
		return 0;
	}
	int r = layout_gpus_spread(p->values[0].measure, &p->runs, &p->n_runs, &p->gpus);
	void *sources = reallocarray(p->sources, p->n_runs + 1, sizeof(void *));
	p->sources = sources ? sources : p->sources;
	if (r < 0 || !sources) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->n_runs; i++) {
		p->sources[i] = SOURCE_HERE;
	}
	if (p->gpus.n > 0) {
		s->columns[0] = LAYOUT_LABEL_GPU;
	}
	return 0;
}

static void make_request(struct layout_pivot *p, const struct layout_selection *s, size_t n_values)
{
	size_t n_rows = 0;
	if (p->n_published > 0) {
		p->rows[n_rows++] = PIVOT_LABEL_SOURCE;
	}
	for (size_t i = 0; i < s->n_rows; i++) {
		p->rows[n_rows++] = s->rows[i];
	}
	memcpy(p->columns, s->columns, sizeof(p->columns));
	p->request = (struct pivot_request){.runs = p->runs,
		.n_runs = p->n_runs,
		.sources = p->n_published > 0 ? p->sources : NULL,
		.rows = p->rows,
		.n_rows = n_rows,
		.columns = p->columns,
		.n_columns = s->n_columns,
		.values = p->values,
		.n_values = n_values};
}

int layout_pivot(const struct layout *l, struct layout_selection *s, bool beside,
	struct layout_pivot *ret, struct error *e)
{
	*ret = (struct layout_pivot){.layout = l};
	int r = copy_runs(ret, s) < 0 ? error_errno(e, ENOMEM, "cannot lay out %s", l->name) : 0;
	size_t n_values = r == 0 ? find_values(ret, s) : 0;
	if (r == 0 && spread_gpus(ret, s) < 0) {
		r = error_errno(e, ENOMEM, "cannot lay out %s", l->name);
	}
	r = r == 0 && beside ? read_published(ret, s, e) : r;
	if (r == 0) {
		make_request(ret, s, n_values);
		r = change_numbers(ret) < 0 ? error_errno(e, ENOMEM, "cannot lay out %s", l->name)
		                            : 0;
	}
	r = r < 0 ? r : pivot_build(&ret->request, &ret->pivot, e);
	if (r < 0) {
		layout_pivot_done(ret);
	}
	return r;
}

void layout_pivot_done(struct layout_pivot *p)
{
	pivot_done(&p->pivot);
	layout_gpus_done(&p->gpus);
	for (size_t i = 0; i < p->n_texts; i++) {
		free(p->texts[i]);
	}
	free(p->texts);
	free(p->labels);
	free(p->published);
	free(p->numbers);
	free(p->reasons);
	free(p->runs);
	free(p->sources);
	*p = (struct layout_pivot){0};
}
