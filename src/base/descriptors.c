// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Ownership of descriptors.

#include "base/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/parse.h"

enum { FIRST_OTHER = STDERR_FILENO + 1 };

// Returns the next open descriptor above standard error, in ascending order; -1 at the end, or if
// there is no list.
static int next_open(DIR *fds)
{
	for (struct dirent *entry; fds && (entry = readdir(fds));) {
		int64_t fd;
		if (parse_integer(entry->d_name, FIRST_OTHER, INT32_MAX, &fd, NULL) == 0 &&
			fd != dirfd(fds)) {
			return (int)fd;
		}
	}
	return -1;
}

void descriptors_inherit(struct descriptors *ret)
{
	*ret = (struct descriptors){0};
	for (int fd = 0; fd < FIRST_OTHER; fd++) {
		if (fcntl(fd, F_GETFD) < 0) {
			// open() returns the lowest free number, which is this one.
			(void)!open("/dev/null", O_RDWR | O_CLOEXEC);
		}
	}
	DIR *directory = opendir("/proc/self/fd");
	size_t capacity = 0;
	for (int fd; (fd = next_open(directory)) >= 0;) {
		if (array_reserve((void **)&ret->items, &capacity, ret->n + 1,
			    sizeof(*ret->items)) == 0) {
			ret->items[ret->n++] = fd;
		}
	}
	if (directory) {
		closedir(directory);
	}
}

void descriptors_release(struct descriptors *d)
{
	for (size_t i = 0; i < d->n; i++) {
		close(d->items[i]);
	}
	free(d->items);
	*d = (struct descriptors){0};
}

void descriptors_null(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0 && null != fd) {
		dup2(null, fd);
		close(null);
	}
}

static int compare_descriptors(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

static void close_between(unsigned first, unsigned last)
{
	if (first > last || close_range(first, last, 0) == 0) {
		return;
	}
	// Before Linux 5.9: only the open ones, because the limit may be a billion.
	DIR *directory = opendir("/proc/self/fd");
	for (int fd; (fd = next_open(directory)) >= 0;) {
		if ((unsigned)fd >= first && (unsigned)fd <= last) {
			close(fd);
		}
	}
	if (directory) {
		closedir(directory);
	}
}

void descriptors_keep(int *keep, size_t n)
{
	if (n > 1) {
		qsort(keep, n, sizeof(*keep), compare_descriptors);
	}
	unsigned next = FIRST_OTHER;
	for (size_t i = 0; i < n; i++) {
		if (keep[i] >= (int)next) {
			close_between(next, (unsigned)keep[i] - 1);
			next = (unsigned)keep[i] + 1;
		}
	}
	close_between(next, ~0U);
}
