// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Facts from an analysis: the phases as they are, and what resources did in a stretch of steady
// iterations.

#include "analyze/facts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/line_shares.h"
#include "analyze/names.h"
#include "analyze/plausible.h"
#include "analyze/profile.h"
#include "analyze/quota_facts.h"
#include "analyze/rate.h"
#include "analyze/thread_facts.h"
#include "analyze/thresholds.h"
#include "analyze/wait_facts.h"
#include "analyze/worker_facts.h"
#include "analyze/words.h"
#include "base/cleanup.h"

#define APART 0.1 // of the stretch: with more, it is left out
#define PAGE_BYTES 4096.0
#define UNDISTURBED 0.02 // quantile
#define SEVERAL 1.3 // CPUs: more than one thread that computes uses beside those that do not

void facts_init(struct facts *f)
{
	*f = (struct facts){0};
	const struct estimate unknown = {NAN, NAN, NAN};
	for (size_t i = 0; i < ARRAY_LENGTH(f->share); i++) {
		f->share[i] = unknown;
	}
	f->length_s = unknown;
	f->duration_s = f->startup_s = f->training_s = f->between_s = f->validation_s =
		f->checkpoint_s = NAN;
	f->samples = f->epoch_iterations = f->compute_s = f->undisturbed_s =
		f->undisturbed_waits_s = NAN;
	f->data_at_epochs = f->other_at_epochs = NAN;
	f->cpus = f->cpus_used = f->main_cpus = f->main_queued = f->others_cpus = NAN;
	f->page_faults = NAN;
	f->throttled = f->main_threads = f->stolen_cpus = f->cpu_stalled = NAN;
	f->host_cpus = f->host_others_cpus = f->omp_threads = NAN;
	f->workers = (struct worker_facts){.cpus = NAN,
		.queued = NAN,
		.blocked = NAN,
		.preparing = NAN,
		.busiest = NAN,
		.slowest = NAN};
	f->storage = (struct storage_facts){NAN, NAN, NAN, NAN, NAN, NAN, false};
	f->memory = (struct memory_facts){
		.limit_bytes = NAN, .peak_bytes = NAN, .limit_hits = NAN, NAN, NAN, NAN, NAN};
	gpu_facts_init(&f->gpu);
	for (size_t i = 0; i < N_WAITS; i++) {
		f->waits.share[i] = f->worker_waits.share[i] = NAN;
		f->waits.in_data[i] = f->worker_waits.in_data[i] = NAN;
		f->waits.in_step[i] = f->worker_waits.in_step[i] = NAN;
	}
	for (size_t i = 0; i < N_CODE_CLASSES; i++) {
		f->code.share[i] = f->code_threads.share[i] = f->code_workers.share[i] = NAN;
	}
	f->code.cpus = f->code_threads.cpus = f->code_workers.cpus = NAN;
	thread_facts_init(&f->threads);
	f->children = (struct children_facts){NAN, NAN, NAN, NULL};
	f->quota = (struct quota_facts){.cpus = NAN,
		.used_up = NAN,
		.used_cpus = NAN,
		.throttled_cpus = NAN,
		.throttled_cpu_s = NAN,
		.queued_cpus = NAN,
		.needed_cpus = NAN};
	f->growth = (struct growth_facts){.bytes_per_iteration = unknown,
		.bytes_per_s = NAN,
		.full_in_s = NAN,
		.gained_bytes = NAN};
	f->ranks = (struct rank_facts){.n = 1, .waits_most = NAN, .waits_least = NAN, .own = NAN};
}

static int64_t first_id(const struct analysis *a, enum entity_kind kind)
{
	const struct entity *entity = entity_first(&a->entities, kind);
	return entity ? entity->id : 0;
}

// Stretches --------------------------------------------------------------------------------------

static bool is_steady(const struct iteration *iteration)
{
	return !iteration->warm_up && !iteration->cut;
}

static void stretch_grow(struct stretch *stretch, const struct iteration *iteration)
{
	if (stretch->to_us == 0) {
		stretch->from_us = iteration->start_ns / 1000;
	}
	stretch->to_us = iteration->end_ns / 1000;
}

// What is between an epoch and the next is a gap.
static void stretch_add_epoch(struct stretch *all, const struct stretch *epoch)
{
	if (all->to_us == 0) {
		*all = *epoch;
		return;
	}
	all->gaps[all->n_gaps++] = (struct stretch_gap){all->to_us, epoch->from_us};
	all->to_us = epoch->to_us;
}

