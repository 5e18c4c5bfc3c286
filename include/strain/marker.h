// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the strain authors
//
// Marks: a program marks its epochs, iterations and phases, and `strain run` records them.
//
//	#include <strain/marker.h>
//
//	strain_epoch(1);                  // epoch 1 begins here; the one before it ends
//	strain_iteration(7, 32);          // iteration 7 begins, of 32 samples
//	strain_begin("forward");          // a span; forward and some more names are phases
//	strain_end();                     // (docs/markers.md), others are your own
//	strain_point("loss", 0.31);       // a value at this moment
//	strain_span("copy", began_ns);    // a span from then to now, which may cross others
//	strain_epoch_end();               // the last epoch ends here
//	strain_unit("frames");            // what a sample is
//
// Header only, C11 and C++11, no library to link. A mark costs a clock read and a few nanoseconds;
// outside of `strain run`, a few nanoseconds. Marks never fail or block, and make no system calls
// except for a thread's first mark. Do not use them in signal handlers, or between vfork and exec.
//
// The rest of this file also documents the ring, for programs in other languages that write or read
// marks.
//
// Each thread that marks has its own file of RING_BYTES bytes in the directory named by the
// environment variable STRAIN_MARKERS, if no other user can access that. The file's name begins
// with "ring-". Numbers are in the machine's byte order. The file has a header, a table of names,
// and slots for records:
//
// - The thread is the only writer. It fills slot number `written` modulo STRAIN_RING_SLOTS, then
//   adds one to `written` with release order.
// - The recorder reads the file (it never maps it) and writes one word, `taken`: the number of
//   records that it has read. A thread that finds the ring full (written - taken is
//   STRAIN_RING_SLOTS) drops its mark and adds one to `dropped`. If the recorder is slow or dead,
//   marks are dropped; the program never waits.
// - A record has the low half of its number, counted from 1, and the depth of the open spans: after
//   dropped marks, ends can still be matched with their beginnings.
// - A file whose space could not be allocated is left empty, which tells the recorder.
// - After a fork, the child's first mark creates its own ring. The file is closed at once, so an
//   executed program does not inherit it. The mapping of an ended thread is removed by the next
//   thread of its process that begins to mark; the recorder removes the file.

#ifndef STRAIN_MARKER_H
#define STRAIN_MARKER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STRAIN_RING_MAGIC UINT64_C(0x676e69526e727453) // "StrnRing" on a little-endian machine
#define STRAIN_RING_VERSION 1u
#define STRAIN_RING_BYTES 262144u
#define STRAIN_RING_NAMES 240u // upper bound; further names become number 0, "(other)"
#define STRAIN_RING_NAME_BYTES 64u // including the NUL; longer names are truncated
#define STRAIN_RING_SLOTS 7680u
#define STRAIN_RING_DEPTH 63u // deeper spans are dropped

enum strain_mark_kind {
	STRAIN_MARK_BEGIN = 1, // depth: of the span, from 0; extra: its samples, 0: unknown
	STRAIN_MARK_END = 2, // depth: of the span that ends
	STRAIN_MARK_POINT = 3, // extra: the bits of a double
	STRAIN_MARK_EPOCH = 4, // number
	STRAIN_MARK_EPOCH_END = 5,
	STRAIN_MARK_ITERATION = 6, // number; extra: its samples, -1: unknown
	STRAIN_MARK_SPAN = 7, // ends here; extra: its start; depth: number of open spans
	STRAIN_MARK_ITERATION_END = 8
};

struct strain_record {
	uint64_t time_ns; // CLOCK_MONOTONIC
	uint32_t sequence; // low half of the record's number, the first is 1
	uint8_t kind; // enum strain_mark_kind
	uint8_t depth;
	uint16_t name; // index into the table
	int64_t number;
	uint64_t extra;
};

struct strain_ring {
	uint64_t magic; // written last, when the header is complete
	uint32_t version;
	uint32_t pid; // the writer's own pid
	uint32_t tid;
	uint32_t depth; // for a writer that is one process per mark (strain mark)
	uint64_t pid_namespace; // its namespace (the inode of /proc/self/ns/pid); 0: unknown
	uint64_t created_ns;
	char origin[8]; // "nvtx": NVTX ranges; empty: marks of the program itself
	uint8_t unused1[16];
	uint64_t written; // written by the thread
	uint64_t dropped;
	uint32_t names; // number of entries in the table
	uint8_t unused2[44];
	uint64_t taken; // written by the recorder
	uint8_t unused3[888];
	char name[STRAIN_RING_NAMES][STRAIN_RING_NAME_BYTES];
	struct strain_record record[STRAIN_RING_SLOTS];
};

