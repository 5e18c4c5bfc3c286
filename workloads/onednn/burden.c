// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Spins and reads.

#include "burden.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static uint64_t thread_cpu_ns(void)
{
	struct timespec used;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * NS_PER_S + (uint64_t)used.tv_nsec;
}

void burden_spin(uint64_t ns)
{
	if (ns > 0) {
		uint64_t end_ns = thread_cpu_ns() + ns;
		while (thread_cpu_ns() < end_ns) {
		}
	}
}

struct burden_file {
	const char *path;
	int fd;
	uint64_t images;
	char *buffer;
};

int burden_open(const struct burden *burden, struct burden_file **ret, struct error *e)
{
	if (!burden->file) {
		*ret = NULL;
		return 0;
	}
	struct burden_file *file = calloc(1, sizeof(*file));
	if (!file) {
		return error_set(e, ENOMEM, "no memory for reading images");
	}
	struct stat status;
	file->path = burden->file;
	file->fd = open(burden->file, O_RDONLY | O_CLOEXEC);
	int r = 0;
	if (file->fd < 0 || fstat(file->fd, &status) < 0) {
		r = error_errno(e, errno, "cannot open %s", burden->file);
	} else if ((uint64_t)status.st_size < burden->read_bytes) {
		r = error_set(e, EINVAL, "%s: smaller than one image of %llu bytes", burden->file,
			(unsigned long long)burden->read_bytes);
	}
	if (r == 0) {
		// Images are at random offsets: read-ahead would read data that is not needed.
		posix_fadvise(file->fd, 0, 0, POSIX_FADV_RANDOM);
		file->images = (uint64_t)status.st_size / burden->read_bytes;
		file->buffer = malloc(burden->read_bytes);
		r = file->buffer ? 0 : error_set(e, ENOMEM, "no memory for an image");
	}
	if (r < 0) {
		burden_close(file);
		return r;
	}
	*ret = file;
	return 0;
}

void burden_close(struct burden_file *file)
{
	if (file) {
		if (file->fd >= 0) {
			close(file->fd);
		}
		free(file->buffer);
		free(file);
	}
}

static int read_image(
	const struct burden *burden, struct burden_file *file, uint32_t index, struct error *e)
{
	uint64_t start = index % file->images * burden->read_bytes, at = 0;
	while (at < burden->read_bytes) {
		ssize_t n = pread(
			file->fd, file->buffer + at, burden->read_bytes - at, (off_t)(start + at));
		if (n < 0 && errno != EINTR) {
			return error_errno(e, errno, "cannot read %s", file->path);
		}
		if (n == 0) {
			return error_set(e, EIO, "%s became shorter", file->path);
		}
		at += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

int burden_bear(const struct burden *burden, struct burden_file *file, int64_t worker,
	uint32_t index, struct error *e)
{
	bool slow = burden->slow_worker >= 0 && worker == burden->slow_worker;
	burden_spin(burden->prepare_ns + (slow ? burden->slow_worker_ns : 0));
	return file ? read_image(burden, file, index, e) : 0;
}
