// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The figures of the job, its host and its devices.

#include "run/overview.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/words.h"
#include "run/stops.h"
#include "run/tables.h"
#include "run/names.h"
#include "run/outcome.h"
#include "run/query.h"
#include "run/rate.h"

// Inputs of the figures.
struct known {
	const struct run_tables *tables;
	const struct stops *job_stops; // times when no process of the job ran
	const struct stops *stops; // also times when a process that the others wait for was stopped
};

static int overview_devices_build(const struct known *k, struct overview *ret);

// Job memory --------------------------------------------------------------------------------------
//
// PSS exceeds the cgroup's memory by mapped files: libraries, which are mapped when a job starts
// and stay. Without a cgroup, the sum of the private memory of the processes takes its place; PSS
// exceeds that also by memory that processes share. So the difference is interpolated between
// readings of PSS. The result is within 0.1 % for a job of one process, and shows memory that is
// allocated and freed between two readings of PSS.

// Series of the job's memory.
struct readings {
	struct series pss;
	struct series cgroup; // anonymous and shared; without a cgroup, see `own`
	bool own; // `cgroup` is the sum of the private memory of the processes
	struct series resident;
	double *beyond; // [pss.n] PSS minus `cgroup`
};

static void readings_done(struct readings *r)
{
	series_done(&r->pss);
	series_done(&r->cgroup);
	series_done(&r->resident);
	free(r->beyond);
}

// Removes missing readings.
static void drop_missing(struct series *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (isfinite(s->values[i])) {
			s->t_us[n] = s->t_us[i];
			s->values[n] = s->values[i];
			s->minimum[n] = s->minimum[i];
			s->maximum[n++] = s->maximum[i];
		}
	}
	s->n = n;
}

static int read_metric(struct reader *reader, int64_t job, const char *metric, struct series *ret)
{
	int r = reader_series(reader, job, metric, INT64_MIN, INT64_MAX, ret, NULL);
	if (r == 0) {
		drop_missing(ret);
	}
	return r == -ENOMEM ? r : 0; // a damaged metric counts as absent
}

// Both metrics are read in one row, so they have the same times.
static int read_cgroup(struct reader *reader, int64_t job, struct series *ret)
{
	struct series shared = {0};
	int r = read_metric(reader, job, NAME_ANONYMOUS, ret);
	r = r < 0 ? r : read_metric(reader, job, NAME_SHMEM, &shared);
	for (size_t i = 0, j = 0; r == 0 && i < ret->n; i++) {
		while (j < shared.n && shared.t_us[j] < ret->t_us[i]) {
			j++;
		}
		if (j < shared.n && shared.t_us[j] == ret->t_us[i]) {
			bool thinned = ret->maximum != ret->values;
			ret->values[i] += shared.values[j];
			ret->maximum[i] += thinned ? shared.maximum[j] : 0;
		}
	}
	series_done(&shared);
	return r;
}

// The value at a time, interpolated between two readings; outside, that of the nearest reading.
// `at` is the index to start from, and is advanced.
static double value_at(const struct series *s, const double *values, int64_t t_us, size_t *at)
{
	while (*at + 1 < s->n && s->t_us[*at + 1] <= t_us) {
		++*at;
	}
	size_t i = *at;
	if (t_us <= s->t_us[i] || i + 1 == s->n) {
		return values[i];
	}
	double share = (double)(t_us - s->t_us[i]) / (double)(s->t_us[i + 1] - s->t_us[i]);
	return values[i] + share * (values[i + 1] - values[i]);
}

static bool held_any(const struct series *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->maximum[i] > 0) {
			return true;
		}
	}
	return false;
}

// Reads the cgroup's memory; without a cgroup, the processes' private memory, which is read at each
// tick.
static int read_held(struct reader *reader, int64_t job, struct readings *all)
{
	int r = read_cgroup(reader, job, &all->cgroup);
	if (r == 0 && !held_any(&all->cgroup)) {
		series_done(&all->cgroup);
		all->own = true;
		r = read_metric(reader, job, NAME_OWN_SUM, &all->cgroup);
	}
	return r;
}

static int find_beyond(struct readings *r)
{
	size_t at = 0;
	r->beyond = calloc(r->pss.n + 1, sizeof(*r->beyond));
	for (size_t i = 0; r->beyond && i < r->pss.n; i++) {
		double held = value_at(&r->cgroup, r->cgroup.values, r->pss.t_us[i], &at);
		r->beyond[i] = fmax(0, r->pss.values[i] - held);
	}
	return r->beyond ? 0 : -ENOMEM;
}

