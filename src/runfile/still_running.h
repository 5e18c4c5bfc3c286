// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Finds the processes of a trial that still run. A file with pids is no evidence: it may be a copy,
// or made by somebody who wants these processes to end. A trial's processes carry a mark in their
// environment, which their children inherit: a process belongs to the trial if it or one of its
// ancestors carries the mark.

#pragma once

#include <sys/types.h>

#define STILL_RUNNING_VARIABLE "STRAIN_TRIAL"

// Sends a signal (0: none) to the processes that carry the mark and to their descendants, except
// this process, its ancestors, and `kept` (0: none). Returns the number of processes that it may
// signal, including those that may or may not still run. Returns -errno if they cannot be listed.
ssize_t still_running_signal(const char *mark, pid_t kept, int signal_number);

// Returns the process that records the run at `path` and carries the mark; 0 if there is none.
pid_t still_running_recorder(const char *path, const char *mark);
// Kills that process.
void still_running_kill_recorder(const char *path, const char *mark);
