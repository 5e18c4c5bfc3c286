// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tables of iterations and phases for `strain show`, for people and as JSON.

#pragma once

#include "analyze/analysis.h"
#include "render/table.h"

// Each builds a table: 0 or -ENOMEM. Without rows where nothing was marked.
int iteration_table_build(const struct analysis *a, struct table **ret); // one row
int phase_table_build(const struct analysis *a, struct table **ret);
int worker_table_build(const struct analysis *a, struct table **ret);
int slowest_table_build(const struct analysis *a, size_t limit, struct table **ret);
// Columns are the phases of this run, so it owns them.
struct epoch_phase_table {
	struct table *table;
	struct column *columns;
};
int epoch_phase_table_build(const struct analysis *a, struct epoch_phase_table *ret);
void epoch_phase_table_done(struct epoch_phase_table *t);

// What stands in no table: sets "iterations", "phases", "phases_by_epoch", "workers", "ranks",
// "spans" and "slowest_iterations". 0, or -1: out of memory.
int show_phases_json(struct json_t *json, const struct analysis *a);