static void put(struct series *s, int64_t t_us, double value, double maximum)
{
	s->t_us[s->n] = t_us;
	s->values[s->n] = value;
	s->maximum[s->n++] = maximum;
}

static int reserve(struct series *s, size_t n)
{
	*s = (struct series){.t_us = calloc(n + 1, sizeof(*s->t_us)),
		.values = calloc(n + 1, sizeof(*s->values)),
		.maximum = calloc(n + 1, sizeof(*s->maximum))};
	s->minimum = s->values;
	return s->t_us && s->values && s->maximum ? 0 : -ENOMEM;
}

// Merges the readings of both by time.
static int join(const struct readings *r, struct series *ret)
{
	int failed = reserve(ret, r->cgroup.n + r->pss.n);
	size_t at = 0, resident = 0, pss = 0;
	for (size_t i = 0; failed == 0 && i < r->cgroup.n; i++) {
		int64_t t_us = r->cgroup.t_us[i];
		for (; pss < r->pss.n && r->pss.t_us[pss] <= t_us; pss++) {
			put(ret, r->pss.t_us[pss], r->pss.values[pss], r->pss.maximum[pss]);
		}
		double beyond = value_at(&r->pss, r->beyond, t_us, &at);
		if (r->resident.n > 0) {
			double sum = value_at(&r->resident, r->resident.maximum, t_us, &resident);
			beyond = fmin(beyond, fmax(0, sum - r->cgroup.values[i]));
		}
		put(ret, t_us, r->cgroup.values[i] + beyond, r->cgroup.maximum[i] + beyond);
	}
	for (; failed == 0 && pss < r->pss.n; pss++) {
		put(ret, r->pss.t_us[pss], r->pss.values[pss], r->pss.maximum[pss]);
	}
	return failed;
}

static void take(struct job_memory *m, struct series *from, const char *kind, const char *metric)
{
	*m = (struct job_memory){*from, kind, metric};
	*from = (struct series){0};
}

int job_memory_read(struct reader *reader, int64_t job, struct job_memory *ret)
{
	struct readings all = {0};
	struct series joined = {0};
	*ret = (struct job_memory){0};
	int r = read_metric(reader, job, NAME_PSS, &all.pss);
	r = r < 0 ? r : read_held(reader, job, &all);
	r = r < 0 ? r : read_metric(reader, job, NAME_RESIDENT_SUM, &all.resident);
	bool pss = held_any(&all.pss), cgroup = held_any(&all.cgroup);
	if (r == 0 && pss && cgroup) {
		r = find_beyond(&all);
		r = r < 0 ? r : join(&all, &joined);
	}
	if (r < 0) {
		series_done(&joined);
	} else if (joined.n > 0) {
		take(ret, &joined, "PSS", NAME_PSS);
	} else if (pss) {
		take(ret, &all.pss, "PSS", NAME_PSS);
	} else if (cgroup) {
		take(ret, &all.cgroup, all.own ? "anonymous" : "anonymous and shared",
			all.own ? NAME_OWN_SUM : NAME_ANONYMOUS);
	} else if (held_any(&all.resident)) { // a job that ended before the others were read
		take(ret, &all.resident, "sum of resident", NAME_RESIDENT_SUM);
	}
	readings_done(&all);
	return r;
}

void job_memory_done(struct job_memory *m)
{
	series_done(&m->series);
	*m = (struct job_memory){0};
}

// Overview ----------------------------------------------------------------------------------------

#define WORKS 0.05 // least share of the job's CPU time
#define PEAK_MET 1.03 // if the upper bound is within this factor, the peak is known
#define PEAK_MET_BYTES 1048576.0
#define BOUND 1.1 // CPU use above this multiple of the allowed CPUs is not an error of measurement

static double figure_of(
	const struct known *k, const struct entity *entity, const char *metric, enum figure figure)
{
	return entity ? tables_figure(k->tables, entity->id, metric, figure) : NAN;
}

// Mean growth of a counter per second in which the job was not stopped.
static double running_mean(const struct known *k, const struct entity *entity, const char *metric)
{
	if (k->job_stops->n == 0) {
		return figure_of(k, entity, metric, FIGURE_MEAN);
	}
	const struct stretch run = {.to_us = reader_recorded_ns(k->tables->reader) / 1000};
	return rate_over(k->tables->reader, k->stops, entity ? entity->id : 0, metric, &run);
}

