// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// NVML's functions, found by name: opening the library, calls that return a text or a number, calls
// that fill arrays, events, and GPM.

#include "machine/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum clock_call { CLOCK_NOW, CLOCK_MAX, CLOCK_APPLICATION, N_CLOCK_CALLS };

// Functions found in the library. NULL: not in this library.
struct nvml_calls {
	int (*init)(void);
	int (*shutdown)(void);
	int (*driver_version)(char *buffer, unsigned size);
	int (*cuda_version)(int *ret);
	int (*device_count)(unsigned *ret);
	int (*device)(unsigned index, struct nvml_device **ret);

	int (*texts[N_NVML_TEXTS])(struct nvml_device *d, char *buffer, unsigned size);
	int (*numbers[N_NVML_NUMBERS])(struct nvml_device *d, unsigned *ret);
	int (*pci)(struct nvml_device *d, struct nvml_pci *ret);
	int (*clocks[N_CLOCK_CALLS])(struct nvml_device *d, unsigned clock, unsigned *ret);
	int (*clock_reasons)(struct nvml_device *d, unsigned long long *ret);
	int (*temperature)(struct nvml_device *d, unsigned sensor, unsigned *ret);
	int (*temperature_versioned)(struct nvml_device *d, struct nvml_temperature *ret);
	int (*utilization)(struct nvml_device *d, struct nvml_utilization *ret);
	int (*memory)(struct nvml_device *d, struct nvml_memory_v1 *ret);
	int (*memory_v2)(struct nvml_device *d, struct nvml_memory_v2 *ret);
	int (*compute_capability)(struct nvml_device *d, int *ret_major, int *ret_minor);
	int (*mig)(struct nvml_device *d, unsigned *ret_current, unsigned *ret_pending);
	int (*instance_count)(struct nvml_device *d, unsigned *ret);
	int (*instance)(struct nvml_device *d, unsigned index, struct nvml_device **ret);
	int (*pcie_throughput)(struct nvml_device *d, unsigned direction, unsigned *ret);
	int (*fields)(struct nvml_device *d, int n, struct nvml_field *fields);

	int (*samples)(struct nvml_device *d, unsigned which, unsigned long long last_us,
		unsigned *ret_type, unsigned *n, struct nvml_sample *samples);
	int (*compute_processes)(struct nvml_device *d, unsigned *n, void *entries);
	int (*graphics_processes)(struct nvml_device *d, unsigned *n, void *entries);
	int (*mps_processes)(struct nvml_device *d, unsigned *n, void *entries);
	int (*process_samples)(struct nvml_device *d, struct nvml_process_sample *samples,
		unsigned *n, unsigned long long last_us);

	int (*event_set_new)(struct nvml_event_set **ret);
	int (*event_set_free)(struct nvml_event_set *set);
	int (*event_register)(
		struct nvml_device *d, unsigned long long types, struct nvml_event_set *set);
	int (*event_wait)(struct nvml_event_set *set, struct nvml_event *ret, unsigned ms);

	int (*gpm_support)(struct nvml_device *d, struct nvml_gpm_support *ret);
	int (*gpm_alloc)(struct nvml_gpm_sample **ret);
	int (*gpm_free)(struct nvml_gpm_sample *sample);
	int (*gpm_read)(struct nvml_device *d, struct nvml_gpm_sample *sample);
	int (*gpm_metrics)(struct nvml_gpm_request *request);
};

struct nvml {
	void *library;
	struct nvml_calls call;
};

// Library -----------------------------------------------------------------------------------------

