// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Samples of CPU time by class of code, for the training thread, the other threads of the training
// processes, and the loader's workers.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct analysis;
struct stretch;

// What CPU time went into, by samples of the user's instruction pointer (source `profile`).
enum code_class {
	CODE_SPINNING, // waits of OpenMP, BLAS and pools that poll, sched_yield
	CODE_KERNELS, // matrix products and convolutions
	CODE_FRAMEWORK, // other arithmetic and dispatch of the framework
	CODE_INTERPRETER, // Python's
	CODE_COLLECTION, // its garbage collection
	CODE_ALLOCATION,
	CODE_COPYING,
	CODE_DECODING, // and resizing, decompressing
	CODE_SYSTEM, // the kernel
	CODE_OTHER,
	N_CODE_CLASSES,
};

struct code_facts { // of one kind of thread
	uint64_t samples; // 0: none were taken, and no share is known
	double share[N_CODE_CLASSES]; // of the samples; they add up to 1
	double cpus; // that these threads used
	double in_openmp; // of the samples: spinning in OpenMP, which settings of its can end
};

enum code_group { CODE_LEADER, CODE_THREADS, CODE_WORKERS, N_CODE_GROUPS };

#define CODE_TOPS 5

struct code_top { // a function, or a file that does not name its functions
	char name[96]; // from files of the job: escape it
	enum code_class class;
	uint64_t samples;
};

struct code_profile {
	struct code_group_samples {
		uint64_t samples;
		uint64_t by_class[N_CODE_CLASSES];
		uint64_t in_openmp; // of spinning: in a library of OpenMP
		struct code_top tops[CODE_TOPS]; // the most samples first
		size_t n_tops;
	} groups[N_CODE_GROUPS];
};

// The samples whose slice of time lies, by its middle, within the stretch. A run without samples
// gives none. 0 or -ENOMEM.
int profile_load(const struct analysis *a, const struct stretch *stretch, struct code_profile *ret);
// Shares of the classes; `cpus` is the caller's to fill.
void code_facts_put(const struct code_group_samples *g, struct code_facts *ret);

// Which group a process's threads are of; N_CODE_GROUPS: none.
enum code_group code_group_of(const struct analysis *a, int64_t entity, bool leader);
// Adds samples of a function, NULL where its name is not known.
void profile_count(struct code_group_samples *g, const char *path, const char *symbol,
	enum code_class class, uint64_t samples);
// Whether a library makes code for matrices at run time.
bool profile_makes_kernels(const char *path);
// How many of the samples in the kernel are of polling: of the first thread of a process, or of the
// others. threads: what those others have.
struct code_yields {
	uint64_t yielding; // samples in sched_yield
	uint64_t kernel;
};
uint64_t profile_yielding_in_kernel(
	const struct code_yields *threads, bool leader, uint64_t yielding, uint64_t kernel);
// The class of a function, NULL where its name is not known, in a mapped file. jit: what code made
// at run time is, in a process of these libraries.
enum code_class profile_classify(const char *path, const char *symbol, enum code_class jit);
// "matrix kernels", "spinning", ...
const char *code_class_name(enum code_class class);
// "training thread", "other threads", "workers".
const char *code_group_name(enum code_group group);
// "matrix kernels 62 %, interpreter 20 %": classes with 5 % or more, the largest first.
void code_facts_append(struct text *t, const struct code_facts *code);
