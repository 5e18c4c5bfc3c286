// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// All that is known of a run but its verdict, each part made from those above it: what show,
// finish, ls and report tell.

#pragma once

#include "base/error.h"
#include "run/growth.h"
#include "run/overview.h"
#include "run/phases.h"
#include "run/plausible.h"
#include "run/processes.h"
#include "run/stops.h"
#include "run/tables.h"

struct verdict;

struct analysis {
	struct run_tables tables;
	struct process_list processes;
	struct stops job_stops; // nothing of the job ran
	struct stops stops; // the same, or a process that others wait for was stopped
	struct overview overview;
	struct implausible_list *implausible; // figures that were left out; owned; NULL: not kept
	struct phases phases;
	struct growth growth; // of memory over iterations
	struct error damage; // the first part of the metadata that could not be read; code 0: none
	const struct verdict *verdict; // borrowed; whoever judged the run sets it (verdict_load)
};

// Works on live, cut-off and damaged runs: what can be read is read, and the rest named in
// `damage` (blocks: reader_damage). -ENOMEM.
int analysis_load(struct reader *r, struct analysis *ret, struct error *e);
// The same without what was different in the slowest iterations, which nothing else rests on: half
// the time where there are many short runs.
int analysis_load_brief(struct reader *r, struct analysis *ret, struct error *e);
// Only host and job, for lists of runs: no epochs, processes, devices or phases.
int analysis_load_job(struct reader *r, struct analysis *ret, struct error *e);
void analysis_done(struct analysis *a);

// The process that trains: it marks iterations, or the tree says so; 0: none is known.
int64_t analysis_trainer(const struct analysis *a);
