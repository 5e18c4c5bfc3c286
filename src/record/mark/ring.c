// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads untrusted rings of marks.

#include "record/mark/ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/parse.h"
#include "base/text.h"
#include "machine/file.h"
#include "machine/procfs.h"

// Ring --------------------------------------------------------------------------------------------

enum { READ_RECORDS = 256, NAMES_MAX = 4096, NAMES_SLOTS = 2 * NAMES_MAX };

// The clocks of two CPUs may differ by less than this. Marks later than that are invalid.
#define FUTURE_NS NS_PER_S

// The beginning of struct strain_ring.
struct ring_header {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;
	uint32_t tid;
	uint32_t depth;
	uint64_t pid_namespace;
	uint64_t created_ns;
	char origin[8];
	uint8_t unused[16];
	uint64_t written;
	uint64_t dropped;
};
_Static_assert(
	offsetof(struct ring_header, written) == offsetof(struct strain_ring, written) &&
		offsetof(struct ring_header, dropped) == offsetof(struct strain_ring, dropped),
	"the header lies as in marker.h");

struct ring_names {
	char *slots[NAMES_SLOTS];
	size_t n;
};

struct ring {
	int fd;
	bool ready; // the header was read
	uint64_t start_ns;
	uint64_t taken;
	uint64_t last_ns; // time of the last mark
	uint64_t dropped;
	uint64_t told[2]; // the last two values of `taken` written for the writer
	uint64_t gaps[2]; // numbers of marks after which some may be missing; 0: none
	struct ring_owner owner;
	struct ring_names *all_names;
	const char *names[STRAIN_RING_NAMES]; // NULL: not read yet
};

// Names -------------------------------------------------------------------------------------------

void ring_names_free(struct ring_names *names)
{
	for (size_t i = 0; names && i < NAMES_SLOTS; i++) {
		free(names->slots[i]);
	}
	free(names);
}

static const char other_name[] = "(other)";

static const char *names_keep(struct ring_names *names, const char *name)
{
	size_t i = hash_add(HASH_START, name, strlen(name)) % NAMES_SLOTS;
	while (names->slots[i] && strcmp(names->slots[i], name) != 0) {
		i = (i + 1) % NAMES_SLOTS;
	}
	if (!names->slots[i] && names->n < NAMES_MAX) {
		names->slots[i] = strdup(name);
		names->n += names->slots[i] != NULL;
	}
	return names->slots[i] ? names->slots[i] : other_name;
}

// Names that mean something are kept first: others may fill the table before a job marks phases.
int ring_names_new(struct ring_names **ret)
{
	static const char *const known[] = {other_name, "data", "transfer", "forward", "backward",
		"optimizer", "communication", "validation", "checkpoint", "step", "prepare",
		"import", "python.gc", "jax.compile", "tf.trace", "torch.compile", "keras.predict",
		"environment", "transformers.generate", "loader.start"};
	struct ring_names *names = calloc(1, sizeof(*names));
	if (!names) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		names_keep(names, known[i]);
	}
	*ret = names;
	return 0;
}

static int broken(struct error *e, const char *what)
{
	return error_set(e, EBADMSG, "%s", what);
}

// The name as of its first use; later changes are ignored.
static int ring_name(struct ring *ring, unsigned index, const char **ret, struct error *e)
{
	if (index >= STRAIN_RING_NAMES) {
		return broken(e, "a name that is not in the table");
	}
	if (!ring->names[index]) {
		char bytes[STRAIN_RING_NAME_BYTES];
		_cleanup_text_ struct text name = {0};
		off_t at = (off_t)(offsetof(struct strain_ring, name) + index * sizeof(bytes));
		if (pread(ring->fd, bytes, sizeof(bytes), at) != sizeof(bytes)) {
			return broken(e, "the file became shorter");
		}
		text_append_utf8(&name, bytes, strnlen(bytes, sizeof(bytes)));
		_cleanup_text_ struct text printable = {0};
		text_append_printable(&printable, name.data ? name.data : "", name.length);
		bool named = !printable.failed && printable.length > 0;
		ring->names[index] = names_keep(
			ring->all_names, named ? printable.data : other_name);
	}
	*ret = ring->names[index];
	return 0;
}

// Files -------------------------------------------------------------------------------------------

