// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Samples of the code in which a thread spends its CPU time: perf_event_open(2) with the kernel's
// software CPU clock, 49 times per second of CPU time. User addresses need the same user and
// perf_event_paranoid of at most 2; kernel addresses are included if permitted. Seccomp profiles of
// containers may forbid the call.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PERF_HZ 49 // does not divide the rates of common periodic work

struct perf_event {
	int fd; // -1: closed
	void *ring;
	size_t pages; // of data
};

#define PERF_CLOSED ((struct perf_event){.fd = -1})

struct perf_sample {
	uint64_t address;
	uint64_t time_ns; // CLOCK_MONOTONIC; 0: not known
	bool kernel; // in the kernel; `address` is meaningless
};

// Starts sampling a thread, with a ring of `pages` pages, a power of two. Returns 0 or -errno:
// -EACCES, -EPERM (not permitted), -ENOSYS, -ESRCH (thread gone), -EMFILE, -ENOMEM (limit of locked
// memory reached).
int perf_open(struct perf_event *event, pid_t thread, size_t pages);
void perf_close(struct perf_event *event);
struct perf_counts {
	uint64_t lost; // records that the kernel dropped
	uint64_t children; // processes that the thread started (fork and the like), not threads
};

// Takes up to `most` samples, oldest first, and adds the other records found to *counts. Never
// blocks.
size_t perf_take(struct perf_event *event, struct perf_sample *samples, size_t most,
	struct perf_counts *counts);
