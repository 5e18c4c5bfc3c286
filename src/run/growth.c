// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Growth of memory over iterations.

#include "run/growth.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/words.h"
#include "run/overview.h"
#include "run/tables.h"
#include "run/names.h"

// at most this many parts: the median of a part hides a dip of one reading
#define PARTS_MAX_LEAK 48u
#define PARTS_MIN 16u // with fewer than 120 slopes the interval is useless
#define QUARTERS 4u
#define GAINED_BYTES 64e6 // less may be an allocator's cache, and is harmless
// of its even share: each quarter must gain this; less means that growth levels off
#define EVEN_SHARE 0.5
#define STEADY_MIN 20u // iterations
#define TRAINERS_MAX 16u // processes that are judged one by one
#define SURE 1.96 // quantile of a normal distribution for 95 %

static int double_compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static double median_of(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), double_compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Parts -------------------------------------------------------------------------------------------

struct points {
	double x[PARTS_MAX_LEAK];
	double y[PARTS_MAX_LEAK];
	size_t n;
};

// Medians of up to PARTS_MAX_LEAK parts with an equal number of iterations each; parts without
// readings are skipped. `scratch` has room for all readings.
static void take_parts(const double *at, const double *bytes, size_t n, double *scratch,
	size_t n_parts, struct points *ret)
{
	double first = at[0], width = (at[n - 1] - first) / (double)n_parts;
	size_t i = 0;
	ret->n = 0;
	for (size_t part = 0; part < n_parts; part++) {
		double end = part + 1 < n_parts ? first + width * (double)(part + 1) : INFINITY;
		double sum = 0;
		size_t taken = 0;
		for (; i < n && at[i] < end; i++) {
			if (isfinite(bytes[i])) {
				scratch[taken++] = bytes[i];
				sum += at[i];
			}
		}
		if (taken > 0) {
			ret->x[ret->n] = sum / (double)taken;
			ret->y[ret->n++] = median_of(scratch, taken);
		}
	}
}

// The slope ---------------------------------------------------------------------------------------

// The correlation of neighbours: the lag-1 autocorrelation of the residuals of the line.
static double likeness(const struct points *p, double slope)
{
	double left[PARTS_MAX_LEAK], sorted[PARTS_MAX_LEAK], squares = 0, products = 0;
	for (size_t i = 0; i < p->n; i++) {
		sorted[i] = left[i] = p->y[i] - slope * p->x[i];
	}
	double middle = median_of(sorted, p->n);
	for (size_t i = 0; i < p->n; i++) {
		left[i] -= middle;
		squares += left[i] * left[i];
		products += i > 0 ? left[i] * left[i - 1] : 0;
	}
	return squares > 0 ? fmin(0.9, fmax(0, products / squares)) : 0;
}

static struct estimate find_slope(const struct points *p)
{
	enum { SLOPES_MAX = PARTS_MAX_LEAK * (PARTS_MAX_LEAK - 1) / 2 };
	double slopes[SLOPES_MAX];
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++) {
		for (size_t k = i + 1; k < p->n; k++) {
			slopes[n++] = (p->y[k] - p->y[i]) / (p->x[k] - p->x[i]);
		}
	}
	struct estimate e = {median_of(slopes, n), NAN, NAN};
	double points = (double)p->n, r = likeness(p, e.value);
	double rank = SURE * sqrt(points * (points - 1) * (2 * points + 5) / 18);
	rank *= sqrt((1 + r) / (1 - r)); // correlated points count as fewer points
	double low = fmax(0, ((double)n - rank) / 2), high = ((double)n + rank) / 2;
	e.low = slopes[(size_t)low];
	e.high = slopes[(size_t)fmin((double)n - 1, high)];
	return e;
}

// Permanence --------------------------------------------------------------------------------------

// Replaces each point by the minimum from there on: memory that is never freed again. The result
// never falls.
static void take_floor(struct points *p)
{
	for (size_t i = p->n - 1; i-- > 0;) {
		p->y[i] = fmin(p->y[i], p->y[i + 1]);
	}
}