static bool steady_next(const struct phases *p, size_t *at, struct stretch *ret)
{
	int64_t number = -1;
	*ret = (struct stretch){0};
	for (; *at < p->n_iterations; (*at)++) {
		const struct iteration *iteration = &p->iterations[*at];
		if (!is_steady(iteration)) {
			continue;
		}
		if (ret->to_us > 0 && iteration->epoch != number) {
			break;
		}
		number = iteration->epoch;
		stretch_grow(ret, iteration);
	}
	return ret->to_us > 0;
}

// All steady iterations; where much lies between their epochs, without that: of many epochs those
// in the middle.
static struct stretch steady_of(const struct phases *p)
{
	struct stretch all = {0}, middle = {0}, epoch;
	size_t epochs = 0, at = 0;
	for (; steady_next(p, &at, &epoch); epochs++) {
		all.from_us = epochs == 0 ? epoch.from_us : all.from_us;
		all.to_us = epoch.to_us;
	}
	double apart_us = (p->apart_s + p->between_s) * 1e6;
	if (!(apart_us > APART * (double)(all.to_us - all.from_us))) {
		return all;
	}
	size_t most = STRETCH_GAPS + 1, first = epochs > most ? (epochs - most) / 2 : 0;
	at = 0;
	for (size_t i = 0; i < first + most && steady_next(p, &at, &epoch); i++) {
		if (i >= first) {
			stretch_add_epoch(&middle, &epoch);
		}
	}
	return middle;
}

// Phases -----------------------------------------------------------------------------------------

static int double_compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static bool is_computing(size_t phase)
{
	return phase != PHASE_DATA && phase != PHASE_TRANSFER && phase != PHASE_COMMUNICATION &&
	       (phase >= N_KNOWN_PHASES || !phase_is_apart((enum phase_id)phase));
}

// What a step takes undisturbed is asked of steps like the usual one: of as many samples, and not
// the last of an epoch, whose batch may be smaller and nobody said so.
static bool is_usual(const struct phases *p, size_t at)
{
	const struct iteration *iteration = &p->iterations[at];
	bool last = at + 1 < p->n_iterations && p->iterations[at + 1].epoch != iteration->epoch;
	if (iteration->samples >= 0 && isfinite(p->samples_per_iteration)) {
		return fabs((double)iteration->samples - p->samples_per_iteration) < 0.5;
	}
	return !last && at + 1 < p->n_iterations;
}

// Mean of one phase in steady iterations, and a low quantile of it in usual ones. `lengths` has
// room for all.
static void add_computing(
	const struct phases *p, size_t phase, double *lengths, double *mean_s, double *low_s)
{
	size_t n = 0, usual = 0;
	double sum = 0;
	for (size_t i = 0; i < p->n_iterations; i++) {
		if (is_steady(&p->iterations[i])) {
			double length_s = (double)p->iterations[i].phase_ns[phase] / 1e9;
			sum += length_s;
			n++;
			if (is_usual(p, i)) {
				lengths[usual++] = length_s;
			}
		}
	}
	if (n > 0) {
		*mean_s = words_sum(*mean_s, sum / (double)n);
	}
	if (usual > 0) {
		qsort(lengths, usual, sizeof(*lengths), double_compare);
		*low_s = words_sum(*low_s, lengths[(size_t)((double)usual * UNDISTURBED)]);
	}
}

// Phase by phase: each is short, and sometimes nobody is in its way.
static void fill_computing(const struct phases *p, struct facts *f)
{
	_cleanup_free_ double *lengths = calloc(p->n_iterations + 1, sizeof(*lengths));
	double waits_s = NAN;
	for (size_t i = 0; lengths && i < p->n; i++) {
		if (is_computing(i)) {
			add_computing(p, i, lengths, &f->compute_s, &f->undisturbed_s);
		} else if (i == PHASE_TRANSFER || i == PHASE_COMMUNICATION) {
			add_computing(p, i, lengths, &waits_s, &f->undisturbed_waits_s);
		}
	}
}

// Of what steady iterations spend in a phase, the part that the first ones of epochs do, as a share
// of all their time.
static double share_at_epochs(const struct phases *p, enum phase_id phase)
{
	double all_ns = 0, first_ns = 0;
	for (size_t i = 0; i < p->n_iterations; i++) {
		const struct iteration *iteration = &p->iterations[i];
		if (is_steady(iteration)) {
			bool first = iteration->number == 0;
			all_ns += (double)iteration->length_ns;
			first_ns += first ? (double)iteration->phase_ns[phase] : 0;
		}
	}
	return all_ns > 0 ? first_ns / all_ns : NAN;
}

