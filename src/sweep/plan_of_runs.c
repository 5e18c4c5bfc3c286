// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads the plans beside the runs of sweeps.

#include "sweep/plan_of_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "study/digest.h"
#include "study/run_table.h"
#include "sweep/trials.h"

#define MOST_PLAN ((size_t)1 << 20)

// --- the baseline

static bool pairs_have(const struct plan_pairs *pairs, const struct plan_pair *pair)
{
	for (size_t i = 0; i < pairs->n; i++) {
		if (strcmp(pairs->items[i].name, pair->name) == 0) {
			return run_table_compare(pairs->items[i].value, pair->value) == 0;
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

static void append_different(struct text *t, const char *directory, const struct plan_pairs *one,
	const char *other, const struct plan_pairs *another)
{
	text_format(t, "the plans have different baselines (%s: ", directory);
	append_pairs(t, one);
	text_format(t, "; %s: ", other);
	append_pairs(t, another);
	text_append_string(t, "), so none is used: select one with --baseline");
}

// False: there is no readable plan with a baseline.
static bool read_baseline(const char *directory, struct plan *ret)
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

struct folders {
	const char **seen; // [n]
	size_t n;
	const char *first; // the one whose plan was taken first
};

static bool is_new(struct folders *folders, const char *folder)
{
	for (size_t i = folders->n; i-- > 0;) {
		if (strcmp(folders->seen[i], folder) == 0) {
			return false;
		}
	}
	folders->seen[folders->n++] = folder;
	return true;
}

// False: the plans have different baselines.
static bool take_plan(struct plan_baseline *b, struct folders *folders, const char *folder,
	struct text *different)
{
	struct plan plan;
	if (!read_baseline(folder, &plan)) {
		return true;
	}
	if (!b->read) {
		b->plan = plan;
		b->read = true;
		folders->first = folder;
		return true;
	}
	bool same = same_pairs(&b->plan.baseline, &plan.baseline);
	if (!same) {
		append_different(
			different, folders->first, &b->plan.baseline, folder, &plan.baseline);
	}
	plan_done(&plan);
	return same;
}

bool plan_baseline_find(const struct digest *const *runs, size_t n, struct plan_baseline *ret,
	struct text *different)
{
	struct folders folders = {.seen = calloc(n + 1, sizeof(*folders.seen))};
	bool agree = folders.seen != NULL;
	*ret = (struct plan_baseline){0};
	for (size_t i = 0; agree && i < n; i++) {
		const char *folder = runs[i]->sweep_directory;
		if (folder && is_new(&folders, folder)) {
			agree = take_plan(ret, &folders, folder, different);
		}
	}
	free(folders.seen);
	for (size_t i = 0; ret->read && i < ret->plan.baseline.n && i < PLAN_MAX_FACTORS; i++) {
		const struct plan_pair *pair = &ret->plan.baseline.items[i];
		ret->matches[ret->n++] = (struct pivot_match){pair->name, pair->value};
	}
	return agree && ret->read;
}

void plan_baseline_done(struct plan_baseline *b)
{
	if (b->read) {
		plan_done(&b->plan);
	}
	*b = (struct plan_baseline){0};
}

// --- facts

// The text of the plan of a single sweep; NULL: none.
static char *read_text(const char *directory)
{
	_cleanup_text_ struct text path = {0};
	text_format(&path, "%s/plan.yaml", directory);
	_cleanup_fclose_ FILE *file = path.failed ? NULL : fopen(path.data, "re");
	struct text plan = {0};
	char part[4096];
	size_t n = 1;
	while (file && n > 0 && plan.length < MOST_PLAN) {
		n = fread(part, 1, sizeof(part), file);
		text_append(&plan, part, n);
	}
	if (!file || memchr(plan.data ? plan.data : "", '\0', plan.length)) {
		text_done(&plan);
		return NULL;
	}
	return text_steal(&plan);
}

// Placeholders, ${t}, need no quotes: they are not a shell's.
static char *command_of(const struct plan *plan)
{
	struct text command = {0};
	for (size_t i = 0; i < plan->n_command; i++) {
		const char *word = plan->command[i];
		text_append_string(&command, i ? " " : "");
		if (*word && !strpbrk(word, " \t\n'\"\\*?<>|&;()[]~#`!")) {
			text_append_string(&command, word);
		} else {
			text_append_word(&command, word);
		}
	}
	return text_steal(&command);
}

static size_t count_trials(const struct plan *plan)
{
	struct trials trials;
	struct error wrong = {0};
	if (trials_make(plan, &trials, &wrong) < 0) {
		return 0;
	}
	size_t n = trials.n;
	trials_done(&trials);
	return n;
}

void plan_facts_done(struct plan_facts *facts)
{
	free(facts->text);
	free(facts->command);
	if (facts->read) {
		plan_done(&facts->plan);
	}
}

void plan_facts_read(const char *directory, struct plan_facts *ret)
{
	struct error wrong = {0};
	*ret = (struct plan_facts){.text = read_text(directory)};
	if (!ret->text ||
		plan_read("plan.yaml", ret->text, strlen(ret->text), &ret->plan, &wrong) < 0) {
		return;
	}
	ret->read = true;
	ret->command = command_of(&ret->plan);
	ret->planned = count_trials(&ret->plan);
}
