// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The first process of the job. It is forked early, so that it is in its cgroup before any
// measurement, and runs the command when the recorder is ready. It inherits strain's signals, mask,
// limits, descriptors and environment.

#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct job_cgroup;
struct limits;
struct overlay;
struct signals;

struct child_config {
	char **command; // argv, ends with NULL
	const struct signals *signals;
	const struct job_cgroup *cgroup; // NULL: none
	const struct limits *limits; // the limits that it must set itself
	const struct overlay *overlay; // over which it runs; NULL: none
	const char *markers; // STRAIN_MARKERS of the job; NULL: not set
	const char *nvtx; // the library that receives NVTX ranges; NULL: none
	const char *hooks; // first entry of its PYTHONPATH; NULL: unchanged
	const char *lines; // STRAIN_LINES of the job; NULL: not set
	int output[2]; // replace standard output and error; -1: unchanged
};

struct child {
	pid_t pid;
	int go; // one byte starts the command; closed without a byte, the child ends
	int report; // failures as errno values; end of file once the command runs
};

#define CHILD_NONE ((struct child){.go = -1, .report = -1})

// Returns 0, or the exit status that a shell would give (126, 127) for a command that cannot run,
// with a text. A check only; the result of exec decides.
int child_check(char *const *command, struct error *e);
// Results of the steps before it waits for its start: 0 or -errno each.
struct child_entry {
	int cgroup;
	int limits;
	int overlay;
};
// Forks the child, which enters its cgroup, limits and overlay asynchronously: on v1 the kernel
// needs some milliseconds for that.
int child_start(const struct child_config *config, struct child *ret, struct error *e);
// Waits until it has done so.
void child_wait_entry(struct child *c, struct child_entry *ret);
// Runs the command. Returns 0 once it runs; else the exit status as above, with a text, and the
// child has ended.
int child_go(struct child *c, char *const *command, struct error *e);
// Ends a child that was not started. Accepts one that was never forked.
void child_cancel(struct child *c);
