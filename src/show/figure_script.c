// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The gnuplot script of a figure. Every text of a run stands in single quotes, where gnuplot (5.4:
// no expansion of `...`, @macros or backslashes) knows only the quote itself; a tick's name is a
// format besides, so that "%" is doubled.

#include "show/figure_script.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/words.h"
#include "show/figure.h"

// Layout ------------------------------------------------------------------------------------------
//
// Ranges, units and room.

#define COLUMN_CM 8.8 // of a paper
#define BOTH_COLUMNS_CM 17.6
#define NARROWEST_CM 4.2
#define SAMPLE_CM 0.9 // a legend's entry beside its name
#define LEGEND_LINE_CM 0.28
#define LEGEND_GAP_CM 0.06
#define EDGE_CM 0.15
#define TICK_CM 0.42 // the ticks' numbers below an axis
#define TICK_WIDTH_CM 0.85 // beside one
#define NAME_CM 0.36 // an axis' own name
#define HEADROOM 1.06
#define BRIEF_CM 0.9 // high, where there are words instead of data
#define TICK_APART_CM 0.55 // of a y axis, at least
#define TICK_BESIDE_CM 1.1 // of an x axis
#define TURNED 35 // degrees
#define TURNED_HIGH 0.57

// Words -------------------------------------------------------------------------------------------

// Breaks text into lines of at most `columns` letters, at blanks where there are any.
static void layout_wrap(struct text *into, const char *text, size_t columns)
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

// What is said in a panel, as lines of the width.
static void layout_said(struct text *into, const struct figure_panel *panel, double width)
{
	layout_wrap(into, panel->said, (size_t)fmax(10, width / FIGURE_WORDS_LETTER_CM));
}

// Ranges and units --------------------------------------------------------------------------------

struct prefix {
	const char *letter;
	double factor;
};

static const struct prefix prefixes[] = {{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1}};

// "GB" of 3.2e9 "By": three digits at most stand before the point.
static void choose_bytes(struct axis_range *range, double largest, const char *rest)
{
	const struct prefix *p = prefixes;
	while (p->factor > 1 && largest < p->factor) {
		p++;
	}
	range->scale = 1 / p->factor;
	snprintf(range->unit, sizeof(range->unit), "%sB%s", p->letter, rest);
}

static void choose_seconds(struct axis_range *range, double largest)
{
	static const struct prefix lengths[] = {{"h", 3 * 3600}, {"s", 1}, {"ms", 1e-3}, {"µs", 0}};
	static const double scales[] = {1.0 / 3600, 1, 1e3, 1e6};
	size_t i = 0;
	while (i + 1 < ARRAY_LENGTH(lengths) && largest < lengths[i].factor) {
		i++;
	}
	range->scale = scales[i];
	snprintf(range->unit, sizeof(range->unit), "%s", lengths[i].letter);
}

static void choose_unit(struct axis_range *range, const char *unit)
{
	double largest = fmax(fabs(range->minimum), fabs(range->maximum));
	range->scale = 1;
	if (!unit || !*unit || *unit == '{' || !range->any) {
		range->unit[0] = '\0';
	} else if (strcmp(unit, "By") == 0) {
		choose_bytes(range, largest, "");
	} else if (strcmp(unit, "By/s") == 0) {
		choose_bytes(range, largest, "/s");
	} else if (strcmp(unit, "s") == 0 && largest > 0) {
		choose_seconds(range, largest);
	} else if (strcmp(unit, "1") == 0) {
		range->scale = 100;
		snprintf(range->unit, sizeof(range->unit), "%%");
	} else {
		snprintf(range->unit, sizeof(range->unit), "%s", unit);
	}
	range->minimum *= range->scale;
	range->maximum *= range->scale;
}

static void widen(struct axis_range *range, double value)
{
	if (isfinite(value)) {
		range->minimum = range->any ? fmin(range->minimum, value) : value;
		range->maximum = range->any ? fmax(range->maximum, value) : value;
		range->any = true;
	}
}

static void widen_by_series(struct panel_place *place, const struct figure_series *series)
{
	for (size_t i = 0; i < series->n; i++) {
		const struct figure_point *point = &series->points[i];
		widen(&place->x, point->x);
		widen(&place->y, point->y);
		place->y.least = fmin(place->y.least, point->y);
		widen(&place->y, point->low);
		widen(&place->y, point->high);
		widen(&place->z, point->z);
	}
}

