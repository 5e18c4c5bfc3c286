// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Iterations and their phases, computed from the spans that the job marked.
//
//   main        the thread whose epochs and iterations are those of the run. If such threads run
//               one after the other (a job of several programs), all of them are main. Threads
//               that iterate at the same time are other ranks; threads with `prepare` spans are
//               workers.
//   iteration   as marked, without the phases outside its length (validation, checkpoint, import:
//               `apart`). Its length is the sum of its phases and of the time in no phase
//               (PHASE_OTHER).
//   phase       time is counted once, for the span that began last. Everything inside a phase that
//               is apart counts as that phase. `prepare` on the main thread counts as data.
//   warm-up     the first iterations of each main thread, until the median of five in a row is
//               within the middle 60 % of all (or within 10 % of their median): at least the
//               first, at most a fifth and WARM_UP_MAX; none if there are fewer than five. If a
//               framework rarely compiles code, the last iteration among these in which it does.
//   steady      all others. Figures leave out iterations that were cut by a lost mark or by the
//               end of the job, those in which the job was stopped (stops.h), and those in
//               which a framework compiled code, unless it often does.
//   interval    95 %, by batch means, since neighbours resemble each other: steady iterations in
//               order are split into 5 to 32 batches of at least four (at least two if there are
//               fewer than twenty). A share is a ratio of sums, with Student's t. Nothing is
//               random.
//
// Spans are read in order of time, twice (iterations alone, then all), and a third time for
// pictures. A million iterations of five phases take about 5 s of one core, 8 s with a page. Memory
// is bounded: ITERATIONS_KEPT iterations, a histogram for each phase (error 0.4 %), a row for each
// epoch and thread.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "run/histogram.h"
#include "run/timeline.h"

#define ITERATIONS_KEPT 32768
#define SLOWEST_MAX 10

// A value with its 95 % interval; NAN: not known (no interval: fewer than ten steady iterations).
struct estimate {
	double value;
	double low;
	double high;
};

struct phase {
	char name[PHASE_NAME_MAX]; // escape it: names other than the known ones are from the job
	bool apart; // not part of the length of an iteration
	uint64_t spans; // on the main thread; 0: it did not occur
	uint64_t nested; // of these, those that began within another phase
	double total_s; // on the main thread, over the whole run
	// Over steady iterations; an iteration without this phase counts as 0. NAN if there are no
	// steady iterations, and for phases that are apart.
	struct estimate share; // of the iterations' time
	double mean_s;
	double p50_s;
	double p95_s;
	double max_s;
};

// The time of an epoch on the main thread. Its length is the sum of phase_s, outside_s and
// unrecorded_s.
struct epoch_phases {
	uint64_t iterations; // recorded ones that began in it
	int64_t samples; // of these; -1: not known
	double seconds;
	double iteration_s; // in iterations, without phases that are apart
	double phase_s[PHASES_MAX]; // in or between iterations; PHASE_OTHER in iterations only
	double outside_s; // in no iteration and no phase
	double unrecorded_s; // in iterations whose marks were lost
	double samples_per_s; // over the time of its iterations; NAN: not known
};

// A thread that prepares batches.
struct phase_worker {
	int64_t entity; // its process; 0: the recorder never saw it
	int64_t pid; // if entity is 0
	int64_t thread;
	uint64_t batches;
	int64_t samples; // -1: not known
	double first_s;
	double last_s;
	double prepare_s; // total
	double steady_s; // the same after the warm-up (phases.warm_until_s)
	double batch_p50_s;
	double batch_max_s;
	double collected_s; // Python's garbage collections of 2 ms or longer
	double per_sample_s; // NAN: not known
	double cpu_s; // of its process over its whole life; NAN: not known
};

// A thread that iterates. The first one is the main thread; the others are ranks that ran beside
// it.
struct phase_rank {
	int64_t entity; // its process; 0: the recorder never saw it
	int64_t pid; // if entity is 0
	int64_t thread;
	int place; // from 0, by number
	// The launcher's (phases.ranks_launched), else from 0 in the order in which their processes
	// began.
	int number;
	bool slowest; // the others wait for it
	uint64_t iterations;
	double iteration_s; // total
	double phase_s[PHASES_MAX]; // in its iterations
	double validation_s, checkpoint_s; // over the whole run
	uint64_t exchanges; // iterations with communication
	// The part of these in which Python's garbage collector ran, in collections of 2 ms or
	// longer.
	double collected_s[N_KNOWN_PHASES];
	uint64_t collections;
	double waits; // share of its iterations' time spent waiting for the others; NAN: not known
	// Over its steady iterations; NAN: not known.
	uint64_t steady; // number of these
	double steady_s; // total; the next ones are parts of it
	double steady_phase_s[PHASES_MAX];
	double p50_s;
	double samples_per_s;
};

#define OWN_SPAN_NONE SIZE_MAX

struct named_work {
	uint64_t count; // of the main thread
	double seconds;
	uint64_t iterations; // with such spans
	uint64_t since; // iterations after the last of these
};

// All spans of one name given by the job's author, at one place in the tree of such spans.
struct own_span {
	char name[PHASE_NAME_MAX]; // from the job: escape it
	size_t parent; // index of the enclosing span; OWN_SPAN_NONE
	unsigned depth; // number of enclosing spans
	bool inside; // inside iterations: `share` refers to their time, else to the run
	size_t threads; // number of threads with such spans
	uint64_t count;
	double total_s;
	double p50_s;
	double max_s;
	double share; // of the time of these threads; NAN: not known
};

