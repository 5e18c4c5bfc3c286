// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Limits of a job: what options say, which CPUs and cards are taken, and what is written into the
// cgroups of machines that are made up here. On the machine that runs the tests: tests/cli.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/cgroup.h"
#include "record/job/limits.h"
#include "messages.h"

// ---- a machine

struct host {
	char directory[64];
	int root_fd;
	struct job_cgroup cgroup;
	struct error why_none;
	struct limits_place place;
};

static void put(const struct host *h, const char *path, const char *text)
{
	char full[512];
	snprintf(full, sizeof(full), "%s/%s", h->directory, path);
	for (char *slash = full + strlen(h->directory) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(full, 0755);
		*slash = '/';
	}
	_cleanup_fclose_ FILE *f = fopen(full, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

static void expect_file(const struct host *h, const char *path, const char *text)
{
	char full[512], found[512] = "";
	snprintf(full, sizeof(full), "%s/%s", h->directory, path);
	_cleanup_fclose_ FILE *f = fopen(full, "re");
	assert_non_null(f);
	found[fread(found, 1, sizeof(found) - 1, f)] = '\0';
	assert_string_equal(found, text);
}

// A delegated scope of v2, in which the job's cgroup has been made.
static int setup(void **state)
{
	struct host *h = calloc(1, sizeof(*h));
	assert_non_null(h);
	snprintf(h->directory, sizeof(h->directory), "/tmp/strain-test-XXXXXX");
	assert_non_null(mkdtemp(h->directory));
	h->root_fd = open(h->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(h->root_fd >= 0);
	put(h, "proc/meminfo", "MemTotal:       16777216 kB\n");
	put(h, "proc/self/cgroup", "0::/scope\n");
	put(h, "proc/self/mountinfo",
		"30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n");
	put(h, "sys/fs/cgroup/scope/cgroup.controllers", "cpuset cpu io memory pids\n");
	put(h, "sys/fs/cgroup/scope/cgroup.subtree_control", "");
	put(h, "sys/fs/cgroup/scope/memory.max", "8589934592\n");
	put(h, "sys/fs/cgroup/scope/cpu.max", "max 100000\n");
	put(h, "sys/fs/cgroup/scope/strain-7/cgroup.controllers", "cpuset io memory\n");
	put(h, "sys/fs/cgroup/scope/strain-7/memory.max", "max\n");
	put(h, "sys/fs/cgroup/scope/strain-7/memory.swap.max", "max\n");
	put(h, "sys/fs/cgroup/scope/strain-7/cpuset.cpus", "\n");
	put(h, "sys/fs/cgroup/scope/strain-7/io.max", "");
	put(h, "sys/block/nvme0n1/dev", "259:0\n");
	put(h, "sys/block/nvme0n1/size", "1000\n");
	h->cgroup = (struct job_cgroup){.version = 2,
		.procs = strdup("sys/fs/cgroup/scope/strain-7"),
		.memory = strdup("sys/fs/cgroup/scope/strain-7")};
	h->place = (struct limits_place){h->root_fd, &h->cgroup, &h->why_none};
	*state = h;
	return 0;
}

static int teardown(void **state)
{
	struct host *h = *state;
	char command[128];
	job_cgroup_done(&h->cgroup);
	close(h->root_fd);
	snprintf(command, sizeof(command), "rm -r '%s'", h->directory);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): a path of our own
	free(h);
	return 0;
}

// ---- options

static void test_what_options_say(void **state)
{
	(void)state;
	struct limits_wanted w = {0};
	struct error e = {0};
	assert_false(limits_any(&w));
	assert_int_equal(limits_read(&w, LIMIT_CPUS, "2", &e), 0);
	assert_int_equal(w.cpu_count, 2);
	assert_int_equal(limits_read(&w, LIMIT_CPUS, "0-1,4,", &e), 0);
	assert_int_equal(w.cpu_count, 0);
	assert_int_equal(cpus_count(&w.cpus), 3);
	assert_int_equal(limits_read(&w, LIMIT_MEMORY, "4GiB", &e), 0);
	assert_true(w.memory_bytes == UINT64_C(4) << 30);
	assert_int_equal(limits_read(&w, LIMIT_DISK_READ, "100MB/s", &e), 0);
	assert_true(w.read_bytes_per_s == 100000000);
	assert_int_equal(limits_read(&w, LIMIT_DISK_READ, "unlimited", &e), 0);
	assert_true(w.read_bytes_per_s == 0);
	assert_int_equal(limits_read(&w, LIMIT_GPUS, "GPU-89,1", &e), 0);
	assert_string_equal(w.gpu_list, "GPU-89,1");
	assert_int_equal(limits_read(&w, LIMIT_GPUS, "0", &e), 0);
	assert_null(w.gpu_list);
	assert_true(limits_any(&w));
	limits_wanted_done(&w);
}

static void test_nonsense_is_one_line_that_names_the_option(void **state)
{
	(void)state;
	static const struct {
		enum limit limit;
		const char *text, *says;
	} table[] = {
		{LIMIT_CPUS, "0", "--cpus: ... 1 ... 8192 ... '0'"},
		{LIMIT_CPUS, "99999999999999999999",
			"--cpus: ... 1 ... 8192 ... '99999999999999999999'"},
		{LIMIT_CPUS, "-2", "--cpus: ... (2) ... (0-1,4) ... '-2'"},
		{LIMIT_CPUS, "", "--cpus: ... (2) ... (0-1,4) ... ''"},
		{LIMIT_CPUS, "3-1", "--cpus: ... (2) ... (0-1,4) ... '3-1'"},
		{LIMIT_CPUS, "1-8192", "--cpus: ... (2) ... (0-1,4) ... '1-8192'"},
		{LIMIT_CPUS, "1,\n2", "--cpus: ... (2) ... (0-1,4) ... '1,\n2'"},
		{LIMIT_MEMORY, "1023KiB", "--memory: ... 1MiB ... '1023KiB'"},
		{LIMIT_MEMORY, "-1GiB", "--memory: ... 256MiB ... 4G ... 1GB ... '-1GiB'"},
		{LIMIT_MEMORY, "9999999TiB",
			"--memory: ... 256MiB ... 4G ... 1GB ... '9999999TiB'"},
		{LIMIT_DISK_READ, "100MB", "--disk-read: ... 100MB/s ... unlimited ... '100MB'"},
		{LIMIT_DISK_READ, "1B/s", "--disk-read: ... 4KiB/s ... '1B/s'"},
		{LIMIT_GPUS, "129", "--gpus: ... 0 ... 128 ... '129'"},
		{LIMIT_GPUS, "1,,2", "--gpus: ... (1) ... UUID ... (0,2) ... '1,,2'"},
		{LIMIT_GPUS, "GPU-1;x", "--gpus: ... (1) ... UUID ... (0,2) ... 'GPU-1;x'"},
		{LIMIT_GPUS, "1,2,1", "--gpus: ... 1 ... '1,2,1'"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		struct limits_wanted w = {0};
		struct error e = {0};
		assert_true(limits_read(&w, table[i].limit, table[i].text, &e) < 0);
		assert_says(e.text, table[i].says);
		assert_false(limits_any(&w));
	}
}

// ---- CPUs

static void expect_cpus(const struct host *h, const char *allowed, unsigned n, const char *expected)
{
	struct cpus from, chosen;
	_cleanup_text_ struct text list = {0};
	assert_true(cpus_parse(cursor_of(allowed, strlen(allowed)), &from));
	cpus_choose(h->root_fd, &from, n, &chosen);
	cpus_append(&list, &chosen);
	assert_string_equal(list.data, expected);
}

// Two nodes of four cores with two CPUs each: 0-3 and 8-11 on the first, 4-7 and 12-15 on the
// other.
static void put_topology(const struct host *h, const char *name)
{
	put(h, "sys/devices/system/node/online", "0-1\n");
	put(h, "sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
	put(h, "sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
	for (unsigned cpu = 0; cpu < 16; cpu++) {
		char path[96], list[16];
		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/topology/%s", cpu, name);
		snprintf(list, sizeof(list), "%u,%u\n", cpu % 8, cpu % 8 + 8);
		put(h, path, list);
	}
}

static void test_cpus_are_cores_of_one_node(void **state)
{
	const struct host *h = *state;
	put_topology(h, "core_cpus_list");
	expect_cpus(h, "0-15", 1, "0");
	expect_cpus(h, "0-15", 4, "0-3");
	expect_cpus(h, "0-15", 5, "0-4"); // cores before nodes
	expect_cpus(h, "0-15", 8, "0-7");
	expect_cpus(h, "0-15", 10, "0-9");
	expect_cpus(h, "0-15", 16, "0-15");
	expect_cpus(h, "2-7", 3, "4-6"); // the node that has three
	expect_cpus(h, "2-7", 2, "2-3"); // the smallest that has two
	expect_cpus(h, "2,10,5,13", 2, "2,5");
	expect_cpus(h, "8-11,5", 3, "8-10");
}

static void test_cpus_where_an_old_kernel_or_nobody_tells(void **state)
{
	const struct host *h = *state;
	expect_cpus(h, "1,3-9", 3, "1,3-4");
	put_topology(h, "thread_siblings_list");
	expect_cpus(h, "0,8,1,9", 2, "0-1");
	put(h, "sys/devices/system/node/online", "rubbish");
	put(h, "sys/devices/system/cpu/cpu8/topology/thread_siblings_list", "\xff");
	expect_cpus(h, "0,1,9", 2, "0-1");
}

static void test_lists_of_cpus(void **state)
{
	(void)state;
	static const char *const bad[] = {"", ",", "a", "1-", "-1", "1--2", "2-1", "0x1", "1 2",
		"8192", "0-8192", "1,a", "18446744073709551616"};
	struct cpus cpus = {0}, other = {0};
	_cleanup_text_ struct text list = {0};
	for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
		assert_false(cpus_parse(cursor_of(bad[i], strlen(bad[i])), &cpus));
	}
	assert_true(cpus_parse(cursor_of("3,0-1,8191\n", 11), &cpus));
	assert_int_equal(cpus_count(&cpus), 4);
	cpus_append(&list, &cpus);
	assert_string_equal(list.data, "0-1,3,8191");
	cpus_add(&other, 0);
	assert_int_equal(cpus_first_outside(&cpus, &other), 1);
	assert_int_equal(cpus_first_outside(&other, &cpus), -1);
}

// ---- cgroups

static void expect_set(struct host *h, enum limit limit, const char *text, const char *set)
{
	struct limits_wanted w = {0};
	struct limits limits = {0};
	struct error e = {0};
	assert_int_equal(limits_read(&w, limit, text, &e), 0);
	if (limits_set(&w, &h->place, &limits, &e) < 0) {
		fail_msg("%s", e.text);
	}
	assert_string_equal(limits.set[limit], set);
	limits_done(&limits);
	limits_wanted_done(&w);
}

static void expect_refused(struct host *h, enum limit limit, const char *text, const char *error)
{
	struct limits_wanted w = {0};
	struct limits limits = {0};
	struct error e = {0};
	assert_int_equal(limits_read(&w, limit, text, &e), 0);
	assert_true(limits_set(&w, &h->place, &limits, &e) < 0);
	assert_string_equal(e.text, error);
	limits_wanted_done(&w);
}

// What would allow it depends on who asks.
static void expect_hint(struct host *h, enum limit limit, const char *text, const char *begin)
{
	struct limits_wanted w = {0};
	struct limits limits = {0};
	struct error e = {0};
	assert_int_equal(limits_read(&w, limit, text, &e), 0);
	assert_true(limits_set(&w, &h->place, &limits, &e) < 0);
	assert_memory_equal(e.text, begin, strlen(begin));
	limits_wanted_done(&w);
}

#define OWN "sys/fs/cgroup/scope/strain-7/"

static void test_memory_of_v2(void **state)
{
	struct host *h = *state;
	expect_set(h, LIMIT_MEMORY, "4GiB", "4294967296 (cgroup v2 memory)");
	expect_file(h, OWN "memory.max", "4294967296");
	expect_file(h, OWN "memory.swap.max", "0ax\n"); // a file of the kernel would have "0"
	expect_refused(h, LIMIT_MEMORY, "9GiB",
		"--memory: expected at most 8.0 GiB, the limit of /sys/fs/cgroup/scope, found 9.0 "
		"GiB (9663676416)");
	put(h, "sys/fs/cgroup/scope/memory.max", "max\n");
	expect_refused(h, LIMIT_MEMORY, "17GiB",
		"--memory: expected at most 16 GiB, all that this machine has, found 17 GiB "
		"(18253611008)");
	free(take_pointer(h->cgroup.memory));
	expect_hint(h, LIMIT_MEMORY, "4GiB",
		"--memory: the memory controller is not enabled for "
		"/sys/fs/cgroup/scope/strain-7; use a delegated cgroup: systemd-run ");
	h->place.cgroup = NULL;
	error_set(&h->why_none, EACCES, "the reason");
	expect_refused(h, LIMIT_MEMORY, "4GiB", "--memory: no cgroup for the job: the reason");
}

// Handed down from where processes are, cpuset would shut the job out of its cgroup.
static void test_cpus_of_v2_beside_other_processes(void **state)
{
	struct host *h = *state;
	struct limits_wanted w = {0};
	struct error e = {0};
	put(h, OWN "cgroup.controllers", "memory\n");
	put(h, "sys/fs/cgroup/scope/cgroup.type", "domain\n");
	assert_int_equal(limits_read(&w, LIMIT_CPUS, "1", &e), 0);
	for (unsigned others = 0; others < 2; others++) {
		struct limits limits = {0};
		put(h, "sys/fs/cgroup/scope/cgroup.procs", others ? "41\n42\n" : "");
		put(h, "sys/fs/cgroup/scope/cgroup.subtree_control", "");
		assert_int_equal(limits_set(&w, &h->place, &limits, &e), 0);
		assert_true(limits.affinity); // nothing answers a write to a fake tree
		expect_file(
			h, "sys/fs/cgroup/scope/cgroup.subtree_control", others ? "" : "+cpuset");
		limits_done(&limits);
	}
	limits_wanted_done(&w);
}

static void test_memory_of_v1_with_and_without_swap_accounting(void **state)
{
	struct host *h = *state;
	h->cgroup.version = 1;
	put(h, OWN "memory.limit_in_bytes", "");
	put(h, OWN "memory.swappiness", "60");
	put(h, "proc/meminfo", "MemTotal: 16777216 kB\nSwapTotal: 1024 kB\n");
	expect_set(
		h, LIMIT_MEMORY, "1GiB", "1073741824 (cgroup v1 memory; swap is not counted here)");
	expect_file(h, OWN "memory.swappiness", "00");
	put(h, OWN "memory.memsw.limit_in_bytes", "");
	expect_set(h, LIMIT_MEMORY, "1GiB", "1073741824 (cgroup v1 memory)");
	char more[24]; // than memory alone: by a page
	snprintf(more, sizeof(more), "%ld", 1073741824 + sysconf(_SC_PAGESIZE));
	expect_file(h, OWN "memory.memsw.limit_in_bytes", more);
}

static void test_cpus_of_v2_or_by_affinity(void **state)
{
	struct host *h = *state;
	struct cpus allowed;
	char expected[64];
	assert_int_equal(cpus_of_self(&allowed), 0);
	unsigned first = (unsigned)cpus_first_outside(&allowed, &(struct cpus){0});
	snprintf(expected, sizeof(expected), "1 (cpuset %u)", first);
	expect_set(h, LIMIT_CPUS, "1", expected);
	// Not handed down, and cannot be.
	free(take_pointer(h->cgroup.cpuset));
	put(h, OWN "cgroup.controllers", "memory\n");
	snprintf(expected, sizeof(expected), "1 (affinity %u)", first);
	expect_set(h, LIMIT_CPUS, "1", expected);
	expect_file(h, "sys/fs/cgroup/scope/cgroup.subtree_control", "+cpuset");
	assert_string_equal(h->cgroup.undo, "-cpuset");
	put(h, "sys/fs/cgroup/scope/cpu.max", "50000 100000\n");
	expect_set(h, LIMIT_CPUS, "1", expected); // half a CPU is one that it may use
	h->place.cgroup = NULL;
	expect_set(h, LIMIT_CPUS, "1", expected);
}

static void test_disk_reads_of_v2(void **state)
{
	struct host *h = *state;
	expect_set(h, LIMIT_DISK_READ, "100MB/s", "100000000 (cgroup v2 io: nvme0n1)");
	expect_file(h, OWN "io.max", "259:0 rbps=100000000");
	// What is stacked on disks, is memory, is hidden or is empty is no disk.
	put(h, "sys/block/dm-0/dev", "253:0\n");
	put(h, "sys/block/dm-0/size", "1000\n");
	put(h, "sys/block/dm-0/slaves/nvme0n1", "");
	put(h, "sys/block/zram0/dev", "252:0\n");
	put(h, "sys/block/zram0/size", "1000\n");
	put(h, "sys/block/nvme0c0n1/dev", "259:9\n");
	put(h, "sys/block/nvme0c0n1/size", "1000\n");
	put(h, "sys/block/nvme0c0n1/hidden", "1\n");
	put(h, "sys/block/loop0/dev", "7:0\n");
	put(h, "sys/block/loop0/size", "0\n");
	expect_set(h, LIMIT_DISK_READ, "100MB/s", "100000000 (cgroup v2 io: nvme0n1)");
	put(h, "sys/block/loop0/size", "8\n");
	put(h, "sys/block/sda/dev", "8:0\n");
	put(h, "sys/block/sda/size", "1000\n");
	expect_set(h, LIMIT_DISK_READ, "1GB/s", "1000000000 (cgroup v2 io: nvme0n1, sda, loop0)");
	// A tighter limit above.
	put(h, "sys/fs/cgroup/scope/io.max",
		"9:9 rbps=1 wbps=max\n8:0 rbps=50000000 wbps=max riops=max wiops=max\n");
	expect_refused(h, LIMIT_DISK_READ, "100MB/s",
		"--disk-read: expected at most 50 MB/s, the limit of /sys/fs/cgroup/scope");
	expect_refused(h, LIMIT_DISK_READ, "unlimited",
		"--disk-read: expected at most 50 MB/s, the limit of /sys/fs/cgroup/scope");
	expect_set(h, LIMIT_DISK_READ, "40MB/s", "40000000 (cgroup v2 io: nvme0n1, sda, loop0)");
	h->place.cgroup = NULL;
	error_set(&h->why_none, EACCES, "the reason");
	expect_refused(
		h, LIMIT_DISK_READ, "40MB/s", "--disk-read: no cgroup for the job: the reason");
}

static void test_unlimited_reads_need_nothing(void **state)
{
	struct host *h = *state;
	h->place.cgroup = NULL;
	expect_set(h, LIMIT_DISK_READ, "unlimited", "unlimited");
}

static void test_io_that_is_not_handed_down(void **state)
{
	struct host *h = *state;
	put(h, OWN "cgroup.controllers", "memory\n");
	put(h, "sys/fs/cgroup/scope/cgroup.controllers", "memory pids\n");
	expect_hint(h, LIMIT_DISK_READ, "100MB/s",
		geteuid() == 0 ? "--disk-read: the io controller is not enabled for "
				 "/sys/fs/cgroup/scope/strain-7; use a delegated cgroup: "
			       : "--disk-read: the io controller is not enabled for "
				 "/sys/fs/cgroup/scope/strain-7; root can delegate it to users: ");
	assert_null(h->cgroup.block);
}

// ---- cards

static const struct gpu_cards cards = {
	.n = 3, .uuids = {"GPU-8932f937-d72c", "GPU-8932aaaa-0000", "GPU-11112222-3333"}};

struct choice {
	const char *wanted, *visible, *expected; // expected NULL: refused
};

static void test_cards_of_those_that_are_visible(void **state)
{
	(void)state;
	static const struct choice table[] = {
		{"0", NULL, "-1"},
		{"1", NULL, "0"},
		{"3", NULL, "0,1,2"},
		{"4", NULL, NULL},
		{"0,2", NULL, "0,2"},
		{"2,", NULL, "2"},
		{"3,", NULL, NULL},
		{"2", "2,1", "2,1"},
		{"1,", "2,1", "1"},
		{"3", "2,1", NULL},
		{"2", "2,-1,1", NULL},
		{"1", "", NULL},
		{"0", "", "-1"},
		{"1", "7", NULL},
		{"GPU-8932f937", NULL, "GPU-8932f937"},
		{"GPU-8932", NULL, NULL}, // two of them
		{"GPU-9", NULL, NULL},
		{"GPU-1111", "GPU-11112222-3333,0", "GPU-11112222-3333"},
		{"GPU-8932aa", "GPU-11112222-3333", NULL},
		{"GPU-1111", "0,1", NULL}, // numbers mean what CUDA's order says
		{"1", "GPU-11112222, 1", "GPU-11112222"},
		{"MIG-77", "MIG-66,MIG-77", "MIG-77"},
		{"MIG-7", "MIG-66,MIG-77", NULL},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		struct limits_wanted w = {0};
		struct error e = {0};
		_cleanup_free_ char *list = NULL;
		unsigned n = 0;
		assert_int_equal(limits_read(&w, LIMIT_GPUS, table[i].wanted, &e), 0);
		int rc = limits_choose_gpus(&w, &cards, table[i].visible, &list, &n, &e);
		if (table[i].expected) {
			assert_int_equal(rc, 0);
			assert_string_equal(list, table[i].expected);
		} else {
			assert_int_equal(rc, -ENODEV);
			assert_true(strlen(e.text) > 0);
		}
		limits_wanted_done(&w);
	}
}

static void test_no_card_needs_no_driver(void **state)
{
	struct host *h = *state;
	expect_set(h, LIMIT_GPUS, "0", "0 (CUDA_VISIBLE_DEVICES=-1)");
}

static void test_several_limits_or_none(void **state)
{
	struct host *h = *state;
	struct limits_wanted w = {0};
	struct limits limits = {0};
	struct error e = {0};
	assert_int_equal(limits_read(&w, LIMIT_GPUS, "0", &e), 0);
	assert_int_equal(limits_read(&w, LIMIT_MEMORY, "99GiB", &e), 0);
	assert_true(limits_set(&w, &h->place, &limits, &e) < 0);
	assert_null(limits.set[LIMIT_GPUS]);
	limits_wanted_done(&w);
}

#define ON_A_HOST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_options_say),
		cmocka_unit_test(test_nonsense_is_one_line_that_names_the_option),
		cmocka_unit_test(test_lists_of_cpus),
		ON_A_HOST(test_cpus_are_cores_of_one_node),
		ON_A_HOST(test_cpus_where_an_old_kernel_or_nobody_tells),
		ON_A_HOST(test_cpus_of_v2_beside_other_processes),
		ON_A_HOST(test_memory_of_v2),
		ON_A_HOST(test_memory_of_v1_with_and_without_swap_accounting),
		ON_A_HOST(test_cpus_of_v2_or_by_affinity),
		ON_A_HOST(test_disk_reads_of_v2),
		ON_A_HOST(test_unlimited_reads_need_nothing),
		ON_A_HOST(test_io_that_is_not_handed_down),
		cmocka_unit_test(test_cards_of_those_that_are_visible),
		ON_A_HOST(test_no_card_needs_no_driver),
		ON_A_HOST(test_several_limits_or_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
