// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The baseline and the number of trials in the plans beside the runs of sweeps.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "study/pivot.h"
#include "sweep/plan.h"

struct digest;
struct text;

// The baseline of the plans of the sweeps in which runs are.
struct plan_baseline {
	struct pivot_match matches[PLAN_MAX_FACTORS]; // [n]
	size_t n;
	bool read;
	struct plan plan; // owns the strings of the matches
};

// False: there is none, or the plans differ, which `different` then says. plan_baseline_done is
// needed after both.
bool plan_baseline_find(const struct digest *const *runs, size_t n, struct plan_baseline *ret,
	struct text *different);
void plan_baseline_done(struct plan_baseline *b);

// The plan of one sweep. All is NULL and 0 for a directory without a plan; a plan that is not valid
// has its text only.
struct plan_facts {
	char *text;
	char *command; // with placeholders
	size_t planned; // trials
	bool read;
	struct plan plan;
};
void plan_facts_read(const char *directory, struct plan_facts *ret);
void plan_facts_done(struct plan_facts *facts);
