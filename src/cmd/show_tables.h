// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The tables of `strain show`, for people and as JSON.

#pragma once

#include "analyze/analysis.h"
#include "analyze/code_time.h"
#include "render/table.h"

// An epoch's table has columns of the job's own (loss=...), so it owns its columns.
struct epoch_table {
	struct table *table;
	struct column *columns;
};
int epoch_table_build(const struct analysis *a, struct epoch_table *ret);
void epoch_table_done(struct epoch_table *t);

// Each builds a table: 0 or -ENOMEM.
int process_table_build(const struct analysis *a, struct table **ret); // every process
// At most `limit` rows; workers that followed each other share one. *ret_rest: how many processes
// are in no row, and their CPU time.
struct process_rest {
	size_t n;
	double cpu_seconds;
};
int process_table_build_short(
	const struct analysis *a, size_t limit, struct table **ret, struct process_rest *ret_rest);
int gpu_table_build(const struct analysis *a, struct table **ret);
int device_table_build(const struct analysis *a, struct table **ret);
// What the first threads of processes waited for, of those at which there were looks, over their
// lives. Short: at most `limit` rows, of processes with more than `least` looks, and, where
// `training` is set, only of those that train or prepare batches.
// Functions that CPU time went into, of each kind of thread those with the most samples.
int code_table_build(const struct analysis *a, struct table **ret);
int wait_table_build(const struct analysis *a, struct table **ret);
int wait_table_build_short(
	const struct analysis *a, bool training, size_t limit, double least, struct table **ret);
// Samples of CPU time by role, then by phase: shares of all, and of those by phase.
int code_time_table_build(const struct code_time *time, struct table **ret);
// Threads of the process that trains, by what they are for, over the steady iterations. A row for
// each group that there was; short: that used CPU time.
int thread_table_build(const struct analysis *a, struct table **ret);
int thread_table_build_short(const struct analysis *a, struct table **ret);
int evidence_table_build(const struct analysis *a, struct table **ret);
// Without the anchors of the wall clock, which are for programs that align runs, and, in a table,
// what the job printed.
size_t event_count_shown(const struct analysis *a);
int event_table_build(const struct analysis *a, size_t limit, bool output, struct table **ret);
int missing_table_build(const struct analysis *a, struct table **ret);
