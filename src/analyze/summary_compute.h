// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Computing the summary from a run's blocks. Only summary.c needs this.

#pragma once

#include "analyze/summary.h"

int summary_compute(struct reader *r, const struct entity_list *entities,
	const struct metric_list *metrics, const struct epoch_list *epochs, struct summary *ret,
	struct error *e);

void summary_sort(struct summary *s);
// A new row without figures; NULL: out of memory.
struct summary_row *summary_append(
	struct summary *s, int64_t entity, uint32_t metric, int64_t epoch);