static void find_range(const struct figure_panel *panel, struct panel_place *place)
{
	place->x = place->y = place->z = (struct axis_range){.scale = 1, .least = INFINITY};
	for (size_t i = 0; i < panel->n_series; i++) {
		widen_by_series(place, panel->series[i]);
	}
	for (size_t i = 0; i < panel->n_verticals; i++) {
		widen(&place->x, panel->verticals[i]);
	}
}

static void join_range(struct axis_range *into, const struct axis_range *from)
{
	if (from->any) {
		widen(into, from->minimum);
		widen(into, from->maximum);
		into->least = fmin(into->least, from->least);
	}
}

// An axis shared by several panels has one range.
static void share_ranges(const struct figure_page *page, struct panel_place *places)
{
	for (size_t i = 0; i < page->n_panels; i++) {
		for (size_t j = 0; j < i; j++) {
			if (page->share_x && places[i].column == places[j].column) {
				join_range(&places[j].x, &places[i].x);
				places[i].x = places[j].x;
			}
			if (page->share_y && places[i].row == places[j].row) {
				join_range(&places[j].y, &places[i].y);
				places[i].y = places[j].y;
			}
		}
	}
}

// Amounts begin at zero and leave some room above; the room for words is more.
static void finish_amounts(struct axis_range *range, const struct figure_axis *axis, double above)
{
	bool linear = axis->logarithm <= 0;
	if (!range->any) {
		range->minimum = 0;
		range->maximum = 1;
	}
	if (linear && (range->minimum > 0 || range->least >= 0)) {
		range->minimum = 0; // an interval of what cannot be negative may be
	}
	if (linear && range->maximum <= range->minimum) {
		range->maximum = range->minimum + 1;
	}
	range->maximum = linear ? range->minimum + (range->maximum - range->minimum) * above
	                        : range->maximum * 1.5;
	range->minimum = linear ? range->minimum : range->minimum / 1.5;
	range->minimum = isfinite(axis->minimum) ? axis->minimum : range->minimum;
	range->maximum = isfinite(axis->maximum) ? axis->maximum : range->maximum;
	choose_unit(range, axis->unit);
}

static bool has_look(const struct figure_panel *panel, enum figure_look look)
{
	for (size_t i = 0; i < panel->n_series; i++) {
		if (panel->series[i]->look == look) {
			return true;
		}
	}
	return false;
}

static void finish_names(struct axis_range *range, const struct figure_axis *axis)
{
	range->minimum = -0.5;
	range->maximum = (double)axis->n_names - 0.5;
	range->scale = 1;
	range->unit[0] = '\0';
}

// Along the x axis the data goes from edge to edge; markers and bars need some room.
static void finish_places(
	struct axis_range *range, const struct figure_axis *axis, const struct figure_panel *panel)
{
	double length = range->maximum - range->minimum;
	bool markers = has_look(panel, LOOK_POINTS) || has_look(panel, LOOK_LINE_POINTS) ||
	               has_look(panel, LOOK_BARS);
	if (!range->any || length <= 0) {
		range->minimum -= axis->logarithm > 0 ? range->minimum / 2 : 0.5;
		range->maximum += range->maximum > 0 ? range->maximum / 2 : 0.5;
	} else if (axis->logarithm > 0) {
		range->minimum /= markers ? 1.2 : 1;
		range->maximum *= markers ? 1.2 : 1;
	} else if (markers) {
		range->minimum -= length * 0.05;
		range->maximum += length * 0.05;
	}
	range->minimum = isfinite(axis->minimum) ? axis->minimum : range->minimum;
	range->maximum = isfinite(axis->maximum) ? axis->maximum : range->maximum;
	choose_unit(range, axis->unit);
}

static double panel_height(const struct figure_page *page, const struct panel_place *place)
{
	if (place->brief) {
		return BRIEF_CM;
	}
	return page->panel_height_cm > 0 ? page->panel_height_cm : page->n_panels == 1 ? 4.8 : 3.0;
}

static double panel_width(const struct figure_page *page)
{
	if (page->panel_width_cm > 0) {
		return page->panel_width_cm;
	}
	return page->columns == 1 ? COLUMN_CM
	                          : fmax(NARROWEST_CM, BOTH_COLUMNS_CM / (double)page->columns);
}

