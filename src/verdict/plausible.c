// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A table of figures with what bounds each.

#include "verdict/plausible.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/words.h"
#include "run/analysis.h"
#include "run/names.h"
#include "verdict/facts.h"

#define MEASURED 1.02 // times what is possible: clocks are read one after the other
#define GRAIN_S 0.05 // of CPU time, for each CPU: clocks in ticks, of a run that is short
#define BURST 1.25 // of a percentile of rates over 100 ms: a late reading makes one
#define NEGATIVE 1e-9 // rounding, and no less
// No machine moves more in memory (the fastest of 2026, with stacked memory, some 10 TB/s).
#define MEMORY_BYTES_PER_S 2e13

enum bound {
	BOUND_SHARE, // 0 to 1
	BOUND_CPUS, // of the machine
	BOUND_CPU_BURSTS, // the same of short stretches
	BOUND_CPU_SECONDS, // CPUs times the run
	BOUND_RUN, // seconds
	BOUND_MEMORY, // bytes of the machine
	BOUND_MOVED, // bytes in the run
	BOUND_RATE, // bytes per second
	N_BOUNDS,
};

struct figure_row {
	const char *what;
	size_t offset;
	enum bound bound;
};

struct limits {
	double most[N_BOUNDS];
};

static struct limits limits_of(const struct machine_bounds *b)
{
	double grain = b->over_s > 0 ? GRAIN_S / b->over_s : INFINITY;
	return (struct limits){{
		[BOUND_SHARE] = MEASURED + grain,
		[BOUND_CPUS] = b->cpus * (MEASURED + grain),
		[BOUND_CPU_BURSTS] = b->cpus * (BURST + grain),
		[BOUND_CPU_SECONDS] = b->cpus * (b->run_s * MEASURED + GRAIN_S),
		[BOUND_RUN] = b->run_s * MEASURED + GRAIN_S,
		[BOUND_MEMORY] = b->memory_bytes * MEASURED,
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
			return; // facts are gathered more than once
		}
	}
	char *item = text_steal(&line);
	if (item) {
		notes->items[notes->n++] = item;
	}
}

// NAN passes: what is not known is not wrong, and what is not bounded cannot be.
static void check(const char *what, double *value, double bound, struct implausible_list *notes)
{
	if (*value > bound || *value < -NEGATIVE || isinf(*value)) {
		note(notes, what, *value, bound);
		*value = NAN;
	}
}

static void check_rows(const struct figure_row *rows, size_t n, const struct limits *l,
	void *figures, struct implausible_list *notes)
{
	for (size_t i = 0; i < n; i++) {
		double *value = (double *)((char *)figures + rows[i].offset);
		check(rows[i].what, value, l->most[rows[i].bound], notes);
	}
}

struct machine_bounds plausible_bounds(const struct analysis *a, double over_s)
{
	const struct entity *host = entity_first(&a->entities, ENTITY_HOST);
	double cpus = a->overview.host_cpus;
	return (struct machine_bounds){
		.cpus = cpus > 0 ? cpus : NAN,
		.memory_bytes = host ? analysis_figure(
					       a, host->id, NAME_HOST_MEMORY_LIMIT, FIGURE_MAX)
	                             : NAN,
		.run_s = a->overview.recorded_s,
		.over_s = over_s,
	};
}

// The overview ------------------------------------------------------------------------------------

#define OF_OVERVIEW(member) offsetof(struct overview, member)

