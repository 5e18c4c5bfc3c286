// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The gnuplot script of a figure. Every text of a run stands in single quotes, where gnuplot (5.4:
// no expansion of `...`, @macros or backslashes) knows only the quote itself; a tick's name is a
// format besides, so that "%" is doubled.

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "render/figure.h"
#include "render/figure_data.h"
#include "render/figure_layout.h"

#define MOST_VERTICALS_PER_CM 6.0
#define MOST_WORDY_CELLS 400 // of more the values are not written
#define MARKERS_ON_LINE 7 // of a line that dashes alone would not tell from others
#define LINES_WITHOUT_MARKERS 2
#define DARK_CELL 0.55 // from here on letters are white

// Told apart by their greys, too, where they stand beside each other.
struct style {
	const char *colour;
	const char *dash; // "solid", or lengths
	int point;
	const char *fill; // of bars
	const char *fill_colour;
};

static const struct style styles[] = {
	{"#1f4e8c", "solid", 7, "solid 1.0", "#1f4e8c"},
	{"#d9722b", "(10,4)", 4, "solid 1.0", "#f2bd8f"},
	{"#2e8b57", "(3,3)", 9, "pattern 4", "#2e8b57"},
	{"#8e3b8e", "(12,3,3,3)", 12, "solid 1.0", "#dddddd"},
	{"#555555", "(6,2)", 6, "solid 1.0", "#808080"},
	{"#a88c00", "(12,3,3,3,3,3)", 5, "pattern 2", "#a88c00"},
	{"#1b9aaa", "(2,4)", 8, "empty", "#1b9aaa"},
	{"#b03060", "(16,4)", 13, "pattern 5", "#b03060"},
	{"#000000", "(4,2)", 1, "solid 1.0", "#333333"},
	{"#7fa8d9", "solid", 2, "solid 1.0", "#c5d9f0"},
	{"#6b4c2a", "(8,3,2,3)", 3, "pattern 7", "#6b4c2a"},
	{"#9acd32", "(5,3)", 10, "pattern 6", "#6f9a1f"},
};

static const struct style *style_of(const struct figure_series *series)
{
	size_t n = ARRAY_LENGTH(styles);
	return &styles[(size_t)(series->style < 0 ? 0 : series->style) % n];
}

static void append_quoted(struct text *t, const char *string, bool is_format)
{
	text_append_string(t, "'");
	for (; string && *string; string++) {
		bool doubled = *string == '\'' || (is_format && *string == '%');
		text_append(t, string, 1);
		if (doubled) {
			text_append(t, string, 1);
		}
	}
	text_append_string(t, "'");
}

// Terminals ------------------------------------------------------------------------------------

struct terminal {
	const char *name;
	const char *options; // with the size in its own unit
	double per_cm; // that unit
	const char *unit; // its name, written behind
	double font_scale; // for a point to be a point
	double line_scale;
};

static const struct terminal terminals[] = {
	[FORMAT_SVG] = {"svg", "noenhanced fixed rounded background '#ffffff'", 96 / 2.54, "",
		96.0 / 72, 1},
	[FORMAT_PDF] = {"pdfcairo", "noenhanced color rounded", 1, "cm", 0.75, 1.4},
	[FORMAT_PNG] = {"pngcairo", "noenhanced color rounded pointscale 3 dashlength 2",
		300 / 2.54, "", 300.0 / 96, 300.0 / 96},
};

// Where gnuplot lacks the terminal it says so in these words, which figure_draw.c looks for.
static void append_terminal(struct text *t, const struct page_layout *layout,
	enum figure_format format, const char *output)
{
	const struct terminal *terminal = &terminals[format];
	text_format(t,
		"if (strstrt(GPVAL_TERMINALS, '%s') == 0) { exit message 'no terminal %s' }\n",
		terminal->name, terminal->name);
	int digits = terminal->per_cm > 1 ? 0 : 2;
	text_format(t, "set terminal %s %s size %.*f%s,%.*f%s", terminal->name, terminal->options,
		digits, layout->width * terminal->per_cm, terminal->unit, digits,
		layout->height * terminal->per_cm, terminal->unit);
	text_format(t, " font 'Helvetica,%.4g' fontscale %.4g linewidth %.4g\n", FIGURE_FONT_POINTS,
		terminal->font_scale, terminal->line_scale);
	if (output) {
		text_append_string(t, "set output ");
		append_quoted(t, output, false);
		text_append_string(t, "\n");
	}
}

