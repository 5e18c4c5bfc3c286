// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Messages between launcher and recorder over a SOCK_SEQPACKET pair, one struct message per packet.
// Either process may die at any moment; the other continues alone.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/clock.h"
#include "machine/tree.h"

enum message_kind {
	// recorder to launcher
	MESSAGE_CREATED = 1, // the run file exists: device, inode
	MESSAGE_READY, // sampling can start
	MESSAGE_FAILED, // sampling cannot start: text; status 1: because of the run file; it ends
	MESSAGE_LAST_READ, // answer to MESSAGE_EXITED: the zombie may be reaped
	MESSAGE_CLOSING, // after MESSAGE_END: measuring has ended
	MESSAGE_DONE, // then: the file is closed
	// launcher to recorder
	MESSAGE_STARTED, // the command runs as pid
	MESSAGE_ORPHAN, // a process that lost its parent was reaped: pid, status, user_us,
	                // system_us; pid 0: several, of which only the sums are told
	MESSAGE_EXITED, // the command ended with status and is not reaped yet
	MESSAGE_END, // it was reaped: status, user_us and system_us (with its reaped descendants)
	MESSAGE_EVENT, // text for the event table: kind, a tab, text
};

struct message {
	uint32_t kind; // enum message_kind
	pid_t pid;
	int32_t status; // as waitpid gives it
	int32_t unused;
	uint64_t at_ns; // of STARTED and END: when, CLOCK_MONOTONIC; 0: not known
	uint64_t user_us; // UINT64_MAX: not known; so for the three below
	uint64_t system_us;
	uint64_t max_rss_bytes; // of the largest of them
	uint64_t device; // of CREATED
	uint64_t inode;
	uint64_t faults; // of pages, of all of them
	char text[480]; // NUL-terminated
};

// Usage -------------------------------------------------------------------------------------------
//
// What wait4 tells of a process that was reaped, with its own reaped descendants, as a message.

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
