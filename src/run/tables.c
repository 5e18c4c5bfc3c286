// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Missing measurements and events are read here, each other table by its own module. A damaged one
// leaves the others intact.

#include "run/tables.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "run/query.h"

// --- missing measurements, and events

#define TEXT_OF(number) #number
#define AS_TEXT(number) TEXT_OF(number)
#define MISSING_ROWS_MAX 10000
#define STARTED_NS 1000000000 // what is missing sooner has hardly been read

static int names_append(struct missing_group *group, const char *name)
{
	char **grown = realloc(group->metrics, (group->n_metrics + 1) * sizeof(*group->metrics));
	if (!grown) {
		return -ENOMEM;
	}
	group->metrics = grown;
	grown[group->n_metrics] = strdup(name);
	return grown[group->n_metrics] ? (group->n_metrics++, 0) : -ENOMEM;
}

static struct missing_group *group_append(
	struct missing_list *list, const char *kind, const char *reason)
{
	void *items = list->items;
	int r = array_reserve(&items, &list->capacity, list->n + 1, sizeof(*list->items));
	list->items = items;
	if (r < 0) {
		return NULL;
	}
	struct missing_group group = {.kind = strdup(kind), .reason = strdup(reason)};
	if (!group.kind || !group.reason) {
		free(group.kind);
		free(group.reason);
		return NULL;
	}
	list->items[list->n] = group;
	return &list->items[list->n++];
}

struct missing_loading {
	struct missing_list *list;
	const struct summary *summary;
};

static bool has_figures(const struct summary *summary, int64_t metric)
{
	for (size_t i = 0; i < summary->n; i++) {
		if (summary->rows[i].metric == metric) {
			return true;
		}
	}
	return false;
}

// Rows are sorted by kind and reason.
static int missing_add(void *context, sqlite3_stmt *row)
{
	const struct missing_loading *loading = context;
	struct missing_list *list = loading->list;
	const char *kind = (const char *)sqlite3_column_text(row, 0);
	const char *reason = (const char *)sqlite3_column_text(row, 1);
	const char *metric = (const char *)sqlite3_column_text(row, 2);
	if (!kind || !reason || !metric) {
		return 0;
	}
	struct missing_group *group = list->n ? &list->items[list->n - 1] : NULL;
	if (!group || strcmp(group->kind, kind) != 0 || strcmp(group->reason, reason) != 0) {
		group = group_append(list, kind, reason);
	}
	if (!group) {
		return -ENOMEM;
	}
	size_t entities = (size_t)sqlite3_column_int64(row, 3);
	group->entities = entities > group->entities ? entities : group->entities;
	group->to_the_end = group->to_the_end || sqlite3_column_int(row, 4);
	group->broke_off = group->broke_off ||
	                   (sqlite3_column_int64(row, 5) > STARTED_NS &&
				   has_figures(loading->summary, sqlite3_column_int64(row, 6)));
	return names_append(group, metric);
}

static int group_compare(const void *left, const void *right)
{
	const struct missing_group *a = left, *b = right;
	if (a->to_the_end != b->to_the_end) {
		return a->to_the_end ? -1 : 1;
	}
	return (a->n_metrics < b->n_metrics) - (a->n_metrics > b->n_metrics);
}

static int missing_list_load(
	struct reader *r, const struct summary *summary, struct missing_list *ret, struct error *e)
{
	struct missing_loading loading = {ret, summary};
	int result = query_each(r,
		"SELECT m.entity_kind, x.reason, m.name, count(DISTINCT x.entity),"
		" max(x.to_ns IS NULL), min(x.from_ns), m.id"
		" FROM missing x JOIN metric m ON m.id = x.metric"
		" GROUP BY 1, 2, 3 ORDER BY 1, 2, min(m.id)"
		" LIMIT " AS_TEXT(MISSING_ROWS_MAX),
		missing_add, &loading, e);
	if (ret->n > 0) {
		qsort(ret->items, ret->n, sizeof(*ret->items), group_compare);
	}
	return result;
}

