// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run on the terminal.

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "analyze/analysis.h"

// all: every process and event instead of the first few. 0 or -errno.
int show_text(const struct analysis *a, bool all, FILE *stream);
