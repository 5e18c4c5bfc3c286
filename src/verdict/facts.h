// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The input of the rules of a verdict: an iteration and its use of resources, as numbers. NAN
// always means "not known". The rules do not depend on the source of a number, so that tests can
// apply the rules to any numbers.
//
// Rates are over a stretch of steady iterations without start, validation and checkpoints. "CPUs"
// are seconds of CPU time per second.

#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "run/phases.h"
#include "run/rate.h"
#include "run/gpu_facts.h"
#include "run/growth.h"
#include "run/profile.h"
#include "verdict/trend.h"

struct analysis;
struct implausible_list;
struct machine_bounds;
struct stretch;

// The framework whose hooks marked the job.
enum framework { FRAMEWORK_UNKNOWN, FRAMEWORK_PYTORCH, FRAMEWORK_KERAS, FRAMEWORK_JAX };

enum { LINE_TOPS = 3 };

struct worker_facts { // the loader's workers, together
	unsigned n; // at a time; 0: the training thread prepares batches itself, or not known
	unsigned feeding; // at a time, including those of other loaders
	bool marked; // they mark their batches
	double cpus; // used by them
	double queued; // mean number that were ready without a CPU
	double blocked; // mean number that were preparing, but neither ran nor were ready
	double preparing; // mean number that were preparing a batch
	double busiest; // of its time, the share in which the busiest of them was preparing
	double slowest; // time per sample of the slowest, relative to the median of the others
	int slowest_number;
	bool restart; // they are started anew with each epoch
};

struct storage_facts {
	double read_rate; // bytes fetched from storage per second, by the job
	double written_rate;
	double asked_rate; // bytes read through system calls
	double read_limit; // of --disk-read, in bytes per second; NAN: none
	// of pages that had just been evicted from the page cache, in bytes per second
	double refault_rate;
	double refaults_of_host; // the same for the whole host, if the job's own is not known
	double stalled; // pressure: some task waited for storage, share of time
	bool stalled_of_job; // else of the whole host
};

struct memory_facts {
	double limit_bytes;
	double peak_bytes; // of memory that cannot be dropped
	bool limited; // by a cgroup
	double limit_hits; // how often a limit was reached
	double stalled; // pressure: all tasks waited for memory
	double swap_rate; // bytes per second swapped in, whole host
	double shared_bytes; // peak of the job's shared memory: batches on their way
	double shared_limit_bytes; // of /dev/shm
};

// TCP connections to other machines, of the one that they sent to for longest.
struct network_facts {
	double busy; // share of the time in which data were on their way to it; NAN: none known
	double busy_rate; // bytes per second of that time
	double sent_rate; // bytes per second of all time
	double round_trip_s; // mean of the smoothed ones
	double least_round_trip_s; // to the nearest machine of all
	double retransmitted; // packets per second
	double network_namespace; // number of the network namespace
	const char *local, *peer; // addresses; from the file: escape them; NULL
};

// What threads do while they do not run, by looks at them (source `waits`).
enum wait_kind {
	WAIT_STORAGE, // reads
	WAIT_FSYNC, // fsync, fdatasync, msync
	WAIT_NETWORK,
	WAIT_PIPE,
	WAIT_LOCK, // between processes (flock, fcntl, semaphores) or threads
	WAIT_GIL, // Python's lock, held by another thread
	WAIT_SLEEP,
	WAIT_CHILD, // a process that it started
	WAIT_OTHER,
	N_WAITS,
};

struct rank_facts {
	unsigned n; // recorded ranks that train together; 1: no others
	int64_t world; // ranks of the job, as its launcher says; 0: it does not
	double waits_most; // largest share of a rank's iterations spent waiting for the others
	double waits_least;
	double own; // of the rank whose iterations these are
	bool inferred; // from backward, which then includes the wait (phases.h)
	double scatter; // by which inferred waits of equal ranks may differ; 0: not inferred
	int slowest; // number of the rank that waits least
	// Why that one is slower than all others: a wait, or a phase; both unknown: neither.
	double slow_wait; // share of its time, more than any other's by SLOWER; NAN: not known
	enum wait_kind slow_wait_kind;
	double slow_phase_s; // by which its phase is longer than any other's; NAN: not known
	int slow_phase; // enum phase_id
};

