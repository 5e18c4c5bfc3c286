// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// From what NVML answered to rows: a value, a gap, a reason said once, or a GPU that is lost.

#include <stdio.h>

#include "base/cleanup.h"
#include "record/source/nvml_gpu.h"

// A driver that answers "unknown error" this often in a row has lost the GPU too.
#define UNKNOWN_ERRORS_MAX 50u

bool gpu_wants(const struct gpu *g, enum gpu_group group, size_t metric)
{
	return !(g->never[group] & 1u << metric);
}

bool gpu_wants_any(const struct gpu *g, enum gpu_group group)
{
	unsigned all = (1u << nvml_groups[group].n_metrics) - 1;
	return !g->lost && (g->never[group] & all) != all;
}

void gpu_never(
	struct sink *sink, struct gpu *g, enum gpu_group group, size_t metric, const char *reason)
{
	if (gpu_wants(g, group, metric)) {
		g->never[group] |= (uint8_t)(1u << metric);
		sink_missing(sink, g->entity, &nvml_groups[group], metric, reason);
	}
}

static void never_result(
	struct sink *sink, struct gpu *g, enum gpu_group group, size_t metric, int result)
{
	bool divided = g->mig && result == NVML_NOT_SUPPORTED;
	gpu_never(sink, g, group, metric,
		divided ? "not supported while the GPU is divided into instances (MIG)"
			: nvml_reason(result));
}

// The other GPUs go on. What is lost stays so until the driver is loaded anew.
static void lose(struct sink *sink, struct gpu *g, uint64_t now_ns, int result)
{
	g->lost = true;
	sink_event(sink, now_ns, "gpu_lost", g->entity, "GPU %u (%s, %s): %s", g->index, g->name,
		g->uuid, nvml_reason(result));
	for (size_t group = 0; group < N_GPU_GROUPS; group++) {
		stream_close(take_pointer(g->streams[group]));
		if (nvml_groups[group].entity_kind == ENTITY_GPU) {
			sink_missing_group(
				sink, g->entity, &nvml_groups[group], nvml_reason(result));
		}
	}
	sink_entity_end(sink, g->entity, now_ns, NULL);
}

bool gpu_alive(struct sink *sink, struct gpu *g, uint64_t now_ns, int result)
{
	g->unknown_errors = result == NVML_UNKNOWN ? g->unknown_errors + 1 : 0;
	if (!g->lost &&
		(nvml_outcome(result) == NVML_LOST || g->unknown_errors >= UNKNOWN_ERRORS_MAX)) {
		lose(sink, g, now_ns, result);
	}
	return !g->lost;
}

void gpu_say_gaps(struct sink *sink, struct gpu *g)
{
	for (size_t group = 0; group < N_GPU_GROUPS && !g->lost; group++) {
		for (size_t i = 0; i < nvml_groups[group].n_metrics; i++) {
			bool told = g->told[group] & 1u << i;
			if (gpu_wants(g, group, i) && !told && g->gap[group][i]) {
				sink_missing(
					sink, g->entity, &nvml_groups[group], i, g->gap[group][i]);
			}
		}
	}
}

// The value of one metric of a reading; what it lacks is noted.
static int64_t take_value(struct sink *sink, struct gpu *g, enum gpu_group group, size_t metric,
	const struct gpu_reading *reading)
{
	int result = reading->result[metric];
	enum nvml_outcome outcome = result == GPU_QUIET ? NVML_NOT_NOW : nvml_outcome(result);
	if (outcome == NVML_READ && reading->value[metric] != VALUE_MISSING) {
		g->told[group] |= (uint8_t)(1u << metric);
		return reading->value[metric];
	}
	if (outcome == NVML_NEVER) {
		never_result(sink, g, group, metric, result);
	} else if (outcome == NVML_READ) {
		g->gap[group][metric] = "the driver answered with a value that cannot be";
	} else if (result != GPU_QUIET || reading->why) {
		g->gap[group][metric] = result != GPU_QUIET ? nvml_reason(result) : reading->why;
	}
	return VALUE_MISSING;
}

void gpu_row(struct sink *sink, struct gpu *g, enum gpu_group group, uint64_t t_ns,
	const struct gpu_reading *reading)
{
	int64_t values[GPU_MAX_METRICS];
	for (size_t i = 0; i < nvml_groups[group].n_metrics; i++) {
		int result = reading->result[i];
		values[i] = VALUE_MISSING;
		if (!gpu_wants(g, group, i)) {
			continue;
		}
		if (result != GPU_QUIET && !gpu_alive(sink, g, t_ns, result)) {
			return;
		}
		values[i] = take_value(sink, g, group, i, reading);
	}
	if (!gpu_wants_any(g, group)) {
		return;
	}
	if (!g->streams[group]) {
		g->streams[group] = sink_stream(sink, g->entity, &nvml_groups[group]);
	}
	stream_row(g->streams[group], t_ns, values);
}
