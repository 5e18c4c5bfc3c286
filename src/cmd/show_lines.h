// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The lines of the script that the process that trains was in, as a table.

#pragma once

#include <stddef.h>

struct analysis;
struct table;

// The most frequent ones, at most as many as LINE_SHARES_MOST; no row where nobody looked. 0 or
// -ENOMEM.
int line_table_build(const struct analysis *a, struct table **ret);
// The first ten.
int line_table_build_short(const struct analysis *a, struct table **ret);
