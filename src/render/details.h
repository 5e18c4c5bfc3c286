// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Stretches of a run that the page holds at full rate, however long the run is: around the slowest
// iterations.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analyze/phases.h"
#include "render/buckets.h"
#include "render/pack.h"

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
int details_add(struct detail_series *details, const struct detail_window *windows, size_t n,
	int64_t t_us, double value, double minimum, double maximum, double weight);
// Packs them where the line as a whole is coarser than its readings. 0 or -ENOMEM.
int details_pack(struct detail_series *details, size_t n, const struct buckets *whole);
void details_done(struct detail_series *details, size_t n);

// Returns how many there are.
size_t detail_windows(const struct phases *p, struct detail_window ret[static DETAILS_MAX]);
