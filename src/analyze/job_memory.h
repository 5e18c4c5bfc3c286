// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The host memory that a job held, over time. No one metric is that: PSS counts each shared page
// once, and is read seldom; the cgroup's anonymous and shared memory is read often, without the
// files that processes have mapped; a sum of resident sizes counts shared pages several times; what
// each process has of its own (no cgroup) leaves out what they share.

#pragma once

#include <stdint.h>

#include "trace/reader.h"

struct job_memory {
	struct series series; // empty: nothing was read
	// "PSS", "anonymous and shared" (the cgroup's), "anonymous" (the processes' own), "sum of
	// resident"; NULL
	const char *kind;
	const char *metric; // its name; NULL
};

// PSS where it was read: at its readings that, and between them the cgroup's memory, or the
// processes' own, with what PSS had beyond it, never above the sum of resident sizes. Else the
// cgroup's, else the processes' own, else the sum. -ENOMEM.
int job_memory_read(struct reader *r, int64_t job, struct job_memory *ret);
void job_memory_done(struct job_memory *m);
