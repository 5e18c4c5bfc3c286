// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The forwarder: a process that passes on what the job writes to one pipe or terminal, with a copy
// to the recorder.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

// The forwarder's process, from fork to end. control: its end of the pair; once the launcher has
// shut its own it is told when all is through. again: another one was killed in the middle of this.
// Ends with 0 when the job's output, or what takes it, has ended.
_Noreturn void forwarder_run(struct channel *c, int control, bool again);
