// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The listener: a thread that reads copies of the job's output and finds the lines that mark
// epochs.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

// Tail --------------------------------------------------------------------------------------------
//
// The last of what the job printed, as far as the recorder sees it: of a regular file the end of
// the file, of a pipe or terminal the end of what the forwarder copied.

enum { TAIL_BYTES = 8 * 1024 };

struct tail {
	int file; // a descriptor of its own; -1: of no regular file
	off_t from; // where in the file the job's output begins
	size_t kept; // bytes in `bytes`
	bool cut; // there was more before them
	char bytes[TAIL_BYTES];
};

// fd: as in recorder_config.output; -1 for none. It stays the caller's.
void tail_open(struct tail *t, int fd);
void tail_close(struct tail *t);
// Appends the last of it as valid UTF-8 without NUL and secrets, from the beginning of a line.
// Reads the file where it is one.
void tail_append(struct tail *t, struct text *ret);

// Listener ----------------------------------------------------------------------------------------

struct listener;
struct feed;

// No log says more in a second, and reading what is none would cost more than a recorder may.
enum { LISTENER_BYTES_PER_S = 4 * 1024 * 1024 };

struct listener_second {
	uint64_t since_ns;
	size_t bytes; // that came in it
};
// Whether it has had its share. Where it is over, the next begins.
bool listener_second_is_full(struct listener_second *second);

// In a pipe's copy: bytes are missing here. The job's own zeros come as 1.
#define LISTENER_TORN '\0'

// What was not searched for epochs.
struct listener_losses {
	uint64_t skipped_bytes; // of regular files: more came than LISTENER_BYTES_PER_S
	uint64_t limited_lines; // the pattern took too many steps on them
};

// fds: as in recorder_config.output; -1 for none. The listener closes them. 0, or -errno (a pattern
// that is none).
// Each match is added to *epochs. What comes from pipes is added to tails[2] of their descriptors,
// which are the listener's until it is stopped.
int listener_start(const char *pattern, const int fds[2], struct feed *feed, uint64_t start_ns,
	_Atomic unsigned *epochs, struct tail *tails, struct listener **ret, struct error *e);
// Reads what is there, ends the thread and frees. Accepts NULL.
struct listener_losses listener_stop(struct listener *l);
