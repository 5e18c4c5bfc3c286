// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Samples of where a thread's CPU time goes: perf_event_open(2), the kernel's software clock of CPU
// time, 49 times a second of it. User addresses alone need perf_event_paranoid of at most 2 and the
// same user; the kernel's, too, where that is allowed. Containers' seccomp profiles may forbid the
// call.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PERF_HZ 49 // not a divisor of what others do periodically

struct perf_event {
	int fd; // -1: closed
	void *ring;
	size_t pages; // of data
};

#define PERF_CLOSED ((struct perf_event){.fd = -1})

struct perf_sample {
	uint64_t address;
	uint64_t time_ns; // CLOCK_MONOTONIC; 0: not known
	bool kernel; // it was in the kernel; the address says nothing
};

// Begins to sample a thread, with a ring of that many pages, a power of two. 0, or -errno: -EACCES,
// -EPERM (not allowed), -ENOSYS, -ESRCH (gone), -EMFILE, -ENOMEM (no memory may be locked any
// more).
int perf_open(struct perf_event *event, pid_t thread, size_t pages);
void perf_close(struct perf_event *event);
struct perf_counts {
	uint64_t lost; // records that the kernel dropped
	uint64_t children; // processes that the thread started: forks and the like, no threads
};

// Takes up to `most` samples, oldest first; *counts grows by what was met beside them. Never
// blocks.
size_t perf_take(struct perf_event *event, struct perf_sample *samples, size_t most,
	struct perf_counts *counts);
