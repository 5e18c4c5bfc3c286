// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What does not change about a GPU: its attributes, with what it can do at most, and whether the
// job may see it.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "record/host/file.h"
#include "record/job/tree.h"
#include "record/source/gpu_visible.h"
#include "record/source/nvml_gpu.h"

#define MAX_ENVIRONMENTS 64u // read at a time

// Bytes a second of one lane, each way, after line coding (8b/10b, 128b/130b, 242b/256b).
static const double lane_bytes_per_s[] = {
	[1] = 2.5e9 / 8 * 8 / 10,
	[2] = 5e9 / 8 * 8 / 10,
	[3] = 8e9 / 8 * 128 / 130,
	[4] = 16e9 / 8 * 128 / 130,
	[5] = 32e9 / 8 * 128 / 130,
	[6] = 64e9 / 8 * 242 / 256,
};

// Cores of one multiprocessor by compute capability.
static const struct {
	int major;
	int minor;
	unsigned cores;
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

// The fastest link that this GPU and its slot can have: an idle one shows less.
static void find_link(struct gpu_source *s, struct gpu *g)
{
	uint32_t generation = 0, width = 0;
	if (nvml_number(s->nvml, g->handle, NVML_PCIE_GENERATION_MAX, &generation) != NVML_OK ||
		nvml_number(s->nvml, g->handle, NVML_PCIE_WIDTH_MAX, &width) != NVML_OK) {
		return;
	}
	g->pcie_generation = generation;
	g->pcie_width = width;
	if (generation >= 1 && generation < ARRAY_LENGTH(lane_bytes_per_s) && width >= 1 &&
		width <= 32) {
		g->pcie_peak = (uint64_t)(lane_bytes_per_s[generation] * width);
	}
}

static void add_memory(struct gpu_source *s, struct gpu *g, struct text *t)
{
	struct nvml_memory_v2 memory = {0};
	uint32_t bits = 0, megahertz = 0;
	struct nvml_device *part = gpu_part(g);
	int result = part ? nvml_memory(s->nvml, part, &memory) : GPU_QUIET;
	add_told(t, "memory_bytes", result, (double)memory.total);
	result = nvml_clock_max(s->nvml, g->handle, NVML_CLOCK_MEMORY, &megahertz);
	add_told(t, "clock_memory_max_hz", result, megahertz * 1e6);
	int bus = nvml_number(s->nvml, g->handle, NVML_MEMORY_BUS_BITS, &bits);
	add_told(t, "memory_bus_bits", bus, bits);
	// NVML's memory clock is half the rate of transfers, for GDDR and HBM alike (A100: 5120
	// bits, 1215 MHz, 1555 GB/s).
	add_told(t, "memory_peak_bytes_per_s", result != NVML_OK ? result : bus,
		bits / 8.0 * megahertz * 1e6 * 2);
}

static void add_compute(struct gpu_source *s, struct gpu *g, struct text *t)
{
	int major = 0, minor = 0;
	uint32_t cores = 0, megahertz = 0;
	bool told = nvml_compute_capability(s->nvml, g->handle, &major, &minor) == NVML_OK;
	int result = nvml_number(s->nvml, g->handle, NVML_CORES, &cores);
	if (told) {
		text_format(t, ",\"compute_capability\":\"%d.%d\"", major, minor);
	}
	add_told(t, "cores", result, cores);
	for (size_t i = 0; i < ARRAY_LENGTH(multiprocessor_cores) && told; i++) {
		if (multiprocessor_cores[i].major == major &&
			multiprocessor_cores[i].minor == minor) {
			add_told(t, "multiprocessors", result,
				(double)(cores / multiprocessor_cores[i].cores));
		}
	}
	result = nvml_clock_max(s->nvml, g->handle, NVML_CLOCK_SM, &megahertz);
	add_told(t, "clock_sm_max_hz", result, megahertz * 1e6);
	result = nvml_clock_application(s->nvml, g->handle, NVML_CLOCK_SM, &megahertz);
	add_told(t, "clock_sm_application_hz", result, megahertz * 1e6);
}

static void add_rest(struct gpu_source *s, struct gpu *g, struct text *t)
{
	uint32_t milliwatts = 0;
	int result = nvml_number(s->nvml, g->handle, NVML_POWER_LIMIT, &milliwatts);
	add_told(t, "power_limit_w", result, milliwatts / 1e3);
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
	};
}

