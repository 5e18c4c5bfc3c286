// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The cost of pushing and popping an NVTX range, next to that of two readings of the clock: nvtx
// RING_DIRECTORY ROUNDS prints the medians of the rounds in nanoseconds, for the clock, a range,
// and a range in a domain of its own. Each round fits into the ring, which is emptied between
// rounds as the recorder does.

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "nvtx_loader.h"
#include "strain/marker.h"

enum { RANGES = 1000, ROUNDS_MAX = 10000 };

static const struct nvtx_functions *nvtx;
static struct strain_ring *ring;

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
	return values[n / 2];
}

// The only ring in the directory.
static struct strain_ring *map_ring(const char *path)
{
	DIR *directory = opendir(path);
	struct strain_ring *found = NULL;
	struct dirent *entry;
	while (directory && !found && (entry = readdir(directory))) {
		int fd = strncmp(entry->d_name, "ring-", 5) == 0
		                 ? openat(dirfd(directory), entry->d_name, O_RDWR | O_CLOEXEC)
		                 : -1;
		if (fd >= 0) {
			found = strain_ring_map(fd);
			close(fd);
		}
	}
	if (directory) {
		closedir(directory);
	}
	return found;
}

static double clock_round(void)
{
	uint64_t sum = 0, before = clock_monotonic_ns();
	for (int i = 0; i < RANGES; i++) {
		sum += clock_monotonic_ns();
		sum += clock_monotonic_ns();
	}
	uint64_t after = clock_monotonic_ns();
	__asm__ volatile("" : : "r"(sum));
	return (double)(after - before) / RANGES;
}

static double range_round(void)
{
	uint64_t before = clock_monotonic_ns();
	for (int i = 0; i < RANGES; i++) {
		nvtx->push_bytes("forward");
		nvtx->pop();
	}
	uint64_t after = clock_monotonic_ns();
	ring->taken = ring->written;
	return (double)(after - before) / RANGES;
}

static double domain_round(uintptr_t domain, const struct nvtx_event *event)
{
	uint64_t before = clock_monotonic_ns();
	for (int i = 0; i < RANGES; i++) {
		nvtx->domain_push(domain, event);
		nvtx->domain_pop(domain);
	}
	uint64_t after = clock_monotonic_ns();
	ring->taken = ring->written;
	return (double)(after - before) / RANGES;
}

int main(int argc, char **argv)
{
	static double clocks[ROUNDS_MAX], ranges[ROUNDS_MAX], domains[ROUNDS_MAX];
	struct error e = {0};
	int64_t rounds = 0;
	if (argc != 3 || parse_integer(argv[2], 1, ROUNDS_MAX, &rounds, &e) < 0) {
		fputs("usage: nvtx RING_DIRECTORY ROUNDS\n", stderr);
		return 2;
	}
	if (!nvtx_load(&nvtx)) {
		fputs("nvtx: the library was not loaded\n", stderr);
		return 1;
	}
	nvtx->mark_bytes("first"); // creates the ring
	ring = map_ring(argv[1]);
	if (!ring) {
		fputs("nvtx: there is no ring\n", stderr);
		return 1;
	}
	uintptr_t domain = nvtx->create_bytes("library");
	uintptr_t string = nvtx->register_bytes(domain, "forward");
	struct nvtx_event event = nvtx_event_of(NVTX_MESSAGE_REGISTERED, string, -1);
	for (int64_t i = 0; i < rounds; i++) {
		clocks[i] = clock_round();
		ranges[i] = range_round();
		domains[i] = domain_round(domain, &event);
	}
	size_t n = (size_t)rounds;
	printf("%.2f %.2f %.2f\n", median(clocks, n), median(ranges, n), median(domains, n));
	return 0;
}
