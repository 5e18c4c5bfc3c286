// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// --epoch-pattern reads the job's output, and interposes only where necessary. A file is opened a
// second time. A pipe is put before a pipe, and a raw, non-controlling terminal before a terminal;
// a forwarder process copies the data on. The forwarder outlives the launcher. If it is killed, the
// launcher has kept all that another one needs. The recorder's copy is dropped rather than letting
// the job wait.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

// Forwarder ---------------------------------------------------------------------------------------
//
// The forwarder: a process that forwards the job's output to one pipe or terminal, and copies it to
// the recorder.

enum channel_kind {
	CHANNEL_NONE, // closed or not readable: not observed
	CHANNEL_FILE,
	CHANNEL_PIPE,
	CHANNEL_TERMINAL,
};

enum { FORWARDER_BYTES = 64 * 1024 }; // upper bound of the data that a forwarder holds

// One file, pipe or terminal to which the job writes: standard output, standard error, or both.
struct channel {
	enum channel_kind kind;
	int output; // the destination; -1: nothing is interposed
	int input; // what the forwarder reads: a pipe, or the master of a terminal
	int job; // what the job writes to
	int copy_in; // the recorder's copy, written by the forwarder
	int copy; // read by the recorder
	int control; // the launcher's end; receives a byte when everything was forwarded
	pid_t pid; // of the forwarder; 0: none
	bool through; // that byte was received
	unsigned deaths; // forwarders that were killed, or could not be started
	uint64_t due_ns; // when to start another, CLOCK_MONOTONIC; 0: not scheduled
	volatile uint64_t *dropped; // bytes that the copy lacks; shared memory
};

#define CHANNEL_CLOSED                                                                         \
	{                                                                                      \
		.output = -1, .input = -1, .job = -1, .copy_in = -1, .copy = -1, .control = -1 \
	}

// Forwarding --------------------------------------------------------------------------------------

struct forwarding {
	struct channel channels[2];
	int of[2]; // the channels of standard output and error; -1: none
	bool finishing; // the job has ended
};

#define FORWARDING_NONE \
	((struct forwarding){.channels = {CHANNEL_CLOSED, CHANNEL_CLOSED}, .of = {-1, -1}})

// Examines standard output and error and creates their channels, but no process. A stream that
// cannot be read is left unchanged; *e then has the reason and the result is -errno; other streams
// still work.
int forwarding_open(struct forwarding *f, struct error *e);
// The same for streams that are regular files only, which are read in place: nothing is interposed.
void forwarding_open_files(struct forwarding *f);
// Returns the replacement for the job's standard stream 1 or 2, or -1: unchanged.
int forwarding_job(const struct forwarding *f, int stream);
// The recorder's copy of standard stream 1 or 2, or -1.
int forwarding_copy(const struct forwarding *f, int stream);
// Forks a forwarder for each channel that needs one. On failure everything is released.
int forwarding_start(struct forwarding *f, struct error *e);
// Closes the descriptors of the job and the recorder; keeps those that a forwarder needs.
void forwarding_let_go(struct forwarding *f);
// Closes everything. Forwarders end after forwarding what they have read.
void forwarding_release(struct forwarding *f);

// Whether pid is a forwarder.
bool forwarding_owns(const struct forwarding *f, pid_t pid);
// Handles a forwarder that the launcher reaped. If it had forwarded everything, or its reader is
// gone, its channel is closed, so that the job and its reader notice. Returns true if it was killed
// instead: forwarding_tend starts another, which continues at the same place; the data it held is
// lost.
bool forwarding_reaped(struct forwarding *f, pid_t pid, int status);
// Starts the forwarders that are due. Returns the time in ms until the next call; -1: none needed.
int forwarding_tend(struct forwarding *f);

// The job has ended: tells the forwarders to forward the rest.
void forwarding_finish(struct forwarding *f);
// Whether all of them have finished. Before the result changes, a forwarder's `control` becomes
// readable or the forwarder is reaped.
bool forwarding_is_through(struct forwarding *f);
// Number of bytes missing in the recorder's copies.
uint64_t forwarding_dropped(const struct forwarding *f);
// Number of forwarders killed.
unsigned forwarding_deaths(const struct forwarding *f);
