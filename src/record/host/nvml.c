// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Opening NVML, and its plain calls.

#include "record/host/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "record/host/nvml_calls.h"

// What is looked up. Several names for one place: the first that the library has is taken, so
// newer ones stand first.
struct symbol {
	const char *name;
	size_t offset;
	bool required;
};

#define AT(member) offsetof(struct nvml_calls, member)

static const struct symbol symbols[] = {
	{"nvmlInit_v2", AT(init), true},
	{"nvmlShutdown", AT(shutdown), true},
	{"nvmlSystemGetDriverVersion", AT(driver_version), false},
	{"nvmlSystemGetCudaDriverVersion_v2", AT(cuda_version), false},
	{"nvmlSystemGetCudaDriverVersion", AT(cuda_version), false},
	{"nvmlDeviceGetCount_v2", AT(device_count), true},
	{"nvmlDeviceGetHandleByIndex_v2", AT(device), true},
	{"nvmlDeviceGetName", AT(texts[NVML_NAME]), false},
	{"nvmlDeviceGetUUID", AT(texts[NVML_UUID]), true},
	{"nvmlDeviceGetPowerUsage", AT(numbers[NVML_POWER]), false},
	{"nvmlDeviceGetEnforcedPowerLimit", AT(numbers[NVML_POWER_LIMIT]), false},
	{"nvmlDeviceGetCurrPcieLinkGeneration", AT(numbers[NVML_PCIE_GENERATION]), false},
	{"nvmlDeviceGetCurrPcieLinkWidth", AT(numbers[NVML_PCIE_WIDTH]), false},
	{"nvmlDeviceGetMaxPcieLinkGeneration", AT(numbers[NVML_PCIE_GENERATION_MAX]), false},
	{"nvmlDeviceGetMaxPcieLinkWidth", AT(numbers[NVML_PCIE_WIDTH_MAX]), false},
	{"nvmlDeviceGetNumGpuCores", AT(numbers[NVML_CORES]), false},
	{"nvmlDeviceGetMemoryBusWidth", AT(numbers[NVML_MEMORY_BUS_BITS]), false},
	{"nvmlDeviceGetPciInfo_v3", AT(pci), false},
	{"nvmlDeviceGetClockInfo", AT(clock), false},
	{"nvmlDeviceGetMaxClockInfo", AT(clock_max), false},
	{"nvmlDeviceGetApplicationsClock", AT(clock_application), false},
	{"nvmlDeviceGetCurrentClocksEventReasons", AT(clock_reasons), false},
	{"nvmlDeviceGetCurrentClocksThrottleReasons", AT(clock_reasons), false},
	{"nvmlDeviceGetTemperature", AT(temperature), false},
	{"nvmlDeviceGetTemperatureV", AT(temperature_versioned), false},
	{"nvmlDeviceGetUtilizationRates", AT(utilization), false},
	{"nvmlDeviceGetMemoryInfo", AT(memory), false},
	{"nvmlDeviceGetMemoryInfo_v2", AT(memory_v2), false},
	{"nvmlDeviceGetCudaComputeCapability", AT(compute_capability), false},
	{"nvmlDeviceGetMigMode", AT(mig), false},
	{"nvmlDeviceGetMaxMigDeviceCount", AT(instance_count), false},
	{"nvmlDeviceGetMigDeviceHandleByIndex", AT(instance), false},
	{"nvmlDeviceGetPcieThroughput", AT(pcie_throughput), false},
	{"nvmlDeviceGetFieldValues", AT(fields), false},
	{"nvmlDeviceGetSamples", AT(samples), false},
	{"nvmlDeviceGetComputeRunningProcesses_v3", AT(compute_processes), false},
	{"nvmlDeviceGetComputeRunningProcesses_v2", AT(compute_processes), false},
	{"nvmlDeviceGetComputeRunningProcesses", AT(compute_processes), false},
	{"nvmlDeviceGetGraphicsRunningProcesses_v3", AT(graphics_processes), false},
	{"nvmlDeviceGetGraphicsRunningProcesses_v2", AT(graphics_processes), false},
	{"nvmlDeviceGetGraphicsRunningProcesses", AT(graphics_processes), false},
	{"nvmlDeviceGetMPSComputeRunningProcesses_v3", AT(mps_processes), false},
	{"nvmlDeviceGetMPSComputeRunningProcesses_v2", AT(mps_processes), false},
	{"nvmlDeviceGetMPSComputeRunningProcesses", AT(mps_processes), false},
	{"nvmlDeviceGetProcessUtilization", AT(process_samples), false},
	{"nvmlEventSetCreate", AT(event_set_new), false},
	{"nvmlEventSetFree", AT(event_set_free), false},
	{"nvmlDeviceRegisterEvents", AT(event_register), false},
	{"nvmlEventSetWait_v2", AT(event_wait), false},
	{"nvmlEventSetWait", AT(event_wait), false},
	{"nvmlGpmQueryDeviceSupport", AT(gpm_support), false},
	{"nvmlGpmSampleAlloc", AT(gpm_alloc), false},
	{"nvmlGpmSampleFree", AT(gpm_free), false},
	{"nvmlGpmSampleGet", AT(gpm_read), false},
	{"nvmlGpmMetricsGet", AT(gpm_metrics), false},
};

