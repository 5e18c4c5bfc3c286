// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which processes of a trial still run. A file with pids is no evidence: it may be a copy, or made
// by somebody who wants these processes to end. A trial's processes carry a mark in their
// environment, which their children inherit: what carries it, or is below what does, is the
// trial's.

#pragma once

#include <sys/types.h>

#define STILL_RUNNING_VARIABLE "STRAIN_TRIAL"

// Sends a signal (0: none) to the processes that carry the mark and to all that is below them, but
// not to this process, nor those above it, nor `kept` (0: none). Returns how many there are that it
// may signal; one of which it cannot be told whether it still runs counts. -errno: they cannot be
// listed.
ssize_t still_running_signal(const char *mark, pid_t kept, int signal_number);

// The process that records the run at `path` and carries the mark; 0 where there is none.
pid_t still_running_recorder(const char *path, const char *mark);
// Kills it.
void still_running_kill_recorder(const char *path, const char *mark);
