// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The wall clock against the monotonic one.

#include "record/clock_watch.h"

#include "base/clock.h"

#define STEP_MIN_NS ((int64_t)(100 * NS_PER_MS))

bool clock_watch_step(
	struct clock_watch *w, uint64_t monotonic_ns, uint64_t realtime_ns, int64_t *ret_step_ns)
{
	int64_t offset_ns = (int64_t)(realtime_ns - monotonic_ns);
	int64_t step_ns = offset_ns - w->offset_ns;
	bool stepped = w->seen && (step_ns > STEP_MIN_NS || step_ns < -STEP_MIN_NS);
	w->offset_ns = offset_ns;
	w->seen = true;
	if (stepped) {
		*ret_step_ns = step_ns;
	}
	return stepped;
}
