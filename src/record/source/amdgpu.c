// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// AMD's GPUs, from the files of the kernel's driver: amdgpu (/sys/class/drm/*/device, its hwmon,
// its gpu_metrics) and its compute interface kfd (/sys/class/kfd). No library is loaded, and no
// file whose reading waits (pcie_bw) or needs root is read. In this order:
//
//   Groups       which metrics of gpu_metrics.h, and the file of each
//   State        what is kept of each GPU and each process
//   Files        numbers, links, and the driver's table gpu_metrics
//   Rows         how a reading becomes a value, a gap, a reason, or a lost GPU
//   Processes    who uses the GPUs
//   GPUs         kfd's nodes, and the constant properties
//   Source       groups, opening, closing
//
// Sources: the kernel's Documentation/gpu/amdgpu, and of its drivers amdgpu_pm.c, kfd_topology.c,
// kfd_process.c and kgd_pp_interface.h.

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "machine/file.h"
#include "machine/process.h"
#include "machine/procfs.h"
#include "machine/tree.h"
#include "record/sample/source.h"
#include "record/source/gpu_files.h"
#include "record/source/gpu_metrics.h"
#include "record/source/gpu_visible.h"

// Groups ------------------------------------------------------------------------------------------

// In the order of the source's table.
enum amd_group {
	AMD_BUSY,
	AMD_MEMORY,
	AMD_CLOCK,
	AMD_POWER,
	AMD_ENERGY,
	AMD_PCIE,
	AMD_STATE,
	AMD_ERRORS,
	AMD_JOB,
	AMD_PROCESS,
	N_AMD_GROUPS,
};

static const struct group amd_groups[N_AMD_GROUPS]; // at the end

#define ALTERNATIVES 2u

// The file of a metric: in the GPU's folder, or in that of its hwmon. A file with a label
// (temp2_label) is found by it. The first alternative that can be read is taken.
static const struct amd_file {
	enum amd_group group;
	size_t metric;
	bool hwmon;
	const char *names[ALTERNATIVES]; // with a label: the labels
	const char *labelled; // "temp", "freq"
	int64_t divisor; // of the file's unit to the metric's stored one
	int64_t least, most; // in the file's unit: what is beyond is not a value
} files[] = {
	{AMD_BUSY, BUSY_GPU, false, {"gpu_busy_percent"}, NULL, 1, 0, 100},
	{AMD_BUSY, BUSY_MEMORY, false, {"mem_busy_percent"}, NULL, 1, 0, 100},
	{AMD_MEMORY, MEMORY_USAGE, false, {"mem_info_vram_used"}, NULL, 1, 0, INT64_MAX},
	{AMD_MEMORY, MEMORY_LIMIT, false, {"mem_info_vram_total"}, NULL, 1, 1, INT64_MAX},
	{AMD_CLOCK, CLOCK_SM, true, {"sclk"}, "freq", 1000000, 0, INT64_C(100000000000)},
	{AMD_CLOCK, CLOCK_MEMORY, true, {"mclk"}, "freq", 1000000, 0, INT64_C(100000000000)},
	{AMD_POWER, POWER_WATTS, true, {"power1_average", "power1_input"}, NULL, 1000, 0,
		INT64_C(4000000000)},
	{AMD_STATE, STATE_TEMPERATURE, true, {"junction", "edge"}, "temp", 1000, 0, 300000},
	{AMD_STATE, STATE_MEMORY_TEMPERATURE, true, {"mem"}, "temp", 1000, 0, 300000},
	{AMD_STATE, STATE_POWER_LIMIT, true, {"power1_cap"}, NULL, 1000, 0, INT64_C(4000000000)},
	{AMD_ERRORS, ERRORS_REPLAYS, false, {"pcie_replay_count"}, NULL, 1, 0, INT64_MAX},
};

#define N_FILES ARRAY_LENGTH(files)

static size_t file_of(enum amd_group group, size_t metric)
{
	size_t i = 0;
	while (files[i].group != group || files[i].metric != metric) {
		i++;
	}
	return i;
}

// State -------------------------------------------------------------------------------------------

#define AMD_MAX_GPUS 256u
#define AMD_MAX_NODES 512u
#define TABLE_MAX 8192u // of gpu_metrics: more than any version has

enum { N_RESIDENCIES = 6 };
#define ENERGY_UNITS_PER_J 65536

struct amd_gpu {
	unsigned index; // ROCm's: the order of kfd's nodes
	uint64_t id; // kfd's
	char uuid[48];
	char name[96];
	char bus_id[24];
	char folder[64]; // "sys/bus/pci/devices/0000:03:00.0"
	char hwmon[128]; // below that; "": none
	char link[96]; // the folder of the device in the slot: the GPU, or the switch on its card
	bool part; // of a divided GPU, and not the first: the card's figures are with that
	bool integrated; // in a processor, with which it shares power and memory
	bool probed; // what it has is known: it was awake once
	int visible; // enum gpu_visible
	bool instinct; // its energy is counted in a known unit
	int64_t link_generation, link_width; // of the fastest link; 0: unknown
	int64_t clock_max_hz, memory_bytes; // 0: unknown
	struct host_file open[N_FILES];
	struct host_file table; // gpu_metrics
	struct host_file suspended; // power/runtime_status
	uint32_t residencies[N_RESIDENCIES]; // of the table's last reading
	struct gpu_errors errors;
	struct gpu_rows rows;
};

// A process of the job that uses GPUs.
struct amd_process {
	int64_t entity;
	pid_t pid;
	struct stream *stream;
	bool listed; // in this reading
	int64_t memory;
};

struct amd_source {
	struct amd_gpu *gpus; // [n_gpus]
	size_t n_gpus;
	int64_t host;
	uint64_t start_ns;
	int root_fd;
	struct tree *tree;
	bool nested; // in a separate pid namespace: kfd's pids are the host's
	struct amd_process *processes;
	size_t n_processes, processes_capacity;
	struct gpu_environs environs;
	bool visible_set; // some member has ROCR_VISIBLE_DEVICES or the like
	bool ever_matched; // a process of the job was listed
};

// Files -------------------------------------------------------------------------------------------

// Returns 0, GPU_FILES_GAP, or -errno if there will be no value any more.
static int read_file(struct host_file *f, const struct amd_file *file, int64_t *ret)
{
	int64_t value;
	int r = gpu_files_read(f, file->least, file->most, &value);
	if (r == 0) {
		*ret = value / file->divisor;
	}
	return r;
}

static bool read_number(struct amd_gpu *g, enum amd_group group, size_t metric, int64_t *ret)
{
	size_t i = file_of(group, metric);
	return read_file(&g->open[i], &files[i], ret) == 0;
}

