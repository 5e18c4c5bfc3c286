// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What runs beside each other differ in before anything is measured (arguments, commands, hosts,
// versions), and whether they are runs of one job at all.

#pragma once

#include <stddef.h>

#include "analyze/catalogue.h"
#include "render/pivot.h"

enum { CONTEXT_VALUES_MAX = 48 };

struct compare_context {
	struct pivot_value values[CONTEXT_VALUES_MAX]; // words: those in which runs differ
	size_t n_values;
	const char **words; // [CONTEXT_VALUES_MAX * n] what values point into
	char **owned; // [n_owned] what words point to
	size_t n_owned;
	char *unlike; // why the runs are of different jobs; NULL: they are not
};

// Reads it out of the files of the first 64 runs; what cannot be read is missing.
// outcomes: runs that ended differently are unlike, too. 0, -ENOMEM.
int compare_context_read(const struct catalogue_run *const *runs, size_t n, bool outcomes,
	struct compare_context *ret);
void compare_context_done(struct compare_context *c);
