// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The geometry of a figure: ranges, units and room, computed before gnuplot sees it, so that panels
// line up.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "show/figure.h"

#define FIGURE_FONT_POINTS 7.5
#define FIGURE_LINE_CM 0.34 // a line of text
#define FIGURE_LETTER_CM 0.125 // wide, most of them
#define FIGURE_WORDS_POINTS 6.5 // of what is said in a panel
#define FIGURE_WORDS_LINE_CM 0.3
#define FIGURE_WORDS_LETTER_CM 0.108
#define FIGURE_PIXELS_PER_CM 118 // 300 to the inch: finer than anybody sees

struct axis_range {
	double minimum; // in shown units
	double maximum;
	bool any; // there is data
	double least; // of the values, without their intervals
	double scale; // shown value = value * scale
	double step; // from one tick to the next, linear axes of numbers; 0: gnuplot's choice
	char unit[24]; // shown: "GB"; "" for none
};

struct panel_place {
	size_t row, column;
	double left, right, bottom, top; // of the axes, cm from the page's lower left corner
	double x_label, y_label; // of the axes' own names, their middle
	double legend_bottom; // of the legend's last line, cm
	unsigned legend_lines;
	double title_bottom; // beside the legend, or above it
	bool first_of_row, last_of_column;
	bool brief; // its row has but words: low, and without a name of its own
	double names_turned; // degrees: the x axis' names would run into each other
	struct axis_range x, y, z;
};

struct page_layout {
	double width, height; // cm
	double notes_top; // of the first note's line
	struct panel_place *places; // [n_panels]
	struct text notes; // lines of the notes, broken to the width
};

// Figure data -------------------------------------------------------------------------------------
//
// The numbers of a figure as gnuplot reads them: one block for each series, no more points than a
// page can show.

// Points of a line, at most four for each of `columns` stretches of x between the first and the
// last: its first, least, greatest and last, so that no peak is lost. Missing ones stay. 0 or
// -ENOMEM; *ret is the caller's.
int figure_script_thin(const struct figure_point *points, size_t n, size_t columns,
	bool logarithmic, struct figure_point **ret, size_t *ret_n);
