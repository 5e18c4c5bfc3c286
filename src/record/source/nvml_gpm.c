// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// GPM, on Hopper and later: what the GPU's units did between two samples, not whether a kernel was
// there. Each sample is the end of one interval and the beginning of the next.

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "record/source/nvml_gpu.h"

// The driver refreshes its counters at this rate; nearer samples say nothing.
#define GPM_INTERVAL_MIN_NS (100 * NS_PER_MS)
// Percent, with two digits.
#define GPM_SCALE 100.0

// The group's metrics in its order, then what nvml_traffic.c makes counters of.
static const uint32_t activities[] = {
	NVML_GPM_SM_ACTIVITY,
	NVML_GPM_SM_OCCUPANCY,
	NVML_GPM_TENSOR,
	NVML_GPM_DRAM,
	NVML_GPM_FP64,
	NVML_GPM_FP32,
	NVML_GPM_FP16,
	NVML_GPM_INTEGER,
};
static const uint32_t rates[] = {
	NVML_GPM_PCIE_RECEIVE,
	NVML_GPM_PCIE_TRANSMIT,
	NVML_GPM_NVLINK_RECEIVE,
	NVML_GPM_NVLINK_TRANSMIT,
};

static_assert(ARRAY_LENGTH(activities) <= GPU_MAX_METRICS, "a row holds them");

void gpu_gpm_open(struct gpu_source *s, struct gpu *g, struct sink *sink)
{
	struct gpu_gpm *gpm = &g->gpm;
	int result = nvml_gpm_supported(s->nvml, g->handle);
	for (size_t i = 0; i < ARRAY_LENGTH(gpm->samples) && result == NVML_OK; i++) {
		result = nvml_gpm_new(s->nvml, &gpm->samples[i]);
	}
	gpm->supported = result == NVML_OK;
	const char *reason =
		result == NVML_FUNCTION_NOT_FOUND
			? "this driver is too old for it (driver 520 and later, GPUs from Hopper)"
		: result != NVML_NOT_SUPPORTED ? nvml_reason(result)
		: g->mig ? "not supported while the GPU is divided into instances (MIG)"
			 : "not supported by this GPU (Hopper and later)";
	for (size_t i = 0; i < ARRAY_LENGTH(activities) && !gpm->supported; i++) {
		gpu_never(sink, g, GPU_GPM, i, reason);
	}
}

void gpu_gpm_close(struct gpu_source *s, struct gpu *g)
{
	nvml_gpm_free(s->nvml, g->gpm.samples[0]);
	nvml_gpm_free(s->nvml, g->gpm.samples[1]);
}

static void put_activities(
	struct gpu *g, struct sink *sink, uint64_t now_ns, const struct nvml_gpm_metric *metrics)
{
	struct gpu_reading r = {.why = "the driver answered with a value that cannot be"};
	for (size_t i = 0; i < ARRAY_LENGTH(activities); i++) {
		double value = metrics[i].value;
		r.result[i] = (int)metrics[i].result;
		if (r.result[i] == NVML_OK && !(value >= 0 && value <= 100)) {
			r.result[i] = GPU_QUIET;
		}
		r.value[i] = r.result[i] == NVML_OK ? (int64_t)lround(value * GPM_SCALE) : 0;
	}
	gpu_row(sink, g, GPU_GPM, now_ns, &r);
}

// The traffic of one link, where it is known in no better way.
static void put_rates(struct gpu *g, enum gpu_group group, struct sink *sink, uint64_t now_ns,
	uint64_t elapsed, const struct nvml_gpm_metric *metrics)
{
	double values[N_TRAFFIC];
	for (size_t i = 0; i < N_TRAFFIC; i++) {
		int result = (int)metrics[i].result;
		values[i] = result == NVML_OK ? metrics[i].value : (double)NAN;
		if (nvml_outcome(result) == NVML_NEVER) {
			gpu_never(sink, g, group, i, nvml_reason(result));
		}
	}
	if (gpu_wants_any(g, group)) {
		gpu_traffic_rates(g, group, sink, now_ns, elapsed, values);
	}
}

static void put_all(
	struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns, uint64_t elapsed)
{
	const struct nvml_gpm_metric *metrics = s->gpm_request->metrics;
	put_activities(g, sink, now_ns, metrics);
	metrics += ARRAY_LENGTH(activities);
	if (g->pcie.method == TRAFFIC_GPM) {
		put_rates(g, GPU_PCIE, sink, now_ns, elapsed, metrics);
	}
	metrics += N_TRAFFIC;
	if (g->nvlink.method == TRAFFIC_GPM) {
		put_rates(g, GPU_NVLINK, sink, now_ns, elapsed, metrics);
	}
}

static int ask(struct gpu_source *s, struct gpu *g)
{
	struct nvml_gpm_request *request = s->gpm_request;
	size_t n = 0;
	memset(request, 0, sizeof(*request));
	for (size_t i = 0; i < ARRAY_LENGTH(activities); i++) {
		request->metrics[n++].id = activities[i];
	}
	for (size_t i = 0; i < ARRAY_LENGTH(rates); i++) {
		request->metrics[n++].id = rates[i];
	}
	request->n = (uint32_t)n;
	request->before = g->gpm.samples[1 - g->gpm.newest];
	request->after = g->gpm.samples[g->gpm.newest];
	return nvml_gpm_metrics(s->nvml, request);
}

static void put_failure(struct gpu *g, struct sink *sink, uint64_t now_ns, int result)
{
	struct gpu_reading r = {0};
	for (size_t i = 0; i < ARRAY_LENGTH(activities); i++) {
		r.result[i] = result;
	}
	gpu_row(sink, g, GPU_GPM, now_ns, &r);
}

void gpu_read_gpm(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	struct gpu_gpm *gpm = &g->gpm;
	uint64_t before_ns = gpm->last_ns;
	if (!gpm->supported || (before_ns && now_ns - before_ns < GPM_INTERVAL_MIN_NS)) {
		return;
	}
	unsigned next = 1 - gpm->newest;
	int result = nvml_gpm_read(s->nvml, g->handle, gpm->samples[next]);
	if (result == NVML_OK) {
		gpm->newest = next;
		gpm->last_ns = now_ns;
	}
	if (result == NVML_OK && before_ns) {
		result = ask(s, g);
		if (result == NVML_OK) {
			put_all(s, g, sink, now_ns, now_ns - before_ns);
		}
	}
	if (result != NVML_OK) {
		put_failure(g, sink, now_ns, result);
	}
}
