// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads an observation from a run.

#include "probe/observation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "run/analysis.h"
#include "run/names.h"
#include "run/query.h"
#include "run/rate.h"
#include "runfile/reader.h"
#include "verdict/verdict.h"

#define WORKERS_MOST 4096
#define EPOCHS_MOST 1000
#define BATCH_MOST (1 << 24)
#define VALIDATION_MOST_S 1e7
// Samples of an epoch: loaders with more have no end in fact (1e10 in public scripts).
#define EPOCH_MOST 2e9
#define KEPT_MOST 1e13
#define KEPT_LEAST 32e6 // of a training pass: less may be what a loader prepares ahead
// The fewest iterations in the middle of shortened epochs that stand for those of full length.
#define MIDDLE_LEAST 8
#define MIDDLE_SECONDS 1.0 // and what they take at least
// Half of a 95 % interval of their mean, in standard errors: neighbours resemble each other.
#define MIDDLE_ERROR 3.0
// An iteration that waits less of its time is not bound by its input.
#define WAITS_LITTLE 0.1
// Workers that stay alive are worth a run if their start takes this share of a full epoch.
#define STARTS_SHARE 0.05
// Iterations that follow each other within this time belong together.
#define GAP_NS 1000000
// A reading of memory so near to the begin or end of validation may be of either side.
#define NEAR_US 50000

static double job_figure(const struct analysis *a, const char *metric, enum figure figure)
{
	int64_t job = tables_first(&a->tables, ENTITY_JOB);
	return job > 0 ? tables_figure(&a->tables, job, metric, figure) : NAN;
}

static double known_or(double value, double otherwise)
{
	return isfinite(value) ? value : otherwise;
}

static int64_t bounded_key(struct reader *reader, const char *key, int64_t most)
{
	int64_t value = reader_run_i64(reader, key, -1);
	return value >= 0 && value <= most ? value : -1;
}

static char *copy_key(struct reader *reader, const char *key)
{
	const char *value = reader_run(reader, key);
	return value ? strdup(value) : NULL;
}

// Memory ------------------------------------------------------------------------------------------

// What samples missed of the training process's peak: the kernel's high-water mark is exact.
static double missed_by_samples(const struct analysis *a)
{
	int64_t trainer = analysis_trainer(a);
	double mark = trainer > 0 ? tables_figure(&a->tables, trainer, NAME_PEAK, FIGURE_MAX) : NAN;
	double seen = trainer > 0 ? tables_figure(&a->tables, trainer, NAME_RESIDENT, FIGURE_MAX)
	                          : NAN;
	return mark > seen ? mark - seen : 0;
}

// What each batch of training keeps, by the hooks: "1048576 200", bytes and batches. NAN:
// nothing.
static double read_growth(struct reader *reader)
{
	const char *text = reader_run(reader, "loader_training_growth");
	struct cursor at = cursor_of(text ? text : "", text ? strlen(text) : 0);
	int64_t each, batches;
	bool whole = cursor_i64(&at, &each) && cursor_i64(&at, &batches) && at.at == at.end;
	bool sane = whole && each > 0 && batches > 0 && batches <= INT32_MAX;
	double bytes = sane ? (double)each * (double)batches : 0;
	return bytes >= KEPT_LEAST && bytes <= KEPT_MOST ? (double)each : NAN;
}

static void read_workers_memory(const struct analysis *a, struct observation *o)
{
	double sum = 0;
	size_t n = 0;
	for (size_t i = 0; i < a->processes.n; i++) {
		const struct process_row *row = &a->processes.items[i];
		if (row->role == ROLE_LOADER && isfinite(row->uss_peak_bytes)) {
			sum += row->uss_peak_bytes;
			n++;
		}
	}
	o->worker = n > 0 ? sum / (double)n : NAN;
}

