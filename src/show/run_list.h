// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A list of the runs of a directory, its sweeps, its folders of `strain advise`, and its jobs whose
// ranks each have a run, a line each.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "run/measures.h"

struct catalogue;
struct selection;

struct run_list {
	struct listed *items; // [n] the lines
	size_t n;
};

// Fills the list with the selected runs of a catalogue, which must outlive it. Runs in a sweep or
// an answer below `directory` are one line. jobs: the ranks of a job are one line, too. Returns 0
// or -ENOMEM.
int run_list_fill(struct run_list *l, const struct catalogue *c, const struct selection *selection,
	const char *directory, bool jobs);
void run_list_done(struct run_list *l);

// Keys are start, duration, name, cpu, memory, a label, or a measure. Whether a key exists: it may
// be mistyped.
bool run_list_is_key(const struct run_list *l, const char *key);
// Whether the ranks of a job can be one line in the order of this key: they have a start together,
// but no label and no verdict.
bool run_list_folds(const char *key);
// The measure of a key; N_MEASURES: another key.
enum measure_id run_list_measure(const char *key);
void run_list_sort(struct run_list *l, const char *key, bool reverse);

// Prints the lines, with a column for the measure (N_MEASURES: none). Returns 0 or -errno.
int run_list_print(const struct run_list *l, enum measure_id measure, bool json, FILE *stream);
