// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run as papers show one (Torres, Barrios and Denneulin 2021, Figure 1): three panels over time,
// memory, traffic and utilisation, with dashed lines where epochs start. Several runs stand beside
// each other.

#pragma once

#include "base/error.h"
#include "render/figure.h"

struct analysis;

#define FIGURE_RUNS_MAX 4

// Room for so many runs; NULL: out of memory.
struct figure_page *figure_runs_new(size_t n_runs);
// Fills column 0, 1, ... from a run, which is not needed afterwards. title "": none. -ENOMEM or
// -EBADMSG.
int figure_runs_add(struct figure_page *page, size_t column, const struct analysis *a,
	const char *title, struct error *e);