static void read_gpus(const struct analysis *a, struct observation *o)
{
	double busy = 0, n = 0;
	o->gpu = o->gpu_limit = NAN;
	o->gpus = 0;
	for (size_t i = 0; i < a->overview.n_gpus; i++) {
		const struct gpu_figures *gpu = &a->overview.gpus[i];
		double used = tables_figure(
			&a->tables, gpu->entity, NAME_GPU_JOB_MEMORY, FIGURE_MAX);
		if (used > 0) {
			o->gpu = known_or(o->gpu, 0) + used;
			o->gpu_limit = known_or(o->gpu_limit, 0) + gpu->memory_bytes;
			busy += tables_figure(&a->tables, gpu->entity, NAME_GPU_BUSY, FIGURE_MEAN);
			n++;
			o->gpus++;
		}
	}
	o->gpu_busy = n > 0 ? busy / n : NAN;
}

enum { VALIDATIONS_MAX = 512 };

struct validations { // in order of their start
	size_t n;
	bool more;
	struct stretch_gap items[VALIDATIONS_MAX];
};

static int note_validation(void *context, sqlite3_stmt *row)
{
	struct validations *v = context;
	if (v->n == VALIDATIONS_MAX) {
		v->more = true;
		return 0;
	}
	v->items[v->n++] = (struct stretch_gap){
		sqlite3_column_int64(row, 0) / 1000, sqlite3_column_int64(row, 1) / 1000};
	return 0;
}

static void find_peaks(
	const struct series *s, const struct validations *v, int64_t from_us, struct observation *o)
{
	int64_t end_us = -NEAR_US - 1; // of those that have begun
	for (size_t i = 0, next = 0; i < s->n; i++) {
		int64_t t_us = s->t_us[i];
		for (; next < v->n && v->items[next].from_us <= t_us; next++) {
			int64_t to_us = v->items[next].to_us;
			end_us = to_us > end_us ? to_us : end_us;
		}
		bool near = t_us <= end_us + NEAR_US ||
		            (next < v->n && v->items[next].from_us <= t_us + NEAR_US);
		if (t_us <= end_us) {
			o->validation_peak = fmax(o->validation_peak, s->maximum[i]);
		} else if (!near && t_us >= from_us) {
			o->training_peak = fmax(o->training_peak, s->maximum[i]);
		}
	}
}

// Whether validation holds more than training, which the peak of the run does not show.
static void read_validation_peak(const struct analysis *a, struct observation *o)
{
	struct validations v = {.n = 0};
	struct series s = {0};
	int64_t job = tables_first(&a->tables, ENTITY_JOB);
	o->validation_peak = o->training_peak = NAN;
	if (job < 1 || a->phases.n_iterations == 0 ||
		query_each(a->tables.reader,
			"SELECT start_ns, end_ns FROM span WHERE kind = 'phase' AND name = "
			"'validation' AND end_ns >= start_ns ORDER BY start_ns",
			note_validation, &v, NULL) < 0 ||
		v.n == 0 || v.more ||
		reader_series(a->tables.reader, job, NAME_OWN_SUM, INT64_MIN, INT64_MAX, &s, NULL) <
			0) {
		return;
	}
	find_peaks(&s, &v, a->phases.iterations[0].start_ns / 1000, o);
	series_done(&s);
}

// Pages that forked processes share at first, and of which each has a copy once it or its parent
// has written to them: the anonymous memory of processes does not show them, their proportional
// one does, which is read rarely. What grows or falls between two ticks is no copy: the larger of
// both counts. Bytes, the most of all readings; 0: none was seen.
static double find_copies(const struct series *own, const struct series *proportional)
{
	double most = 0;
	size_t next = 0;
	for (size_t i = 0; i < proportional->n; i++) {
		while (next < own->n && own->t_us[next] <= proportional->t_us[i]) {
			next++;
		}
		double before = next > 0 ? own->maximum[next - 1] : NAN;
		double after = next < own->n ? own->maximum[next] : before;
		double copies = proportional->values[i] - fmax(before, after);
		most = fmax(most, copies); // NAN does not count
	}
	return most;
}

