// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Utilisation from the driver's own buffer of samples: each of its 1/6 to 1 s once, with the
// driver's time, and nothing lost between two readings. Where that buffer cannot be used, the plain
// call, which gives the newest of the same samples.

#include "base/clock.h"
#include "record/source/nvml_gpu.h"

// Samples further from now than this are not of the clock that we think.
#define BUFFER_PAST_NS (120 * NS_PER_S)
#define BUFFER_FUTURE_NS (2 * NS_PER_S)
// A buffer that stays empty for so long is not trusted to be filled at all.
#define BUFFER_SILENT_NS (3 * NS_PER_S)
// A clock that was set: samples before it have times of another epoch.
#define CLOCK_STEP_NS ((int64_t)NS_PER_S)

static int64_t percent(uint64_t value)
{
	return value <= 100 ? (int64_t)value : VALUE_MISSING;
}

static void read_plain(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	struct nvml_utilization utilization = {0};
	int result = nvml_utilization(s->nvml, g->handle, &utilization);
	struct gpu_reading r = {.result = {result, result}};
	r.value[BUSY_GPU] = percent(utilization.gpu_percent);
	r.value[BUSY_MEMORY] = percent(utilization.memory_percent);
	gpu_row(sink, g, GPU_BUSY, now_ns, &r);
}

// CLOCK_REALTIME at the moment that CLOCK_MONOTONIC shows now_ns.
static int64_t realtime_offset(void)
{
	return (int64_t)clock_realtime_ns() - (int64_t)clock_monotonic_ns();
}

static bool plausible(uint64_t t_ns, uint64_t now_ns)
{
	return t_ns + BUFFER_PAST_NS > now_ns && t_ns < now_ns + BUFFER_FUTURE_NS;
}

// The sample's time on CLOCK_MONOTONIC; 0 where it is not to be believed.
static uint64_t sample_time(const struct gpu_buffer *b, uint64_t t_us, uint64_t now_ns)
{
	if (t_us > INT64_MAX / NS_PER_US) {
		return 0;
	}
	int64_t offset = b->clock == BUFFER_CLOCK_REALTIME ? b->offset_ns : 0;
	int64_t t_ns = (int64_t)(t_us * NS_PER_US) - offset;
	if (t_ns <= 0 || !plausible((uint64_t)t_ns, now_ns)) {
		return 0;
	}
	return (uint64_t)t_ns < now_ns ? (uint64_t)t_ns : now_ns;
}

// Which clock the driver stamps with: the reference says the CPU's, in microseconds.
static enum gpu_buffer_clock find_clock(struct gpu_buffer *b, uint64_t newest_us, uint64_t now_ns)
{
	static const enum gpu_buffer_clock clocks[] = {
		BUFFER_CLOCK_REALTIME, BUFFER_CLOCK_MONOTONIC};
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		b->clock = clocks[i];
		if (sample_time(b, newest_us, now_ns) != 0) {
			return b->clock;
		}
	}
	return BUFFER_UNUSABLE;
}

// Takes the samples of one kind. The number of them, or -1 where the buffer cannot be used (and
// the plain call will say why).
static int take_samples(struct gpu_source *s, struct gpu *g, size_t metric, uint64_t now_ns,
	struct nvml_sample *samples)
{
	static const enum nvml_sampling kinds[N_BUSY] = {NVML_SAMPLES_GPU, NVML_SAMPLES_MEMORY};
	struct gpu_buffer *b = &g->buffer;
	size_t n = 0, kept = 0;
	int result = nvml_samples(s->nvml, g->handle, kinds[metric], b->last_us[metric], samples,
		NVML_MAX_SAMPLES, &n);
	if (nvml_outcome(result) == NVML_NOT_NOW) {
		return 0;
	}
	if (result != NVML_OK) {
		return -1;
	}
	if (n > 0 && b->clock == BUFFER_CLOCK_UNKNOWN) {
		b->clock = find_clock(b, samples[n - 1].t_us, now_ns);
	}
	if (b->clock == BUFFER_UNUSABLE) {
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t t_ns = sample_time(b, samples[i].t_us, now_ns);
		// Ascending, and of this run.
		if (samples[i].t_us > b->last_us[metric] && t_ns > s->start_ns) {
			b->last_us[metric] = samples[i].t_us;
			samples[kept++] = samples[i];
		}
	}
	return (int)kept;
}

// Both kinds carry the same times where the driver took them together: one row then.
static void put_samples(struct gpu *g, struct sink *sink, uint64_t now_ns,
	const struct nvml_sample *samples[N_BUSY], const int n[N_BUSY])
{
	int at[N_BUSY] = {0, 0};
	while (at[BUSY_GPU] < n[BUSY_GPU] || at[BUSY_MEMORY] < n[BUSY_MEMORY]) {
		uint64_t first = UINT64_MAX;
		for (size_t i = 0; i < N_BUSY; i++) {
			if (at[i] < n[i] && samples[i][at[i]].t_us < first) {
				first = samples[i][at[i]].t_us;
			}
		}
		struct gpu_reading r = {.result = {GPU_QUIET, GPU_QUIET}};
		for (size_t i = 0; i < N_BUSY; i++) {
			if (at[i] < n[i] && samples[i][at[i]].t_us == first) {
				r.result[i] = NVML_OK;
				r.value[i] = percent(samples[i][at[i]++].value.u64);
			}
		}
		g->buffer.last_row_ns = now_ns;
		gpu_row(sink, g, GPU_BUSY, sample_time(&g->buffer, first, now_ns), &r);
	}
}

static void follow_clock_steps(struct gpu_buffer *b, uint64_t now_ns)
{
	int64_t offset = realtime_offset();
	int64_t step = offset - b->offset_ns;
	b->offset_ns = offset;
	if (b->clock == BUFFER_CLOCK_REALTIME && (step > CLOCK_STEP_NS || step < -CLOCK_STEP_NS)) {
		for (size_t i = 0; i < N_BUSY; i++) {
			b->last_us[i] = (uint64_t)((int64_t)now_ns + offset) / NS_PER_US;
		}
	}
}

void gpu_read_busy(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	struct gpu_buffer *b = &g->buffer;
	struct nvml_sample gpu[NVML_MAX_SAMPLES], memory[NVML_MAX_SAMPLES];
	if (b->clock == BUFFER_UNUSABLE) {
		read_plain(s, g, sink, now_ns);
		return;
	}
	if (b->last_row_ns == 0) {
		b->last_row_ns = now_ns;
	}
	follow_clock_steps(b, now_ns);
	int n[N_BUSY];
	n[BUSY_GPU] = take_samples(s, g, BUSY_GPU, now_ns, gpu);
	n[BUSY_MEMORY] = n[BUSY_GPU] < 0 ? -1 : take_samples(s, g, BUSY_MEMORY, now_ns, memory);
	if (n[BUSY_GPU] < 0 || n[BUSY_MEMORY] < 0) {
		b->clock = BUFFER_UNUSABLE;
		read_plain(s, g, sink, now_ns);
		return;
	}
	put_samples(g, sink, now_ns, (const struct nvml_sample *[N_BUSY]){gpu, memory}, n);
	if (now_ns - b->last_row_ns > BUFFER_SILENT_NS) {
		read_plain(s, g, sink, now_ns);
	}
}
