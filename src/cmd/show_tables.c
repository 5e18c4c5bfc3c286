// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The tables of `strain show`.

#include "cmd/show_tables.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu_facts.h"
#include "analyze/names.h"
#include "analyze/code_time.h"
#include "analyze/profile.h"
#include "analyze/thread_facts.h"
#include "analyze/words.h"
#include "base/cleanup.h"

// --- epochs

enum {
	EPOCH_NUMBER,
	EPOCH_SECONDS,
	EPOCH_RATE,
	EPOCH_CPUS,
	EPOCH_GPU_BUSY,
	EPOCH_MEMORY,
	EPOCH_MEMORY_KIND,
	EPOCH_GPU_MEMORY,
	EPOCH_STORAGE,
	EPOCH_OPEN,
	N_EPOCH_COLUMNS,
	MAX_POINTS = 8, // columns of the job's own
};

static const struct column epoch_columns[N_EPOCH_COLUMNS] = {
	[EPOCH_NUMBER] = {"epoch", "EPOCH", COLUMN_WHOLE, 0},
	[EPOCH_SECONDS] = {"seconds", "TIME", COLUMN_SECONDS, 0},
	[EPOCH_RATE] = {"samples_per_second", "OVERALL/S", COLUMN_NUMBER, 0},
	[EPOCH_CPUS] = {"cpus_used", "CPUS", COLUMN_NUMBER, 0},
	[EPOCH_GPU_BUSY] = {"gpu_busy_ratio", "GPU BUSY", COLUMN_RATIO, 0},
	[EPOCH_MEMORY] = {"host_memory_peak_bytes", "HOST MEMORY", COLUMN_BYTES, 1},
	[EPOCH_MEMORY_KIND] = {"host_memory_kind", NULL, COLUMN_LABEL, 0},
	[EPOCH_GPU_MEMORY] = {"gpu_memory_peak_bytes", "GPU MEMORY", COLUMN_BYTES, 2},
	[EPOCH_STORAGE] = {"storage_read_bytes", "READ FROM STORAGE", COLUMN_BYTES, 4},
	[EPOCH_OPEN] = {"open", NULL, COLUMN_WHOLE, 0},
};

// The names of points, in the order in which the epochs bring them.
static size_t point_names(const struct analysis *a, const char *names[static MAX_POINTS])
{
	size_t n = 0;
	for (size_t i = 0; i < a->epochs.n; i++) {
		const struct epoch *epoch = &a->epochs.items[i];
		for (size_t j = 0; j < epoch->n_points && n < MAX_POINTS; j++) {
			bool known = false;
			for (size_t k = 0; k < n; k++) {
				known = known || strcmp(names[k], epoch->points[j].name) == 0;
			}
			if (!known) {
				names[n++] = epoch->points[j].name;
			}
		}
	}
	return n;
}

static double gpus_epoch_figure(
	const struct analysis *a, const char *metric, int64_t epoch, enum figure figure)
{
	double sum = 0, largest = NAN;
	size_t n = 0;
	for (size_t i = 0; i < a->overview.n_gpus; i++) {
		if (gpu_owner(a, i) != GPU_OF_JOB) {
			continue;
		}
		double value = analysis_epoch_figure(
			a, a->overview.gpus[i].entity, metric, epoch, figure);
		largest = fmax(largest, value);
		sum += isfinite(value) ? value : 0;
		n += isfinite(value);
	}
	return figure == FIGURE_MAX ? largest : n ? sum / (double)n : NAN;
}

// The memory that every epoch has a figure of: PSS is read seldom, and short epochs can be without.
struct epoch_memory {
	const char *metric;
	const char *more; // added to it; NULL for nothing
	const char *kind;
	const char *title;
};