static double copied_pages(const struct analysis *a)
{
	struct series own = {0}, proportional = {0};
	int64_t job = tables_first(&a->tables, ENTITY_JOB);
	double most = 0;
	// A process alone shares its pages with nobody.
	if (job > 0 && job_figure(a, NAME_PROCESSES, FIGURE_MAX) > 1 &&
		reader_series(a->tables.reader, job, NAME_OWN_SUM, INT64_MIN, INT64_MAX, &own,
			NULL) == 0 &&
		reader_series(a->tables.reader, job, NAME_PSS_ANONYMOUS, INT64_MIN, INT64_MAX,
			&proportional, NULL) == 0) {
		most = find_copies(&own, &proportional);
	}
	series_done(&own);
	series_done(&proportional);
	return most;
}

static void read_memory(const struct analysis *a, struct observation *o)
{
	double own = job_figure(a, NAME_OWN_SUM, FIGURE_MAX);
	double charged = job_figure(a, NAME_ANONYMOUS, FIGURE_MAX);
	o->anonymous = isfinite(own) ? own + missed_by_samples(a) : NAN;
	if (isfinite(charged)) {
		o->anonymous = fmax(known_or(o->anonymous, 0), charged);
	} else {
		o->anonymous += copied_pages(a);
	}
	o->shared = job_figure(a, NAME_SHMEM, FIGURE_MAX);
	o->shared = isfinite(o->shared) ? o->shared : job_figure(a, NAME_PSS_SHMEM, FIGURE_MAX);
	o->kernel = job_figure(a, "strain.memory.kernel", FIGURE_MAX);
	o->page_cache = job_figure(a, NAME_FILE, FIGURE_MAX);
	o->memory_limit = a->overview.memory_limit_is_cgroup ? a->overview.memory_limit_bytes : NAN;
	o->memory_total = a->overview.memory_limit_bytes;
	o->leak_per_iteration = a->growth.leak ? a->growth.bytes_per_iteration.value : NAN;
	o->kept_per_batch = read_growth(a->tables.reader);
	read_workers_memory(a, o);
	read_validation_peak(a, o);
	read_gpus(a, o);
}

double observation_held(const struct observation *o)
{
	return o->anonymous + known_or(o->shared, 0) + known_or(o->kernel, 0);
}

double observation_gpu_needed(const struct observation *o)
{
	double ranks = fmax(1, (double)o->ranks), cached = o->gpu_reserved - o->gpu_allocated;
	// What a rank caches is known of one GPU.
	bool known = (double)o->gpus == ranks && isfinite(cached);
	return o->gpu - (known ? ranks * fmax(0, cached) : 0);
}

// Time --------------------------------------------------------------------------------------------

static bool is_steady(const struct iteration *i)
{
	return !i->warm_up && !i->cut && !i->stopped;
}

// The stretch of steady iterations, without the time between them (validation, checkpoints), and
// the number of iterations in it.
static double find_stretch(const struct phases *p, struct stretch *ret)
{
	const struct iteration *last = NULL;
	double n = 0;
	*ret = (struct stretch){0};
	for (size_t i = 0; i < p->n_iterations; i++) {
		const struct iteration *at = &p->iterations[i];
		if (!is_steady(at)) {
			continue;
		}
		bool follows = last && at->place - last->place == (int64_t)p->stride &&
		               (p->stride > 1 || at->start_ns - last->end_ns <= GAP_NS);
		if (last && !follows) {
			if (ret->n_gaps == STRETCH_GAPS) {
				break;
			}
			ret->gaps[ret->n_gaps++] = (struct stretch_gap){
				last->end_ns / 1000, at->start_ns / 1000};
		}
		if (!last) {
			ret->from_us = at->start_ns / 1000;
		}
		n += follows ? (double)p->stride : 1;
		ret->to_us = at->end_ns / 1000;
		last = at;
	}
	return n;
}

static void read_reading(
	const struct analysis *a, const struct stretch *stretch, double rate, struct observation *o)
{
	int64_t job = tables_first(&a->tables, ENTITY_JOB);
	double asked = rate_over(a->tables.reader, &a->stops, job, NAME_READ_ASKED, stretch);
	double stored = rate_over(a->tables.reader, &a->stops, job, NAME_READ_STORAGE, stretch);
	o->storage_rate = stored;
	o->cpus_used = rate_over(a->tables.reader, &a->stops, job, NAME_CPU_TIME, stretch);
	o->asked = asked / rate; // of the same time
	o->stored = stored / rate;
}

