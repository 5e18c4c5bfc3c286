// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Turns the marks of threads into the spans of the run. Used by one thread only.
//
// The job's epochs are those of one thread: the first that marks one, and after its end another.
// Epochs of other threads (all ranks of a node mark them) become spans of kind "user". The samples
// of an epoch are those of all threads' iterations in it: for a thread that also marks epochs, the
// iterations in its epoch of the same number; for others, those whose middle is in the epoch.

#pragma once

#include <stdint.h>

#include "record/mark/ring.h"

struct spans;
struct marked_thread;
struct feed;
struct phase_log;

// Keeps at most max_spans: about 2,000 per second after the first 20,000, and fewer the longer the
// job runs. Whole iterations are dropped; epochs are not limited. Feed and counter are borrowed;
// *epochs is increased for each epoch.
int spans_new(struct feed *feed, uint64_t start_ns, uint64_t max_spans, _Atomic unsigned *epochs,
	struct spans **ret); // 0 or -ENOMEM
// Phases of training threads are also written to the log; borrowed.
void spans_log_phases(struct spans *s, struct phase_log *log);
void spans_free(struct spans *s); // accepts NULL; after its threads
// Number of spans and points dropped.
uint64_t spans_dropped(const struct spans *s);
// Writes the samples added to epochs since the last call.
void spans_settle(struct spans *s);

int marked_thread_new(struct spans *s, uint32_t tid, struct marked_thread **ret);
// Sets the thread's owner: an entity, or 0 and the pid that the thread reports. NVTX ranges become
// spans of kind "user" whatever their names, because the same thread may mark its phases by other
// means.
void marked_thread_owner(
	struct marked_thread *thread, int64_t entity, const struct ring_owner *owner);
// The callback for ring_read; context is the thread.
void marked_thread_take(void *context, const struct ring_mark *mark);
// All marks made before this time (CLOCK_MONOTONIC) have been taken.
void marked_thread_read(struct marked_thread *thread, uint64_t until_ns);
// Returns the thread's entity if it has marked an iteration; else 0.
int64_t marked_thread_trains(const struct marked_thread *thread);
// Closes open spans and frees. Their attribute "end" is `how`: "exit" or "run".
void marked_thread_end(struct marked_thread *thread, uint64_t now_ns, const char *how);
