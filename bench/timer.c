// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The floor of the lateness of ticks: a bare timer loop. timer INTERVAL_US SECONDS prints the ticks
// that were due, those that were more than an interval late, and those skipped because of that.

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/parse.h"

int main(int argc, char **argv)
{
	struct error e = {0};
	int64_t interval_us = 0, seconds = 0;
	if (argc != 3 || parse_integer(argv[1], 1, 1000000, &interval_us, &e) < 0 ||
		parse_integer(argv[2], 1, 3600, &seconds, &e) < 0) {
		fputs("usage: timer INTERVAL_US SECONDS\n", stderr);
		return 2;
	}
	const uint64_t interval_ns = (uint64_t)interval_us * NS_PER_US;
	uint64_t due = 0, late = 0, missed = 0;
	uint64_t next_ns = clock_monotonic_ns();
	const uint64_t end_ns = next_ns + (uint64_t)seconds * NS_PER_S;
	while (next_ns < end_ns) {
		next_ns += interval_ns;
		struct timespec next = {.tv_sec = (time_t)(next_ns / NS_PER_S),
			.tv_nsec = (long)(next_ns % NS_PER_S)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		uint64_t now_ns = clock_monotonic_ns();
		due++;
		if (now_ns > next_ns + interval_ns) {
			// Late ticks are skipped, as in the recorder.
			uint64_t skipped = (now_ns - next_ns) / interval_ns;
			late++;
			missed += skipped;
			due += skipped;
			next_ns += skipped * interval_ns;
		}
	}
	printf("%llu %llu %llu\n", (unsigned long long)due, (unsigned long long)late,
		(unsigned long long)missed);
	return 0;
}
