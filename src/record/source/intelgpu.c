// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Intel's GPUs, from the files of the kernel's drivers i915 and xe: /sys/class/drm/card*/device,
// its hwmon, and /proc/PID/fdinfo of the job's processes. No library is loaded, no file needs root,
// and no device is opened. In this order:
//
//   Groups       which metrics of gpu_metrics.h
//   State        what is kept of each GPU, client and process
//   Sleep        when a GPU may be read
//   Rows         idle time, clocks, energy, sensors, the link
//   Clients      the rates of what fdinfo says
//   Processes    who uses the GPUs
//   GPUs         their files and constant properties
//   Source       groups, opening, closing
//
// Sleep: most files wake a card that sleeps (runtime PM), and a reading of one that is awake
// postpones its sleep by the driver's delay: 1 s (xe), 10 s (i915). So power/runtime_status, which
// wakes nothing, is read first. A card that is suspended gets a utilization of 0 and nothing else.
// One that is idle, and that no process of the job has open, is read for BURST_NS; then not at all
// for longer than the delay, so that it can fall asleep.
//
// Sources: the kernel's Documentation/gpu/drm-usage-stats.rst, Documentation/ABI, and of its
// drivers xe_gt_idle.c, xe_gt_throttle.c, xe_hwmon.c, xe_drm_client.c, intel_gt_sysfs_pm.c,
// i915_hwmon.c and i915_drm_client.c.

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "machine/file.h"
#include "machine/tree.h"
#include "record/sample/source.h"
#include "record/source/gpu_fdinfo.h"
#include "record/source/gpu_files.h"
#include "record/source/gpu_metrics.h"

// Groups ------------------------------------------------------------------------------------------

// In the order of the source's table.
enum intel_group {
	INTEL_BUSY,
	INTEL_MEMORY,
	INTEL_CLOCK,
	INTEL_POWER,
	INTEL_ENERGY,
	INTEL_PCIE,
	INTEL_STATE,
	INTEL_ERRORS,
	INTEL_JOB,
	INTEL_PROCESS,
	N_INTEL_GROUPS,
};

static const struct group intel_groups[N_INTEL_GROUPS]; // at the end

// A sensor of the card's hwmon. Channels have labels; those of i915, and of the first versions of
// xe, have none.
enum { SENSOR_ENERGY, SENSOR_LIMIT, SENSOR_TEMPERATURE, SENSOR_MEMORY, N_SENSORS };
static const struct sensor {
	enum intel_group group;
	size_t metric;
	const char *kind, *ending; // "temp", "input": temp2_input
	const char *labels[2]; // the first that exists is taken
	const char *plain; // the file where no label exists; NULL: none
	int64_t divisor; // of the file's unit to the metric's stored one
	int64_t least, most; // in the file's unit: what is beyond is not a value
} sensors[N_SENSORS] = {
	// Of the board, else of the chip. 0: the firmware did not answer.
	[SENSOR_ENERGY] = {INTEL_ENERGY, ENERGY_JOULES, "energy", "input", {"card", "pkg"},
		"energy1_input", 1000, 1, INT64_MAX},
	[SENSOR_LIMIT] = {INTEL_STATE, STATE_POWER_LIMIT, "power", "max", {"card", "pkg"},
		"power1_max", 1000, 1, INT64_C(4000000000)},
	[SENSOR_TEMPERATURE] = {INTEL_STATE, STATE_TEMPERATURE, "temp", "input", {"pkg", NULL},
		"temp1_input", 1000, 0, 300000},
	[SENSOR_MEMORY] = {INTEL_STATE, STATE_MEMORY_TEMPERATURE, "temp", "input", {"vram", NULL},
		NULL, 1000, 0, 300000},
};

// State -------------------------------------------------------------------------------------------

#define INTEL_MAX_GPUS 64u
#define INTEL_MAX_TILES 4u
#define INTEL_MAX_GTS 8u

// A GT is a part of the GPU that has a clock and sleeps on its own: a tile's engines of rendering
// and computing, or those of media.
struct gt {
	char folder[128];
	bool media;
	bool names; // `throttle` has the reasons' names, and not only whether there are any
	struct host_file idle, clock, throttle;
	int64_t idle_ms; // at idle_ns; VALUE_MISSING: not known
	uint64_t idle_ns;
};

struct intel_gpu {
	unsigned index;
	unsigned card; // of /sys/class/drm
	const struct intel_driver *driver;
	char bus_id[24];
	char uuid[32];
	char name[64];
	char folder[64]; // "sys/bus/pci/devices/0000:03:00.0"
	char render[16]; // "renderD128"; "": none
	char hwmon[96]; // "": none
	char link[80]; // the folder of the device in the slot: the GPU, or the switch on its card
	bool integrated; // in a processor, with which it shares power and memory
	bool known_discrete;
	bool board; // energy is the board's, not the chip's
	bool visible; // to the recorder, as a device file
	bool probed; // what it has is known: it was awake once
	int64_t link_generation, link_width; // of the fastest link; 0: unknown
	int64_t clock_max_hz; // 0: unknown
	struct gt gts[INTEL_MAX_GTS];
	size_t n_gts;
	struct host_file sensors[N_SENSORS];
	struct host_file status; // power/runtime_status
	uint64_t rest_ns; // without readings, so that it can fall asleep
	uint64_t burst_ns; // when the readings before the next rest began
	int64_t busy; // percent, at the last reading
	bool open; // a process of the job has it open
	bool slept; // at the last reading of its utilization
	int64_t energy; // at energy_ns, in the file's unit; VALUE_MISSING: not known
	uint64_t energy_ns;
	struct gpu_rows rows;
};

// An open device of one or more processes, which a descriptor that was duplicated, inherited or
// sent shares.
struct client {
	size_t gpu;
	int64_t id;
	uint64_t read_ns;
	int64_t counted_for; // the process that it was last added to
	bool read; // in this round
	int64_t busy[N_ENGINES], total[N_ENGINES]; // VALUE_MISSING: not known
	double share[N_ENGINES]; // of the time since the round before; NAN: not known
	int64_t memory; // VALUE_MISSING: not known
	bool works;
};

#define NODES_MAX 16u

// A process of the job.
struct intel_process {
	int64_t entity;
	struct stream *stream; // NULL: it had no GPU open yet
	bool lives, had;
	uint64_t list_ns; // when its descriptors are due to be listed
	uint64_t wait_ns; // from then to the next time
	size_t n_nodes;
	struct {
		unsigned fd;
		size_t gpu;
	} nodes[NODES_MAX];
};

// What a process, or all of the job's, has of one GPU.
struct use {
	bool open, works, unread, rated;
	double share[N_ENGINES];
	int64_t memory; // VALUE_MISSING: not known
};

struct intel_source {
	struct intel_gpu *gpus; // [n_gpus]
	size_t n_gpus;
	int64_t host;
	uint64_t start_ns;
	int root_fd;
	bool captured; // the time of a reading is what the caller says
	struct tree *tree;
	struct tree_member *members; // scratch
	size_t members_capacity;
	struct intel_process *processes;
	size_t n_processes, processes_capacity;
	struct client *clients;
	size_t n_clients, clients_capacity;
};

// The names of a driver's files, below the folder of a GT.
struct intel_driver {
	const char *name;
	int64_t idle_most; // idle time is counted up to this, and then from 0
	uint64_t delay_ns; // to sleep, if the file does not say
	const char *idle; // ms
	const char *clock, *clock_max; // MHz
	const char *reasons; // names of all; NULL: there is no such file
	const char *throttled; // whether there are any
	const char *reason; // the beginning of the files of each
};

enum { DRIVER_XE, DRIVER_I915, DRIVER_I915_OLD, N_DRIVERS };
static const struct intel_driver drivers[N_DRIVERS] = {
	[DRIVER_XE] = {"xe", INT64_MAX, NS_PER_S, "gtidle/idle_residency_ms", "freq0/act_freq",
		"freq0/rp0_freq", "freq0/throttle/reasons", "freq0/throttle/status",
		"freq0/throttle/reason_"},
	[DRIVER_I915] = {"i915", UINT32_MAX, 10 * NS_PER_S, "rc6_residency_ms", "rps_act_freq_mhz",
		"rps_RP0_freq_mhz", NULL, "throttle_reason_status", "throttle_reason_"},
	// Without folders of GTs.
	[DRIVER_I915_OLD] = {"i915", UINT32_MAX, 10 * NS_PER_S, "power/rc6_residency_ms",
		"gt_act_freq_mhz", "gt_RP0_freq_mhz", NULL, "throttle_reason_status",
		"throttle_reason_"},
};

