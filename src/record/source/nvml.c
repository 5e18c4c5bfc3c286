// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// NVIDIA GPUs through NVML: utilisation, memory, traffic, power, clocks, reasons for throttling,
// and the job's processes that use them. In this order:
//
//   Groups           of metrics (gpu_metrics.h), and their numbers in GPM
//   State            what is kept of each GPU and each process
//   Rows             how a result of NVML becomes a value, a gap, a reason, or a lost GPU
//   Queries          metrics that are one number each: a row in a table
//   Memory, Utilisation, Errors, PCIe and NVLink, GPM
//                    groups that need more than a query
//   Attributes       constant properties of a GPU
//   Visible GPUs     which of them the job may use
//   Processes        the job's processes on each GPU
//   Source           groups, opening, closing

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "machine/file.h"
#include "machine/nvml.h"
#include "machine/process.h"
#include "machine/procfs.h"
#include "machine/tree.h"
#include "record/sample/source.h"
#include "record/source/gpu_metrics.h"
#include "record/source/gpu_visible.h"
#include "record/source/traffic.h"

// Groups ------------------------------------------------------------------------------------------

// In the order of the source's table.
enum gpu_group {
	GPU_BUSY,
	GPU_MEMORY,
	GPU_CLOCK,
	GPU_POWER,
	GPU_ENERGY,
	GPU_PCIE,
	GPU_NVLINK,
	GPU_GPM,
	GPU_STATE,
	GPU_ERRORS,
	GPU_JOB,
	GPU_PROCESS,
	N_GPU_GROUPS,
};

// The metrics' numbers in GPM. The driver is asked for the rates of links at the same time, which
// become counters (PCIe and NVLink).
static const uint32_t gpm_activities[] = {
	NVML_GPM_SM_ACTIVITY,
	NVML_GPM_SM_OCCUPANCY,
	NVML_GPM_TENSOR,
	NVML_GPM_DRAM,
	NVML_GPM_FP64,
	NVML_GPM_FP32,
	NVML_GPM_FP16,
	NVML_GPM_INTEGER,
};
static const uint32_t gpm_rates[] = {
	NVML_GPM_PCIE_RECEIVE,
	NVML_GPM_PCIE_TRANSMIT,
	NVML_GPM_NVLINK_RECEIVE,
	NVML_GPM_NVLINK_TRANSMIT,
};

// State -------------------------------------------------------------------------------------------

#define GPU_MAX_METRICS 8u

// A reading of a group: the driver's result for each metric, and the value if that is NVML_OK.
// GPU_QUIET: no value this time; `why` is the reason, or NULL if another reading of the group has
// the value.
#define GPU_QUIET (-1)

struct gpu_reading {
	int result[GPU_MAX_METRICS];
	int64_t value[GPU_MAX_METRICS];
	const char *why;
};

static_assert(ARRAY_LENGTH(gpm_activities) <= GPU_MAX_METRICS, "a row holds them");
static_assert(ARRAY_LENGTH(gpm_activities) == N_GPM, "one of each");

// The driver's buffer of utilisation samples.
enum gpu_buffer_clock {
	BUFFER_CLOCK_UNKNOWN,
	BUFFER_CLOCK_REALTIME,
	BUFFER_CLOCK_MONOTONIC,
	BUFFER_UNUSABLE,
};

struct gpu_buffer {
	enum gpu_buffer_clock clock;
	uint64_t last_us[N_BUSY]; // newest sample taken, on the driver's clock
	int64_t offset_ns; // CLOCK_REALTIME less CLOCK_MONOTONIC
	uint64_t last_row_ns;
};

// Sources of traffic figures, best first.
enum traffic_method {
	TRAFFIC_COUNTERS, // of bytes
	TRAFFIC_GPM, // GPM's rates times duration
	TRAFFIC_SAMPLED, // a rate measured for 20 ms per second, times duration
	TRAFFIC_NONE,
};

struct gpu_traffic {
	enum traffic_method method;
	struct traffic_counter counters[N_TRAFFIC];
	uint64_t last_ns; // previous reading; 0: none yet
	uint64_t tried_ns; // the same, also if it failed
	int64_t last_us; // the same on the driver's clock
	unsigned unsure; // consecutive readings in which counters may have wrapped undetected
	bool lost_said;
};

struct gpu_gpm {
	bool supported;
	struct nvml_gpm_sample *samples[2];
	unsigned newest;
	uint64_t last_ns; // of the newest; 0: none yet
};

#define GPU_MAX_STRANGERS 64u // remembered pids

struct gpu_instance { // of a divided GPU
	struct nvml_device *handle;
	char uuid[96];
};

struct gpu {
	struct nvml_device *handle;
	unsigned index;
	int64_t entity;
	bool lost;
	const char *unreadable; // from the start, for this reason; NULL: it was read
	bool mig;
	struct gpu_instance instances[GPU_MAX_INSTANCES];
	size_t n_instances;
	int instance; // the one that the job may use; -1: unknown
	uint64_t unknown_ns; // since when every answer is an unknown error; 0: none was
	unsigned unknown_answers; // since then
	char uuid[96];
	char name[96];
	char bus_id[32];
	uint32_t pcie_generation; // of the fastest link; 0: unknown
	uint32_t pcie_width;
	uint64_t pcie_peak; // bytes a second, each way; 0: unknown
	uint8_t never[N_GPU_GROUPS]; // a bit per metric that is unavailable in this run
	uint8_t told[N_GPU_GROUPS]; // a bit per metric that had a value
	// Why the last reading that was asked for had no value; NULL: it had one.
	const char *gap[N_GPU_GROUPS][GPU_MAX_METRICS];
	uint64_t gap_ns[N_GPU_GROUPS][GPU_MAX_METRICS]; // the first reading without one since
	int64_t energy; // last count; VALUE_MISSING: not read yet
	struct gpu_errors errors;
	bool xids_watched;
	int64_t xids;
	struct stream *streams[N_GPU_GROUPS];
	struct gpu_buffer buffer;
	struct gpu_traffic pcie;
	struct gpu_traffic nvlink;
	struct gpu_gpm gpm;
	uint64_t samples_ns; // CPU time of the last reading of processes' samples
	unsigned samples_left_out; // readings of processes since then
	uint64_t process_last_us; // newest process sample
	uint32_t strangers[GPU_MAX_STRANGERS]; // pids in the last list that are not in the job
	size_t n_strangers;
	unsigned foreign; // consecutive lists of which no pid exists here
	int visible; // enum gpu_visible
};

// A process of the job that uses memory of a GPU.
struct gpu_process {
	int64_t entity;
	pid_t pid;
	struct stream *stream;
	bool listed; // in this reading
	int64_t memory; // VALUE_MISSING: unknown
	int64_t utilization;
};

struct gpu_source {
	struct nvml *nvml;
	struct sink *sink; // outlives the source
	struct gpu *gpus; // [n_gpus]
	size_t n_gpus;
	int64_t host;
	uint64_t start_ns;
	int root_fd;
	struct tree *tree;
	bool nested; // in a separate pid namespace: NVML's pids may differ from ours
	char driver[80];
	char cuda[16]; // "12.4", or empty
	struct nvml_gpm_request *gpm_request;
	struct nvml_event_set *xids; // NULL: not available

	struct gpu_process *processes;
	size_t n_processes;
	size_t processes_capacity;
	bool processes_read; // at least once
	unsigned readings_unmatched; // consecutive readings without a process of the job
	bool ever_matched;

	struct gpu_environs environs;
	bool visible_set; // some member has CUDA_VISIBLE_DEVICES
};

static const struct group nvml_groups[N_GPU_GROUPS]; // at the end

// Rows --------------------------------------------------------------------------------------------
//
// Turns NVML's results into rows: a value, a gap, a reason reported once, or a lost GPU.

// A driver that returns nothing but "unknown error" for so long has lost the GPU too.
#define UNKNOWN_LOST_NS (5 * NS_PER_S)
#define UNKNOWN_LEAST 10u

static bool gpu_wants(const struct gpu *g, enum gpu_group group, size_t metric)
{
	return !(g->never[group] & 1u << metric);
}

static bool gpu_wants_any(const struct gpu *g, enum gpu_group group)
{
	unsigned all = (1u << nvml_groups[group].n_metrics) - 1;
	return !g->lost && (g->never[group] & all) != all;
}

