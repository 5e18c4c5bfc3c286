// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What CPU time went into: samples by class of code, for the training thread, the other threads of
// the training processes, and the loader's workers.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "verdict/facts.h"

struct analysis;
struct stretch;

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
// Fills facts.code, code_threads and code_workers. `main` is the process that trains.
void profile_facts_fill(const struct analysis *a, const struct code_profile *profile, int64_t main,
	const struct stretch *stretch, struct facts *ret);

// Which group a process's threads are of; N_CODE_GROUPS: none.
enum code_group code_group_of(const struct analysis *a, int64_t entity, bool leader);
// Adds samples of a function, NULL where its name is not known.
void code_count(struct code_group_samples *g, const char *path, const char *symbol,
	enum code_class class, uint64_t samples);
// Whether a library makes code for matrices at run time.
bool code_makes_kernels(const char *path);
// How many of the samples in the kernel are of polling: of the first thread of a process, or of the
// others. threads: what those others have.
struct code_yields {
	uint64_t yielding; // samples in sched_yield
	uint64_t kernel;
};
uint64_t code_yielding_in_kernel(
	const struct code_yields *threads, bool leader, uint64_t yielding, uint64_t kernel);
// The class of a function, NULL where its name is not known, in a mapped file. jit: what code made
// at run time is, in a process of these libraries.
enum code_class code_classify(const char *path, const char *symbol, enum code_class jit);
// "matrix kernels", "spinning", ...
const char *code_class_name(enum code_class class);
// "training thread", "other threads", "workers".
const char *code_group_name(enum code_group group);
// "matrix kernels 62 %, interpreter 20 %": classes with 5 % or more, the largest first.
void code_facts_append(struct text *t, const struct code_facts *code);
