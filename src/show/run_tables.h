// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The tables of `strain show`, for people and as JSON.

#pragma once

#include <stddef.h>

#include "run/analysis.h"
#include "run/code_time.h"
#include "show/table.h"

// An epoch's table has columns of the job's own (loss=...), so it owns its columns.
struct epoch_table {
	struct table *table;
	struct column *columns;
};
int epoch_table_build(const struct analysis *a, struct epoch_table *ret);
void epoch_table_done(struct epoch_table *t);

// Each builds a table: 0 or -ENOMEM.
int run_table_processes(const struct analysis *a, struct table **ret); // every process
// At most `limit` rows; workers that followed each other share one. *ret_rest: how many processes
// are in no row, and their CPU time.
struct process_rest {
	size_t n;
	double cpu_seconds;
};
int run_table_processes_short(
	const struct analysis *a, size_t limit, struct table **ret, struct process_rest *ret_rest);
int run_table_gpus(const struct analysis *a, struct table **ret);
int run_table_devices(const struct analysis *a, struct table **ret);
// What the first threads of processes waited for, of those at which there were looks, over their
// lives. Short: at most `limit` rows, of processes with more than `least` looks, and, where
// `training` is set, only of those that train or prepare batches.
// Functions that CPU time went into, of each kind of thread those with the most samples.
int run_table_code(const struct analysis *a, struct table **ret);
int run_table_waits(const struct analysis *a, struct table **ret);
int run_table_waits_short(
	const struct analysis *a, bool training, size_t limit, double least, struct table **ret);
// Samples of CPU time by role, then by phase: shares of all, and of those by phase.
int code_time_table_build(const struct code_time *time, struct table **ret);
// Threads of the process that trains, by what they are for, over the steady iterations. A row for
// each group that there was; short: that used CPU time.
int run_table_threads(const struct analysis *a, struct table **ret);
int run_table_threads_short(const struct analysis *a, struct table **ret);
int run_table_evidence(const struct analysis *a, struct table **ret);
// Without the anchors of the wall clock, which are for programs that align runs, and, in a table,
// what the job printed.
size_t run_table_events_shown(const struct analysis *a);
int run_table_events(const struct analysis *a, size_t limit, bool output, struct table **ret);
int run_table_missing(const struct analysis *a, struct table **ret);

// Show phases -------------------------------------------------------------------------------------
//
// Tables of iterations and phases for `strain show`, for people and as JSON.

// Each builds a table: 0 or -ENOMEM. Without rows where nothing was marked.
int run_table_iterations(const struct analysis *a, struct table **ret); // one row
int run_table_phases(const struct analysis *a, struct table **ret);
int run_table_workers(const struct analysis *a, struct table **ret);
int run_table_slowest(const struct analysis *a, size_t limit, struct table **ret);
// Columns are the phases of this run, so it owns them.
struct epoch_phase_table {
	struct table *table;
	struct column *columns;
};
int epoch_phase_table_build(const struct analysis *a, struct epoch_phase_table *ret);
void epoch_phase_table_done(struct epoch_phase_table *t);

// What stands in no table: sets "iterations", "phases", "phases_by_epoch", "workers", "ranks",
// "spans" and "slowest_iterations". 0, or -1: out of memory.
int run_table_phases_json(struct json_t *json, const struct analysis *a);

// Show ranks --------------------------------------------------------------------------------------
//
// The ranks of a run for `strain show`: who trains beside whom, and who waits for whom.

// By number; of more than `limit` the slowest. Without rows where there is one rank or none. 0 or
// -ENOMEM.
int run_table_ranks(const struct analysis *a, size_t limit, struct table **ret);
// "1, whose epochs are the run's; all 2 ranks together 1,182 samples/s": of which of several ranks
// the run's figures are; nothing where there is one.
void run_table_append_rank(struct text *t, const struct phases *p);

// Show spans --------------------------------------------------------------------------------------
//
// The spans that a job's author named, for `strain show`.

// Those that took the longest, at most `limit`, and what holds them; each behind the one that holds
// it. 0 or -ENOMEM.
int run_table_spans(const struct analysis *a, size_t limit, struct table **ret);

// Show lines --------------------------------------------------------------------------------------
//
// The lines of the script that the process that trains was in, as a table.

struct analysis;
struct table;

// The most frequent ones, at most as many as LINE_SHARES_MOST; no row where nobody looked. 0 or
// -ENOMEM.
int run_table_lines(const struct analysis *a, struct table **ret);
// The first ten.
int run_table_lines_short(const struct analysis *a, struct table **ret);
