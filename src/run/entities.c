// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The entity and metric tables in memory.

#include "run/entities.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "run/metric_help.h"
#include "run/query.h"
#include "runfile/reader.h"

bool entity_kind_parse(const char *name, enum entity_kind *ret)
{
	for (unsigned kind = 0; kind < N_ENTITY_KINDS; kind++) {
		if (strcmp(name, entity_kind_name((enum entity_kind)kind)) == 0) {
			*ret = (enum entity_kind)kind;
			return true;
		}
	}
	return false;
}

static bool metric_kind_parse(const char *name, enum metric_kind *ret)
{
	for (unsigned kind = METRIC_COUNTER; kind <= METRIC_STATE; kind++) {
		if (strcmp(name, metric_kind_name((enum metric_kind)kind)) == 0) {
			*ret = (enum metric_kind)kind;
			return true;
		}
	}
	return false;
}

static json_t *attributes_parse(const char *text)
{
	json_t *attributes = json_loads(text, 0, NULL);
	if (!json_is_object(attributes)) {
		json_decref(attributes);
		attributes = json_object();
	}
	return attributes;
}

static void entity_done(struct entity *entity)
{
	free(entity->key);
	free(entity->name);
	json_decref(entity->attributes);
}

static const char *column_string(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return text ? text : "";
}

struct entity_loader {
	struct entity_list *list;
	int64_t end_ns;
};

static int entity_add(void *context, sqlite3_stmt *row)
{
	struct entity_loader *loader = context;
	struct entity_list *list = loader->list;
	void *items = list->items;
	int r = array_reserve(&items, &list->capacity, list->n + 1, sizeof(*list->items));
	list->items = items;
	enum entity_kind kind;
	if (r < 0 || !entity_kind_parse(column_string(row, 1), &kind)) {
		return r;
	}
	bool ended = sqlite3_column_type(row, 6) != SQLITE_NULL;
	struct entity entity = {
		.id = sqlite3_column_int64(row, 0),
		.kind = kind,
		.key = query_text(row, 2),
		.name = query_text(row, 3),
		.parent = sqlite3_column_int64(row, 4),
		.first_ns = sqlite3_column_int64(row, 5),
		.last_ns = ended ? sqlite3_column_int64(row, 6) : loader->end_ns,
		.ended = ended,
		.attributes = attributes_parse(column_string(row, 7)),
	};
	if (!entity.key || !entity.name || !entity.attributes) {
		entity_done(&entity);
		return -ENOMEM;
	}
	list->items[list->n++] = entity;
	return 0;
}

#define SELECT_ENTITIES \
	"SELECT id, kind, key, name, parent, first_ns, last_ns, attributes FROM entity "

int entity_list_load(struct reader *r, bool job_only, struct entity_list *ret, struct error *e)
{
	struct entity_loader loader = {ret, reader_recorded_ns(r)};
	return query_each(r,
		job_only ? SELECT_ENTITIES "WHERE kind IN ('host', 'job') ORDER BY id"
			 : SELECT_ENTITIES "ORDER BY id",
		entity_add, &loader, e);
}

void entity_list_done(struct entity_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		entity_done(&list->items[i]);
	}
	free(list->items);
	*list = (struct entity_list){0};
}

static int entity_compare(const void *key, const void *item)
{
	int64_t id = *(const int64_t *)key;
	int64_t other = ((const struct entity *)item)->id;
	return (id > other) - (id < other);
}

const struct entity *entity_find(const struct entity_list *list, int64_t id)
{
	return list->n ? bsearch(&id, list->items, list->n, sizeof(*list->items), entity_compare)
	               : NULL;
}

const struct entity *entity_first(const struct entity_list *list, enum entity_kind kind)
{
	for (size_t i = 0; i < list->n; i++) {
		if (list->items[i].kind == kind) {
			return &list->items[i];
		}
	}
	return NULL;
}

