// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What holds the run back, with the evidence, how sure that is, and what to try. From the phases of
// its iterations where there are any (causes.h), else from outside the job. Sentences are made
// here, once, for the terminal, the end of a run and the report.

#pragma once

#include <stddef.h>

#include "base/text.h"
#include "run/phases.h"
#include "verdict/evidence.h"
#include "verdict/setting.h"
#include "verdict/tried.h"

struct analysis;

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
	struct held held;
};

// "cpu", "gpu" ...: for JSON; "low", ...
const char *bottleneck_name(enum bottleneck bottleneck);
const char *confidence_name(enum confidence confidence);
// "unknown", "at most", "estimated".
const char *gain_kind_name(enum gain_kind kind);

// Needs the analysis' overview and epochs. Every text is printable.
int verdict_build(const struct analysis *a, struct verdict *ret);
void verdict_done(struct verdict *v);

// The evidence alone; verdict_build calls it.
struct facts;
int evidence_build(const struct analysis *a, const struct facts *f, struct verdict *ret);
// The rows about GPUs (evidence.c).
struct gpu_facts;

// The lines that end `strain run`: at most six, one more of a part, one of memory that grows, one
// of what to type for a job that marks nothing, and of a job that failed the last three that it
// printed; each with its newline, none over 120 columns but the last two, the commands that show
// more.
void verdict_lines(const struct analysis *a, struct text *out);
