// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// How fast the job may read from each disk.
//
// All whole disks are limited, since nobody knows where a job's data will be: what is stacked on
// them (partitions, device mapper, RAID, overlay) comes down to them in the end. The kernel counts
// a read at every layer, so that limiting the layers, too, would only cost time. Loop devices are
// limited themselves: before Linux 5.12 what they read from their files was nobody's.

#include "record/job/limits_set.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "record/host/cgroupfs.h"
#include "record/host/file.h"
#include "record/job/cgroup.h"
#include "record/job/cgroup_directory.h"
#include "trace/store.h"

#define FUSE_MAGIC 0x65735546
#define THROTTLE_V1 "blkio.throttle.read_bps_device"
#define THROTTLE_V2 "io.max"

enum { NAMED = 6 };

struct disk {
	char name[64];
	uint64_t major, minor;
};

struct disks {
	struct disk *items;
	size_t n, capacity;
};

// ---- which

static bool read_field(int root_fd, const char *name, const char *field, char *buffer, size_t size,
	struct cursor *ret)
{
	char path[160];
	snprintf(path, sizeof(path), "sys/block/%s/%s", name, field);
	return host_read_once(root_fd, path, buffer, size, ret, NULL) == 0;
}

static bool has_number(int root_fd, const char *name, const char *field)
{
	char buffer[32];
	struct cursor text;
	uint64_t number;
	return read_field(root_fd, name, field, buffer, sizeof(buffer), &text) &&
	       cursor_u64(&text, &number) && number > 0;
}

// Memory that looks like a disk.
static bool is_memory(const char *name)
{
	return strncmp(name, "ram", 3) == 0 || strncmp(name, "zram", 4) == 0;
}

static bool is_stacked(int root_fd, const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "sys/block/%s/slaves", name);
	return host_has_entries(root_fd, path);
}

static bool read_disk(int root_fd, const char *name, struct disk *ret)
{
	char buffer[32];
	struct cursor text;
	if (strlen(name) >= sizeof(ret->name) || is_memory(name) ||
		!has_number(root_fd, name, "size") || has_number(root_fd, name, "hidden") ||
		is_stacked(root_fd, name) ||
		!read_field(root_fd, name, "dev", buffer, sizeof(buffer), &text)) {
		return false;
	}
	memcpy(ret->name, name, strlen(name) + 1);
	return cursor_u64(&text, &ret->major) && cursor_literal(&text, ":") &&
	       cursor_u64(&text, &ret->minor);
}

static int compare_disks(const void *left, const void *right)
{
	const struct disk *a = left, *b = right;
	bool a_loop = strncmp(a->name, "loop", 4) == 0, b_loop = strncmp(b->name, "loop", 4) == 0;
	return a_loop != b_loop ? a_loop - b_loop : strcmp(a->name, b->name);
}

static int find_disks(int root_fd, struct disks *disks, struct error *e)
{
	int fd = openat(root_fd, "sys/block", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		int code = errno;
		if (fd >= 0) {
			close(fd);
		}
		return error_errno(e, code, "/sys/block");
	}
	int rc = 0;
	for (struct dirent *item; rc == 0 && (item = readdir(directory));) {
		struct disk disk;
		if (item->d_name[0] != '.' && read_disk(root_fd, item->d_name, &disk)) {
			rc = array_reserve((void **)&disks->items, &disks->capacity, disks->n + 1,
				sizeof(disk));
			if (rc == 0) {
				disks->items[disks->n++] = disk;
			}
		}
	}
	closedir(directory);
	if (rc < 0) {
		return error_errno(e, -rc, "/sys/block");
	}
	if (disks->n == 0) {
		return error_set(e, ENODEV, "no disk is in /sys/block");
	}
	qsort(disks->items, disks->n, sizeof(*disks->items), compare_disks);
	return 0;
}

// ---- what limits them already

static bool is_one_of(const struct disks *disks, uint64_t major, uint64_t minor)
{
	for (size_t i = 0; i < disks->n; i++) {
		if (disks->items[i].major == major && disks->items[i].minor == minor) {
			return true;
		}
	}
	return false;
}

// "8:0 1048576" (v1), "8:0 rbps=1048576 wbps=max riops=max wiops=max" (v2).
static bool parse_line(struct cursor line, int version, const struct disks *disks, uint64_t *ret)
{
	uint64_t major, minor;
	struct cursor word;
	if (!cursor_u64(&line, &major) || !cursor_literal(&line, ":") ||
		!cursor_u64(&line, &minor) || !is_one_of(disks, major, minor)) {
		return false;
	}
	if (version == 1) {
		return cursor_u64(&line, ret);
	}
	while (cursor_word(&line, &word)) {
		if (cursor_literal(&word, "rbps=") && cursor_u64(&word, ret)) {
			return true;
		}
	}
	return false;
}

static uint64_t least_rate_of(
	int root_fd, const char *directory, int version, const struct disks *disks)
{
	_cleanup_free_ char *path = cgroup_directory_join(
		directory, version == 1 ? THROTTLE_V1 : THROTTLE_V2);
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text, line;
	uint64_t least = UINT64_MAX, rate;
	if (path && host_file_open(&file, root_fd, path, NULL) == 0 &&
		host_file_read(&file, &text) == 0) {
		while (cursor_line(&text, &line)) {
			if (parse_line(line, version, disks, &rate) && rate < least) {
				least = rate;
			}
		}
	}
	host_file_close(&file);
	return least;
}

