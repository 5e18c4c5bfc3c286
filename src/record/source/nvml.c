// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// NVIDIA GPUs through NVML: utilisation, memory, traffic, power, clocks, what throttles them, and
// which of the job's processes use them. nvml_gpu.h tells the way through the rooms behind.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/job/tree.h"
#include "record/source/gpu_visible.h"
#include "record/source/nvml_gpu.h"

static const struct metric busy_metrics[N_BUSY] = {
	[BUSY_GPU] = {"hw.gpu.utilization", METRIC_GAUGE, "1", 0.01,
		"Share of time in which a kernel was resident on the GPU, however small it was, "
		"over "
		"the driver's sample period of 1/6 to 1 s (nvmlDeviceGetSamples, each sample once "
		"with the driver's time; else nvmlDeviceGetUtilizationRates)."},
	[BUSY_MEMORY] = {"strain.gpu.memory.utilization", METRIC_GAUGE, "1", 0.01,
		"Share of time in which the GPU's memory was read or written, over the same sample "
		"period: how busy its memory controller was, not how much memory is in use."},
};

static const struct metric memory_metrics[N_MEMORY] = {
	[MEMORY_USAGE] = {"hw.gpu.memory.usage", METRIC_GAUGE, "By", 1,
		"GPU memory that is allocated, by all processes, with what frameworks keep in "
		"their "
		"caches (on drivers before 510 the reserved part is in it); of a divided GPU (MIG) "
		"in the job's instance."},
	[MEMORY_RESERVED] = {"strain.gpu.memory.reserved", METRIC_GAUGE, "By", 1,
		"GPU memory that driver and firmware keep for themselves (driver 510 and later)."},
	[MEMORY_LIMIT] = {"hw.gpu.memory.limit", METRIC_GAUGE, "By", 1,
		"GPU memory in all, the reserved part included; of a divided GPU (MIG) that of the "
		"job's instance."},
};

static const struct metric clock_metrics[N_CLOCK] = {
	[CLOCK_SM] = {"strain.gpu.clock.sm", METRIC_GAUGE, "Hz", 1e6,
		"Clock of the GPU's multiprocessors now."},
	[CLOCK_MEMORY] = {"strain.gpu.clock.memory", METRIC_GAUGE, "Hz", 1e6,
		"Clock of the GPU's memory now; data moves at twice this rate."},
	[CLOCK_THROTTLE] = {"strain.gpu.throttle", METRIC_STATE, "1", 1,
		"Why clocks are not at their highest, as bits: 1 idle, 2 application clocks were "
		"set, 4 power limit, 8 hardware slowdown, 16 synchronised with other GPUs, 32 too "
		"hot (software), 64 too hot (hardware), 128 power brake, 256 display clocks; 0 is "
		"none."},
};

static const struct metric power_metrics[N_POWER] = {
	[POWER_WATTS] = {"hw.power", METRIC_GAUGE, "W", 0.001,
		"Power that the GPU's board draws now (where the driver has only "
		"nvmlDeviceGetPowerUsage, averaged over a second on Ampere and later)."},
	[POWER_ENERGY] = {"hw.energy", METRIC_COUNTER, "J", 0.001,
		"Energy that the GPU's board has drawn since the driver was loaded (Volta and "
		"later); its growth is exact where sampled power is not."},
};

static const struct metric pcie_metrics[N_TRAFFIC] = {
	[TRAFFIC_TO_GPU] = {"strain.gpu.pcie.host_to_device", METRIC_COUNTER, "By", 1,
		"Bytes that the GPU received over PCIe since the run's start; the entity's "
		"pcie_method tells whether they were counted, or computed from rates."},
	[TRAFFIC_FROM_GPU] = {"strain.gpu.pcie.device_to_host", METRIC_COUNTER, "By", 1,
		"Bytes that the GPU sent over PCIe since the run's start; the entity's pcie_method "
		"tells whether they were counted, or computed from rates."},
};