// Marks a metric as unavailable from now on, with the reason.
static void gpu_never(
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

// The other GPUs continue. A lost GPU remains lost until the driver is reloaded.
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

// Handles a result outside of a row. Returns false if the GPU is lost (reported by an event).
static bool gpu_alive(struct sink *sink, struct gpu *g, uint64_t now_ns, int result)
{
	g->unknown_ns = result != NVML_UNKNOWN ? 0 : g->unknown_ns ? g->unknown_ns : now_ns;
	g->unknown_answers = result != NVML_UNKNOWN ? 0 : g->unknown_answers + 1;
	bool silent = g->unknown_answers >= UNKNOWN_LEAST &&
	              now_ns - g->unknown_ns >= UNKNOWN_LOST_NS;
	if (!g->lost && (nvml_outcome(result) == NVML_LOST || silent)) {
		lose(sink, g, now_ns, result);
	}
	return !g->lost;
}

// At the end, reports the reasons of wanted metrics that have no value any more, or never had one.
static void gpu_say_gaps(struct sink *sink, struct gpu *g)
{
	for (size_t group = 0; group < N_GPU_GROUPS && !g->lost; group++) {
		for (size_t i = 0; i < nvml_groups[group].n_metrics; i++) {
			if (gpu_wants(g, group, i) && g->gap[group][i]) {
				sink_missing_since(sink, g->entity, &nvml_groups[group], i,
					g->gap_ns[group][i], g->gap[group][i]);
			}
		}
	}
}

// Returns the value of one metric of a reading, and notes why it is missing.
static int64_t take_value(struct sink *sink, struct gpu *g, enum gpu_group group, size_t metric,
	uint64_t t_ns, const struct gpu_reading *reading)
{
	int result = reading->result[metric];
	enum nvml_outcome outcome = result == GPU_QUIET ? NVML_NOT_NOW : nvml_outcome(result);
	if (outcome == NVML_READ && reading->value[metric] != VALUE_MISSING) {
		g->told[group] |= (uint8_t)(1u << metric);
		g->gap[group][metric] = NULL;
		return reading->value[metric];
	}
	if (outcome == NVML_NEVER) {
		never_result(sink, g, group, metric, result);
		return VALUE_MISSING;
	}
	const char *gap = outcome == NVML_READ  ? "the driver answered with a value that cannot be"
	                  : result != GPU_QUIET ? nvml_reason(result)
	                                        : reading->why;
	// Of a metric that has values, a reading without one may not have been due.
	bool quiet = result == GPU_QUIET && g->told[group] & 1u << metric;
	if (gap && !quiet) {
		uint64_t *since_ns = &g->gap_ns[group][metric];
		*since_ns = g->gap[group][metric] ? *since_ns : t_ns;
		g->gap[group][metric] = gap;
	}
	return VALUE_MISSING;
}

// Appends a row at t_ns, reports missing values, and notes a lost GPU.
static void gpu_row(struct sink *sink, struct gpu *g, enum gpu_group group, uint64_t t_ns,
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
		values[i] = take_value(sink, g, group, i, t_ns, reading);
	}
	if (!gpu_wants_any(g, group)) {
		return;
	}
	if (!g->streams[group]) {
		g->streams[group] = sink_stream(sink, g->entity, &nvml_groups[group]);
	}
	stream_row(g->streams[group], t_ns, values);
}

// Queries -----------------------------------------------------------------------------------------
//
// Metrics that are one number of the driver each. A new one is a row here and one in its group's
// table.

static const struct gpu_query {
	enum gpu_group group;
	size_t metric;
	enum { BY_FIELD, BY_NUMBER } by;
	uint32_t id; // enum nvml_field_id, or enum nvml_number
} queries[] = {
	{GPU_CLOCK, CLOCK_SM, BY_NUMBER, NVML_SM_CLOCK},
	{GPU_CLOCK, CLOCK_MEMORY, BY_NUMBER, NVML_MEMORY_CLOCK},
	{GPU_CLOCK, CLOCK_THROTTLE, BY_NUMBER, NVML_CLOCK_REASONS},
	{GPU_POWER, POWER_WATTS, BY_FIELD, NVML_FIELD_POWER_INSTANT},
	{GPU_POWER, POWER_WATTS, BY_NUMBER, NVML_POWER},
	{GPU_ENERGY, ENERGY_JOULES, BY_FIELD, NVML_FIELD_ENERGY},
	{GPU_STATE, STATE_TEMPERATURE, BY_NUMBER, NVML_CELSIUS},
	{GPU_STATE, STATE_MEMORY_TEMPERATURE, BY_FIELD, NVML_FIELD_MEMORY_TEMPERATURE},
	{GPU_STATE, STATE_POWER_LIMIT, BY_NUMBER, NVML_POWER_LIMIT},
	{GPU_STATE, STATE_GENERATION, BY_NUMBER, NVML_PCIE_GENERATION},
	{GPU_STATE, STATE_WIDTH, BY_NUMBER, NVML_PCIE_WIDTH},
	{GPU_ERRORS, ERRORS_UNCORRECTED, BY_FIELD, NVML_FIELD_ECC_UNCORRECTED},
	{GPU_ERRORS, ERRORS_CORRECTED, BY_FIELD, NVML_FIELD_ECC_CORRECTED},
	{GPU_ERRORS, ERRORS_PAGES, BY_FIELD, NVML_FIELD_PAGES_RETIRED_SINGLE},
	{GPU_ERRORS, ERRORS_PAGES, BY_FIELD, NVML_FIELD_PAGES_RETIRED_DOUBLE},
	{GPU_ERRORS, ERRORS_ROWS, BY_FIELD, NVML_FIELD_ROWS_REMAPPED_CORRECTABLE},
	{GPU_ERRORS, ERRORS_ROWS, BY_FIELD, NVML_FIELD_ROWS_REMAPPED_UNCORRECTABLE},
	{GPU_ERRORS, ERRORS_REPLAYS, BY_FIELD, NVML_FIELD_PCIE_REPLAYS},
};

static bool is_asked(
	const struct gpu_query *q, const struct gpu *g, enum gpu_group group, unsigned by)
{
	return q->group == group && q->by == by && gpu_wants(g, group, q->metric);
}

// Fields of one metric are added; if only one is available, it is the value.
static void add_field(struct gpu_reading *r, size_t metric, int result, int64_t value)
{
	if (r->result[metric] == NVML_OK && result == NVML_OK) {
		r->value[metric] += value;
	} else if (r->result[metric] != NVML_OK) {
		r->result[metric] = result;
		r->value[metric] = value;
	}
}

// Reads all fields in one call. If the whole call fails, all fields fail.
static void ask_fields(
	struct nvml *n, const struct gpu *g, enum gpu_group group, struct gpu_reading *r)
{
	struct nvml_field fields[NVML_MAX_FIELDS] = {0};
	size_t metrics[NVML_MAX_FIELDS], n_fields = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(queries) && n_fields < NVML_MAX_FIELDS; i++) {
		if (is_asked(&queries[i], g, group, BY_FIELD)) {
			fields[n_fields].id = queries[i].id;
			metrics[n_fields++] = queries[i].metric;
		}
	}
	int all = n_fields > 0 ? nvml_fields(n, g->handle, fields, n_fields) : NVML_OK;
	for (size_t i = 0; i < n_fields; i++) {
		int64_t value = 0;
		int result = all == NVML_OK ? (int)fields[i].result : all;
		if (result == NVML_OK && !nvml_field_value(&fields[i], &value)) {
			result = NVML_NO_DATA;
		}
		add_field(r, metrics[i], result, value);
	}
}

// A metric that also has a field is asked for by number only where the field is unavailable.
static void ask_numbers(
	struct nvml *n, const struct gpu *g, enum gpu_group group, struct gpu_reading *r)
{
	for (size_t i = 0; i < ARRAY_LENGTH(queries); i++) {
		int *result = &r->result[queries[i].metric];
		if (is_asked(&queries[i], g, group, BY_NUMBER) &&
			(*result == GPU_QUIET || nvml_outcome(*result) == NVML_NEVER)) {
			*result = nvml_number(n, g->handle, (enum nvml_number)queries[i].id,
				&r->value[queries[i].metric]);
		}
	}
}

static void gpu_ask(
	struct nvml *n, const struct gpu *g, enum gpu_group group, struct gpu_reading *r)
{
	for (size_t i = 0; i < GPU_MAX_METRICS; i++) {
		r->result[i] = GPU_QUIET;
	}
	ask_fields(n, g, group, r);
	ask_numbers(n, g, group, r);
}

// Memory ------------------------------------------------------------------------------------------
//
// Memory of a GPU, or of the instance that the job may use. NVML has two layouts of it
// (machine/nvml.h).

static const char gpu_part_reason[] =
	"the GPU is divided into instances (MIG), and which of them the job may use is not known";

