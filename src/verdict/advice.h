// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Suggestions: remedies and their gains. The advice against a cause is in its row (cause_kinds.h).

#pragma once

#include "verdict/facts.h"
#include "verdict/types.h"

struct text;

// Where suggestions are collected.
struct book {
	const struct facts *f;
	struct verdict *verdict;
	enum bottleneck cause; // against which
	bool minor; // it is not the first cause, and small
	bool direct; // something was seen that only it does
	bool of_iterations; // its share is one of iterations, not of all of training
	struct setting_list settings; // of the next suggestion
	int r;
};

// Each takes both texts and appends a suggestion; the same action is kept once. A gain above LARGE
// needs a cause with direct evidence, else it is not known. A bound is what would be gained if all
// of the share were gone.
void advice_suggest(struct book *b, struct estimate gain, struct text *action, struct text *basis);
void advice_suggest_at_most(struct book *b, double share, struct text *action, struct text *basis);
void advice_suggest_plain_at_most(
	struct book *b, double share, const char *action, const char *basis);
void advice_suggest_unknown(struct book *b, const char *action, const char *basis);
// What of the next suggestion can be tried without an edit.
void advice_set(struct book *b, unsigned choice, enum setting_kind kind, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
// Times faster when a part of a share of the time is gone.
struct estimate advice_gain_of(struct estimate share, double part);
extern const struct estimate advice_no_gain;
// CPUs that nobody uses, of those that the job may use.
double advice_idle_cpus(const struct facts *f);
// "1.2 of 4 CPUs idle", "no CPU is idle".
void advice_append_idle(struct text *t, const struct facts *f);
// "a sample takes 1.2 ms of CPU to prepare; 1.2 of 4 CPUs idle".
void advice_append_prepare_cost(struct text *t, const struct facts *f);
// More loader workers, where the model says that they gain.
void advice_suggest_workers(struct book *b);
// Against what each epoch begins with.
void advice_suggest_at_epochs(struct book *b, double share);

// What the iteration would take with so many workers, as a share of what it takes now:
//
//   rate(W, C) = min(1 / computing, W / prepare, C / (c_main + c_prepare))
//
// with what handing a batch over takes on either side, where there were no workers, and what each
// epoch takes to start them;
// with prepare the time of a batch in a worker that has a CPU of its own, c the CPU time. NAN where
// the CPU time of the workers or of the training process is not known.
double advice_length_with(const struct facts *f, unsigned workers, double cpus);
// The same with fewer threads that compute, which then do what the others did. NAN where it was not
// sampled what those do.
double advice_length_with_threads(const struct facts *f, double threads);
// The fewest workers within 1 % of the best, as far as CPUs, memory and /dev/shm allow.
unsigned advice_workers(const struct facts *f);
