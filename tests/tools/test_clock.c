// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A library to preload, with a CLOCK_MONOTONIC of its own: between two looks TEST_CLOCK_MS pass, 0
// too. What happens after two seconds, or before, is tested without measuring time.

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// The C library's names of the arguments are its own.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	static atomic_long looks;
	const char *step = getenv("TEST_CLOCK_MS");
	if (clock != CLOCK_MONOTONIC || !step) {
		return (int)syscall(SYS_clock_gettime, clock, ret);
	}
	long ms = 1000000 + atomic_fetch_add(&looks, 1) * strtol(step, NULL, 10);
	*ret = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	return 0;
}
