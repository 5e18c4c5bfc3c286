// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a thread does while it does not run, from /proc/PID/syscall (the system call that it is in,
// and its arguments) and, where that may not be read, from /proc/PID/wchan (the function of the
// kernel that it sleeps in). Both are files of proc(5). The first needs ptrace access (attach), the
// second only that to read: Yama's ptrace_scope 1 forbids the first to all but ancestors.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/parse.h"

enum doing {
	DOING_RUNS, // on a CPU, or ready
	DOING_STORAGE,
	DOING_FSYNC,
	DOING_NETWORK,
	DOING_PIPE, // also a socket within the machine
	DOING_LOCK, // between processes
	DOING_GIL, // the lock of Python's interpreter
	DOING_SLEEP,
	DOING_CHILD,
	DOING_OTHER, // threads of its own process among them
	N_DOINGS,
};

struct doing_call {
	bool runs;
	int64_t number; // of the system call; -1: it is in none (a page fault)
	uint64_t arguments[6];
};

// Parses a line of /proc/PID/syscall. False where it is none.
bool doing_parse_call(struct cursor text, struct doing_call *ret);

// How a call says what it waits for.
enum doing_clue {
	CLUE_KIND, // it always waits for the same
	CLUE_FD, // its argument is a descriptor
	CLUE_POLL, // an array of struct pollfd in the process's memory
	CLUE_FUTEX, // an address in the process's memory
};

struct doing_rule {
	int64_t number;
	enum doing_clue clue;
	enum doing kind; // where the clue says nothing else
	unsigned argument; // the descriptor, or the array, or the number of descriptors
};

// NULL: the call is none that is known to wait.
const struct doing_rule *doing_rule_of(const struct doing_call *call);
// Poll and select of no descriptor are a sleep.
bool doing_polls_nothing(const struct doing_rule *rule, const struct doing_call *call);

// What a futex call waits for: a word that other processes share is a lock between processes; one
// in [gil_from, gil_to), with a time limit, is Python's lock, whose waits end every few
// milliseconds and begin again (sys.setswitchinterval); the rest are threads of its own process.
enum doing doing_of_futex(const struct doing_call *call, uint64_t gil_from, uint64_t gil_to);
// Of the target of /proc/PID/fd/N: "socket:[1]" is DOING_NETWORK, "pipe:[1]" DOING_PIPE, a file's
// path DOING_STORAGE.
enum doing doing_of_descriptor(const char *target);
// Of a name in wchan; DOING_OTHER where it says nothing, DOING_RUNS for "0".
enum doing doing_of_wchan(struct cursor name);

// Where the variables of Python's interpreter are, from /proc/PID/maps: the mappings of the program
// or of libpython, with the memory that follows without a gap (.bss). False where there are none.
bool doing_find_interpreter(struct cursor maps, uint64_t *ret_from, uint64_t *ret_to);
