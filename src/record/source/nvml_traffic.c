// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Bytes over PCIe and NVLink, each way, as counters since the run's start. PCIe: the driver's byte
// counters (555 and later), which do not block but wrap at 32 bits, within 0.07 s on a fast link;
// else GPM's rates; else a rate that the driver measures for 20 ms on request, blocking. NVLink:
// its counters, else GPM. Received is what comes to the GPU: host to device on PCIe.

#include <math.h>

#include "base/clock.h"
#include "record/source/nvml_gpu.h"

// Where the link's peak is not known: generation 5, 16 lanes.
#define PEAK_UNKNOWN UINT64_C(63000000000)
// GPM has the bytes of 100 ms exactly: better than counters that wrap faster than this.
#define GPM_RESOLUTION_S 0.1
#define COUNTER_RANGE 4294967296.0
// Counters that are read too rarely so often in a row are given up.
#define UNSURE_MAX 20u
#define SAMPLED_INTERVAL_NS (NS_PER_S - NS_PER_S / 20)
#define MIB 1048576.0
#define KIB 1024
#define KB 1000.0 // of nvmlDeviceGetPcieThroughput

static const uint32_t pcie_fields[N_TRAFFIC] = {
	[TRAFFIC_TO_GPU] = NVML_FIELD_PCIE_RECEIVE,
	[TRAFFIC_FROM_GPU] = NVML_FIELD_PCIE_TRANSMIT,
};
static const uint32_t nvlink_fields[N_TRAFFIC] = {
	[TRAFFIC_TO_GPU] = NVML_FIELD_NVLINK_RECEIVE,
	[TRAFFIC_FROM_GPU] = NVML_FIELD_NVLINK_TRANSMIT,
};

const char *traffic_method_text(enum traffic_method method)
{
	static const char *const texts[] = {
		[TRAFFIC_COUNTERS] = "byte counters",
		[TRAFFIC_GPM] = "GPM: rates over 100 ms and more, times time",
		[TRAFFIC_SAMPLED] = "estimated: the rate over 20 ms of each second, times time",
		[TRAFFIC_NONE] = "not measured",
	};
	return texts[method];
}

static int read_fields(struct nvml *n, struct gpu *g, const uint32_t ids[N_TRAFFIC], uint32_t scope,
	struct nvml_field fields[N_TRAFFIC], int64_t values[N_TRAFFIC])
{
	for (size_t i = 0; i < N_TRAFFIC; i++) {
		fields[i] = (struct nvml_field){.id = ids[i], .scope = scope};
	}
	int result = nvml_fields(n, g->handle, fields, N_TRAFFIC);
	for (size_t i = 0; i < N_TRAFFIC && result == NVML_OK; i++) {
		result = (int)fields[i].result;
		if (result == NVML_OK && !nvml_field_value(&fields[i], &values[i])) {
			result = NVML_NOT_SUPPORTED;
		}
	}
	return result;
}

static uint64_t pcie_peak(const struct gpu *g)
{
	return g->pcie_peak ? g->pcie_peak : PEAK_UNKNOWN;
}

static void never_both(struct gpu *g, enum gpu_group group, struct sink *sink, const char *reason)
{
	for (size_t i = 0; i < N_TRAFFIC; i++) {
		gpu_never(sink, g, group, i, reason);
	}
}

static void probe_pcie(struct gpu_source *s, struct gpu *g, struct sink *sink)
{
	struct nvml_field fields[N_TRAFFIC];
	int64_t values[N_TRAFFIC];
	uint32_t rate;
	int result = read_fields(s->nvml, g, pcie_fields, 0, fields, values);
	bool counters = nvml_outcome(result) != NVML_NEVER;
	bool fast = (double)pcie_peak(g) * GPM_RESOLUTION_S > COUNTER_RANGE;
	if (g->gpm.supported && (fast || !counters)) {
		g->pcie.method = TRAFFIC_GPM;
		return;
	}
	if (counters) {
		g->pcie.method = TRAFFIC_COUNTERS;
		return;
	}
	result = nvml_pcie_throughput(s->nvml, g->handle, NVML_RECEIVE, &rate);
	g->pcie.method = nvml_outcome(result) == NVML_NEVER ? TRAFFIC_NONE : TRAFFIC_SAMPLED;
	if (g->pcie.method == TRAFFIC_NONE) {
		never_both(g, GPU_PCIE, sink, nvml_reason(result));
	}
}

void gpu_traffic_probe(struct gpu_source *s, struct gpu *g, struct sink *sink)
{
	struct nvml_field fields[N_TRAFFIC];
	int64_t values[N_TRAFFIC];
	probe_pcie(s, g, sink);
	int result = read_fields(s->nvml, g, nvlink_fields, NVML_SCOPE_ALL_LINKS, fields, values);
	if (nvml_outcome(result) != NVML_NEVER) {
		g->nvlink.method = TRAFFIC_COUNTERS;
	} else if (g->gpm.supported) {
		g->nvlink.method = TRAFFIC_GPM;
	} else {
		g->nvlink.method = TRAFFIC_NONE;
		never_both(g, GPU_NVLINK, sink, nvml_reason(result));
	}
}

static void put_totals(struct gpu *g, enum gpu_group group, const struct gpu_traffic *t,
	struct sink *sink, uint64_t now_ns, const int results[N_TRAFFIC])
{
	struct gpu_reading r = {0};
	for (size_t i = 0; i < N_TRAFFIC; i++) {
		r.result[i] = t->counters[i].total > INT64_MAX ? GPU_QUIET : results[i];
		r.value[i] = (int64_t)t->counters[i].total;
	}
	gpu_row(sink, g, group, now_ns, &r);
}

