// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which process a pid is: pids come round, a pid and its start time do not.

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// A process as a file names it: it may have ended, be on another machine, or in another container.
struct process_name {
	int64_t pid;
	uint64_t start_ticks; // since boot, field 22 of /proc/PID/stat
	const char *boot_id; // of the kernel that it runs on; NULL: not known
	const char *pid_namespace; // that its pid is of, as the kernel writes it,
	                           // "pid:[4026531836]"; NULL: this process's
};

enum process_answer {
	PROCESS_CANNOT_TELL, // no descriptor is left, /proc hides it, another machine or namespace
	PROCESS_NO, // it has ended; a process that has its pid is another one
	PROCESS_YES,
};

// Whether a process runs. A zombie does not. ret_pidfd: a pidfd of it where the answer is yes,
// which the caller closes, for process_send; NULL: none is wanted.
enum process_answer process_find(const struct process_name *name, int *ret_pidfd);

// The same of a process of this machine and namespace.
enum process_answer process_is(int64_t pid, uint64_t start_ticks, int *ret_pidfd);

// Sends a signal to the process of a pidfd. 0; -ESRCH: it has ended; -EPERM.
int process_send(int pidfd, int signal_number);

// Sends a signal to a process of this machine and namespace, if it is that one. 0; -ESRCH: it is
// not or has ended; -EPERM; -EAGAIN: cannot tell.
int process_signal(int64_t pid, uint64_t start_ticks, int signal_number);

// The same to a process whose number stays its own, since it is reaped by this process or one of
// its own: by number where there are no pidfds.
int process_signal_child(int64_t pid, uint64_t start_ticks, int signal_number);

// What runs on this machine, as far as /proc shows it to this process.
struct process_entry {
	pid_t pid;
	pid_t parent;
	uint64_t start_ticks;
};

// Sorted by pid, without zombies. *ret is the caller's. -errno: /proc cannot be listed, or a
// process cannot be looked at for want of a descriptor or memory.
int process_list(struct process_entry **ret, size_t *ret_n);
