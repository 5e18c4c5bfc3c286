// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A libnvidia-ml.so.1 that plays a script. Three are built: full (a driver of today), old
// (FAKE_OLD: one of 2020, without what came later) and broken (FAKE_BROKEN: without a function that
// strain needs).

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/nvml_api.h"
#include "script.h"

// The functions are declared by whoever loads the library.
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct nvml_device {
	unsigned index;
};

static struct nvml_device devices[FAKE_MAX_GPUS] = {
	{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}};

// Instances of divided GPUs are GPUs of the script, numbered from 100: instance I of GPU N is
// 100 + 10 N + I.
#define FIRST_INSTANCE 100u
#define INSTANCES 8u
static struct nvml_device instances[FAKE_MAX_GPUS * INSTANCES];

static int get_u32(struct nvml_device *d, const char *function, const char *key, unsigned *ret)
{
	double value = 0;
	int r = script_enter(d->index, function);
	r = r ? r : script_number(d->index, key, script_now_ms(), &value);
	if (r == NVML_OK) {
		*ret = (unsigned)value;
	}
	return r;
}

// For tests: moves a manual clock, and tells how often a function was called.
void fake_nvml_advance(unsigned ms)
{
	script_advance_ms(ms);
}

unsigned fake_nvml_calls(const char *function)
{
	return script_calls(function);
}

int nvmlInit_v2(void)
{
	return script_load() ? (int)script_setting("init", 0) : NVML_UNKNOWN;
}

int nvmlShutdown(void)
{
	return NVML_OK;
}

int nvmlSystemGetDriverVersion(char *buffer, unsigned size)
{
	snprintf(buffer, size, "%s", script_setting_text("driver", "550.54.15"));
	return NVML_OK;
}

int nvmlSystemGetCudaDriverVersion_v2(int *ret)
{
	*ret = (int)script_setting("cuda", 12040);
	return NVML_OK;
}

int nvmlDeviceGetCount_v2(unsigned *ret)
{
	*ret = (unsigned)script_setting("gpus", 1);
	return (int)script_setting("count.result", 0);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **ret)
{
	double error = 0;
	if (index >= FAKE_MAX_GPUS) {
		return NVML_INVALID_ARGUMENT;
	}
	if (script_number(index, "handle", 0, &error) == 0) {
		return (int)error;
	}
	*ret = &devices[index];
	return NVML_OK;
}

int nvmlDeviceGetName(struct nvml_device *d, char *buffer, unsigned size)
{
	const char *name = "Fake GPU";
	script_text(d->index, "name", script_now_ms(), &name);
	if (strcmp(name, "endless") == 0) {
		memset(buffer, 'x', size);
		return NVML_OK;
	}
	snprintf(buffer, size, "%s", name);
	return NVML_OK;
}

#ifndef FAKE_BROKEN
int nvmlDeviceGetUUID(struct nvml_device *d, char *buffer, unsigned size)
{
	const char *uuid = NULL;
	if (script_text(d->index, "uuid", script_now_ms(), &uuid) == 0) {
		snprintf(buffer, size, "%s", uuid);
	} else {
		snprintf(buffer, size, "GPU-%08x-0000-0000-0000-000000000000", d->index + 0xfa4e);
	}
	return NVML_OK;
}
#endif

int nvmlDeviceGetPciInfo_v3(struct nvml_device *d, struct nvml_pci *ret)
{
	*ret = (struct nvml_pci){.bus = d->index + 1};
	snprintf(ret->bus_id, sizeof(ret->bus_id), "00000000:%02X:00.0", d->index + 1);
	return NVML_OK;
}

int nvmlDeviceGetPowerUsage(struct nvml_device *d, unsigned *ret)
{
	return get_u32(d, __func__, "power", ret);
}

int nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *d, unsigned *ret)
{
	return get_u32(d, __func__, "power.limit", ret);
}

int nvmlDeviceGetCurrPcieLinkGeneration(struct nvml_device *d, unsigned *ret)
{
	return get_u32(d, __func__, "pcie.generation", ret);
}

int nvmlDeviceGetCurrPcieLinkWidth(struct nvml_device *d, unsigned *ret)
{
	return get_u32(d, __func__, "pcie.width", ret);
}

int nvmlDeviceGetMaxPcieLinkGeneration(struct nvml_device *d, unsigned *ret)
{
	return get_u32(d, __func__, "pcie.generation.max", ret);
}