static bool is_xe(const struct intel_gpu *g)
{
	return g->driver == &drivers[DRIVER_XE];
}

// Returns 0, GPU_FILES_GAP, or -errno if there will be no value any more.
static int read_number(struct host_file *f, int64_t least, int64_t most, int64_t *ret)
{
	int r = gpu_files_read(f, least, most, ret);
	// The firmware did not answer.
	return r == -EPROTO || r == -EOVERFLOW ? GPU_FILES_GAP : r;
}

static void never_file(
	struct intel_gpu *g, enum intel_group group, size_t metric, const char *name, int error)
{
	char reason[112];
	bool absent = error == -ENOENT || error == -EOPNOTSUPP || error == -EINVAL ||
	              error == -ENOTDIR;
	snprintf(reason, sizeof(reason), "%s: %s", name,
		absent ? "the driver does not have it for this GPU" : strerror(-error));
	gpu_rows_never(&g->rows, group, metric, reason);
}

// Sleep -------------------------------------------------------------------------------------------

#define IDLE_PERCENT 10 // at most: the GPU is idle, apart from these readings
#define BURST_NS (1100 * NS_PER_MS) // every group has its turn
#define DELAY_MAX_MS 60000

enum power { POWER_AWAKE, POWER_ASLEEP, POWER_BETWEEN };

// Wakes nothing. "unsupported": it never sleeps.
static enum power power_of(struct intel_gpu *g)
{
	struct cursor text;
	if (g->status.fd < 0) {
		return POWER_AWAKE;
	}
	if (host_file_read(&g->status, &text) < 0) {
		return POWER_BETWEEN;
	}
	return cursor_literal(&text, "active") || cursor_literal(&text, "unsupported") ? POWER_AWAKE
	       : cursor_literal(&text, "suspended") ? POWER_ASLEEP
	                                            : POWER_BETWEEN;
}

static void find_rest(const struct intel_source *s, struct intel_gpu *g)
{
	char path[128];
	int64_t delay_ms;
	uint64_t delay_ns = g->driver->delay_ns;
	snprintf(path, sizeof(path), "%s/power/autosuspend_delay_ms", g->folder);
	if (gpu_files_number(s->root_fd, path, &delay_ms)) {
		if (delay_ms < 0) { // it never sleeps
			return;
		}
		delay_ns = (uint64_t)(delay_ms < DELAY_MAX_MS ? delay_ms : DELAY_MAX_MS) *
		           NS_PER_MS;
	}
	g->rest_ns = delay_ns + delay_ns / 2 + NS_PER_S;
}

// Whether a GPU that is awake may be read now.
static bool has_turn(struct intel_gpu *g, uint64_t now_ns)
{
	if (g->open || g->busy > IDLE_PERCENT || g->rest_ns == 0 ||
		now_ns - g->burst_ns >= BURST_NS + g->rest_ns) {
		g->burst_ns = now_ns;
	}
	return now_ns - g->burst_ns < BURST_NS;
}

// Forgets what rates are computed from: counters may begin anew.
static void forget(struct intel_gpu *g)
{
	for (size_t i = 0; i < g->n_gts; i++) {
		g->gts[i].idle_ms = VALUE_MISSING;
	}
	g->energy = VALUE_MISSING;
	g->busy = 0;
}

// Rows --------------------------------------------------------------------------------------------

// The time for rates: a reading may come later than its row says, and `doctor` asks for several at
// once, with times of its own.
static uint64_t rate_ns(const struct intel_source *s, uint64_t now_ns)
{
	return s->captured ? now_ns : clock_monotonic_ns();
}

// Idle time has a resolution of 1 ms.
#define SHORTEST_NS (50 * NS_PER_MS)

static void wait_for_rate(const struct intel_source *s, const struct intel_gpu *g)
{
	uint64_t elapsed_ns = rate_ns(s, 0) - g->gts[0].idle_ns;
	if (!s->captured && g->n_gts > 0 && g->gts[0].idle_ms != VALUE_MISSING &&
		elapsed_ns < SHORTEST_NS) {
		nanosleep(&(struct timespec){.tv_nsec = (long)(SHORTEST_NS - elapsed_ns)}, NULL);
	}
}

// Percent of the time since the reading before in which the GT was not in its idle state: an upper
// bound of its use, since it enters that state late, and an engine that waits is not in it.
static int read_gt_busy(const struct intel_source *s, struct intel_gpu *g, struct gt *gt,
	uint64_t row_ns, int64_t *ret)
{
	int64_t now_ms, before_ms = gt->idle_ms;
	int r = read_number(&gt->idle, 0, g->driver->idle_most, &now_ms);
	uint64_t now_ns = rate_ns(s, row_ns), elapsed_ns = now_ns - gt->idle_ns;
	*ret = VALUE_MISSING;
	if (r < 0) {
		return r;
	}
	gt->idle_ms = now_ms;
	gt->idle_ns = now_ns;
	if (before_ms == VALUE_MISSING || elapsed_ns == 0 || elapsed_ns > INT64_MAX) {
		return 0;
	}
	int64_t grown_ms = now_ms - before_ms;
	if (grown_ms < 0 && g->driver->idle_most == UINT32_MAX) {
		grown_ms += INT64_C(1) << 32;
	}
	double idle = (double)grown_ms * 1e6 / (double)elapsed_ns;
	// A count that fell, or that grew faster than time, began anew.
	if (grown_ms >= 0 && (double)grown_ms <= (double)elapsed_ns / 1e6 * 1.25 + 50) {
		*ret = idle >= 1 ? 0 : (int64_t)lrint(100 * (1 - idle));
	}
	return 0;
}

// The busiest GT. All but those of media must have a value: without, the GPU's is not known.
static int read_busy_row(const struct intel_source *s, struct intel_gpu *g, uint64_t now_ns,
	struct gpu_rows_reading *row)
{
	int64_t most = 0;
	wait_for_rate(s, g);
	for (size_t i = 0; i < g->n_gts; i++) {
		struct gt *gt = &g->gts[i];
		int64_t value;
		int r = read_gt_busy(s, g, gt, now_ns, &value);
		if (r == -ENODEV) {
			return r;
		}
		if (r < 0 && r != GPU_FILES_GAP && !gt->media) {
			never_file(g, INTEL_BUSY, BUSY_GPU, g->driver->idle, r);
		}
		if (value == VALUE_MISSING && !gt->media) {
			most = VALUE_MISSING;
		} else if (most != VALUE_MISSING && value > most) {
			most = value;
		}
	}
	g->busy = most == VALUE_MISSING ? g->busy : most;
	row->value[BUSY_GPU] = most;
	return 0;
}

// Reasons of lower clocks, and their bits in strain.gpu.throttle.
static const struct {
	const char *name;
	int64_t bit;
} throttle_reasons[] = {
	{"pl1", 4}, // power limits, over longer and shorter times
	{"pl2", 4},
	{"pl4", 4},
	{"thermal", 32},
	{"prochot", 64},
	{"ratl", 32}, // the average temperature
	{"vr_thermalert", 64}, // the voltage regulator is hot
	{"vr_tdc", 4}, // its current
	{"soc_thermal", 32},
	{"soc_avg_thermal", 32},
	{"mem_thermal", 32},
	{"vr_thermal", 64},
	{"iccmax", 4},
	{"pwrbrk", 128},
	{"psys_pl1", 4},
	{"psys_pl2", 4},
};

#define THROTTLE_IDLE 1
#define THROTTLE_UNKNOWN 8 // the hardware's slowdown, for a reason without a bit of its own

// "pl1 thermal", or "none".
static int64_t bits_of_names(struct cursor text)
{
	struct cursor word;
	int64_t bits = 0;
	while (cursor_word(&text, &word)) {
		int64_t bit = cursor_is(word, "none") ? 0 : THROTTLE_UNKNOWN;
		for (size_t i = 0; i < ARRAY_LENGTH(throttle_reasons); i++) {
			bit = cursor_is(word, throttle_reasons[i].name) ? throttle_reasons[i].bit
			                                                : bit;
		}
		bits |= bit;
	}
	return bits;
}