static void missing_list_done(struct missing_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		struct missing_group *group = &list->items[i];
		for (size_t j = 0; j < group->n_metrics; j++) {
			free(group->metrics[j]);
		}
		free(group->metrics);
		free(group->kind);
		free(group->reason);
	}
	free(list->items);
	*list = (struct missing_list){0};
}

static const char *kind_title(const char *kind)
{
	static const char *const titles[N_ENTITY_KINDS] = {
		[ENTITY_HOST] = "host",
		[ENTITY_JOB] = "job",
		[ENTITY_PROCESS] = "process",
		[ENTITY_GPU] = "GPU",
		[ENTITY_DISK] = "disk",
		[ENTITY_NETWORK] = "network",
		[ENTITY_RECORDER] = "recorder",
	};
	enum entity_kind known;
	return entity_kind_parse(kind, &known) ? titles[known] : kind;
}

static bool whole_kind(const struct metric_list *metrics, const struct missing_group *group)
{
	size_t n = 0;
	for (size_t i = 0; i < metrics->n; i++) {
		n += strcmp(entity_kind_name(metrics->items[i].entity_kind), group->kind) == 0;
	}
	return group->n_metrics == n;
}

static const char *skip_word(const char *name, const char *word)
{
	size_t length = strlen(word);
	return strncmp(name, word, length) == 0 && name[length] == '.' ? name + length + 1 : name;
}

// The name without its namespaces: "power" for a GPU's "hw.gpu.power".
static const char *bare_name(const char *metric, const char *kind)
{
	static const char *const spaces[] = {"hw", "strain", "process", "system", "cgroup"};
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		metric = skip_word(metric, spaces[i]);
	}
	return skip_word(metric, kind);
}

// Length of the prefix that all names have in common, in whole words.
static size_t common_length(const struct missing_group *group)
{
	const char *first = bare_name(group->metrics[0], group->kind);
	size_t common = strlen(first);
	for (size_t i = 1; i < group->n_metrics; i++) {
		const char *name = bare_name(group->metrics[i], group->kind);
		size_t same = 0;
		while (same < common && first[same] == name[same]) {
			same++;
		}
		while (same > 0 && ((first[same] && first[same] != '.') ||
					   (name[same] && name[same] != '.'))) {
			same--;
		}
		common = same;
	}
	return common;
}

// Appends a name as words: "cpu limit" for "cpu.limit".
static void append_name(struct text *t, const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		bool separator = name[i] == '.' || name[i] == '_';
		text_append_printable(t, separator ? " " : &name[i], 1);
	}
}

static bool has_metric(const struct missing_group *group, const char *name)
{
	for (size_t i = 0; i < group->n_metrics; i++) {
		if (strcmp(group->metrics[i], name) == 0) {
			return true;
		}
	}
	return false;
}

// Whether a metric of this kind that is not missing begins with the same words.
static bool is_ambiguous(const struct metric_list *metrics, const struct missing_group *group,
	const char *words, size_t length)
{
	for (size_t i = 0; i < metrics->n; i++) {
		const struct metric_row *metric = &metrics->items[i];
		const char *name = bare_name(metric->name, group->kind);
		if (strcmp(entity_kind_name(metric->entity_kind), group->kind) == 0 &&
			strncmp(name, words, length) == 0 &&
			(name[length] == '.' || !name[length]) &&
			!has_metric(group, metric->name)) {
			return true;
		}
	}
	return false;
}

void missing_list_append_subject(
	struct text *t, const struct metric_list *metrics, const struct missing_group *group)
{
	enum { NAMED = 3 };
	const char *first = bare_name(group->metrics[0], group->kind);
	size_t length = common_length(group);
	bool told = length > 0 && !is_ambiguous(metrics, group, first, length);
	bool whole = whole_kind(metrics, group);
	if (!whole && !told && group->n_metrics > NAMED) {
		text_format(t, "%zu %s ", group->n_metrics, kind_title(group->kind));
		append_name(t, first, length);
		text_append_string(t, length ? " metrics" : "metrics");
		return;
	}
	text_append_string(t, kind_title(group->kind));
	if (!whole && told) {
		text_append(t, " ", 1);
		append_name(t, first, length);
	}
	for (size_t i = 0; !whole && !told && i < group->n_metrics; i++) {
		const char *name = bare_name(group->metrics[i], group->kind);
		text_append_string(t, i ? ", " : " ");
		append_name(t, name, strlen(name));
	}
}

