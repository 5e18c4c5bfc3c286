// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The ranking of a pivot's columns.

#include "render/pivot_ranking.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const struct repeats *repeats_of(const struct pivot *p, size_t column, size_t value)
{
	return &pivot_at(p, 0, column, value)->repeats;
}

static bool is_known(const struct pivot *p, size_t column, size_t value)
{
	return repeats_of(p, column, value)->mean > 0;
}

static size_t columns_with(const struct pivot *p, size_t value)
{
	size_t n = 0;
	for (size_t c = 0; c < p->columns.n; c++) {
		n += is_known(p, c, value);
	}
	return n;
}

// p->n_values where there is none.
static size_t value_of(const struct pivot *p, enum measure_id measure)
{
	size_t v = 0;
	while (v < p->n_values && !(p->values[v].measure == measure && columns_with(p, v) > 1)) {
		v++;
	}
	return v;
}

static size_t value_that_ranks(const struct pivot *p)
{
	static const enum measure_id first[] = {
		MEASURE_EPOCH, MEASURE_TRAINING, MEASURE_STEP, MEASURE_DURATION};
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		size_t v = value_of(p, first[i]);
		if (v < p->n_values) {
			return v;
		}
	}
	for (size_t v = 0; v < p->n_values; v++) {
		enum measure_id measure = p->values[v].measure;
		if (measure < N_MEASURES && measure_is_speed(measure) && columns_with(p, v) > 1) {
			return v;
		}
	}
	return p->n_values;
}

// How many times as fast one column is as another.
static double times_as_fast(const struct pivot *p, size_t value, size_t one, size_t other)
{
	return measure_against(p->values[value].measure, repeats_of(p, one, value)->mean,
		repeats_of(p, other, value)->mean);
}

static size_t fastest_of(const struct pivot *p, size_t value)
{
	size_t fastest = p->columns.n;
	for (size_t c = 0; c < p->columns.n; c++) {
		if (is_known(p, c, value) &&
			(fastest == p->columns.n || times_as_fast(p, value, c, fastest) > 1)) {
			fastest = c;
		}
	}
	return fastest;
}

int pivot_ranking_build(struct pivot *p)
{
	struct pivot_ranking *ranking = &p->ranking;
	if (p->rows.n_labels > 0 || p->columns.n < 2 || !p->baseline) {
		return 0;
	}
	ranking->value = value_that_ranks(p);
	if (ranking->value == p->n_values) {
		return 0;
	}
	ranking->others = calloc(p->columns.n, sizeof(*ranking->others));
	if (!ranking->others) {
		return -ENOMEM;
	}
	ranking->fastest = fastest_of(p, ranking->value);
	for (size_t c = 0; c < p->columns.n; c++) {
		if (c != ranking->fastest && is_known(p, c, ranking->value)) {
			ranking->others[ranking->n++] = (struct pivot_ratio){.column = c,
				.times = times_as_fast(p, ranking->value, ranking->fastest, c),
				.half = statistics_ratio(
					repeats_of(p, ranking->fastest, ranking->value),
					repeats_of(p, c, ranking->value))};
		}
	}
	return 0;
}

void pivot_ranking_done(struct pivot_ranking *ranking)
{
	free(ranking->others);
	*ranking = (struct pivot_ranking){0};
}
