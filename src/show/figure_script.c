// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The gnuplot script of a figure, and its data. The template figure.gp has the look and the
// geometry. This file writes the counts that the template needs before it, and each panel's texts,
// ranges and blocks of data after it.
//
// Text of a run is always in single quotes. There gnuplot interprets only the quote itself: no
// `...`, no @macros, no backslashes. The name of a tick is also a format, so that "%" is doubled.

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/words.h"
#include "show/figure.h"

extern const char figure_gp[];

#define COLUMN_CM 8.8 // of a paper
#define BOTH_COLUMNS_CM 17.6
#define NARROWEST_CM 4.2
#define LEFT_CM 0.55 // of the axes, without the names of ticks
#define NUMBER_CM 0.85 // a tick's number beside an axis
#define RIGHT_CM 0.4 // half of the last tick's number
#define LETTER_CM 0.142 // of a wide font: the system may lack Helvetica
#define SMALL_LETTER_CM 0.123
#define LEGEND_LETTER_CM 0.168 // gnuplot's estimate: a digit
#define SAMPLE_LETTERS 4 // of a legend's entry, beside its name
#define LONG_NUMBER 1e5
#define HEADROOM 1.06 // above the data

struct range {
	double minimum; // in shown units
	double maximum;
	bool any; // there is data
	double scale; // shown value = value * scale
	char unit[48]; // shown: "GB"; "" for none
};

// A panel in the grid.
struct place {
	const struct figure_panel *panel;
	size_t row, column;
	bool last_of_column;
	bool has_data; // else its words are in the middle
	struct range x, y, z;
	struct text said; // lines
	size_t said_lines, said_above, legend_lines, lines_above;
	bool title_beside; // of the legend
	bool turned; // the x axis' names would run into each other
};

struct layout {
	const struct figure_page *page;
	struct place *places; // [n]; rows without data are notes instead
	size_t n;
	struct text notes; // lines
	double column_cm, left_cm, axes_cm; // widths
	size_t name_letters; // of a legend's entry, at most
};

// How each look is drawn: its macro in figure.gp, the columns of its data, and which looks are
// behind it.
static const struct {
	const char *macro, *columns;
	unsigned depth;
} looks[] = {
	[LOOK_LINE] = {"LINE", "x, y, low, high", 2},
	[LOOK_POINTS] = {"POINTS", "x, y, low, high", 2},
	[LOOK_LINE_POINTS] = {"LINE_POINTS", "x, y, low, high", 2},
	[LOOK_STEPS] = {"STEPS", "x, y, low, high", 2},
	[LOOK_BARS] = {"BARS", "x, y, low, high, width", 1},
	[LOOK_BAND] = {"BAND", "x, y, low, high", 0},
	[LOOK_HEAT] = {"HEAT", "x, y, value", 0},
};

// Lines of text -----------------------------------------------------------------------------------

// Breaks text into lines of at most `columns` letters, at blanks where there are any.
static void wrap(struct text *into, const char *text, size_t columns)
{
	size_t column = 0;
	while (*text) {
		size_t word = strcspn(text, " \n");
		_cleanup_text_ struct text piece = {0};
		text_append(&piece, text, word);
		size_t wide = words_columns(piece.data ? piece.data : "");
		if (column > 0 && column + 1 + wide > columns) {
			text_append_string(into, "\n");
			column = 0;
		}
		text_format(into, "%s%s", column > 0 ? " " : "", piece.data ? piece.data : "");
		column += wide + (column > 0);
		text += word;
		if (*text == '\n') {
			text_append_string(into, "\n");
			column = 0;
		}
		text += *text != '\0';
	}
	text_append_string(into, "\n");
}

static size_t count_lines(const struct text *text)
{
	size_t n = 0;
	for (size_t i = 0; i < text->length; i++) {
		n += text->data[i] == '\n';
	}
	return n;
}

// Ranges and units --------------------------------------------------------------------------------

