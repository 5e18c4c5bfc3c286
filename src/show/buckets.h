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

#include "base/text.h"
#include "run/phases.h"

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

// Coarse ------------------------------------------------------------------------------------------
//
// A line in few bytes: so many columns of a run's time, a byte for the mean and one for the
// greatest value of each. web/src/sweep_run.ts reads it.

// Appends the columns of [0, seconds] as base64: n means, then n greatest values; 255 where nothing
// could be read, 254 is *ret_most. False, and nothing appended, where no value is above 0 or memory
// is short.
bool buckets_append_coarse(
	struct text *t, const struct buckets *b, double seconds, size_t n, double *ret_most);

// Pack --------------------------------------------------------------------------------------------
//
// Buckets as text for a page: columns of small differences in Rice codes, then base64.
// web/README.md describes the bits; web/src/decode.ts reads them.

// value = unit * sinh(code / PACK_STEPS): about three digits at every size, and small codes.
#define PACK_STEPS 1024

struct packed {
	double unit;
	struct text base64; // owner: text_done
};

// 0 or -ENOMEM. A zeroed or used *packed is filled anew.
int buckets_pack(const struct buckets *b, struct packed *packed);

// Appends bytes as base64, with padding.
void text_append_base64(struct text *t, const unsigned char *bytes, size_t length);

// Details -----------------------------------------------------------------------------------------
//
// Stretches of a run that the page holds at full rate, however long the run is: around the slowest
// iterations.

#define DETAILS_MAX 5 // as many slow iterations as the page lists

struct detail_window {
	int64_t from_us;
	int64_t to_us;
};

#define DETAIL_MOST 512 // buckets of a line in a window

// A line in a window.
struct detail_series {
	struct buckets buckets;
	struct packed packed; // empty where the whole line is at that rate
};

// A reading, as for buckets_add, into each window that holds its time.
int buckets_add_detail(struct detail_series *details, const struct detail_window *windows, size_t n,
	int64_t t_us, double value, double minimum, double maximum, double weight);
// Packs them where the line as a whole is coarser than its readings. 0 or -ENOMEM.
int buckets_pack_details(struct detail_series *details, size_t n, const struct buckets *whole);
void buckets_details_done(struct detail_series *details, size_t n);

// Returns how many there are.
size_t buckets_detail_windows(const struct phases *p, struct detail_window ret[static DETAILS_MAX]);