static void fill_times(struct reader *r, struct overview *o)
{
	int64_t start_ns = reader_run_i64(r, "job_start_ns", -1);
	int64_t end_ns = reader_run_i64(r, "job_end_ns", -1);
	o->end_s = (double)reader_end_ns(r) / 1e9;
	o->duration_s = start_ns >= 0 && end_ns >= start_ns ? (double)(end_ns - start_ns) / 1e9
	                                                    : o->end_s;
	o->partial = reader_partial(r);
	o->recorded_s = o->duration_s;
	if (o->partial) {
		int64_t recorded_ns = reader_recorded_ns(r) - (start_ns >= 0 ? start_ns : 0);
		o->recorded_s = fmin(fmax((double)recorded_ns / 1e9, 0), o->duration_s);
	}
}

static int fill_run(const struct known *k, struct overview *o)
{
	struct reader *r = k->tables->reader;
	const char *path = reader_path(r), *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t length = strlen(name), suffix = strlen(".strain");
	bool ours = length > suffix && strcmp(name + length - suffix, ".strain") == 0;
	const char *command = reader_run(r, "command");
	const char *pattern = reader_run(r, "epoch_pattern");
	o->name = strndup(name, ours ? length - suffix : length);
	o->command = entity_command_line(command ? command : "");
	o->state = reader_state(r);
	o->damaged = reader_is_damaged(r);
	o->attached = reader_run(r, "attached_pid");
	o->epoch_pattern = pattern && strcmp(pattern, "auto") != 0;
	fill_times(r, o);
	o->stopped_s = fmin(k->job_stops->total_s, o->recorded_s);
	o->running_s = o->recorded_s - o->stopped_s;
	int64_t status = reader_run_i64(r, "status", -1);
	bool known = o->state == RUN_FINISHED && status >= 0 && status <= INT32_MAX;
	o->exit_status = known && WIFEXITED((int)status) ? WEXITSTATUS((int)status) : -1;
	o->exit_signal = known && WIFSIGNALED((int)status) ? WTERMSIG((int)status) : 0;
	const char *outcome = reader_run(r, "outcome"), *why = reader_run(r, "outcome_text");
	bool stopped = known && outcome && strcmp(outcome, outcome_word(OUTCOME_STOPPED)) == 0;
	o->stopped = stopped ? strdup(why && *why ? why : outcome) : NULL;
	o->outcome.outcome = OUTCOME_UNKNOWN; // also if the file is damaged
	if (outcome_tell(r, &o->outcome, NULL) == -ENOMEM) {
		return -ENOMEM;
	}
	return o->name && o->command && (o->stopped || !stopped) ? 0 : -ENOMEM;
}

// The kernel counts the host's CPU time in hundredths of a second: over less than this, it says
// nothing.
#define HOST_CLOCK_S 0.2

static void fill_cpus(const struct known *k, struct overview *o)
{
	static const char *const busy[] = {"user", "nice", "system", "irq", "softirq", "steal"};
	static const char *const free_modes[] = {"idle", "iowait"};
	const struct entity *host = entity_first(&k->tables->entities, ENTITY_HOST);
	o->host_cpus_used = NAN;
	double unused = NAN;
	char name[64];
	for (size_t i = 0; i < ARRAY_LENGTH(busy); i++) {
		snprintf(name, sizeof(name), "%s%s", NAME_HOST_CPU, busy[i]);
		o->host_cpus_used = words_sum(o->host_cpus_used, running_mean(k, host, name));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(free_modes); i++) {
		snprintf(name, sizeof(name), "%s%s", NAME_HOST_CPU, free_modes[i]);
		unused = words_sum(unused, running_mean(k, host, name));
	}
	double declared = host ? entity_number(host, "cpus") : NAN;
	o->host_cpus = declared > 0 ? declared : round(o->host_cpus_used + unused);
	if (!(o->running_s >= HOST_CLOCK_S)) {
		o->host_cpus_used = NAN;
	}
}

double overview_limit(struct reader *r, const char *name)
{
	const char *text = r ? reader_run(r, "limits") : NULL;
	json_t *limits = text ? json_loads(text, 0, NULL) : NULL;
	double value = json_number_value(json_object_get(limits, name));
	json_decref(limits);
	return value > 0 ? value : NAN;
}

struct reading {
	double value;
	double length_us; // until the next reading
};

static int reading_compare(const void *left, const void *right)
{
	double a = ((const struct reading *)left)->value;
	double b = ((const struct reading *)right)->value;
	return (a > b) - (a < b);
}

