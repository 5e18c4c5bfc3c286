// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a run measured, and about what: its entity and metric tables in memory. Everything in them
// comes from the job or from a file: never trusted, never printed unescaped.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "runfile/metric.h"

struct reader;

struct entity {
	int64_t id;
	enum entity_kind kind;
	char *key; // "pid:start", GPU uuid, device name
	char *name;
	int64_t parent; // id; 0 for none
	int64_t first_ns;
	int64_t last_ns; // the run's end where it was there to the end
	bool ended; // it was gone before the run ended
	struct json_t *attributes; // jansson's; an object, empty where the file held none
};

struct entity_list {
	struct entity *items; // sorted by id
	size_t n;
	size_t capacity;
};

// Kinds that this version does not know are left out. job_only: host and job, nothing else.
int entity_list_load(struct reader *r, bool job_only, struct entity_list *ret, struct error *e);
void entity_list_done(struct entity_list *list);
// NULL where there is none.
const struct entity *entity_find(const struct entity_list *list, int64_t id);
const struct entity *entity_first(const struct entity_list *list, enum entity_kind kind);
// An attribute as a number; NAN where it is not there.
double entity_number(const struct entity *entity, const char *attribute);
// Whether an attribute is true.
bool entity_flag(const struct entity *entity, const char *attribute);
// A command line for people: its arguments (a JSON array) with blanks between, quoted where they
// need it; "" where there is none. Owned by the caller; NULL: out of memory.
char *entity_command(const struct entity *entity);
char *entity_command_line(const char *json);
// false where `name` is no kind.
bool entity_kind_parse(const char *name, enum entity_kind *ret);

struct metric_row {
	uint32_t id;
	char *name;
	enum entity_kind entity_kind;
	enum metric_kind kind;
	char *unit;
	double scale;
	char *source;
	char *help; // "" in most files: metric_row_help
};

struct metric_list {
	struct metric_row *items; // sorted by id
	size_t n;
	size_t capacity;
};

// What the metric is, for people: the file's own words where it has any, else those that this
// version knows; "" where it knows none. Lives with the metric.
const char *metric_row_help(const struct metric_row *metric);

int metric_list_load(struct reader *r, struct metric_list *ret, struct error *e);
void metric_list_done(struct metric_list *list);
const struct metric_row *metric_list_find(const struct metric_list *list, uint32_t id);
const struct metric_row *metric_list_find_name(
	const struct metric_list *list, enum entity_kind kind, const char *name);