// The driver's table of figures (gpu_metrics): a header with its size and version, and
// little-endian fields at offsets that depend on the version. All bits set: no value. Versions 2
// and 3 are those of processors with a GPU, and have other units.
struct table_layout {
	uint8_t format, content;
	uint16_t size;
	uint16_t energy; // 64 bits, in 2^-16 J on Instinct GPUs; elsewhere no unit is documented
	uint16_t throttling; // 64 bits, of enum smu_throttler in the kernel's amdgpu_smu.h; 0: none
	// 32 bits each: a count of the firmware's steps, then those in which PROCHOT, the power
	// limit, and the heat of the socket, its regulators and its memory lowered the clock; 0:
	// none
	uint16_t residencies;
};

static const struct table_layout layouts[] = {
	{1, 1, 96, 24, 0, 0},
	{1, 2, 104, 24, 0, 0},
	{1, 3, 120, 24, 112, 0},
	{1, 4, 288, 24, 0, 0},
	{1, 5, 360, 88, 0, 0},
	{1, 6, 1664, 16, 0, 32},
	{1, 7, 2208, 24, 0, 40},
	{1, 8, 3872, 24, 0, 40},
};

static uint64_t bytes_at(const unsigned char *table, size_t offset, size_t n)
{
	uint64_t value = 0;
	for (size_t i = 0; i < n; i++) {
		value |= (uint64_t)table[offset + i] << 8 * i;
	}
	return value;
}

// Reads the table in one call, because each call makes a new one. NULL: there is none, or it is of
// a version that is not known, which *ret_version has in any case (0: none).
static const struct table_layout *read_table(
	const struct amd_gpu *g, unsigned char table[TABLE_MAX], unsigned *ret_version)
{
	struct cursor text;
	*ret_version = 0;
	if (g->table.fd < 0 || file_pread(g->table.fd, (char *)table, TABLE_MAX, &text) < 0 ||
		text.end - text.at < 4) {
		return NULL;
	}
	size_t length = (size_t)(text.end - text.at);
	*ret_version = (unsigned)(table[2] << 8 | table[3]);
	for (size_t i = 0; i < ARRAY_LENGTH(layouts); i++) {
		const struct table_layout *l = &layouts[i];
		if (table[2] == l->format && table[3] == l->content) {
			return length >= l->size && bytes_at(table, 0, 2) == l->size ? l : NULL;
		}
	}
	return NULL;
}

// Rows --------------------------------------------------------------------------------------------

// At the end, of metrics that never had a value: their file was there, but had none.
static void say_gaps(struct amd_gpu *g)
{
	static const char slept[] = "the GPU slept, or was reset, all the time";
	for (size_t group = 0; group < AMD_PROCESS && !g->rows.lost; group++) {
		if (group == AMD_JOB) {
			gpu_rows_say_gaps(&g->rows, group,
				!g->probed ? slept
					   : "kfd's processes (/sys/class/kfd/kfd/proc) cannot be "
					     "read, or are another container's");
		} else if (!g->probed) {
			gpu_rows_never_group(&g->rows, group, slept);
		} else {
			gpu_rows_say_gaps(&g->rows, group, "the driver answered without a value");
		}
	}
}

// Reads the group's metrics that have a file. False: the GPU is lost.
static bool read_files(
	struct amd_gpu *g, enum amd_group group, uint64_t now_ns, struct gpu_rows_reading *ret)
{
	*ret = gpu_rows_nothing();
	for (size_t i = 0; i < N_FILES; i++) {
		const struct amd_file *file = &files[i];
		if (file->group != group || !gpu_rows_wants(&g->rows, group, file->metric)) {
			continue;
		}
		int r = read_file(&g->open[i], file, &ret->value[file->metric]);
		if (r == -ENODEV) {
			gpu_rows_lose(&g->rows, now_ns, g->index, g->name, g->uuid);
			return false;
		}
		if (r < 0 && r != GPU_FILES_GAP) {
			char reason[96];
			snprintf(reason, sizeof(reason), "%s: %s", file->names[0], strerror(-r));
			gpu_rows_never(&g->rows, group, file->metric, reason);
		}
	}
	return true;
}

// A GPU that sleeps, as those of laptops do, stays asleep: most readings would wake it.
static bool sleeps(struct amd_gpu *g)
{
	struct cursor text;
	return g->suspended.fd >= 0 && host_file_read(&g->suspended, &text) == 0 &&
	       cursor_literal(&text, "suspend");
}

// Bits of strain.gpu.throttle, from those of the table.
static int64_t throttling_of(uint64_t bits)
{
	const uint64_t power = UINT64_C(0xff00ff), hot = UINT64_C(0x3fff00000000),
		       hardware = UINT64_C(0xc00000000000);
	return (bits & power ? 4 : 0) | (bits & hot ? 32 : 0) | (bits & hardware ? 64 : 0);
}

// Of the time since the last reading, in which most of the steps were lowered.
static uint64_t residency_bits(struct amd_gpu *g, const unsigned char *table, size_t offset)
{
	enum { STEPS, PROCHOT, POWER, SOCKET, REGULATORS, MEMORY };
	static const uint64_t bits[N_RESIDENCIES] = {[PROCHOT] = UINT64_C(1) << 47,
		[POWER] = 1,
		[SOCKET] = UINT64_C(1) << 32,
		[REGULATORS] = UINT64_C(1) << 38,
		[MEMORY] = UINT64_C(1) << 34};
	uint32_t now[N_RESIDENCIES], before[N_RESIDENCIES];
	memcpy(before, g->residencies, sizeof(before));
	bool known = true;
	for (size_t i = 0; i < N_RESIDENCIES; i++) {
		now[i] = (uint32_t)bytes_at(table, offset + 4 * i, 4);
		known = known && now[i] != UINT32_MAX;
	}
	memcpy(g->residencies, now, sizeof(now));
	uint32_t steps = now[STEPS] - before[STEPS];
	if (!known || before[STEPS] == 0 || steps == 0) {
		return UINT64_MAX;
	}
	uint64_t all = 0;
	for (size_t i = PROCHOT; i < N_RESIDENCIES; i++) {
		all |= (uint64_t)(now[i] - before[i]) * 2 > steps ? bits[i] : 0;
	}
	return all;
}

// Why clocks are low: nothing is computed, or what the table says.
static int64_t read_throttling(struct amd_gpu *g)
{
	unsigned char table[TABLE_MAX];
	unsigned version;
	int64_t busy;
	const struct table_layout *l = read_table(g, table, &version);
	uint64_t bits = !l              ? UINT64_MAX
	                : l->throttling ? bytes_at(table, l->throttling, 8)
	                                : residency_bits(g, table, l->residencies);
	if (bits == UINT64_MAX) {
		return VALUE_MISSING;
	}
	bool idle = read_number(g, AMD_BUSY, BUSY_GPU, &busy) && busy == 0;
	return throttling_of(bits) | (idle ? 1 : 0);
}

