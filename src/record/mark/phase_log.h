// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The phase of the training thread of each process over the last seconds. The marks' thread writes
// it; the sampling source queries it. The rule is that of run/phases.h: time counts for the phase
// that began last, except that a phase that stands apart (validation, checkpoint, import) also gets
// the time of the phases within it; `prepare` counts as data; time of an iteration outside any
// phase is "other".
//
// Bounded: 16 processes, 32,768 changes per process (a second and a half of steps of 0.5 ms),
// 65,536 in total. Times are ns since the run's start. Every call takes the log's lock.

#pragma once

#include <stdbool.h>
#include <stdint.h>

enum logged_phase {
	LOGGED_UNKNOWN = -1,
	LOGGED_NONE, // in no phase and no iteration
	LOGGED_OTHER, // in an iteration, but in no phase
	LOGGED_DATA, // and the other results of phase_log_of_name()
};

struct phase_log;

int phase_log_new(struct phase_log **ret); // 0 or -ENOMEM
void phase_log_free(struct phase_log *log); // accepts NULL

// The phase of a span with this name; LOGGED_NONE for the author's own phases and for `prepare`.
int phase_log_of_name(const char *name);
bool phase_log_stands_apart(int phase);
// "data", ...; "" for LOGGED_NONE, NULL for LOGGED_UNKNOWN.
const char *phase_log_name(int phase);

// What one thread writes. entity: its process; thread: a number unique to the thread. Only the
// phases of the first thread of a process that iterates count. All calls accept a NULL log.
struct phase_writer {
	struct phase_log *log;
	int64_t entity; // 0: unknown, nothing is stored
	int64_t thread;
};
// From this time on the thread is in this phase, whose span began then. Times must not decrease.
void phase_log_change(const struct phase_writer *w, int64_t at_ns, int64_t began_ns, int phase);
// The thread was in this phase, except for phases that began within it.
void phase_log_span(const struct phase_writer *w, int64_t from_ns, int64_t to_ns, int phase);
// An iteration begins or has ended. Phases of an open iteration may still follow.
void phase_log_iteration(const struct phase_writer *w, int64_t at_ns, bool open);
// Withdraws: there was no iteration since then.
void phase_log_cancel(const struct phase_writer *w, int64_t since_ns);
// Every mark that the thread made before this time is in the log.
void phase_log_read(const struct phase_writer *w, int64_t until_ns);
void phase_log_end(const struct phase_writer *w, int64_t at_ns);

// Whether a thread of the process, or of any process (entity 0), has iterated.
bool phase_log_iterates(struct phase_log *log, int64_t entity);
// The phase at a time in the past; LOGGED_UNKNOWN if it is no longer known or marks were lost.
// Returns false while more marks may come: ask again later, finally with `final`.
bool phase_log_at(struct phase_log *log, int64_t entity, int64_t at_ns, int64_t now_ns, bool final,
	int *ret_phase);
