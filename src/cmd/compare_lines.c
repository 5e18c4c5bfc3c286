// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Names and order of runs in a figure. They are a dozen at most, their labels not many more.

#include "cmd/compare_lines.h"

#include <stdbool.h>
#include <string.h>

#include "cmd/compare_choice.h"
#include "render/pivot.h"

// Whether the runs differ in a label that somebody gave them.
static bool tells_apart(const struct catalogue_run *const *runs, size_t n, const char *label)
{
	if (choice_label_is_automatic(label)) {
		return false;
	}
	const char *first = catalogue_label(runs[0], label);
	for (size_t i = 1; i < n; i++) {
		const char *value = catalogue_label(runs[i], label);
		if ((first == NULL) != (value == NULL) || (value && strcmp(first, value) != 0)) {
			return true;
		}
	}
	return false;
}

static bool is_number(const char *value)
{
	return value && *value >= '0' && *value <= '9';
}

// < 0, 0 or > 0: by the labels of one kind. `all` tells in which labels the runs differ.
static int compare_by(const struct catalogue_run *a, const struct catalogue_run *b,
	const struct catalogue_run *const *all, size_t n, bool numbers)
{
	for (size_t i = 0; i < a->n_labels; i++) {
		const char *label = a->labels[i].name, *value = a->labels[i].value;
		if (is_number(value) != numbers || !tells_apart(all, n, label)) {
			continue;
		}
		const char *other = catalogue_label(b, label);
		int order = pivot_compare_labels(value, other ? other : "");
		if (order != 0) {
			return order;
		}
	}
	return 0;
}

static int compare_runs(const struct catalogue_run *a, const struct catalogue_run *b,
	const struct catalogue_run *const *all, size_t n)
{
	int order = compare_by(a, b, all, n, false);
	return order ? order : compare_by(a, b, all, n, true);
}

void compare_lines_sort(
	const struct catalogue_run **ret, const struct catalogue_run *const *runs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t j = i;
		for (; j > 0 && compare_runs(ret[j - 1], runs[i], runs, n) > 0; j--) {
			ret[j] = ret[j - 1];
		}
		ret[j] = runs[i];
	}
}

static void append_value(struct text *t, const struct run_label *label)
{
	text_append_string(t, t->length > 0 ? " " : "");
	for (const char *c = label->name; is_number(label->value) && *c; c++) {
		text_append(t, *c == '_' ? " " : c, 1);
	}
	text_format(t, "%s%s", is_number(label->value) ? " " : "", label->value);
}

static void append_differences(struct text *t, const struct catalogue_run *const *runs, size_t n,
	const struct catalogue_run *run)
{
	for (int numbers = 0; numbers < 2; numbers++) {
		for (size_t i = 0; i < run->n_labels; i++) {
			if (is_number(run->labels[i].value) == (numbers == 1) &&
				tells_apart(runs, n, run->labels[i].name)) {
				append_value(t, &run->labels[i]);
			}
		}
	}
}

void compare_lines_append_name(
	struct text *t, const struct catalogue_run *const *runs, size_t n, size_t which)
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