static int64_t read_joules(struct amd_gpu *g)
{
	unsigned char table[TABLE_MAX];
	unsigned version;
	const struct table_layout *l = read_table(g, table, &version);
	uint64_t count = l ? bytes_at(table, l->energy, 8) : UINT64_MAX;
	return count < UINT64_MAX / 1000 ? (int64_t)(count * 1000 / ENERGY_UNITS_PER_J)
	                                 : VALUE_MISSING;
}

// "ue: 0\nce: 3\n".
static bool read_errors_file(int root_fd, const char *path, int64_t counts[N_ERRORS])
{
	char buffer[128];
	struct cursor text, key, value;
	if (file_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL) < 0) {
		return false;
	}
	while (file_next_key(&text, &key, &value)) {
		int64_t n = file_key_number(value);
		size_t metric = cursor_is(key, "ue")   ? ERRORS_UNCORRECTED
		                : cursor_is(key, "ce") ? ERRORS_CORRECTED
		                                       : N_ERRORS;
		if (metric < N_ERRORS && n != KEYED_ABSENT && n >= 0) {
			counts[metric] = n;
		}
	}
	return true;
}

static void note_errors(
	struct sink *sink, struct amd_gpu *g, uint64_t now_ns, const struct gpu_rows_reading *r)
{
	for (size_t i = 0; i < N_ERRORS; i++) {
		if (r->value[i] != VALUE_MISSING) {
			gpu_errors_note(&g->errors, sink, now_ns, g->rows.entity, g->index, g->name,
				i, r->value[i]);
		}
	}
}

// What a group has besides files.
static void read_more(
	struct amd_source *s, struct amd_gpu *g, enum amd_group group, struct gpu_rows_reading *r)
{
	char path[128];
	if (group == AMD_CLOCK && gpu_rows_wants(&g->rows, group, CLOCK_THROTTLE)) {
		r->value[CLOCK_THROTTLE] = read_throttling(g);
	} else if (group == AMD_ENERGY) {
		r->value[ENERGY_JOULES] = read_joules(g);
	} else if (group == AMD_STATE && gpu_rows_wants(&g->rows, group, STATE_GENERATION)) {
		int64_t generation, width;
		bool read = gpu_files_link(s->root_fd, g->link, "current", &generation, &width);
		r->value[STATE_GENERATION] = read ? generation : VALUE_MISSING;
		r->value[STATE_WIDTH] = read ? width : VALUE_MISSING;
	} else if (group == AMD_ERRORS) {
		snprintf(path, sizeof(path), "%s/ras/umc_err_count", g->folder);
		read_errors_file(s->root_fd, path, r->value);
	}
}

static void probe(struct amd_source *s, struct amd_gpu *g, struct sink *sink);

static int read_group(
	struct amd_source *s, struct sink *sink, uint64_t now_ns, enum amd_group group)
{
	bool any = false;
	for (size_t i = 0; i < s->n_gpus; i++) {
		struct amd_gpu *g = &s->gpus[i];
		struct gpu_rows_reading r;
		if (!gpu_rows_wants_any(&g->rows, group)) {
			continue;
		}
		any = true;
		if (!g->probed && !sleeps(g)) {
			probe(s, g, sink);
		}
		if (!g->probed || !gpu_rows_wants_any(&g->rows, group)) {
			continue;
		}
		if (group == AMD_STATE && faccessat(s->root_fd, g->folder, F_OK, 0) < 0) {
			gpu_rows_lose(&g->rows, now_ns, g->index, g->name, g->uuid);
		} else if (!sleeps(g) && read_files(g, group, now_ns, &r)) {
			read_more(s, g, group, &r);
			if (group == AMD_ERRORS) {
				note_errors(sink, g, now_ns, &r);
			}
			gpu_rows_put(&g->rows, group, now_ns, &r);
		}
	}
	return any ? 0 : -ENODEV;
}

// Processes ---------------------------------------------------------------------------------------
//
// kfd has a folder for each process that opened it, named by its pid in the initial namespace:
// proc/PID/vram_GPU has the bytes that it holds of a GPU, proc/PID/queues/*/gpuid (Linux 5.10) the
// GPUs that it gives work to. The runtime opens all GPUs of the machine and holds a little of each.

#define KFD_PROCESSES "sys/class/kfd/kfd/proc"
#define HELD_AT_ALL (INT64_C(32) << 20)
#define QUEUES_MAX 1024u
#define PROCESSES_MAX 4096u

static const char nested_reason[] =
	"the driver tells the host's process ids, and this container has its own; start it with "
	"the host's (docker --pid=host)";

// What one process holds of one GPU, or VALUE_MISSING; whether it gives work to it.
struct holding {
	int64_t bytes;
	bool works;
};

// Notes the GPUs of the process's queues. Returns false if it has none, or the driver names none.
static bool note_queues(struct amd_source *s, const char *process, struct holding *holdings)
{
	char path[400];
	snprintf(path, sizeof(path), KFD_PROCESSES "/%.32s/queues", process);
	_cleanup_closedir_ DIR *queues = gpu_files_directory(s->root_fd, path);
	const struct dirent *item;
	bool any = false;
	for (unsigned n = 0; queues && n < QUEUES_MAX && (item = readdir(queues)); n++) {
		int64_t id;
		snprintf(path, sizeof(path), KFD_PROCESSES "/%.32s/queues/%.255s/gpuid", process,
			item->d_name);
		if (item->d_name[0] == '.' || !gpu_files_number(s->root_fd, path, &id)) {
			continue;
		}
		any = true;
		for (size_t i = 0; i < s->n_gpus; i++) {
			holdings[i].works = holdings[i].works || s->gpus[i].id == (uint64_t)id;
		}
	}
	return any;
}

static void read_holdings(struct amd_source *s, const char *process, struct holding *holdings)
{
	for (size_t i = 0; i < s->n_gpus; i++) {
		char path[96];
		holdings[i] = (struct holding){VALUE_MISSING, false};
		snprintf(path, sizeof(path), KFD_PROCESSES "/%.32s/vram_%" PRIu64, process,
			s->gpus[i].id);
		if (!gpu_files_number(s->root_fd, path, &holdings[i].bytes) ||
			holdings[i].bytes < 0) {
			holdings[i].bytes = VALUE_MISSING;
		}
	}
	bool queues = note_queues(s, process, holdings);
	for (size_t i = 0; i < s->n_gpus; i++) {
		holdings[i].works = holdings[i].works ||
		                    (!queues && holdings[i].bytes >= HELD_AT_ALL);
	}
}

