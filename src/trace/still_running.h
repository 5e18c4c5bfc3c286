// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which processes of a recorded job still run, as its run file knows them.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// Sends a signal (0: none) to the processes of the run at `path` that are still there; returns how
// many there are. 0 also where it cannot be read, or is from another machine or boot.
size_t still_running_signal(const char *path, int signal_number);
// The process that records it; 0 where it is gone, or is on another machine.
pid_t still_running_recorder(const char *path);
// Whether that process has this very file open: a copy of a run file knows the same pids.
bool still_running_is_of(const char *path, pid_t recorder);
