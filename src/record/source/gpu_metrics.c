// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The metrics of GPUs.

#include "record/source/gpu_metrics.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/cleanup.h"

double gpu_metrics_link_bytes_per_s(int64_t generation, int64_t lanes)
{
	// 8b/10b, 128b/130b, 242b/256b.
	static const double lane_bytes_per_s[] = {
		[1] = 2.5e9 / 8 * 8 / 10,
		[2] = 5e9 / 8 * 8 / 10,
		[3] = 8e9 / 8 * 128 / 130,
		[4] = 16e9 / 8 * 128 / 130,
		[5] = 32e9 / 8 * 128 / 130,
		[6] = 64e9 / 8 * 242 / 256,
	};
	bool known = generation >= 1 && generation < (int64_t)ARRAY_LENGTH(lane_bytes_per_s) &&
	             lanes >= 1 && lanes <= 32;
	return known ? lane_bytes_per_s[generation] * (double)lanes : 0;
}

void gpu_errors_init(struct gpu_errors *e)
{
	*e = (struct gpu_errors){0};
	for (size_t i = 0; i < N_ERRORS; i++) {
		e->counts[i] = VALUE_MISSING;
	}
}

void gpu_errors_note(struct gpu_errors *e, struct sink *sink, uint64_t now_ns, int64_t entity,
	unsigned index, const char *name, size_t metric, int64_t count)
{
	// NULL: no event. PCIe resends packets on healthy machines too.
	static const char *const names[N_ERRORS][2] = {
		[ERRORS_UNCORRECTED] = {"uncorrected ECC error", "uncorrected ECC errors"},
		[ERRORS_CORRECTED] = {"corrected ECC error", "corrected ECC errors"},
		[ERRORS_PAGES] = {"page of memory retired", "pages of memory retired"},
		[ERRORS_ROWS] = {"row of memory remapped", "rows of memory remapped"},
	};
	int64_t before = e->counts[metric], more = before == VALUE_MISSING ? 0 : count - before;
	e->counts[metric] = count;
	if (more > 0 && names[metric][0] && e->events[metric]++ < GPU_ERROR_EVENTS_MAX) {
		sink_event(sink, now_ns, "gpu_errors", entity, "GPU %u (%s): %" PRId64 " %s", index,
			name, more, names[metric][more > 1]);
	}
}

const struct metric gpu_busy_metrics[N_BUSY] = {
	[BUSY_GPU] = {"hw.gpu.utilization", METRIC_GAUGE, "1", 0.01,
		"Share of time in which a kernel of any size was resident on the GPU, over the "
		"driver's sample period of 1/6 to 1 s (nvmlDeviceGetSamples, each sample once "
		"with the driver's time; otherwise nvmlDeviceGetUtilizationRates). AMD: "
		"gpu_busy_percent, of which each reading is the firmware's latest average. Intel: "
		"an upper bound, the share of time since the previous reading in which the busiest "
		"GT was not in its idle state (gtidle/idle_residency_ms, rc6_residency_ms)."},
	[BUSY_MEMORY] = {"strain.gpu.memory.utilization", METRIC_GAUGE, "1", 0.01,
		"Share of time in which the GPU's memory was read or written, over the same sample "
		"period: how busy its memory controller was, not how much memory is in use. AMD: "
		"mem_busy_percent."},
};

const struct metric gpu_memory_metrics[N_MEMORY] = {
	[MEMORY_USAGE] = {"hw.gpu.memory.usage", METRIC_GAUGE, "By", 1,
		"GPU memory allocated by all processes, including the caches of frameworks "
		"(and, on drivers before 510, the reserved part). On a partitioned GPU (MIG): "
		"in the job's instance. AMD: mem_info_vram_used."},
	[MEMORY_RESERVED] = {"strain.gpu.memory.reserved", METRIC_GAUGE, "By", 1,
		"GPU memory reserved for driver and firmware (driver 510 and later)."},
	[MEMORY_LIMIT] = {"hw.gpu.memory.limit", METRIC_GAUGE, "By", 1,
		"Total GPU memory, including the reserved part. On a partitioned GPU (MIG): of "
		"the job's instance. AMD: mem_info_vram_total."},
};

