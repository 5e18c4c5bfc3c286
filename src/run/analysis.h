// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// All that the reading wing knows about a run, loaded once: what show, finish, ls and report tell.

#pragma once

#include "base/error.h"
#include "run/entities.h"
#include "run/epochs.h"
#include "run/notes.h"
#include "run/overview.h"
#include "run/phases.h"
#include "run/processes.h"
#include "run/stops.h"
#include "run/summary.h"
#include "runfile/reader.h"
#include "verdict/facts.h"
#include "verdict/plausible.h"
#include "verdict/verdict.h"

struct analysis {
	struct reader *reader; // borrowed; outlives the analysis
	bool brief; // what was different in the slowest iterations was not looked for
	struct entity_list entities;
	struct metric_list metrics;
	struct epoch_list epochs;
	struct summary summary;
	struct missing_list missing;
	struct event_list events;
	struct process_list processes;
	struct stops job_stops; // nothing of the job ran
	struct stops stops; // the same, or a process that others wait for was stopped
	struct overview overview;
	struct phases phases;
	struct growth_facts growth; // of memory over iterations
	struct implausible_list *implausible; // figures that were left out; owned; NULL: not kept
	struct verdict verdict;
	struct error damage; // the first part of the metadata that could not be read; code 0: none
};

// Works on live, cut-off and damaged runs: what can be read is read, and the rest named in
// `damage` (blocks: reader_damage). -ENOMEM.
int analysis_load(struct reader *r, struct analysis *ret, struct error *e);
// The same without what was different in the slowest iterations, which nothing else rests on: half
// the time where there are many short runs.
int analysis_load_brief(struct reader *r, struct analysis *ret, struct error *e);
// Only host and job, for lists of runs: no epochs, processes, devices or verdict.
int analysis_load_job(struct reader *r, struct analysis *ret, struct error *e);
void analysis_done(struct analysis *a);

// A figure of the whole run, or of an epoch, by the metric's name; NAN where there is none.
double analysis_figure(
	const struct analysis *a, int64_t entity, const char *metric, enum figure figure);
double analysis_epoch_figure(const struct analysis *a, int64_t entity, const char *metric,
	int64_t epoch, enum figure figure);
