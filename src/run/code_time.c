// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Rows are sorted by function: the samples of one are added up before its name is kept.

#include "run/code_time.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "run/analysis.h"
#include "run/query.h"
#include "runfile/reader.h"

enum { N_BARS = N_CODE_ROLES + N_CODE_PHASES };
#define SAMPLES_METRIC "strain.profile.samples"

struct bar {
	struct code_group_samples *samples;
	// samples of the current function: of other threads, of the first thread
	uint64_t of_function[2];
	uint64_t kernel[2];
	uint64_t yielding[2];
	uint64_t jit;
};

struct loading {
	const struct analysis *a;
	struct bar bars[N_BARS];
	struct text path, symbol; // of the current function
	bool named;
	bool kernels;
	bool failed;
};

static enum code_role role_of(const struct analysis *a, int64_t entity, bool leader)
{
	enum code_group group = code_group_of(a, entity, leader);
	return group == CODE_LEADER    ? CODE_OF_TRAINING
	       : group == CODE_THREADS ? CODE_OF_THREADS
	       : group == CODE_WORKERS ? CODE_OF_WORKERS
	                               : CODE_OF_CHILDREN;
}

static size_t phase_of(const char *name)
{
	for (size_t i = 0; name && i < N_KNOWN_PHASES; i++) {
		if (strcmp(phase_id_name((enum phase_id)i), name) == 0) {
			return i;
		}
	}
	return name && !*name ? CODE_OUTSIDE : CODE_UNKNOWN;
}

// Called after the last row of a function.
static void end_function(struct loading *l)
{
	const char *path = l->path.data ? l->path.data : "";
	const char *symbol = l->named ? l->symbol.data : NULL;
	bool jit = strcmp(path, "[jit]") == 0, kernel = strcmp(path, "[kernel]") == 0;
	bool yields = symbol && strstr(symbol, "sched_yield");
	enum code_class class = profile_classify(path, symbol, CODE_OTHER);
	for (size_t i = 0; i < N_BARS; i++) {
		struct bar *bar = &l->bars[i];
		uint64_t sum = bar->of_function[0] + bar->of_function[1];
		for (size_t k = 0; k < 2; k++) {
			bar->kernel[k] += kernel ? bar->of_function[k] : 0;
			bar->yielding[k] += yields ? bar->of_function[k] : 0;
			bar->of_function[k] = 0;
		}
		bar->jit += jit ? sum : 0;
		if (!jit && !kernel) {
			profile_count(bar->samples, path, symbol, class, sum);
		}
	}
}

enum { ENTITY, LEADER, COUNT, PATH, SYMBOL, PHASE };

static bool is_another(const struct loading *l, const char *path, const char *symbol)
{
	return !l->path.data || strcmp(l->path.data, path) != 0 || l->named != (symbol != NULL) ||
	       (symbol && l->symbol.data && strcmp(l->symbol.data, symbol) != 0);
}

static int take_row(struct loading *l, sqlite3_stmt *row, size_t bar)
{
	const char *path = (const char *)sqlite3_column_text(row, PATH);
	const char *symbol = (const char *)sqlite3_column_text(row, SYMBOL);
	int64_t count = sqlite3_column_int64(row, COUNT);
	if (!path || count <= 0 || count > UINT32_MAX) {
		return 0;
	}
	if (is_another(l, path, symbol)) {
		end_function(l);
		text_clear(&l->path);
		text_clear(&l->symbol);
		text_append_string(&l->path, path);
		text_append_string(&l->symbol, symbol ? symbol : "");
		l->named = symbol != NULL;
		l->kernels |= profile_makes_kernels(path);
	}
	l->bars[bar].of_function[sqlite3_column_int64(row, LEADER) == 1] += (uint64_t)count;
	return l->path.failed || l->symbol.failed ? -ENOMEM : 0;
}

static int take_of_role(void *context, sqlite3_stmt *row)
{
	struct loading *l = context;
	return take_row(l, row,
		role_of(l->a, sqlite3_column_int64(row, ENTITY),
			sqlite3_column_int64(row, LEADER) == 1));
}

static int take_of_phase(void *context, sqlite3_stmt *row)
{
	const char *phase = (const char *)sqlite3_column_text(row, PHASE);
	return take_row(context, row, N_CODE_ROLES + phase_of(phase));
}

// Classifies the samples that need totals: those in the kernel (polling or not) and those in code
// generated at run time.
static void settle(struct loading *l)
{
	const struct bar *threads = &l->bars[CODE_OF_THREADS];
	const struct code_yields yields = {threads->yielding[0], threads->kernel[0]};
	for (size_t i = 0; i < N_BARS; i++) {
		struct bar *bar = &l->bars[i];
		bool trains = i != CODE_OF_WORKERS && i != CODE_OF_CHILDREN;
		uint64_t spins = 0, kernel = bar->kernel[0] + bar->kernel[1];
		for (size_t k = 0; k < 2 && trains; k++) {
			spins += profile_yielding_in_kernel(
				&yields, k == 1, bar->yielding[k], bar->kernel[k]);
		}
		profile_count(bar->samples, "[kernel]", NULL, CODE_SPINNING, spins);
		profile_count(bar->samples, "[kernel]", NULL, CODE_SYSTEM, kernel - spins);
		profile_count(bar->samples, "[jit]", NULL, l->kernels ? CODE_KERNELS : CODE_OTHER,
			bar->jit);
	}
}

static int read_rows(
	struct loading *l, const char *sql, int (*take)(void *context, sqlite3_stmt *row))
{
	int r = query_each(l->a->tables.reader, sql, take, l, NULL);
	end_function(l);
	text_clear(&l->path);
	return r == -ENOMEM ? r : 0;
}