// The shortest of 1, 2, 5, 10, ... of which no more than so many fit.
static double tick_step(const struct axis_range *range, double most)
{
	double least = (range->maximum - range->minimum) / fmax(1, most);
	double step = pow(10, floor(log10(least)));
	double times = least / step;
	return step * (times <= 1.001 ? 1 : times <= 2.001 ? 2 : times <= 5.001 ? 5 : 10);
}

static void choose_ticks(struct axis_range *range, const struct figure_axis *axis, double most)
{
	bool numbers = range->any && axis->n_names == 0 && axis->logarithm <= 0;
	range->step = numbers && range->maximum > range->minimum ? tick_step(range, most) : 0;
	range->step = axis->whole && range->step > 0 ? fmax(1, range->step) : range->step;
}

static size_t count_lines(const struct text *text)
{
	size_t n = 0;
	for (size_t i = 0; i < text->length; i++) {
		n += text->data[i] == '\n';
	}
	return n;
}

// How much higher than its data a panel is: words beside data stand above it.
static double room_above(const struct figure_panel *panel, const struct panel_place *place)
{
	if (!panel->said || !place->y.any) {
		return HEADROOM;
	}
	_cleanup_text_ struct text lines = {0};
	layout_said(&lines, panel, panel_width(panel->page) - EDGE_CM - NAME_CM - TICK_WIDTH_CM);
	double share = ((double)count_lines(&lines) + 0.3) * FIGURE_WORDS_LINE_CM /
	               panel_height(panel->page, place);
	return share < 0.6 ? HEADROOM / (1 - share) : HEADROOM;
}

static void finish_ranges(const struct figure_panel *panel, struct panel_place *place)
{
	if (panel->x.n_names > 0) {
		finish_names(&place->x, &panel->x);
	} else {
		finish_places(&place->x, &panel->x, panel);
	}
	if (panel->y.n_names > 0) {
		finish_names(&place->y, &panel->y);
	} else {
		finish_amounts(&place->y, &panel->y, room_above(panel, place));
	}
	if (!place->z.any) {
		place->z = (struct axis_range){.minimum = 0, .maximum = 1};
	}
	choose_unit(&place->z, panel->z.unit);
	double width = panel_width(panel->page) - EDGE_CM - NAME_CM - TICK_WIDTH_CM;
	choose_ticks(&place->x, &panel->x, width / TICK_BESIDE_CM);
	choose_ticks(&place->y, &panel->y, panel_height(panel->page, place) / TICK_APART_CM);
}

static bool is_wordy(const struct figure_panel *panel)
{
	for (size_t i = 0; i < panel->n_series; i++) {
		if (panel->series[i]->n > 0) {
			return false;
		}
	}
	return panel->said;
}

// Rows that have nothing but words, beside others that have data.
static void find_brief(const struct figure_page *page, struct panel_place *places)
{
	size_t wordy = 0;
	for (size_t i = 0; i < page->n_panels; i += page->columns) {
		bool brief = true;
		for (size_t j = i; j < page->n_panels && j < i + page->columns; j++) {
			brief = brief && is_wordy(page->panels[j]);
		}
		for (size_t j = i; j < page->n_panels && j < i + page->columns; j++) {
			places[j].brief = brief;
			wordy += brief;
		}
	}
	for (size_t i = 0; i < page->n_panels && wordy == page->n_panels; i++) {
		places[i].brief = false;
	}
}

// Room --------------------------------------------------------------------------------------------

// Entries of the panel's legend.
static size_t layout_legend_entries(const struct figure_panel *panel)
{
	size_t n = panel->n_verticals > 0 && panel->verticals_name && *panel->verticals_name;
	for (size_t i = 0; i < panel->n_series; i++) {
		n += panel->series[i]->name && *panel->series[i]->name;
	}
	return n;
}

static double text_cm(const char *text)
{
	return text ? (double)words_columns(text) * FIGURE_LETTER_CM : 0;
}

static double legend_entry_cm(const struct figure_panel *panel)
{
	double widest = panel->n_verticals > 0 ? text_cm(panel->verticals_name) : 0;
	for (size_t i = 0; i < panel->n_series; i++) {
		widest = fmax(widest, text_cm(panel->series[i]->name));
	}
	return widest + SAMPLE_CM;
}

static double longest_name_cm(const struct figure_axis *axis)
{
	double longest = 0;
	for (size_t i = 0; i < axis->n_names; i++) {
		longest = fmax(longest, text_cm(axis->names[i]));
	}
	return longest;
}

