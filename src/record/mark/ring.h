// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The reading side of a mark ring (include/strain/marker.h). The job writes it and can put anything
// there at any time, so it is read with pread, never mapped, and all its content is checked.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "machine/tree.h"
#include "strain/marker.h"

struct ring;
struct ring_names;

// The names of all rings. Each name is stored once, and their number is bounded.
int ring_names_new(struct ring_names **ret); // 0 or -ENOMEM
void ring_names_free(struct ring_names *names); // accepts NULL

// The writer of a ring, as it identifies itself.
struct ring_owner {
	uint32_t pid; // in that namespace
	uint32_t tid;
	uint64_t pid_namespace; // 0: unknown
	uint64_t created_ns;
	bool nvtx; // ranges of NVTX
};

struct ring_mark {
	enum strain_mark_kind kind;
	unsigned depth; // at most STRAIN_RING_DEPTH
	const char *name; // printable; lives as long as the names
	uint64_t time_ns; // CLOCK_MONOTONIC; never falls within a ring
	uint64_t began_ns; // of a whole span; not before the run, not after time_ns
	int64_t number;
	int64_t samples; // of an iteration or a span; -1: unknown
	double value; // of a point
	bool gap; // marks before it may have been dropped
};

// Opens a file of the directory. Returns -EINVAL if it is not a regular file of its own. start_ns:
// lower bound of all times in it. Directory and names are borrowed.
int ring_open(int directory_fd, const char *name, uint64_t start_ns, struct ring_names *names,
	struct ring **ret, struct error *e);
void ring_free(struct ring *ring); // accepts NULL

// Returns NULL until the ring has its header.
const struct ring_owner *ring_owner(const struct ring *ring);
uint64_t ring_dropped(const struct ring *ring); // as last read
// Whether its writer could not allocate space for it.
bool ring_has_no_room(const struct ring *ring);

// Passes on up to max marks in order and releases their space to the writer. Returns their number,
// 0 also for a ring without a header yet; -EBADMSG if its content is impossible: the ring must not
// be read again.
int ring_read(struct ring *ring, uint64_t now_ns, size_t max,
	void (*take)(void *context, const struct ring_mark *mark), void *context, struct error *e);

// Ring writer -------------------------------------------------------------------------------------
//
// The thread that writes a ring, as the recorder sees it. Its numbers in a container differ.

struct ring_writer {
	pid_t pid; // in the recorder's pid namespace; 0: unknown
	pid_t tid; // 0: unknown
};

// The writer of a ring whose process is known.
struct ring_writer ring_writer_of(
	int root_fd, const struct ring_owner *owner, const struct identity *process);

// Whether the thread (or its process, if the thread is unknown) exists and is not a zombie, so that
// it can still mark. True if that cannot be determined.
bool ring_writer_lives(int root_fd, const struct ring_writer *writer);
