// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// From points to lines of numbers.

#include "render/figure_data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

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

int figure_thin(const struct figure_point *points, size_t n, size_t columns, bool logarithmic,
	struct figure_point **ret, size_t *ret_n)
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
	if (figure_thin(series->points, series->n, columns, logarithmic, &points, &n) < 0) {
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

double figure_bar_offset(
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

void figure_data(const struct figure_page *page, const struct page_layout *layout, struct text *ret)
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
