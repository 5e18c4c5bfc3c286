// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Figures for a paper: panels in a grid, each with axes, series and marks, drawn by gnuplot to SVG,
// PDF or PNG. Each colour has its own dash, marker and pattern, so that a figure is readable in
// black and white.
//
// A figure is built, then written. Building does not report errors: an element that could not be
// allocated is NULL, every function accepts NULL, and figure_write returns -ENOMEM at the end. All
// texts are copied and may be hostile: gnuplot never sees one as anything but letters.
//
//     struct figure_page *page = figure_new("Training time", 2);
//     struct figure_panel *panel = figure_add_panel(page, "PyTorch");
//     figure_axis_set(&panel->x, "batch size", NULL);
//     figure_axis_set(&panel->y, "epoch time", "s");
//     struct figure_series *series = figure_add_series(panel, LOOK_BARS, "mean of 3");
//     figure_add_interval(series, figure_axis_name(panel, &panel->x, "32"), 41.2, 40.9, 41.6);
//     r = figure_write(page, "time.pdf", NULL, e);

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

enum figure_format { FORMAT_SVG, FORMAT_PDF, FORMAT_PNG };

enum figure_look {
	LOOK_LINE,
	LOOK_POINTS,
	LOOK_LINE_POINTS, // a line with markers: few points
	LOOK_STEPS, // a value stands until the next one
	LOOK_BARS, // those of a panel stand side by side around x
	LOOK_BAND, // the area from low to high, behind the lines
	LOOK_HEAT, // cells: x and y are names of the axes, the value is z
};

struct figure_point {
	double x;
	double y; // NAN: missing, a line is broken there
	double low; // an interval, or a band's edges; NAN: none
	double high;
	double z; // LOOK_HEAT
	char *words; // LOOK_HEAT, LOOK_BARS: written instead of the value; NULL
};

struct figure_series {
	enum figure_look look;
	char *name; // in the legend; "": not there
	int style; // colour, dash, marker and pattern; the same number looks the same in all panels
	struct figure_point *points; // lines: by x
	size_t n;
	size_t capacity;
	struct figure_page *page;
};

// Units as metrics have them: "By", "By/s", "s", "1" (shown in per cent), "W", "{cpu}", ... and
// whatever else, which is written as it is. A prefix (MB, GB) is chosen by the largest value.
struct figure_axis {
	char *label;
	char *unit;
	double logarithm; // 0: linear; else the base (2, 10)
	bool whole; // only whole numbers are marked
	double minimum; // NAN: as the data needs
	double maximum;
	char **names; // [n_names], of 0, 1, 2, ...: an axis of names instead of numbers
	size_t n_names;
	size_t capacity;
};

struct figure_panel {
	char *title;
	struct figure_axis x;
	struct figure_axis y;
	struct figure_axis z; // LOOK_HEAT: what the cells' values are
	struct figure_series **series; // [n_series]
	size_t n_series;
	size_t series_capacity;
	double *verticals; // [n_verticals]; x of dashed lines
	size_t n_verticals;
	size_t verticals_capacity;
	char *verticals_name; // in the legend; "": not there
	char *said; // lines: what is missing, and why; NULL: nothing
	struct figure_page *page;
};

struct figure_page {
	char *title;
	size_t columns; // panels beside each other
	bool share_x; // one axis for each column, said below it
	bool share_y; // the same range in each row, said to the left of it
	double panel_height_cm; // without axes and titles; 0: as suits
	struct figure_panel **panels; // [n_panels], row by row
	size_t n_panels;
	size_t panels_capacity;
	char **notes; // [n_notes], below the figure
	size_t n_notes;
	size_t notes_capacity;
	bool failed; // out of memory
};

// By the ending of a file's name. False where it is another.
bool figure_format_of(const char *path, enum figure_format *ret);

struct figure_page *figure_new(const char *title, size_t columns); // title "" or NULL: none
void figure_free(struct figure_page *page);
void figure_title_page(struct figure_page *page, const char *title); // another one
// Lives with the page, as all below it.
struct figure_panel *figure_add_panel(struct figure_page *page, const char *title);
void figure_title_panel(struct figure_panel *panel, const char *title); // another one
void figure_axis_set(
	struct figure_panel *panel, struct figure_axis *axis, const char *label, const char *unit);
// The place of a name on an axis of names; put there where it is new.
double figure_axis_name(struct figure_panel *panel, struct figure_axis *axis, const char *name);
struct figure_series *figure_add_series(
	struct figure_panel *panel, enum figure_look look, const char *name);
void figure_add_point(struct figure_series *series, double x, double y);
void figure_add_interval(struct figure_series *series, double x, double y, double low, double high);
// Where a bar would stand: why there is none.
void figure_add_words(struct figure_series *series, double x, const char *words);
void figure_add_cell(struct figure_series *series, double x, double y, double z, const char *words);
void figure_add_vertical(struct figure_panel *panel, double x, const char *name);
// Says what is missing, and why. Several calls are several lines. They are above the data, or in
// the middle of a panel without data; a row of panels without data, other than the first, becomes
// notes.
void figure_say(struct figure_panel *panel, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void figure_add_note(struct figure_page *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

// Draws it into `path`, by its ending, replacing a file in one step; where that fails nothing of it
// stays. keep_directory: the script NAME.gp and its data NAME.dat are left there too, made where it
// is not there; `gnuplot NAME.gp` in it draws the same; NULL: not. Where gnuplot is missing, what
// was to be kept is kept all the same. One line says what failed.
int figure_write(const struct figure_page *page, const char *path, const char *keep_directory,
	struct error *e);

// The script and its data, as figure_write uses them. output NULL: standard output. 0 or -ENOMEM.
int figure_script(const struct figure_page *page, enum figure_format format, const char *data_path,
	const char *output, struct text *script, struct text *data);

// Points of a line, at most four for each of `columns` stretches of x between the first and the
// last: its first, least, greatest and last, so that no peak is lost. Missing points are kept. 0 or
// -ENOMEM; *ret is the caller's.
int figure_thin(const struct figure_point *points, size_t n, size_t columns, bool logarithmic,
	struct figure_point **ret, size_t *ret_n);
