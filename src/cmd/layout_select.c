// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Filters of a layout over runs.

#include "cmd/layout_select.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "cmd/layout_narrow.h"
#include "render/pivot.h"

static bool any_has(const struct layout_selection *s, const char *label)
{
	for (size_t i = 0; i < s->n; i++) {
		if (catalogue_label(s->runs[i], label)) {
			return true;
		}
	}
	return false;
}

static size_t count_with(const struct catalogue_run *const *runs, size_t n, const char *label)
{
	size_t with = 0;
	for (size_t i = 0; i < n; i++) {
		with += catalogue_label(runs[i], label) != NULL;
	}
	return with;
}

// A run without the label passes where no run has it: nobody said what they are.
static bool passes(
	const struct catalogue_run *run, const struct layout_filter *filter, bool labelled)
{
	const char *value = catalogue_label(run, filter->label);
	return value ? strcasecmp(value, filter->value) == 0 : !labelled;
}

static int compare_values(const void *a, const void *b)
{
	return pivot_compare_labels(*(const char *const *)a, *(const char *const *)b);
}

// Each value of the label once, in order: "32, 64". How many there are.
static size_t append_values(
	struct text *t, const struct catalogue_run *const *runs, size_t n, const char *label)
{
	_cleanup_free_ const char **values = calloc(n + 1, sizeof(void *));
	size_t there = 0, found = 0;
	for (size_t i = 0; values && i < n; i++) {
		values[there] = catalogue_label(runs[i], label);
		there += values[there] != NULL;
	}
	if (there > 0) {
		qsort(values, there, sizeof(void *), compare_values);
	}
	for (size_t i = 0; i < there; i++) {
		if (i == 0 || strcmp(values[i], values[i - 1]) != 0) {
			text_append_string(t, found++ > 0 ? ", " : "");
			text_append_printable(t, values[i], strlen(values[i]));
		}
	}
	return found;
}

static void append_filters(struct text *t, const struct layout *l)
{
	for (size_t i = 0; i < LAYOUT_LABELS && l->filters[i].label; i++) {
		text_format(
			t, "%s%s=%s", i > 0 ? ", " : "", l->filters[i].label, l->filters[i].value);
	}
}

// Says which filter no run passes, and what there is instead.
static int explain_none(
	const struct layout *l, const struct catalogue_run *const *runs, size_t n, struct error *e)
{
	_cleanup_text_ struct text wanted = {0}, there = {0};
	append_filters(&wanted, l);
	const struct layout_filter *guilty = NULL;
	for (size_t i = 0; !guilty && i < LAYOUT_LABELS && l->filters[i].label; i++) {
		bool any = false, labelled = count_with(runs, n, l->filters[i].label) > 0;
		for (size_t j = 0; j < n; j++) {
			any = any || passes(runs[j], &l->filters[i], labelled);
		}
		guilty = any ? NULL : &l->filters[i];
	}
	if (!guilty) {
		return error_set(e, ENOENT, "%s shows runs with %s: none of %zu has all of these",
			l->name, wanted.data ? wanted.data : "", n);
	}
	append_values(&there, runs, n, guilty->label);
	return error_set(e, ENOENT, "%s shows runs with %s: none of %zu has %s=%s (there: %s)",
		l->name, wanted.data ? wanted.data : "", n, guilty->label, guilty->value,
		there.data ? there.data : "");
}

static void note_missing(
	struct layout_selection *s, const char *label, size_t without, bool left_out)
{
	if (without == s->n) {
		text_format(&s->unlabelled, "%s%s", s->unlabelled.length > 0 ? ", " : "", label);
	} else {
		text_format(&s->notes, "%zu of %zu runs have no label %s%s\n", without, s->n, label,
			left_out ? ", and are left out" : "");
	}
}

// Keeps the runs that pass the filter, and says how many it cannot tell of.
static void filter_runs(struct layout_selection *s, const struct layout_filter *filter)
{
	size_t with = count_with(s->runs, s->n, filter->label), n = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (passes(s->runs[i], filter, with > 0)) {
			s->runs[n++] = s->runs[i];
		}
	}
	if (with < s->n) {
		note_missing(s, filter->label, s->n - with, with > 0);
	}
	s->n = n;
}

// Of a figure over a label, runs that have none of it have no place.
static void require_label(struct layout_selection *s, const char *label)
{
	size_t with = count_with(s->runs, s->n, label), n = 0;
	if (with == 0 || with == s->n) {
		return;
	}
	note_missing(s, label, s->n - with, true);
	for (size_t i = 0; i < s->n; i++) {
		if (catalogue_label(s->runs[i], label)) {
			s->runs[n++] = s->runs[i];
		}
	}
	s->n = n;
}

static size_t copy_labels(struct layout_selection *s, const char *const wanted[LAYOUT_LABELS],
	const char *instead, const char *ret[LAYOUT_LABELS])
{
	size_t n = 0;
	for (; n < LAYOUT_LABELS && wanted[n]; n++) {
		bool other = n == 0 && instead && !any_has(s, wanted[n]) && any_has(s, instead);
		ret[n] = other ? instead : wanted[n];
		size_t without = s->n - count_with(s->runs, s->n, ret[n]);
		if (without > 0) {
			note_missing(s, ret[n], without, false);
		}
	}
	return n;
}

static int compare_starts(const void *left, const void *right)
{
	const struct catalogue_run *a = *(const struct catalogue_run *const *)left;
	const struct catalogue_run *b = *(const struct catalogue_run *const *)right;
	int order = (a->start_utc_ns < b->start_utc_ns) - (a->start_utc_ns > b->start_utc_ns);
	return order ? order : strcmp(b->path, a->path);
}

int layout_select(const struct layout *l, const struct catalogue_run *const *runs, size_t n,
	struct layout_selection *ret, struct error *e)
{
	*ret = (struct layout_selection){.runs = calloc(n + 1, sizeof(void *))};
	if (!ret->runs) {
		return error_errno(e, ENOMEM, "cannot choose runs");
	}
	memcpy(ret->runs, runs, n * sizeof(void *));
	ret->n = n;
	for (size_t i = 0; i < LAYOUT_LABELS && l->filters[i].label; i++) {
		filter_runs(ret, &l->filters[i]);
	}
	if (ret->n == 0) {
		layout_selection_done(ret);
		return explain_none(l, runs, n, e);
	}
	if (layout_is_figure(l) && l->rows[0]) {
		bool other = l->row_instead && !any_has(ret, l->rows[0]);
		require_label(ret, other ? l->row_instead : l->rows[0]);
	}
	ret->n_rows = copy_labels(ret, l->rows, l->row_instead, ret->rows);
	ret->n_columns = copy_labels(ret, l->columns, NULL, ret->columns);
	if (ret->unlabelled.length > 0) {
		text_format(&ret->notes, "no run has a label %s (strain run --label NAME=VALUE)\n",
			ret->unlabelled.data);
	}
	if (layout_is_timeline(l)) {
		ret->columns[ret->n_columns++] = "machine";
	}
	if (layout_narrow(l, ret) < 0) {
		layout_selection_done(ret);
		return error_errno(e, ENOMEM, "cannot choose runs");
	}
	qsort(ret->runs, ret->n, sizeof(void *), compare_starts);
	return 0;
}

void layout_selection_done(struct layout_selection *s)
{
	free(s->runs);
	text_done(&s->shown);
	text_done(&s->notes);
	text_done(&s->unlabelled);
	*s = (struct layout_selection){0};
}