static void fill_phases(const struct phases *p, struct facts *f)
{
	f->iterations = p->total > 0;
	f->parts = f->iterations && !p->phases_missing && p->steady > 0;
	f->lost = p->incomplete;
	if (!f->iterations) {
		return;
	}
	f->steady = p->steady;
	f->startup_s = p->startup_s;
	f->between_s = p->between_s - p->saving_s;
	f->training_s = p->iterations_s + p->apart_s + p->between_s + p->unrecorded_s;
	f->validation_s = p->items[PHASE_VALIDATION].total_s;
	f->checkpoint_s = p->items[PHASE_CHECKPOINT].total_s + p->saving_s;
	f->length_s = p->length_s;
	f->samples = p->samples_per_iteration;
	for (size_t i = 0; i < p->n_epochs; i++) {
		f->epoch_iterations = fmax(f->epoch_iterations, (double)p->epochs[i].iterations);
	}
	for (size_t i = 0; i < N_KNOWN_PHASES && i < p->n; i++) {
		if (!p->items[i].apart && (p->items[i].spans > 0 || i == PHASE_OTHER)) {
			f->share[i] = p->items[i].share;
		}
	}
	fill_computing(p, f);
	f->data_at_epochs = share_at_epochs(p, PHASE_DATA);
	f->other_at_epochs = share_at_epochs(p, PHASE_OTHER);
}

// Ranks are numbered as they were started.
static int rank_place(const struct phases *p, size_t index)
{
	int place = 0;
	for (size_t i = 0; i < p->n_ranks; i++) {
		place += p->ranks[i].entity < p->ranks[index].entity;
	}
	return place;
}

static void fill_ranks(const struct phases *p, struct facts *f)
{
	f->ranks.n = p->n_ranks > 0 ? (unsigned)p->n_ranks : 1;
	f->ranks.inferred = p->waits_inferred;
	f->ranks.own = p->n_ranks > 1 ? p->ranks[0].waits : NAN;
	for (size_t i = 0; i < p->n_ranks && p->n_ranks > 1; i++) {
		const struct phase_rank *rank = &p->ranks[i];
		double waits = rank->waits;
		if (isfinite(waits) && !(waits >= f->ranks.waits_least)) {
			f->ranks.waits_least = waits;
			f->ranks.slowest = rank_place(p, i);
		}
		f->ranks.waits_most = fmax(waits, f->ranks.waits_most);
	}
}

// Processes --------------------------------------------------------------------------------------

// The process that trains: it marks iterations, or the tree says so.
int64_t facts_trainer(const struct analysis *a)
{
	if (a->phases.n_ranks > 0 && a->phases.ranks[0].entity) {
		return a->phases.ranks[0].entity;
	}
	for (size_t i = 0; i < a->processes.n; i++) {
		if (a->processes.items[i].role == ROLE_MAIN) {
			return a->processes.items[i].entity;
		}
	}
	return 0;
}

// Resources --------------------------------------------------------------------------------------

static void fill_cpus(const struct analysis *a, struct facts *f, const struct stretch *stretch)
{
	static const char *const modes[] = {"user", "nice", "system", "irq", "softirq", "steal"};
	const struct overview *o = &a->overview;
	int64_t host = first_id(a, ENTITY_HOST), main = facts_trainer(a);
	f->duration_s = o->running_s;
	f->cpus = o->cpus;
	f->throttled = o->throttled;
	f->cpus_used = rate_over(a, first_id(a, ENTITY_JOB), NAME_CPU_TIME, stretch);
	f->cpus_used = isfinite(f->cpus_used) ? f->cpus_used : o->cpus_used;
	f->main_cpus = rate_over(a, main, NAME_CPU_TIME, stretch);
	f->main_threads = analysis_figure(a, main, NAME_THREADS, FIGURE_MAX);
	f->main_queued = rate_over(a, main, NAME_CPU_WAIT, stretch);
	f->page_faults = rate_over(a, main, NAME_MINOR_FAULTS, stretch);
	double everybody = NAN;
	for (size_t i = 0; i < ARRAY_LENGTH(modes); i++) {
		struct text name = {0};
		text_format(&name, "%s%s", NAME_HOST_CPU, modes[i]);
		everybody = words_sum(
			everybody, name.data ? rate_over(a, host, name.data, stretch) : NAN);
		text_done(&name);
	}
	f->host_cpus = isfinite(o->host_cpus) ? fmax(o->host_cpus, o->cpus) : o->cpus;
	if (isfinite(everybody)) {
		f->host_others_cpus = fmax(0, everybody - f->cpus_used);
		f->others_cpus = fmax(0, f->host_others_cpus - (f->host_cpus - f->cpus));
	}
	f->stolen_cpus = rate_over(a, host, NAME_HOST_CPU "steal", stretch);
	f->cpu_stalled = rate_over(a, host, NAME_PRESSURE "cpu.some", stretch);
}