int nvmlDeviceGetMaxPcieLinkWidth(struct nvml_device *d, unsigned *ret)
{
	return get_u32(d, __func__, "pcie.width.max", ret);
}

int nvmlDeviceGetClockInfo(struct nvml_device *d, unsigned clock, unsigned *ret)
{
	return get_u32(d, __func__, clock == NVML_CLOCK_SM ? "clock.sm" : "clock.memory", ret);
}

int nvmlDeviceGetMaxClockInfo(struct nvml_device *d, unsigned clock, unsigned *ret)
{
	return get_u32(
		d, __func__, clock == NVML_CLOCK_SM ? "clock.sm.max" : "clock.memory.max", ret);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *d, unsigned long long *ret)
{
	unsigned reasons = 0;
	int r = get_u32(d, __func__, "reasons", &reasons);
	*ret = reasons;
	return r;
}

int nvmlDeviceGetTemperature(struct nvml_device *d, unsigned sensor, unsigned *ret)
{
	return sensor == 0 ? get_u32(d, __func__, "temperature", ret) : NVML_INVALID_ARGUMENT;
}

int nvmlDeviceGetMigMode(struct nvml_device *d, unsigned *ret_current, unsigned *ret_pending)
{
	*ret_pending = 0;
	return get_u32(d, __func__, "mig", ret_current);
}

int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *d, unsigned *ret)
{
	*ret = 7;
	return script_enter(d->index, __func__);
}

int nvmlDeviceGetMigDeviceHandleByIndex(
	struct nvml_device *d, unsigned index, struct nvml_device **ret)
{
	const char *uuid = NULL;
	unsigned number = FIRST_INSTANCE + 10 * d->index + index;
	if (index >= INSTANCES || script_text(number, "uuid", script_now_ms(), &uuid) != 0) {
		return NVML_NOT_FOUND;
	}
	*ret = &instances[d->index * INSTANCES + index];
	(*ret)->index = number;
	return NVML_OK;
}

int nvmlDeviceGetApplicationsClock(struct nvml_device *d, unsigned clock, unsigned *ret)
{
	return get_u32(d, __func__,
		clock == NVML_CLOCK_SM ? "clock.sm.application" : "clock.memory.application", ret);
}

int nvmlDeviceGetCudaComputeCapability(struct nvml_device *d, int *ret_major, int *ret_minor)
{
	unsigned capability = 0;
	int r = get_u32(d, __func__, "capability", &capability);
	*ret_major = (int)capability / 10;
	*ret_minor = (int)capability % 10;
	return r;
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *d, struct nvml_utilization *ret)
{
	unsigned memory = 0;
	int r = get_u32(d, __func__, "utilization.gpu", &ret->gpu_percent);
	double value = 0;
	if (r == NVML_OK &&
		script_number(d->index, "utilization.memory", script_now_ms(), &value) == 0) {
		memory = (unsigned)value;
	}
	ret->memory_percent = memory;
	return r;
}

static int memory(struct nvml_device *d, const char *function, struct nvml_memory_v2 *ret)
{
	double total = 0, reserved = 0, used = 0;
	uint64_t now = script_now_ms();
	int r = script_enter(d->index, function);
	r = r ? r : script_number(d->index, "memory.total", now, &total);
	r = r ? r : script_number(d->index, "memory.used", now, &used);
	script_number(d->index, "memory.reserved", now, &reserved);
	ret->total = (uint64_t)total;
	ret->reserved = (uint64_t)reserved;
	ret->used = (uint64_t)used;
	ret->free = ret->total - ret->reserved - ret->used;
	return r;
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *d, struct nvml_memory_v1 *ret)
{
	struct nvml_memory_v2 now;
	int r = memory(d, __func__, &now);
	*ret = (struct nvml_memory_v1){
		.total = now.total, .free = now.free, .used = now.used + now.reserved};
	return r;
}

int nvmlDeviceGetPcieThroughput(struct nvml_device *d, unsigned direction, unsigned *ret)
{
	return get_u32(d, __func__,
		direction == NVML_RECEIVE ? "pcie.rate.receive" : "pcie.rate.transmit", ret);
}

// "PID:BYTES[:SM[:OTHER_PID]] ...": PID is a number, "self", or "@NAME", the first process of that
// name; BYTES may be "unknown"; OTHER_PID is what the utilisation samples call it.
struct listed {
	uint32_t pid;
	uint64_t bytes;
	int sm; // -1: no sample
	uint32_t sample_pid;
};

