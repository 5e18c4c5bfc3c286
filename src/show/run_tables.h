// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The tables of `strain show`, for people and as JSON.

#pragma once

#include <stddef.h>

#include "run/analysis.h"
#include "run/code_time.h"
#include "show/table.h"

// The columns of an epoch's table depend on the job (loss=...), so the table owns them.
struct epoch_table {
	struct table *table;
	struct column *columns;
};
int epoch_table_build(const struct analysis *a, struct epoch_table *ret);
void epoch_table_done(struct epoch_table *t);

// Each builds a table. Returns 0 or -ENOMEM.
int run_table_processes(const struct analysis *a, struct table **ret); // every process
// At most `limit` rows; workers that ran one after the other share a row. *ret_rest: the number and
// CPU time of processes without a row.
struct process_rest {
	size_t n;
	double cpu_seconds;
};
int run_table_processes_short(
	const struct analysis *a, size_t limit, struct table **ret, struct process_rest *ret_rest);
int run_table_gpus(const struct analysis *a, struct table **ret);
int run_table_devices(const struct analysis *a, struct table **ret);
// Functions by samples of CPU time: for each kind of thread, those with the most.
int run_table_code(const struct analysis *a, struct table **ret);
// Waits of the first threads of processes over their lives, for processes with wait samples.
int run_table_waits(const struct analysis *a, struct table **ret);
// The same of processes that train or prepare batches, if their samples are enough for shares.
int run_table_training_waits(const struct analysis *a, struct table **ret);
// Samples of CPU time by role, then by phase: shares of all samples, and of those with a phase.
int code_time_table_build(const struct code_time *time, struct table **ret);
// Threads of the training process by purpose, over the steady iterations. A row for each group that
// occurred.
int run_table_threads(const struct analysis *a, struct table **ret);
// without: values that have been said elsewhere, up to NULL; NULL: none.
int run_table_evidence(const struct analysis *a, const char *const *without, struct table **ret);
// Events without wall-clock anchors, which are for programs that align runs. Without `output`, also
// without the job's output.
size_t run_table_events_shown(const struct analysis *a);
int run_table_events(const struct analysis *a, size_t limit, bool output, struct table **ret);
int run_table_missing(const struct analysis *a, struct table **ret);

// Show phases -------------------------------------------------------------------------------------
//
// Tables of iterations and phases for `strain show`, for people and as JSON.

// Each builds a table, without rows if nothing was marked. Returns 0 or -ENOMEM.
int run_table_iterations(const struct analysis *a, struct table **ret); // one row
int run_table_phases(const struct analysis *a, struct table **ret);
int run_table_workers(const struct analysis *a, struct table **ret);
int run_table_slowest(const struct analysis *a, size_t limit, struct table **ret);
// The columns are the phases of the run, so the table owns them.
struct epoch_phase_table {
	struct table *table;
	struct column *columns;
};
int epoch_phase_table_build(const struct analysis *a, struct epoch_phase_table *ret);
void epoch_phase_table_done(struct epoch_phase_table *t);

// Sets the parts that are not tables: "iterations", "phases", "phases_by_epoch", "workers",
// "ranks", "spans" and "slowest_iterations". Returns 0, or -1: out of memory.
int run_table_phases_json(struct json_t *json, const struct analysis *a);

// Show ranks --------------------------------------------------------------------------------------
//
// The ranks of a run for `strain show`: which processes train together, and which waits for which.

// By number; of more than `limit`, the slowest. No rows for fewer than two ranks. Returns 0 or
// -ENOMEM.
int run_table_ranks(const struct analysis *a, size_t limit, struct table **ret);
// Appends which of several ranks the figures of the run belong to: "1, whose epochs are the run's;
// all 2 ranks together 1,182 samples/s". Nothing for a single rank.
void run_table_append_rank(struct text *t, const struct analysis *a);

// Show spans --------------------------------------------------------------------------------------
//
// The spans that a job's author named, for `strain show`.

// The longest spans, at most `limit`, and their parents; each after its parent. Returns 0 or
// -ENOMEM.
int run_table_spans(const struct analysis *a, size_t limit, struct table **ret);

// Show lines --------------------------------------------------------------------------------------
//
// The lines of the script in which the training process and the loader workers were seen.

struct analysis;
struct table;

// The most frequent lines, at most 20 for each role, with shares of the looks at that
// role; no rows without samples. Returns 0 or -ENOMEM.
int run_table_lines(const struct analysis *a, struct table **ret);
