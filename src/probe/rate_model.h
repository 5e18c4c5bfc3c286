// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Throughput as a function of the batch size, the loader's workers, CPUs and storage. The time of
// an iteration of B samples with W workers on C CPUs is bounded by
//
//     compute      (a + b B + h) d(B)            the training process's own work; h to receive a
//                                                batch of workers; d is what it deviates from the
//                                                line at the batch sizes that ran, interpolated
//                                                between them
//     prepare      (q + p B) / W                 workers: p CPU-seconds a sample, q seconds to send
//                                                a batch
//     cpu          N (c0 + c1 B + p B + q') / C  all CPU time there is, shared by all processes of
//                                                N ranks; q' of q is CPU time. Longer by a factor
//                                                that runs show which it bound
//     storage      s (1 - h) B / R               bytes from storage, hit ratio h, R bytes/s
//
// and close to their maximum, plus (w W + f) B / E in epochs of E samples: w seconds in which a
// worker starts, and f seconds until the first batch is prepared (if preparing is the bound, the
// time of computing the last one instead). Where two of them are near each other it is longer (a
// norm of order RATE_OVERLAP, after Pollux, Qiao et al., OSDI 2021). With W = 0 the process
// prepares its batches itself: compute + p B + storage, with compute as runs without workers showed
// it: no process then takes caches, memory bandwidth and CPU time from the computing threads.
// Parameters come from at least one observation; with a single batch size, a and b cannot be told
// apart, and a is taken as 0.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/observation.h"

#define RATE_OVERLAP 8.0
// Relative error of a prediction for a configuration that was not run, at 90 %: half the interval
// at the configurations that were run, before it widens with the distance from them.
#define RATE_MODEL_ERROR 0.08

enum rate_bound { RATE_COMPUTE, RATE_PREPARE, RATE_CPU, RATE_STORAGE, N_RATE_BOUNDS };

enum { RATE_KNOTS_MAX = 16 };

struct rate_knot {
	double batch;
	double sum; // of the logarithms of compute over the line, as far as it is more than noise
	double runs;
};

struct rate_model {
	double a, b; // seconds of compute: per iteration, per sample
	struct rate_knot knots[RATE_KNOTS_MAX]; // ascending
	size_t n_knots;
	double p; // CPU seconds of preparing a sample; 0: not visible
	double c0, c1; // CPU seconds of the training process without preparing: per iteration, per
	               // sample
	double handover; // seconds that the training process needs to receive a batch from workers
	double send; // seconds that a worker needs for a batch, beside its samples; 0: not seen
	double send_cpu; // CPU seconds of it
	bool starts; // epochs were seen to begin with a wait
	double start; // seconds that each worker adds to it, beside preparing the first batch
	double epoch_samples; // NAN: not known
	double stored; // bytes per sample from storage, at the observed hit ratio
	double asked; // bytes per sample that the job reads
	double storage_rate; // bytes/s that storage delivered at most; NAN: storage was not the
	                     // limit
	double alone; // computing without workers over computing beside them; 1: not seen
	double cpu_loss; // factor of the bound of all CPUs: what sharing them costs; 1: not seen
	double ranks; // of the observations: most; batch, workers and rate are those of one
	double cpus; // of the observations: most; all ranks share them
	double cpus_min; // fewest
	double threads; // that compute in the training process (median)
	// Share of computing that more CPUs divide among them (Amdahl); NAN: not known, since all
	// observations had as many: then more CPUs gain nothing, and fewer cost what the threads
	// used (both with an interval up to the rate otherwise)
	double parallel;
	double gpu_share; // of computing; 0: no GPU
	double batch_min, batch_max; // of the observations
	double workers_max; // of the observations
	double scale; // of all rates; 1 unless the model is anchored
	double residual; // relative, root mean square at the observations; NAN: fewer than 3
	double bent; // the same of the line alone, before its corrections
	bool one_batch_size;
	bool prepare_known; // p was observed
};

struct rate_config {
	double batch, workers, cpus;
	double storage_rate; // bytes/s; NAN: as observed
	double hit; // share of bytes from the page cache; NAN: as observed
	double gpu_speed; // 1: as observed; 2: GPUs compute twice as fast
	double cpu_speed; // 1: as observed; 2: CPUs compute twice as fast
};

struct rate_prediction {
	struct estimate rate; // samples per second, 90 % interval
	enum rate_bound bound; // the longest of the bounds
	double bounds[N_RATE_BOUNDS]; // seconds of an iteration
	bool extrapolated; // outside of what was observed
};

// Fits the model to observations of one job. Returns 0; -ENODATA with the reason if no observation
// has a rate.
int rate_model_fit(
	const struct observation *observations, size_t n, struct rate_model *ret, struct error *e);
// Scales the model so that it gives the rate of this observation: what other configurations gain is
// then in proportion to what was measured there.
void rate_model_anchor(struct rate_model *m, const struct observation *at);
// Computing over that of the line a + b B: interpolated between the batch sizes that ran, beyond
// them as at the nearest.
double rate_model_deviation(const struct rate_model *m, double batch);
// A configuration as observed, to be changed: batch and workers are given.
struct rate_config rate_config_of(const struct rate_model *m, double batch, double workers);
struct rate_prediction rate_model_predict(
	const struct rate_model *m, const struct rate_config *config);
// "compute", "prepare", "cpu", "storage"
const char *rate_bound_name(enum rate_bound bound);