// The device whose memory and processes are the job's: the GPU or an instance of it; NULL: the
// instance is unknown.
static struct nvml_device *gpu_part(const struct gpu *g)
{
	return g->n_instances == 0 ? g->handle
	       : g->instance >= 0  ? g->instances[g->instance].handle
	                           : NULL;
}

static int64_t checked(uint64_t value)
{
	return value <= INT64_MAX ? (int64_t)value : VALUE_MISSING;
}

static void gpu_read_memory(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	struct nvml_memory_v2 memory = {0};
	struct nvml_device *part = gpu_part(g);
	struct gpu_reading r = {.why = gpu_part_reason};
	int result = part ? nvml_memory(s->nvml, part, &memory) : GPU_QUIET;
	for (size_t i = 0; i < N_MEMORY; i++) {
		r.result[i] = result;
	}
	r.value[MEMORY_USAGE] = checked(memory.used);
	r.value[MEMORY_LIMIT] = checked(memory.total);
	r.value[MEMORY_RESERVED] = checked(memory.reserved);
	if (result == NVML_OK && memory.reserved == NVML_NOT_AVAILABLE) {
		r.result[MEMORY_RESERVED] = NVML_FUNCTION_NOT_FOUND;
	}
	gpu_row(sink, g, GPU_MEMORY, now_ns, &r);
}

// Utilisation -------------------------------------------------------------------------------------
//
// Utilisation from the driver's own buffer of samples: each sample of 1/6 to 1 s once, with the
// driver's time, and none lost between two readings. If that buffer cannot be used, the simple
// call, which returns the newest of the same samples.

// Samples further than this from now are not on the assumed clock.
#define BUFFER_PAST_NS (120 * NS_PER_S)
#define BUFFER_FUTURE_NS (2 * NS_PER_S)
// After this time, an empty buffer is assumed to remain empty.
#define BUFFER_SILENT_NS (3 * NS_PER_S)
// A step of the clock: earlier samples have times of another epoch.
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

// CLOCK_REALTIME less CLOCK_MONOTONIC.
static int64_t realtime_offset(void)
{
	return (int64_t)clock_realtime_ns() - (int64_t)clock_monotonic_ns();
}

static bool plausible(uint64_t t_ns, uint64_t now_ns)
{
	return t_ns + BUFFER_PAST_NS > now_ns && t_ns < now_ns + BUFFER_FUTURE_NS;
}

// The sample's time on CLOCK_MONOTONIC; 0 if it is implausible.
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

// Determines the driver's clock: according to its reference, the CPU's time in microseconds.
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

// Takes the samples of one kind. Returns their number, or -1 if the buffer cannot be used (and the
// simple call will report the reason).
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
		// In ascending order, and within this run.
		if (samples[i].t_us > b->last_us[metric] && t_ns > s->start_ns) {
			b->last_us[metric] = samples[i].t_us;
			samples[kept++] = samples[i];
		}
	}
	return (int)kept;
}

// If the driver took both kinds together, their times are equal and they go into one row.
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