static int64_t bits_of_files(
	const struct intel_source *s, const struct intel_gpu *g, const struct gt *gt)
{
	int64_t bits = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(throttle_reasons); i++) {
		char path[192];
		int64_t set;
		snprintf(path, sizeof(path), "%s/%s%s", gt->folder, g->driver->reason,
			throttle_reasons[i].name);
		if (gpu_files_number(s->root_fd, path, &set) && set == 1) {
			bits |= throttle_reasons[i].bit;
		}
	}
	return bits ? bits : THROTTLE_UNKNOWN;
}

static int64_t read_throttling(
	const struct intel_source *s, const struct intel_gpu *g, struct gt *gt)
{
	struct cursor text;
	int64_t set;
	if (gt->names) {
		bool read = host_file_read(&gt->throttle, &text) == 0 && text.at < text.end &&
		            *text.at != '\n';
		return read ? bits_of_names(text) : VALUE_MISSING;
	}
	if (read_number(&gt->throttle, 0, 1, &set) < 0) {
		return VALUE_MISSING;
	}
	return set ? bits_of_files(s, g, gt) : 0;
}

// The fastest of the GPU's tiles, and the reasons of all.
static int read_clock_row(
	const struct intel_source *s, struct intel_gpu *g, struct gpu_rows_reading *row)
{
	int64_t fastest = 0, all = 0;
	for (size_t i = 0; i < g->n_gts; i++) {
		struct gt *gt = &g->gts[i];
		int64_t mhz = VALUE_MISSING, bits = VALUE_MISSING;
		if (gt->media) {
			continue;
		}
		int r = gpu_rows_wants(&g->rows, INTEL_CLOCK, CLOCK_SM)
		                ? read_number(&gt->clock, 0, 100000, &mhz)
		                : GPU_FILES_GAP;
		if (r == -ENODEV) {
			return r;
		}
		if (r < 0 && r != GPU_FILES_GAP) {
			never_file(g, INTEL_CLOCK, CLOCK_SM, g->driver->clock, r);
		}
		if (gpu_rows_wants(&g->rows, INTEL_CLOCK, CLOCK_THROTTLE)) {
			bits = read_throttling(s, g, gt);
		}
		bool known = r == 0 && fastest != VALUE_MISSING;
		fastest = !known ? VALUE_MISSING : mhz > fastest ? mhz : fastest;
		all = bits == VALUE_MISSING || all == VALUE_MISSING ? VALUE_MISSING : all | bits;
	}
	row->value[CLOCK_SM] = fastest;
	// The clock is off while every tile is in its idle state.
	row->value[CLOCK_THROTTLE] = all == VALUE_MISSING
	                                     ? all
	                                     : all | (fastest == 0 ? THROTTLE_IDLE : 0);
	return 0;
}

static void never_sensor(struct intel_gpu *g, size_t which, int error)
{
	const struct sensor *sensor = &sensors[which];
	char name[24];
	snprintf(name, sizeof(name), "%s*_%s", sensor->kind, sensor->ending);
	never_file(g, sensor->group, sensor->metric, name, error);
	if (which == SENSOR_ENERGY) {
		never_file(g, INTEL_POWER, POWER_WATTS, name, error);
	}
}

static int read_sensor(struct intel_gpu *g, size_t which, int64_t *ret)
{
	const struct sensor *sensor = &sensors[which];
	int64_t value;
	if (!gpu_rows_wants(&g->rows, sensor->group, sensor->metric)) {
		return GPU_FILES_GAP;
	}
	int r = read_number(&g->sensors[which], sensor->least, sensor->most, &value);
	if (r < 0 && r != GPU_FILES_GAP && r != -ENODEV) {
		never_sensor(g, which, r);
	} else if (r == 0) {
		*ret = value;
	}
	return r;
}

#define POWER_MAX_MILLIWATTS 4e6
// The hardware counts 2^18 J, 4 minutes at 1 kW, and the driver adds the turns that it sees.
#define ENERGY_PAUSE_MAX_NS (240 * NS_PER_S)

static int read_power_row(const struct intel_source *s, struct intel_gpu *g, uint64_t row_ns,
	struct gpu_rows_reading *row)
{
	int64_t now = VALUE_MISSING, before = g->energy;
	int r = read_sensor(g, SENSOR_ENERGY, &now);
	uint64_t now_ns = rate_ns(s, row_ns), elapsed_ns = now_ns - g->energy_ns;
	if (r < 0 && r != GPU_FILES_GAP) {
		return r == -ENODEV ? r : 0;
	}
	g->energy = now;
	g->energy_ns = now_ns;
	if (now == VALUE_MISSING || before == VALUE_MISSING || now < before || elapsed_ns == 0 ||
		elapsed_ns > ENERGY_PAUSE_MAX_NS) {
		return 0;
	}
	double milliwatts = (double)(now - before) * 1e6 / (double)elapsed_ns;
	if (milliwatts <= POWER_MAX_MILLIWATTS) {
		row->value[POWER_WATTS] = (int64_t)llrint(milliwatts);
	}
	return 0;
}

static int read_sensor_row(
	struct intel_gpu *g, enum intel_group group, struct gpu_rows_reading *row)
{
	for (size_t i = 0; i < N_SENSORS; i++) {
		int64_t *value = &row->value[sensors[i].metric];
		if (sensors[i].group != group) {
			continue;
		}
		int r = read_sensor(g, i, value);
		if (r == -ENODEV) {
			return r;
		}
		*value = r == 0 ? *value / sensors[i].divisor : VALUE_MISSING;
	}
	return 0;
}

static int read_row(const struct intel_source *s, struct intel_gpu *g, enum intel_group group,
	uint64_t now_ns, struct gpu_rows_reading *row)
{
	if (group == INTEL_BUSY) {
		return read_busy_row(s, g, now_ns, row);
	}
	if (group == INTEL_CLOCK) {
		return read_clock_row(s, g, row);
	}
	if (group == INTEL_POWER) {
		return read_power_row(s, g, now_ns, row);
	}
	int64_t generation, width;
	if (group == INTEL_STATE && gpu_rows_wants(&g->rows, group, STATE_GENERATION) &&
		gpu_files_link(s->root_fd, g->link, "current", &generation, &width)) {
		row->value[STATE_GENERATION] = generation;
		row->value[STATE_WIDTH] = width;
	}
	return read_sensor_row(g, group, row);
}

// It does nothing while it is suspended; in the time before it was, it may have.
static void put_asleep(
	struct intel_gpu *g, enum intel_group group, uint64_t now_ns, enum power power)
{
	struct gpu_rows_reading row = gpu_rows_nothing();
	forget(g);
	if (group == INTEL_BUSY) {
		row.value[BUSY_GPU] = g->slept && power == POWER_ASLEEP ? 0 : VALUE_MISSING;
		g->slept = power == POWER_ASLEEP;
		gpu_rows_put(&g->rows, group, now_ns, &row);
	}
}

static void probe(struct intel_source *s, struct intel_gpu *g, struct sink *sink);

static void lose(struct intel_gpu *g, uint64_t now_ns)
{
	gpu_rows_lose(&g->rows, now_ns, g->index, g->name, g->uuid);
}

static int read_group(
	struct intel_source *s, struct sink *sink, uint64_t now_ns, enum intel_group group)
{
	bool any = false;
	for (size_t i = 0; i < s->n_gpus; i++) {
		struct intel_gpu *g = &s->gpus[i];
		struct gpu_rows_reading row = gpu_rows_nothing();
		if (!gpu_rows_wants_any(&g->rows, group)) {
			continue;
		}
		any = true;
		if (group == INTEL_STATE && faccessat(s->root_fd, g->folder, F_OK, 0) < 0) {
			lose(g, now_ns);
			continue;
		}
		enum power power = power_of(g);
		if (power != POWER_AWAKE) {
			put_asleep(g, group, now_ns, power);
			continue;
		}
		g->slept = g->slept && group != INTEL_BUSY;
		if (!has_turn(g, now_ns)) {
			continue;
		}
		if (!g->probed) {
			probe(s, g, sink);
		}
		int r = gpu_rows_wants_any(&g->rows, group) ? read_row(s, g, group, now_ns, &row)
		                                            : GPU_FILES_GAP;
		if (r == -ENODEV) {
			lose(g, now_ns);
		} else if (r == 0) {
			gpu_rows_put(&g->rows, group, now_ns, &row);
		}
	}
	return any ? 0 : -ENODEV;
}

