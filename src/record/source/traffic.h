// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Bytes over a link, as a counter that only grows, from counters that wrap or from rates.

#pragma once

#include <stdbool.h>
#include <stdint.h>

// Starts zeroed.
struct traffic_counter {
	uint64_t raw; // as read last
	uint64_t total; // since the first reading
	bool started;
	bool wide; // has shown a value past 32 bits: does not wrap there
};

// Takes a reading of a counter that may wrap at 32 bits, elapsed_ns after the one before, of a link
// that carries at most peak bytes a second. False where it may have wrapped unseen: the total is
// then a lower bound.
bool traffic_count(
	struct traffic_counter *c, uint64_t raw, uint64_t elapsed_ns, uint64_t peak_bytes_per_s);

// Adds what a rate means for a time. False where the rate is no number that a link can have.
bool traffic_add_rate(struct traffic_counter *c, double bytes_per_s, uint64_t elapsed_ns);