static const struct metric nvlink_metrics[N_TRAFFIC] = {
	[TRAFFIC_TO_GPU] = {"strain.gpu.nvlink.receive", METRIC_COUNTER, "By", 1,
		"Bytes of data that the GPU received over all its NVLinks, without protocol (since "
		"the links came up, or, where nvlink_method is GPM, since the run's start)."},
	[TRAFFIC_FROM_GPU] = {"strain.gpu.nvlink.transmit", METRIC_COUNTER, "By", 1,
		"Bytes of data that the GPU sent over all its NVLinks, without protocol (since the "
		"links came up, or, where nvlink_method is GPM, since the run's start)."},
};

static const struct metric gpm_metrics[] = {
	{"strain.gpu.sm.activity", METRIC_GAUGE, "1", 1e-4,
		"Share of multiprocessors that had a warp, averaged over time since the row before "
		"(GPM: Hopper and later)."},
	{"strain.gpu.sm.occupancy", METRIC_GAUGE, "1", 1e-4,
		"Warps resident as a share of what the multiprocessors can hold, averaged over "
		"time "
		"(GPM)."},
	{"strain.gpu.tensor.activity", METRIC_GAUGE, "1", 1e-4,
		"Share of time in which tensor cores of any kind worked (GPM)."},
	{"strain.gpu.dram.activity", METRIC_GAUGE, "1", 1e-4,
		"Bandwidth of the GPU's memory that was used, as a share of its peak (GPM)."},
	{"strain.gpu.fp64.activity", METRIC_GAUGE, "1", 1e-4,
		"Share of time in which FP64 pipes worked, tensor cores not counted (GPM)."},
	{"strain.gpu.fp32.activity", METRIC_GAUGE, "1", 1e-4,
		"Share of time in which FP32 pipes worked, tensor cores not counted (GPM)."},
	{"strain.gpu.fp16.activity", METRIC_GAUGE, "1", 1e-4,
		"Share of time in which FP16 pipes worked, tensor cores not counted (GPM)."},
	{"strain.gpu.integer.activity", METRIC_GAUGE, "1", 1e-4,
		"Share of time in which integer pipes worked (GPM)."},
};

static const struct metric state_metrics[N_STATE] = {
	[STATE_TEMPERATURE] = {"hw.temperature", METRIC_GAUGE, "Cel", 1,
		"Temperature of the GPU's chip."},
	[STATE_MEMORY_TEMPERATURE] = {"strain.gpu.memory.temperature", METRIC_GAUGE, "Cel", 1,
		"Temperature of the GPU's memory, where it has a sensor (HBM)."},
	[STATE_POWER_LIMIT] = {"strain.gpu.power.limit", METRIC_GAUGE, "W", 0.001,
		"Power limit that is in force."},
	[STATE_GENERATION] = {"strain.gpu.pcie.generation", METRIC_STATE, "1", 1,
		"PCIe generation that the link runs at now: it falls while the GPU is idle."},
	[STATE_WIDTH] = {"strain.gpu.pcie.width", METRIC_STATE, "{lane}", 1,
		"PCIe lanes that the link runs with now: fewer than pcie_width_max under load are "
		"a "
		"bad slot or riser."},
};

static const struct metric error_metrics[N_ERRORS] = {
	[ERRORS_UNCORRECTED] = {"hw.errors", METRIC_COUNTER, "{error}", 1,
		"Memory errors that ECC could not correct, since the driver was loaded; a process "
		"that meets one ends."},
	[ERRORS_CORRECTED] = {"strain.gpu.errors.corrected", METRIC_COUNTER, "{error}", 1,
		"Memory errors that ECC corrected, since the driver was loaded."},
	[ERRORS_PAGES] = {"strain.gpu.pages.retired", METRIC_COUNTER, "{page}", 1,
		"Pages of GPU memory taken out of use for errors, ever (before Ampere)."},
	[ERRORS_ROWS] = {"strain.gpu.rows.remapped", METRIC_COUNTER, "{row}", 1,
		"Rows of GPU memory replaced for errors, ever (Ampere and later)."},
	[ERRORS_REPLAYS] = {"strain.gpu.pcie.replays", METRIC_COUNTER, "{packet}", 1,
		"PCIe packets that had to be sent again: a bad link, and slow."},
	[ERRORS_XIDS] = {"strain.gpu.xids", METRIC_COUNTER, "{error}", 1,
		"Errors that the driver logged (\"Xid\", a number that names the kind) since the "
		"run's start; each is an event with its number."},
};

