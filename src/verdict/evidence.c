// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The figures behind a verdict: one row for each that was measured.

#include "verdict/evidence.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "run/analysis.h"
#include "run/gpu_facts.h"
#include "run/growth.h"
#include "run/names.h"
#include "run/profile.h"
#include "run/query.h"
#include "verdict/cause_kinds.h"
#include "verdict/facts.h"
#include "verdict/thresholds.h"

// Gpu evidence ------------------------------------------------------------------------------------
//
// Evidence about GPUs: those of the job, other users of them, and other GPUs.

#define WORTH_A_WORD 0.05 // least clock lost to report

static int evidence_put(
	struct verdict *v, const char *what, struct text *value, const char *source);

static int put_busy(const struct gpu_facts *g, struct verdict *v)
{
	struct text value = {0};
	if (g->n == 0 && g->n_hidden > 0) {
		static const char *const why[N_GPU_VENDORS] = {
			[GPU_NVIDIA] = "CUDA_VISIBLE_DEVICES hides",
			[GPU_AMD] = "ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES hides",
			[GPU_INTEL] = "/dev/dri lacks",
		};
		text_format(&value, "the job sees none: %s %s", why[g->vendor],
			g->n_hidden > 1 ? "all of this machine" : "that of this machine");
		return evidence_put(v, "GPUs", &value, NAME_GPU_JOB_PROCESSES);
	}
	if (g->unused) {
		text_format(&value, "no process of the job on %s",
			g->n > 1 ? "the GPUs that it can use" : "the GPU that it can use");
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
		text_append_string(&value, "; it is not known whether the job uses it");
	}
	return evidence_put(v, "GPU busy", &value, NAME_GPU_BUSY);
}

// The driver reports little about a divided GPU.
static int put_unknown(const struct gpu_facts *g, struct verdict *v)
{
	struct text value = {0};
	if (g->n == 0 || g->unused || (g->index >= 0 && isfinite(g->busy)) || g->n_used > 0) {
		return 0;
	}
	text_append_string(&value, g->used ? "GPU memory grew while the job ran"
					   : "it is not known whether the job uses one");
	text_append_string(&value, g->divided ? "; partitioned (MIG)" : "");
	return evidence_put(v, "GPU", &value, NAME_GPU_MEMORY);
}

static int put_activity(const struct gpu_facts *g, struct verdict *v)
{
	const struct {
		const char *name;
		double value;
	} parts[] = {{"multiprocessors", g->sm_activity}, {"occupancy", g->occupancy},
		{"tensor cores", g->tensor_activity}, {"FP32", g->fp32_activity},
		{"memory bandwidth", g->dram_activity}};
	struct text value = {0};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (isfinite(parts[i].value)) {
			text_format(&value, "%s%s ", value.length ? ", " : "", parts[i].name);
			words_append_percent(&value, parts[i].value);
		}
	}
	return value.length ? evidence_put(v, "GPU activity", &value, NAME_GPU_SM) : 0;
}

static int put_results(const struct facts *f, struct verdict *v)
{
	struct text value = {0};
	if (!(f->reads > 0)) {
		return 0;
	}
	text_format(&value, "at least %.0f read by each step", f->reads);
	if (f->reads_at) {
		text_append_string(&value, ", most at ");
		words_append_place(&value, f->reads_at, 60);
	}
	return evidence_put(v, "GPU results", &value, NULL);
}

// Why the clock was lower, and the cost of that.
static int put_clock(const struct gpu_facts *g, struct verdict *v)
{
	struct text value = {0};
	bool slowed = g->slowed > 0, capped = g->capped > 0;
	bool idle = g->busy < GPU_IDLE; // then a low clock is no loss
	bool set = g->set_lost >= WORTH_A_WORD;
	if (idle || (!(g->clock_lost >= WORTH_A_WORD) && !slowed && !set)) {
		return 0;
	}
	if (isfinite(g->clock_lost)) {
		words_append_percent(&value, g->clock_lost);
		text_append_string(&value,
			set ? " below its setting while busy" : " below the highest while busy");
	} else {
		text_append_string(&value, "the clock reduction is not known");
	}
	if (set) {
		text_append_string(&value, "; set to ");
		words_append_number(&value, g->set_hz / 1e6);
		text_append_string(&value, " of ");
		words_append_number(&value, g->highest_hz / 1e6);
		text_append_string(&value, " MHz");
	}
	if (slowed) {
		text_format(&value, "; %s ", gpu_slowing_words(g->slowing));
		words_append_percent(&value, g->slowed);
		text_append_string(&value, " of the time");
		if (g->slowing == GPU_SLOWED_HEAT && isfinite(g->hottest)) {
			text_format(&value, ", at up to %.0f C", g->hottest);
		}
	}
	if (capped) {
		text_append_string(&value, "; at the power limit ");
		if (g->power_limit > 0) {
			text_format(&value, "of %.0f W for ", g->power_limit);
		}
		words_append_percent(&value, g->capped);
		text_append_string(&value, " of the time");
	}
	return evidence_put(v, "GPU clock", &value, NAME_GPU_THROTTLE);
}

