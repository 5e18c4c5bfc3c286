// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's own cgroup: a child of the cgroup in which strain was started, if that is writable. v2:
// one directory. v1: one in `memory` and one in `cpuacct`, as far as each can be created.

#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "machine/cgroupfs.h"

struct job_cgroup {
	int version; // 2 or 1
	// Paths under the machine's root without leading slash, owned; NULL if there is none. On v2
	// all are the same directory (NULL for a controller that is not enabled).
	char *cpu; // has cpuacct.usage (v1) or cpu.stat (v2)
	char *memory; // has memory.stat
	char *memory_reason; // v1: why `memory` is NULL; else NULL
	int memory_code; // the same as an errno value
	char *io; // has io.stat (v2); NULL on v1
	char *procs; // has cgroup.procs: lists every process of the job
	// Only if a limit requested them (job_cgroup_add).
	char *cpuset; // has cpuset.cpus
	char *block; // has blkio.throttle.read_bps_device (v1) or io.max (v2)
	// v2: the cgroup into which this process moved, so that the cgroup above could enable
	// controllers for its children, and the words that disable them again ("-memory -io"); NULL
	// if nothing was changed.
	char *leaf;
	char *undo;
};

// Creates the job's cgroup, named strain-PID, below those of this process. Returns -errno with the
// reason and the remedy if none can be created; nothing is then left behind. Also removes empty
// cgroups left by a killed launcher. limits_memory: one in `memory` is needed for a limit, also
// where it has a drawback (below a step of Slurm on v1).
int job_cgroup_create(bool limits_memory, struct job_cgroup *ret, struct error *e);
// Adds a controller that only limits need, CGROUP_CPUSET or CGROUP_IO, and sets `cpuset` or
// `block`. Returns -errno with the reason if it is not available; nothing has then changed.
int job_cgroup_add(
	int root_fd, enum cgroup_controller controller, struct job_cgroup *cgroup, struct error *e);
// Removes CGROUP_CPUSET again, if its files turn out not to be writable.
void job_cgroup_drop_cpuset(struct job_cgroup *cgroup);
// Appends the remedy, if there is one, to the reason why a controller is not available. Returns
// -e->code.
int job_cgroup_add_hint(int root_fd, const struct job_cgroup *cgroup,
	enum cgroup_controller controller, struct error *e);
// Finds the cgroup of a run by its name below those of proc/self in a captured tree. Returns
// -ENOENT if there is none.
int job_cgroup_find(int root_fd, struct job_cgroup *ret);
// Moves the calling process (a single-threaded child between fork and exec) into the cgroup.
// Async-signal-safe. Returns 0 or -errno.
int job_cgroup_enter(const struct job_cgroup *cgroup);
// Removes the cgroup. Remaining processes continue in the parent cgroup, where they would have run
// without strain. Returns -EBUSY if cgroups that the job made inside are still in use.
int job_cgroup_remove(const struct job_cgroup *cgroup);
void job_cgroup_done(struct job_cgroup *cgroup);

// Cgroup directory --------------------------------------------------------------------------------
//
// Creating, filling and removing cgroup directories. Paths are under the machine's root, without
// leading slash.

#define CGROUP_NAME_PREFIX "strain-"
#define CGROUP_LEAF_SUFFIX ".self"

// Returns directory/name, owned by the caller; NULL: out of memory.
char *cgroup_directory_join(const char *directory, const char *name);
// Empties a cgroup in which a sweep was started: moves this process, its children and the sweep
// that started it (STRAIN_SWEEP_PID, if that is its parent or its parent's parent, which then moves
// too) from the directory into the leaf. Returns -EBUSY, and moves nobody, if any other process is
// in the directory.
int cgroup_directory_step_aside(int root_fd, const char *directory, const char *leaf);
// Writes a line to one of the directory's files. Returns 0 or -errno.
int cgroup_directory_write(int root_fd, const char *directory, const char *name, const char *line);
