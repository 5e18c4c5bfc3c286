// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// One job from several runs: `torchrun`, `mpirun` and `srun` start a process per rank, and each may
// have been recorded by a `strain run` of its own. Runs belong to one job if they share an
// identifier of the launcher or a `strain run --job NAME`, and ran at the same time, unless the
// name was given or their machines' clocks may differ. Iterations are joined by epoch and number.
// Ranks that wait for each other end an iteration together, which shows how much the clocks of
// their machines differ.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "run/phases.h"
#include "study/catalogue.h"

enum { JOINT_RANKS_MAX = 4096, JOINT_ITERATIONS_MAX = 4096 };

// What a rank does in an iteration of its own. Seconds; 0: not marked.
struct joint_step {
	int64_t number; // of the epoch and the iteration in it, else among all iterations:
	                // ascending
	int64_t end_utc_ns; // by the clock of its machine
	double length;
	double forward, backward;
	double communication;
	double waits; // for other ranks, as far as is known; NAN
};

// The connections of a rank's run to the machine that it sends to for longest.
struct joint_link {
	double busy; // share of the time in which data are on their way; NAN: none known
	double rate; // bytes per second of that time
	double nearest_s; // least round trip to any machine; NAN
	double network_namespace; // its network namespace; NAN
	char local[64], peer[64]; // addresses; escape them
	int to; // the rank there; -1: not known, or several
};

// Why a rank is slower than the others.
enum joint_reason {
	REASON_OWN, // it works longer
	REASON_LINK, // what it sends arrives slowly
	REASON_DISTANCE, // it is far from all others
};

struct joint_rank {
	const struct digest *run; // of the catalogue
	const char *host; // borrowed; "" if unknown
	int number; // its rank, as the launcher says; else by the start of its run
	struct phase_rank rank; // as recorded; `waits` and `slowest` among all ranks of the job
	// Of its run; of its process, if the run has several ranks. NAN: not known.
	double cpus_used; // mean
	double cpu_wait_share; // of the time: without a CPU, although it could run
	double memory_bytes; // largest
	struct joint_step *steps; // [n_steps] owned
	size_t n_steps;
	struct joint_link link;
	double latest; // share of the common iterations in which it alone kept the others; NAN
	// How far its machine's clock is ahead of that of the first rank's; NAN: not known.
	double clock_s;
};

struct joint {
	char *name; // owned; of the job
	const char *named_by; // the label that names it, "SLURM_JOB_ID"; static
	struct joint_rank *ranks; // [n] owned; by number
	size_t n;
	size_t n_runs, n_hosts;
	int64_t world; // ranks of the job, as the launcher says; 0: it does not
	size_t n_common; // iterations that all ranks recorded
	size_t n_others; // other jobs of several runs in the catalogue
	enum rank_waits waits;
	double samples_per_s; // of all ranks; NAN: not known
	// Index of the rank that the others wait for; n: none.
	size_t slowest;
	enum joint_reason reason; // if there is a slowest
	// Of the ranks on other machines than the one that sends for longest, or is farthest: the
	// largest; NAN: not known.
	double others_busy, others_nearest_s;
	// Where no rank's link is slower than the others', but the network is the limit: its rank
	// that sends for longest; n: none.
	size_t busiest;
	bool network_limits; // the verdict of a run is the network; else it is busy
	// The phase in which it exceeds the others' median by most, and seconds per iteration, if
	// that is a good part of what they wait.
	int phase; // enum phase_id; -1: none
	double longer_s;
};

// Joins the runs of a job. name: of the job; NULL: the one with the newest run. The catalogue must
// outlive the result. Of several runs of one rank the newest counts. Errors: -ENOENT if the
// catalogue has no job of several runs, or not that one; as reader_open.
int joint_read(const struct catalogue *c, const char *name, struct joint *ret, struct error *e);
void joint_done(struct joint *j);
// Whether two ranks are on different machines, or in different containers of one.
bool joint_apart(const struct joint_rank *a, const struct joint_rank *b);

// Which runs of a catalogue are surely the ranks of one job: they have ranks, or a name and ran at
// the same time.
struct joint_groups {
	size_t *of; // [runs of the catalogue] the number of its job; JOINT_ALONE: none
	char **names; // [n] of the jobs
	size_t *sizes; // [n] their runs
	size_t n;
};
#define JOINT_ALONE SIZE_MAX
// Without reading the runs. Returns 0 or -ENOMEM.
int joint_groups_find(const struct catalogue *c, struct joint_groups *ret);
void joint_groups_done(struct joint_groups *g);
