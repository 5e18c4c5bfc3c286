// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The rings of a run. One pass does a bounded amount of work, however many files the job puts into
// the directory and however fast it marks. The rest waits; if it waits too long, the writer drops
// marks.

#include "record/mark/marks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "machine/tree.h"
#include "record/mark/marker_directory.h"
#include "record/mark/ring.h"
#include "record/mark/spans.h"
#include "record/sample/feed.h"

#define LOOK_SOONEST_NS (5 * NS_PER_MS)
// A ring holds seven thousand marks, and a pass costs as much as seventy.
#define LOOK_LATEST_NS (200 * NS_PER_MS)
// About the rate that one hundredth of a core can turn into spans.
#define MARKS_PER_S 200000u
#define MARKS_AT_ONCE 20000u
// A process is known a tick or two after its start. If it is not known by this time, it never will
// be.
#define OWNER_PATIENCE_NS (500 * NS_PER_MS)
// Time allowed from the creation of a file until its space is allocated.
#define ROOM_PATIENCE_NS (5 * NS_PER_S)
#define DEAD_AFTER_NS (100 * NS_PER_MS) // of silence, then check the thread
enum {
	RINGS_MAX = 1024,
	RINGS_SHARE = 16, // of the available descriptors
	NAMES_A_LOOK = 256,
	ASKED_A_LOOK = 16, // whether they live
	SEARCHED_A_LOOK = 64, // to find their owners
	TOLD_MAX = 8, // events about single rings
	LAST_LOOKS = 200, // at the end, of MARKS_AT_ONCE each
	SPAN_BYTES = 10, // upper estimate of a span's size in the run file
	SPANS_MAX = 2000000,
};

struct marked_ring {
	char *name; // of the file
	struct ring *ring;
	struct marked_thread *thread; // NULL until its owner is known, or no longer waited for
	struct ring_writer writer;
	bool owned; // a process of the job owns it
	uint64_t found_ns;
	uint64_t marked_ns; // when it last had marks, or its thread was last checked
};

struct marks {
	struct marks_config config;
	pthread_t thread;
	_Atomic bool stop;
	int wake_fd;
	int directory_fd;
	DIR *listing;
	bool listing_now; // the list is not at its end
	struct timespec changed; // the directory's time when the list began
	bool again; // the list may be incomplete
	struct ring_names *names;
	struct spans *spans;
	uint64_t own_namespace;
	struct marked_ring rings[RINGS_MAX];
	size_t n_rings;
	size_t max_rings;
	size_t next; // the ring with which the next pass begins
	bool too_many;
	uint64_t dropped; // by rings that are gone
	unsigned no_room;
	unsigned told;
	unsigned broken;
	unsigned searches; // searches left in this pass
	uint64_t wait_ns;
};

static void put_event(struct marks *m, const char *text)
{
	feed_put(m->config.feed,
		&(struct item){.kind = ITEM_EVENT,
			.t_ns = (int64_t)(clock_monotonic_ns() - m->config.start_ns),
			.event = "lost",
			.text = text});
}

// Rings that end ----------------------------------------------------------------------------------

// Closes its spans and removes its file. The last ring takes its index.
static void remove_ring(struct marks *m, size_t i, const char *how)
{
	struct marked_ring *ring = &m->rings[i];
	if (ring->thread) {
		marked_thread_end(ring->thread, clock_monotonic_ns(), how);
	}
	uint64_t dropped = ring_dropped(ring->ring);
	m->dropped += dropped < UINT32_MAX ? dropped : UINT32_MAX; // untrusted number
	ring_free(ring->ring);
	unlinkat(m->directory_fd, ring->name, 0);
	free(ring->name);
	*ring = m->rings[--m->n_rings];
}

static void ring_is_broken(struct marks *m, size_t i, const struct error *e)
{
	const struct ring_owner *owner = ring_owner(m->rings[i].ring);
	m->broken++;
	if (m->told++ < TOLD_MAX) {
		char text[256];
		snprintf(text, sizeof(text),
			"marks of thread %u of process %u are no longer read: %.120s",
			owner ? owner->tid : 0, owner ? owner->pid : 0, e->text);
		put_event(m, text);
	}
	remove_ring(m, i, "lost");
}

// Rings that begin --------------------------------------------------------------------------------