static const struct epoch_memory *epoch_memory(const struct analysis *a, int64_t job)
{
	static const struct epoch_memory choices[] = {
		{NAME_PSS, NULL, "PSS", "HOST PSS"},
		{NAME_ANONYMOUS, NAME_SHMEM, "anonymous and shared", "HOST ANON+SHM"},
		{NAME_RESIDENT_SUM, NULL, "sum of resident", "HOST RSS SUM"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(choices); i++) {
		bool known = true;
		for (size_t k = 0; k < a->epochs.n && known; k++) {
			known = isfinite(analysis_epoch_figure(
				a, job, choices[i].metric, a->epochs.items[k].number, FIGURE_MAX));
		}
		if (known) {
			return &choices[i];
		}
	}
	return NULL;
}

static void epoch_memory_cells(struct table *t, const struct analysis *a, int64_t job,
	int64_t number, const struct epoch_memory *memory)
{
	double bytes = analysis_epoch_figure(a, job, memory->metric, number, FIGURE_MAX);
	if (memory->more) {
		bytes = words_sum(
			bytes, analysis_epoch_figure(a, job, memory->more, number, FIGURE_MAX));
	}
	table_number(t, EPOCH_MEMORY, bytes);
	table_text(t, EPOCH_MEMORY_KIND, memory->kind);
}

static void epoch_row(struct table *t, const struct analysis *a, int64_t job,
	const struct epoch *epoch, const struct epoch_memory *memory)
{
	int64_t number = epoch->number;
	double seconds = epoch_length_s(epoch);
	table_integer(t, EPOCH_NUMBER, number);
	table_number(t, EPOCH_SECONDS, seconds);
	table_number(t, EPOCH_OPEN, epoch->open); // 1: it had not ended
	table_number(t, EPOCH_RATE, epoch->samples > 0 ? (double)epoch->samples / seconds : NAN);
	table_number(t, EPOCH_CPUS,
		analysis_epoch_figure(a, job, NAME_CPU_TIME, number, FIGURE_TOTAL) / seconds);
	table_number(t, EPOCH_GPU_BUSY, gpus_epoch_figure(a, NAME_GPU_BUSY, number, FIGURE_MEAN));
	if (memory) {
		epoch_memory_cells(t, a, job, number, memory);
	}
	table_number(
		t, EPOCH_GPU_MEMORY, gpus_epoch_figure(a, NAME_GPU_MEMORY, number, FIGURE_MAX));
	table_number(t, EPOCH_STORAGE,
		analysis_epoch_figure(a, job, NAME_READ_STORAGE, number, FIGURE_TOTAL));
}

static void point_cells(
	struct table *t, const struct epoch *epoch, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < epoch->n_points; j++) {
			if (strcmp(epoch->points[j].name, names[i]) == 0) {
				table_number(t, N_EPOCH_COLUMNS + i, epoch->points[j].value);
			}
		}
	}
}

int epoch_table_build(const struct analysis *a, struct epoch_table *ret)
{
	const char *names[MAX_POINTS];
	size_t n_points = point_names(a, names);
	*ret = (struct epoch_table){
		.columns = calloc(N_EPOCH_COLUMNS + MAX_POINTS, sizeof(*ret->columns))};
	if (!ret->columns) {
		return -ENOMEM;
	}
	memcpy(ret->columns, epoch_columns, sizeof(epoch_columns));
	for (size_t i = 0; i < n_points; i++) {
		ret->columns[N_EPOCH_COLUMNS + i] = (struct column){
			names[i], names[i], COLUMN_NUMBER, 3};
	}
	const struct entity *entity = entity_first(&a->entities, ENTITY_JOB);
	int64_t job = entity ? entity->id : 0;
	const struct epoch_memory *memory = epoch_memory(a, job);
	if (memory) {
		ret->columns[EPOCH_MEMORY].title = memory->title;
	}
	int r = table_new(ret->columns, N_EPOCH_COLUMNS + n_points, &ret->table);
	for (size_t i = 0; i < a->epochs.n && r == 0; i++) {
		r = table_row(ret->table);
		if (r == 0) {
			epoch_row(ret->table, a, job, &a->epochs.items[i], memory);
			point_cells(ret->table, &a->epochs.items[i], names, n_points);
		}
	}
	return r;
}

void epoch_table_done(struct epoch_table *t)
{
	table_free(t->table);
	free(t->columns);
}

// --- processes

