// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Replays the spans that a job marked, in order of time: which threads iterate, and which phase
// each thread is in at every moment. phases.h states the rules. Phases and pictures replay it.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct reader;
struct timeline;

enum phase_id {
	PHASE_OTHER, // in an iteration, but in no phase
	PHASE_DATA,
	PHASE_TRANSFER,
	PHASE_FORWARD,
	PHASE_BACKWARD,
	PHASE_OPTIMIZER,
	PHASE_COMMUNICATION,
	PHASE_STEP,
	PHASE_VALIDATION, // this and the next two are apart: not part of the length of an iteration
	PHASE_CHECKPOINT,
	PHASE_IMPORT,
	N_KNOWN_PHASES, // other names of spans of kind `phase` follow
	PHASES_MAX = 16,
};

#define PHASE_NAME_MAX 64
#define WARM_UP_MAX 1000
#define THREADS_MAX 4096 // that mark; of further threads only the spans are counted

// "data", ...; for known phases only.
const char *phase_id_name(enum phase_id phase);
bool phase_id_is_apart(enum phase_id phase);

struct iteration {
	int64_t start_ns;
	int64_t end_ns;
	int64_t length_ns; // without phases that are apart
	int64_t number; // -1: not known
	int64_t samples; // -1: not known
	int64_t epoch; // index into analysis.epochs; -1: none
	int64_t place; // index among all iterations of its thread, from 0
	bool warm_up;
	bool cut; // no proper end, a part not recorded, or stopped
	bool stopped; // the job was stopped during it
	bool compiled; // a compiler of the framework took half of it, which is rare in this job
	int64_t phase_ns[PHASES_MAX];
};

// Spans of the hooks that name work of a framework.
enum named {
	NAMED_JAX_COMPILE,
	NAMED_TF_TRACE, // a call of a tf.function that traces it, with its first execution
	NAMED_TORCH_COMPILE,
	N_COMPILERS,
	NAMED_KERAS_PREDICT = N_COMPILERS,
	NAMED_ENVIRONMENT,
	NAMED_GENERATE,
	NAMED_LOADER_START, // of worker processes, until the first batch
	N_NAMED,
};

// Returns N_NAMED for all other names.
enum named named_of_name(const char *name);

// Iterations in which code is compiled are rare if they are fewer than this part of all, and fewer
// than this number or none in the second half: the second call of a function, a last batch of
// another size, a shape for each bucket. torch.compile, which takes seconds, gives up on a function
// after eight graphs.
#define COMPILED_OFTEN 0.25
#define COMPILED_MANY 5

// A thread. All main threads, one after the other, share index 0.
struct timeline_thread {
	size_t index;
	int64_t entity; // its process; 0: the recorder never saw it
	int64_t pid; // if entity is 0
	int64_t thread;
};

// A stretch of time in which a thread was in one phase.
struct timeline_piece {
	int64_t from_ns;
	int64_t to_ns;
	int phase; // enum phase_id or a further phase; -1: in no phase and no iteration
	bool in_iteration;
};

// A span that is no epoch, iteration or phase: its name is from the job's author.
struct timeline_own {
	const char *name;
	int64_t start_ns;
	int64_t end_ns;
	bool inside; // lies entirely inside an iteration of its thread
	int phase; // at its start, as in timeline_piece
};

// Callbacks of a walk; each can be NULL. The pieces of a thread follow each other without a gap,
// from the start of the run for index 0, from its first span in others. An iteration is delivered
// after its pieces. A callback that returns -errno ends the walk.
struct timeline_sink {
	void *context;
	void (*piece)(void *context, const struct timeline_thread *thread,
		const struct timeline_piece *piece);
	void (*iteration)(void *context, const struct timeline_thread *thread,
		const struct iteration *iteration);
	// a phase begins; nested: within another one
	void (*phase)(void *context, const struct timeline_thread *thread, int phase, bool nested);
	// A span of preparation, in order of start; samples -1: not known.
	int (*prepare)(void *context, const struct timeline_thread *thread, int64_t start_ns,
		int64_t end_ns, int64_t samples);
	// In order of start.
	int (*own)(void *context, const struct timeline_thread *thread,
		const struct timeline_own *span);
};

// Reads only the iterations. *ret is set unless -ENOMEM is returned. -EBADMSG: the file is damaged,
// and the rest was not read.
int timeline_open(struct reader *r, struct timeline **ret, struct error *e);
void timeline_free(struct timeline *t); // accepts NULL
// Can be repeated. Returns 0 or -errno; everything before the error was delivered.
int timeline_walk(struct timeline *t, const struct timeline_sink *sink, struct error *e);

uint64_t timeline_iterations(const struct timeline *t); // of index 0, without cut ones
uint64_t timeline_warm_up(const struct timeline *t); // of timeline_iterations
uint64_t timeline_compiled(const struct timeline *t); // the same; none is in the warm-up
// Of the main thread, without cut ones: iterations of which compiling takes half, and its time in
// them.
uint64_t timeline_compiling(const struct timeline *t, double *ret_s);
int64_t timeline_warm_until_ns(const struct timeline *t); // on the main thread; 0: no warm-up
// Spans dropped because there were too many threads or they were nested too deeply.
uint64_t timeline_left_out(const struct timeline *t);
size_t timeline_phases(const struct timeline *t); // at least N_KNOWN_PHASES
const char *timeline_phase_name(const struct timeline *t, size_t phase);

// Span pass ---------------------------------------------------------------------------------------
//
// Reports the progress of a pass over a run's spans to the reader's progress callback.

struct reader;

struct span_pass {
	struct reader *reader;
	int64_t end_ns; // of the run
	uint64_t parts; // of the pass
	uint64_t told; // parts reported so far
};

// A part is about as much work as reading a block of samples. The number of parts for a pass over
// all spans; a pass over iterations has a fourth of it.
uint64_t span_pass_parts(struct reader *r);
