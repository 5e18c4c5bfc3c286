// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the job was allocated (CPUs, memory, GPUs) against what it used. Allocated is the smallest
// amount that bounds the job: its CPU affinity, the quota and memory limit of its cgroup, the GPUs
// that it may see, and its share of what Slurm gave the job step on this node. If nothing bounds
// it, it is the whole machine.

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct analysis;
struct text;

enum allocated_kind { ALLOCATED_CPUS, ALLOCATED_MEMORY, ALLOCATED_GPUS, N_ALLOCATED };

struct allocated {
	double amount; // CPUs, bytes, GPUs; NAN: not known
	double machine; // the same of the whole machine; NAN: not known
	const char *by; // what bounds it: "CPU affinity", "Slurm", "the whole machine"; static
	const char *why; // why the amount is not known; static, or of the analysis: escape it
	// Used during the recorded time: CPU seconds, byte seconds (mean memory), seconds with a
	// kernel on a GPU; NAN: not known.
	double used;
	const char *why_used; // as `why`
};

struct allocation {
	struct allocated of[N_ALLOCATED];
	double held_s; // duration of the job, also while it was stopped; so far, if it runs
	double recorded_s; // the part of it to which `used` refers
	double ranks; // processes of one job that share this node, each with its own run; at least
	              // 1
	// Name of the first GPU that the job uses, else of one that it may use, else of the
	// machine's first; NULL: none known. Escape it
	const char *gpu;
};

// Needs tables, overview and (for GPUs) everything that analysis_load_brief loads. With
// analysis_load_job, GPUs are not known.
void allocation_find(const struct analysis *a, struct allocation *ret);

// Amount times the time for which it was held: CPU seconds, byte seconds, GPU seconds. NAN: not
// known.
double allocated_held(const struct allocation *a, enum allocated_kind kind);
// The part of it that was not used, of the recorded time, at least 0. NAN: not known; sets
// *ret_why.
double allocated_idle(const struct allocation *a, enum allocated_kind kind, const char **ret_why);

// Number of tasks of node `node` (from 0) in Slurm's list "2(x3),1"; NAN: not a list, or no such
// node.
double allocation_slurm_tasks(const char *list, int64_t node);

// Appends "4 CPUs (its CPU affinity), 25 % used: 12 s of 48 s; 16 GB of memory (the whole machine),
// 1.3 % used; GPUs not known: REASON"; what bounds all of it comes once, at the end. Nothing if
// nothing is known.
void allocation_append(struct text *t, const struct allocation *a);
