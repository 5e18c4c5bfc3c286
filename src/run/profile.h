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

// Classes of code for CPU time, by samples of the user's instruction pointer (source `profile`).
enum code_class {
	CODE_SPINNING, // waits of OpenMP, BLAS and pools that poll, sched_yield
	CODE_KERNELS, // matrix products and convolutions
	CODE_FRAMEWORK, // other arithmetic and dispatch of the framework
	CODE_INTERPRETER, // interpreter of Python
	CODE_COLLECTION, // garbage collection of Python
	CODE_ALLOCATION,
	CODE_COPYING,
	CODE_DECODING, // and resizing, decompressing
	CODE_SYSTEM, // the kernel
	CODE_DRIVER, // of a GPU: launches, copies, and polling for its results
	CODE_OTHER,
	N_CODE_CLASSES,
};

struct code_facts { // of one group of threads
	uint64_t samples; // 0: none were taken, so the shares are not known
	double share[N_CODE_CLASSES]; // of the samples; they add up to 1
	double cpus; // used by these threads
	double in_openmp; // share of samples spinning in OpenMP, which OpenMP's settings can end
};

enum code_group { CODE_LEADER, CODE_THREADS, CODE_WORKERS, N_CODE_GROUPS };

#define CODE_TOPS 5

struct code_top { // a function, or a file without names of functions
	char name[96]; // for people, of symbols_shorten(); from files of the job: escape it
	enum code_class class;
	uint64_t samples;
};

struct code_profile {
	struct code_group_samples {
		uint64_t samples;
		uint64_t by_class[N_CODE_CLASSES];
		uint64_t in_openmp; // spinning in an OpenMP library
		uint64_t of_doubles; // matrix kernels in double precision
		struct code_top tops[CODE_TOPS]; // most samples first; of profile_settle()
		size_t n_tops;
		struct code_names { // until then
			struct code_top *items;
			size_t n, capacity;
		} names;
	} groups[N_CODE_GROUPS];
	// Of the time of the slices that the leader's samples are from, the part within the
	// stretch: the gaps between short epochs are in the same slices. NAN: no samples.
	double within;
};

// Loads the samples whose slice of time has its middle within the stretch. A run without samples
// has none. Returns 0 or -ENOMEM.
int profile_load(const struct analysis *a, const struct stretch *stretch, struct code_profile *ret);
// Sets the shares of the classes. The caller sets `cpus`.
void code_facts_put(const struct code_group_samples *g, struct code_facts *ret);

// The group of a process's threads; N_CODE_GROUPS: none.
enum code_group code_group_of(const struct analysis *a, int64_t entity, bool leader);
// Adds samples of a function; symbol is NULL if its name is not known. After the last one,
// profile_settle() adds up functions with one name (of a loop over elements, compilers make many)
// and frees what was held for that.
void profile_count(struct code_group_samples *g, const char *path, const char *symbol,
	enum code_class class, uint64_t samples);
void profile_settle(struct code_group_samples *g);
// Whether most samples that the training processes have in matrix kernels are of doubles.
bool profile_multiplies_doubles(const struct code_profile *p);
// Whether a file is NumPy's: what a script computes with it is not the framework's model.
bool profile_is_numpy(const char *path);
// Whether a library generates matrix kernels at run time.
bool profile_makes_kernels(const char *path);
// Returns how many of the `kernel` samples of a group are polling. leader: the group is the first
// thread of a process. threads: the samples of the other threads.
struct code_yields {
	uint64_t yielding; // samples in sched_yield
	uint64_t kernel;
};
uint64_t profile_yielding_in_kernel(
	const struct code_yields *threads, bool leader, uint64_t yielding, uint64_t kernel);
// The class of a function in a mapped file; symbol is NULL if its name is not known. jit: the class
// of code generated at run time in this process.
enum code_class profile_classify(const char *path, const char *symbol, enum code_class jit);
// Whether a function of PyTorch leads to an operation, and does none of its arithmetic. False if
// its name is not known.
bool profile_dispatches(const char *symbol);
// "matrix kernels", "spinning", ...: the name in JSON, and as shown ("OS kernel").
const char *code_class_name(enum code_class class);
const char *code_class_title(enum code_class class);
// "training thread", "other threads", "workers".
const char *code_group_name(enum code_group group);
// Appends the classes with 5 % or more, the largest first: "matrix kernels 62 %, interpreter 20 %".
void code_facts_append(struct text *t, const struct code_facts *code);