// A tighter limit of a cgroup above would hold, too. v1 does not inherit: there the one that strain
// is in is asked, which the job's would otherwise escape.
static int check_above(const struct limits_place *place, const struct disks *disks, uint64_t wanted,
	struct error *e)
{
	struct cgroup_places places = {0};
	if (cgroup_places_find(place->root_fd, "self", &places, NULL) < 0) {
		return 0;
	}
	const struct cgroup_place *io = cgroup_place_of(&places, CGROUP_IO);
	_cleanup_free_ char *directory = io->version ? strdup(io->path) : NULL;
	int rc = 0;
	while (directory && rc == 0) {
		uint64_t rate = least_rate_of(place->root_fd, directory, io->version, disks);
		if (rate < wanted) {
			char most[32];
			text_bytes(most, sizeof(most), (double)rate);
			rc = error_set(e, ERANGE, "expected at most %s/s, the limit of /%s", most,
				directory);
		}
		char *slash = io->version == 2 ? strrchr(directory + io->mount_length, '/') : NULL;
		if (!slash) {
			break;
		}
		*slash = '\0';
	}
	cgroup_places_done(&places);
	return rc;
}

// What comes from another machine, or from a process of somebody else's, no cgroup of ours slows.
static int check_here_is_local(struct error *e)
{
	struct statfs fs;
	bool fuse = statfs(".", &fs) == 0 && (unsigned)fs.f_type == FUSE_MAGIC;
	if (!fuse && !store_is_on_network(".")) {
		return 0;
	}
	return error_set(e, EOPNOTSUPP,
		"the current directory is on a %s file system, whose reads no cgroup limits; a "
		"directory on a local disk would allow it",
		fuse ? "FUSE" : "network");
}

// ---- setting

static int write_rates(
	const struct limits_place *place, const struct disks *disks, uint64_t rate, struct error *e)
{
	const struct job_cgroup *cgroup = place->cgroup;
	const char *file = cgroup->version == 1 ? THROTTLE_V1 : THROTTLE_V2;
	const char *format = cgroup->version == 1 ? "" : "rbps=";
	for (size_t i = 0; i < disks->n; i++) {
		const struct disk *disk = &disks->items[i];
		char line[96];
		snprintf(line, sizeof(line), "%" PRIu64 ":%" PRIu64 " %s%" PRIu64, disk->major,
			disk->minor, format, rate);
		int rc = cgroup_directory_write(place->root_fd, cgroup->block, file, line);
		if (rc < 0) {
			return error_errno(e, -rc, "/%s/%s: %s", cgroup->block, file, disk->name);
		}
	}
	return 0;
}

static char *describe(const struct limits_place *place, const struct disks *disks, uint64_t rate)
{
	struct text how = {0};
	text_format(&how, "%" PRIu64 " (cgroup %s", rate,
		place->cgroup->version == 1 ? "v1 blkio:" : "v2 io:");
	for (size_t i = 0; i < disks->n && i < NAMED; i++) {
		text_format(&how, "%s%s", i ? ", " : " ", disks->items[i].name);
	}
	if (disks->n > NAMED) {
		text_format(&how, " and %zu more", disks->n - NAMED);
	}
	text_append_string(&how, ")");
	return text_steal(&how);
}

static int set_rate(const struct limits_wanted *w, const struct limits_place *place,
	const struct disks *disks, struct limits *l, struct error *e)
{
	if (!place->cgroup) {
		return error_set(e, place->why_none->code, "no cgroup for the job: %s",
			place->why_none->text);
	}
	int rc = job_cgroup_add(place->root_fd, CGROUP_IO, place->cgroup, e);
	if (rc < 0) {
		return job_cgroup_add_hint(place->root_fd, place->cgroup, CGROUP_IO, e);
	}
	rc = check_here_is_local(e);
	rc = rc < 0 ? rc : write_rates(place, disks, w->read_bytes_per_s, e);
	if (rc == 0) {
		l->set[LIMIT_DISK_READ] = describe(place, disks, w->read_bytes_per_s);
		l->in_cgroup = true;
	}
	return rc;
}

int limits_set_disk_read(const struct limits_wanted *wanted, const struct limits_place *place,
	struct limits *limits, struct error *e)
{
	const bool unlimited = wanted->read_bytes_per_s == 0;
	struct disks disks = {0};
	int rc = find_disks(place->root_fd, &disks, e);
	if (rc < 0 && unlimited) {
		rc = 0; // nothing is limited where nothing can be
	} else if (rc == 0) {
		rc = check_above(
			place, &disks, unlimited ? UINT64_MAX : wanted->read_bytes_per_s, e);
		rc = rc < 0 || unlimited ? rc : set_rate(wanted, place, &disks, limits, e);
	}
	if (rc == 0 && unlimited) {
		limits->set[LIMIT_DISK_READ] = strdup("unlimited");
	}
	free(disks.items);
	return rc;
}