// A thread's state for its ring. The rest of this file is private.

#define STRAIN_MARKER_CACHE 64u

struct strain_marker {
	struct strain_ring *ring; // NULL: this thread does not mark
	uint64_t generation; // of the process to which it belongs
	uint64_t written;
	uint32_t tid;
	uint32_t depth;
	struct strain_marker *next;
	struct {
		const char *name; // the pointer passed last
		uint32_t index;
	} cache[STRAIN_MARKER_CACHE];
};

// A page that a fork wipes, so that a child detects that it is a new process.
struct strain_marker_process {
	uint64_t generation; // 0: just forked
};

struct strain_marker_global {
	struct strain_marker_process *process;
	struct strain_marker *all; // of this process, including its ended threads
	char *directory;
	uint64_t generations;
	int state; // 0: not initialised, 1: on, -1: off
	int pid; // if a fork wipes no page; else 0
	const char *origin; // of all marks of this program or library; NULL: the program itself
};

struct strain_marker_self {
	struct strain_marker *marker;
	uint64_t generation; // if not the process's, the marker belonged to the parent and is gone
};

#ifdef __cplusplus
#define STRAIN_MARKER_CAST(type, value) static_cast<type>(value)
extern "C" {
#else
#define STRAIN_MARKER_CAST(type, value) ((type)(value))
#endif
// One of each per program or shared library, however many of its files include this one.
extern struct strain_marker_global strain_marker_global_;
extern __thread struct strain_marker_self strain_marker_self_;
__attribute__((weak, visibility("hidden"))) struct strain_marker_global strain_marker_global_ = {
	0, 0, 0, 0, 0, 0, 0};
__attribute__((weak,
	visibility("hidden"))) __thread struct strain_marker_self strain_marker_self_ = {0, 0};
#ifdef __cplusplus
}
#endif

static inline uint64_t strain_marker_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return STRAIN_MARKER_CAST(uint64_t, now.tv_sec) * UINT64_C(1000000000) +
	       STRAIN_MARKER_CAST(uint64_t, now.tv_nsec);
}

// "pid:[4026531836]"
static inline uint64_t strain_marker_namespace(void)
{
	char text[64];
	uint64_t inode = 0;
	ssize_t length = readlink("/proc/self/ns/pid", text, sizeof(text));
	for (ssize_t i = 0; i < length; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			inode = inode * 10 + STRAIN_MARKER_CAST(uint64_t, text[i] - '0');
		}
	}
	return inode;
}

// Initialises a ring in a file of STRAIN_RING_BYTES zeros.
static inline void strain_ring_init(struct strain_ring *ring, uint32_t pid, uint32_t tid)
{
	ring->version = STRAIN_RING_VERSION;
	ring->pid = pid;
	ring->tid = tid;
	ring->pid_namespace = strain_marker_namespace();
	ring->created_ns = strain_marker_now_ns();
	memcpy(ring->name[0], "(other)", sizeof("(other)"));
	ring->names = 1;
	__atomic_store_n(&ring->magic, STRAIN_RING_MAGIC, __ATOMIC_RELEASE);
}

// Appends a number in decimal and a '-' to a path under construction.
static inline char *strain_marker_append(char *at, uint64_t number)
{
	char digits[24];
	int n = 0;
	do {
		digits[n++] = STRAIN_MARKER_CAST(char, '0' + STRAIN_MARKER_CAST(int, number % 10));
		number /= 10;
	} while (number > 0);
	while (n > 0) {
		*at++ = digits[--n];
	}
	*at++ = '-';
	return at;
}