struct wait_facts { // of one group of threads
	uint64_t looks; // 0: none, so no share is known
	double share[N_WAITS]; // of the time; for loader workers, of the time in which they prepare
	double left_out; // of all looks at loader workers, those at pipes, which are in no share
	// Of the training thread only, as shares of the time of iterations.
	uint64_t placed; // looks whose phase is known
	double in_data[N_WAITS]; // while it took a batch; NAN: not known
	double in_step[N_WAITS]; // in the rest of an iteration
};

// The purpose of a thread of the training process (source `threads`).
enum thread_group {
	THREADS_MAIN, // the first thread
	THREADS_OPENMP, // the team without the first thread
	THREADS_BLAS,
	THREADS_POOL, // of the framework: Eigen, XLA, TBB
	THREADS_DEVICE, // autograd, drivers, communication
	THREADS_PYTHON, // without the first thread
	THREADS_UNNAMED, // purpose not known
	THREADS_OTHER,
	N_THREAD_GROUPS,
};

struct thread_group_facts {
	double threads; // largest number of them; NAN: not known
	double cpus; // used by them, including threads whose purpose was found out later
	double ready; // mean number that were ready without a CPU
	double runs; // per second; each run ends with a wait or a switch
};

// Threads of the training process over the steady iterations, known without samples. All are NAN if
// the source was not there (no schedstat, a run of an older recorder); the run's table of missing
// metrics has the reason. These are clocks of groups, so they support at most medium confidence.
struct thread_facts {
	bool known; // the CPU time of the first thread is known
	struct thread_group_facts groups[N_THREAD_GROUPS];
	// Unnamed threads were looked at and always ran. In a process with Python they are a team
	// that polls, of OpenMP or of a BLAS library.
	bool unnamed_poll;
	// They run for long while the first thread neither runs nor is ready, and together with it
	// use one CPU, like a thread that holds Python's lock. Excludes unnamed_poll.
	bool unnamed_alone;
	double team_cpus; // of OpenMP, BLAS, and unnamed threads if they poll
	double team_threads; // threads of the groups in team_cpus
	double team_busy; // share of the time in which a thread of the busiest of these groups runs
	// The least part of team_busy in which nothing computes: outside forward, backward,
	// optimizer and step. NAN without phases.
	double team_outside;
	// The least share of time in which one of them ran and the first neither ran nor was ready.
	// Includes Python's threads of unknown purpose.
	double team_alone;
	// CPUs used by the first thread and Python's other threads. Of these, at most 1 can be
	// Python code, because of the interpreter's lock.
	double python_together;
	double others_cpus; // of all threads but the first: if near 0, one thread computes
};

struct children_facts { // processes started by steps, without loader workers and ranks
	double per_iteration; // NAN: not known
	double cpu_s; // per iteration
	double waits_s; // per iteration: the training thread waits for them
	const char *command; // the most frequent; from the job: escape it; NULL
};

struct quota_facts { // of the tightest cgroup around the job's processes
	double cpus; // NAN: none
	double used_up; // share of its periods during steady training
	bool own; // its cgroup is below strain's: set by the job itself
	const char *where; // end of its path, two names; escape it; NULL: not known
	double used_cpus; // by the job; others may share the quota
	double throttled_cpus; // held back by it: CPU-seconds per second, summed over CPUs
	// the same over the whole run, in seconds: may exceed the run's length
	double throttled_cpu_s;
	double queued_cpus; // leaders of the job's processes that were ready without a CPU
	// The least demand: used_cpus plus the larger of throttled_cpus and queued_cpus, at most
	// the host's CPUs. Includes others who share the quota. A larger quota would save 1 -
	// used_cpus / needed_cpus of the time.
	double needed_cpus;
};

