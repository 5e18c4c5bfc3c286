// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reduces readings to buckets of time.

#include "run/resampler.h"

#include <math.h>

void resampler_start(struct resampler *b, enum metric_kind kind, int64_t length_us)
{
	*b = (struct resampler){.kind = kind, .length_us = length_us, .last = NAN};
}

static int64_t bucket_start(const struct resampler *b, int64_t t_us)
{
	int64_t rest = t_us % b->length_us;
	return t_us - (rest < 0 ? rest + b->length_us : rest);
}

// Counts the last reading as valid until then, within the open bucket.
static void stand_until(struct resampler *b, int64_t until_us)
{
	int64_t from = b->last_us > b->bucket.t_us ? b->last_us : b->bucket.t_us;
	int64_t end = b->bucket.t_us + b->length_us;
	int64_t to = until_us < end ? until_us : end;
	if (isfinite(b->last) && to > from) {
		b->area += b->last * (double)(to - from);
		b->stood_us += (double)(to - from);
	}
}

static struct resampled bucket_closed(struct resampler *b)
{
	struct resampled closed = b->bucket;
	bool mean = b->kind == METRIC_GAUGE && b->stood_us > 0;
	closed.value = mean ? b->area / b->stood_us : b->last;
	if (b->kind == METRIC_GAUGE && isnan(closed.maximum)) {
		closed.value = NAN; // all its readings were missing
	}
	b->open = false;
	return closed;
}

bool resampler_add(struct resampler *b, int64_t t_us, double value, double minimum, double maximum,
	struct resampled *ret)
{
	t_us = b->any && t_us < b->last_us ? b->last_us : t_us;
	bool ended = b->open && t_us >= b->bucket.t_us + b->length_us;
	if (b->open) {
		stand_until(b, t_us);
	}
	if (ended) {
		*ret = bucket_closed(b);
	}
	if (!b->open) {
		b->open = true;
		b->bucket = (struct resampled){bucket_start(b, t_us), NAN, NAN, NAN};
		b->area = b->stood_us = 0;
		stand_until(b, b->any ? t_us : b->bucket.t_us);
	}
	// fmin and fmax ignore NAN.
	b->bucket.minimum = fmin(b->bucket.minimum, minimum);
	b->bucket.maximum = fmax(b->bucket.maximum, maximum);
	b->spacing_us = b->any ? t_us - b->last_us : 0;
	b->last_us = t_us;
	b->last = value;
	b->any = true;
	return ended;
}

bool resampler_end(struct resampler *b, struct resampled *ret)
{
	if (!b->open) {
		return false;
	}
	stand_until(b, b->last_us + b->spacing_us);
	*ret = bucket_closed(b);
	return true;
}
