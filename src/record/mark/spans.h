// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// From the marks of threads to the spans of the run. Belongs to one thread.
//
// The job's epochs are those of one thread, the first that marks one; when it has ended, another's.
// What other threads call epochs (the ranks of a node do all mark them) become spans of kind
// "user". The samples of an epoch are those of all threads' iterations that ended in it: of a
// thread that marks epochs too, in its epoch of the same number; else those whose middle lies in
// it.

#pragma once

#include <stdint.h>

#include "record/mark/ring.h"

struct spans;
struct marked_thread;
struct feed;
struct phase_log;

// At most max_spans are kept, and of them no more than about 2,000 a second after the first 20,000,
// and fewer the longer the job lasts: whole iterations; epochs are not counted. Feed and counter
// are borrowed; each epoch is added to *epochs.
int spans_new(struct feed *feed, uint64_t start_ns, uint64_t max_spans, _Atomic unsigned *epochs,
	struct spans **ret); // 0 or -ENOMEM
// Phases of training threads go there, too; borrowed.
void spans_log_phases(struct spans *s, struct phase_log *log);
void spans_free(struct spans *s); // accepts NULL; after its threads
// Spans and points that were not kept.
uint64_t spans_dropped(const struct spans *s);
// Writes down the samples that came to epochs since the last call.
void spans_settle(struct spans *s);

int marked_thread_new(struct spans *s, uint32_t tid, struct marked_thread **ret);
// Whose thread it is: an entity, or 0 and the pid that it says itself. Ranges of NVTX are spans of
// kind "user" whatever their names: the same thread can have marked its phases otherwise.
void marked_thread_owner(
	struct marked_thread *thread, int64_t entity, const struct ring_owner *owner);
// For ring_read; context is the thread.
void marked_thread_take(void *context, const struct ring_mark *mark);
// All that it marked before this moment (CLOCK_MONOTONIC) was taken.
void marked_thread_read(struct marked_thread *thread, uint64_t until_ns);
// The process that iterates: the thread's entity once it has marked an iteration; else 0.
int64_t marked_thread_trains(const struct marked_thread *thread);
// Closes what is open and frees. Attribute "end" of those spans says how: "exit" or "run".
void marked_thread_end(struct marked_thread *thread, uint64_t now_ns, const char *how);
