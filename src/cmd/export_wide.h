// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A table with a column for each metric and a row for each time (and entity), out of values that
// come metric by metric.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/entities.h"
#include "base/text.h"

// Rows of one entity at a time wait until every metric has passed them.
struct wide {
	const char **names; // [n_columns], of metrics; not owned
	size_t n_columns;
	size_t *column_of; // [n_metrics]
	int64_t *times_us; // [n_rows], rising
	double *values; // [n_rows][n_columns]; NAN: missing
	size_t n_rows;
	size_t capacity;
	bool json;
};

// wanted: [metrics->n]. Metrics of one name share a column. 0 or -ENOMEM.
int wide_init(struct wide *w, const struct metric_list *metrics, const bool *wanted, bool json);
void wide_done(struct wide *w);
// The names of the columns; nothing for JSON, whose rows have them.
void wide_header(const struct wide *w, struct text *out);
// A value of the metric at this place in the list. 0 or -ENOMEM.
int wide_put(struct wide *w, size_t metric, int64_t t_us, double value);
// How many rows are before this time, and one of them.
size_t wide_rows_before(const struct wide *w, int64_t t_us);
void wide_row(const struct wide *w, size_t row, const struct entity *entity, struct text *out);
// Forgets the first rows.
void wide_drop(struct wide *w, size_t n);
