// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The type of a row of the table of causes, the rows of all families, and their common functions.
// The table itself is in causes.c; a row and its functions are in the file of its family:
// cause_input.c, cause_cpu.c, cause_device.c, cause_apart.c.

#pragma once

#include "verdict/facts.h"
#include "verdict/types.h"

struct advice_builder; // advice.h
struct text;

#define CAUSES_MAX N_BOTTLENECKS

struct causes {
	struct cause items[CAUSES_MAX]; // largest share first
	size_t n;
};

// Share of an iteration that waits for batches although workers had finished them long before.
double causes_handing_over(const struct facts *f);
// Whether at least half of a share of iterations is at the start of epochs.
bool causes_at_epochs(double at_epochs, double share);
// Who uses the CPUs that a job lacks.
enum lack {
	LACK_OWN, // the job itself has more work than CPUs
	LACK_OTHERS,
	LACK_NOBODY, // its limit on CPUs is not known
};
enum lack causes_lack(const struct facts *f);
// NULL if the cause does not hold.
const struct cause *causes_get(const struct causes *c, enum bottleneck bottleneck);

// The evidence for a cause, which bounds the confidence of a verdict.
enum grounds {
	GROUNDS_EXCLUSION, // the cause is what remains: low confidence
	// the figures fit, but other causes could explain them: at most medium confidence
	GROUNDS_INDIRECT,
	GROUNDS_DIRECT, // something was observed that only this cause does
};

struct judgement {
	double share; // 0: the cause does not hold
	enum phase_id shows_in; // the phase whose interval the share has; N_KNOWN_PHASES: none
};

enum cause_of { OF_ITERATIONS, OF_TRAINING, OF_RUN };

struct cause_kind {
	const char *name; // in JSON and files
	const char *part; // a noun for it next to another cause; NULL: judged without phases only
	enum cause_of of; // what the share is a share of
	bool of_device; // if false, the share is at most the time in which a GPU is idle
	bool first_only; // advised only if it is the first cause
	// `found` has the causes of the rows above.
	struct judgement (*judge)(const struct facts *f, const struct causes *found);
	enum grounds (*grounds)(const struct facts *f);
	void (*say)(struct text *t, const struct facts *f, const struct cause *cause);
	void (*advise)(struct advice_builder *b, const struct cause *cause);
	// With first_only: the advice that is also given if it is not the first cause. NULL: none
	void (*advise_beside)(struct advice_builder *b, const struct cause *cause);
};

extern const struct cause_kind cause_input, cause_input_sleep, cause_input_lock,
	cause_input_network, cause_input_blocked, cause_storage, cause_memory;
extern const struct cause_kind cause_quota, cause_threads, cause_contention, cause_python_threads,
	cause_children, cause_environment, cause_generation, cause_blocked, cause_allocation;
extern const struct cause_kind cause_optimizer, cause_host, cause_gpu_unused, cause_gpu_shared,
	cause_compute, cause_gpu_throttled, cause_transfer, cause_not_known;
extern const struct cause_kind cause_network, cause_ranks, cause_validation, cause_checkpoint,
	cause_between, cause_compile, cause_startup, cause_leak;

// "31 % of each iteration".
void cause_append_share(struct text *t, const struct cause *cause);
// Whether a cause that takes this part of the time that was sampled must be mostly in a function,
// whatever else was.
bool cause_has_line(const struct line_place *line, double part);
// Appends words and "train.py:42 augment()" if so.
void cause_append_line(
	struct text *t, const char *words, const struct line_place *line, double part);
// The function of the script with the most samples of lines, if it has LINE_MAIN of them and they
// are not in a call of backward or an optimizer, which is always the same line; NULL.
const struct line_place *cause_main_line(const struct facts *f);
// The function of the script with the most samples outside of all phases, if it takes WORTH of the
// time or more and is not the training loop; NULL.
const struct line_place *cause_outside_function(const struct facts *f);
// Share of the time that a function takes at most.
double cause_function_at_most(const struct line_place *function);
// Advises to prepare less, with the line that prepares; without preparing, this share is gone.
void cause_advise_less_preparation(struct advice_builder *b, double share);
// Appends "; train.py:42 augment() has 66 % of the samples", if there is one.
void cause_append_main_line(struct text *t, const struct facts *f);
// "1.9 of 2 CPUs".
void cause_append_cpus(struct text *t, double used, double of);
// "limited by its CPU quota of 0.35 CPUs": as it was set, but for thousandths.
void cause_append_quota(struct text *t, double cpus);
// Share of the samples in a class; 0 if there are none.
double cause_code(const struct code_facts *code, enum code_class class);
// Whether there are enough samples to tell what threads run.
bool cause_sampled(const struct code_facts *code);
// CPUs that threads of the training processes spend spinning; NAN without samples.
double cause_spinning_cpus(const struct facts *f);
// Share of an iteration that a team which sleeps between short operations costs, as one thread
// would compute the same without; 0: none does.
double cause_sleeping_team(const struct facts *f);
// Share of an iteration in which a thread of a team that is larger than the CPUs is ready without
// one; 0: there is no such team.
double cause_crowded_team(const struct facts *f);
// Whether the threads that are too many sleep, and occupy no CPU; else they spin.
bool cause_threads_sleep(const struct facts *f);

// The model of the input pipeline (cause_input.c) -------------------------------------------------

// How the preparation of a batch divides into CPU time, waits for a CPU and blocked time. The sum
// is 1.
struct preparing {
	double cpu;
	double queued;
	double blocked;
};
struct preparing cause_batches_preparing(const struct facts *f);
// Share of an iteration in which a training thread that prepares its own batches is blocked.
double cause_batches_blocked(const struct facts *f);
// Share of an iteration in which its batch is not ready.
double cause_batches_waiting(const struct facts *f);
// Share of an iteration that the workers need. queued: include waits for a CPU. blocked_part: the
// part of the blocked time that remains.
double cause_batches_need(const struct facts *f, bool queued, double blocked_part);

// Whether threads that prepare wait for each other for most of their blocked time.
bool cause_batches_at_a_lock(const struct facts *f);

// CPUs (cause_cpu.c) ------------------------------------------------------------------------------

double cause_computing_threads(const struct facts *f);
// Share of an iteration that many short reads from storage take the kernel, besides waiting.
double cause_read_calls(const struct facts *f);
// The cost of other programs for a job whose training thread sleeps until its other threads had a
// CPU.
double cause_dilation(const struct facts *f);

// Suggests one exchange of gradients for each step, if a step has several; share: the time of all.
// NAN: not known.
void cause_advise_synced(struct advice_builder *b, double share);

// Against double precision, if most samples of matrix kernels are in it.
void cause_advise_precision(struct advice_builder *b);

// Time apart (cause_apart.c) ----------------------------------------------------------------------

double cause_synced(const struct facts *f);

// Steps (cause_device.c) --------------------------------------------------------------------------

const char *cause_gpu_better_use(const struct gpu_facts *g, bool pytorch);
// "GPU-bound: the busiest of 2 GPUs had work 93 % of the time".
void cause_append_gpu_bound(struct text *t, const struct gpu_facts *g);
// "GPU 0 reported 12 uncorrected ECC errors"; returns false and appends nothing if the GPU has no
// fault.
bool cause_append_gpu_fault(struct text *t, const struct gpu_facts *g);
