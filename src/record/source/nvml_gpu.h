// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The NVML source's own rooms: nvml.c has the tables and the four functions of a source, nvml_row.c
// turns readings into rows, nvml_fill.c reads what is one call, and what needs a memory of its
// own has a file: nvml_busy.c (the driver's buffer of utilisation), nvml_traffic.c (PCIe,
// NVLink), nvml_errors.c, nvml_gpm.c, nvml_process.c, nvml_describe.c (attributes).

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/host/nvml.h"
#include "record/source/gpu_visible.h"
#include "record/source/source.h"
#include "record/source/traffic.h"

// The source's groups, in the order of its table.
enum gpu_group {
	GPU_BUSY,
	GPU_MEMORY,
	GPU_CLOCK,
	GPU_POWER,
	GPU_PCIE,
	GPU_NVLINK,
	GPU_GPM,
	GPU_STATE,
	GPU_ERRORS,
	GPU_JOB,
	GPU_PROCESS,
	N_GPU_GROUPS,
};

#define GPU_MAX_METRICS 8u

enum { BUSY_GPU, BUSY_MEMORY, N_BUSY };
enum { MEMORY_USAGE, MEMORY_RESERVED, MEMORY_LIMIT, N_MEMORY };
enum { CLOCK_SM, CLOCK_MEMORY, CLOCK_THROTTLE, N_CLOCK };
enum { POWER_WATTS, POWER_ENERGY, N_POWER };
enum { TRAFFIC_TO_GPU, TRAFFIC_FROM_GPU, N_TRAFFIC };
enum {
	STATE_TEMPERATURE,
	STATE_MEMORY_TEMPERATURE,
	STATE_POWER_LIMIT,
	STATE_GENERATION,
	STATE_WIDTH,
	N_STATE
};
enum {
	ERRORS_UNCORRECTED,
	ERRORS_CORRECTED,
	ERRORS_PAGES,
	ERRORS_ROWS,
	ERRORS_REPLAYS,
	ERRORS_XIDS,
	N_ERRORS
};
enum {
	JOB_MEMORY,
	JOB_PROCESSES,
	JOB_UTILIZATION,
	JOB_OTHER_PROCESSES,
	JOB_OTHER_MEMORY,
	JOB_OTHER_UTILIZATION,
	N_JOB
};
enum { PROCESS_MEMORY, PROCESS_UTILIZATION, N_PROCESS };

// One reading of a group: for each metric what the driver answered, and the value if that was
// NVML_OK. GPU_QUIET: there is none this time; `why` is the reason, NULL where another reading of
// the group has the value.
#define GPU_QUIET (-1)
struct gpu_reading {
	int result[GPU_MAX_METRICS];
	int64_t value[GPU_MAX_METRICS];
	const char *why;
};

// The driver's buffer of utilisation samples.
enum gpu_buffer_clock {
	BUFFER_CLOCK_UNKNOWN,
	BUFFER_CLOCK_REALTIME,
	BUFFER_CLOCK_MONOTONIC,
	BUFFER_UNUSABLE,
};

struct gpu_buffer {
	enum gpu_buffer_clock clock;
	uint64_t last_us[N_BUSY]; // newest sample taken, by the driver's clock
	int64_t offset_ns; // CLOCK_REALTIME less CLOCK_MONOTONIC
	uint64_t last_row_ns;
};

// Where traffic figures come from, best first.
enum traffic_method {
	TRAFFIC_COUNTERS, // of bytes
	TRAFFIC_GPM, // GPM's rates times time
	TRAFFIC_SAMPLED, // a rate measured for 20 ms a second, times time
	TRAFFIC_NONE,
};

struct gpu_traffic {
	enum traffic_method method;
	struct traffic_counter counters[N_TRAFFIC];
	uint64_t last_ns; // reading before; 0: none yet
	int64_t last_us; // the same by the driver's clock
	unsigned unsure; // readings in a row whose counters may have wrapped unseen
	bool lost_said;
};

struct gpu_gpm {
	bool supported;
	struct nvml_gpm_sample *samples[2];
	unsigned newest;
	uint64_t last_ns; // of the newest; 0: none yet
};

#define GPU_MAX_STRANGERS 64u // pids that are remembered

struct gpu_instance { // of a divided GPU
	struct nvml_device *handle;
	char uuid[96];
};

struct gpu {
	struct nvml_device *handle;
	unsigned index;
	int64_t entity;
	bool lost;
	bool mig;
	struct gpu_instance instances[GPU_MAX_INSTANCES];
	size_t n_instances;
	int instance; // the one that the job may use; -1: it is not known
	unsigned unknown_errors; // in a row
	char uuid[96];
	char name[96];
	char bus_id[32];
	uint32_t pcie_generation; // of the fastest link; 0: unknown
	uint32_t pcie_width;
	uint64_t pcie_peak; // bytes a second, each way; 0: unknown
	uint8_t never[N_GPU_GROUPS]; // a bit per metric that will not be told in this run
	uint8_t told[N_GPU_GROUPS]; // a bit per metric that had a value
	// Why the last reading without a value had none; NULL: there was no such reading.
	const char *gap[N_GPU_GROUPS][GPU_MAX_METRICS];
	int64_t errors[N_ERRORS]; // the last counts; VALUE_MISSING: not read yet
	unsigned error_events[N_ERRORS];
	bool xids_watched;
	int64_t xids;
	struct stream *streams[N_GPU_GROUPS];
	struct gpu_buffer buffer;
	struct gpu_traffic pcie;
	struct gpu_traffic nvlink;
	struct gpu_gpm gpm;
	uint64_t process_last_us; // newest process sample
	uint32_t strangers[GPU_MAX_STRANGERS]; // pids in the last list that were not the job's
	size_t n_strangers;
	int visible; // enum gpu_visible
};

