// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tables and figures of studies (data/studies): which runs each shows, and how. Their contents come
// from runs only; published numbers can be shown next to them, marked.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "run/measures.h"
#include "study/catalogue.h"
#include "study/pivot.h"

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
	const char *measure; // run/measures.h
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

// Layout select -----------------------------------------------------------------------------------
//
// Which of many runs a layout shows, and what is to be said of that.

struct layout_selection {
	const struct digest **runs; // [n], the newest first
	size_t n;
	const char *rows[LAYOUT_LABELS]; // the layout's labels
	size_t n_rows;
	const char *columns[LAYOUT_LABELS];
	size_t n_columns;
	struct text unlabelled; // labels that no run has: "framework, dataset"
	struct text shown; // how many runs, and what a point is: "6 runs, mean of 3 each"
	struct text notes; // lines: labels that runs lack, and in which a cell's runs differ
};

// A run without a filter's label stays, and is said. -ENOENT with one line where no run is left.
int layout_select(const struct layout *l, const struct digest *const *runs, size_t n,
	struct layout_selection *ret, struct error *e);
void layout_selection_done(struct layout_selection *s);

// Layout gpus -------------------------------------------------------------------------------------
//
// Runs on several GPUs, once for each of these: for layouts that have a line for each GPU.

#define LAYOUT_LABEL_GPU "gpu" // "GPU 0 of 2"

struct layout_gpus {
	struct digest *copies; // [n] each with the measure of one GPU, and its label
	size_t n;
	size_t n_runs; // that they are of
};

// Layout pivot ------------------------------------------------------------------------------------
//
// Layouts whose cells are numbers of runs: as a pivot, which tables print and figures draw.

struct figure_page;

// The pivot, and what it borrows.
struct layout_pivot {
	const struct layout *layout;
	const struct digest **runs; // [n_runs] the selection's, then what was published
	const char **sources; // [n_runs]
	size_t n_runs;
	struct layout_gpus gpus; // runs that stand there once for each GPU
	struct digest *published; // [n_published]
	size_t n_published;
	struct run_label *labels; // of those
	char **texts; // [n_texts] that labels point to
	size_t n_texts;
	const char *rows[LAYOUT_LABELS + 1];
	const char *columns[LAYOUT_LABELS];
	struct pivot_value values[LAYOUT_VALUES];
	double *numbers; // [n_runs] of the first value, where the layout changes it
	const char **reasons; // [n_runs] why there is none
	struct pivot_request request;
	struct pivot pivot;
};

// beside: what the document published stands beside the runs, if it gives numbers. Notes are added
// to the selection's. 0, -ENOMEM, -EBADMSG.
int layout_pivot(const struct layout *l, struct layout_selection *s, bool beside,
	struct layout_pivot *ret, struct error *e);
void layout_pivot_done(struct layout_pivot *p);

// A series layout as a figure; the caller's. NULL: out of memory.
struct figure_page *layout_pivot_figure(const struct layout_pivot *p, struct layout_selection *s);

// Published ---------------------------------------------------------------------------------------
//
// The numbers that documents published (data/published), which stand beside one's own.

struct published_file {
	const char *name; // "torres2021_training_time"
	const char *text; // comma-separated, with a line of names
};

extern const struct published_file published_files[];
extern const size_t n_published_files;

struct published {
	char *text; // cut into fields
	char **fields; // [n_rows + 1][n_columns]; the first row is the names
	size_t n_columns;
	size_t n_rows; // without the names
};

// 0, -ENOENT for a name that is none, -EBADMSG where a row has another number of fields, -ENOMEM.
int published_read(const char *name, struct published *ret, struct error *e);
void published_done(struct published *p);
// NULL where there is no such column.
const char *published_field(const struct published *p, size_t row, const char *column);
// NAN where it is empty.
double published_number(const struct published *p, size_t row, const char *column);
