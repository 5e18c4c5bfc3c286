// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Everything known about a run except its verdict. Each part is computed from the parts above it.

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
	struct stops job_stops; // when the whole job was stopped
	struct stops stops; // when the job, or a process that others wait for, was stopped
	struct overview overview;
	struct implausible_list
		*implausible; // owned; impossible figures that were left out; NULL: not kept
	struct phases phases;
	struct growth growth; // of memory over iterations
	struct growth gpu_growth; // of a GPU's
	struct error damage; // the first part of the metadata that could not be read; code 0: none
	const struct verdict *verdict; // borrowed; set by verdict_judge
};

// Also loads live, cut-off and damaged runs, as far as they can be read: `damage` has the first
// failure (of blocks: reader_damage). -ENOMEM.
int analysis_load(struct reader *r, struct analysis *ret, struct error *e);
// The same without the differences of the slowest iterations, on which nothing else depends. Takes
// half the time for short runs.
int analysis_load_brief(struct reader *r, struct analysis *ret, struct error *e);
// Host and job only, for lists of runs: no epochs, processes, devices or phases.
int analysis_load_job(struct reader *r, struct analysis *ret, struct error *e);
void analysis_done(struct analysis *a);

// The entity of the training process, from its marks or from the process tree; 0: not known.
int64_t analysis_trainer(const struct analysis *a);
