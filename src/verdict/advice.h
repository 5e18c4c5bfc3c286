// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Suggestions: remedies and their gains. The advice for a cause is in its row (cause_kinds.h).

#pragma once

#include "verdict/facts.h"
#include "verdict/types.h"

struct text;

// Collects suggestions.
struct advice_builder {
	const struct facts *f;
	const struct causes *found; // all causes of the verdict
	struct verdict *verdict;
	enum bottleneck cause; // the suggestions are against this
	bool minor; // the cause is small, and not the first
	bool direct; // there is direct evidence of the cause
	bool of_iterations; // the cause's share is of iterations, not of all of training
	struct setting_list settings; // of the next suggestion
	int r;
};

// Append a suggestion. They take both texts; the same action is kept once. A gain above LARGE needs
// direct evidence of the cause, else it counts as not known. A bound assumes that the whole share
// is removed.
void advice_suggest(
	struct advice_builder *b, struct estimate gain, struct text *action, struct text *basis);
void advice_suggest_at_most(
	struct advice_builder *b, double share, struct text *action, struct text *basis);
void advice_suggest_plain_at_most(
	struct advice_builder *b, double share, const char *action, const char *basis);
void advice_suggest_unknown(struct advice_builder *b, const char *action, const char *basis);
// Adds a setting with which the next suggestion can be tried without an edit.
void advice_set(struct advice_builder *b, unsigned choice, enum setting_kind kind,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
// The speed-up if `part` of a share of the time is removed.
struct estimate advice_gain_of(struct estimate share, double part);
extern const struct estimate advice_no_gain;
// What suggestions are ordered by: the gain, or else the bound that is not shown; NAN: neither.
double advice_rank(const struct suggestion *s);
// CPUs that nobody uses, of those that the job may use.
double advice_idle_cpus(const struct facts *f);
// "1.2 of 4 CPUs idle", "no CPU is idle".
void advice_append_idle(struct text *t, const struct facts *f);
// "a sample takes 1.2 ms of CPU to prepare; 1.2 of 4 CPUs idle".
void advice_append_prepare_cost(struct text *t, const struct facts *f);
// Against Python's garbage collection, which takes this share of an iteration.
void advice_suggest_no_collections(struct advice_builder *b, double share);
// Suggests more loader workers if the model predicts a gain.
void advice_suggest_workers(struct advice_builder *b);
// Suggests remedies against work at the start of each epoch.
void advice_suggest_at_epochs(struct advice_builder *b, double share);

// The modelled length of an iteration with this number of workers, as a share of its length now:
//
//   rate(W, C) = min(1 / computing, W / prepare, C / (c_main + c_prepare))
//
// where `prepare` is the time of a batch in a worker with a CPU of its own, and c is CPU time. If
// there were no workers, it includes handing a batch over, on both sides; and always starting the
// workers of each epoch. NAN if the CPU time of the workers or of the training process is not
// known.
double advice_length_with(const struct facts *f, unsigned workers, double cpus);
// The same with fewer computing threads, which also do the work of the others. NAN if samples do
// not show that work.
double advice_length_with_threads(const struct facts *f, double threads);
// The fewest workers within 1 % of the best, as far as CPUs, memory and /dev/shm allow.
unsigned advice_workers(const struct facts *f);
// "about 1.9 times as fast", "at most 1.3 times as fast"; nothing if the gain is not known.
void advice_append_gain(struct text *t, const struct suggestion *s);