// Clients -----------------------------------------------------------------------------------------

#define CLIENTS_MAX 4096u
#define HELD_AT_ALL (INT64_C(32) << 20) // what the runtime allocates of a GPU that it only looks at

static void add_bytes(int64_t *sum, int64_t bytes)
{
	*sum = *sum == VALUE_MISSING ? 0 : *sum;
	if (__builtin_add_overflow(*sum, bytes, sum)) {
		*sum = INT64_MAX;
	}
}

static struct client *client_of(struct intel_source *s, size_t gpu, int64_t id)
{
	for (size_t i = 0; i < s->n_clients; i++) {
		if (s->clients[i].gpu == gpu && s->clients[i].id == id) {
			return &s->clients[i];
		}
	}
	void *items = s->clients;
	if (s->n_clients >= CLIENTS_MAX || array_reserve(&items, &s->clients_capacity,
						   s->n_clients + 1, sizeof(*s->clients)) < 0) {
		return NULL;
	}
	s->clients = items;
	struct client *c = &s->clients[s->n_clients++];
	*c = (struct client){.gpu = gpu, .id = id};
	for (size_t i = 0; i < N_ENGINES; i++) {
		c->busy[i] = c->total[i] = VALUE_MISSING;
	}
	return c;
}

// The share of its engines' time that a client had in a kind of engines since the round before.
// Counts may fall: then the larger one stands until it is passed. If the GPU's own clock falls, it
// began anew.
static double share_of(
	struct client *c, const struct gpu_fdinfo *f, size_t engine, bool cycles, uint64_t now_ns)
{
	int64_t before = c->busy[engine], now = f->busy[engine];
	int64_t total_before = c->total[engine], total = f->total[engine];
	bool anew = cycles && (total == VALUE_MISSING || total_before == VALUE_MISSING);
	c->total[engine] = total;
	if (now == VALUE_MISSING || before == VALUE_MISSING || anew) {
		c->busy[engine] = now;
		return NAN;
	}
	c->busy[engine] = now > before ? now : before;
	double elapsed = cycles ? (double)(total - total_before) : (double)(now_ns - c->read_ns);
	double share = (double)(c->busy[engine] - before) / (elapsed * (double)f->capacity[engine]);
	return elapsed <= 0 ? NAN : share > 1 ? 1 : share;
}

static void update_client(
	struct client *c, const struct intel_gpu *g, const struct gpu_fdinfo *f, uint64_t now_ns)
{
	bool any = false, counts = false;
	for (size_t i = 0; i < N_ENGINES; i++) {
		c->share[i] = share_of(c, f, i, is_xe(g), now_ns);
		counts = counts || f->busy[i] != VALUE_MISSING;
		any = any || f->busy[i] > 0;
	}
	c->memory = f->has_local ? f->local_bytes : g->integrated ? f->system_bytes : VALUE_MISSING;
	c->works = any || c->memory >= HELD_AT_ALL || (!counts && c->memory == VALUE_MISSING);
	c->read_ns = now_ns;
	c->read = true;
}

static void add_client(struct use *use, const struct client *c)
{
	for (size_t i = 0; i < N_ENGINES; i++) {
		if (!isnan(c->share[i])) {
			use->share[i] += c->share[i];
			use->rated = true;
		}
	}
	if (c->memory != VALUE_MISSING) {
		add_bytes(&use->memory, c->memory);
	}
	use->works = use->works || c->works;
}

// Processes ---------------------------------------------------------------------------------------

#define MAX_DESCRIPTORS 4096u
#define LIST_FIRST_NS NS_PER_S
#define LIST_MOST_NS (4 * NS_PER_S)

// The GPU of "/dev/dri/renderD128" or "/dev/dri/card1"; n_gpus: none.
static size_t gpu_of_node(const struct intel_source *s, const char *target)
{
	static const char folder[] = "/dev/dri/";
	char card[16];
	size_t i = 0;
	if (strncmp(target, folder, strlen(folder)) != 0) {
		return s->n_gpus;
	}
	const char *node = target + strlen(folder);
	for (; i < s->n_gpus; i++) {
		snprintf(card, sizeof(card), "card%u", s->gpus[i].card);
		if (strcmp(node, card) == 0 ||
			(*s->gpus[i].render && strcmp(node, s->gpus[i].render) == 0)) {
			break;
		}
	}
	return i;
}

static void list_nodes(const struct intel_source *s, struct intel_process *p, pid_t pid)
{
	char path[48], target[64];
	snprintf(path, sizeof(path), "proc/%d/fd", (int)pid);
	_cleanup_closedir_ DIR *list = gpu_files_directory(s->root_fd, path);
	const struct dirent *item;
	p->n_nodes = 0;
	for (unsigned i = 0;
		list && i < MAX_DESCRIPTORS && p->n_nodes < NODES_MAX && (item = readdir(list));
		i++) {
		int64_t fd;
		ssize_t n = readlinkat(dirfd(list), item->d_name, target, sizeof(target) - 1);
		struct cursor name = cursor_of(item->d_name, strlen(item->d_name));
		if (n <= 0 || !gpu_files_number_of(name, &fd) || fd < 0 || fd > INT_MAX) {
			continue;
		}
		target[n] = '\0';
		size_t gpu = gpu_of_node(s, target);
		if (gpu < s->n_gpus) {
			p->nodes[p->n_nodes].fd = (unsigned)fd;
			p->nodes[p->n_nodes++].gpu = gpu;
		}
	}
}

// A program opens its GPU once, mostly some time after it began: descriptors are listed every
// second at first, and later every four.
static void list_nodes_if_due(
	const struct intel_source *s, struct intel_process *p, pid_t pid, uint64_t now_ns)
{
	if (now_ns >= p->list_ns) {
		list_nodes(s, p, pid);
		p->wait_ns = 2 * p->wait_ns < LIST_MOST_NS ? 2 * p->wait_ns : LIST_MOST_NS;
		p->wait_ns = p->wait_ns < LIST_FIRST_NS ? LIST_FIRST_NS : p->wait_ns;
		p->list_ns = now_ns + p->wait_ns;
	}
}

// The process of an entity, which is expected at a place. NULL: out of memory.
static struct intel_process *process_of(struct intel_source *s, int64_t entity, size_t *place)
{
	for (size_t i = 0; i < s->n_processes; i++) {
		size_t at = (*place + i) % s->n_processes;
		if (s->processes[at].entity == entity) {
			*place = at + 1;
			return &s->processes[at];
		}
	}
	void *items = s->processes;
	if (array_reserve(&items, &s->processes_capacity, s->n_processes + 1,
		    sizeof(*s->processes)) < 0) {
		return NULL;
	}
	s->processes = items;
	s->processes[s->n_processes] = (struct intel_process){.entity = entity};
	*place = s->n_processes + 1;
	return &s->processes[s->n_processes++];
}

static void clear_uses(struct use *uses, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uses[i] = (struct use){.memory = VALUE_MISSING};
	}
}

// Adds what one descriptor says to the uses of its process and of the job.
static int add_descriptor(struct intel_source *s, const struct intel_process *p, pid_t pid,
	size_t node, uint64_t now_ns, struct use *own, struct use *job)
{
	size_t gpu = p->nodes[node].gpu;
	const struct intel_gpu *g = &s->gpus[gpu];
	struct gpu_fdinfo f;
	int r = gpu_fdinfo_read(s->root_fd, pid, p->nodes[node].fd, g->driver->name, g->bus_id, &f);
	if (r < 0) {
		own->works = own->works || (r == -EBADMSG && f.silent);
		return r;
	}
	struct client *c = client_of(s, gpu, f.id);
	if (!c) {
		return -ENOMEM;
	}
	if (!c->read) {
		update_client(c, g, &f, rate_ns(s, now_ns));
		add_client(job, c);
	}
	if (c->counted_for != p->entity) {
		add_client(own, c);
		c->counted_for = p->entity;
	}
	return 0;
}

static int64_t utilization_of(const struct intel_gpu *g, const struct use *use)
{
	double most = 0;
	if (use->unread) {
		return g->slept ? 0 : VALUE_MISSING;
	}
	for (size_t i = 0; i < N_ENGINES; i++) {
		most = use->share[i] > most ? use->share[i] : most;
	}
	most = most < 1 ? most : 1;
	return !use->open ? 0 : use->rated ? (int64_t)lrint(100 * most) : VALUE_MISSING;
}