// The median over time. Exact, whereas a percentile of the summary is within 0.4 %.
static double series_median(const struct series *s, int64_t end_us)
{
	_cleanup_free_ struct reading *readings = calloc(s->n + 1, sizeof(*readings));
	double all_us = 0, passed_us = 0;
	size_t n = 0;
	for (size_t i = 0; readings && i < s->n; i++) {
		int64_t until_us = i + 1 < s->n ? s->t_us[i + 1] : end_us;
		double length_us = fmax(1, (double)(until_us - s->t_us[i]));
		if (isfinite(s->values[i])) {
			readings[n++] = (struct reading){s->values[i], length_us};
			all_us += length_us;
		}
	}
	if (n > 0) {
		qsort(readings, n, sizeof(*readings), reading_compare);
	}
	for (size_t i = 0; i < n; i++) {
		passed_us += readings[i].length_us;
		if (2 * passed_us >= all_us) {
			return readings[i].value;
		}
	}
	return NAN;
}

double overview_quota_cpus(const struct run_tables *t)
{
	const struct entity *job = entity_first(&t->entities, ENTITY_JOB);
	struct series s = {0};
	if (!t->reader || !job ||
		reader_series(t->reader, job->id, NAME_CPU_LIMIT, INT64_MIN, INT64_MAX, &s, NULL) <
			0) {
		return NAN;
	}
	double median = series_median(&s, reader_recorded_ns(t->reader) / 1000);
	series_done(&s);
	return median;
}

static double cpu_wait(const struct known *k)
{
	double seconds = NAN;
	for (size_t i = 0; i < k->tables->entities.n; i++) {
		if (k->tables->entities.items[i].kind == ENTITY_PROCESS) {
			seconds = words_sum(seconds, figure_of(k, &k->tables->entities.items[i],
							     NAME_CPU_WAIT, FIGURE_TOTAL));
		}
	}
	return seconds;
}

// CPUs that the job's working processes may run on; a shell or launcher around them may be allowed
// more. A job can narrow its own set after its start (taskset, sched_setaffinity). If more CPUs are
// used than that, threads are bound one by one, and the leaders' sets do not count.
static double cpus_allowed(const struct known *k, const struct overview *o)
{
	double most = NAN;
	for (size_t i = 0; i < k->tables->entities.n; i++) {
		const struct entity *entity = &k->tables->entities.items[i];
		if (entity->kind == ENTITY_PROCESS &&
			figure_of(k, entity, NAME_CPU_TIME, FIGURE_TOTAL) >=
				WORKS * o->cpu_seconds) {
			most = fmax(most, figure_of(k, entity, NAME_CPUS_ALLOWED, FIGURE_P50));
		}
	}
	return o->cpus_used > BOUND * most || o->cpus_used_p95 > BOUND * most ? NAN : most;
}

static void fill_job(const struct known *k, struct overview *o)
{
	const struct entity *job = entity_first(&k->tables->entities, ENTITY_JOB);
	o->cpu_seconds = figure_of(k, job, NAME_CPU_TIME, FIGURE_TOTAL);
	o->cpus_used = o->running_s > 0 ? o->cpu_seconds / o->running_s : NAN;
	double ticks = figure_of(
		k, entity_first(&k->tables->entities, ENTITY_RECORDER), NAME_TICKS, FIGURE_TOTAL);
	o->cpus_used_p95 = ticks < 1 ? NAN : figure_of(k, job, NAME_CPU_TIME, FIGURE_P95);
	for (size_t i = 0; i < k->tables->events.n; i++) {
		o->cpu_inexact |= strcmp(k->tables->events.items[i].kind, "cpu_time_inexact") == 0;
	}
	o->quota_cpus = overview_quota_cpus(k->tables);
	// fmin ignores NAN.
	double allowed = fmin(overview_limit(k->tables->reader, "cpu_count"),
		fmin(overview_limit(k->tables->reader, "cgroup_cpus"), o->quota_cpus));
	allowed = fmin(allowed, cpus_allowed(k, o));
	o->cpus = isfinite(allowed) ? fmin(allowed, o->host_cpus) : o->host_cpus;
	o->cpu_wait_seconds = cpu_wait(k);
	double periods = figure_of(k, job, NAME_PERIODS, FIGURE_TOTAL);
	o->throttled = periods > 0
	                       ? figure_of(k, job, NAME_PERIODS_THROTTLED, FIGURE_TOTAL) / periods
	                       : NAN;
	o->asked_bytes = figure_of(k, job, NAME_READ_ASKED, FIGURE_TOTAL);
	o->storage_read_bytes = figure_of(k, job, NAME_READ_STORAGE, FIGURE_TOTAL);
	o->storage_write_bytes = figure_of(k, job, NAME_WRITE_STORAGE, FIGURE_TOTAL);
}