// The shown unit of a unit of metrics, for values from `from` on, and its factor. Largest first.
static const struct {
	const char *unit;
	double from, scale;
	const char *shown;
} units[] = {
	{"By", 1e12, 1e-12, "TB"},
	{"By", 1e9, 1e-9, "GB"},
	{"By", 1e6, 1e-6, "MB"},
	{"By", 1e3, 1e-3, "kB"},
	{"By", 0, 1, "B"},
	{"By/s", 1e12, 1e-12, "TB/s"},
	{"By/s", 1e9, 1e-9, "GB/s"},
	{"By/s", 1e6, 1e-6, "MB/s"},
	{"By/s", 1e3, 1e-3, "kB/s"},
	{"By/s", 0, 1, "B/s"},
	{"s", 3 * 3600, 1.0 / 3600, "h"},
	{"s", 1, 1, "s"},
	{"s", 1e-3, 1e3, "ms"},
	{"s", 1e-12, 1e6, "µs"},
	{"1", 0, 100, "%"},
};

// Amounts are shown in thousands where their numbers would be too long for the place beside an
// axis.
static void choose_unit(struct range *range, const char *unit, bool is_amount)
{
	double largest = fmax(fabs(range->minimum), fabs(range->maximum));
	unit = !unit || *unit == '{' ? "" : unit;
	if (!range->any) {
		return;
	}
	snprintf(range->unit, sizeof(range->unit), "%s", unit);
	for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
		if (strcmp(units[i].unit, unit) == 0 && largest >= units[i].from) {
			snprintf(range->unit, sizeof(range->unit), "%s", units[i].shown);
			range->scale = units[i].scale;
			break;
		}
	}
	if (is_amount && range->scale == 1 && largest >= LONG_NUMBER) {
		bool millions = largest >= 1000 * LONG_NUMBER;
		range->scale = millions ? 1e-6 : 1e-3;
		snprintf(range->unit, sizeof(range->unit), "%s%s%s",
			millions ? "millions" : "thousands", *unit ? " of " : "", unit);
	}
	range->minimum *= range->scale;
	range->maximum *= range->scale;
}

static void widen(struct range *range, double value)
{
	if (isfinite(value)) {
		range->minimum = range->any ? fmin(range->minimum, value) : value;
		range->maximum = range->any ? fmax(range->maximum, value) : value;
		range->any = true;
	}
}

static void find_ranges(struct place *place)
{
	const struct figure_panel *panel = place->panel;
	place->x = place->y = place->z = (struct range){.scale = 1};
	for (size_t i = 0; i < panel->n_series; i++) {
		for (size_t j = 0; j < panel->series[i]->n; j++) {
			const struct figure_point *point = &panel->series[i]->points[j];
			widen(&place->x, point->x);
			widen(&place->y, point->y);
			// the interval of a positive amount may begin below zero
			widen(&place->y, point->y >= 0 && point->low < 0 ? 0 : point->low);
			widen(&place->y, point->high);
			widen(&place->z, point->z);
		}
	}
	for (size_t i = 0; i < panel->n_verticals; i++) {
		widen(&place->x, panel->verticals[i]);
	}
}

static void join_ranges(struct range *a, struct range *b)
{
	if (b->any) {
		widen(a, b->minimum);
		widen(a, b->maximum);
	}
	*b = *a;
}

// An axis shared by several panels has one range. The first panel has seen all others before any of
// them sees it again.
static void share_ranges(struct layout *layout)
{
	for (size_t i = 0; i < layout->n; i++) {
		for (size_t j = 0; j < layout->n; j++) {
			struct place *a = &layout->places[i], *b = &layout->places[j];
			if (layout->page->share_x && a->column == b->column) {
				join_ranges(&a->x, &b->x);
			}
			if (layout->page->share_y && a->row == b->row) {
				join_ranges(&a->y, &b->y);
			}
		}
	}
}

static bool has_markers(const struct figure_panel *panel)
{
	for (size_t i = 0; i < panel->n_series; i++) {
		enum figure_look look = panel->series[i]->look;
		if (look == LOOK_POINTS || look == LOOK_LINE_POINTS || look == LOOK_BARS) {
			return true;
		}
	}
	return false;
}

// Amounts begin at zero.
static void widen_amounts(struct range *range, bool logarithmic)
{
	if (range->any && logarithmic) {
		range->minimum /= 1.5;
		range->maximum *= 1.5;
		return;
	}
	range->minimum = range->any ? fmin(0, range->minimum) : 0;
	double length = range->any ? range->maximum - range->minimum : 0;
	range->maximum = range->minimum + (length > 0 ? length * HEADROOM : 1);
}