static void put_process(struct intel_source *s, struct intel_process *p, struct sink *sink,
	uint64_t now_ns, const struct use *uses)
{
	int64_t values[N_PROCESS] = {
		[PROCESS_MEMORY] = VALUE_MISSING, [PROCESS_UTILIZATION] = VALUE_MISSING};
	bool open = false;
	for (size_t i = 0; i < s->n_gpus; i++) {
		if (!uses[i].open) {
			continue;
		}
		open = true;
		int64_t utilization = utilization_of(&s->gpus[i], &uses[i]);
		if (utilization != VALUE_MISSING) {
			add_bytes(&values[PROCESS_UTILIZATION], utilization);
		}
		if (uses[i].memory != VALUE_MISSING) {
			add_bytes(&values[PROCESS_MEMORY], uses[i].memory);
		}
	}
	if (!open && !p->had) {
		return;
	}
	if (!open) { // it closed the last one
		values[PROCESS_MEMORY] = values[PROCESS_UTILIZATION] = 0;
	}
	p->had = open;
	if (!p->stream) {
		p->stream = sink_stream(sink, p->entity, &intel_groups[INTEL_PROCESS]);
	}
	stream_row(p->stream, now_ns, values);
}

// Reads the descriptors of one process. own: scratch.
static void read_process(struct intel_source *s, struct intel_process *p, pid_t pid,
	struct sink *sink, uint64_t now_ns, struct use *own, struct use *job)
{
	clear_uses(own, s->n_gpus);
	list_nodes_if_due(s, p, pid, now_ns);
	for (size_t i = 0; i < p->n_nodes; i++) {
		size_t gpu = p->nodes[i].gpu;
		struct intel_gpu *g = &s->gpus[gpu];
		if (g->rows.lost) {
			continue;
		}
		own[gpu].open = job[gpu].open = g->open = true;
		if (is_xe(g) && power_of(g) != POWER_AWAKE) {
			own[gpu].unread = job[gpu].unread = true;
		} else if (add_descriptor(s, p, pid, i, now_ns, &own[gpu], &job[gpu]) < 0) {
			p->list_ns = now_ns; // it may have been closed
		}
	}
	put_process(s, p, sink, now_ns, own);
}

static void put_job(
	struct intel_source *s, uint64_t now_ns, const struct use *job, const int64_t *processes)
{
	for (size_t i = 0; i < s->n_gpus; i++) {
		struct intel_gpu *g = &s->gpus[i];
		struct gpu_rows_reading row = gpu_rows_nothing();
		if (!gpu_rows_wants_any(&g->rows, INTEL_JOB)) {
			continue;
		}
		row.value[JOB_UTILIZATION] = utilization_of(g, &job[i]);
		row.value[JOB_MEMORY] = !job[i].open    ? 0
		                        : job[i].unread ? VALUE_MISSING
		                                        : job[i].memory;
		row.value[JOB_PROCESSES] = job[i].unread ? VALUE_MISSING : processes[i];
		gpu_rows_put(&g->rows, INTEL_JOB, now_ns, &row);
		g->open = job[i].open;
	}
}

static void drop_processes(struct intel_source *s)
{
	for (size_t i = 0; i < s->n_processes;) {
		struct intel_process *p = &s->processes[i];
		if (p->lives) {
			i++;
		} else {
			stream_close(p->stream);
			*p = s->processes[--s->n_processes];
		}
	}
}

// A GPU that could not be read keeps its clients.
static void drop_clients(struct intel_source *s, const struct use *job)
{
	for (size_t i = 0; i < s->n_clients;) {
		struct client *c = &s->clients[i];
		if (c->read || job[c->gpu].unread) {
			c->read = false;
			c->counted_for = 0;
			i++;
		} else {
			*c = s->clients[--s->n_clients];
		}
	}
}

static int read_processes(void *state, struct sink *sink, uint64_t now_ns)
{
	struct intel_source *s = state;
	struct use job[INTEL_MAX_GPUS] = {0}, own[INTEL_MAX_GPUS] = {0};
	int64_t processes[INTEL_MAX_GPUS] = {0};
	size_t n = 0, place = 0;
	if (!s->tree) {
		return -ENODEV;
	}
	if (tree_snapshot(s->tree, &s->members, &n, &s->members_capacity) < 0) {
		return 0;
	}
	clear_uses(job, s->n_gpus);
	for (size_t i = 0; i < s->n_processes; i++) {
		s->processes[i].lives = false;
	}
	for (size_t i = 0; i < n; i++) {
		struct intel_process *p = process_of(s, s->members[i].entity, &place);
		if (!p) {
			continue;
		}
		p->lives = true;
		read_process(s, p, s->members[i].pid, sink, now_ns, own, job);
		for (size_t k = 0; k < s->n_gpus; k++) {
			processes[k] += own[k].works;
		}
	}
	put_job(s, now_ns, job, processes);
	drop_processes(s);
	drop_clients(s, job);
	return 0;
}

// GPUs --------------------------------------------------------------------------------------------

#define INTEL_VENDOR "0x8086"
#define DRM_ITEMS_MAX 4096u

struct card {
	unsigned number;
	char bus_id[24];
	const struct intel_driver *driver;
};

// The last part of a link's target; of "../0000:03:00.0/drm/card0" the one before "/drm/".
static bool read_link_name(int root_fd, const char *path, char *to, size_t size)
{
	char target[512];
	ssize_t n = readlinkat(root_fd, path, target, sizeof(target) - 1);
	if (n <= 0 || n >= (ssize_t)sizeof(target) - 1) {
		return false;
	}
	target[n] = '\0';
	char *drm = strstr(target, "/drm/card");
	if (drm) {
		*drm = '\0';
	}
	const char *slash = strrchr(target, '/');
	return snprintf(to, size, "%s", slash ? slash + 1 : target) < (int)size;
}

// "0000:03:00.0".
static bool is_place(const char *name)
{
	size_t length = strlen(name);
	return length >= 12 && length < 20 && name[length - 2] == '.' && name[length - 5] == ':' &&
	       name[length - 8] == ':' && strspn(name, "0123456789abcdef:.") == length;
}

// Whether cardN of /sys/class/drm is an Intel GPU with a driver of this source.
static bool read_card(int root_fd, const char *name, struct card *ret)
{
	char path[128], line[32];
	int64_t number;
	struct cursor digits = cursor_of(name, strlen(name));
	if (!cursor_literal(&digits, "card") || !gpu_files_number_of(digits, &number) ||
		number < 0 || number > 99999) {
		return false;
	}
	ret->number = (unsigned)number;
	snprintf(path, sizeof(path), "sys/class/drm/card%u", ret->number);
	if (!read_link_name(root_fd, path, ret->bus_id, sizeof(ret->bus_id)) ||
		!is_place(ret->bus_id)) {
		return false;
	}
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/vendor", ret->bus_id);
	if (!file_read_line(root_fd, path, line, sizeof(line)) || strcmp(line, INTEL_VENDOR) != 0) {
		return false;
	}
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/driver", ret->bus_id);
	ret->driver = NULL;
	for (size_t i = 0; read_link_name(root_fd, path, line, sizeof(line)) && i < N_DRIVERS;
		i++) {
		if (!ret->driver && strcmp(line, drivers[i].name) == 0) {
			ret->driver = &drivers[i];
		}
	}
	return ret->driver;
}

static int compare_cards(const void *one, const void *other)
{
	return strcmp(((const struct card *)one)->bus_id, ((const struct card *)other)->bus_id);
}

// In the order of their places.
static size_t find_cards(int root_fd, struct card cards[INTEL_MAX_GPUS])
{
	_cleanup_closedir_ DIR *list = gpu_files_directory(root_fd, "sys/class/drm");
	const struct dirent *item;
	size_t n = 0;
	for (unsigned i = 0;
		list && i < DRM_ITEMS_MAX && n < INTEL_MAX_GPUS && (item = readdir(list)); i++) {
		bool is = read_card(root_fd, item->d_name, &cards[n]);
		for (size_t k = 0; is && k < n; k++) {
			is = strcmp(cards[k].bus_id, cards[n].bus_id) != 0;
		}
		n += is;
	}
	qsort(cards, n, sizeof(*cards), compare_cards);
	return n;
}

static bool intel_absent(int root_fd)
{
	struct card cards[INTEL_MAX_GPUS];
	return find_cards(root_fd, cards) == 0;
}

