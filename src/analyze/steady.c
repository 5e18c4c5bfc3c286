// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Batch means: an iteration resembles the one before it (a cold page cache, a slow worker that
// comes round every fourth time), so that the spread of single ones would promise too much. Batches
// of neighbours are nearly independent of each other; the share of a phase is a ratio of sums, and
// the spread of batches around that ratio gives its interval.

#include "analyze/steady.h"

#include <math.h>
#include <string.h>

#define MANY 20 // iterations from which on a batch has four

static const struct estimate unknown = {NAN, NAN, NAN};

void steady_init(struct steady *s, uint64_t expected)
{
	uint64_t batches = expected < MANY ? expected / 2 : expected / 4;
	*s = (struct steady){.expected = expected};
	s->n_batches = batches < 5 ? 0 : batches > BATCHES_MAX ? BATCHES_MAX : (size_t)batches;
}

void steady_done(struct steady *s)
{
	histogram_done(&s->lengths);
	histogram_done(&s->samples);
	for (size_t i = 0; i < PHASES_MAX; i++) {
		histogram_done(&s->phases[i]);
	}
}

static void batch_add(struct steady_batch *batch, const struct iteration *iteration)
{
	batch->length_s += (double)iteration->length_ns / 1e9;
	batch->samples += (double)iteration->samples;
	for (size_t i = 0; i < PHASES_MAX; i++) {
		batch->phase_s[i] += (double)iteration->phase_ns[i] / 1e9;
	}
	batch->n++;
}

void steady_add(struct steady *s, const struct iteration *iteration)
{
	if (s->n_batches > 0) {
		double place = (double)s->n / (double)s->expected * (double)s->n_batches;
		size_t at = place < (double)s->n_batches ? (size_t)place : s->n_batches - 1;
		batch_add(&s->batches[at], iteration);
	}
	batch_add(&s->sum, iteration);
	s->n++;
	s->samples_unknown = s->samples_unknown || iteration->samples < 0;
	histogram_add(&s->lengths, (double)iteration->length_ns / 1e9, 1);
	histogram_add(&s->samples, (double)iteration->samples, 1);
	for (size_t i = 0; i < PHASES_MAX; i++) {
		histogram_add(&s->phases[i], (double)iteration->phase_ns[i] / 1e9, 1);
	}
}

// Student's t, 97.5 %, for 4 to BATCHES_MAX - 1 degrees of freedom.
static double student_t(size_t freedom)
{
	static const double table[] = {2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201,
		2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069,
		2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042, 2.040};
	size_t last = sizeof(table) / sizeof(table[0]) - 1;
	size_t at = freedom - 4;
	return table[at < last ? at : last];
}

// What a batch counts: a phase's time, all time, samples, iterations.
typedef double batch_value(const struct steady_batch *batch, size_t phase);

static double value_phase(const struct steady_batch *batch, size_t phase)
{
	return batch->phase_s[phase];
}

static double value_length(const struct steady_batch *batch, size_t phase)
{
	(void)phase;
	return batch->length_s;
}

static double value_samples(const struct steady_batch *batch, size_t phase)
{
	(void)phase;
	return batch->samples;
}

static double value_count(const struct steady_batch *batch, size_t phase)
{
	(void)phase;
	return (double)batch->n;
}

// The ratio of two sums; `most` bounds it.
static struct estimate ratio_of(
	const struct steady *s, batch_value *top, batch_value *bottom, size_t phase, double most)
{
	double over = bottom(&s->sum, phase);
	if (s->n == 0 || !(over > 0)) {
		return unknown;
	}
	double ratio = top(&s->sum, phase) / over, squares = 0;
	size_t n = 0;
	for (size_t i = 0; i < s->n_batches; i++) {
		const struct steady_batch *batch = &s->batches[i];
		double rest = top(batch, phase) - ratio * bottom(batch, phase);
		squares += rest * rest;
		n += batch->n > 0;
	}
	if (n < 5) { // fewer than were expected: the file changed, or is damaged
		return (struct estimate){ratio, NAN, NAN};
	}
	double count = (double)n;
	double half = student_t(n - 1) * sqrt(squares * count / (count - 1)) / over;
	return (struct estimate){ratio, fmax(0, ratio - half), fmin(most, ratio + half)};
}

double steady_median(const struct steady *s, size_t phase)
{
	return histogram_quantile(phase < PHASES_MAX ? &s->phases[phase] : &s->lengths, 0.5);
}

static void phase_figures(const struct steady *s, size_t at, struct phase *phase)
{
	const struct histogram *h = &s->phases[at];
	if (s->n == 0 || phase->apart) {
		phase->share = unknown;
		phase->mean_s = phase->p50_s = phase->p95_s = phase->max_s = NAN;
		return;
	}
	phase->share = ratio_of(s, value_phase, value_length, at, 1);
	phase->mean_s = s->sum.phase_s[at] / (double)s->n;
	phase->p50_s = histogram_quantile(h, 0.5);
	phase->p95_s = histogram_quantile(h, 0.95);
	phase->max_s = h->total > 0 ? h->largest : NAN;
}

void steady_figures(struct steady *s, struct phases *ret)
{
	for (size_t i = 0; i < ret->n; i++) {
		phase_figures(s, i, &ret->items[i]);
	}
	ret->steady = s->n;
	ret->length_s = ratio_of(s, value_length, value_count, 0, INFINITY);
	ret->samples_per_s = s->samples_unknown
	                             ? unknown
	                             : ratio_of(s, value_samples, value_length, 0, INFINITY);
	ret->samples_per_iteration = s->samples_unknown ? NAN
	                                                : histogram_quantile(&s->samples, 0.5);
	bool any = s->lengths.total > 0;
	ret->min_s = any ? s->lengths.smallest : NAN;
	ret->p50_s = histogram_quantile(&s->lengths, 0.5);
	ret->p95_s = histogram_quantile(&s->lengths, 0.95);
	ret->p99_s = histogram_quantile(&s->lengths, 0.99);
	ret->max_s = any ? s->lengths.largest : NAN;
	ret->lengths = s->lengths;
	s->lengths = (struct histogram){0};
}