// Returns the job's process of that pid; NULL: it is another program's, or out of memory.
static struct amd_process *job_process(struct amd_source *s, pid_t pid)
{
	int64_t entity = tree_entity_of(s->tree, pid);
	for (size_t i = 0; i < s->n_processes; i++) {
		if (s->processes[i].entity == entity) {
			return &s->processes[i];
		}
	}
	void *items = s->processes;
	if (entity == 0 || array_reserve(&items, &s->processes_capacity, s->n_processes + 1,
				   sizeof(*s->processes)) < 0) {
		return NULL;
	}
	s->processes = items;
	s->processes[s->n_processes] = (struct amd_process){.entity = entity, .pid = pid};
	return &s->processes[s->n_processes++];
}

static void add_bytes(int64_t *sum, int64_t bytes)
{
	if (bytes != VALUE_MISSING && __builtin_add_overflow(*sum, bytes, sum)) {
		*sum = INT64_MAX;
	}
}

// Divides what a process holds between the job and others.
static void add_process(struct amd_source *s, struct amd_process *p, const struct holding *holdings,
	struct gpu_rows_reading *rows)
{
	for (size_t i = 0; i < s->n_gpus; i++) {
		add_bytes(&rows[i].value[p ? JOB_MEMORY : JOB_OTHER_MEMORY], holdings[i].bytes);
		rows[i].value[p ? JOB_PROCESSES : JOB_OTHER_PROCESSES] += holdings[i].works;
		if (p && (holdings[i].works || holdings[i].bytes > 0)) {
			p->listed = true;
			add_bytes(&p->memory, holdings[i].bytes);
		}
	}
}

static void put_process(struct amd_process *p, struct sink *sink, uint64_t now_ns)
{
	const int64_t values[N_PROCESS] = {
		[PROCESS_MEMORY] = p->memory, [PROCESS_UTILIZATION] = VALUE_MISSING};
	if (!p->stream) {
		p->stream = sink_stream(sink, p->entity, &amd_groups[AMD_PROCESS]);
	}
	stream_row(p->stream, now_ns, values);
}

static void put_processes(struct amd_source *s, struct sink *sink, uint64_t now_ns)
{
	for (size_t i = 0; i < s->n_processes;) {
		struct amd_process *p = &s->processes[i];
		bool lives = tree_entity_of(s->tree, p->pid) == p->entity;
		if (p->listed || lives) {
			put_process(p, sink, now_ns);
		}
		if (p->listed) {
			i++;
		} else {
			stream_close(p->stream);
			*p = s->processes[--s->n_processes];
		}
	}
}

// "1234"; 0: no pid.
static pid_t pid_of(const char *name)
{
	int64_t pid;
	struct cursor text = cursor_of(name, strlen(name));
	return name[0] != '-' && gpu_files_number_of(text, &pid) && pid > 0 && pid <= INT32_MAX
	               ? (pid_t)pid
	               : 0;
}

// Reads all processes of all GPUs into a row for each GPU. False: the list cannot be read, or all
// that it has are processes of another pid namespace.
static bool read_list(struct amd_source *s, struct gpu_rows_reading *rows)
{
	_cleanup_closedir_ DIR *list = gpu_files_directory(s->root_fd, KFD_PROCESSES);
	_cleanup_free_ struct holding *holdings = calloc(s->n_gpus, sizeof(*holdings));
	const struct dirent *item;
	bool any = false, here = false;
	if (!list || !holdings) {
		return false;
	}
	for (unsigned n = 0; n < PROCESSES_MAX && (item = readdir(list)); n++) {
		pid_t pid = pid_of(item->d_name);
		if (pid > 0) {
			struct amd_process *p = job_process(s, pid);
			read_holdings(s, item->d_name, holdings);
			add_process(s, p, holdings, rows);
			s->ever_matched = s->ever_matched || p;
			any = true;
			here = here || p || !process_is_nobody(pid);
		}
	}
	return here || !any || s->ever_matched;
}

static void put_users(struct amd_source *s, struct sink *sink, uint64_t now_ns)
{
	_cleanup_free_ struct gpu_rows_reading *rows = calloc(s->n_gpus, sizeof(*rows));
	for (size_t i = 0; i < s->n_processes; i++) {
		s->processes[i].listed = false;
		s->processes[i].memory = 0;
	}
	if (!rows || !read_list(s, rows)) {
		for (size_t i = 0; i < s->n_gpus; i++) {
			s->gpus[i].rows.reads[AMD_JOB]++; // without a value
		}
		return;
	}
	for (size_t i = 0; i < s->n_gpus; i++) {
		rows[i].value[JOB_UTILIZATION] = VALUE_MISSING;
		rows[i].value[JOB_OTHER_UTILIZATION] = VALUE_MISSING;
		if (gpu_rows_wants_any(&s->gpus[i].rows, AMD_JOB)) {
			gpu_rows_put(&s->gpus[i].rows, AMD_JOB, now_ns, &rows[i]);
		}
	}
	put_processes(s, sink, now_ns);
}

static size_t identify(const struct amd_source *s, struct gpu_identity *identities)
{
	for (size_t i = 0; i < s->n_gpus; i++) {
		identities[i] = (struct gpu_identity){
			.uuid = s->gpus[i].uuid, .name = s->gpus[i].name};
	}
	return s->n_gpus;
}

struct visible_choice {
	struct amd_source *s;
	enum gpu_visible verdicts[AMD_MAX_GPUS]; // so far
};

static bool add_member(void *context, struct cursor environment)
{
	struct visible_choice *choice = context;
	const char *rocr = procfs_environ_value(environment, "ROCR_VISIBLE_DEVICES");
	const char *hip = procfs_environ_value(environment, "HIP_VISIBLE_DEVICES");
	struct gpu_identity identities[AMD_MAX_GPUS];
	enum gpu_visible own[AMD_MAX_GPUS];
	const char *cuda = procfs_environ_value(environment, "CUDA_VISIBLE_DEVICES");
	if (!rocr && !hip && !cuda) {
		return false;
	}
	size_t n = identify(choice->s, identities);
	gpu_visible_hip(rocr, hip, cuda, identities, n, own);
	for (size_t i = 0; i < n; i++) {
		choice->verdicts[i] = own[i] == GPU_HIDDEN ? choice->verdicts[i] : own[i];
	}
	return true;
}

static void describe_again(struct amd_source *s, struct amd_gpu *g, struct sink *sink);

static void read_visible(struct amd_source *s, struct sink *sink, uint64_t now_ns)
{
	struct visible_choice choice = {.s = s};
	for (size_t i = 0; i < s->n_gpus; i++) {
		choice.verdicts[i] = s->visible_set ? (enum gpu_visible)s->gpus[i].visible
		                                    : GPU_HIDDEN;
	}
	if (!gpu_environs_read(&s->environs, s->tree, s->root_fd, now_ns, add_member, &choice)) {
		return;
	}
	s->visible_set = true;
	for (size_t i = 0; i < s->n_gpus; i++) {
		struct amd_gpu *g = &s->gpus[i];
		if (g->visible != (int)choice.verdicts[i] && !g->rows.lost) {
			g->visible = (int)choice.verdicts[i];
			describe_again(s, g, sink);
		}
	}
}

