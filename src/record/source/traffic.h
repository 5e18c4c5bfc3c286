// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Bytes over a link, as a counter that only grows, from counters that wrap or from rates.

#pragma once

#include <stdbool.h>
#include <stdint.h>

// Initialise with zeros.
struct traffic_counter {
	uint64_t raw; // last value read
	uint64_t total; // since the first reading
	bool started;
	bool wide; // exceeded 32 bits once: does not wrap there
};

// Adds a reading of a counter that may wrap at 32 bits, taken elapsed_ns after the last one, on a
// link with a peak of `peak` bytes per second. Returns false if it may have wrapped undetected: the
// total is then a lower bound.
bool traffic_count(
	struct traffic_counter *c, uint64_t raw, uint64_t elapsed_ns, uint64_t peak_bytes_per_s);

// Adds a rate times a duration. Returns false if the rate is impossible for a link.
bool traffic_add_rate(struct traffic_counter *c, double bytes_per_s, uint64_t elapsed_ns);
