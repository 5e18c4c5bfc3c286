// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A file with a header and a slot for each group. Locks are those of fcntl(2) on open file
// descriptions: byte 0 belongs to the recorder that reads, byte 1 is shared by all that joined.

#include "record/sample/node.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/trust.h"

enum {
	HEADER_BYTES = 4096,
	SLOT_BYTES = 64 * 1024, // only the pages that are written take memory
	RUN_BYTES = 256,
	ROWS_MAX = 4096,
	JOIN_TRIES = 20,
	JOIN_WAIT_US = 1000,
	OLD_FILES_MAX = 64,
};
enum { BYTE_READS, BYTE_JOINED };

// A reading is overdue after one and a half intervals and this long. It bounds the gap in the files
// of the others when the one that reads dies.
#define OVERDUE_NS (400 * NS_PER_MS)

static const char magic[16] = "strain readings";

struct header {
	char magic[16];
	uint64_t version;
	uint64_t checksum; // of run
	char run[RUN_BYTES]; // of the recorder that reads
};

struct slot {
	uint64_t time_ns; // CLOCK_MONOTONIC of the reading; 0: none
	uint64_t n_rows;
	uint64_t checksum; // of the time, and of the rows, which follow
};

// This recorder's side of a group.
struct side {
	size_t columns;
	uint64_t taken_ns; // the reading had last
	size_t usual_bytes; // of a reading
	int64_t *buffer; // [SLOT_BYTES]
};

struct node {
	int folder; // the user's own
	int fd;
	char name[64];
	uint64_t version;
	char run[RUN_BYTES];
	_Atomic bool reads;
	struct side *sides; // [n_sides]
	size_t n_sides;
};

// Rows --------------------------------------------------------------------------------------------

void node_rows_begin(struct node_rows *rows, size_t n_columns)
{
	rows->n = 0;
	rows->n_columns = n_columns;
	rows->failed = false;
}

void node_rows_add(struct node_rows *rows, int64_t who, uint64_t t_ns, const int64_t *values)
{
	size_t width = 2 + rows->n_columns;
	void *cells = rows->cells;
	if (rows->failed || rows->n >= ROWS_MAX ||
		array_reserve(&cells, &rows->capacity, (rows->n + 1) * width, sizeof(int64_t)) <
			0) {
		rows->failed = true;
		return;
	}
	rows->cells = cells;
	int64_t *row = rows->cells + rows->n++ * width;
	row[0] = who;
	row[1] = (int64_t)t_ns;
	memcpy(row + 2, values, rows->n_columns * sizeof(*values));
}

bool node_rows_have(const struct node_rows *rows, int64_t who)
{
	for (size_t i = 0; i < rows->n; i++) {
		if (rows->cells[i * (2 + rows->n_columns)] == who) {
			return true;
		}
	}
	return false;
}

void node_rows_done(struct node_rows *rows)
{
	free(rows->cells);
	*rows = (struct node_rows){0};
}

// The file ----------------------------------------------------------------------------------------

static bool lock_byte(int fd, short kind, int byte)
{
	struct flock lock = {
		.l_type = kind, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
	return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

// The user's folder, which is made if there is none.
static int open_folder(const char *parent, struct error *e)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/strain-%u", parent, (unsigned)geteuid());
	if (mkdir(path, 0700) < 0 && errno != EEXIST) {
		return error_errno(e, errno, "%s", path);
	}
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		return error_errno(e, errno, "%s", path);
	}
	int rc = trust_own(fd, path, e);
	return rc < 0 ? rc : take_fd(fd);
}

// Recorders that see other clocks, files or network interfaces do not share.
static void append_namespaces(struct text *to)
{
	static const char *const kinds[] = {"mnt", "net", "time", "pid"};
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		char path[64], link[64];
		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
		ssize_t length = readlink(path, link, sizeof(link));
		text_format(to, "\n%.*s", (int)(length > 0 ? length : 0), link);
	}
}

static int make_name(const struct node_config *config, char *buffer, size_t size)
{
	_cleanup_text_ struct text key = {0};
	text_append_string(&key, config->job);
	append_namespaces(&key);
	if (key.failed) {
		return -ENOMEM;
	}
	snprintf(buffer, size, "job-%016" PRIx64,
		hash_add(hash_add(HASH_START, key.data, key.length), &config->version,
			sizeof(config->version)));
	return 0;
}

// Removes a file that no recorder uses.
static void remove_if_alone(int folder, const char *name, int fd)
{
	struct stat open_one, named;
	bool same = lock_byte(fd, F_WRLCK, BYTE_JOINED) && fstat(fd, &open_one) == 0 &&
	            fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	            open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
	if (same) {
		unlinkat(folder, name, 0);
	}
}

