// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Identifies processes. Pids are reused; a pid and its start time are unique.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// A process named in a file. It may have ended, or be on another machine or in another container.
struct process_name {
	int64_t pid;
	uint64_t start_ticks; // since boot, field 22 of /proc/PID/stat
	const char *boot_id; // of its kernel; NULL: unknown
	const char *pid_namespace; // of its pid, as the kernel writes it: "pid:[4026531836]"; NULL:
	                           // this process's
};

enum process_answer {
	PROCESS_CANNOT_TELL, // no free descriptor, hidden by /proc, or another machine or namespace
	PROCESS_NO, // it has ended; its pid may belong to another process now
	PROCESS_YES,
};

// Whether a process is running. A zombie is not. ret_pidfd: receives a pidfd for process_send if
// the answer is yes, which the caller closes; may be NULL.
enum process_answer process_find(const struct process_name *name, int *ret_pidfd);

// The same for a process of this machine and namespace.
enum process_answer process_is(int64_t pid, uint64_t start_ticks, int *ret_pidfd);

// Sends a signal through a pidfd. Returns 0; -ESRCH: the process has ended; -EPERM.
int process_send(int pidfd, int signal_number);

// Sends a signal to a process of this machine and namespace if pid and start time match. Returns 0;
// -ESRCH: no match, or it has ended; -EPERM; -EAGAIN: cannot tell.
int process_signal(int64_t pid, uint64_t start_ticks, int signal_number);

// The same for a process whose pid cannot be reused yet, because this process or one of its own
// reaps it. Without pidfds it signals by number.
int process_signal_child(int64_t pid, uint64_t start_ticks, int signal_number);

// Processes on this machine, as far as /proc shows them to this process.
struct process_entry {
	pid_t pid;
	pid_t parent;
	uint64_t start_ticks;
};

// Lists processes without zombies, sorted by pid. The caller frees *ret. Returns -errno if /proc
// cannot be listed, or if a process cannot be examined for lack of descriptors or memory.
int process_list(struct process_entry **ret, size_t *ret_n);

// Whether no process of this namespace has the pid. Those of other users exist, too.
bool process_is_nobody(int64_t pid);
// Whether this process is in another pid namespace than the machine's first one, so that drivers
// may name processes by other pids than /proc here. True if that is not known.
bool process_namespace_is_nested(int root_fd);
