// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Several runs beside each other in a figure: in which order, and what each is called.

#pragma once

#include <stddef.h>

#include "analyze/catalogue.h"
#include "base/text.h"

// Into ret, [n]: by the labels in which they differ, words first, then numbers. Runs that agree
// stay as they are.
void compare_lines_sort(
	const struct catalogue_run **ret, const struct catalogue_run *const *runs, size_t n);
// What is this run's own: "pytorch batch size 32", or its name where labels do not tell it from
// another.
void compare_lines_append_name(
	struct text *t, const struct catalogue_run *const *runs, size_t n, size_t which);
