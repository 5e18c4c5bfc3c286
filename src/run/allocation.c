// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What bounds the job. Limits of a whole node (quota, memory, Slurm's figures) are divided by the
// ranks that share them, and so are the CPU affinity and the visible GPUs that a rank has from the
// process that started all of them. Those of its own, and the memory that `strain run --memory`
// gave, are this rank's already.

#include "run/allocation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/words.h"
#include "run/analysis.h"
#include "run/gpu_facts.h"
#include "run/names.h"

#define SLURM_MB 0x1p20 // Slurm's "MB" are MiB
#define RANKS_MAX 1e5

static const char whole_machine[] = "the whole machine";
static const char share_of_machine[] = "a share of the whole machine for each rank";
static const char by_slurm[] = "Slurm";
static const char name_unknown[] = "(unknown)"; // of a GPU whose driver does not say it

// A fact of the run that is a positive number; NAN: there is none. Environment variables are
// recorded as they were.
static double fact(const struct analysis *a, const char *key)
{
	const char *text = a->tables.reader ? reader_run(a->tables.reader, key) : NULL;
	int64_t number = 0;
	bool is = text && parse_integer(text, 1, INT64_MAX, &number, NULL) == 0;
	return is ? (double)number : NAN;
}

static bool is_zero(const struct analysis *a, const char *key)
{
	const char *text = a->tables.reader ? reader_run(a->tables.reader, key) : NULL;
	return text && strcmp(text, "0") == 0;
}

// --- ranks

double allocation_slurm_tasks(const char *list, int64_t node)
{
	struct cursor rest = cursor_of(list, strlen(list));
	uint64_t tasks, nodes, before = 0;
	while (cursor_u64(&rest, &tasks)) {
		nodes = 1;
		if (cursor_literal(&rest, "(x") &&
			!(cursor_u64(&rest, &nodes) && cursor_literal(&rest, ")"))) {
			return NAN;
		}
		if (tasks < 1 || nodes > UINT32_MAX || before > UINT32_MAX) {
			return NAN;
		}
		before += nodes;
		if (node >= 0 && (uint64_t)node < before) {
			return (double)tasks;
		}
		if (!cursor_literal(&rest, ",")) {
			return NAN;
		}
	}
	return NAN;
}

static double slurm_tasks(const struct analysis *a)
{
	const char *list = a->tables.reader
	                           ? reader_run(a->tables.reader, "slurm_step_tasks_per_node")
	                           : NULL;
	const char *node = list ? reader_run(a->tables.reader, "slurm_nodeid") : NULL;
	int64_t number = 0;
	bool is = node && parse_integer(node, 0, UINT32_MAX, &number, NULL) == 0;
	return is ? allocation_slurm_tasks(list, number) : NAN;
}

// Each of these is set for a rank only, so a run above all ranks has none of them.
static double ranks_on_node(const struct analysis *a)
{
	static const char *const keys[] = {
		"local_world_size", "ompi_comm_world_local_size", "mpi_localnranks"};
	double ranks = slurm_tasks(a);
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		ranks = fmax(ranks, fact(a, keys[i]));
	}
	return ranks >= 1 && ranks <= RANKS_MAX ? ranks : 1;
}

// --- bounds

// Takes a smaller bound.
static void bound(struct allocated *a, double amount, const char *by)
{
	if (amount > 0 && !(a->amount <= amount)) {
		a->amount = amount;
		a->by = by;
	}
}

static void bound_by_machine(struct allocated *a, const struct allocation *all, double machine)
{
	a->machine = machine > 0 ? machine : NAN;
	bound(a, a->machine / all->ranks, all->ranks > 1 ? share_of_machine : whole_machine);
}

// How many ranks have it together.
static double inherited_by(const struct allocation *all, struct reader *r, const char *key)
{
	return overview_limit(r, key) > 0 ? all->ranks : 1;
}

static void find_cpus(const struct analysis *a, struct allocation *ret)
{
	struct reader *r = a->tables.reader;
	struct allocated *cpus = &ret->of[ALLOCATED_CPUS];
	double quota = fmin(overview_limit(r, "cgroup_cpus"), a->overview.quota_cpus);
	bound_by_machine(cpus, ret, a->overview.host_cpus);
	bound(cpus, quota / ret->ranks, "the CPU quota of its cgroup");
	bound(cpus, overview_limit(r, "cpu_count") / inherited_by(ret, r, "cpus_inherited"),
		"its CPU affinity");
	bound(cpus, fact(a, "slurm_cpus_on_node") / ret->ranks, by_slurm);
	if (ret->ranks > 1) {
		bound(cpus, fact(a, "slurm_cpus_per_task"), by_slurm);
	}
	cpus->why = "the number of CPUs was not recorded";
	cpus->used = a->overview.cpu_seconds;
	cpus->why_used = "the job's CPU time was not measured";
}

