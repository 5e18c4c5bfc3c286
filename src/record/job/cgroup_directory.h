// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Making, filling and removing directories of cgroups. Paths are under the machine's root without
// leading slash.

#pragma once

#include "base/error.h"

#define CGROUP_NAME_PREFIX "strain-"
#define CGROUP_LEAF_SUFFIX ".self"

// directory/name, owned by the caller; NULL: out of memory.
char *cgroup_directory_join(const char *directory, const char *name);
// Makes parent/strain-PID; *ret is its path. Refuses a parent that this process is not in. Removes
// those that a killed launcher left there. The text of an error names the directory.
int cgroup_directory_make(int root_fd, const char *parent, char **ret, struct error *e);
// Removes the children of the directory that a killed launcher left there, where nothing runs in
// them any more.
void cgroup_directory_sweep(int root_fd, const char *parent);
// Moves a process ("0": the calling one) into it. Nothing but system calls. 0 or -errno.
int cgroup_directory_move(const char *directory, const char *pid);
// Moves the calling process, which has one thread, into it: on v1 without the wait of the above.
// Nothing but system calls. 0 or -errno.
int cgroup_directory_enter_alone(const char *directory);
// Moves this process, its children and the sweep that started it (STRAIN_SWEEP_PID, where that is
// its parent, or its parent's, which moves then too) from the directory into the leaf: all that it
// takes to empty a cgroup that a sweep was started in. -EBUSY, and nobody has moved, where somebody
// else is there too.
int cgroup_directory_step_aside(int root_fd, const char *directory, const char *leaf);
// Removes it; what runs in it goes on in the one above. 0 (also where it is gone already), or
// -errno: -EBUSY where it has children of its own that are in use.
int cgroup_directory_remove(const char *directory);
// Writes a line to one of the directory's files. 0 or -errno.
int cgroup_directory_write(int root_fd, const char *directory, const char *name, const char *line);
