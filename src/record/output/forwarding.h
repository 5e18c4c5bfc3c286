// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// --epoch-pattern reads the job's output, and puts something in its way only where it must: a file
// is opened a second time; before a pipe stands a pipe, before a terminal a raw terminal that is
// nobody's controlling one, with a process of ours, a forwarder, that passes on what comes. It
// outlives the launcher; the launcher keeps what another one would need, should it be killed; and
// the recorder's copy is dropped rather than the job ever waiting for it.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

// Forwarder ---------------------------------------------------------------------------------------
//
// The forwarder: a process that passes on what the job writes to one pipe or terminal, with a copy
// to the recorder.

enum channel_kind {
	CHANNEL_NONE, // closed, or not readable: nothing is seen of it
	CHANNEL_FILE,
	CHANNEL_PIPE,
	CHANNEL_TERMINAL,
};

enum { FORWARDER_BYTES = 64 * 1024 }; // what a forwarder has in hand at most

// One object that the job writes to: standard output, standard error, or both.
struct channel {
	enum channel_kind kind;
	int output; // the object; -1 where nothing is between
	int input; // what the forwarder reads: a pipe, or the master of a terminal
	int job; // what the job writes to
	int copy_in; // the recorder's copy, written by the forwarder
	int copy; // read by the recorder
	int control; // the launcher's end; a byte comes when all was passed on
	pid_t pid; // of the forwarder; 0: none
	bool through; // that byte came
	unsigned deaths; // forwarders that were killed, or could not be started
	uint64_t due_ns; // when another is to be started, CLOCK_MONOTONIC; 0: none is due
	volatile uint64_t *dropped; // bytes that the copy lacks; shared memory
};

#define CHANNEL_CLOSED                                                                         \
	{                                                                                      \
		.output = -1, .input = -1, .job = -1, .copy_in = -1, .copy = -1, .control = -1 \
	}

// Forwarding --------------------------------------------------------------------------------------

struct forwarding {
	struct channel channels[2];
	int of[2]; // which channel standard output and error use; -1 for none
	bool finishing; // the job has ended
};

#define FORWARDING_NONE \
	((struct forwarding){.channels = {CHANNEL_CLOSED, CHANNEL_CLOSED}, .of = {-1, -1}})

// Looks at standard output and error and makes their channels; no process yet. A stream that cannot
// be read is left as it is; *e says why and the answer is -errno; the others still work.
int forwarding_open(struct forwarding *f, struct error *e);
// Only of streams that are regular files, which are read where they are: nothing is put in between.
void forwarding_open_files(struct forwarding *f);
// What the job's standard stream 1 or 2 becomes, or -1: as it is.
int forwarding_job(const struct forwarding *f, int stream);
// The recorder's copy of standard stream 1 or 2, or -1.
int forwarding_copy(const struct forwarding *f, int stream);
// Forks a forwarder for each channel that needs one. Where that fails, all is released.
int forwarding_start(struct forwarding *f, struct error *e);
// Closes what belongs to the job and the recorder; what a forwarder needs stays.
void forwarding_let_go(struct forwarding *f);
// Closes all: forwarders end with what they read.
void forwarding_release(struct forwarding *f);

// Whether pid is a forwarder.
bool forwarding_owns(const struct forwarding *f, pid_t pid);
// The launcher reaped a forwarder. One that had passed on everything, or whose reader is gone, has
// its channel closed, so that the job and its reader find out. True where it was killed instead:
// forwarding_tend starts another, which goes on where it was; what it had in hand is lost.
bool forwarding_reaped(struct forwarding *f, pid_t pid, int status);
// Starts the forwarders that are due. Returns in how many ms to call it again; -1: no need.
int forwarding_tend(struct forwarding *f);

// The job has ended: asks the forwarders to pass on what is left.
void forwarding_finish(struct forwarding *f);
// Whether they did. Some forwarder's `control` becomes readable, or it is reaped, before that
// changes.
bool forwarding_is_through(struct forwarding *f);
// Bytes that the recorder's copies lack.
uint64_t forwarding_dropped(const struct forwarding *f);
// How many forwarders were killed.
unsigned forwarding_deaths(const struct forwarding *f);
