// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Computing the summary from a run's blocks. Only summary.c needs this.

#pragma once

#include "analyze/summary.h"

int summary_compute(struct reader *r, const struct entity_list *entities,
	const struct metric_list *metrics, const struct epoch_list *epochs, struct summary *ret,
	struct error *e);

// Whether the metric did not change over the run that the row is about.
bool summary_is_steady(const struct summary_row *row);
// A figure as it comes back from the file; NAN where it cannot be kept.
double summary_round(double figure, double scale);
void summary_sort(struct summary *s);
// A new row without figures; NULL: out of memory.
struct summary_row *summary_append(
	struct summary *s, int64_t entity, uint32_t metric, int64_t epoch);