static void find_memory(const struct analysis *a, struct allocation *ret)
{
	const struct run_tables *t = &a->tables;
	struct allocated *memory = &ret->of[ALLOCATED_MEMORY];
	double host = tables_figure(
		t, tables_first(t, ENTITY_HOST), NAME_HOST_MEMORY_LIMIT, FIGURE_MAX);
	double cgroup = fmin(overview_limit(t->reader, "cgroup_memory_bytes"),
		tables_figure(t, tables_first(t, ENTITY_JOB), NAME_MEMORY_LIMIT, FIGURE_MAX));
	bound_by_machine(memory, ret, host);
	bool own = t->reader && reader_run(t->reader, "limit_memory");
	bound(memory, own ? cgroup : cgroup / ret->ranks, "the memory limit of its cgroup");
	bound(memory, fact(a, "slurm_mem_per_node") * SLURM_MB / ret->ranks, by_slurm);
	bound(memory,
		fact(a, "slurm_mem_per_cpu") * SLURM_MB * fact(a, "slurm_cpus_on_node") /
			ret->ranks,
		by_slurm);
	memory->why = "the memory of the machine was not recorded";
	memory->used = a->overview.memory.mean_bytes * ret->recorded_s;
	memory->why_used = "the job's memory was not measured";
}

// Why the run has no GPU; NULL: it is known that the job had none. Without a driver, the bus says
// so; one that is there, but did not answer, may have devices that are on no PCI bus of this
// system.
static const char *why_no_gpu(const struct analysis *a)
{
	const struct missing_list *missing = &a->tables.missing;
	const char *reason = "no GPU was recorded";
	bool asked = false;
	for (size_t i = 0; i < missing->n; i++) {
		const char *why = missing->items[i].reason;
		if (strcmp(missing->items[i].kind, "gpu") == 0 && missing->items[i].to_the_end) {
			reason = why;
			asked = asked ||
			        !(strstr(why, "was not found") || strstr(why, "is not loaded") ||
					strstr(why, "no NVIDIA GPU"));
		}
	}
	return is_zero(a, "nvidia_pci_devices") && !asked ? NULL : reason;
}

// Why the run does not have a metric to its end.
static const char *why_missing(const struct analysis *a, const char *metric)
{
	const struct missing_list *missing = &a->tables.missing;
	for (size_t i = 0; i < missing->n; i++) {
		const struct missing_group *group = &missing->items[i];
		for (size_t k = 0; k < group->n_metrics && group->to_the_end; k++) {
			if (strcmp(group->metrics[k], metric) == 0) {
				return group->reason;
			}
		}
	}
	return "the utilisation of the GPUs was not recorded";
}

// The name of a GPU that the job uses, else of one that it may use, else of any. NULL: none is
// known.
static const char *name_of_gpu(const struct analysis *a)
{
	const char *names[N_GPU_OWNERS] = {NULL};
	for (size_t i = a->overview.n_gpus; i-- > 0;) { // the first of each
		const char *name = a->overview.gpus[i].name;
		if (name && strcmp(name, name_unknown) != 0) {
			names[gpu_owner(a, i)] = name;
		}
	}
	return names[GPU_OF_JOB]  ? names[GPU_OF_JOB]
	       : names[GPU_SPARE] ? names[GPU_SPARE]
	                          : names[GPU_OF_OTHERS];
}

// Fewer GPUs than ranks are the rank's own: each sees only its part of the node.
static double gpus_of_rank(double gpus, const struct allocation *all)
{
	return gpus >= all->ranks ? gpus / all->ranks : gpus;
}

static void find_gpus(const struct analysis *a, struct allocation *ret)
{
	struct allocated *gpus = &ret->of[ALLOCATED_GPUS];
	const struct overview *o = &a->overview;
	double visible = 0, used = 0;
	gpus->why_used = why_missing(a, NAME_GPU_BUSY);
	for (size_t i = 0; i < o->n_gpus; i++) {
		enum gpu_owner owner = gpu_owner(a, i);
		visible += owner != GPU_OF_OTHERS;
		// NAN if one is not known.
		double busy = tables_breaks_off(&a->tables, o->gpus[i].entity, NAME_GPU_BUSY)
		                      ? NAN
		                      : o->gpus[i].busy;
		used += owner == GPU_OF_JOB ? busy * ret->recorded_s : 0;
	}
	if (o->n_gpus == 0) {
		gpus->why = why_no_gpu(a);
		gpus->why_used = gpus->why;
		if (!gpus->why) {
			*gpus = (struct allocated){.machine = 0, .by = "the machine has none"};
		}
		return;
	}
	ret->gpu = name_of_gpu(a);
	gpus->used = used;
	if ((double)o->n_gpus >= ret->ranks) {
		bound_by_machine(gpus, ret, (double)o->n_gpus);
	}
	bound(gpus, visible / inherited_by(ret, a->tables.reader, "gpus_inherited"),
		"the GPUs that it may use");
	bound(gpus, gpus_of_rank(fact(a, "slurm_gpus_on_node"), ret), by_slurm);
	if (visible == 0) {
		gpus->amount = 0;
		gpus->by = "it may use none";
	}
}

