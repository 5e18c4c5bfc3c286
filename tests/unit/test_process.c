// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which process a pid is, and what of a trial still runs.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants these before it.
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine/process.h"
#include "runfile/still_running.h"

static uint64_t ticks_of(pid_t pid)
{
	struct process_entry *items;
	size_t n;
	uint64_t ticks = 0;
	assert_int_equal(process_list(&items, &n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(i == 0 || items[i].pid > items[i - 1].pid);
		ticks = items[i].pid == pid ? items[i].start_ticks : ticks;
	}
	free(items);
	return ticks;
}

// A child that waits to be killed, with this in its environment (NULL: nothing), which has one
// child of its own without it where `with_child`.
static pid_t start_child(const char *mark, bool with_child)
{
	char pair[128];
	snprintf(pair, sizeof(pair), "%s=%s", STILL_RUNNING_VARIABLE, mark ? mark : "");
	const char *const script = with_child ? "env -i sh -c 'echo; sleep 1000' & sleep 1000"
	                                      : "echo; exec sleep 1000";
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ready[1], STDOUT_FILENO);
		dup2(ready[1], STDERR_FILENO); // else who reads ours waits for it
		close(ready[0]);
		close(ready[1]);
		char *environment[] = {mark ? pair : NULL, NULL};
		execle("/bin/sh", "sh", "-c", script, (char *)NULL, environment);
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void reap(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_answers(void **state)
{
	(void)state;
	pid_t pid = start_child(NULL, false);
	uint64_t ticks = ticks_of(pid);
	int pidfd = -1;
	assert_true(ticks > 0);
	assert_int_equal(process_is(pid, ticks, NULL), PROCESS_YES);
	assert_int_equal(process_is(pid, ticks + 1, &pidfd), PROCESS_NO);
	assert_int_equal(process_is(0, ticks, NULL), PROCESS_NO);
	assert_int_equal(process_is(pid, 0, NULL), PROCESS_NO);
	assert_int_equal(process_is(INT64_MAX, ticks, NULL), PROCESS_NO);
	assert_int_equal(pidfd, -1);
	assert_int_equal(process_signal(pid, ticks + 1, SIGKILL), -ESRCH);
	assert_int_equal(process_is(pid, ticks, &pidfd), PROCESS_YES);
	assert_int_equal(process_send(pidfd, SIGKILL), 0);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(process_is(pid, ticks, NULL), PROCESS_NO); // a zombie
	assert_int_equal(ticks_of(pid), 0);
	waitpid(pid, NULL, 0);
	assert_int_equal(process_is(pid, ticks, NULL), PROCESS_NO);
	assert_int_equal(process_send(pidfd, SIGKILL), -ESRCH);
	close(pidfd);
}

static void *tell_thread(void *ret)
{
	int *pipes = ret;
	pid_t id = (pid_t)syscall(SYS_gettid);
	char byte;
	assert_int_equal(write(pipes[1], &id, sizeof(id)), sizeof(id));
	assert_int_equal(read(pipes[2], &byte, 1), 1);
	return NULL;
}

static void test_a_thread_is_no_process(void **state)
{
	(void)state;
	int pipes[4];
	pthread_t thread;
	pid_t id;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(pipe(pipes + 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, tell_thread, pipes), 0);
	assert_int_equal(read(pipes[0], &id, sizeof(id)), sizeof(id));
	assert_int_equal(process_is(id, ticks_of(getpid()), NULL), PROCESS_NO);
	assert_int_equal(write(pipes[3], "", 1), 1);
	pthread_join(thread, NULL);
	for (int i = 0; i < 4; i++) {
		close(pipes[i]);
	}
}

// Without a descriptor nothing can be told: not even of a process that has ended.
static void test_no_descriptors(void **state)
{
	(void)state;
	struct rlimit before, none;
	struct process_entry *items;
	size_t n;
	uint64_t ticks = ticks_of(getpid());
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	enum process_answer answer = process_is(getpid(), ticks, NULL);
	int listed = process_list(&items, &n), sent = process_signal(getpid(), ticks, SIGKILL);
	ssize_t left = still_running_signal("mark", 0, SIGKILL);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(answer, PROCESS_CANNOT_TELL);
	assert_int_equal(listed, -EMFILE);
	assert_int_equal(sent, -EAGAIN);
	assert_int_equal(left, -EMFILE);
}

// From now on this process's pidfd_open() fails with `code`.
static bool refuse_pidfds(unsigned code)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// What process_signal_child says where pidfd_open() fails with `code`; 1: cannot be tried here.
static int signal_without_pidfds(pid_t pid, uint64_t ticks, unsigned code)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		_exit(refuse_pidfds(code) ? -process_signal_child(pid, ticks, SIGTERM) : 255);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 255 ? 1 : -WEXITSTATUS(status);
}

static void test_by_number_only_without_pidfds(void **state)
{
	(void)state;
	pid_t pid = start_child(NULL, false);
	uint64_t ticks = ticks_of(pid);
	int status, none_left = signal_without_pidfds(pid, ticks, EMFILE);
	if (none_left == 1) {
		reap(pid);
		print_message("this machine allows no filter of system calls\n");
		skip();
	}
	assert_int_equal(none_left, -EAGAIN);
	assert_int_equal(signal_without_pidfds(pid, ticks + 1, ENOSYS), -EAGAIN);
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(signal_without_pidfds(pid, ticks, ENOSYS), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void test_elsewhere(void **state)
{
	(void)state;
	char boot_id[64] = "", ours[64] = "";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	assert_non_null(file);
	assert_non_null(fgets(boot_id, sizeof(boot_id), file));
	fclose(file);
	boot_id[strcspn(boot_id, "\n")] = '\0';
	assert_true(readlink("/proc/self/ns/pid", ours, sizeof(ours) - 1) > 0);
	struct process_name name = {getpid(), ticks_of(getpid()), boot_id, ours};
	assert_int_equal(process_find(&name, NULL), PROCESS_YES);
	name.start_ticks++;
	assert_int_equal(process_find(&name, NULL), PROCESS_NO);
	name.pid_namespace = "pid:[1]";
	assert_int_equal(process_find(&name, NULL), PROCESS_CANNOT_TELL);
	name.pid_namespace = NULL;
	assert_int_equal(process_find(&name, NULL), PROCESS_NO);
	name.boot_id = "00000000-0000-0000-0000-000000000000";
	assert_int_equal(process_find(&name, NULL), PROCESS_CANNOT_TELL);
	name.boot_id = NULL;
	assert_int_equal(process_find(&name, NULL), PROCESS_CANNOT_TELL);
}

static void test_marks(void **state)
{
	(void)state;
	char mark[64], more[96];
	snprintf(mark, sizeof(mark), "1:2:%d", (int)getpid());
	snprintf(more, sizeof(more), "%s0", mark); // begins as the other does
	pid_t marked = start_child(mark, false), other = start_child(more, false),
	      plain = start_child(NULL, false);
	assert_int_equal(still_running_signal(mark, 0, 0), 1);
	assert_int_equal(still_running_signal(mark, marked, SIGKILL), 0);
	assert_int_equal(process_is(marked, ticks_of(marked), NULL), PROCESS_YES);
	assert_int_equal(still_running_signal(mark, 0, SIGKILL), 1);
	assert_int_equal(waitpid(marked, NULL, 0), marked);
	assert_int_equal(still_running_signal(mark, 0, 0), 0);
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	assert_int_equal(waitpid(plain, NULL, WNOHANG), 0);
	reap(other);
	reap(plain);
	// What is below a process with the mark is its trial's, whatever it carries itself.
	marked = start_child(mark, true);
	// Two shells, and what they start when they come to it.
	for (int i = 0; still_running_signal(mark, 0, 0) < 4 && i < 3000; i++) {
		usleep(10000);
	}
	assert_int_equal(still_running_signal(mark, 0, SIGKILL), 4);
	assert_int_equal(waitpid(marked, NULL, 0), marked);
	assert_int_equal(still_running_recorder("/nonexistent", mark), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_a_thread_is_no_process),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_by_number_only_without_pidfds),
		cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_marks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
