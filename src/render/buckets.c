// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Buckets that grow longer instead of more.

#include "render/buckets.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

#define LARGEST 1e30

void buckets_init(struct buckets *b, size_t most)
{
	*b = (struct buckets){.most = most};
}

void buckets_done(struct buckets *b)
{
	free(b->items);
	*b = (struct buckets){0};
}

// Joins `from` into `into`; a bucket with readings wins over one without.
static void bucket_join(struct bucket *into, const struct bucket *from)
{
	if (from->weight <= 0) {
		return;
	}
	if (into->weight <= 0) {
		int64_t index = into->index;
		*into = *from;
		into->index = index;
		return;
	}
	into->sum += from->sum;
	into->weight += from->weight;
	into->minimum = fminf(into->minimum, from->minimum);
	into->maximum = fmaxf(into->maximum, from->maximum);
}

void buckets_coarsen(struct buckets *b)
{
	size_t n = 0;
	for (size_t i = 0; i < b->n; i++) {
		struct bucket moved = b->items[i];
		moved.index >>= 1; // rounds down below zero too
		if (n > 0 && b->items[n - 1].index == moved.index) {
			bucket_join(&b->items[n - 1], &moved);
		} else {
			b->items[n++] = moved;
		}
	}
	b->n = n;
	b->doublings++;
}

int buckets_add(struct buckets *b, int64_t t_us, double value, double minimum, double maximum,
	double weight)
{
	// Beyond this (only a damaged file goes there) sums of floats would no longer be finite.
	bool there = fabs(value) < LARGEST && weight > 0 && weight < LARGEST;
	minimum = fabs(minimum) < LARGEST ? minimum : value;
	maximum = fabs(maximum) < LARGEST ? maximum : value;
	struct bucket reading = {
		.index = (t_us / BUCKET_SHORTEST_US) >> b->doublings,
		.sum = there ? value * weight : 0,
		.minimum = there ? (float)minimum : 0,
		.maximum = there ? (float)maximum : 0,
		.weight = there ? (float)weight : 0,
	};
	b->samples += there;
	if (b->n > 0 && b->items[b->n - 1].index >= reading.index) {
		bucket_join(&b->items[b->n - 1], &reading);
		return 0;
	}
	while (b->n >= b->most) {
		buckets_coarsen(b);
		reading.index = (t_us / BUCKET_SHORTEST_US) >> b->doublings;
	}
	if (b->n > 0 && b->items[b->n - 1].index >= reading.index) {
		bucket_join(&b->items[b->n - 1], &reading);
		return 0;
	}
	void *items = b->items;
	int r = array_reserve(&items, &b->capacity, b->n + 1, sizeof(*b->items));
	b->items = items;
	if (r == 0) {
		b->items[b->n++] = reading;
	}
	return r;
}

double buckets_width_s(const struct buckets *b)
{
	return ldexp(BUCKET_SHORTEST_US * 1e-6, (int)b->doublings);
}

double bucket_mean(const struct bucket *bucket)
{
	return bucket->weight > 0 ? bucket->sum / (double)bucket->weight : NAN;
}

struct bucket_figures buckets_figures(const struct buckets *b)
{
	struct bucket_figures figures = {NAN, NAN, NAN};
	double sum = 0, weight = 0;
	for (size_t i = 0; i < b->n; i++) {
		const struct bucket *bucket = &b->items[i];
		if (bucket->weight > 0) {
			sum += bucket->sum;
			weight += (double)bucket->weight;
			// fmin and fmax pass over the NAN that they begin with.
			figures.minimum = fmin(figures.minimum, (double)bucket->minimum);
			figures.maximum = fmax(figures.maximum, (double)bucket->maximum);
		}
	}
	if (weight > 0) {
		figures.mean = sum / weight;
	}
	return figures;
}
