// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Under another name first: a full disk or a kill leaves what was there before.

#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

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

static int write_into(const char *path, const void *data, size_t length)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : write_and_close(fd, data, length);
}

int whole_file_write(const char *path, const void *data, size_t length, struct error *e)
{
	struct stat status;
	bool there = stat(path, &status) == 0;
	_cleanup_free_ char *target = there ? realpath(path, NULL) : NULL;
	int r = there && !S_ISREG(status.st_mode) ? write_into(path, data, length)
	                                          : replace(target ? target : path, data, length);
	return r < 0 ? error_errno(e, -r, "cannot write %s", path) : 0;
}
