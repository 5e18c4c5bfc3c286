// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fuzzes the reading of a ring of marks. The first bytes lie over the header, the next over its
// counters, the rest over records; each of two looks sees other bytes.

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/mark/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(void *context, const struct ring_mark *mark)
{
	size_t *bytes = context;
	*bytes += strlen(mark->name);
	if (mark->depth > STRAIN_RING_DEPTH || mark->samples < -1 ||
		(mark->kind == STRAIN_MARK_SPAN && mark->began_ns > mark->time_ns)) {
		abort();
	}
}

static void put(int fd, off_t at, const uint8_t *data, size_t size)
{
	if (size > 0 && pwrite(fd, data, size, at) != (ssize_t)size) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct {
		uint64_t magic;
		uint32_t version, pid, tid, depth;
	} header = {STRAIN_RING_MAGIC, STRAIN_RING_VERSION, 7, 8, 0};
	char name[] = "/tmp/strain-fuzz-ring-XXXXXX";
	int fd = mkstemp(name), directory = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct ring_names *names = NULL;
	struct ring *ring = NULL;
	size_t bytes = 0;
	if (fd < 0 || directory < 0 || ring_names_new(&names) < 0 ||
		ftruncate(fd, size > 0 && data[0] > 240 ? data[0] * 900 : STRAIN_RING_BYTES) < 0) {
		abort();
	}
	// One byte chooses what is foreign: all of the file, or only what stands behind its header.
	if (size > 1 && data[0] % 2) {
		put(fd, 0, data + 1, size - 1);
	} else if (size > 1) {
		size_t n = size - 1, part = n < 32 ? n : 32;
		put(fd, 0, (const uint8_t *)&header, sizeof(header));
		put(fd, 64, data + 1, part);
		put(fd, offsetof(struct strain_ring, record), data + 1 + part, n - part);
		put(fd, offsetof(struct strain_ring, name), data + 1 + part, (n - part) % 512);
	}
	if (ring_open(directory, name + 5, 0, names, &ring, NULL) == 0) {
		ring_read(ring, UINT64_MAX / 2, 1000, take, &bytes, NULL);
		put(fd, offsetof(struct strain_ring, written), data, size < 8 ? size : 8);
		ring_read(ring, UINT64_MAX / 2, STRAIN_RING_SLOTS, take, &bytes, NULL);
	}
	ring_free(ring);
	ring_names_free(names);
	unlink(name);
	close(fd);
	close(directory);
	return 0;
}
