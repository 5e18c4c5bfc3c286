// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What was not measured and why, grouped by reason; and what happened to the run.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct reader;
struct entity_list;
struct metric_list;

struct missing_group {
	char *subject; // "hw.gpu.power", "3 metrics of processes" ...: escape it
	char *reason; // escape it
	char **metrics; // names, [n_metrics]
	size_t n_metrics;
	size_t entities; // how many it is missing for; 0: for all of the kind
};

struct missing_list {
	struct missing_group *items; // the most metrics first
	size_t n;
	size_t capacity;
};

int missing_list_load(struct reader *r, struct missing_list *ret, struct error *e);
void missing_list_done(struct missing_list *list);

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