double entity_number(const struct entity *entity, const char *attribute)
{
	const json_t *value = json_object_get(entity->attributes, attribute);
	return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *entity_text(const struct entity *entity, const char *attribute)
{
	return json_string_value(json_object_get(entity->attributes, attribute));
}

bool entity_flag(const struct entity *entity, const char *attribute)
{
	return json_is_true(json_object_get(entity->attributes, attribute));
}

static void append_argument(struct text *t, const char *argument)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "%+,-./:=@_^";
	if (*argument && argument[strspn(argument, plain)] == '\0') {
		text_append_string(t, argument);
		return;
	}
	text_append(t, "'", 1);
	for (; *argument; argument++) {
		text_append_string(t, *argument == '\'' ? "'\\''" : (char[]){*argument, '\0'});
	}
	text_append(t, "'", 1);
}

static char *command_join(const json_t *command)
{
	struct text line = {0};
	size_t i;
	json_t *argument;
	json_array_foreach(command, i, argument)
	{
		const char *text = json_string_value(argument);
		text_append(&line, " ", i > 0 ? 1 : 0);
		append_argument(&line, text ? text : "?");
	}
	if (json_is_string(command)) {
		text_append_string(&line, json_string_value(command));
	}
	return text_steal(&line);
}

char *entity_command(const struct entity *entity)
{
	return command_join(json_object_get(entity->attributes, "command"));
}

char *entity_command_line(const char *json)
{
	json_t *command = json_loads(json, JSON_DECODE_ANY, NULL);
	char *line = command ? command_join(command) : strdup(json);
	json_decref(command);
	return line;
}

static void metric_done(struct metric_row *metric)
{
	free(metric->name);
	free(metric->unit);
	free(metric->source);
	free(metric->help);
}

static int metric_add(void *context, sqlite3_stmt *row)
{
	struct metric_list *list = context;
	void *items = list->items;
	int r = array_reserve(&items, &list->capacity, list->n + 1, sizeof(*list->items));
	list->items = items;
	struct metric_row metric = {.id = (uint32_t)sqlite3_column_int64(row, 0)};
	if (r < 0 || !entity_kind_parse(column_string(row, 2), &metric.entity_kind) ||
		!metric_kind_parse(column_string(row, 3), &metric.kind)) {
		return r;
	}
	metric.name = query_text(row, 1);
	metric.unit = query_text(row, 4);
	metric.scale = sqlite3_column_double(row, 5);
	metric.source = query_text(row, 6);
	metric.help = query_text(row, 7);
	if (!metric.name || !metric.unit || !metric.source || !metric.help) {
		metric_done(&metric);
		return -ENOMEM;
	}
	list->items[list->n++] = metric;
	return 0;
}

const char *metric_row_help(const struct metric_row *metric)
{
	const char *kind = entity_kind_name(metric->entity_kind);
	for (const struct metric_help *known = metric_helps; !*metric->help && known->name;
		known++) {
		if (strcmp(known->name, metric->name) == 0 && strcmp(known->kind, kind) == 0) {
			return known->help;
		}
	}
	return metric->help;
}

int metric_list_load(struct reader *r, struct metric_list *ret, struct error *e)
{
	return query_each(r,
		"SELECT id, name, entity_kind, kind, unit, scale, source, help"
		" FROM metric WHERE id BETWEEN 0 AND 4294967295 ORDER BY id",
		metric_add, ret, e);
}

void metric_list_done(struct metric_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		metric_done(&list->items[i]);
	}
	free(list->items);
	*list = (struct metric_list){0};
}

static int metric_compare(const void *key, const void *item)
{
	uint32_t id = *(const uint32_t *)key;
	uint32_t other = ((const struct metric_row *)item)->id;
	return (id > other) - (id < other);
}

const struct metric_row *metric_list_find(const struct metric_list *list, uint32_t id)
{
	return list->n ? bsearch(&id, list->items, list->n, sizeof(*list->items), metric_compare)
	               : NULL;
}

const struct metric_row *metric_list_find_name(
	const struct metric_list *list, enum entity_kind kind, const char *name)
{
	for (size_t i = 0; i < list->n; i++) {
		if (list->items[i].entity_kind == kind && strcmp(list->items[i].name, name) == 0) {
			return &list->items[i];
		}
	}
	return NULL;
}