// 0 where there is none.
static uint32_t pid_named(const char *name, size_t length)
{
	char path[280], comm[32];
	uint32_t found = 0;
	DIR *proc = opendir("/proc");
	for (struct dirent *entry; proc && found == 0 && (entry = readdir(proc));) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "re")
		                                                                : NULL;
		if (file && fgets(comm, sizeof(comm), file) && strcspn(comm, "\n") == length &&
			strncmp(comm, name, length) == 0) {
			found = (uint32_t)strtoul(entry->d_name, NULL, 10);
		}
		if (file) {
			fclose(file);
		}
	}
	if (proc) {
		closedir(proc);
	}
	return found;
}

static uint32_t parse_pid(const char *at)
{
	size_t length = strcspn(at, ":");
	return *at == '@'                         ? pid_named(at + 1, length - 1)
	       : strncmp(at, "job", length) == 0  ? (uint32_t)script_beside("pid")
	       : strncmp(at, "self", length) == 0 ? (uint32_t)getpid()
	                                          : (uint32_t)strtoul(at, NULL, 10);
}

static size_t parse_processes(const char *text, struct listed *list, size_t capacity)
{
	size_t n = 0;
	for (const char *at = text; *at && n < capacity; at += strspn(at, " ")) {
		char *rest;
		struct listed p = {.pid = parse_pid(at), .sm = -1};
		p.sample_pid = p.pid;
		at += strcspn(at, ":");
		p.bytes = strncmp(at, ":unknown", 8) == 0 ? NVML_NOT_AVAILABLE
		          : strncmp(at, ":held", 5) == 0  ? (uint64_t)script_beside("held")
		                                          : strtoull(at + 1, NULL, 10);
		at += 1 + strcspn(at + 1, ": ");
		if (*at == ':') {
			p.sm = (int)strtol(at + 1, &rest, 10);
			at = rest;
		}
		if (*at == ':') {
			p.sample_pid = (uint32_t)strtoul(at + 1, &rest, 10);
			at = rest;
		}
		if (p.pid != 0) {
			list[n++] = p;
		}
	}
	return n;
}

// Writes entries of the size that the script (or the function's age) says.
static int list_processes(
	struct nvml_device *d, const char *function, size_t entry_size, unsigned *n, void *entries)
{
	struct listed list[64];
	const char *text = "";
	double value = 0;
	uint64_t now = script_now_ms();
	int r = script_enter(d->index, function);
	if (script_calls(function) > 2 * script_setting("gpus", 1)) {
		script_say("listed");
	}
	r = r ? r : script_text(d->index, "processes", now, &text);
	if (r != NVML_OK) {
		return r;
	}
	size_t count = parse_processes(text, list, 64);
	if (count > *n) {
		*n = (unsigned)count;
		return NVML_INSUFFICIENT_SIZE;
	}
	entry_size = script_number(d->index, "entry.size", now, &value) == 0 ? (size_t)value
	                                                                     : entry_size;
	for (size_t i = 0; i < count; i++) {
		struct nvml_process_entry entry = {.pid = list[i].pid,
			.memory_bytes = list[i].bytes,
			.gpu_instance = UINT32_MAX,
			.compute_instance = UINT32_MAX};
		memcpy((char *)entries + i * entry_size, &entry,
			entry_size < sizeof(entry) ? entry_size : sizeof(entry));
	}
	*n = script_number(d->index, "processes.claimed", now, &value) == 0 ? (unsigned)value
	                                                                    : (unsigned)count;
	return NVML_OK;
}

#ifdef FAKE_OLD
int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *d, unsigned *n, void *entries)
{
	return list_processes(d, __func__, NVML_PROCESS_ENTRY_V1, n, entries);
}
#else
int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *d, unsigned *n, void *entries)
{
	return list_processes(d, __func__, NVML_PROCESS_ENTRY_V2, n, entries);
}
#endif

#ifndef FAKE_OLD
int nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *d, unsigned long long *ret)
{
	return nvmlDeviceGetCurrentClocksThrottleReasons(d, ret);
}

int nvmlDeviceGetTemperatureV(struct nvml_device *d, struct nvml_temperature *ret)
{
	if (ret->version != NVML_VERSION_WORD(struct nvml_temperature, 1)) {
		return NVML_ARGUMENT_VERSION;
	}
	unsigned celsius = 0;
	int r = get_u32(d, __func__, "temperature", &celsius);
	ret->celsius = (int)celsius;
	return r;
}

