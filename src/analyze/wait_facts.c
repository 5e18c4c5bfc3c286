// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Looks are counters: their rates in the steady stretch are shares of its time.

#include "analyze/wait_facts.h"

#include <math.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/facts.h"
#include "analyze/names.h"
#include "analyze/rate.h"
#include "analyze/thresholds.h"
#include "analyze/words.h"
#include "base/cleanup.h"

#define CHILD_LIVES_S 5.0 // longer, and it is a service that stays
#define BRIEF_S 0.1 // seen in one or two readings of the process tree

static const char *const names[N_WAITS] = {
	[WAIT_STORAGE] = NAME_WAIT "storage",
	[WAIT_FSYNC] = NAME_WAIT "fsync",
	[WAIT_NETWORK] = NAME_WAIT "network",
	[WAIT_PIPE] = NAME_WAIT "pipe",
	[WAIT_LOCK] = NAME_WAIT "lock",
	[WAIT_GIL] = NAME_WAIT "gil",
	[WAIT_SLEEP] = NAME_WAIT "sleep",
	[WAIT_CHILD] = NAME_WAIT "child",
	[WAIT_OTHER] = NAME_WAIT "other",
};

struct looks {
	double all; // a second
	double in[N_WAITS];
};

static void add_looks(const struct analysis *a, int64_t entity, const struct stretch *stretch,
	struct looks *looks)
{
	double all = rate_over(a, entity, NAME_WAIT "looks", stretch);
	if (!(all > 0)) {
		return;
	}
	looks->all += all;
	for (size_t i = 0; i < N_WAITS; i++) {
		double rate = rate_over(a, entity, names[i], stretch);
		looks->in[i] += isfinite(rate) ? rate : 0;
	}
}

// `left_out`: looks that found this are no part of the time; N_WAITS: all are.
static void put_shares(const struct looks *looks, const struct stretch *stretch,
	enum wait_kind left_out, struct wait_facts *ret)
{
	double seconds = stretch_seconds(stretch);
	double all = looks->all - (left_out < N_WAITS ? looks->in[left_out] : 0);
	if (!(all > 0) || !(seconds > 0)) {
		return;
	}
	ret->looks = (uint64_t)llround(all * seconds);
	for (size_t i = 0; i < N_WAITS; i++) {
		ret->share[i] = i == left_out ? 0 : fmin(1, looks->in[i] / all);
	}
}

static double placed_rate(const struct analysis *a, int64_t main, const struct stretch *stretch,
	const char *place, size_t wait)
{
	_cleanup_text_ struct text name = {0};
	text_format(&name, "%s%s.%s", NAME_WAIT, place, names[wait] + strlen(NAME_WAIT));
	return name.data ? rate_over(a, main, name.data, stretch) : NAN;
}

// Of the training thread: what it waited for while it took a batch, and in steps.
static void put_placed(const struct analysis *a, int64_t main, const struct stretch *stretch,
	struct wait_facts *ret)
{
	double all = rate_over(a, main, NAME_WAIT "placed", stretch);
	if (!(all > 0) || !(stretch_seconds(stretch) > 0)) {
		return;
	}
	ret->placed = (uint64_t)llround(all * stretch_seconds(stretch));
	for (size_t i = 0; i < N_WAITS; i++) {
		ret->in_data[i] = placed_rate(a, main, stretch, "data", i) / all;
		ret->in_step[i] = placed_rate(a, main, stretch, "step", i) / all;
	}
}

// Children ----------------------------------------------------------------------------------------

static const char *name_of(const struct analysis *a, int64_t entity)
{
	for (size_t i = 0; i < a->processes.n; i++) {
		if (a->processes.items[i].entity == entity) {
			return a->processes.items[i].name;
		}
	}
	return NULL;
}

// Between its fork and its exec a child has its parent's name.
static bool is_named(const struct process_row *row, const char *parent)
{
	return row->last_s - row->first_s >= BRIEF_S || !parent || strcmp(row->name, parent) != 0;
}

static bool is_child(const struct process_row *row, int64_t main, const struct stretch *stretch)
{
	double from_s = (double)stretch->from_us / 1e6, to_s = (double)stretch->to_us / 1e6;
	bool role = row->role == ROLE_CHILD || row->role == ROLE_HELPER;
	return role && row->parent == main && row->name && row->first_s >= from_s &&
	       row->first_s <= to_s && row->last_s - row->first_s < CHILD_LIVES_S;
}

// The name that most of them have, by majority vote: each other name takes one from it.
static const char *usual_name(const struct analysis *a, int64_t main, const struct stretch *stretch)
{
	const char *usual = NULL, *parent = name_of(a, main);
	size_t lead = 0;
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		if (!is_child(row, main, stretch) || !is_named(row, parent)) {
			continue;
		}
		if (lead == 0) {
			usual = row->name;
		}
		lead = strcmp(usual, row->name) == 0 ? lead + 1 : lead - 1;
	}
	return usual;
}

// Those that end between two readings of the process tree are in no row: of these the CPU time is
// known, from the parent that waits for them, and the number where samples are taken.
static void fill_children(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret)
{
	struct children_facts *c = &ret->children;
	double cpus = rate_over(a, main, NAME_CPU_CHILDREN, stretch);
	c->cpu_s = cpus * ret->length_s.value;
	double started = rate_while_read(a, main, NAME_CHILDREN_STARTED, stretch);
	c->per_iteration = started * ret->length_s.value;
	if (ret->waits.looks > 0) {
		c->waits_s = ret->waits.share[WAIT_CHILD] * ret->length_s.value;
	}
	if (c->waits_s > 0 || c->cpu_s > 0) {
		c->command = usual_name(a, main, stretch);
	}
}

void wait_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret)
{
	struct looks leader = {0}, workers = {0};
	add_looks(a, main, stretch, &leader);
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		if (row->role == ROLE_LOADER) {
			add_looks(a, row->entity, stretch, &workers);
		}
	}
	put_shares(&leader, stretch, N_WAITS, &ret->waits);
	put_placed(a, main, stretch, &ret->waits);
	put_shares(&workers, stretch, WAIT_PIPE, &ret->worker_waits);
	fill_children(a, main, stretch, ret);
}

void wait_facts_append(struct text *t, const struct wait_facts *waits)
{
	bool told[N_WAITS] = {false};
	for (size_t n = 0; n < N_WAITS; n++) {
		size_t largest = 0;
		for (size_t i = 0; i < N_WAITS; i++) {
			bool larger = waits->share[i] > waits->share[largest] || told[largest];
			largest = !told[i] && larger ? i : largest;
		}
		if (told[largest] || !(waits->share[largest] >= WORTH)) {
			return;
		}
		told[largest] = true;
		text_format(
			t, "%s%s ", t->length > 0 ? ", " : "", names[largest] + strlen(NAME_WAIT));
		words_append_percent(t, waits->share[largest]);
	}
}
