// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A figure in memory.

#include "render/figure.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analyze/words.h"
#include "base/array.h"
#include "base/cleanup.h"

#define LONGEST_NAME 28 // of a place on an axis, in letters

bool figure_format_of(const char *path, enum figure_format *ret)
{
	static const char *const endings[] = {
		[FORMAT_SVG] = ".svg", [FORMAT_PDF] = ".pdf", [FORMAT_PNG] = ".png"};
	size_t length = strlen(path);
	for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
		size_t n = strlen(endings[i]);
		if (length > n && strcasecmp(path + length - n, endings[i]) == 0) {
			*ret = (enum figure_format)i;
			return true;
		}
	}
	return false;
}

// Text as a figure can show it: on one line, valid UTF-8.
static char *copy_text(struct figure_page *page, const char *string)
{
	struct text copy = {0};
	string = string ? string : "";
	text_append_printable(&copy, string, strlen(string));
	char *copied = text_steal(&copy);
	page->failed = page->failed || !copied;
	return copied;
}

static void set_text(struct figure_page *page, char **into, const char *string)
{
	free(*into);
	*into = copy_text(page, string);
}

// Room for one more; false, and the page knows, where there is none.
static bool make_room(
	struct figure_page *page, void **items, size_t *capacity, size_t n, size_t size)
{
	int r = array_reserve(items, capacity, n + 1, size);
	page->failed = page->failed || r < 0;
	return r == 0;
}

struct figure_page *figure_new(const char *title, size_t columns)
{
	struct figure_page *page = calloc(1, sizeof(*page));
	if (page) {
		page->columns = columns > 0 ? columns : 1;
		page->title = copy_text(page, title);
	}
	return page;
}

static void series_free(struct figure_series *series)
{
	for (size_t i = 0; i < series->n; i++) {
		free(series->points[i].words);
	}
	free(series->points);
	free(series->name);
	free(series);
}

static void axis_done(struct figure_axis *axis)
{
	for (size_t i = 0; i < axis->n_names; i++) {
		free(axis->names[i]);
	}
	free(axis->names);
	free(axis->label);
	free(axis->unit);
}

static void panel_free(struct figure_panel *panel)
{
	for (size_t i = 0; i < panel->n_series; i++) {
		series_free(panel->series[i]);
	}
	axis_done(&panel->x);
	axis_done(&panel->y);
	axis_done(&panel->z);
	free(panel->series);
	free(panel->verticals);
	free(panel->verticals_name);
	free(panel->said);
	free(panel->title);
	free(panel);
}

void figure_free(struct figure_page *page)
{
	if (!page) {
		return;
	}
	for (size_t i = 0; i < page->n_panels; i++) {
		panel_free(page->panels[i]);
	}
	for (size_t i = 0; i < page->n_notes; i++) {
		free(page->notes[i]);
	}
	free(page->panels);
	free(page->notes);
	free(page->title);
	free(page);
}

struct figure_panel *figure_add_panel(struct figure_page *page, const char *title)
{
	if (!page) {
		return NULL;
	}
	void *items = page->panels;
	bool there = make_room(
		page, &items, &page->panels_capacity, page->n_panels, sizeof(void *));
	page->panels = items;
	struct figure_panel *panel = there ? calloc(1, sizeof(*panel)) : NULL;
	if (!panel) {
		page->failed = true;
		return NULL;
	}
	panel->page = page;
	panel->title = copy_text(page, title);
	struct figure_axis *axes[] = {&panel->x, &panel->y, &panel->z};
	for (size_t i = 0; i < ARRAY_LENGTH(axes); i++) {
		axes[i]->minimum = axes[i]->maximum = NAN;
	}
	page->panels[page->n_panels++] = panel;
	return panel;
}

void figure_title_page(struct figure_page *page, const char *title)
{
	if (page) {
		set_text(page, &page->title, title);
	}
}

void figure_title_panel(struct figure_panel *panel, const char *title)
{
	if (panel) {
		set_text(panel->page, &panel->title, title);
	}
}

void figure_axis_set(
	struct figure_panel *panel, struct figure_axis *axis, const char *label, const char *unit)
{
	if (panel) {
		set_text(panel->page, &axis->label, label);
		set_text(panel->page, &axis->unit, unit);
	}
}