// Checks the type of the file before opening it for reading, because opening a device can have side
// effects.
static int open_regular(int directory_fd, const char *name, struct error *e)
{
	char path[32];
	struct stat status;
	_cleanup_close_ int fd = beneath_open(directory_fd, name, O_PATH);
	if (fd < 0) {
		return error_errno(e, -fd, "%s", name);
	}
	if (fstat(fd, &status) < 0) {
		return error_errno(e, errno, "%s", name);
	}
	if (!S_ISREG(status.st_mode)) {
		return error_set(e, EINVAL, "%s: not a regular file", name);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int opened = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return opened < 0 ? error_errno(e, errno, "%s", name) : opened;
}

int ring_open(int directory_fd, const char *name, uint64_t start_ns, struct ring_names *names,
	struct ring **ret, struct error *e)
{
	int fd = open_regular(directory_fd, name, e);
	if (fd < 0) {
		return fd;
	}
	struct ring *ring = calloc(1, sizeof(*ring));
	if (!ring) {
		close(fd);
		return error_set(e, ENOMEM, "out of memory");
	}
	*ring = (struct ring){.fd = fd, .start_ns = start_ns, .all_names = names};
	*ret = ring;
	return 0;
}

void ring_free(struct ring *ring)
{
	if (ring) {
		close(ring->fd);
		free(ring);
	}
}

const struct ring_owner *ring_owner(const struct ring *ring)
{
	return ring->ready ? &ring->owner : NULL;
}

uint64_t ring_dropped(const struct ring *ring)
{
	return ring->dropped;
}

bool ring_has_no_room(const struct ring *ring)
{
	struct stat status;
	return !ring->ready && fstat(ring->fd, &status) == 0 && status.st_size == 0;
}

// Reading -----------------------------------------------------------------------------------------

// Returns 1 if the ring is ready; 0 if it has no header yet.
static int read_header(
	struct ring *ring, struct ring_header *header, uint64_t now_ns, struct error *e)
{
	ssize_t n = pread(ring->fd, header, sizeof(*header), 0);
	if (n != (ssize_t)sizeof(*header)) {
		return ring->ready ? broken(e, "the file became shorter") : 0;
	}
	if (ring->ready || header->magic == 0) {
		return ring->ready;
	}
	if (header->magic != STRAIN_RING_MAGIC) {
		return broken(e, "the file is no ring");
	}
	if (header->version != STRAIN_RING_VERSION) {
		return error_set(e, EBADMSG,
			"unsupported mark ring: version %u; this strain reads version %u",
			header->version, STRAIN_RING_VERSION);
	}
	if (header->created_ns < ring->start_ns || header->created_ns > now_ns + FUTURE_NS) {
		return broken(e, "it says that it began when the run did not run");
	}
	if (header->pid == 0 || header->pid > INT32_MAX || header->tid > INT32_MAX) {
		return broken(e, "it says that no process wrote it");
	}
	ring->owner = (struct ring_owner){.pid = header->pid,
		.tid = header->tid,
		.pid_namespace = header->pid_namespace,
		.created_ns = header->created_ns,
		.nvtx = strncmp(header->origin, "nvtx", sizeof(header->origin)) == 0};
	ring->last_ns = header->created_ns;
	ring->ready = true;
	return 1;
}

static int check_record(const struct ring *ring, const struct strain_record *record,
	uint64_t number, uint64_t now_ns, struct error *e)
{
	if (record->sequence != (uint32_t)number) {
		return broken(e, "a mark is not the one that comes next");
	}
	if (record->kind < STRAIN_MARK_BEGIN || record->kind > STRAIN_MARK_ITERATION_END) {
		return broken(e, "a mark of no known kind");
	}
	if (record->depth > STRAIN_RING_DEPTH) {
		return broken(e, "spans are deeper than they can be");
	}
	if (record->time_ns < ring->last_ns) {
		return broken(e, "a mark is older than the one before");
	}
	return record->time_ns > now_ns + FUTURE_NS ? broken(e, "a mark of the future") : 0;
}

static int take_record(struct ring *ring, const struct strain_record *record, struct ring_mark *ret,
	struct error *e)
{
	*ret = (struct ring_mark){
		.kind = (enum strain_mark_kind)record->kind,
		.depth = record->depth,
		.time_ns = record->time_ns,
		.number = record->number,
		.samples = -1,
	};
	if (record->kind == STRAIN_MARK_ITERATION || record->kind == STRAIN_MARK_ITERATION_END) {
		ret->samples = record->extra <= UINT32_MAX ? (int64_t)record->extra : -1;
	}
	if (record->kind == STRAIN_MARK_BEGIN && record->extra > 0) {
		ret->samples = record->extra <= UINT32_MAX ? (int64_t)record->extra : -1;
	}
	if (record->kind == STRAIN_MARK_POINT) {
		memcpy(&ret->value, &record->extra, sizeof(ret->value));
	}
	if (record->kind == STRAIN_MARK_SPAN) {
		uint64_t began = record->extra > ring->start_ns ? record->extra : ring->start_ns;
		ret->began_ns = began < record->time_ns ? began : record->time_ns;
	}
	ring->last_ns = record->time_ns;
	return ring_name(ring, record->name, &ret->name, e);
}

// Reads up to n contiguous records.
static int read_records(struct ring *ring, size_t n, uint64_t now_ns,
	void (*take)(void *context, const struct ring_mark *mark), void *context, struct error *e)
{
	struct strain_record records[READ_RECORDS];
	size_t slot = ring->taken % STRAIN_RING_SLOTS;
	n = n < READ_RECORDS ? n : READ_RECORDS;
	n = n < STRAIN_RING_SLOTS - slot ? n : STRAIN_RING_SLOTS - slot;
	off_t at = (off_t)(offsetof(struct strain_ring, record) + slot * sizeof(records[0]));
	ssize_t bytes = pread(ring->fd, records, n * sizeof(records[0]), at);
	if (bytes != (ssize_t)(n * sizeof(records[0]))) {
		return broken(e, "the file became shorter");
	}
	for (size_t i = 0; i < n; i++) {
		struct ring_mark mark;
		int r = check_record(ring, &records[i], ring->taken + 1, now_ns, e);
		if (r == 0) {
			r = take_record(ring, &records[i], &mark, e);
		}
		if (r < 0) {
			return r;
		}
		mark.gap = ring->taken > 0 &&
		           (ring->taken == ring->gaps[0] || ring->taken == ring->gaps[1]);
		ring->taken++;
		take(context, &mark);
	}
	return (int)n;
}

// Writes `taken` for the writer. Without write permission, the ring's space is never released.
static void tell_writer(struct ring *ring)
{
	(void)!pwrite(ring->fd, &ring->taken, sizeof(ring->taken),
		(off_t)offsetof(struct strain_ring, taken));
	ring->told[0] = ring->told[1];
	ring->told[1] = ring->taken;
}

// A writer drops marks when the ring is full, that is after one ring's length of marks beyond the
// value of `taken` that it saw. That value was one of the last two written.
static void note_dropped(struct ring *ring, uint64_t dropped)
{
	for (size_t i = 0; i < 2 && dropped != ring->dropped; i++) {
		ring->gaps[i] = ring->told[i] + STRAIN_RING_SLOTS;
	}
	ring->dropped = dropped;
}

int ring_read(struct ring *ring, uint64_t now_ns, size_t max,
	void (*take)(void *context, const struct ring_mark *mark), void *context, struct error *e)
{
	struct ring_header header;
	int r = read_header(ring, &header, now_ns, e);
	if (r <= 0) {
		return r;
	}
	note_dropped(ring, header.dropped);
	uint64_t waiting = header.written - ring->taken;
	if (waiting > STRAIN_RING_SLOTS) {
		return broken(e, "it counts marks that cannot be there");
	}
	size_t wanted = waiting < max ? (size_t)waiting : max, n = 0;
	while (n < wanted && r >= 0) {
		r = read_records(ring, wanted - n, now_ns, take, context, e);
		n += r > 0 ? (size_t)r : 0;
	}
	if (n > 0) {
		tell_writer(ring);
	}
	return r < 0 ? r : (int)n;
}

// Writer ------------------------------------------------------------------------------------------
//
// Identifies the writer of a ring and checks whether it lives.

enum { THREADS_MAX = 4096 }; // threads of one process searched for one of them

// Returns the tid in the thread's own namespace while it lives; -1: unknown.
static int64_t inner_tid_of(int root_fd, const char *path)
{
	struct proc_status status;
	return proc_status_read(root_fd, path, &status) < 0 ? -1 : status.pid_in_namespace;
}

static pid_t find_thread(int root_fd, pid_t pid, uint32_t inner_tid)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/task", (int)pid);
	int fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
	pid_t found = 0;
	unsigned n = 0;
	for (struct dirent *entry;
		tasks && !found && n < THREADS_MAX && (entry = readdir(tasks));) {
		int64_t tid;
		if (parse_integer(entry->d_name, 1, INT32_MAX, &tid, NULL) < 0) {
			continue;
		}
		n++;
		snprintf(path, sizeof(path), "proc/%d/task/%d/status", (int)pid, (int)tid);
		if (inner_tid_of(root_fd, path) == (int64_t)inner_tid) {
			found = (pid_t)tid;
		}
	}
	if (tasks) {
		closedir(tasks);
	} else if (fd >= 0) {
		close(fd);
	}
	return found;
}

struct ring_writer ring_writer_of(
	int root_fd, const struct ring_owner *owner, const struct identity *process)
{
	bool leader = owner->tid == owner->pid;
	bool inner = process->inner_pid != process->pid;
	return (struct ring_writer){
		.pid = process->pid,
		.tid = leader  ? process->pid
	               : inner ? find_thread(root_fd, process->pid, owner->tid)
	                       : (pid_t)owner->tid,
	};
}

bool ring_writer_lives(int root_fd, const struct ring_writer *writer)
{
	char path[64];
	struct proc_stat stat;
	if (writer->pid <= 0) {
		return true;
	}
	snprintf(path, sizeof(path), "proc/%d/task/%d/stat", (int)writer->pid,
		(int)(writer->tid > 0 ? writer->tid : writer->pid));
	int r = proc_stat_read(root_fd, path, &stat);
	return r < 0 ? r != -ENOENT && r != -ESRCH : stat.state != 'Z' && stat.state != 'X';
}