// Axes -----------------------------------------------------------------------------------------

static void append_names(struct text *t, char letter, const struct figure_axis *axis)
{
	text_format(t, "set %ctics (", letter);
	for (size_t i = 0; i < axis->n_names; i++) {
		text_append_string(t, i > 0 ? ", " : "");
		append_quoted(t, axis->names[i], true);
		text_format(t, " %zu", i);
	}
	text_append_string(t, ")\n");
}

static void append_axis(struct text *t, char letter, const struct figure_axis *axis,
	const struct axis_range *range, bool labelled)
{
	text_format(t, "set %crange [%.7g:%.7g]\n", letter, range->minimum, range->maximum);
	if (axis->logarithm > 0) {
		text_format(t, "set logscale %c %g\n", letter, axis->logarithm);
	}
	if (axis->n_names > 0) {
		append_names(t, letter, axis);
	}
	if (range->step > 0) {
		text_format(t, "set %ctics %.7g\n", letter, range->step);
	}
	if (!labelled) {
		text_format(t, "set format %c ''\n", letter);
	}
}

static void append_axes(struct text *t, const struct figure_page *page,
	const struct figure_panel *panel, const struct panel_place *place)
{
	append_axis(t, 'x', &panel->x, &place->x, !page->share_x || place->last_of_column);
	append_axis(t, 'y', &panel->y, &place->y, !page->share_y || place->first_of_row);
	if (place->names_turned > 0) {
		text_format(t, "set xtics rotate by %.0f right\n", place->names_turned);
	}
	if (!place->y.any) {
		text_append_string(t, "unset ytics\n");
	}
	if (!place->x.any) {
		text_append_string(t, "unset xtics\n");
	}
}

// What stands beside and in the axes ------------------------------------------------------------

static void append_label(struct text *t, const char *label, const char *where)
{
	text_append_string(t, "set label ");
	append_quoted(t, label, false);
	text_format(t, " at %s\n", where);
}

static void append_axis_label(struct text *t, const struct figure_axis *axis,
	const struct axis_range *range, const char *where)
{
	_cleanup_text_ struct text label = {0};
	text_append_string(&label, axis->label ? axis->label : "");
	if (*range->unit) {
		text_format(&label, label.length > 0 ? " (%s)" : "%s", range->unit);
	}
	if (label.length > 0) {
		append_label(t, label.data, where);
	}
	t->failed = t->failed || label.failed;
}

// At the edges of the panel's room, so that those of several panels stand in line.
static void append_axis_labels(struct text *t, const struct figure_page *page,
	const struct figure_panel *panel, const struct panel_place *place,
	const struct page_layout *layout)
{
	char where[96];
	if (!page->share_x || place->last_of_column) {
		snprintf(where, sizeof(where), "graph 0.5, screen %.5f center",
			place->x_label / layout->height);
		append_axis_label(t, &panel->x, &place->x, where);
	}
	if (!place->brief && (!page->share_y || place->first_of_row)) {
		snprintf(where, sizeof(where), "screen %.5f, graph 0.5 center rotate by 90",
			place->y_label / layout->width);
		append_axis_label(t, &panel->y, &place->y, where);
	}
}

static void append_title(struct text *t, const struct figure_panel *panel,
	const struct panel_place *place, double height)
{
	if (!panel->title || !*panel->title) {
		return;
	}
	_cleanup_text_ struct text title = {0};
	text_append_string(&title, panel->title);
	if (*place->z.unit) {
		text_format(&title, " (%s)", place->z.unit);
	}
	char where[64];
	snprintf(where, sizeof(where), "graph 0, screen %.5f left",
		(place->title_bottom + FIGURE_LINE_CM * 0.4) / height);
	append_label(t, title.data, where);
	t->failed = t->failed || title.failed;
}

static void append_page_texts(
	struct text *t, const struct figure_page *page, const struct page_layout *layout)
{
	char where[64];
	if (page->title && *page->title) {
		snprintf(where, sizeof(where), "screen 0.5, screen %.5f center",
			1 - FIGURE_LINE_CM * 0.75 / layout->height);
		append_label(t, page->title, where);
	}
	double y = layout->notes_top - FIGURE_LINE_CM / 2;
	const char *line = layout->notes.data ? layout->notes.data : "";
	for (const char *end = strchr(line, '\n'); end; end = strchr(line, '\n')) {
		_cleanup_text_ struct text note = {0};
		text_append(&note, line, (size_t)(end - line));
		snprintf(where, sizeof(where), "screen %.5f, screen %.5f left tc rgb '#444444'",
			0.15 / layout->width, y / layout->height);
		append_label(t, note.data, where);
		t->failed = t->failed || note.failed;
		y -= FIGURE_LINE_CM;
		line = end + 1;
	}
}

