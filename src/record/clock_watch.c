// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The wall clock, and the one that counts sleep, against the monotonic one.

#include "record/clock_watch.h"

#include "base/clock.h"
#include "record/source/sink.h"

#define STEP_MIN_NS ((int64_t)(100 * NS_PER_MS))
#define ANCHOR_NS (60 * NS_PER_S)

bool clock_watch_look(struct clock_watch *w, uint64_t monotonic_ns, uint64_t boottime_ns,
	uint64_t realtime_ns, struct clock_change *ret)
{
	int64_t offset_ns = (int64_t)(realtime_ns - monotonic_ns);
	int64_t asleep_ns = (int64_t)(boottime_ns - monotonic_ns);
	int64_t slept_ns = asleep_ns - w->asleep_ns;
	bool slept = w->seen && slept_ns > STEP_MIN_NS;
	int64_t set_ns = offset_ns - w->offset_ns - (slept ? slept_ns : 0);
	bool set = w->seen && (set_ns > STEP_MIN_NS || set_ns < -STEP_MIN_NS);
	w->offset_ns = offset_ns;
	w->asleep_ns = asleep_ns;
	w->suspended_ns += slept ? (uint64_t)slept_ns : 0;
	w->seen = true;
	*ret = (struct clock_change){set ? set_ns : 0, slept ? (uint64_t)slept_ns : 0};
	return set || slept;
}

void clock_watch_tell(struct clock_watch *w, struct sink *sink, uint64_t now_ns)
{
	struct clock_change change;
	uint64_t wall_ns = clock_realtime_ns(), boot_ns = clock_read_ns(CLOCK_BOOTTIME);
	if (clock_watch_look(w, clock_monotonic_ns(), boot_ns, wall_ns, &change)) {
		w->anchor_ns = now_ns;
	}
	if (change.suspended_ns > 0) {
		sink_event(sink, now_ns, "suspended", 0,
			"the machine was suspended for %.1f s, which are in none of the run's "
			"times",
			(double)change.suspended_ns / 1e9);
	}
	if (change.set_ns != 0) {
		sink_event(sink, now_ns, "clock_step", 0,
			"the wall clock was set by %+.3f s; the run's own times are not affected",
			(double)change.set_ns / 1e9);
	}
	if (now_ns >= w->anchor_ns) {
		sink_event(sink, now_ns, "wall_clock", 0, "%lld",
			(long long)((int64_t)now_ns + w->offset_ns));
		w->anchor_ns = now_ns + ANCHOR_NS;
	}
}
