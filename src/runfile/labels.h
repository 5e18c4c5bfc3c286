// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Labels of a run: the job, the rank and the number of ranks according to launchers' variables.
// Only this module lists those variables.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_label {
	char *name; // escape both if they are from a file
	char *value;
};

// The value of a label, or NULL.
const char *labels_find(const struct run_label *labels, size_t n, const char *name);

// Variables of launchers and batch systems that `strain run` records as labels; ends with NULL.
extern const char *const labels_of_launchers[];

// Those of them that have the rank, the more certain first: a batch script of Slurm has
// SLURM_PROCID, too; ends with NULL.
extern const char *const labels_of_rank[];

// Whether a label was set by a launcher, and differs between ranks or runs that do the same.
bool labels_is_of_launcher(const char *name);

// The job that a run belongs to: what its launcher calls it, or --job. *ret_label: the name of the
// label that says so. Returns NULL if nothing does, or out of memory; owned by the caller.
char *labels_job(const struct run_label *labels, size_t n, const char **ret_label);

// The rank that a run recorded; -1: unknown.
int labels_rank(const struct run_label *labels, size_t n);

// The number of ranks of the job; 0: unknown.
int64_t labels_world(const struct run_label *labels, size_t n);
