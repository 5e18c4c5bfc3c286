// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's own cgroup: a child of the one that strain was started in, made where that is writable.
// v2: one directory. v1: one in `memory` and one in `cpuacct`, where each can be made.

#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "machine/cgroupfs.h"

struct job_cgroup {
	int version; // 2 or 1
	// Paths under the machine's root without leading slash, owned; NULL where there is none. On
	// v2 all are the same directory's (a controller that is not enabled is NULL).
	char *cpu; // has cpuacct.usage (v1) or cpu.stat (v2)
	char *memory; // has memory.stat
	char *memory_reason; // v1: why there is none; NULL where there is
	int memory_code; // the same as an errno value
	char *io; // has io.stat (v2); NULL on v1
	char *procs; // has cgroup.procs: lists every process of the job
	// Only where a limit asked for them (job_cgroup_add).
	char *cpuset; // has cpuset.cpus
	char *block; // has blkio.throttle.read_bps_device (v1) or io.max (v2)
	// v2: where this process went, so that the cgroup above could hand controllers down, and
	// which it was made to hand down ("-memory -io"); NULL where nothing was changed.
	char *leaf;
	char *undo;
};

// Makes the job's cgroup under those of this process, named strain-PID. -errno with the reason (and
// what would allow it) where none can be made; then nothing is left behind. Also removes empty ones
// that a killed launcher left there.
int job_cgroup_create(struct job_cgroup *ret, struct error *e);
// Adds a controller that only limits need, CGROUP_CPUSET or CGROUP_IO: `cpuset` or `block` is then
// there. -errno with the reason where it is not to be had; nothing has changed then.
int job_cgroup_add(
	int root_fd, enum cgroup_controller controller, struct job_cgroup *cgroup, struct error *e);
// Takes CGROUP_CPUSET back, where its files then cannot be written.
void job_cgroup_drop_cpuset(struct job_cgroup *cgroup);
// Appends to the reason why a controller is not to be had what would change that, where something
// would. Returns -e->code.
int job_cgroup_add_hint(int root_fd, const struct job_cgroup *cgroup,
	enum cgroup_controller controller, struct error *e);
// The cgroup that a run has made under those of proc/self in a captured tree, found by its name.
// -ENOENT where there is none.
int job_cgroup_find(int root_fd, struct job_cgroup *ret);
// Moves the calling process (a child between fork and exec, which has one thread) into it.
// Async-signal-safe. 0 or -errno.
int job_cgroup_enter(const struct job_cgroup *cgroup);
// Removes it. What still runs in it goes on in the cgroup above, where it would have run without
// us. -EBUSY where the job made cgroups of its own in there that are still in use.
int job_cgroup_remove(const struct job_cgroup *cgroup);
void job_cgroup_done(struct job_cgroup *cgroup);

// Cgroup directory --------------------------------------------------------------------------------
//
// Making, filling and removing directories of cgroups. Paths are under the machine's root without
// leading slash.

#define CGROUP_NAME_PREFIX "strain-"
#define CGROUP_LEAF_SUFFIX ".self"

// directory/name, owned by the caller; NULL: out of memory.
char *cgroup_directory_join(const char *directory, const char *name);
// Moves this process, its children and the sweep that started it (STRAIN_SWEEP_PID, where that is
// its parent, or its parent's, which moves then too) from the directory into the leaf: all that it
// takes to empty a cgroup that a sweep was started in. -EBUSY, and nobody has moved, where somebody
// else is there too.
int cgroup_directory_step_aside(int root_fd, const char *directory, const char *leaf);
// Writes a line to one of the directory's files. 0 or -errno.
int cgroup_directory_write(int root_fd, const char *directory, const char *name, const char *line);
