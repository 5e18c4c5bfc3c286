// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Notices that the wall clock was set: CLOCK_REALTIME then moves against CLOCK_MONOTONIC, which the
// run's own times count in.

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct clock_watch {
	int64_t offset_ns; // CLOCK_REALTIME less CLOCK_MONOTONIC, as last seen
	bool seen;
};

// Takes in both clocks, read one after the other. True where the wall clock was set since the last
// time, and by how much; what NTP slews is no step.
bool clock_watch_step(
	struct clock_watch *w, uint64_t monotonic_ns, uint64_t realtime_ns, int64_t *ret_step_ns);