struct facts {
	double duration_s;
	// The time of the training thread. Training is the run without its start and its end.
	double startup_s;
	double training_s;
	double between_s; // part of training between iterations and outside phases that are apart
	double between_epochs; // share of it that is in no epoch; NAN: there are no epochs
	double predicts_between; // calls of predict() in that time
	double predicts_between_s;
	double validation_s; // of the rank with most, for which the others wait
	double validation_starting_s; // a part of it: until its loader's workers have a batch
	double compiling; // iterations of which compiling takes half
	double compiling_s; // its time in them
	int validates_alone; // number of that rank if another has far less; -1
	double checkpoint_s;
	// Steady iterations.
	bool iterations; // there are some
	bool parts; // there are phases in them
	bool lost; // some of their marks were lost
	uint64_t steady;
	struct estimate length_s;
	struct estimate share[N_KNOWN_PHASES]; // NAN for phases that did not occur
	double forward_calls, backward_calls; // in an iteration; NAN: none
	double forward_call_s; // on average
	double computing_in_data; // of that of step, the part that the marks have as data
	double data_at_epochs; // of the share of data, the part in the first iterations of
	double other_at_epochs; // epochs, as a share of all iterations; the same of other
	// Waits for data of other iterations that are longer than LONG_WAIT iterations.
	struct long_wait_facts {
		double share; // of the time of all iterations; NAN: not known
		double each; // of the iterations, the part with such a wait
		double mean_s;
	} long_waits;
	double samples; // per iteration, the median
	double rate; // samples per second of iterations
	double epoch_iterations; // of the longest epoch; NAN: no epochs
	double compute_s; // forward, backward, optimizer, step, other, without compilers: mean
	// The same undisturbed: the sum of the 2nd percentiles of these phases.
	double undisturbed_s;
	// The same for transfer and communication: a disturbed rank keeps the others waiting.
	double undisturbed_waits_s;
	// CPUs.
	double cpus; // available to the job
	double cpus_used;
	double main_cpus; // used by the training process
	double main_threads; // largest number of its threads
	double cpus_given; // that the job had at its start, before it restricted itself; NAN
	bool one_thread; // it is known that only one computes
	// settings of OpenMP change the number of computing threads, as far as is known
	bool openmp;
	double main_queued; // share of time in which its leader thread was ready without a CPU
	double page_faults; // of the training process, per second, without those that read storage
	// Of `cpus`, the least part that other programs or the hypervisor used. If the job may use
	// only a part of the machine, it is not known which CPUs they used.
	double others_cpus;
	double host_cpus;
	double host_others_cpus; // the same on any CPU of the host
	// Used by processes of the job that run other programs beside training; those whose CPU
	// time is not known are left out.
	double helpers_cpus;
	// Used by these and by copies of the training process that neither train nor are loader
	// workers, but not by those that a worker started: they may serve all workers.
	double servers_cpus;
	double stolen_cpus; // used by the hypervisor
	double cpu_stalled; // pressure: some task of the host waited for a CPU, share of time
	double throttled; // share of the periods of its quota in which it was used up
	struct worker_facts workers;
	struct storage_facts storage;
	struct memory_facts memory;
	struct gpu_facts gpu;
	struct rank_facts ranks;
	struct network_facts network;
	struct wait_facts waits; // of the training thread
	struct wait_facts worker_waits; // of loader workers, while they prepare
	struct code_facts code; // of the training thread
	// Its function or file with the most samples of code that is neither Python's nor the
	// framework's; from the job: escape it; "": none
	char native[96];
	struct code_top functions[CODE_TOPS]; // of the training thread, most samples first; 0: none
	// Shares of the time of iterations, from samples by phase, of all threads of the training
	// processes; NAN: not known.
	double native_in_other; // such code, outside of all phases
	double python_in_data; // the interpreter, while it takes a batch
	double all_in_other; // any code, outside of all phases
	double system_in_other; // the kernel, outside of all phases
	// Of the training thread outside of all phases: the interpreter, and short operations of
	// the framework that it calls (run/short_calls.h).
	double python_in_other;
	double calls_in_other;
	double arithmetic_in_other; // includes these
	double arrays_in_other; // NumPy's code there
	double kernel_in_other; // the kernel's samples there over all others there; NAN: too few
	double batch_tensors; // of the training loader
	double prefetch; // batches that each of its workers prepares ahead; NAN: not known
	double padding; // the share of its sequences of tokens that is padding; NAN: none seen
	double padding_common; // the same in which all sequences of a batch have padding
	double padded_length; // of these sequences, with padding; NAN: not known
	// Short operations in forward and backward: share of the samples there, and of the
	// iterations' time; and that of the interpreter there.
	double calls_of_steps;
	double calls_in_steps;
	double python_in_steps;
	// Python's garbage collections of 2 ms or longer, timed by the hooks.
	struct collection_facts {
		double in_data; // of iterations' time, while the training thread takes a batch
		double in_step; // in the rest of an iteration
		double mean_s; // of those in iterations
		double per_iteration; // number of these
		double of_preparing; // of the workers' time of preparation; NAN: none
	} collections;
	// Spans of the hooks in steady iterations of the main thread.
	struct named_facts {
		double share; // of iterations' time; 0: none
		double per_iteration;
		double iterations; // the part of these with such spans
		double mean_s;
		double since; // steady iterations after the last one
	} named[N_NAMED];
	struct trend trend; // of the iterations' length
	struct code_facts code_threads; // of the other threads of the training processes
	struct code_facts code_workers;
	struct thread_facts threads;
	struct children_facts children;
	struct quota_facts quota;
	struct growth growth, gpu_growth;
	struct line_facts { // samples of lines of the script, by function
		uint64_t looks; // 0: none
		bool of_trainer; // by a thread of the training process
		struct line_place {
			double share; // of these
			double error; // standard error of it
			// "train.py:42 augment()": its most frequent line; from the job: escape it
			char place[160];
			char phase[16]; // "": none
			// The training loop, which calls backward, the optimizer or the loader.
			bool loop;
		} tops[LINE_TOPS]; // most frequent first
		size_t n_tops;
		// The most frequent one outside of all phases, and while a batch is prepared or
		// waited for (of threads: that a pipeline runs): shares of the looks there.
		// place "": too few.
		struct line_place outside, data;
		// The most frequent line in forward, or two lines of one function, and the most
		// frequent functions of the script that backward and the optimizer called: shares
		// of the looks there.
		struct line_place forward, backward, optimizer;
		// The most frequent function that is not the training loop. place "": none.
		struct line_place main;
		double in_backward; // share of the samples in this phase, by the stack
		// Of the samples in backward, the share in forward passes that
		// torch.utils.checkpoint does again; NAN: too few samples.
		double recomputed;
		bool phased; // some were in a step, or in data
	} lines, thread_lines, worker_lines;
	bool double_precision; // matrix kernels of doubles have most of the samples of matrix
	                       // kernels
	// Parameters that get gradients: of an optimizer, and of none; NAN: not known.
	double parameters, parameters_omitted;
	// Functions of the script that run in forward and backward; NAN: none known.
	double callbacks;
	const char *callback_at; // "train.py:42", the first one; from the job: escape it; NULL
	// The function that torch.compile gave up on, from the job: escape it; NULL: none. After
	// how many graphs; NAN: not known.
	const char *compile_limit_at;
	double compile_limit;
	bool eager; // Keras executes operations one by one
	bool eager_tape; // a loop around a tape of TensorFlow: its step is not compiled
	// Results that each of the first steps read from the GPU, at least; NAN: none, or not
	// known.
	double reads;
	const char *reads_at; // most of them; from the job: escape it; NULL
	bool compiled; // the job calls torch.compile
	bool uncompiled; // of JAX: only the gradients are computed in a compiled function
	// How often PyTorch asked the driver of the GPU for memory, per iteration; NAN: not known.
	double allocations;
	// Those in embeddings with dense gradients, if they are most of those updated; NAN: not.
	double embeddings;
	// Of the elements of the largest matrix that goes into the model, if nearly all are 0:
	// their number, and the part that is 0; NAN: there is none.
	double matrix_elements, matrix_zeros;
	// Backward passes of each of the first steps, and those of them that keep the graph for
	// another one, at least; NAN: none does, or not known.
	double backward_passes, backward_kept;
	// Those of each of the first steps, at least, after which ranks exchanged gradients; NAN:
	// not more than one, or not known.
	double backward_synced;
	const char *debug_settings; // names of those left on, between spaces; from the job; NULL
	// In each step looked at, an operand was a denormal number.
	bool denormals;
	// Share of the backward passes whose gradients are zeroed before a step uses them, of the
	// optimizer that wastes most of its own; NAN: none. Whether they only meet its model last
	// (it is called last before the pass): its input's gradients may be needed.
	double backward_wasted;
	bool wasted_last;
	const char *unit; // of samples: "samples", "steps"
	// Stages of a tf.data pipeline, if they are known: batches are made ahead; it has maps, all
	// of which run in parallel; a map is applied to each sample, before batches are made.
	struct pipeline_facts {
		bool known, ahead, mapped, parallel, each;
	} stages;
	const char *loader_at; // "train.py:42"; from the job: escape it; NULL
	const struct loader_words *loader_words; // what the code there calls its settings
	// path of the slow reference BLAS that it uses; from the job: escape it; NULL
	const char *reference_blas;
	// MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_ in the job's environment; NULL
	const char *malloc_map, *malloc_trim;
	const char *wait_policy; // OMP_WAIT_POLICY in the job's environment; NULL
	double omp_threads; // OMP_NUM_THREADS in the job's environment; NAN
	enum framework framework;
	bool python; // the training process runs Python, as far as is known
	bool pipeline; // batches come from the framework's pipeline, which has no workers (Keras)
};