// Whether the metrics are about the device of `leader`. Without a GPU, it is obvious that a
// process's GPU memory is missing.
static bool goes_without_saying(
	const struct missing_group *group, const struct missing_group *leader)
{
	for (size_t i = 0; i < group->n_metrics; i++) {
		const char *name = bare_name(group->metrics[i], group->kind);
		if (skip_word(name, leader->kind) == name) {
			return false;
		}
	}
	return true;
}

bool missing_list_append_subjects(struct text *t, const struct metric_list *metrics,
	const struct missing_list *list, size_t index)
{
	const char *reason = list->items[index].reason;
	for (size_t i = 0; i < index; i++) {
		if (strcmp(list->items[i].reason, reason) == 0) {
			return false;
		}
	}
	const struct missing_group *leader = &list->items[index];
	missing_list_append_subject(t, metrics, leader);
	for (size_t i = index + 1; i < list->n; i++) {
		if (strcmp(list->items[i].reason, reason) == 0 &&
			!goes_without_saying(&list->items[i], leader)) {
			text_append_string(t, ", ");
			missing_list_append_subject(t, metrics, &list->items[i]);
		}
	}
	return true;
}

void missing_list_append_reason(struct text *t, const struct missing_group *group)
{
	const char *end = strstr(group->reason, "; ");
	text_append_printable(
		t, group->reason, end ? (size_t)(end - group->reason) : strlen(group->reason));
}

size_t tables_missing_markers(struct reader *r, struct missing_marker ret[MISSING_MARKERS_MAX])
{
	static const struct {
		const char *key; // of table run
		const char *what;
		bool phases;
	} parts[MISSING_MARKERS_MAX] = {{"markers_missing", "marks", true},
		{"hooks_missing", "hooks", true}, {"nvtx_missing", "NVTX ranges", false}};
	size_t n = 0;
	for (size_t i = 0; i < MISSING_MARKERS_MAX; i++) {
		const char *reason = reader_run(r, parts[i].key);
		if (reason && *reason && (n == 0 || strcmp(reason, ret[0].reason) != 0)) {
			ret[n++] = (struct missing_marker){parts[i].what, reason, parts[i].phases};
		}
	}
	return n;
}

static int event_add(void *context, sqlite3_stmt *row)
{
	struct event_list *list = context;
	void *items = list->items;
	int r = array_reserve(&items, &list->capacity, list->n + 1, sizeof(*list->items));
	list->items = items;
	if (r < 0) {
		return r;
	}
	struct event_row event = {
		.t_s = (double)sqlite3_column_int64(row, 0) / 1e9,
		.kind = query_text(row, 1),
		.entity = sqlite3_column_int64(row, 2),
		.text = query_text(row, 3),
	};
	if (!event.kind || !event.text) {
		free(event.kind);
		free(event.text);
		return -ENOMEM;
	}
	list->items[list->n++] = event;
	return 0;
}

static int event_count(void *context, sqlite3_stmt *row)
{
	*(int64_t *)context = sqlite3_column_int64(row, 0);
	return 0;
}

static int event_list_load(struct reader *r, struct event_list *ret, struct error *e)
{
	int result = query_each(r,
		"SELECT t_ns, kind, entity, text FROM event ORDER BY t_ns, id"
		" LIMIT " AS_TEXT(EVENT_LIST_MAX),
		event_add, ret, e);
	ret->total = (int64_t)ret->n;
	if (result == 0 && ret->n == EVENT_LIST_MAX) {
		result = query_each(r, "SELECT count(*) FROM event", event_count, &ret->total, e);
	}
	return result;
}

static void event_list_done(struct event_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i].kind);
		free(list->items[i].text);
	}
	free(list->items);
	*list = (struct event_list){0};
}

// --- all tables

typedef int table_load(struct run_tables *t, struct error *e);