// CPU seconds per sample that workers spent on preparing: their whole CPU time over the samples
// that they prepared, taken or not.
static double workers_cpu(const struct phases *p, double batch)
{
	double cpu = 0, samples = 0;
	for (size_t i = 0; i < p->n_workers; i++) {
		const struct phase_worker *w = &p->workers[i];
		double prepared = w->samples > 0 ? (double)w->samples : (double)w->batches * batch;
		if (isfinite(w->cpu_s) && prepared > 0) {
			cpu += w->cpu_s;
			samples += prepared;
		}
	}
	return samples > 0 ? cpu / samples : NAN;
}

// What the first iterations of epochs wait longer than the others (mean, seconds), and their share
// of the iterations. 0: nothing, or not known.
static double find_epoch_start(const struct phases *p, double *ret_share)
{
	double wait[2] = {0}, n[2] = {0};
	int64_t epoch = -1;
	for (size_t i = 0; i < p->n_iterations; i++) {
		const struct iteration *at = &p->iterations[i];
		bool first = epoch >= 0 && at->epoch != epoch;
		epoch = at->epoch;
		if (is_steady(at)) {
			wait[first] += (double)at->phase_ns[PHASE_DATA] / 1e9;
			n[first]++;
		}
	}
	*ret_share = n[1] / (n[0] + n[1]);
	bool known = p->stride <= 1 && n[0] > 0 && n[1] > 0;
	return known ? fmax(0, wait[1] / n[1] - wait[0] / n[0]) : 0;
}

static void scale(struct estimate *e, double factor)
{
	*e = (struct estimate){e->value * factor, e->low * factor, e->high * factor};
}

// The same value with another interval.
static void set_error(struct estimate *e, double relative)
{
	e->low = e->value * (1 - relative);
	e->high = e->value * (1 + relative);
}

static double length_of(const struct iteration *i)
{
	return (double)(i->end_ns - i->start_ns) / 1e9;
}

// The middle of the epochs of a shortened run.
struct middle {
	double n, length_s, wait_s; // iterations, and their means
	double error; // of the mean length, relative: half of a 95 % interval
	double extra_s; // that a whole epoch takes beyond so many of them (mean)
};

// Shortened epochs consist mostly of their ends. A long wait for the first batch is followed by
// none for those that workers prepared meanwhile; and while the last ones are taken, idle workers
// leave their CPUs to the training process. ahead: batches that are prepared in advance.
static struct middle find_middle(const struct phases *p, size_t ahead)
{
	struct middle m = {.n = 0};
	double whole = 0, iterations = 0, epochs = 0, squares = 0;
	for (size_t i = 0, end = 0; i < p->n_iterations; i = end) {
		const struct iteration *first = &p->iterations[i];
		double length = 0;
		bool broken = false;
		for (end = i; end < p->n_iterations && p->iterations[end].epoch == first->epoch;
			end++) {
			const struct iteration *at = &p->iterations[end];
			length += length_of(at);
			broken = broken || at->stopped || at->cut;
		}
		for (size_t k = i + 1 + ahead; k + ahead < end; k++) {
			const struct iteration *at = &p->iterations[k];
			if (is_steady(at)) {
				m.n++;
				m.length_s += length_of(at);
				squares += length_of(at) * length_of(at);
				m.wait_s += (double)at->phase_ns[PHASE_DATA] / 1e9;
			}
		}
		if (is_steady(first) && !broken && end < p->n_iterations) { // it has ended
			whole += length;
			iterations += (double)(end - i);
			epochs++;
		}
	}
	m.length_s /= fmax(1, m.n);
	m.wait_s /= fmax(1, m.n);
	double variance = fmax(0, squares / fmax(1, m.n) - m.length_s * m.length_s);
	m.error = MIDDLE_ERROR * sqrt(variance / fmax(1, m.n - 1)) / m.length_s;
	m.extra_s = epochs > 0 ? fmax(0, (whole - iterations * m.length_s) / epochs) : 0;
	return m;
}

