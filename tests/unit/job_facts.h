// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Computed facts of a job, for tests of verdicts and advice.

#pragma once

#include <math.h>
#include <string.h>

#include "verdict/causes.h"
#include "verdict/facts.h"
#include "verdict/verdict.h"

// The suggestion that begins with these words; NULL: there is none.
static inline const struct suggestion *suggests(const struct verdict *v, const char *action)
{
	for (size_t i = 0; i < v->n_suggestions; i++) {
		if (strncmp(v->suggestions[i].action, action, strlen(action)) == 0) {
			return &v->suggestions[i];
		}
	}
	return NULL;
}

static inline struct estimate known(double value)
{
	return (struct estimate){value, value - 0.01, value + 0.01};
}

// A thousand iterations of 10 ms on four CPUs: each waits for data, then computes with one thread.
static inline struct facts job(double data)
{
	struct facts f;
	facts_init(&f);
	f.duration_s = 12;
	f.startup_s = 1;
	f.training_s = 10;
	f.validation_s = f.checkpoint_s = 0;
	f.iterations = f.parts = true;
	f.steady = 1000;
	f.length_s = (struct estimate){0.010, 0.0099, 0.0101};
	f.share[PHASE_OTHER] = known(0.01);
	f.share[PHASE_DATA] = known(data);
	f.share[PHASE_FORWARD] = known((1 - data) * 0.35);
	f.share[PHASE_BACKWARD] = known((1 - data) * 0.60);
	f.share[PHASE_OPTIMIZER] = known((1 - data) * 0.05 - 0.01);
	f.samples = 32;
	f.compute_s = f.undisturbed_s = 0.010 * (1 - data);
	f.cpus = 4;
	f.openmp = true;
	f.main_cpus = 1 - data;
	f.main_queued = 0;
	f.host_cpus = 4;
	f.others_cpus = f.host_others_cpus = 0.1;
	f.cpus_used = f.main_cpus;
	return f;
}

// Adds samples of the training thread, all in one class.
static inline void add_samples(struct facts *f, enum code_class class, double cpus)
{
	f->code.samples = 500;
	for (size_t i = 0; i < N_CODE_CLASSES; i++) {
		f->code.share[i] = i == class;
	}
	f->code.cpus = cpus;
}

// Adds looks at a thread that spends a share of the time in one kind of wait.
static inline void add_looks(struct wait_facts *waits, enum wait_kind kind, double share)
{
	waits->looks = 500;
	for (size_t i = 0; i < N_WAITS; i++) {
		waits->share[i] = i == kind ? share : 0;
	}
}

static inline void add_workers(
	struct facts *f, unsigned n, double cpus, double queued, double blocked)
{
	f->workers.n = n;
	f->workers.marked = true;
	f->workers.cpus = cpus;
	f->workers.queued = queued;
	f->workers.blocked = blocked;
	f->workers.preparing = cpus + queued + blocked;
	f->cpus_used = f->main_cpus + cpus;
}

static inline struct facts input_workers(void)
{
	struct facts f = job(0.6);
	add_workers(&f, 1, 1, 0, 0);
	return f;
}

static inline struct facts input_alone(void)
{
	struct facts f = job(0.5);
	f.main_cpus = f.cpus_used = 1;
	return f;
}

static inline void assert_share(const struct causes *c, enum bottleneck bottleneck, double share)
{
	const struct cause *cause = causes_get(c, bottleneck);
	assert_non_null(cause);
	assert_true(fabs(cause->share.value - share) < 0.015);
}
