// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Layouts whose cells are numbers of runs: as a pivot, which tables print and figures draw.

#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cmd/layout.h"
#include "cmd/layout_gpus.h"
#include "cmd/layout_select.h"
#include "render/pivot.h"

struct figure_page;

// The pivot, and what it borrows.
struct layout_pivot {
	const struct layout *layout;
	const struct catalogue_run **runs; // [n_runs] the selection's, then what was published
	const char **sources; // [n_runs]
	size_t n_runs;
	struct layout_gpus gpus; // runs that stand there once for each GPU
	struct catalogue_run *published; // [n_published]
	size_t n_published;
	struct run_label *labels; // of those
	char **texts; // [n_texts] that labels point to
	size_t n_texts;
	const char *rows[LAYOUT_LABELS + 1];
	const char *columns[LAYOUT_LABELS];
	struct pivot_value values[LAYOUT_VALUES];
	double *numbers; // [n_runs] of the first value, where the layout changes it
	const char **reasons; // [n_runs] why there is none
	struct pivot_request request;
	struct pivot pivot;
};

// beside: what the document published stands beside the runs, if it gives numbers. Notes are added
// to the selection's. 0, -ENOMEM, -EBADMSG.
int layout_pivot(const struct layout *l, struct layout_selection *s, bool beside,
	struct layout_pivot *ret, struct error *e);
void layout_pivot_done(struct layout_pivot *p);

// A series layout as a figure; the caller's. NULL: out of memory.
struct figure_page *layout_pivot_figure(const struct layout_pivot *p, struct layout_selection *s);
