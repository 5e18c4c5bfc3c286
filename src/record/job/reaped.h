// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's processes that the launcher has reaped, each with what it had reaped itself: what
// wait4(2) tells of them. One thread adds, another reads.

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct reaped {
	_Atomic uint64_t cpu_ns;
	// The most that one of them ever had resident. A fork begins with what its parent has, and
	// an exec does not forget it: no more than the launcher's own says nothing of the job.
	_Atomic uint64_t peak_bytes;
	_Atomic uint64_t faults; // of pages, of all of them
	_Atomic bool first; // the job's first process is among them, so this is all
};

struct usage {
	uint64_t cpu_ns;
	uint64_t peak_bytes;
	uint64_t faults;
};

static inline void reaped_add(struct reaped *r, const struct usage *usage, bool first)
{
	atomic_fetch_add(&r->cpu_ns, usage->cpu_ns);
	atomic_fetch_add(&r->faults, usage->faults);
	if (usage->peak_bytes > atomic_load(&r->peak_bytes)) {
		atomic_store(&r->peak_bytes, usage->peak_bytes);
	}
	if (first) {
		atomic_store(&r->first, true);
	}
}
