// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The type of a row of the table of causes, the rows of all families, and their common functions.
// The table itself is in causes.c; a row and its functions are in the file of its family:
// cause_input.c, cause_cpu.c, cause_device.c, cause_apart.c.

#pragma once

#include "verdict/facts.h"
#include "verdict/types.h"

struct book; // advice.h
struct text;

#define CAUSES_MAX N_BOTTLENECKS

struct causes {
	struct cause items[CAUSES_MAX]; // the largest share first
	size_t n;
};

// What an iteration waits for batches that workers had long been done with.
double causes_handing_over(const struct facts *f);
// Whether at least half of a share of iterations is where epochs begin.
bool causes_at_epochs(double at_epochs, double share);
// Who has the CPUs that a job lacks.
enum lack {
	LACK_OWN, // the job itself: there are fewer than it has work for
	LACK_OTHERS,
	LACK_NOBODY, // it may use fewer than anybody knows
};
enum lack causes_lack(const struct facts *f);
// NULL where it does not hold.
const struct cause *causes_get(const struct causes *c, enum bottleneck bottleneck);

// What a cause rests on, which bounds how sure a verdict is.
enum grounds {
	GROUNDS_EXCLUSION, // it is what is left over: low confidence
	GROUNDS_INDIRECT, // the figures fit, and others could cause them too: medium at most
	GROUNDS_DIRECT, // something was seen that only this cause does
};

struct judgement {
	double share; // 0: the cause does not hold
	enum phase_id shows_in; // whose interval the share has; N_KNOWN_PHASES: none
};

enum cause_of { OF_ITERATIONS, OF_TRAINING, OF_RUN };

struct cause_kind {
	const char *name; // in JSON and the index
	const char *part; // a noun for it beside another cause; NULL: judged without phases only
	enum cause_of of; // what the share is a share of
	bool of_device; // else the share is at most the time in which a GPU is idle
	bool first_only; // advised only where it is the first cause
	// `found` holds the causes of the rows above.
	struct judgement (*judge)(const struct facts *f, const struct causes *found);
	enum grounds (*grounds)(const struct facts *f);
	void (*say)(struct text *t, const struct facts *f, const struct cause *cause);
	void (*advise)(struct book *b, const struct cause *cause);
};

extern const struct cause_kind cause_input, cause_input_sleep, cause_input_lock,
	cause_input_network, cause_input_blocked, cause_storage, cause_memory;
extern const struct cause_kind cause_quota, cause_threads, cause_contention, cause_python_threads,
	cause_children, cause_blocked, cause_allocation;
extern const struct cause_kind cause_optimizer, cause_launch, cause_gpu_unused, cause_gpu_shared,
	cause_compute, cause_gpu_throttled, cause_transfer, cause_not_known;
extern const struct cause_kind cause_ranks, cause_validation, cause_checkpoint, cause_startup,
	cause_leak;

// NAN as 0.
double cause_known(double value);
// "31 % of each iteration".
void cause_append_share(struct text *t, const struct cause *cause);
// "1.9 of 2 CPUs".
void cause_append_cpus(struct text *t, double used, double of);
// Share of the samples in a class, 0 where none were taken.
double cause_code(const struct code_facts *code, enum code_class class);
// Whether samples say what threads run.
bool cause_sampled(const struct code_facts *code);
// CPUs that threads of the training processes spend spinning; NAN without samples.
double cause_spinning_cpus(const struct facts *f);

// The model of the input pipeline (cause_input.c) -------------------------------------------------

// What a batch takes of those that prepare it, in parts of one.
struct preparing {
	double cpu;
	double queued;
	double blocked;
};
struct preparing cause_batches_preparing(const struct facts *f);
// Share of an iteration in which a training thread that prepares batches itself is blocked.
double cause_batches_blocked(const struct facts *f);
// Share of an iteration in which its batch is not ready.
double cause_batches_waiting(const struct facts *f);
// How much of an iteration the workers need where they never queue, or where only a part of their
// blocked time is left.
double cause_batches_need(const struct facts *f, bool queued, double blocked_part);

// Whether those that prepare wait for each other most of their blocked time.
bool cause_batches_at_a_lock(const struct facts *f);

// CPUs (cause_cpu.c) ------------------------------------------------------------------------------

double cause_computing_threads(const struct facts *f);
// What other programs cost a job whose computing threads wait asleep while others run.
double cause_dilation(const struct facts *f);

// Steps (cause_device.c) --------------------------------------------------------------------------

const char *cause_gpu_better_use(const struct gpu_facts *g, bool pytorch);
// "GPU-bound: the busiest of 2 GPUs had work 93 % of the time".
void cause_append_gpu_bound(struct text *t, const struct gpu_facts *g);
// "GPU 0 reported 12 uncorrected ECC errors"; false, and nothing, where the GPU is whole.
bool cause_append_gpu_fault(struct text *t, const struct gpu_facts *g);
