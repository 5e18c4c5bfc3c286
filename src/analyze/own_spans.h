// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What is counted of the spans that a job's author named: ranges of NVTX, `strain mark`, spans of
// marker.h that are no phases. Only phases.c needs this.

#pragma once

#include <stdint.h>

#include "analyze/phase_threads.h"
#include "analyze/phases.h"
#include "analyze/timeline.h"

struct own_gathering;

int own_spans_new(struct own_gathering **ret); // 0 or -ENOMEM
void own_spans_free(struct own_gathering *own); // accepts NULL
// 0 or -ENOMEM.
int own_spans_add(struct own_gathering *own, const struct timeline_lane *lane,
	const struct timeline_own *span);
// Fills own, n_own and own_left_out. 0 or -ENOMEM.
int own_spans_finish(const struct own_gathering *own, const struct phase_threads *threads,
	double run_s, struct phases *ret);
