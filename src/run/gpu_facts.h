// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Which GPUs are the job's, and what these did. A machine has GPUs that the job may not use
// (CUDA_VISIBLE_DEVICES), that it may use and does not, and that it shares with other programs:
// only what the job's own did says something about the job.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct analysis;
struct stretch;

enum gpu_owner {
	GPU_OF_JOB, // a process of the job was on it; or it may be, and nobody knows who was
	GPU_SPARE, // the job may use it, and no process of it was on it
	GPU_OF_OTHERS, // the job's environment hides it
	N_GPU_OWNERS,
};

// What the job does with it, for tables: "uses it", "may use it", "may not".
const char *gpu_owner_name(enum gpu_owner owner);
// Of overview.gpus[gpu].
enum gpu_owner gpu_owner(const struct analysis *a, size_t gpu);

enum gpu_error {
	GPU_ERROR_UNCORRECTED, // ECC
	GPU_ERROR_CORRECTED,
	GPU_ERROR_PAGES, // retired
	GPU_ERROR_ROWS, // remapped
	GPU_ERROR_REPLAYS, // PCIe packets that were sent again
	GPU_ERROR_XIDS, // that the driver logged
	N_GPU_ERRORS,
};

// Numbers are NAN where they are not known. Shares of time are of a stretch of steady iterations;
// where there are no iterations, of what is recorded.
struct gpu_facts {
	unsigned n; // GPUs that the job may use
	unsigned n_used; // of these, with a process of the job on them; where nobody knows: 0
	bool known; // of each of them it is known whether a process of the job was on it
	bool used; // the job uses one: it is known, or nobody knows whose processes there are, and
	           // one of those that it may use was busy, or its memory filled
	bool unused; // known: no process of the job was on any that it may use
	bool divided; // the busiest is (MIG)
	// The busiest of the job's, and what it did.
	int index; // NVML's number; -1: there is none
	int64_t entity;
	double busy; // share of time with a kernel resident
	double sm_activity; // share of its multiprocessors that had a warp (GPM)
	double occupancy; // warps, as a share of what they hold (GPM)
	double tensor_activity;
	double dram_activity; // bandwidth, as a share of the peak (GPM)
	double least_busy; // of the job's GPUs the one that is least busy
	int least_index;
	// Its clock while it had work: lost is 1 - clock / the clock that was asked for (the
	// highest, or that set for applications). Driver's reasons of a lower clock: heat, a
	// hardware slowdown or a power brake come first, the power limit second.
	double clock_lost; // on average
	double slowed; // share of busy time with a reason of the first kind
	double throttled; // what these cost: clock lost then, averaged over all busy time
	double capped; // share of busy time at the power limit, with no reason of the first kind
	double capped_lost; // clock lost then
	// Who else was on the job's GPU; of the one that had most of it.
	double others; // mean number of their processes
	double others_busy; // share of time with a kernel of theirs
	double others_bytes; // memory that they held, on average
	double job_busy; // share of time with a kernel of the job's, on that GPU
	int shared_index; // -1: none is shared, or it is not known
	// Links and memory.
	double to_device_rate; // of the busiest link
	double link_rate; // what that link can do
	double memory_bytes; // of the fullest; of a divided one its instance's
	double memory_peak_bytes;
	// That the job's GPUs counted while it ran, and the one with the most of the worst kind.
	double errors[N_GPU_ERRORS];
	int errors_index; // -1: there were none
	uint64_t
		xid; // the first of the job's GPUs that names a fault of the GPU; 0: there was none
	int xid_index;
	int lost_index; // a GPU of the job that went away; -1: none did
	double lost_at_s;
	// The busiest that is not the job's.
	int neighbour_index; // -1: none was busy
	double neighbour_busy;
};

// Nothing known.
void gpu_facts_init(struct gpu_facts *g);
// Needs overview and events.
void gpu_facts_fill(const struct analysis *a, const struct stretch *stretch, struct gpu_facts *ret);
// The part of the job's time that slow clocks took; 0: none, or too little to be told from the
// usual. NAN: not known.
double gpu_facts_throttled(const struct gpu_facts *g);
// The part of the time in which the job's GPU worked for others; 0: none; NAN: not known.
double gpu_facts_shared(const struct gpu_facts *g);
// Whether its results cannot be trusted: uncorrected errors, an Xid that means so, or it is gone.
bool gpu_facts_fault(const struct gpu_facts *g);
