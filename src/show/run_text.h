// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Prints a run as text: the output of `strain show`.

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "run/analysis.h"

struct digest;
struct prices;

struct show_text_options {
	bool all; // every process and event instead of the first few; includes `iterations`
	bool iterations; // phases of each epoch, every worker, the slowest iterations
	const struct prices *prices; // NULL: no price list
	const struct digest *priced; // the run with the measures of the price list; NULL: none
};

// 0 or -errno.
int run_text_print(const struct analysis *a, const struct show_text_options *options, FILE *stream);