// Removes files of jobs whose recorders were all killed.
static void remove_old(int folder, const char *own)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd < 0 ? NULL : fdopendir(fd);
	if (!names) {
		if (fd >= 0) {
			close(fd);
		}
		return;
	}
	struct dirent *entry;
	for (int i = 0; i < OLD_FILES_MAX && (entry = readdir(names)); i++) {
		if (strncmp(entry->d_name, "job-", 4) != 0 || strcmp(entry->d_name, own) == 0) {
			continue;
		}
		_cleanup_close_ int old = openat(
			folder, entry->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (old >= 0) {
			remove_if_alone(folder, entry->d_name, old);
		}
	}
	closedir(names);
}

// Opens the file and joins. Whoever removes it holds the lock of byte 1 alone, so a file that has a
// name while we hold that lock is not removed.
static int join_file(struct node *n, struct error *e)
{
	for (int i = 0; i < JOIN_TRIES; i++) {
		_cleanup_close_ int fd = openat(n->folder, n->name,
			O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
		struct stat status;
		if (fd < 0 || fstat(fd, &status) < 0) {
			return error_errno(e, errno, "%s", n->name);
		}
		if (!S_ISREG(status.st_mode)) {
			return error_set(e, EINVAL, "%s is not a regular file", n->name);
		}
		if (lock_byte(fd, F_RDLCK, BYTE_JOINED) && fstat(fd, &status) == 0 &&
			status.st_nlink > 0) {
			n->fd = take_fd(fd);
			return 0;
		}
		usleep(JOIN_WAIT_US); // another one is leaving
	}
	return error_set(e, EAGAIN, "%s: another recorder is leaving", n->name);
}

static void write_header(struct node *n)
{
	struct header h = {
		.version = n->version, .checksum = hash_add(HASH_START, n->run, sizeof(n->run))};
	memcpy(h.magic, magic, sizeof(h.magic));
	memcpy(h.run, n->run, sizeof(h.run));
	(void)!pwrite(n->fd, &h, sizeof(h), 0);
}

static off_t slot_place(size_t group)
{
	return HEADER_BYTES + (off_t)group * SLOT_BYTES;
}

int node_join(const struct node_config *config, struct node **ret, struct error *e)
{
	struct node *n = calloc(1, sizeof(*n));
	struct side *sides = calloc(config->n_groups + 1, sizeof(*sides));
	if (!n || !sides) {
		free(n);
		free(sides);
		return error_set(e, ENOMEM, "out of memory");
	}
	*n = (struct node){.fd = -1, .version = config->version, .sides = sides};
	n->n_sides = config->n_groups;
	for (size_t i = 0; i < n->n_sides; i++) {
		n->sides[i].columns = config->columns[i];
	}
	snprintf(n->run, sizeof(n->run), "%s", config->run);
	n->folder = open_folder(config->folder, e);
	int rc = n->folder < 0 ? n->folder : make_name(config, n->name, sizeof(n->name));
	rc = rc < 0 ? rc : join_file(n, e);
	if (rc < 0) {
		node_leave(n);
		return e && e->code ? rc : error_set(e, -rc, "out of memory");
	}
	if (node_elect(n)) {
		remove_old(n->folder, n->name);
	}
	*ret = n;
	return 0;
}

void node_leave(struct node *n)
{
	if (!n) {
		return;
	}
	if (n->fd >= 0) {
		// Its own lock first: of two that leave together, one must find itself alone.
		node_stop_reading(n);
		lock_byte(n->fd, F_UNLCK, BYTE_JOINED);
		remove_if_alone(n->folder, n->name, n->fd);
		close(n->fd); // frees the locks
	}
	if (n->folder >= 0) {
		close(n->folder);
	}
	for (size_t i = 0; i < n->n_sides; i++) {
		free(n->sides[i].buffer);
	}
	free(n->sides);
	free(n);
}

bool node_elect(struct node *n)
{
	if (atomic_load(&n->reads) || !lock_byte(n->fd, F_WRLCK, BYTE_READS)) {
		return false;
	}
	write_header(n);
	atomic_store(&n->reads, true);
	return true;
}

void node_stop_reading(struct node *n)
{
	if (atomic_exchange(&n->reads, false)) {
		lock_byte(n->fd, F_UNLCK, BYTE_READS);
	}
}

bool node_has_others(const struct node *n)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = BYTE_JOINED, .l_len = 1};
	return fcntl(n->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool node_reads(const struct node *n)
{
	return atomic_load(&n->reads);
}

void node_reader(const struct node *n, char *buffer, size_t size)
{
	struct header h;
	bool known = pread(n->fd, &h, sizeof(h), 0) == sizeof(h) &&
	             memcmp(h.magic, magic, sizeof(magic)) == 0 && h.version == n->version &&
	             h.checksum == hash_add(HASH_START, h.run, sizeof(h.run));
	h.run[known ? sizeof(h.run) - 1 : 0] = '\0';
	_cleanup_text_ struct text name = {0};
	text_append_printable(&name, h.run, strlen(h.run));
	snprintf(buffer, size, "%s", name.data ? name.data : "");
}

// Readings ----------------------------------------------------------------------------------------

// The slot, and the rows behind it.
static int64_t *buffer_of(struct side *s)
{
	s->buffer = s->buffer ? s->buffer : malloc(SLOT_BYTES);
	return s->buffer;
}

static uint64_t checksum(const struct slot *s, const void *rows, size_t bytes)
{
	uint64_t hash = hash_add(HASH_START, &s->time_ns, sizeof(s->time_ns));
	hash = hash_add(hash, &s->n_rows, sizeof(s->n_rows));
	return hash_add(hash, rows, bytes);
}

void node_share(struct node *n, size_t group, uint64_t now_ns, const struct node_rows *rows)
{
	struct side *side = &n->sides[group];
	size_t bytes = rows->n * (2 + side->columns) * sizeof(int64_t);
	int64_t *buffer = buffer_of(side);
	if (rows->failed || rows->n_columns != side->columns || !buffer ||
		bytes > SLOT_BYTES - sizeof(struct slot)) {
		return; // the others find it overdue
	}
	struct slot slot = {.time_ns = now_ns, .n_rows = rows->n};
	slot.checksum = checksum(&slot, rows->cells, bytes);
	memcpy(buffer, &slot, sizeof(slot));
	if (bytes > 0) {
		memcpy(buffer + sizeof(slot) / sizeof(*buffer), rows->cells, bytes);
	}
	(void)!pwrite(n->fd, buffer, sizeof(slot) + bytes, slot_place(group));
}

// Reads what the last reading needed, and all of the slot if there is more now. Returns the number
// of bytes, or -1.
static ssize_t read_bytes(struct node *n, size_t group, size_t row_bytes)
{
	struct side *side = &n->sides[group];
	int64_t *buffer = buffer_of(side);
	size_t usual = side->usual_bytes ? side->usual_bytes : sizeof(struct slot) + row_bytes;
	ssize_t size = buffer ? pread(n->fd, buffer, usual, slot_place(group)) : -1;
	struct slot slot;
	if (size < (ssize_t)sizeof(slot)) {
		return -1;
	}
	memcpy(&slot, buffer, sizeof(slot));
	if (slot.n_rows <= ROWS_MAX && slot.time_ns > side->taken_ns &&
		sizeof(slot) + slot.n_rows * row_bytes > usual) {
		size = pread(n->fd, buffer, SLOT_BYTES, slot_place(group));
	}
	return size < (ssize_t)sizeof(slot) ? -1 : size;
}

// A reading that is just being written does not have the sum that it should have. One with rows of
// a time to come would hide all later ones.
static bool read_slot(
	struct node *n, size_t group, uint64_t now_ns, uint64_t oldest_ns, struct node_rows *rows)
{
	struct side *side = &n->sides[group];
	size_t row_bytes = (2 + side->columns) * sizeof(int64_t);
	ssize_t size = read_bytes(n, group, row_bytes);
	struct slot slot;
	if (size < 0) {
		return false;
	}
	memcpy(&slot, side->buffer, sizeof(slot));
	const int64_t *rows_at = side->buffer + sizeof(slot) / sizeof(int64_t);
	if (slot.n_rows > ((size_t)size - sizeof(slot)) / row_bytes || slot.n_rows > ROWS_MAX ||
		slot.time_ns < oldest_ns || slot.time_ns > now_ns + NS_PER_S ||
		slot.time_ns <= side->taken_ns ||
		slot.checksum != checksum(&slot, rows_at, slot.n_rows * row_bytes)) {
		return false;
	}
	node_rows_begin(rows, side->columns);
	for (size_t i = 0; i < slot.n_rows; i++) {
		const int64_t *row = rows_at + i * (2 + side->columns);
		if ((uint64_t)row[1] > slot.time_ns) {
			return false;
		}
		node_rows_add(rows, row[0], (uint64_t)row[1], row + 2);
	}
	side->taken_ns = slot.time_ns;
	side->usual_bytes = sizeof(slot) + slot.n_rows * row_bytes;
	return !rows->failed;
}

enum node_answer node_take(
	struct node *n, size_t group, uint64_t now_ns, uint64_t interval_ns, struct node_rows *rows)
{
	uint64_t wait_ns = interval_ns + interval_ns / 2 + OVERDUE_NS;
	uint64_t oldest_ns = now_ns > wait_ns ? now_ns - wait_ns : 0;
	if (read_slot(n, group, now_ns, oldest_ns, rows)) {
		return NODE_NEW;
	}
	uint64_t taken_ns = n->sides[group].taken_ns;
	return taken_ns > oldest_ns ? NODE_KNOWN : NODE_OVERDUE;
}
