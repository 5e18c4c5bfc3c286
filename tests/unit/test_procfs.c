// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/file.h"
#include "machine/procfs.h"

static struct cursor view(const char *text)
{
	return cursor_of(text, strlen(text));
}

#define STAT_TAIL                                                                      \
	" S 41 42 43 0 -1 4194304 115 7 1 2 250 50 30 20 20 0 3 0 135091 3133440 408 " \
	"18446744073709551615 1 2 3 0 0 0 0 0 0 0 0 0 17 5 0 0 11 0 0 4 5 6 7 8 9 10 256\n"

static void test_stat_of_any_name(void **state)
{
	(void)state;
	static const char *const names[] = {
		"cat", "a) R 1 (b", "", ")", "((", "a b\tc\nd", "\xff\x01", ") Z 1 1 1 0 -1 0 0"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char text[512];
		snprintf(text, sizeof(text), "9884 (%s)%s", names[i], STAT_TAIL);
		struct proc_stat stat;
		assert_int_equal(proc_stat_parse(view(text), &stat), 0);
		assert_string_equal(stat.name, names[i]);
		assert_int_equal(stat.state, 'S');
		assert_int_equal(stat.parent, 41);
		assert_int_equal(stat.group, 42);
		assert_int_equal(stat.session, 43);
		assert_int_equal(stat.flags, 4194304);
		assert_int_equal(stat.minor_faults, 115);
		assert_int_equal(stat.child_minor_faults, 7);
		assert_int_equal(stat.major_faults, 1);
		assert_int_equal(stat.child_major_faults, 2);
		assert_int_equal(stat.user_ticks, 250);
		assert_int_equal(stat.system_ticks, 50);
		assert_int_equal(stat.child_user_ticks, 30);
		assert_int_equal(stat.child_system_ticks, 20);
		assert_int_equal(stat.threads, 3);
		assert_int_equal(stat.start_ticks, 135091);
		assert_int_equal(stat.rss_pages, 408);
		assert_int_equal(stat.cpu, 5);
		assert_int_equal(stat.block_delay_ticks, 11);
		assert_int_equal(stat.exit_code, 256);
	}
}

static void test_stat_of_kernels_with_fewer_fields(void **state)
{
	(void)state;
	struct proc_stat stat;
	const char *short_stat = "1 (init) S 0 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 99 4096 3\n";
	assert_int_equal(proc_stat_parse(view(short_stat), &stat), 0);
	assert_int_equal(stat.start_ticks, 99);
	assert_int_equal(stat.rss_pages, 3);
	assert_true(stat.block_delay_ticks == KEYED_ABSENT);
	assert_true(stat.exit_code == KEYED_ABSENT);
}

static void test_stat_refuses_what_no_kernel_writes(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "1", "1 (a", "1 a) S 0", "1 )a( S 0", "1 (a)",
		"1 (a) S",
		"1 (a) S 0 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0", // ends before the start time
		"1 (a) S x 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 9 1 1",
		"1 (a) S 99999999999 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 9 1 1",
		"1 (a) S 0 1 1 0 -1 0 1 2 3 4 99999999999999999999 6 7 8 20 0 1 0 9 1 1"};
	for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
		struct proc_stat stat = {.state = '?'};
		assert_int_equal(proc_stat_parse(view(bad[i]), &stat), -EBADMSG);
		assert_int_equal(stat.state, '?');
	}
}

