// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Iterations and what they spend their time on: from the spans that the job marked.
//
//   main        the thread whose epochs and iterations are the run's; where one ended and another
//               began (a job of several programs), all of them, one after the other. Threads that
//               iterate beside it are other ranks, those with `prepare` spans are workers.
//   iteration   as marked, less what in it stands apart (validation, checkpoint, import): its
//               length is the sum of its phases and of what is in none (PHASE_OTHER)
//   phase       time counts once, for the span that began last; whatever is inside a phase that
//               stands apart counts for that one; `prepare` on the main thread counts as data
//   warm-up     of each main thread the first iterations, until the median of five in a row lies
//               where the middle 60 % of all lie (or within 10 % of their median): at least the
//               first, at most a fifth and WARM_UP_MAX; none where there are fewer than five.
//   steady      the others; those that a mark's loss or the job's end cut are left out of figures,
//               and those in which the job was stopped (stops.h)
//   interval    95 %, by batch means: steady iterations in order are split into 5 to 32 batches of
//               at least four (at least two where there are fewer than twenty), since neighbours
//               resemble each other; a share is a ratio of sums, with Student's t. Nothing random.
//
// Spans stream by in order of time, twice (iterations alone, then all), and a third time for
// pictures: a million iterations of five phases take about 5 s of one core, 8 with a page. Memory
// is bounded: ITERATIONS_KEPT iterations, a histogram (0.4 %) for each phase, a row for each epoch
// and thread.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "run/histogram.h"
#include "run/timeline.h"

#define ITERATIONS_KEPT 32768
#define SLOWEST_MAX 10

// With its 95 % interval; NAN where not known (no interval: fewer than ten steady iterations).
struct estimate {
	double value;
	double low;
	double high;
};

struct phase {
	char name[PHASE_NAME_MAX]; // from the job where it is not a known one: escape it
	bool apart; // in no iteration's length
	uint64_t spans; // of the main thread; 0: it never was
	double total_s; // on the main thread, over the whole run
	// Of steady iterations, 0 in those without it; NAN without a steady iteration, and for
	// those that stand apart.
	struct estimate share; // of the iterations' time
	double mean_s;
	double p50_s;
	double p95_s;
	double max_s;
};

// Where the time of an epoch went, on the main thread. Its length is the sum of phase_s,
// outside_s and unrecorded_s.
struct epoch_phases {
	uint64_t iterations; // that began in it and were recorded
	int64_t samples; // of these; -1: not known
	double seconds;
	double iteration_s; // in iterations, without what stands apart
	double phase_s[PHASES_MAX]; // wherever they were: PHASE_OTHER in iterations only
	double outside_s; // in no iteration and no phase
	double unrecorded_s; // in iterations whose marks were lost
	double samples_per_s; // of its iterations' time; NAN: not known
};

// A thread that prepares batches.
struct phase_worker {
	int64_t entity; // its process; 0: the recorder never saw it
	int64_t pid; // where entity is 0
	int64_t thread;
	uint64_t batches;
	int64_t samples; // -1: nobody said
	double first_s;
	double last_s;
	double prepare_s; // total
	double batch_p50_s;
	double batch_max_s;
	double per_sample_s; // NAN: not known
	double cpu_s; // of its process over its whole life; NAN: not known
};

// A thread that iterates: the main one is the first, the others are ranks beside it.
struct phase_rank {
	int64_t entity; // its process; 0: the recorder never saw it
	int64_t pid; // where entity is 0
	int64_t thread;
	int number; // from 0, as their processes began
	bool slowest; // the others wait for it
	uint64_t iterations;
	double iteration_s; // total
	double phase_s[PHASES_MAX]; // in its iterations
	double waits; // for the others, share of its iterations' time; NAN: nobody knows
	// Of its steady iterations; NAN: not known.
	double steady_s; // total, and of that in two phases
	double forward_s;
	double backward_s;
	double p50_s;
	double samples_per_s;
};

#define OWN_SPAN_NONE SIZE_MAX

