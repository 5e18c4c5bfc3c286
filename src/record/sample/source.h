// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A source reads one kind of measurement: processes, pressure, disks, GPUs. To add one, copy
// null.c, fill in its tables and four functions, and name it in list.c.
//
// A source's metrics are in groups: metrics read together, at one rate, about one kind of entity.
// The sampler calls a group's read when it is due and may stretch the interval to keep its budget.

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "runfile/metric.h"

// Sink --------------------------------------------------------------------------------------------
//
// The destination of readings. A sink belongs to one thread. It collects rows in columns and passes
// them on about once a second, without disk access.

struct sink;
struct stream;
struct group;
struct feed;
struct registry;

// A sink for one lane. The registry numbers its readings, and the feed receives them; both must
// outlive it. Times become relative to start_ns (CLOCK_MONOTONIC). Returns 0 or -ENOMEM.
int sink_new(struct registry *registry, struct feed *feed, uint64_t start_ns, struct sink **ret);
// Passes every collected row to the feed. The lane calls it about once a second and at its end.
void sink_flush(struct sink *s);
// Flushes nothing. Frees streams that were not closed. Accepts NULL.
void sink_free(struct sink *s);

struct sink_entity {
	enum entity_kind kind;
	const char *key;
	const char *name;
	int64_t parent; // 0 for none
	uint64_t first_ns; // CLOCK_MONOTONIC
	const char *attributes; // JSON object, or NULL
	bool own; // other recorders of the machine may mean another entity, or read it otherwise
};

// Announces an entity. Its id is unique in the run. Text is copied.
int64_t sink_entity(struct sink *s, const struct sink_entity *entity);
// Changes name and attributes of an announced entity (after an exec, or when a limit becomes
// known).
void sink_entity_update(struct sink *s, int64_t id, const struct sink_entity *entity);
// The entity is gone. attributes replaces the announced ones unless NULL. Not needed for entities
// that exist at the end of the run.
void sink_entity_end(struct sink *s, int64_t id, uint64_t last_ns, const char *attributes);

// The rows of one entity and one group. Valid until stream_close or the sink's end. NULL: out of
// memory.
struct stream *sink_stream(struct sink *s, int64_t entity, const struct group *group);
// Appends a row: the group's metrics in order, VALUE_MISSING for those that could not be read this
// time. now_ns is CLOCK_MONOTONIC. Accepts NULL.
void stream_row(struct stream *stream, uint64_t now_ns, const int64_t *values);
// No more rows follow; existing ones are passed on with the next batch. Accepts NULL.
void stream_close(struct stream *stream);

// Rows that a group appends until the end are also collected, for the other recorders of the job
// (node.h). The rows belong to the caller.
struct node_rows;
void sink_collect(struct sink *s, const struct group *group, struct node_rows *rows);
void sink_collect_end(struct sink *s);
// Appends rows that another recorder read, to the streams of the same entities. Nothing is appended
// and false returned if the other did not read one of the streams, or if the group has none yet:
// then this recorder must read. *foreign: the sum of the entities that only the other has, which
// changes if there is a new one.
bool sink_put_rows(
	struct sink *s, const struct group *group, const struct node_rows *rows, uint64_t *foreign);

// The metric cannot be read for this entity (0: any), with the reason as a phrase: "not supported
// by this driver", "io: Permission denied; run as the job's user". Repeated calls write nothing.
void sink_missing(struct sink *s, int64_t entity, const struct group *group, size_t metric,
	const char *reason);
// The same, missing since then.
void sink_missing_since(struct sink *s, int64_t entity, const struct group *group, size_t metric,
	uint64_t since_ns, const char *reason);
// All metrics of a group at once.
void sink_missing_group(
	struct sink *s, int64_t entity, const struct group *group, const char *reason);