enum {
	PROCESS_ROLE,
	PROCESS_LABEL,
	PROCESS_CPU_TIME,
	PROCESS_CPU,
	PROCESS_RESIDENT,
	PROCESS_RESIDENT_BOUND,
	PROCESS_PSS,
	PROCESS_USS,
	PROCESS_MEMORY,
	PROCESS_MEMORY_KIND,
	PROCESS_STOPPED,
	PROCESS_ASKED,
	PROCESS_STORAGE,
	PROCESS_WRITTEN,
	PROCESS_PID,
	PROCESS_NAME,
	PROCESS_COMMAND,
	PROCESS_FIRST,
	PROCESS_LAST,
	PROCESS_STATUS,
	PROCESS_SIGNAL,
	N_PROCESS_COLUMNS,
};

static const struct column process_columns[N_PROCESS_COLUMNS] = {
	[PROCESS_ROLE] = {"role", "ROLE", COLUMN_LABEL, 2},
	[PROCESS_LABEL] = {"label", "PROCESS", COLUMN_TEXT, 0},
	[PROCESS_CPU_TIME] = {"cpu_seconds", "CPU TIME", COLUMN_SECONDS, 0},
	[PROCESS_CPU] = {"cpu_ratio", "CPU", COLUMN_RATIO, 1},
	[PROCESS_RESIDENT] = {"resident_peak_bytes", "PEAK RSS", COLUMN_BYTES, 0},
	[PROCESS_RESIDENT_BOUND] = {"resident_peak_bound", "IS", COLUMN_LABEL, 3},
	[PROCESS_PSS] = {"pss_peak_bytes", "SAMPLED PSS", COLUMN_BYTES, 2},
	[PROCESS_USS] = {"uss_peak_bytes", "SAMPLED USS", COLUMN_BYTES, 7},
	[PROCESS_MEMORY] = {"memory_peak_bytes", NULL, COLUMN_BYTES, 0},
	[PROCESS_MEMORY_KIND] = {"memory_kind", NULL, COLUMN_LABEL, 0},
	[PROCESS_STOPPED] = {"stopped_seconds", "STOPPED", COLUMN_SECONDS, 1},
	[PROCESS_ASKED] = {"io_asked_bytes", "ASKED FOR", COLUMN_BYTES, 5},
	[PROCESS_STORAGE] = {"io_storage_bytes", "FROM STORAGE", COLUMN_BYTES, 4},
	[PROCESS_WRITTEN] = {"io_written_bytes", "TO STORAGE", COLUMN_BYTES, 6},
	[PROCESS_PID] = {"pid", NULL, COLUMN_WHOLE, 0},
	[PROCESS_NAME] = {"name", NULL, COLUMN_TEXT, 0},
	[PROCESS_COMMAND] = {"command", NULL, COLUMN_TEXT, 0},
	[PROCESS_FIRST] = {"first_s", NULL, COLUMN_SECONDS, 0},
	[PROCESS_LAST] = {"last_s", NULL, COLUMN_SECONDS, 0},
	[PROCESS_STATUS] = {"exit_status", NULL, COLUMN_WHOLE, 0},
	[PROCESS_SIGNAL] = {"exit_signal", NULL, COLUMN_WHOLE, 0},
};

static void process_cells(struct table *t, const struct process_row *row)
{
	table_text(t, PROCESS_ROLE, role_name(row->role));
	table_text(t, PROCESS_LABEL, row->label);
	table_number(t, PROCESS_CPU_TIME, row->cpu_seconds);
	table_number(t, PROCESS_CPU, row->cpu_share);
	table_number(t, PROCESS_RESIDENT, row->resident_peak_bytes);
	table_text(t, PROCESS_RESIDENT_BOUND, row->resident_at_least ? "at least" : NULL);
	table_number(t, PROCESS_PSS, row->pss_peak_bytes);
	table_number(t, PROCESS_USS, row->uss_peak_bytes);
	table_number(t, PROCESS_MEMORY, row->memory_peak_bytes);
	table_text(t, PROCESS_MEMORY_KIND, row->memory_kind);
	table_number(t, PROCESS_STOPPED, row->stopped_s);
	table_number(t, PROCESS_ASKED, row->asked_bytes);
	table_number(t, PROCESS_STORAGE, row->storage_bytes);
	table_number(t, PROCESS_WRITTEN, row->written_bytes);
	table_number(t, PROCESS_PID, row->pid >= 0 ? (double)row->pid : NAN);
	table_text(t, PROCESS_NAME, row->name);
	table_text(t, PROCESS_COMMAND, row->command);
	table_number(t, PROCESS_FIRST, row->first_s);
	table_number(t, PROCESS_LAST, row->last_s);
	table_number(t, PROCESS_STATUS, row->exit_status >= 0 ? row->exit_status : NAN);
	table_number(t, PROCESS_SIGNAL, row->exit_signal > 0 ? row->exit_signal : NAN);
}

