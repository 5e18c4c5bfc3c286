// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The cost of a mark, next to that of reading the clock: marker ROUNDS prints the medians of the
// rounds in nanoseconds, for the clock and for a mark. Each round fits into the ring, which is
// emptied between rounds as the recorder does.

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/parse.h"
#include "strain/marker.h"

enum { MARKS = 2000, ROUNDS_MAX = 10000 };

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static double clock_round(void)
{
	uint64_t sum = 0, before = clock_monotonic_ns();
	for (int i = 0; i < MARKS; i++) {
		sum += clock_monotonic_ns();
	}
	uint64_t after = clock_monotonic_ns();
	__asm__ volatile("" : : "r"(sum));
	return (double)(after - before) / MARKS;
}

static double mark_round(void)
{
	uint64_t before = clock_monotonic_ns();
	for (int i = 0; i < MARKS / 2; i++) {
		strain_begin("forward");
		strain_end();
	}
	uint64_t after = clock_monotonic_ns();
	const struct strain_marker *self = strain_marker_self_.marker;
	if (self && self->ring) {
		self->ring->taken = self->written;
	}
	return (double)(after - before) / MARKS;
}

int main(int argc, char **argv)
{
	static double clocks[ROUNDS_MAX], marks[ROUNDS_MAX];
	struct error e = {0};
	int64_t rounds = 0;
	if (argc != 2 || parse_integer(argv[1], 1, ROUNDS_MAX, &rounds, &e) < 0) {
		fputs("usage: marker ROUNDS\n", stderr);
		return 2;
	}
	mark_round(); // the first round creates the ring
	for (int64_t i = 0; i < rounds; i++) {
		clocks[i] = clock_round();
		marks[i] = mark_round();
	}
	qsort(clocks, (size_t)rounds, sizeof(clocks[0]), compare);
	qsort(marks, (size_t)rounds, sizeof(marks[0]), compare);
	printf("%.2f %.2f\n", clocks[rounds / 2], marks[rounds / 2]);
	return 0;
}
