// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// How a process ended, including processes that are not our children.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// Reads the wait status through a pidfd. Linux 6.15 and later give it to any process once the
// parent has reaped the process. Returns false until then, and on older kernels.
bool exit_status_of(int pidfd, int *ret_status);

// Opens a pidfd if it will give the exit status; returns -1 otherwise.
int exit_status_watch(pid_t pid);

// Describes a wait status as a predicate: "was killed (signal 9)", "ended with status 1".
void exit_status_describe(int status, char *buffer, size_t size);