static double left_room(
	const struct figure_page *page, const struct figure_panel *panel, bool first_of_row)
{
	if (page->share_y && !first_of_row) {
		return 0.35;
	}
	double ticks = panel->y.n_names > 0 ? longest_name_cm(&panel->y) + 0.3 : TICK_WIDTH_CM;
	return EDGE_CM + NAME_CM + ticks;
}

static double bottom_room(const struct figure_page *page, const struct figure_panel *panel,
	const struct panel_place *place)
{
	if (page->share_x && !place->last_of_column) {
		return 0.2;
	}
	double names = place->names_turned > 0 ? longest_name_cm(&panel->x) * TURNED_HIGH : 0;
	return TICK_CM + names + NAME_CM;
}

// Title and legend share a line where both fit. The room that both need.
static double top_room(const struct figure_panel *panel, struct panel_place *place, double width)
{
	size_t entries = layout_legend_entries(panel);
	double entry = legend_entry_cm(panel), title = text_cm(panel->title);
	bool beside = title + (double)entries * entry < width;
	// a legend may begin above what stands left of the axis
	double wide = width + (beside && title > 0 ? 0 : TICK_WIDTH_CM);
	size_t columns = (size_t)fmax(1, floor(wide / entry));
	size_t lines = (entries + columns - 1) / columns;
	place->legend_lines = (unsigned)fmax(1, (double)lines);
	double legend = entries > 0 ? (double)lines * LEGEND_LINE_CM + LEGEND_GAP_CM : 0;
	place->title_bottom = beside ? 0 : legend;
	return legend + (title > 0 && (!beside || entries == 0) ? FIGURE_LINE_CM : 0);
}

// What a row of panels needs above and below itself: as much as its neediest.
struct row_room {
	double above, below;
};

static struct row_room measure_row(
	const struct figure_page *page, struct panel_place *places, size_t row, double width)
{
	struct row_room room = {EDGE_CM, 0};
	for (size_t i = row * page->columns; i < page->n_panels && i < (row + 1) * page->columns;
		i++) {
		const struct figure_panel *panel = page->panels[i];
		double axis = width - left_room(page, panel, places[i].first_of_row) - 0.2;
		places[i].names_turned = longest_name_cm(&panel->x) * (double)panel->x.n_names >
		                                         axis * 0.95
		                                 ? 35
		                                 : 0;
		room.above = fmax(room.above, EDGE_CM + top_room(panel, &places[i], axis));
		room.below = fmax(room.below, bottom_room(page, panel, &places[i]));
	}
	return room;
}

static void place_row(const struct figure_page *page, struct panel_place *places, size_t row,
	double top, double width)
{
	for (size_t i = row * page->columns; i < page->n_panels && i < (row + 1) * page->columns;
		i++) {
		struct panel_place *place = &places[i];
		double from = (double)place->column * width;
		place->left = from + left_room(page, page->panels[i], place->first_of_row);
		place->right = from + width - 0.25;
		place->top = top;
		place->bottom = top - panel_height(page, place);
		place->legend_bottom = top + 0.06;
		place->title_bottom += place->legend_bottom;
		place->y_label = place->left - left_room(page, page->panels[i], true) + EDGE_CM +
		                 NAME_CM * 0.4;
		place->x_label = place->bottom - bottom_room(page, page->panels[i], place) +
		                 NAME_CM * 0.6;
	}
}

static void number_places(const struct figure_page *page, struct panel_place *places)
{
	for (size_t i = 0; i < page->n_panels; i++) {
		places[i].row = i / page->columns;
		places[i].column = i % page->columns;
		places[i].first_of_row = places[i].column == 0;
		places[i].last_of_column = i + page->columns >= page->n_panels;
	}
}

// From the bottom up: notes, then the rows, the last one first, then the title.
static void place_rows(
	const struct figure_page *page, struct page_layout *layout, struct row_room *rooms)
{
	size_t rows = (page->n_panels + page->columns - 1) / page->columns;
	double width = panel_width(page);
	double y = EDGE_CM + (double)count_lines(&layout->notes) * FIGURE_LINE_CM;
	layout->notes_top = y;
	for (size_t row = rows; row-- > 0;) {
		y += rooms[row].below + panel_height(page, &layout->places[row * page->columns]);
		place_row(page, layout->places, row, y, width);
		y += rooms[row].above;
	}
	layout->width = width * (double)page->columns;
	layout->height = y + (page->title && *page->title ? FIGURE_LINE_CM * 1.3 : 0);
}

