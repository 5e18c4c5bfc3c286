// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whose marks they are: also of a process that has its own pids, and of one that has left.

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "machine/tree.h"
#include "record/mark/marker_directory.h"
#include "record/mark/marks.h"
#include "record/sample/feed.h"
#include "strain/marker.h"

#define SECONDS_MAX 30
#define START_NS (NS_PER_S * 10)

// Who it is of several
// -----------------------------------------------------------------------------

static struct identity somebody(
	int64_t entity, pid_t inner_pid, uint64_t pid_namespace, uint64_t first_ns)
{
	return (struct identity){.entity = entity,
		.pid = (pid_t)(1000 + entity),
		.inner_pid = inner_pid,
		.pid_namespace = pid_namespace,
		.first_ns = first_ns};
}

static struct identity_search asking(
	uint64_t pid_namespace, uint32_t inner_pid, const struct identity *who, size_t n)
{
	struct identity_search search = {.claim = {pid_namespace, inner_pid, START_NS}};
	for (size_t i = 0; i < n; i++) {
		identity_consider(&search, &who[i]);
	}
	return search;
}

static void test_number_and_namespace(void **state)
{
	(void)state;
	const struct identity who[] = {somebody(1, 7, 40, START_NS), somebody(2, 7, 41, START_NS),
		somebody(3, 8, 40, START_NS)};
	struct identity_search search = asking(41, 7, who, 3);
	assert_int_equal(identity_count(&search), 1);
	assert_int_equal(search.best.entity, 2);
	search = asking(42, 7, who, 3);
	assert_int_equal(identity_count(&search), 0);
	search = asking(40, 9, who, 3);
	assert_int_equal(identity_count(&search), 0);
	const struct identity unread = somebody(4, 0, 0, START_NS);
	search = asking(0, 0, &unread, 1);
	assert_int_equal(identity_count(&search), 0); // no number is nobody's
}

static void test_a_number_that_was_given_again(void **state)
{
	(void)state;
	const struct identity who[] = {somebody(1, 7, 40, START_NS - 3 * NS_PER_S),
		somebody(2, 7, 40, START_NS - NS_PER_S), somebody(3, 7, 40, START_NS + NS_PER_S)};
	struct identity_search search = asking(40, 7, who, 3);
	assert_int_equal(identity_count(&search), 1);
	assert_int_equal(search.best.entity, 2); // the third began after the claim
	const struct identity turned[] = {who[2], who[1], who[0]};
	search = asking(40, 7, turned, 3);
	assert_int_equal(search.best.entity, 2);
}

static void test_a_namespace_that_is_not_known(void **state)
{
	(void)state;
	const struct identity who[] = {somebody(1, 7, 0, START_NS), somebody(2, 7, 0, START_NS)};
	struct identity_search search = asking(40, 7, who, 1);
	assert_int_equal(identity_count(&search), 1);
	assert_int_equal(search.best.entity, 1);
	search = asking(40, 7, who, 2);
	assert_int_equal(identity_count(&search), 2); // nobody says which
	const struct identity sure[] = {who[0], somebody(3, 7, 40, START_NS), who[1]};
	search = asking(40, 7, sure, 3);
	assert_int_equal(identity_count(&search), 1);
	assert_int_equal(search.best.entity, 3);
	search = asking(0, 7, sure, 2);
	assert_int_equal(identity_count(&search), 2); // he does not know it himself
}

static void test_only_so_many_that_left(void **state)
{
	(void)state;
	struct identities_left *left = calloc(1, sizeof(*left));
	for (unsigned i = 0; i < 2 * IDENTITIES_LEFT + 1; i++) {
		struct identity who = somebody(i, (pid_t)(i + 1), 40, START_NS);
		identities_left_add(left, &who);
	}
	struct identity_search search = {.claim = {40, IDENTITIES_LEFT + 1, START_NS}};
	identity_consider_left(&search, left);
	assert_int_equal(identity_count(&search), 0);
	search.claim.inner_pid = IDENTITIES_LEFT + 2;
	identity_consider_left(&search, left);
	assert_int_equal(identity_count(&search), 1);
	free(left);
}

// Real processes
// -----------------------------------------------------------------------------------

static int joined(void *context, struct process *p)
{
	p->entity = ++*(int64_t *)context;
	return 0;
}

struct fixture {
	int root_fd;
	struct tree *tree;
	int64_t entities;
	uint64_t start_ns;
	struct marker_directory directory;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->start_ns = clock_monotonic_ns();
	f->root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(marker_directory_make(&f->directory, NULL), 0);
	setenv("STRAIN_MARKERS", f->directory.path, 1);
	assert_int_equal(tree_new(f->root_fd, false, &f->tree, NULL), 0);
	tree_watch(f->tree, &(struct tree_watcher){.context = &f->entities, .joined = joined});
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	marker_directory_remove(&f->directory);
	marker_directory_done(&f->directory);
	tree_free(f->tree);
	close(f->root_fd);
	free(f);
	return 0;
}

struct child {
	pid_t pid;
	struct identity_claim claim; // what it says of itself
};

