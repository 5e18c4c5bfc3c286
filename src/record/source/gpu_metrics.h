// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The metrics of GPUs, whoever made them. A source of GPUs uses these tables for its groups, as far
// as its driver has them, so that everything that reads a run knows one name for each.

#pragma once

#include "record/sample/source.h"
#include "runfile/metric.h"

// Bytes per second of a PCIe link in each direction, after line coding; 0: no such link.
double gpu_metrics_link_bytes_per_s(int64_t generation, int64_t lanes);

enum { BUSY_GPU, BUSY_MEMORY, N_BUSY };
extern const struct metric gpu_busy_metrics[N_BUSY];

enum { MEMORY_USAGE, MEMORY_RESERVED, MEMORY_LIMIT, N_MEMORY };
extern const struct metric gpu_memory_metrics[N_MEMORY];

enum { CLOCK_SM, CLOCK_MEMORY, CLOCK_THROTTLE, N_CLOCK };
extern const struct metric gpu_clock_metrics[N_CLOCK];

enum { POWER_WATTS, N_POWER };
extern const struct metric gpu_power_metrics[N_POWER];

enum { ENERGY_JOULES, N_ENERGY };
extern const struct metric gpu_energy_metrics[N_ENERGY];

enum { TRAFFIC_TO_GPU, TRAFFIC_FROM_GPU, N_TRAFFIC };
extern const struct metric gpu_pcie_metrics[N_TRAFFIC];

extern const struct metric gpu_nvlink_metrics[N_TRAFFIC];

enum { N_GPM = 8 };
extern const struct metric gpu_gpm_metrics[N_GPM];

enum {
	STATE_TEMPERATURE,
	STATE_MEMORY_TEMPERATURE,
	STATE_POWER_LIMIT,
	STATE_GENERATION,
	STATE_WIDTH,
	N_STATE
};
extern const struct metric gpu_state_metrics[N_STATE];

enum {
	ERRORS_UNCORRECTED,
	ERRORS_CORRECTED,
	ERRORS_PAGES,
	ERRORS_ROWS,
	ERRORS_REPLAYS,
	ERRORS_XIDS,
	N_ERRORS
};
extern const struct metric gpu_error_metrics[N_ERRORS];

// Events of a kind and GPU: further ones of a count that increases steadily would tell nothing new.
#define GPU_ERROR_EVENTS_MAX 5u

struct gpu_errors {
	int64_t counts[N_ERRORS]; // the last; VALUE_MISSING: not read yet
	unsigned events[N_ERRORS];
};

void gpu_errors_init(struct gpu_errors *e);

// Takes a count of errors of the GPU `entity`, and writes an event if it grew: "GPU 0 (Tesla T4): 2
// corrected ECC errors". PCIe's replays and Xids give none.
void gpu_errors_note(struct gpu_errors *e, struct sink *sink, uint64_t now_ns, int64_t entity,
	unsigned index, const char *name, size_t metric, int64_t count);

enum {
	JOB_MEMORY,
	JOB_PROCESSES,
	JOB_UTILIZATION,
	JOB_OTHER_PROCESSES,
	JOB_OTHER_MEMORY,
	JOB_OTHER_UTILIZATION,
	N_JOB
};
extern const struct metric gpu_job_metrics[N_JOB];

enum { PROCESS_MEMORY, PROCESS_UTILIZATION, N_PROCESS };
extern const struct metric gpu_process_metrics[N_PROCESS];
