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
	gpu_row(sink, g, GPU_ERRORS, now_ns, &r);
	for (size_t i = 0; i < N_ERRORS && !g->lost; i++) {
		if (r.result[i] == NVML_OK && gpu_wants(g, GPU_ERRORS, i)) {
			note_growth(g, sink, now_ns, i, r.value[i]);
		}
	}
}
