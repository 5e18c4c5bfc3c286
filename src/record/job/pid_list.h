// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Lists of pids, as the kernel tells them; and a set of pids, for those that have been looked at.

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pid_list {
	pid_t *pids;
	size_t n;
	size_t capacity;
};

// Every process of a machine: the names in /proc. The list is emptied first; what does not fit into
// memory is left out.
void pid_list_proc(struct pid_list *list, int proc_fd);
// Every process of a cgroup: path is that of its cgroup.procs under the root. Opened anew each
// time, because cgroup v1 goes on showing an open descriptor the list that it saw first. With those
// of the cgroups below it, which a job may make: a `strain run`, a container. A few hundred of them
// at most.
void pid_list_cgroup(struct pid_list *list, int root_fd, const char *path);
void pid_list_done(struct pid_list *list);

// One bit a pid, up to the kernel's limit of 2^22.
struct pid_set {
	uint64_t *words; // NULL while empty
};

void pid_set_add(struct pid_set *set, pid_t pid); // where memory runs out, it is not there
int pid_set_has(const struct pid_set *set, pid_t pid);
void pid_set_clear(struct pid_set *set);
