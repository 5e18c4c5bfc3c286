// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The largest batch that fits, and the batch size and workers that train fastest, from short runs
// of a job (probes). Each probe shortens the epochs, so that it contains validation, the boundary
// of an epoch and the second epoch.
//
//     now       the unmodified job, or its placeholders' defaults
//     setting   with what the verdict of the first advises to set (threads, the allocator)
//     line      other batch sizes: memory and time as functions of the batch size
//     workers   with workers, if the job has none and waits for its batches
//     verify    the largest batch that should fit, under the limit itself
//     advised   the advised configuration: its rate beside the predicted one
//     again     the job as it is once more, where other programs are busy or its rate fits no
//               other run: what the advised one gains is then not by chance
//     request   the advised configuration under exactly the limits to ask for
//     converge  the present and the advised configuration, with epochs of full length, to compare
//               how the loss falls
//
// A batch size and a number of workers reach the job through placeholders in its command,
// {batch_size} or {batch_size=32}, and {workers}; else through the hook of PyTorch's loaders.

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "probe/curve.h"
#include "probe/memory_model.h"
#include "probe/observation.h"
#include "probe/rate_model.h"

// What is asked for beyond what the job needed.
#define REQUEST_MEMORY_MARGIN 0.15
// The same where samples differ in size, and the allocator is glibc's default: its memory goes on
// growing for minutes, because blocks of many sizes split it (seen: 263 MB in a probe, 502 MB after
// two epochs).
#define REQUEST_MEMORY_MARGIN_VARIED 1.0
#define REQUEST_CPU_MARGIN 0.1
#define REQUEST_RATE 0.95 // of the rate with all CPUs, predicted with those requested
#define REQUEST_TIME_MARGIN 0.2
// Other programs that use this share of the CPUs change rates.
#define ADVICE_BUSY 0.2
// The present rate over what all runs together suggest, or the reverse, from which on it runs
// again.
#define ADVICE_ODD 1.25

struct probe_overlay;

enum advice_limit {
	ADVICE_LIMIT_REQUESTED, // --memory
	ADVICE_LIMIT_CGROUP, // of this process
	ADVICE_LIMIT_ADDRESS_SPACE, // RLIMIT_AS of this process: VmPeak counts
	ADVICE_LIMIT_GPU, // the memory of the GPUs that the job uses
	ADVICE_LIMIT_MACHINE, // memory available on this machine
	N_ADVICE_LIMITS,
};

// How the largest batch was verified.
enum advice_verified {
	ADVICE_NOT_VERIFIED,
	ADVICE_MEASURED, // it ran; the limit could not be set, but the peak stayed below it
	ADVICE_UNDER_LIMIT, // it ran under the limit
};

enum advice_step {
	ADVICE_NOW,
	ADVICE_SETTING,
	ADVICE_LINE,
	ADVICE_WORKERS,
	ADVICE_VERIFY,
	ADVICE_ADVISED,
	ADVICE_AGAIN,
	ADVICE_REQUEST,
	ADVICE_CONVERGE,
	N_ADVICE_STEPS,
};

struct advice_probe {
	enum advice_step step;
	int64_t batch_size; // as requested; -1: the script's own
	int64_t workers; // as requested; -1: the script's own
	uint64_t limit_bytes; // under which it ran; 0: none
	struct setting_list settings; // with which it ran
	struct estimate gain; // ADVICE_SETTING: of these, over a run without; NAN: not known
	bool apart; // these are not the advised ones: the models do not rest on it
	char *run; // path of its run file
	struct observation seen;
	double virtual_bytes; // highest VmPeak of a process; NAN: not seen
	double seconds;
	bool failed; // the job failed
	bool cut; // --limit ended it
	bool lasted; // for LASTING_SECONDS, with epochs of full length
	int status; // of the job, as wait(2) returns it, if it failed
	char *reason; // why, or why something is missing
};

// Steps of an epoch, at least, with the advised batch size: fewer hardly train.
#define ADVICE_EPOCH_STEPS 8

enum {
	ADVICE_LABELS_MAX = 16,
	ADVICE_PROBES_MAX = 32,
	ADVICE_CPUS_MAX = 10,
	ADVICE_BATCHES_MAX = 10
};

