// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The page of a sweep, or of all runs of directories, for `strain report`.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

// Whether what is to be shown is such a page: a directory is among it.
bool report_is_sweep(char *const *paths, size_t n_paths);

// Writes it; says on standard error what could not be read. *ret_n runs of *ret_of are on it.
// `output` is the page's path, NULL where it has none. 0 or -errno: nothing was written where no
// run can be read.
int report_sweep_write(FILE *out, char *const *paths, size_t n_paths, const char *output,
	size_t *ret_n, size_t *ret_of, struct error *e);
