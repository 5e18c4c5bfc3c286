// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the rules of a verdict look at: an iteration and what it takes, as numbers. NAN is "not
// known" everywhere. Nothing here knows where a number is from, so that rules can be tried on any.
//
// Rates are over a stretch of steady iterations without validation and checkpoints, so that neither
// the start nor they dilute them; "CPUs" are seconds of CPU time per second.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "run/phases.h"
#include "run/rate.h"
#include "run/gpu_facts.h"
#include "run/growth.h"
#include "run/profile.h"

struct analysis;

// Whose hooks marked the job.
enum framework { FRAMEWORK_UNKNOWN, FRAMEWORK_PYTORCH, FRAMEWORK_KERAS, FRAMEWORK_JAX };

struct worker_facts { // the loader's workers, all together
	unsigned n; // at a time; 0: the training thread prepares batches itself, or nobody knows
	unsigned feeding; // at a time, with those of other loaders
	bool marked; // they say when they prepare
	double cpus; // that they used
	double queued; // mean number of them that were ready and had no CPU
	double blocked; // mean number that were preparing and neither ran nor were ready: storage
	double preparing; // mean number that were preparing a batch
	double busiest; // share of its time that the busiest of them was preparing
	double slowest; // time for a sample of the slowest, against the median of the others
	int slowest_number;
	bool restart; // with each epoch
};

struct storage_facts {
	double read_rate; // bytes fetched from storage per second, by the job
	double written_rate;
	double asked_rate; // bytes read through system calls
	double refault_rate; // bytes per second that had just been dropped from the page cache
	double refaults_of_host; // the same of the whole host, where the job's own are not known
	double stalled; // pressure: some task waited for storage, share of time
	bool stalled_of_job; // else of the whole host
};

struct memory_facts {
	double limit_bytes;
	double peak_bytes; // that cannot be dropped
	bool limited; // by a cgroup
	double limit_hits; // how often a limit was reached
	double stalled; // pressure: all tasks waited for memory
	double swap_rate; // bytes per second swapped in, whole host
	double shared_bytes; // peak of the job's shared memory: batches on their way
	double shared_limit_bytes; // of /dev/shm
};

struct rank_facts {
	unsigned n; // that train side by side; 1: alone
	double waits_most; // share of its iterations that the one that waits most spends waiting
	double waits_least;
	double own; // of the one whose iterations these are
	bool inferred; // from backward, where the wait is then (phases.h)
	int slowest; // the number of the one that waits least
};

// What threads do while they do not run, as looks at them found it (source `waits`).
enum wait_kind {
	WAIT_STORAGE, // reads
	WAIT_FSYNC, // fsync, fdatasync, msync
	WAIT_NETWORK,
	WAIT_PIPE,
	WAIT_LOCK, // between processes (flock, fcntl, semaphores), or threads
	WAIT_GIL, // Python's, which another thread holds
	WAIT_SLEEP,
	WAIT_CHILD, // a process that it started
	WAIT_OTHER,
	N_WAITS,
};

struct wait_facts { // of one kind of thread
	uint64_t looks; // 0: nobody looked, and no share is known
	double share[N_WAITS]; // of the time; of loader workers: of the time they prepare
	// Of the training thread alone, and of iterations' time.
	uint64_t placed; // looks whose phase is known
	double in_data[N_WAITS]; // while it took a batch; NAN: not known
	double in_step[N_WAITS]; // in the rest of an iteration
};

// What the threads of the training process are for (source `threads`).
enum thread_group {
	THREADS_MAIN, // the first
	THREADS_OPENMP, // the team without it
	THREADS_BLAS,
	THREADS_POOL, // the framework's: Eigen, XLA, TBB
	THREADS_DEVICE, // autograd, drivers, communication
	THREADS_PYTHON, // beside the first
	THREADS_UNNAMED, // nothing tells
	THREADS_OTHER,
	N_THREAD_GROUPS,
};

struct thread_group_facts {
	double threads; // that there were at most; NAN: not known
	double cpus; // that they used; with what was found out about a thread later
	double ready; // mean number of them that were ready and had no CPU
	double runs; // a second: each ends with a wait or a switch
};