int nvmlDeviceGetNumGpuCores(struct nvml_device *d, unsigned *ret)
{
	return get_u32(d, __func__, "cores", ret);
}

int nvmlDeviceGetMemoryBusWidth(struct nvml_device *d, unsigned *ret)
{
	return get_u32(d, __func__, "memory.bus", ret);
}

int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *d, struct nvml_memory_v2 *ret)
{
	if (ret->version != NVML_VERSION_WORD(struct nvml_memory_v2, 2)) {
		return NVML_ARGUMENT_VERSION;
	}
	return memory(d, __func__, ret);
}

static const struct {
	uint32_t id;
	const char *key;
} field_keys[] = {
	{NVML_FIELD_ECC_CORRECTED, "ecc.corrected"},
	{NVML_FIELD_ECC_UNCORRECTED, "ecc.uncorrected"},
	{NVML_FIELD_PAGES_RETIRED_SINGLE, "pages.single"},
	{NVML_FIELD_PAGES_RETIRED_DOUBLE, "pages.double"},
	{NVML_FIELD_MEMORY_TEMPERATURE, "memory.temperature"},
	{NVML_FIELD_ENERGY, "energy"},
	{NVML_FIELD_PCIE_REPLAYS, "replays"},
	{NVML_FIELD_NVLINK_TRANSMIT, "nvlink.transmit"},
	{NVML_FIELD_NVLINK_RECEIVE, "nvlink.receive"},
	{NVML_FIELD_ROWS_REMAPPED_CORRECTABLE, "rows.correctable"},
	{NVML_FIELD_ROWS_REMAPPED_UNCORRECTABLE, "rows.uncorrectable"},
	{NVML_FIELD_POWER_INSTANT, "power.instant"},
	{NVML_FIELD_PCIE_TRANSMIT, "pcie.transmit"},
	{NVML_FIELD_PCIE_RECEIVE, "pcie.receive"},
};

static void fill_field(struct nvml_device *d, struct nvml_field *f, uint64_t now)
{
	double value = 0, wide = 0;
	f->result = NVML_NOT_SUPPORTED;
	for (size_t i = 0; i < sizeof(field_keys) / sizeof(field_keys[0]); i++) {
		if (field_keys[i].id == f->id) {
			f->result = (uint32_t)script_number(
				d->index, field_keys[i].key, now, &value);
		}
	}
	script_number(d->index, "pcie.wide", now, &wide);
	bool wraps = (f->id == NVML_FIELD_PCIE_TRANSMIT || f->id == NVML_FIELD_PCIE_RECEIVE) &&
	             wide == 0;
	f->type = wraps ? NVML_VALUE_U32 : NVML_VALUE_U64;
	f->value.u64 = wraps ? (uint64_t)value & UINT32_MAX : (uint64_t)value;
	f->t_us = (int64_t)script_realtime_us(now);
}

int nvmlDeviceGetFieldValues(struct nvml_device *d, int n, struct nvml_field *fields)
{
	int r = script_enter(d->index, __func__);
	for (int i = 0; i < n && r == NVML_OK; i++) {
		fill_field(d, &fields[i], script_now_ms());
	}
	return r;
}

static uint64_t sample_time(struct nvml_device *d, uint64_t at_ms)
{
	double base = 0;
	script_number(d->index, "sample.base", at_ms, &base);
	return base == 0   ? script_realtime_us(at_ms)
	       : base == 1 ? script_monotonic_us(at_ms)
	                   : 12345 + at_ms;
}

