// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Whether memory grows with the iterations, and how fast: memory that cannot be dropped (anonymous
// and shared, no page cache), of the job and of each process that trains, against the number of the
// iteration, without warm-up.
//
// A leak is claimed where the memory that is never given back again (at each time, the least that
// is held from then on) grows by 64 MB and in each quarter of the iterations by at least half of
// its even share: what fills up and then stays (caches, queues of a loader), and what comes and
// goes with each epoch, does not. Of a run of one epoch it is not known what its end gives back.

#pragma once

#include <stddef.h>

#include "verdict/facts.h"

struct analysis;
struct text;

// `bytes` held at iteration `at` (a fraction is within it); at ascends. NAN is left out. True for a
// leak. Where there is enough to say anything (16 points), *ret_slope are bytes for each
// iteration: the median of the slopes between medians of up to 48 parts (Theil and Sen), with a 95
// % interval (Kendall's), wider where neighbours resemble each other; NAN else.
bool leak_judge(const double *at, const double *bytes, size_t n, struct estimate *ret_slope,
	double *ret_gained);

// Needs phases and overview. Always filled: NAN where there are no iterations or readings.
void leak_facts_fill(const struct analysis *a, struct growth_facts *ret);
// "memory grows by 16 MB an iteration (14 to 17): full in 40 min at that rate"; nothing where it is
// no leak. Printable.
void leak_append_warning(struct text *t, const struct growth_facts *growth);
