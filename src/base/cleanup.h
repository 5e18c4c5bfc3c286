// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Locals that release themselves: _cleanup_free_ char *name = NULL; _cleanup_close_ int fd = -1;

#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((cleanup(function)))

static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0) {
		close(*fd);
	}
}

static inline void cleanup_fclose(FILE **file)
{
	if (*file) {
		fclose(*file);
	}
}

static inline void cleanup_closedir(DIR **directory)
{
	if (*directory) {
		closedir(*directory);
	}
}

#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose)
#define _cleanup_closedir_ _cleanup_(cleanup_closedir)

// Hands a pointer or descriptor to the caller and disarms its cleanup.
#define take_pointer(pointer)                           \
	({                                              \
		__typeof__(pointer) taken_ = (pointer); \
		(pointer) = NULL;                       \
		taken_;                                 \
	})
#define take_fd(fd)                \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
