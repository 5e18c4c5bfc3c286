// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// NVML's calls that fill arrays: fields, samples, processes, GPM; and its events.

#include <string.h>

#include "base/cleanup.h"
#include "record/host/nvml_calls.h"

int nvml_fields(struct nvml *n, struct nvml_device *d, struct nvml_field *fields, size_t n_fields)
{
	if (!n->call.fields) {
		return NVML_FUNCTION_NOT_FOUND;
	}
	if (n_fields > NVML_MAX_FIELDS) {
		return NVML_INSUFFICIENT_SIZE;
	}
	for (size_t i = 0; i < n_fields; i++) {
		// A library that skips a field leaves this behind.
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
		number = value->u32;
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
	// More may be claimed than was written.
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

// The list is read into bytes of this value, to see afterwards how far the library wrote.
#define UNTOUCHED 0xa5u

// The size of an entry, from what was written of `count` of them; 0 where it is none we know.
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
	// The long entry with its last member not filled in.
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
	// Twice the longest entry, for one that grows again.
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
		// The first list is the one that matters: GPUs without displays or MPS refuse the
		// others.
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