static void fill_storage(const struct analysis *a, struct facts *f, const struct stretch *stretch)
{
	int64_t job = first_id(a, ENTITY_JOB), host = first_id(a, ENTITY_HOST);
	struct storage_facts *s = &f->storage;
	s->read_rate = rate_over(a, job, NAME_READ_STORAGE, stretch);
	s->written_rate = rate_over(a, job, NAME_WRITE_STORAGE, stretch);
	s->asked_rate = rate_over(a, job, NAME_READ_ASKED, stretch);
	s->refault_rate = PAGE_BYTES * rate_over(a, job, NAME_REFAULTS, stretch);
	s->refaults_of_host = PAGE_BYTES * rate_over(a, host, NAME_HOST_REFAULTS, stretch);
	s->stalled = rate_over(a, job, NAME_JOB_PRESSURE "io.some", stretch);
	s->stalled_of_job = isfinite(s->stalled);
	if (!s->stalled_of_job) {
		s->stalled = rate_over(a, host, NAME_PRESSURE "io.some", stretch);
	}
}

static void fill_memory(const struct analysis *a, struct facts *f, const struct stretch *stretch)
{
	const struct overview *o = &a->overview;
	int64_t job = first_id(a, ENTITY_JOB), host = first_id(a, ENTITY_HOST);
	struct memory_facts *m = &f->memory;
	m->limit_bytes = o->memory_limit_bytes;
	m->limited = o->memory_limit_is_cgroup;
	m->peak_bytes = o->memory.peak_bytes;
	m->limit_hits = analysis_figure(a, job, NAME_MEMORY_LIMIT_HITS, FIGURE_TOTAL);
	m->stalled = rate_over(a, job, NAME_JOB_PRESSURE "memory.full", stretch);
	if (!isfinite(m->stalled)) {
		m->stalled = rate_over(a, host, NAME_PRESSURE "memory.full", stretch);
	}
	m->shared_bytes = analysis_figure(a, job, NAME_SHMEM, FIGURE_MAX);
	m->shared_limit_bytes = overview_limit(a, "shared_memory_bytes");
	m->swap_rate = PAGE_BYTES * rate_over(a, host, NAME_HOST_SWAP_IN, stretch);
}

// Settings ---------------------------------------------------------------------------------------

// Whether a key of the run has this value.
static bool key_is(struct reader *r, const char *key, const char *value)
{
	const char *found = reader_run(r, key);
	return found && strcmp(found, value) == 0;
}

bool facts_one_thread(const struct facts *f, double feeding, bool set_to_one)
{
	return !(f->main_cpus >= SEVERAL) && (f->main_threads - feeding < 2 || set_to_one);
}

// PyTorch feeds each loader worker by a thread of its own; further threads may compute, or be a
// library's that never does.
static bool computes_with_one_thread(struct reader *r, const struct facts *f)
{
	double feeding = reader_run(r, "loader_workers") ? f->workers.feeding / fmax(1, f->ranks.n)
	                                                 : 0;
	return facts_one_thread(f, feeding, key_is(r, "omp_num_threads", "1"));
}

// "reference /usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0"
static const char *reference_blas(struct reader *r)
{
	static const char word[] = "reference ";
	const char *blas = reader_run(r, "blas");
	return blas && strncmp(blas, word, strlen(word)) == 0 ? blas + strlen(word) : NULL;
}

// "pytorch 1.13.0: data, backward"; of several, PyTorch: it is what has a loader.
static enum framework framework_of(const char *hooks)
{
	static const struct {
		const char *word;
		enum framework framework;
	} words[] = {
		{"pytorch", FRAMEWORK_PYTORCH}, {"keras", FRAMEWORK_KERAS}, {"jax", FRAMEWORK_JAX}};
	for (size_t i = 0; hooks && i < ARRAY_LENGTH(words); i++) {
		if (strstr(hooks, words[i].word)) {
			return words[i].framework;
		}
	}
	return FRAMEWORK_UNKNOWN;
}

