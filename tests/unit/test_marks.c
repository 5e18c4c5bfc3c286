// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Marks from the header to the ring and out of it, and rings that are not what they should be.
// test_spans.c: what becomes of them.

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/mark/ring.h"
#include "record/mark/marker_directory.h"

static struct marker_directory directory;

// Rings -----------------------------------------------------------------------------------------

struct fixture {
	struct strain_ring *mapped;
	struct strain_marker marker;
	int directory_fd;
	struct ring_names *names;
	struct ring *ring;
	struct ring_mark marks[64];
	size_t n;
	char path[128];
};

static struct fixture *fixture_new(void)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct error e = {0};
	assert_non_null(f);
	snprintf(f->path, sizeof(f->path), "%s/ring-fixture", directory.path);
	unlink(f->path);
	int fd = open(f->path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	f->mapped = strain_ring_map(fd);
	close(fd);
	assert_non_null(f->mapped);
	f->marker.ring = f->mapped;
	f->directory_fd = open(directory.path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(ring_names_new(&f->names), 0);
	uint64_t start_ns = clock_monotonic_ns();
	assert_int_equal(
		ring_open(f->directory_fd, "ring-fixture", start_ns, f->names, &f->ring, &e), 0);
	return f;
}

// With its header.
static struct fixture *fixture_begun(void)
{
	struct fixture *f = fixture_new();
	strain_ring_init(f->mapped, 7, 8);
	return f;
}

static void fixture_free(struct fixture *f)
{
	ring_free(f->ring);
	ring_names_free(f->names);
	close(f->directory_fd);
	munmap(f->mapped, STRAIN_RING_BYTES);
	unlink(f->path);
	free(f);
}

static void note(void *context, const struct ring_mark *mark)
{
	struct fixture *f = context;
	if (f->n < 64) {
		f->marks[f->n] = *mark;
	}
	f->n++;
}

// Longer than a name may be.
static const char long_name[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
				"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

static int look(struct fixture *f)
{
	struct error e = {0};
	f->n = 0;
	return ring_read(f->ring, clock_monotonic_ns(), 1000000, note, f, &e);
}

static void what_is_marked_is_read(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	assert_int_equal(look(f), 0); // no header yet
	assert_null(ring_owner(f->ring));
	strain_ring_init(f->mapped, 7, 8);
	strain_marker_put(&f->marker, STRAIN_MARK_EPOCH, 0, 0, 3, 0);
	strain_marker_put(&f->marker, STRAIN_MARK_ITERATION, 0, 0, 9, 32);
	strain_marker_begin(&f->marker, "data");
	strain_marker_point(&f->marker, "loss", 0.5);
	strain_marker_end(&f->marker);
	strain_marker_end(&f->marker); // one too many
	strain_marker_begin_samples(&f->marker, "prepare", 32);
	strain_marker_put(&f->marker, STRAIN_MARK_SPAN, 0, 0, -1, 1); // before the run, it says
	strain_marker_put(&f->marker, STRAIN_MARK_SPAN, 0, 0, -1, UINT64_MAX);
	assert_int_equal(look(f), 8);
	assert_int_equal(ring_owner(f->ring)->pid, 7);
	assert_int_equal(ring_owner(f->ring)->tid, 8);
	assert_int_equal(f->marks[0].number, 3);
	assert_int_equal(f->marks[1].samples, 32);
	assert_string_equal(f->marks[2].name, "data");
	assert_int_equal(f->marks[3].depth, 1);
	assert_true(f->marks[3].value == 0.5);
	assert_int_equal(f->marks[2].samples, -1);
	assert_int_equal(f->marks[4].kind, STRAIN_MARK_END);
	assert_int_equal(f->marks[5].samples, 32);
	assert_true(f->marks[6].began_ns > 1 && f->marks[6].began_ns <= f->marks[6].time_ns);
	assert_true(f->marks[7].began_ns == f->marks[7].time_ns);
	assert_false(ring_owner(f->ring)->nvtx);
	assert_int_equal(f->mapped->taken, 8);
	assert_int_equal(look(f), 0);
	fixture_free(f);
}

static void a_full_ring_drops_and_goes_on(void **state)
{
	(void)state;
	struct fixture *f = fixture_begun();
	for (unsigned i = 0; i < STRAIN_RING_SLOTS + 10; i++) {
		strain_marker_point(&f->marker, "x", i);
	}
	assert_int_equal(f->mapped->dropped, 10);
	assert_int_equal(look(f), STRAIN_RING_SLOTS);
	assert_int_equal(ring_dropped(f->ring), 10);
	strain_marker_point(&f->marker, "x", 1); // the slot numbers begin again
	strain_marker_point(&f->marker, "y", 2);
	assert_int_equal(look(f), 2);
	assert_string_equal(f->marks[1].name, "y");
	assert_true(f->marks[0].gap);
	assert_false(f->marks[1].gap);
	strain_marker_point(&f->marker, "x", 1);
	assert_int_equal(look(f), 1);
	assert_false(f->marks[0].gap);
	fixture_free(f);
}

static void more_names_than_there_is_room_for(void **state)
{
	(void)state;
	struct fixture *f = fixture_begun();
	char name[100];
	for (unsigned i = 0; i < STRAIN_RING_NAMES + 5; i++) {
		snprintf(name, sizeof(name), "name %u", i); // the same buffer each time
		strain_marker_begin(&f->marker, name);
		strain_marker_end(&f->marker);
	}
	assert_int_equal(f->mapped->names, STRAIN_RING_NAMES);
	assert_int_equal(look(f), 2 * (STRAIN_RING_NAMES + 5));
	assert_string_equal(f->marks[0].name, "name 0");
	assert_string_equal(f->marks[2].name, "name 1");
	strain_marker_begin(&f->marker, long_name); // too long, and there is no room
	assert_int_equal(look(f), 1);
	assert_string_equal(f->marks[0].name, "(other)");
	fixture_free(f);
}

static void long_and_ugly_names(void **state)
{
	(void)state;
	struct fixture *f = fixture_begun();
	strain_marker_begin(&f->marker, long_name);
	strain_marker_begin(&f->marker, "\x1b[31m");
	strain_marker_begin(&f->marker, NULL);
	assert_int_equal(look(f), 3);
	assert_int_equal(strlen(f->marks[0].name), STRAIN_RING_NAME_BYTES - 1);
	assert_string_equal(f->marks[1].name, "\\x1b[31m");
	assert_string_equal(f->marks[2].name, "(other)");
	fixture_free(f);
}

// Each puts something into a ring of one mark that cannot be there.
static void break_magic(struct strain_ring *ring)
{
	ring->magic = 1;
}
static void break_version(struct strain_ring *ring)
{
	ring->version = 99;
}
static void break_pid(struct strain_ring *ring)
{
	ring->pid = UINT32_MAX;
}
static void break_age(struct strain_ring *ring)
{
	ring->created_ns = 1;
}
static void break_count(struct strain_ring *ring)
{
	ring->written = UINT64_MAX;
}
static void break_sequence(struct strain_ring *ring)
{
	ring->record[0].sequence = 77;
}
static void break_kind(struct strain_ring *ring)
{
	ring->record[0].kind = 200;
}
static void break_depth(struct strain_ring *ring)
{
	ring->record[0].depth = 200;
}
static void break_name(struct strain_ring *ring)
{
	ring->record[0].name = 60000;
}
static void break_past(struct strain_ring *ring)
{
	ring->record[0].time_ns = 5;
}
static void break_future(struct strain_ring *ring)
{
	ring->record[0].time_ns = UINT64_MAX;
}

static void what_cannot_be_is_not_read(void **state)
{
	(void)state;
	static void (*const breaks[])(struct strain_ring *) = {break_magic, break_version,
		break_pid, break_age, break_count, break_sequence, break_kind, break_depth,
		break_name, break_past, break_future};
	for (size_t i = 0; i < ARRAY_LENGTH(breaks); i++) {
		struct fixture *f = fixture_begun();
		strain_marker_point(&f->marker, "x", 1);
		breaks[i](f->mapped);
		assert_int_equal(look(f), -EBADMSG);
		assert_int_equal(f->n, 0);
		fixture_free(f);
	}
}

static void a_file_that_becomes_shorter(void **state)
{
	(void)state;
	struct fixture *f = fixture_begun();
	strain_marker_point(&f->marker, "x", 1);
	assert_int_equal(look(f), 1);
	strain_marker_point(&f->marker, "x", 1);
	assert_int_equal(truncate(f->path, 16384), 0);
	assert_int_equal(look(f), -EBADMSG);
	assert_int_equal(truncate(f->path, 0), 0);
	assert_int_equal(look(f), -EBADMSG);
	fixture_free(f);
}

static void what_is_no_file_is_not_opened(void **state)
{
	(void)state;
	struct ring_names *names;
	struct ring *ring;
	struct error e = {0};
	assert_int_equal(ring_names_new(&names), 0);
	int fd = open(directory.path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkfifoat(fd, "ring-fifo", 0600), 0);
	assert_int_equal(mkdirat(fd, "ring-directory", 0700), 0);
	assert_int_equal(symlinkat("/etc/passwd", fd, "ring-link"), 0);
	assert_int_equal(ring_open(fd, "ring-fifo", 0, names, &ring, &e), -EINVAL);
	assert_int_equal(ring_open(fd, "ring-directory", 0, names, &ring, &e), -EINVAL);
	assert_int_equal(ring_open(fd, "ring-link", 0, names, &ring, &e), -EINVAL);
	assert_int_equal(ring_open(fd, "ring-none", 0, names, &ring, &e), -ENOENT);
	unlinkat(fd, "ring-fifo", 0);
	unlinkat(fd, "ring-link", 0);
	unlinkat(fd, "ring-directory", AT_REMOVEDIR);
	close(fd);
	ring_names_free(names);
}

// The header, from many threads and processes ---------------------------------------------------

static unsigned files(void)
{
	char command[128];
	snprintf(command, sizeof(command), "ls %s | grep -c ^ring-", directory.path);
	FILE *list = popen(command, "r");
	char text[32] = "";
	assert_non_null(fgets(text, sizeof(text), list));
	pclose(list);
	return (unsigned)strtoul(text, NULL, 10);
}

static void *mark_some(void *context)
{
	for (int i = 0; i < 1000; i++) {
		strain_begin("work");
		strain_point("i", i);
		strain_end();
	}
	return context;
}

static void threads_and_forks_have_rings_of_their_own(void **state)
{
	(void)state;
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	mark_some(NULL);
	assert_int_equal(files(), 1);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, mark_some, NULL), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	assert_int_equal(files(), 1 + THREADS);
	const struct strain_ring *before = strain_marker_self_.marker->ring;
	uint64_t written = before->written;
	pid_t child = fork();
	if (child == 0) {
		mark_some(NULL);
		const struct strain_ring *own = strain_marker_self_.marker->ring;
		_exit(own->pid == (uint32_t)getpid() && own->written == 3000 ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(before->written, written); // the child wrote nothing there
	assert_int_equal(files(), 2 + THREADS);
	// What the threads left behind is unmapped by the next that begins.
	assert_int_equal(pthread_create(&threads[0], NULL, mark_some, NULL), 0);
	pthread_join(threads[0], NULL);
	unsigned kept = 0;
	for (const struct strain_marker *m = strain_marker_global_.all; m; m = m->next) {
		kept++;
	}
	assert_int_equal(kept, 2);
}

// A thread that is told of something all the time.
struct shaken {
	pthread_t who;
	_Atomic bool stop;
};

static void *shake(void *context)
{
	struct shaken *shaken = context;
	while (!atomic_load(&shaken->stop)) {
		pthread_kill(shaken->who, SIGUSR1);
		usleep(20);
	}
	return NULL;
}

static volatile sig_atomic_t times_told;

static void count_signal(int signal)
{
	(void)signal;
	times_told++;
}

static void signals_do_not_keep_a_thread_from_marking(void **state)
{
	(void)state;
	struct shaken shaken = {.who = pthread_self()};
	pthread_t thread;
	struct sigaction action = {.sa_handler = count_signal};
	FILE *file = tmpfile();
	// On tmpfs, as rings are: what a disk does is not undone.
	int fd = open("/dev/shm", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	fd = fd < 0 ? fileno(file) : fd;
	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(pthread_create(&thread, NULL, shake, &shaken), 0);
	for (int i = 0; i < 20000 && times_told < 500; i++) {
		assert_int_equal(ftruncate(fd, 0), 0);
		struct strain_ring *ring = strain_ring_map(fd);
		assert_non_null(ring);
		munmap(ring, STRAIN_RING_BYTES);
	}
	atomic_store(&shaken.stop, true);
	pthread_join(thread, NULL);
	if (fd != fileno(file)) {
		close(fd);
	}
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_marked_is_read),
		cmocka_unit_test(a_full_ring_drops_and_goes_on),
		cmocka_unit_test(more_names_than_there_is_room_for),
		cmocka_unit_test(long_and_ugly_names),
		cmocka_unit_test(what_cannot_be_is_not_read),
		cmocka_unit_test(a_file_that_becomes_shorter),
		cmocka_unit_test(what_is_no_file_is_not_opened),
		cmocka_unit_test(threads_and_forks_have_rings_of_their_own),
		cmocka_unit_test(signals_do_not_keep_a_thread_from_marking),
	};
	if (marker_directory_make(&directory, NULL) < 0 ||
		setenv("STRAIN_MARKERS", directory.path, 1) < 0) {
		return 1;
	}
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	marker_directory_remove(&directory);
	marker_directory_done(&directory);
	return failed;
}
