// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run's tables in memory: entities and metrics, the figures of its summary, missing data and
// events. Everything else about a run is computed from these and from its blocks.

#pragma once

#include <stdint.h>

#include "base/error.h"
#include "run/entities.h"
#include "run/epochs.h"
#include "run/notes.h"
#include "run/summary.h"
#include "runfile/reader.h"

struct run_tables {
	struct reader *reader; // borrowed; outlives the tables
	struct entity_list entities;
	struct metric_list metrics;
	struct epoch_list epochs;
	struct summary summary;
	struct missing_list missing;
	struct event_list events;
};

// Reads as much as possible of a live, cut-off or damaged run. *ret_damage is the first table that
// could not be read; code 0: none. Returns 0 or -ENOMEM.
int tables_load(struct reader *r, struct run_tables *ret, struct error *ret_damage);
// Reads only entities, metrics and summary of host and job.
int tables_load_job(struct reader *r, struct run_tables *ret, struct error *ret_damage);
void tables_done(struct run_tables *t);

// The first entity of a kind; 0: there is none.
int64_t tables_first(const struct run_tables *t, enum entity_kind kind);
// A figure of the whole run, by the metric's name; NAN: there is none.
double tables_figure(
	const struct run_tables *t, int64_t entity, const char *metric, enum figure figure);
double tables_epoch_figure(const struct run_tables *t, int64_t entity, const char *metric,
	int64_t epoch, enum figure figure);