#undef AT

struct result_text {
	int result;
	enum nvml_outcome outcome;
	const char *reason;
};

static const struct result_text results[] = {
	{NVML_UNINITIALIZED, NVML_LOST, "the driver was unloaded"},
	{NVML_INVALID_ARGUMENT, NVML_NEVER, "not known to this driver"},
	{NVML_NOT_SUPPORTED, NVML_NEVER, "not supported by this GPU"},
	{NVML_NO_PERMISSION, NVML_NEVER, "no permission: the driver tells it only to root"},
	{NVML_NOT_FOUND, NVML_NOT_NOW, "the driver found nothing"},
	{NVML_INSUFFICIENT_SIZE, NVML_NOT_NOW, "more entries than are believed"},
	{NVML_INSUFFICIENT_POWER, NVML_NEVER, "the GPU's power cables are not attached"},
	{NVML_DRIVER_NOT_LOADED, NVML_LOST, "the driver was unloaded"},
	{NVML_TIMEOUT, NVML_NOT_NOW, "the driver timed out"},
	{NVML_IRQ_ISSUE, NVML_NEVER, "the kernel found an interrupt problem with the GPU"},
	{NVML_FUNCTION_NOT_FOUND, NVML_NEVER, "this driver is too old for it"},
	{NVML_CORRUPTED_INFOROM, NVML_NEVER, "the GPU's infoROM is corrupted"},
	{NVML_GPU_IS_LOST, NVML_LOST, "the GPU fell off the bus"},
	{NVML_RESET_REQUIRED, NVML_LOST, "the GPU needs a reset"},
	{NVML_OPERATING_SYSTEM, NVML_NEVER, "no permission: the GPU's device is blocked here"},
	{NVML_VERSION_MISMATCH, NVML_NEVER, "driver and library versions differ"},
	{NVML_IN_USE, NVML_NOT_NOW, "the GPU was in use"},
	{NVML_MEMORY, NVML_NOT_NOW, "the driver was out of memory"},
	{NVML_NO_DATA, NVML_NOT_NOW, "the driver had no data"},
	{NVML_VGPU_ECC, NVML_NEVER, "not supported by this virtual GPU"},
	{NVML_INSUFFICIENT_RESOURCES, NVML_NOT_NOW, "the driver was out of resources"},
	{NVML_FREQUENCY_NOT_SUPPORTED, NVML_NEVER, "not supported by this GPU"},
	{NVML_ARGUMENT_VERSION, NVML_NEVER, "this driver knows another version of the call"},
	{NVML_DEPRECATED, NVML_NEVER, "no longer told by this driver"},
	{NVML_NOT_READY, NVML_NOT_NOW, "the driver was not ready"},
	{NVML_INVALID_STATE, NVML_NOT_NOW, "the GPU was not in a state to tell"},
	{NVML_UNKNOWN, NVML_NOT_NOW, "the driver answered: unknown error"},
};

static const struct result_text *result_text(int result)
{
	for (size_t i = 0; i < ARRAY_LENGTH(results); i++) {
		if (results[i].result == result) {
			return &results[i];
		}
	}
	return NULL;
}

const char *nvml_reason(int result)
{
	const struct result_text *t = result_text(result);
	return t ? t->reason : "the driver answered with an unknown code";
}

enum nvml_outcome nvml_outcome(int result)
{
	const struct result_text *t = result_text(result);
	return result == NVML_OK ? NVML_READ : t ? t->outcome : NVML_NOT_NOW;
}

static int load_error(struct error *e, const char *path)
{
	const char *text = dlerror();
	if (!text || strstr(text, "cannot open shared object file: No such file")) {
		return error_set(e, ENOENT,
			"%s is not on this machine; install NVIDIA's driver, or start the "
			"container with its GPUs (--gpus all)",
			path);
	}
	return error_set(e, ELIBACC, "%s cannot be loaded: %s", path, text);
}

