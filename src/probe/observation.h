// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The input of the models of memory and throughput, from one run: its configuration, its peak of
// memory by use, and the time and CPU time of an iteration. Computed from the run file alone, so
// that any run can be an observation, not only a probe.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "run/phases.h"
#include "verdict/setting.h"

enum { OBSERVATION_SETTINGS = 4 };

// Gains below this are not worth a run of their own.
#define OBSERVATION_GAIN_MIN 1.05

// NAN, -1 and NULL mean "not known". Times are seconds, memory is bytes.
struct observation {
	// The configuration, as the run shows it.
	int64_t batch_size; // samples of a steady iteration (median)
	int64_t loader_batch_size; // as the training loader was created
	int64_t accumulated; // batches of which an iteration consisted (observation_divide); else 1
	double passes; // backward passes of an iteration, as they were marked (mean)
	int64_t workers; // of the training loader
	int64_t prefetch; // batches that each worker prepares ahead
	bool pinned; // the loader copies batches to pinned memory
	double cpus; // that the job could use
	uint64_t ranks; // processes that train; batch size, workers and rate are those of one
	double threads; // that compute in the training process: CPU time over wall time of a step

	// Peaks of memory.
	double anonymous; // of the job: what no file backs, each page once
	// Highest readings of the processes' own memory in validation, and outside of it since the
	// first iteration; NAN: no validation was seen.
	double validation_peak, training_peak;
	double shared; // /dev/shm and tmpfs, charged to the job's cgroup; without one, as mapped
	               // at some readings
	double kernel; // charged to the job's cgroup
	double page_cache; // charged to the job's cgroup; can be dropped
	double worker; // of one loader worker, not shared with others (mean over workers)
	double gpu; // the job's, on all GPUs
	double gpu_limit; // capacity of these GPUs
	unsigned gpus; // number of these GPUs
	double gpu_reserved; // by the framework's allocator, in the process that trains, at most
	double gpu_allocated; // of these, in use, at most; the rest is cached
	double gpu_cap; // of this allocator, if the job set one (PyTorch's memory fraction)
	double memory_limit; // that applied to the run; NAN: none but the machine's
	double memory_total; // the same, else the machine's
	double leak_per_iteration; // growth of memory per iteration; NAN: no leak
	double kept_per_batch; // of a rank, by the hooks of a probe; NAN: nothing was seen

	// Steady iterations of the training process. Those that begin an epoch wait longer: workers
	// start. In shortened epochs they are too many; the rate is that of epochs of full length.
	struct estimate rate; // samples per second
	struct estimate iteration; // seconds: mean, without what the first of an epoch waits longer
	double epoch_start; // what it waits longer, in seconds
	uint64_t iterations; // steady ones
	double compute; // seconds of an iteration, without waiting for data
	double wait; // seconds of an iteration, waiting for data (preparing it if workers is 0)
	double main_cpu; // CPU seconds of the training process per iteration, preparing included
	double prepare_cpu; // CPU seconds per sample in workers; if workers is 0, seconds in which
	                    // the training process waits for a sample, reads included
	double asked; // bytes per sample that the job read
	double stored; // bytes per sample that came from storage
	double storage_rate; // bytes per second from storage while iterating
	bool waits_for_storage; // storage is a cause of lost time
	double gpu_busy; // share of time in which the job's GPUs computed (mean over GPUs)
	double epoch; // seconds of a whole epoch (median)
	double epoch_samples; // of that epoch; else of the loader
	bool epoch_known; // they include those of a smaller last batch
	double validation; // seconds of an epoch's validation, in full length; NAN: not known
	double validation_kept; // bytes that the rest of a full validation would keep; 0: not seen
	double startup; // seconds before the first iteration
	double cpus_used; // by the job while it iterates
	double others_cpus; // that other programs used of those that the job could use

	// Behaviour.
	size_t epochs; // that have ended
	bool validated; // a validation phase was seen
	bool saved; // a checkpoint was seen
	bool hooked; // hooks of a framework were in the job
	bool shortened; // its epochs were shortened
	bool killed; // the kernel killed a process of the job for lack of memory; it may have gone
	             // on
	bool out_of_memory; // the job failed for lack of memory, by what it printed
	bool iterable; // the loader's dataset is: the script divides it among workers
	// Of samples that differ in size, in a probe that began with the largest ones (hooks.md):
	// how many the hooks looked at, of how many (-1: unknown), and their elements. 0: they do
	// not differ, or nobody looked.
	struct sample_sizes {
		int64_t looked, of;
		double median, largest;
	} sizes;
	struct sample_sizes unchosen; // the same of batches, per sample, which were as they came
	char *loader_at; // "train.py:42"
	const struct loader_words *loader_words; // what the code there calls its settings
	char *fit_at; // the same of Keras' fit; has loader_batch_size, if that is known
	char *loader_set; // settings of STRAIN_SET that were applied
	char *loader_set_missing; // why they were not
	char *optimizer; // class of the optimizer
	char *headline; // of the verdict; NULL: it is about shortened epochs
	char *rate_missing; // why there is no rate
	// What the verdict advises to set, without the number of workers: each a list of its own.
	struct setting_list settings[OBSERVATION_SETTINGS];
	size_t n_settings;
};

// Reads a finished run. Returns 0, or -errno if it cannot be read. Release ret in any case.
int observation_read(const char *path, struct observation *ret, struct error *e);
void observation_done(struct observation *o);

// Makes an iteration that accumulates the gradients of so many batches into that many iterations of
// one batch, for models by batch size. Rates stay.
void observation_divide(struct observation *o, int64_t batches);
// Counts what the hooks saw each batch keep as a leak of the iterations, which consist of a batch
// each (observation_divide).
void observation_count_kept(struct observation *o);

// Memory that counts against a cgroup's limit and cannot be dropped: anonymous, shared, kernel.
// Parts that are not known count as 0. NAN: anonymous memory is not known.
double observation_held(const struct observation *o);
// The same of the job's GPUs: without what PyTorch's allocator reserved beyond the memory in use,
// which it gives back before it fails. NAN: not known.
double observation_gpu_needed(const struct observation *o);