int process_table_build(const struct analysis *a, struct table **ret)
{
	int r = table_new(process_columns, N_PROCESS_COLUMNS, ret);
	for (size_t i = 0; i < a->processes.n && r == 0; i++) {
		r = table_row(*ret);
		process_cells(*ret, &a->processes.items[i]);
	}
	return r;
}

static bool follows(const struct process_row *earlier, const struct process_row *row)
{
	return row->role == ROLE_LOADER && earlier->role == ROLE_LOADER &&
	       row->number == earlier->number && row->parent == earlier->parent;
}

// How long it was there and not stopped.
static double going_s(const struct process_row *row)
{
	return row->last_s - row->first_s - (row->stopped_s > 0 ? row->stopped_s : 0);
}

// One row for processes[from..to): loader workers that had the same number in turn.
static void group_cells(struct table *t, const struct process_row *rows, size_t n)
{
	struct process_row sum = rows[0];
	double lives = going_s(&rows[0]);
	for (size_t i = 1; i < n; i++) {
		sum.cpu_seconds = words_sum(sum.cpu_seconds, rows[i].cpu_seconds);
		sum.asked_bytes = words_sum(sum.asked_bytes, rows[i].asked_bytes);
		sum.storage_bytes = words_sum(sum.storage_bytes, rows[i].storage_bytes);
		sum.written_bytes = words_sum(sum.written_bytes, rows[i].written_bytes);
		sum.memory_peak_bytes = fmax(sum.memory_peak_bytes, rows[i].memory_peak_bytes);
		sum.resident_peak_bytes = fmax(
			sum.resident_peak_bytes, rows[i].resident_peak_bytes);
		sum.resident_at_least = sum.resident_at_least || rows[i].resident_at_least;
		sum.pss_peak_bytes = fmax(sum.pss_peak_bytes, rows[i].pss_peak_bytes);
		sum.uss_peak_bytes = fmax(sum.uss_peak_bytes, rows[i].uss_peak_bytes);
		sum.stopped_s = words_sum(sum.stopped_s, rows[i].stopped_s);
		lives += going_s(&rows[i]);
	}
	sum.cpu_share = lives > 0 ? sum.cpu_seconds / lives : NAN;
	sum.stopped_s = sum.stopped_s > 0 ? sum.stopped_s : NAN; // for people only what there was
	process_cells(t, &sum);
	if (n > 1) {
		struct text label = {0};
		text_format(&label, "%s, %zu in turn", sum.label, n);
		table_text(t, PROCESS_LABEL, label.data);
		text_done(&label);
	}
}

int process_table_build_short(
	const struct analysis *a, size_t limit, struct table **ret, struct process_rest *ret_rest)
{
	const struct process_list *list = &a->processes;
	int r = table_new(process_columns, N_PROCESS_COLUMNS, ret);
	size_t next;
	*ret_rest = (struct process_rest){0};
	for (size_t i = 0; i < list->n && r == 0; i = next) {
		for (next = i + 1; next < list->n && follows(&list->items[i], &list->items[next]);
			next++) {
		}
		if (table_rows(*ret) < limit) {
			r = table_row(*ret);
			group_cells(*ret, &list->items[i], next - i);
			continue;
		}
		for (size_t k = i; k < next; k++) {
			ret_rest->n++;
			ret_rest->cpu_seconds = words_sum(
				ret_rest->cpu_seconds, list->items[k].cpu_seconds);
		}
	}
	return r;
}