static const struct {
	char device[5];
	bool discrete;
	const char *name;
} models[] = {
	{"0b69", true, "Data Center GPU Max 1450"},
	{"0bd5", true, "Data Center GPU Max 1550"},
	{"0bd6", true, "Data Center GPU Max 1550"},
	{"0bd7", true, "Data Center GPU Max 1350"},
	{"0bd8", true, "Data Center GPU Max 1350"},
	{"0bd9", true, "Data Center GPU Max 1100"},
	{"0bda", true, "Data Center GPU Max 1100"},
	{"0bdb", true, "Data Center GPU Max 1100"},
	{"3e92", false, "UHD Graphics 630"},
	{"3e98", false, "UHD Graphics 630"},
	{"4680", false, "UHD Graphics 770"},
	{"4682", false, "UHD Graphics 730"},
	{"4690", false, "UHD Graphics 770"},
	{"4692", false, "UHD Graphics 730"},
	{"4693", false, "UHD Graphics 710"},
	{"46a6", false, "Iris Xe Graphics"},
	{"5690", true, "Arc A770M"},
	{"5691", true, "Arc A730M"},
	{"5692", true, "Arc A550M"},
	{"5693", true, "Arc A370M"},
	{"5694", true, "Arc A350M"},
	{"5696", true, "Arc A570M"},
	{"5697", true, "Arc A530M"},
	{"56a0", true, "Arc A770"},
	{"56a1", true, "Arc A750"},
	{"56a2", true, "Arc A580"},
	{"56a5", true, "Arc A380"},
	{"56a6", true, "Arc A310"},
	{"56b0", true, "Arc Pro A30M"},
	{"56b1", true, "Arc Pro A40/A50"},
	{"56b2", true, "Arc Pro A60M"},
	{"56b3", true, "Arc Pro A60"},
	{"56ba", true, "Arc A380E"},
	{"56bb", true, "Arc A310E"},
	{"56be", true, "Arc A750E"},
	{"56bf", true, "Arc A580E"},
	{"56c0", true, "Data Center GPU Flex 170"},
	{"56c1", true, "Data Center GPU Flex 140"},
	{"56c2", true, "Data Center GPU Flex 170V"},
	{"64a0", false, "Arc Graphics 1X0V"},
	{"7d55", false, "Arc Graphics"},
	{"9a49", false, "Xe Graphics"},
	{"9bc5", false, "UHD Graphics 630"},
	{"9bc8", false, "UHD Graphics 630"},
	{"a780", false, "UHD Graphics 770"},
	{"e20b", true, "Arc B580"},
	{"e20c", true, "Arc B570"},
	{"e211", true, "Arc Pro B60"},
	{"e212", true, "Arc Pro B50"},
	{"e223", true, "Arc Pro B70"},
};

static void name_gpu(const struct intel_source *s, struct intel_gpu *g)
{
	char path[96], line[16];
	snprintf(path, sizeof(path), "%s/device", g->folder);
	bool read = file_read_line(s->root_fd, path, line, sizeof(line)) && strlen(line) == 6 &&
	            strspn(line + 2, "0123456789abcdef") == 4;
	const char *device = read ? line + 2 : "";
	snprintf(g->name, sizeof(g->name), "Intel GPU%s%s", read ? " 8086:" : "", device);
	for (size_t i = 0; i < ARRAY_LENGTH(models); i++) {
		if (strcmp(models[i].device, device) == 0) {
			snprintf(g->name, sizeof(g->name), "Intel %s", models[i].name);
			g->known_discrete = models[i].discrete;
		}
	}
}

static void find_render_node(const struct intel_source *s, struct intel_gpu *g)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/drm", g->folder);
	_cleanup_closedir_ DIR *list = gpu_files_directory(s->root_fd, path);
	const struct dirent *item;
	for (unsigned i = 0; list && i < DRM_ITEMS_MAX && (item = readdir(list)); i++) {
		if (strncmp(item->d_name, "renderD", strlen("renderD")) == 0 &&
			strlen(item->d_name) < sizeof(g->render)) {
			snprintf(g->render, sizeof(g->render), "%.15s", item->d_name);
			return;
		}
	}
}

// A container has the folders of all GPUs, and the device files of its own.
static void find_visible(const struct intel_source *s, struct intel_gpu *g)
{
	char path[48];
	snprintf(path, sizeof(path), "dev/dri/%s", g->render);
	g->visible = !*g->render || faccessat(s->root_fd, "dev", F_OK, 0) < 0 ||
	             faccessat(s->root_fd, path, F_OK, 0) == 0;
}

static bool is_bridge(int root_fd, const char *folder)
{
	char path[128], line[16];
	snprintf(path, sizeof(path), "%s/vendor", folder);
	bool intel = file_read_line(root_fd, path, line, sizeof(line)) &&
	             strcmp(line, INTEL_VENDOR) == 0;
	snprintf(path, sizeof(path), "%s/class", folder);
	return intel && file_read_line(root_fd, path, line, sizeof(line)) &&
	       strncmp(line, "0x0604", strlen("0x0604")) == 0;
}

// Many cards have a switch of their own, behind which the GPU always says 2.5 GT/s and one lane.
// The link of the slot is that of the switch's upper port, two folders up.
static void find_link(const struct intel_source *s, struct intel_gpu *g)
{
	char lower[80], upper[80];
	bool known = gpu_files_link(
		s->root_fd, g->folder, "max", &g->link_generation, &g->link_width);
	snprintf(g->link, sizeof(g->link), "%s", g->folder);
	if (known && (g->link_generation > 1 || g->link_width > 1)) {
		return;
	}
	snprintf(lower, sizeof(lower), "%s/..", g->folder);
	snprintf(upper, sizeof(upper), "%s/../..", g->folder);
	g->link_generation = g->link_width = 0;
	if (is_bridge(s->root_fd, lower) && is_bridge(s->root_fd, upper)) {
		snprintf(g->link, sizeof(g->link), "%s", upper);
		gpu_files_link(s->root_fd, upper, "max", &g->link_generation, &g->link_width);
	}
}

// In a processor: on the first bus, without sensors, a link or memory of its own.
static bool is_integrated(const struct intel_source *s, const struct intel_gpu *g)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/vram_d3cold_threshold", g->folder);
	const char *bus = strchr(g->bus_id, ':');
	return bus && strncmp(bus, ":00:", strlen(":00:")) == 0 && !*g->hwmon &&
	       !g->known_discrete && g->link_generation == 0 &&
	       faccessat(s->root_fd, path, F_OK, 0) < 0;
}

static void add_gt(const struct intel_source *s, struct intel_gpu *g, const char *folder)
{
	if (g->n_gts < INTEL_MAX_GTS && faccessat(s->root_fd, folder, F_OK, 0) == 0) {
		struct gt *gt = &g->gts[g->n_gts++];
		snprintf(gt->folder, sizeof(gt->folder), "%s", folder);
		gt->idle_ms = VALUE_MISSING;
	}
}

// Of i915, the first is the main one; xe names them: "gt1-mc". Reading the name wakes the card.
static void find_gts(const struct intel_source *s, struct intel_gpu *g)
{
	char path[128], line[16];
	for (unsigned i = 0; i < INTEL_MAX_TILES * INTEL_MAX_GTS; i++) {
		unsigned tile = i / INTEL_MAX_GTS, gt = i % INTEL_MAX_GTS;
		if (is_xe(g)) {
			snprintf(path, sizeof(path), "%s/tile%u/gt%u", g->folder, tile, gt);
			add_gt(s, g, path);
		} else if (tile == 0) {
			snprintf(path, sizeof(path), "%s/drm/card%u/gt/gt%u", g->folder, g->card,
				gt);
			add_gt(s, g, path);
		}
	}
	if (g->n_gts == 0 && g->driver == &drivers[DRIVER_I915]) {
		g->driver = &drivers[DRIVER_I915_OLD];
		snprintf(path, sizeof(path), "%s/drm/card%u", g->folder, g->card);
		add_gt(s, g, path);
	}
	for (size_t i = 0; i < g->n_gts; i++) {
		snprintf(path, sizeof(path), "%s/gtidle/name", g->gts[i].folder);
		bool named = is_xe(g) && file_read_line(s->root_fd, path, line, sizeof(line));
		g->gts[i].media = named ? strlen(line) > 3 &&
		                                  strcmp(line + strlen(line) - 3, "-mc") == 0
		                        : i > 0 && !is_xe(g);
	}
}