// Marks, says who it is and waits for its end.
static void child_main(int tell_fd)
{
	strain_begin("work");
	strain_end();
	struct strain_marker *marker = strain_marker_here();
	struct identity_claim claim = {0};
	if (marker) {
		claim = (struct identity_claim){
			marker->ring->pid_namespace, marker->ring->pid, marker->ring->created_ns};
	}
	(void)!write(tell_fd, &claim, sizeof(claim));
	sleep(SECONDS_MAX);
	_exit(0);
}

// The first process of a pid namespace of its own.
static void contained_main(int tell_fd, bool secretive)
{
	bool alone = unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
	pid_t inner = alone ? fork() : -1;
	if (inner == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_DUMPABLE, secretive ? 0 : 1);
		child_main(tell_fd);
	}
	struct identity_claim none = {0};
	if (inner < 0) {
		(void)!write(tell_fd, &none, sizeof(none));
	}
	waitpid(inner, NULL, 0);
	_exit(0);
}

static void ordinary_main(int tell_fd, bool secretive)
{
	(void)secretive;
	child_main(tell_fd);
}

// Starts it and waits until it has said who it is and all n of it are the tree's.
static struct child start(
	struct fixture *f, void (*main_of)(int tell_fd, bool secretive), bool secretive, size_t n)
{
	struct child child = {0};
	int told[2];
	size_t found = 0;
	assert_int_equal(pipe(told), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		main_of(told[1], secretive);
	}
	assert_int_equal(read(told[0], &child.claim, sizeof(child.claim)), sizeof(child.claim));
	close(told[0]);
	close(told[1]);
	tree_start(f->tree, child.pid, 0, NULL);
	for (int i = 0; i < 1000 && child.claim.inner_pid && found < n; i++) {
		tree_update(f->tree, clock_monotonic_ns());
		tree_members(f->tree, &found);
		usleep(2000);
	}
	return child;
}

static void stop(struct fixture *f, const struct child *child)
{
	size_t n;
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	for (;;) {
		struct process *const *members = tree_members(f->tree, &n);
		if (n == 0) {
			break;
		}
		tree_remove(f->tree, members[n - 1]);
	}
}

static void test_one_that_left(void **state)
{
	struct fixture *f = *state;
	struct child child = start(f, ordinary_main, false, 1);
	struct identity who = {0};
	assert_int_equal(tree_identify(f->tree, &child.claim, &who), 1);
	assert_int_equal(who.pid, child.pid);
	stop(f, &child);
	memset(&who, 0, sizeof(who));
	assert_int_equal(tree_identify(f->tree, &child.claim, &who), 1);
	assert_int_equal(who.pid, child.pid);
	assert_int_equal(who.entity, 1);
	struct identity_claim stranger = child.claim;
	stranger.inner_pid = (uint32_t)getpid();
	assert_int_equal(tree_identify(f->tree, &stranger, &who), 0);
}

static void check_contained(struct fixture *f, bool secretive)
{
	struct child child = start(f, contained_main, secretive, 2);
	if (child.claim.inner_pid == 0) {
		stop(f, &child);
		print_message("skipped: no pid namespaces for this user\n");
		skip();
	}
	struct identity who = {0};
	assert_int_equal(child.claim.inner_pid, 1);
	assert_int_equal(tree_identify(f->tree, &child.claim, &who), 1);
	assert_int_equal(who.entity, 2);
	assert_int_equal(who.inner_pid, 1);
	assert_true(who.pid != child.pid && who.pid != 1);
	stop(f, &child);
	assert_int_equal(tree_identify(f->tree, &child.claim, &who), 1);
	assert_int_equal(who.entity, 2);
}

static void test_one_with_its_own_pids(void **state)
{
	check_contained(*state, false);
}

// Its namespace is nobody's to read but root's: its number there is.
static void test_one_that_is_not_dumpable(void **state)
{
	check_contained(*state, true);
}

// The recorder reads what it marked after it has gone.
static void test_marks_of_one_that_left(void **state)
{
	struct fixture *f = *state;
	struct child child = start(f, ordinary_main, false, 1);
	stop(f, &child);
	struct feed *feed;
	struct marks *marks;
	_Atomic unsigned epochs = 0;
	struct error e = {0};
	assert_int_equal(feed_new(1 << 20, &feed), 0);
	const struct marks_config config = {.directory = &f->directory,
		.root_fd = f->root_fd,
		.tree = f->tree,
		.feed = feed,
		.start_ns = f->start_ns,
		.epochs = &epochs};
	assert_int_equal(marks_start(&config, &marks, &e), 0);
	marks_stop(marks);
	unsigned spans = 0;
	for (struct item *item = feed_take(feed, 0), *next; item; item = next) {
		next = item->next;
		assert_int_equal(item->kind, ITEM_SPAN);
		assert_string_equal(item->name, "work");
		assert_string_equal(item->key, "{\"process\":1}");
		spans++;
		item_free(item);
	}
	assert_int_equal(spans, 1);
	feed_free(feed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number_and_namespace),
		cmocka_unit_test(test_a_number_that_was_given_again),
		cmocka_unit_test(test_a_namespace_that_is_not_known),
		cmocka_unit_test(test_only_so_many_that_left),
		cmocka_unit_test_setup_teardown(test_one_that_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_with_its_own_pids, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_that_is_not_dumpable, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_marks_of_one_that_left, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
