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
#include "runfile/labels.h"
#include "study/catalogue.h"
#include "study/pivot.h"

#define LAYOUT_LABELS 4
#define LAYOUT_VALUES 5

enum layout_kind {
	LAYOUT_TABLE, // a cell for each row and column, with one or a few values
	LAYOUT_BEST, // the same; the cell is the label `best` of the runs with the least value
	LAYOUT_SERIES, // a panel for each value, over rows[0], a series for each key of columns[0]
	LAYOUT_EPOCHS, // the time of each epoch by its number
	LAYOUT_RUNS, // a run of each machine over time: memory, PCIe, utilisation
	LAYOUT_MEMORY, // host and device memory over time, a line for each of rows[0]
	LAYOUT_GPU, // GPU utilisation over time, a line for each of rows[0]
	LAYOUT_PUBLISHED, // facts of the document, which no run contains
	LAYOUT_WAITS, // not possible yet
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
	const char *instead; // used, with a note, if no run has the measure; NULL: none
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
	const char *row_instead; // instead of rows[0] if no run has it
	const char *columns[LAYOUT_LABELS];
	struct layout_value values[LAYOUT_VALUES];
	enum layout_change change;
	struct {
		const char *label, *from, *to;
	} ratio; // CHANGE_RATIO
	const char *best; // LAYOUT_BEST: a label
	bool bars;
	bool each_gpu; // a line for each GPU instead of columns[0], for jobs on several GPUs
	const char *published; // name of a table in data/published; NULL: none
	struct layout_filter published_only; // use only rows with this value
	const char *said; // the document's statement, where it gives no numbers; NULL
	const char *note; // a difference to the document; NULL
	const char *waits; // LAYOUT_WAITS: what is missing
};

struct document {
	const char *prefix; // of the names of its layouts: "torres2021"
	const char *source; // for citation: "Torres, Barrios and Denneulin 2021"
	const char *plan; // path of the plan that makes its runs; NULL: none yet
	const char *advice; // path of the script that makes answers of `strain advise`; NULL: none
};

extern const struct document documents[];
extern const size_t n_documents;
extern const struct layout layouts[];
extern const size_t n_layouts;

// NULL: there is no layout of that name.
const struct layout *layout_by_name(const char *name);
static inline bool layout_is_figure(const struct layout *l)
{
	return l->kind >= LAYOUT_SERIES && l->kind <= LAYOUT_GPU;
}

// Figures over time or epochs, with a column for each machine.
static inline bool layout_is_timeline(const struct layout *l)
{
	return layout_is_figure(l) && l->kind != LAYOUT_SERIES;
}

// Whether it shows answers of `strain advise`: its measures are theirs.
bool layout_is_of_advice(const struct layout *l);

// Layout select -----------------------------------------------------------------------------------
//
// The runs that a layout shows, and notes on the selection.

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

// Runs without the label of a filter stay if no run has it; a note says so. -ENOENT with one line
// if no run is left.
int layout_select(const struct layout *l, const struct digest *const *runs, size_t n,
	struct layout_selection *ret, struct error *e);
void layout_selection_done(struct layout_selection *s);

// Layout gpus -------------------------------------------------------------------------------------
//
// For layouts with a line for each GPU: runs on several GPUs, repeated for each GPU.

#define LAYOUT_LABEL_GPU "gpu" // "GPU 0 of 2"

struct layout_gpus {
	struct digest *copies; // [n] each with the measure of one GPU, and a label for it
	size_t n;
	size_t n_runs; // number of runs that were copied
};

// Layout pivot ------------------------------------------------------------------------------------
//
// Layouts of numbers as pivots, for tables and figures.

struct figure_page;

// The pivot, and the memory that it borrows.
struct layout_pivot {
	const struct layout *layout;
	const struct digest **runs; // [n_runs] the selection's, then published ones
	const char **sources; // [n_runs]
	size_t n_runs;
	struct layout_gpus gpus; // copies of runs on several GPUs
	struct digest *published; // [n_published]
	size_t n_published;
	struct run_label *labels; // of the published runs
	char **texts; // [n_texts] strings of `labels`
	size_t n_texts;
	const char *rows[LAYOUT_LABELS + 1];
	const char *columns[LAYOUT_LABELS];
	struct pivot_value values[LAYOUT_VALUES];
	double *numbers; // [n_runs] the first value, if the layout computes it from several runs
	const char **reasons; // [n_runs] why a number is missing
	struct pivot_request request;
	struct pivot pivot;
};

// beside: adds the published numbers as runs, if there are any. Adds to the notes of the selection.
// 0, -ENOMEM, -EBADMSG.
int layout_pivot(const struct layout *l, struct layout_selection *s, bool beside,
	struct layout_pivot *ret, struct error *e);
void layout_pivot_done(struct layout_pivot *p);

// A series layout as a figure, owned by the caller. NULL: out of memory.
struct figure_page *layout_pivot_figure(const struct layout_pivot *p, struct layout_selection *s);

// Published ---------------------------------------------------------------------------------------
//
// Numbers that documents published (data/published).

struct published_file {
	const char *name; // "torres2021_training_time"
	const char *text; // comma-separated values; the first line has the names
};

extern const struct published_file published_files[];
extern const size_t n_published_files;

struct published {
	char *text; // owned; holds the fields
	char **fields; // [n_rows + 1][n_columns]; the first row is the names
	size_t n_columns;
	size_t n_rows; // not counting the names
};

// 0, -ENOENT: unknown name, -EBADMSG: a row with another number of fields, -ENOMEM.
int published_read(const char *name, struct published *ret, struct error *e);
void published_done(struct published *p);
// NULL: there is no such column.
const char *published_field(const struct published *p, size_t row, const char *column);
// NAN: the field is empty or not a number.
double published_number(const struct published *p, size_t row, const char *column);
