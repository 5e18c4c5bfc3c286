// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The activity of a thread that is not running, from /proc/PID/syscall (its system call and
// arguments) or, if that is not readable, from /proc/PID/wchan (the kernel function in which it
// sleeps); both in proc(5). The first needs ptrace attach access, the second only ptrace read
// access: Yama's ptrace_scope 1 denies the first to all but ancestors.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/parse.h"

enum doing {
	DOING_RUNS, // on a CPU or runnable
	DOING_STORAGE,
	DOING_FSYNC,
	DOING_NETWORK,
	DOING_PIPE, // also a socket within the machine
	DOING_LOCK, // between processes
	DOING_GIL, // the lock of Python's interpreter
	DOING_SLEEP,
	DOING_CHILD,
	DOING_OTHER, // anything else, such as threads of the same process
	N_DOINGS,
};

struct doing_call {
	bool runs;
	int64_t number; // of the system call; -1: in none (a page fault)
	uint64_t arguments[6];
};

// Parses a line of /proc/PID/syscall. Returns false if it is not such a line.
bool doing_parse_call(struct cursor text, struct doing_call *ret);

// How to find out what a system call waits for.
enum doing_clue {
	CLUE_KIND, // it always waits for the same thing
	CLUE_FD, // its argument is a descriptor
	CLUE_POLL, // an array of struct pollfd in the process's memory
	CLUE_FUTEX, // an address in the process's memory
};

struct doing_rule {
	int64_t number;
	enum doing_clue clue;
	enum doing kind; // if the clue tells nothing else
	unsigned argument; // index of the descriptor, of the array, or of the number of descriptors
};

// Returns NULL for a call that is not known to wait.
const struct doing_rule *doing_rule_of(const struct doing_call *call);
// poll and select without descriptors are a sleep.
bool doing_polls_nothing(const struct doing_rule *rule, const struct doing_call *call);

// What a futex call waits for. A word shared between processes is a lock between processes. A word
// in [gil_from, gil_to) with a time limit is Python's lock, whose waits end and restart every few
// milliseconds (sys.setswitchinterval). All others are threads of the same process.
enum doing doing_of_futex(const struct doing_call *call, uint64_t gil_from, uint64_t gil_to);
// Classifies the target of /proc/PID/fd/N: "socket:[1]" is DOING_NETWORK, "pipe:[1]" DOING_PIPE,
// the path of a file DOING_STORAGE.
enum doing doing_of_descriptor(const char *target);
// Classifies a name in wchan; DOING_OTHER if the name is unknown, DOING_RUNS for "0".
enum doing doing_of_wchan(struct cursor name);
// What a thread that is blocked, but in no call of the rules, waits for. Since Linux 6.12, wchan is
// "0" for short waits. faulted: pages were read from storage since the last look.
enum doing doing_of_blocked(struct cursor wchan, bool faulted);

// Finds the variables of Python's interpreter in /proc/PID/maps: the mappings of the program or of
// libpython, and the memory that follows without a gap (.bss). Returns false if there are none.
bool doing_find_interpreter(struct cursor maps, uint64_t *ret_from, uint64_t *ret_to);
