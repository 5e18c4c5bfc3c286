// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Each table is read by its own module. A damaged one leaves the others intact.

#include "run/tables.h"

#include <errno.h>
#include <math.h>

#include "base/cleanup.h"

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
	return missing_list_load(t->reader, &t->missing, e);
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
