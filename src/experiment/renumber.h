// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A plan that was changed numbers its trials anew: the runs that are there get the names of the
// trials that they are, by their labels.

#pragma once

#include "base/error.h"

struct sweep;

// What no trial of the plan is goes into the folder left-out; `say` (may be NULL) tells how many.
int renumber_runs(const struct sweep *sweep, void (*say)(const char *text), struct error *e);