// Words instead of data stand in the middle, beside data in the room above it.
static void append_said(
	struct text *t, const struct figure_panel *panel, const struct panel_place *place)
{
	if (!panel->said) {
		return;
	}
	double width = place->right - place->left, height = place->top - place->bottom;
	_cleanup_text_ struct text lines = {0};
	layout_said(&lines, panel, width);
	size_t n = 0;
	for (size_t i = 0; i < lines.length; i++) {
		n += lines.data[i] == '\n';
	}
	double y = place->y.any ? height - FIGURE_WORDS_LINE_CM * 0.6
	                        : (height + (double)(n - 1) * FIGURE_WORDS_LINE_CM) / 2;
	const char *line = lines.data ? lines.data : "";
	for (const char *end = strchr(line, '\n'); end; end = strchr(line, '\n')) {
		_cleanup_text_ struct text piece = {0};
		text_append(&piece, line, (size_t)(end - line));
		char where[128];
		snprintf(where, sizeof(where),
			"graph %s, graph %.5f %s front boxed tc rgb '#444444' font 'Helvetica,%g'",
			place->y.any ? "0.015" : "0.5", y / height,
			place->y.any ? "left" : "center", FIGURE_WORDS_POINTS);
		append_label(t, piece.data, where);
		t->failed = t->failed || piece.failed;
		y -= FIGURE_WORDS_LINE_CM;
		line = end + 1;
	}
	t->failed = t->failed || lines.failed;
}

