// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A series in bounded memory: readings stream in, and whenever there are too many buckets their
// length doubles. A short run keeps every reading; no run loses a spike, since minimum and maximum
// stay.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Buckets begin with this length: finer than any tick.
#define BUCKET_SHORTEST_US 250

struct bucket {
	int64_t index; // it holds the times from index to index + 1 lengths
	double sum; // of value times weight
	float minimum;
	float maximum;
	float weight; // 0: nothing in it could be read
};

struct buckets {
	struct bucket *items; // in order of time; those without a reading are not there
	size_t n;
	size_t capacity;
	size_t most; // never more than this many
	unsigned doublings; // of BUCKET_SHORTEST_US
	uint64_t samples; // readings that were there
};

void buckets_init(struct buckets *b, size_t most);
void buckets_done(struct buckets *b);

// A reading at t_us, at or after the one before. value NAN: it could not be read. 0 or -ENOMEM.
int buckets_add(struct buckets *b, int64_t t_us, double value, double minimum, double maximum,
	double weight);

// Doubles the length of all buckets.
void buckets_coarsen(struct buckets *b);

double buckets_width_s(const struct buckets *b);
// NAN where the bucket holds no reading.
double bucket_mean(const struct bucket *bucket);

struct bucket_figures {
	double minimum, mean, maximum; // NAN without a reading
};
struct bucket_figures buckets_figures(const struct buckets *b);
