// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Buckets are spread over columns by the time that they share.

#include "render/coarse.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "render/pack.h"

enum { TOP = 254, NOTHING = 255 };

struct column {
	double sum; // of mean times seconds
	double seconds;
	double maximum;
};

static void spread(const struct buckets *b, double seconds, struct column *columns, size_t n)
{
	double width = buckets_width_s(b), step = seconds / (double)n;
	for (size_t i = 0; i < b->n; i++) {
		const struct bucket *bucket = &b->items[i];
		double from = (double)bucket->index * width, mean = bucket_mean(bucket);
		if (!isfinite(mean) || from < 0 || from >= seconds) {
			continue;
		}
		double to = fmin(from + width, seconds);
		for (size_t c = (size_t)(from / step); c < n && (double)c * step < to; c++) {
			double shared = fmin(to, (double)(c + 1) * step) -
			                fmax(from, (double)c * step);
			columns[c].sum += mean * fmax(shared, 0);
			columns[c].seconds += fmax(shared, 0);
			columns[c].maximum = fmax(columns[c].maximum, (double)bucket->maximum);
		}
	}
}

// Readings further apart than columns leave some of these empty; up to so many hold what was
// before.
static void hold(struct column *columns, size_t n, double longest)
{
	size_t last = n;
	for (size_t c = 0; c < n; c++) {
		if (columns[c].seconds > 0) {
			last = c;
		} else if (last < n && (double)(c - last) <= longest) {
			columns[c] = columns[last];
		}
	}
}

static unsigned char code(double value, double most)
{
	return (unsigned char)lrint(fmin(fmax(value / most, 0), 1) * TOP);
}

bool coarse_append(
	struct text *t, const struct buckets *b, double seconds, size_t n, double *ret_most)
{
	double most = buckets_figures(b).maximum;
	if (!(most > 0) || !isfinite(most) || !(seconds > 0) || n == 0 || b->n == 0) {
		return false;
	}
	_cleanup_free_ struct column *columns = calloc(n, sizeof(*columns));
	_cleanup_free_ unsigned char *bytes = malloc(2 * n);
	if (!columns || !bytes) {
		return false;
	}
	spread(b, seconds, columns, n);
	// A pause of a few readings is none: they come at their own pace.
	hold(columns, n, 4 * (double)n / (double)b->n);
	for (size_t c = 0; c < n; c++) {
		bool there = columns[c].seconds > 0;
		bytes[c] = there ? code(columns[c].sum / columns[c].seconds, most) : NOTHING;
		bytes[n + c] = there ? code(columns[c].maximum, most) : NOTHING;
	}
	text_append_base64(t, bytes, 2 * n);
	*ret_most = most;
	return true;
}
