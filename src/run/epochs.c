// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Epochs from spans. Their numbers come from the job; if they do not ascend, epochs are counted
// instead.

#include "run/epochs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/words.h"
#include "run/query.h"
#include "runfile/reader.h"

#define POINTS_MAX 64 // names of points kept per epoch

struct epoch_loader {
	struct epoch_list *list;
	int64_t end_ns;
	// a line that ends an epoch: what it printed belongs to the epoch before it
	bool lines_end_epochs;
	bool last_until_exit; // the last epoch was ended by the exit of its process
	size_t hint;
};

static int epoch_add(void *context, sqlite3_stmt *row)
{
	struct epoch_loader *loader = context;
	struct epoch_list *list = loader->list;
	void *items = list->items;
	int r = array_reserve(&items, &list->capacity, list->n + 1, sizeof(*list->items));
	list->items = items;
	if (r < 0) {
		return r;
	}
	struct epoch epoch = {
		.span = sqlite3_column_int64(row, 4),
		.start_ns = sqlite3_column_int64(row, 0),
		.end_ns = sqlite3_column_int64(row, 1),
		.open = sqlite3_column_type(row, 1) == SQLITE_NULL,
		.number = sqlite3_column_type(row, 2) == SQLITE_NULL ? -1
	                                                             : sqlite3_column_int64(row, 2),
		.samples = sqlite3_column_type(row, 3) == SQLITE_NULL
	                           ? -1
	                           : sqlite3_column_int64(row, 3),
	};
	loader->last_until_exit = sqlite3_column_int(row, 5) != 0;
	if (epoch.open) {
		// An epoch that has just begun can be newer than the last reading written.
		epoch.end_ns = loader->end_ns > epoch.start_ns ? loader->end_ns
		                                               : epoch.start_ns + 1;
	}
	if (epoch.end_ns > epoch.start_ns) {
		list->items[list->n++] = epoch;
	}
	return 0;
}

// Ends each epoch where the next begins, so that no moment belongs to two.
static void epochs_untangle(struct epoch_list *list)
{
	for (size_t i = 0; i + 1 < list->n; i++) {
		struct epoch *epoch = &list->items[i];
		if (epoch->end_ns > epoch[1].start_ns) {
			epoch->end_ns = epoch[1].start_ns;
			epoch->open = false;
		}
	}
}

// Whether the job did not end normally; then whatever lasted until the end was cut.
static bool was_cut(struct reader *r)
{
	return reader_state(r) == RUN_CUT_OFF ||
	       (reader_state(r) == RUN_FINISHED && reader_run_i64(r, "status", 0) != 0);
}

static bool numbers_rise(const struct epoch_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		if (list->items[i].number < 0 ||
			(i > 0 && list->items[i].number <= list->items[i - 1].number)) {
			return false;
		}
	}
	return true;
}

static struct epoch_point *point_slot(struct epoch *epoch, const char *name)
{
	for (size_t i = 0; i < epoch->n_points; i++) {
		if (strcmp(epoch->points[i].name, name) == 0) {
			return &epoch->points[i];
		}
	}
	if (epoch->n_points == POINTS_MAX) {
		return NULL;
	}
	struct epoch_point *grown = realloc(
		epoch->points, (epoch->n_points + 1) * sizeof(*epoch->points));
	if (!grown) {
		return NULL;
	}
	epoch->points = grown;
	grown[epoch->n_points] = (struct epoch_point){strdup(name), NAN};
	return grown[epoch->n_points].name ? &grown[epoch->n_points++] : NULL;
}

// A point belongs to its parent epoch (named by its line, or marked around it), else to the epoch
// that lines end or begin.
static ptrdiff_t epoch_of_point(const struct epoch_loader *loader, sqlite3_stmt *row)
{
	int64_t t_ns = sqlite3_column_int64(row, 0), parent = sqlite3_column_int64(row, 3);
	if (sqlite3_column_type(row, 4) != SQLITE_NULL) {
		ptrdiff_t at = epoch_at(loader->list, sqlite3_column_int64(row, 4), loader->hint);
		if (at >= 0 && loader->list->items[at].span == parent) {
			return at;
		}
	}
	return epoch_at(
		loader->list, loader->lines_end_epochs && t_ns > 0 ? t_ns - 1 : t_ns, loader->hint);
}

static int point_add(void *context, sqlite3_stmt *row)
{
	struct epoch_loader *loader = context;
	ptrdiff_t at = epoch_of_point(loader, row);
	const char *name = (const char *)sqlite3_column_text(row, 1);
	if (at < 0 || !name) {
		return 0;
	}
	loader->hint = (size_t)at;
	struct epoch_point *point = point_slot(&loader->list->items[at], name);
	if (point) {
		point->value = sqlite3_column_type(row, 2) == SQLITE_NULL
		                       ? NAN
		                       : sqlite3_column_double(row, 2);
	}
	return 0;
}

