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

// The pointers are borrowed and must outlive the sampler. The registry has every group of
// source_list.
int sampler_new(const struct source_context *context, struct registry *registry, struct feed *feed,
	uint64_t interval_ns, double budget, struct sampler **ret, struct error *e);

// Opens the sources of the tick lane, starts it, and starts the memory lane, which opens its
// sources in its own thread.
int sampler_start(struct sampler *s, struct error *e);
// Starts the device lane, which opens devices in its thread, since a driver may take seconds. Call
// it once, after sampler_start and when all other threads run: loading the driver's library holds
// the dynamic linker's lock, and no thread can start meanwhile. Without it no device is read.
int sampler_start_devices(struct sampler *s, struct error *e);

// Multiplies every interval. At least 1.
void sampler_set_slow(struct sampler *s, double slow);
// The interval of groups that are read at every tick, from now on.
void sampler_set_interval(struct sampler *s, uint64_t interval_ns);

// Reads everything in the tick lane now and passes it to the feed. Waits at most timeout_ns.
void sampler_read_now(struct sampler *s, uint64_t timeout_ns);

// Ends the lanes and passes the last rows to the feed. A lane that hangs in a driver is abandoned:
// its thread and sources stay until the process ends, which must then call _exit. Returns NULL, or
// a sentence that names the abandoned lane.
const char *sampler_stop(struct sampler *s);
// After sampler_stop: passes on that what an abandoned lane's source measures is missing since it
// hung.
void sampler_say_hung(struct sampler *s, struct sink *sink);
// Whether the library of a driver crashed. What it had locked remains locked.
bool sampler_crashed(const struct sampler *s);
// When an abandoned lane's driver was last called (CLOCK_MONOTONIC); the present time if no lane
// was abandoned.
uint64_t sampler_hung_ns(const struct sampler *s);
void sampler_free(struct sampler *s); // accepts NULL; after sampler_stop

// Counts of the tick lane since the start: ticks due, ticks more than one interval late, ticks
// missed.
struct sampler_ticks {
	uint64_t due;
	uint64_t late;
	uint64_t missed;
};
struct sampler_ticks sampler_ticks(const struct sampler *s);
// CPU time that devices cost once: loading their driver's library, and a first reading of each
// group, in which the driver sets up what it needs.
uint64_t sampler_once_ns(const struct sampler *s);
// Time spent in reading a source (index into source_list).
uint64_t sampler_source_ns(const struct sampler *s, size_t source);
// The scheduling of the tick lane: "SCHED_FIFO 1", "slice 0.1 ms", "default".
const char *sampler_scheduling(const struct sampler *s);

// Budget ------------------------------------------------------------------------------------------
//
// The budget slows readings down where recording would cost more than it may. Unused CPU time is
// saved for a while, and the start is paid in advance: single costs, such as starting, a compaction
// or a round of smaps_rollup, slow nothing down.

struct budget {
	double share; // of one core; 0: no budget
	double slow; // every interval is multiplied by it; at least 1
	double recent; // share of a core used, smoothed over a few seconds
	double seconds; // length of time that `recent` is about
	double saved_seconds; // CPU time allowed and not used; negative: overdrawn
	double said; // `slow` of the last event
};

void budget_init(struct budget *b, double share);

// Updates `slow` from the cost of the last stretch of time. True: it differs enough from the last
// event that the caller should write another one.
bool budget_update(struct budget *b, double wall_seconds, double cpu_seconds);

// Pace --------------------------------------------------------------------------------------------
//
// The interval between ticks without --interval. Ticks of 50 ms give the same verdicts as 10 ms for
// a third of the CPU time, but lose detail in the first seconds of a run, in epochs shorter than
// 0.5 s, and of processes that live as long (docs/rates.md).

#define PACE_INTERVAL_NS (50 * NS_PER_MS)
#define PACE_FAST_INTERVAL_NS (20 * NS_PER_MS)
// How long a reason for fast ticks counts; also the start of the run.
#define PACE_FAST_NS (5 * NS_PER_S)

struct pace {
	uint64_t fixed_ns; // --interval; 0: none was given
	uint64_t fast_until_ns; // CLOCK_MONOTONIC
	uint64_t seen_ns; // time of the last pace_update
	uint64_t epochs;
	uint64_t processes;
};

// fixed_ns: 0 to adapt the interval.
void pace_init(struct pace *p, uint64_t fixed_ns, uint64_t now_ns);
// Returns the interval for now. epochs, processes: the numbers that have started so far. Call it
// about once a second.
uint64_t pace_update(struct pace *p, uint64_t now_ns, uint64_t epochs, uint64_t processes);

// Clock watch -------------------------------------------------------------------------------------
//
// Detects that the wall clock was set, or that the machine slept. Times of a run are
// CLOCK_MONOTONIC, which stops while the machine sleeps; CLOCK_BOOTTIME and CLOCK_REALTIME
// continue.

struct sink;

struct clock_watch {
	int64_t offset_ns; // CLOCK_REALTIME less CLOCK_MONOTONIC, as last seen
	int64_t asleep_ns; // CLOCK_BOOTTIME less CLOCK_MONOTONIC, as last seen
	uint64_t suspended_ns; // since the watch began
	uint64_t anchor_ns; // when to record the wall clock next
	bool seen;
};

struct clock_change {
	int64_t set_ns; // step of the wall clock; 0: none
	uint64_t suspended_ns; // how long the machine slept; 0: it did not
};

// Compares the clocks, read one after the other, with those of the last call. True: one was set, or
// the machine slept. A clock that NTP slews was not set.
bool clock_watch_look(struct clock_watch *w, uint64_t monotonic_ns, uint64_t boottime_ns,
	uint64_t realtime_ns, struct clock_change *ret);
// Reads the clocks and writes changes as events, and once a minute the wall clock, which aligns
// runs of several hosts.
void clock_watch_tell(struct clock_watch *w, struct sink *sink, uint64_t now_ns);