// Data goes from edge to edge; markers and bars need some room.
static void widen_places(struct range *range, bool logarithmic, bool markers)
{
	double length = range->maximum - range->minimum;
	double factor = length <= 0 ? 1.5 : markers ? 1.2 : 1;
	double room = length <= 0 ? 0.5 : markers ? length * 0.05 : 0;
	range->minimum = logarithmic ? range->minimum / factor : range->minimum - room;
	range->maximum = logarithmic ? range->maximum * factor : range->maximum + room;
}

static void finish_range(struct range *range, const struct figure_axis *axis, bool is_amount)
{
	if (axis->n_names > 0) {
		range->minimum = -0.5;
		range->maximum = (double)axis->n_names - 0.5;
		return;
	}
	range->minimum = isfinite(axis->minimum) ? axis->minimum : range->minimum;
	range->maximum = isfinite(axis->maximum) ? axis->maximum : range->maximum;
	choose_unit(range, axis->unit, is_amount);
}

static void finish_ranges(struct place *place)
{
	const struct figure_panel *panel = place->panel;
	widen_places(&place->x, panel->x.logarithm > 0, has_markers(panel));
	widen_amounts(&place->y, panel->y.logarithm > 0);
	finish_range(&place->x, &panel->x, false);
	finish_range(&place->y, &panel->y, true);
	choose_unit(&place->z, panel->z.unit, true);
}

// Layout ------------------------------------------------------------------------------------------
//
// gnuplot places the panels, but before it can measure a text it needs the size of the page. So the
// lines and letters that texts take are counted here.

// A value, or the reason at the place of one.
static bool has_data(const struct figure_panel *panel)
{
	for (size_t i = 0; i < panel->n_series; i++) {
		for (size_t j = 0; j < panel->series[i]->n; j++) {
			const struct figure_point *point = &panel->series[i]->points[j];
			if (point->words || isfinite(point->y)) {
				return true;
			}
		}
	}
	return false;
}

// Whether a row has nothing but words. The first row stays, for it has the titles.
static bool is_wordy(const struct figure_page *page, size_t row)
{
	for (size_t i = row * page->columns; i < page->n_panels && i / page->columns == row; i++) {
		if (has_data(page->panels[i]) || !page->panels[i]->said) {
			return false;
		}
	}
	return row > 0;
}

static void wrap_note(struct layout *layout, const char *note)
{
	double width = layout->column_cm * (double)layout->page->columns;
	wrap(&layout->notes, note, (size_t)(width / LETTER_CM));
}

// Rows without data are notes, each of their reasons once.
static void place_panels(struct layout *layout)
{
	const struct figure_page *page = layout->page;
	const char *noted = "";
	for (size_t i = 0; i < page->n_panels; i++) {
		const struct figure_panel *panel = page->panels[i];
		if (!is_wordy(page, i / page->columns)) {
			layout->places[layout->n] = (struct place){.panel = panel,
				.row = layout->n / page->columns,
				.column = layout->n % page->columns,
				.has_data = has_data(panel)};
			layout->n++;
		} else if (strcmp(panel->said, noted) != 0) {
			wrap_note(layout, panel->said);
			noted = panel->said;
		}
	}
	for (size_t i = 0; i < layout->n; i++) {
		layout->places[i].last_of_column = i + page->columns >= layout->n;
	}
}

static size_t longest_name(const struct figure_axis *axis)
{
	size_t longest = 0;
	for (size_t i = 0; i < axis->n_names; i++) {
		size_t n = words_columns(axis->names[i]);
		longest = n > longest ? n : longest;
	}
	return longest;
}

// Title and legend share a line where both fit.
static void measure_legend(const struct layout *layout, struct place *place)
{
	const struct figure_panel *panel = place->panel;
	size_t title = words_columns(place->panel->title), entries = 0, longest = 0;
	for (size_t i = 0; i <= panel->n_series; i++) {
		const char *name = i < panel->n_series      ? panel->series[i]->name
		                   : panel->n_verticals > 0 ? panel->verticals_name
		                                            : NULL;
		size_t n = name ? words_columns(name) : 0;
		n = n < layout->name_letters ? n : layout->name_letters;
		entries += n > 0;
		longest = n > longest ? n : longest;
	}
	double entry_cm = (double)(longest + SAMPLE_LETTERS) * LEGEND_LETTER_CM;
	// a legend may begin above what is left of the axes
	size_t columns = (size_t)fmax(1, (layout->axes_cm + layout->left_cm) / entry_cm);
	place->title_beside = (double)title * LETTER_CM + (double)entries * entry_cm <=
	                      layout->axes_cm;
	columns = place->title_beside && entries > 0 ? entries : columns;
	place->legend_lines = (entries + columns - 1) / columns;
	place->lines_above = place->said_above + place->legend_lines +
	                     (title > 0 && (entries == 0 || !place->title_beside));
}