static int load_entities(struct run_tables *t, struct error *e)
{
	return entity_list_load(t->reader, false, &t->entities, e);
}

static int load_host_and_job(struct run_tables *t, struct error *e)
{
	return entity_list_load(t->reader, true, &t->entities, e);
}

static int load_metrics(struct run_tables *t, struct error *e)
{
	return metric_list_load(t->reader, &t->metrics, e);
}

static int load_epochs(struct run_tables *t, struct error *e)
{
	return epoch_list_load(t->reader, &t->epochs, e);
}

static int load_summary(struct run_tables *t, struct error *e)
{
	return summary_load(t->reader, &t->entities, &t->metrics, &t->epochs, &t->summary, e);
}

static int load_missing(struct run_tables *t, struct error *e)
{
	return missing_list_load(t->reader, &t->summary, &t->missing, e);
}

static int load_events(struct run_tables *t, struct error *e)
{
	return event_list_load(t->reader, &t->events, e);
}

static int load(struct run_tables *t, table_load *const *loads, size_t n, struct error *ret_damage)
{
	for (size_t i = 0; i < n; i++) {
		struct error e = {0};
		int r = loads[i](t, &e);
		if (r == -ENOMEM) {
			tables_done(t);
			*ret_damage = e;
			return r;
		}
		if (r < 0 && !ret_damage->code) {
			*ret_damage = e;
		}
	}
	return 0;
}

int tables_load(struct reader *r, struct run_tables *ret, struct error *ret_damage)
{
	static table_load *const all[] = {
		load_entities, load_metrics, load_epochs, load_summary, load_missing, load_events};
	*ret = (struct run_tables){.reader = r};
	return load(ret, all, ARRAY_LENGTH(all), ret_damage);
}

int tables_load_job(struct reader *r, struct run_tables *ret, struct error *ret_damage)
{
	static table_load *const few[] = {load_host_and_job, load_metrics, load_summary};
	*ret = (struct run_tables){.reader = r};
	return load(ret, few, ARRAY_LENGTH(few), ret_damage);
}

void tables_done(struct run_tables *t)
{
	event_list_done(&t->events);
	missing_list_done(&t->missing);
	summary_done(&t->summary);
	epoch_list_done(&t->epochs);
	metric_list_done(&t->metrics);
	entity_list_done(&t->entities);
	*t = (struct run_tables){0};
}

int64_t tables_first(const struct run_tables *t, enum entity_kind kind)
{
	const struct entity *entity = entity_first(&t->entities, kind);
	return entity ? entity->id : 0;
}

static int note_row(void *context, sqlite3_stmt *row)
{
	(void)row;
	*(bool *)context = true;
	return 0;
}

#define BREAKS_OFF 0.95 // of the recorded time: what is missing only after that is no gap

bool tables_breaks_off(const struct run_tables *t, int64_t entity, const char *metric)
{
	_cleanup_text_ struct text select = {0};
	bool found = false;
	text_format(&select,
		"SELECT 1 FROM missing x JOIN metric m ON m.id = x.metric"
		" WHERE m.name = '%s' AND x.to_ns IS NULL AND ifnull(x.entity, %" PRId64
		") = %" PRId64 " AND x.from_ns < %.0f LIMIT 1",
		metric, entity, entity,
		BREAKS_OFF * (t->reader ? (double)reader_recorded_ns(t->reader) : 0));
	if (t->reader && select.data) {
		(void)query_each(t->reader, select.data, note_row, &found, NULL);
	}
	return found;
}

double tables_epoch_figure(const struct run_tables *t, int64_t entity, const char *metric,
	int64_t epoch, enum figure figure)
{
	const struct entity *about = entity_find(&t->entities, entity);
	const struct metric_row *row = about ? metric_list_find_name(
						       &t->metrics, about->kind, metric)
	                                     : NULL;
	return row ? summary_figure(&t->summary, entity, row->id, epoch, figure) : NAN;
}

double tables_figure(
	const struct run_tables *t, int64_t entity, const char *metric, enum figure figure)
{
	return tables_epoch_figure(t, entity, metric, SUMMARY_WHOLE_RUN, figure);
}
