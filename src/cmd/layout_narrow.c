// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One configuration for each cell.

#include "cmd/layout_narrow.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/compare_choice.h"
#include "render/pivot.h"

// What makes runs different configurations, in the order in which they are chosen; after these
// every other label that somebody gave.
static const char *const configuration[] = {"machine", "framework", "model", "dataset",
	"image_size", "samples", "epochs", "batch_size", "processes", "gpus", "memory", "disk_read",
	"cpus", "threads", "workers"};

struct placed {
	const struct catalogue_run *run;
	char *series; // values of the labels that the layout shows, but of those that it holds
	              // against each other
	char *whole; // and of these
	const char *cell; // of the two the one whose runs may not differ in the label at hand
	const char *line; // and the one that is cleared of other values where a cell has several
	const char *value; // of the label at hand; "" for none
	bool mixed; // another run of the cell has another value
};

static const char *value_of(const struct catalogue_run *run, const char *label)
{
	const char *value = catalogue_label(run, label);
	return value ? value : "";
}

static bool stands_in(const char *label, const char *const *labels, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(labels[i], label) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_shown(const struct layout *l, const struct layout_selection *s, const char *label)
{
	return stands_in(label, s->rows, s->n_rows) || stands_in(label, s->columns, s->n_columns) ||
	       (l->best && strcmp(l->best, label) == 0) ||
	       (l->ratio.label && strcmp(l->ratio.label, label) == 0);
}

// Whether the layout makes a number of cells that differ in the label alone: these are of one
// configuration too.
static bool is_held_against(
	const struct layout *l, const struct layout_selection *s, const char *label)
{
	return (l->best && strcmp(l->best, label) == 0) ||
	       (l->ratio.label && strcmp(l->ratio.label, label) == 0) ||
	       (layout_is_figure(l) && s->n_rows > 0 && strcmp(s->rows[0], label) == 0);
}

// Whether cells of a series may not differ at all: its numbers are made of several of them. Else
// they may where that is all there is: the number of samples that goes with a batch size.
static bool is_one_number(const struct layout *l)
{
	return l->best || l->change != CHANGE_NONE;
}

// Whether the label counts what the series is drawn over, by its other name: threads and cpus.
static bool goes_along(const struct layout *l, const char *label)
{
	return layout_is_figure(l) && l->row_instead &&
	       (strcmp(l->row_instead, label) == 0 || strcmp(l->rows[0], label) == 0);
}

static bool place_run(struct placed *place, const struct layout *l,
	const struct layout_selection *s, const struct catalogue_run *run)
{
	const char *labels[2 * LAYOUT_LABELS + 2];
	size_t n = 0;
	for (size_t i = 0; i < s->n_rows; i++) {
		labels[n++] = s->rows[i];
	}
	for (size_t i = 0; i < s->n_columns; i++) {
		labels[n++] = s->columns[i];
	}
	labels[n++] = l->best ? l->best : "";
	labels[n++] = l->ratio.label ? l->ratio.label : "";
	_cleanup_text_ struct text series = {0}, whole = {0};
	for (size_t i = 0; i < n; i++) {
		const char *value = value_of(run, labels[i]);
		text_format(&whole, "%s%c", value, '\n');
		if (!is_held_against(l, s, labels[i])) {
			text_format(&series, "%s%c", value, '\n');
		}
	}
	*place = (struct placed){
		.run = run, .series = text_steal(&series), .whole = text_steal(&whole)};
	return place->series && place->whole;
}

static int compare_places(const void *left, const void *right)
{
	const struct placed *a = left, *b = right;
	int order = strcmp(a->cell, b->cell);
	return order ? order : pivot_compare_labels(a->value, b->value);
}

static int compare_lines(const void *left, const void *right)
{
	const struct placed *a = left, *b = right;
	return strcmp(a->line, b->line);
}

static int compare_values(const void *left, const void *right)
{
	const struct placed *a = left, *b = right;
	int order = pivot_compare_labels(a->value, b->value);
	return order ? order : strcmp(a->whole, b->whole);
}

// Whether there is a cell whose runs differ in the label.
static bool find_mixed(struct placed *places, size_t n, const char *label)
{
	bool found = false;
	for (size_t i = 0; i < n; i++) {
		places[i].value = value_of(places[i].run, label);
	}
	qsort(places, n, sizeof(*places), compare_places);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && strcmp(places[to].cell, places[from].cell) == 0;) {
			to++;
		}
		bool mixed = strcmp(places[from].value, places[to - 1].value) != 0;
		for (size_t i = from; i < to; i++) {
			places[i].mixed = mixed;
		}
		found = found || mixed;
	}
	return found;
}

// Of the values in mixed cells the one that most cells have, so that these can be held against each
// other, or most runs; all of them into `all`.
static const char *most_frequent(struct placed *places, size_t n, struct text *all)
{
	const char *best = "";
	size_t most = 0, runs = 0;
	qsort(places, n, sizeof(*places), compare_values);
	for (size_t from = 0, to; from < n; from = to) {
		const char *value = places[from].value;
		bool mixed = false;
		size_t cells = 0;
		for (to = from; to < n && strcmp(places[to].value, value) == 0; to++) {
			cells += to == from || strcmp(places[to].whole, places[to - 1].whole) != 0;
			mixed = mixed || places[to].mixed;
		}
		if (mixed) {
			text_append_string(all, all->length > 0 ? ", " : "");
			text_append_printable(
				all, *value ? value : "none", *value ? strlen(value) : 4);
		}
		if (mixed && (cells > most || (cells == most && to - from > runs))) {
			most = cells;
			runs = to - from;
			best = value;
		}
	}
	return best;
}

