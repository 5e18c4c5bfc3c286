// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tables of a sweep: its trials, and its results.

#pragma once

#include <stdbool.h>
#include <stdio.h>

struct results;
struct sweep;
struct text;

// Appends "40 trials of 20 configurations (16 excluded by constraints), 12 complete, into
// plan.sweep".
void sweep_tables_append_counts(struct text *t, const struct sweep *sweep);
// Prints what there is to do, and the trials in their order. Returns 0 or -errno.
int sweep_tables_trials(const struct sweep *sweep, bool json, FILE *stream);
// Prints the results, the outcomes of failed trials, and commands for further analysis. Returns 0
// or -errno.
int sweep_tables_results(const struct results *r, bool json, FILE *stream);