void allocation_find(const struct analysis *a, struct allocation *ret)
{
	*ret = (struct allocation){.held_s = a->overview.duration_s,
		.recorded_s = a->overview.recorded_s,
		.ranks = ranks_on_node(a)};
	for (size_t i = 0; i < N_ALLOCATED; i++) {
		ret->of[i] = (struct allocated){.amount = NAN, .machine = NAN, .used = NAN};
	}
	find_cpus(a, ret);
	find_memory(a, ret);
	find_gpus(a, ret);
}

// --- against used

double allocated_held(const struct allocation *a, enum allocated_kind kind)
{
	double held = a->of[kind].amount * a->held_s;
	return isfinite(held) ? held : NAN;
}

double allocated_idle(const struct allocation *a, enum allocated_kind kind, const char **ret_why)
{
	const struct allocated *of = &a->of[kind];
	double held = of->amount * a->recorded_s;
	*ret_why = !isfinite(of->amount) ? of->why
	           : !isfinite(held)     ? "the duration of the run is not known"
	           : !isfinite(of->used) ? of->why_used
	                                 : NULL;
	return *ret_why ? NAN : fmax(0, held - of->used);
}

static void append_amount(struct text *t, enum allocated_kind kind, double amount)
{
	if (kind == ALLOCATED_MEMORY) {
		words_append_bytes(t, amount);
		text_append_string(t, " of memory");
	} else {
		words_append_counted(t, amount, kind == ALLOCATED_CPUS ? "CPU" : "GPU");
	}
}

// ", 25 % used: 12 s of 48 s"; of memory without the times. A job that was allocated less than it
// could take used more.
static void append_use(struct text *t, const struct allocation *a, enum allocated_kind kind)
{
	double held = a->of[kind].amount * a->recorded_s, used = a->of[kind].used;
	const char *why;
	allocated_idle(a, kind, &why);
	if (why || !(held > 0)) {
		text_format(t, ", use unknown (%s)", why ? why : "the run lasted 0 s");
		return;
	}
	text_append_string(t, ", ");
	words_append_percent(t, used / held);
	text_append_string(t, " used");
	if (kind != ALLOCATED_MEMORY) {
		text_append_string(t, ": ");
		words_append_seconds(t, used);
		text_append_string(t, " of ");
		words_append_seconds(t, held);
	}
}

// What bounds everything that was allocated; NULL: not one thing.
static const char *bound_of_all(const struct allocation *a)
{
	const char *by = NULL;
	for (size_t i = 0; i < N_ALLOCATED; i++) {
		if (a->of[i].amount > 0) {
			if (by && strcmp(by, a->of[i].by) != 0) {
				return NULL;
			}
			by = a->of[i].by;
		}
	}
	return by;
}

static void append_unknown(struct text *t, const struct allocation *a)
{
	static const char *const names[N_ALLOCATED] = {[ALLOCATED_CPUS] = "CPUs",
		[ALLOCATED_MEMORY] = "memory",
		[ALLOCATED_GPUS] = "GPUs"};
	for (size_t i = 0; i < N_ALLOCATED && t->length > 0; i++) {
		if (isnan(a->of[i].amount) && a->of[i].why) {
			text_format(t, "; %s unknown: ", names[i]);
			text_append_printable(t, a->of[i].why, strlen(a->of[i].why));
		}
	}
}

void allocation_append(struct text *t, const struct allocation *a)
{
	const char *all = bound_of_all(a);
	for (size_t i = 0; i < N_ALLOCATED; i++) {
		if (a->of[i].amount > 0) {
			text_append_string(t, t->length > 0 ? "; " : "");
			append_amount(t, i, a->of[i].amount);
			if (!all) {
				text_format(t, " (%s)", a->of[i].by);
			}
			append_use(t, a, i);
		}
	}
	if (all) {
		text_format(t, " (%s)", all);
	}
	append_unknown(t, a);
}
