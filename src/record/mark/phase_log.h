// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which phase the training thread of each process was in, for the last seconds: the marks' thread
// writes it, the source of samples asks. The rule is that of run/phases.h: time counts for the
// phase that began last, and within one that stands apart (validation, checkpoint, import) for that
// one; `prepare` counts as data; an iteration's time in no phase is "other".
//
// Bounded: 16 processes, 32,768 changes of one (a second and a half of steps of 0.5 ms), 65,536 of
// all. Times are ns since the run's start. Every call takes the log's lock.

#pragma once

#include <stdbool.h>
#include <stdint.h>

enum logged_phase {
	LOGGED_UNKNOWN = -1,
	LOGGED_NONE, // in none
	LOGGED_OTHER, // of an iteration, in none
	LOGGED_DATA, // and what phase_log_of_name() gives
};

struct phase_log;

int phase_log_new(struct phase_log **ret); // 0 or -ENOMEM
void phase_log_free(struct phase_log *log); // accepts NULL

// The phase that a span of this name is; LOGGED_NONE where it is the author's own, or `prepare`.
int phase_log_of_name(const char *name);
bool phase_log_stands_apart(int phase);
// "data"; "" of LOGGED_NONE, NULL of LOGGED_UNKNOWN.
const char *phase_log_name(int phase);

// What one thread writes. entity: its process; thread: any number that no other thread has. The
// first of a process that iterates is the one whose phases count. All accept a log that is NULL.
struct phase_writer {
	struct phase_log *log;
	int64_t entity; // 0: not known, nothing is kept
	int64_t thread;
};
// From this moment on the thread is in this phase, whose span began then. Times do not fall.
void phase_log_change(const struct phase_writer *w, int64_t at_ns, int64_t began_ns, int phase);
// It was in this phase, but for what began within it.
void phase_log_span(const struct phase_writer *w, int64_t from_ns, int64_t to_ns, int phase);
// An iteration begins or has ended: phases of one that is open can still come.
void phase_log_iteration(const struct phase_writer *w, int64_t at_ns, bool open);
// There was no iteration since then after all.
void phase_log_cancel(const struct phase_writer *w, int64_t since_ns);
// All that the thread marked before is in the log.
void phase_log_read(const struct phase_writer *w, int64_t until_ns);
void phase_log_end(const struct phase_writer *w, int64_t at_ns);

// Whether a thread of the process, or of any (entity 0), has iterated.
bool phase_log_iterates(struct phase_log *log, int64_t entity);
// The phase at a time in the past; LOGGED_UNKNOWN where that is no longer known, or marks were
// lost. Returns false while more can come: ask again later, and at last with `final`.
bool phase_log_at(struct phase_log *log, int64_t entity, int64_t at_ns, int64_t now_ns, bool final,
	int *ret_phase);
