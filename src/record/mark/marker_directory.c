// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The directory that STRAIN_MARKERS names.

#include "record/mark/marker_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/trust.h"
#include "strain/marker.h"

enum { ROOM_RINGS = 4, STALE_AFTER_S = 60, STALE_LOOKS = 4096 };

// In the names of folders that are locked as long as somebody uses them: older versions did not
// lock.
#define LOCKED "l"

// Opens the folder just created and checks it: if the parent is not sticky, the name may belong to
// another user's folder by now.
static int hold(const char *path, struct marker_directory *ret, struct error *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		return error_errno(e, errno, "%s", path);
	}
	int r = trust_own(fd, path, e);
	if (r < 0) {
		return r;
	}
	char *copy = strdup(path);
	if (!copy) {
		return error_set(e, ENOMEM, "out of memory");
	}
	(void)flock(fd, LOCK_EX | LOCK_NB); // as long as launcher or recorder live: remove_stale
	*ret = (struct marker_directory){copy, take_fd(fd)};
	return 0;
}

// Removes a folder if nobody holds it any more: launcher and recorder were killed.
static void remove_if_stale(int parent_fd, const char *parent, const char *name)
{
	char path[64];
	struct stat status;
	struct timespec now;
	snprintf(path, sizeof(path), "%s/%.24s", parent, name);
	_cleanup_close_ int fd = openat(
		parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	clock_gettime(CLOCK_REALTIME, &now);
	if (fd < 0 || trust_own(fd, path, NULL) < 0 || fstat(fd, &status) < 0 ||
		now.tv_sec - status.st_mtim.tv_sec < STALE_AFTER_S || // it may not be locked yet
		flock(fd, LOCK_EX | LOCK_NB) < 0) {
		return;
	}
	const struct marker_directory stale = {path, fd};
	marker_directory_remove(&stale);
}

// Removes what killed runs of this user have left. Best effort.
static void remove_stale(const char *parent)
{
	char prefix[32];
	int length = snprintf(prefix, sizeof(prefix), "strain-%u-" LOCKED, (unsigned)geteuid());
	_cleanup_closedir_ DIR *directory = opendir(parent);
	const struct dirent *item;
	for (unsigned n = 0; directory && n < STALE_LOOKS && (item = readdir(directory)); n++) {
		if (strncmp(item->d_name, prefix, (size_t)length) == 0 &&
			strlen(item->d_name) == (size_t)length + strlen("XXXXXX")) {
			remove_if_stale(dirfd(directory), parent, item->d_name);
		}
	}
}

static int make_under(const char *parent, struct marker_directory *ret, struct error *e)
{
	struct statvfs room;
	char path[64];
	if (statvfs(parent, &room) < 0) {
		return error_errno(e, errno, "%s", parent);
	}
	if ((uint64_t)room.f_bavail * room.f_frsize < ROOM_RINGS * STRAIN_RING_BYTES) {
		return error_set(e, ENOSPC, "no room in %s", parent);
	}
	snprintf(path, sizeof(path), "%s/strain-%u-" LOCKED "XXXXXX", parent, (unsigned)geteuid());
	if (!mkdtemp(path)) {
		return error_errno(e, errno, "%s", path);
	}
	return hold(path, ret, e);
}

int marker_directory_make(struct marker_directory *ret, struct error *e)
{
	struct error first = {0}, second = {0};
	remove_stale("/dev/shm");
	if (make_under("/dev/shm", ret, &first) == 0 || make_under("/tmp", ret, &second) == 0) {
		return 0;
	}
	return error_set(e, second.code, "%.200s; %.200s", first.text, second.text);
}

void marker_directory_remove(const struct marker_directory *d)
{
	if (d->fd >= 0) {
		beneath_empty(d->fd);
		beneath_remove(d->fd, d->path);
	}
}

void marker_directory_done(struct marker_directory *d)
{
	if (d->fd >= 0) {
		close(d->fd);
	}
	free(d->path);
	*d = MARKER_DIRECTORY_NONE;
}