static void test_long_names_are_cut(void **state)
{
	(void)state;
	char name[200], text[512];
	memset(name, 'k', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(text, sizeof(text), "2 (%s)%s", name, STAT_TAIL);
	struct proc_stat stat;
	assert_int_equal(proc_stat_parse(view(text), &stat), 0);
	assert_int_equal(strlen(stat.name), sizeof(stat.name) - 1);
}

static void test_statm_and_schedstat(void **state)
{
	(void)state;
	struct proc_statm statm;
	assert_int_equal(proc_statm_parse(view("765 437 408 5 0 123 0\n"), &statm), 0);
	assert_int_equal(statm.size_pages, 765);
	assert_int_equal(statm.resident_pages, 437);
	assert_int_equal(statm.shared_pages, 408);
	assert_int_equal(proc_statm_parse(view("765 437"), &statm), -EBADMSG);
	struct proc_schedstat schedstat;
	assert_int_equal(proc_schedstat_parse(view("12 34 5\n"), &schedstat), 0);
	assert_int_equal(schedstat.run_ns, 12);
	assert_int_equal(schedstat.wait_ns, 34);
	assert_int_equal(proc_schedstat_parse(view(""), &schedstat), -EBADMSG);
}

static void test_io(void **state)
{
	(void)state;
	struct proc_io io;
	assert_int_equal(proc_io_parse(view("rchar: 6976\nwchar: 1\nsyscr: 10\nsyscw: 2\n"
					    "read_bytes: 4096\nwrite_bytes: 0\n"
					    "cancelled_write_bytes: 512\n"),
				 &io),
		0);
	assert_int_equal(io.asked_read_bytes, 6976);
	assert_int_equal(io.read_calls, 10);
	assert_int_equal(io.storage_read_bytes, 4096);
	assert_int_equal(io.storage_write_bytes, 0);
	assert_int_equal(io.cancelled_write_bytes, 512);
	// Without task I/O accounting only the first four are there: the rest is absent, not 0.
	assert_int_equal(proc_io_parse(view("rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 1\n"), &io), 0);
	assert_true(io.storage_read_bytes == KEYED_ABSENT);
	assert_int_equal(proc_io_parse(view("nothing of it"), &io), -EBADMSG);
}

static void test_status(void **state)
{
	(void)state;
	struct proc_status status;
	assert_int_equal(
		proc_status_parse(
			view("Name:\ta\\nThreads:\t7\nUmask:\t0022\nUid:\t1000\t1001\t1001\t1001\n"
			     "NSpid:\t9888\t12\nVmPeak:\t  9000 kB\nVmHWM:\t    1736 kB\nVmRSS:\t  "
			     "  1500 kB\n"
			     "VmSwap:\t       0 kB\nThreads:\t3\nSigIgn:\t0000000000010000\n"
			     "Cpus_allowed:\t13\nCpus_allowed_list:\t0-1,4\n"
			     "voluntary_ctxt_switches:\t4\nnonvoluntary_ctxt_switches:\t5\n"),
			&status),
		0);
	assert_int_equal(status.uid, 1000);
	assert_int_equal(status.pid_in_namespace, 12);
	assert_int_equal(status.peak_virtual_bytes, 9000 * 1024);
	assert_int_equal(status.peak_resident_bytes, 1736 * 1024);
	assert_int_equal(status.swap_bytes, 0);
	assert_true(status.anonymous_bytes == KEYED_ABSENT); // before Linux 4.5
	assert_int_equal(status.threads, 3);
	assert_int_equal(status.ignored_signals, 1 << 16); // SIGCHLD
	assert_int_equal(status.voluntary_switches, 4);
	assert_int_equal(status.involuntary_switches, 5);
	assert_int_equal(status.cpus_allowed, 3);
	assert_int_equal(proc_status_parse(view("Name:\tx\n"), &status), -EBADMSG);
}

static void test_smaps_rollup(void **state)
{
	(void)state;
	struct proc_smaps_rollup smaps;
	assert_int_equal(
		proc_smaps_rollup_parse(
			view("5583ad1cf000-7ffebe5e0000 ---p 00000000 00:00 0     [rollup]\n"
			     "Rss:                1760 kB\nPss:                 349 kB\n"
			     "Pss_Dirty:           112 kB\nPss_Anon:            112 kB\n"
			     "Pss_File:            237 kB\nPss_Shmem:             0 kB\n"
			     "Private_Dirty:       112 kB\nSwap: 8 kB\nSwapPss:  4 kB\n"),
			&smaps),
		0);
	assert_int_equal(smaps.rss_bytes, 1760 * 1024);
	assert_int_equal(smaps.pss_bytes, 349 * 1024);
	assert_int_equal(smaps.pss_shmem_bytes, 0);
	assert_true(smaps.private_clean_bytes == KEYED_ABSENT);
	assert_int_equal(smaps.swap_pss_bytes, 4096);
	assert_int_equal(proc_smaps_rollup_parse(view("Rss: 1 kB\n"), &smaps), -EBADMSG);
}

static void test_loadavg(void **state)
{
	(void)state;
	struct proc_loadavg load;
	assert_int_equal(proc_loadavg_parse(view("0.66 12.05 0.12 2/95 9896\n"), &load), 0);
	assert_int_equal(load.load_hundredths[0], 66);
	assert_int_equal(load.load_hundredths[1], 1205);
	assert_int_equal(load.runnable, 2);
	assert_int_equal(load.threads, 95);
	assert_int_equal(load.last_pid, 9896);
	assert_int_equal(proc_loadavg_parse(view("0.66 0.20 0.12 2/95"), &load), -EBADMSG);
	assert_int_equal(proc_loadavg_parse(view("0.66 0.20 0.12 2 95 1"), &load), -EBADMSG);
}

static void test_environ(void **state)
{
	(void)state;
	static const char text[] = "PATH=/bin\0RANKS=7\0RANK=\0XRANK=4\0LAST=5";
	struct cursor view = cursor_of(text, sizeof(text) - 1);
	assert_string_equal(procfs_environ_value(view, "PATH"), "/bin");
	assert_string_equal(procfs_environ_value(view, "RANKS"), "7");
	assert_string_equal(procfs_environ_value(view, "RANK"), "");
	assert_null(procfs_environ_value(view, "ANK"));
	assert_null(procfs_environ_value(view, "LAST")); // the text ends within it
	assert_null(procfs_environ_value(cursor_of("", 0), "PATH"));
}

static void test_this_process(void **state)
{
	(void)state;
	struct proc_stat stat;
	assert_int_equal(proc_stat_read(AT_FDCWD, "/proc/self/stat", &stat), 0);
	assert_int_equal(stat.parent, getppid());
	assert_string_equal(stat.name, "test_procfs");
	struct proc_status status;
	assert_int_equal(proc_status_read(AT_FDCWD, "/proc/self/status", &status), 0);
	assert_int_equal(status.uid, getuid());
	assert_int_equal(status.pid_in_namespace, getpid());
	assert_true(status.peak_resident_bytes > 0);
	assert_true(status.peak_virtual_bytes > status.peak_resident_bytes);
	assert_int_equal(proc_stat_read(AT_FDCWD, "/proc/0/stat", &stat), -ENOENT);
	assert_int_equal(proc_status_read(AT_FDCWD, "/proc/self/statm", &status), -EBADMSG);
}

// MemTotal is the first line of meminfo.
static void test_memory_of_this_machine(void **state)
{
	(void)state;
	_cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int empty = open("/proc/self/task", O_PATH | O_DIRECTORY | O_CLOEXEC);
	uint64_t total = 0, same = 1, available = 0, none = 7;
	assert_int_equal(procfs_meminfo(AT_FDCWD, "MemTotal", &total), 0);
	assert_int_equal(procfs_meminfo(root, "MemTotal", &same), 0);
	assert_int_equal(total, same);
	assert_int_equal(total % 1024, 0);
	assert_int_equal(procfs_meminfo(AT_FDCWD, "MemAvailable", &available), 0);
	assert_true(available > 0 && available < total);
	assert_int_equal(procfs_meminfo(AT_FDCWD, "MemTotals", &none), -ENODATA);
	assert_int_equal(procfs_meminfo(empty, "MemTotal", &none), -ENOENT);
	assert_int_equal(none, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat_of_any_name),
		cmocka_unit_test(test_stat_of_kernels_with_fewer_fields),
		cmocka_unit_test(test_stat_refuses_what_no_kernel_writes),
		cmocka_unit_test(test_long_names_are_cut),
		cmocka_unit_test(test_statm_and_schedstat),
		cmocka_unit_test(test_io),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_smaps_rollup),
		cmocka_unit_test(test_loadavg),
		cmocka_unit_test(test_environ),
		cmocka_unit_test(test_this_process),
		cmocka_unit_test(test_memory_of_this_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
