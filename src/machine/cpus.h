// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Sets of CPUs: as the kernel writes them ("0-3,8"), as a process may use them, and which to take
// of them.

#pragma once

#include <sched.h>
#include <stdbool.h>

#include "base/parse.h"
#include "base/text.h"

enum { CPUS_MAX = 8192 };

struct cpus {
	cpu_set_t words[CPUS_MAX / CPU_SETSIZE];
};

void cpus_add(struct cpus *cpus, unsigned cpu);
unsigned cpus_count(const struct cpus *cpus);
// The first that is in `cpus` and not in `among`; -1 where all are.
int cpus_first_outside(const struct cpus *cpus, const struct cpus *among);
// "0-3,8", a newline at the end or not. False where it is no such list, empty, or beyond CPUS_MAX.
bool cpus_parse(struct cursor list, struct cpus *ret);
void cpus_append(struct text *t, const struct cpus *cpus);
// Those that this process may use. 0 or -errno.
int cpus_of_self(struct cpus *ret);
// Takes n of `from`, which has as many: on cores of their own, in one NUMA node, as far as there
// are such, by what the machine under root_fd says of itself.
void cpus_choose(int root_fd, const struct cpus *from, unsigned n, struct cpus *ret);
