// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Time in nanoseconds.

#pragma once

#include <stdint.h>
#include <time.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec now;
	return clock_gettime(clock, &now) == 0
	               ? (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec
	               : 0;
}

// CLOCK_MONOTONIC: what every time in a run file counts from the run's start.
static inline uint64_t clock_monotonic_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

// CLOCK_REALTIME: for wall-clock anchors and file names only.
static inline uint64_t clock_realtime_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}