// Bounds on the peak besides the readings. The largest peak of a single process is a lower bound.
// Upper bounds are the sum of the peaks of processes that lived together, and the cgroup's peak
// charge plus mapped files, which may be charged to others.
static void bound_peak(const struct known *k, const struct entity *job, struct memory_figure *m)
{
	double largest = figure_of(k, job, NAME_PEAK, FIGURE_MAX);
	double most = figure_of(k, job, NAME_PEAK_BOUND, FIGURE_MAX);
	double charged = figure_of(k, job, NAME_CGROUP_PEAK, FIGURE_MAX);
	charged = charged > 0 ? charged + figure_of(k, job, NAME_PSS_FILE, FIGURE_MAX) : NAN;
	// A sum of resident sizes is not a lower bound.
	bool sum = m->metric && strcmp(m->metric, NAME_RESIDENT_SUM) == 0;
	if (largest > 0 && (sum || !(m->peak_bytes >= largest))) {
		m->peak_bytes = largest;
		m->kind = "resident";
		m->metric = NAME_PEAK;
		sum = false;
	}
	double bound = fmin(most, charged);
	bool met = bound <= m->peak_bytes * PEAK_MET + PEAK_MET_BYTES;
	m->source = !m->kind        ? NULL
	            : !met          ? "sampled"
	            : bound == most ? "high-water marks"
	                            : "cgroup";
	m->at_least = !met && !sum;
	m->at_most_bytes = isfinite(bound) ? fmax(bound, m->peak_bytes) : NAN;
}

// The peak of the job's memory, and its mean over the readings.
static struct memory_figure job_memory_figure(const struct known *k, const struct entity *job)
{
	struct memory_figure figure = {.peak_bytes = NAN, .at_most_bytes = NAN, .mean_bytes = NAN};
	struct job_memory memory = {0};
	if (!job || job_memory_read(k->tables->reader, job->id, &memory) < 0) {
		return figure;
	}
	double sum = 0;
	for (size_t i = 0; i < memory.series.n; i++) {
		figure.peak_bytes = fmax(figure.peak_bytes, memory.series.maximum[i]);
		sum += memory.series.values[i];
	}
	if (memory.kind) {
		figure.mean_bytes = sum / (double)memory.series.n;
		figure.kind = memory.kind;
		figure.metric = memory.metric;
	}
	job_memory_done(&memory);
	bound_peak(k, job, &figure);
	return figure;
}

static void fill_memory(const struct known *k, struct overview *o)
{
	const struct entity *job = entity_first(&k->tables->entities, ENTITY_JOB);
	o->memory = job_memory_figure(k, job);
	const struct entity *host = entity_first(&k->tables->entities, ENTITY_HOST);
	double host_limit = figure_of(k, host, NAME_HOST_MEMORY_LIMIT, FIGURE_MAX);
	double limit = fmin(overview_limit(k->tables->reader, "cgroup_memory_bytes"),
		figure_of(k, job, NAME_MEMORY_LIMIT, FIGURE_MAX));
	o->memory_limit_is_cgroup = limit < host_limit ||
	                            (isfinite(limit) && !isfinite(host_limit));
	o->memory_limit_bytes = o->memory_limit_is_cgroup ? limit : host_limit;
}

static double pressure_of(
	const struct known *k, const struct entity *entity, const char *resource, const char *who)
{
	char name[64];
	snprintf(name, sizeof(name), "%s%s.%s",
		entity && entity->kind == ENTITY_JOB ? NAME_JOB_PRESSURE : NAME_PRESSURE, resource,
		who);
	return running_mean(k, entity, name);
}

static void fill_pressure(const struct known *k, struct overview *o)
{
	static const char *const resources[N_PRESSURES] = {
		[PRESSURE_CPU] = "cpu",
		[PRESSURE_MEMORY] = "memory",
		[PRESSURE_IO] = "io",
	};
	const struct entity *job = entity_first(&k->tables->entities, ENTITY_JOB);
	const struct entity *host = entity_first(&k->tables->entities, ENTITY_HOST);
	o->pressure.of_job = isfinite(pressure_of(k, job, "cpu", "some"));
	const struct entity *entity = o->pressure.of_job ? job : host;
	for (unsigned i = 0; i < N_PRESSURES; i++) {
		o->pressure.some[i] = pressure_of(k, entity, resources[i], "some");
		o->pressure.full[i] = pressure_of(k, entity, resources[i], "full");
	}
}

