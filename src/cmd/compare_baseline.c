// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Baselines, of the option and of plans.

#include "cmd/compare_baseline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/reading.h"

static const char of_plan[] = "the plan's baseline";

void compare_baseline_add(
	struct compare_baseline *b, char *argument, const struct argp_state *state)
{
	b->given = true;
	char *rest = *argument ? argument : NULL; // '' is none
	for (char *item; rest && (item = strsep(&rest, ","));) {
		char *equals = strchr(item, '=');
		if (!equals || equals == item) {
			reading_option_error(
				state, "--baseline: expected LABEL=VALUE, found '%s'", item);
		}
		if (b->n == BASELINE_MAX) {
			reading_option_error(
				state, "--baseline: more than %d labels", BASELINE_MAX);
		}
		*equals = '\0';
		b->matches[b->n++] = (struct pivot_match){item, equals + 1};
	}
}

// --- plans

static bool pairs_have(const struct plan_pairs *pairs, const struct plan_pair *pair)
{
	for (size_t i = 0; i < pairs->n; i++) {
		if (strcmp(pairs->items[i].name, pair->name) == 0) {
			return pivot_compare_labels(pairs->items[i].value, pair->value) == 0;
		}
	}
	return false;
}

static bool same_pairs(const struct plan_pairs *a, const struct plan_pairs *b)
{
	for (size_t i = 0; i < a->n; i++) {
		if (!pairs_have(b, &a->items[i])) {
			return false;
		}
	}
	return a->n == b->n;
}

static void append_pairs(struct text *t, const struct plan_pairs *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		text_format(
			t, "%s%s=%s", i ? ", " : "", pairs->items[i].name, pairs->items[i].value);
	}
}

static void say_different(const char *directory, const struct plan_pairs *one, const char *other,
	const struct plan_pairs *another)
{
	_cleanup_text_ struct text line = {0};
	text_format(&line, "the plans have different baselines (%s: ", directory);
	append_pairs(&line, one);
	text_format(&line, "; %s: ", other);
	append_pairs(&line, another);
	text_append_string(&line, "), so none is taken: --baseline says one");
	command_note("%s", line.data ? line.data : "");
}

// A plan that is not there, is wrong, or has no baseline has no say.
static bool read_plan(const char *directory, struct plan *ret)
{
	_cleanup_text_ struct text path = {0};
	struct error wrong = {0};
	text_format(&path, "%s/plan.yaml", directory);
	if (!path.data || plan_open(path.data, ret, &wrong) < 0) {
		return false;
	}
	if (ret->baseline.n == 0) {
		plan_done(ret);
		return false;
	}
	return true;
}

struct sweeps {
	const char **seen; // directories
	size_t n;
	const char *first; // whose baseline it is
};

static bool is_new(struct sweeps *sweeps, const char *directory)
{
	for (size_t i = sweeps->n; i-- > 0;) {
		if (strcmp(sweeps->seen[i], directory) == 0) {
			return false;
		}
	}
	sweeps->seen[sweeps->n++] = directory;
	return true;
}

// False where two plans say different things.
static bool take_plan(struct compare_baseline *b, struct sweeps *sweeps, const char *directory)
{
	struct plan plan;
	if (!read_plan(directory, &plan)) {
		return true;
	}
	if (!b->has_plan) {
		b->plan = plan;
		b->has_plan = true;
		sweeps->first = directory;
		return true;
	}
	bool same = same_pairs(&b->plan.baseline, &plan.baseline);
	if (!same) {
		say_different(sweeps->first, &b->plan.baseline, directory, &plan.baseline);
	}
	plan_done(&plan);
	return same;
}

static bool find_plan(struct compare_baseline *b, const struct pivot_request *request)
{
	struct sweeps sweeps = {.seen = calloc(request->n_runs + 1, sizeof(*sweeps.seen))};
	bool agree = sweeps.seen != NULL;
	for (size_t i = 0; agree && i < request->n_runs; i++) {
		const char *directory = request->runs[i]->sweep_directory;
		if (directory && is_new(&sweeps, directory)) {
			agree = take_plan(b, &sweeps, directory);
		}
	}
	free(sweeps.seen);
	return agree && b->has_plan;
}

// --- what the table can tell of it

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

static bool all_have(const struct pivot_request *request, const struct plan_pair *pair)
{
	for (size_t i = 0; i < request->n_runs; i++) {
		const char *value = pivot_label(request, i, pair->name);
		if (pivot_compare_labels(value, pair->value) != 0) {
			return false;
		}
	}
	return true;
}

void compare_baseline_of_plans(struct compare_baseline *b, struct pivot_request *request)
{
	if (b->given || !find_plan(b, request)) {
		return;
	}
	for (size_t i = 0; i < b->plan.baseline.n && b->n < BASELINE_MAX; i++) {
		const struct plan_pair *pair = &b->plan.baseline.items[i];
		if (is_on_axis(request, pair->name) || !all_have(request, pair)) {
			b->matches[b->n++] = (struct pivot_match){pair->name, pair->value};
		}
	}
	request->baseline = b->matches;
	request->n_baseline = b->n;
	request->baseline_from = of_plan;
}

int compare_baseline_build(struct pivot_request *request, struct pivot *ret, struct error *e)
{
	int r = pivot_build(request, ret, e);
	if (r == -EINVAL && request->baseline_from) {
		command_note("the plan's %s: nothing is held against it", e->text);
		request->n_baseline = 0;
		request->baseline_from = NULL;
		*e = (struct error){0};
		r = pivot_build(request, ret, e);
	}
	return r;
}

void compare_baseline_done(struct compare_baseline *b)
{
	if (b->has_plan) {
		plan_done(&b->plan);
	}
	*b = (struct compare_baseline){0};
}