static const struct figure_row overview_rows[] = {
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

static void check_gpus(struct overview *o, const struct limits *l, struct implausible_list *notes)
{
	for (size_t i = 0; i < o->n_gpus; i++) {
		struct gpu_figures *gpu = &o->gpus[i];
		check("GPU busy, share", &gpu->busy, l->most[BOUND_SHARE], notes);
		check("GPU memory, bytes", &gpu->memory_peak_bytes, gpu->memory_bytes * MEASURED,
			notes);
		check("bytes per second to the GPU", &gpu->to_device_bytes_per_s,
			l->most[BOUND_RATE], notes);
		check("bytes per second from the GPU", &gpu->from_device_bytes_per_s,
			l->most[BOUND_RATE], notes);
	}
	for (size_t i = 0; i < o->n_disks; i++) {
		check("disk busy, share", &o->disks[i].busy, l->most[BOUND_SHARE], notes);
	}
}

void plausible_overview(struct analysis *a, struct implausible_list *notes)
{
	struct overview *o = &a->overview;
	const struct machine_bounds bounds = plausible_bounds(a, o->running_s);
	const struct limits limits = limits_of(&bounds);
	check_rows(overview_rows, ARRAY_LENGTH(overview_rows), &limits, o, notes);
	if (isnan(o->cpu_seconds)) {
		o->cpus_used = NAN; // is made of it
	}
	check_gpus(o, &limits, notes);
}

// Facts ------------------------------------------------------------------------------------------

#define OF_FACTS(member) offsetof(struct facts, member)

static const struct figure_row fact_rows[] = {
	{"start-up, s", OF_FACTS(startup_s), BOUND_RUN},
	{"training, s", OF_FACTS(training_s), BOUND_RUN},
	{"validation, s", OF_FACTS(validation_s), BOUND_RUN},
	{"checkpoints, s", OF_FACTS(checkpoint_s), BOUND_RUN},
	{"CPUs that the job used while training", OF_FACTS(cpus_used), BOUND_CPUS},
	{"CPUs of the training process", OF_FACTS(main_cpus), BOUND_CPUS},
	{"CPUs that others used", OF_FACTS(host_others_cpus), BOUND_CPUS},
	{"CPUs that the hypervisor took", OF_FACTS(stolen_cpus), BOUND_CPUS},
	{"training thread ready without a CPU, share", OF_FACTS(main_queued), BOUND_SHARE},
	{"pressure on CPUs while training, share", OF_FACTS(cpu_stalled), BOUND_SHARE},
	{"loader workers, CPUs", OF_FACTS(workers.cpus), BOUND_CPUS},
	{"the busiest worker, share", OF_FACTS(workers.busiest), BOUND_SHARE},
	{"bytes per second from storage", OF_FACTS(storage.read_rate), BOUND_RATE},
	{"bytes per second to storage", OF_FACTS(storage.written_rate), BOUND_RATE},
	{"bytes per second read", OF_FACTS(storage.asked_rate), BOUND_RATE},
	{"waiting for storage, share", OF_FACTS(storage.stalled), BOUND_SHARE},
	{"waiting for memory, share", OF_FACTS(memory.stalled), BOUND_SHARE},
	{"the GPU's multiprocessors, share", OF_FACTS(gpu.sm_activity), BOUND_SHARE},
	{"the GPU's tensor cores, share", OF_FACTS(gpu.tensor_activity), BOUND_SHARE},
	{"the GPU's memory, share", OF_FACTS(gpu.dram_activity), BOUND_SHARE},
	{"GPU held down, share", OF_FACTS(gpu.throttled), BOUND_SHARE},
	{"quota used up, share", OF_FACTS(quota.used_up), BOUND_SHARE},
	{"CPUs of samples of the training thread", OF_FACTS(code.cpus), BOUND_CPUS},
	{"CPUs of samples of other threads", OF_FACTS(code_threads.cpus), BOUND_CPUS},
	{"CPUs of samples of workers", OF_FACTS(code_workers.cpus), BOUND_CPUS},
};

// Of things that are so many at a time: a mean number of them is no larger.
static void check_counts(const struct limits *l, struct facts *f, struct implausible_list *notes)
{
	double workers = f->workers.n * l->most[BOUND_SHARE];
	check("loader workers that prepare", &f->workers.preparing, workers, notes);
	check("loader workers that are blocked", &f->workers.blocked, workers, notes);
	check("loader workers ready without a CPU", &f->workers.queued, workers, notes);
	check("bytes per second to the GPU while training", &f->gpu.to_device_rate,
		f->gpu.link_rate * MEASURED, notes);
}

static void check_shares(const struct limits *l, struct facts *f, struct implausible_list *notes)
{
	double bound = l->most[BOUND_SHARE];
	for (size_t i = 0; i < N_KNOWN_PHASES; i++) {
		check("a phase of an iteration, share", &f->share[i].value, bound, notes);
	}
	for (size_t i = 0; i < N_WAITS; i++) {
		check("waits of the training thread, share", &f->waits.share[i], bound, notes);
		check("waits of the training thread for a batch, share", &f->waits.in_data[i],
			bound, notes);
		check("waits of the training thread in steps, share", &f->waits.in_step[i], bound,
			notes);
		check("waits of workers, share", &f->worker_waits.share[i], bound, notes);
	}
	for (size_t i = 0; i < N_CODE_CLASSES; i++) {
		check("samples of the training thread, share", &f->code.share[i], bound, notes);
		check("samples of threads, share", &f->code_threads.share[i], bound, notes);
		check("samples of workers, share", &f->code_workers.share[i], bound, notes);
	}
}

void plausible_facts(
	const struct machine_bounds *bounds, struct facts *f, struct implausible_list *notes)
{
	const struct limits limits = limits_of(bounds);
	check_rows(fact_rows, ARRAY_LENGTH(fact_rows), &limits, f, notes);
	check_counts(&limits, f, notes);
	check_shares(&limits, f, notes);
}

void implausible_list_done(struct implausible_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i]);
	}
	list->n = 0;
}