static int read_processes(void *state, struct sink *sink, uint64_t now_ns)
{
	struct amd_source *s = state;
	if (!s->tree) {
		return -ENODEV;
	}
	read_visible(s, sink, now_ns);
	if (!s->nested) {
		put_users(s, sink, now_ns);
	}
	return 0;
}

// GPUs --------------------------------------------------------------------------------------------

#define KFD_NODES "sys/class/kfd/kfd/topology/nodes"
#define AMD_VENDOR "0x1002"

// Lines of a node's "properties".
enum { NODE_PLACE, NODE_DOMAIN, NODE_CLOCK, NODE_TARGET, NODE_DEVICE, N_NODE };
static const char *const node_keys[N_NODE] = {
	[NODE_PLACE] = "location_id",
	[NODE_DOMAIN] = "domain",
	[NODE_CLOCK] = "max_engine_clk_fcompute",
	[NODE_TARGET] = "gfx_target_version",
	[NODE_DEVICE] = "device_id",
};

// The GPU of a node. Returns 0, *ret_id 0 for a node of CPUs; -EPERM: this process may not use it
// (a cgroup of devices); -ENOENT: there is no such node.
static int read_node(int root_fd, unsigned node, uint64_t *ret_id)
{
	char path[80], buffer[64];
	struct cursor text;
	int64_t id;
	snprintf(path, sizeof(path), KFD_NODES "/%u/gpu_id", node);
	int r = file_read_once(root_fd, path, buffer, sizeof(buffer), &text, NULL);
	*ret_id = r == 0 && gpu_files_number_of(text, &id) && id > 0 ? (uint64_t)id : 0;
	return r;
}

static bool amd_absent(int root_fd)
{
	bool there = false;
	for (unsigned node = 0; node < AMD_MAX_NODES && !there; node++) {
		uint64_t id;
		int r = read_node(root_fd, node, &id);
		if (r == -ENOENT) {
			break;
		}
		there = id > 0 || r == -EPERM || r == -EACCES;
	}
	return !there;
}

// "gfx90a": the target of AMD's compilers, 90010 here.
static void append_target(char *to, size_t size, int64_t target)
{
	snprintf(to, size, "gfx%d%x%x", (int)(target / 10000), (unsigned)(target / 100 % 100),
		(unsigned)(target % 100));
}

// libdrm's list of names: "7408,	00,	AMD Instinct MI250X", by device and revision.
static bool name_of_list(struct amd_source *s, const struct amd_gpu *g, char *to, size_t size)
{
	static const char *const lists[] = {"usr/share/libdrm/amdgpu.ids",
		"opt/amdgpu/share/libdrm/amdgpu.ids", "opt/rocm/share/libdrm/amdgpu.ids"};
	char path[96], device[16], revision[16], wanted[48];
	struct cursor text, line;
	bool found = false;
	snprintf(path, sizeof(path), "%s/device", g->folder);
	bool known = file_read_line(s->root_fd, path, device, sizeof(device));
	snprintf(path, sizeof(path), "%s/revision", g->folder);
	known = known && file_read_line(s->root_fd, path, revision, sizeof(revision)) &&
	        strlen(device) == 6 && strlen(revision) == 4;
	for (size_t i = 0; known && !found && i < ARRAY_LENGTH(lists); i++) {
		struct host_file file = HOST_FILE_CLOSED;
		bool read = host_file_open(&file, s->root_fd, lists[i], NULL) == 0 &&
		            host_file_read_to_end(&file, &text) == 0;
		snprintf(wanted, sizeof(wanted), "%s,\t%s,\t", device + 2, revision + 2);
		while (read && !found && cursor_line(&text, &line)) {
			size_t length = strlen(wanted);
			found = (size_t)(line.end - line.at) > length &&
			        strncasecmp(line.at, wanted, length) == 0;
			if (found) {
				snprintf(to, size, "%.*s", (int)(line.end - line.at - length),
					line.at + length);
			}
		}
		host_file_close(&file);
	}
	return found;
}

// The name of the list; else that in the card's memory, if it is one (it may be a part's number);
// else the target of its kernels.
static void name_gpu(struct amd_source *s, struct amd_gpu *g, const int64_t *node)
{
	char path[96], line[80];
	snprintf(path, sizeof(path), "%s/product_name", g->folder);
	if (name_of_list(s, g, line, sizeof(line)) ||
		(file_read_line(s->root_fd, path, line, sizeof(line)) &&
			(strstr(line, "Instinct") || strstr(line, "Radeon") ||
				strncmp(line, "AMD ", 4) == 0))) {
		bool whole = strncmp(line, "AMD", 3) == 0;
		snprintf(g->name, sizeof(g->name), "%s%s", whole ? "" : "AMD ", line);
	} else if (node[NODE_TARGET] > 0 && node[NODE_TARGET] < 1000000) {
		append_target(line, sizeof(line), node[NODE_TARGET]);
		snprintf(g->name, sizeof(g->name), "AMD %s", line);
	} else {
		snprintf(path, sizeof(path), "%s/device", g->folder);
		bool read = file_read_line(s->root_fd, path, line, sizeof(line)) &&
		            strlen(line) == 6;
		snprintf(g->name, sizeof(g->name), "AMD GPU%s%s", read ? " " : "",
			read ? line + 2 : "");
	}
}

// ROCm's name of a GPU is "GPU-" and its unique id in hexadecimal; of some there is none.
static void identify_gpu(struct amd_source *s, struct amd_gpu *g)
{
	char path[96], line[32];
	snprintf(path, sizeof(path), "%s/unique_id", g->folder);
	bool has = file_read_line(s->root_fd, path, line, sizeof(line)) && strlen(line) == 16 &&
	           strspn(line, "0123456789abcdefABCDEF") == 16 && strspn(line, "0") < 16;
	for (size_t i = 0; has && i < s->n_gpus && &s->gpus[i] < g; i++) {
		has = strcmp(s->gpus[i].uuid + strlen("GPU-"), line) != 0;
	}
	if (has) {
		snprintf(g->uuid, sizeof(g->uuid), "GPU-%s", line);
	} else {
		snprintf(g->uuid, sizeof(g->uuid), "pci-%s", g->bus_id);
	}
	if (g->part) {
		snprintf(g->uuid, sizeof(g->uuid), "pci-%s-part%u", g->bus_id, g->index);
	}
}

// Whether the device at the path is a port of the switch that some of AMD's cards have.
static bool is_card_port(int root_fd, const char *folder)
{
	char path[192], vendor[16], device[16];
	snprintf(path, sizeof(path), "%s/vendor", folder);
	if (!file_read_line(root_fd, path, vendor, sizeof(vendor))) {
		return false;
	}
	// Vega's switch has the vendor of AMD's processors, whose own ports are no part of a card.
	snprintf(path, sizeof(path), "%s/device", folder);
	return strcmp(vendor, AMD_VENDOR) == 0 ||
	       (strcmp(vendor, "0x1022") == 0 &&
		       file_read_line(root_fd, path, device, sizeof(device)) &&
		       (strcmp(device, "0x1470") == 0 || strcmp(device, "0x1471") == 0));
}