double figure_axis_name(struct figure_panel *panel, struct figure_axis *axis, const char *name)
{
	if (!panel) {
		return NAN;
	}
	_cleanup_text_ struct text elided = {0};
	words_append_elided(&elided, name ? name : "", LONGEST_NAME);
	_cleanup_free_ char *shown = copy_text(panel->page, elided.data);
	for (size_t i = 0; shown && i < axis->n_names; i++) {
		if (strcmp(axis->names[i], shown) == 0) {
			return (double)i;
		}
	}
	void *items = axis->names;
	bool there = make_room(
		panel->page, &items, &axis->capacity, axis->n_names, sizeof(*axis->names));
	axis->names = items;
	if (!there || !shown) {
		return NAN;
	}
	axis->names[axis->n_names] = take_pointer(shown);
	return (double)axis->n_names++;
}

struct figure_series *figure_add_series(
	struct figure_panel *panel, enum figure_look look, const char *name)
{
	if (!panel) {
		return NULL;
	}
	void *items = panel->series;
	bool there = make_room(
		panel->page, &items, &panel->series_capacity, panel->n_series, sizeof(void *));
	panel->series = items;
	struct figure_series *series = there ? calloc(1, sizeof(*series)) : NULL;
	if (!series) {
		panel->page->failed = true;
		return NULL;
	}
	*series = (struct figure_series){.look = look,
		.name = copy_text(panel->page, name),
		.style = (int)panel->n_series,
		.page = panel->page};
	panel->series[panel->n_series++] = series;
	return series;
}

static void add_point(struct figure_series *series, struct figure_point point)
{
	void *items = series->points;
	bool there = make_room(
		series->page, &items, &series->capacity, series->n, sizeof(*series->points));
	series->points = items;
	if (there) {
		series->points[series->n++] = point;
	} else {
		free(point.words);
	}
}

void figure_add_point(struct figure_series *series, double x, double y)
{
	figure_add_interval(series, x, y, NAN, NAN);
}

void figure_add_interval(struct figure_series *series, double x, double y, double low, double high)
{
	if (series) {
		add_point(series, (struct figure_point){x, y, low, high, NAN, NULL});
	}
}

void figure_add_words(struct figure_series *series, double x, const char *words)
{
	if (series) {
		char *copy = copy_text(series->page, words);
		add_point(series, (struct figure_point){x, NAN, NAN, NAN, NAN, copy});
	}
}

void figure_add_cell(struct figure_series *series, double x, double y, double z, const char *words)
{
	if (series) {
		char *copy = words ? copy_text(series->page, words) : NULL;
		add_point(series, (struct figure_point){x, y, NAN, NAN, z, copy});
	}
}

void figure_add_vertical(struct figure_panel *panel, double x, const char *name)
{
	if (!panel) {
		return;
	}
	void *items = panel->verticals;
	bool there = make_room(panel->page, &items, &panel->verticals_capacity, panel->n_verticals,
		sizeof(*panel->verticals));
	panel->verticals = items;
	if (there) {
		panel->verticals[panel->n_verticals++] = x;
		set_text(panel->page, &panel->verticals_name, name);
	}
}

__attribute__((format(printf, 3, 0))) static void format_text(
	struct figure_page *page, struct text *into, const char *format, va_list arguments)
{
	char line[512];
	vsnprintf(line, sizeof(line), format, arguments);
	text_append_printable(into, line, strlen(line));
	page->failed = page->failed || into->failed;
}

void figure_say(struct figure_panel *panel, const char *format, ...)
{
	if (!panel) {
		return;
	}
	struct text said = {0};
	if (panel->said) {
		text_format(&said, "%s\n", panel->said);
	}
	va_list arguments;
	va_start(arguments, format);
	format_text(panel->page, &said, format, arguments);
	va_end(arguments);
	free(panel->said);
	panel->said = text_steal(&said);
}

void figure_add_note(struct figure_page *page, const char *format, ...)
{
	void *items = page ? page->notes : NULL;
	if (!page || !make_room(page, &items, &page->notes_capacity, page->n_notes,
			     sizeof(*page->notes))) {
		return;
	}
	page->notes = items;
	struct text note = {0};
	va_list arguments;
	va_start(arguments, format);
	format_text(page, &note, format, arguments);
	va_end(arguments);
	page->notes[page->n_notes] = text_steal(&note);
	page->n_notes += page->notes[page->n_notes] != NULL;
}
