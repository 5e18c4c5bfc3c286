// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Notices that the wall clock was set, or that the machine slept: the run's own times count in
// CLOCK_MONOTONIC, which stands still meanwhile; CLOCK_BOOTTIME goes on; CLOCK_REALTIME goes on as
// that does, until it is set.

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sink;

struct clock_watch {
	int64_t offset_ns; // CLOCK_REALTIME less CLOCK_MONOTONIC, as last seen
	int64_t asleep_ns; // CLOCK_BOOTTIME less CLOCK_MONOTONIC, as last seen
	uint64_t suspended_ns; // since the watch began
	uint64_t anchor_ns; // when the wall clock is told next
	bool seen;
};

struct clock_change {
	int64_t set_ns; // by how much the wall clock was set; 0: it was not
	uint64_t suspended_ns; // for how long the machine slept; 0: it did not
};

// Takes in the clocks, read one after the other. True where something has happened since the last
// time; what NTP slews is no step.
bool clock_watch_look(struct clock_watch *w, uint64_t monotonic_ns, uint64_t boottime_ns,
	uint64_t realtime_ns, struct clock_change *ret);
// Reads them, and tells what happened as events; and once a minute what the wall clock shows, to
// align runs of several hosts.
void clock_watch_tell(struct clock_watch *w, struct sink *sink, uint64_t now_ns);
