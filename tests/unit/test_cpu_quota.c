// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which level's CPU quota counts, whose it is, and counters that go on where another level comes to
// apply; on trees of files made here. The whole source is tested on captured machines
// (tests/hosts).

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/source/cgroup.h"

struct machine {
	char root[64];
	int root_fd;
	int version;
	struct cgroup_places places, base;
	struct cpu_quota quota;
};

static void write_file(
	const struct machine *m, const char *directory, const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s/%s", m->root, directory, name);
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

// A level with a quota of so many thousandths of a CPU (0: none) and its counts so far.
static void write_level(const struct machine *m, const char *directory, int permille, int periods,
	int throttled, int throttled_ms)
{
	char text[256];
	if (m->version == 2) {
		snprintf(text, sizeof(text), permille ? "%d 100000\n" : "max 100000\n",
			permille * 100);
		write_file(m, directory, "cpu.max", text);
	} else {
		snprintf(text, sizeof(text), "%d\n", permille ? permille * 100 : -1);
		write_file(m, directory, "cpu.cfs_quota_us", text);
		write_file(m, directory, "cpu.cfs_period_us", "100000\n");
	}
	snprintf(text, sizeof(text), "nr_periods %d\nnr_throttled %d\n%s %d%s\n", periods,
		throttled, m->version == 2 ? "throttled_usec" : "throttled_time", throttled_ms,
		m->version == 2 ? "000" : "000000");
	write_file(m, directory, "cpu.stat", text);
}

static void parse(struct machine *m, const char *cgroup, struct cgroup_places *ret)
{
	char line[128], mounts[128];
	snprintf(line, sizeof(line), m->version == 2 ? "0::%s\n" : "4:cpu,cpuacct:%s\n", cgroup);
	snprintf(mounts, sizeof(mounts),
		m->version == 2 ? "30 20 0:26 / /cg rw - cgroup2 cgroup2 rw\n"
				: "30 20 0:26 / /cg rw - cgroup cgroup rw,cpu,cpuacct\n");
	cgroup_places_parse(cursor_of(line, strlen(line)), cursor_of(mounts, strlen(mounts)), ret);
}

// /cg, /cg/slice, /cg/slice/strain, /cg/slice/strain/inner; strain is in slice.
static struct machine make(int version)
{
	static const char *const directories[] = {
		"cg", "cg/slice", "cg/slice/strain", "cg/slice/strain/inner"};
	struct machine m = {.root = "/tmp/strain-quota-XXXXXX", .version = version};
	assert_non_null(mkdtemp(m.root));
	m.root_fd = open(m.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(m.root_fd >= 0);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(mkdirat(m.root_fd, directories[i], 0755), 0);
		if (i > 0 || version == 1) {
			write_level(&m, directories[i], 0, 0, 0, 0);
		}
	}
	parse(&m, "/slice", &m.base);
	parse(&m, "/slice/strain/inner", &m.places);
	cpu_quota_init(&m.quota, m.root_fd, NULL);
	cpu_quota_set_base(&m.quota, &m.base);
	return m;
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *where)
{
	(void)status;
	(void)flag;
	(void)where;
	return remove(path);
}

static void done(struct machine *m)
{
	cpu_quota_done(&m->quota);
	cgroup_places_done(&m->base);
	cgroup_places_done(&m->places);
	close(m->root_fd);
	assert_int_equal(nftw(m->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void look(struct machine *m)
{
	assert_true(cpu_quota_look(&m->quota, &m->places, NULL, 1, 0));
}

static void expect_counts(struct machine *m, int periods, int throttled, int throttled_ms)
{
	struct cpu_quota_counts counts;
	assert_true(cpu_quota_read(&m->quota, &counts));
	assert_int_equal(counts.periods, periods);
	assert_int_equal(counts.throttled, throttled);
	assert_int_equal(counts.throttled_us, throttled_ms * 1000);
}

static void the_tightest_level_counts(int version)
{
	struct machine m = make(version);
	struct cpu_quota_counts counts;
	look(&m);
	assert_null(m.quota.directory);
	assert_true(isnan(m.quota.least_cpus));
	assert_false(cpu_quota_read(&m.quota, &counts));
	write_level(&m, "cg/slice", 1500, 100, 20, 700);
	look(&m);
	assert_string_equal(m.quota.directory, "cg/slice");
	assert_false(m.quota.own);
	assert_true(m.quota.cpus == 1.5 && m.quota.least_cpus == 1.5);
	expect_counts(&m, 100, 20, 700);
	done(&m);
}

static void test_v1(void **state)
{
	(void)state;
	the_tightest_level_counts(1);
}

static void test_v2(void **state)
{
	(void)state;
	the_tightest_level_counts(2);
}

// The job goes into a cgroup of its own making: what it counts goes on from there.
static void test_inner(void **state)
{
	for (int version = 1; version <= 2; version++) {
		struct machine m = make(version);
		write_level(&m, "cg/slice", 2000, 100, 2, 30);
		look(&m);
		expect_counts(&m, 100, 2, 30);
		write_level(&m, "cg/slice/strain/inner", 500, 7, 7, 40);
		look(&m);
		assert_string_equal(m.quota.directory, "cg/slice/strain/inner");
		assert_true(m.quota.own);
		assert_true(m.quota.cpus == 0.5);
		expect_counts(&m, 100, 2, 30);
		write_level(&m, "cg/slice/strain/inner", 500, 17, 16, 90);
		expect_counts(&m, 110, 11, 80);
		write_level(&m, "cg/slice/strain/inner", 0, 17, 16, 90);
		write_level(&m, "cg/slice", 0, 100, 2, 30);
		look(&m);
		assert_null(m.quota.directory);
		done(&m);
	}
	(void)state;
}

// An outer level that others use up throttles, the tighter one inside does not.
static void test_the_level_that_throttles(void **state)
{
	struct machine m = make(2);
	(void)state;
	write_level(&m, "cg/slice", 3000, 100, 50, 10);
	write_level(&m, "cg/slice/strain", 2000, 40, 1, 5);
	look(&m);
	assert_string_equal(m.quota.directory, "cg/slice/strain");
	assert_true(m.quota.own); // strain itself is above it
	write_level(&m, "cg/slice", 3000, 200, 140, 400);
	write_level(&m, "cg/slice/strain", 2000, 140, 2, 6);
	look(&m);
	assert_string_equal(m.quota.directory, "cg/slice");
	assert_false(m.quota.own);
	assert_true(m.quota.cpus == 3);
	assert_true(m.quota.least_cpus == 2);
	done(&m);
}

// A cgroup named alike is not above strain's.
static void test_names_that_begin_alike(void **state)
{
	struct machine m = make(1);
	(void)state;
	assert_int_equal(mkdirat(m.root_fd, "cg/sli", 0755), 0);
	write_level(&m, "cg/sli", 500, 1, 1, 1);
	cgroup_places_done(&m.places);
	parse(&m, "/sli", &m.places);
	look(&m);
	assert_string_equal(m.quota.directory, "cg/sli");
	assert_true(m.quota.own);
	done(&m);
}

// What the kernel writes cannot be trusted to be whole.
static void test_counts_that_are_missing(void **state)
{
	struct machine m = make(2);
	struct cpu_quota_counts counts;
	(void)state;
	write_level(&m, "cg/slice", 1000, 5, 5, 5);
	write_file(&m, "cg/slice", "cpu.stat", "nr_periods x\n");
	look(&m);
	assert_true(cpu_quota_read(&m.quota, &counts));
	assert_true(counts.periods == INT64_MIN && counts.throttled == INT64_MIN &&
		    counts.throttled_us == INT64_MIN);
	done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_v1),
		cmocka_unit_test(test_v2),
		cmocka_unit_test(test_inner),
		cmocka_unit_test(test_the_level_that_throttles),
		cmocka_unit_test(test_names_that_begin_alike),
		cmocka_unit_test(test_counts_that_are_missing),
	};
	return cmocka_run_group_tests_name("cpu_quota", tests, NULL, NULL);
}