static double value_at(const struct points *p, double x)
{
	size_t i = 0;
	while (i + 1 < p->n && p->x[i + 1] <= x) {
		i++;
	}
	return p->y[i];
}

static bool grows_throughout(const struct points *p, double gained)
{
	double from = p->x[0], length = (p->x[p->n - 1] - from) / QUARTERS;
	double least = EVEN_SHARE * gained / QUARTERS, before = p->y[0];
	for (size_t i = 1; i <= QUARTERS; i++) {
		double now = i < QUARTERS ? value_at(p, from + length * (double)i) : p->y[p->n - 1];
		if (!(now - before >= least)) {
			return false;
		}
		before = now;
	}
	return true;
}

bool growth_judge(const double *at, const double *bytes, size_t n, struct estimate *ret_slope,
	double *ret_gained)
{
	struct points points;
	size_t n_parts = n / 2 < PARTS_MAX_LEAK ? n / 2 : PARTS_MAX_LEAK;
	_cleanup_free_ double *scratch = calloc(n + 1, sizeof(*scratch));
	*ret_slope = (struct estimate){NAN, NAN, NAN};
	*ret_gained = NAN;
	if (!scratch || n_parts < PARTS_MIN || !(at[n - 1] > at[0])) {
		return false;
	}
	take_parts(at, bytes, n, scratch, n_parts, &points);
	if (points.n < PARTS_MIN) {
		return false;
	}
	*ret_slope = find_slope(&points);
	take_floor(&points);
	*ret_gained = points.y[points.n - 1] - points.y[0];
	return *ret_gained >= GAINED_BYTES && ret_slope->low > 0 &&
	       grows_throughout(&points, *ret_gained);
}

// Of a run ----------------------------------------------------------------------------------------

struct readings {
	double *at;
	double *bytes;
	size_t n;
	double last; // last reading of the whole series
};

static void readings_done(struct readings *r)
{
	free(r->at);
	free(r->bytes);
	*r = (struct readings){0};
}

static bool is_steady(const struct iteration *iteration)
{
	return !iteration->warm_up && !iteration->cut && iteration->end_ns > iteration->start_ns;
}

// Keeps readings taken during steady iterations. Between iterations (validation) memory differs.
static bool within_iterations(const struct phases *p, const struct series *s, struct readings *ret)
{
	size_t i = 0;
	*ret = (struct readings){.at = calloc(s->n + 1, sizeof(double)),
		.bytes = calloc(s->n + 1, sizeof(double)),
		.last = NAN};
	for (size_t k = 0; ret->at && ret->bytes && k < s->n; k++) {
		int64_t t_ns = s->t_us[k] * 1000;
		ret->last = isfinite(s->values[k]) ? s->values[k] : ret->last;
		while (i < p->n_iterations && p->iterations[i].end_ns <= t_ns) {
			i++;
		}
		if (i == p->n_iterations) {
			continue;
		}
		const struct iteration *iteration = &p->iterations[i];
		if (iteration->start_ns <= t_ns && is_steady(iteration) && isfinite(s->values[k])) {
			double length_ns = (double)(iteration->end_ns - iteration->start_ns);
			ret->at[ret->n] = (double)iteration->place +
			                  (double)(t_ns - iteration->start_ns) / length_ns;
			ret->bytes[ret->n++] = s->values[k];
		}
	}
	return ret->n > 0;
}

// One metric and another of the same rows, added or taken away.
struct known {
	const struct run_tables *tables;
	const struct overview *overview;
	const struct phases *phases;
};

