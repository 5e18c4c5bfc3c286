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
// The end of the job's output as far as the recorder sees it: for a regular file the end of the
// file, for a pipe or terminal the end of the forwarder's copy.

enum { TAIL_BYTES = 8 * 1024 };

struct tail {
	int file; // its own descriptor; -1: not a regular file
	off_t from; // offset in the file where the job's output begins
	size_t kept; // bytes in `bytes`
	bool cut; // output before them was dropped
	char bytes[TAIL_BYTES];
};

// fd: as in recorder_config.output; -1: none. The caller keeps it.
void tail_open(struct tail *t, int fd);
void tail_close(struct tail *t);
// Appends the end of the output from the beginning of a line, as valid UTF-8 without NUL, secrets
// masked. Reads the file if it is one.
void tail_append(struct tail *t, struct text *ret);

// Listener ----------------------------------------------------------------------------------------

struct listener;
struct feed;

// More than any log prints per second. Reading more would cost more than a recorder may.
enum { LISTENER_BYTES_PER_S = 4 * 1024 * 1024 };

struct listener_second {
	uint64_t since_ns;
	size_t bytes; // received in it
};
// Whether the second has used its share. Starts the next second if this one is over.
bool listener_second_is_full(struct listener_second *second);

// In a pipe's copy: bytes are missing here. The job's own zeros arrive as 1.
#define LISTENER_TORN '\0'

// Output that was not searched for epochs.
struct listener_losses {
	uint64_t skipped_bytes; // of regular files: more arrived than LISTENER_BYTES_PER_S
	uint64_t limited_lines; // on which the pattern took too many steps
};

// fds: as in recorder_config.output; -1: none. The listener closes them. Each match increases
// *epochs. Output from pipes is added to tails[2] of their descriptors, which the listener owns
// until it is stopped. Returns 0, or -errno (an invalid pattern).
int listener_start(const char *pattern, const int fds[2], struct feed *feed, uint64_t start_ns,
	_Atomic unsigned *epochs, struct tail *tails, struct listener **ret, struct error *e);
// Reads the remaining output, ends the thread and frees. Accepts NULL.
struct listener_losses listener_stop(struct listener *l);