// A buffer of the last 100 samples, taken every sample.period ms.
int nvmlDeviceGetSamples(struct nvml_device *d, unsigned which, unsigned long long last_us,
	unsigned *ret_type, unsigned *n, struct nvml_sample *samples)
{
	static const char *const keys[] = {"power", "utilization.gpu", "utilization.memory"};
	double period = 0, value = 0;
	uint64_t now = script_now_ms();
	int r = script_enter(d->index, __func__);
	r = r ? r : script_number(d->index, "sample.period", now, &period);
	if (r != NVML_OK || which > 2 || period < 1) {
		return r ? r : NVML_INVALID_ARGUMENT;
	}
	*ret_type = NVML_VALUE_U32;
	uint64_t last = now / (uint64_t)period;
	unsigned count = 0;
	for (uint64_t i = last > 100 ? last - 100 : 1; i <= last && count < *n; i++) {
		uint64_t at = i * (uint64_t)period;
		if (sample_time(d, at) > last_us &&
			script_number(d->index, keys[which], at, &value) == 0) {
			samples[count].t_us = sample_time(d, at);
			samples[count++].value.u64 = (uint32_t)value;
		}
	}
	*n = count;
	if (script_number(d->index, "samples.claimed", now, &value) == 0) {
		*n = (unsigned)value;
	}
	return *n > 0 ? NVML_OK : NVML_NOT_FOUND;
}

int nvmlDeviceGetProcessUtilization(struct nvml_device *d, struct nvml_process_sample *samples,
	unsigned *n, unsigned long long last_us)
{
	struct listed list[64];
	const char *text = "";
	uint64_t now = script_now_ms();
	int r = script_enter(d->index, __func__);
	r = r ? r : script_text(d->index, "processes", now, &text);
	if (r != NVML_OK) {
		return r;
	}
	size_t count = parse_processes(text, list, 64), kept = 0;
	for (size_t i = 0; i < count && kept < *n; i++) {
		if (list[i].sm >= 0 && script_realtime_us(now) > last_us) {
			samples[kept++] = (struct nvml_process_sample){.pid = list[i].sample_pid,
				.t_us = script_realtime_us(now),
				.sm_percent = (unsigned)list[i].sm};
		}
	}
	*n = (unsigned)kept;
	return kept > 0 ? NVML_OK : NVML_NOT_FOUND;
}

// "xid N": an Xid, told once when the number is another than before.
struct nvml_event_set {
	double last[FAKE_MAX_GPUS];
	bool watched[FAKE_MAX_GPUS];
};

int nvmlEventSetCreate(struct nvml_event_set **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NVML_OK : NVML_MEMORY;
}

int nvmlEventSetFree(struct nvml_event_set *set)
{
	free(set);
	return NVML_OK;
}

int nvmlDeviceRegisterEvents(
	struct nvml_device *d, unsigned long long types, struct nvml_event_set *set)
{
	int r = script_enter(d->index, __func__);
	if (r == NVML_OK && d->index < FAKE_MAX_GPUS) {
		set->watched[d->index] = types == NVML_EVENT_XID;
	}
	return r;
}

int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event *ret, unsigned ms)
{
	(void)ms;
	for (unsigned i = 0; i < FAKE_MAX_GPUS; i++) {
		double xid = 0;
		script_number(i, "xid", script_now_ms(), &xid);
		if (set->watched[i] && xid != set->last[i]) {
			set->last[i] = xid;
			*ret = (struct nvml_event){.device = &devices[i],
				.type = NVML_EVENT_XID,
				.data = (uint64_t)xid};
			return NVML_OK;
		}
	}
	return NVML_TIMEOUT;
}

struct nvml_gpm_sample {
	unsigned gpu;
	uint64_t at_ms;
};

int nvmlGpmQueryDeviceSupport(struct nvml_device *d, struct nvml_gpm_support *ret)
{
	return get_u32(d, __func__, "gpm", &ret->supported);
}

int nvmlGpmSampleAlloc(struct nvml_gpm_sample **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NVML_OK : NVML_MEMORY;
}

int nvmlGpmSampleFree(struct nvml_gpm_sample *sample)
{
	free(sample);
	return NVML_OK;
}

int nvmlGpmSampleGet(struct nvml_device *d, struct nvml_gpm_sample *sample)
{
	int r = script_enter(d->index, __func__);
	*sample = (struct nvml_gpm_sample){.gpu = d->index, .at_ms = script_now_ms()};
	return r;
}

int nvmlGpmMetricsGet(struct nvml_gpm_request *request)
{
	char key[32];
	if (request->version != 1 || request->after->at_ms < request->before->at_ms + 100) {
		return NVML_INVALID_ARGUMENT;
	}
	for (uint32_t i = 0; i < request->n; i++) {
		struct nvml_gpm_metric *metric = &request->metrics[i];
		snprintf(key, sizeof(key), "gpm.%u", metric->id);
		metric->result = (uint32_t)script_number(
			request->after->gpu, key, request->after->at_ms, &metric->value);
	}
	return NVML_OK;
}
#endif
