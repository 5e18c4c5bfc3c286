// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The thread that reads the rings of a directory: it finds all of them, and notices who is gone.

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "machine/tree.h"
#include "record/mark/marker_directory.h"
#include "record/mark/marks.h"
#include "record/sample/feed.h"
#include "strain/marker.h"

#define PATIENCE_S 60 // what has not come by then will not come

struct fixture {
	struct marker_directory directory;
	int root_fd;
	struct tree *tree;
	struct feed *feed;
	_Atomic unsigned epochs;
	struct marks_config config;
	struct marks *marks;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_int_equal(marker_directory_make(&f->directory, NULL), 0);
	f->root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(tree_new(f->root_fd, false, &f->tree, NULL), 0);
	assert_int_equal(feed_new((size_t)8 << 20, &f->feed), 0);
	f->config = (struct marks_config){.directory = &f->directory,
		.root_fd = f->root_fd,
		.tree = f->tree,
		.feed = f->feed,
		.start_ns = clock_monotonic_ns(),
		.epochs = &f->epochs};
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	marks_stop(f->marks);
	marker_directory_remove(&f->directory);
	marker_directory_done(&f->directory);
	feed_free(f->feed);
	tree_free(f->tree);
	close(f->root_fd);
	free(f);
	return 0;
}

static void begin(struct fixture *f)
{
	struct error e = {0};
	assert_int_equal(marks_start(&f->config, &f->marks, &e), 0);
}

static void end(struct fixture *f)
{
	marks_stop(f->marks);
	f->marks = NULL;
}

// A ring of the thread that leads pid, with one span. Unmap it with munmap.
static struct strain_ring *make_ring(const struct fixture *f, const char *name, pid_t pid)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/ring-%s", f->directory.path, name);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, STRAIN_RING_BYTES), 0); // room only for what is written
	void *at = mmap(NULL, STRAIN_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(at != MAP_FAILED);
	close(fd);
	struct strain_marker marker = {.ring = at};
	strain_ring_init(at, (uint32_t)pid, (uint32_t)pid);
	strain_marker_begin(&marker, name);
	strain_marker_end(&marker);
	return at;
}

// A pid that was one.
static pid_t gone(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	return pid;
}

static void free_items(struct item *item)
{
	while (item) {
		struct item *next = item->next;
		item_free(item);
		item = next;
	}
}

static bool has_text(const char *in, const char *part)
{
	return in && strstr(in, part);
}

// How many spans go by the name, and how many events have it in their text.
static unsigned count(const struct item *items, enum item_kind kind, const char *text)
{
	unsigned n = 0;
	for (const struct item *i = items; i; i = i->next) {
		n += i->kind == kind && has_text(kind == ITEM_EVENT ? i->text : i->name, text);
	}
	return n;
}

static bool is_taken(const struct strain_ring *ring)
{
	uint64_t until = clock_monotonic_ns() + PATIENCE_S * NS_PER_S;
	while (clock_monotonic_ns() < until) {
		if (__atomic_load_n(&ring->taken, __ATOMIC_ACQUIRE) > 0) {
			return true;
		}
		usleep(5000);
	}
	return false;
}

// The directory's time stands still for a while: what came within it after a list is found.
static void test_a_ring_that_changed_nothing(void **state)
{
	struct fixture *f = *state;
	struct stat before;
	struct strain_ring *first = make_ring(f, "first", getpid());
	assert_int_equal(stat(f->directory.path, &before), 0);
	begin(f);
	assert_true(is_taken(first));
	struct strain_ring *second = make_ring(f, "second", getpid());
	const struct timespec times[2] = {before.st_atim, before.st_mtim};
	assert_int_equal(utimensat(AT_FDCWD, f->directory.path, times, 0), 0);
	end(f);
	struct item *items = feed_take(f->feed, 0);
	assert_int_equal(count(items, ITEM_SPAN, "first"), 1);
	assert_int_equal(count(items, ITEM_SPAN, "second"), 1);
	free_items(items);
	munmap(first, STRAIN_RING_BYTES);
	munmap(second, STRAIN_RING_BYTES);
}

static unsigned files(const struct fixture *f, const char *prefix, unsigned n)
{
	char path[128];
	unsigned there = 0;
	for (unsigned i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/ring-%s%u", f->directory.path, prefix, i);
		there += access(path, F_OK) == 0;
	}
	return there;
}

static void make_rings(const struct fixture *f, const char *prefix, unsigned n, pid_t pid)
{
	for (unsigned i = 0; i < n; i++) {
		char name[32];
		snprintf(name, sizeof(name), "%s%u", prefix, i);
		munmap(make_ring(f, name, pid), STRAIN_RING_BYTES);
	}
}

// However many live on and mark nothing.
static void test_the_gone_among_many_that_rest(void **state)
{
	struct fixture *f = *state;
	enum { REST = 100, GONE = 20 };
	make_rings(f, "rests", REST, getpid());
	make_rings(f, "gone", GONE, gone());
	begin(f);
	uint64_t until = clock_monotonic_ns() + PATIENCE_S * NS_PER_S;
	while (files(f, "gone", GONE) > 0 && clock_monotonic_ns() < until) {
		usleep(20000);
	}
	assert_int_equal(files(f, "gone", GONE), 0);
	assert_int_equal(files(f, "rests", REST), REST);
	end(f);
	struct item *items = feed_take(f->feed, 0);
	assert_int_equal(count(items, ITEM_SPAN, "gone"), GONE);
	assert_int_equal(count(items, ITEM_SPAN, "rests"), REST);
	free_items(items);
}

// Where few files may be open, rings take a few of them, and it is said.
static void test_few_descriptors(void **state)
{
	struct fixture *f = *state;
	struct rlimit before;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	const struct rlimit few = {.rlim_cur = 160, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	make_rings(f, "rests", 12, getpid());
	begin(f);
	end(f);
	setrlimit(RLIMIT_NOFILE, &before);
	struct item *items = feed_take(f->feed, 0);
	assert_int_equal(count(items, ITEM_SPAN, "rests"), 10);
	assert_int_equal(
		count(items, ITEM_EVENT, "more than 10 threads marked at the same time"), 1);
	free_items(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_ring_that_changed_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_gone_among_many_that_rest, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_few_descriptors, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