static void gpu_read_busy(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
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

// Errors ------------------------------------------------------------------------------------------
//
// Errors of a GPU: counts that hardly ever change, and an event if one increased while the job ran.
// They are read every 10 s and once more after the job's end (by the sampler), because errors of
// the last seconds are often the reason for the end. Xids are taken every second, which dates them.

#define XIDS_MAX 1024u // taken in one reading

// Known kinds, named as in NVIDIA's list of Xids.
static const struct {
	uint64_t number;
	const char *name;
} xid_names[] = {
	{13, "an exception in a kernel of a program"},
	{31, "a program's access to memory that is not mapped"},
	{43, "a program's channel stopped"},
	{45, "a program's work was removed"},
	{48, "an uncorrected ECC error"},
	{63, "a row of memory to remap, or page to retire"},
	{64, "a row of memory cannot be remapped"},
	{74, "an NVLink error"},
	{79, "the GPU fell off the bus"},
	{92, "many corrected ECC errors"},
	{94, "an uncorrected ECC error, contained"},
	{95, "an uncorrected ECC error, not contained"},
	{119, "the GPU's system processor does not answer"},
	{120, "the GPU's system processor failed"},
};

static const char *xid_name(uint64_t number)
{
	for (size_t i = 0; i < ARRAY_LENGTH(xid_names); i++) {
		if (xid_names[i].number == number) {
			return xid_names[i].name;
		}
	}
	return "see NVIDIA's list of Xids";
}

// Registers for Xids of every GPU. They are taken before gpu_read_errors.
static void gpu_xids_open(struct gpu_source *s, struct sink *sink)
{
	int opened = nvml_xids_new(s->nvml, &s->xids);
	for (size_t i = 0; i < s->n_gpus; i++) {
		struct gpu *g = &s->gpus[i];
		int result = opened;
		if (result == NVML_OK && !g->lost) {
			result = nvml_xids_watch(s->nvml, g->handle, s->xids);
		}
		g->xids_watched = result == NVML_OK && !g->lost;
		if (result != NVML_OK && !g->lost) {
			gpu_never(sink, g, GPU_ERRORS, ERRORS_XIDS, nvml_reason(result));
		}
	}
}

static void note_xid(struct gpu_source *s, struct sink *sink, uint64_t now_ns,
	const struct nvml_device *device, uint64_t xid)
{
	for (size_t i = 0; i < s->n_gpus; i++) {
		struct gpu *g = &s->gpus[i];
		if (g->handle != device) {
			continue;
		}
		g->xids++;
		if (g->errors.events[ERRORS_XIDS]++ < GPU_ERROR_EVENTS_MAX) {
			sink_event(sink, now_ns, "gpu_xid", g->entity,
				"GPU %u (%s): Xid %" PRIu64 ", %s", g->index, g->name, xid,
				xid_name(xid));
		}
	}
}

static void gpu_take_xids(struct gpu_source *s, struct sink *sink, uint64_t now_ns)
{
	struct nvml_device *device = NULL;
	uint64_t xid = 0;
	// A driver that always returns another one would block the lane.
	for (unsigned n = 0; s->xids && n < XIDS_MAX; n++) {
		int result = nvml_xids_next(s->nvml, s->xids, &device, &xid);
		if (result != NVML_OK) {
			return;
		}
		note_xid(s, sink, now_ns, device, xid);
	}
}

// Writes counts, and an event if one increased.
static void gpu_read_errors(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	struct gpu_reading r = {0};
	gpu_ask(s->nvml, g, GPU_ERRORS, &r);
	if (g->xids_watched) {
		r.result[ERRORS_XIDS] = NVML_OK;
		r.value[ERRORS_XIDS] = g->xids;
	}
	gpu_row(sink, g, GPU_ERRORS, now_ns, &r);
	for (size_t i = 0; i < N_ERRORS && !g->lost; i++) {
		if (r.result[i] == NVML_OK && gpu_wants(g, GPU_ERRORS, i)) {
			gpu_errors_note(&g->errors, sink, now_ns, g->entity, g->index, g->name, i,
				r.value[i]);
		}
	}
}

// Attributes --------------------------------------------------------------------------------------
//
// Constant properties of a GPU: its attributes including its peak rates, and whether the job may
// see it.

// Cores of one multiprocessor by compute capability.
static const struct {
	int major;
	int minor;
	int64_t cores;
} multiprocessor_cores[] = {
	{5, 0, 128},
	{5, 2, 128},
	{5, 3, 128},
	{6, 0, 64},
	{6, 1, 128},
	{6, 2, 128},
	{7, 0, 64},
	{7, 2, 64},
	{7, 5, 64},
	{8, 0, 64},
	{8, 6, 128},
	{8, 7, 128},
	{8, 9, 128},
	{9, 0, 128},
	{10, 0, 128},
	{10, 3, 128},
	{12, 0, 128},
	{12, 1, 128},
};

static const char *traffic_method_text(enum traffic_method method)
{
	static const char *const texts[] = {
		[TRAFFIC_COUNTERS] = "byte counters",
		[TRAFFIC_GPM] = "GPM: link_rates over 100 ms and more, times time",
		[TRAFFIC_SAMPLED] = "estimated: the rate over 20 ms of each second, times time",
		[TRAFFIC_NONE] = "not measured",
	};
	return texts[method];
}

// JSON members, each preceded by a comma: the object begins with the index.
static void add_text(struct text *t, const char *name, const char *value)
{
	text_format(t, ",\"%s\":", name);
	text_append_json_string(t, value);
}

static void add_number(struct text *t, const char *name, double value)
{
	text_format(t, ",\"%s\":%.15g", name, value);
}

static void add_told(struct text *t, const char *name, int result, double value)
{
	if (result == NVML_OK) {
		add_number(t, name, value);
	}
}

// Adds a number of the driver times `scale`, if it has that number. Returns the driver's result.
static int add_asked(const struct gpu_source *s, const struct gpu *g, struct text *t,
	const char *name, enum nvml_number which, double scale, int64_t *ret)
{
	*ret = 0;
	int result = nvml_number(s->nvml, g->handle, which, ret);
	add_told(t, name, result, (double)*ret * scale);
	return result;
}

static void add_link(const struct gpu *g, struct text *t)
{
	if (g->pcie_generation > 0) {
		add_number(t, "pcie_generation_max", g->pcie_generation);
		add_number(t, "pcie_width_max", g->pcie_width);
	}
	if (g->pcie_peak > 0) {
		add_number(t, "pcie_peak_bytes_per_s", (double)g->pcie_peak);
	}
}

static void add_memory(struct gpu_source *s, struct gpu *g, struct text *t)
{
	struct nvml_memory_v2 memory = {0};
	int64_t bits, megahertz;
	struct nvml_device *part = gpu_part(g);
	int result = part ? nvml_memory(s->nvml, part, &memory) : GPU_QUIET;
	add_told(t, "memory_bytes", result, (double)memory.total);
	result = add_asked(s, g, t, "clock_memory_max_hz", NVML_MEMORY_CLOCK_MAX, 1e6, &megahertz);
	int bus = add_asked(s, g, t, "memory_bus_bits", NVML_MEMORY_BUS_BITS, 1, &bits);
	// NVML's memory clock is half the transfer rate, for GDDR and HBM alike (A100: 5120 bits,
	// 1215 MHz, 1555 GB/s).
	add_told(t, "memory_peak_bytes_per_s", result != NVML_OK ? result : bus,
		(double)bits / 8.0 * (double)megahertz * 1e6 * 2);
}

static void add_compute(struct gpu_source *s, struct gpu *g, struct text *t)
{
	int major = 0, minor = 0;
	int64_t cores, megahertz;
	bool told = nvml_compute_capability(s->nvml, g->handle, &major, &minor) == NVML_OK;
	if (told) {
		text_format(t, ",\"compute_capability\":\"%d.%d\"", major, minor);
	}
	int result = add_asked(s, g, t, "cores", NVML_CORES, 1, &cores);
	for (size_t i = 0; i < ARRAY_LENGTH(multiprocessor_cores) && told; i++) {
		if (multiprocessor_cores[i].major == major &&
			multiprocessor_cores[i].minor == minor) {
			add_told(t, "multiprocessors", result,
				(double)(cores / multiprocessor_cores[i].cores));
		}
	}
	add_asked(s, g, t, "clock_sm_max_hz", NVML_SM_CLOCK_MAX, 1e6, &megahertz);
	add_asked(s, g, t, "clock_sm_application_hz", NVML_SM_CLOCK_APPLICATION, 1e6, &megahertz);
}

static void add_rest(struct gpu_source *s, struct gpu *g, struct text *t)
{
	int64_t milliwatts = 0;
	int result = nvml_number(s->nvml, g->handle, NVML_POWER_LIMIT, &milliwatts);
	add_told(t, "power_limit_w", result, (double)milliwatts / 1e3);
	text_format(t, ",\"mig\":%s", g->mig ? "true" : "false");
	if (g->n_instances > 0) {
		add_number(t, "mig_instances", (double)g->n_instances);
	}
	if (g->instance >= 0) {
		add_text(t, "mig_instance", g->instances[g->instance].uuid);
	}
	if (s->driver[0]) {
		add_text(t, "driver", s->driver);
	}
	if (s->cuda[0]) {
		add_text(t, "cuda", s->cuda);
	}
	add_text(t, "pcie_method", traffic_method_text(g->pcie.method));
	add_text(t, "nvlink_method", traffic_method_text(g->nvlink.method));
	if (g->visible != GPU_VISIBLE_UNKNOWN) {
		text_format(t, ",\"visible\":%s", g->visible == GPU_VISIBLE ? "true" : "false");
	}
}

static char *attributes_of(struct gpu_source *s, struct gpu *g)
{
	_cleanup_text_ struct text t = {0};
	text_format(&t, "{\"index\":%u", g->index);
	add_text(&t, "model", g->name);
	add_text(&t, "uuid", g->uuid);
	if (g->bus_id[0]) {
		add_text(&t, "pci_bus_id", g->bus_id);
	}
	add_memory(s, g, &t);
	add_compute(s, g, &t);
	add_link(g, &t);
	add_rest(s, g, &t);
	text_append_string(&t, "}");
	return text_steal(&t);
}

static struct sink_entity entity_of(
	const struct gpu_source *s, const struct gpu *g, const char *name, const char *attributes)
{
	return (struct sink_entity){
		.kind = ENTITY_GPU,
		.key = g->uuid,
		.name = name,
		.parent = s->host,
		.first_ns = s->start_ns,
		.attributes = attributes,
		// A partition's figures are those of the instance that this job may use; without a
	        // UUID, the first GPU of two jobs can be two GPUs.
		.own = g->mig || strncmp(g->uuid, "index-", 6) == 0,
	};
}

// Announces its attributes again.
static void gpu_describe_again(struct gpu_source *s, struct gpu *g, struct sink *sink)
{
	char name[128];
	snprintf(name, sizeof(name), "GPU %u %s", g->index, g->name);
	_cleanup_free_ char *attributes = attributes_of(s, g);
	struct sink_entity entity = entity_of(s, g, name, attributes);
	sink_entity_update(sink, g->entity, &entity);
}

// PCIe and NVLink ---------------------------------------------------------------------------------
//
// Bytes over PCIe and NVLink in each direction, as counters since the run's start. PCIe: the
// driver's byte counters (555 and later), which do not block but wrap at 32 bits, within 0.07 s on
// a fast link; else GPM's rates; else a rate that the driver measures for 20 ms per request,
// blocking. NVLink: its counters, else GPM. Received means received by the GPU: host to device on
// PCIe.

// Used if the link's peak is unknown: generation 5, 16 lanes.
#define PEAK_UNKNOWN UINT64_C(63000000000)
// GPM has the exact bytes of 100 ms, which is better than counters that wrap faster than that.
#define GPM_RESOLUTION_S 0.1
#define COUNTER_RANGE 4294967296.0
// Counters are given up after this many consecutive readings that came too late.
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

static void gpu_traffic_probe(struct gpu_source *s, struct gpu *g, struct sink *sink)
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

// The longer of the times measured by our clock and the driver's: readings may have waited in the
// driver.
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

// With a long --interval, or a link too fast for the lane's ticks, an estimate is better than
// nothing.
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

// A rate measured for 20 ms of each second, used for the whole second.
static void read_pcie_sampled(
	struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	static const enum nvml_direction directions[N_TRAFFIC] = {NVML_RECEIVE, NVML_TRANSMIT};
	struct gpu_traffic *t = &g->pcie;
	uint64_t elapsed = t->last_ns ? now_ns - t->last_ns : 0;
	if (t->tried_ns && now_ns - t->tried_ns < SAMPLED_INTERVAL_NS) {
		return;
	}
	t->tried_ns = now_ns;
	// A rate also stands for readings before it that failed.
	bool read = false;
	int results[N_TRAFFIC];
	for (size_t i = 0; i < N_TRAFFIC; i++) {
		uint32_t rate = 0;
		results[i] = nvml_pcie_throughput(s->nvml, g->handle, directions[i], &rate);
		read = read || results[i] == NVML_OK;
		if (results[i] == NVML_OK &&
			!traffic_add_rate(&t->counters[i], rate * KB, elapsed)) {
			results[i] = GPU_QUIET;
		}
	}
	t->last_ns = read || !t->last_ns ? now_ns : t->last_ns;
	put_totals(g, GPU_PCIE, t, sink, now_ns, results);
}

static void gpu_read_pcie(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	if (g->pcie.method == TRAFFIC_COUNTERS) {
		read_pcie_counters(s, g, sink, now_ns);
	} else if (g->pcie.method == TRAFFIC_SAMPLED) {
		read_pcie_sampled(s, g, sink, now_ns);
	}
}

static void gpu_read_nvlink(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
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

// Rates (MiB/s, NAN if unavailable) that GPM measured over elapsed_ns until now_ns.
static void gpu_traffic_rates(struct gpu *g, enum gpu_group group, struct sink *sink,
	uint64_t now_ns, uint64_t elapsed, const double link_rates[N_TRAFFIC])
{
	struct gpu_traffic *t = group == GPU_PCIE ? &g->pcie : &g->nvlink;
	int results[N_TRAFFIC];
	for (size_t i = 0; i < N_TRAFFIC; i++) {
		bool told = traffic_add_rate(&t->counters[i], link_rates[i] * MIB, elapsed);
		results[i] = told ? NVML_OK : GPU_QUIET;
	}
	put_totals(g, group, t, sink, now_ns, results);
}

// GPM ---------------------------------------------------------------------------------------------
//
// GPM, on Hopper and later: activity of the GPU's units between two samples, not just whether a
// kernel was running. Each sample ends one interval and begins the next.

// The driver refreshes its counters at this rate; closer samples are meaningless.
#define GPM_INTERVAL_MIN_NS (100 * NS_PER_MS)
// Percent, with two digits.
#define GPM_SCALE 100.0

static void gpu_gpm_open(struct gpu_source *s, struct gpu *g, struct sink *sink)
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
	for (size_t i = 0; i < ARRAY_LENGTH(gpm_activities) && !gpm->supported; i++) {
		gpu_never(sink, g, GPU_GPM, i, reason);
	}
}

static void gpu_gpm_close(struct gpu_source *s, struct gpu *g)
{
	nvml_gpm_free(s->nvml, g->gpm.samples[0]);
	nvml_gpm_free(s->nvml, g->gpm.samples[1]);
}

static void put_activities(
	struct gpu *g, struct sink *sink, uint64_t now_ns, const struct nvml_gpm_metric *metrics)
{
	struct gpu_reading r = {.why = "the driver answered with a value that cannot be"};
	for (size_t i = 0; i < ARRAY_LENGTH(gpm_activities); i++) {
		double value = metrics[i].value;
		r.result[i] = (int)metrics[i].result;
		if (r.result[i] == NVML_OK && !(value >= 0 && value <= 100)) {
			r.result[i] = GPU_QUIET;
		}
		r.value[i] = r.result[i] == NVML_OK ? (int64_t)lround(value * GPM_SCALE) : 0;
	}
	gpu_row(sink, g, GPU_GPM, now_ns, &r);
}

// Writes the traffic of a link that has no better source.
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
	metrics += ARRAY_LENGTH(gpm_activities);
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
	for (size_t i = 0; i < ARRAY_LENGTH(gpm_activities); i++) {
		request->metrics[n++].id = gpm_activities[i];
	}
	for (size_t i = 0; i < ARRAY_LENGTH(gpm_rates); i++) {
		request->metrics[n++].id = gpm_rates[i];
	}
	request->n = (uint32_t)n;
	request->before = g->gpm.samples[1 - g->gpm.newest];
	request->after = g->gpm.samples[g->gpm.newest];
	return nvml_gpm_metrics(s->nvml, request);
}