static void fill_settings(struct reader *r, struct facts *f)
{
	const char *hooks = reader_run(r, "hooks");
	f->reference_blas = reference_blas(r);
	f->loader_at = reader_run(r, "loader_at");
	f->wait_policy = reader_run(r, "omp_wait_policy");
	int64_t omp_threads = reader_run_i64(r, "omp_num_threads", 0);
	f->omp_threads = omp_threads > 0 ? (double)omp_threads : NAN;
	f->framework = framework_of(hooks);
	f->pipeline = f->framework == FRAMEWORK_KERAS && !f->loader_at;
	// TensorFlow's and XLA's pools have settings of their own.
	f->openmp = f->framework == FRAMEWORK_UNKNOWN || f->framework == FRAMEWORK_PYTORCH;
	f->one_thread = !f->pipeline && computes_with_one_thread(r, f);
	f->workers.restart = f->workers.n > 0 && key_is(r, "loader_persistent_workers", "0");
}

static bool trains_in_python(const struct analysis *a)
{
	int64_t trainer = facts_trainer(a);
	for (size_t i = 0; i < a->processes.n; i++) {
		if (a->processes.items[i].entity == trainer) {
			return process_is_python(&a->processes.items[i]);
		}
	}
	return false;
}

struct stretch facts_stretch(const struct analysis *a)
{
	struct stretch stretch = steady_of(&a->phases);
	return stretch.to_us > 0
	               ? stretch
	               : (struct stretch){.to_us = (int64_t)(a->overview.recorded_s * 1e6)};
}

static void fill_lines(const struct analysis *a, struct facts *f)
{
	struct line_shares shares;
	if (line_shares_load(a, &shares) < 0 || shares.n == 0) {
		return;
	}
	const struct line_share *top = &shares.items[0];
	f->lines.looks = shares.samples;
	f->main_threads = fmax(1, f->main_threads - 1); // the one that looked is no job's
	f->lines.share = (double)top->samples / (double)shares.samples;
	snprintf(f->lines.top, sizeof(f->lines.top), "%.60s:%lld %.40s()",
		line_shares_short(&shares, top->file), (long long)top->line, top->function);
	line_shares_done(&shares);
}

static double known_or_0(double value)
{
	return isfinite(value) ? value : 0;
}

// JAX has no loader: what its hooks call data is all that is between two compiled calls, and
// between those of a short step it is the way into them and out again rather.
void facts_doubt_data(struct facts *f)
{
	struct estimate *data = &f->share[PHASE_DATA], *other = &f->share[PHASE_OTHER];
	if (f->framework == FRAMEWORK_JAX && f->length_s.value < SHORT_STEP_S &&
		isfinite(data->value)) {
		const struct estimate all = {data->value + known_or_0(other->value),
			data->low + known_or_0(other->low), data->high + known_or_0(other->high)};
		*other = all;
		*data = (struct estimate){NAN, NAN, NAN};
	}
}

void facts_gather(const struct analysis *a, struct facts *ret)
{
	facts_init(ret);
	fill_phases(&a->phases, ret);
	fill_ranks(&a->phases, ret);
	ret->python = trains_in_python(a);
	struct stretch stretch = facts_stretch(a);
	fill_cpus(a, ret, &stretch);
	quota_facts_fill(a, &stretch, ret);
	worker_facts_fill(a, facts_trainer(a), &stretch, ret);
	wait_facts_fill(a, facts_trainer(a), &stretch, ret);
	struct code_profile profile;
	(void)profile_load(a, &stretch, &profile); // without memory for it, no samples
	profile_facts_fill(a, &profile, facts_trainer(a), &stretch, ret);
	fill_storage(a, ret, &stretch);
	fill_memory(a, ret, &stretch);
	gpu_facts_fill(a, &stretch, &ret->gpu);
	if (a->growth.leak) {
		ret->growth = a->growth;
	}
	const struct machine_bounds bounds = plausible_bounds(a, stretch_seconds(&stretch));
	plausible_facts(&bounds, ret, a->implausible);
	fill_lines(a, ret);
	if (a->reader) {
		fill_settings(a->reader, ret);
	}
	facts_doubt_data(ret);
	thread_facts_fill(a, facts_trainer(a), &stretch, ret);
}