// Allocates space for a ring in an open, empty file and maps it; NULL on failure.
static inline struct strain_ring *strain_ring_map(int fd)
{
	// Allocated before mapping; otherwise a full disk would kill the program at the first
	// write. A signal during the call undoes it.
	int failed = EINTR;
	for (int i = 0; i < 100 && failed == EINTR; i++) {
		failed = posix_fallocate(fd, 0, STRAIN_RING_BYTES);
	}
	if (failed != 0) {
		(void)!ftruncate(fd, 0);
		return NULL;
	}
	void *at = mmap(NULL, STRAIN_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return at == MAP_FAILED ? NULL : STRAIN_MARKER_CAST(struct strain_ring *, at);
}

// fstat() by a name that C libraries before 2.33 have, too.
static inline int strain_marker_status(int fd, struct stat *ret)
{
#ifdef __LP64__
	return STRAIN_MARKER_CAST(int, syscall(SYS_fstat, fd, ret)); // the same struct
#else
	return fstat(fd, ret);
#endif
}

// Opens a file in the marker directory. Returns a descriptor, or -1 with errno. An environment
// outlives its run, and any user can then take the directory's name: only a directory of this user,
// closed to others, is used.
static inline int strain_marker_open(const char *directory, const char *name, int flags)
{
	struct stat status;
	int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (folder < 0) {
		return -1;
	}
	int fd = -1;
	if (strain_marker_status(folder, &status) == 0) {
		errno = EPERM;
		if (status.st_uid == geteuid() && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0) {
			fd = openat(folder, name, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		}
	}
	int code = errno;
	close(folder);
	errno = code;
	return fd;
}

static inline struct strain_ring *strain_marker_create(
	const char *directory, uint32_t pid, uint32_t tid)
{
	char name[96] = "ring-";
	char *at = strain_marker_append(name + strlen(name), pid);
	at = strain_marker_append(at, tid);
	at = strain_marker_append(at, strain_marker_now_ns());
	at[-1] = '\0';
	int fd = strain_marker_open(directory, name, O_RDWR | O_EXCL);
	if (fd < 0) {
		return NULL;
	}
	struct strain_ring *ring = strain_ring_map(fd);
	close(fd);
	if (ring) {
		const char *origin = strain_marker_global_.origin;
		memcpy(ring->origin, origin ? origin : "",
			origin ? strnlen(origin, sizeof(ring->origin)) : 0);
		strain_ring_init(ring, pid, tid);
	}
	return ring;
}

static inline void *strain_marker_pages(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

static inline void strain_marker_forget(struct strain_marker *marker)
{
	if (marker->ring) {
		munmap(marker->ring, STRAIN_RING_BYTES);
	}
	munmap(marker, sizeof(*marker));
}

// Adds a list of markers to the known ones.
static inline void strain_marker_keep(struct strain_marker *list)
{
	struct strain_marker_global *global = &strain_marker_global_;
	while (list) {
		struct strain_marker *next = list->next;
		list->next = __atomic_load_n(&global->all, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(
			&global->all, &list->next, list, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
		}
		list = next;
	}
}

// Unmaps the rings of ended threads of this process, and of its parent before a fork. Takes the
// whole list, so that no other thread sees an entry being unmapped.
static inline void strain_marker_tidy(uint64_t generation, int pid)
{
	struct strain_marker *list = __atomic_exchange_n(&strain_marker_global_.all,
		STRAIN_MARKER_CAST(struct strain_marker *, NULL), __ATOMIC_ACQUIRE);
	struct strain_marker *kept = NULL;
	while (list) {
		struct strain_marker *next = list->next;
		int alive = list->generation == generation &&
		            syscall(SYS_tgkill, pid, STRAIN_MARKER_CAST(int, list->tid), 0) == 0;
		if (alive) {
			list->next = kept;
			kept = list;
		} else {
			strain_marker_forget(list);
		}
		list = next;
	}
	strain_marker_keep(kept);
}

// Creates the page that detects forks, once in a program. Returns 0, or -1 on failure.
static inline int strain_marker_begin_process(void)
{
	struct strain_marker_global *global = &strain_marker_global_;
	if (__atomic_load_n(&global->process, __ATOMIC_ACQUIRE)) {
		return 0;
	}
	size_t bytes = STRAIN_MARKER_CAST(size_t, sysconf(_SC_PAGESIZE));
	void *page = strain_marker_pages(bytes);
	if (!page) {
		return -1;
	}
#ifdef MADV_WIPEONFORK
	int wiped = madvise(page, bytes, MADV_WIPEONFORK) == 0;
#else
	int wiped = 0;
#endif
	struct strain_marker_process *none = NULL;
	if (!wiped) { // before Linux 4.14
		__atomic_store_n(&global->pid, STRAIN_MARKER_CAST(int, getpid()), __ATOMIC_RELAXED);
	}
	if (!__atomic_compare_exchange_n(&global->process, &none,
		    STRAIN_MARKER_CAST(struct strain_marker_process *, page), 0, __ATOMIC_RELEASE,
		    __ATOMIC_ACQUIRE)) {
		munmap(page, bytes);
	}
	return 0;
}

// Identifies this process: the number differs after each fork.
static inline uint64_t strain_marker_generation(void)
{
	struct strain_marker_global *global = &strain_marker_global_;
	uint64_t *at = &global->process->generation, seen = __atomic_load_n(at, __ATOMIC_ACQUIRE);
	int pid = __atomic_load_n(&global->pid, __ATOMIC_RELAXED);
	if (__builtin_expect(pid != 0 && pid != getpid(), 0)) {
		__atomic_store_n(&global->pid, STRAIN_MARKER_CAST(int, getpid()), __ATOMIC_RELAXED);
		seen = 0;
		__atomic_store_n(at, seen, __ATOMIC_RELAXED);
	}
	if (__builtin_expect(seen == 0, 0)) {
		uint64_t mine = __atomic_add_fetch(&global->generations, 1, __ATOMIC_RELAXED);
		if (__atomic_compare_exchange_n(
			    at, &seen, mine, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			return mine;
		}
	}
	return seen;
}

static inline int strain_marker_look(void)
{
	struct strain_marker_global *global = &strain_marker_global_;
	// A set-user-ID program must not follow its caller's environment.
	const char *directory = getauxval(AT_SECURE) ? NULL : getenv("STRAIN_MARKERS");
	int state = directory && *directory && strain_marker_begin_process() == 0 ? 1 : -1;
	if (state > 0) {
		char *copy = strdup(directory); // setenv may move the environment
		char *none = NULL;
		if (!copy || !__atomic_compare_exchange_n(&global->directory, &none, copy, 0,
				     __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
			free(copy);
		}
		state = __atomic_load_n(&global->directory, __ATOMIC_RELAXED) ? 1 : -1;
	}
	__atomic_store_n(&global->state, state, __ATOMIC_RELEASE);
	return state;
}

// For a library that marks on behalf of other code; call it before its first mark. Not copied.
__attribute__((unused)) static inline void strain_marker_set_origin(const char *origin)
{
	strain_marker_global_.origin = origin;
}

// Attaches a thread at its first mark in this process.
__attribute__((noinline, cold, unused)) static struct strain_marker *strain_marker_attach(void)
{
	struct strain_marker_global *global = &strain_marker_global_;
	int state = __atomic_load_n(&global->state, __ATOMIC_ACQUIRE);
	if ((state == 0 ? strain_marker_look() : state) < 0) {
		return NULL;
	}
	uint64_t generation = strain_marker_generation();
	if (strain_marker_self_.generation == generation) {
		return strain_marker_self_.marker; // only where each mark has to ask for the pid
	}
	int pid = getpid();
	strain_marker_tidy(generation, pid);
	struct strain_marker *marker = STRAIN_MARKER_CAST(
		struct strain_marker *, strain_marker_pages(sizeof(struct strain_marker)));
	if (marker) {
		marker->generation = generation;
		marker->tid = STRAIN_MARKER_CAST(uint32_t, syscall(SYS_gettid));
		marker->ring = strain_marker_create(
			global->directory, STRAIN_MARKER_CAST(uint32_t, pid), marker->tid);
		strain_marker_keep(marker);
	}
	strain_marker_self_.marker = marker;
	strain_marker_self_.generation = generation;
	return marker;
}

// NULL where this thread's marks go nowhere.
static inline struct strain_marker *strain_marker_here(void)
{
	struct strain_marker_global *global = &strain_marker_global_;
	int state = __atomic_load_n(&global->state, __ATOMIC_ACQUIRE);
	if (__builtin_expect(state < 0, 1)) {
		return NULL;
	}
	struct strain_marker *marker = strain_marker_self_.marker;
	if (__builtin_expect(
		    state == 0 || global->pid != 0 || strain_marker_self_.generation == 0 ||
			    strain_marker_self_.generation !=
				    __atomic_load_n(&global->process->generation, __ATOMIC_RELAXED),
		    0)) {
		marker = strain_marker_attach();
	}
	return marker && marker->ring ? marker : NULL;
}

__attribute__((noinline, cold, unused)) static uint32_t strain_marker_intern(
	struct strain_marker *marker, const char *name)
{
	struct strain_ring *ring = marker->ring;
	uint32_t n = ring->names, i = 0;
	n = n < STRAIN_RING_NAMES ? n : STRAIN_RING_NAMES;
	while (i < n && strncmp(ring->name[i], name, STRAIN_RING_NAME_BYTES - 1) != 0) {
		i++;
	}
	if (i == STRAIN_RING_NAMES) {
		return 0;
	}
	if (i == n) {
		memcpy(ring->name[i], name, strnlen(name, STRAIN_RING_NAME_BYTES - 1));
		__atomic_store_n(&ring->names, n + 1, __ATOMIC_RELEASE);
	}
	return i;
}

static inline uint32_t strain_marker_name(struct strain_marker *marker, const char *name)
{
	if (!name || !*name) {
		return 0;
	}
	uintptr_t hash;
	memcpy(&hash, &name, sizeof(hash));
	hash = (hash >> 3 ^ hash >> 9 ^ hash) % STRAIN_MARKER_CACHE;
	uint32_t i = marker->cache[hash].index;
	// A buffer can hold another name than last time.
	if (__builtin_expect(
		    marker->cache[hash].name != name ||
			    strncmp(marker->ring->name[i], name, STRAIN_RING_NAME_BYTES - 1) != 0,
		    0)) {
		i = strain_marker_intern(marker, name);
		marker->cache[hash].name = name;
		marker->cache[hash].index = i;
	}
	return i;
}

static inline void strain_marker_put(struct strain_marker *marker, enum strain_mark_kind kind,
	uint32_t depth, uint32_t name, int64_t number, uint64_t extra)
{
	struct strain_ring *ring = marker->ring;
	uint64_t written = marker->written;
	if (__builtin_expect(
		    written - __atomic_load_n(&ring->taken, __ATOMIC_ACQUIRE) >= STRAIN_RING_SLOTS,
		    0)) {
		__atomic_store_n(&ring->dropped, ring->dropped + 1, __ATOMIC_RELAXED);
		return;
	}
	struct strain_record *record = &ring->record[written % STRAIN_RING_SLOTS];
	record->time_ns = strain_marker_now_ns();
	record->sequence = STRAIN_MARKER_CAST(uint32_t, written + 1);
	record->kind = STRAIN_MARKER_CAST(uint8_t, kind);
	record->depth = STRAIN_MARKER_CAST(uint8_t, depth);
	record->name = STRAIN_MARKER_CAST(uint16_t, name);
	record->number = number;
	record->extra = extra;
	marker->written = written + 1;
	__atomic_store_n(&ring->written, written + 1, __ATOMIC_RELEASE);
}

static inline void strain_marker_begin_samples(
	struct strain_marker *marker, const char *name, int64_t samples)
{
	uint32_t depth = marker->depth++;
	if (depth < STRAIN_RING_DEPTH) {
		uint32_t index = strain_marker_name(marker, name);
		strain_marker_put(marker, STRAIN_MARK_BEGIN, depth, index, -1,
			samples > 0 ? STRAIN_MARKER_CAST(uint64_t, samples) : 0);
	}
}

static inline void strain_marker_begin(struct strain_marker *marker, const char *name)
{
	strain_marker_begin_samples(marker, name, 0);
}

static inline void strain_marker_end(struct strain_marker *marker)
{
	if (marker->depth == 0) {
		return; // an end too many
	}
	if (--marker->depth < STRAIN_RING_DEPTH) {
		strain_marker_put(marker, STRAIN_MARK_END, marker->depth, 0, -1, 0);
	}
}

static inline uint32_t strain_marker_depth(const struct strain_marker *marker)
{
	return marker->depth < STRAIN_RING_DEPTH ? marker->depth : STRAIN_RING_DEPTH;
}

static inline void strain_marker_point(struct strain_marker *marker, const char *name, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	strain_marker_put(marker, STRAIN_MARK_POINT, strain_marker_depth(marker),
		strain_marker_name(marker, name), -1, bits);
}

// A span begins. It ends with the strain_end of this thread that belongs to it.
static inline void strain_begin(const char *name)
{
	struct strain_marker *marker = strain_marker_here();
	if (marker) {
		strain_marker_begin(marker, name);
	}
}

// The same, of so many samples: what a loader worker says of a batch that it prepares.
static inline void strain_begin_samples(const char *name, int64_t samples)
{
	struct strain_marker *marker = strain_marker_here();
	if (marker) {
		strain_marker_begin_samples(marker, name, samples);
	}
}

// The span that this thread began last ends.
static inline void strain_end(void)
{
	struct strain_marker *marker = strain_marker_here();
	if (marker) {
		strain_marker_end(marker);
	}
}

// Something has this value now: a loss, a learning rate.
static inline void strain_point(const char *name, double value)
{
	struct strain_marker *marker = strain_marker_here();
	if (marker) {
		strain_marker_point(marker, name, value);
	}
}

// A span from began_ns (CLOCK_MONOTONIC) to now. It needs not nest with the others: for what ends
// elsewhere than it began.
static inline void strain_span(const char *name, uint64_t began_ns)
{
	struct strain_marker *marker = strain_marker_here();
	if (marker) {
		strain_marker_put(marker, STRAIN_MARK_SPAN, strain_marker_depth(marker),
			strain_marker_name(marker, name), -1, began_ns);
	}
}

// Epoch `number` begins. The one before it, and its last iteration, end.
static inline void strain_epoch(int64_t number)
{
	struct strain_marker *marker = strain_marker_here();
	if (marker) {
		strain_marker_put(marker, STRAIN_MARK_EPOCH, 0, 0, number, 0);
	}
}

// The epoch, and its last iteration, end: what follows belongs to none.
static inline void strain_epoch_end(void)
{
	struct strain_marker *marker = strain_marker_here();
	if (marker) {
		strain_marker_put(marker, STRAIN_MARK_EPOCH_END, 0, 0, -1, 0);
	}
}

// Iteration `number` begins, of so many samples (-1: not known). The one before it ends.
static inline void strain_iteration(int64_t number, int64_t samples)
{
	struct strain_marker *marker = strain_marker_here();
	if (marker) {
		strain_marker_put(marker, STRAIN_MARK_ITERATION, 0, 0, number,
			STRAIN_MARKER_CAST(uint64_t, samples));
	}
}

// What a sample is, one word in the plural: "steps", "frames". Rates of the run are named after it.
// Blanks become "_"; other characters than letters, "_" and "-" are left out, and so is what is
// longer than 32 bytes. Once in a program: it opens and writes a file, hook-PID, which the recorder
// reads.
static inline void strain_unit(const char *name)
{
	char file[32] = "hook-", line[64] = "samples_unit ";
	size_t used = strlen(line), end = used;
	for (; name && *name && end < used + 32; name++) {
		char at = *name, lower = STRAIN_MARKER_CAST(char, at | 0x20);
		if (at == ' ' || at == '\t' || at == '\n') {
			if (end > used && line[end - 1] != '_') {
				line[end++] = '_';
			}
		} else if ((lower >= 'a' && lower <= 'z') || at == '_' || at == '-') {
			line[end++] = at;
		}
	}
	if (!strain_marker_here() || end == used) {
		return;
	}
	line[end++] = '\n';
	strain_marker_append(
		file + strlen(file), STRAIN_MARKER_CAST(uint64_t, getpid()))[-1] = '\0';
	int fd = strain_marker_open(strain_marker_global_.directory, file, O_WRONLY | O_APPEND);
	if (fd >= 0) {
		(void)!write(fd, line, end);
		close(fd);
	}
}

// The iteration ends here, and what follows belongs to none; of so many samples (-1: as it said
// when it began). For those who know the samples only now, or do something else in between.
static inline void strain_iteration_end(int64_t samples)
{
	struct strain_marker *marker = strain_marker_here();
	if (marker) {
		strain_marker_put(marker, STRAIN_MARK_ITERATION_END, 0, 0, -1,
			STRAIN_MARKER_CAST(uint64_t, samples));
	}
}

#endif