static const struct metric job_metrics[N_JOB] = {
	[JOB_MEMORY] = {"strain.gpu.job.memory.usage", METRIC_GAUGE, "By", 1,
		"Memory of this GPU that processes of the job hold."},
	[JOB_PROCESSES] = {"strain.gpu.job.processes", METRIC_GAUGE, "{process}", 1,
		"Processes of the job that use this GPU."},
	[JOB_UTILIZATION] = {"strain.gpu.job.utilization", METRIC_GAUGE, "1", 0.01,
		"Share of time in which a process of the job had a kernel resident on this GPU "
		"(nvmlDeviceGetProcessUtilization); processes that take turns are added up."},
	[JOB_OTHER_PROCESSES] = {"strain.gpu.others.processes", METRIC_GAUGE, "{process}", 1,
		"Processes of other programs that use this GPU."},
	[JOB_OTHER_MEMORY] = {"strain.gpu.others.memory.usage", METRIC_GAUGE, "By", 1,
		"Memory of this GPU that processes of other programs hold."},
	[JOB_OTHER_UTILIZATION] = {"strain.gpu.others.utilization", METRIC_GAUGE, "1", 0.01,
		"Share of time in which a process of another program had a kernel resident on this "
		"GPU; processes that take turns are added up."},
};

static const struct metric process_metrics[N_PROCESS] = {
	[PROCESS_MEMORY] = {"strain.gpu.memory.usage", METRIC_GAUGE, "By", 1,
		"GPU memory that the process holds, on all GPUs together, its CUDA context "
		"included."},
	[PROCESS_UTILIZATION] = {"strain.gpu.utilization", METRIC_GAUGE, "1", 0.01,
		"Share of time in which the process had a kernel resident, added up over GPUs: 2 "
		"is "
		"two GPUs all the time (nvmlDeviceGetProcessUtilization)."},
};

typedef void fill_function(struct nvml *n, struct gpu *g, struct gpu_reading *r);
typedef void read_function(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns);

// GPM's readings also serve the traffic that is known in no better way.
static bool wanted(const struct gpu *g, enum gpu_group group)
{
	return gpu_wants_any(g, group) ||
	       (group == GPU_GPM &&
		       ((g->pcie.method == TRAFFIC_GPM && gpu_wants_any(g, GPU_PCIE)) ||
			       (g->nvlink.method == TRAFFIC_GPM && gpu_wants_any(g, GPU_NVLINK))));
}

// Every GPU that has the group. -ENODEV where none has it any more; the reasons were said.
static int read_group(struct gpu_source *s, struct sink *sink, uint64_t now_ns,
	enum gpu_group group, fill_function *fill, read_function *read)
{
	bool any = false;
	for (size_t i = 0; i < s->n_gpus; i++) {
		struct gpu *g = &s->gpus[i];
		if (!wanted(g, group)) {
			continue;
		}
		if (read) {
			read(s, g, sink, now_ns);
		} else {
			struct gpu_reading r = {0};
			for (size_t metric = 0; metric < GPU_MAX_METRICS; metric++) {
				r.result[metric] = GPU_QUIET;
			}
			fill(s->nvml, g, &r);
			gpu_row(sink, g, group, now_ns, &r);
		}
		any = any || wanted(g, group);
	}
	return any ? 0 : -ENODEV;
}

static int read_busy(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_BUSY, NULL, gpu_read_busy);
}

static int read_memory(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_MEMORY, gpu_fill_memory, NULL);
}

static int read_clock(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_CLOCK, gpu_fill_clock, NULL);
}

static int read_power(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_POWER, gpu_fill_power, NULL);
}

static int read_pcie(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_PCIE, NULL, gpu_read_pcie);
}

static int read_nvlink(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_NVLINK, NULL, gpu_read_nvlink);
}

static int read_gpm(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_GPM, NULL, gpu_read_gpm);
}

static int read_state(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_STATE, gpu_fill_state, NULL);
}

