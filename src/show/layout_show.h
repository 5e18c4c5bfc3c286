// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Prints or draws a table or figure of a study (study/layout.h).

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "show/pivot_write.h"
#include "show/table.h"
#include "study/digest.h"

struct layout_request {
	const char *name; // of the layout; "list": all of them
	const struct digest *const *runs; // [n_runs]
	size_t n_runs;
	bool beside_published;
	enum pivot_format format; // of what is printed
	FILE *stream;
	void (*note)(const char *line); // prints a note beside formats that have no room for it
	const struct table_style *style;
	const char *figure; // file to draw into, by its ending; NULL: print
	const char *keep_directory; // see figure_write; NULL
};

// Whether there is such a layout, before any run is read: 0, or -EINVAL with one line.
int layout_show_check(const char *name, bool to_figure, struct error *e);
// Whether it needs runs at all.
bool layout_show_needs_runs(const char *name);
// Whether it shows answers of `strain advise`, also of folders inside of directories.
bool layout_show_needs_advice(const char *name);
// 0, or -errno with one line.
int layout_show(const struct layout_request *q, struct error *e);
