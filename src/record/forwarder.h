// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// --epoch-pattern reads the job's output, and puts something in its way only where it must: a file
// is opened a second time; before a pipe stands a pipe, before a terminal a raw terminal that is
// nobody's controlling one, with a process of ours that passes on what comes. That process outlives
// the launcher, and the recorder's copy is dropped rather than the job ever waiting for it.

#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum channel_kind {
	CHANNEL_NONE, // closed, or not readable: nothing is seen of it
	CHANNEL_FILE,
	CHANNEL_PIPE,
	CHANNEL_TERMINAL,
};

// One object that the job writes to: standard output, standard error, or both.
struct channel {
	enum channel_kind kind;
	int output; // the object; -1 where nothing is between
	int input; // what the forwarder reads: a pipe, or the master of a terminal
	int job; // what the job writes to
	int copy_in; // the recorder's copy, written by the forwarder
	int copy; // read by the recorder
	int control; // the launcher's end; the forwarder's closes when it has passed on all
	pid_t pid; // of the forwarder
	volatile uint64_t *dropped; // bytes that the copy lacks; shared memory
};

struct forwarding {
	struct channel channels[2];
	int of[2]; // which channel standard output and error use; -1 for none
};

#define CHANNEL_CLOSED                                                                         \
	{                                                                                      \
		.output = -1, .input = -1, .job = -1, .copy_in = -1, .copy = -1, .control = -1 \
	}
#define FORWARDING_NONE \
	((struct forwarding){.channels = {CHANNEL_CLOSED, CHANNEL_CLOSED}, .of = {-1, -1}})

// Looks at standard output and error and makes their channels; no process yet. A stream that cannot
// be read is left as it is; *e says why and the answer is -errno; the others still work.
int forwarding_open(struct forwarding *f, struct error *e);
// What the job's standard stream 1 or 2 becomes, or -1: as it is.
int forwarding_job(const struct forwarding *f, int stream);
// The recorder's copy of standard stream 1 or 2, or -1.
int forwarding_copy(const struct forwarding *f, int stream);
// Forks a forwarder for each channel that needs one.
int forwarding_start(struct forwarding *f, struct error *e);
// Closes what belongs to the job, the forwarders and the recorder.
void forwarding_release(struct forwarding *f);
// The job has ended: asks the forwarders to pass on what is left. Their `control` becomes readable
// (its end) when they did.
void forwarding_finish(struct forwarding *f);
uint64_t forwarding_dropped(const struct forwarding *f);