static void measure_panel(const struct layout *layout, struct place *place)
{
	const struct figure_panel *panel = place->panel;
	if (panel->said) {
		wrap(&place->said, panel->said, (size_t)(layout->axes_cm / SMALL_LETTER_CM));
	}
	place->said_lines = count_lines(&place->said);
	place->said_above = place->has_data ? place->said_lines : 0;
	place->turned = (double)(longest_name(&panel->x) * panel->x.n_names) * LETTER_CM >
	                layout->axes_cm * 0.95;
	measure_legend(layout, place);
}

static void measure_page(struct layout *layout)
{
	const struct figure_page *page = layout->page;
	size_t longest = 0;
	for (size_t i = 0; i < page->n_panels; i++) {
		size_t n = longest_name(&page->panels[i]->y);
		longest = n > longest ? n : longest;
	}
	layout->column_cm = page->columns == 1
	                            ? COLUMN_CM
	                            : fmax(NARROWEST_CM, BOTH_COLUMNS_CM / (double)page->columns);
	layout->left_cm = LEFT_CM + (longest > 0 ? (double)longest * LETTER_CM + 0.3 : NUMBER_CM);
	layout->name_letters = (size_t)(layout->column_cm / LETTER_CM) - 2 * SAMPLE_LETTERS - 2;
	layout->axes_cm = fmax(1, layout->column_cm - layout->left_cm - RIGHT_CM);
}

static void layout_done(struct layout *layout)
{
	for (size_t i = 0; i < layout->n; i++) {
		text_done(&layout->places[i].said);
	}
	free(layout->places);
	text_done(&layout->notes);
}

// 0 or -ENOMEM; *ret is to be freed in any case.
static int layout_page(const struct figure_page *page, struct layout *ret)
{
	*ret = (struct layout){.page = page};
	ret->places = calloc(page->n_panels + 1, sizeof(*ret->places));
	if (page->failed || !ret->places) {
		return -ENOMEM;
	}
	measure_page(ret);
	place_panels(ret);
	for (size_t i = 0; i < page->n_notes; i++) {
		wrap_note(ret, page->notes[i]);
	}
	for (size_t i = 0; i < ret->n; i++) {
		measure_panel(ret, &ret->places[i]);
		find_ranges(&ret->places[i]);
	}
	share_ranges(ret);
	for (size_t i = 0; i < ret->n; i++) {
		finish_ranges(&ret->places[i]);
	}
	return 0;
}

// Data --------------------------------------------------------------------------------------------
//
// A block of lines of numbers for each series, in the units of the axes.

#define BARS_SHARE 0.8 // of the room between two places that bars take
#define BAR_SHARE 0.92 // of its share that a bar takes
#define PIXELS_PER_CM 118 // 300 to the inch: finer than anybody sees

// The column of the page that x is in.
static double column_of(double x, double first, double length, size_t columns, bool logarithmic)
{
	double at = logarithmic ? log(x / first) : x - first;
	return floor(at / length * (double)columns);
}

// Of the points of a column the first, least, greatest and last, in their order. A band's edges are
// its widest. Returns how many.
static size_t thin_column(const struct figure_point *points, size_t n, struct figure_point *into)
{
	size_t least = 0, greatest = 0, kept = 0;
	double low = points->low, high = points->high;
	for (size_t i = 1; i < n; i++) {
		least = points[i].y < points[least].y ? i : least;
		greatest = points[i].y > points[greatest].y ? i : greatest;
		low = fmin(low, points[i].low);
		high = fmax(high, points[i].high);
	}
	size_t picked[] = {
		0, least < greatest ? least : greatest, least < greatest ? greatest : least, n - 1};
	for (size_t i = 0; i < ARRAY_LENGTH(picked); i++) {
		if (i == 0 || picked[i] != picked[i - 1]) {
			into[kept] = points[picked[i]];
			into[kept].low = low;
			into[kept++].high = high;
		}
	}
	return kept;
}

