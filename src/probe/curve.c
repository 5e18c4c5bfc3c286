// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Reads curves of loss and accuracy.

#include "probe/curve.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "run/analysis.h"
#include "run/query.h"
#include "runfile/reader.h"

// Numbers of one line have the same time.
#define SAME_LINE_NS 1000

const char curve_pattern[] = "(?i)(?:\\b|_)(?:val|valid|validation|test|eval)(?:\\b|_).*?loss\\W+"
			     "(?<loss>[-+]?[0-9.]+(?:e[-+]?[0-9]+)?)"
			     "(?:.*?acc(?:uracy)?\\w*\\W+(?<accuracy>[0-9.]+))?";

struct loader {
	struct curve *curve;
	int64_t last_ns; // of the last point
	int64_t times[CURVE_POINTS_MAX];
	bool no_memory;
};

static int add_point(void *context, sqlite3_stmt *row)
{
	struct loader *l = context;
	struct curve *c = l->curve;
	int64_t at_ns = sqlite3_column_int64(row, 0);
	const char *name = (const char *)sqlite3_column_text(row, 1);
	double value = sqlite3_column_double(row, 2);
	bool loss = name && strcmp(name, "loss") == 0;
	if (!loss && !(name && strcmp(name, "accuracy") == 0)) {
		return 0;
	}
	if (c->n == 0 || at_ns - l->last_ns > SAME_LINE_NS) {
		if (c->n == CURVE_POINTS_MAX) {
			return 0;
		}
		l->times[c->n] = at_ns;
		c->points[c->n++] = (struct curve_point){NAN, NAN, NAN, NAN};
	}
	l->last_ns = at_ns;
	struct curve_point *point = &c->points[c->n - 1];
	*(loss ? &point->loss : &point->accuracy) = value;
	return 0;
}

// Samples trained until each point. Where iterations are thinned out, each stands for `stride`.
static void count_samples(const struct phases *p, struct loader *l)
{
	struct curve *c = l->curve;
	double samples = 0;
	size_t at = 0;
	c->of_samples = p->n_iterations > 0 && p->iterations[0].samples > 0;
	int64_t start_ns = p->n_iterations > 0 ? p->iterations[0].start_ns : 0;
	for (size_t i = 0; i <= p->n_iterations; i++) {
		bool end = i == p->n_iterations;
		for (; at < c->n && (end || l->times[at] < p->iterations[i].end_ns); at++) {
			c->points[at].samples = samples;
			c->points[at].seconds = (double)(l->times[at] - start_ns) / 1e9;
		}
		if (!end) {
			const struct iteration *it = &p->iterations[i];
			samples += (double)p->stride *
			           (c->of_samples ? fmax(0, (double)it->samples) : 1);
			c->seconds = (double)(it->end_ns - start_ns) / 1e9;
		}
	}
	c->samples = samples;
	c->rate = c->seconds > 0 ? samples / c->seconds : NAN;
}

int curve_read(const char *path, struct curve *ret, struct error *e)
{
	_cleanup_reader_ struct reader *reader = NULL;
	struct analysis a;
	struct loader loader = {.curve = ret};
	*ret = (struct curve){.points = calloc(CURVE_POINTS_MAX, sizeof(*ret->points))};
	if (!ret->points) {
		return error_set(e, ENOMEM, "out of memory");
	}
	int r = reader_open(path, &reader, e);
	r = r < 0 ? r : analysis_load_brief(reader, &a, e);
	if (r < 0) {
		return r;
	}
	r = query_each(reader,
		"SELECT start_ns, name, value FROM main.span WHERE kind = 'point' AND value IS NOT "
		"NULL ORDER BY start_ns, id",
		add_point, &loader, e);
	if (r == 0) {
		count_samples(&a.phases, &loader);
		ret->missing = ret->n > 0 ? NULL
		                          : strdup("no line of the job's output matched "
						   "--epoch-pattern");
	}
	analysis_done(&a);
	return r;
}

void curve_done(struct curve *c)
{
	free(c->points);
	free(c->missing);
	*c = (struct curve){0};
}

const struct curve_point *curve_at_samples(const struct curve *c, double samples)
{
	const struct curve_point *found = NULL;
	for (size_t i = 0; i < c->n && c->points[i].samples <= samples; i++) {
		found = &c->points[i];
	}
	return found;
}

const struct curve_point *curve_at_seconds(const struct curve *c, double seconds)
{
	const struct curve_point *found = NULL;
	for (size_t i = 0; i < c->n && c->points[i].seconds <= seconds; i++) {
		found = &c->points[i];
	}
	return found;
}