// A process of the job that holds memory of a GPU.
struct gpu_process {
	int64_t entity;
	pid_t pid;
	struct stream *stream;
	bool listed; // in this reading
	int64_t memory; // VALUE_MISSING: not known
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
	bool nested; // in a pid namespace of its own: NVML's pids need not be ours
	char driver[80];
	char cuda[16]; // "12.4", or empty
	struct nvml_gpm_request *gpm_request;
	struct nvml_event_set *xids; // NULL: not told

	struct gpu_process *processes;
	size_t n_processes;
	size_t processes_capacity;
	bool processes_read; // at least once
	unsigned readings_unmatched; // of processes, in a row, while none of the job's was listed
	bool ever_matched;

	struct tree_member *members; // scratch
	size_t members_capacity;
	int64_t last_environ_entity; // members up to this one were asked for their environment
	bool visible_set; // some member has CUDA_VISIBLE_DEVICES
};

extern const struct group nvml_groups[N_GPU_GROUPS];

// nvml_row.c
bool gpu_wants(const struct gpu *g, enum gpu_group group, size_t metric);
bool gpu_wants_any(const struct gpu *g, enum gpu_group group);
// Never again, and why.
void gpu_never(
	struct sink *sink, struct gpu *g, enum gpu_group group, size_t metric, const char *reason);
// Appends a row at t_ns; says what is missing; notes a GPU that is lost.
void gpu_row(struct sink *sink, struct gpu *g, enum gpu_group group, uint64_t t_ns,
	const struct gpu_reading *reading);
// What a result outside of a row means for the GPU: false where it is lost (said by an event).
bool gpu_alive(struct sink *sink, struct gpu *g, uint64_t now_ns, int result);

// At the end: the reasons of those metrics that were wanted and never had a value.
void gpu_say_gaps(struct sink *sink, struct gpu *g);

// nvml_fill.c: one reading each of what is wanted.
// Whose memory and processes are the job's: its instance of a divided GPU, the GPU; NULL: which
// instance it is is not known.
struct nvml_device *gpu_part(const struct gpu *g);
extern const char gpu_part_reason[];
void gpu_fill_memory(struct nvml *n, struct gpu *g, struct gpu_reading *r);
void gpu_fill_clock(struct nvml *n, struct gpu *g, struct gpu_reading *r);
void gpu_fill_power(struct nvml *n, struct gpu *g, struct gpu_reading *r);
void gpu_fill_state(struct nvml *n, struct gpu *g, struct gpu_reading *r);

// Fields read in one call, each for a metric; fields of the same metric are added. A call that
// fails as a whole fails for each.
struct gpu_field {
	size_t metric;
	uint32_t id; // enum nvml_field_id
};
void gpu_fill_fields(struct nvml *n, struct gpu *g, enum gpu_group group,
	const struct gpu_field *wanted, size_t n_wanted, struct gpu_reading *r);

// nvml_errors.c: counts, and an event where one has grown.
void gpu_read_errors(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns);
// Xids: asks for them, of every GPU; takes those that came, before gpu_read_errors.
void gpu_xids_open(struct gpu_source *s, struct sink *sink);
void gpu_take_xids(struct gpu_source *s, struct sink *sink, uint64_t now_ns);

// nvml_busy.c
void gpu_read_busy(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns);

// nvml_traffic.c
void gpu_traffic_probe(struct gpu_source *s, struct gpu *g, struct sink *sink);
void gpu_read_pcie(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns);
void gpu_read_nvlink(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns);
// Rates (MiB/s, NAN where not told) that GPM measured over elapsed_ns until now_ns.
void gpu_traffic_rates(struct gpu *g, enum gpu_group group, struct sink *sink, uint64_t now_ns,
	uint64_t elapsed_ns, const double rates[N_TRAFFIC]);
const char *traffic_method_text(enum traffic_method method);

// nvml_gpm.c
void gpu_gpm_open(struct gpu_source *s, struct gpu *g, struct sink *sink);
void gpu_gpm_close(struct gpu_source *s, struct gpu *g);
void gpu_read_gpm(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns);

// nvml_process.c: every GPU at once, since a process may use several.
int gpu_read_processes(struct gpu_source *s, struct sink *sink, uint64_t now_ns);
// Where no process of the job was ever listed because of a container: says so.
void gpu_say_unmatched(struct gpu_source *s, struct sink *sink, bool at_end);

// nvml_describe.c
// Looks up what does not change and announces the GPU.
void gpu_describe(struct gpu_source *s, struct gpu *g, struct sink *sink);
// Announces its attributes again.
void gpu_describe_again(struct gpu_source *s, struct gpu *g, struct sink *sink);
// Which GPUs the recorder's own environment, then the job's processes' show.
void gpu_visible_from_self(struct gpu_source *s);
void gpu_visible_from_job(struct gpu_source *s, struct sink *sink);
