// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a thread waits for: lines of /proc/PID/syscall, names in wchan, and Python's mappings.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "machine/doing.h"

static struct cursor text(const char *s)
{
	return cursor_of(s, strlen(s));
}

static void lines_are_parsed(void **state)
{
	(void)state;
	struct doing_call call;
	assert_true(doing_parse_call(text("running\n"), &call));
	assert_true(call.runs);
	assert_true(doing_parse_call(text("-1 0x7ffd0000 0x7f00\n"), &call));
	assert_false(call.runs);
	assert_int_equal(call.number, -1);
	assert_true(doing_parse_call(
		text("230 0x0 0x1 0x7ffd0ea56d60 0x7ffd0ea56da0 0xffffffffffffffff 0x5 0x7ffd "
		     "0x7fe4\n"),
		&call));
	assert_int_equal(call.number, 230);
	assert_int_equal(call.arguments[1], 1);
	assert_true(call.arguments[4] == UINT64_MAX);
	assert_int_equal(call.arguments[5], 5);
}

static void foreign_lines_are_refused(void **state)
{
	static const char *const lines[] = {"", "\n", "abc", "230", "230 0x1 0x2",
		"230 0x11111111111111111 0x0 0x0 0x0 0x0 0x0", "99999999999999999999 0x0",
		"230 0x0 0x0 zz 0x0 0x0 0x0"};
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		struct doing_call call = {.number = 77};
		assert_false(doing_parse_call(text(lines[i]), &call));
		assert_int_equal(call.number, 77); // untouched
	}
}

static void calls_say_what_they_wait_for(void **state)
{
	static const struct {
		int64_t number;
		enum doing_clue clue;
		enum doing kind;
	} examples[] = {
		{SYS_clock_nanosleep, CLUE_KIND, DOING_SLEEP},
		{SYS_wait4, CLUE_KIND, DOING_CHILD},
		{SYS_flock, CLUE_KIND, DOING_LOCK},
		{SYS_fdatasync, CLUE_KIND, DOING_FSYNC},
		{SYS_read, CLUE_FD, DOING_STORAGE},
		{SYS_preadv2, CLUE_FD, DOING_STORAGE}, // Python's os.preadv
		{SYS_sendfile, CLUE_FD, DOING_STORAGE},
		{SYS_recvmmsg, CLUE_FD, DOING_NETWORK},
		{SYS_recvfrom, CLUE_FD, DOING_NETWORK},
		{SYS_ppoll, CLUE_POLL, DOING_PIPE},
		{SYS_futex, CLUE_FUTEX, DOING_OTHER},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(examples); i++) {
		const struct doing_call call = {.number = examples[i].number};
		const struct doing_rule *rule = doing_rule_of(&call);
		assert_non_null(rule);
		assert_int_equal(rule->clue, examples[i].clue);
		assert_int_equal(rule->kind, examples[i].kind);
	}
	assert_null(doing_rule_of(&(struct doing_call){.number = SYS_getpid}));
	assert_null(doing_rule_of(&(struct doing_call){.number = -1}));
	assert_int_equal(doing_of_blocked(text("0"), false), DOING_OTHER); // not DOING_RUNS
	assert_int_equal(doing_of_blocked(text("0"), true), DOING_STORAGE);
	assert_int_equal(doing_of_blocked(text("do_wait"), true), DOING_CHILD);
	struct doing_call poll = {.number = SYS_ppoll, .arguments = {0, 0}};
	assert_true(doing_polls_nothing(doing_rule_of(&poll), &poll)); // a sleep
	poll.arguments[1] = 1;
	assert_false(doing_polls_nothing(doing_rule_of(&poll), &poll));
}

static void futexes_are_locks_of_processes_threads_or_python(void **state)
{
	enum { TIMED = 3 };
	struct doing_call call = {.number = SYS_futex,
		.arguments = {0x1000, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, 0x7ffd}};
	(void)state;
	assert_int_equal(doing_of_futex(&call, 0x1000, 0x2000), DOING_GIL);
	assert_int_equal(doing_of_futex(&call, 0x2000, 0x3000), DOING_OTHER);
	assert_int_equal(doing_of_futex(&call, 0, 0), DOING_OTHER);
	call.arguments[TIMED] = 0; // a lock of the interpreter's that is none of turns
	assert_int_equal(doing_of_futex(&call, 0x1000, 0x2000), DOING_OTHER);
	call.arguments[1] = FUTEX_WAIT_BITSET;
	assert_int_equal(doing_of_futex(&call, 0x1000, 0x2000), DOING_LOCK);
}

