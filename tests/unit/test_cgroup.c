// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The job's own cgroup, on the machine that runs the test. Where none can be made the reason must
// name the directory, and nothing may be left.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "record/host/cgroupfs.h"
#include "record/job/cgroup.h"

static bool create_or_skip(struct job_cgroup *cgroup)
{
	struct error e = {0};
	int r = job_cgroup_create(cgroup, &e);
	if (r < 0) {
		assert_int_equal(r, -e.code);
		assert_true(strlen(e.text) > 0);
		print_message("no cgroup here: %s\n", e.text);
		skip();
	}
	return r == 0;
}

static bool exists(const char *path)
{
	char absolute[4096];
	snprintf(absolute, sizeof(absolute), "/%s", path);
	return access(absolute, F_OK) == 0;
}

static bool lists(const char *directory, pid_t pid)
{
	char path[4096], line[64];
	snprintf(path, sizeof(path), "/%s/cgroup.procs", directory);
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	bool found = false;
	while (f && fgets(line, sizeof(line), f)) {
		found |= strtol(line, NULL, 10) == pid;
	}
	return found;
}

// A child that enters, says so and then sleeps until it is killed.
static pid_t start_inside(const struct job_cgroup *cgroup)
{
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char r = (char)-job_cgroup_enter(cgroup);
		_exit(write(ready[1], &r, 1) == 1 && r == 0 ? pause() : 1);
	}
	char r = -1;
	assert_int_equal(read(ready[0], &r, 1), 1);
	assert_int_equal(r, 0);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void test_a_child_enters_and_nothing_is_left(void **state)
{
	(void)state;
	struct job_cgroup cgroup;
	if (!create_or_skip(&cgroup)) {
		return;
	}
	assert_true(exists(cgroup.procs));
	pid_t pid = start_inside(&cgroup);
	assert_true(lists(cgroup.procs, pid));
	assert_false(lists(cgroup.procs, getpid()));
	if (cgroup.memory) {
		assert_true(lists(cgroup.memory, pid));
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(job_cgroup_remove(&cgroup), 0);
	assert_false(exists(cgroup.procs));
	job_cgroup_done(&cgroup);
}

static void test_what_still_runs_goes_on_above(void **state)
{
	(void)state;
	struct job_cgroup cgroup;
	if (!create_or_skip(&cgroup)) {
		return;
	}
	pid_t pid = start_inside(&cgroup);
	assert_int_equal(job_cgroup_remove(&cgroup), 0);
	assert_false(exists(cgroup.procs));
	assert_false(cgroup.memory && exists(cgroup.memory));
	assert_int_equal(kill(pid, 0), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	job_cgroup_done(&cgroup);
}

static void test_removing_twice_is_harmless(void **state)
{
	(void)state;
	struct job_cgroup cgroup;
	if (!create_or_skip(&cgroup)) {
		return;
	}
	assert_int_equal(job_cgroup_remove(&cgroup), 0);
	assert_int_equal(job_cgroup_remove(&cgroup), 0);
	assert_true(job_cgroup_enter(&cgroup) < 0);
	job_cgroup_done(&cgroup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_child_enters_and_nothing_is_left),
		cmocka_unit_test(test_what_still_runs_goes_on_above),
		cmocka_unit_test(test_removing_twice_is_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
