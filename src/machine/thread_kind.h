// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The purpose of a thread of a training process, from its name (comm), the system call in which it
// waits, and the library whose variable or code the call uses. A thread inherits the name of its
// creator, so most thread teams have no name of their own.

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
	THREAD_UNNAMED, // no evidence yet
	THREAD_OTHER, // known to be none of these
	N_THREAD_KINDS,
};

// Classifies a name without newline; THREAD_UNNAMED if it is not known.
enum thread_kind thread_kind_of_name(struct cursor name);
// Classifies the path of a mapped file that has the variable at which a thread waits, or the code
// that waits.
enum thread_kind thread_kind_of_object(struct cursor path);

// The mappings of a process that identify the purpose of threads.
struct thread_ranges {
	struct thread_range {
		uint64_t from, to;
		enum thread_kind kind;
	} items[96];
	size_t n;
	bool python; // it runs Python's interpreter
};
// Reads /proc/PID/maps and keeps the files that thread_kind_of_object() knows, each with the memory
// that follows without a gap (.bss).
void thread_ranges_read(struct cursor maps, struct thread_ranges *ret);
// Classifies a line of /proc/PID/task/TID/syscall. THREAD_UNNAMED if the thread is running or waits
// at a variable of no known library. Teams and pools wait only at futexes: in a process with
// Python, a thread that reads, polls or sleeps belongs to the script.
enum thread_kind thread_kind_of_call(struct cursor line, const struct thread_ranges *ranges);