// Of the process that trains, over the steady iterations, all without a sample. NAN throughout
// where the source was not there (no schedstat, a run of an older recorder): the run's table of
// missing metrics has the reason. Clocks of groups, and at best medium confidence.
struct thread_facts {
	bool known; // the first thread's CPU time is
	struct thread_group_facts groups[N_THREAD_GROUPS];
	bool unnamed_poll; // unnamed threads were looked at, and always ran: in a process with
	                   // Python they are a team that polls, OpenMP's or a BLAS's
	bool unnamed_alone; // they run for long while the first thread neither runs nor is ready,
	                    // and use one CPU together with it: as a thread does that holds
	                    // Python's lock. Never with unnamed_poll
	double team_cpus; // of OpenMP, BLAS, and the unnamed where they poll
	double team_threads; // of the groups that team_cpus is of
	double team_busy; // share of the time that a thread of the busiest of these groups runs
	double team_outside; // of that share, at least the part in which nothing computes: beyond
	                     // forward, backward, optimizer and step. NAN without phases
	double team_alone; // share of the time that a thread of them ran and the first neither
	                   // ran nor was ready, at least. Python's unknown threads are in it
	double python_together; // CPUs that the first and Python's other threads used. The
	                        // interpreter's lock bounds what of it is Python to 1
	double others_cpus; // of all threads but the first: near 0, and one thread computes
};

struct children_facts { // processes that steps start: neither loader workers nor ranks
	double per_iteration; // NAN: not known
	double cpu_s; // of an iteration
	double waits_s; // of an iteration: the training thread waits for them
	const char *command; // the most frequent; from the job: escape it; NULL
};

struct quota_facts { // of the tightest cgroup around the job's processes
	double cpus; // NAN: none
	double used_up; // share of its periods, while training was steady
	bool own; // below strain: the job's own doing
	const char *where; // end of its path, two names; escape it; NULL
	double used_cpus; // by the job; others may use the same quota
	double throttled_cpus; // held back by it: CPU-seconds per second, each CPU counts
	double throttled_cpu_s; // the same in the whole run: may pass the run's time
	double queued_cpus; // leaders of the job's processes that were ready and had none
	double needed_cpus; // at least: used_cpus, and the larger of the two before; at most the
	                    // host's. Of a quota that others share, they are in it. 1 - used_cpus /
	                    // needed_cpus is the time that a larger quota would save
};

struct facts {
	double duration_s;
	// Where the training thread's time went. Training is the run without its start and its end.
	double startup_s;
	double training_s;
	double between_s; // of it, between iterations, in nothing that stands apart
	double validation_s;
	double checkpoint_s;
	// Steady iterations.
	bool iterations; // there are
	bool parts; // and phases in them
	bool lost; // marks of them were
	uint64_t steady;
	struct estimate length_s;
	struct estimate share[N_KNOWN_PHASES]; // of phases that were; NAN else
	double data_at_epochs; // of an iteration: the part of its share that the first ones of
	double other_at_epochs; // epochs have
	double samples; // of an iteration
	double epoch_iterations; // of the longest epoch; NAN: there are none
	double compute_s; // forward, backward, optimizer, step, other: mean of an iteration
	double undisturbed_s; // the same where nothing was in the way: of each phase its 2nd
	                      // percentile
	double undisturbed_waits_s; // the same of transfer and communication: ranks that are
	                            // disturbed keep others waiting
	// CPUs.
	double cpus; // that the job may use
	double cpus_used;
	double main_cpus; // used by the training process
	double main_threads; // that it had at most
	bool one_thread; // it is known that one computes
	bool openmp; // settings of OpenMP change how many compute, as far as is known
	double main_queued; // share of time its leader thread was ready and had no CPU
	double page_faults; // of the training process a second, without storage
	double others_cpus; // of these, used by other programs, or taken by the hypervisor, at
	                    // least: of a job that may use a part of the machine it is not known
	                    // where they were
	double host_cpus;
	double host_others_cpus; // on any of them
	double stolen_cpus; // by the hypervisor
	double cpu_stalled; // pressure: some task of the host waited for a CPU, share of time
	double throttled; // share of the periods of its quota in which it was used up
	struct worker_facts workers;
	struct storage_facts storage;
	struct memory_facts memory;
	struct gpu_facts gpu;
	struct rank_facts ranks;
	struct wait_facts waits; // of the training thread
	struct wait_facts worker_waits; // of loader workers, while they prepare
	struct code_facts code; // of the training thread
	struct code_facts code_threads; // of the other threads of the training processes
	struct code_facts code_workers;
	struct thread_facts threads;
	struct children_facts children;
	struct quota_facts quota;
	struct growth growth;
	struct line_facts { // looks at lines (strain run --lines)
		uint64_t looks; // 0: none
		double share; // of these, in the most frequent line
		char top[128]; // "train.py:42 augment()"; from the job: escape it
	} lines;
	const char *loader_at; // "train.py:42"; from the job: escape it; NULL
	const char *reference_blas; // the file of the slow one, which it uses; as loader_at
	const char *wait_policy; // OMP_WAIT_POLICY as the job had it; NULL
	double omp_threads; // OMP_NUM_THREADS as the job had it; NAN
	enum framework framework;
	bool python; // the training process runs Python, as far as is known
	bool pipeline; // batches come from the framework's own, which has no workers (Keras)
};

