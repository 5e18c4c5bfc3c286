// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Loads all there is to know about a run, in the order in which one thing needs another.

#include "run/analysis.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "verdict/leak_facts.h"

typedef int analysis_step(struct analysis *a, struct error *e);

static int load_entities(struct analysis *a, struct error *e)
{
	return entity_list_load(a->reader, false, &a->entities, e);
}

static int load_job(struct analysis *a, struct error *e)
{
	return entity_list_load(a->reader, true, &a->entities, e);
}

static int load_metrics(struct analysis *a, struct error *e)
{
	return metric_list_load(a->reader, &a->metrics, e);
}

static int load_epochs(struct analysis *a, struct error *e)
{
	return epoch_list_load(a->reader, &a->epochs, e);
}

static int load_summary(struct analysis *a, struct error *e)
{
	return summary_load(a->reader, &a->entities, &a->metrics, &a->epochs, &a->summary, e);
}

static int load_missing(struct analysis *a, struct error *e)
{
	return missing_list_load(a->reader, &a->missing, e);
}

static int load_events(struct analysis *a, struct error *e)
{
	return event_list_load(a->reader, &a->events, e);
}

static int build_processes(struct analysis *a, struct error *e)
{
	int r = process_list_build(a, &a->processes);
	return r < 0 ? error_errno(e, -r, "%s", reader_path(a->reader)) : 0;
}

static int build_stops(struct analysis *a, struct error *e)
{
	int r = stops_of_job(a, &a->job_stops);
	r = r < 0 ? r : stops_of_any(a, &a->stops);
	for (size_t i = 0; i < a->epochs.n; i++) {
		struct epoch *epoch = &a->epochs.items[i];
		epoch->stopped_ns = stops_within(&a->stops, epoch->start_ns, epoch->end_ns);
	}
	return r < 0 ? error_errno(e, -r, "%s", reader_path(a->reader)) : 0;
}

static int build_overview(struct analysis *a, struct error *e)
{
	int r = overview_build(a, &a->overview);
	return r < 0 ? error_errno(e, -r, "%s", reader_path(a->reader)) : 0;
}

static int check_overview(struct analysis *a, struct error *e)
{
	a->implausible = calloc(1, sizeof(*a->implausible));
	if (!a->implausible) {
		return error_errno(e, ENOMEM, "%s", reader_path(a->reader));
	}
	plausible_overview(a, a->implausible);
	return 0;
}

static int load_phases(struct analysis *a, struct error *e)
{
	int r = phases_load(a, &a->phases, e);
	int told = process_list_take_marks(&a->processes, &a->phases);
	told = told < 0 ? told : phases_keep_workers(&a->phases, &a->processes);
	return told < 0 ? error_errno(e, -told, "%s", reader_path(a->reader)) : r;
}

static int find_leak(struct analysis *a, struct error *e)
{
	(void)e;
	leak_facts_fill(a, &a->growth);
	return 0;
}

static int build_verdict(struct analysis *a, struct error *e)
{
	int r = verdict_build(a, &a->verdict);
	return r < 0 ? error_errno(e, -r, "%s", reader_path(a->reader)) : 0;
}

static int analysis_run(
	struct analysis *a, analysis_step *const *steps, size_t n_steps, struct error *e)
{
	for (size_t i = 0; i < n_steps; i++) {
		struct error step_error = {0};
		int result = steps[i](a, &step_error);
		if (result == -ENOMEM) {
			analysis_done(a);
			if (e) {
				*e = step_error;
			}
			return result;
		}
		if (result < 0 && !a->damage.code) {
			a->damage = step_error;
		}
	}
	return 0;
}

static analysis_step *const all_steps[] = {load_entities, load_metrics, load_epochs, load_summary,
	load_missing, load_events, build_processes, build_stops, build_overview, check_overview,
	load_phases, find_leak, build_verdict};

int analysis_load(struct reader *r, struct analysis *ret, struct error *e)
{
	*ret = (struct analysis){.reader = r};
	return analysis_run(ret, all_steps, ARRAY_LENGTH(all_steps), e);
}

int analysis_load_brief(struct reader *r, struct analysis *ret, struct error *e)
{
	*ret = (struct analysis){.reader = r, .brief = true};
	return analysis_run(ret, all_steps, ARRAY_LENGTH(all_steps), e);
}

int analysis_load_job(struct reader *r, struct analysis *ret, struct error *e)
{
	static analysis_step *const steps[] = {
		load_job, load_metrics, load_summary, build_stops, build_overview, check_overview};
	*ret = (struct analysis){.reader = r};
	return analysis_run(ret, steps, ARRAY_LENGTH(steps), e);
}

void analysis_done(struct analysis *a)
{
	verdict_done(&a->verdict);
	if (a->implausible) {
		implausible_list_done(a->implausible);
		free(a->implausible);
	}
	phases_done(&a->phases);
	overview_done(&a->overview);
	stops_done(&a->stops);
	stops_done(&a->job_stops);
	process_list_done(&a->processes);
	event_list_done(&a->events);
	missing_list_done(&a->missing);
	summary_done(&a->summary);
	epoch_list_done(&a->epochs);
	metric_list_done(&a->metrics);
	entity_list_done(&a->entities);
	*a = (struct analysis){0};
}

double analysis_epoch_figure(const struct analysis *a, int64_t entity, const char *metric,
	int64_t epoch, enum figure figure)
{
	const struct entity *about = entity_find(&a->entities, entity);
	const struct metric_row *row = about ? metric_by_name(&a->metrics, about->kind, metric)
	                                     : NULL;
	return row ? summary_figure(&a->summary, entity, row->id, epoch, figure) : NAN;
}

double analysis_figure(
	const struct analysis *a, int64_t entity, const char *metric, enum figure figure)
{
	return analysis_epoch_figure(a, entity, metric, SUMMARY_WHOLE_RUN, figure);
}
