// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The figures under a verdict: a row each, of those that were measured.

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/analysis.h"
#include "analyze/names.h"
#include "analyze/words.h"

static int evidence_put(struct verdict *v, const char *what, struct text *value, const char *source)
{
	struct evidence *grown = realloc(v->evidence, (v->n_evidence + 1) * sizeof(*grown));
	if (!grown) {
		text_done(value);
		return -ENOMEM;
	}
	v->evidence = grown;
	struct text title = {0};
	text_append_string(&title, what);
	struct evidence evidence = {text_steal(&title), text_steal(value), source};
	if (!evidence.what || !evidence.value) {
		free(evidence.what);
		free(evidence.value);
		return -ENOMEM;
	}
	grown[v->n_evidence++] = evidence;
	return 0;
}

static int put_cpu(const struct analysis *a, struct verdict *v)
{
	const struct overview *o = &a->overview;
	if (!isfinite(o->cpus_used)) {
		return 0;
	}
	struct text value = {0};
	words_append_number(&value, o->cpus_used);
	text_append_string(&value, " of ");
	words_append_counted(&value, o->cpus, "CPU");
	if (isfinite(o->cpus_used_p95)) {
		text_append_string(&value, ", 95th percentile ");
		words_append_number(&value, o->cpus_used_p95);
	}
	return evidence_put(v, "CPU", &value, NAME_CPU_TIME);
}

static int put_throttling(const struct analysis *a, struct verdict *v)
{
	const struct overview *o = &a->overview;
	if (!(o->throttled > 0)) {
		return 0;
	}
	const struct entity *job = entity_first(&a->entities, ENTITY_JOB);
	double seconds = analysis_figure(a, job ? job->id : 0, NAME_THROTTLED_TIME, FIGURE_TOTAL);
	struct text value = {0};
	text_append_string(&value, "used up in ");
	words_append_percent(&value, o->throttled);
	text_append_string(&value, " of its periods");
	if (isfinite(seconds)) {
		text_append_string(&value, "; CPUs stood still for ");
		words_append_seconds(&value, seconds);
	}
	return evidence_put(v, "CPU quota", &value, NAME_PERIODS_THROTTLED);
}

static int put_gpus(const struct analysis *a, struct verdict *v)
{
	const struct overview *o = &a->overview;
	double lowest = INFINITY, highest = -INFINITY;
	for (size_t i = 0; i < o->n_gpus; i++) {
		lowest = fmin(lowest, o->gpus[i].busy);
		highest = fmax(highest, o->gpus[i].busy);
	}
	if (!isfinite(highest)) {
		return 0;
	}
	struct text value = {0};
	words_append_percent(&value, lowest);
	if (o->n_gpus > 1) {
		text_append_string(&value, " to ");
		words_append_percent(&value, highest);
		text_format(&value, " on %zu GPUs", o->n_gpus);
	}
	return evidence_put(v, "GPU busy", &value, NAME_GPU_BUSY);
}

static int put_memory(const struct analysis *a, struct verdict *v)
{
	const struct overview *o = &a->overview;
	if (!isfinite(o->memory.peak_bytes)) {
		return 0;
	}
	struct text value = {0};
	words_append_bytes_of(&value, o->memory.peak_bytes, o->memory_limit_bytes);
	text_format(&value, " (%s)", o->memory.kind);
	return evidence_put(v, "memory", &value, o->memory.metric);
}

static int put_cache(const struct analysis *a, struct verdict *v)
{
	double share = overview_cache_share(&a->overview);
	if (!isfinite(share)) {
		return 0;
	}
	struct text value = {0};
	words_append_percent(&value, share);
	text_append_string(&value, " of ");
	words_append_bytes(&value, a->overview.asked_bytes);
	text_append_string(&value, " read");
	return evidence_put(v, "page cache", &value, NAME_READ_ASKED);
}

static int put_pressure(const struct analysis *a, struct verdict *v)
{
	static const char *const titles[N_PRESSURES] = {"cpu", "memory", "io"};
	const struct pressure_figures *pressure = &a->overview.pressure;
	struct text value = {0};
	for (unsigned i = 0; i < N_PRESSURES; i++) {
		if (isfinite(pressure->some[i])) {
			text_format(&value, "%s%s ", value.length ? ", " : "", titles[i]);
			words_append_percent(&value, pressure->some[i]);
		}
	}
	if (value.length == 0) {
		return 0;
	}
	text_append_string(&value, pressure->of_job ? " (of the job)" : " (of the host)");
	return evidence_put(v, "pressure", &value,
		pressure->of_job ? "strain.cgroup.pressure" : "strain.pressure");
}

int evidence_build(const struct analysis *a, struct verdict *ret)
{
	static int (*const puts[])(const struct analysis *a, struct verdict *v) = {
		put_cpu, put_throttling, put_gpus, put_memory, put_cache, put_pressure};
	int r = 0;
	for (size_t i = 0; i < sizeof(puts) / sizeof(puts[0]) && r == 0; i++) {
		r = puts[i](a, ret);
	}
	return r;
}