int figure_thin(const struct figure_point *points, size_t n, size_t columns, bool logarithmic,
	struct figure_point **ret, size_t *ret_n)
{
	*ret = calloc(n + 1, sizeof(**ret));
	*ret_n = 0;
	if (!*ret) {
		return -ENOMEM;
	}
	double first = n > 0 ? points[0].x : 0, last = n > 0 ? points[n - 1].x : 0;
	double length = logarithmic ? log(last / first) : last - first;
	bool few = n <= 4 * columns || !(length > 0);
	for (size_t i = 0, end; i < n; i = end) {
		double column = column_of(points[i].x, first, length, columns, logarithmic);
		end = i + 1;
		while (!few && end < n && !isnan(points[i].y) && !isnan(points[end].y) &&
			column_of(points[end].x, first, length, columns, logarithmic) == column) {
			end++;
		}
		*ret_n += thin_column(points + i, end - i, *ret + *ret_n);
	}
	return 0;
}

static void append_number(struct text *t, double value, const char *after)
{
	if (isfinite(value)) {
		text_format(t, "%.7g%s", value, after);
	} else {
		text_format(t, "NaN%s", after);
	}
}

static double least_spacing(const struct figure_panel *panel)
{
	double least = INFINITY;
	for (size_t i = 0; i < panel->n_series; i++) {
		const struct figure_series *series = panel->series[i];
		for (size_t j = 1; series->look == LOOK_BARS && j < series->n; j++) {
			double spacing = fabs(series->points[j].x - series->points[j - 1].x);
			least = spacing > 0 ? fmin(least, spacing) : least;
		}
	}
	return isfinite(least) ? least : 1;
}

// Bars of several series are side by side, in the order of the legend: how far from x, and how
// wide.
static double bar_offset(
	const struct figure_panel *panel, const struct figure_series *series, double *ret_width)
{
	size_t n = 0, at = 0;
	for (size_t i = 0; i < panel->n_series; i++) {
		at = panel->series[i] == series ? n : at;
		n += panel->series[i]->look == LOOK_BARS;
	}
	double spacing = panel->x.n_names > 0 ? 1 : least_spacing(panel);
	*ret_width = spacing * BARS_SHARE / (double)n;
	return ((double)at - ((double)n - 1) / 2) * *ret_width;
}

// "memory (GB)", "memory" or "GB".
static void append_label(struct text *t, const struct figure_axis *axis, const struct range *range)
{
	const char *label = axis->label ? axis->label : "";
	text_append_string(t, label);
	if (*range->unit) {
		text_format(t, *label ? " (%s)" : "%s", range->unit);
	}
}

static void append_block(struct text *t, const struct place *place, const char *name,
	const char *columns, size_t index)
{
	text_format(t, "%s# index %zu: panel %zu, %s\n# x: ", index > 0 ? "\n\n" : "", index,
		place->row * place->panel->page->columns + place->column + 1, name);
	append_label(t, &place->panel->x, &place->x);
	text_append_string(t, "; y: ");
	append_label(t, &place->panel->y, &place->y);
	text_format(t, "; columns: %s\n", columns);
}

static void append_points(struct text *t, const struct place *place,
	const struct figure_series *series, const struct figure_point *points, size_t n)
{
	bool bars = series->look == LOOK_BARS;
	double width = 0, offset = bars ? bar_offset(place->panel, series, &width) : 0;
	for (size_t i = 0; i < n; i++) {
		append_number(t, (points[i].x + offset) * place->x.scale, " ");
		append_number(t, points[i].y * place->y.scale, " ");
		if (series->look == LOOK_HEAT) {
			append_number(t, points[i].z * place->z.scale, "\n");
			continue;
		}
		append_number(t, points[i].low * place->y.scale, " ");
		append_number(t, points[i].high * place->y.scale, bars ? " " : "\n");
		if (bars) {
			append_number(t, width * BAR_SHARE * place->x.scale, "\n");
		}
	}
}