static void descriptors_say_what_they_are(void **state)
{
	(void)state;
	assert_int_equal(doing_of_descriptor("socket:[123]"), DOING_NETWORK);
	assert_int_equal(doing_of_descriptor("pipe:[123]"), DOING_PIPE);
	assert_int_equal(doing_of_descriptor("/data/train.bin"), DOING_STORAGE);
	assert_int_equal(doing_of_descriptor("/dev/pts/0"), DOING_OTHER);
	assert_int_equal(doing_of_descriptor("anon_inode:[eventfd]"), DOING_OTHER);
	assert_int_equal(doing_of_descriptor(""), DOING_OTHER);
}

static void functions_of_the_kernel_are_known(void **state)
{
	(void)state;
	assert_int_equal(doing_of_wchan(text("0")), DOING_RUNS);
	assert_int_equal(doing_of_wchan(text("")), DOING_RUNS);
	assert_int_equal(doing_of_wchan(text("hrtimer_nanosleep")), DOING_SLEEP);
	assert_int_equal(doing_of_wchan(text("do_wait")), DOING_CHILD);
	assert_int_equal(doing_of_wchan(text("unix_stream_read_generic")), DOING_PIPE);
	assert_int_equal(doing_of_wchan(text("wait_woken")), DOING_NETWORK);
	assert_int_equal(doing_of_wchan(text("folio_wait_bit_common")), DOING_STORAGE);
	assert_int_equal(doing_of_wchan(text("jbd2_log_wait_commit")), DOING_FSYNC);
	assert_int_equal(doing_of_wchan(text("locks_lock_inode_wait")), DOING_LOCK);
	assert_int_equal(doing_of_wchan(text("futex_wait_queue")), DOING_OTHER);
	assert_int_equal(doing_of_wchan(text("\x1b[31m")), DOING_OTHER);
}

static void python_has_its_variables_behind_its_program(void **state)
{
	static const char program[] =
		"00400000-00420000 r--p 00000000 08:01 42    /usr/bin/python3.11\n"
		"00420000-00700000 r-xp 00020000 08:01 42    /usr/bin/python3.11\n"
		"00a00000-00a80000 rw-p 00600000 08:01 42    /usr/bin/python3.11\n"
		"00a80000-00ac0000 rw-p 00000000 00:00 0 \n"
		"01000000-02000000 rw-p 00000000 00:00 0     [heap]\n"
		"7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n";
	static const char library[] =
		"00400000-00401000 r-xp 00000000 08:01 41    /opt/bin/python3.12\n"
		"00401000-00402000 rw-p 00000000 00:00 0\n"
		"7f0000000000-7f0000100000 r-xp 00000000 08:01 43 /opt/lib/libpython3.12.so.1.0\n"
		"7f0000100000-7f0000200000 rw-p 00100000 08:01 43 /opt/lib/libpython3.12.so.1.0\n"
		"7f0000200000-7f0000210000 rw-p 00000000 00:00 0\n"
		"7f0000210000-7f0000300000 r-xp 00000000 08:01 44 /lib/libm.so.6\n";
	uint64_t from = 1, to = 1;
	(void)state;
	assert_true(doing_find_interpreter(text(program), &from, &to));
	assert_true(from == 0x400000 && to == 0xac0000);
	assert_true(doing_find_interpreter(text(library), &from, &to));
	assert_true(from == 0x7f0000000000 && to == 0x7f0000210000);
	assert_false(doing_find_interpreter(text("garbage\n-\n00-\n"), &from, &to));
	assert_false(doing_find_interpreter(text(""), &from, &to));
	assert_false(doing_find_interpreter(
		text("00400000-00401000 r-xp 00000000 08:01 41    /usr/bin/perl\n"), &from, &to));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_parsed),
		cmocka_unit_test(foreign_lines_are_refused),
		cmocka_unit_test(calls_say_what_they_wait_for),
		cmocka_unit_test(futexes_are_locks_of_processes_threads_or_python),
		cmocka_unit_test(descriptors_say_what_they_are),
		cmocka_unit_test(functions_of_the_kernel_are_known),
		cmocka_unit_test(python_has_its_variables_behind_its_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
