// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Runs as a catalogue returns them, without files: the test sets labels and measures. For tests of
// everything that compares runs.
//
//     struct made_runs r = {0};
//     made_runs_add(&r, "framework=pytorch batch_size=32", MEASURE_EPOCH, 41.2);
//     made_runs_add(&r, "framework=pytorch batch_size=64", MEASURE_EPOCH, 1e9)->outcome = ...;
//     ... r.list, r.n ...
//     made_runs_done(&r);

#pragma once

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/catalogue.h"

enum { MADE_RUNS_MAX = 64, MADE_LABELS_MAX = 12 };

struct made_runs {
	struct digest runs[MADE_RUNS_MAX];
	struct run_label labels[MADE_RUNS_MAX][MADE_LABELS_MAX];
	char *words[MADE_RUNS_MAX]; // storage of the labels
	const struct digest *list[MADE_RUNS_MAX]; // [n]
	size_t n;
};

// Adds a successful run, later than those before it, with labels "a=1 b=2" and one measure. The run
// may be changed until made_runs_done.
static inline struct digest *made_runs_add(
	struct made_runs *m, const char *labels, enum measure_id measure, double value)
{
	static char name[] = "run";
	assert(m->n < MADE_RUNS_MAX);
	struct digest *run = &m->runs[m->n];
	char *rest = m->words[m->n] = strdup(labels);
	*run = (struct digest){.path = name,
		.name = name,
		.host = "here",
		.command = "",
		.outcome_text = "",
		.memory_kind = "",
		.verdict = "",
		.headline = "",
		.start_utc_ns = (int64_t)m->n + 1,
		.labels = m->labels[m->n]};
	for (char *word; (word = strsep(&rest, " "));) {
		char *equals = strchr(word, '=');
		assert(equals && run->n_labels < MADE_LABELS_MAX);
		*equals = '\0';
		run->labels[run->n_labels++] = (struct run_label){word, equals + 1};
	}
	for (size_t i = 0; i < N_MEASURES; i++) {
		run->measures[i] = NAN;
		run->reasons[i] = "not measured; buy more";
	}
	run->measures[measure] = value;
	run->reasons[measure] = NULL;
	m->list[m->n++] = run;
	return run;
}

static inline void made_runs_done(struct made_runs *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->words[i]);
	}
	*m = (struct made_runs){0};
}