static void put_failure(struct gpu *g, struct sink *sink, uint64_t now_ns, int result)
{
	struct gpu_reading r = {0};
	for (size_t i = 0; i < ARRAY_LENGTH(gpm_activities); i++) {
		r.result[i] = result;
	}
	gpu_row(sink, g, GPU_GPM, now_ns, &r);
}

static void gpu_read_gpm(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
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

// Visible GPUs ------------------------------------------------------------------------------------

static size_t identify(const struct gpu_source *s, struct gpu_identity *identities)
{
	for (size_t i = 0; i < s->n_gpus; i++) {
		const struct gpu *g = &s->gpus[i];
		identities[i] = (struct gpu_identity){.uuid = g->uuid,
			.name = g->name,
			.mig = g->mig,
			.n_instances = g->n_instances};
		for (size_t j = 0; j < g->n_instances; j++) {
			identities[i].instances[j] = g->instances[j].uuid;
		}
	}
	return s->n_gpus;
}

// The instances that the list permits, as far as it determines them.
static void choose_instances(
	struct gpu_source *s, const struct gpu_identity *identities, const char *list)
{
	for (size_t i = 0; i < s->n_gpus; i++) {
		int instance = gpu_visible_instance(list, &identities[i]);
		s->gpus[i].instance = instance >= 0 ? instance : s->gpus[i].instance;
	}
}

// The GPUs visible by the recorder's own environment, then by those of the job's processes.
static void gpu_visible_from_self(struct gpu_source *s)
{
	struct gpu_identity identities[NVML_MAX_GPUS];
	enum gpu_visible verdicts[NVML_MAX_GPUS];
	size_t n = identify(s, identities);
	gpu_visible(getenv("CUDA_VISIBLE_DEVICES"), getenv("CUDA_DEVICE_ORDER"), identities, n,
		verdicts);
	choose_instances(s, identities, getenv("CUDA_VISIBLE_DEVICES"));
	for (size_t i = 0; i < n; i++) {
		s->gpus[i].visible = (int)verdicts[i];
	}
}

struct visible_choice {
	struct gpu_source *s;
	enum gpu_visible *verdicts; // so far
};

// Adds what one process of the job may use, if its environment says so.
static bool add_member(void *context, struct cursor environment)
{
	struct visible_choice *choice = context;
	struct gpu_source *s = choice->s;
	const char *list = procfs_environ_value(environment, "CUDA_VISIBLE_DEVICES");
	const char *order = procfs_environ_value(environment, "CUDA_DEVICE_ORDER");
	struct gpu_identity identities[NVML_MAX_GPUS];
	enum gpu_visible own[NVML_MAX_GPUS] = {0};
	size_t n = identify(s, identities);
	if (list) {
		gpu_visible(list, order, identities, n, own);
		choose_instances(s, identities, list);
	}
	for (size_t i = 0; i < n && list; i++) {
		choice->verdicts[i] = own[i] == GPU_HIDDEN ? choice->verdicts[i] : own[i];
	}
	return list != NULL;
}

static void announce_visible(
	struct gpu_source *s, struct sink *sink, const enum gpu_visible *now, const int *before)
{
	for (size_t i = 0; i < s->n_gpus; i++) {
		struct gpu *g = &s->gpus[i];
		bool chosen = g->instance != before[i];
		if (g->visible != (int)now[i] || chosen) {
			g->visible = (int)now[i];
			if (!g->lost) {
				gpu_describe_again(s, g, sink);
			}
		}
	}
}

static void gpu_visible_from_job(struct gpu_source *s, struct sink *sink, uint64_t now_ns)
{
	enum gpu_visible verdicts[NVML_MAX_GPUS];
	int instances[NVML_MAX_GPUS]; // found so far
	for (size_t i = 0; i < s->n_gpus; i++) {
		instances[i] = s->gpus[i].instance;
		// The first members with the variable replace the result of our own environment.
		verdicts[i] = s->visible_set ? (enum gpu_visible)s->gpus[i].visible : GPU_HIDDEN;
	}
	struct visible_choice choice = {s, verdicts};
	if (gpu_environs_read(&s->environs, s->tree, s->root_fd, now_ns, add_member, &choice)) {
		s->visible_set = true;
		announce_visible(s, sink, verdicts, instances);
	}
}

// Processes ---------------------------------------------------------------------------------------
//
// The job's processes on each GPU, and their use of it.
//
// NVML identifies processes by the host's pids. If none of the other programs in a list exists
// here, this is another namespace. In a container with its own pid namespace, older drivers return
// the host's pids; newer ones (550) list translated pids, without memory, and still sample
// utilisation by the host's. In a container, a pid therefore counts only if that process of the job
// has a descriptor of /dev/nvidia*. Other values are missing, with this reason.

#define UNMATCHED_READINGS 10u
#define FOREIGN_LISTS 2u
#define MAX_DESCRIPTORS 4096u

static const char nested_reason[] =
	"the driver tells the host's process ids, and this container has its own; start it with "
	"the host's (docker --pid=host)";

static bool holds_gpu(int root_fd, pid_t pid)
{
	static const char prefix[] = "/dev/nvidia";
	char path[48], target[64];
	snprintf(path, sizeof(path), "proc/%d/fd", (int)pid);
	_cleanup_close_ int fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	if (!directory) {
		return false;
	}
	int directory_fd = take_fd(fd);
	const struct dirent *entry;
	for (unsigned i = 0; i < MAX_DESCRIPTORS && (entry = readdir(directory)); i++) {
		ssize_t n = readlinkat(directory_fd, entry->d_name, target, sizeof(target));
		if (n >= (ssize_t)sizeof(prefix) - 1 &&
			memcmp(target, prefix, sizeof(prefix) - 1) == 0) {
			return true;
		}
	}
	return false;
}

static struct gpu_process *find_process(struct gpu_source *s, int64_t entity)
{
	for (size_t i = 0; i < s->n_processes; i++) {
		if (s->processes[i].entity == entity) {
			return &s->processes[i];
		}
	}
	return NULL;
}

// Returns the job's process with a pid from NVML; NULL if there is none.
static struct gpu_process *job_process(struct gpu_source *s, uint32_t pid)
{
	int64_t entity = pid <= INT32_MAX ? tree_entity_of(s->tree, (pid_t)pid) : 0;
	if (entity == 0) {
		return NULL;
	}
	struct gpu_process *known = find_process(s, entity);
	if (known || (s->nested && !holds_gpu(s->root_fd, (pid_t)pid))) {
		return known;
	}
	void *items = s->processes;
	if (array_reserve(&items, &s->processes_capacity, s->n_processes + 1,
		    sizeof(*s->processes)) < 0) {
		return NULL;
	}
	s->processes = items;
	s->processes[s->n_processes] = (struct gpu_process){
		.entity = entity, .pid = (pid_t)pid, .utilization = VALUE_MISSING};
	return &s->processes[s->n_processes++];
}

static int64_t add_known(int64_t sum, int64_t value)
{
	return sum == VALUE_MISSING || value == VALUE_MISSING ? VALUE_MISSING : sum + value;
}

static bool was_stranger(const struct gpu *g, uint32_t pid)
{
	for (size_t i = 0; i < g->n_strangers; i++) {
		if (g->strangers[i] == pid) {
			return true;
		}
	}
	return g->n_strangers == GPU_MAX_STRANGERS;
}

// A process of the job that has just begun or ended may be in the driver's list but not in the
// tree. An unknown process therefore counts as another program's only if it was in the previous
// list, too. Returns false if there is a new one.
static bool know_strangers(
	struct gpu_source *s, struct gpu *g, const struct nvml_process *list, size_t n)
{
	uint32_t pids[GPU_MAX_STRANGERS];
	size_t kept = 0;
	bool known = true, here = false;
	for (size_t i = 0; i < n; i++) {
		if (job_process(s, list[i].pid)) {
			here = true;
			continue;
		}
		known = known && was_stranger(g, list[i].pid);
		here = here || !process_is_nobody(list[i].pid);
		if (kept < GPU_MAX_STRANGERS) {
			pids[kept++] = list[i].pid;
		}
	}
	memcpy(g->strangers, pids, kept * sizeof(*pids));
	g->n_strangers = kept;
	g->foreign = kept > 0 && !here && !s->ever_matched ? g->foreign + 1 : 0;
	return known;
}

// Divides one GPU's list between the job and others. In a container, the host's pids tell nothing
// about others.
static void take_list(struct gpu_source *s, const struct nvml_process *list, size_t n, bool foreign,
	bool others, struct gpu_reading *r)
{
	int64_t memory[2] = {0, 0}, count[2] = {0, 0}; // of the job, of others
	for (size_t i = 0; i < n; i++) {
		struct gpu_process *p = job_process(s, list[i].pid);
		bool known = list[i].memory_bytes <= INT64_MAX / NVML_MAX_GPUS &&
		             !(s->nested && list[i].memory_bytes == 0);
		int64_t bytes = known ? (int64_t)list[i].memory_bytes : VALUE_MISSING;
		if (p) {
			p->listed = true;
			p->memory = add_known(p->memory, bytes);
		}
		memory[!p] = add_known(memory[!p], bytes);
		count[!p]++;
	}
	s->ever_matched = s->ever_matched || count[0] > 0;
	bool blind = (s->nested || foreign) && !s->ever_matched;
	static const size_t metrics[2][2] = {
		{JOB_MEMORY, JOB_PROCESSES}, {JOB_OTHER_MEMORY, JOB_OTHER_PROCESSES}};
	for (size_t i = 0; i < 2; i++) {
		bool told = i == 0 ? !blind : others;
		r->result[metrics[i][0]] = told && memory[i] != VALUE_MISSING ? NVML_OK : GPU_QUIET;
		r->value[metrics[i][0]] = memory[i];
		r->result[metrics[i][1]] = told ? NVML_OK : GPU_QUIET;
		r->value[metrics[i][1]] = count[i];
	}
	bool memoryless = memory[0] == VALUE_MISSING || memory[1] == VALUE_MISSING;
	r->why = s->nested || foreign ? nested_reason
	         : memoryless         ? "the driver does not report memory by process"
	                              : "there were too few readings to attribute its processes";
}

// The mean of a process's samples in per cent; -1: none.
static int64_t mean_of(const struct nvml_process_sample *samples, size_t n, uint32_t pid)
{
	uint64_t sum = 0, count = 0;
	for (size_t i = 0; i < n; i++) {
		if (samples[i].pid == pid && samples[i].sm_percent <= 100) {
			sum += samples[i].sm_percent;
			count++;
		}
	}
	return count > 0 ? (int64_t)(sum / count) : -1;
}

// Samples of the processes in one GPU's list. The driver leaves out idle processes: 0. In a
// container, a process without samples may have them under another pid: unknown.
static void add_samples(struct gpu_source *s, const struct nvml_process *list, size_t n_list,
	const struct nvml_process_sample *samples, size_t n, bool others, struct gpu_reading *r)
{
	int64_t sums[2] = {0, 0}; // of the job, of others
	bool known = true;
	for (size_t i = 0; i < n_list; i++) {
		struct gpu_process *p = job_process(s, list[i].pid);
		int64_t mean = mean_of(samples, n, list[i].pid);
		if (p && (mean >= 0 || !s->nested)) {
			p->utilization = (p->utilization == VALUE_MISSING ? 0 : p->utilization) +
			                 (mean >= 0 ? mean : 0);
		}
		known = known && (!p || mean >= 0 || !s->nested);
		sums[!p] += mean >= 0 ? mean : 0;
	}
	bool blind = s->nested ? !s->ever_matched || !known : !others && !s->ever_matched;
	r->result[JOB_UTILIZATION] = blind ? GPU_QUIET : NVML_OK;
	r->value[JOB_UTILIZATION] = sums[0] < 100 ? sums[0] : 100;
	r->result[JOB_OTHER_UTILIZATION] = others ? NVML_OK : GPU_QUIET;
	r->value[JOB_OTHER_UTILIZATION] = sums[1] < 100 ? sums[1] : 100;
}

// On an H100, the samples of processes take 2.8 ms of CPU time and the list 6 us. Samples that cost
// so much are not part of each reading; they are kept by the driver until then.
#define SAMPLES_CHEAP_NS (500 * NS_PER_US)
#define SAMPLES_EVERY 4

static bool samples_are_due(struct gpu *g)
{
	bool due = g->samples_ns < SAMPLES_CHEAP_NS || ++g->samples_left_out >= SAMPLES_EVERY;
	g->samples_left_out = due ? 0 : g->samples_left_out;
	return due;
}

static void read_samples(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns,
	const struct nvml_process *list, size_t n_list, bool others, struct gpu_reading *r)
{
	struct nvml_process_sample samples[NVML_MAX_SAMPLES];
	size_t n = 0;
	uint64_t now_us = (clock_realtime_ns() - clock_monotonic_ns() + now_ns) / NS_PER_US;
	// If the clock was set back, samples would be hidden until it catches up.
	uint64_t last_us = g->process_last_us > now_us + 2000000 ? 0 : g->process_last_us;
	uint64_t before_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	int result = nvml_process_samples(
		s->nvml, g->handle, last_us, samples, NVML_MAX_SAMPLES, &n);
	g->samples_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
	// No process was busy, which is a valid result.
	result = result == NVML_NOT_FOUND ? NVML_OK : result;
	r->result[JOB_UTILIZATION] = r->result[JOB_OTHER_UTILIZATION] = result;
	if (nvml_outcome(result) == NVML_NEVER) {
		sink_missing(sink, 0, &nvml_groups[GPU_PROCESS], PROCESS_UTILIZATION,
			g->mig && result == NVML_NOT_SUPPORTED
				? "not supported while the GPU is divided into instances (MIG)"
				: nvml_reason(result));
	}
	for (size_t i = 0; i < n; i++) {
		if (samples[i].t_us > g->process_last_us) {
			g->process_last_us = samples[i].t_us;
		}
	}
	if (result == NVML_OK) {
		add_samples(s, list, n_list, samples, n, others, r);
	}
}

// Reads one GPU. Returns false if its list is unavailable this time.
static bool read_gpu(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns,
	const char **ret_reason)
{
	struct nvml_process list[NVML_MAX_PROCESSES];
	size_t n = 0;
	struct nvml_device *part = gpu_part(g);
	int result = part ? nvml_processes(s->nvml, part, list, NVML_MAX_PROCESSES, &n) : GPU_QUIET;
	struct gpu_reading r = {.why = gpu_part_reason};
	for (size_t i = 0; i < N_JOB; i++) {
		r.result[i] = result;
	}
	if (result == NVML_OK) {
		bool others = know_strangers(s, g, list, n);
		s->nested = s->nested || g->foreign >= FOREIGN_LISTS;
		others = others && !s->nested && g->foreign == 0;
		take_list(s, list, n, g->foreign > 0, others, &r);
		if (gpu_wants(g, GPU_JOB, JOB_UTILIZATION) && samples_are_due(g)) {
			read_samples(s, g, sink, now_ns, list, n, others, &r);
		} else {
			r.result[JOB_UTILIZATION] = r.result[JOB_OTHER_UTILIZATION] = GPU_QUIET;
		}
	} else {
		*ret_reason = part ? nvml_reason(result) : gpu_part_reason;
	}
	gpu_row(sink, g, GPU_JOB, now_ns, &r);
	return result == NVML_OK;
}

static void put_process(struct gpu_process *p, struct sink *sink, uint64_t now_ns)
{
	const int64_t values[N_PROCESS] = {
		[PROCESS_MEMORY] = p->memory, [PROCESS_UTILIZATION] = p->utilization};
	if (!p->stream) {
		p->stream = sink_stream(sink, p->entity, &nvml_groups[GPU_PROCESS]);
	}
	stream_row(p->stream, now_ns, values);
}

static void put_processes(struct gpu_source *s, struct sink *sink, uint64_t now_ns, bool whole)
{
	for (size_t i = 0; i < s->n_processes;) {
		struct gpu_process *p = &s->processes[i];
		p->memory = whole ? p->memory : VALUE_MISSING;
		if (p->listed || !whole) {
			put_process(p, sink, now_ns);
			i++;
			continue;
		}
		// It is in no list any more: it ended, or uses no memory.
		if (tree_entity_of(s->tree, p->pid) == p->entity) {
			put_process(p, sink, now_ns);
		}
		stream_close(p->stream);
		*p = s->processes[--s->n_processes];
	}
}

// Reports it if no process of the job was ever listed because of a container. At first the job's
// processes may not use a GPU yet; at the end, no further readings follow.
static void gpu_say_unmatched(struct gpu_source *s, struct sink *sink, bool at_end)
{
	bool silent = !s->nested || s->ever_matched || !s->processes_read;
	if (silent || (!at_end && ++s->readings_unmatched < UNMATCHED_READINGS)) {
		return;
	}
	sink_missing_group(sink, 0, &nvml_groups[GPU_PROCESS], nested_reason);
	sink_missing_group(sink, 0, &nvml_groups[GPU_JOB], nested_reason);
}

static bool all_lost(const struct gpu_source *s)
{
	bool lost = true;
	for (size_t i = 0; i < s->n_gpus; i++) {
		lost = lost && s->gpus[i].lost;
	}
	return lost;
}

// All GPUs at once, because a process may use several.
static int gpu_read_processes(struct gpu_source *s, struct sink *sink, uint64_t now_ns)
{
	const char *reason = s->gpus[0].unreadable ? s->gpus[0].unreadable : "the GPU is lost";
	bool whole = true, any = false;
	for (size_t i = 0; i < s->n_processes; i++) {
		s->processes[i].listed = false;
		s->processes[i].memory = 0;
		s->processes[i].utilization = VALUE_MISSING;
	}
	for (size_t i = 0; i < s->n_gpus; i++) {
		struct gpu *g = &s->gpus[i];
		if (gpu_wants_any(g, GPU_JOB)) {
			whole = read_gpu(s, g, sink, now_ns, &reason) && whole;
			any = any || gpu_wants_any(g, GPU_JOB);
		}
	}
	// The job's environment also determines the GPUs that it may use.
	gpu_visible_from_job(s, sink, now_ns);
	if (!any) {
		sink_missing_group(sink, 0, &nvml_groups[GPU_PROCESS], reason);
		return all_lost(s) ? -ENODEV : 0;
	}
	s->processes_read = true;
	put_processes(s, sink, now_ns, whole);
	gpu_say_unmatched(s, sink, false);
	return 0;
}

// Source ------------------------------------------------------------------------------------------

// The fastest link of this GPU and its slot: an idle link reports less.
static void find_link(struct gpu_source *s, struct gpu *g)
{
	int64_t generation = 0, width = 0;
	if (nvml_number(s->nvml, g->handle, NVML_PCIE_GENERATION_MAX, &generation) != NVML_OK ||
		nvml_number(s->nvml, g->handle, NVML_PCIE_WIDTH_MAX, &width) != NVML_OK) {
		return;
	}
	g->pcie_generation = (uint32_t)generation;
	g->pcie_width = (uint32_t)width;
	g->pcie_peak = (uint64_t)gpu_metrics_link_bytes_per_s(generation, width);
}

// Reads the constant properties and announces the GPU.
static void gpu_describe(struct gpu_source *s, struct gpu *g, struct sink *sink)
{
	char name[128];
	snprintf(name, sizeof(name), "GPU %u %s", g->index, g->name);
	// Announced first, because the readings that determine the attributes' methods may already
	// report something about it.
	struct sink_entity entity = entity_of(s, g, name, NULL);
	g->entity = sink_entity(sink, &entity);
	if (g->handle) {
		find_link(s, g);
		gpu_gpm_open(s, g, sink);
		gpu_traffic_probe(s, g, sink);
	}
}

typedef void read_function(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns);

// Traffic that has no better source also uses GPM's readings.
static bool wanted(const struct gpu *g, enum gpu_group group)
{
	return gpu_wants_any(g, group) ||
	       (group == GPU_GPM &&
		       ((g->pcie.method == TRAFFIC_GPM && gpu_wants_any(g, GPU_PCIE)) ||
			       (g->nvlink.method == TRAFFIC_GPM && gpu_wants_any(g, GPU_NVLINK))));
}

// Reads the group for every GPU that has it; NULL: by its queries. Returns -ENODEV if none has it
// any more; the reasons were reported.
static int read_group(struct gpu_source *s, struct sink *sink, uint64_t now_ns,
	enum gpu_group group, read_function *read)
{
	bool any = false;
	for (size_t i = 0; i < s->n_gpus; i++) {
		struct gpu *g = &s->gpus[i];
		if (!wanted(g, group)) {
			continue;
		}
		if (read) {
			read(s, g, sink, now_ns);
		} else {
			struct gpu_reading r = {0};
			gpu_ask(s->nvml, g, group, &r);
			gpu_row(sink, g, group, now_ns, &r);
		}
		any = any || wanted(g, group);
	}
	return any ? 0 : -ENODEV;
}

static int read_busy(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_BUSY, gpu_read_busy);
}