static void append_series(struct text *t, const struct layout *layout, const struct place *place,
	const struct figure_series *series, size_t index)
{
	bool bars = series->look == LOOK_BARS, heat = series->look == LOOK_HEAT;
	size_t columns = bars || heat ? series->n : (size_t)(layout->axes_cm * PIXELS_PER_CM), n;
	_cleanup_free_ struct figure_point *points = NULL;
	if (figure_thin(series->points, series->n, columns, place->panel->x.logarithm > 0, &points,
		    &n) < 0) {
		t->failed = true;
		return;
	}
	append_block(t, place, series->name, looks[series->look].columns, index);
	append_points(t, place, series, points, n);
}

// Script ------------------------------------------------------------------------------------------

#define STYLES 12 // of figure.gp
#define MOST_VERTICALS_PER_CM 6.0
#define MOST_WORDY_CELLS 400 // of more the values are not written
#define MANY_POINTS 200 // from here on they are small
#define LINES_WITHOUT_MARKERS 2

struct writing {
	const struct layout *layout;
	struct text *script, *data;
	size_t index; // of the next block of data
};

// A text of several lines is an expression: 'one' . "\n" . 'two'.
static void append_quoted(struct text *t, const char *string, bool is_format)
{
	text_append_string(t, "'");
	for (; string && *string; string++) {
		bool doubled = *string == '\'' || (is_format && *string == '%');
		if (*string != '\n') {
			text_append(t, string, 1);
		} else if (string[1]) {
			text_append_string(t, "' . \"\\n\" . '");
		}
		if (doubled) {
			text_append(t, string, 1);
		}
	}
	text_append_string(t, "'");
}

// "set label 'text' at ...": the command, its text, and a format of what follows.
__attribute__((format(printf, 4, 5))) static void append_set(
	struct text *t, const char *command, const char *text, const char *format, ...)
{
	char after[160];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(after, sizeof(after), format, arguments);
	va_end(arguments);
	text_format(t, "set %s ", command);
	append_quoted(t, text, false);
	text_format(t, "%s\n", after);
}

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
	const struct range *range, bool labelled)
{
	double length = range->maximum - range->minimum;
	_cleanup_text_ struct text label = {0};
	append_label(&label, axis, range);
	if (labelled && label.length > 0) {
		append_set(t, letter == 'x' ? "xlabel" : "ylabel", label.data, "%s", "");
	}
	text_format(t, "set %crange [%.7g:%.7g]\n", letter, range->minimum, range->maximum);
	if (!range->any) {
		text_format(t, "unset %ctics\n", letter);
	} else if (axis->logarithm > 0) {
		text_format(t, "set logscale %c %g\n", letter, axis->logarithm);
	} else if (axis->n_names == 0 && length > 0) {
		text_format(t, "set %ctics %s(%.7g, %c_most)\n", letter,
			axis->whole ? "whole_step" : "step", length, letter);
	}
	if (axis->n_names > 0) {
		append_names(t, letter, axis);
	}
	if (!labelled) {
		text_format(t, "set format %c ''\n", letter);
	}
	t->failed = t->failed || label.failed;
}

static void append_axes(struct text *t, const struct layout *layout, const struct place *place)
{
	const struct figure_panel *panel = place->panel;
	append_axis(t, 'x', &panel->x, &place->x, !layout->page->share_x || place->last_of_column);
	append_axis(t, 'y', &panel->y, &place->y, !layout->page->share_y || place->column == 0);
	if (place->turned) {
		text_append_string(t, "@TURNED\n");
	}
}

static void append_title(struct text *t, const struct place *place)
{
	if (!*place->panel->title) {
		return;
	}
	_cleanup_text_ struct text title = {0};
	text_append_string(&title, place->panel->title);
	if (*place->z.unit) {
		text_format(&title, " (%s)", place->z.unit);
	}
	size_t below = place->said_above + (place->title_beside ? 0 : place->legend_lines);
	append_set(t, "label", title.data, " at graph 0, graph up(%zu.5) left", below);
	t->failed = t->failed || title.failed;
}

// Reasons for what is missing: upright at the place of a bar, or in a cell.
static void append_reasons(struct text *t, const struct place *place)
{
	double width;
	for (size_t i = 0; i < place->panel->n_series; i++) {
		const struct figure_series *series = place->panel->series[i];
		for (size_t j = 0; j < series->n; j++) {
			const struct figure_point *point = &series->points[j];
			if (point->words && series->look == LOOK_HEAT) {
				append_set(t, "label", point->words,
					" at first %.7g, first %.7g center front", point->x,
					point->y);
			} else if (point->words) {
				double x = point->x + bar_offset(place->panel, series, &width);
				append_set(t, "label", point->words,
					" at first %.7g, graph 0.02 @UPRIGHT", x * place->x.scale);
			}
		}
	}
}

