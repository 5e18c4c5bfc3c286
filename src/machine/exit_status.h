// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// How a process ended, also one that is not our child.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// The wait status behind a pidfd, which Linux 6.15 and later tell to strangers, once the parent has
// reaped the process. False until then, and on older kernels.
bool exit_status_of(int pidfd, int *ret_status);

// Opens a pidfd where that will tell how the process ended; -1 where it will not.
int exit_status_watch(pid_t pid);

// A wait status in words that follow a noun: "was killed (signal 9)", "ended with status 1".
void exit_status_describe(int status, char *buffer, size_t size);