#define SLOW_CAUSES_MAX 8

// A figure that was unusual during a slow iteration.
struct slow_cause {
	const char *what; // "data", "CPU of the job", "major faults"; escape it
	const char *metric; // NULL: a phase, in seconds
	const char *unit; // of the metric, "s" for a phase; rates are per second
	double value;
	double usual; // the median of the run
};

struct slow_iteration {
	struct iteration iteration;
	int longer; // enum phase_id: the phase that exceeded its median by most; -1 without phases
	struct slow_cause causes[SLOW_CAUSES_MAX]; // the first are phases
	size_t n_causes;
};

struct phases {
	struct timeline *timeline; // for further walks; NULL if it could not be opened
	char *missing; // why there are no iterations, for people; NULL if there are some
	char *phases_missing; // why there are no phases; NULL if there are some
	char *incomplete; // what was lost of both; NULL: nothing
	struct phase items[PHASES_MAX]; // by phase_id, then by first appearance
	size_t n; // number of items; at least N_KNOWN_PHASES

	// Iterations of the main thread, in order: every `stride`-th one is kept.
	struct iteration *iterations;
	size_t n_iterations;
	size_t stride;
	uint64_t total; // recorded
	uint64_t warm_up; // of these
	uint64_t cut; // does not include the next two
	uint64_t stopped;
	uint64_t compiled; // left out, as above; not in the warm-up
	double compiled_s; // their length
	uint64_t steady;
	uint64_t unrecorded; // their marks were lost; counted by their numbers
	struct histogram lengths; // of steady ones, in seconds

	struct estimate length_s; // mean of steady iterations
	double min_s, p50_s, p95_s, p99_s, max_s;
	struct estimate samples_per_s; // over the time of steady iterations
	double samples_per_iteration; // median; NAN: not known

	// The time of the run on the main thread, in seconds. The sum is the run's length.
	double startup_s; // before the first iteration
	double iterations_s; // without phases that are apart
	double apart_s; // validation, checkpoint, import, after the first iteration began
	double between_s; // between iterations, without phases that are apart
	// part of between_s: within an epoch, next to a checkpoint (flushing, copying)
	double saving_s;
	double after_s; // after the last iteration
	double warm_until_s; // end of the main thread's warm-up; 0: it has none
	double unrecorded_s;
	double stopped_s; // the job was stopped; not part of any of the above

	struct epoch_phases *epochs; // [n_epochs], as analysis.epochs
	size_t n_epochs;
	struct phase_worker *workers; // by first appearance
	size_t n_workers;
	struct phase_rank *ranks; // empty if there are no iterations
	size_t n_ranks;
	bool ranks_launched; // their numbers are the launcher's
	bool waits_inferred; // phase_rank.waits is not marked, but inferred from backward
	struct named_work named[N_NAMED]; // in its steady iterations
	struct named_work predicts_between; // calls of predict() of the main thread between them
	double validation_starting_s; // of the main thread: loader workers start for it
	uint64_t compilations; // of the main thread, in the whole run
	double compiling_s; // their time, that of one within another counted once
	uint64_t compiling; // iterations of the main thread of which they take half
	double compiling_in_s; // their time in these
	struct own_span *own; // each after its parent; siblings by total time, longest first
	size_t n_own;
	uint64_t own_left_out; // spans dropped because there was no room for more names
	uint64_t threads_left_out;
	struct slow_iteration slowest[SLOWEST_MAX]; // steady iterations, slowest first
	size_t n_slowest;
};

struct run_tables;
struct stops;

// Input of the phases.
struct phases_input {
	const struct run_tables *tables;
	const struct stops *stops; // times to exclude
	bool brief; // leave out the causes of the slowest iterations
};

// Works on live and cut-off runs. Returns 0 or -ENOMEM; -EBADMSG if the file is damaged: *ret has
// everything before the damage.
int phases_load(const struct phases_input *in, struct phases *ret, struct error *e);
// How the waits of ranks for each other are known.
enum rank_waits {
	WAITS_UNKNOWN,
	WAITS_MARKED, // as communication
	WAITS_IN_BACKWARD, // inferred: backward ends when all ranks have exchanged gradients
	WAITS_IN_FORWARD, // inferred: forward begins with an exchange, or one rank's has other work
};
// By how much the inferred waits of equal ranks may differ, as shares of an iteration.
double phases_waits_scatter(const struct phase_rank *ranks, size_t n);
// Finds what each rank waits for the others, and which one they wait for. The ranks belong to one
// job, and may come from several runs of it.
enum rank_waits phases_judge_ranks(struct phase_rank *ranks, size_t n);
// Seconds of a steady iteration: without the waits; in a phase. NAN: not known.
double phases_rank_own(const struct phase_rank *rank);
double phases_rank_mean(const struct phase_rank *rank, enum phase_id phase);
void phases_done(struct phases *p);

struct text;
// Appends "data 400 ms instead of 40 ms; read from storage 120 MB/s instead of 0 B/s", printable;
// nothing if slow->n_causes is 0.
void slow_iteration_append_why(struct text *t, const struct slow_iteration *slow);

// Sets shown[i] of the `limit` longest own spans and of those that enclose them; shown has n_own
// elements. Returns 0 or -ENOMEM.
int phases_longest_own_spans(const struct phases *p, size_t limit, bool *shown);
