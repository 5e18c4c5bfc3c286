// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tables of figures with their bounds.

#include "run/plausible.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/words.h"
#include "run/overview.h"
#include "run/tables.h"
#include "run/names.h"

#define GRAIN_S 0.05 // of CPU time for each CPU: clocks tick coarsely, which matters in short runs
#define BURST 1.25 // for a percentile of rates over 100 ms: a late reading inflates it
#define NEGATIVE 1e-9 // tolerance for rounding
// More than any machine moves in memory (the fastest of 2026, with stacked memory: some 10 TB/s).
#define MEMORY_BYTES_PER_S 2e13

struct plausible_limits plausible_limits_of(const struct machine_bounds *b)
{
	double grain = b->over_s > 0 ? GRAIN_S / b->over_s : INFINITY;
	return (struct plausible_limits){{
		[BOUND_SHARE] = PLAUSIBLE_ERROR + grain,
		[BOUND_CPUS] = b->cpus * (PLAUSIBLE_ERROR + grain),
		[BOUND_CPU_BURSTS] = b->cpus * (BURST + grain),
		[BOUND_CPU_SECONDS] = b->cpus * (b->run_s * PLAUSIBLE_ERROR + GRAIN_S),
		[BOUND_RUN] = b->run_s * PLAUSIBLE_ERROR + GRAIN_S,
		[BOUND_MEMORY] = b->memory_bytes * PLAUSIBLE_ERROR,
		[BOUND_MOVED] = MEMORY_BYTES_PER_S * (b->run_s + GRAIN_S),
		[BOUND_RATE] = MEMORY_BYTES_PER_S,
	}};
}

static void note(struct implausible_list *notes, const char *what, double value, double bound)
{
	_cleanup_text_ struct text line = {0};
	if (!notes || notes->n == IMPLAUSIBLE_MAX) {
		return;
	}
	text_format(&line, "%s: %.4g of at most %.4g", what, value, bound);
	for (size_t i = 0; line.data && i < notes->n; i++) {
		if (strcmp(notes->items[i], line.data) == 0) {
			return; // already noted: facts are gathered more than once
		}
	}
	char *item = text_steal(&line);
	if (item) {
		notes->items[notes->n++] = item;
	}
}

// NAN passes: an unknown value is not wrong, and an unknown bound does not apply.
void plausible_check(const char *what, double *value, double bound, struct implausible_list *notes)
{
	if (*value > bound || *value < -NEGATIVE || isinf(*value)) {
		note(notes, what, *value, bound);
		*value = NAN;
	}
}

void plausible_rows(const struct plausible_row *rows, size_t n, const struct plausible_limits *l,
	void *figures, struct implausible_list *notes)
{
	for (size_t i = 0; i < n; i++) {
		double *value = (double *)(void *)((char *)figures + rows[i].offset);
		plausible_check(rows[i].what, value, l->most[rows[i].bound], notes);
	}
}

struct machine_bounds plausible_bounds(
	const struct run_tables *tables, const struct overview *overview, double over_s)
{
	const struct entity *host = entity_first(&tables->entities, ENTITY_HOST);
	double cpus = overview->host_cpus;
	return (struct machine_bounds){
		.cpus = cpus > 0 ? cpus : NAN,
		.memory_bytes = host ? tables_figure(
					       tables, host->id, NAME_HOST_MEMORY_LIMIT, FIGURE_MAX)
	                             : NAN,
		.run_s = overview->recorded_s,
		.over_s = over_s,
	};
}

// The overview ------------------------------------------------------------------------------------

#define OF_OVERVIEW(member) offsetof(struct overview, member)

static const struct plausible_row overview_rows[] = {
	{"CPU time of the job, s", OF_OVERVIEW(cpu_seconds), BOUND_CPU_SECONDS},
	{"CPUs that the job used", OF_OVERVIEW(cpus_used), BOUND_CPUS},
	{"CPUs that the job used, 95th percentile", OF_OVERVIEW(cpus_used_p95), BOUND_CPU_BURSTS},
	{"CPUs that all used", OF_OVERVIEW(host_cpus_used), BOUND_CPUS},
	{"throttled periods, share", OF_OVERVIEW(throttled), BOUND_SHARE},
	{"time stopped, s", OF_OVERVIEW(stopped_s), BOUND_RUN},
	{"memory of the job, bytes", OF_OVERVIEW(memory.peak_bytes), BOUND_MEMORY},
	{"bytes read through system calls", OF_OVERVIEW(asked_bytes), BOUND_MOVED},
	{"bytes read from storage", OF_OVERVIEW(storage_read_bytes), BOUND_MOVED},
	{"bytes written to storage", OF_OVERVIEW(storage_write_bytes), BOUND_MOVED},
	{"pressure on CPUs, share", OF_OVERVIEW(pressure.some[PRESSURE_CPU]), BOUND_SHARE},
	{"pressure on memory, share", OF_OVERVIEW(pressure.some[PRESSURE_MEMORY]), BOUND_SHARE},
	{"pressure on storage, share", OF_OVERVIEW(pressure.some[PRESSURE_IO]), BOUND_SHARE},
	{"recording, CPUs", OF_OVERVIEW(recording.cpu_share), BOUND_CPUS},
};

static void check_gpus(const struct run_tables *tables, struct overview *o,
	const struct plausible_limits *l, struct implausible_list *notes)
{
	for (size_t i = 0; i < o->n_gpus; i++) {
		struct gpu_figures *gpu = &o->gpus[i];
		const struct entity *entity = entity_find(&tables->entities, gpu->entity);
		double link = entity ? entity_number(entity, "pcie_peak_bytes_per_s") : NAN;
		double most = fmin(link * PLAUSIBLE_ERROR, l->most[BOUND_RATE]);
		plausible_check("GPU busy, share", &gpu->busy, l->most[BOUND_SHARE], notes);
		plausible_check("GPU memory, bytes", &gpu->memory_peak_bytes,
			gpu->memory_bytes * PLAUSIBLE_ERROR, notes);
		plausible_check(
			"bytes per second to the GPU", &gpu->to_device_bytes_per_s, most, notes);
		plausible_check("bytes per second from the GPU", &gpu->from_device_bytes_per_s,
			most, notes);
	}
	for (size_t i = 0; i < o->n_disks; i++) {
		plausible_check("disk busy, share", &o->disks[i].busy, l->most[BOUND_SHARE], notes);
	}
}

void plausible_overview(
	const struct run_tables *tables, struct overview *o, struct implausible_list *notes)
{
	const struct machine_bounds bounds = plausible_bounds(tables, o, o->running_s);
	const struct plausible_limits limits = plausible_limits_of(&bounds);
	plausible_rows(overview_rows, ARRAY_LENGTH(overview_rows), &limits, o, notes);
	if (isnan(o->cpu_seconds)) {
		o->cpus_used = NAN; // computed from cpu_seconds
	}
	check_gpus(tables, o, &limits, notes);
}

void implausible_list_done(struct implausible_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i]);
	}
	list->n = 0;
}
