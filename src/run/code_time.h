// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// CPU time by class of code, for each role of a thread and each phase of training, from samples of
// the whole run.

#pragma once

#include "run/phases.h"
#include "run/profile.h"

struct analysis;

#define CODE_SAMPLES_A_SECOND 49 // of CPU time

enum code_role {
	CODE_OF_TRAINING,
	CODE_OF_THREADS,
	CODE_OF_WORKERS,
	CODE_OF_CHILDREN,
	N_CODE_ROLES
};

// The known phases, then "outside any phase", then "phase not known".
enum { CODE_OUTSIDE = N_KNOWN_PHASES, CODE_UNKNOWN, N_CODE_PHASES };

struct code_time {
	struct code_group_samples roles[N_CODE_ROLES];
	struct code_group_samples phases[N_CODE_PHASES]; // of processes that train, all threads
	uint64_t samples; // of all roles
	uint64_t phase_samples; // of all phases
	char *missing; // why there are no samples, for people; NULL if there are some
	char *phases_missing; // why there are none by phase; NULL if there are some
};

// Loads the samples of a run; of a damaged file, those before the damage. Returns 0 or -ENOMEM.
int code_time_load(const struct analysis *a, struct code_time *ret);
void code_time_done(struct code_time *t);

// "training thread", "other threads", "workers", "other processes".
const char *code_role_name(enum code_role role);
// "data", ..., "outside iterations", "phase not known".
const char *code_time_phase_name(size_t phase);
// The phase at a position of the display order, which is the order of phases in an iteration.
size_t code_time_phase_in_order(size_t place); // place < N_CODE_PHASES
// Appends the classes with 5 % or more, the largest first: "matrix kernels 62 %, interpreter 20 %".
struct text;
void code_time_append_classes(struct text *t, const struct code_group_samples *samples);