// A fact that is not known (NAN) counts as 0.
static inline double known_or_zero(double value)
{
	return isfinite(value) ? value : 0;
}

// The stretch of the rates: the steady iterations, without the time between their epochs if that is
// much. Without iterations, the whole run.
struct stretch facts_stretch(const struct analysis *a);
// Needs the whole analysis except the verdict.
void facts_gather(const struct analysis *a, struct facts *ret);
// The peer that the job's connections sent to for longest in a stretch.
void network_facts_fill(
	const struct analysis *a, const struct stretch *stretch, struct network_facts *ret);
// Whether it is known that one thread computes: there is no other besides those that feed workers,
// or the environment set the number to one. A script may set it later, but then it uses more CPUs.
bool facts_one_thread(const struct facts *f, double feeding, bool set_to_one);
// Renames the phase `data` if its marks include more than data.
void facts_doubt_data(struct facts *f);
// Counts waits in that phase for the framework's own threads as computing.
void facts_doubt_waits(struct facts *f);
// Where the driver does not say whose work a GPU does, and the training thread itself computes for
// most of the time without calling that driver: takes the work for that of others.
void facts_doubt_gpu(struct facts *f);
// Sets everything to "not known".
void facts_init(struct facts *f);
// Share of an iteration; 0 if the phase did not occur.
double facts_share(const struct facts *f, enum phase_id phase);
// Share of iterations in training; the rest is validation and checkpoints.
double facts_iterations_share(const struct facts *f);