// Series ------------------------------------------------------------------------------------------

static void append_name(const struct writing *w, const char *name)
{
	_cleanup_text_ struct text elided = {0};
	if (*name) {
		words_append_elided(&elided, name, w->layout->name_letters);
		text_append_string(w->script, " title ");
		append_quoted(w->script, elided.data, false);
	}
	w->script->failed = w->script->failed || elided.failed;
}

static bool has_interval(const struct figure_series *series)
{
	for (size_t i = 0; i < series->n; i++) {
		if (isfinite(series->points[i].low) && isfinite(series->points[i].high)) {
			return true;
		}
	}
	return false;
}

// Many lines that go up and down hide their dashes.
static bool needs_markers(const struct figure_panel *panel)
{
	size_t lines = 0;
	for (size_t i = 0; i < panel->n_series; i++) {
		lines += panel->series[i]->look == LOOK_LINE && *panel->series[i]->name;
	}
	return lines > LINES_WITHOUT_MARKERS;
}

static int linetype_of(const struct figure_series *series)
{
	return 1 + (series->style < 0 ? 0 : series->style) % STYLES;
}

static void append_look(
	struct text *t, const struct figure_panel *panel, const struct figure_series *series)
{
	bool marked = series->look == LOOK_LINE && needs_markers(panel);
	bool small = series->look == LOOK_POINTS && series->n > MANY_POINTS;
	text_format(t, "@%s", marked ? "MARKED" : small ? "DOTS" : looks[series->look].macro);
	if (series->look == LOOK_BARS) {
		text_format(t, " @FILL%d", linetype_of(series));
	} else if (series->look != LOOK_HEAT) {
		text_format(t, " lt %d", linetype_of(series));
	}
}

static void append_element(
	struct writing *w, const struct place *place, const struct figure_series *series)
{
	struct text *t = w->script;
	bool heat = series->look == LOOK_HEAT;
	text_format(t, ", \\\n\tdata index %zu ", w->index);
	append_look(t, place->panel, series);
	append_name(w, series->name);
	if (heat && series->n <= MOST_WORDY_CELLS) {
		text_format(t, ", \\\n\tdata index %zu @VALUES", w->index);
	} else if (!heat && series->look != LOOK_BAND && has_interval(series)) {
		text_format(t, ", \\\n\tdata index %zu @INTERVAL lt %d @THIN", w->index,
			series->look == LOOK_BARS ? -1 : linetype_of(series));
	}
	append_series(w->data, w->layout, place, series, w->index++);
}

// Of more lines than a reader tells apart every second, fifth, ... is drawn, and the legend says
// so.
static void append_verticals(struct writing *w, const struct place *place)
{
	const struct figure_panel *panel = place->panel;
	_cleanup_text_ struct text name = {0};
	if (panel->n_verticals == 0) {
		return;
	}
	size_t step = 1;
	double most = w->layout->axes_cm * MOST_VERTICALS_PER_CM;
	for (int i = 1; (double)panel->n_verticals > most * (double)step; i++) {
		step = i % 3 == 2 ? step * 5 / 2 : step * 2; // 2, 5, 10, 20, ...
	}
	text_append_string(&name, panel->verticals_name);
	if (step > 1 && name.length > 0) {
		text_format(&name, " (one in %zu)", step);
	}
	text_format(w->script, ", \\\n\tdata index %zu @VERTICALS", w->index);
	append_name(w, name.data ? name.data : "");
	append_block(w->data, place, panel->verticals_name, "x", w->index++);
	for (size_t i = 0; i < panel->n_verticals; i += step) {
		append_number(w->data, panel->verticals[i] * place->x.scale, "\n");
	}
	w->script->failed = w->script->failed || name.failed;
}

static void append_plot(struct writing *w, const struct place *place)
{
	const struct figure_panel *panel = place->panel;
	text_append_string(w->script, "plot NaN notitle");
	for (unsigned depth = 0; depth < 3; depth++) {
		for (size_t i = 0; i < panel->n_series; i++) {
			const struct figure_series *series = panel->series[i];
			if (series->n > 0 && looks[series->look].depth == depth) {
				append_element(w, place, series);
			}
		}
	}
	append_verticals(w, place);
	text_append_string(w->script, "\n");
}

