// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The process tree against real processes.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/tree.h"

#define MANY 64
#define SECONDS_MAX 30

struct seen {
	unsigned joined, left;
	int64_t last_entity;
};

static int joined(void *context, struct process *p)
{
	struct seen *seen = context;
	seen->joined++;
	p->entity = ++seen->last_entity;
	return 0;
}

static void left(void *context, struct process *p)
{
	(void)p;
	((struct seen *)context)->left++;
}

struct fixture {
	struct tree *tree;
	struct seen seen;
	int root_fd;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(tree_new(f->root_fd, false, &f->tree, NULL), 0);
	tree_watch(f->tree,
		&(struct tree_watcher){.context = &f->seen, .joined = joined, .left = left});
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	tree_free(f->tree);
	assert_int_equal(f->seen.joined, f->seen.left);
	close(f->root_fd);
	free(f);
	return 0;
}

// A child that lives until it is stopped, and what it does first.
static pid_t start(void (*first)(void))
{
	int ready[2];
	char byte = 0;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (first) {
			first();
		}
		(void)!write(ready[1], &byte, 1);
		sleep(SECONDS_MAX);
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void stop(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static size_t count(struct tree *tree)
{
	size_t n;
	tree_members(tree, &n);
	return n;
}

// Waits for the tree to have n members: what a child does takes its time.
static void expect_members(struct fixture *f, size_t n)
{
	for (int i = 0; i < 1000 && count(f->tree) != n; i++) {
		usleep(2000);
		tree_update(f->tree, clock_monotonic_ns());
	}
	assert_int_equal(count(f->tree), n);
}

static void test_nobody_belongs_before_the_start(void **state)
{
	struct fixture *f = *state;
	pid_t child = start(NULL);
	tree_update(f->tree, clock_monotonic_ns());
	assert_int_equal(count(f->tree), 0);
	stop(child);
}

static void fork_sleeper(void)
{
	if (fork() == 0) {
		sleep(SECONDS_MAX); // bounded, whatever goes wrong
		_exit(0);
	}
}

static void *fork_from_thread(void *unused)
{
	(void)unused;
	fork_sleeper();
	return NULL;
}

static void fork_in_a_thread(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, fork_from_thread, NULL);
	pthread_join(thread, NULL);
}

static void fork_a_daemon(void)
{
	pid_t middle = fork();
	if (middle == 0) {
		setsid();
		fork_sleeper();
		_exit(0);
	}
	waitpid(middle, NULL, 0);
}

static void fork_many(void)
{
	for (int i = 0; i < MANY; i++) {
		fork_sleeper();
	}
}

// Ends every member but the first child, as its own parent would not.
static void end_members(struct fixture *f, pid_t child)
{
	size_t n;
	struct process *const *members = tree_members(f->tree, &n);
	for (size_t i = 0; i < n; i++) {
		if (members[i]->pid != child) {
			kill(members[i]->pid, SIGKILL);
		}
	}
	stop(child);
	while (waitpid(-1, NULL, 0) > 0) { // the orphans that this process inherited
	}
}

static void finds(struct fixture *f, void (*first)(void), size_t n)
{
	pid_t child = start(first);
	tree_start(f->tree, child, getpid(), NULL);
	expect_members(f, n);
	assert_non_null(tree_find(f->tree, child));
	assert_true(tree_entity_of(f->tree, child) > 0);
	assert_int_equal(tree_entity_of(f->tree, getpid()), 0);
	end_members(f, child);
}

static void test_a_child_of_a_child(void **state)
{
	finds(*state, fork_sleeper, 2);
}

static void test_a_child_that_a_thread_forked(void **state)
{
	finds(*state, fork_in_a_thread, 2);
}

static void test_a_daemon_that_lost_its_parent(void **state)
{
	finds(*state, fork_a_daemon, 2);
}

static void test_many_at_once(void **state)
{
	finds(*state, fork_many, 1 + MANY);
}

static void take_the_name_of_a_helper(void)
{
	prctl(PR_SET_NAME, "strain-witness");
}

static void test_helpers_of_ours_stay_out(void **state)
{
	struct fixture *f = *state;
	pid_t child = start(NULL);
	tree_start(f->tree, child, getpid(), NULL);
	tree_update(f->tree, clock_monotonic_ns());
	pid_t helper = start(take_the_name_of_a_helper);
	usleep(20000);
	tree_update(f->tree, clock_monotonic_ns());
	tree_update(f->tree, clock_monotonic_ns() + 2 * NS_PER_S);
	assert_int_equal(count(f->tree), 1);
	assert_null(tree_find(f->tree, helper));
	stop(helper);
	stop(child);
}

static void test_children_that_were_there_before(void **state)
{
	struct fixture *f = *state;
	pid_t child = start(fork_many); // as with --pid: all is there when the tree starts
	usleep(20000);
	tree_start(f->tree, child, 0, NULL);
	tree_update(f->tree, clock_monotonic_ns());
	assert_int_equal(count(f->tree), 1 + MANY);
	end_members(f, child);
}

static void test_removing_keeps_the_rest(void **state)
{
	struct fixture *f = *state;
	pid_t child = start(fork_many);
	tree_start(f->tree, child, getpid(), NULL);
	expect_members(f, 1 + MANY);
	struct process *parent = tree_find(f->tree, child);
	assert_int_equal(parent->n_children, MANY);
	size_t n;
	for (size_t k = 0; k < MANY / 2; k++) {
		struct process *const *members = tree_members(f->tree, &n);
		pid_t pid = members[1 + k % (n - 1)]->pid;
		kill(pid, SIGKILL);
		tree_remove(f->tree, tree_find(f->tree, pid));
		assert_null(tree_find(f->tree, pid));
		members = tree_members(f->tree, &n);
		for (size_t i = 0; i < n; i++) {
			assert_ptr_equal(tree_find(f->tree, members[i]->pid), members[i]);
		}
	}
	parent = tree_find(f->tree, child);
	assert_int_equal(parent->n_children, MANY - MANY / 2);
	assert_true(parent->child_lost);
	struct tree_member *snapshot = NULL;
	size_t capacity = 0;
	assert_int_equal(tree_snapshot(f->tree, &snapshot, &n, &capacity), 0);
	assert_int_equal(n, 1 + MANY - MANY / 2);
	for (size_t i = 1; i < n; i++) {
		assert_true(snapshot[i].entity > snapshot[i - 1].entity);
	}
	free(snapshot);
	end_members(f, child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_nobody_belongs_before_the_start, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_child_of_a_child, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_child_that_a_thread_forked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_daemon_that_lost_its_parent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_helpers_of_ours_stay_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_children_that_were_there_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_removing_keeps_the_rest, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
