// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Under another name first: a full disk or a kill leaves what was there before.

#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { LINKS_MOST = 40 }; // as the kernel follows

static int write_all(int fd, const char *data, size_t length)
{
	while (length > 0) {
		ssize_t n = write(fd, data, length);
		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		data += n < 0 ? 0 : n;
		length -= n < 0 ? 0 : (size_t)n;
	}
	return 0;
}

static int write_and_close(int fd, const void *data, size_t length)
{
	int r = write_all(fd, data, length);
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

// At its end, where that is a regular file: what an output was redirected to, perhaps with >>.
static int write_into(const char *path, const void *data, size_t length)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : write_and_close(fd, data, length);
}

static bool is_on_proc(int fd)
{
	struct statfs fs;
	return fstatfs(fd, &fs) == 0 && (unsigned)fs.f_type == PROC_SUPER_MAGIC;
}

// The path that a link's text means, seen from the link's folder. NULL: out of memory.
static char *target_of(const char *link, const char *text)
{
	const char *slash = text[0] == '/' ? NULL : strrchr(link, '/');
	char *target = NULL;
	int folder = slash ? (int)(slash - link + 1) : 0;
	return asprintf(&target, "%.*s%s", folder, link, text) < 0 ? NULL : target;
}

// Whether a link is another name of a descriptor, as /dev/stdout is: its last step is a link of
// /proc.
static bool leads_to_descriptor(const char *path)
{
	_cleanup_free_ char *at = strdup(path);
	for (int i = 0; at && i < LINKS_MOST; i++) {
		struct stat status;
		char text[PATH_MAX];
		_cleanup_close_ int fd = open(at, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &status) < 0 || !S_ISLNK(status.st_mode)) {
			return false;
		}
		if (is_on_proc(fd)) {
			return true;
		}
		ssize_t n = readlinkat(fd, "", text, sizeof(text) - 1);
		if (n < 0) {
			return false;
		}
		text[n] = '\0';
		char *next = target_of(at, text);
		free(at);
		at = next;
	}
	return false;
}

int whole_file_write(const char *path, const void *data, size_t length, struct error *e)
{
	struct stat status, name;
	bool there = stat(path, &status) == 0;
	bool into = there && (!S_ISREG(status.st_mode) ||
				     (lstat(path, &name) == 0 && S_ISLNK(name.st_mode) &&
					     leads_to_descriptor(path)));
	int r = into ? write_into(path, data, length) : replace(path, data, length);
	return r < 0 ? error_errno(e, -r, "cannot write %s", path) : 0;
}
