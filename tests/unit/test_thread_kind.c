// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What threads are for: names, libraries, and the system calls that they wait in.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "machine/thread_kind.h"

static struct cursor text(const char *s)
{
	return cursor_of(s, strlen(s));
}

static void test_names_tell(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum thread_kind kind;
	} rows[] = {
		{"pt_autograd_0\n", THREAD_DEVICE},
		{"pt_data_pin\n", THREAD_PYTHON},
		{"tf_XLAEigen/-123\n", THREAD_POOL},
		{"tf_Compute\n", THREAD_POOL},
		{"cuda-EvtHandlr\n", THREAD_DEVICE},
		{"tbbworker\n", THREAD_POOL},
		{"python3\n", THREAD_UNNAMED}, // what every thread inherits
		{"pt_main_thread\n", THREAD_UNNAMED},
		{"", THREAD_UNNAMED},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		assert_int_equal(thread_kind_of_name(text(rows[i].name)), rows[i].kind);
	}
}

static void test_libraries_tell(void **state)
{
	(void)state;
	assert_int_equal(thread_kind_of_object(text("/x/numpy.libs/libscipy_openblas64_-3.so")),
		THREAD_BLAS);
	assert_int_equal(
		thread_kind_of_object(text("/x/torch/lib/libgomp-a34b3233.so.1")), THREAD_OPENMP);
	assert_int_equal(
		thread_kind_of_object(text("/usr/lib/libpython3.11.so.1.0")), THREAD_PYTHON);
	assert_int_equal(thread_kind_of_object(text("/usr/lib/libc.so.6")), THREAD_UNNAMED);
	assert_int_equal(thread_kind_of_object(text("/libgomp/x.so")), THREAD_UNNAMED);
	assert_int_equal(thread_kind_of_object(text("")), THREAD_UNNAMED);
}

static const char maps[] =
	"55d000000000-55d000100000 r-xp 00000000 08:01 42 /usr/bin/python3.11\n"
	"55d000100000-55d000200000 rw-p 00100000 08:01 42 /usr/bin/python3.11\n"
	"55d000200000-55d000300000 rw-p 00000000 00:00 0\n"
	"55d000400000-55d000500000 rw-p 00000000 00:00 0 [heap]\n"
	"7f0000000000-7f0000100000 r-xp 00000000 08:01 43 /usr/lib/libgomp.so.1.0.0\n"
	"7f0000200000-7f0000300000 rw-p 00000000 08:01 44 /usr/lib/libopenblas.so.0\n"
	"7f0000300000-7f0000400000 rw-p 00000000 00:00 0\n"
	"not a mapping\n"
	"7f0000500000-7f0000600000 r-xp 00000000 08:01 45 /usr/lib/libc.so.6\n";

static enum thread_kind of_call(int64_t number, const char *argument, const char *code)
{
	char line[256];
	struct thread_ranges ranges;
	thread_ranges_read(text(maps), &ranges);
	snprintf(line, sizeof(line), "%lld %s 0x89 0x0 0x0 0x0 0x0 0x7ffd0000 %s\n",
		(long long)number, argument, code);
	return thread_kind_of_call(text(line), &ranges);
}

static void test_calls_tell(void **state)
{
	(void)state;
	const char *libc = "0x7f0000500010", *heap = "0x55d000400010";
	// The interpreter's lock is in its .bss; OpenBLAS's variables likewise.
	assert_int_equal(of_call(SYS_futex, "0x55d000200010", libc), THREAD_PYTHON);
	assert_int_equal(of_call(SYS_futex, "0x7f0000300010", libc), THREAD_BLAS);
	// libgomp waits at memory that it allocated, and calls itself.
	assert_int_equal(of_call(SYS_futex, heap, "0x7f0000000010"), THREAD_OPENMP);
	// A lock on the heap is anybody's.
	assert_int_equal(of_call(SYS_futex, heap, libc), THREAD_UNNAMED);
	// No team sleeps or reads.
	assert_int_equal(of_call(SYS_clock_nanosleep, "0x1", libc), THREAD_PYTHON);
	assert_int_equal(of_call(SYS_read, "0x3", libc), THREAD_PYTHON);
	assert_int_equal(of_call(SYS_sched_yield, "0x0", libc), THREAD_UNNAMED);
}

static void test_what_says_nothing(void **state)
{
	(void)state;
	struct thread_ranges none;
	thread_ranges_read(text(""), &none);
	assert_false(none.python);
	static const char *const lines[] = {"running\n", "", "-1 0x7ffd 0x7f00\n", "202 0x1\n",
		"202 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n"};
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		assert_int_equal(thread_kind_of_call(text(lines[i]), &none), THREAD_UNNAMED);
	}
	// A program without Python: what reads is some other thread.
	assert_int_equal(thread_kind_of_call(text("0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n"), &none),
		THREAD_OTHER);
}

static void test_many_mappings_are_bounded(void **state)
{
	(void)state;
	_cleanup_free_ char *many = calloc(1, 1000 * 96);
	struct thread_ranges ranges;
	size_t length = 0;
	for (unsigned i = 0; i < 1000; i++) {
		length += (size_t)snprintf(many + length, 96,
			"%x000-%x800 rw-p 00000000 08:01 4 /x/libgomp.so\n", 0x1000 + i,
			0x1000 + i);
	}
	thread_ranges_read(cursor_of(many, length), &ranges);
	assert_int_equal(ranges.n, ARRAY_LENGTH(ranges.items));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_tell),
		cmocka_unit_test(test_libraries_tell),
		cmocka_unit_test(test_calls_tell),
		cmocka_unit_test(test_what_says_nothing),
		cmocka_unit_test(test_many_mappings_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