// Takes what begins an epoch out of the mean iteration, and spreads it over epochs of full length
// in the rate if they were shortened.
static void spread_epoch_start(const struct phases *p, double batch, struct observation *o)
{
	bool prepares = o->shortened && o->workers > 0 && o->prefetch > 0;
	struct middle m = find_middle(p, prepares ? (size_t)(o->workers * o->prefetch) : 0);
	double share, mean = o->iteration.value, per_epoch = o->epoch_samples / batch;
	double start = find_epoch_start(p, &share);
	double without = mean - start * share, wait = o->wait - start * share;
	// Workers that started together deliver together: whole rounds of them.
	bool enough = m.n >= fmax(MIDDLE_LEAST, 2 * (double)o->workers) &&
	              m.n * m.length_s >= MIDDLE_SECONDS;
	if (o->shortened && p->stride <= 1 && enough) {
		start = m.extra_s;
		without = m.length_s;
		wait = m.wait_s;
	} else if (!(start > 0) || !(without > 0)) {
		o->epoch_start = 0;
		return;
	}
	o->epoch_start = start;
	double whole = without + (per_epoch >= 1 ? start / per_epoch : 0);
	if (o->shortened) {
		scale(&o->rate, mean / whole);
	}
	scale(&o->iteration, without / mean);
	if (o->shortened && p->stride <= 1 && enough) {
		set_error(&o->rate, m.error);
		set_error(&o->iteration, m.error);
	}
	o->wait = fmax(0, wait);
}

static void read_time(const struct analysis *a, struct observation *o)
{
	const struct phases *p = &a->phases;
	struct stretch stretch;
	double n = find_stretch(p, &stretch), seconds = stretch_seconds(&stretch);
	int64_t trainer = analysis_trainer(a);
	o->iterations = p->steady;
	o->ranks = p->n_ranks > 1 ? p->n_ranks : 1;
	// Gradients that a loss is made of are computed within forward.
	const struct phase *item = &p->items[PHASE_BACKWARD];
	uint64_t backward = item->spans - item->nested;
	o->passes = backward > 0 && p->total > 0 ? (double)backward / (double)p->total : NAN;
	o->startup = p->total > 0 ? p->startup_s : NAN;
	o->rate = p->samples_per_s;
	o->iteration = p->length_s;
	o->batch_size = p->samples_per_iteration >= 1 && p->samples_per_iteration <= BATCH_MOST
	                        ? (int64_t)p->samples_per_iteration
	                        : -1;
	if (p->steady == 0) {
		o->rate_missing = strdup(p->missing ? p->missing : "too few iterations");
		return;
	}
	double batch = o->batch_size > 0 ? (double)o->batch_size : (double)o->loader_batch_size;
	if (!isfinite(o->rate.value) && batch > 0) {
		o->rate = (struct estimate){batch / o->iteration.value, batch / o->iteration.high,
			batch / o->iteration.low};
	}
	o->wait = p->items[PHASE_DATA].mean_s;
	o->wait = known_or(o->wait, 0);
	double rate = o->rate.value;
	spread_epoch_start(p, batch, o);
	o->compute = o->iteration.value - o->wait;
	if (n > 0 && seconds > 0 && trainer > 0) {
		o->main_cpu = rate_over(a->tables.reader, &a->stops, trainer, NAME_CPU_TIME,
				      &stretch) *
		              seconds / n;
		o->threads = o->workers == 0 ? o->main_cpu / o->iteration.value
		                             : o->main_cpu / o->compute;
	}
	o->prepare_cpu = o->workers == 0 ? o->wait / batch : workers_cpu(p, batch);
	read_reading(a, &stretch, rate, o);
}

// The run -----------------------------------------------------------------------------------------

// "6000 6000 20 400": looked, of, median, largest. All 0 if it says nothing.
static struct sample_sizes read_sizes(struct reader *reader, const char *key)
{
	const char *text = reader_run(reader, key);
	struct cursor at = cursor_of(text ? text : "", text ? strlen(text) : 0);
	int64_t looked, of, median, largest;
	bool whole = cursor_i64(&at, &looked) && cursor_i64(&at, &of) && cursor_i64(&at, &median) &&
	             cursor_i64(&at, &largest) && at.at == at.end;
	bool sane = whole && looked > 0 && looked <= (int64_t)EPOCH_MOST && of >= -1 &&
	            of <= (int64_t)EPOCH_MOST && median > 0 && largest >= median;
	return sane ? (struct sample_sizes){looked, of, (double)median, (double)largest}
	            : (struct sample_sizes){0};
}