static void wrap_notes(const struct figure_page *page, struct text *notes)
{
	double width = panel_width(page) * (double)page->columns - 2 * EDGE_CM;
	for (size_t i = 0; i < page->n_notes; i++) {
		layout_wrap(notes, page->notes[i], (size_t)(width / FIGURE_LETTER_CM));
	}
}

static void layout_done(struct page_layout *layout);

// 0 or -ENOMEM.
static int layout_figure(const struct figure_page *page, struct page_layout *ret)
{
	size_t rows = (page->n_panels + page->columns - 1) / page->columns;
	_cleanup_free_ struct row_room *rooms = calloc(rows + 1, sizeof(*rooms));
	*ret = (struct page_layout){
		.places = calloc(page->n_panels + 1, sizeof(*ret->places)),
	};
	wrap_notes(page, &ret->notes);
	if (page->failed || !rooms || !ret->places || ret->notes.failed) {
		layout_done(ret);
		return -ENOMEM;
	}
	number_places(page, ret->places);
	for (size_t i = 0; i < page->n_panels; i++) {
		find_range(page->panels[i], &ret->places[i]);
	}
	find_brief(page, ret->places);
	share_ranges(page, ret->places);
	for (size_t i = 0; i < page->n_panels; i++) {
		finish_ranges(page->panels[i], &ret->places[i]);
	}
	for (size_t row = 0; row < rows; row++) {
		rooms[row] = measure_row(page, ret->places, row, panel_width(page));
	}
	place_rows(page, ret, rooms);
	return 0;
}

static void layout_done(struct page_layout *layout)
{
	free(layout->places);
	text_done(&layout->notes);
	*layout = (struct page_layout){0};
}

// Data --------------------------------------------------------------------------------------------
//
// From points to lines of numbers.

#define BARS_SHARE 0.8 // of the room between two places that bars take

// Which column of the page x stands in.
static double column_of(double x, double first, double length, size_t columns, bool logarithmic)
{
	double at = logarithmic ? log(x / first) : x - first;
	return floor(at / length * (double)columns);
}

// Points of one column, so far.
struct stretch {
	size_t first, least, greatest, last, n;
};

static void stretch_add(struct stretch *s, const struct figure_point *points, size_t i)
{
	if (s->n++ == 0) {
		s->first = s->least = s->greatest = i;
	}
	s->last = i;
	s->least = points[i].y < points[s->least].y ? i : s->least;
	s->greatest = points[i].y > points[s->greatest].y ? i : s->greatest;
}

// What is left of a column, each point once and in the order in which they were. A band's edges are
// its widest.
static size_t stretch_end(
	const struct stretch *s, const struct figure_point *points, struct figure_point *into)
{
	if (s->n == 0) {
		return 0;
	}
	double low = NAN, high = NAN;
	for (size_t i = s->first; i <= s->last; i++) {
		low = fmin(low, points[i].low);
		high = fmax(high, points[i].high);
	}
	size_t middle_first = s->least < s->greatest ? s->least : s->greatest;
	size_t middle_last = s->least < s->greatest ? s->greatest : s->least;
	size_t picked[] = {s->first, middle_first, middle_last, s->last};
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(picked); i++) {
		if (i == 0 || picked[i] != picked[i - 1]) {
			into[n] = points[picked[i]];
			into[n].low = low;
			into[n++].high = high;
		}
	}
	return n;
}

