// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Missing measurements grouped by reason, and the events of the run.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct metric_list;
struct reader;

struct missing_group {
	char *kind; // of the entities: "gpu"
	char *reason; // escape it
	char **metrics; // names, [n_metrics]: escape them
	size_t n_metrics;
	size_t entities; // number of entities without it; 0: all of the kind
	bool to_the_end; // until the end of the run
};

struct missing_list {
	struct missing_group
		*items; // groups that are missing to the end first, then by number of metrics
	size_t n;
	size_t capacity;
};

int missing_list_load(struct reader *r, struct missing_list *ret, struct error *e);
void missing_list_done(struct missing_list *list);
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
struct part_missing {
	const char *what; // "marks"
	const char *reason; // from the run: escape it
	bool phases; // phases could have come from it
};
#define PARTS_MAX 3
// Returns the number of missing parts. A reason that all parts share is returned once. Strings are
// borrowed from the reader.
size_t notes_parts_missing(struct reader *r, struct part_missing ret[PARTS_MAX]);

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

int event_list_load(struct reader *r, struct event_list *ret, struct error *e);
void event_list_done(struct event_list *list);
