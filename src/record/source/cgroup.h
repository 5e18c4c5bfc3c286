// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The CPU quota of the cgroup of the job's processes, at whichever level it is set: around strain,
// or in a cgroup that the job created after its start.
//
// The cgroup is that of the processes that used the most CPU time. It is searched again 0.2 s after
// the first process appears, then after twice that, and so on, at most every 10 s. A search reads
// one small file for each of the 16 processes that used the most, and two for each level above.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/cgroupfs.h"
#include "machine/file.h"

struct sink;
struct tree;

#define CPU_QUOTA_LEVELS 8 // levels with a quota of their own; further ones are left out

// From cpu.stat; VALUE_MISSING if it lacks them.
struct cpu_quota_counts {
	int64_t periods;
	int64_t throttled;
	int64_t throttled_us; // summed over CPUs
};

struct cpu_quota_level {
	struct cgroup_limit quota;
	struct cpu_quota_counts last; // at the last search
	double share; // of its periods that were throttled since the search before; 0: unknown
};

struct cpu_quota {
	int root_fd;
	struct tree *tree; // borrowed; NULL without a job
	char *base; // this cgroup and those above it are around strain
	char *text; // content of proc/PID/cgroup for `places`
	bool found; // `places` are of a process of the job
	struct cgroup_places places;
	struct cpu_quota_level levels[CPU_QUOTA_LEVELS];
	size_t n_levels; // the innermost first
	char *directory; // of the level that is counted; NULL: no quota applies
	double cpus; // that level's
	bool own; // that level is inside the job, not around strain
	double least_cpus; // quota of the tightest level; NAN: no quota applies
	struct host_file stat; // of that level
	struct cpu_quota_counts offset; // makes the counts of levels continuous
	struct cpu_quota_counts last;
	uint64_t first_ns, next_ns; // 0: no process so far
};

// `places` are of the cgroup of strain, or for a job that ran before us, of the job. Copied; used
// until the job has processes.
void cpu_quota_init(struct cpu_quota *q, int root_fd, struct tree *tree);
// The CPU cgroup of these places, and those above it, are around strain.
void cpu_quota_set_base(struct cpu_quota *q, const struct cgroup_places *places);
void cpu_quota_done(struct cpu_quota *q);

// Searches again if that is due, or if `places` are given (of no process of the job). Returns
// whether it searched. When the applicable level changes, an event "cpu_quota" of the job names it;
// sink NULL: none.
bool cpu_quota_look(struct cpu_quota *q, const struct cgroup_places *places, struct sink *sink,
	int64_t job, uint64_t now_ns);
// Counters of the applicable level. They continue when another level applies. Returns false if no
// quota applies.
bool cpu_quota_read(struct cpu_quota *q, struct cpu_quota_counts *ret);