// "1048576 30 125": bytes that each batch of a validation keeps, batches that ran, and all.
static double read_kept(struct reader *reader)
{
	const char *text = reader_run(reader, "loader_validation_growth");
	struct cursor at = cursor_of(text ? text : "", text ? strlen(text) : 0);
	int64_t each, ran, all;
	bool whole = cursor_i64(&at, &each) && cursor_i64(&at, &ran) && cursor_i64(&at, &all) &&
	             at.at == at.end;
	bool sane = whole && each > 0 && ran > 0 && all > ran && all <= INT32_MAX;
	double bytes = sane ? (double)each * (double)(all - ran) : 0;
	return bytes <= KEPT_MOST ? bytes : 0;
}

// Of the device of the process that trains. NAN: the hooks did not say.
static double bytes_key(struct reader *reader, const char *key)
{
	int64_t bytes = reader_run_i64(reader, key, 0);
	return bytes > 0 ? (double)bytes : NAN;
}

static void read_keys(struct reader *reader, struct observation *o)
{
	o->gpu_reserved = bytes_key(reader, "device_memory_reserved");
	o->gpu_allocated = bytes_key(reader, "device_memory_allocated");
	o->gpu_cap = bytes_key(reader, "device_memory_limit");
	const char *hooks = reader_run(reader, "hooks");
	o->workers = bounded_key(reader, "loader_workers", WORKERS_MOST);
	o->prefetch = bounded_key(reader, "loader_prefetch_factor", WORKERS_MOST);
	o->loader_batch_size = bounded_key(reader, "loader_batch_size", BATCH_MOST);
	o->pinned = bounded_key(reader, "loader_pin_memory", 1) == 1;
	o->hooked = hooks != NULL;
	o->shortened = hooks && strstr(hooks, "epochs shortened");
	o->loader_at = copy_key(reader, "loader_at");
	o->loader_words = setting_words_of(reader_run(reader, "loader_library"));
	const char *kind = reader_run(reader, "loader_dataset_kind");
	o->iterable = kind && strcmp(kind, "iterable") == 0;
	o->fit_at = copy_key(reader, "loader_fit_at");
	o->loader_set = copy_key(reader, "loader_set");
	o->loader_set_missing = copy_key(reader, "loader_set_missing");
	o->optimizer = copy_key(reader, "optimizer_class");
	o->validation_kept = read_kept(reader);
	o->sizes = read_sizes(reader, "loader_sample_sizes");
	o->unchosen = read_sizes(reader, "loader_batch_elements");
}

struct whole_epoch {
	double seconds, samples;
};

static int compare_seconds(const void *a, const void *b)
{
	const struct whole_epoch *left = a, *right = b;
	return (left->seconds > right->seconds) - (left->seconds < right->seconds);
}

