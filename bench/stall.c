// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A job that detects when its mmap lock is held: stall MIB SECONDS keeps MIB of memory resident in
// small pages, and continuously maps and unmaps a little more. It prints a line `calls N longest_ns
// N`, and `at_ns N took_ns N` (CLOCK_MONOTONIC) for every call that took over a millisecond.

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/parse.h"

enum { STALLS_MAX = 4096, SMALL_BYTES = 65536 };

struct stalls {
	uint64_t calls;
	long sleeps; // of this process so far
	uint64_t longest_ns;
	size_t count;
	struct {
		uint64_t at_ns;
		uint64_t took_ns;
		bool slept;
	} rows[STALLS_MAX];
};

static long sleeps(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

static int map_once(struct stalls *s)
{
	uint64_t start_ns = clock_monotonic_ns();
	void *memory = mmap(
		NULL, SMALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t took_ns = clock_monotonic_ns() - start_ns;
	if (memory == MAP_FAILED || munmap(memory, SMALL_BYTES) < 0) {
		return -1;
	}
	s->calls++;
	s->longest_ns = took_ns > s->longest_ns ? took_ns : s->longest_ns;
	if (took_ns > NS_PER_MS && s->count < STALLS_MAX) {
		long sleeps_now = sleeps();
		s->rows[s->count].at_ns = start_ns;
		s->rows[s->count].took_ns = took_ns;
		s->rows[s->count++].slept = sleeps_now > s->sleeps;
		s->sleeps = sleeps_now;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct stalls stalls;
	struct error e = {0};
	int64_t mib = 0, seconds = 0;
	if (argc != 3 || parse_integer(argv[1], 1, 1 << 20, &mib, &e) < 0 ||
		parse_integer(argv[2], 1, 3600, &seconds, &e) < 0) {
		fputs("usage: stall MIB SECONDS\n", stderr);
		return 2;
	}
	size_t bytes = (size_t)mib << 20;
	void *resident = mmap(
		NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (resident == MAP_FAILED) {
		perror("stall: mmap");
		return 1;
	}
	madvise(resident, bytes, MADV_NOHUGEPAGE);
	memset(resident, 1, bytes);
	stalls.sleeps = sleeps();
	const uint64_t end_ns = clock_monotonic_ns() + (uint64_t)seconds * NS_PER_S;
	while (clock_monotonic_ns() < end_ns) {
		if (map_once(&stalls) < 0) {
			perror("stall: mmap");
			return 1;
		}
	}
	printf("calls %llu longest_ns %llu\n", (unsigned long long)stalls.calls,
		(unsigned long long)stalls.longest_ns);
	for (size_t i = 0; i < stalls.count; i++) {
		printf("at_ns %llu took_ns %llu slept %d\n",
			(unsigned long long)stalls.rows[i].at_ns,
			(unsigned long long)stalls.rows[i].took_ns, stalls.rows[i].slept);
	}
	return 0;
}
