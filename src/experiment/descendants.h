// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What stands below a process, as /proc has it.

#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DESCENDANTS_DEEPEST UINT_MAX

// Processes that a signal has been sent to.
struct told {
	struct told_process {
		pid_t pid;
		uint64_t start_ticks;
	} * items;
	size_t n;
	size_t capacity;
};


// Sends a signal to what is below `root` from depth `first` (1: children) to depth `last`, but
// `kept` (0: none) and what is below that. told: only to those that are not in it, which they are
// then; NULL: to all. Returns how many got it.
size_t descendants_signal(pid_t root, unsigned first, unsigned last, pid_t kept, int signal_number,
	struct told *told);

// What is below `root`, as above, into pids[most]. Returns how many are there; *ret_mine: to how
// many of them this process may send signals.
size_t descendants_find(pid_t root, pid_t kept, pid_t *pids, size_t most, size_t *ret_mine);