// Opens a file and reads it once. Returns 0, also if it has no value this time, or -errno.
static int open_number(int root_fd, struct host_file *f, const char *folder, const char *name)
{
	char path[192];
	int64_t value;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int r = host_file_open(f, root_fd, path, NULL);
	r = r < 0 ? r : read_number(f, INT64_MIN, INT64_MAX, &value);
	r = r == GPU_FILES_GAP ? 0 : r;
	if (r < 0) {
		host_file_close(f);
	}
	return r;
}

static void open_gt(const struct intel_source *s, struct intel_gpu *g, struct gt *gt)
{
	const struct intel_driver *d = g->driver;
	char path[192];
	int64_t mhz;
	int idle = open_number(s->root_fd, &gt->idle, gt->folder, d->idle);
	if (gt->media) {
		return;
	}
	if (idle < 0) {
		never_file(g, INTEL_BUSY, BUSY_GPU, d->idle, idle);
	}
	int clock = open_number(s->root_fd, &gt->clock, gt->folder, d->clock);
	if (clock < 0) {
		never_file(g, INTEL_CLOCK, CLOCK_SM, d->clock, clock);
	}
	gt->names = d->reasons &&
	            open_number(s->root_fd, &gt->throttle, gt->folder, d->reasons) == 0;
	int throttle = gt->names ? 0
	                         : open_number(s->root_fd, &gt->throttle, gt->folder, d->throttled);
	if (throttle < 0) {
		never_file(g, INTEL_CLOCK, CLOCK_THROTTLE, d->throttled, throttle);
	}
	snprintf(path, sizeof(path), "%s/%s", gt->folder, d->clock_max);
	if (gpu_files_number(s->root_fd, path, &mhz) && mhz > 0 && mhz <= 100000 &&
		mhz * 1000000 > g->clock_max_hz) {
		g->clock_max_hz = mhz * 1000000;
	}
}

static void open_sensor(const struct intel_source *s, struct intel_gpu *g, size_t which)
{
	const struct sensor *sensor = &sensors[which];
	char path[160];
	int r = -ENOENT;
	bool labelled = false;
	for (size_t i = 0; i < ARRAY_LENGTH(sensor->labels) && sensor->labels[i] && r == -ENOENT;
		i++) {
		if (gpu_files_labelled(s->root_fd, g->hwmon, sensor->kind, sensor->labels[i],
			    sensor->ending, path, sizeof(path))) {
			labelled = true;
			r = open_number(s->root_fd, &g->sensors[which], g->hwmon,
				path + strlen(g->hwmon) + 1);
			g->board = g->board || (which == SENSOR_ENERGY && i == 0 && r == 0);
		}
	}
	if (!labelled && sensor->plain) {
		r = open_number(s->root_fd, &g->sensors[which], g->hwmon, sensor->plain);
	}
	if (r < 0) {
		never_sensor(g, which, r);
	}
}

static void open_sensors(const struct intel_source *s, struct intel_gpu *g)
{
	const char *reason = g->integrated
	                             ? "an integrated GPU has no sensor of its own"
	                             : "the driver has no sensors for this GPU (i915: since Linux "
	                               "6.2; virtual functions have none)";
	int64_t limit;
	for (size_t i = 0; i < N_SENSORS && !*g->hwmon; i++) {
		gpu_rows_never(&g->rows, sensors[i].group, sensors[i].metric, reason);
	}
	if (!*g->hwmon) {
		gpu_rows_never(&g->rows, INTEL_POWER, POWER_WATTS, reason);
		return;
	}
	for (size_t i = 0; i < N_SENSORS; i++) {
		open_sensor(s, g, i);
	}
	if (read_number(&g->sensors[SENSOR_LIMIT], 0, 0, &limit) == 0) {
		gpu_rows_never(&g->rows, INTEL_STATE, STATE_POWER_LIMIT,
			"the driver reports 0: the limit is off");
	}
}

static void describe_again(struct intel_source *s, struct intel_gpu *g, struct sink *sink);

// Finds out what a GPU that is awake has.
static void probe(struct intel_source *s, struct intel_gpu *g, struct sink *sink)
{
	g->probed = true;
	find_gts(s, g);
	if (g->n_gts == 0) {
		never_file(g, INTEL_BUSY, BUSY_GPU, g->driver->idle, -ENOENT);
		never_file(g, INTEL_CLOCK, CLOCK_SM, g->driver->clock, -ENOENT);
		never_file(g, INTEL_CLOCK, CLOCK_THROTTLE, g->driver->throttled, -ENOENT);
	}
	for (size_t i = 0; i < g->n_gts; i++) {
		open_gt(s, g, &g->gts[i]);
	}
	open_sensors(s, g);
	describe_again(s, g, sink);
}

static void add_number(struct text *t, const char *key, double value)
{
	if (value > 0) {
		text_format(t, ",\"%s\":%.17g", key, value);
	}
}

static char *attributes_of(const struct intel_gpu *g)
{
	_cleanup_text_ struct text t = {0};
	text_format(&t, "{\"index\":%u,\"vendor\":\"Intel\",\"model\":", g->index);
	text_append_json(&t, g->name, strlen(g->name));
	text_append_string(&t, ",\"uuid\":");
	text_append_json(&t, g->uuid, strlen(g->uuid));
	text_append_string(&t, ",\"pci_bus_id\":");
	text_append_json(&t, g->bus_id, strlen(g->bus_id));
	text_format(&t, ",\"driver\":\"%s\"", g->driver->name);
	if (g->integrated) {
		text_append_string(&t, ",\"integrated\":true");
	}
	text_append_string(&t, ",\"utilization_method\":\"idle residency (upper bound)\"");
	if (g->sensors[SENSOR_ENERGY].fd >= 0) {
		text_format(&t, ",\"power_domain\":\"%s\"", g->board ? "board" : "chip");
	}
	add_number(&t, "clock_sm_max_hz", (double)g->clock_max_hz);
	add_number(&t, "pcie_generation_max", (double)g->link_generation);
	add_number(&t, "pcie_width_max", (double)g->link_width);
	add_number(&t, "pcie_peak_bytes_per_s",
		gpu_metrics_link_bytes_per_s(g->link_generation, g->link_width));
	text_format(&t, ",\"visible\":%s}", g->visible ? "true" : "false");
	return text_steal(&t);
}

static struct sink_entity entity_of(const struct intel_source *s, const struct intel_gpu *g,
	char name[96], const char *attributes)
{
	snprintf(name, 96, "GPU %u %s", g->index, g->name);
	return (struct sink_entity){.kind = ENTITY_GPU,
		.key = g->uuid,
		.name = name,
		.parent = s->host,
		.first_ns = s->start_ns,
		.attributes = attributes};
}

static void describe_again(struct intel_source *s, struct intel_gpu *g, struct sink *sink)
{
	char name[96];
	_cleanup_free_ char *attributes = attributes_of(g);
	struct sink_entity entity = entity_of(s, g, name, attributes);
	sink_entity_update(sink, g->rows.entity, &entity);
}

// What no file of the drivers reports, of any GPU.
static const struct {
	enum intel_group group;
	size_t metric;
	const char *reason;
} unreported[] = {
	{INTEL_BUSY, BUSY_MEMORY, "no file of the driver reports it"},
	{INTEL_MEMORY, MEMORY_RESERVED, "no file of the driver reports it"},
	{INTEL_CLOCK, CLOCK_MEMORY, "no file of the driver reports it"},
	{INTEL_PCIE, TRAFFIC_TO_GPU, "the drivers do not count PCIe traffic"},
	{INTEL_PCIE, TRAFFIC_FROM_GPU, "the drivers do not count PCIe traffic"},
	{INTEL_ERRORS, ERRORS_UNCORRECTED, "no file of the driver counts errors of memory"},
	{INTEL_ERRORS, ERRORS_CORRECTED, "no file of the driver counts errors of memory"},
	{INTEL_ERRORS, ERRORS_PAGES, "no file of the driver reports it"},
	{INTEL_ERRORS, ERRORS_ROWS, "no file of the driver reports it"},
	{INTEL_ERRORS, ERRORS_REPLAYS, "the drivers do not count them"},
	{INTEL_ERRORS, ERRORS_XIDS, "only NVIDIA's driver reports Xids"},
	{INTEL_JOB, JOB_OTHER_PROCESSES, "only the job's processes are read"},
	{INTEL_JOB, JOB_OTHER_MEMORY, "only the job's processes are read"},
	{INTEL_JOB, JOB_OTHER_UTILIZATION, "only the job's processes are read"},
};