// Of more lines than a reader tells apart every second, fifth, ... is drawn, and the legend says
// so. Returns which.
static size_t verticals_step(const struct figure_panel *panel, const struct panel_place *place)
{
	static const size_t steps[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
	double most = (place->right - place->left) * MOST_VERTICALS_PER_CM;
	size_t i = 0;
	while (i + 1 < ARRAY_LENGTH(steps) &&
		(double)panel->n_verticals / (double)steps[i] > most) {
		i++;
	}
	return (double)panel->n_verticals / (double)steps[i] > most
	               ? (size_t)((double)panel->n_verticals / most) + 1
	               : steps[i];
}

#define VERTICAL_LOOK "lc rgb '#b03030' dt (5,4) lw 0.7"

static void append_verticals(
	struct text *t, const struct figure_panel *panel, const struct panel_place *place)
{
	size_t step = verticals_step(panel, place);
	for (size_t i = 0; i < panel->n_verticals; i += step) {
		double x = panel->verticals[i] * place->x.scale;
		text_format(t,
			"set arrow from first %.7g, graph 0 to first %.7g, graph 1 nohead "
			"back " VERTICAL_LOOK "\n",
			x, x);
	}
}

static void append_legend(
	struct text *t, const struct panel_place *place, const struct page_layout *layout)
{
	// down, not along: gnuplot would not let a line be wider than the axes
	text_format(t,
		"set key at screen %.5f, screen %.5f right bottom vertical Left reverse "
		"maxrows %u samplen 2 width 0 height 0 spacing 1 noautotitle\n",
		place->right / layout->width, place->legend_bottom / layout->height,
		place->legend_lines);
}

// Series ------------------------------------------------------------------------------------------

static bool has_interval(const struct figure_series *series)
{
	for (size_t i = 0; i < series->n; i++) {
		if (isfinite(series->points[i].low) && isfinite(series->points[i].high)) {
			return true;
		}
	}
	return false;
}

// Lines that go up and down hide their dashes.
static size_t marker_interval(const struct figure_panel *panel, const struct figure_series *series)
{
	size_t lines = 0;
	for (size_t i = 0; i < panel->n_series; i++) {
		lines += panel->series[i]->look == LOOK_LINE && *panel->series[i]->name;
	}
	size_t interval = series->n / MARKERS_ON_LINE;
	return lines > LINES_WITHOUT_MARKERS ? interval + (interval == 0) : 0;
}

static void append_line_look(
	struct text *t, const struct style *style, const char *dash, size_t interval)
{
	text_format(t, "using 1:2 with %s lw 1.1 %s", interval > 0 ? "linespoints" : "lines", dash);
	if (interval > 0) {
		text_format(t, " pt %d ps 0.45 pi %zu", style->point, interval);
	}
}

static void append_look(
	struct text *t, const struct figure_panel *panel, const struct figure_series *series)
{
	const struct style *style = style_of(series);
	_cleanup_text_ struct text dash = {0};
	text_format(&dash, "dt %s", strcmp(style->dash, "solid") == 0 ? "1" : style->dash);
	const char *line = dash.data ? dash.data : "";
	switch (series->look) {
	case LOOK_LINE:
		append_line_look(t, style, line, marker_interval(panel, series));
		break;
	case LOOK_STEPS:
		text_format(t, "using 1:2 with steps lw 1.1 %s", line);
		break;
	case LOOK_POINTS:
		text_format(t, "using 1:2 with points pt %d ps %g", style->point,
			series->n > 200 ? 0.2 : 0.5);
		break;
	case LOOK_LINE_POINTS:
		text_format(
			t, "using 1:2 with linespoints lw 1.1 %s pt %d ps 0.5", line, style->point);
		break;
	case LOOK_BARS:
		text_format(t, "using 1:2:3 with boxes fs %s border lt -1 lw 0.5", style->fill);
		break;
	case LOOK_BAND:
		text_append_string(
			t, "using 1:3:4 with filledcurves fs transparent solid 0.22 noborder");
		break;
	case LOOK_HEAT:
		text_append_string(t, "using 1:2:3 with image pixels");
		return;
	}
	text_format(
		t, " lc rgb '%s'", series->look == LOOK_BARS ? style->fill_colour : style->colour);
}

static void append_element(struct text *t, const struct figure_panel *panel,
	const struct figure_series *series, size_t index)
{
	text_format(t, ", \\\n     data index %zu ", index);
	append_look(t, panel, series);
	if (series->name && *series->name) {
		text_append_string(t, " title ");
		append_quoted(t, series->name, false);
	}
	if (series->look != LOOK_BAND && series->look != LOOK_HEAT && has_interval(series)) {
		bool bars = series->look == LOOK_BARS;
		// gnuplot's own error bars leave a hole where the marker is
		text_format(t,
			", \\\n     data index %zu using 1:%s with vectors heads size screen "
			"0.004,90 lw 0.7 lc rgb '%s'",
			index, bars ? "4:(0):($5-$4)" : "3:(0):($4-$3)",
			bars ? "black" : style_of(series)->colour);
	}
}

// What lies behind comes first.
static unsigned depth_of(enum figure_look look)
{
	return look == LOOK_HEAT || look == LOOK_BAND ? 0 : look == LOOK_BARS ? 1 : 2;
}

static void append_plot(struct text *t, const struct figure_panel *panel,
	const struct panel_place *place, size_t *index)
{
	text_append_string(t, "plot NaN notitle");
	for (unsigned depth = 0; depth < 3; depth++) {
		size_t at = *index;
		for (size_t i = 0; i < panel->n_series; i++) {
			const struct figure_series *series = panel->series[i];
			if (series->n > 0 && depth_of(series->look) == depth) {
				append_element(t, panel, series, at);
			}
			at += series->n > 0;
		}
	}
	for (size_t i = 0; i < panel->n_series; i++) {
		*index += panel->series[i]->n > 0;
	}
	if (panel->n_verticals > 0 && panel->verticals_name && *panel->verticals_name) {
		_cleanup_text_ struct text name = {0};
		size_t step = verticals_step(panel, place);
		text_append_string(&name, panel->verticals_name);
		if (step > 1) {
			text_format(&name, " (one in %zu)", step);
		}
		text_append_string(t, ", \\\n     NaN with lines " VERTICAL_LOOK " title ");
		append_quoted(t, name.data, false);
		t->failed = t->failed || name.failed;
	}
	text_append_string(t, "\n");
}

// Three digits, those after the point also where they are 0: 24.0 beside 27.9.
static void append_digits(char *buffer, size_t size, double value)
{
	double magnitude = fabs(value);
	int decimals = magnitude < 1e-3 ? -1 : magnitude < 10 ? 2 : magnitude < 100 ? 1 : 0;
	if (magnitude >= 1e6 || (decimals < 0 && magnitude > 0)) {
		snprintf(buffer, size, "%.3g", value);
	} else {
		decimals = magnitude > 0 && magnitude < 1 ? 3 : decimals;
		snprintf(buffer, size, "%.*f", decimals < 0 ? 0 : decimals, value);
	}
}

// The values of cells, or what is there instead of one.
static void append_cell_words(
	struct text *t, const struct figure_series *series, const struct axis_range *range)
{
	for (size_t i = 0; i < series->n; i++) {
		const struct figure_point *point = &series->points[i];
		char value[32] = "", where[96];
		if (isfinite(point->z)) {
			append_digits(value, sizeof(value), point->z * range->scale);
		}
		double share = (point->z * range->scale - range->minimum) /
		               (range->maximum - range->minimum);
		snprintf(where, sizeof(where), "first %.7g, first %.7g center front tc rgb '%s'",
			point->x, point->y, share > DARK_CELL ? "#ffffff" : "#000000");
		append_label(t, point->words ? point->words : value, where);
	}
}

static void append_heat(
	struct text *t, const struct figure_panel *panel, const struct panel_place *place)
{
	for (size_t i = 0; i < panel->n_series; i++) {
		const struct figure_series *series = panel->series[i];
		if (series->look != LOOK_HEAT) {
			continue;
		}
		double top = place->z.maximum > place->z.minimum ? place->z.maximum
		                                                 : place->z.minimum + 1;
		text_format(t,
			"set palette defined (0 '#f2f5fa', 1 '#12305c')\nset cbrange [%.7g:%.7g]\n"
			"unset colorbox\nunset grid\nset tics scale 0\n",
			place->z.minimum, top);
		if (series->n <= MOST_WORDY_CELLS) {
			append_cell_words(t, series, &place->z);
		}
	}
}

// Upright where a bar would stand.
static void append_bar_words(
	struct text *t, const struct figure_panel *panel, const struct panel_place *place)
{
	for (size_t i = 0; i < panel->n_series; i++) {
		const struct figure_series *series = panel->series[i];
		for (size_t j = 0; series->look == LOOK_BARS && j < series->n; j++) {
			double width;
			double x = series->points[j].x + figure_bar_offset(panel, series, &width);
			if (series->points[j].words) {
				char where[160];
				snprintf(where, sizeof(where),
					"first %.7g, graph 0.02 left rotate by 90 front tc rgb "
					"'#444444' font 'Helvetica,%g'",
					x * place->x.scale, FIGURE_WORDS_POINTS);
				append_label(t, series->points[j].words, where);
			}
		}
	}
}

static void append_panel(struct text *t, const struct figure_page *page,
	const struct page_layout *layout, size_t i, size_t *index)
{
	const struct figure_panel *panel = page->panels[i];
	const struct panel_place *place = &layout->places[i];
	text_format(t, "\n# panel %zu\nreset\n", i + 1);
	text_format(t,
		"set lmargin at screen %.5f\nset rmargin at screen %.5f\n"
		"set bmargin at screen %.5f\nset tmargin at screen %.5f\n",
		place->left / layout->width, place->right / layout->width,
		place->bottom / layout->height, place->top / layout->height);
	text_append_string(t, "set border 3 lw 0.6\nset tics nomirror scale 0.5\n"
			      "set grid ytics back lc rgb '#dddddd' lw 0.4 dt 1\n"
			      "set style textbox opaque noborder margins 0.2,0.2\n");
	append_axes(t, page, panel, place);
	append_axis_labels(t, page, panel, place, layout);
	append_legend(t, place, layout);
	append_title(t, panel, place, layout->height);
	if (i == 0) {
		append_page_texts(t, page, layout);
	}
	append_said(t, panel, place);
	append_verticals(t, panel, place);
	append_heat(t, panel, place);
	append_bar_words(t, panel, place);
	append_plot(t, panel, place, index);
}

int figure_script(const struct figure_page *page, enum figure_format format, const char *data_path,
	const char *output, struct text *script, struct text *data)
{
	struct page_layout layout;
	int r = layout_figure(page, &layout);
	if (r < 0) {
		return r;
	}
	text_append_string(script, "# made by strain " STRAIN_VERSION
				   "; in this folder: gnuplot THIS.gp\nset encoding utf8\n");
	append_terminal(script, &layout, format, output);
	text_append_string(script, "data = ");
	append_quoted(script, data_path, false);
	text_append_string(script, "\nset multiplot\n");
	size_t index = 0;
	for (size_t i = 0; i < page->n_panels; i++) {
		append_panel(script, page, &layout, i, &index);
	}
	text_append_string(script, "\nunset multiplot\n");
	figure_data(page, &layout, data);
	layout_done(&layout);
	return script->failed || data->failed ? -ENOMEM : 0;
}
