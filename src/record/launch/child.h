// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The first process of the job. It is created early, so that it is in its cgroup before any
// measurement, and runs the command when the recorder is ready. It inherits strain's signals, mask,
// limits, descriptors and environment.

#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct job_cgroup;
struct limits;
struct signals;

struct child_config {
	char **command; // argv, ends with NULL
	const struct signals *signals;
	const struct job_cgroup *cgroup; // NULL: none
	const struct limits *limits; // those that it has to set itself
	const char *markers; // STRAIN_MARKERS of the job; NULL: it has none
	const char *nvtx; // the library that takes NVTX's ranges; NULL: none
	const char *hooks; // the first of its PYTHONPATH; NULL: that stays as it is
	bool lines; // the hooks look at lines
	int output[2]; // what becomes standard output and error; -1: as it is
};

struct child {
	pid_t pid;
	int go; // one byte starts the command; closed without one, the child ends
	int report; // what failed, as errno values; the end of it once the command runs
};

#define CHILD_NONE ((struct child){.go = -1, .report = -1})

// 0, or the exit status that a shell would give (126, 127) for a command that cannot run, with a
// text. Looks only; what exec says later is the truth.
int child_check(char *const *command, struct error *e);
// What became of it before it waits for its start: 0 or -errno each.
struct child_entry {
	int cgroup;
	int limits;
};
// Forks. The child enters its cgroup and takes its limits meanwhile: on v1 that takes the kernel
// some milliseconds.
int child_start(const struct child_config *config, struct child *ret, struct error *e);
// Waits until it has.
void child_wait_entry(struct child *c, struct child_entry *ret);
// Runs the command. 0 once it runs; else the exit status as above, with a text, and the child is
// gone.
int child_go(struct child *c, char *const *command, struct error *e);
// Ends a child that was not told to go. Accepts one that was not started.
void child_cancel(struct child *c);