static bool read_sum(const struct known *k, int64_t entity, const char *metric, const char *other,
	double sign, struct series *ret)
{
	struct series second = {0};
	if (reader_series(k->tables->reader, entity, metric, INT64_MIN, INT64_MAX, ret, NULL) < 0) {
		series_done(ret);
		return false;
	}
	bool found = !other || reader_series(k->tables->reader, entity, other, INT64_MIN, INT64_MAX,
				       &second, NULL) >= 0;
	for (size_t i = 0, at = 0; other && i < ret->n; i++) {
		while (at < second.n && second.t_us[at] < ret->t_us[i]) {
			at++;
		}
		bool same = at < second.n && second.t_us[at] == ret->t_us[i];
		ret->values[i] = same ? ret->values[i] + sign * second.values[at] : NAN;
	}
	series_done(&second);
	return found && ret->n > 0;
}

struct candidate {
	int64_t entity; // 0: the job
	bool leak;
	struct estimate slope;
	double gained;
	double last;
};

static struct candidate judge(const struct known *k, int64_t entity, struct series *s)
{
	struct candidate c = {entity, false, {NAN, NAN, NAN}, NAN, NAN};
	struct readings readings = {0};
	if (within_iterations(k->phases, s, &readings)) {
		c.leak = growth_judge(readings.at, readings.bytes, readings.n, &c.slope, &c.gained);
		c.last = readings.last;
	}
	readings_done(&readings);
	series_done(s);
	return c;
}

// Anonymous and shared memory of the cgroup, else the private memory of the processes.
static struct candidate judge_job(const struct known *k)
{
	const struct entity *job = entity_first(&k->tables->entities, ENTITY_JOB);
	struct series s = {0};
	if (job && !read_sum(k, job->id, NAME_ANONYMOUS, NAME_SHMEM, 1, &s)) {
		series_done(&s);
		(void)read_sum(k, job->id, NAME_OWN_SUM, NULL, 0, &s);
	}
	return judge(k, 0, &s);
}

static struct candidate judge_process(const struct known *k, int64_t entity)
{
	struct series s = {0};
	(void)read_sum(k, entity, NAME_RESIDENT, NAME_RESIDENT_SHARED, -1, &s);
	return judge(k, entity, &s);
}

// Free memory at the end of the run: below the cgroup's limit, else available on the machine.
static double left_bytes(const struct known *k, double held)
{
	const struct overview *o = k->overview;
	const struct entity *host = entity_first(&k->tables->entities, ENTITY_HOST);
	struct series s = {0};
	double left = NAN;
	if (o->memory_limit_is_cgroup) {
		return fmax(0, o->memory_limit_bytes - held);
	}
	if (host && reader_series(k->tables->reader, host->id, NAME_HOST_MEMORY_AVAILABLE,
			    INT64_MIN, INT64_MAX, &s, NULL) >= 0) {
		for (size_t i = s.n; i-- > 0 && !isfinite(left);) {
			left = s.values[i];
		}
	}
	series_done(&s);
	return left;
}

// Iterations per second, from the start of the first steady one to the end of the last.
static double iterations_per_s(const struct phases *p)
{
	const struct iteration *first = NULL, *last = NULL;
	for (size_t i = 0; i < p->n_iterations; i++) {
		if (is_steady(&p->iterations[i])) {
			first = first ? first : &p->iterations[i];
			last = &p->iterations[i];
		}
	}
	return first && last->end_ns > first->start_ns
	               ? (double)(last->place + 1 - first->place) * 1e9 /
	                         (double)(last->end_ns - first->start_ns)
	               : NAN;
}

static const struct growth growth_none = {.bytes_per_iteration = {NAN, NAN, NAN},
	.bytes_per_s = NAN,
	.full_in_s = NAN,
	.gained_bytes = NAN,
	.gpu = -1};

static void set_found(const struct known *k, const struct candidate *found, struct growth *ret)
{
	ret->leak = found->leak;
	ret->bytes_per_iteration = found->slope;
	ret->bytes_per_s = found->slope.value * iterations_per_s(k->phases);
	ret->gained_bytes = found->gained;
	ret->one_epoch = k->tables->epochs.n <= 1;
}

