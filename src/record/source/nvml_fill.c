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

void gpu_fill_memory(struct nvml *n, struct gpu *g, struct gpu_reading *r)
{
	struct nvml_memory_v2 memory;
	int result = nvml_memory(n, g->handle, &memory);
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

// Fields read in one call, each for a metric. A call that fails as a whole fails for each.
struct field_of {
	size_t metric;
	uint32_t id;
};

static void fill_fields(struct nvml *n, struct gpu *g, enum gpu_group group,
	const struct field_of *wanted, size_t n_wanted, struct gpu_reading *r)
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
	static const struct field_of fields[] = {
		{POWER_WATTS, NVML_FIELD_POWER_INSTANT},
		{POWER_ENERGY, NVML_FIELD_ENERGY},
	};
	fill_fields(n, g, GPU_POWER, fields, ARRAY_LENGTH(fields), r);
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
	static const struct field_of fields[] = {
		{STATE_MEMORY_TEMPERATURE, NVML_FIELD_MEMORY_TEMPERATURE}};
	if (gpu_wants(g, GPU_STATE, STATE_TEMPERATURE)) {
		int32_t celsius = 0;
		r->result[STATE_TEMPERATURE] = nvml_celsius(n, g->handle, &celsius);
		r->value[STATE_TEMPERATURE] = celsius;
	}
	if (gpu_wants(g, GPU_STATE, STATE_MEMORY_TEMPERATURE)) {
		fill_fields(n, g, GPU_STATE, fields, ARRAY_LENGTH(fields), r);
	}
	fill_number(n, g, r, STATE_POWER_LIMIT, NVML_POWER_LIMIT);
	fill_number(n, g, r, STATE_GENERATION, NVML_PCIE_GENERATION);
	fill_number(n, g, r, STATE_WIDTH, NVML_PCIE_WIDTH);
}

void gpu_fill_errors(struct nvml *n, struct gpu *g, struct gpu_reading *r)
{
	static const struct field_of fields[] = {
		{ERRORS_UNCORRECTED, NVML_FIELD_ECC_UNCORRECTED},
		{ERRORS_CORRECTED, NVML_FIELD_ECC_CORRECTED},
		{ERRORS_PAGES, NVML_FIELD_PAGES_RETIRED_SINGLE},
		{ERRORS_PAGES, NVML_FIELD_PAGES_RETIRED_DOUBLE},
		{ERRORS_ROWS, NVML_FIELD_ROWS_REMAPPED_CORRECTABLE},
		{ERRORS_ROWS, NVML_FIELD_ROWS_REMAPPED_UNCORRECTABLE},
		{ERRORS_REPLAYS, NVML_FIELD_PCIE_REPLAYS},
	};
	fill_fields(n, g, GPU_ERRORS, fields, ARRAY_LENGTH(fields), r);
}