static int read_memory(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_MEMORY, gpu_read_memory);
}

static int read_clock(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_CLOCK, NULL);
}

static int read_power(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_POWER, NULL);
}

// A counter that steps back says nothing any more: neither what was used before, nor since.
static void gpu_read_energy(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	struct gpu_reading r = {0};
	gpu_ask(s->nvml, g, GPU_ENERGY, &r);
	bool read = r.result[ENERGY_JOULES] == NVML_OK;
	if (read && g->energy != VALUE_MISSING && r.value[ENERGY_JOULES] < g->energy) {
		gpu_never(sink, g, GPU_ENERGY, ENERGY_JOULES, "the counter of energy stepped back");
	}
	g->energy = read ? r.value[ENERGY_JOULES] : g->energy;
	gpu_row(sink, g, GPU_ENERGY, now_ns, &r);
}

static int read_energy(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_ENERGY, gpu_read_energy);
}

static int read_pcie(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_PCIE, gpu_read_pcie);
}

static int read_nvlink(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_NVLINK, gpu_read_nvlink);
}

static int read_gpm(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_GPM, gpu_read_gpm);
}

static int read_state(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, GPU_STATE, NULL);
}

static int read_errors(void *state, struct sink *sink, uint64_t now_ns)
{
	gpu_take_xids(state, sink, now_ns);
	return read_group(state, sink, now_ns, GPU_ERRORS, gpu_read_errors);
}

