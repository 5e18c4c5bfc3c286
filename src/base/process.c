// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which process a pid is.

#include "base/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"

uint64_t process_start_ticks(int64_t pid)
{
	char path[48], stat[1024];
	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
	if (n < 0) {
		return 0;
	}
	stat[n] = '\0';
	// The name, the second field, can hold anything, also ')'.
	const char *name_end = strrchr(stat, ')');
	struct cursor c = cursor_of(
		name_end ? name_end + 1 : "", name_end ? strlen(name_end + 1) : 0);
	struct cursor state;
	uint64_t ticks;
	// After the name: state is field 3, starttime field 22.
	if (!cursor_word(&c, &state) || cursor_is(state, "Z") || cursor_is(state, "X") ||
		!cursor_skip_fields(&c, 18) || !cursor_u64(&c, &ticks)) {
		return 0;
	}
	return ticks;
}
