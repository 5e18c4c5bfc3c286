// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A source reads one kind of measurement: processes, pressure, disks, GPUs. To add one, copy
// null.c, fill in its tables and four functions, and name it in list.c.
//
// A source's metrics stand in groups: what is read together, at one rate, about one kind of entity.
// The sampler calls a group's read when it is due and may stretch the interval to keep its budget.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "record/source/sink.h"
#include "trace/metric.h"

struct tree;
struct job_cgroup;
struct phase_log;

// Readings that may block live in lanes (threads) of their own, so that they delay nobody's ticks.
enum lane {
	LANE_TICK, // never blocks: kernel counters
	LANE_MEMORY, // takes the job's mmap lock: smaps_rollup, command lines
	LANE_DEVICE, // asks a driver: NVML
	N_LANES,
};

// What a source may know of the run. Lives as long as the source.
struct source_context {
	int root_fd; // of the machine's root: "/", or a captured tree (--sysroot)
	bool captured; // the tree is a captured one: no clocks, no processes that live
	struct tree *tree; // the job's processes (record/job/tree.h); NULL where there is no job
	const struct job_cgroup *cgroup; // the job's own cgroup (record/job/cgroup.h), or NULL
	int64_t host; // entity ids
	int64_t job; // 0 where there is no job
	int64_t recorder; // 0 where nothing is recorded
	pid_t reaper; // the launcher, who inherits the job's orphans; 0 where nobody does
	uint64_t start_ns; // of the run, CLOCK_MONOTONIC
	uint64_t interval_ns; // --interval: between two ticks
	const _Atomic unsigned
		*epochs; // marks seen so far, from another thread; NULL where none are sought
	bool no_profile; // --no-profile
	struct phase_log *phases; // of training threads (phase_log.h); NULL where no marks are read
};

struct group {
	const char *name; // "cpu", "io"
	enum entity_kind entity_kind;
	const struct metric *metrics; // [n_metrics]
	size_t n_metrics;
	uint64_t
		interval_ns; // at --interval 10ms; 0: every tick. Other intervals stretch it alike.
	// Reads every entity of the group and appends rows to the sink. now_ns is CLOCK_MONOTONIC,
	// the time that rows of this reading carry. 0, or -errno where the group can never be read
	// again (the reason has gone to sink_missing). What fails for one entity or metric is no
	// error: it is VALUE_MISSING in the row, or sink_missing for good.
	int (*read)(void *state, struct sink *sink, uint64_t now_ns);
};

struct source {
	const char *name; // "processes"
	const char *help; // one line for doctor
	enum lane lane;
	const struct group *groups; // [n_groups]
	size_t n_groups;
	// Finds out whether there is anything to read, opens what is kept open, announces its
	// entities. -errno with the reason (and, after "; ", what would make it available) where
	// there is not.
	int (*open)(const struct source_context *context, struct sink *sink, void **ret_state,
		struct error *e);
	void (*close)(void *state); // accepts NULL
	// Hands over what it holds back, when the job and its marks have ended. NULL: nothing.
	void (*end)(void *state, struct sink *sink, uint64_t now_ns);
};

// Every source, in the order of doctor's table; ends with NULL.
extern const struct source *const source_list[];