static int put_link(const struct gpu_facts *g, struct verdict *v)
{
	struct text value = {0};
	if (!gpu_facts_link_narrow(g)) {
		return 0;
	}
	text_format(&value, "PCIe generation %u with %u lane%s: ", g->link_generation,
		g->link_width, g->link_width == 1 ? "" : "s");
	words_append_bytes_of(&value, g->link_rate, g->link_best);
	text_append_string(&value, "/s that the GPU allows");
	return evidence_put(v, "GPU link", &value, NAME_GPU_LINK_WIDTH);
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
	if (g->others_bytes > 0) { // 0: of a reading before they came; drivers may hide it
		text_append_string(&value, ", with ");
		words_append_bytes(&value, g->others_bytes);
	}
	return evidence_put(v, "GPU shared", &value, NAME_GPU_OTHERS_BUSY);
}

static int put_errors(const struct gpu_facts *g, struct verdict *v)
{
	// For one, and for more.
	static const char *const names[N_GPU_ERRORS][2] = {
		[GPU_ERROR_UNCORRECTED] = {"uncorrected", "uncorrected"},
		[GPU_ERROR_CORRECTED] = {"corrected", "corrected"},
		[GPU_ERROR_PAGES] = {"retired page", "retired pages"},
		[GPU_ERROR_ROWS] = {"remapped row", "remapped rows"},
		[GPU_ERROR_REPLAYS] = {"PCIe packet retransmitted", "PCIe packets retransmitted"},
		[GPU_ERROR_XIDS] = {"logged by the driver (Xid)", "logged by the driver (Xid)"},
	};
	struct text value = {0};
	if (g->errors_index < 0) {
		return 0;
	}
	text_format(&value, "GPU %d: ", g->errors_index);
	const char *comma = "";
	for (size_t i = 0; i < N_GPU_ERRORS; i++) {
		if (g->errors[i] > 0) {
			text_format(&value, "%s%.0f %s", comma, g->errors[i],
				names[i][g->errors[i] > 1]);
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
	if (g->n_neighbours > 1) {
		text_format(&value, " (the busiest of %u)", g->n_neighbours);
	}
	return evidence_put(v, "another program's", &value, NAME_GPU_BUSY);
}

static int put_spare(const struct gpu_facts *g, struct verdict *v)
{
	struct text value = {0};
	if (!g->known || g->n_used == 0 || g->n_used >= g->n) {
		return 0;
	}
	text_format(&value, "%u of the job's %u", g->n_used, g->n);
	return evidence_put(v, "GPUs used", &value, NAME_GPU_JOB_PROCESSES);
}

static int gpu_evidence_build(const struct gpu_facts *g, struct verdict *ret)
{
	static int (*const puts[])(const struct gpu_facts *g, struct verdict *v) = {put_busy,
		put_unknown, put_spare, put_activity, put_clock, put_link, put_shared, put_errors,
		put_neighbour};
	int r = 0;
	for (size_t i = 0; i < sizeof(puts) / sizeof(puts[0]) && r == 0; i++) {
		r = puts[i](g, ret);
	}
	return r;
}

// Contents of memory ------------------------------------------------------------------------------
//
// Readings of memory at the moments that spans mark.

#define NEAR_US 1000000 // greatest age of a usable reading, since the next one is due
#define SHOWN_BYTES 1e6
// Greatest age of a reading of a GPU at the first iteration: a model is moved there just before.
#define GPU_NEAR_US 250000

static const struct {
	const char *name;
	bool of_gpu;
	const char *metric;
} holdings[N_HOLDINGS] = {
	[HOLDING_FRAMEWORK] = {"framework", false, NAME_RESIDENT},
	[HOLDING_DATASET] = {"dataset and weights", false, NAME_RESIDENT},
	[HOLDING_TRAINING] = {"gradients, optimizer and workspace", false, NAME_RESIDENT},
	[HOLDING_ACTIVATIONS] = {"within a step", false, NAME_RESIDENT},
	[HOLDING_GROWTH] = {"kept from step to step", false, NAME_RESIDENT},
	[HOLDING_WORKERS] = {"loader workers", false, NAME_PSS},
	[HOLDING_BATCHES] = {"shared memory", false, NAME_SHMEM},
	[HOLDING_FILES] = {"page cache", false, NAME_FILE},
	[HOLDING_GPU_MODEL] = {"context and weights", true, NAME_GPU_MEMORY},
	[HOLDING_GPU_TRAINING] = {"gradients, optimizer, activations and reserved", true,
		NAME_GPU_MEMORY},
};

const char *holding_name(enum holding holding)
{
	return holdings[holding].name;
}

bool holding_is_of_gpu(enum holding holding)
{
	return holdings[holding].of_gpu;
}

const char *holding_metric(enum holding holding)
{
	return holdings[holding].metric;
}

// The last reading before t_us; NAN if it is older than most_us.
static double gauge_within(const struct series *s, int64_t t_us, int64_t most_us)
{
	size_t i = s->n;
	while (i > 0 && s->t_us[i - 1] > t_us) {
		i--;
	}
	return i > 0 && t_us - s->t_us[i - 1] <= most_us ? s->values[i - 1] : NAN;
}

static double gauge_at(const struct series *s, int64_t t_us)
{
	return gauge_within(s, t_us, NEAR_US);
}

static double gauge_most(const struct series *s, int64_t from_us)
{
	double most = NAN;
	for (size_t i = 0; i < s->n; i++) {
		if (s->t_us[i] >= from_us) {
			most = fmax(most, s->maximum[i]);
		}
	}
	return most;
}

static int note_time(void *context, sqlite3_stmt *row)
{
	if (sqlite3_column_type(row, 0) != SQLITE_NULL) {
		*(int64_t *)context = sqlite3_column_int64(row, 0) / 1000;
	}
	return 0;
}

// When the imports of the training process were done; -1: they were not marked.
static int64_t imported_us(const struct analysis *a, int64_t before_us)
{
	int64_t t_us = -1;
	(void)query_each(a->tables.reader,
		"SELECT max(end_ns) FROM span WHERE kind = 'phase' AND name = 'import'", note_time,
		&t_us, NULL);
	return t_us < before_us ? t_us : -1;
}

// Start and end of the first two iterations.
static bool first_iterations(const struct phases *p, int64_t *ret_start_us, int64_t *ret_end_us)
{
	if (p->n_iterations < 3 || p->stride != 1) {
		return false;
	}
	*ret_start_us = p->iterations[0].start_ns / 1000;
	*ret_end_us = p->iterations[2].start_ns / 1000;
	return true;
}

static double more(double after, double before)
{
	return isfinite(after - before) ? fmax(0, after - before) : NAN;
}

static void find_training(const struct analysis *a, int64_t process, struct memory_breakdown *h)
{
	int64_t start_us, end_us;
	struct series s = {0};
	if (!first_iterations(&a->phases, &start_us, &end_us) ||
		reader_series(a->tables.reader, process, NAME_RESIDENT, INT64_MIN, INT64_MAX, &s,
			NULL) < 0) {
		return;
	}
	int64_t import_us = imported_us(a, start_us);
	double imported = import_us >= 0 ? gauge_at(&s, import_us) : NAN;
	double began = gauge_at(&s, start_us), trained = gauge_at(&s, end_us);
	h->bytes[HOLDING_FRAMEWORK] = imported;
	// Without a mark of the import, framework and dataset cannot be separated.
	h->bytes[HOLDING_DATASET] = isfinite(imported) ? more(began, imported) : began;
	h->bytes[HOLDING_TRAINING] = more(trained, began);
	h->bytes[HOLDING_ACTIVATIONS] = more(gauge_most(&s, end_us), fmax(trained, began));
	if (a->growth.leak && isfinite(h->bytes[HOLDING_ACTIVATIONS])) {
		h->bytes[HOLDING_GROWTH] = a->growth.gained_bytes;
		h->bytes[HOLDING_ACTIVATIONS] = fmax(
			0, h->bytes[HOLDING_ACTIVATIONS] - a->growth.gained_bytes);
	}
	series_done(&s);
}

// The largest number of loader workers at a time: each epoch may start new ones.
static size_t workers_at_once(const struct process_list *list, int64_t process)
{
	size_t most = 0;
	for (size_t i = 0; i < list->n; i++) {
		const struct process_row *row = &list->items[i];
		size_t beside = 0;
		for (size_t k = 0; row->role == ROLE_LOADER && k < list->n; k++) {
			const struct process_row *other = &list->items[k];
			beside += other->role == ROLE_LOADER && other->entity != process &&
			          other->first_s <= row->first_s && other->last_s >= row->first_s;
		}
		most = beside > most ? beside : most;
	}
	return most;
}

static void find_others(const struct analysis *a, int64_t process, struct memory_breakdown *h)
{
	const struct entity *job = entity_first(&a->tables.entities, ENTITY_JOB);
	double workers = NAN;
	size_t n = 0;
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		if (row->role == ROLE_LOADER && row->entity != process) {
			double pss = tables_figure(&a->tables, row->entity, NAME_PSS, FIGURE_MEAN);
			workers = words_sum(workers, pss);
			n += isfinite(pss);
		}
	}
	size_t at_once = workers_at_once(&a->processes, process);
	h->bytes[HOLDING_WORKERS] = n > at_once ? workers / (double)n * (double)at_once : workers;
	if (job) {
		h->bytes[HOLDING_BATCHES] = tables_figure(
			&a->tables, job->id, NAME_SHMEM, FIGURE_MAX);
		h->bytes[HOLDING_FILES] = tables_figure(&a->tables, job->id, NAME_FILE, FIGURE_MAX);
	}
}

// What GPUs hold more than at the start of the recording. Where other programs use them, too, the
// memory of the job's processes, which is read once a second: mostly too rarely for a value.
static void find_gpu(const struct analysis *a, struct memory_breakdown *h)
{
	int64_t start_us, end_us;
	if (!first_iterations(&a->phases, &start_us, &end_us)) {
		return;
	}
	for (size_t i = 0; i < a->overview.n_gpus; i++) {
		int64_t gpu = a->overview.gpus[i].entity;
		struct series s = {0};
		bool own = tables_figure(&a->tables, gpu, NAME_GPU_JOB_PROCESSES, FIGURE_MAX) > 0;
		bool alone = tables_figure(&a->tables, gpu, NAME_GPU_OTHERS, FIGURE_MAX) <= 0;
		const char *metric = alone ? NAME_GPU_MEMORY : NAME_GPU_JOB_MEMORY;
		if (!own || reader_series(a->tables.reader, gpu, metric, INT64_MIN, INT64_MAX, &s,
				    NULL) < 0) {
			continue;
		}
		double before = !alone ? 0 : s.n > 0 && s.t_us[0] < start_us ? s.values[0] : NAN;
		double began = gauge_within(&s, start_us, GPU_NEAR_US);
		double grew = more(gauge_most(&s, start_us), began);
		h->bytes[HOLDING_GPU_MODEL] = words_sum(
			h->bytes[HOLDING_GPU_MODEL], more(began, before));
		h->bytes[HOLDING_GPU_TRAINING] = words_sum(h->bytes[HOLDING_GPU_TRAINING], grew);
		series_done(&s);
	}
}

void memory_breakdown_find(const struct analysis *a, struct memory_breakdown *ret)
{
	for (size_t i = 0; i < N_HOLDINGS; i++) {
		ret->bytes[i] = NAN;
	}
	int64_t process = a->phases.n_ranks > 0 ? a->phases.ranks[0].entity : 0;
	if (a->tables.reader && process) {
		find_training(a, process, ret);
		find_others(a, process, ret);
		find_gpu(a, ret);
	}
}

void memory_breakdown_append(struct text *t, const struct memory_breakdown *memory, bool of_gpu)
{
	const char *comma = "";
	for (size_t i = 0; i < N_HOLDINGS; i++) {
		if (memory->bytes[i] >= SHOWN_BYTES && holdings[i].of_gpu == of_gpu) {
			bool whole = i == HOLDING_DATASET &&
			             isnan(memory->bytes[HOLDING_FRAMEWORK]);
			text_format(t, "%s%s ", comma,
				whole ? "before the first iteration" : holdings[i].name);
			words_append_bytes(t, memory->bytes[i]);
			comma = ", ";
		}
	}
}

// Evidence ----------------------------------------------------------------------------------------

#define APART_S 0.2 // two stops that differ by more are different stops
#define STOLEN 0.75 // of the CPU time of others: then it was the hypervisor

// Appends a row and takes `value`, which must not be empty. Returns 0 or -ENOMEM.
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

static int put_throttling(const struct analysis *a, const struct facts *f, struct verdict *v)
{
	const struct overview *o = &a->overview;
	if (!(o->throttled > 0)) {
		return 0;
	}
	const struct entity *job = entity_first(&a->tables.entities, ENTITY_JOB);
	double seconds = tables_figure(
		&a->tables, job ? job->id : 0, NAME_THROTTLED_TIME, FIGURE_TOTAL);
	struct text value = {0};
	text_append_string(&value, "used up in ");
	words_append_percent(&value, o->throttled);
	text_append_string(&value, " of its periods");
	if (isfinite(seconds)) { // summed over CPUs: may exceed the length of the run
		text_append_string(&value, "; ");
		words_append_number(&value, seconds);
		text_append_string(&value, " CPU-seconds throttled");
	}
	if (f->quota.where) {
		text_append_string(&value, f->quota.own ? "; set by the job's own cgroup "
							: "; set outside strain by cgroup ");
		text_append_printable(&value, f->quota.where, strlen(f->quota.where));
	}
	return evidence_put(v, "CPU quota", &value, NAME_PERIODS_THROTTLED);
}

static int put_memory(const struct analysis *a, struct verdict *v)
{
	const struct overview *o = &a->overview;
	if (!isfinite(o->memory.peak_bytes)) {
		return 0;
	}
	struct text value = {0};
	overview_append_memory(&value, &o->memory, o->memory_limit_bytes);
	bool one = strcmp(o->memory.kind, "resident") == 0;
	text_format(&value, ", peak of %s (%s)", one ? "the largest process" : "all processes",
		o->memory.kind);
	return evidence_put(v, "memory", &value, o->memory.metric);
}

static int put_growth(const struct facts *f, struct verdict *v)
{
	struct text value = {0}, of_gpu = {0};
	int r = 0;
	if (f->growth.leak) {
		growth_append_warning(&value, &f->growth);
		r = evidence_put(v, "growth", &value, NAME_ANONYMOUS);
	}
	if (f->gpu_growth.leak && r == 0) {
		growth_append_warning(&of_gpu, &f->gpu_growth);
		r = evidence_put(v, "GPU growth", &of_gpu, NAME_GPU_MEMORY);
	}
	return r;
}

// What did not come from storage came from the page cache, or from pipes, sockets and devices.
static int put_reads(const struct analysis *a, struct verdict *v)
{
	double share = overview_cache_share(&a->overview);
	if (!isfinite(share)) {
		return 0;
	}
	struct text value = {0};
	words_append_bytes(&value, a->overview.asked_bytes);
	text_append_string(&value, ", ");
	words_append_percent(&value, 1 - share);
	text_append_string(&value, " from storage");
	return evidence_put(v, "reads", &value, NAME_READ_ASKED);
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

// Evidence from phases ----------------------------------------------------------------------------

static int put_training(const struct facts *f, struct verdict *v)
{
	if (!isfinite(f->main_cpus)) {
		return 0;
	}
	struct text value = {0};
	words_append_number(&value, f->main_cpus);
	text_append_string(&value, " of ");
	words_append_counted(&value, f->cpus, "CPU");
	if (f->main_queued >= 0.01) {
		text_append_string(&value, "; waiting for a CPU ");
		words_append_percent(&value, f->main_queued);
		text_append_string(&value, " of the time");
	}
	return evidence_put(
		v, "training", &value, f->main_queued >= 0.01 ? NAME_CPU_WAIT : NAME_CPU_TIME);
}

static int put_workers(const struct facts *f, struct verdict *v)
{
	const struct worker_facts *w = &f->workers;
	if (w->n == 0 || !isfinite(w->cpus)) {
		return 0;
	}
	struct text value = {0};
	text_format(&value, "%u, using ", w->n);
	words_append_number(&value, w->cpus);
	text_append_string(&value, " of ");
	words_append_counted(&value, f->cpus, "CPU");
	if (w->preparing > 0) {
		text_append_string(&value, "; preparing batches ");
		words_append_percent(&value, fmin(1, w->preparing / w->n));
		text_append_string(&value, " of the time");
	}
	return evidence_put(v, "loader workers", &value, NAME_CPU_TIME);
}

static void append_samples(struct text *t, uint64_t samples)
{
	char count[32];
	text_format(t, " (%s samples)", text_count(count, sizeof(count), samples));
}

static int put_looks(struct verdict *v, const char *what, const struct wait_facts *waits)
{
	struct text value = {0};
	if (waits->looks == 0) {
		return 0;
	}
	wait_facts_append(&value, waits);
	if (value.length == 0) {
		return 0;
	}
	append_samples(&value, waits->looks);
	return evidence_put(v, what, &value, NAME_WAIT "looks");
}

// Waits of the training thread and of the workers.
static int put_waits(const struct facts *f, struct verdict *v)
{
	int r = put_looks(v, "training waits", &f->waits);
	return r < 0 ? r : put_looks(v, "workers wait", &f->worker_waits);
}

static void append_time(struct text *t, double seconds, const char *what)
{
	if (seconds >= 1e-6) {
		text_append_string(t, ", ");
		words_append_seconds(t, seconds);
		text_append_string(t, what);
	}
}

// Processes started per iteration, if any.
static int put_children(const struct facts *f, struct verdict *v)
{
	const struct children_facts *c = &f->children;
	struct text value = {0};
	if (!(c->per_iteration >= 0.01)) {
		return 0;
	}
	words_append_number(&value, c->per_iteration);
	text_append_string(&value, " per iteration");
	append_time(&value, c->cpu_s, " of CPU time");
	append_time(&value, c->waits_s, " of waiting");
	if (c->command && *c->command) {
		text_append_string(&value, ", mostly \"");
		words_append_place(&value, c->command, 24);
		text_append_string(&value, "\"");
	}
	return evidence_put(v, "children", &value, NAME_CHILDREN_STARTED);
}

// CPU use of the training process by group of threads, if more than the first thread used CPUs.
static int put_threads(const struct facts *f, struct verdict *v)
{
	struct text value = {0};
	if (!f->threads.known || !(f->threads.others_cpus >= 0.05)) {
		return 0;
	}
	thread_facts_append(&value, &f->threads);
	if (f->threads.team_outside >= 0.05) {
		text_append_string(&value, ", the team had no work for ");
		words_append_percent(&value, f->threads.team_outside);
		text_append_string(&value, " of the time");
	}
	return evidence_put(v, "training threads", &value, NAME_THREADS_OF "main.cpu_time");
}

// The most frequent lines of the script.
static int put_lines_of(const struct line_facts *lines, const char *what, struct verdict *v)
{
	char count[32];
	if (lines->looks < LOOKS_ENOUGH) {
		return 0;
	}
	struct text value = {0};
	for (size_t i = 0; i < lines->n_tops; i++) {
		const struct line_place *top = &lines->tops[i];
		if (i > 0 && top->share < LINE_WORTH) {
			break;
		}
		text_append_string(&value, i > 0 ? ", " : "");
		words_append_percent(&value, top->share);
		text_append_string(&value, " in ");
		words_append_place(&value, top->place, 60);
		if (*top->phase && strcmp(top->phase, "thread") != 0) {
			text_append_string(&value, " (");
			words_append_place(&value, top->phase, 16);
			text_append_string(&value, ")");
		}
	}
	text_format(&value, " (%s samples)", text_count(count, sizeof(count), lines->looks));
	return evidence_put(v, what, &value, NULL);
}

static int put_lines(const struct facts *f, struct verdict *v)
{
	int r = put_lines_of(&f->lines, "lines", v);
	r = r < 0 ? r : put_lines_of(&f->thread_lines, "lines, threads", v);
	return r < 0 ? r : put_lines_of(&f->worker_lines, "lines, workers", v);
}

static int put_samples(const struct facts *f, struct verdict *v)
{
	const struct code_facts *groups[N_CODE_GROUPS] = {
		[CODE_LEADER] = &f->code,
		[CODE_THREADS] = &f->code_threads,
		[CODE_WORKERS] = &f->code_workers,
	};
	int r = 0;
	for (size_t i = 0; i < N_CODE_GROUPS && r == 0; i++) {
		struct text value = {0};
		if (i != CODE_THREADS || groups[i]->samples >= SAMPLES_SHOWN) {
			code_facts_append(&value, groups[i]);
		}
		if (value.length > 0) {
			append_samples(&value, groups[i]->samples);
			// Without marks, nothing says that it trains.
			const char *what = i == CODE_LEADER && !f->parts
			                           ? "main thread"
			                           : code_group_name((enum code_group)i);
			r = evidence_put(v, what, &value, "strain.profile.samples");
		}
	}
	return r;
}

// The functions in which the training thread was found most often; of the kernel there are no
// names.
static int put_functions(const struct facts *f, struct verdict *v)
{
	struct text value = {0};
	size_t n = 0;
	for (size_t i = 0; i < CODE_TOPS && f->code.samples >= FUNCTIONS_OF; i++) {
		const struct code_top *top = &f->functions[i];
		const char *file = strstr(top->name, " (");
		double share = (double)top->samples / (double)f->code.samples;
		if (file && share >= FUNCTION_WORTH && n++ < FUNCTIONS_SHOWN) {
			text_append_string(&value, n > 1 ? ", " : "");
			text_append_printable(&value, top->name, (size_t)(file - top->name));
			text_append_string(&value, " ");
			words_append_percent(&value, share);
		}
	}
	return value.length > 0 ? evidence_put(v, "functions", &value, "strain.profile.samples")
	                        : 0;
}

// Both sides of the queue of batches, if one waits for the other.
static int put_rates(const struct facts *f, struct verdict *v)
{
	double rate = f->rate, trains = f->rate * f->length_s.value / f->compute_s;
	char number[32];
	if (!(rate > 0) || !(trains > 0) || !(f->share[PHASE_DATA].value >= 0.05)) {
		return 0;
	}
	struct text value = {0};
	text_format(&value, "%s %s/s", text_count(number, sizeof(number), (uint64_t)llround(rate)),
		f->unit ? f->unit : "samples");
	text_format(&value, "; training could process %s",
		text_count(number, sizeof(number), (uint64_t)llround(trains)));
	return evidence_put(v, "input", &value, NULL);
}

// Other users of the same CPUs: programs and virtual machines.
static int put_others(const struct facts *f, struct verdict *v)
{
	if (!(f->host_others_cpus >= 0.1)) {
		return 0;
	}
	struct text value = {0};
	words_append_number(&value, f->host_others_cpus);
	text_append_string(&value, f->cpus < f->host_cpus ? " of the machine's " : " of ");
	words_append_counted(&value, f->host_cpus, "CPU");
	if (f->stolen_cpus >= STOLEN * f->host_others_cpus) {
		text_append_string(&value, ", used by the hypervisor");
	} else if (f->stolen_cpus >= 0.05) {
		text_append_string(&value, ", of which the hypervisor used ");
		words_append_number(&value, f->stolen_cpus);
	}
	return evidence_put(v, "other programs", &value, "system.cpu.time");
}

static int put_disturbed(const struct facts *f, struct verdict *v)
{
	bool disturbed = f->main_queued >= QUEUED || f->others_cpus >= OTHERS * f->cpus;
	// Steps also differ without disturbance; then the shortest tell nothing about the others.
	if (!disturbed || !(f->compute_s >= USUAL * f->undisturbed_s)) {
		return 0;
	}
	struct text value = {0};
	words_append_seconds(&value, f->compute_s);
	text_append_string(&value, " on average, ");
	words_append_seconds(&value, f->undisturbed_s);
	text_append_string(&value, " when undisturbed");
	return evidence_put(v, "a step", &value, NULL);
}

static int put_storage(const struct facts *f, struct verdict *v)
{
	const struct storage_facts *s = &f->storage;
	if (!(s->read_rate >= 1e5)) {
		return 0;
	}
	struct text value = {0};
	words_append_bytes(&value, s->read_rate);
	text_append_string(&value, "/s from storage");
	if (s->refault_rate >= 1e5) {
		text_append_string(&value, ", of which ");
		words_append_bytes(&value, s->refault_rate);
		text_append_string(&value, "/s was re-read after eviction from the page cache");
	}
	double calls = cause_read_calls(f);
	if (calls > 0) {
		text_append_string(&value, "; the OS kernel spends ");
		words_append_percent(&value, calls);
		text_append_string(
			&value, " of each iteration on short reads, in addition to waiting");
	}
	return evidence_put(
		v, "reading", &value, s->refault_rate >= 1e5 ? NAME_REFAULTS : NAME_READ_STORAGE);
}

static int put_network(const struct facts *f, struct verdict *v)
{
	const struct network_facts *n = &f->network;
	char seconds[32];
	if (!(n->busy >= WORTH) || !n->peer) {
		return 0;
	}
	struct text value = {0};
	text_append_string(&value, "sends ");
	words_append_bytes(&value, n->sent_rate);
	text_append_string(&value, "/s to ");
	text_append_printable(&value, n->peer, strlen(n->peer));
	text_append_string(&value, ", in transit ");
	words_append_percent(&value, n->busy);
	text_append_string(&value, " of the time");
	if (isfinite(n->round_trip_s)) {
		text_format(&value, ", round trip %s",
			text_seconds(seconds, sizeof(seconds), n->round_trip_s));
	}
	if (n->retransmitted >= 1) {
		text_append_string(&value, ", ");
		words_append_number(&value, n->retransmitted);
		text_append_string(&value, " retransmitted packets per second");
	}
	return evidence_put(v, "network", &value, NULL);
}

static int put_ranks(const struct facts *f, struct verdict *v)
{
	if (f->ranks.n < 2 || !isfinite(f->ranks.waits_most)) {
		return 0;
	}
	struct text value = {0};
	text_format(&value, "%u, waiting ", f->ranks.n);
	words_append_percent(&value, f->ranks.waits_least);
	text_append_string(&value, " to ");
	words_append_percent(&value, f->ranks.waits_most);
	text_append_string(&value, " of their iteration time");
	text_append_string(&value, f->ranks.inferred ? ", estimated from backward passes" : "");
	return evidence_put(v, "ranks", &value, NULL);
}

// Stopped times of the job, and of its processes if they differ.
static int put_stopped(const struct analysis *a, struct verdict *v)
{
	const struct overview *o = &a->overview;
	struct text value = {0};
	if (o->stopped_s > 0) {
		text_append_string(&value, "for ");
		words_append_seconds(&value, o->stopped_s);
	}
	for (size_t i = 0; i < a->processes.n && a->stops.total_s > a->job_stops.total_s; i++) {
		const struct process_row *row = &a->processes.items[i];
		if (row->stopped_s > o->stopped_s + APART_S) {
			text_format(&value, "%s%s for ", value.length ? "; " : "", row->label);
			words_append_seconds(&value, row->stopped_s);
		}
	}
	if (value.length == 0) {
		return 0;
	}
	text_append_string(&value, ", excluded from shares and rates");
	return evidence_put(
		v, "stopped", &value, o->stopped_s > 0 ? NAME_STOPPED : NAME_PROCESS_STOPPED);
}

// Compiling is part of the run, also where it is not part of the usual iterations.
static int put_compiling(const struct analysis *a, struct verdict *v)
{
	double seconds = a->phases.compiling_s;
	struct text value = {0};
	if (!(seconds >= WORTH * a->overview.duration_s) || a->phases.compilations == 0) {
		return 0;
	}
	words_append_counted(&value, (double)a->phases.compilations, "time");
	text_append_string(&value, ", ");
	words_append_seconds(&value, seconds);
	text_append_string(&value, ": ");
	words_append_percent(&value, fmin(1, seconds / a->overview.duration_s));
	text_append_string(&value, " of the run");
	return evidence_put(v, "compiling", &value, NULL);
}

static int put_phases(const struct facts *f, struct verdict *v)
{
	static int (*const puts[])(const struct facts *f, struct verdict *v) = {put_rates,
		put_workers, put_training, put_waits, put_children, put_threads, put_samples,
		put_functions, put_lines, put_disturbed, put_storage, put_network, put_ranks};
	static int (*const without_marks[])(const struct facts *f, struct verdict *v) = {
		put_samples, put_functions, put_lines};
	int r = put_others(f, v);
	for (size_t i = 0; f->parts && i < ARRAY_LENGTH(puts) && r == 0; i++) {
		r = puts[i](f, v);
	}
	for (size_t i = 0; !f->parts && i < ARRAY_LENGTH(without_marks) && r == 0; i++) {
		r = without_marks[i](f, v);
	}
	return r;
}

int evidence_build(const struct analysis *a, const struct facts *f, struct verdict *ret)
{
	static int (*const puts[])(const struct analysis *a, struct verdict *v) = {
		put_memory, put_reads, put_pressure};
	int r = put_stopped(a, ret);
	r = r < 0 ? r : put_compiling(a, ret);
	r = r < 0 ? r : put_phases(f, ret);
	r = r < 0 ? r : gpu_evidence_build(&f->gpu, ret);
	r = r < 0 ? r : put_results(f, ret);
	r = r < 0 ? r : put_cpu(a, ret);
	r = r < 0 ? r : put_throttling(a, f, ret);
	r = r < 0 ? r : put_growth(f, ret);
	for (size_t i = 0; i < sizeof(puts) / sizeof(puts[0]) && r == 0; i++) {
		r = puts[i](a, ret);
	}
	return r;
}