// The card's link is that of the outermost device on it: the inner links of a switch of its own say
// nothing about the slot.
static void find_link(struct amd_source *s, struct amd_gpu *g)
{
	char path[160];
	snprintf(g->link, sizeof(g->link), "%s", g->folder);
	while (strlen(g->link) + strlen("/..") < sizeof(g->link)) {
		snprintf(path, sizeof(path), "%s/..", g->link);
		if (!is_card_port(s->root_fd, path)) {
			break;
		}
		memcpy(g->link + strlen(g->link), "/..", sizeof("/.."));
	}
	gpu_files_link(s->root_fd, g->link, "max", &g->link_generation, &g->link_width);
}

static bool path_of(struct amd_source *s, const struct amd_gpu *g, const struct amd_file *file,
	size_t alternative, char path[160])
{
	const char *name = file->names[alternative], *folder = file->hwmon ? g->hwmon : g->folder;
	if (!name || !*folder) {
		return false;
	}
	if (file->labelled) {
		return gpu_files_labelled(
			s->root_fd, folder, file->labelled, name, "input", path, 160);
	}
	snprintf(path, 160, "%s/%s", folder, name);
	return true;
}

// Opens the file of a metric, or says why the GPU does not have it.
static void open_file(struct amd_source *s, struct amd_gpu *g, size_t number)
{
	const struct amd_file *file = &files[number];
	char path[160], reason[96];
	int r = -ENOENT;
	for (size_t i = 0; i < ALTERNATIVES && r < 0; i++) {
		int64_t value;
		if (!path_of(s, g, file, i, path)) {
			continue;
		}
		int opened = host_file_open(&g->open[number], s->root_fd, path, NULL);
		int read = opened < 0 ? opened : read_file(&g->open[number], file, &value);
		r = read == GPU_FILES_GAP ? 0 : read;
		if (r < 0) {
			host_file_close(&g->open[number]);
		}
	}
	if (r < 0) {
		bool absent = r == -ENOENT || r == -EOPNOTSUPP || r == -EINVAL || r == -ENOTDIR;
		snprintf(reason, sizeof(reason), "%s: %s", file->names[0],
			absent ? "the driver does not have it for this GPU" : strerror(-r));
		gpu_rows_never(&g->rows, file->group, file->metric, reason);
	}
}

static const char second_reason[] =
	"the driver reports 0: on cards with two GPUs, the first GPU's sensor covers both";

// What no file of the driver reports, of any GPU.
static const struct {
	enum amd_group group;
	size_t metric;
	const char *reason;
} unreported[] = {
	{AMD_MEMORY, MEMORY_RESERVED, "amdgpu does not report it"},
	{AMD_PCIE, TRAFFIC_TO_GPU,
		"amdgpu counts traffic only while a reader waits for a second (pcie_bw)"},
	{AMD_PCIE, TRAFFIC_FROM_GPU,
		"amdgpu counts traffic only while a reader waits for a second (pcie_bw)"},
	{AMD_ERRORS, ERRORS_PAGES, "only root can read it"},
	{AMD_ERRORS, ERRORS_ROWS, "AMD's GPUs do not remap rows"},
	{AMD_ERRORS, ERRORS_XIDS, "only NVIDIA's driver reports Xids"},
	{AMD_JOB, JOB_UTILIZATION, "kfd does not divide the load among processes"},
	{AMD_JOB, JOB_OTHER_UTILIZATION, "kfd does not divide the load among processes"},
};

// What the driver's table of this GPU lacks.
static void judge_table(struct amd_gpu *g, const struct table_layout *l, unsigned version)
{
	char reason[112];
	const char *why = g->table.fd < 0
	                          ? "the driver has no table gpu_metrics for this GPU (Linux 5.10)"
	                          : reason;
	snprintf(reason, sizeof(reason), "the driver's table gpu_metrics, version %u.%u, lacks it",
		version >> 8, version & 0xff);
	if (!l || (!l->throttling && !l->residencies)) {
		gpu_rows_never(&g->rows, AMD_CLOCK, CLOCK_THROTTLE, why);
	}
	if (!l || read_joules(g) == VALUE_MISSING) {
		gpu_rows_never(&g->rows, AMD_ENERGY, ENERGY_JOULES, why);
	} else if (!g->instinct) {
		gpu_rows_never(&g->rows, AMD_ENERGY, ENERGY_JOULES,
			"the unit of this GPU's counter is not documented");
	}
}

// A sensor that reports 0 is another's.
static void judge_power(struct amd_gpu *g)
{
	int64_t milliwatts;
	if (read_number(g, AMD_POWER, POWER_WATTS, &milliwatts) && milliwatts == 0) {
		gpu_rows_never(&g->rows, AMD_POWER, POWER_WATTS, second_reason);
		gpu_rows_never(&g->rows, AMD_ENERGY, ENERGY_JOULES, second_reason);
	}
	if (read_number(g, AMD_STATE, STATE_POWER_LIMIT, &milliwatts) && milliwatts == 0) {
		gpu_rows_never(&g->rows, AMD_STATE, STATE_POWER_LIMIT, second_reason);
	}
}

// In a processor: its table is of a kind of its own, or its sensors have a voltage of the
// processor.
static bool is_integrated(struct amd_source *s, const struct amd_gpu *g, unsigned version)
{
	char path[160];
	unsigned format = version >> 8;
	return format == 2 || format == 3 ||
	       (*g->hwmon && gpu_files_labelled(s->root_fd, g->hwmon, "in", "vddnb", "input", path,
				     sizeof(path)));
}

static void judge_integrated(struct amd_gpu *g)
{
	static const char power[] = "the sensor is the processor's, with its CPUs";
	gpu_rows_never(&g->rows, AMD_POWER, POWER_WATTS, power);
	gpu_rows_never(&g->rows, AMD_ENERGY, ENERGY_JOULES, power);
	gpu_rows_never(&g->rows, AMD_STATE, STATE_POWER_LIMIT, power);
	gpu_rows_never(&g->rows, AMD_STATE, STATE_GENERATION, "an integrated GPU has no link");
	gpu_rows_never(&g->rows, AMD_STATE, STATE_WIDTH, "an integrated GPU has no link");
	g->link_generation = g->link_width = 0;
}