int figure_script_thin(const struct figure_point *points, size_t n, size_t columns,
	bool logarithmic, struct figure_point **ret, size_t *ret_n)
{
	struct figure_point *kept = calloc(n + 1, sizeof(*kept));
	if (!kept) {
		return -ENOMEM;
	}
	double first = n > 0 ? points[0].x : 0, last = n > 0 ? points[n - 1].x : 0;
	double length = logarithmic ? log(last / first) : last - first;
	bool few = n <= 4 * columns || !(length > 0);
	struct stretch stretch = {0};
	double open = -1;
	size_t n_kept = 0;
	for (size_t i = 0; i < n; i++) {
		double column = column_of(points[i].x, first, length, columns, logarithmic);
		bool missing = isnan(points[i].y);
		if (few || missing || column != open) {
			n_kept += stretch_end(&stretch, points, kept + n_kept);
			stretch = (struct stretch){0};
			open = column;
		}
		if (few || missing) {
			kept[n_kept++] = points[i];
		} else {
			stretch_add(&stretch, points, i);
		}
	}
	n_kept += stretch_end(&stretch, points, kept + n_kept);
	*ret = kept;
	*ret_n = n_kept;
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

static void append_line(struct text *t, const struct panel_place *place,
	const struct figure_series *series, size_t columns, bool logarithmic)
{
	_cleanup_free_ struct figure_point *points = NULL;
	size_t n;
	if (figure_script_thin(series->points, series->n, columns, logarithmic, &points, &n) < 0) {
		t->failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		append_number(t, points[i].x * place->x.scale, " ");
		append_number(t, points[i].y * place->y.scale, " ");
		append_number(t, points[i].low * place->y.scale, " ");
		append_number(t, points[i].high * place->y.scale, "\n");
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

// Bars of several series stand side by side, in the order of the legend: how far from x, and how
// wide.
static double figure_bar_offset(
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

static void append_bars(struct text *t, const struct panel_place *place,
	const struct figure_panel *panel, const struct figure_series *series)
{
	double width, offset = figure_bar_offset(panel, series, &width);
	for (size_t i = 0; i < series->n; i++) {
		const struct figure_point *point = &series->points[i];
		append_number(t, (point->x + offset) * place->x.scale, " ");
		append_number(t, point->y * place->y.scale, " ");
		append_number(t, width * 0.92 * place->x.scale, " ");
		append_number(t, point->low * place->y.scale, " ");
		append_number(t, point->high * place->y.scale, "\n");
	}
}

static void append_cells(
	struct text *t, const struct panel_place *place, const struct figure_series *series)
{
	for (size_t i = 0; i < series->n; i++) {
		const struct figure_point *point = &series->points[i];
		append_number(t, point->x, " ");
		append_number(t, point->y, " ");
		append_number(t, point->z * place->z.scale, "\n");
	}
}

static void append_series(struct text *t, const struct panel_place *place,
	const struct figure_panel *panel, const struct figure_series *series)
{
	size_t columns = (size_t)fmax(16, (place->right - place->left) * FIGURE_PIXELS_PER_CM);
	switch (series->look) {
	case LOOK_BARS:
		append_bars(t, place, panel, series);
		break;
	case LOOK_HEAT:
		append_cells(t, place, series);
		break;
	default:
		append_line(t, place, series, columns, panel->x.logarithm > 0);
	}
}

static void append_unit(
	struct text *t, const struct figure_axis *axis, const struct axis_range *range)
{
	text_format(t, "%s%s%s%s", axis->label ? axis->label : "", *range->unit ? " (" : "",
		range->unit, *range->unit ? ")" : "");
}

// One block for each series that has points, panel by panel, in the units of the axes; two empty
// lines between. Columns: x, y, low, high; of bars x, y, width, low, high; of cells x, y, value.
static void figure_data(
	const struct figure_page *page, const struct page_layout *layout, struct text *ret)
{
	static const char *const columns[] = {
		[LOOK_BARS] = "x, y, width, low, high", [LOOK_HEAT] = "x, y, value"};
	size_t index = 0;
	for (size_t i = 0; i < page->n_panels; i++) {
		const struct figure_panel *panel = page->panels[i];
		const struct panel_place *place = &layout->places[i];
		for (size_t j = 0; j < panel->n_series; j++) {
			const struct figure_series *series = panel->series[j];
			if (series->n == 0) {
				continue;
			}
			const char *names = series->look < ARRAY_LENGTH(columns)
			                            ? columns[series->look]
			                            : NULL;
			text_format(ret,
				"%s# index %zu: panel %zu, %s\n# x: ", index > 0 ? "\n\n" : "",
				index, i + 1, series->name);
			append_unit(ret, &panel->x, &place->x);
			text_append_string(ret, "; y: ");
			append_unit(ret, &panel->y, &place->y);
			text_format(ret, "; columns: %s\n", names ? names : "x, y, low, high");
			append_series(ret, place, panel, series);
			index++;
		}
	}
}

// Script ------------------------------------------------------------------------------------------

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

// Terminals ---------------------------------------------------------------------------------------

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

// Where gnuplot lacks the terminal it says so in these words, which figure.c looks for.
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

// Axes --------------------------------------------------------------------------------------------

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

// What stands beside and in the axes --------------------------------------------------------------

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
