// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// How much of files is in the page cache, putting them in and dropping them: without privilege, for
// files that may be read.

#pragma once

#include <stdint.h>

// Bytes of an open file that are in the page cache, in whole pages: cachestat(2) (Linux 6.5), else
// mincore(2), which tells it only of files that one owns or may write. 0, or -errno.
int page_cache_resident(int fd, uint64_t *ret_bytes);

// Reads the whole file, so that it is in the cache where there is room. 0, or -errno.
int page_cache_fill(int fd);

// Asks the kernel to forget the file: posix_fadvise(2), POSIX_FADV_DONTNEED. What was not written
// back yet, what is mapped and what is on a file system in memory stays; ask page_cache_resident.
// 0, or -errno.
int page_cache_drop(int fd);
