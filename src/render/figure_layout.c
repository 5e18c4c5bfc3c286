// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Ranges, units and room.

#include "render/figure_layout.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/words.h"
#include "base/cleanup.h"

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

// Words ---------------------------------------------------------------------------------------

void layout_wrap(struct text *into, const char *text, size_t columns)
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

void layout_said(struct text *into, const struct figure_panel *panel, double width)
{
	layout_wrap(into, panel->said, (size_t)fmax(10, width / FIGURE_WORDS_LETTER_CM));
}

// Ranges and units ----------------------------------------------------------------------------

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

// Room ----------------------------------------------------------------------------------------

size_t layout_legend_entries(const struct figure_panel *panel)
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

int layout_figure(const struct figure_page *page, struct page_layout *ret)
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

void layout_done(struct page_layout *layout)
{
	free(layout->places);
	text_done(&layout->notes);
	*layout = (struct page_layout){0};
}
