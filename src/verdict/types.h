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
	BOTTLENECK_FAILED, // the job did not end as it should: out of memory, killed
	// From outside alone.
	BOTTLENECK_CPU,
	BOTTLENECK_ONE_THREAD, // one busy CPU, the others idle
	BOTTLENECK_GPU,
	BOTTLENECK_GPU_FAULT, // errors after which its results cannot be trusted, or it is gone
	BOTTLENECK_IDLE, // waits for something that was not measured
	// From phases: each is a row of the table in causes.c, judged in this order. Some are
	// judged from outside, too.
	BOTTLENECK_CPU_QUOTA, // throttled by its cgroup
	BOTTLENECK_THREADS, // more of them than CPUs, and they spin
	BOTTLENECK_CONTENTION, // there are fewer CPUs than work, or others use them
	BOTTLENECK_STORAGE,
	BOTTLENECK_MEMORY,
	BOTTLENECK_INPUT, // the CPU work of preparing batches
	BOTTLENECK_INPUT_SLEEP, // preparing batches is blocked: what it waits for
	BOTTLENECK_INPUT_LOCK,
	BOTTLENECK_INPUT_NETWORK,
	BOTTLENECK_INPUT_BLOCKED, // by something else
	BOTTLENECK_PYTHON_THREADS, // another one holds the interpreter
	BOTTLENECK_CHILDREN, // processes that a step starts
	BOTTLENECK_BLOCKED, // the training thread waits in its steps, for something outside
	BOTTLENECK_ALLOCATION, // page faults of memory that is given back and taken again
	BOTTLENECK_OPTIMIZER,
	BOTTLENECK_LAUNCH, // the host's own time between the pieces of work
	BOTTLENECK_GPU_UNUSED,
	BOTTLENECK_GPU_SHARED, // with other programs
	BOTTLENECK_COMPUTE,
	BOTTLENECK_GPU_THROTTLED, // clocks held down by heat or hardware
	BOTTLENECK_TRANSFER, // host to device
	BOTTLENECK_NOT_KNOWN, // time that nothing explains
	BOTTLENECK_RANKS, // waits for other ranks
	BOTTLENECK_VALIDATION,
	BOTTLENECK_CHECKPOINT,
	BOTTLENECK_STARTUP,
	BOTTLENECK_LEAK, // memory grows over iterations: it has no share
	N_BOTTLENECKS,
};

enum confidence { CONFIDENCE_NONE, CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };

struct evidence {
	char *what; // "CPU"
	char *value; // "1.9 of 2 CPUs"
	const char *source; // a metric's name, or NULL
};

// One of the things that take time.
struct cause {
	enum bottleneck bottleneck;
	struct estimate share; // of an iteration, of training (validation, checkpoint) or of the
	                       // run (start-up): what it would be shorter by without this; NAN:
	                       // it costs no time (leak)
	double weight; // the same of the whole of training, to compare causes by
};

// What memory holds, as far as readings at certain moments tell: the training process when the
// framework was imported, when the first iteration began, after the first ones, and at its most.
// What came between two moments is named after what a training job does there; what is taken and
// given back within a step shows only in steps longer than the readings' distance.

enum holding {
	HOLDING_FRAMEWORK, // the process when its imports were done
	HOLDING_DATASET, // since then, before the first iteration: dataset, weights
	HOLDING_TRAINING, // since then, after two iterations: gradients, optimizer state, workspace
	HOLDING_ACTIVATIONS, // at most more than that, within steps
	HOLDING_GROWTH, // what steps keep and never give back: a leak
	HOLDING_WORKERS, // the other processes' own
	HOLDING_BATCHES, // shared memory: batches on their way
	HOLDING_FILES, // page cache of the job: can be dropped
	HOLDING_GPU_MODEL, // on the device before the first iteration: context, weights
	HOLDING_GPU_TRAINING, // since then, at most: gradients, optimizer, activations, what is
	                      // reserved but unused
	N_HOLDINGS,
};

struct memory_breakdown {
	double bytes[N_HOLDINGS]; // NAN: not known
};

// A trial of advice.
struct tried {
	struct setting_list settings; // all at once
	struct estimate promised; // times faster; value NAN: nothing was
	bool at_most; // what was promised is a bound
	struct estimate gain; // times faster, with the 95 % interval of the ratio; NAN: not known
	unsigned probes; // with these settings
	char *missing; // why the gain is not known; NULL where it is
};

struct tried_list {
	struct tried *items; // [n]
	size_t n;
};

// What a gain is.
enum gain_kind {
	GAIN_UNKNOWN,
	GAIN_AT_MOST, // an upper bound: as if all that the cause takes were gone
	GAIN_ESTIMATED, // by a model
};

struct suggestion {
	enum gain_kind kind;
	struct estimate gain; // times faster; NAN where it is not known
	char *action; // "train.py:42  num_workers 2 -> 4"
	char *basis; // what the gain rests on
	struct setting_list settings; // what of it needs no edit: `strain advise --try` tries each
	                              // choice; none: it cannot be tried
	const struct tried *tried; // the best of its choices, in verdict.tried; NULL: not tried
};

struct verdict {
	enum bottleneck bottleneck;
	enum confidence confidence;
	char *headline; // "CPU-bound: the job used 1.9 of 2 CPUs"
	char *shares; // "data 61 %, forward 12 %"; "" where there are no phases
	char *next; // what to try, in a line, or what would make it surer; "" where there is
	            // nothing to say
	const char *action; // in next, behind its heading: what to try; NULL: it is none
	char *surer; // what would make it surer; "" where nothing would
	char *marking; // what to type for epochs or iterations, in a line; "" where they are there
	struct cause *causes; // [n_causes], the largest first
	size_t n_causes;
	struct suggestion *suggestions; // [n_suggestions], in the order of the causes
	size_t n_suggestions;
	struct suggestion *in_vain; // [n_in_vain]: tried, and gained nothing; no advice any more
	size_t n_in_vain;
	struct tried_list tried; // what of this run was tried
	struct evidence *evidence; // [n_evidence]
	size_t n_evidence;
	struct memory_breakdown memory;
};
