// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a trial leaves running. Its orphans become children of this process, beside those that this
// process was given by what it was before (`tee & exec strain sweep`), which are nobody's to end.

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct child_identity {
	pid_t pid;
	uint64_t start_ticks;
};

struct children {
	struct child_identity *items;
	size_t n;
	size_t capacity;
};

// The children that are there now. 0 or -ENOMEM.
int children_list(struct children *ret, struct error *e);
void children_done(struct children *c);

// Sends SIGKILL to the children but those of `kept`; returns how many that were. For process 1,
// which is given every orphan of its container, only to those of the trial's process group.
size_t children_kill(const struct children *kept, pid_t group);
// Sends SIGKILL to everything below a process but `kept` (0: none) and what is below that.
void descendants_kill(pid_t root, pid_t kept);