// Functions to look up. If several names fill one pointer, the first name in the library is used,
// so newer names come first.
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
	{"nvmlDeviceGetClockInfo", AT(clocks[CLOCK_NOW]), false},
	{"nvmlDeviceGetMaxClockInfo", AT(clocks[CLOCK_MAX]), false},
	{"nvmlDeviceGetApplicationsClock", AT(clocks[CLOCK_APPLICATION]), false},
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
	{NVML_NO_PERMISSION, NVML_NEVER,
		"no permission: drivers may report it only to root, outside of containers"},
	{NVML_NOT_FOUND, NVML_NOT_NOW, "the driver found nothing"},
	{NVML_INSUFFICIENT_SIZE, NVML_NOT_NOW, "more entries than plausible"},
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
	{NVML_DEPRECATED, NVML_NEVER, "no longer reported by this driver"},
	{NVML_NOT_READY, NVML_NOT_NOW, "the driver was not ready"},
	{NVML_INVALID_STATE, NVML_NOT_NOW, "the GPU was in a state without this value"},
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
			"%s was not found; install NVIDIA's driver, or start the container with "
			"its GPUs (--gpus all)",
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
		"no permission to use NVIDIA's driver; make /dev/nvidiactl readable and writable "
		"for this user"},
	{NVML_OPERATING_SYSTEM, EPERM,
		"NVIDIA's devices are blocked here; allow /dev/nvidia* in this job's or "
		"container's "
		"device cgroup"},
	{NVML_GPU_NOT_FOUND, ENODEV,
		"no NVIDIA GPU; attach one, or start the container with its GPUs (--gpus all)"},
	{NVML_GPU_IS_LOST, EIO, "a GPU has fallen off the bus; reset it or reboot"},
	{NVML_INSUFFICIENT_POWER, EIO, "a GPU's power cables are not attached; attach them"},
	{NVML_LIBRARY_NOT_FOUND, ENOENT,
		"NVML cannot find a library that it needs; reinstall NVIDIA's driver"},
};

