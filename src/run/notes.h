// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What was not measured and why, grouped by reason; and what happened to the run.

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
	size_t entities; // how many it is missing for; 0: for all of the kind
	bool to_the_end; // not for a while only
};

struct missing_list {
	struct missing_group
		*items; // what is missing to the end first, then the most metrics first
	size_t n;
	size_t capacity;
};

int missing_list_load(struct reader *r, struct missing_list *ret, struct error *e);
void missing_list_done(struct missing_list *list);
// "GPU power", "disk", "pressure": what a group of metrics is, in few words.
void missing_list_append_subject(
	struct text *t, const struct metric_list *metrics, const struct missing_group *group);
// The subjects of every group with the reason of list->items[index]. False, and nothing appended,
// where an earlier group has that reason.
bool missing_list_append_subjects(struct text *t, const struct metric_list *metrics,
	const struct missing_list *list, size_t index);
// The reason without what would make it available (the part after "; ").
void missing_list_append_reason(struct text *t, const struct missing_group *group);

// What was off in the whole run: its marks, or what marks by itself.
struct part_missing {
	const char *what; // "marks"
	const char *reason; // from the run: escape it
	bool phases; // could have come from it
};
#define PARTS_MAX 3
// Returns how many, a reason that all share only once; borrowed from the reader.
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
	int64_t total; // how many the file holds
};

#define EVENT_LIST_MAX 10000

int event_list_load(struct reader *r, struct event_list *ret, struct error *e);
void event_list_done(struct event_list *list);