const struct metric gpu_clock_metrics[N_CLOCK] = {
	[CLOCK_SM] = {"strain.gpu.clock.sm", METRIC_GAUGE, "Hz", 1e6,
		"Current clock of the GPU's multiprocessors (AMD: sclk of its hwmon; Intel: "
		"act_freq of its fastest tile, 0 while that is idle)."},
	[CLOCK_MEMORY] = {"strain.gpu.clock.memory", METRIC_GAUGE, "Hz", 1e6,
		"Current clock of the GPU's memory; data moves at twice this rate (AMD: mclk of "
		"its "
		"hwmon, which may differ in that)."},
	[CLOCK_THROTTLE] = {"strain.gpu.throttle", METRIC_STATE, "1", 1,
		"Why clocks are not at their highest, as bits: 1 idle, 2 application clocks were "
		"set, 4 power limit, 8 hardware slowdown, 16 synchronised with other GPUs, 32 too "
		"hot (software), 64 too hot (hardware), 128 power brake, 256 display clocks; 0 is "
		"none. AMD: 1, 4, 32 and 64, from gpu_metrics. Intel: 1, 4, 32, 64 and 128, from "
		"throttle; 8 is any other reason."},
};

const struct metric gpu_power_metrics[N_POWER] = {
	[POWER_WATTS] = {"hw.power", METRIC_GAUGE, "W", 0.001,
		"Current power of the GPU's board (averaged over a second on Ampere and later, "
		"if the driver has only nvmlDeviceGetPowerUsage). AMD: power1_average or "
		"power1_input of its hwmon. Intel: the growth of energy since the "
		"previous reading, of the board or the chip (power_domain of the entity)."},
};

const struct metric gpu_energy_metrics[N_ENERGY] = {
	[ENERGY_JOULES] = {"hw.energy", METRIC_COUNTER, "J", 0.001,
		"Energy used by the GPU's board since the driver was loaded (Volta and later). "
		"Its growth is exact, unlike sampled power. AMD: from gpu_metrics, where the "
		"firmware counts it. Intel: energy*_input of its hwmon, of the board or the chip "
		"(power_domain)."},
};

const struct metric gpu_pcie_metrics[N_TRAFFIC] = {
	[TRAFFIC_TO_GPU] = {"strain.gpu.pcie.host_to_device", METRIC_COUNTER, "By", 1,
		"Bytes that the GPU received over PCIe since the start of the run. The "
		"entity's pcie_method says whether they were counted or computed from rates."},
	[TRAFFIC_FROM_GPU] = {"strain.gpu.pcie.device_to_host", METRIC_COUNTER, "By", 1,
		"Bytes that the GPU sent over PCIe since the start of the run. The entity's "
		"pcie_method says whether they were counted or computed from rates."},
};

const struct metric gpu_nvlink_metrics[N_TRAFFIC] = {
	[TRAFFIC_TO_GPU] = {"strain.gpu.nvlink.receive", METRIC_COUNTER, "By", 1,
		"Bytes of data that the GPU received over all its NVLinks, without protocol "
		"overhead (since the links came up; if nvlink_method is GPM, since the start "
		"of the run)."},
	[TRAFFIC_FROM_GPU] = {"strain.gpu.nvlink.transmit", METRIC_COUNTER, "By", 1,
		"Bytes of data that the GPU sent over all its NVLinks, without protocol "
		"overhead (since the links came up; if nvlink_method is GPM, since the start "
		"of the run)."},
};

const struct metric gpu_gpm_metrics[N_GPM] = {
	{"strain.gpu.sm.activity", METRIC_GAUGE, "1", 1e-4,
		"Share of multiprocessors with a resident warp, averaged since the previous "
		"reading (GPM: Hopper and later)."},
	{"strain.gpu.sm.occupancy", METRIC_GAUGE, "1", 1e-4,
		"Resident warps as a share of the maximum of the multiprocessors, averaged "
		"over time (GPM)."},
	{"strain.gpu.tensor.activity", METRIC_GAUGE, "1", 1e-4,
		"Share of time in which tensor cores of any kind were active (GPM)."},
	{"strain.gpu.dram.activity", METRIC_GAUGE, "1", 1e-4,
		"Used memory bandwidth of the GPU, as a share of its peak (GPM)."},
	{"strain.gpu.fp64.activity", METRIC_GAUGE, "1", 1e-4,
		"Share of time in which FP64 pipes were active, excluding tensor cores (GPM)."},
	{"strain.gpu.fp32.activity", METRIC_GAUGE, "1", 1e-4,
		"Share of time in which FP32 pipes were active, excluding tensor cores (GPM)."},
	{"strain.gpu.fp16.activity", METRIC_GAUGE, "1", 1e-4,
		"Share of time in which FP16 pipes were active, excluding tensor cores (GPM)."},
	{"strain.gpu.integer.activity", METRIC_GAUGE, "1", 1e-4,
		"Share of time in which integer pipes were active (GPM)."},
};

