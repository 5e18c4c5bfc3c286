// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Measures the delay of lines between two processes.
//
//   lines write COUNT GAP_US     prints COUNT lines, each with the time at which it was written
//   lines read                   prints median and 99th percentile of the lines' delay, in ns

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"

enum { AGES_MAX = 1000000 };

static int write_lines(int64_t count, int64_t gap_us)
{
	const struct timespec gap = {
		.tv_sec = gap_us / 1000000, .tv_nsec = gap_us % 1000000 * (long)NS_PER_US};
	for (int64_t i = 1; i <= count; i++) {
		printf("epoch %lld at %llu\n", (long long)i,
			(unsigned long long)clock_monotonic_ns());
		if (fflush(stdout) != 0) {
			return -errno;
		}
		nanosleep(&gap, NULL);
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static int read_lines(void)
{
	_cleanup_free_ uint64_t *ages = calloc(AGES_MAX, sizeof(*ages));
	size_t n = 0;
	char line[256];
	while (ages && n < AGES_MAX && fgets(line, sizeof(line), stdin)) {
		uint64_t now_ns = clock_monotonic_ns(), at_ns;
		struct cursor text = cursor_of(line, strlen(line));
		if (cursor_literal(&text, "epoch ") && cursor_skip_fields(&text, 2) &&
			cursor_u64(&text, &at_ns)) {
			ages[n++] = now_ns - at_ns;
		}
	}
	if (n == 0) {
		return -ENODATA;
	}
	qsort(ages, n, sizeof(*ages), compare);
	printf("%llu %llu\n", (unsigned long long)ages[n / 2],
		(unsigned long long)ages[n * 99 / 100]);
	return 0;
}

int main(int argc, char **argv)
{
	struct error e = {0};
	int64_t count, gap_us;
	int r = -EINVAL;
	if (argc == 4 && strcmp(argv[1], "write") == 0 &&
		parse_integer(argv[2], 1, AGES_MAX, &count, &e) == 0 &&
		parse_integer(argv[3], 0, 1000000000, &gap_us, &e) == 0) {
		r = write_lines(count, gap_us);
	} else if (argc == 2 && strcmp(argv[1], "read") == 0) {
		r = read_lines();
	}
	if (r < 0) {
		fprintf(stderr, "lines: %s\n", strerror(-r));
	}
	return r < 0;
}
