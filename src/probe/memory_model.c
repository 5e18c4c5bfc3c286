// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Fits the line of memory over batch size.

#include "probe/memory_model.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fit.h>
#include <math.h>
#include <stdlib.h>

#include "run/statistics.h"

// An interval of 95 % of a normal distribution.
#define NORMAL_95 1.96
// The threshold is looked for within so many standard deviations, in so many steps to each side.
#define THRESHOLD_REACH 6.0
#define THRESHOLD_STEPS 200

static int compare_batches(const void *left, const void *right)
{
	const struct memory_point *a = left, *b = right;
	return (a->batch > b->batch) - (a->batch < b->batch);
}

// The number of different batch sizes among the points used.
static size_t count_sizes(const struct memory_point *points, size_t n)
{
	size_t sizes = 0;
	double last = NAN;
	for (size_t i = 0; i < n; i++) {
		if (!points[i].left_out && points[i].batch != last) {
			last = points[i].batch;
			sizes++;
		}
	}
	return sizes;
}

// The relative standard deviation within repeats of a batch size, pooled; 0: no repeats.
static double repeat_deviation(const struct memory_point *points, size_t n)
{
	double squares = 0, degrees = 0;
	for (size_t i = 0; i < n;) {
		size_t end = i;
		double sum = 0;
		for (; end < n && points[end].batch == points[i].batch; end++) {
			sum += points[end].bytes;
		}
		double mean = sum / (double)(end - i);
		for (size_t k = i; k < end; k++) {
			squares += pow(points[k].bytes / mean - 1, 2);
		}
		degrees += (double)(end - i - 1);
		i = end;
	}
	return degrees > 0 ? sqrt(squares / degrees) : 0;
}

// Fits the points that are not left out, each with the same relative deviation.
static void fit(const struct memory_point *points, size_t n, struct memory_model *m)
{
	double x[MEMORY_POINTS_MAX] = {0}, y[MEMORY_POINTS_MAX] = {0};
	double weight[MEMORY_POINTS_MAX] = {0}, chi2;
	size_t used = 0;
	for (size_t i = 0; i < n; i++) {
		if (!points[i].left_out) {
			x[used] = points[i].batch;
			y[used] = points[i].bytes;
			weight[used] = 1 / pow(m->deviation * points[i].bytes, 2);
			used++;
		}
	}
	gsl_fit_wlinear(x, 1, weight, 1, y, 1, used, &m->intercept, &m->slope, &m->covariance[0],
		&m->covariance[1], &m->covariance[2], &chi2);
	m->used = used;
	m->residual = used > 2 ? 0 : NAN;
	m->batch_min = x[0];
	m->batch_max = x[used - 1];
	for (size_t i = 0; i < used && used > 2; i++) {
		double line = m->intercept + m->slope * x[i];
		m->residual = fmax(m->residual, fabs(y[i] / line - 1));
	}
}

// How far the smallest batch size lies from the line of the larger ones, relative.
static double smallest_off(const struct memory_point *points, size_t n, double deviation)
{
	struct memory_point larger[MEMORY_POINTS_MAX];
	struct memory_model line = {.deviation = deviation};
	double sum = 0, repeats = 0;
	size_t kept = 0, first = 0;
	while (points[first].left_out) {
		first++;
	}
	for (size_t i = first; i < n; i++) {
		if (points[i].batch == points[first].batch) {
			sum += points[i].bytes;
			repeats++;
		} else {
			larger[kept++] = points[i];
		}
	}
	if (count_sizes(larger, kept) < 2) {
		return 0;
	}
	fit(larger, kept, &line);
	return fabs(sum / repeats / (line.intercept + line.slope * points[first].batch) - 1);
}

// Leaves out the smallest batch sizes while they are in another regime.
static size_t leave_out(struct memory_point *points, size_t n, double deviation)
{
	// The line of the others, extended to the smallest, is itself uncertain.
	const double most = fmax(MEMORY_REGIME, 4 * deviation);
	size_t left_out = 0;
	while (count_sizes(points, n) > 2 && smallest_off(points, n, deviation) > most) {
		double batch = points[left_out].batch;
		for (size_t i = left_out; i < n && points[i].batch == batch; i++) {
			points[i].left_out = true;
			left_out++;
		}
	}
	return left_out;
}

