// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The thread that writes a ring, as the recorder sees it. In a container it has other numbers.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/job/identity.h"
#include "record/job/ring.h"

struct ring_writer {
	pid_t pid; // in the recorder's pid namespace; 0: not known
	pid_t tid; // 0: not known
};

// The writer of a ring whose process is known.
struct ring_writer ring_writer_of(
	int root_fd, const struct ring_owner *owner, const struct identity *process);

// Whether the thread, or where that is not known its process, can still mark: it is there, and no
// zombie. True where that cannot be known.
bool ring_writer_lives(int root_fd, const struct ring_writer *writer);
