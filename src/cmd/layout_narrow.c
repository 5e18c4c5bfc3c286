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
#include "render/pivot.h"

// What makes runs different configurations.
static const char *const configuration[] = {"machine", "framework", "model", "dataset",
	"image_size", "samples", "epochs", "batch_size", "processes", "gpus", "memory", "disk_read",
	"cpus", "threads", "workers"};

struct placed {
	const struct catalogue_run *run;
	char *cell; // values of the labels that the layout shows
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

static void append_value(struct text *t, const struct catalogue_run *run, const char *label)
{
	text_format(t, "%s%c", value_of(run, label), '\n');
}

static char *cell_of(
	const struct layout *l, const struct layout_selection *s, const struct catalogue_run *run)
{
	struct text cell = {0};
	for (size_t i = 0; i < s->n_rows; i++) {
		append_value(&cell, run, s->rows[i]);
	}
	for (size_t i = 0; i < s->n_columns; i++) {
		append_value(&cell, run, s->columns[i]);
	}
	if (l->best) {
		append_value(&cell, run, l->best);
	}
	if (l->ratio.label) {
		append_value(&cell, run, l->ratio.label);
	}
	return text_steal(&cell);
}

static int compare_places(const void *left, const void *right)
{
	const struct placed *a = left, *b = right;
	int order = strcmp(a->cell, b->cell);
	return order ? order : pivot_compare_labels(a->value, b->value);
}

static int compare_values(const void *left, const void *right)
{
	const struct placed *a = left, *b = right;
	int order = pivot_compare_labels(a->value, b->value);
	return order ? order : strcmp(a->cell, b->cell);
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
			cells += to == from || strcmp(places[to].cell, places[to - 1].cell) != 0;
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

// Drops the runs with other values from the mixed cells that have the value. Returns how many stay.
static size_t keep_value(struct placed *places, size_t n, const char *value)
{
	size_t kept = 0;
	qsort(places, n, sizeof(*places), compare_places);
	for (size_t from = 0, to; from < n; from = to) {
		bool has = false;
		const char *cell = places[from].cell;
		for (to = from; to < n && strcmp(places[to].cell, cell) == 0; to++) {
			has = has || strcmp(places[to].value, value) == 0;
		}
		for (size_t i = from; i < to; i++) {
			if (places[i].mixed && has && strcmp(places[i].value, value) != 0) {
				free(places[i].cell);
			} else {
				places[kept++] = places[i];
			}
		}
	}
	return kept;
}

static size_t narrow_label(
	struct placed *places, size_t n, const char *label, struct layout_selection *s)
{
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

int layout_narrow(const struct layout *l, struct layout_selection *s)
{
	_cleanup_free_ struct placed *places = calloc(s->n + 1, sizeof(*places));
	size_t n = s->n;
	bool failed = !places;
	for (size_t i = 0; places && i < n; i++) {
		places[i] = (struct placed){.run = s->runs[i], .cell = cell_of(l, s, s->runs[i])};
		failed = failed || !places[i].cell;
	}
	for (size_t i = 0; !failed && i < ARRAY_LENGTH(configuration); i++) {
		if (!is_shown(l, s, configuration[i])) {
			n = narrow_label(places, n, configuration[i], s);
		}
	}
	for (size_t i = 0; places && i < n; i++) {
		s->runs[i] = places[i].run;
		free(places[i].cell);
	}
	s->n = n;
	return failed ? -ENOMEM : 0;
}