// How the learning rate follows the batch size.
enum advice_scaling {
	ADVICE_SCALE_NONE,
	ADVICE_SCALE_LINEAR, // in proportion (Goyal et al. 2017)
	ADVICE_SCALE_SQRT, // with its square root (Krizhevsky 2014)
};

struct advice_curve {
	const struct advice_probe *probe; // NULL: not made
	double learning_rate; // 0: the script's own
	struct curve curve;
};

// A configuration, as predicted.
struct advice_choice {
	int64_t batch_size, workers;
	struct rate_prediction at;
};

struct advice_config {
	char *const *command; // ends with NULL
	const char *folder; // exists; absolute; for the runs and the job's output
	const char *const *labels; // [n_labels] of the runs: "NAME=VALUE"
	size_t n_labels; // at most ADVICE_LABELS_MAX
	const struct probe_overlay *overlay; // of the job's working directory
	uint64_t memory_bytes; // --memory; 0: the limit that applies
	uint64_t gpu_memory_bytes; // --gpu-memory; 0: that of the GPUs
	unsigned cpus; // --cpus for the probes; 0: all that this process may use
	double margin; // share of the limit that stays free
	double error; // relative error at which a rate is known
	uint64_t limit_ns; // of one probe
	uint64_t time_ns; // for all probes: none starts later
	uint64_t converge_ns; // of each run that compares convergence; 0: none
	const char *pattern; // for these runs, as --epoch-pattern; NULL: curve_pattern
	enum advice_scaling scaling; // of {learning_rate=X}
	uint64_t epochs; // for which to ask for time; 0: not known
	bool verify; // run the job once under what is to be asked for
	void (*say)(const char *text); // a line on the next step
	const volatile sig_atomic_t *interrupted;
};

// A value is NAN, -1 or NULL with a reason in its *_missing.
struct advice {
	struct advice_probe probes[ADVICE_PROBES_MAX];
	size_t n;
	const struct advice_probe *now; // NULL: not even the first probe succeeded
	// On which the models rest: it ran with the advised settings. As long as none are, `now`.
	const struct advice_probe *base;
	struct setting_list settings; // advised; none: n is 0
	struct estimate settings_gain; // measured; NAN: none are advised
	// Settings of the allocator that make the advised configuration faster. They change the
	// memory that the job needs, so that everything else is without them.
	struct setting_list allocator;
	const struct advice_probe *allocator_tried; // the run with such settings; NULL: none
	struct estimate allocator_gain;
	double allocator_bytes; // of what is limited
	bool placeholders; // the command has them
	bool pinned; // the allocator returns large blocks to the kernel: memory is regular
	unsigned cpus; // that the job may use

	enum advice_limit limit_kind;
	double limit_bytes;
	struct memory_point points[MEMORY_POINTS_MAX];
	size_t n_points;
	bool has_memory;
	struct memory_model memory;
	double now_bytes; // measured, of what is limited
	// If memory grows with each iteration, this may be a cache that fills until the end of the
	// first epoch: what it holds then, which points, largest and bytes_* include. 0: it does
	// not grow; or the samples of an epoch are not known, and nothing is included.
	double reserve_bytes;
	double validation_bytes; // of these, what a whole validation keeps beyond that of the
	                         // probes
	double lasts; // iterations until it reaches the limit at that rate; NAN: it does not grow
	// Batch size. If one ran, `value` is the largest that ran, or the largest below it that
	// passes nearly every time, where equal runs need different memory.
	struct estimate largest;
	double largest_estimate; // batch size: where the line meets the limit
	enum advice_verified verified;
	int64_t verified_batch; // largest that ran below the limit; -1: none
	bool verified_long; // also for some seconds, with epochs of full length
	double verified_epoch; // then the share of an epoch that ran, at most 1; NAN: not known
	int64_t failed_batch; // smallest that did not fit; -1: none
	// What one more worker adds, by batch size: ascending.
	struct worker_point {
		double batch, bytes, workers; // workers: of the run that showed it
	} worker_points[ADVICE_PROBES_MAX];
	size_t n_worker_points;
	double worker_bytes; // the same at the present batch size; NAN: not seen
	double worker_copies; // of the training process's pages, once for all; NAN: not seen
	double worker_shared; // in /dev/shm, for each worker and sample of a batch
	char *largest_missing;
	char *verified_missing; // why a run under the limit says nothing, or was not made
	bool nothing_fits;
	bool largest_open; // memory does not grow up to `largest`; high is NAN
	bool whole_epoch; // `largest` is bounded by the samples of an epoch, not by memory