static bool is_known(const struct marks *m, const char *name)
{
	for (size_t i = 0; i < m->n_rings; i++) {
		if (strcmp(m->rings[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

static void add_ring(struct marks *m, const char *name, uint64_t now_ns)
{
	struct marked_ring *at = &m->rings[m->n_rings];
	struct error e = {0};
	if (m->n_rings >= m->max_rings) {
		m->too_many = true;
		return;
	}
	char *copy = strdup(name);
	struct ring *ring = NULL;
	int r = copy ? ring_open(m->directory_fd, name, m->config.start_ns, m->names, &ring, &e)
	             : -ENOMEM;
	if (r < 0) {
		free(copy);
		bool later = r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -EINTR;
		m->again |= later;
		if (!later) {
			unlinkat(m->directory_fd, name, 0); // not a ring: never examined again
		}
		return;
	}
	*at = (struct marked_ring){
		.name = copy, .ring = ring, .found_ns = now_ns, .marked_ns = now_ns};
	m->n_rings++;
}

static bool is_ring_name(const char *name)
{
	return strncmp(name, "ring-", 5) == 0;
}

// A directory's time advances in steps of some milliseconds: files created in the step in which it
// was listed do not change it.
static bool is_recent(const struct timespec *changed)
{
	time_t age = (time_t)(clock_realtime_ns() / NS_PER_S) - changed->tv_sec;
	return age >= -1 && age <= 1;
}

// Starts a list if there may be new files. Returns false if there is no list to continue.
static bool list_rings(struct marks *m)
{
	struct stat status;
	if (m->listing_now) {
		return true;
	}
	if (fstat(m->directory_fd, &status) < 0) {
		return false;
	}
	bool same = status.st_mtim.tv_sec == m->changed.tv_sec &&
	            status.st_mtim.tv_nsec == m->changed.tv_nsec;
	if (same && !m->again) {
		return false;
	}
	rewinddir(m->listing);
	m->changed = status.st_mtim;
	m->again = is_recent(&m->changed);
	m->listing_now = true;
	return true;
}

// Continues listing the directory.
static void look_for_rings(struct marks *m, uint64_t now_ns)
{
	if (!list_rings(m)) {
		return;
	}
	for (unsigned i = 0; i < NAMES_A_LOOK; i++) {
		struct dirent *entry = readdir(m->listing);
		if (!entry) {
			m->listing_now = false;
			return;
		}
		if (is_ring_name(entry->d_name) && !is_known(m, entry->d_name)) {
			add_ring(m, entry->d_name, now_ns);
		}
	}
}

// Finds the ring's process, which may have ended. Returns false if the tree does not have it (yet)
// with certainty.
static bool identify(struct marks *m, const struct marked_ring *ring, struct identity *ret)
{
	const struct ring_owner *owner = ring_owner(ring->ring);
	m->searches -= m->searches > 0;
	return tree_identify(m->config.tree,
		       &(struct identity_claim){
			       owner->pid_namespace, owner->pid, owner->created_ns},
		       ret) == 1;
}

static void set_owner(struct marks *m, struct marked_ring *ring, const struct identity *who)
{
	const struct ring_owner *owner = ring_owner(ring->ring);
	ring->writer = ring_writer_of(m->config.root_fd, owner, who);
	ring->owned = true;
	marked_thread_owner(ring->thread, who->entity, owner);
}

// The owner is not in the job, or lived too shortly to be seen. Looks up now, while that is
// possible, how to check whether it lives.
static void set_stranger(struct marks *m, struct marked_ring *ring)
{
	const struct ring_owner *owner = ring_owner(ring->ring);
	if (owner->pid_namespace == 0 || owner->pid_namespace == m->own_namespace) {
		ring->writer = (struct ring_writer){(pid_t)owner->pid, (pid_t)owner->tid};
	}
	marked_thread_owner(ring->thread, 0, owner);
}

// Creates the thread once its process is known. Returns false while it is worth waiting for the
// process.
static bool find_owner(struct marks *m, struct marked_ring *ring, uint64_t now_ns)
{
	bool patient = now_ns - ring->found_ns < OWNER_PATIENCE_NS && !atomic_load(&m->stop);
	struct identity who;
	bool found = (m->searches > 0 || !patient) && identify(m, ring, &who);
	if ((!found && patient) ||
		marked_thread_new(m->spans, ring_owner(ring->ring)->tid, &ring->thread) < 0) {
		return false;
	}
	if (found) {
		set_owner(m, ring, &who);
	} else {
		set_stranger(m, ring);
	}
	return true;
}

// A look ------------------------------------------------------------------------------------------

static void take_nothing(void *context, const struct ring_mark *mark)
{
	(void)context;
	(void)mark;
}

// Reads up to max marks of one ring. Returns their number; negative: the ring is gone.
static int look_at_ring(struct marks *m, size_t i, size_t max, uint64_t now_ns)
{
	struct marked_ring *ring = &m->rings[i];
	struct error e = {0};
	if (!ring->thread) {
		int r = ring_read(ring->ring, now_ns, 0, take_nothing, NULL, &e);
		bool late = now_ns - ring->found_ns > ROOM_PATIENCE_NS;
		if (r < 0) {
			ring_is_broken(m, i, &e);
			return r;
		}
		if (!ring_owner(ring->ring) && (late || atomic_load(&m->stop))) {
			m->no_room += ring_has_no_room(ring->ring);
			remove_ring(m, i, "lost");
			return -ENODATA;
		}
		if (!ring_owner(ring->ring) || !find_owner(m, ring, now_ns)) {
			return 0;
		}
	}
	int n = ring_read(ring->ring, now_ns, max, marked_thread_take, ring->thread, &e);
	tree_note_training(m->config.tree, marked_thread_trains(ring->thread));
	if (n < 0) {
		ring_is_broken(m, i, &e);
	} else if ((size_t)n < max) {
		marked_thread_read(ring->thread, now_ns);
	}
	return n;
}

// Whether the thread has ended. Marks that it made before are read first.
static bool has_ended(struct marks *m, struct marked_ring *ring)
{
	struct identity who;
	if (!ring->thread) {
		return false;
	}
	if (!ring->owned && m->searches > 0 && identify(m, ring, &who)) {
		set_owner(m, ring, &who);
	}
	return !ring_writer_lives(m->config.root_fd, &ring->writer);
}

// Reads all rings until the allowance of marks is spent. Returns the number of marks.
static size_t look_at_rings(struct marks *m, size_t allowance)
{
	unsigned asked = 0;
	size_t taken = 0;
	size_t n = m->n_rings;
	m->searches = SEARCHED_A_LOOK;
	for (size_t k = 0; k < n && taken < allowance && m->n_rings > 0; k++) {
		size_t i = m->next < m->n_rings ? m->next : 0;
		struct marked_ring *ring = &m->rings[i];
		uint64_t now_ns = clock_monotonic_ns();
		bool ask = asked < ASKED_A_LOOK && now_ns - ring->marked_ns > DEAD_AFTER_NS;
		asked += ask;
		bool ended = ask && has_ended(m, ring);
		ring->marked_ns = ask ? now_ns : ring->marked_ns;
		int got = look_at_ring(m, i, allowance - taken, now_ns);
		if (got < 0) {
			continue; // another ring took its index
		}
		taken += (size_t)got;
		ring->marked_ns = got > 0 ? now_ns : ring->marked_ns;
		if (ended && got == 0) {
			remove_ring(m, i, "exit");
			continue;
		}
		m->next = i + 1;
	}
	// A round ends where it began: rings that were checked come last in the next.
	m->next = taken < allowance && m->n_rings > 0 ? (m->next + ASKED_A_LOOK) % m->n_rings
	                                              : m->next;
	return taken;
}

// What is left to say -----------------------------------------------------------------------------

static void tell_losses(struct marks *m)
{
	char text[256];
	if (m->dropped > 0) {
		snprintf(text, sizeof(text),
			"%llu marks were dropped: the job produced them faster than they are read",
			(unsigned long long)m->dropped);
		put_event(m, text);
	}
	if (spans_dropped(m->spans) > 0) {
		snprintf(text, sizeof(text),
			"%llu spans and points were dropped: there were too many; the samples of "
			"epochs include them",
			(unsigned long long)spans_dropped(m->spans));
		put_event(m, text);
	}
	if (m->no_room > 0) {
		snprintf(text, sizeof(text),
			"%u threads could not record marks: no space in "
			"%.150s",
			m->no_room, m->config.directory->path);
		put_event(m, text);
	}
	if (m->too_many) {
		snprintf(text, sizeof(text),
			"more than %zu threads marked at the same time; not all were read",
			m->max_rings);
		put_event(m, text);
	}
	if (m->broken > TOLD_MAX) {
		snprintf(text, sizeof(text), "the marks of %u threads are invalid", m->broken);
		put_event(m, text);
	}
}

// Threads that still run continue to mark into a file that nobody reads.
static void finish(struct marks *m)
{
	for (unsigned i = 0; i < LAST_LOOKS; i++) {
		m->again = true;
		look_for_rings(m, clock_monotonic_ns());
		size_t taken = look_at_rings(m, MARKS_AT_ONCE);
		spans_settle(m->spans);
		if (taken == 0 && !m->listing_now) {
			break;
		}
	}
	while (m->n_rings > 0) {
		struct marked_ring *ring = &m->rings[m->n_rings - 1];
		bool lives = !ring->thread || ring_writer_lives(m->config.root_fd, &ring->writer);
		remove_ring(m, m->n_rings - 1, lives ? "run" : "exit");
	}
	spans_settle(m->spans);
	tell_losses(m);
}

// The thread --------------------------------------------------------------------------------------

// Waits less if rings fill up, longer if nothing arrives.
static void choose_wait(struct marks *m, size_t taken)
{
	if (taken > STRAIN_RING_SLOTS / 4) {
		m->wait_ns = LOOK_SOONEST_NS;
	} else if (taken > STRAIN_RING_SLOTS / 16) {
		m->wait_ns = m->wait_ns / 2 > LOOK_SOONEST_NS ? m->wait_ns / 2 : LOOK_SOONEST_NS;
	} else if (taken < STRAIN_RING_SLOTS / 64) {
		m->wait_ns = m->wait_ns * 2 < LOOK_LATEST_NS ? m->wait_ns * 2 : LOOK_LATEST_NS;
	}
}

static void *marks_main(void *context)
{
	struct marks *m = context;
	prctl(PR_SET_NAME, "strain-marks");
	uint64_t looked_ns = clock_monotonic_ns();
	double allowance = MARKS_AT_ONCE;
	while (!atomic_load(&m->stop)) {
		struct pollfd woken = {.fd = m->wake_fd, .events = POLLIN};
		poll(&woken, 1, (int)(m->wait_ns / NS_PER_MS));
		uint64_t now_ns = clock_monotonic_ns();
		allowance += (double)(now_ns - looked_ns) / 1e9 * MARKS_PER_S;
		allowance = allowance < MARKS_AT_ONCE ? allowance : MARKS_AT_ONCE;
		looked_ns = now_ns;
		look_for_rings(m, now_ns);
		size_t taken = look_at_rings(m, (size_t)allowance);
		allowance -= (double)taken;
		spans_settle(m->spans);
		choose_wait(m, taken);
	}
	finish(m);
	return NULL;
}

static void marks_free(struct marks *m)
{
	spans_free(m->spans);
	ring_names_free(m->names);
	if (m->listing) {
		closedir(m->listing); // and directory_fd
	}
	if (m->wake_fd >= 0) {
		close(m->wake_fd);
	}
	free(m);
}

static int open_directory(struct marks *m, struct error *e)
{
	const struct marker_directory *directory = m->config.directory;
	// A new descriptor has its own directory offset.
	m->directory_fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->directory_fd < 0) {
		return error_errno(e, errno, "%s", directory->path);
	}
	m->listing = fdopendir(m->directory_fd);
	if (!m->listing) {
		int code = errno;
		close(m->directory_fd);
		return error_errno(e, code, "%s", directory->path);
	}
	return 0;
}

// Each ring is an open file; most descriptors are needed elsewhere.
static size_t rings_that_fit(void)
{
	struct rlimit limit;
	size_t n = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / RINGS_SHARE : 1;
	return n < 1 ? 1 : n < RINGS_MAX ? n : RINGS_MAX;
}

static uint64_t spans_that_fit(uint64_t max_bytes)
{
	uint64_t spans = max_bytes / 4 / SPAN_BYTES;
	return max_bytes > 0 && spans < SPANS_MAX ? spans : SPANS_MAX;
}

int marks_start(const struct marks_config *config, struct marks **ret, struct error *e)
{
	struct marks *m = calloc(1, sizeof(*m));
	if (!m) {
		return error_set(e, ENOMEM, "out of memory");
	}
	m->config = *config;
	m->wait_ns = LOOK_LATEST_NS;
	m->max_rings = rings_that_fit();
	m->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	m->own_namespace = identity_own_namespace(config->root_fd);
	int r = open_directory(m, e);
	if (r == 0 && (ring_names_new(&m->names) < 0 || spans_new(config->feed, config->start_ns,
								spans_that_fit(config->max_bytes),
								config->epochs, &m->spans) < 0)) {
		r = error_set(e, ENOMEM, "out of memory");
	}
	if (r == 0) {
		spans_log_phases(m->spans, config->phases);
		int failed = pthread_create(&m->thread, NULL, marks_main, m);
		r = failed ? error_errno(e, failed, "cannot start a thread") : 0;
	}
	if (r < 0) {
		marks_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void marks_stop(struct marks *m)
{
	if (m) {
		atomic_store(&m->stop, true);
		eventfd_write(m->wake_fd, 1);
		pthread_join(m->thread, NULL);
		marker_directory_remove(m->config.directory);
		marks_free(m);
	}
}
