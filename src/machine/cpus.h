// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Sets of CPUs: the kernel's list format ("0-3,8"), the set that a process may use, and choosing
// CPUs from a set.

#pragma once

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/parse.h"
#include "base/text.h"

enum { CPUS_MAX = 8192 };

struct cpus {
	cpu_set_t words[CPUS_MAX / CPU_SETSIZE];
};

void cpus_add(struct cpus *cpus, unsigned cpu);
unsigned cpus_count(const struct cpus *cpus);
// Returns the first CPU in `cpus` that is not in `among`; -1 if there is none.
int cpus_first_outside(const struct cpus *cpus, const struct cpus *among);
// Parses "0-3,8" with or without a final newline. Returns false if it is not such a list, is empty,
// or exceeds CPUS_MAX.
bool cpus_parse(struct cursor list, struct cpus *ret);
void cpus_append(struct text *t, const struct cpus *cpus);
// The CPUs that this process may use. Returns 0 or -errno.
int cpus_of_self(struct cpus *ret);
// The same of another process; -ESRCH: it is gone.
int cpus_of(pid_t pid, struct cpus *ret);
// Chooses n CPUs of `from`, which must have at least n: on separate cores and in one NUMA node as
// far as possible, by the topology under root_fd.
void cpus_choose(int root_fd, const struct cpus *from, unsigned n, struct cpus *ret);
