// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Energy by source.

#include "run/energy.h"

#include <math.h>

#include "base/text.h"
#include "base/words.h"
#include "run/analysis.h"
#include "run/gpu_facts.h"
#include "run/names.h"

#define DISAGREES 0.05 // of the larger: counters and sampled power of one board differ by less

void energy_find(const struct analysis *a, struct energy *ret)
{
	const struct run_tables *t = &a->tables;
	int64_t host = tables_first(t, ENTITY_HOST);
	*ret = (struct energy){.host = tables_figure(t, host, NAME_HOST_ENERGY, FIGURE_TOTAL),
		.platform = tables_figure(t, host, NAME_PLATFORM_ENERGY, FIGURE_TOTAL),
		.gpus = NAN,
		.gpus_sampled = NAN};
	size_t n = 0;
	// What one GPU does not report makes the sum unknown: it is no 0, and both sums are of the
	// same GPUs.
	for (size_t i = 0; i < a->overview.n_gpus; i++) {
		const struct gpu_figures *gpu = &a->overview.gpus[i];
		if (gpu_owner(a, i) == GPU_OF_JOB) {
			double power = tables_figure(t, gpu->entity, NAME_GPU_POWER, FIGURE_MEAN);
			double sampled = tables_breaks_off(t, gpu->entity, NAME_GPU_POWER)
			                         ? NAN
			                         : power * a->overview.recorded_s;
			ret->gpus = n > 0 ? ret->gpus + gpu->energy_joules : gpu->energy_joules;
			ret->gpus_sampled = n > 0 ? ret->gpus_sampled + sampled : sampled;
			n++;
		}
	}
}

bool energy_disagrees(double one, double other)
{
	return fabs(one - other) > DISAGREES * fmax(fabs(one), fabs(other));
}

static void append_joules(struct text *t, double joules)
{
	double scale = joules >= 1e6 ? 1e6 : joules >= 1e3 ? 1e3 : 1;
	words_append_number(t, joules / scale);
	text_append_string(t, scale == 1e6 ? " MJ" : scale == 1e3 ? " kJ" : " J");
}

static void append_part(struct text *t, const char *what, double joules, const char *how)
{
	if (isfinite(joules)) {
		text_format(t, "%s%s ", t->length > 0 ? ", " : "", what);
		append_joules(t, joules);
		text_append_string(t, how);
	}
}

void energy_append(struct text *t, const struct energy *e)
{
	append_part(t, "processors and memory", e->host, " (RAPL)");
	append_part(t, "the whole machine", e->platform, " (RAPL, psys)");
	if (isfinite(e->gpus) && energy_disagrees(e->gpus, e->gpus_sampled)) {
		append_part(t, "GPUs", e->gpus, " (counters) and ");
		append_joules(t, e->gpus_sampled);
		text_append_string(t, " (sampled power)");
	} else {
		bool counted = isfinite(e->gpus);
		append_part(t, "GPUs", counted ? e->gpus : e->gpus_sampled,
			counted ? "" : " (sampled power)");
	}
}
