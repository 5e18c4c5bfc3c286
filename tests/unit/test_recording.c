// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "record/oom_score.h"
#include "record/recording.h"

struct place {
	char folder[64];
	char run[96];
	char log[96];
};

static struct place make_place(void)
{
	struct place p = {.folder = "/tmp/strain-test-XXXXXX"};
	assert_non_null(mkdtemp(p.folder));
	snprintf(p.run, sizeof(p.run), "%s/run.strain", p.folder);
	snprintf(p.log, sizeof(p.log), "%s-wal", p.run);
	return p;
}

static void write_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

// A recorder that never gets ready.
static struct recording start(const struct place *p)
{
	struct recording r = {.path = p->run, .socket = -1};
	struct stat before;
	if (lstat(p->run, &before) == 0) {
		r.before_device = before.st_dev;
		r.before_inode = before.st_ino;
	}
	r.pid = fork();
	assert_true(r.pid >= 0);
	while (r.pid == 0) {
		pause();
	}
	return r;
}

static void test_a_file_that_was_begun_is_removed(void **state)
{
	(void)state;
	struct place p = make_place();
	struct recording r = start(&p);
	pid_t pid = r.pid;
	write_file(p.run);
	write_file(p.log);
	recording_discard(&r);
	assert_int_equal(r.pid, 0);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(rmdir(p.folder), 0); // nothing is left in it
}

static void test_what_stood_there_before_stays(void **state)
{
	(void)state;
	struct place p = make_place();
	write_file(p.run);
	struct recording r = start(&p);
	recording_discard(&r);
	assert_int_equal(unlink(p.run), 0);
	assert_int_equal(rmdir(p.folder), 0);
}

static void test_what_was_replaced_is_removed(void **state)
{
	(void)state;
	struct place p = make_place();
	write_file(p.run);
	struct recording r = start(&p);
	write_file(p.log);
	assert_int_equal(rename(p.log, p.run), 0);
	write_file(p.log);
	recording_discard(&r);
	assert_int_equal(rmdir(p.folder), 0);
}

static void test_without_a_recorder_there_is_nothing_to_do(void **state)
{
	(void)state;
	struct recording r = RECORDING_NONE;
	recording_discard(&r);
	assert_int_equal(r.socket, -1);
}

// What it is raised by, in bytes of the limit.
static double raise_mib(uint64_t limit_mib)
{
	return oom_score_raise_under(limit_mib << 20) * (double)limit_mib / 1000;
}

static void test_large_processes_of_the_job_go_before_the_recorder(void **state)
{
	(void)state;
	assert_int_equal(oom_score_raise_under(0), 300); // not known
	assert_int_equal(oom_score_raise_under(64 << 20), 300);
	for (uint64_t limit_mib = 512; limit_mib <= 128 * 1024; limit_mib *= 2) {
		assert_true(raise_mib(limit_mib) >= 128);
		assert_true(raise_mib(limit_mib) <= 128 + (double)limit_mib / 1000);
	}
	assert_int_equal(oom_score_raise_under(UINT64_MAX), 1); // never none
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_that_was_begun_is_removed),
		cmocka_unit_test(test_what_stood_there_before_stays),
		cmocka_unit_test(test_what_was_replaced_is_removed),
		cmocka_unit_test(test_without_a_recorder_there_is_nothing_to_do),
		cmocka_unit_test(test_large_processes_of_the_job_go_before_the_recorder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