// Quota facts -------------------------------------------------------------------------------------
//
// The CPU quota of the job: how much of it the job uses, and how much CPU time it asked for.

// Sets facts.quota. Needs cpus_used and host_cpus; changes no other fact.
void quota_facts_fill(const struct analysis *a, const struct stretch *stretch, struct facts *ret);

// Thread facts ------------------------------------------------------------------------------------
//
// The threads of the training process by purpose, and what their clocks say about spinning teams
// and Python's lock if no samples can be taken.

// Sets facts.threads. `main` is the training process. Needs the shares of phases and the framework.
void thread_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret);
// "main thread", "OpenMP team", ...
const char *thread_group_title(enum thread_group group);
// Moves CPU time from the unnamed threads to the groups that they were found to belong to later.
// earlier[]: seconds of the whole run that each group used while unnamed, NAN or 0 if none.
// unnamed_s: seconds that all unnamed threads used.
void thread_facts_rename(
	struct thread_facts *t, const double earlier[N_THREAD_GROUPS], double unnamed_s);
// Computes everything after `groups` from the groups, the rate of looks that found unnamed threads
// running, the share of time in which one ran alone, and the shares of phases (f->share).
void thread_facts_conclude(
	struct thread_facts *t, const struct facts *f, double running_looks, double alone);
// Appends "main thread 0.9, OpenMP team 2.1 CPUs": groups that used a CPU for 2 % of the time or
// more.
void thread_facts_append(struct text *text, const struct thread_facts *t);

// Wait facts --------------------------------------------------------------------------------------
//
// Waits of the training thread and the loader's workers, from looks at them (source `waits`), and
// the processes that steps start.

// Sets facts.waits, facts.worker_waits and facts.children. `main` is the training process. Needs
// length_s, ranks and workers.
//
// A worker without a batch to prepare waits at the pipe that names the next one. Such looks are not
// counted, so that the other shares refer to the time in which it prepares.
void wait_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret);

// Appends "sleep 84 %, lock 5 %": kinds with 5 % or more, the largest first; nothing if there are
// none.
void wait_facts_append(struct text *t, const struct wait_facts *waits);

// Worker facts ------------------------------------------------------------------------------------
//
// The loader's workers, of all that ever ran. A loader that starts workers anew with each epoch has
// no more of them for that. The workers of another loader, for validation, prepare nothing for
// training.

// Sets ret->workers, except for what settings decide. `main` is the training process. Needs
// ret->ranks.
void worker_facts_fill(
	const struct analysis *a, int64_t main, const struct stretch *stretch, struct facts *ret);

// Sets implausible figures to NAN (run/plausible.h). notes: NULL keeps no notes.
void facts_check_plausible(
	const struct machine_bounds *bounds, struct facts *f, struct implausible_list *notes);
