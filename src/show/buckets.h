// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A series in bounded memory. Readings stream in; when there are too many buckets, their length
// doubles. A short run keeps every reading. No run loses a spike, since each bucket keeps minimum
// and maximum.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "run/phases.h"

// Initial length of buckets: shorter than any tick.
#define BUCKET_SHORTEST_US 250

struct bucket {
	int64_t index; // covers [index, index + 1) bucket lengths
	double sum; // of value times weight
	float minimum;
	float maximum;
	float weight; // 0: no reading in it succeeded
};

struct buckets {
	struct bucket *items; // in order of time; buckets without readings are left out
	size_t n;
	size_t capacity;
	size_t most; // upper bound of n
	unsigned doublings; // bucket length, as doublings of BUCKET_SHORTEST_US
	uint64_t samples; // successful readings
};

void buckets_init(struct buckets *b, size_t most);
void buckets_done(struct buckets *b);

// Adds a reading at t_us, not before the last one. value NAN: it failed. Returns 0 or -ENOMEM.
int buckets_add(struct buckets *b, int64_t t_us, double value, double minimum, double maximum,
	double weight);

// Doubles the length of all buckets.
void buckets_coarsen(struct buckets *b);

double buckets_width_s(const struct buckets *b);
// NAN: no reading succeeded.
double bucket_mean(const struct bucket *bucket);

struct bucket_figures {
	double minimum, mean, maximum; // NAN without a reading
};
struct bucket_figures buckets_figures(const struct buckets *b);

// Coarse ------------------------------------------------------------------------------------------
//
// A line in few bytes: the time of a run in n columns, each with a byte for the mean and one for
// the maximum. web/src/sweep_run.ts reads it.

// Appends the columns of [0, seconds] as base64: n means, then n maxima; 255 means no reading, 254
// is *ret_most. Returns false and appends nothing if no value is above 0 or memory runs out.
bool buckets_append_coarse(
	struct text *t, const struct buckets *b, double seconds, size_t n, double *ret_most);

// Pack --------------------------------------------------------------------------------------------
//
// Encodes buckets as text for a page: columns of small differences in Rice codes, then base64.
// web/README.md describes the format; web/src/decode.ts reads it.

// value = unit * sinh(code / PACK_STEPS): about three digits for any magnitude, and small codes.
#define PACK_STEPS 1024

struct packed {
	double unit;
	struct text base64; // owner: text_done
};

// Returns 0 or -ENOMEM. *packed may be zeroed or used before.
int buckets_pack(const struct buckets *b, struct packed *packed);

// Appends bytes as base64, with padding.
void text_append_base64(struct text *t, const unsigned char *bytes, size_t length);

// Details -----------------------------------------------------------------------------------------
//
// Windows of time that the page has at full rate, however long the run is: around the slowest
// iterations.

#define DETAILS_MAX 5 // the number of slow iterations on the page

struct detail_window {
	int64_t from_us;
	int64_t to_us;
};

#define DETAIL_MOST 512 // buckets of a series in a window

// A series in a window.
struct detail_series {
	struct buckets buckets;
	struct packed packed; // empty if the whole series has that rate
};

// Adds a reading, as in buckets_add, to each window that contains its time.
int buckets_add_detail(struct detail_series *details, const struct detail_window *windows, size_t n,
	int64_t t_us, double value, double minimum, double maximum, double weight);
// Packs the windows if the whole series is coarser than its readings. Returns 0 or -ENOMEM.
int buckets_pack_details(struct detail_series *details, size_t n, const struct buckets *whole);
void buckets_details_done(struct detail_series *details, size_t n);

// Returns the number of windows.
size_t buckets_detail_windows(const struct phases *p, struct detail_window ret[static DETAILS_MAX]);
