// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The sampler: a thread per lane that reads its sources' groups when they are due.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "record/source/source.h"

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
