// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Figures of pivots, and of a few runs over time: strain compare --figure KIND.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "study/digest.h"
#include "study/pivot.h"

enum figure_pivot_kind {
	FIGURE_PIVOT_SCALING, // values over the last label of the rows, a line for each column
	FIGURE_PIVOT_BARS,
	FIGURE_PIVOT_HEATMAP,
	FIGURE_PIVOT_TIMELINE, // runs over time, beside each other
	FIGURE_PIVOT_MEMORY, // host and device memory over time, a line for each run
	N_FIGURE_PIVOT_KINDS,
};

const char *figure_pivot_name(enum figure_pivot_kind kind);
bool figure_pivot_parse(const char *name, enum figure_pivot_kind *ret);
// Whether it shows runs over time, and needs no pivot.
bool figure_pivot_is_of_runs(enum figure_pivot_kind kind);

// Draws into the file `output`, in the format of its ending. keep_directory: see figure_write.
// Errors: a pivot without the labels that the figure needs, too many runs, -errno.
int figure_pivot_draw(enum figure_pivot_kind kind, const struct pivot *p, const char *output,
	const char *keep_directory, struct error *e);
int figure_pivot_draw_runs(enum figure_pivot_kind kind, const struct digest *const *runs, size_t n,
	const char *output, const char *keep_directory, struct error *e);
