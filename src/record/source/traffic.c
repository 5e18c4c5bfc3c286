// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Counters that wrap, and rates.

#include "record/source/traffic.h"

#include <math.h>

#define WRAP (UINT64_C(1) << 32)
#define NS 1e-9
// More than any present link carries, all NVLinks together.
#define MAX_BYTES_PER_S 1e14

bool traffic_count(
	struct traffic_counter *c, uint64_t raw, uint64_t elapsed_ns, uint64_t peak_bytes_per_s)
{
	c->wide = c->wide || raw >= WRAP;
	uint64_t before = c->raw;
	c->raw = raw;
	if (!c->started) {
		c->started = true;
		return true;
	}
	if (raw < before && c->wide) {
		// A wide counter that decreases was reset.
		c->total += raw;
		return false;
	}
	c->total += raw >= before ? raw - before : raw + WRAP - before;
	return c->wide || (double)elapsed_ns * NS * (double)peak_bytes_per_s < (double)WRAP;
}

bool traffic_add_rate(struct traffic_counter *c, double bytes_per_s, uint64_t elapsed_ns)
{
	if (!isfinite(bytes_per_s) || bytes_per_s < 0 || bytes_per_s > MAX_BYTES_PER_S) {
		return false;
	}
	c->total += (uint64_t)(bytes_per_s * (double)elapsed_ns * NS);
	return true;
}