// The size of the file; for a live run, with the data not yet moved into it. -1: not known.
static int64_t file_bytes(const char *path)
{
	struct stat status;
	struct text log = {0};
	int64_t bytes = stat(path, &status) == 0 ? status.st_size : -1;
	text_format(&log, "%s-wal", path);
	if (bytes >= 0 && log.data && stat(log.data, &status) == 0) {
		bytes += status.st_size;
	}
	text_done(&log);
	return bytes;
}

static void fill_recording(const struct known *k, struct overview *o)
{
	const struct entity *recorder = entity_first(&k->tables->entities, ENTITY_RECORDER);
	double seconds = figure_of(k, recorder, NAME_CPU_TIME, FIGURE_TOTAL);
	double memory = figure_of(k, recorder, NAME_PSS, FIGURE_MAX);
	double recorded_s = (double)reader_recorded_ns(k->tables->reader) / 1e9;
	o->recording = (struct recording_figures){
		.cpu_share = recorded_s > 0 ? seconds / recorded_s : NAN,
		.memory_peak_bytes = isfinite(memory)
	                                     ? memory
	                                     : figure_of(k, recorder, NAME_RESIDENT, FIGURE_MAX),
		.ticks = figure_of(k, recorder, NAME_TICKS, FIGURE_TOTAL),
		.ticks_late = figure_of(k, recorder, NAME_TICKS_LATE, FIGURE_TOTAL),
		.ticks_missed = figure_of(k, recorder, NAME_TICKS_MISSED, FIGURE_TOTAL),
		.file_bytes = file_bytes(reader_path(k->tables->reader)),
	};
}

static int label_add(void *context, sqlite3_stmt *row)
{
	struct overview *o = context;
	struct run_label *grown = realloc(o->labels, (o->n_labels + 1) * sizeof(*grown));
	if (!grown) {
		return -ENOMEM;
	}
	o->labels = grown;
	grown[o->n_labels] = (struct run_label){query_text(row, 0), query_text(row, 1)};
	o->n_labels++;
	return grown[o->n_labels - 1].name && grown[o->n_labels - 1].value ? 0 : -ENOMEM;
}

int overview_build(const struct run_tables *tables, const struct stops *job_stops,
	const struct stops *stops, struct overview *ret)
{
	const struct known *k = &(struct known){tables, job_stops, stops};
	int r = fill_run(k, ret);
	fill_cpus(k, ret);
	fill_job(k, ret);
	fill_memory(k, ret);
	fill_pressure(k, ret);
	fill_recording(k, ret);
	if (r == 0 && query_each(k->tables->reader, "SELECT name, value FROM label ORDER BY name",
			      label_add, ret, NULL) == -ENOMEM) {
		r = -ENOMEM;
	}
	return r < 0 ? r : overview_devices_build(k, ret);
}

void overview_done(struct overview *o)
{
	free(o->name);
	free(o->command);
	free(o->stopped);
	outcome_told_done(&o->outcome);
	for (size_t i = 0; i < o->n_labels; i++) {
		free(o->labels[i].name);
		free(o->labels[i].value);
	}
	free(o->labels);
	free(o->gpus);
	free(o->disks);
	free(o->networks);
	*o = (struct overview){0};
}

const char *overview_state(const struct overview *o)
{
	static const char *const names[] = {
		[RUN_FINISHED] = "finished",
		[RUN_LIVE] = "live",
		[RUN_CUT_OFF] = "cut off",
	};
	return o->damaged ? "damaged" : names[o->state];
}

void overview_append_outcome(struct text *t, const struct overview *o)
{
	const char *signal = o->exit_signal > 0 ? sigabbrev_np(o->exit_signal) : NULL;
	if (o->stopped) {
		text_append_printable(t, o->stopped, strlen(o->stopped));
	} else if (o->exit_status >= 0) {
		text_format(t, "exit %d", o->exit_status);
	} else if (signal) {
		text_format(t, "SIG%s", signal);
	} else if (o->exit_signal > 0) { // a real-time signal
		text_format(t, "signal %d", o->exit_signal);
	} else if (o->state == RUN_FINISHED) {
		text_append_string(t, "exit status unknown");
	} else {
		text_append_string(t, o->state == RUN_LIVE ? "live" : "cut off");
	}
	text_append_string(t, o->damaged ? ", damaged" : "");
}