// The longer of what our clock and the driver's saw pass: readings may have waited in the driver.
static uint64_t elapsed_ns(const struct gpu_traffic *t, uint64_t now_ns, int64_t t_us)
{
	uint64_t ours = t->last_ns ? now_ns - t->last_ns : 0;
	int64_t theirs_us;
	if (t->last_ns == 0 || __builtin_sub_overflow(t_us, t->last_us, &theirs_us) ||
		theirs_us <= 0 || theirs_us > 3600 * (int64_t)(NS_PER_S / NS_PER_US)) {
		return ours;
	}
	uint64_t theirs = (uint64_t)theirs_us * NS_PER_US;
	return theirs > ours ? theirs : ours;
}

static void say_lost(struct gpu *g, struct sink *sink, uint64_t now_ns, uint64_t elapsed)
{
	if (!g->pcie.lost_said) {
		g->pcie.lost_said = true;
		sink_event(sink, now_ns, "lost", g->entity,
			"GPU %u: PCIe counters of 32 bits were read %.0f ms apart and may have "
			"wrapped unseen; such intervals are missing, and the totals lower bounds",
			g->index, (double)elapsed / (double)NS_PER_MS);
	}
}

// A long --interval, or a link faster than the lane's ticks: an estimate says more than nothing.
static void give_up_counters(
	struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	uint32_t rate;
	g->pcie.unsure = 0;
	if (g->gpm.supported) {
		g->pcie.method = TRAFFIC_GPM;
	} else if (nvml_pcie_throughput(s->nvml, g->handle, NVML_RECEIVE, &rate) == NVML_OK) {
		g->pcie.method = TRAFFIC_SAMPLED;
	} else {
		return;
	}
	sink_event(sink, now_ns, "pcie_method", g->entity,
		"GPU %u: PCIe counters wrap faster than they are read; from here on %s", g->index,
		traffic_method_text(g->pcie.method));
	gpu_describe_again(s, g, sink);
}

static void read_pcie_counters(
	struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	struct nvml_field fields[N_TRAFFIC] = {0};
	int64_t values[N_TRAFFIC] = {0};
	int result = read_fields(s->nvml, g, pcie_fields, 0, fields, values);
	int results[N_TRAFFIC] = {result, result};
	if (result == NVML_OK) {
		uint64_t elapsed = elapsed_ns(&g->pcie, now_ns, fields[0].t_us);
		bool sure = true;
		for (size_t i = 0; i < N_TRAFFIC; i++) {
			if (!traffic_count(&g->pcie.counters[i], (uint64_t)values[i], elapsed,
				    pcie_peak(g))) {
				results[i] = GPU_QUIET;
				sure = false;
				say_lost(g, sink, now_ns, elapsed);
			}
		}
		g->pcie.unsure = sure ? 0 : g->pcie.unsure + 1;
		g->pcie.last_ns = now_ns;
		g->pcie.last_us = fields[0].t_us;
	}
	put_totals(g, GPU_PCIE, &g->pcie, sink, now_ns, results);
	if (g->pcie.unsure >= UNSURE_MAX) {
		give_up_counters(s, g, sink, now_ns);
	}
}

// A rate of 20 ms in each second, taken for the second.
static void read_pcie_sampled(
	struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	static const enum nvml_direction directions[N_TRAFFIC] = {NVML_RECEIVE, NVML_TRANSMIT};
	struct gpu_traffic *t = &g->pcie;
	uint64_t elapsed = t->last_ns ? now_ns - t->last_ns : 0;
	if (t->last_ns && elapsed < SAMPLED_INTERVAL_NS) {
		return;
	}
	int results[N_TRAFFIC];
	for (size_t i = 0; i < N_TRAFFIC; i++) {
		uint32_t rate = 0;
		results[i] = nvml_pcie_throughput(s->nvml, g->handle, directions[i], &rate);
		if (results[i] == NVML_OK &&
			!traffic_add_rate(&t->counters[i], rate * KB, elapsed)) {
			results[i] = GPU_QUIET;
		}
	}
	t->last_ns = now_ns;
	put_totals(g, GPU_PCIE, t, sink, now_ns, results);
}

void gpu_read_pcie(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	if (g->pcie.method == TRAFFIC_COUNTERS) {
		read_pcie_counters(s, g, sink, now_ns);
	} else if (g->pcie.method == TRAFFIC_SAMPLED) {
		read_pcie_sampled(s, g, sink, now_ns);
	}
}

void gpu_read_nvlink(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	struct nvml_field fields[N_TRAFFIC];
	int64_t values[N_TRAFFIC] = {0};
	if (g->nvlink.method != TRAFFIC_COUNTERS) {
		return;
	}
	int result = read_fields(s->nvml, g, nvlink_fields, NVML_SCOPE_ALL_LINKS, fields, values);
	struct gpu_reading r = {0};
	for (size_t i = 0; i < N_TRAFFIC; i++) {
		bool overflow = __builtin_mul_overflow(values[i], KIB, &r.value[i]);
		r.result[i] = overflow ? GPU_QUIET : result;
	}
	gpu_row(sink, g, GPU_NVLINK, now_ns, &r);
}

void gpu_traffic_rates(struct gpu *g, enum gpu_group group, struct sink *sink, uint64_t now_ns,
	uint64_t elapsed, const double rates[N_TRAFFIC])
{
	struct gpu_traffic *t = group == GPU_PCIE ? &g->pcie : &g->nvlink;
	int results[N_TRAFFIC];
	for (size_t i = 0; i < N_TRAFFIC; i++) {
		bool told = traffic_add_rate(&t->counters[i], rates[i] * MIB, elapsed);
		results[i] = told ? NVML_OK : GPU_QUIET;
	}
	put_totals(g, group, t, sink, now_ns, results);
}
