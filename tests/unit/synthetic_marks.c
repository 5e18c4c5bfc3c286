// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Computed marks: the first half of an epoch waits for its input, the second computes.

#include "synthetic_marks.h"

#include <math.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "synthetic_run.h"
#include "runfile/writer.h"

#define MAIN_THREAD 4242
#define WORKER_THREAD 4250
#define BATCH 32
#define TRAINING 0.88 // of the epoch; then validation, then the checkpoint
#define VALIDATION 0.09
#define MORE_WORKERS 100000 // pid of processes that the recorder never saw
#define RANK_THREAD 6000
#define RANK_WORKS 0.4 // share of an iteration; then it waits for the first rank

// Unique in the run, and different from the ids of epochs.
static int64_t span_id(const struct synthetic_marks *marks, unsigned iteration, unsigned place)
{
	return 10000000 * ((int64_t)marks->epoch + 1) + (int64_t)iteration * 8 + place;
}

static int put(struct writer *w, int64_t id, const char *kind, const char *name, int64_t start_ns,
	int64_t end_ns, int64_t number, int64_t samples)
{
	return writer_put_span(w,
		&(struct writer_span){.name = name,
			.kind = kind,
			.start_ns = start_ns,
			.end_ns = end_ns,
			.thread = MAIN_THREAD,
			.number = number,
			.samples = samples,
			.value = NAN,
			.attributes = "{\"process\":3}",
			.id = id},
		NULL);
}

// Uniform between 0 and 1, always the same for an iteration.
static double noise(const struct synthetic_marks *marks, unsigned i)
{
	uint32_t bits = (uint32_t)marks->epoch * 1000003u + i;
	bits = (bits ^ (bits >> 16)) * 0x45d9f3bu;
	bits = (bits ^ (bits >> 16)) * 0x45d9f3bu;
	return (double)((bits ^ (bits >> 16)) & 0xffffff) / 0x1000000;
}

// The length of an iteration, relative to others.
static double weight(const struct synthetic_marks *marks, unsigned i)
{
	double usual = (i < marks->iterations / 2 ? 1.3 : 0.7) + 0.25 * noise(marks, i);
	return i == 0 ? 4 * usual : i % 97 == 96 ? 3.5 * usual : usual;
}

static double weights(const struct synthetic_marks *marks)
{
	double sum = 0;
	for (unsigned i = 0; i < marks->iterations; i++) {
		sum += weight(marks, i);
	}
	return sum;
}

static int put_iteration(struct writer *w, const struct synthetic_marks *marks, unsigned i,
	int64_t start_ns, int64_t end_ns)
{
	static const struct {
		const char *name;
		double ratio; // of the iteration without the wait for data
	} phases[] = {{"transfer", 0.06}, {"forward", 0.3}, {"backward", 0.5}, {"optimizer", 0.1}};
	double length = (double)(end_ns - start_ns);
	double data = i == 0 || i % 97 == 96 ? 0.85 : i < marks->iterations / 2 ? 0.6 : 0.15;
	int64_t at_ns = start_ns + (int64_t)(length * data);
	double work = (double)(end_ns - at_ns);
	int r = put(w, span_id(marks, i, 0), "iteration", "iteration", start_ns, end_ns, i, BATCH);
	r = r < 0 ? r : put(w, span_id(marks, i, 1), "phase", "data", start_ns, at_ns, -1, -1);
	for (size_t k = 0; k < ARRAY_LENGTH(phases) && r == 0; k++) {
		int64_t end_of_phase_ns = at_ns + (int64_t)(work * phases[k].ratio);
		r = put(w, span_id(marks, i, 2 + (unsigned)k), "phase", phases[k].name, at_ns,
			end_of_phase_ns, -1, -1);
		at_ns = end_of_phase_ns;
	}
	return r;
}