// Finds out what a GPU that is awake has. Leaves it for later if the driver does not answer now (it
// is being reset).
static void probe(struct amd_source *s, struct amd_gpu *g, struct sink *sink)
{
	unsigned char table[TABLE_MAX];
	unsigned version;
	struct cursor text;
	char path[128];
	int r = g->table.fd < 0 ? 0 : file_pread(g->table.fd, (char *)table, TABLE_MAX, &text);
	if (r == -EPERM || r == -EBUSY || r == -EAGAIN) {
		return;
	}
	g->probed = true;
	for (size_t i = 0; i < N_FILES; i++) {
		open_file(s, g, i);
	}
	const struct table_layout *l = read_table(g, table, &version);
	g->integrated = is_integrated(s, g, version);
	if (g->integrated) {
		judge_integrated(g);
	}
	judge_table(g, l, version);
	judge_power(g);
	snprintf(path, sizeof(path), "%s/ras/umc_err_count", g->folder);
	if (faccessat(s->root_fd, path, F_OK, 0) < 0) {
		gpu_rows_never(
			&g->rows, AMD_ERRORS, ERRORS_UNCORRECTED, "this GPU's memory has no ECC");
		gpu_rows_never(
			&g->rows, AMD_ERRORS, ERRORS_CORRECTED, "this GPU's memory has no ECC");
	}
	if (g->link_generation == 0) {
		gpu_rows_never(&g->rows, AMD_STATE, STATE_GENERATION,
			"the kernel does not report the link");
		gpu_rows_never(
			&g->rows, AMD_STATE, STATE_WIDTH, "the kernel does not report the link");
	}
	describe_again(s, g, sink);
}

static void add_number(struct text *t, const char *key, double value)
{
	if (value > 0) {
		text_format(t, ",\"%s\":%.17g", key, value);
	}
}

static char *attributes_of(const struct amd_gpu *g)
{
	_cleanup_text_ struct text t = {0};
	text_format(&t, "{\"index\":%u,\"vendor\":\"AMD\",\"model\":", g->index);
	text_append_json(&t, g->name, strlen(g->name));
	text_append_string(&t, ",\"uuid\":");
	text_append_json(&t, g->uuid, strlen(g->uuid));
	text_append_string(&t, ",\"pci_bus_id\":");
	text_append_json(&t, g->bus_id, strlen(g->bus_id));
	if (g->integrated) {
		text_append_string(&t, ",\"integrated\":true");
	}
	add_number(&t, "memory_bytes", (double)g->memory_bytes);
	add_number(&t, "clock_sm_max_hz", (double)g->clock_max_hz);
	add_number(&t, "pcie_generation_max", (double)g->link_generation);
	add_number(&t, "pcie_width_max", (double)g->link_width);
	add_number(&t, "pcie_peak_bytes_per_s",
		gpu_metrics_link_bytes_per_s(g->link_generation, g->link_width));
	text_format(&t, ",\"visible\":%s}", g->visible == GPU_VISIBLE ? "true" : "false");
	return text_steal(&t);
}

static struct sink_entity entity_of(
	const struct amd_source *s, const struct amd_gpu *g, char name[128], const char *attributes)
{
	snprintf(name, 128, "GPU %u %s", g->index, g->name);
	return (struct sink_entity){.kind = ENTITY_GPU,
		.key = g->uuid,
		.name = name,
		.parent = s->host,
		.first_ns = s->start_ns,
		.attributes = attributes};
}

static void describe_again(struct amd_source *s, struct amd_gpu *g, struct sink *sink)
{
	char name[128];
	_cleanup_free_ char *attributes = attributes_of(g);
	struct sink_entity entity = entity_of(s, g, name, attributes);
	sink_entity_update(sink, g->rows.entity, &entity);
}

static void open_gpu(struct amd_source *s, struct amd_gpu *g, struct sink *sink)
{
	char path[160], name[128];
	struct sink_entity entity = entity_of(s, g, name, NULL);
	g->rows.entity = sink_entity(sink, &entity);
	snprintf(path, sizeof(path), "%s/power/runtime_status", g->folder);
	(void)host_file_open(&g->suspended, s->root_fd, path, NULL);
	snprintf(path, sizeof(path), "%s/gpu_metrics", g->folder);
	(void)host_file_open(&g->table, s->root_fd, path, NULL);
	snprintf(path, sizeof(path), "%s/mem_info_vram_total", g->folder); // wakes nothing
	if (!gpu_files_number(s->root_fd, path, &g->memory_bytes) || g->memory_bytes < 0) {
		g->memory_bytes = 0;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(unreported); i++) {
		gpu_rows_never(
			&g->rows, unreported[i].group, unreported[i].metric, unreported[i].reason);
	}
	if (s->nested) {
		gpu_rows_never_group(&g->rows, AMD_JOB, nested_reason);
	}
	for (size_t group = 0; group < AMD_JOB && g->part; group++) {
		gpu_rows_never_group(&g->rows, (enum amd_group)group,
			"the driver reports it for the whole GPU, which is divided: see its first "
			"part");
	}
	if (g->part) {
		g->probed = true;
	} else if (!sleeps(g)) {
		probe(s, g, sink);
	}
}

static void read_properties(const struct amd_source *s, unsigned node, int64_t values[N_NODE])
{
	char path[80];
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text = cursor_of("", 0);
	snprintf(path, sizeof(path), KFD_NODES "/%u/properties", node);
	int r = host_file_open(&file, s->root_fd, path, NULL);
	r = r < 0 ? r : host_file_read_to_end(&file, &text);
	file_keys_parse(r < 0 ? cursor_of("", 0) : text, node_keys, N_NODE, values);
	host_file_close(&file);
}

// Finds the GPU's device: the bus, device and function in 16 bits, as in the kernel's PCI_DEVID.
static void place_gpu(const struct amd_source *s, struct amd_gpu *g, const int64_t values[N_NODE])
{
	int64_t place = values[NODE_PLACE] > 0 ? values[NODE_PLACE] : 0;
	int64_t domain = values[NODE_DOMAIN] > 0 ? values[NODE_DOMAIN] : 0;
	snprintf(g->bus_id, sizeof(g->bus_id), "%04x:%02x:%02x.%x", (unsigned)(domain & 0xffffffff),
		(unsigned)(place >> 8 & 0xff), (unsigned)(place >> 3 & 0x1f),
		(unsigned)(place & 7));
	for (size_t i = 0; i < s->n_gpus; i++) {
		g->part = g->part || strcmp(s->gpus[i].bus_id, g->bus_id) == 0;
	}
	snprintf(g->folder, sizeof(g->folder), "sys/bus/pci/devices/%s", g->bus_id);
}

