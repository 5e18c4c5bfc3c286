// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The sampler: a thread per lane that reads its sources' groups when they are due.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "record/sample/source.h"

struct sampler;
struct feed;
struct registry;

// All three are borrowed and outlive the sampler. The registry has every group of source_list.
int sampler_new(const struct source_context *context, struct registry *registry, struct feed *feed,
	uint64_t interval_ns, struct sampler **ret, struct error *e);

// Opens the sources of the tick lane and starts it and the lane of memory, which opens its sources
// in its own thread.
int sampler_start(struct sampler *s, struct error *e);
// Starts the lane of devices, which opens them in its thread: a driver may take seconds. To be
// called when all other threads run: while its library is loaded, the dynamic linker's lock keeps
// others from beginning. Once, after sampler_start(); without it no device is read.
int sampler_start_devices(struct sampler *s, struct error *e);

// Multiplies every interval. At least 1.
void sampler_set_slow(struct sampler *s, double slow);
// The interval of groups that are read at every tick, from now on.
void sampler_set_interval(struct sampler *s, uint64_t interval_ns);

// Reads everything in the tick lane once more, now, and hands it to the feed. Waits at most
// timeout_ns.
void sampler_read_now(struct sampler *s, uint64_t timeout_ns);

// Ends the lanes and hands the last rows to the feed. A lane that hangs in a driver, or has not
// come back from opening one, is left behind: its thread, its sources and what they hold stay until
// the process ends, which must then be by _exit. NULL, or what was left behind, as a sentence.
const char *sampler_stop(struct sampler *s);
void sampler_free(struct sampler *s); // accepts NULL; after sampler_stop

// Counts of the tick lane since the start: ticks that were due, those read more than a tick too
// late, and those that were skipped.
struct sampler_ticks {
	uint64_t due;
	uint64_t late;
	uint64_t missed;
};
struct sampler_ticks sampler_ticks(const struct sampler *s);
// Time spent in the readings of a source (index into source_list).
uint64_t sampler_source_ns(const struct sampler *s, size_t source);
// How the tick lane is scheduled: "SCHED_FIFO 1", "slice 0.1 ms", "default".
const char *sampler_scheduling(const struct sampler *s);

// Budget ------------------------------------------------------------------------------------------
//
// The budget: how much slower the recorder must read to cost no more than it was allowed. What it
// did not use it saves up for a while, and has some to begin with: starting, a compaction, a round
// of smaps_rollup are paid from that, and no reading is slowed for them.

struct budget {
	double share; // of one core; 0: no budget
	double slow; // every interval is multiplied by it; at least 1
	double recent; // share of a core used lately, smoothed over a few seconds
	double seconds; // that `recent` is of
	double saved_seconds; // CPU time that was allowed and not used; negative: overdrawn
	double said; // `slow` as the run was last told
};

void budget_init(struct budget *b, double share);

// Takes in what the last stretch of time cost and changes `slow`. True where it has moved so far
// from what the run was last told that this is worth an event; the caller then tells.
bool budget_update(struct budget *b, double wall_seconds, double cpu_seconds);

// Pace --------------------------------------------------------------------------------------------
//
// How often to read what is read at every tick, where --interval does not say. docs/rates.md has
// the measurements: 50 ms costs a third of 10 ms and gives the same verdicts, but loses the first
// seconds of a run, epochs shorter than 0.5 s, and processes that live as long.

#define PACE_INTERVAL_NS (50 * NS_PER_MS)
#define PACE_FAST_INTERVAL_NS (20 * NS_PER_MS)
#define PACE_FAST_NS (5 * NS_PER_S) // that a reason counts, and the start of the run

struct pace {
	uint64_t fixed_ns; // --interval; 0: none was given
	uint64_t fast_until_ns; // CLOCK_MONOTONIC
	uint64_t seen_ns; // when pace_update saw these last
	uint64_t epochs;
	uint64_t processes;
};

// fixed_ns: 0 to adapt the interval.
void pace_init(struct pace *p, uint64_t fixed_ns, uint64_t now_ns);
// Takes in how many epochs and processes began so far, and returns the interval for now. To be
// called about once a second.
uint64_t pace_update(struct pace *p, uint64_t now_ns, uint64_t epochs, uint64_t processes);

// Clock watch -------------------------------------------------------------------------------------
//
// Notices that the wall clock was set, or that the machine slept: the run's own times count in
// CLOCK_MONOTONIC, which stands still meanwhile; CLOCK_BOOTTIME goes on; CLOCK_REALTIME goes on as
// that does, until it is set.

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
