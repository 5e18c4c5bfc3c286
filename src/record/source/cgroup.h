// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The CPU quota of the cgroup in which the job's processes are, at whichever level it is set:
// around strain, or in a cgroup that the job made for itself after its start.
//
// The cgroup is the one whose processes used the most CPU time. It is looked for again 0.2 s after
// the first process is there, then after twice that, and so on, at most every 10 s; a look costs
// one small file for each of the 16 processes that used the most, and two for each level above.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/cgroupfs.h"
#include "machine/file.h"

struct sink;
struct tree;

#define CPU_QUOTA_LEVELS 8 // with a quota of their own; more are left out

// As cpu.stat has them; VALUE_MISSING where it has not.
struct cpu_quota_counts {
	int64_t periods;
	int64_t throttled;
	int64_t throttled_us; // summed over CPUs
};

struct cpu_quota_level {
	struct cgroup_quota quota;
	struct cpu_quota_counts last; // when it was looked at
	double share; // of its periods throttled since the look before; 0: not known
};

struct cpu_quota {
	int root_fd;
	struct tree *tree; // borrowed; NULL where there is no job
	char *base; // what is above this or equal is around strain
	char *text; // proc/PID/cgroup that `places` is of
	bool found; // places are of a process of the job
	struct cgroup_places places;
	struct cpu_quota_level levels[CPU_QUOTA_LEVELS];
	size_t n_levels; // the innermost first
	char *directory; // of the level that is counted; NULL: no quota applies
	double cpus; // that level's
	bool own; // that level is not around strain: the job's
	double least_cpus; // of the tightest level; NAN: no quota applies
	struct host_file stat; // of that level
	struct cpu_quota_counts offset; // that the counts of another level go on from the last's
	struct cpu_quota_counts last;
	uint64_t first_ns, next_ns; // 0: no process was there yet
};

// `places` are of the cgroup that strain is in, or, of a job that ran before, the job's (copied
// from; until the job has processes they are looked at).
void cpu_quota_init(struct cpu_quota *q, int root_fd, struct tree *tree);
// What is at or above the CPU cgroup of these places is around strain.
void cpu_quota_set_base(struct cpu_quota *q, const struct cgroup_places *places);
void cpu_quota_done(struct cpu_quota *q);

// Looks again where that is due, or where `places` are given (those of no process of the job).
// Whether it looked. An event "cpu_quota" of the job says which level applies, where that has
// changed; sink NULL: none.
bool cpu_quota_look(struct cpu_quota *q, const struct cgroup_places *places, struct sink *sink,
	int64_t job, uint64_t now_ns);
// Counters of the level that applies; they go on where another level comes to apply. False where
// none does.
bool cpu_quota_read(struct cpu_quota *q, struct cpu_quota_counts *ret);