// The whole epoch of median length, without the first one if there are others.
static void read_epoch(const struct analysis *a, struct observation *o)
{
	struct whole_epoch whole[EPOCHS_MOST];
	const struct epoch_list *epochs = &a->tables.epochs;
	size_t n = 0;
	o->epoch = o->epoch_samples = NAN;
	for (size_t i = 0; i < a->phases.n_epochs && i < epochs->n && n < EPOCHS_MOST; i++) {
		const struct epoch_phases *epoch = &a->phases.epochs[i];
		if (!epochs->items[i].open && epoch->samples > 0 && epoch->seconds > 0) {
			whole[n++] = (struct whole_epoch){epoch->seconds, (double)epoch->samples};
		}
	}
	size_t first = n > 1 ? 1 : 0;
	int64_t batches = bounded_key(a->tables.reader, "loader_batches", INT32_MAX);
	double samples = (double)batches * (double)o->loader_batch_size;
	if (batches > 0 && o->loader_batch_size > 0 && samples <= EPOCH_MOST) {
		int64_t passed = bounded_key(
			a->tables.reader, "loader_samples", (int64_t)EPOCH_MOST);
		double differs = fabs((double)passed - samples); // by a part of the last batch
		o->epoch_known = passed > 0 && differs < (double)o->loader_batch_size;
		o->epoch_samples = o->epoch_known ? (double)passed : samples;
	}
	// An iterable dataset does not say its length, but a short one ended by itself.
	int64_t whole_pass = bounded_key(a->tables.reader, "loader_pass_batches", INT32_MAX);
	if (!isfinite(o->epoch_samples) && whole_pass > 0 && o->loader_batch_size > 0) {
		o->epoch_samples = (double)whole_pass * (double)o->loader_batch_size;
	}
	if (n > 0 && !o->shortened) {
		qsort(whole + first, n - first, sizeof(*whole), compare_seconds);
		o->epoch = whole[first + (n - first) / 2].seconds;
		o->epoch_samples = whole[first + (n - first) / 2].samples;
		o->epoch_known = true;
	}
}

// Seconds of an epoch's validation; NAN: not known. Of shortened passes the hooks report what they
// would last in full length; spans of other runs have it.
static double find_validation(const struct analysis *a, const struct observation *o)
{
	const struct phase *p = &a->phases.items[PHASE_VALIDATION];
	const char *text = reader_run(a->tables.reader, "loader_validation_s");
	if (o->shortened || text) {
		double seconds = text ? strtod(text, NULL) : NAN;
		bool unseen = seconds == 0 && p->spans > 0; // not between passes of loaders
		return seconds >= 0 && seconds <= VALIDATION_MOST_S && !unseen ? seconds : NAN;
	}
	return o->epochs > 0 ? p->total_s / (double)o->epochs : NAN;
}

static void read_behaviour(const struct analysis *a, struct observation *o)
{
	for (size_t i = 0; i < a->tables.epochs.n; i++) {
		o->epochs += !a->tables.epochs.items[i].open;
	}
	o->validated = a->phases.items[PHASE_VALIDATION].spans > 0;
	o->validation = find_validation(a, o);
	o->saved = a->phases.items[PHASE_CHECKPOINT].spans > 0;
	o->cpus = a->overview.cpus;
	double others = a->overview.host_cpus_used - a->overview.cpus_used;
	double elsewhere = fmax(0, a->overview.host_cpus - o->cpus);
	o->others_cpus = isfinite(others) ? fmax(0, others - known_or(elsewhere, 0)) : NAN;
	for (size_t i = 0; i < a->tables.events.n && !o->killed; i++) {
		o->killed = strcmp(a->tables.events.items[i].kind, "oom_kill") == 0;
	}
	const char *outcome = reader_run(a->tables.reader, "outcome");
	o->out_of_memory = outcome && strcmp(outcome, "out_of_memory") == 0;
	read_epoch(a, o);
	o->killed = o->killed || job_figure(a, NAME_OOM_KILLS, FIGURE_TOTAL) > 0;
}

// Whether workers that start with each epoch cost something in epochs of full length. Shortened
// ones have too many starts.
static bool starts_matter(const struct observation *o)
{
	double batch = (double)(o->batch_size > 0 ? o->batch_size : o->loader_batch_size);
	double iterations = o->epoch_samples / batch;
	bool endless = !isfinite(o->epoch_samples) || batch < 1;
	return !o->shortened ||
	       (!endless && o->epoch_start >= STARTS_SHARE * iterations * o->iteration.value);
}

static void keep_settings(const struct setting_list *advised, struct observation *o)
{
	struct setting_list kept = {0};
	bool known = false;
	for (size_t i = 0; i < advised->n; i++) {
		const struct setting *s = &advised->items[i];
		bool starts = s->kind != SETTING_PERSISTENT || starts_matter(o);
		if (s->kind != SETTING_WORKERS && s->kind != SETTING_CPUS && starts) {
			setting_add(&kept, 0, s->kind, s->value);
		}
	}
	for (size_t i = 0; i < o->n_settings; i++) {
		known = known || setting_same(&o->settings[i], &kept);
	}
	if (kept.n > 0 && !known && o->n_settings < OBSERVATION_SETTINGS) {
		o->settings[o->n_settings++] = kept;
	}
}

