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

// Samples of a role or of a phase, with its name: "training thread", "workers"; "data", "outside
// iterations".
struct code_bar {
	const char *name;
	const struct code_group_samples *group; // has samples
	double share; // of those of all roles, or of all phases
};
#define CODE_BARS_MAX N_CODE_PHASES
// Those with samples; phases in their order in an iteration. Return their number.
size_t code_time_role_bars(const struct code_time *t, struct code_bar ret[CODE_BARS_MAX]);
size_t code_time_phase_bars(const struct code_time *t, struct code_bar ret[CODE_BARS_MAX]);
// Appends the classes with 5 % or more, the largest first: "matrix kernels 62 %, interpreter 20 %".
struct text;
void code_time_append_classes(struct text *t, const struct code_group_samples *samples);