// The steady iterations, which rates are of, without what lies between their epochs where that is
// much; the whole run where there are none.
struct stretch facts_stretch(const struct analysis *a);
// Needs everything of the analysis but the verdict.
void facts_gather(const struct analysis *a, struct facts *ret);
// Whether it is known that one thread computes: there is no other beside those that feed workers,
// or the environment set it to one. A script may have set more since: then it uses more CPUs.
bool facts_one_thread(const struct facts *f, double feeding, bool set_to_one);
// Takes a phase for what it is where its name says more than is known.
void facts_doubt_data(struct facts *f);
// Nothing known.
void facts_init(struct facts *f);
// Share of an iteration, 0 where that phase never was.
double facts_share(const struct facts *f, enum phase_id phase);
// Iterations' share of training: the rest is validation and checkpoints.
double facts_iterations_share(const struct facts *f);

// Quota facts -------------------------------------------------------------------------------------
//
// The CPU quota that applies to the job: how much of it the job uses, and how much CPU time it
// asked for.

struct analysis;
struct facts;
struct stretch;

// Fills facts.quota. Needs cpus_used and host_cpus; narrows nothing.
void quota_facts_fill(const struct analysis *a, const struct stretch *stretch, struct facts *ret);

// Thread facts ------------------------------------------------------------------------------------
//
// The threads of the process that trains, by what they are for, and what their clocks say about
// teams that spin and about Python's lock where no sample may be taken.

struct analysis;

struct stretch;

struct text;

// Fills facts.threads. `main` is the process that trains. Needs the shares of phases and the
// framework.
void thread_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret);
// "main", "OpenMP team", ...
const char *thread_group_title(enum thread_group group);
// CPU time that a group used while its threads were unnamed, as it was told apart later: moves that
// part of the unnamed threads' CPUs. earlier[]: seconds of the whole run, NAN or 0 where none;
// unnamed_s: what all unnamed threads used.
void thread_facts_rename(
	struct thread_facts *t, const double earlier[N_THREAD_GROUPS], double unnamed_s);
// Everything after `groups`, from these, the rate of looks that found unnamed threads running, the
// share of time in which one ran alone, and the shares of phases (f->share).
void thread_facts_conclude(
	struct thread_facts *t, const struct facts *f, double running_looks, double alone);
// "main 0.9, OpenMP team of 3 2.1 CPUs": groups that used a CPU for 2 % of the time or more.
void thread_facts_append(struct text *text, const struct thread_facts *t);

// Wait facts --------------------------------------------------------------------------------------
//
// What the training thread and the loader's workers wait for, from looks at them (source `waits`),
// and the processes that steps start.

struct analysis;
struct facts;
struct stretch;

// Fills facts.waits, facts.worker_waits and facts.children. `main` is the process that trains.
// Needs length_s, ranks and workers.
//
// A worker without a batch to prepare waits at the pipe that names the next one: looks that find
// one at a pipe are left out, and the other shares are of the time that it prepares.
void wait_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret);

struct wait_facts;
// "sleep 84 %, lock 5 %": kinds with 5 % or more, the largest first; nothing where there are none.
void wait_facts_append(struct text *t, const struct wait_facts *waits);

// Worker facts ------------------------------------------------------------------------------------
//
// The loader's workers, out of all that ever were: a loader that starts them anew with each epoch
// has no more of them for that, and another loader's, for validation, prepare nothing for training.

// Fills ret->workers, but for what settings say. `main` is the process that trains. Needs
// ret->ranks.
void worker_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret);

// Figures that no machine can have become NAN (run/plausible.h); `notes` NULL: none are kept.
struct implausible_list;
struct machine_bounds;
void facts_check_plausible(
	const struct machine_bounds *bounds, struct facts *f, struct implausible_list *notes);