static void place_done(struct placed *place)
{
	free(place->series);
	free(place->whole);
}

// Drops the runs with other values from the lines that have the value. Returns how many stay.
static size_t keep_value(struct placed *places, size_t n, const char *value)
{
	size_t kept = 0;
	qsort(places, n, sizeof(*places), compare_lines);
	for (size_t from = 0, to; from < n; from = to) {
		bool has = false, mixed = false;
		const char *line = places[from].line;
		for (to = from; to < n && strcmp(places[to].line, line) == 0; to++) {
			has = has || strcmp(places[to].value, value) == 0;
			mixed = mixed || places[to].mixed;
		}
		for (size_t i = from; i < to; i++) {
			if (mixed && has && strcmp(places[i].value, value) != 0) {
				place_done(&places[i]);
			} else {
				places[kept++] = places[i];
			}
		}
	}
	return kept;
}

static size_t narrow_label(struct placed *places, size_t n, const struct layout *l,
	const char *label, struct layout_selection *s)
{
	for (size_t i = 0; i < n; i++) {
		places[i].line = goes_along(l, label) ? places[i].whole : places[i].series;
		places[i].cell = is_one_number(l) ? places[i].line : places[i].whole;
	}
	// a mixed cell without the first value needs another
	while (find_mixed(places, n, label)) {
		_cleanup_text_ struct text all = {0}, shown = {0};
		const char *value = most_frequent(places, n, &all);
		text_append_printable(&shown, value, strlen(value));
		text_format(&s->notes,
			"%s (%s): runs with %s are shown; --where %s=... shows others\n", label,
			all.data ? all.data : "", shown.length > 0 ? shown.data : "none", label);
		n = keep_value(places, n, value);
	}
	return n;
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

// Labels of any run that are not on the list, each once, in order; the caller's. NULL: no memory.
static const char **list_others(const struct layout_selection *s, size_t *ret_n)
{
	size_t room = 1, n = 0, kept = 0;
	for (size_t i = 0; i < s->n; i++) {
		room += s->runs[i]->n_labels;
	}
	const char **names = calloc(room, sizeof(*names));
	for (size_t i = 0; names && i < s->n; i++) {
		for (size_t k = 0; k < s->runs[i]->n_labels; k++) {
			const char *name = s->runs[i]->labels[k].name;
			if (!choice_label_is_automatic(name) &&
				!stands_in(name, configuration, ARRAY_LENGTH(configuration))) {
				names[n++] = name;
			}
		}
	}
	if (n > 0) {
		qsort(names, n, sizeof(*names), compare_names);
	}
	for (size_t i = 0; i < n; i++) {
		if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0) {
			names[kept++] = names[i];
		}
	}
	*ret_n = kept;
	return names;
}

static size_t narrow_labels(struct placed *places, size_t n, const struct layout *l,
	const char *const *labels, size_t n_labels, struct layout_selection *s)
{
	for (size_t i = 0; i < n_labels; i++) {
		if (!is_shown(l, s, labels[i])) {
			n = narrow_label(places, n, l, labels[i], s);
		}
	}
	return n;
}

// Of what is left, each value of a label where a line has several: nobody but who made the runs
// knows whether it goes with what the line is drawn over.
static void note_differences(struct placed *places, size_t n, const struct layout *l,
	const char *const *labels, size_t n_labels, struct layout_selection *s)
{
	for (size_t label = 0; label < n_labels; label++) {
		if (is_shown(l, s, labels[label]) || goes_along(l, labels[label])) {
			continue;
		}
		_cleanup_text_ struct text all = {0};
		for (size_t i = 0; i < n; i++) {
			places[i].cell = places[i].series;
		}
		if (find_mixed(places, n, labels[label])) {
			most_frequent(places, n, &all);
			text_format(&s->notes,
				"%s differs along a line (%s): --where %s=... shows one\n",
				labels[label], all.data ? all.data : "", labels[label]);
		}
	}
}

int layout_narrow(const struct layout *l, struct layout_selection *s)
{
	size_t n = s->n, n_others = 0;
	_cleanup_free_ struct placed *places = calloc(n + 1, sizeof(*places));
	_cleanup_free_ const char **others = list_others(s, &n_others);
	bool failed = !places || !others;
	for (size_t i = 0; places && i < n; i++) {
		failed = !place_run(&places[i], l, s, s->runs[i]) || failed;
	}
	if (!failed) {
		n = narrow_labels(places, n, l, configuration, ARRAY_LENGTH(configuration), s);
		n = narrow_labels(places, n, l, others, n_others, s);
	}
	if (!failed && layout_is_figure(l)) {
		note_differences(places, n, l, configuration, ARRAY_LENGTH(configuration), s);
		note_differences(places, n, l, others, n_others, s);
	}
	for (size_t i = 0; places && i < n; i++) {
		s->runs[i] = places[i].run;
		place_done(&places[i]);
	}
	s->n = n;
	return failed ? -ENOMEM : 0;
}
