// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What `compare` holds runs against: what --baseline says, else what the plans of their sweeps do.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "experiment/plan.h"
#include "render/pivot.h"

struct argp_state;

enum { BASELINE_MAX = PLAN_MAX_FACTORS };

struct compare_baseline {
	struct pivot_match matches[BASELINE_MAX];
	size_t n;
	bool given; // by the option, which may say that there is none
	bool has_plan;
	struct plan plan; // that the matches are of
};

// Takes the option's argument apart; ends the program where it is wrong.
void compare_baseline_add(
	struct compare_baseline *b, char *argument, const struct argp_state *state);
// Without the option, puts into the request what the plans of the sweeps say that its runs are
// trials of, as far as rows and columns tell it. Plans that say different things are named, on
// standard error, and none of them is taken.
void compare_baseline_of_plans(struct compare_baseline *b, struct pivot_request *request);
// pivot_build; a plan's baseline that no run of the request has is said, and left out.
int compare_baseline_build(struct pivot_request *request, struct pivot *ret, struct error *e);
void compare_baseline_done(struct compare_baseline *b);
