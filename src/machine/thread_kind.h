// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a thread of a training process is for, by evidence: its name (comm), the system call that it
// waits in, and the library whose variable or code that call uses. Threads inherit the name of the
// one that makes them, so that most teams have no name of their own.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"

enum thread_kind {
	THREAD_MAIN, // the first of its process
	THREAD_OPENMP,
	THREAD_BLAS, // the pool of a BLAS (OpenBLAS, BLIS, MKL's own)
	THREAD_POOL, // the framework's: Eigen, XLA, TBB
	THREAD_DEVICE, // autograd, and threads of a device's driver or communication
	THREAD_PYTHON,
	THREAD_UNNAMED, // nothing tells yet
	THREAD_OTHER, // known to be none of these
	N_THREAD_KINDS,
};

// Of a name, without the newline; THREAD_UNNAMED where it says nothing.
enum thread_kind thread_kind_of_name(struct cursor name);
// Of the path of a mapped file whose variable a thread waits at, or whose code waits.
enum thread_kind thread_kind_of_object(struct cursor path);

// The mappings of a process that say what a thread is for.
struct thread_ranges {
	struct thread_range {
		uint64_t from, to;
		enum thread_kind kind;
	} items[96];
	size_t n;
	bool python; // it runs Python's interpreter
};
// From the text of /proc/PID/maps: files that thread_kind_of_object() knows, each with the memory
// that follows without a gap (.bss).
void thread_ranges_read(struct cursor maps, struct thread_ranges *ret);
// Of a line of /proc/PID/task/TID/syscall. THREAD_UNNAMED where it runs, or waits at a variable of
// nobody known. Teams and pools wait at futexes alone: what reads, polls or sleeps in a process
// with Python is a thread of the script's.
enum thread_kind thread_kind_of_call(struct cursor line, const struct thread_ranges *ranges);
