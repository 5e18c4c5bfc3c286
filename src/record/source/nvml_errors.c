// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Errors of a GPU: counts that hardly ever change, and an event where one has grown while the job
// ran. They are read every 10 s and once more when the job has ended (the sampler), so that errors
// of the last seconds, which are often what ended it, count.

#include <inttypes.h>

#include "base/cleanup.h"
#include "record/source/nvml_gpu.h"

// Of each kind and GPU: one that grows all the time has said enough.
#define EVENTS_MAX 5u
#define XIDS_MAX 64u // taken in one reading

// What an event calls them; NULL: no event. PCIe resends packets on healthy machines too.
static const char *const names[N_ERRORS] = {
	[ERRORS_UNCORRECTED] = "uncorrected ECC errors",
	[ERRORS_CORRECTED] = "corrected ECC errors",
	[ERRORS_PAGES] = "pages of memory retired",
	[ERRORS_ROWS] = "rows of memory remapped",
};

static void note_growth(
	struct gpu *g, struct sink *sink, uint64_t now_ns, size_t metric, int64_t count)
{
	int64_t before = g->errors[metric];
	g->errors[metric] = count;
	if (before == VALUE_MISSING || count <= before || !names[metric] ||
		g->error_events[metric]++ >= EVENTS_MAX) {
		return;
	}
	sink_event(sink, now_ns, "gpu_errors", g->entity, "GPU %u (%s): %" PRId64 " %s", g->index,
		g->name, count - before, names[metric]);
}

// Known kinds, as NVIDIA's list of Xids calls them.
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

void gpu_xids_open(struct gpu_source *s, struct sink *sink)
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
		if (g->error_events[ERRORS_XIDS]++ < EVENTS_MAX) {
			sink_event(sink, now_ns, "gpu_xid", g->entity,
				"GPU %u (%s): Xid %" PRIu64 ", %s", g->index, g->name, xid,
				xid_name(xid));
		}
	}
}

void gpu_take_xids(struct gpu_source *s, struct sink *sink, uint64_t now_ns)
{
	struct nvml_device *device = NULL;
	uint64_t xid = 0;
	// A driver that always has one would keep the lane.
	for (unsigned n = 0; s->xids && n < XIDS_MAX; n++) {
		int result = nvml_xids_next(s->nvml, s->xids, &device, &xid);
		if (result != NVML_OK) {
			return;
		}
		note_xid(s, sink, now_ns, device, xid);
	}
}

void gpu_read_errors(struct gpu_source *s, struct gpu *g, struct sink *sink, uint64_t now_ns)
{
	static const struct gpu_field fields[] = {
		{ERRORS_UNCORRECTED, NVML_FIELD_ECC_UNCORRECTED},
		{ERRORS_CORRECTED, NVML_FIELD_ECC_CORRECTED},
		{ERRORS_PAGES, NVML_FIELD_PAGES_RETIRED_SINGLE},
		{ERRORS_PAGES, NVML_FIELD_PAGES_RETIRED_DOUBLE},
		{ERRORS_ROWS, NVML_FIELD_ROWS_REMAPPED_CORRECTABLE},
		{ERRORS_ROWS, NVML_FIELD_ROWS_REMAPPED_UNCORRECTABLE},
		{ERRORS_REPLAYS, NVML_FIELD_PCIE_REPLAYS},
	};
	struct gpu_reading r = {0};
	for (size_t i = 0; i < N_ERRORS; i++) {
		r.result[i] = GPU_QUIET;
	}
	gpu_fill_fields(s->nvml, g, GPU_ERRORS, fields, ARRAY_LENGTH(fields), &r);
	if (g->xids_watched) {
		r.result[ERRORS_XIDS] = NVML_OK;
		r.value[ERRORS_XIDS] = g->xids;
	}
	gpu_row(sink, g, GPU_ERRORS, now_ns, &r);
	for (size_t i = 0; i < N_ERRORS && !g->lost; i++) {
		if (r.result[i] == NVML_OK && gpu_wants(g, GPU_ERRORS, i)) {
			note_growth(g, sink, now_ns, i, r.value[i]);
		}
	}
}