// --- devices

static const struct column gpu_columns[] = {
	{"name", "GPU", COLUMN_TEXT, 0},
	{"busy_ratio", "BUSY", COLUMN_RATIO, 0},
	{"busy_p95_ratio", NULL, COLUMN_RATIO, 0},
	{"memory_peak_bytes", "MEMORY, PEAK", COLUMN_BYTES, 0},
	{"memory_bytes", "OF", COLUMN_BYTES, 1},
	{"to_device_bytes_per_s", "TO DEVICE", COLUMN_BYTES_PER_SECOND, 2},
	{"from_device_bytes_per_s", "FROM DEVICE", COLUMN_BYTES_PER_SECOND, 3},
	{"power_w", "POWER (W)", COLUMN_NUMBER, 4},
	{"energy_j", "ENERGY (J)", COLUMN_NUMBER, 5},
	{"job", "THE JOB", COLUMN_LABEL, 1},
};

int gpu_table_build(const struct analysis *a, struct table **ret)
{
	int r = table_new(gpu_columns, ARRAY_LENGTH(gpu_columns), ret);
	for (size_t i = 0; i < a->overview.n_gpus && r == 0; i++) {
		const struct gpu_figures *gpu = &a->overview.gpus[i];
		r = table_row(*ret);
		table_text(*ret, 0, gpu->name);
		const double figures[] = {gpu->busy, gpu->busy_p95, gpu->memory_peak_bytes,
			gpu->memory_bytes, gpu->to_device_bytes_per_s, gpu->from_device_bytes_per_s,
			gpu->power_watts, gpu->energy_joules};
		for (size_t c = 0; c < ARRAY_LENGTH(figures); c++) {
			table_number(*ret, c + 1, figures[c]);
		}
		table_text(*ret, ARRAY_LENGTH(figures) + 1, gpu_owner_name(gpu_owner(a, i)));
	}
	return r;
}

static const struct column device_columns[] = {
	{"kind", "DEVICE", COLUMN_LABEL, 0},
	{"name", "NAME", COLUMN_TEXT, 0},
	{"in_bytes", "IN", COLUMN_BYTES, 0},
	{"out_bytes", "OUT", COLUMN_BYTES, 0},
	{"busy_ratio", "BUSY", COLUMN_RATIO, 0},
};

static int device_rows(
	struct table *t, const char *kind, const struct device_figures *devices, size_t n)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		r = table_row(t);
		table_text(t, 0, kind);
		table_text(t, 1, devices[i].name);
		table_number(t, 2, devices[i].in_bytes);
		table_number(t, 3, devices[i].out_bytes);
		table_number(t, 4, devices[i].busy);
	}
	return r;
}

int device_table_build(const struct analysis *a, struct table **ret)
{
	int r = table_new(device_columns, ARRAY_LENGTH(device_columns), ret);
	r = r < 0 ? r : device_rows(*ret, "disk", a->overview.disks, a->overview.n_disks);
	return r < 0 ? r
	             : device_rows(*ret, "network", a->overview.networks, a->overview.n_networks);
}

// --- what processes wait for

// In the order of their columns.
static const char *const wait_metrics[] = {NAME_WAIT "storage", NAME_WAIT "fsync",
	NAME_WAIT "network", NAME_WAIT "pipe", NAME_WAIT "lock", NAME_WAIT "gil", NAME_WAIT "sleep",
	NAME_WAIT "child", NAME_WAIT "other"};

enum {
	WAITS_PROCESS,
	WAITS_FIRST,
	WAITS_LOOKS = WAITS_FIRST + ARRAY_LENGTH(wait_metrics),
	WAITS_ROLE,
	WAITS_PID,
	N_WAIT_COLUMNS,
};

