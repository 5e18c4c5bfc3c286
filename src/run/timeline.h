// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The spans that a job marked, replayed in order of time: which threads iterate, and what each
// thread does at every moment. phases.h has the rules. Phases and pictures replay it.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct reader;
struct timeline;

enum phase_id {
	PHASE_OTHER, // of an iteration, in no phase
	PHASE_DATA,
	PHASE_TRANSFER,
	PHASE_FORWARD,
	PHASE_BACKWARD,
	PHASE_OPTIMIZER,
	PHASE_COMMUNICATION,
	PHASE_STEP,
	PHASE_VALIDATION, // stand apart: in no iteration's length
	PHASE_CHECKPOINT,
	PHASE_IMPORT,
	N_KNOWN_PHASES, // names of spans of kind `phase` that are none of these come after
	PHASES_MAX = 16,
};

#define PHASE_NAME_MAX 64
#define WARM_UP_MAX 1000
#define THREADS_MAX 4096 // that mark; of more, nothing is said but how many spans

// "data", ...; of a known phase.
const char *phase_id_name(enum phase_id phase);
bool phase_id_is_apart(enum phase_id phase);

struct iteration {
	int64_t start_ns;
	int64_t end_ns;
	int64_t length_ns; // without what stands apart
	int64_t number; // -1: not known
	int64_t samples; // -1: not known
	int64_t epoch; // index into analysis.epochs; -1: none
	int64_t place; // among all of its thread, from 0
	bool warm_up;
	bool cut; // did not end as it should, or something within it was not recorded, or:
	bool stopped; // the job was, while it lasted
	int64_t phase_ns[PHASES_MAX];
};

// A thread. All main threads, one after the other, are lane 0.
struct timeline_thread {
	size_t index;
	int64_t entity; // its process; 0: the recorder never saw it
	int64_t pid; // where entity is 0
	int64_t thread;
};

// A stretch of time in which a thread was in one thing.
struct timeline_piece {
	int64_t from_ns;
	int64_t to_ns;
	int phase; // enum phase_id and what follows it; -1: in no phase and no iteration
	bool in_iteration;
};

// A span that is no epoch, iteration or phase: the job's author named it.
struct timeline_own {
	const char *name;
	int64_t start_ns;
	int64_t end_ns;
	bool inside; // an iteration of its thread, all of it
};

// Each can be NULL. Pieces of a lane follow each other without a gap, from the run's start in lane
// 0, from its first span in others; an iteration comes after its pieces. -errno ends the walk.
struct timeline_sink {
	void *context;
	void (*piece)(void *context, const struct timeline_thread *lane,
		const struct timeline_piece *piece);
	void (*iteration)(void *context, const struct timeline_thread *lane,
		const struct iteration *iteration);
	void (*phase)(void *context, const struct timeline_thread *lane, int phase); // one begins
	// A span of preparation, in the order of their starts; samples -1: not known.
	int (*prepare)(void *context, const struct timeline_thread *lane, int64_t start_ns,
		int64_t end_ns, int64_t samples);
	// In the order of their starts.
	int (*own)(
		void *context, const struct timeline_thread *lane, const struct timeline_own *span);
};

// Reads the iterations alone. *ret is there unless -ENOMEM is returned; -EBADMSG: the file is
// damaged, and the rest was not read.
int timeline_open(struct reader *r, struct timeline **ret, struct error *e);
void timeline_free(struct timeline *t); // accepts NULL
// As often as wanted. 0, or -errno: what came before was delivered.
int timeline_walk(struct timeline *t, const struct timeline_sink *sink, struct error *e);

uint64_t timeline_iterations(const struct timeline *t); // of lane 0, that were not cut
uint64_t timeline_warm_up(const struct timeline *t); // of these
// Spans of threads that found no room, or deeper in each other than any program nests.
uint64_t timeline_left_out(const struct timeline *t);
size_t timeline_phases(const struct timeline *t); // at least N_KNOWN_PHASES
const char *timeline_phase_name(const struct timeline *t, size_t phase);

// Span pass ---------------------------------------------------------------------------------------
//
// How far a pass over a run's spans is, told to whoever watches the reader.

struct reader;

struct span_pass {
	struct reader *reader;
	int64_t end_ns; // of the run
	uint64_t parts; // of the pass
	uint64_t told;
};

// A part is about as much work as reading a block of samples: so many are told of in a pass over
// all spans, and a fourth as many in one over iterations.
uint64_t span_pass_parts(struct reader *r);
