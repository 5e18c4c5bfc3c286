// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fuzzes the names of functions in a file that a job had mapped: whatever it holds, each address
// has a name that ends or none, and it takes no longer than it may.

#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "run/symbols.h"
#include "base/clock.h"

enum { OFFSETS = 300, NAME_MOST = 200 };
#define LONGEST_NS (30 * NS_PER_S) // under any sanitizer, on any machine

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t offsets[OFFSETS];
	char *names[OFFSETS], path[64];
	int fd = memfd_create("strain-fuzz-symbols", MFD_CLOEXEC);
	if (fd < 0 || (size > 0 && write(fd, data, size) != (ssize_t)size)) {
		abort();
	}
	// Close together at first, where small files have their code; then far apart.
	for (int64_t i = 0; i < OFFSETS; i++) {
		offsets[i] = i < 280 ? i * 16 : INT64_C(1) << (i - 240);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	uint64_t begun_ns = clock_monotonic_ns();
	symbols_of_file(path, offsets, OFFSETS, names);
	if (clock_monotonic_ns() - begun_ns > LONGEST_NS) {
		abort();
	}
	for (size_t i = 0; i < OFFSETS; i++) {
		if (names[i] && strlen(names[i]) > NAME_MOST) {
			abort();
		}
		free(names[i]);
	}
	close(fd);
	char name[NAME_MOST + 1], shown[57];
	size_t length = size < NAME_MOST ? size : NAME_MOST;
	memcpy(name, data, length);
	name[length] = '\0';
	symbols_shorten(name, shown, sizeof(shown));
	if (strlen(shown) >= sizeof(shown)) {
		abort();
	}
	return 0;
}