// The page's title and notes are labels of the first panel.
static void append_page_texts(struct text *t, const struct layout *layout)
{
	if (*layout->page->title) {
		append_set(t, "label", layout->page->title, " at @%s", "PAGE_TITLE");
	}
	if (layout->notes.length > 0) {
		append_set(t, "label", layout->notes.data, " at @%s", "NOTES");
	}
}

static void append_panel(struct writing *w, size_t i)
{
	const struct place *place = &w->layout->places[i];
	struct text *t = w->script;
	text_format(t, "\n# panel %zu\nreset\n@AXES\n", i + 1);
	append_axes(t, w->layout, place);
	if (place->z.any) {
		text_format(t, "lightest = %.7g; darkest = %.7g\n@CELLS\n", place->z.minimum,
			place->z.maximum);
	}
	if (i == 0) {
		append_page_texts(t, w->layout);
	}
	append_title(t, place);
	if (place->said_lines > 0) {
		append_set(t, "label", place->said.data, " at graph %s(%zu) %s @SAID",
			place->has_data ? "0, graph above" : "0.5, graph middle", place->said_lines,
			place->has_data ? "left" : "center");
	}
	append_reasons(t, place);
	text_format(t, "set key at graph 1, graph up(%zu) maxrows %zu @KEY\n", place->said_above,
		place->legend_lines > 0 ? place->legend_lines : 1);
	append_plot(w, place);
}

// The counts that figure.gp needs.
static void append_head(struct text *t, const struct layout *layout, enum figure_format format)
{
	static const char *const formats[] = {
		[FORMAT_SVG] = "svg", [FORMAT_PDF] = "pdf", [FORMAT_PNG] = "png"};
	const struct figure_page *page = layout->page;
	size_t above = 0, between = 0, turned = 0;
	for (size_t i = 0; i < layout->n; i++) {
		const struct place *place = &layout->places[i];
		size_t name = place->turned ? longest_name(&place->panel->x) : 0;
		size_t *lines = place->row == 0 ? &above : &between;
		*lines = place->lines_above > *lines ? place->lines_above : *lines;
		turned = name > turned ? name : turned;
	}
	double height = page->panel_height_cm > 0 ? page->panel_height_cm
	                : layout->n == 1          ? 4.8
	                                          : 3;
	text_format(t, "format = '%s'\nrows = %zu\ncolumns = %zu\n", formats[format],
		(layout->n + page->columns - 1) / page->columns, page->columns);
	text_format(t,
		"column_width = %.4g # all lengths in cm\npanel_height = %.4g # of the axes\n"
		"left_of_axes = %.4g\nright_of_axes = %.4g\nnames_below = %.4g # longest\n",
		layout->column_cm, height, layout->left_cm, RIGHT_CM, (double)turned * LETTER_CM);
	text_format(t,
		"lines_above = %zu # of text, above the first row\nlines_between = %zu\n"
		"lines_of_notes = %zu\nhas_title = %d\nshares_x = %d\nshares_y = %d\n",
		above, between, count_lines(&layout->notes), *page->title != '\0',
		page->share_x && layout->n % page->columns == 0, page->share_y);
}

int figure_script(const struct figure_page *page, enum figure_format format, const char *data_path,
	const char *output, struct text *script, struct text *data)
{
	struct layout layout;
	int r = layout_page(page, &layout);
	if (r == 0) {
		struct writing w = {&layout, script, data, 0};
		text_append_string(script,
			"# made by strain " STRAIN_VERSION "; in this folder: gnuplot THIS.gp\n");
		append_head(script, &layout, format);
		text_append_string(script, "data = ");
		append_quoted(script, data_path, false);
		if (output) {
			text_append_string(script, "\noutput = ");
			append_quoted(script, output, false);
		}
		text_format(script, "\n\n%s", figure_gp);
		for (size_t i = 0; i < layout.n; i++) {
			append_panel(&w, i);
		}
		text_append_string(script, "\nunset multiplot\n");
	}
	layout_done(&layout);
	return r < 0 ? r : script->failed || data->failed ? -ENOMEM : 0;
}