static int say_missing(char **ret, const char *reason)
{
	*ret = strdup(reason);
	return *ret ? 0 : -ENOMEM;
}

static const char *samples_reason(const struct analysis *a)
{
	for (size_t i = 0; i < a->tables.missing.n; i++) {
		const struct missing_group *group = &a->tables.missing.items[i];
		for (size_t k = 0; k < group->n_metrics; k++) {
			if (strcmp(group->metrics[k], SAMPLES_METRIC) == 0) {
				return group->reason;
			}
		}
	}
	return !reader_has_samples(a->tables.reader)
	               ? "recorded by a version of strain without sampling"
	               : "no samples: the job used too little CPU time";
}

static int fill_missing(const struct analysis *a, struct code_time *ret)
{
	int r = ret->samples == 0 ? say_missing(&ret->missing, samples_reason(a)) : 0;
	if (r < 0 || ret->phase_samples > 0) {
		return r;
	}
	const char *reason = ret->missing        ? ret->missing
	                     : a->phases.missing ? a->phases.missing
	                     : !reader_has_phase_samples(a->tables.reader)
	                             ? "recorded by a version of strain without samples by phase"
	                             : "no samples of the training";
	return say_missing(&ret->phases_missing, reason);
}

int code_time_load(const struct analysis *a, struct code_time *ret)
{
	static const char by_role[] =
		"SELECT s.entity, s.leader, s.samples, o.path, y.name, NULL"
		" FROM profile_sample AS s JOIN profile_object AS o ON o.id = s.object"
		" LEFT JOIN profile_symbol AS y ON y.object = s.object AND y.address = s.address"
		" ORDER BY o.path, y.name";
	static const char by_phase[] =
		"SELECT s.entity, s.leader, s.samples, o.path, y.name, s.phase"
		" FROM phase_sample AS s JOIN profile_object AS o ON o.id = s.object"
		" LEFT JOIN profile_symbol AS y ON y.object = s.object AND y.address = s.address"
		" ORDER BY o.path, y.name";
	struct loading l = {.a = a};
	*ret = (struct code_time){0};
	for (size_t i = 0; i < N_BARS; i++) {
		l.bars[i].samples = i < N_CODE_ROLES ? &ret->roles[i]
		                                     : &ret->phases[i - N_CODE_ROLES];
	}
	int r = 0;
	if (reader_has_samples(a->tables.reader)) {
		r = read_rows(&l, by_role, take_of_role);
	}
	if (r == 0 && reader_has_phase_samples(a->tables.reader)) {
		r = read_rows(&l, by_phase, take_of_phase);
	}
	settle(&l);
	text_done(&l.path);
	text_done(&l.symbol);
	for (size_t i = 0; i < N_BARS; i++) {
		profile_settle(l.bars[i].samples);
		uint64_t *sum = i < N_CODE_ROLES ? &ret->samples : &ret->phase_samples;
		*sum += l.bars[i].samples->samples;
	}
	r = r < 0 ? r : fill_missing(a, ret);
	if (r < 0) {
		code_time_done(ret);
	}
	return r;
}

void code_time_done(struct code_time *t)
{
	free(t->missing);
	free(t->phases_missing);
	*t = (struct code_time){0};
}

// Words -------------------------------------------------------------------------------------------

static void add_bar(struct code_bar *bars, size_t *n, const char *name,
	const struct code_group_samples *group, uint64_t of)
{
	if (group->samples > 0) {
		bars[(*n)++] = (struct code_bar){name, group, (double)group->samples / (double)of};
	}
}

size_t code_time_role_bars(const struct code_time *t, struct code_bar ret[CODE_BARS_MAX])
{
	static const char *const names[N_CODE_ROLES] = {
		[CODE_OF_TRAINING] = "training thread",
		[CODE_OF_THREADS] = "other threads",
		[CODE_OF_WORKERS] = "workers",
		[CODE_OF_CHILDREN] = "other processes",
	};
	size_t n = 0;
	for (size_t i = 0; i < N_CODE_ROLES; i++) {
		add_bar(ret, &n, names[i], &t->roles[i], t->samples);
	}
	return n;
}

size_t code_time_phase_bars(const struct code_time *t, struct code_bar ret[CODE_BARS_MAX])
{
	static const size_t order[N_CODE_PHASES] = {PHASE_DATA, PHASE_TRANSFER, PHASE_FORWARD,
		PHASE_BACKWARD, PHASE_OPTIMIZER, PHASE_COMMUNICATION, PHASE_STEP, PHASE_OTHER,
		PHASE_VALIDATION, PHASE_CHECKPOINT, PHASE_IMPORT, CODE_OUTSIDE, CODE_UNKNOWN};
	size_t n = 0;
	for (size_t i = 0; i < N_CODE_PHASES; i++) {
		size_t phase = order[i];
		const char *name = phase == CODE_OUTSIDE   ? "outside iterations"
		                   : phase == CODE_UNKNOWN ? "phase not known"
		                                           : phase_id_name((enum phase_id)phase);
		add_bar(ret, &n, name, &t->phases[phase], t->phase_samples);
	}
	return n;
}

void code_time_append_classes(struct text *t, const struct code_group_samples *samples)
{
	struct code_facts facts = {.samples = samples->samples};
	for (size_t i = 0; samples->samples > 0 && i < N_CODE_CLASSES; i++) {
		facts.share[i] = (double)samples->by_class[i] / (double)samples->samples;
	}
	code_facts_append(t, &facts);
}
