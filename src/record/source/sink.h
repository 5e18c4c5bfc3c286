// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Where readings go. A sink belongs to one thread; it collects rows in columns and hands them on
// about once a second. Nothing here touches a disk.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/metric.h"

struct sink;
struct stream;
struct group;
struct feed;
struct registry;

// A sink for one lane: readings are numbered by the registry and go to the feed; both outlive it.
// Times become relative to start_ns (CLOCK_MONOTONIC). 0 or -ENOMEM.
int sink_new(struct registry *registry, struct feed *feed, uint64_t start_ns, struct sink **ret);
// Hands every collected row to the feed. The lane calls it about once a second and at its end.
void sink_flush(struct sink *s);
// Flushes nothing. Streams that were not closed are freed. Accepts NULL.
void sink_free(struct sink *s);

struct sink_entity {
	enum entity_kind kind;
	const char *key;
	const char *name;
	int64_t parent; // 0 for none
	uint64_t first_ns; // CLOCK_MONOTONIC
	const char *attributes; // JSON object, or NULL
};

// Announces an entity. Its id is unique in the run. Text is copied.
int64_t sink_entity(struct sink *s, const struct sink_entity *entity);
// Changes name and attributes of an entity that was announced (an exec, a limit that was learnt
// later).
void sink_entity_update(struct sink *s, int64_t id, const struct sink_entity *entity);
// The entity is gone. attributes replaces what was announced unless NULL. Entity still there at the
// end of the run need no call.
void sink_entity_end(struct sink *s, int64_t id, uint64_t last_ns, const char *attributes);

// The rows of one entity and one group. Lives until stream_close or the sink's end. NULL: out of
// memory.
struct stream *sink_stream(struct sink *s, int64_t entity, const struct group *group);
// Appends a row: the group's metrics in order, VALUE_MISSING where one could not be read this time.
// now_ns is CLOCK_MONOTONIC. Accepts NULL.
void stream_row(struct stream *stream, uint64_t now_ns, const int64_t *values);
// No more rows will come; what there is is handed on with the next batch. Accepts NULL.
void stream_close(struct stream *stream);

// The metric cannot be read for this entity (0: for any), and why, as a phrase: "not supported by
// this driver", "io: Permission denied; run as the job's user". Said again, it is not written
// again.
void sink_missing(struct sink *s, int64_t entity, const struct group *group, size_t metric,
	const char *reason);
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
	// Of samples by phase: they are of the whole run, and have no times of their own.
	bool by_phase;
	const char *phase; // NULL: not known
};
void sink_profile(struct sink *s, const struct sink_samples *samples);
