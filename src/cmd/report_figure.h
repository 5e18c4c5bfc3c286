// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// strain report RUN... -o FILE.pdf|svg|png: runs beside each other, as a paper shows them.

#pragma once

#include <stddef.h>

// Draws the runs that can be read; the others are said. keep_directory: also the script, NULL: not.
// An exit status.
int report_figure(const char *output, const char *keep_directory, char *const *runs, size_t n_runs);
