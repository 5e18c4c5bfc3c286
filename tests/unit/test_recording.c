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
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "record/launch/recording.h"

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
	r.pid = fork();
	assert_true(r.pid >= 0);
	while (r.pid == 0) {
		pause();
	}
	return r;
}

// What the recorder says of the file that it made.
static void take_created(struct recording *r, const char *path)
{
	int fd = open(path, O_RDONLY);
	const struct beneath_file made = beneath_file_of(fd);
	const struct message message = {.kind = MESSAGE_CREATED,
		.device = (uint64_t)made.device,
		.inode = (uint64_t)made.inode};
	struct message taken;
	int pair[2];
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	r->socket = pair[0];
	assert_int_equal(send(pair[1], &message, sizeof(message), 0), sizeof(message));
	assert_true(recording_take(r, &taken));
	close(pair[1]);
}

static void test_a_file_that_was_begun_is_removed(void **state)
{
	(void)state;
	struct place p = make_place();
	struct recording r = start(&p);
	pid_t pid = r.pid;
	write_file(p.run);
	write_file(p.log);
	take_created(&r, p.run);
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

// Another recorder's, say: this one said that the name was taken, or had its file renamed away.
static void test_what_others_made_stays(void **state)
{
	(void)state;
	struct place p = make_place();
	struct recording r = start(&p);
	write_file(p.run); // nobody said that it was ours
	write_file(p.log);
	recording_discard(&r);
	r = start(&p);
	take_created(&r, p.run);
	assert_int_equal(unlink(p.run), 0);
	int held = open(p.log, O_RDONLY); // so that nobody gets the same number
	assert_int_equal(rename(p.log, p.run), 0);
	write_file(p.log);
	recording_discard(&r);
	close(held);
	assert_int_equal(unlink(p.run), 0);
	assert_int_equal(unlink(p.log), 0);
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
	return recording_raise_oom_score(limit_mib << 20) * (double)limit_mib / 1000;
}

static void test_large_processes_of_the_job_go_before_the_recorder(void **state)
{
	(void)state;
	assert_int_equal(recording_raise_oom_score(0), 300); // not known
	assert_int_equal(recording_raise_oom_score(64 << 20), 300);
	for (uint64_t limit_mib = 512; limit_mib <= 128 * 1024; limit_mib *= 2) {
		assert_true(raise_mib(limit_mib) >= 128);
		assert_true(raise_mib(limit_mib) <= 128 + (double)limit_mib / 1000);
	}
	assert_int_equal(recording_raise_oom_score(UINT64_MAX), 1); // never none
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_that_was_begun_is_removed),
		cmocka_unit_test(test_what_stood_there_before_stays),
		cmocka_unit_test(test_what_others_made_stays),
		cmocka_unit_test(test_without_a_recorder_there_is_nothing_to_do),
		cmocka_unit_test(test_large_processes_of_the_job_go_before_the_recorder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
