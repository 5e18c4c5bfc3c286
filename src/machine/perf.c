// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A page of a ring holds 170 samples (three and a half seconds of a thread that never rests), or
// 128 forks. Only the kernel shares it; reads from it are bounded all the same.

#include "machine/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { RECORD_MOST = 256 }; // bytes; a sample has 24

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int open_event(pid_t thread, bool user_only)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = PERF_HZ,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME,
		.freq = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_kernel = user_only,
		.exclude_hv = 1,
		.task = 1, // a record for each fork and thread, independent of the sampling rate
	};
	long fd = syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int perf_open(struct perf_event *event, pid_t thread, size_t pages)
{
	int fd = open_event(thread, false);
	if (fd == -EACCES || fd == -EPERM) {
		fd = open_event(thread, true);
	}
	if (fd < 0) {
		return fd;
	}
	void *ring = mmap(
		NULL, (1 + pages) * page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		int r = -errno;
		close(fd);
		return r == -EPERM ? -ENOMEM : r;
	}
	*event = (struct perf_event){fd, ring, pages};
	return 0;
}

void perf_close(struct perf_event *event)
{
	if (event->fd >= 0) {
		munmap(event->ring, (1 + event->pages) * page_bytes());
		close(event->fd);
	}
	*event = PERF_CLOSED;
}

// Copies from the ring, which wraps around.
static void copy(const char *data, size_t size, uint64_t from, void *to, size_t length)
{
	size_t at = from % size, first = length < size - at ? length : size - at;
	memcpy(to, data + at, first);
	memcpy((char *)to + first, data, length - first);
}

// The first words of a FORK record are pid, ppid, tid, ptid. A thread has its parent's pid.
static bool is_process(const uint64_t words[2])
{
	uint32_t pids[2];
	memcpy(pids, words, sizeof(pids));
	return pids[0] != pids[1];
}

size_t perf_take(struct perf_event *event, struct perf_sample *samples, size_t most,
	struct perf_counts *counts)
{
	struct perf_event_mmap_page *head = event->ring;
	const size_t page = page_bytes(), size = event->pages * page;
	const char *data = (const char *)event->ring + page;
	size_t n = 0;
	if (event->fd < 0) {
		return 0;
	}
	uint64_t end = __atomic_load_n(&head->data_head, __ATOMIC_ACQUIRE), at = head->data_tail;
	while (at < end && n < most) {
		struct perf_event_header header;
		uint64_t words[2] = {0};
		copy(data, size, at, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > RECORD_MOST ||
			at + header.size > end) {
			at = end; // not written by the kernel: skip everything
			break;
		}
		size_t length = header.size - sizeof(header);
		length = length < sizeof(words) ? length : sizeof(words);
		copy(data, size, at + sizeof(header), words, length);
		unsigned mode = header.misc & PERF_RECORD_MISC_CPUMODE_MASK;
		if (header.type == PERF_RECORD_SAMPLE) {
			samples[n++] = (struct perf_sample){
				words[0], words[1], mode == PERF_RECORD_MISC_KERNEL};
		} else if (header.type == PERF_RECORD_LOST) {
			counts->lost += words[1];
		} else if (header.type == PERF_RECORD_FORK) {
			counts->children += is_process(words);
		}
		at += header.size;
	}
	__atomic_store_n(&head->data_tail, at, __ATOMIC_RELEASE);
	return n;
}