static const struct column wait_columns[N_WAIT_COLUMNS] = {
	[WAITS_PROCESS] = {"label", "WAITING", COLUMN_TEXT, 0},
	{"storage_ratio", "STORAGE", COLUMN_RATIO, 0},
	{"fsync_ratio", "FSYNC", COLUMN_RATIO, 1},
	{"network_ratio", "NETWORK", COLUMN_RATIO, 2},
	{"pipe_ratio", "PIPE", COLUMN_RATIO, 3},
	{"lock_ratio", "LOCK", COLUMN_RATIO, 0},
	{"gil_ratio", "GIL", COLUMN_RATIO, 4},
	{"sleep_ratio", "SLEEP", COLUMN_RATIO, 0},
	{"child_ratio", "CHILD", COLUMN_RATIO, 0},
	{"other_ratio", "OTHER", COLUMN_RATIO, 5},
	[WAITS_LOOKS] = {"looks", "LOOKS", COLUMN_WHOLE, 6},
	[WAITS_ROLE] = {"role", NULL, COLUMN_LABEL, 0},
	[WAITS_PID] = {"pid", NULL, COLUMN_WHOLE, 0},
};

static double looks_at(const struct analysis *a, const struct process_row *process)
{
	return analysis_figure(a, process->entity, NAME_WAIT "looks", FIGURE_TOTAL);
}

static void wait_cells(
	struct table *t, const struct analysis *a, const struct process_row *process, double looks)
{
	table_text(t, WAITS_PROCESS, process->label);
	for (size_t i = 0; i < ARRAY_LENGTH(wait_metrics); i++) {
		double waits = analysis_figure(a, process->entity, wait_metrics[i], FIGURE_TOTAL);
		table_number(t, WAITS_FIRST + i, waits / looks);
	}
	table_number(t, WAITS_LOOKS, looks);
	table_text(t, WAITS_ROLE, role_name(process->role));
	table_number(t, WAITS_PID, process->pid >= 0 ? (double)process->pid : NAN);
}

static bool trains_or_prepares(const struct process_row *process)
{
	return process->role == ROLE_MAIN || process->role == ROLE_RANK ||
	       process->role == ROLE_LOADER;
}

int wait_table_build(const struct analysis *a, struct table **ret)
{
	return wait_table_build_short(a, false, SIZE_MAX, 0, ret);
}

int wait_table_build_short(
	const struct analysis *a, bool training, size_t limit, double least, struct table **ret)
{
	int r = table_new(wait_columns, N_WAIT_COLUMNS, ret);
	for (size_t i = 0; i < a->processes.n && r == 0 && table_rows(*ret) < limit; i++) {
		const struct process_row *process = &a->processes.items[i];
		double looks = looks_at(a, process);
		if (looks > least && (!training || trains_or_prepares(process))) {
			r = table_row(*ret);
			wait_cells(*ret, a, process, looks);
		}
	}
	return r;
}

// --- threads of the process that trains

enum { THREADS_GROUP, THREADS_COUNT, THREADS_CPUS, THREADS_READY, THREADS_RUNS, N_THREAD_COLUMNS };
static const struct column thread_columns[N_THREAD_COLUMNS] = {
	[THREADS_GROUP] = {"group", "TRAINING THREADS", COLUMN_LABEL, 0},
	[THREADS_COUNT] = {"threads", "NUMBER", COLUMN_WHOLE, 1},
	[THREADS_CPUS] = {"cpus_used", "CPUS", COLUMN_NUMBER, 0},
	[THREADS_READY] = {"ready_ratio", "READY, NO CPU", COLUMN_RATIO, 2},
	[THREADS_RUNS] = {"runs_per_second", "RUNS/S", COLUMN_NUMBER, 3},
};

#define THREADS_SHOWN 0.005 // CPUs: less prints as nothing

static int thread_rows(const struct analysis *a, double least, struct table **ret)
{
	struct facts f;
	struct stretch stretch = facts_stretch(a);
	facts_init(&f);
	thread_facts_fill(a, facts_trainer(a), &stretch, &f);
	int r = table_new(thread_columns, N_THREAD_COLUMNS, ret);
	for (size_t i = 0; i < N_THREAD_GROUPS && r == 0; i++) {
		const struct thread_group_facts *g = &f.threads.groups[i];
		if (!f.threads.known || !(g->threads > 0) || !(g->cpus >= least)) {
			continue;
		}
		r = table_row(*ret);
		table_text(*ret, THREADS_GROUP, thread_group_title((enum thread_group)i));
		table_number(*ret, THREADS_COUNT, g->threads);
		table_number(*ret, THREADS_CPUS, g->cpus);
		table_number(*ret, THREADS_READY, g->ready / g->threads);
		table_number(*ret, THREADS_RUNS, g->runs);
	}
	return r;
}