const struct metric gpu_state_metrics[N_STATE] = {
	[STATE_TEMPERATURE] = {"hw.temperature", METRIC_GAUGE, "Cel", 1,
		"Temperature of the GPU's chip (AMD: of its hottest point, \"junction\", else at "
		"its edge; Intel: \"pkg\" of its hwmon)."},
	[STATE_MEMORY_TEMPERATURE] = {"strain.gpu.memory.temperature", METRIC_GAUGE, "Cel", 1,
		"Temperature of the GPU's memory, if it has a sensor (HBM)."},
	[STATE_POWER_LIMIT] = {"strain.gpu.power.limit", METRIC_GAUGE, "W", 0.001,
		"Power limit in effect (AMD: power1_cap of its hwmon; Intel: power*_max)."},
	[STATE_GENERATION] = {"strain.gpu.pcie.generation", METRIC_STATE, "1", 1,
		"Current PCIe generation of the link; it is lower while the GPU is idle."},
	[STATE_WIDTH] = {"strain.gpu.pcie.width", METRIC_STATE, "{lane}", 1,
		"Current number of PCIe lanes of the link. Fewer than pcie_width_max under "
		"load indicate a bad slot or riser."},
};

const struct metric gpu_error_metrics[N_ERRORS] = {
	[ERRORS_UNCORRECTED] = {"hw.errors", METRIC_COUNTER, "{error}", 1,
		"Memory errors that ECC could not correct, since the driver was loaded. Such "
		"an error ends the process that encounters it."},
	[ERRORS_CORRECTED] = {"strain.gpu.errors.corrected", METRIC_COUNTER, "{error}", 1,
		"Memory errors that ECC corrected, since the driver was loaded."},
	[ERRORS_PAGES] = {"strain.gpu.pages.retired", METRIC_COUNTER, "{page}", 1,
		"Pages of GPU memory retired because of errors, over the lifetime of the GPU "
		"(before Ampere)."},
	[ERRORS_ROWS] = {"strain.gpu.rows.remapped", METRIC_COUNTER, "{row}", 1,
		"Rows of GPU memory remapped because of errors, over the lifetime of the GPU "
		"(Ampere and later)."},
	[ERRORS_REPLAYS] = {"strain.gpu.pcie.replays", METRIC_COUNTER, "{packet}", 1,
		"Retransmitted PCIe packets; they indicate a bad link."},
	[ERRORS_XIDS] = {"strain.gpu.xids", METRIC_COUNTER, "{error}", 1,
		"Errors that the driver logged since the start of the run (\"Xid\", the number "
		"of their kind). Each is an event with its number."},
};

const struct metric gpu_job_metrics[N_JOB] = {
	[JOB_MEMORY] = {"strain.gpu.job.memory.usage", METRIC_GAUGE, "By", 1,
		"Memory of this GPU used by processes of the job (AMD: as kfd counts it; Intel: "
		"resident, from fdinfo, of which shared buffers count in each client; on an "
		"integrated GPU in the machine's memory)."},
	[JOB_PROCESSES] = {"strain.gpu.job.processes", METRIC_GAUGE, "{process}", 1,
		"Processes of the job that use this GPU (AMD: that have a queue of kfd on it; "
		"Intel: whose engines' time is above 0, or that hold 32 MiB)."},
	[JOB_UTILIZATION] = {"strain.gpu.job.utilization", METRIC_GAUGE, "1", 0.01,
		"Share of time in which a process of the job had a kernel resident on this "
		"GPU, summed over processes that alternate (nvmlDeviceGetProcessUtilization). "
		"Intel: share of the time of the busiest kind of engines, from fdinfo."},
	[JOB_OTHER_PROCESSES] = {"strain.gpu.others.processes", METRIC_GAUGE, "{process}", 1,
		"Processes of other programs that use this GPU."},
	[JOB_OTHER_MEMORY] = {"strain.gpu.others.memory.usage", METRIC_GAUGE, "By", 1,
		"Memory of this GPU used by processes of other programs."},
	[JOB_OTHER_UTILIZATION] = {"strain.gpu.others.utilization", METRIC_GAUGE, "1", 0.01,
		"Share of time in which a process of another program had a kernel resident on "
		"this GPU, summed over processes that alternate."},
};

const struct metric gpu_process_metrics[N_PROCESS] = {
	[PROCESS_MEMORY] = {"strain.gpu.memory.usage", METRIC_GAUGE, "By", 1,
		"GPU memory used by the process on all GPUs, including its CUDA context (AMD: as "
		"kfd counts it; Intel: resident, from fdinfo)."},
	[PROCESS_UTILIZATION] = {"strain.gpu.utilization", METRIC_GAUGE, "1", 0.01,
		"Share of time in which the process had a kernel resident, summed over GPUs: 2 "
		"means two GPUs all the time (nvmlDeviceGetProcessUtilization). Intel: the busiest "
		"kind of engines of each GPU, from fdinfo."},
};