	bool has_rate;
	struct rate_model rate;
	char *rate_missing;
	int64_t batch_size, workers; // advised; -1: not known
	bool keep; // the present configuration is as good
	struct rate_prediction predicted; // at the advised configuration
	double bytes_predicted;
	const struct advice_probe *measured; // the run of the advised configuration; NULL: none
	// The rates of others than the present one were predicted.
	bool compared_batches, compared_workers;
	double compared_most; // batch size: larger ones leave an epoch too few steps; NAN: not
	                      // known
	bool did_not_fit; // other configurations were faster, but did not fit when they ran
	bool refuted; // the run of another configuration did not gain what was predicted
	char *advised_missing; // the run of another configuration failed, not for lack of memory
	char *workers_missing; // why other numbers of workers could not be tried
	struct estimate gain; // measured over now; NAN: not measured
	const struct advice_probe *again; // the present configuration once more; NULL: not made
	bool first_refuted; // its first rate fits no other run, the second does: that one counts
	struct estimate unclear_gain; // which made it keep the present one; NAN: another reason
	// The best configuration for a number of CPUs, and the best number of workers for batch
	// sizes that double from the present one.
	struct advice_choice by_cpus[ADVICE_CPUS_MAX];
	unsigned by_cpus_cpus[ADVICE_CPUS_MAX];
	size_t n_by_cpus;
	struct advice_choice by_batch[ADVICE_BATCHES_MAX];
	double by_batch_bytes[ADVICE_BATCHES_MAX]; // NAN: not known
	size_t n_by_batch;

	struct advice_curve curves[2]; // of the present and the advised configuration
	char *curves_missing; // why there are none; NULL: there are, or they were not asked for

	// What to ask for; NAN: not known.
	struct advice_request {
		double cpus_used, cpus; // CPU time over time, and with a margin, whole
		double peak_bytes, bytes; // of host memory, and with a margin
		double margin; // a share of the peak
		double epoch; // seconds of an epoch's iterations
		double validation; // seconds of an epoch's validation
		double read; // bytes per second from storage
		double seconds; // for all epochs, with a margin
		double startup; // seconds
	} request;
	const struct advice_probe *requested; // ran under it; NULL: none did
	bool requested_failed; // else requested_missing says why nothing is known
	char *requested_missing;
	// Estimates by the rules of Tripathi 2019, from the same runs, unchecked: where the line
	// through the first two batch sizes meets the limit, the workers that fit in memory beside
	// the present batch, and the seconds of the two runs; NAN: not known.
	double thesis_batch;
	double thesis_workers;
	double thesis_seconds;

	bool interrupted;
	bool out_of_time;
	char *failed_output; // of the probe that failed or has no iterations; NULL: none
	double seconds;
};

// Runs the probes. Returns 0, also if it was interrupted or ran out of time; the answer then has
// what is known so far. Returns -errno if not even the first probe succeeded. Release ret in any
// case.
int advice_make(const struct advice_config *config, struct advice *ret, struct error *e);
void advice_done(struct advice *a);
// Samples per second of the present configuration, by one run or by two: the mean, with an interval
// that holds those of both.
struct estimate advice_present_rate(const struct advice *a);

// "now", "setting", "line", "workers", "verify", "advised", "again", "request", "converge"
const char *advice_step_name(enum advice_step step);
// "requested", "cgroup", "address space", "gpu", "machine"
const char *advice_limit_name(enum advice_limit limit);
// Whether settings made a run clearly faster.
bool advice_gained(const struct estimate *gain);
// "no", "measured", "limit"
const char *advice_verified_name(enum advice_verified verified);
