// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A run's tables in memory: entities and metrics, the figures of its summary, missing data and
// events. Everything else about a run is computed from these and from its blocks.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "run/entities.h"
#include "run/epochs.h"
#include "run/summary.h"
#include "runfile/reader.h"

struct missing_group {
	char *kind; // of the entities: "gpu"
	char *reason; // escape it
	char **metrics; // names, [n_metrics]: escape them
	size_t n_metrics;
	size_t entities; // number of entities without it; 0: all of the kind
	bool to_the_end; // until the end of the run
	bool broke_off; // one of the metrics had values before
};

struct missing_list {
	struct missing_group
		*items; // groups that are missing to the end first, then by number of metrics
	size_t n;
	size_t capacity;
};

// Appends the subject of a group of metrics in a few words: "GPU power", "disk", "pressure".
void missing_list_append_subject(
	struct text *t, const struct metric_list *metrics, const struct missing_group *group);
// Appends the subjects of all groups with the reason of list->items[index]. False, appending
// nothing, if an earlier group has that reason.
bool missing_list_append_subjects(struct text *t, const struct metric_list *metrics,
	const struct missing_list *list, size_t index);
// The reason without the remedy (the part after "; ").
void missing_list_append_reason(struct text *t, const struct missing_group *group);

// Marks or hooks that were missing in the whole run.
struct missing_marker {
	const char *what; // "marks"
	const char *reason; // from the run: escape it
	bool phases; // phases could have come from it
};
#define MISSING_MARKERS_MAX 3
// Returns their number. A reason that all share is returned once. Strings are
// borrowed from the reader.
size_t tables_missing_markers(struct reader *r, struct missing_marker ret[MISSING_MARKERS_MAX]);

struct event_row {
	double t_s;
	char *kind; // "oom_kill", "throttled", ...: escape it
	int64_t entity; // 0 for none
	char *text; // escape it
};

struct event_list {
	struct event_row *items; // in order of time; at most EVENT_LIST_MAX
	size_t n;
	size_t capacity;
	int64_t total; // number of events in the file
};

#define EVENT_LIST_MAX 10000

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
// Whether readings of a metric end before the run does, for a reason that it holds.
bool tables_breaks_off(const struct run_tables *t, int64_t entity, const char *metric);
double tables_epoch_figure(const struct run_tables *t, int64_t entity, const char *metric,
	int64_t epoch, enum figure figure);
