// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The page cache of single files.

#include "advise/page_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define READ_BYTES ((size_t)1 << 20)
#define MINCORE_BYTES ((uint64_t)1 << 30) // mapped at once

#ifndef SYS_cachestat
#define SYS_cachestat 451 // the same number on all architectures
#endif

// The kernel's structs of cachestat(2), which older headers do not have.
struct kernel_cachestat_range {
	uint64_t offset;
	uint64_t length; // 0: to the end
};

struct kernel_cachestat {
	uint64_t cached, dirty, writeback, evicted, recently_evicted; // pages
};

static int mincore_window(int fd, uint64_t offset, size_t length, uint64_t *resident)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (length + page - 1) / page;
	_cleanup_free_ unsigned char *in_core = malloc(n);
	void *at = in_core ? mmap(NULL, length, PROT_READ, MAP_SHARED, fd, (off_t)offset)
	                   : MAP_FAILED;
	if (at == MAP_FAILED) {
		return in_core ? -errno : -ENOMEM;
	}
	int result = mincore(at, length, in_core) < 0 ? -errno : 0;
	munmap(at, length);
	for (size_t i = 0; i < n && result == 0; i++) {
		*resident += (in_core[i] & 1) * page;
	}
	return result;
}

static int resident_by_mincore(int fd, uint64_t *ret_bytes)
{
	struct stat status;
	uint64_t resident = 0;
	if (fstat(fd, &status) < 0) {
		return -errno;
	}
	uint64_t size = (uint64_t)status.st_size;
	for (uint64_t at = 0; at < size; at += MINCORE_BYTES) {
		uint64_t length = size - at < MINCORE_BYTES ? size - at : MINCORE_BYTES;
		int result = mincore_window(fd, at, (size_t)length, &resident);
		if (result < 0) {
			return result;
		}
	}
	*ret_bytes = resident;
	return 0;
}

int page_cache_resident(int fd, uint64_t *ret_bytes)
{
	struct kernel_cachestat_range all = {0};
	struct kernel_cachestat cache;
	if (syscall(SYS_cachestat, fd, &all, &cache, 0) == 0) {
		*ret_bytes = cache.cached * (uint64_t)sysconf(_SC_PAGESIZE);
		return 0;
	}
	return errno == ENOSYS || errno == EPERM || errno == EOPNOTSUPP
	               ? resident_by_mincore(fd, ret_bytes)
	               : -errno;
}

int page_cache_fill(int fd)
{
	_cleanup_free_ char *buffer = malloc(READ_BYTES);
	if (!buffer) {
		return -ENOMEM;
	}
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	for (off_t at = 0;;) {
		ssize_t n = pread(fd, buffer, READ_BYTES, at);
		if (n <= 0) {
			return n < 0 ? -errno : 0;
		}
		at += n;
	}
}

int page_cache_drop(int fd)
{
	return -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}
