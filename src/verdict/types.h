// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The parts of a verdict: causes, suggestions, evidence, contents of memory, trials of advice.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "run/phases.h"
#include "verdict/setting.h"

enum bottleneck {
	BOTTLENECK_UNKNOWN, // too short, or too little was measured
	BOTTLENECK_FAILED, // the job did not end normally: out of memory, killed
	// Judged without phases.
	BOTTLENECK_CPU,
	BOTTLENECK_ONE_THREAD, // one busy CPU, the others idle
	BOTTLENECK_GPU,
	BOTTLENECK_GPU_FAULT, // errors after which its results cannot be trusted, or it is gone
	BOTTLENECK_IDLE, // waits for something that is not measured
	// From phases: each is a row of the table in causes.c, judged in this order. Some are also
	// judged without phases.
	BOTTLENECK_CPU_QUOTA, // throttled by its cgroup
	BOTTLENECK_THREADS, // more than the CPUs, or than short operations gain from
	BOTTLENECK_CONTENTION, // fewer CPUs than work, or others use them
	BOTTLENECK_STORAGE,
	BOTTLENECK_MEMORY,
	BOTTLENECK_INPUT, // the CPU work of preparing batches
	BOTTLENECK_INPUT_SLEEP, // preparation is blocked, by this and the next ones
	BOTTLENECK_INPUT_LOCK,
	BOTTLENECK_INPUT_NETWORK,
	BOTTLENECK_INPUT_BLOCKED, // by anything else
	BOTTLENECK_PYTHON_THREADS, // another thread holds the interpreter's lock
	BOTTLENECK_CHILDREN, // processes that a step starts
	BOTTLENECK_ENVIRONMENT, // of reinforcement learning
	BOTTLENECK_GENERATION, // of text, for training on it
	BOTTLENECK_BLOCKED, // the training thread waits in its steps for something outside
	BOTTLENECK_ALLOCATION, // page faults of memory that is returned and allocated again
	BOTTLENECK_OPTIMIZER,
	BOTTLENECK_HOST, // the host's own time between pieces of work
	BOTTLENECK_GPU_UNUSED,
	BOTTLENECK_GPU_SHARED, // with other programs
	BOTTLENECK_COMPUTE,
	BOTTLENECK_GPU_THROTTLED, // clocks held down (enum gpu_slowing)
	BOTTLENECK_TRANSFER, // host to device
	BOTTLENECK_NOT_KNOWN, // time that nothing explains
	BOTTLENECK_NETWORK, // between ranks
	BOTTLENECK_RANKS, // waits for other ranks
	BOTTLENECK_VALIDATION,
	BOTTLENECK_CHECKPOINT,
	BOTTLENECK_BETWEEN, // work between iterations, mostly at the end of epochs, in no phase
	BOTTLENECK_COMPILE, // code for new shapes, in the first iterations
	BOTTLENECK_STARTUP,
	BOTTLENECK_LEAK, // memory grows over iterations; has no share
	N_BOTTLENECKS,
};

enum confidence { CONFIDENCE_NONE, CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };

struct evidence {
	char *what; // "CPU"
	char *value; // "1.9 of 2 CPUs"
	const char *source; // a metric's name, or NULL
};

// A cause of lost time.
struct cause {
	enum bottleneck bottleneck;
	// By how much an iteration, training (validation, checkpoint, between, compile) or the run
	// (start-up) would be shorter without the cause; NAN: it costs no time (leak).
	struct estimate share;
	double weight; // the same relative to all of training, to compare causes
};

// The contents of memory, as far as readings at certain moments show them: of the training process
// when the framework was imported, when the first iteration began, after the first ones, and at its
// peak. Growth between two moments is named after what a training job does there. Memory that is
// allocated and freed within a step shows only if steps are longer than the interval of readings.

enum holding {
	HOLDING_FRAMEWORK, // the process after its imports
	HOLDING_DATASET, // growth from then to the first iteration: dataset, weights
	HOLDING_TRAINING, // growth over two iterations: gradients, optimizer state, workspace
	HOLDING_ACTIVATIONS, // the peak above that, within steps
	HOLDING_GROWTH, // memory that steps never free: a leak
	HOLDING_WORKERS, // private memory of the other processes
	HOLDING_BATCHES, // shared memory: batches on their way
	HOLDING_FILES, // page cache of the job: can be dropped
	HOLDING_GPU_MODEL, // on the device before the first iteration: context, weights
	// Growth from then to the peak: gradients, optimizer, activations, reserved but unused
	// memory.
	HOLDING_GPU_TRAINING,
	N_HOLDINGS,
};

struct memory_breakdown {
	double bytes[N_HOLDINGS]; // NAN: not known
};

// A trial of advice.
struct tried {
	struct setting_list settings; // all used together
	struct estimate promised; // times faster; value NAN: nothing was promised
	bool at_most; // `promised` is an upper bound
	struct estimate gain; // times faster, with the 95 % interval of the ratio; NAN: not known
	unsigned probes; // with these settings
	char *missing; // why the gain is not known; NULL if it is
};

struct tried_list {
	struct tried *items; // [n]
	size_t n;
};

// The origin of a gain.
enum gain_kind {
	GAIN_UNKNOWN,
	GAIN_AT_MOST, // an upper bound: the whole cause is removed
	GAIN_ESTIMATED, // by a model
};

struct suggestion {
	enum gain_kind kind;
	struct estimate gain; // times faster; NAN: not known
	// An upper bound that is too large to be shown (BOUND_SAYS) and only decides the order of
	// suggestions; `gain` is then not known. NAN: there is none
	double hidden_bound;
	char *action; // "train.py:42  num_workers 2 -> 4"
	char *basis; // the reason for the gain
	// The part that needs no edit: `strain advise --try` tries each choice. Empty: it cannot be
	// tried.
	struct setting_list settings;
	// the best trial of its choices, in verdict.tried; NULL: not tried
	const struct tried *tried;
};

struct verdict {
	enum bottleneck bottleneck;
	enum confidence confidence;
	char *headline; // "CPU-bound: the job used 1.9 of 2 CPUs"
	char *shares; // "data 61 %, forward 12 %"; "" without phases
	// The first thing to try, or how to raise the confidence, in one line; "" for neither.
	char *next;
	const char *action; // the part of `next` to try, after its heading; NULL: there is none
	char *needed; // how to raise the confidence; "" if that is not possible
	char *marking; // command line that marks epochs or iterations; "" if they are marked
	struct cause *causes; // [n_causes], largest first
	size_t n_causes;
	struct suggestion *suggestions; // [n_suggestions], in the order of the causes
	size_t n_suggestions;
	struct suggestion *in_vain; // [n_in_vain]: tried without gain, no longer advice
	size_t n_in_vain;
	struct tried_list tried; // trials of this run
	struct evidence *evidence; // [n_evidence]
	size_t n_evidence;
	struct memory_breakdown memory;
};