// The batch of an iteration; preparing it takes as many iterations as there are workers.
static int put_prepared(struct writer *w, const struct synthetic_marks *marks, unsigned i,
	int64_t start_ns, int64_t length_ns)
{
	unsigned worker = i % marks->workers;
	char attributes[48];
	int64_t process = worker < 2 ? SYNTHETIC_WORKER_1 + worker : MORE_WORKERS + worker;
	snprintf(attributes, sizeof(attributes), "{\"%s\":%lld}", worker < 2 ? "process" : "pid",
		(long long)process);
	double busy = (i < marks->iterations / 2 ? 0.97 : 0.5) - 0.1 * noise(marks, i);
	return writer_put_span(w,
		&(struct writer_span){.name = "prepare",
			.kind = "phase",
			.start_ns = start_ns,
			.end_ns = start_ns + (int64_t)((double)length_ns * marks->workers * busy),
			.thread = WORKER_THREAD + worker,
			.number = -1,
			.samples = BATCH,
			.value = NAN,
			.attributes = attributes,
			.id = span_id(marks, i, 6)},
		NULL);
}

// The first span is the longest.
static int put_own(struct writer *w, unsigned n, int64_t start_ns, int64_t end_ns)
{
	int64_t half_ns = (end_ns - start_ns) / 2;
	int r = n > 0 ? put(w, 0, "user", "step", start_ns, end_ns, -1, -1) : 0;
	for (unsigned i = 0; i < n && r == 0; i++) {
		char name[32];
		snprintf(name, sizeof(name), "<b>part</b> %u", i);
		r = put(w, 0, "user", name, start_ns, start_ns + half_ns, -1, -1);
		start_ns += half_ns;
		half_ns /= 2;
	}
	return r;
}

// The same iteration on another rank, which has less work.
static int put_of_rank(
	struct writer *w, unsigned rank, unsigned i, int64_t start_ns, int64_t end_ns)
{
	int64_t works_ns = start_ns + (int64_t)((double)(end_ns - start_ns) * RANK_WORKS);
	char attributes[48];
	snprintf(attributes, sizeof(attributes), "{\"pid\":%u}", RANK_THREAD + rank);
	struct writer_span spans[] = {
		{.kind = "iteration", .end_ns = end_ns, .number = i, .samples = BATCH},
		{.name = "forward", .end_ns = works_ns, .number = -1, .samples = -1},
		{.name = "communication",
			.start_ns = works_ns,
			.end_ns = end_ns,
			.number = -1,
			.samples = -1},
	};
	int r = 0;
	for (size_t k = 0; k < ARRAY_LENGTH(spans) && r == 0; k++) {
		struct writer_span *span = &spans[k];
		span->kind = span->kind ? span->kind : "phase";
		span->name = span->name ? span->name : span->kind;
		span->start_ns = span->start_ns ? span->start_ns : start_ns;
		span->thread = RANK_THREAD + rank;
		span->value = NAN;
		span->attributes = attributes;
		r = writer_put_span(w, span, NULL);
	}
	return r;
}

int synthetic_marks_write(struct writer *w, const struct synthetic_marks *marks)
{
	double length = (double)(marks->end_ns - marks->start_ns), sum = weights(marks);
	int64_t at_ns = marks->start_ns;
	int64_t mean_ns = marks->iterations ? (int64_t)(length * TRAINING / marks->iterations) : 0;
	int r = 0;
	for (unsigned i = 0; i < marks->iterations && r == 0; i++) {
		int64_t end_ns = at_ns + (int64_t)(length * TRAINING * weight(marks, i) / sum);
		r = put_iteration(w, marks, i, at_ns, end_ns);
		if (r == 0 && marks->workers > 0) {
			r = put_prepared(w, marks, i,
				marks->start_ns + i / marks->workers * marks->workers * mean_ns,
				mean_ns);
		}
		r = r < 0 ? r : put_own(w, marks->own, at_ns, end_ns);
		for (unsigned rank = 1; rank < marks->ranks && r == 0; rank++) {
			r = put_of_rank(w, rank, i, at_ns, end_ns);
		}
		at_ns = end_ns;
	}
	int64_t validation_ns = (int64_t)(length * VALIDATION);
	r = r < 0 ? r
	          : put(w, span_id(marks, marks->iterations, 0), "phase", "validation", at_ns,
			    at_ns + validation_ns, -1, -1);
	return r < 0 ? r
	             : put(w, span_id(marks, marks->iterations, 1), "phase", "checkpoint",
			       at_ns + validation_ns, marks->end_ns, -1, -1);
}
