// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain compare --layout NAME: the tables and figures of documents (layout.h).

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "analyze/catalogue.h"
#include "render/pivot_write.h"

struct compare_layout {
	const char *name; // "list": all of them; NULL: no layout was asked for
	const char *beside; // "published"; NULL
	const char *keep_directory; // for a figure's script; NULL
	const char *output; // NULL or "-": standard output
};

// Each an exit status. What is wrong with the options is said before any run is read.
int compare_layout_check(const struct compare_layout *l);
// Whether the output is a figure, and no text.
bool compare_layout_draws(const struct compare_layout *l);
// Whether runs have to be read for it.
bool compare_layout_needs_runs(const struct compare_layout *l);
int compare_layout_show(const struct compare_layout *l, const struct catalogue_run *const *runs,
	size_t n_runs, enum pivot_format format);