bool memory_model_fit(
	struct memory_point *points, size_t n, double deviation, struct memory_model *ret)
{
	*ret = (struct memory_model){0};
	if (n > MEMORY_POINTS_MAX) {
		return false;
	}
	qsort(points, n, sizeof(*points), compare_batches);
	for (size_t i = 0; i < n; i++) {
		points[i].left_out = false;
		if (!(points[i].batch >= 1) || !(points[i].bytes > 0) ||
			!isfinite(points[i].bytes)) {
			return false;
		}
	}
	if (count_sizes(points, n) < 2) {
		return false;
	}
	ret->deviation = fmax(deviation, repeat_deviation(points, n));
	ret->left_out = leave_out(points, n, ret->deviation);
	fit(points, n, ret);
	if (ret->residual > ret->deviation) { // the line is not as straight as its points are sure
		ret->deviation = ret->residual;
		fit(points, n, ret);
	}
	ret->flat = ret->slope <= NORMAL_95 * sqrt(ret->covariance[2]);
	return true;
}

static double deviation_at(const struct memory_model *m, double batch)
{
	double line = m->intercept + m->slope * batch;
	double of_line = m->covariance[0] + 2 * batch * m->covariance[1] +
	                 batch * batch * m->covariance[2];
	return sqrt(fmax(0, of_line) + pow(m->deviation * line, 2));
}

bool memory_model_covers(const struct memory_model *m, double batch)
{
	return m->left_out == 0 || batch >= m->batch_min;
}

struct estimate memory_model_bytes(const struct memory_model *m, double batch)
{
	double line = m->intercept + m->slope * batch;
	double half = NORMAL_95 * deviation_at(m, batch);
	return (struct estimate){line, line - half, line + half};
}

enum bytes_edge { EDGE_LINE, EDGE_LOW, EDGE_HIGH };

static double bytes_at(const struct memory_model *m, double batch, enum bytes_edge edge)
{
	struct estimate bytes = memory_model_bytes(m, batch);
	return edge == EDGE_LINE ? bytes.value : edge == EDGE_LOW ? bytes.low : bytes.high;
}

// The largest whole batch size up to `most` at which the edge is at most `limit`. The edges need
// not ascend everywhere; the search looks for the first batch size that does not fit.
static double largest(const struct memory_model *m, double limit, double most, enum bytes_edge edge)
{
	double fits = 0, fails = 1;
	if (bytes_at(m, 1, edge) > limit) {
		return 0;
	}
	while (fails <= most && bytes_at(m, fails, edge) <= limit) {
		fits = fails;
		fails = fits * 2;
	}
	if (fails > most) {
		if (bytes_at(m, most, edge) <= limit) {
			return floor(most);
		}
		fails = most;
	}
	while (fails - fits > 1) {
		double middle = floor((fits + fails) / 2);
		if (bytes_at(m, middle, edge) <= limit) {
			fits = middle;
		} else {
			fails = middle;
		}
	}
	return fits;
}

struct estimate memory_model_largest(const struct memory_model *m, double limit, double most)
{
	return (struct estimate){
		.value = largest(m, limit, most, EDGE_LINE),
		.low = largest(m, limit, most, EDGE_HIGH),
		.high = largest(m, limit, most, EDGE_LOW),
	};
}

// What is known of the batch size whose memory, on average, is the limit: a normal distribution by
// the line, weighted by what the trials showed. noise: of a run, in samples.
struct threshold {
	double mean, deviation, noise;
	const struct memory_trial *trials;
	size_t n;
};

// The weight of one value of the threshold (Bayes, without the constant).
static double weight_of(const struct threshold *t, double value)
{
	double weight = exp(-0.5 * pow((value - t->mean) / t->deviation, 2));
	for (size_t i = 0; i < t->n; i++) {
		double above = (value - t->trials[i].batch) / t->noise;
		weight *= t->trials[i].passed ? gsl_cdf_ugaussian_P(above)
		                              : gsl_cdf_ugaussian_Q(above);
	}
	return weight;
}

