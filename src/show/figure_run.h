// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run as papers show one (Torres, Barrios and Denneulin 2021, Figure 1): three panels over time,
// memory, traffic and utilisation, with dashed lines where epochs start. Several runs stand beside
// each other.

#pragma once

#include "base/error.h"
#include "show/figure.h"

struct analysis;

#define FIGURE_RUNS_MAX 4

// Room for so many runs; NULL: out of memory.
struct figure_page *figure_run_new(size_t n_runs);
// Fills column 0, 1, ... from a run, which is not needed afterwards. title "": none. -ENOMEM or
// -EBADMSG.
int figure_run_add(struct figure_page *page, size_t column, const struct analysis *a,
	const char *title, struct error *e);

// One run as a line in panels of many: its host's memory, its device's, its GPU's utilisation. Each
// panel can be NULL. style: see figure.h. Where the run has no GPU its CPUs are drawn instead, and
// the panel says so.
struct figure_line_panels {
	struct figure_panel *host, *device, *gpu;
};
int figure_run_lines(const struct figure_line_panels *into, const struct analysis *a,
	const char *name, int style, struct error *e);