// The same reading gives the job's share of each GPU and each process's share.
static int read_processes(void *state, struct sink *sink, uint64_t now_ns)
{
	struct gpu_source *s = state;
	gpu_take_xids(s, sink, now_ns);
	return s->tree ? gpu_read_processes(s, sink, now_ns) : -ENODEV;
}

static int read_nothing(void *state, struct sink *sink, uint64_t now_ns)
{
	(void)state;
	(void)sink;
	(void)now_ns;
	return 0;
}

// Metrics of similar cost are in one group, because the sampler stretches a group that turns out to
// be expensive. On an H100 the counter of energy takes 3.4 ms, power 4 us. PCIe's 32-bit counters
// wrap every 68 ms at 63 GB/s, hence 40 ms; the driver's buffer of utilisation loses nothing in 200
// ms. Traffic and GPM need each recorder's reading before; errors are events, too, which each run
// has.
static const struct group nvml_groups[N_GPU_GROUPS] = {
	[GPU_BUSY] = {"utilization", ENTITY_GPU, gpu_busy_metrics, N_BUSY, 200 * NS_PER_MS,
		read_busy, SHARED_BUFFER},
	[GPU_MEMORY] = {"memory", ENTITY_GPU, gpu_memory_metrics, N_MEMORY, 100 * NS_PER_MS,
		read_memory, SHARED},
	[GPU_CLOCK] = {"clock", ENTITY_GPU, gpu_clock_metrics, N_CLOCK, 100 * NS_PER_MS, read_clock,
		SHARED},
	[GPU_POWER] = {"power", ENTITY_GPU, gpu_power_metrics, N_POWER, 100 * NS_PER_MS, read_power,
		SHARED},
	[GPU_ENERGY] = {"energy", ENTITY_GPU, gpu_energy_metrics, N_ENERGY, NS_PER_S, read_energy,
		SHARED},
	[GPU_PCIE] = {"pcie", ENTITY_GPU, gpu_pcie_metrics, N_TRAFFIC, 40 * NS_PER_MS, read_pcie,
		SHARED_NOT},
	[GPU_NVLINK] = {"nvlink", ENTITY_GPU, gpu_nvlink_metrics, N_TRAFFIC, NS_PER_S, read_nvlink,
		SHARED_NOT},
	[GPU_GPM] = {"gpm", ENTITY_GPU, gpu_gpm_metrics, N_GPM, 120 * NS_PER_MS, read_gpm,
		SHARED_NOT},
	[GPU_STATE] = {"state", ENTITY_GPU, gpu_state_metrics, N_STATE, NS_PER_S, read_state,
		SHARED},
	[GPU_ERRORS] = {"errors", ENTITY_GPU, gpu_error_metrics, N_ERRORS, 10 * NS_PER_S,
		read_errors, SHARED_NOT},
	[GPU_JOB] = {"job", ENTITY_GPU, gpu_job_metrics, N_JOB, NS_PER_S, read_nothing, SHARED_NOT},
	[GPU_PROCESS] = {"gpu_processes", ENTITY_PROCESS, gpu_process_metrics, N_PROCESS, NS_PER_S,
		read_processes, SHARED_NOT},
};

