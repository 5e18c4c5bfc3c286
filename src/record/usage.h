// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What wait4 tells of a process that was reaped, with its own reaped descendants, as a message.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "record/job/reaped.h"
#include "record/protocol.h"

static inline uint64_t usage_us(struct timeval t)
{
	return (uint64_t)t.tv_sec * UINT64_C(1000000) + (uint64_t)t.tv_usec;
}

static inline void usage_fill(struct message *message, const struct rusage *usage)
{
	message->user_us = usage_us(usage->ru_utime);
	message->system_us = usage_us(usage->ru_stime);
	message->max_rss_bytes = (uint64_t)usage->ru_maxrss * 1024;
	message->faults = (uint64_t)usage->ru_minflt + (uint64_t)usage->ru_majflt;
}

// The other way; false where the launcher did not reap the job.
static inline bool usage_take(const struct message *message, struct usage *ret)
{
	if (message->user_us == UINT64_MAX) {
		return false;
	}
	*ret = (struct usage){
		.cpu_ns = (message->user_us + message->system_us) * NS_PER_US,
		.peak_bytes = message->max_rss_bytes,
		.faults = message->faults,
	};
	return true;
}
