// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run in the format that the page's program reads: web/src/contract.ts, field by field.

#pragma once

#include <jansson.h>

struct analysis;

struct buckets;

struct detail_series;

struct detail_window;

struct digest;

struct lane_list;

struct packed;

struct panel_list;

struct prices;

// A price list, and the run with its measures.
struct page_priced {
	const struct prices *prices;
	const struct digest *run;
};

// priced NULL: without costs. NULL: out of memory.
json_t *page_run(const struct analysis *a, const struct page_priced *priced,
	const struct panel_list *panels, const struct lane_list *lanes);

// Page facts --------------------------------------------------------------------------------------
//
// Figures and sentences of a page: tiles, chips, the table of epochs, the notes at its end.

#define MOST_EPOCHS 2000 // drawn and listed; the notes count the others

struct analysis;

struct panel_list;

// A string; NULL is null, and invalid UTF-8 bytes become '?'.
json_t *page_run_string(const char *string);
json_t *page_run_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
// A number; null if it is not finite.
json_t *page_run_number(double value);

// A series of a panel.
json_t *page_run_series(const char *label, const char *help, unsigned hue,
	const struct buckets *buckets, const struct packed *packed);
// A panel without series. kind: "lines" or "lanes". unit "1": shares, up to 1.
json_t *page_run_panel(const char *kind, const char *title, const char *unit, const char *help);
// Seconds of an iteration of a rank in each phase; of phases that have a name of their own in the
// job, only with p (else NULL).
struct phase_rank;
struct phases;
json_t *page_run_rank_phases(const struct phases *p, const struct phase_rank *rank);
