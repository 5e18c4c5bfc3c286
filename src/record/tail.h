// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The last of what the job printed, as far as the recorder sees it: of a regular file the end of
// the file, of a pipe or terminal the end of what the forwarder copied.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/text.h"

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
// Bytes that were copied.
void tail_add(struct tail *t, const char *data, size_t length);
// Bytes are missing here: what came before is not the last.
void tail_tear(struct tail *t);
// Appends the last of it as valid UTF-8 without NUL and secrets, from the beginning of a line.
// Reads the file where it is one.
void tail_append(struct tail *t, struct text *ret);