int epoch_list_load(struct reader *r, struct epoch_list *ret, struct error *e)
{
	// The key is set if the recorder saw that lines end epochs; otherwise lines begin them.
	const char *edges = reader_run(r, "epochs");
	struct epoch_loader loader = {
		.list = ret, .end_ns = reader_recorded_ns(r), .lines_end_epochs = edges != NULL};
	ret->first_with_start = edges != NULL;
	// Epochs and points are always rows, never in blocks.
	int result = query_each(r,
		"SELECT start_ns, end_ns, number, samples, id,"
		" attributes LIKE '%\"end\":%' FROM main.span WHERE kind = 'epoch'"
		" AND start_ns >= 0 ORDER BY start_ns, id",
		epoch_add, &loader, e);
	epochs_untangle(ret);
	if (ret->n > 0 && loader.last_until_exit && was_cut(r)) {
		ret->items[ret->n - 1].open = true;
	}
	for (size_t i = 0; i < ret->n && !numbers_rise(ret); i++) {
		ret->items[i].number = (int64_t)i + 1;
	}
	if (result == 0) {
		// SQLite stores NAN as NULL. A mark, which has a thread, without a value is not one
		// of these.
		result = query_each(r,
			"SELECT start_ns, name, value, parent, (SELECT e.start_ns FROM main.span "
			"AS e"
			" WHERE e.id = span.parent AND e.kind = 'epoch') FROM main.span"
			" WHERE kind = 'point' AND (value IS NOT NULL OR thread IS NULL)"
			" ORDER BY start_ns, id",
			point_add, &loader, e);
	}
	return result;
}

static const struct epoch_point *point_of(const struct epoch *epoch, const char *name)
{
	for (size_t i = 0; i < epoch->n_points; i++) {
		if (strcmp(epoch->points[i].name, name) == 0) {
			return &epoch->points[i];
		}
	}
	return NULL;
}

// Returns the first epoch in which the point is not finite, and in how many it is not; NULL: none.
static const struct epoch *find_not_finite(
	const struct epoch_list *list, const char *name, size_t *ret_n, size_t *ret_of)
{
	const struct epoch *first = NULL;
	*ret_n = *ret_of = 0;
	for (size_t i = 0; i < list->n; i++) {
		const struct epoch_point *point = point_of(&list->items[i], name);
		bool lost = point && !isfinite(point->value);
		first = first || !lost ? first : &list->items[i];
		*ret_n += lost;
		*ret_of += point != NULL;
	}
	return first;
}

void epoch_list_append_not_finite(struct text *t, const struct epoch_list *list)
{
	enum { NAMED = 2 };
	unsigned named = 0;
	for (size_t i = 0; i < list->n; i++) {
		const struct epoch *epoch = &list->items[i];
		for (size_t k = 0; k < epoch->n_points && named < NAMED; k++) {
			const struct epoch_point *point = &epoch->points[k];
			size_t n, of;
			// A name has its turn in the epoch in which it is first not finite.
			if (isfinite(point->value) ||
				find_not_finite(list, point->name, &n, &of) != epoch) {
				continue;
			}
			text_append_string(t, named++ > 0 ? "; " : "");
			words_append_elided(t, point->name, 16);
			text_format(
				t, " is %g in epoch %lld", point->value, (long long)epoch->number);
			if (n > 1) {
				text_format(t, ", the first of %zu of %zu", n, of);
			}
		}
	}
}

void epoch_list_done(struct epoch_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		for (size_t j = 0; j < list->items[i].n_points; j++) {
			free(list->items[i].points[j].name);
		}
		free(list->items[i].points);
	}
	free(list->items);
	*list = (struct epoch_list){0};
}

ptrdiff_t epoch_at(const struct epoch_list *list, int64_t t_ns, size_t hint)
{
	size_t low = 0, high = list->n;
	if (hint < list->n && list->items[hint].start_ns <= t_ns) {
		low = hint;
	}
	while (low < high) { // finds the first epoch that starts after t_ns
		size_t middle = low + (high - low) / 2;
		if (list->items[middle].start_ns <= t_ns) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low > 0 && t_ns < list->items[low - 1].end_ns ? (ptrdiff_t)low - 1 : -1;
}

static int double_compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

double epoch_length_s(const struct epoch *epoch)
{
	return (double)(epoch->end_ns - epoch->start_ns - epoch->stopped_ns) / 1e9;
}

double epoch_seconds(const struct epoch_list *list, size_t index)
{
	const struct epoch *epoch = &list->items[index];
	bool known = !epoch->open && (index > 0 || !list->first_with_start);
	return known ? epoch_length_s(epoch) : NAN;
}

double epoch_typical_seconds(const struct epoch_list *list)
{
	_cleanup_free_ double *lengths = calloc(list->n + 1, sizeof(*lengths));
	size_t n = 0;
	for (size_t i = list->first_with_start && list->n > 1; lengths && i < list->n; i++) {
		if (!list->items[i].open) {
			lengths[n++] = epoch_length_s(&list->items[i]);
		}
	}
	if (n == 0) {
		return NAN;
	}
	qsort(lengths, n, sizeof(*lengths), double_compare);
	return n % 2 ? lengths[n / 2] : (lengths[n / 2 - 1] + lengths[n / 2]) / 2;
}
