// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain compare --figure KIND: a pivot, or runs over time, as a figure in a file.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "render/pivot.h"

struct compare_figure {
	const char *kind; // "scaling", ...; NULL: no figure was asked for
	const char *output; // NULL: none was given
	const char *keep_directory; // for the script; NULL
};

// An exit status. What is wrong with the options is said before any run is read.
int compare_figure_check(const struct compare_figure *f);
// Whether it shows runs over time, and needs no pivot.
bool compare_figure_is_of_runs(const struct compare_figure *f);
// 0, or -errno with one line.
int compare_figure_of_pivot(const struct compare_figure *f, const struct pivot *p, struct error *e);
int compare_figure_of_runs(const struct compare_figure *f, const struct catalogue_run *const *runs,
	size_t n, struct error *e);