// All spans of one name that the job's author gave, at one place among the others.
struct own_span {
	char name[PHASE_NAME_MAX]; // from the job: escape it
	size_t parent; // which of these holds it; OWN_SPAN_NONE
	unsigned depth; // how many hold it
	bool inside; // iterations: its share is of their time, else of the run
	size_t threads; // that have it
	uint64_t count;
	double total_s;
	double p50_s;
	double max_s;
	double share; // of its threads' time; NAN: not known
};

#define SLOW_CAUSES_MAX 8

// What was otherwise around a slow iteration.
struct slow_cause {
	const char *what; // "data", "CPU of the job", "major faults"; escape it
	const char *metric; // NULL: a phase, in seconds
	const char *unit; // of the metric, "s" of a phase; rates are per second
	double value;
	double usual; // the median of the run
};

struct slow_iteration {
	struct iteration iteration;
	int longer; // by phase_id: the phase that passed its median most; -1 without phases
	struct slow_cause causes[SLOW_CAUSES_MAX]; // the first are phases
	size_t n_causes;
};

struct phases {
	struct timeline *timeline; // to walk again; NULL where it could not be opened
	char *missing; // why there are no iterations; NULL where there are. For people
	char *phases_missing; // why there are no phases; NULL where there are
	char *incomplete; // what was lost of both; NULL for nothing
	struct phase items[PHASES_MAX]; // by phase_id, then by first appearance
	size_t n; // of them; at least N_KNOWN_PHASES

	// Of the main thread, in order: every `stride`-th one is kept.
	struct iteration *iterations;
	size_t n_iterations;
	size_t stride;
	uint64_t total; // recorded
	uint64_t warm_up; // of these
	uint64_t cut; // without the next
	uint64_t stopped;
	uint64_t steady;
	uint64_t unrecorded; // whose marks were lost, by their numbers
	struct histogram lengths; // of steady ones, in seconds

	struct estimate length_s; // mean of steady iterations
	double min_s, p50_s, p95_s, p99_s, max_s;
	struct estimate samples_per_s; // of the time of steady iterations
	double samples_per_iteration; // median; NAN: not known

	// Where the run went, in seconds of the main thread: together its length.
	double startup_s; // before the first iteration
	double iterations_s; // without what stands apart
	double apart_s; // validation, checkpoint, import, after the first iteration began
	double between_s; // between iterations: in none, and in nothing apart
	double saving_s; // of it, within an epoch, beside a checkpoint: flushing it, copying it
	double after_s; // after the last
	double unrecorded_s;
	double stopped_s; // the job was stopped: in none of these

	struct epoch_phases *epochs; // [n_epochs], as analysis.epochs
	size_t n_epochs;
	struct phase_worker *workers; // by first appearance
	size_t n_workers;
	struct phase_rank *ranks; // none where there are no iterations
	size_t n_ranks;
	bool waits_inferred; // ranks' waits: nobody marked them, backward tells
	struct own_span *own; // each behind the one that holds it, the longest in all first
	size_t n_own;
	uint64_t own_left_out; // spans of more names than there is room for
	uint64_t threads_left_out;
	struct slow_iteration slowest[SLOWEST_MAX]; // the slowest first; of steady ones
	size_t n_slowest;
};

struct run_tables;
struct stops;

// What phases are computed from.
struct phases_input {
	const struct run_tables *tables;
	const struct stops *stops; // time that says nothing of the job
	bool brief; // without what was different in the slowest iterations
};

// Works on live and cut-off runs. -ENOMEM, or
// -EBADMSG where the file is damaged: what came before it is there.
int phases_load(const struct phases_input *in, struct phases *ret, struct error *e);
void phases_done(struct phases *p);
// Leaves out of the workers those that feed no training (a script's `strain mark begin prepare`):
// what they marked is a span of the job's own. Needs the roles. 0 or -ENOMEM.

struct text;
// "data 400 ms instead of 40 ms; read from storage 120 MB/s instead of 0 B/s"; nothing where
// nothing was otherwise. Printable.
void slow_iteration_append_why(struct text *t, const struct slow_iteration *slow);

// Sets those of shown[n_own] that took the longest, at most `limit`, and what holds them. 0 or
// -ENOMEM.
int phases_longest_own_spans(const struct phases *p, size_t limit, bool *shown);
