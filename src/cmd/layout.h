// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The tables and figures of the documents that strain started from, each a row of one table
// (layout_table.c): which runs it shows, laid out how. What is drawn comes from runs alone; what a
// document published can stand beside it, marked.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LAYOUT_LABELS 4
#define LAYOUT_VALUES 3

enum layout_kind {
	LAYOUT_TABLE, // labels of rows by labels of columns, a value or a few in each cell
	LAYOUT_BEST, // the same; the cell is the label `best` of the runs with the least value
	LAYOUT_SERIES, // a panel for each value: it over rows[0], a series for each of columns[0]
	LAYOUT_EPOCHS, // the time of each epoch by its number
	LAYOUT_RUNS, // a run of each machine over time: memory, PCIe, utilisation
	LAYOUT_MEMORY, // host and device memory over time, a line for each of rows[0]
	LAYOUT_GPU, // GPU utilisation over time, a line for each of rows[0]
	LAYOUT_PUBLISHED, // facts of the document, with no counterpart in a run
	LAYOUT_WAITS, // what this version cannot make yet
};

enum layout_change {
	CHANGE_NONE,
	CHANGE_BY_FIRST, // divided by the value at the series' first x
	CHANGE_RATIO, // the value where `ratio` is its second value, divided by that where it is
	              // its first
};

struct layout_filter {
	const char *label;
	const char *value;
};

struct layout_value {
	const char *measure; // analyze/measures.h
	const char *instead; // drawn where no run has the first, and said; NULL: nothing is
	const char *title;
	const char *published; // column of the published table; NULL: not published
	double published_scale;
};

struct layout {
	const char *name; // "torres2021-table3"
	size_t document; // of `documents`
	const char *item; // "Table 3"
	const char *title;
	enum layout_kind kind;
	struct layout_filter filters[LAYOUT_LABELS];
	const char *rows[LAYOUT_LABELS]; // labels
	const char *row_instead; // of the first of these, where no run has it
	const char *columns[LAYOUT_LABELS];
	struct layout_value values[LAYOUT_VALUES];
	enum layout_change change;
	struct {
		const char *label, *from, *to;
	} ratio; // CHANGE_RATIO
	const char *best; // LAYOUT_BEST: a label
	bool bars;
	bool each_gpu; // instead of the first of columns, where a job used several
	const char *published; // name of a table in data/published; NULL: the document gives no
	                       // values
	struct layout_filter published_only; // rows of it with this value
	const char *said; // what the document's text says of it; NULL
	const char *note; // what is different here; NULL
	const char *waits; // LAYOUT_WAITS: what for
};

struct document {
	const char *prefix; // of the names of its layouts
	const char *source; // whom to name
	const char *plan; // the sweep that makes its runs; NULL: none yet
};

extern const struct document documents[];
extern const size_t n_documents;
extern const struct layout layouts[];
extern const size_t n_layouts;

// NULL where there is none of that name.
const struct layout *layout_by_name(const char *name);
static inline bool layout_is_figure(const struct layout *l)
{
	return l->kind >= LAYOUT_SERIES && l->kind <= LAYOUT_GPU;
}

// Over time, or epoch by epoch: a column for each machine.
static inline bool layout_is_timeline(const struct layout *l)
{
	return layout_is_figure(l) && l->kind != LAYOUT_SERIES;
}
