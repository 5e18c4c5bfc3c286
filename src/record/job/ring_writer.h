// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The thread that writes a ring, as the recorder sees it. In a container it has other numbers.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/job/ring.h"

struct ring_writer {
	pid_t pid; // in the recorder's pid namespace; 0: not known
	pid_t tid; // 0: not known
};

// The inode of the pid namespace that /proc is of; 0 where it cannot be read.
uint64_t ring_own_namespace(int root_fd);

// Who of the n members it is. A namespace that is the recorder's own needs no search. False where
// none is the one (yet).
bool ring_writer_find(int root_fd, const struct ring_owner *owner, uint64_t own_namespace,
	const pid_t *members, size_t n, struct ring_writer *ret);

// Whether the thread can still mark: it is there, and no zombie. True where that cannot be known.
bool ring_writer_lives(int root_fd, const struct ring_writer *writer);