static int start_error(struct error *e, int result)
{
	for (size_t i = 0; i < ARRAY_LENGTH(start_failures); i++) {
		if (start_failures[i].result == result) {
			return error_set(e, start_failures[i].code, "%s", start_failures[i].text);
		}
	}
	return error_set(e, EIO, "NVML failed to start (code %d): %s; see dmesg", result,
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

// Texts and numbers -------------------------------------------------------------------------------

int nvml_driver_version(struct nvml *n, char *buffer, size_t size)
{
	char text[80 + 1] = ""; // documented length and our own NUL
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

// Clocks are one call each for the present, the highest and the applications' clock.
static const struct {
	size_t call; // enum clock_call
	unsigned clock; // 0: the number is not a clock
} clocks[N_NVML_NUMBERS] = {
	[NVML_SM_CLOCK] = {CLOCK_NOW, NVML_CLOCK_SM},
	[NVML_MEMORY_CLOCK] = {CLOCK_NOW, NVML_CLOCK_MEMORY},
	[NVML_SM_CLOCK_MAX] = {CLOCK_MAX, NVML_CLOCK_SM},
	[NVML_MEMORY_CLOCK_MAX] = {CLOCK_MAX, NVML_CLOCK_MEMORY},
	[NVML_SM_CLOCK_APPLICATION] = {CLOCK_APPLICATION, NVML_CLOCK_SM},
};

static int read_clock_reasons(struct nvml *n, struct nvml_device *d, int64_t *ret)
{
	unsigned long long reasons = 0;
	int r = n->call.clock_reasons ? n->call.clock_reasons(d, &reasons)
	                              : NVML_FUNCTION_NOT_FOUND;
	*ret = reasons <= INT64_MAX ? (int64_t)reasons : INT64_MIN;
	return r;
}

// All bits: what drivers give for a number that they do not have.
#define NOT_AVAILABLE UINT32_MAX

static int read_celsius(struct nvml *n, struct nvml_device *d, int64_t *ret)
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
	return r == NVML_OK && (*ret == -1 || *ret == NOT_AVAILABLE) ? NVML_NO_DATA : r;
}

int nvml_number(struct nvml *n, struct nvml_device *d, enum nvml_number which, int64_t *ret)
{
	if (which == NVML_CLOCK_REASONS) {
		return read_clock_reasons(n, d, ret);
	}
	if (which == NVML_CELSIUS) {
		return read_celsius(n, d, ret);
	}
	int r = NVML_FUNCTION_NOT_FOUND;
	unsigned value = 0;
	if (clocks[which].clock && n->call.clocks[clocks[which].call]) {
		r = n->call.clocks[clocks[which].call](d, clocks[which].clock, &value);
	} else if (!clocks[which].clock && n->call.numbers[which]) {
		r = n->call.numbers[which](d, &value);
	}
	*ret = value;
	return r == NVML_OK && value == NOT_AVAILABLE ? NVML_NO_DATA : r;
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
	// Instances that do not exist, or are not assigned to the container, are skipped.
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

// Lists -------------------------------------------------------------------------------------------
//
// Calls that fill arrays: fields, samples, processes.

int nvml_fields(struct nvml *n, struct nvml_device *d, struct nvml_field *fields, size_t n_fields)
{
	if (!n->call.fields) {
		return NVML_FUNCTION_NOT_FOUND;
	}
	if (n_fields > NVML_MAX_FIELDS) {
		return NVML_INSUFFICIENT_SIZE;
	}
	for (size_t i = 0; i < n_fields; i++) {
		// The value that remains if the library skips a field.
		fields[i].result = NVML_INVALID_ARGUMENT;
	}
	return n->call.fields(d, (int)n_fields, fields);
}

static bool value_integer(uint32_t type, const union nvml_value *value, int64_t *ret)
{
	uint64_t number = 0;
	switch (type) {
	case NVML_VALUE_U16:
		number = value->u16;
		break;
	case NVML_VALUE_U32:
		number = value->u32 == NOT_AVAILABLE ? UINT64_MAX : value->u32;
		break;
	case NVML_VALUE_ULONG:
		number = value->ulong;
		break;
	case NVML_VALUE_U64:
		number = value->u64;
		break;
	case NVML_VALUE_I64:
		number = (uint64_t)value->i64;
		break;
	case NVML_VALUE_I32:
		*ret = value->i32;
		return true;
	default:
		return false;
	}
	if (number > INT64_MAX) {
		return false;
	}
	*ret = (int64_t)number;
	return true;
}

bool nvml_field_value(const struct nvml_field *f, int64_t *ret)
{
	return f->result == NVML_OK && value_integer(f->type, &f->value, ret);
}

int nvml_samples(struct nvml *n, struct nvml_device *d, enum nvml_sampling which, uint64_t last_us,
	struct nvml_sample *samples, size_t capacity, size_t *ret_n)
{
	if (!n->call.samples) {
		return NVML_FUNCTION_NOT_FOUND;
	}
	unsigned type = NVML_VALUE_U32, count = (unsigned)capacity;
	// The library may report more samples than it wrote.
	memset(samples, 0, capacity * sizeof(*samples));
	int r = n->call.samples(d, which, last_us, &type, &count, samples);
	if (r != NVML_OK) {
		return r;
	}
	count = count < capacity ? count : (unsigned)capacity;
	*ret_n = 0;
	for (size_t i = 0; i < count; i++) {
		int64_t value;
		if (samples[i].t_us > last_us && value_integer(type, &samples[i].value, &value) &&
			value >= 0) {
			samples[*ret_n].t_us = samples[i].t_us;
			samples[(*ret_n)++].value.u64 = (uint64_t)value;
		}
	}
	return NVML_OK;
}

// Fill byte of the buffer for the list, to detect afterwards how far the library wrote.
#define UNTOUCHED 0xa5u

// Finds the size of an entry from the bytes written for `count` of them; 0 if it is unknown.
static size_t entry_size(const unsigned char *bytes, size_t size, size_t count)
{
	static const size_t sizes[] = {
		NVML_PROCESS_ENTRY_V1, NVML_PROCESS_ENTRY_V2, NVML_PROCESS_ENTRY_V3};
	size_t end = size;
	while (end > 0 && bytes[end - 1] == UNTOUCHED) {
		end--;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
		if (end == count * sizes[i]) {
			return sizes[i];
		}
	}
	// The long entry, whose last member the library left unset.
	return end + sizeof(uint64_t) == count * NVML_PROCESS_ENTRY_V3 ? NVML_PROCESS_ENTRY_V3 : 0;
}

static void add_process(struct nvml_process *processes, size_t capacity, size_t *n,
	const struct nvml_process_entry *entry)
{
	for (size_t i = 0; i < *n; i++) {
		// A process with contexts of two kinds is in two lists, with the same memory.
		if (processes[i].pid == entry->pid) {
			return;
		}
	}
	if (*n < capacity) {
		processes[(*n)++] = (struct nvml_process){entry->pid, entry->memory_bytes};
	}
}

typedef int processes_call(struct nvml_device *d, unsigned *n, void *entries);

static int list_processes(processes_call *call, struct nvml_device *d,
	struct nvml_process *processes, size_t capacity, size_t *n)
{
	// Twice the longest entry, in case it grows again.
	unsigned char bytes[NVML_MAX_PROCESSES * 2 * NVML_PROCESS_ENTRY_V3];
	memset(bytes, UNTOUCHED, sizeof(bytes));
	unsigned count = NVML_MAX_PROCESSES;
	int r = call(d, &count, bytes);
	if (r != NVML_OK || count == 0) {
		return r;
	}
	size_t size = count <= NVML_MAX_PROCESSES ? entry_size(bytes, sizeof(bytes), count) : 0;
	if (size == 0) {
		return NVML_ARGUMENT_VERSION;
	}
	for (size_t i = 0; i < count; i++) {
		struct nvml_process_entry entry;
		memcpy(&entry, bytes + i * size, NVML_PROCESS_ENTRY_V1);
		add_process(processes, capacity, n, &entry);
	}
	return NVML_OK;
}

int nvml_processes(struct nvml *n, struct nvml_device *d, struct nvml_process *processes,
	size_t capacity, size_t *ret_n)
{
	processes_call *const calls[] = {
		n->call.compute_processes, n->call.graphics_processes, n->call.mps_processes};
	int r = NVML_FUNCTION_NOT_FOUND;
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(calls); i++) {
		int result = calls[i] ? list_processes(calls[i], d, processes, capacity, &count)
		                      : NVML_FUNCTION_NOT_FOUND;
		// Only the first list is essential: GPUs without displays or MPS reject the others.
		r = i == 0 || nvml_outcome(result) == NVML_LOST ? result : r;
		if (r != NVML_OK) {
			return r;
		}
	}
	*ret_n = count;
	return r;
}

int nvml_process_samples(struct nvml *n, struct nvml_device *d, uint64_t last_us,
	struct nvml_process_sample *samples, size_t capacity, size_t *ret_n)
{
	if (!n->call.process_samples) {
		return NVML_FUNCTION_NOT_FOUND;
	}
	unsigned count = (unsigned)capacity;
	memset(samples, 0, capacity * sizeof(*samples));
	int r = n->call.process_samples(d, samples, &count, last_us);
	*ret_n = r != NVML_OK ? 0 : count < capacity ? count : capacity;
	return r;
}

// Events ------------------------------------------------------------------------------------------

int nvml_xids_new(struct nvml *n, struct nvml_event_set **ret)
{
	bool whole = n->call.event_set_new && n->call.event_set_free && n->call.event_register &&
	             n->call.event_wait;
	*ret = NULL;
	int r = whole ? n->call.event_set_new(ret) : NVML_FUNCTION_NOT_FOUND;
	return r == NVML_OK && !*ret ? NVML_UNKNOWN : r;
}

void nvml_xids_free(struct nvml *n, struct nvml_event_set *set)
{
	if (set) {
		n->call.event_set_free(set);
	}
}

int nvml_xids_watch(struct nvml *n, struct nvml_device *d, struct nvml_event_set *set)
{
	return n->call.event_register(d, NVML_EVENT_XID, set);
}

int nvml_xids_next(struct nvml *n, struct nvml_event_set *set, struct nvml_device **ret_device,
	uint64_t *ret_xid)
{
	struct nvml_event event = {0};
	int r = n->call.event_wait(set, &event, 0);
	*ret_device = event.device;
	*ret_xid = event.data;
	return r == NVML_OK && event.type != NVML_EVENT_XID ? NVML_NO_DATA : r;
}

// GPM ---------------------------------------------------------------------------------------------

int nvml_gpm_supported(struct nvml *n, struct nvml_device *d)
{
	struct nvml_gpm_support support = {.version = 1};
	if (!n->call.gpm_support || !n->call.gpm_alloc || !n->call.gpm_free || !n->call.gpm_read ||
		!n->call.gpm_metrics) {
		return NVML_FUNCTION_NOT_FOUND;
	}
	int r = n->call.gpm_support(d, &support);
	return r == NVML_OK && !support.supported ? NVML_NOT_SUPPORTED : r;
}

int nvml_gpm_new(struct nvml *n, struct nvml_gpm_sample **ret)
{
	return n->call.gpm_alloc(ret);
}

void nvml_gpm_free(struct nvml *n, struct nvml_gpm_sample *sample)
{
	if (sample) {
		n->call.gpm_free(sample);
	}
}

int nvml_gpm_read(struct nvml *n, struct nvml_device *d, struct nvml_gpm_sample *sample)
{
	return n->call.gpm_read(d, sample);
}

int nvml_gpm_metrics(struct nvml *n, struct nvml_gpm_request *request)
{
	request->version = 1;
	return n->call.gpm_metrics(request);
}
