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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/cgroupfs.h"
#include "machine/cgroup.h"

static bool create_or_skip(struct job_cgroup *cgroup)
{
	struct error e = {0};
	int r = job_cgroup_create(false, cgroup, &e);
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

// A directory that looks like a cgroup with these processes, and a leaf in it whose cgroup.procs is
// a pipe that keeps what is written: [directory] is made, the pipe's end returned.
static int make_fake(char *directory, const char *processes)
{
	char path[128];
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/cgroup.procs", directory);
	_cleanup_fclose_ FILE *f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(processes, f) >= 0);
	snprintf(path, sizeof(path), "%s/leaf", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/leaf/cgroup.procs", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void remove_fake(const char *directory)
{
	static const char *const names[] = {"leaf/cgroup.procs", "leaf", "cgroup.procs", "."};
	char path[128];
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, i < 3 ? names[i] : "");
		assert_int_equal(remove(path), 0);
	}
}

// What moved, one pid after the other; "" where nobody did.
static int step_aside(const char *processes, char *moved, size_t size)
{
	char directory[] = "/tmp/strain-test-cgroup-XXXXXX", leaf[64];
	_cleanup_close_ int fd = make_fake(directory, processes);
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(leaf, sizeof(leaf), "%s/leaf", directory + 1);
	int r = cgroup_directory_step_aside(root_fd, directory + 1, leaf);
	ssize_t n = read(fd, moved, size - 1);
	moved[n > 0 ? n : 0] = '\0';
	remove_fake(directory);
	return r;
}

// Of this process's parent.
static long parent_of_parent(void)
{
	char path[64], line[256];
	long pid = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)getppid());
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "PPid:", 5) == 0) {
			pid = strtol(line + 5, NULL, 10);
		}
	}
	if (file) {
		fclose(file);
	}
	return pid;
}

static void test_the_sweep_steps_aside_too(void **state)
{
	(void)state;
	char both[64], pids[64], moved[128], parent[24];
	snprintf(parent, sizeof(parent), "%d", (int)getppid());
	snprintf(both, sizeof(both), "%s\n%d\n", parent, (int)getpid());
	snprintf(pids, sizeof(pids), "%s%d", parent, (int)getpid());
	unsetenv("STRAIN_SWEEP_PID");
	assert_int_equal(step_aside(both, moved, sizeof(moved)), -EBUSY);
	assert_string_equal(moved, "");
	assert_int_equal(step_aside(strchr(both, '\n') + 1, moved, sizeof(moved)), 0);
	assert_string_equal(moved, pids + strlen(parent));
	setenv("STRAIN_SWEEP_PID", parent, 1);
	assert_int_equal(step_aside(both, moved, sizeof(moved)), 0);
	assert_string_equal(moved, pids);
	// Not one that is another's parent, and nobody beside it.
	setenv("STRAIN_SWEEP_PID", "2", 1);
	assert_int_equal(step_aside(both, moved, sizeof(moved)), -EBUSY);
	assert_string_equal(moved, "");
	setenv("STRAIN_SWEEP_PID", parent, 1);
	snprintf(both + strlen(both), sizeof(both) - strlen(both), "1\n");
	assert_int_equal(step_aside(both, moved, sizeof(moved)), getppid() == 1 ? 0 : -EBUSY);
	// With a keeper between the two: that moves as well.
	snprintf(parent, sizeof(parent), "%ld", parent_of_parent());
	snprintf(both, sizeof(both), "%s\n%d\n%d\n", parent, (int)getppid(), (int)getpid());
	snprintf(pids, sizeof(pids), "%s%d%d", parent, (int)getppid(), (int)getpid());
	setenv("STRAIN_SWEEP_PID", parent, 1);
	if (parent_of_parent() > 0) {
		assert_int_equal(step_aside(both, moved, sizeof(moved)), 0);
		assert_string_equal(moved, pids);
	}
	unsetenv("STRAIN_SWEEP_PID");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_child_enters_and_nothing_is_left),
		cmocka_unit_test(test_what_still_runs_goes_on_above),
		cmocka_unit_test(test_removing_twice_is_harmless),
		cmocka_unit_test(test_the_sweep_steps_aside_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
