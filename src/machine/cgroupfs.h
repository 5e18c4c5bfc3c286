// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The cgroups of a process, the location of their files, and their limits. Supports v2, v1, and
// both mounted beside each other (hybrid).

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/parse.h"

enum cgroup_controller {
	CGROUP_CPU,
	CGROUP_CPUACCT, // part of cpu on v2
	CGROUP_MEMORY,
	CGROUP_IO, // blkio on v1
	CGROUP_CPUSET,
	N_CGROUP_CONTROLLERS,
};

struct cgroup_place {
	int version; // 2 or 1; 0: none on this machine
	char *path; // the directory, under the machine's root without leading slash; owned
	size_t mount_length; // length of the mount point in `path`, where climbing ends
	// version 0: a cgroup exists, but the mount was made outside of our cgroup namespace, so it
	// cannot be found there
	bool hidden;
};

#define CGROUP_HIDDEN_REASON                                                                      \
	"cgroups are mounted here as they are outside of the container, where its own cannot be " \
	"found; a container that mounts its own (/sys/fs/cgroup) would allow it"

struct cgroup_places {
	struct cgroup_place unified; // v2
	struct cgroup_place legacy[N_CGROUP_CONTROLLERS]; // v1
};

// Reads proc/PID/cgroup and proc/self/mountinfo under root_fd; pid is "self" or digits. Returns
// -errno if they cannot be read; a machine without cgroups is no error.
int cgroup_places_find(int root_fd, const char *pid, struct cgroup_places *ret, struct error *e);
// The same from the content of the two files.
void cgroup_places_parse(struct cursor cgroups, struct cursor mounts, struct cgroup_places *ret);
void cgroup_places_done(struct cgroup_places *places);

// Whether any place is hidden; CGROUP_HIDDEN_REASON then says why it was not found.
bool cgroup_places_hidden(const struct cgroup_places *places);

// The hierarchy that accounts the controller: v1 if it is mounted there, else v2. Borrowed.
const struct cgroup_place *cgroup_place_of(
	const struct cgroup_places *places, enum cgroup_controller controller);

// Finds the tightest limit from the directory up to the mount point, and the directory that sets it
// (owned by the caller; ret_directory may be NULL). Returns 0, or -ENOENT if there is no limit.
int cgroupfs_memory_limit(
	int root_fd, const struct cgroup_places *places, uint64_t *ret_bytes, char **ret_directory);
// The same for CPUs (2.5): the CFS quota divided by its period.
int cgroupfs_cpu_quota(
	int root_fd, const struct cgroup_places *places, double *ret_cpus, char **ret_directory);

struct cgroup_limit {
	char *directory; // under the machine's root without leading slash; owned
	double value; // CPUs, bytes
};

// Lists each level with a CPU quota, or a limit of memory, from the directory up to the mount
// point, the innermost first. Returns their number, at most n; further levels are left out.
size_t cgroupfs_cpu_quotas(
	int root_fd, const struct cgroup_places *places, struct cgroup_limit *ret, size_t n);
size_t cgroupfs_memory_limits(
	int root_fd, const struct cgroup_places *places, struct cgroup_limit *ret, size_t n);

// Reads the file path/name of a directory. Buffer and view as in file_read_once.
int cgroupfs_read(int root_fd, const char *directory, const char *name, char *buffer, size_t size,
	struct cursor *ret, struct error *e);

// Whether a list of words (cgroup.controllers) contains the word.
bool cgroupfs_list_has(struct cursor list, const char *word);
