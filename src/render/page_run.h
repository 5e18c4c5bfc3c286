// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run as the page's program wants it: web/src/contract.ts, field by field.

#pragma once

#include <jansson.h>

struct analysis;
struct buckets;
struct detail_series;
struct detail_window;
struct lane_list;
struct packed;
struct panel_list;

// NULL: out of memory.
json_t *page_run(
	const struct analysis *a, const struct panel_list *panels, const struct lane_list *lanes);
// One series of a panel.
json_t *page_series(const char *label, const char *help, unsigned hue,
	const struct buckets *buckets, const struct packed *packed);
// What of it is held at full rate.
json_t *page_details(
	const struct detail_series *details, const struct detail_window *windows, size_t n);
