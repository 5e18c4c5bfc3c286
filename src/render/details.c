// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The page shows an iteration with as much before and after it (timeline.ts); a little more is
// kept, so that the reader can move.

#include "render/details.h"

#define LEAST_US 10000 // before and after it, as timeline.ts has it
#define MORE 1.5

size_t detail_windows(const struct phases *p, struct detail_window ret[static DETAILS_MAX])
{
	size_t n = p->n_slowest < DETAILS_MAX ? p->n_slowest : DETAILS_MAX;
	for (size_t i = 0; i < n; i++) {
		const struct iteration *iteration = &p->slowest[i].iteration;
		int64_t from_us = iteration->start_ns / 1000, to_us = iteration->end_ns / 1000;
		double length_us = (double)(to_us - from_us);
		length_us = length_us > LEAST_US ? length_us : LEAST_US;
		int64_t margin_us = (int64_t)(MORE * length_us);
		ret[i].from_us = from_us > margin_us ? from_us - margin_us : 0;
		ret[i].to_us = to_us + margin_us;
	}
	return n;
}

int details_add(struct detail_series *details, const struct detail_window *windows, size_t n,
	int64_t t_us, double value, double minimum, double maximum, double weight)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (t_us >= windows[i].from_us && t_us <= windows[i].to_us) {
			details[i].buckets.most = DETAIL_MOST;
			r = buckets_add(&details[i].buckets, t_us, value, minimum, maximum, weight);
		}
	}
	return r;
}

int details_pack(struct detail_series *details, size_t n, const struct buckets *whole)
{
	int r = 0;
	bool coarse = whole->samples > whole->n + whole->n / 16;
	for (size_t i = 0; i < n && coarse && r == 0; i++) {
		if (details[i].buckets.n > 0) {
			r = buckets_pack(&details[i].buckets, &details[i].packed);
		}
	}
	return r;
}

void details_done(struct detail_series *details, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buckets_done(&details[i].buckets);
		text_done(&details[i].packed.base64);
	}
}