// An instance without a UUID cannot be distinguished from others.
static void find_instances(struct gpu_source *s, struct gpu *g)
{
	struct nvml_device *handles[GPU_MAX_INSTANCES];
	size_t n = 0;
	nvml_instances(s->nvml, g->handle, handles, ARRAY_LENGTH(handles), &n);
	for (size_t i = 0; i < n; i++) {
		struct gpu_instance *instance = &g->instances[g->n_instances];
		instance->handle = handles[i];
		g->n_instances += nvml_text(s->nvml, handles[i], NVML_UUID, instance->uuid,
					  sizeof(instance->uuid)) == NVML_OK;
	}
	g->instance = g->n_instances == 1 ? 0 : -1;
}

// A UUID that several GPUs report identifies only the first.
static bool is_known(const struct gpu_source *s, const struct gpu *g, const char *uuid)
{
	for (const struct gpu *other = s->gpus; other < g; other++) {
		if (strcmp(other->uuid, uuid) == 0) {
			return true;
		}
	}
	return false;
}

static void open_gpu(struct gpu_source *s, struct gpu *g, struct sink *sink)
{
	int result = nvml_device(s->nvml, g->index, &g->handle);
	snprintf(g->name, sizeof(g->name), "%s", "(unknown)");
	snprintf(g->uuid, sizeof(g->uuid), "index-%u", g->index);
	if (result == NVML_OK) {
		char uuid[sizeof(g->uuid)];
		nvml_text(s->nvml, g->handle, NVML_NAME, g->name, sizeof(g->name));
		if (nvml_text(s->nvml, g->handle, NVML_UUID, uuid, sizeof(uuid)) == NVML_OK &&
			!is_known(s, g, uuid)) {
			memcpy(g->uuid, uuid, sizeof(uuid));
		}
		nvml_bus_id(s->nvml, g->handle, g->bus_id, sizeof(g->bus_id));
		nvml_mig(s->nvml, g->handle, &g->mig);
		if (g->mig) {
			find_instances(s, g);
		}
	}
	gpu_describe(s, g, sink);
	if (result != NVML_OK) {
		g->handle = NULL;
		g->lost = true;
		g->unreadable = nvml_reason(result);
		sink_event(sink, s->start_ns, "gpu_unreadable", g->entity, "GPU %u: %s", g->index,
			g->unreadable);
		for (size_t group = 0; group < GPU_PROCESS; group++) {
			sink_missing_group(
				sink, g->entity, &nvml_groups[group], nvml_reason(result));
		}
	}
}

static int find_gpus(struct gpu_source *s, struct error *e)
{
	unsigned count = 0;
	int result = nvml_device_count(s->nvml, &count);
	if (result != NVML_OK) {
		return error_set(e, EIO, "NVML does not count its GPUs: %s", nvml_reason(result));
	}
	if (count == 0) {
		return error_set(e, ENODEV,
			"no NVIDIA GPU; none is attached, or none given to this container or job");
	}
	s->gpus = calloc(count, sizeof(*s->gpus));
	s->gpm_request = calloc(1, sizeof(*s->gpm_request));
	if (!s->gpus || !s->gpm_request) {
		return error_errno(e, ENOMEM, "NVML");
	}
	s->n_gpus = count;
	int cuda = 0;
	nvml_driver_version(s->nvml, s->driver, sizeof(s->driver));
	if (nvml_cuda_version(s->nvml, &cuda) == NVML_OK && cuda > 0) {
		snprintf(s->cuda, sizeof(s->cuda), "%d.%d", cuda / 1000, cuda % 1000 / 10);
	}
	return 0;
}

static void nvml_source_close(void *state)
{
	struct gpu_source *s = state;
	if (!s) {
		return;
	}
	gpu_say_unmatched(s, s->sink, true);
	for (size_t i = 0; i < s->n_gpus; i++) {
		gpu_say_gaps(s->sink, &s->gpus[i]);
		gpu_gpm_close(s, &s->gpus[i]);
	}
	nvml_xids_free(s->nvml, s->xids);
	nvml_close(s->nvml);
	free(s->gpus);
	free(s->gpm_request);
	free(s->processes);
	gpu_environs_done(&s->environs);
	free(s);
}

static int nvml_source_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	if (context->captured) {
		return error_set(e, ENODEV, "a captured machine has no driver");
	}
	struct gpu_source *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_errno(e, ENOMEM, "NVML");
	}
	s->sink = sink;
	s->host = context->host;
	s->start_ns = context->start_ns;
	s->root_fd = context->root_fd;
	s->tree = context->tree;
	s->nested = process_namespace_is_nested(context->root_fd);
	int r = nvml_open(NULL, &s->nvml, e);
	r = r < 0 ? r : find_gpus(s, e);
	if (r < 0) {
		nvml_source_close(s);
		return r;
	}
	for (size_t i = 0; i < s->n_gpus; i++) {
		s->gpus[i].index = (unsigned)i;
		s->gpus[i].instance = -1;
		gpu_errors_init(&s->gpus[i].errors);
		s->gpus[i].energy = VALUE_MISSING;
		open_gpu(s, &s->gpus[i], sink);
	}
	gpu_visible_from_self(s);
	gpu_xids_open(s, sink);
	for (size_t i = 0; i < s->n_gpus; i++) {
		if (!s->gpus[i].lost) {
			gpu_describe_again(s, &s->gpus[i], sink);
		}
	}
	*ret_state = s;
	return 0;
}

const struct source source_nvml = {
	.name = "nvml",
	.help = "NVIDIA GPUs: utilisation, memory, PCIe, NVLink, power, clocks, processes",
	.lane = LANE_DEVICE,
	.device = "GPU",
	.pci_vendor = "10de",
	.groups = nvml_groups,
	.n_groups = N_GPU_GROUPS,
	.open = nvml_source_open,
	.close = nvml_source_close,
};
