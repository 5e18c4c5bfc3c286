// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The table that `ls` prints.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/catalogue.h"

// A line of the list: a run, or the trials of a sweep.
struct listed {
	const struct catalogue_run *run; // of a sweep: its first trial
	const struct catalogue_run **trials; // [n_trials] owned; NULL: a run
	size_t n_trials;
	int64_t start_utc_ns; // 0: not known
	double duration_s;
	size_t place; // among those that are alike
};

struct listing {
	struct listed *items;
	size_t n;
};

// Prints the lines, with a column for the measure (N_MEASURES: none). An exit status.
int ls_print(const struct listing *l, enum measure_id measure, bool json);