void growth_fill(const struct run_tables *tables, const struct overview *overview,
	const struct phases *phases, struct growth *ret)
{
	const struct known *k = &(struct known){tables, overview, phases};
	const struct phases *p = phases;
	*ret = growth_none;
	if (!k->tables->reader || p->steady < STEADY_MIN) {
		return;
	}
	struct candidate found = judge_job(k);
	for (size_t i = 0; i < p->n_ranks && i < TRAINERS_MAX; i++) {
		if (p->ranks[i].entity) {
			struct candidate c = judge_process(k, p->ranks[i].entity);
			bool larger = c.leak && (!found.leak || c.slope.value > found.slope.value);
			ret->process = c.leak ? c.entity : ret->process;
			found = larger || !isfinite(found.slope.value) ? c : found;
		}
	}
	set_found(k, &found, ret);
	if (found.leak && ret->bytes_per_s > 0) {
		ret->full_in_s = left_bytes(k, found.last) / ret->bytes_per_s;
	}
}

// The metric of what the job holds of a GPU: all that is in use, if no other program uses it (this
// is read more often), else that of the job's processes. NULL: the job does not use the GPU.
static const char *gpu_memory_of_job(const struct known *k, int64_t gpu)
{
	double own = tables_figure(k->tables, gpu, NAME_GPU_JOB_PROCESSES, FIGURE_MAX);
	double others = tables_figure(k->tables, gpu, NAME_GPU_OTHERS, FIGURE_MAX);
	return !(own > 0) ? NULL : others <= 0 ? NAME_GPU_MEMORY : NAME_GPU_JOB_MEMORY;
}

void growth_fill_gpus(const struct run_tables *tables, const struct overview *overview,
	const struct phases *phases, struct growth *ret)
{
	const struct known *k = &(struct known){tables, overview, phases};
	*ret = growth_none;
	for (size_t i = 0; i < overview->n_gpus; i++) {
		const struct gpu_figures *gpu = &overview->gpus[i];
		const struct entity *entity = entity_find(&tables->entities, gpu->entity);
		const char *metric = gpu_memory_of_job(k, gpu->entity);
		struct series s = {0};
		if (!tables->reader || !entity || phases->steady < STEADY_MIN || !metric ||
			!read_sum(k, gpu->entity, metric, NULL, 0, &s)) {
			series_done(&s);
			continue;
		}
		struct candidate found = judge(k, gpu->entity, &s);
		struct growth of = growth_none;
		set_found(k, &found, &of);
		of.gpu = (int)fmin(fmax(0, entity_number(entity, "index")), 1e6);
		double left = gpu->memory_bytes - gpu->memory_peak_bytes; // all programs'
		if (found.leak && of.bytes_per_s > 0 && isfinite(left)) {
			of.full_in_s = fmax(0, left) / of.bytes_per_s;
		}
		bool sooner = of.leak && (!ret->leak || !(of.full_in_s >= ret->full_in_s));
		*ret = sooner ? of : *ret;
	}
}

void growth_append_warning(struct text *t, const struct growth *growth)
{
	const struct estimate *slope = &growth->bytes_per_iteration;
	if (!growth->leak) {
		return;
	}
	if (growth->gpu >= 0) {
		text_format(t, "memory of GPU %d grows by ", growth->gpu);
	} else {
		text_append_string(t, "memory grows by ");
	}
	words_append_bytes(t, slope->value);
	text_append_string(t, " per iteration");
	if (slope->high - slope->low > 0.1 * slope->value) {
		text_append_string(t, " (");
		words_append_bytes(t, slope->low);
		text_append_string(t, " to ");
		words_append_bytes(t, slope->high);
		text_append_string(t, ")");
	}
	text_append_string(t, ", ");
	words_append_bytes(t, growth->gained_bytes);
	text_append_string(t, growth->one_epoch ? " within one epoch" : " so far");
	if (isfinite(growth->full_in_s)) {
		text_append_string(t, ": at this rate memory is exhausted in ");
		words_append_seconds(t, growth->full_in_s);
	}
}