static int find_symbols(struct nvml *n, struct error *e)
{
	for (size_t i = 0; i < ARRAY_LENGTH(symbols); i++) {
		char *place = (char *)&n->call + symbols[i].offset;
		void *found = NULL;
		memcpy(&found, place, sizeof(found));
		if (found) {
			continue;
		}
		found = dlsym(n->library, symbols[i].name);
		memcpy(place, &found, sizeof(found));
		if (!found && symbols[i].required) {
			return error_set(e, ELIBBAD,
				"the NVML library has no %s: it is older than any driver that "
				"can be read; update NVIDIA's driver",
				symbols[i].name);
		}
	}
	return 0;
}

static const struct {
	int result;
	int code;
	const char *text;
} start_failures[] = {
	{NVML_DRIVER_NOT_LOADED, ENODEV,
		"NVIDIA's driver is not loaded; load it (modprobe nvidia), or start the container "
		"with its GPUs (--gpus all)"},
	{NVML_VERSION_MISMATCH, ELIBBAD,
		"driver/library version mismatch: the driver was updated while it was loaded; "
		"reboot, or reload the nvidia modules"},
	{NVML_NO_PERMISSION, EACCES,
		"no permission to ask NVIDIA's driver; make /dev/nvidiactl readable and writable "
		"for this user"},
	{NVML_OPERATING_SYSTEM, EPERM,
		"NVIDIA's devices are blocked here; allow /dev/nvidia* in this job's or "
		"container's "
		"device cgroup"},
	{NVML_GPU_NOT_FOUND, ENODEV, "no NVIDIA GPU; none is attached or given to this container"},
	{NVML_GPU_IS_LOST, EIO, "a GPU has fallen off the bus; reset it or reboot"},
	{NVML_INSUFFICIENT_POWER, EIO, "a GPU's power cables are not attached; attach them"},
	{NVML_LIBRARY_NOT_FOUND, ENOENT,
		"NVML does not find a library that it needs; reinstall NVIDIA's driver"},
};

static int start_error(struct error *e, int result)
{
	for (size_t i = 0; i < ARRAY_LENGTH(start_failures); i++) {
		if (start_failures[i].result == result) {
			return error_set(e, start_failures[i].code, "%s", start_failures[i].text);
		}
	}
	return error_set(e, EIO, "NVML does not start (code %d): %s; see dmesg", result,
		nvml_reason(result));
}

static int start(struct nvml *n, struct error *e)
{
	int result = n->call.init();
	return result == NVML_OK ? 0 : start_error(e, result);
}

int nvml_open(const char *path, struct nvml **ret, struct error *e)
{
	path = path ? path : NVML_LIBRARY;
	struct nvml *n = calloc(1, sizeof(*n));
	if (!n) {
		return error_errno(e, ENOMEM, "cannot open %s", path);
	}
	n->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int r = n->library ? find_symbols(n, e) : load_error(e, path);
	r = r < 0 ? r : start(n, e);
	if (r < 0) {
		free(n);
		return r;
	}
	*ret = n;
	return 0;
}

// The library stays loaded: it may have threads and exit handlers, and the process ends anyway.
void nvml_close(struct nvml *n)
{
	if (n) {
		n->call.shutdown();
		free(n);
	}
}