void gpu_describe(struct gpu_source *s, struct gpu *g, struct sink *sink)
{
	char name[128];
	snprintf(name, sizeof(name), "GPU %u %s", g->index, g->name);
	// Announced first, since the attributes' methods are found out by readings that may have
	// something to say about it.
	struct sink_entity entity = entity_of(s, g, name, NULL);
	g->entity = sink_entity(sink, &entity);
	if (g->handle) {
		find_link(s, g);
		gpu_gpm_open(s, g, sink);
		gpu_traffic_probe(s, g, sink);
	}
}

void gpu_describe_again(struct gpu_source *s, struct gpu *g, struct sink *sink)
{
	char name[128];
	snprintf(name, sizeof(name), "GPU %u %s", g->index, g->name);
	_cleanup_free_ char *attributes = attributes_of(s, g);
	struct sink_entity entity = entity_of(s, g, name, attributes);
	sink_entity_update(sink, g->entity, &entity);
}

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

// Which instances the list lets be used, as far as it says.
static void choose_instances(
	struct gpu_source *s, const struct gpu_identity *identities, const char *list)
{
	for (size_t i = 0; i < s->n_gpus; i++) {
		int instance = gpu_visible_instance(list, &identities[i]);
		s->gpus[i].instance = instance >= 0 ? instance : s->gpus[i].instance;
	}
}

void gpu_visible_from_self(struct gpu_source *s)
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

// A variable's value in NUL-separated, NUL-ended text; NULL where it is not set.
static const char *environment_value(const char *text, size_t length, const char *name)
{
	size_t name_length = strlen(name);
	for (const char *at = text, *end = text + length; at < end;) {
		const char *stop = memchr(at, '\0', (size_t)(end - at));
		if (!stop) {
			return NULL;
		}
		if ((size_t)(stop - at) > name_length && memcmp(at, name, name_length) == 0 &&
			at[name_length] == '=') {
			return at + name_length + 1;
		}
		at = stop + 1;
	}
	return NULL;
}

// Reads one process's environment. A process without the variable says nothing: it is a shell that
// sets it for its children, as often as one that sees every GPU.
static bool add_member(struct gpu_source *s, pid_t pid, enum gpu_visible *verdicts)
{
	char path[48];
	struct host_file file = HOST_FILE_CLOSED;
	struct cursor text = cursor_of("", 0);
	snprintf(path, sizeof(path), "proc/%d/environ", (int)pid);
	int r = host_file_open(&file, s->root_fd, path, NULL);
	r = r < 0 ? r : host_file_read(&file, &text);
	size_t length = r < 0 ? 0 : (size_t)(text.end - text.at);
	const char *list = environment_value(text.at, length, "CUDA_VISIBLE_DEVICES");
	const char *order = environment_value(text.at, length, "CUDA_DEVICE_ORDER");
	struct gpu_identity identities[NVML_MAX_GPUS];
	enum gpu_visible own[NVML_MAX_GPUS] = {0};
	size_t n = identify(s, identities);
	if (list) {
		gpu_visible(list, order, identities, n, own);
		choose_instances(s, identities, list);
	}
	for (size_t i = 0; i < n && list; i++) {
		verdicts[i] = own[i] == GPU_HIDDEN ? verdicts[i] : own[i];
	}
	host_file_close(&file);
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

void gpu_visible_from_job(struct gpu_source *s, struct sink *sink)
{
	enum gpu_visible verdicts[NVML_MAX_GPUS];
	int instances[NVML_MAX_GPUS]; // chosen so far
	size_t n = 0, asked = 0;
	bool set = false;
	for (size_t i = 0; i < s->n_gpus; i++) {
		instances[i] = s->gpus[i].instance;
		// The first members that say something replace what our own environment said.
		verdicts[i] = s->visible_set ? (enum gpu_visible)s->gpus[i].visible : GPU_HIDDEN;
	}
	if (tree_snapshot(s->tree, &s->members, &n, &s->members_capacity) < 0) {
		return;
	}
	for (size_t i = 0; i < n && asked < MAX_ENVIRONMENTS; i++) {
		// Entities are numbered in the order of joining.
		if (s->members[i].entity > s->last_environ_entity) {
			s->last_environ_entity = s->members[i].entity;
			set = add_member(s, s->members[i].pid, verdicts) || set;
			asked++;
		}
	}
	if (set) {
		s->visible_set = true;
		announce_visible(s, sink, verdicts, instances);
	}
}