static int read_errors(void *state, struct sink *sink, uint64_t now_ns)
{
	gpu_take_xids(state, sink, now_ns);
	return read_group(state, sink, now_ns, GPU_ERRORS, NULL, gpu_read_errors);
}

// The same reading gives the job's share of each GPU and each process's part.
static int read_processes(void *state, struct sink *sink, uint64_t now_ns)
{
	struct gpu_source *s = state;
	return s->tree ? gpu_read_processes(s, sink, now_ns) : -ENODEV;
}

static int read_nothing(void *state, struct sink *sink, uint64_t now_ns)
{
	(void)state;
	(void)sink;
	(void)now_ns;
	return 0;
}

// What costs alike stands together: the sampler stretches a group that proves dear. PCIe's counters
// of 32 bits wrap every 68 ms at 63 GB/s, hence 40 ms; the driver's buffer of utilisation loses
// nothing in 200 ms.
const struct group nvml_groups[N_GPU_GROUPS] = {
	[GPU_BUSY] = {"utilization", ENTITY_GPU, busy_metrics, N_BUSY, 200 * NS_PER_MS, read_busy},
	[GPU_MEMORY] = {"memory", ENTITY_GPU, memory_metrics, N_MEMORY, 100 * NS_PER_MS,
		read_memory},
	[GPU_CLOCK] = {"clock", ENTITY_GPU, clock_metrics, N_CLOCK, 100 * NS_PER_MS, read_clock},
	[GPU_POWER] = {"power", ENTITY_GPU, power_metrics, N_POWER, 100 * NS_PER_MS, read_power},
	[GPU_PCIE] = {"pcie", ENTITY_GPU, pcie_metrics, N_TRAFFIC, 40 * NS_PER_MS, read_pcie},
	[GPU_NVLINK] = {"nvlink", ENTITY_GPU, nvlink_metrics, N_TRAFFIC, NS_PER_S, read_nvlink},
	[GPU_GPM] = {"gpm", ENTITY_GPU, gpm_metrics, ARRAY_LENGTH(gpm_metrics), 120 * NS_PER_MS,
		read_gpm},
	[GPU_STATE] = {"state", ENTITY_GPU, state_metrics, N_STATE, NS_PER_S, read_state},
	[GPU_ERRORS] = {"errors", ENTITY_GPU, error_metrics, N_ERRORS, 10 * NS_PER_S, read_errors},
	[GPU_JOB] = {"job", ENTITY_GPU, job_metrics, N_JOB, NS_PER_S, read_nothing},
	[GPU_PROCESS] = {"gpu_processes", ENTITY_PROCESS, process_metrics, N_PROCESS, NS_PER_S,
		read_processes},
};