int thread_table_build(const struct analysis *a, struct table **ret)
{
	return thread_rows(a, 0, ret);
}

int thread_table_build_short(const struct analysis *a, struct table **ret)
{
	return thread_rows(a, THREADS_SHOWN, ret);
}

// --- samples of CPU time

enum { CODE_WHOSE, CODE_SHARE, CODE_COUNT, CODE_KIND, CODE_FUNCTION, N_CODE_COLUMNS };
static const struct column code_columns[N_CODE_COLUMNS] = {
	[CODE_WHOSE] = {"threads", "CPU TIME OF", COLUMN_LABEL, 0},
	[CODE_SHARE] = {"share_ratio", "SHARE", COLUMN_RATIO, 0},
	[CODE_COUNT] = {"samples", "SAMPLES", COLUMN_WHOLE, 2},
	[CODE_KIND] = {"class", "CLASS", COLUMN_LABEL, 0},
	[CODE_FUNCTION] = {"function", "FUNCTION", COLUMN_TEXT, 1},
};

int code_table_build(const struct analysis *a, struct table **ret)
{
	struct stretch stretch = facts_stretch(a);
	struct code_profile profile;
	int r = profile_load(a, &stretch, &profile);
	r = r < 0 ? r : table_new(code_columns, N_CODE_COLUMNS, ret);
	for (size_t i = 0; i < N_CODE_GROUPS && r == 0; i++) {
		const struct code_group_samples *g = &profile.groups[i];
		for (size_t k = 0; k < g->n_tops && r == 0; k++) {
			const struct code_top *top = &g->tops[k];
			r = table_row(*ret);
			table_text(*ret, CODE_WHOSE, code_group_name((enum code_group)i));
			table_number(*ret, CODE_SHARE, (double)top->samples / (double)g->samples);
			table_number(*ret, CODE_COUNT, (double)top->samples);
			table_text(*ret, CODE_KIND, code_class_name(top->class));
			table_text(*ret, CODE_FUNCTION, top->name);
		}
	}
	return r;
}

enum { BAR_NAME, BAR_SHARE, BAR_SAMPLES, BAR_CLASSES, BAR_FUNCTION, N_BAR_COLUMNS };
static const struct column bar_columns[N_BAR_COLUMNS] = {
	[BAR_NAME] = {"of", "CPU TIME", COLUMN_LABEL, 0},
	[BAR_SHARE] = {"share_ratio", "SHARE", COLUMN_RATIO, 0},
	[BAR_SAMPLES] = {"samples", "SAMPLES", COLUMN_WHOLE, 2},
	[BAR_CLASSES] = {"classes", "WENT INTO", COLUMN_PROSE, 0},
	[BAR_FUNCTION] = {"function", "MOST OF ALL IN", COLUMN_TEXT, 1},
};

static int add_bar(
	struct table *t, const char *name, const struct code_group_samples *bar, uint64_t of)
{
	_cleanup_text_ struct text classes = {0};
	if (bar->samples == 0) {
		return 0;
	}
	int r = table_row(t);
	code_append_classes(&classes, bar);
	table_text(t, BAR_NAME, name);
	table_number(t, BAR_SHARE, (double)bar->samples / (double)of);
	table_number(t, BAR_SAMPLES, (double)bar->samples);
	table_text(t, BAR_CLASSES, classes.data);
	table_text(t, BAR_FUNCTION, bar->n_tops > 0 ? bar->tops[0].name : NULL);
	return r;
}