// The probability that one more run of a batch size passes; NAN: the trials rule out the line.
static double passes(const struct threshold *t, double batch)
{
	double sum = 0, passed = 0;
	double reach = THRESHOLD_REACH * hypot(t->deviation, t->noise);
	for (int i = -THRESHOLD_STEPS; i <= THRESHOLD_STEPS; i++) {
		double value = t->mean + reach * i / THRESHOLD_STEPS;
		double weight = weight_of(t, value);
		sum += weight;
		passed += weight * gsl_cdf_ugaussian_P((value - batch) / t->noise);
	}
	return sum > 0 ? passed / sum : NAN;
}

double memory_model_passes(const struct memory_model *m, double limit, double doubt,
	const struct memory_trial *trials, size_t n, double share)
{
	if (!(m->slope > 0) || m->flat || m->used == 0) {
		return NAN;
	}
	limit /= 1 + MEMORY_GROWTH_LASTING;
	struct threshold t = {.mean = (limit - m->intercept) / m->slope, .trials = trials, .n = n};
	double of_line = m->covariance[0] + 2 * t.mean * m->covariance[1] +
	                 t.mean * t.mean * m->covariance[2];
	t.deviation = sqrt(fmax(0, of_line) + pow(doubt * limit, 2)) / m->slope;
	t.noise = fmax(m->deviation, MEMORY_DEVIATION_LASTING) * limit / m->slope;
	double low = 0, high = t.mean + THRESHOLD_REACH * hypot(t.deviation, t.noise);
	if (!(high > 0) || !(t.noise > 0) || !isfinite(passes(&t, 0))) {
		return NAN;
	}
	while (high - low > 0.5) {
		double middle = (low + high) / 2;
		if (passes(&t, middle) >= share) {
			low = middle;
		} else {
			high = middle;
		}
	}
	return floor(high);
}

// The points next to the limit: the largest batch sizes below it, and the smallest one at or above.
// Of repeats the largest counts. batch 0: none.
struct neighbours {
	struct memory_point lower, below, above;
};

static struct neighbours find_neighbours(const struct memory_point *points, size_t n, double limit)
{
	struct neighbours f = {0};
	for (size_t i = 0; i < n; i++) {
		const struct memory_point *p = &points[i];
		bool nearer = !(f.above.batch > 0) || p->batch < f.above.batch ||
		              (p->batch == f.above.batch && p->bytes > f.above.bytes);
		f.above = p->bytes >= limit && nearer ? *p : f.above;
	}
	for (size_t i = 0; i < n; i++) {
		const struct memory_point *p = &points[i];
		bool same = p->batch == f.below.batch;
		if (p->bytes >= limit || (f.above.batch > 0 && p->batch >= f.above.batch)) {
			continue;
		}
		if (p->batch > f.below.batch || (same && p->bytes > f.below.bytes)) {
			f.lower = same ? f.lower : f.below;
			f.below = *p;
		} else if (!same &&
			   (p->batch > f.lower.batch ||
				   (p->batch == f.lower.batch && p->bytes > f.lower.bytes))) {
			f.lower = *p;
		}
	}
	return f;
}

// Where the line through two points meets the limit; NAN: it does not ascend.
static double meets(const struct memory_point *one, const struct memory_point *two, double limit)
{
	double slope = (two->bytes - one->bytes) / (two->batch - one->batch);
	return slope > 0 ? one->batch + (limit - one->bytes) / slope : NAN;
}

struct estimate memory_point_largest(
	const struct memory_point *points, size_t n, double limit, double deviation)
{
	const struct neighbours f = find_neighbours(points, n, limit);
	struct estimate e = {NAN, NAN, NAN};
	if (f.below.batch > 0 && f.above.batch > 0) {
		// Another run may need a little more.
		e.value = fmax(
			f.below.batch, floor(meets(&f.below, &f.above, limit * (1 - deviation))));
		e.low = e.value;
	}
	if (f.lower.batch > 0) {
		e.high = floor(meets(&f.lower, &f.below, limit * (1 + NORMAL_95 * deviation)));
	}
	return e;
}