void overview_append_recorded(struct text *t, const struct overview *o)
{
	text_append_string(t, "recorded ");
	words_append_seconds(t, o->recorded_s);
	text_append_string(t, " of ");
	words_append_seconds(t, o->duration_s);
	text_append_string(t, ": ");
	text_append_printable(t, o->partial, strlen(o->partial));
}

void overview_append_memory(struct text *t, const struct memory_figure *memory, double of)
{
	text_append_string(t, memory->at_least ? "at least " : "");
	if (isfinite(of)) {
		words_append_bytes_of_limit(t, memory->peak_bytes, of);
	} else {
		words_append_bytes(t, memory->peak_bytes);
	}
}

void overview_append_running(struct text *t, const struct overview *o)
{
	words_append_seconds(t, o->running_s);
	if (o->stopped_s > 0) {
		text_append_string(t, ", and was stopped for ");
		words_append_seconds(t, o->stopped_s);
	}
}

// `amount` is the number at the start of the key's value; -1: it has none.
typedef void limit_writer(struct text *t, int64_t amount);

static void write_cpus(struct text *t, int64_t amount)
{
	text_format(t, "%" PRId64 " CPU%s", amount, amount == 1 ? "" : "s");
}

static void write_memory(struct text *t, int64_t amount)
{
	words_append_limit(t, (double)amount);
	text_append_string(t, " of memory");
}

double overview_disk_read_limit(struct reader *r)
{
	const char *set = r ? reader_run(r, "limit_disk_read") : NULL;
	struct cursor rest = {set ? set : "", set ? set + strlen(set) : ""};
	int64_t amount = 0;
	return cursor_i64(&rest, &amount) && amount > 0 ? (double)amount : NAN;
}

static void write_disk_read(struct text *t, int64_t amount)
{
	if (amount < 0) {
		text_append_string(t, "reads from disks");
		return;
	}
	words_append_limit(t, (double)amount);
	text_append_string(t, "/s of reads from each disk");
}

static void write_gpus(struct text *t, int64_t amount)
{
	if (amount == 0) {
		text_append_string(t, "no GPU");
	} else {
		text_format(t, "%" PRId64 " GPU%s", amount, amount == 1 ? "" : "s");
	}
}

void overview_append_limits(struct text *t, struct reader *r)
{
	static const struct {
		const char *key; // of table run; its value is "2 (cpuset 0-1)", "unlimited"
		limit_writer *write;
	} limits[] = {{"limit_cpus", write_cpus}, {"limit_memory", write_memory},
		{"limit_disk_read", write_disk_read}, {"limit_gpus", write_gpus}};
	const char *comma = "";
	for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
		const char *text = reader_run(r, limits[i].key);
		struct cursor rest = cursor_of(text ? text : "", text ? strlen(text) : 0);
		int64_t amount = -1;
		if (!text) {
			continue;
		}
		bool number = cursor_i64(&rest, &amount);
		cursor_skip_blanks(&rest);
		text_append_string(t, comma);
		limits[i].write(t, number ? amount : -1);
		text_append_string(t, rest.at < rest.end ? " " : "");
		text_append_printable(t, rest.at, (size_t)(rest.end - rest.at));
		comma = ", ";
	}
}

double overview_cache_share(const struct overview *o)
{
	// More was read than requested (mapped files, read-ahead): the share is not known.
	if (!(o->asked_bytes > 0) || !(o->storage_read_bytes <= o->asked_bytes)) {
		return NAN;
	}
	return 1 - o->storage_read_bytes / o->asked_bytes;
}

// Devices -----------------------------------------------------------------------------------------
//
// Figures of GPUs, disks and network interfaces.

static size_t count_kind(const struct known *k, enum entity_kind kind)
{
	size_t n = 0;
	for (size_t i = 0; i < k->tables->entities.n; i++) {
		n += k->tables->entities.items[i].kind == kind;
	}
	return n;
}

// Mean power and energy. The counter of energy is exact, but not if it stands still or steps back.
static void gpu_power(const struct known *k, int64_t id, struct gpu_figures *gpu)
{
	double counted = tables_figure(k->tables, id, NAME_GPU_ENERGY, FIGURE_MEAN);
	double sampled = tables_figure(k->tables, id, NAME_GPU_POWER, FIGURE_MEAN);
	bool stands = counted <= 0 && sampled > 0;
	bool wrong = stands || tables_breaks_off(k->tables, id, NAME_GPU_ENERGY);
	gpu->power_watts = isfinite(counted) && !wrong ? counted : sampled;
	gpu->energy_joules = wrong ? NAN
	                           : tables_figure(k->tables, id, NAME_GPU_ENERGY, FIGURE_TOTAL);
}

