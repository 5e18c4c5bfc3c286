// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The entity and metric tables of a run, in memory. All strings come from the job or from a file:
// escape them.

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
	int64_t last_ns; // the end of the run if it lasted until then
	bool ended; // it ended before the run did
	struct json_t *attributes; // a JSON object, maybe empty
};

struct entity_list {
	struct entity *items; // sorted by id
	size_t n;
	size_t capacity;
};

// Leaves out kinds that this version does not know. job_only: loads host and job only.
int entity_list_load(struct reader *r, bool job_only, struct entity_list *ret, struct error *e);
void entity_list_done(struct entity_list *list);
// NULL: there is none.
const struct entity *entity_find(const struct entity_list *list, int64_t id);
const struct entity *entity_first(const struct entity_list *list, enum entity_kind kind);
// An attribute as a number; NAN: it has none.
double entity_number(const struct entity *entity, const char *attribute);
// Whether an attribute is true.
bool entity_flag(const struct entity *entity, const char *attribute);
// An attribute as text, which lives as long as the entity: escape it. NULL: it has none.
const char *entity_text(const struct entity *entity, const char *attribute);
// The command line of a JSON array of arguments, quoted for a shell; "" for none. Owned by the
// caller; NULL: out of memory.
char *entity_command(const struct entity *entity);
char *entity_command_line(const char *json);
// False: `name` is not a kind.
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

// The description of the metric: that of the file, else that of this version; "" if neither has
// one. Lives as long as the metric.
const char *metric_row_help(const struct metric_row *metric);

int metric_list_load(struct reader *r, struct metric_list *ret, struct error *e);
void metric_list_done(struct metric_list *list);
const struct metric_row *metric_list_find(const struct metric_list *list, uint32_t id);
const struct metric_row *metric_list_find_name(
	const struct metric_list *list, enum entity_kind kind, const char *name);