// The node of kfd becomes a GPU.
static void add_gpu(struct amd_source *s, unsigned node, uint64_t id, struct sink *sink)
{
	int64_t values[N_NODE];
	struct amd_gpu *g = &s->gpus[s->n_gpus];
	read_properties(s, node, values);
	*g = (struct amd_gpu){.index = (unsigned)s->n_gpus,
		.id = id,
		.table = HOST_FILE_CLOSED,
		.suspended = HOST_FILE_CLOSED,
		.visible = GPU_VISIBLE,
		.rows = {.groups = amd_groups, .n_groups = N_AMD_GROUPS, .sink = sink}};
	for (size_t i = 0; i < N_FILES; i++) {
		g->open[i] = HOST_FILE_CLOSED;
	}
	gpu_errors_init(&g->errors);
	place_gpu(s, g, values);
	g->clock_max_hz = values[NODE_CLOCK] > 0 && values[NODE_CLOCK] < 100000
	                          ? values[NODE_CLOCK] * 1000000
	                          : 0;
	g->instinct = values[NODE_TARGET] >= 90008 && values[NODE_TARGET] < 100000;
	name_gpu(s, g, values);
	identify_gpu(s, g);
	gpu_files_hwmon(s->root_fd, g->folder, NULL, g->hwmon, sizeof(g->hwmon));
	find_link(s, g);
	s->n_gpus++;
	open_gpu(s, g, sink);
}

// Source ------------------------------------------------------------------------------------------

static int read_busy(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, AMD_BUSY);
}

static int read_memory(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, AMD_MEMORY);
}

static int read_clock(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, AMD_CLOCK);
}

static int read_power(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, AMD_POWER);
}

static int read_energy(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, AMD_ENERGY);
}

static int read_state(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, AMD_STATE);
}

static int read_errors(void *state, struct sink *sink, uint64_t now_ns)
{
	return read_group(state, sink, now_ns, AMD_ERRORS);
}

static int read_nothing(void *state, struct sink *sink, uint64_t now_ns)
{
	(void)state;
	(void)sink;
	(void)now_ns;
	return 0;
}

// The driver asks the GPU's firmware for most of these, which takes it up to a millisecond; for
// errors it reads and resets counters of the hardware.
static const struct group amd_groups[N_AMD_GROUPS] = {
	[AMD_BUSY] = {"utilization", ENTITY_GPU, gpu_busy_metrics, N_BUSY, 100 * NS_PER_MS,
		read_busy, SHARED},
	[AMD_MEMORY] = {"memory", ENTITY_GPU, gpu_memory_metrics, N_MEMORY, 100 * NS_PER_MS,
		read_memory, SHARED},
	[AMD_CLOCK] = {"clock", ENTITY_GPU, gpu_clock_metrics, N_CLOCK, 200 * NS_PER_MS, read_clock,
		SHARED_NOT}, // residencies are of the time since the reading before
	[AMD_POWER] = {"power", ENTITY_GPU, gpu_power_metrics, N_POWER, 200 * NS_PER_MS, read_power,
		SHARED},
	[AMD_ENERGY] = {"energy", ENTITY_GPU, gpu_energy_metrics, N_ENERGY, NS_PER_S, read_energy,
		SHARED},
	[AMD_PCIE] = {"pcie", ENTITY_GPU, gpu_pcie_metrics, N_TRAFFIC, NS_PER_S, read_nothing,
		SHARED_NOT},
	[AMD_STATE] = {"state", ENTITY_GPU, gpu_state_metrics, N_STATE, NS_PER_S, read_state,
		SHARED},
	[AMD_ERRORS] = {"errors", ENTITY_GPU, gpu_error_metrics, N_ERRORS, 60 * NS_PER_S,
		read_errors, SHARED_NOT},
	[AMD_JOB] = {"job", ENTITY_GPU, gpu_job_metrics, N_JOB, NS_PER_S, read_nothing, SHARED_NOT},
	[AMD_PROCESS] = {"gpu_processes", ENTITY_PROCESS, gpu_process_metrics, N_PROCESS, NS_PER_S,
		read_processes, SHARED_NOT},
};

static void amd_close(void *state)
{
	struct amd_source *s = state;
	for (size_t i = 0; s && i < s->n_gpus; i++) {
		say_gaps(&s->gpus[i]);
		for (size_t k = 0; k < N_FILES; k++) {
			host_file_close(&s->gpus[i].open[k]);
		}
		host_file_close(&s->gpus[i].table);
		host_file_close(&s->gpus[i].suspended);
	}
	if (s) {
		gpu_environs_done(&s->environs);
		free(s->processes);
		free(s->gpus);
	}
	free(s);
}

static void visible_from_self(struct amd_source *s, struct sink *sink)
{
	struct gpu_identity identities[AMD_MAX_GPUS];
	enum gpu_visible verdicts[AMD_MAX_GPUS];
	size_t n = identify(s, identities);
	gpu_visible_hip(getenv("ROCR_VISIBLE_DEVICES"), getenv("HIP_VISIBLE_DEVICES"),
		getenv("CUDA_VISIBLE_DEVICES"), identities, n, verdicts);
	for (size_t i = 0; i < n; i++) {
		s->gpus[i].visible = (int)verdicts[i];
		describe_again(s, &s->gpus[i], sink);
	}
}

static bool knows_gpu(const struct amd_source *s, uint64_t id)
{
	bool known = false;
	for (size_t i = 0; i < s->n_gpus; i++) {
		known = known || s->gpus[i].id == id;
	}
	return known;
}

static int amd_open(
	const struct source_context *context, struct sink *sink, void **ret_state, struct error *e)
{
	struct amd_source *s = calloc(1, sizeof(*s));
	if (!s) {
		return error_errno(e, ENOMEM, "AMD's GPUs");
	}
	s->host = context->host;
	s->start_ns = context->start_ns;
	s->root_fd = context->root_fd;
	s->tree = context->tree;
	s->nested = !context->captured && process_namespace_is_nested(context->root_fd);
	s->gpus = calloc(AMD_MAX_GPUS, sizeof(*s->gpus));
	for (unsigned node = 0; s->gpus && node < AMD_MAX_NODES && s->n_gpus < AMD_MAX_GPUS;
		node++) {
		uint64_t id;
		if (read_node(s->root_fd, node, &id) == 0 && id > 0 && !knows_gpu(s, id)) {
			add_gpu(s, node, id, sink);
		}
	}
	if (!s->gpus || s->n_gpus == 0) {
		int r = s->gpus ? error_set(e, ENODEV,
					  "no AMD GPU (/sys/class/kfd); none is attached, or none "
					  "given to this container or job")
		                : error_errno(e, ENOMEM, "AMD's GPUs");
		amd_close(s);
		return r;
	}
	visible_from_self(s, sink);
	*ret_state = s;
	return 0;
}

const struct source source_amdgpu = {
	.name = "amdgpu",
	.help = "AMD GPUs: utilisation, memory, power, clocks, processes",
	.lane = LANE_DEVICE,
	.device = "GPU",
	.pci_vendor = "1002",
	.absent = amd_absent,
	.groups = amd_groups,
	.n_groups = N_AMD_GROUPS,
	.open = amd_open,
	.close = amd_close,
};