static struct gpu_figures gpu_of(const struct known *k, const struct entity *entity)
{
	int64_t id = entity->id;
	double limit = tables_figure(k->tables, id, NAME_GPU_MEMORY_LIMIT, FIGURE_MAX);
	bool ends = tables_breaks_off(k->tables, id, NAME_GPU_BUSY); // lost, or its driver hung
	struct gpu_figures gpu = {
		.entity = id,
		.name = entity->name,
		.memory_peak_bytes = tables_figure(k->tables, id, NAME_GPU_MEMORY, FIGURE_MAX),
		.memory_bytes = isfinite(limit) ? limit : entity_number(entity, "memory_bytes"),
		.busy = ends ? NAN : tables_figure(k->tables, id, NAME_GPU_BUSY, FIGURE_MEAN),
		.busy_p95 = ends ? NAN : tables_figure(k->tables, id, NAME_GPU_BUSY, FIGURE_P95),
		.to_device_bytes_per_s = tables_figure(
			k->tables, id, NAME_GPU_RECEIVED, FIGURE_MEAN),
		.from_device_bytes_per_s = tables_figure(k->tables, id, NAME_GPU_SENT, FIGURE_MEAN),
		.nvlink_in_bytes_per_s = tables_figure(
			k->tables, id, NAME_GPU_NVLINK_IN, FIGURE_MEAN),
		.nvlink_out_bytes_per_s = tables_figure(
			k->tables, id, NAME_GPU_NVLINK_OUT, FIGURE_MEAN),
		.temperature_max_c = tables_figure(k->tables, id, NAME_GPU_TEMPERATURE, FIGURE_MAX),
	};
	gpu_power(k, id, &gpu);
	return gpu;
}

struct device_names {
	enum entity_kind kind;
	const char *in;
	const char *out;
	const char *busy; // NULL for none
};

static int devices_build(const struct known *k, const struct device_names *names,
	struct device_figures **ret, size_t *ret_n)
{
	struct device_figures *devices = calloc(count_kind(k, names->kind) + 1, sizeof(*devices));
	if (!devices) {
		return -ENOMEM;
	}
	size_t n = 0;
	for (size_t i = 0; i < k->tables->entities.n; i++) {
		const struct entity *entity = &k->tables->entities.items[i];
		struct device_figures device = {
			.entity = entity->id,
			.name = entity->name,
			.in_bytes = tables_figure(k->tables, entity->id, names->in, FIGURE_TOTAL),
			.out_bytes = tables_figure(k->tables, entity->id, names->out, FIGURE_TOTAL),
			.busy = names->busy ? tables_figure(k->tables, entity->id, names->busy,
						      FIGURE_MEAN)
		                            : NAN,
		};
		if (entity->kind == names->kind && (device.in_bytes > 0 || device.out_bytes > 0)) {
			devices[n++] = device;
		}
	}
	*ret = devices;
	*ret_n = n;
	return 0;
}

// A GPU in a processor counts only if the job uses it: few jobs could.
static bool gpu_counts(const struct known *k, const struct entity *entity)
{
	return entity->kind == ENTITY_GPU &&
	       (!entity_flag(entity, "integrated") ||
		       tables_figure(k->tables, entity->id, NAME_GPU_JOB_PROCESSES, FIGURE_MAX) >
			       0);
}

static int gpus_build(const struct known *k, struct overview *ret)
{
	ret->gpus = calloc(count_kind(k, ENTITY_GPU) + 1, sizeof(*ret->gpus));
	if (!ret->gpus) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < k->tables->entities.n; i++) {
		if (gpu_counts(k, &k->tables->entities.items[i])) {
			ret->gpus[ret->n_gpus++] = gpu_of(k, &k->tables->entities.items[i]);
		}
	}
	return 0;
}

static int overview_devices_build(const struct known *k, struct overview *ret)
{
	static const struct device_names disk = {
		ENTITY_DISK, NAME_DISK_READ, NAME_DISK_WRITE, NAME_DISK_BUSY};
	static const struct device_names network = {
		ENTITY_NETWORK, NAME_NETWORK_RECEIVED, NAME_NETWORK_SENT, NULL};
	int r = gpus_build(k, ret);
	r = r < 0 ? r : devices_build(k, &disk, &ret->disks, &ret->n_disks);
	return r < 0 ? r : devices_build(k, &network, &ret->networks, &ret->n_networks);
}
