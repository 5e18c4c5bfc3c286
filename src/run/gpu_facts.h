// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The GPUs of the job, and their load. A machine also has GPUs that the job may not use
// (CUDA_VISIBLE_DEVICES), GPUs that it may use and does not, and GPUs that it shares with other
// programs.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct analysis;
struct stretch;

enum gpu_owner {
	GPU_OF_JOB, // used by a process of the job; or visible to it, and the users are not known
	GPU_SPARE, // visible to the job, but not used
	GPU_OF_OTHERS, // hidden by the job's environment
	N_GPU_OWNERS,
};

// Of overview.gpus[gpu].
enum gpu_owner gpu_owner(const struct analysis *a, size_t gpu);
// The same for tables: "uses it", "may use it", "may not"; "not known" if the job may use it and no
// list of processes shows whether it does.
const char *gpu_owner_words(const struct analysis *a, size_t gpu);

enum gpu_error {
	GPU_ERROR_UNCORRECTED, // ECC
	GPU_ERROR_CORRECTED,
	GPU_ERROR_PAGES, // retired
	GPU_ERROR_ROWS, // remapped
	GPU_ERROR_REPLAYS, // PCIe packets that were sent again
	GPU_ERROR_XIDS, // that the driver logged
	N_GPU_ERRORS,
};

// Why a driver lowers a clock.
enum gpu_slowing {
	GPU_SLOWED_HEAT,
	GPU_SLOWED_BRAKE, // of power, by the machine
	GPU_SLOWED_HARDWARE, // for one of these reasons, not told which
	GPU_SLOWED_GROUP, // another GPU of its group is slower (sync boost)
	N_GPU_SLOWINGS,
};

// By whom a GPU was made: whose tools and variables advice names.
enum gpu_vendor { GPU_NVIDIA, GPU_AMD, GPU_INTEL, N_GPU_VENDORS };

// NAN: not known. Shares of time refer to a stretch of steady iterations, else to everything
// recorded.
struct gpu_facts {
	unsigned n; // GPUs that the job may use
	unsigned n_hidden; // that its environment hides from it
	unsigned n_used; // GPUs with a process of the job; 0 if not known
	bool known; // whether the users of all of them are known
	bool used; // the job uses one: known, or assumed because one that it may use
	           // was busy or its memory filled
	bool unused; // known: the job used none
	bool held; // the hooks saw a framework hold memory of one
	bool divided; // the busiest is divided (MIG)
	enum gpu_vendor vendor; // of the busiest, or of all if none is the job's
	// The busiest GPU of the job.
	int index; // the driver's number; -1: there is none
	int64_t entity;
	double busy; // share of time with a kernel resident
	double sm_activity; // share of its multiprocessors that had a warp (GPM)
	double occupancy; // warps, as a share of what they hold (GPM)
	double tensor_activity;
	double dram_activity; // bandwidth, as a share of the peak (GPM)
	double fp32_activity, fp64_activity; // arithmetic outside of the tensor cores (GPM)
	double least_busy; // the same of the least busy GPU of the job
	int least_index;
	// Its clock while it had work: lost is 1 - clock / the clock that was asked for (the
	// highest, or that set for applications). Driver's reasons of a lower clock: those of enum
	// gpu_slowing come first, the power limit second.
	double clock_lost; // on average
	double slowed; // share of busy time with a reason of the first kind
	enum gpu_slowing slowing; // the most frequent of these; N_GPU_SLOWINGS: none
	double throttled; // clock lost for these reasons, averaged over busy time
	double capped; // share of busy time at the power limit, with no reason of the first kind
	double capped_lost; // clock lost then
	double set_lost; // clock below the highest because a lower one was set, on average
	double set_hz, highest_hz; // that clock, and the highest
	double hottest; // degrees Celsius
	double power_limit; // watts, the highest in effect
	// Other users of the job's GPU that has most of them.
	double others; // mean number of their processes
	double others_busy; // share of time with a kernel of theirs
	double others_bytes; // memory that they held, on average
	double job_busy; // share of time with a kernel of the job's, on that GPU
	int shared_index; // -1: none is shared, or it is not known
	// Links and memory.
	double to_device_rate; // of the busiest link
	double link_rate; // what that link can do, as fast as it was seen
	double link_best; // what the GPU says that it can do
	double link_busy; // of that GPU
	unsigned link_generation, link_width; // as seen; 0: not known
	int link_index;
	double memory_bytes; // of the fullest; of a divided one its instance's
	double memory_peak_bytes;
	bool reserves; // the framework takes all memory at its start
	// Errors that the GPUs of the job counted, and the GPU with most errors of the worst kind.
	double errors[N_GPU_ERRORS];
	int errors_index; // -1: there were none
	uint64_t
		xid; // the first of the job's GPUs that names a fault of the GPU; 0: there was none
	int xid_index;
	int lost_index; // a GPU of the job that disappeared; -1: none
	double lost_at_s;
	// The busiest GPU that the job does not use.
	int neighbour_index; // -1: none was busy
	double neighbour_busy;
	unsigned n_neighbours; // that were busy
};

// Nothing known.
void gpu_facts_init(struct gpu_facts *g);
// Needs overview and events.
void gpu_facts_fill(const struct analysis *a, const struct stretch *stretch, struct gpu_facts *ret);
// The share of the job's time lost to slow clocks; 0: none, or within the usual variation. NAN: not
// known.
double gpu_facts_throttled(const struct gpu_facts *g);
// The share of time in which the job's GPU worked for others; 0: none; NAN: not known.
double gpu_facts_shared(const struct gpu_facts *g);
// What lowered the clock, as the subject of a sentence.
const char *gpu_slowing_words(enum gpu_slowing slowing);
// Whether the link to the busiest receiver is much slower than the GPU allows, in use.
bool gpu_facts_link_narrow(const struct gpu_facts *g);
// Whether a GPU of the job is faulty: uncorrected errors, an Xid of a fault, or it disappeared.
bool gpu_facts_fault(const struct gpu_facts *g);
