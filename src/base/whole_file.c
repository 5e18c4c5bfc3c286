// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Writes under another name first: a full disk or a kill preserves the previous file.

#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"

int whole_file_write_to(int fd, const void *data, size_t length)
{
	const char *at = data;
	while (length > 0) {
		ssize_t n = write(fd, at, length);
		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		at += n < 0 ? 0 : n;
		length -= n < 0 ? 0 : (size_t)n;
	}
	return 0;
}

static int write_and_close(int fd, const void *data, size_t length)
{
	int r = whole_file_write_to(fd, data, length);
	return close(fd) < 0 && r == 0 ? -errno : r;
}

static int replace(const char *path, const void *data, size_t length)
{
	_cleanup_free_ char *temporary = NULL;
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0) {
		temporary = NULL;
		return -ENOMEM;
	}
	int fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0) {
		return -errno;
	}
	int r = write_and_close(fd, data, length);
	if (r == 0 && rename(temporary, path) < 0) {
		r = -errno;
	}
	if (r < 0) {
		unlink(temporary);
	}
	return r;
}

// Whether the path is a name of one of this process's descriptors, as a shell uses it: /dev/stdout,
// /dev/fd/3. A link elsewhere that leads to one does not count.
static bool names_descriptor(const char *path, int *ret_fd)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	int64_t fd = -1;
	if (strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0) {
		*ret_fd = path[8] == 'o' ? STDOUT_FILENO : STDERR_FILENO;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(folders); i++) {
		size_t length = strlen(folders[i]);
		if (strncmp(path, folders[i], length) == 0 &&
			parse_integer(path + length, 0, INT_MAX, &fd, NULL) == 0) {
			*ret_fd = (int)fd;
			return true;
		}
	}
	return false;
}

// Opens a file that is written in place: a device owned by root (/dev/null, a terminal), or a FIFO
// of the caller. The path must not be a link, and is checked after opening, because it may have
// been exchanged. Returns a descriptor; -EINVAL for a regular file, a link or nothing, which are
// replaced; -EPERM for another user's file.
static int open_special(const char *path)
{
	struct stat status;
	_cleanup_close_ int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0 || S_ISREG(status.st_mode) ||
		S_ISLNK(status.st_mode)) {
		return -EINVAL;
	}
	if (S_ISDIR(status.st_mode)) {
		return -EISDIR;
	}
	bool device = S_ISCHR(status.st_mode) && (status.st_uid == 0 || status.st_uid == geteuid());
	bool pipe = S_ISFIFO(status.st_mode) && status.st_uid == geteuid();
	if (!device && !pipe) {
		return -EPERM;
	}
	char again[32];
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	int opened = open(again, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return opened < 0 ? -errno : opened;
}

int whole_file_write(const char *path, const void *data, size_t length, struct error *e)
{
	int fd, r;
	if (names_descriptor(path, &fd)) {
		r = whole_file_write_to(fd, data, length);
	} else {
		fd = open_special(path);
		r = fd >= 0         ? write_and_close(fd, data, length)
		    : fd == -EINVAL ? replace(path, data, length)
		                    : fd;
	}
	return r < 0 ? error_errno(e, -r, "cannot write %s", path) : 0;
}
