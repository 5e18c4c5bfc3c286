// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Readings that are one call, or a few.

#include "base/cleanup.h"
#include "record/source/nvml_gpu.h"

static int64_t checked(uint64_t value)
{
	return value <= INT64_MAX ? (int64_t)value : VALUE_MISSING;
}

const char gpu_part_reason[] =
	"the GPU is divided into instances (MIG), and which of them the job may use is not known";

struct nvml_device *gpu_part(const struct gpu *g)
{
	return g->n_instances == 0 ? g->handle
	       : g->instance >= 0  ? g->instances[g->instance].handle
	                           : NULL;
}

void gpu_fill_memory(struct nvml *n, struct gpu *g, struct gpu_reading *r)
{
	struct nvml_memory_v2 memory = {0};
	struct nvml_device *part = gpu_part(g);
	r->why = gpu_part_reason;
	int result = part ? nvml_memory(n, part, &memory) : GPU_QUIET;
	for (size_t i = 0; i < N_MEMORY; i++) {
		r->result[i] = result;
	}
	r->value[MEMORY_USAGE] = checked(memory.used);
	r->value[MEMORY_LIMIT] = checked(memory.total);
	r->value[MEMORY_RESERVED] = checked(memory.reserved);
	if (result == NVML_OK && memory.reserved == NVML_NOT_AVAILABLE) {
		r->result[MEMORY_RESERVED] = NVML_FUNCTION_NOT_FOUND;
	}
}

static void fill_clock(
	struct nvml *n, struct gpu *g, struct gpu_reading *r, size_t metric, unsigned clock)
{
	uint32_t megahertz = 0;
	if (gpu_wants(g, GPU_CLOCK, metric)) {
		r->result[metric] = nvml_clock(n, g->handle, clock, &megahertz);
		r->value[metric] = megahertz;
	}
}

void gpu_fill_clock(struct nvml *n, struct gpu *g, struct gpu_reading *r)
{
	fill_clock(n, g, r, CLOCK_SM, NVML_CLOCK_SM);
	fill_clock(n, g, r, CLOCK_MEMORY, NVML_CLOCK_MEMORY);
	if (gpu_wants(g, GPU_CLOCK, CLOCK_THROTTLE)) {
		uint64_t reasons = 0;
		r->result[CLOCK_THROTTLE] = nvml_clock_reasons(n, g->handle, &reasons);
		r->value[CLOCK_THROTTLE] = checked(reasons);
	}
}

void gpu_fill_fields(struct nvml *n, struct gpu *g, enum gpu_group group,
	const struct gpu_field *wanted, size_t n_wanted, struct gpu_reading *r)
{
	struct nvml_field fields[NVML_MAX_FIELDS] = {0};
	for (size_t i = 0; i < n_wanted; i++) {
		fields[i].id = wanted[i].id;
	}
	int result = nvml_fields(n, g->handle, fields, n_wanted);
	for (size_t i = 0; i < n_wanted; i++) {
		size_t metric = wanted[i].metric;
		int64_t value = 0;
		if (!gpu_wants(g, group, metric)) {
			continue;
		}
		int one = result == NVML_OK ? (int)fields[i].result : result;
		if (one == NVML_OK && !nvml_field_value(&fields[i], &value)) {
			one = NVML_NO_DATA;
		}
		// Two fields of one metric are added; where one is told, that is the value.
		if (r->result[metric] == NVML_OK && one == NVML_OK) {
			r->value[metric] += value;
		} else if (r->result[metric] != NVML_OK) {
			r->result[metric] = one;
			r->value[metric] = value;
		}
	}
}

void gpu_fill_power(struct nvml *n, struct gpu *g, struct gpu_reading *r)
{
	static const struct gpu_field fields[] = {
		{POWER_WATTS, NVML_FIELD_POWER_INSTANT},
		{POWER_ENERGY, NVML_FIELD_ENERGY},
	};
	gpu_fill_fields(n, g, GPU_POWER, fields, ARRAY_LENGTH(fields), r);
	if (gpu_wants(g, GPU_POWER, POWER_WATTS) &&
		nvml_outcome(r->result[POWER_WATTS]) == NVML_NEVER) {
		uint32_t milliwatts = 0;
		r->result[POWER_WATTS] = nvml_number(n, g->handle, NVML_POWER, &milliwatts);
		r->value[POWER_WATTS] = milliwatts;
	}
}

static void fill_number(
	struct nvml *n, struct gpu *g, struct gpu_reading *r, size_t metric, enum nvml_number which)
{
	uint32_t value = 0;
	if (gpu_wants(g, GPU_STATE, metric)) {
		r->result[metric] = nvml_number(n, g->handle, which, &value);
		r->value[metric] = value;
	}
}

void gpu_fill_state(struct nvml *n, struct gpu *g, struct gpu_reading *r)
{
	static const struct gpu_field fields[] = {
		{STATE_MEMORY_TEMPERATURE, NVML_FIELD_MEMORY_TEMPERATURE}};
	if (gpu_wants(g, GPU_STATE, STATE_TEMPERATURE)) {
		int32_t celsius = 0;
		r->result[STATE_TEMPERATURE] = nvml_celsius(n, g->handle, &celsius);
		r->value[STATE_TEMPERATURE] = celsius;
	}
	if (gpu_wants(g, GPU_STATE, STATE_MEMORY_TEMPERATURE)) {
		gpu_fill_fields(n, g, GPU_STATE, fields, ARRAY_LENGTH(fields), r);
	}
	fill_number(n, g, r, STATE_POWER_LIMIT, NVML_POWER_LIMIT);
	fill_number(n, g, r, STATE_GENERATION, NVML_PCIE_GENERATION);
	fill_number(n, g, r, STATE_WIDTH, NVML_PCIE_WIDTH);
}