int code_time_table_build(const struct code_time *time, struct table **ret)
{
	int r = table_new(bar_columns, N_BAR_COLUMNS, ret);
	for (size_t i = 0; i < N_CODE_ROLES && r == 0; i++) {
		r = add_bar(
			*ret, code_role_name((enum code_role)i), &time->roles[i], time->samples);
	}
	for (size_t i = 0; i < N_CODE_PHASES && r == 0; i++) {
		size_t phase = code_phase_in_order(i);
		r = add_bar(
			*ret, code_phase_name(phase), &time->phases[phase], time->phase_samples);
	}
	return r;
}

// --- evidence, events, what is missing

static const struct column evidence_columns[] = {
	{"what", "WHAT", COLUMN_LABEL, 0},
	{"value", "VALUE", COLUMN_PROSE, 0},
	{"metric", "METRIC", COLUMN_LABEL, 1},
};

int evidence_table_build(const struct analysis *a, struct table **ret)
{
	int r = table_new(evidence_columns, ARRAY_LENGTH(evidence_columns), ret);
	for (size_t i = 0; i < a->verdict.n_evidence && r == 0; i++) {
		r = table_row(*ret);
		table_text(*ret, 0, a->verdict.evidence[i].what);
		table_text(*ret, 1, a->verdict.evidence[i].value);
		table_text(*ret, 2, a->verdict.evidence[i].source);
	}
	return r;
}

static const struct column event_columns[] = {
	{"t_s", "AT", COLUMN_SECONDS, 0},
	{"kind", "KIND", COLUMN_LABEL, 0},
	{"text", "TEXT", COLUMN_PROSE, 0},
	{"entity", NULL, COLUMN_WHOLE, 0},
};

static bool is_shown(const struct event_row *event, bool output)
{
	return strcmp(event->kind, "wall_clock") != 0 &&
	       (output || strcmp(event->kind, "output") != 0);
}

size_t event_count_shown(const struct analysis *a)
{
	size_t n = 0;
	for (size_t i = 0; i < a->events.n; i++) {
		n += is_shown(&a->events.items[i], false);
	}
	return n;
}

int event_table_build(const struct analysis *a, size_t limit, bool output, struct table **ret)
{
	int r = table_new(event_columns, ARRAY_LENGTH(event_columns), ret);
	for (size_t i = 0; i < a->events.n && table_rows(*ret) < limit && r == 0; i++) {
		const struct event_row *event = &a->events.items[i];
		if (!is_shown(event, output)) {
			continue;
		}
		r = table_row(*ret);
		table_number(*ret, 0, event->t_s);
		table_text(*ret, 1, event->kind);
		table_text(*ret, 2, event->text);
		table_number(*ret, 3, event->entity ? (double)event->entity : NAN);
	}
	return r;
}

static const struct column missing_columns[] = {
	{"subject", "WHAT", COLUMN_LABEL, 0},
	{"reason", "WHY", COLUMN_TEXT, 0},
	{"kind", NULL, COLUMN_TEXT, 0},
	{"metrics", NULL, COLUMN_TEXT, 0},
	{"entities", NULL, COLUMN_WHOLE, 0},
};

int missing_table_build(const struct analysis *a, struct table **ret)
{
	struct part_missing parts[PARTS_MAX];
	size_t n = parts_missing(a->reader, parts);
	int r = table_new(missing_columns, ARRAY_LENGTH(missing_columns), ret);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = table_row(*ret);
		table_text(*ret, 0, parts[i].what);
		table_text(*ret, 1, parts[i].reason);
		table_text(*ret, 2, "run");
	}
	for (size_t i = 0; i < a->missing.n && r == 0; i++) {
		const struct missing_group *group = &a->missing.items[i];
		struct text subject = {0}, metrics = {0};
		missing_append_subject(&subject, &a->metrics, group);
		for (size_t k = 0; k < group->n_metrics; k++) {
			text_append_string(&metrics, k ? " " : "");
			text_append_string(&metrics, group->metrics[k]);
		}
		r = table_row(*ret);
		table_text(*ret, 0, subject.data);
		table_text(*ret, 1, group->reason);
		table_text(*ret, 2, group->kind);
		table_text(*ret, 3, metrics.data);
		table_number(*ret, 4, group->entities ? (double)group->entities : NAN);
		text_done(&subject);
		text_done(&metrics);
	}
	return r;
}
