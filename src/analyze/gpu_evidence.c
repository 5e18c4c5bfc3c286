// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The rows of evidence about GPUs: the job's, who else was on them, and those beside them.

#include <math.h>

#include "analyze/gpu_facts.h"
#include "analyze/names.h"
#include "analyze/verdict.h"
#include "analyze/words.h"

#define WORTH_A_WORD 0.05 // clock lost

static int put_busy(const struct gpu_facts *g, struct verdict *v)
{
	struct text value = {0};
	if (g->unused) {
		text_format(&value, "no process of the job on %s",
			g->n > 1 ? "those that it may use" : "the one that it may use");
		return evidence_put(v, "GPUs", &value, NAME_GPU_JOB_PROCESSES);
	}
	if (g->index < 0 || !isfinite(g->busy)) {
		return 0;
	}
	bool several = g->least_index != g->index && isfinite(g->least_busy);
	words_append_percent(&value, several ? g->least_busy : g->busy);
	if (several) {
		text_format(&value, " (GPU %d) to ", g->least_index);
		words_append_percent(&value, g->busy);
		text_format(&value, " (GPU %d)", g->index);
	}
	if (!g->known && g->n_used == 0) {
		text_append_string(&value, "; whether by the job is not known");
	}
	return evidence_put(v, "GPU busy", &value, NAME_GPU_BUSY);
}

// Of a divided GPU the driver tells little.
static int put_unknown(const struct gpu_facts *g, struct verdict *v)
{
	struct text value = {0};
	if (g->n == 0 || g->unused || (g->index >= 0 && isfinite(g->busy)) || g->n_used > 0) {
		return 0;
	}
	text_append_string(&value, g->used ? "its memory filled while the job ran"
					   : "whether the job uses one is not known");
	text_append_string(&value, g->divided ? "; divided into instances (MIG)" : "");
	return evidence_put(v, "GPU", &value, NAME_GPU_MEMORY);
}

static int put_activity(const struct gpu_facts *g, struct verdict *v)
{
	const struct {
		const char *name;
		double value;
	} parts[] = {{"multiprocessors", g->sm_activity}, {"occupancy", g->occupancy},
		{"tensor cores", g->tensor_activity}, {"memory bandwidth", g->dram_activity}};
	struct text value = {0};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (isfinite(parts[i].value)) {
			text_format(&value, "%s%s ", value.length ? ", " : "", parts[i].name);
			words_append_percent(&value, parts[i].value);
		}
	}
	return value.length ? evidence_put(v, "GPU activity", &value, NAME_GPU_SM) : 0;
}

// Why its clock was lower, and what that cost.
static int put_clock(const struct gpu_facts *g, struct verdict *v)
{
	struct text value = {0};
	bool slowed = g->slowed > 0, capped = g->capped > 0;
	if (!(g->clock_lost >= WORTH_A_WORD) && !slowed) {
		return 0;
	}
	if (isfinite(g->clock_lost)) {
		words_append_percent(&value, g->clock_lost);
		text_append_string(&value, " below the highest while busy");
	} else {
		text_append_string(&value, "how far it was down is not known");
	}
	if (slowed) {
		text_append_string(&value, "; heat or hardware slowdown ");
		words_append_percent(&value, g->slowed);
		text_append_string(&value, " of the time");
	}
	if (capped) {
		text_append_string(&value, "; at the power limit ");
		words_append_percent(&value, g->capped);
		text_append_string(&value, " of the time");
	}
	return evidence_put(v, "GPU clock", &value, NAME_GPU_THROTTLE);
}

static int put_shared(const struct gpu_facts *g, struct verdict *v)
{
	struct text value = {0};
	if (g->shared_index < 0) {
		return 0;
	}
	text_format(&value, "%.0f process%s of other programs on GPU %d", fmax(1, round(g->others)),
		g->others >= 1.5 ? "es" : "", g->shared_index);
	if (isfinite(g->others_busy)) {
		text_append_string(&value, ", busy ");
		words_append_percent(&value, g->others_busy);
	}
	if (isfinite(g->job_busy)) {
		text_append_string(&value, " (the job ");
		words_append_percent(&value, g->job_busy);
		text_append_string(&value, ")");
	}
	if (isfinite(g->others_bytes)) {
		text_append_string(&value, ", with ");
		words_append_bytes(&value, g->others_bytes);
	}
	return evidence_put(v, "GPU shared", &value, NAME_GPU_OTHERS_BUSY);
}

static int put_errors(const struct gpu_facts *g, struct verdict *v)
{
	static const char *const names[N_GPU_ERRORS] = {
		[GPU_ERROR_UNCORRECTED] = "uncorrected",
		[GPU_ERROR_CORRECTED] = "corrected",
		[GPU_ERROR_PAGES] = "retired pages",
		[GPU_ERROR_ROWS] = "remapped rows",
		[GPU_ERROR_REPLAYS] = "PCIe packets sent again",
		[GPU_ERROR_XIDS] = "logged by the driver (Xid)",
	};
	struct text value = {0};
	if (g->errors_index < 0) {
		return 0;
	}
	text_format(&value, "GPU %d: ", g->errors_index);
	const char *comma = "";
	for (size_t i = 0; i < N_GPU_ERRORS; i++) {
		if (g->errors[i] > 0) {
			text_format(&value, "%s%.0f %s", comma, g->errors[i], names[i]);
			comma = ", ";
		}
	}
	return evidence_put(v, "GPU errors", &value, NAME_GPU_UNCORRECTED);
}

static int put_neighbour(const struct gpu_facts *g, struct verdict *v)
{
	struct text value = {0};
	if (g->neighbour_index < 0) {
		return 0;
	}
	text_format(&value, "GPU %d: ", g->neighbour_index);
	words_append_percent(&value, g->neighbour_busy);
	text_append_string(&value, " busy");
	return evidence_put(v, "another program's", &value, NAME_GPU_BUSY);
}

static int put_spare(const struct gpu_facts *g, struct verdict *v)
{
	struct text value = {0};
	if (!g->known || g->n_used == 0 || g->n_used >= g->n) {
		return 0;
	}
	text_format(&value, "%u of %u that the job may use", g->n_used, g->n);
	return evidence_put(v, "GPUs used", &value, NAME_GPU_JOB_PROCESSES);
}

int gpu_evidence_build(const struct gpu_facts *g, struct verdict *ret)
{
	static int (*const puts[])(const struct gpu_facts *g, struct verdict *v) = {put_busy,
		put_unknown, put_spare, put_activity, put_clock, put_shared, put_errors,
		put_neighbour};
	int r = 0;
	for (size_t i = 0; i < sizeof(puts) / sizeof(puts[0]) && r == 0; i++) {
		r = puts[i](g, ret);
	}
	return r;
}
