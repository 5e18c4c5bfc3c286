// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The panels of the report: groups of metrics, and their readings in buckets. A new panel is a row
// of the table in panels.c.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "runfile/metric.h"
#include "show/buckets.h"

struct analysis;

#define LINE_METRICS 8
#define PANEL_LINES 6
#define PANEL_LIMITS 3
#define PANEL_MOST_LINES 8 // of more devices the first ones are shown; the report says so

enum line_value {
	LINE_GAUGE, // the readings
	LINE_RATE, // growth of a counter per second
	LINE_SHARE, // 1 - growth of metrics / growth of `of`
};

// The source of a line: for each entity of a kind, the sum of some of its metrics.
struct line_spec {
	const char *label;
	enum entity_kind kind;
	enum line_value value;
	const char *metrics[LINE_METRICS]; // summed; terminated by NULL
	const char *of;
	unsigned hue; // index into the page's palette
	unsigned window_ms; // least time for a rate, for the resolution of the counter
	// Time for which a counter may stay constant before that counts as 0: the kernel's update
	// interval.
	unsigned hold_ms;
	bool of_peers; // of entities `network`: of other machines, else of interfaces
	bool fallback; // used only if no line before it in the panel had readings
};

enum limit_kind { LIMIT_NONE, LIMIT_CPUS, LIMIT_MEMORY, LIMIT_GPU_MEMORY };

struct panel_spec {
	const char *title;
	const char *unit;
	const char *help;
	double floor; // least end of the axis; 0: none
	double ceiling; // greatest end of the axis; 0: none
	bool traffic; // left out, with a note, if nothing moved
	enum limit_kind limits[PANEL_LIMITS];
	struct line_spec lines[PANEL_LINES];
};

// The line of one entity.
struct line {
	const struct line_spec *spec;
	int64_t entity;
	char *label; // escape it
	const char *help; // of its first metric; lives with the analysis
	unsigned hue;
	uint32_t ids[LINE_METRICS + 1]; // the last is `of`
	double scales[LINE_METRICS + 1];
	size_t n_ids;
	struct buckets buckets;
	struct packed packed;
	struct detail_series details[DETAILS_MAX]; // by window of the list
	// The base of the next rate.
	bool based;
	int64_t base_us;
	double base_value;
	double base_of;
};

struct panel {
	const struct panel_spec *spec;
	char *title;
	bool one_spec; // the panel's title describes every line
	struct line *lines;
	size_t n;
	size_t capacity;
	size_t left_out; // devices for which there was no room
};

struct panel_list {
	struct panel *items;
	size_t n;
	size_t capacity;
	struct detail_window windows[DETAILS_MAX];
	size_t n_windows;
	struct text idle; // titles of panels in which nothing moved
};

// Reads every block that a line needs, once, in bounded memory. Lines and panels without readings
// are left out.
int panels_collect(const struct analysis *a, struct panel_list *ret, struct error *e);
// Packs all lines into at most `most` bytes of text; the longest are coarsened first.
int panels_pack(struct panel_list *panels, size_t most);
void panels_done(struct panel_list *panels);