// Something happened to the run: "oom_kill", "throttled", "lost", "source_dropped", ...
// (docs/format.md).
void sink_event(struct sink *s, uint64_t now_ns, const char *kind, int64_t entity,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

// Samples of CPU time. An object is a mapped file; its id is the source's.
void sink_profile_object(struct sink *s, int64_t id, const char *path);
struct sink_samples {
	int64_t entity;
	bool leader; // of the process's first thread
	uint64_t from_ns, to_ns; // CLOCK_MONOTONIC
	int64_t object;
	const int64_t *pairs; // [2 n]: address and count, copied
	size_t n;
	// Samples by phase are of the whole run and have no times of their own.
	bool by_phase;
	const char *phase; // NULL: unknown
};
void sink_profile(struct sink *s, const struct sink_samples *samples);

// Source ------------------------------------------------------------------------------------------

struct tree;
struct job_cgroup;
struct phase_log;
struct node;

// Readings that may block are in lanes (threads) of their own, so that they delay no ticks.
enum lane {
	LANE_TICK, // never blocks: kernel counters
	LANE_MEMORY, // takes the job's mmap lock: smaps_rollup, command lines
	LANE_DEVICE, // asks a driver: NVML
	N_LANES,
};

// What a source may use of the run. Outlives the source.
struct source_context {
	int root_fd; // of the machine's root: "/", or a captured tree (--sysroot)
	bool captured; // a captured tree: no clocks, no live processes
	struct tree *tree; // the job's processes (machine/tree.h); NULL without a job
	const struct job_cgroup *cgroup; // the job's own cgroup (machine/cgroup.h), or NULL
	int64_t host; // entity ids
	int64_t job; // 0 without a job
	int64_t recorder; // 0 if nothing is recorded
	pid_t reaper; // the launcher, which inherits the job's orphans; 0: none
	uint64_t start_ns; // of the run, CLOCK_MONOTONIC
	uint64_t interval_ns; // --interval: between two ticks
	const _Atomic unsigned
		*epochs; // marks seen so far, from another thread; NULL where none are sought
	bool no_profile; // --no-profile
	struct phase_log *phases; // of training threads (phase_log.h); NULL if no marks are read
	struct node *node; // what the recorders of the job have in common; NULL: nothing
};

// Whether all recorders of a machine would read the same, so that one can read for them. Counters
// must then be absolute, and a reading must not depend on the one before.
enum sharing {
	SHARED_NOT,
	SHARED,
	SHARED_BUFFER, // and a reading has rows of the time since the one before, kept by the
	               // device
};

struct group {
	const char *name; // "cpu", "io"
	enum entity_kind entity_kind;
	const struct metric *metrics; // [n_metrics]
	size_t n_metrics;
	// 0: at every tick, at the rate of --interval or of pace (sampler.h). An --interval of 1 s
	// or more is a lower bound for the other groups.
	uint64_t interval_ns;
	// Reads every entity of the group and appends rows to the sink. now_ns is CLOCK_MONOTONIC,
	// the time of this reading's rows. Returns 0, or -errno if the group can never be read
	// again (the reason was passed to sink_missing). A failure for one entity or metric is not
	// an error: it is VALUE_MISSING in the row, or sink_missing if permanent.
	int (*read)(void *state, struct sink *sink, uint64_t now_ns);
	enum sharing sharing;
};

struct source {
	const char *name; // "processes"
	const char *help; // one line for doctor
	enum lane lane;
	bool needs_job; // its entities appear with what a job does, not before
	// What it measures, if other sources measure the same on other machines: "GPU". Of these,
	// a source that finds nothing says so only if the machine has nothing for the others, or
	// has a PCI device of its vendor ("10de").
	const char *device, *pci_vendor;
	// Whether the machine has nothing for it at all: then a run says nothing about it, not even
	// that its metrics are missing. NULL: it always has.
	bool (*absent)(int root_fd);
	const struct group *groups; // [n_groups]
	size_t n_groups;
	// Checks whether there is anything to read, opens files to keep open, and announces the
	// entities. Returns -errno with the reason (and, after "; ", the remedy) if there is
	// nothing.
	int (*open)(const struct source_context *context, struct sink *sink, void **ret_state,
		struct error *e);
	void (*close)(void *state); // accepts NULL
	// Writes held-back data after the job and its marks have ended. NULL: nothing to do.
	void (*end)(void *state, struct sink *sink, uint64_t now_ns);
};

// Every source, in the order of doctor's table; ends with NULL.
extern const struct source *const source_list[];

// Registry ----------------------------------------------------------------------------------------
//
// Ids of metrics and entities in this run's file.

struct group;

struct registry_row {
	const struct group *group;
	const char *source; // name; of the first with the same metrics
	uint32_t *ids; // [group->n_metrics], owned
	bool again; // another source's group has the same metrics, and ids
};

// Filled before the lanes start and constant afterwards, except the entities' counter.
struct registry {
	struct registry_row *rows;
	size_t n_rows;
	size_t capacity;
	uint32_t last_id;
	_Atomic int64_t last_entity;
};

// Assigns ids to the metrics of a group; those of one table, which several sources may have, get
// the same. Returns 0 or -ENOMEM.
int registry_add(struct registry *r, const char *source, const struct group *group);
// Returns NULL if the group is unknown.
const struct registry_row *registry_find(const struct registry *r, const struct group *group);
void registry_done(struct registry *r);