// What the verdict advises to set, if it does not promise too little.
static void read_settings(const struct verdict *v, struct observation *o)
{
	for (size_t i = 0; i < v->n_suggestions; i++) {
		const struct suggestion *s = &v->suggestions[i];
		struct setting_list choice;
		if (s->kind != GAIN_UNKNOWN && !(s->gain.value >= OBSERVATION_GAIN_MIN)) {
			continue;
		}
		for (unsigned k = 0; k <= UINT8_MAX; k++) {
			if (setting_choose(&s->settings, k, &choice)) {
				keep_settings(&choice, o);
			}
		}
	}
}

// The verdict's headline. Shortened epochs say nothing about the share of what lies between them.
static int read_headline(struct analysis *a, struct observation *o)
{
	struct verdict verdict;
	int r = verdict_build(a, &verdict);
	if (r == 0) {
		bool apart = verdict.bottleneck == BOTTLENECK_VALIDATION ||
		             verdict.bottleneck == BOTTLENECK_CHECKPOINT ||
		             verdict.bottleneck == BOTTLENECK_BETWEEN ||
		             verdict.bottleneck == BOTTLENECK_COMPILE ||
		             verdict.bottleneck == BOTTLENECK_STARTUP;
		bool starts = verdict.bottleneck == BOTTLENECK_INPUT && !starts_matter(o) &&
		              o->wait < WAITS_LITTLE * o->iteration.value;
		bool told = verdict.headline && !(o->shortened && (apart || starts));
		o->headline = told ? strdup(verdict.headline) : NULL;
		for (size_t i = 0; i < verdict.n_causes; i++) {
			o->waits_for_storage |= verdict.causes[i].bottleneck == BOTTLENECK_STORAGE;
		}
		read_settings(&verdict, o);
		verdict_done(&verdict);
	}
	return r;
}

int observation_read(const char *path, struct observation *ret, struct error *e)
{
	struct reader *reader = NULL;
	struct analysis a;
	*ret = (struct observation){.batch_size = -1,
		.loader_batch_size = -1,
		.workers = -1,
		.prefetch = -1,
		.accumulated = 1,
		.passes = NAN,
		.rate = {NAN, NAN, NAN},
		.iteration = {NAN, NAN, NAN},
		.compute = NAN,
		.wait = NAN,
		.main_cpu = NAN,
		.threads = NAN,
		.prepare_cpu = NAN,
		.validation = NAN,
		.startup = NAN,
		.cpus_used = NAN,
		.others_cpus = NAN,
		.asked = NAN,
		.stored = NAN,
		.storage_rate = NAN};
	int r = reader_open(path, &reader, e);
	if (r < 0) {
		return r;
	}
	r = analysis_load_brief(reader, &a, e);
	if (r == 0) {
		read_keys(reader, ret);
		read_behaviour(&a, ret);
		read_time(&a, ret);
		read_memory(&a, ret);
		r = read_headline(&a, ret);
		analysis_done(&a);
	}
	reader_free(reader);
	return r;
}

void observation_divide(struct observation *o, int64_t batches)
{
	double factor = 1 / (double)batches;
	o->accumulated *= batches;
	o->passes *= factor;
	o->batch_size /= batches;
	o->iterations *= (uint64_t)batches;
	scale(&o->iteration, factor);
	o->compute *= factor;
	o->wait *= factor;
	o->main_cpu *= factor;
	o->leak_per_iteration *= factor;
}

void observation_count_kept(struct observation *o)
{
	double ranks = o->ranks > 1 ? (double)o->ranks : 1;
	o->leak_per_iteration = fmax(o->leak_per_iteration, o->kept_per_batch * ranks);
}

void observation_done(struct observation *o)
{
	free(o->loader_at);
	free(o->fit_at);
	free(o->loader_set);
	free(o->loader_set_missing);
	free(o->optimizer);
	free(o->headline);
	free(o->rate_missing);
	*o = (struct observation){0};
}
