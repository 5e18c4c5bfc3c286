// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The numbers of a figure as gnuplot reads them: one block for each series, no more points than a
// page can show.

#pragma once

#include "base/text.h"
#include "render/figure.h"
#include "render/figure_layout.h"

// One block for each series that has points, panel by panel, in the units of the axes; two empty
// lines between. Columns: x, y, low, high; of bars x, y, width, low, high; of cells x, y, value.
void figure_data(
	const struct figure_page *page, const struct page_layout *layout, struct text *ret);

// Points of a line, at most four for each of `columns` stretches of x between the first and the
// last: its first, least, greatest and last, so that no peak is lost. Missing ones stay. 0 or
// -ENOMEM; *ret is the caller's.
int figure_thin(const struct figure_point *points, size_t n, size_t columns, bool logarithmic,
	struct figure_point **ret, size_t *ret_n);
// Bars of several series stand side by side, in the order of the legend: how far from x, and how
// wide.
double figure_bar_offset(
	const struct figure_panel *panel, const struct figure_series *series, double *ret_width);