// "pid:[4026531836]" is the machine's own pid namespace (PROC_PID_INIT_INO of Linux).
static bool in_nested_namespace(int root_fd)
{
	char link[64];
	ssize_t n = readlinkat(root_fd, "proc/self/ns/pid", link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	return strcmp(link, "pid:[4026531836]") != 0;
}

// An instance without a UUID cannot be told from others.
static void find_instances(struct gpu_source *s, struct gpu *g)
{
	struct nvml_device *handles[GPU_MAX_INSTANCES];
	size_t n = 0;
	nvml_instances(s->nvml, g->handle, handles, ARRAY_LENGTH(handles), &n);
	for (size_t i = 0; i < n; i++) {
		struct gpu_instance *instance = &g->instances[g->n_instances];
		instance->handle = handles[i];
		g->n_instances += nvml_text(s->nvml, handles[i], NVML_UUID, instance->uuid,
					  sizeof(instance->uuid)) == NVML_OK;
	}
	g->instance = g->n_instances == 1 ? 0 : -1;
}

static void open_gpu(struct gpu_source *s, struct gpu *g, struct sink *sink)
{
	int result = nvml_device(s->nvml, g->index, &g->handle);
	snprintf(g->name, sizeof(g->name), "%s", "(unknown)");
	snprintf(g->uuid, sizeof(g->uuid), "index-%u", g->index);
	if (result == NVML_OK) {
		char uuid[sizeof(g->uuid)];
		nvml_text(s->nvml, g->handle, NVML_NAME, g->name, sizeof(g->name));
		if (nvml_text(s->nvml, g->handle, NVML_UUID, uuid, sizeof(uuid)) == NVML_OK) {
			memcpy(g->uuid, uuid, sizeof(uuid));
		}
		nvml_bus_id(s->nvml, g->handle, g->bus_id, sizeof(g->bus_id));
		nvml_mig(s->nvml, g->handle, &g->mig);
		if (g->mig) {
			find_instances(s, g);
		}
	}
	gpu_describe(s, g, sink);
	if (result != NVML_OK) {
		g->handle = NULL;
		g->lost = true;
		for (size_t group = 0; group < GPU_PROCESS; group++) {
			sink_missing_group(
				sink, g->entity, &nvml_groups[group], nvml_reason(result));
		}
	}
}

static int find_gpus(struct gpu_source *s, struct error *e)
{
	unsigned count = 0;
	int result = nvml_device_count(s->nvml, &count);
	if (result != NVML_OK) {
		return error_set(e, EIO, "NVML does not count its GPUs: %s", nvml_reason(result));
	}
	if (count == 0) {
		return error_set(e, ENODEV,
			"no NVIDIA GPU; none is attached, or none given to this container or job");
	}
	s->gpus = calloc(count, sizeof(*s->gpus));
	s->gpm_request = calloc(1, sizeof(*s->gpm_request));
	if (!s->gpus || !s->gpm_request) {
		return error_errno(e, ENOMEM, "NVML");
	}
	s->n_gpus = count;
	int cuda = 0;
	nvml_driver_version(s->nvml, s->driver, sizeof(s->driver));
	if (nvml_cuda_version(s->nvml, &cuda) == NVML_OK && cuda > 0) {
		snprintf(s->cuda, sizeof(s->cuda), "%d.%d", cuda / 1000, cuda % 1000 / 10);
	}
	return 0;
}

static void nvml_source_close(void *state)
{
	struct gpu_source *s = state;
	if (!s) {
		return;
	}
	gpu_say_unmatched(s, s->sink, true);
	for (size_t i = 0; i < s->n_gpus; i++) {
		gpu_say_gaps(s->sink, &s->gpus[i]);
		gpu_gpm_close(s, &s->gpus[i]);
	}
	nvml_xids_free(s->nvml, s->xids);
	nvml_close(s->nvml);
	free(s->gpus);
	free(s->gpm_request);
	free(s->processes);
	free(s->members);
	free(s);
}

static int nvml_source_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	if (context->captured) {
		return error_set(e, ENODEV, "a captured machine has no driver to ask");
	}
	struct gpu_source *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_errno(e, ENOMEM, "NVML");
	}
	s->sink = sink;
	s->host = context->host;
	s->start_ns = context->start_ns;
	s->root_fd = context->root_fd;
	s->tree = context->tree;
	s->nested = in_nested_namespace(context->root_fd);
	int r = nvml_open(NULL, &s->nvml, e);
	r = r < 0 ? r : find_gpus(s, e);
	if (r < 0) {
		nvml_source_close(s);
		return r;
	}
	for (size_t i = 0; i < s->n_gpus; i++) {
		s->gpus[i].index = (unsigned)i;
		s->gpus[i].instance = -1;
		for (size_t error = 0; error < N_ERRORS; error++) {
			s->gpus[i].errors[error] = VALUE_MISSING;
		}
		open_gpu(s, &s->gpus[i], sink);
	}
	gpu_visible_from_self(s);
	gpu_xids_open(s, sink);
	for (size_t i = 0; i < s->n_gpus; i++) {
		if (!s->gpus[i].lost) {
			gpu_describe_again(s, &s->gpus[i], sink);
		}
	}
	*ret_state = s;
	return 0;
}

extern const struct source source_nvml;
const struct source source_nvml = {
	.name = "nvml",
	.help = "NVIDIA GPUs: utilisation, memory, PCIe, NVLink, power, clocks, processes",
	.lane = LANE_DEVICE,
	.groups = nvml_groups,
	.n_groups = N_GPU_GROUPS,
	.open = nvml_source_open,
	.close = nvml_source_close,
};