static void judge_constants(struct intel_gpu *g)
{
	const char *memory = g->integrated ? "an integrated GPU has no memory of its own"
	                                   : "no file of the driver reports the card's memory: "
	                                     "only that of each process";
	const char *link = g->integrated ? "an integrated GPU has no link"
	                                 : "the kernel does not report the slot's link";
	for (size_t i = 0; i < ARRAY_LENGTH(unreported); i++) {
		gpu_rows_never(
			&g->rows, unreported[i].group, unreported[i].metric, unreported[i].reason);
	}
	gpu_rows_never(&g->rows, INTEL_MEMORY, MEMORY_USAGE, memory);
	gpu_rows_never(&g->rows, INTEL_MEMORY, MEMORY_LIMIT, memory);
	if (g->link_generation == 0 || g->link_width == 0) {
		gpu_rows_never(&g->rows, INTEL_STATE, STATE_GENERATION, link);
		gpu_rows_never(&g->rows, INTEL_STATE, STATE_WIDTH, link);
	}
}

static void close_files(struct intel_gpu *g, bool open)
{
	struct host_file *files[3 * INTEL_MAX_GTS + N_SENSORS + 1] = {&g->status};
	size_t n = 1;
	for (size_t i = 0; i < N_SENSORS; i++) {
		files[n++] = &g->sensors[i];
	}
	for (size_t i = 0; i < INTEL_MAX_GTS; i++) {
		files[n++] = &g->gts[i].idle;
		files[n++] = &g->gts[i].clock;
		files[n++] = &g->gts[i].throttle;
	}
	for (size_t i = 0; i < n; i++) {
		if (open) {
			host_file_close(files[i]);
		} else {
			*files[i] = HOST_FILE_CLOSED;
		}
	}
}

// The card becomes a GPU. Nothing here wakes it.
static void add_gpu(struct intel_source *s, const struct card *card, struct sink *sink)
{
	char path[128], name[96];
	struct intel_gpu *g = &s->gpus[s->n_gpus];
	*g = (struct intel_gpu){.index = (unsigned)s->n_gpus,
		.card = card->number,
		.driver = card->driver,
		.energy = VALUE_MISSING,
		.burst_ns = s->start_ns,
		.rows = {.groups = intel_groups, .n_groups = N_INTEL_GROUPS, .sink = sink}};
	s->n_gpus++;
	close_files(g, false);
	snprintf(g->bus_id, sizeof(g->bus_id), "%s", card->bus_id);
	snprintf(g->uuid, sizeof(g->uuid), "pci-%s", card->bus_id);
	snprintf(g->folder, sizeof(g->folder), "sys/bus/pci/devices/%s", card->bus_id);
	name_gpu(s, g);
	find_render_node(s, g);
	find_visible(s, g);
	(void)gpu_files_hwmon(s->root_fd, g->folder, g->driver->name, g->hwmon, sizeof(g->hwmon));
	find_link(s, g);
	g->integrated = is_integrated(s, g);
	find_rest(s, g);
	snprintf(path, sizeof(path), "%s/power/runtime_status", g->folder);
	(void)host_file_open(&g->status, s->root_fd, path, NULL);
	struct sink_entity entity = entity_of(s, g, name, NULL);
	g->rows.entity = sink_entity(sink, &entity);
	judge_constants(g);
	if (power_of(g) == POWER_AWAKE) {
		probe(s, g, sink);
	} else {
		describe_again(s, g, sink);
	}
}

// Source ------------------------------------------------------------------------------------------

static int read_busy(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, INTEL_BUSY);
}

static int read_clock(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, INTEL_CLOCK);
}

static int read_power(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, INTEL_POWER);
}

static int read_energy(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, INTEL_ENERGY);
}

static int read_state(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, INTEL_STATE);
}

static int read_nothing(void *state, struct sink *sink, uint64_t now_ns)
{
	(void)state;
	(void)sink;
	(void)now_ns;
	return 0;
}

// Idle time has a resolution of 1 ms. Rates are of the time since the reading before, which another
// recorder's readings do not have.
static const struct group intel_groups[N_INTEL_GROUPS] = {
	[INTEL_BUSY] = {"utilization", ENTITY_GPU, gpu_busy_metrics, N_BUSY, 200 * NS_PER_MS,
		read_busy, SHARED_NOT},
	[INTEL_MEMORY] = {"memory", ENTITY_GPU, gpu_memory_metrics, N_MEMORY, NS_PER_S,
		read_nothing, SHARED_NOT},
	[INTEL_CLOCK] = {"clock", ENTITY_GPU, gpu_clock_metrics, N_CLOCK, 200 * NS_PER_MS,
		read_clock, SHARED},
	[INTEL_POWER] = {"power", ENTITY_GPU, gpu_power_metrics, N_POWER, 200 * NS_PER_MS,
		read_power, SHARED_NOT},
	[INTEL_ENERGY] = {"energy", ENTITY_GPU, gpu_energy_metrics, N_ENERGY, NS_PER_S, read_energy,
		SHARED},
	[INTEL_PCIE] = {"pcie", ENTITY_GPU, gpu_pcie_metrics, N_TRAFFIC, NS_PER_S, read_nothing,
		SHARED_NOT},
	[INTEL_STATE] = {"state", ENTITY_GPU, gpu_state_metrics, N_STATE, NS_PER_S, read_state,
		SHARED},
	[INTEL_ERRORS] = {"errors", ENTITY_GPU, gpu_error_metrics, N_ERRORS, 60 * NS_PER_S,
		read_nothing, SHARED_NOT},
	[INTEL_JOB] = {"job", ENTITY_GPU, gpu_job_metrics, N_JOB, NS_PER_S, read_nothing,
		SHARED_NOT},
	[INTEL_PROCESS] = {"gpu_processes", ENTITY_PROCESS, gpu_process_metrics, N_PROCESS,
		NS_PER_S, read_processes, SHARED_NOT},
};

// At the end, of metrics that never had a value.
static void say_gaps(struct intel_gpu *g)
{
	for (size_t group = 0; group < INTEL_PROCESS && !g->rows.lost; group++) {
		if (!g->probed && group != INTEL_JOB && group != INTEL_BUSY) {
			gpu_rows_never_group(&g->rows, group, "the GPU slept all the time");
		} else {
			gpu_rows_say_gaps(&g->rows, group,
				group != INTEL_JOB ? "the driver answered without a value"
				: g->slept
					? "the GPU slept, and reading its clients would wake it"
					: "the driver does not report it of its clients (i915 does "
					  "since Linux 6.8), or they cannot be read");
		}
	}
}

static void intel_close(void *state)
{
	struct intel_source *s = state;
	for (size_t i = 0; s && i < s->n_gpus; i++) {
		say_gaps(&s->gpus[i]);
		close_files(&s->gpus[i], true);
	}
	if (s) {
		free(s->members);
		free(s->processes);
		free(s->clients);
		free(s->gpus);
	}
	free(s);
}

static int intel_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	struct card cards[INTEL_MAX_GPUS];
	size_t n = find_cards(context->root_fd, cards);
	if (n == 0) {
		return error_set(e, ENODEV,
			"no Intel GPU with i915 or xe (/sys/class/drm); none is attached, or its "
			"driver is not loaded");
	}
	struct intel_source *s = calloc(1, sizeof(*s));
	if (!s || !(s->gpus = calloc(n, sizeof(*s->gpus)))) {
		free(s);
		return error_errno(e, ENOMEM, "Intel's GPUs");
	}
	s->host = context->host;
	s->start_ns = context->start_ns;
	s->root_fd = context->root_fd;
	s->captured = context->captured;
	s->tree = context->tree;
	for (size_t i = 0; i < n; i++) {
		add_gpu(s, &cards[i], sink);
	}
	*ret_state = s;
	return 0;
}

const struct source source_intelgpu = {
	.name = "intelgpu",
	.help = "Intel GPUs: utilisation, power, clocks, processes",
	.lane = LANE_DEVICE,
	.device = "GPU",
	.absent = intel_absent,
	.groups = intel_groups,
	.n_groups = N_INTEL_GROUPS,
	.open = intel_open,
	.close = intel_close,
};