int nvml_driver_version(struct nvml *n, char *buffer, size_t size)
{
	char text[80 + 1] = ""; // the length that the reference names, and our own end
	if (!n->call.driver_version) {
		return NVML_FUNCTION_NOT_FOUND;
	}
	int r = n->call.driver_version(text, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	snprintf(buffer, size, "%s", text);
	return r;
}

int nvml_cuda_version(struct nvml *n, int *ret)
{
	return n->call.cuda_version ? n->call.cuda_version(ret) : NVML_FUNCTION_NOT_FOUND;
}

int nvml_device_count(struct nvml *n, unsigned *ret)
{
	unsigned count = 0;
	int r = n->call.device_count(&count);
	*ret = count < NVML_MAX_GPUS ? count : NVML_MAX_GPUS;
	return r;
}

int nvml_device(struct nvml *n, unsigned index, struct nvml_device **ret)
{
	*ret = NULL;
	int r = n->call.device(index, ret);
	return r == NVML_OK && !*ret ? NVML_UNKNOWN : r;
}

int nvml_text(
	struct nvml *n, struct nvml_device *d, enum nvml_text which, char *buffer, size_t size)
{
	char text[96 + 1] = "";
	if (!n->call.texts[which]) {
		return NVML_FUNCTION_NOT_FOUND;
	}
	int r = n->call.texts[which](d, text, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	snprintf(buffer, size, "%s", text);
	return r;
}

int nvml_bus_id(struct nvml *n, struct nvml_device *d, char *buffer, size_t size)
{
	struct nvml_pci pci = {0};
	if (!n->call.pci) {
		return NVML_FUNCTION_NOT_FOUND;
	}
	int r = n->call.pci(d, &pci);
	snprintf(buffer, size, "%.*s", (int)sizeof(pci.bus_id), pci.bus_id);
	return r;
}

int nvml_number(struct nvml *n, struct nvml_device *d, enum nvml_number which, uint32_t *ret)
{
	return n->call.numbers[which] ? n->call.numbers[which](d, ret) : NVML_FUNCTION_NOT_FOUND;
}

int nvml_clock(struct nvml *n, struct nvml_device *d, unsigned clock, uint32_t *ret)
{
	return n->call.clock ? n->call.clock(d, clock, ret) : NVML_FUNCTION_NOT_FOUND;
}

int nvml_clock_max(struct nvml *n, struct nvml_device *d, unsigned clock, uint32_t *ret)
{
	return n->call.clock_max ? n->call.clock_max(d, clock, ret) : NVML_FUNCTION_NOT_FOUND;
}

int nvml_clock_application(struct nvml *n, struct nvml_device *d, unsigned clock, uint32_t *ret)
{
	return n->call.clock_application ? n->call.clock_application(d, clock, ret)
	                                 : NVML_FUNCTION_NOT_FOUND;
}

int nvml_clock_reasons(struct nvml *n, struct nvml_device *d, uint64_t *ret)
{
	unsigned long long reasons = 0;
	int r = n->call.clock_reasons ? n->call.clock_reasons(d, &reasons)
	                              : NVML_FUNCTION_NOT_FOUND;
	*ret = reasons;
	return r;
}

int nvml_celsius(struct nvml *n, struct nvml_device *d, int32_t *ret)
{
	struct nvml_temperature versioned = {
		.version = NVML_VERSION_WORD(struct nvml_temperature, 1)};
	unsigned plain = 0;
	int r = n->call.temperature_versioned ? n->call.temperature_versioned(d, &versioned)
	                                      : NVML_FUNCTION_NOT_FOUND;
	*ret = versioned.celsius;
	if (nvml_outcome(r) == NVML_NEVER && n->call.temperature) {
		r = n->call.temperature(d, 0, &plain);
		*ret = (int32_t)plain;
	}
	return r;
}

int nvml_utilization(struct nvml *n, struct nvml_device *d, struct nvml_utilization *ret)
{
	return n->call.utilization ? n->call.utilization(d, ret) : NVML_FUNCTION_NOT_FOUND;
}

int nvml_memory(struct nvml *n, struct nvml_device *d, struct nvml_memory_v2 *ret)
{
	struct nvml_memory_v1 old = {0};
	*ret = (struct nvml_memory_v2){.version = NVML_VERSION_WORD(struct nvml_memory_v2, 2)};
	int r = n->call.memory_v2 ? n->call.memory_v2(d, ret) : NVML_FUNCTION_NOT_FOUND;
	if (nvml_outcome(r) == NVML_NEVER && n->call.memory) {
		r = n->call.memory(d, &old);
		*ret = (struct nvml_memory_v2){.total = old.total,
			.free = old.free,
			.used = old.used,
			.reserved = NVML_NOT_AVAILABLE};
	}
	return r;
}

int nvml_compute_capability(struct nvml *n, struct nvml_device *d, int *ret_major, int *ret_minor)
{
	return n->call.compute_capability ? n->call.compute_capability(d, ret_major, ret_minor)
	                                  : NVML_FUNCTION_NOT_FOUND;
}

int nvml_mig(struct nvml *n, struct nvml_device *d, bool *ret)
{
	unsigned current = 0, pending = 0;
	int r = n->call.mig ? n->call.mig(d, &current, &pending) : NVML_FUNCTION_NOT_FOUND;
	*ret = r == NVML_OK && current == 1;
	return r;
}

int nvml_instances(struct nvml *n, struct nvml_device *d, struct nvml_device **instances,
	size_t capacity, size_t *ret_n)
{
	unsigned count = 0;
	*ret_n = 0;
	if (!n->call.instance_count || !n->call.instance) {
		return NVML_FUNCTION_NOT_FOUND;
	}
	int r = n->call.instance_count(d, &count);
	// Numbers of instances that are not there, or not given to a container, are skipped.
	for (unsigned i = 0; r == NVML_OK && i < count && i < capacity; i++) {
		struct nvml_device *instance = NULL;
		if (n->call.instance(d, i, &instance) == NVML_OK && instance) {
			instances[(*ret_n)++] = instance;
		}
	}
	return r;
}

int nvml_pcie_throughput(
	struct nvml *n, struct nvml_device *d, enum nvml_direction direction, uint32_t *ret)
{
	return n->call.pcie_throughput ? n->call.pcie_throughput(d, direction, ret)
	                               : NVML_FUNCTION_NOT_FOUND;
}
