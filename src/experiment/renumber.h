// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A plan that was changed numbers its trials anew: the runs that are there get the names of the
// trials that they are, by their labels.

#pragma once

#include <stdbool.h>

#include "base/error.h"

struct plan;
struct sweep;

// `was` is the plan that the runs are of. What no trial of the sweep's plan is goes into the folder
// left-out, each with its log; `say` (may be NULL) tells how many. Where it was ended, it is to be
// called again.
int renumber_runs(const struct sweep *sweep, const struct plan *was, void (*say)(const char *text),
	struct error *e);
// Whether one that was ended has left runs without a name in the sweep's directory.
bool renumber_is_begun(const struct sweep *sweep);
