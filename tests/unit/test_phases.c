// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Iterations and phases of runs whose answer is known, and of spans that no honest job marks.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/analysis.h"
#include "base/cleanup.h"
#include "runfile/writer.h"

#define MS INT64_C(1000000)
#define MAIN 100
#define NEAR(a, b, relative) \
	assert_true(fabs((double)(a) - (double)(b)) <= (relative)*fabs((double)(b)) + 1e-12)

struct made {
	char path[64];
	struct writer *writer;
	struct reader *reader;
	struct analysis analysis;
};

static int setup(void **state)
{
	struct made *m = calloc(1, sizeof(*m));
	struct error e = {0};
	assert_non_null(m);
	snprintf(m->path, sizeof(m->path), "/tmp/strain-phases-%d.strain", getpid());
	assert_int_equal(
		writer_create(m->path, &(struct writer_options){.replace = true}, &m->writer, &e),
		0);
	writer_put_entity(m->writer, &(struct writer_entity){.id = 1,
					     .kind = ENTITY_PROCESS,
					     .key = "10:1",
					     .name = "python3",
					     .last_ns = -1});
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	struct made *m = *state;
	analysis_done(&m->analysis);
	reader_free(m->reader);
	unlink(m->path);
	free(m);
	return 0;
}

static const struct phases *analyse(struct made *m, int64_t end_ns)
{
	struct error e = {0};
	assert_int_equal(writer_finish(m->writer, end_ns, 0, &e), 0);
	writer_free(m->writer);
	assert_int_equal(reader_open(m->path, &m->reader, &e), 0);
	assert_int_equal(analysis_load(m->reader, &m->analysis, &e), 0);
	return &m->analysis.phases;
}

static void put(struct made *m, struct writer_span span)
{
	span.name = span.name ? span.name : span.kind;
	span.attributes = span.attributes ? span.attributes : "{\"process\":1}";
	span.value = NAN;
	assert_int_equal(writer_put_span(m->writer, &span, NULL), 0);
}

static void put_phase(struct made *m, const char *name, int64_t start_ns, int64_t length_ns)
{
	put(m, (struct writer_span){.name = name,
		       .kind = "phase",
		       .start_ns = start_ns,
		       .end_ns = start_ns + length_ns,
		       .thread = MAIN,
		       .number = -1,
		       .samples = -1});
}

static void put_iteration(struct made *m, int64_t number, int64_t start_ns, int64_t length_ns)
{
	put(m, (struct writer_span){.kind = "iteration",
		       .start_ns = start_ns,
		       .end_ns = start_ns + length_ns,
		       .thread = MAIN,
		       .number = number,
		       .samples = 32});
}

static void put_epoch(struct made *m, int64_t number, int64_t start_ns, int64_t end_ns)
{
	put(m, (struct writer_span){.kind = "epoch",
		       .start_ns = start_ns,
		       .end_ns = end_ns,
		       .thread = MAIN,
		       .number = number,
		       .samples = -1});
}

// 100 ms: data 40, forward 20, backward 30, optimizer 5, other 5.
static int64_t put_usual(struct made *m, int64_t number, int64_t at, int64_t data_ns)
{
	put_iteration(m, number, at, data_ns + 60 * MS);
	put_phase(m, "data", at, data_ns);
	put_phase(m, "forward", at + data_ns, 20 * MS);
	put_phase(m, "backward", at + data_ns + 20 * MS, 30 * MS);
	put_phase(m, "optimizer", at + data_ns + 55 * MS, 5 * MS);
	return at + data_ns + 60 * MS;
}

static void test_known_answer(void **state)
{
	struct made *m = *state;
	int64_t at = 2000 * MS;
	for (int epoch = 0; epoch < 3; epoch++) {
		int64_t start = at;
		for (int i = 0; i < 40; i++) {
			at = put_usual(m, i, at, epoch == 0 && i == 0 ? 1000 * MS : 40 * MS);
		}
		put_epoch(m, epoch + 1, start, at + 500 * MS);
		put_phase(m, "validation", at, 300 * MS);
		put_phase(m, "data", at + 10 * MS, 100 * MS); // its own
		at += 500 * MS;
	}
	const struct phases *p = analyse(m, at + 1000 * MS);
	assert_null(p->missing);
	assert_null(p->phases_missing);
	assert_null(p->incomplete);
	assert_int_equal(p->total, 120);
	assert_int_equal(p->warm_up, 1);
	assert_int_equal(p->steady, 119);
	NEAR(p->length_s.value, 0.1, 1e-9);
	NEAR(p->length_s.low, 0.1, 1e-9);
	NEAR(p->p50_s, 0.1, 0.005);
	NEAR(p->p99_s, 0.1, 0.005);
	NEAR(p->samples_per_s.value, 320, 1e-9);
	NEAR(p->samples_per_iteration, 32, 0.005);
	NEAR(p->items[PHASE_DATA].share.value, 0.4, 1e-9);
	NEAR(p->items[PHASE_FORWARD].share.value, 0.2, 1e-9);
	NEAR(p->items[PHASE_BACKWARD].share.value, 0.3, 1e-9);
	NEAR(p->items[PHASE_OPTIMIZER].share.value, 0.05, 1e-9);
	NEAR(p->items[PHASE_OTHER].share.value, 0.05, 1e-9);
	NEAR(p->items[PHASE_DATA].share.high - p->items[PHASE_DATA].share.low, 0, 1e-9);
	NEAR(p->items[PHASE_DATA].p95_s, 0.04, 0.005);
	assert_int_equal(p->items[PHASE_TRANSFER].spans, 0);
	assert_true(isnan(p->items[PHASE_VALIDATION].share.value));
	NEAR(p->items[PHASE_VALIDATION].total_s, 0.9, 1e-9);
	NEAR(p->startup_s, 2, 1e-9);
	NEAR(p->iterations_s, 12.96, 1e-9);
	NEAR(p->apart_s, 0.9, 1e-9);
	NEAR(p->between_s, 0.4, 1e-9);
	NEAR(p->after_s, 1.2, 1e-9);
	assert_int_equal(p->n_epochs, 3);
	assert_int_equal(p->epochs[1].iterations, 40);
	assert_int_equal(p->epochs[1].samples, 40 * 32);
	NEAR(p->epochs[1].seconds, 4.5, 1e-9);
	NEAR(p->epochs[1].phase_s[PHASE_DATA], 1.6, 1e-9);
	NEAR(p->epochs[1].phase_s[PHASE_OTHER], 0.2, 1e-9);
	NEAR(p->epochs[1].phase_s[PHASE_VALIDATION], 0.3, 1e-9);
	NEAR(p->epochs[1].outside_s, 0.2, 1e-9);
	NEAR(p->epochs[1].samples_per_s, 320, 1e-9);
	assert_int_equal(p->n_ranks, 1);
	assert_int_equal(p->n_workers, 0);
	assert_int_equal(p->n_iterations, 120);
	assert_true(p->iterations[0].warm_up && !p->iterations[1].warm_up);
	assert_int_equal(p->iterations[50].epoch, 1);
}

static void test_slowest(void **state)
{
	struct made *m = *state;
	int64_t at = 0;
	for (int i = 0; i < 60; i++) {
		at = put_usual(m, i, at, i == 33 ? 400 * MS : i == 44 ? 200 * MS : 40 * MS);
	}
	const struct phases *p = analyse(m, at);
	assert_int_equal(p->n_slowest, SLOWEST_MAX);
	assert_int_equal(p->slowest[0].iteration.number, 33);
	assert_int_equal(p->slowest[1].iteration.number, 44);
	assert_int_equal(p->slowest[0].longer, PHASE_DATA);
	assert_int_equal(p->slowest[0].n_causes, 1);
	assert_string_equal(p->slowest[0].causes[0].what, "data");
	NEAR(p->slowest[0].causes[0].value, 0.4, 1e-9);
	NEAR(p->slowest[0].causes[0].usual, 0.04, 0.005);
	assert_int_equal(p->slowest[5].n_causes, 0);
	assert_true(p->items[PHASE_DATA].share.low < p->items[PHASE_DATA].share.value);
	assert_true(p->items[PHASE_DATA].share.high > p->items[PHASE_DATA].share.value);
}

// Time belongs to the span that began last, once; what stands apart is in no iteration's length.
static void test_nested_and_overlapping(void **state)
{
	struct made *m = *state;
	put_iteration(m, 0, 0, 100 * MS);
	put_phase(m, "forward", 0, 50 * MS);
	put_phase(m, "transfer", 10 * MS, 10 * MS); // inside
	put_phase(m, "data", 40 * MS, 30 * MS); // over the end of forward
	put_phase(m, "checkpoint", 80 * MS, 40 * MS); // over the end of the iteration
	put_phase(m, "forward", 85 * MS, 5 * MS); // its own
	put_phase(m, "augment", 130 * MS, 10 * MS); // unknown, outside
	const struct phases *p = analyse(m, 200 * MS);
	assert_int_equal(p->total, 1);
	assert_int_equal(p->n, N_KNOWN_PHASES + 1);
	const struct iteration *iteration = &p->iterations[0];
	assert_int_equal(iteration->length_ns, 80 * MS);
	assert_int_equal(iteration->phase_ns[PHASE_FORWARD], 30 * MS);
	assert_int_equal(iteration->phase_ns[PHASE_TRANSFER], 10 * MS);
	assert_int_equal(iteration->phase_ns[PHASE_DATA], 30 * MS);
	assert_int_equal(iteration->phase_ns[PHASE_CHECKPOINT], 20 * MS);
	assert_int_equal(iteration->phase_ns[PHASE_OTHER], 10 * MS);
	NEAR(p->items[PHASE_CHECKPOINT].total_s, 0.04, 1e-9);
	assert_int_equal(p->items[PHASE_FORWARD].spans, 2);
	assert_int_equal(p->items[PHASE_FORWARD].nested, 1); // within the checkpoint
	assert_int_equal(p->items[PHASE_CHECKPOINT].nested, 0);
	assert_string_equal(p->items[N_KNOWN_PHASES].name, "augment");
	NEAR(p->items[N_KNOWN_PHASES].total_s, 0.01, 1e-9);
	NEAR(p->items[PHASE_DATA].share.value, 3. / 8, 1e-9);
	assert_true(isnan(p->items[PHASE_DATA].share.low)); // of one iteration
	NEAR(p->startup_s + p->iterations_s + p->apart_s + p->between_s + p->after_s, 0.2, 1e-9);
}

static void put_phase_of(struct made *m, const char *name, int64_t start_ns, int64_t length_ns,
	int64_t thread, const char *attributes)
{
	put(m, (struct writer_span){.name = name,
		       .kind = strcmp(name, "iteration") == 0 ? "iteration" : "phase",
		       .start_ns = start_ns,
		       .end_ns = start_ns + length_ns,
		       .thread = thread,
		       .number = -1,
		       .samples = 32,
		       .attributes = attributes});
}

// Ten iterations of 100 ms of each of two ranks; of the second, backward begins later.
static void put_ranks_in_step(struct made *m, int64_t other_length)
{
	put_epoch(m, 1, 0, 1000 * MS);
	for (int i = 0; i < 10; i++) {
		int64_t t = i * 100 * MS;
		put_iteration(m, i, t, 100 * MS);
		put_phase(m, "forward", t, 10 * MS);
		put_phase(m, "backward", t + 10 * MS, 90 * MS);
		put_phase_of(m, "iteration", t, other_length, 200, "{\"pid\":77}");
		put_phase_of(m, "data", t, 40 * MS, 200, "{\"pid\":77}");
		put_phase_of(m, "forward", t + 40 * MS, 20 * MS, 200, "{\"pid\":77}");
		put_phase_of(
			m, "backward", t + 60 * MS, other_length - 60 * MS, 200, "{\"pid\":77}");
	}
}

// The second rank is slower and loads its own data: of the first one's backward, 20 ms are its own.
static void test_ranks_that_wait_in_backward(void **state)
{
	struct made *m = *state;
	put_ranks_in_step(m, 100 * MS);
	const struct phases *p = analyse(m, 1000 * MS);
	assert_int_equal(p->n_ranks, 2);
	assert_true(p->waits_inferred);
	NEAR(p->ranks[0].waits, 0.7, 1e-9);
	NEAR(p->ranks[1].waits, 0, 1e-9);
	assert_false(p->ranks[0].slowest);
	assert_true(p->ranks[1].slowest);
}

// Two ranks in step, 10 iterations of 100 ms. Of each iteration, the first rank spends `forward_ns`
// in forward, the rest in backward; the second spends `data_ns` in data, then `its_forward_ns` in
// forward, the rest in backward.
static void put_two_ranks(
	struct made *m, int64_t forward_ns, int64_t data_ns, int64_t its_forward_ns)
{
	static const char second[] = "{\"pid\":77}";
	int64_t before_ns = data_ns + its_forward_ns;
	put_epoch(m, 1, 0, 1000 * MS);
	for (int i = 0; i < 10; i++) {
		int64_t t = i * 100 * MS;
		put_iteration(m, i, t, 100 * MS);
		put_phase(m, "forward", t, forward_ns);
		put_phase(m, "backward", t + forward_ns, 100 * MS - forward_ns);
		put_phase_of(m, "iteration", t, 100 * MS, 200, second);
		if (data_ns > 0) {
			put_phase_of(m, "data", t, data_ns, 200, second);
		}
		put_phase_of(m, "forward", t + data_ns, its_forward_ns, 200, second);
		put_phase_of(m, "backward", t + before_ns, 100 * MS - before_ns, 200, second);
	}
}

static void put_process(struct made *m, int64_t id, const char *key, const char *attributes)
{
	writer_put_entity(m->writer, &(struct writer_entity){.id = id,
					     .kind = ENTITY_PROCESS,
					     .key = key,
					     .name = "python3",
					     .last_ns = -1,
					     .attributes = attributes});
}

// Two ranks, of which the second one's attribute is given.
static const struct phases *analyse_numbered(struct made *m, const char *second)
{
	put_process(m, 1, "10:1", "{\"rank\":5}");
	put_process(m, 2, "77:1", second);
	for (int i = 0; i < 10; i++) {
		put_iteration(m, i, i * 100 * MS, 100 * MS);
		put_phase_of(m, "iteration", i * 100 * MS, 100 * MS, 200, "{\"process\":2}");
	}
	const struct phases *p = analyse(m, 1000 * MS);
	assert_int_equal(p->n_ranks, 2);
	return p;
}

static void test_the_numbers_of_a_launcher(void **state)
{
	const struct phases *p = analyse_numbered(*state, "{\"rank\":4}");
	assert_true(p->ranks_launched);
	assert_int_equal(p->ranks[0].number, 5);
	assert_int_equal(p->ranks[1].number, 4);
	assert_int_equal(p->ranks[0].place, 1);
	assert_int_equal(p->ranks[1].place, 0);
}

static void check_own_numbers(struct made *m, const char *second)
{
	const struct phases *p = analyse_numbered(m, second);
	assert_false(p->ranks_launched);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(p->ranks[i].number, i);
		assert_int_equal(p->ranks[i].place, i);
	}
}

static void test_numbers_given_twice(void **state)
{
	check_own_numbers(*state, "{\"rank\":5}");
}

static void test_numbers_of_which_one_is_missing(void **state)
{
	check_own_numbers(*state, "{}");
}

static void test_numbers_that_are_none(void **state)
{
	check_own_numbers(*state, "{\"rank\":-1.5}");
}

// A barrier at the end of an epoch is marked, the exchange of gradients in backward is not.
static void test_a_barrier_is_not_all_waiting(void **state)
{
	struct made *m = *state;
	put_ranks_in_step(m, 100 * MS);
	put_phase(m, "communication", 999 * MS, 1 * MS);
	const struct phases *p = analyse(m, 1000 * MS);
	assert_true(p->waits_inferred);
	NEAR(p->ranks[0].waits, 0.7, 0.01);
	assert_true(p->ranks[1].slowest);
}

static void check_the_first_waits(struct made *m, double waits)
{
	const struct phases *p = analyse(m, 1000 * MS);
	assert_true(p->waits_inferred);
	NEAR(p->ranks[0].waits, waits, 1e-9);
	NEAR(p->ranks[1].waits, 0, 1e-9);
	assert_true(p->ranks[1].slowest);
}

// The first rank is done with its data at once, and waits for the second where forward begins.
static void test_ranks_that_wait_in_forward(void **state)
{
	put_two_ranks(*state, 80 * MS, 70 * MS, 10 * MS);
	check_the_first_waits(*state, 0.7);
}

// The second rank does other work in its forward: its ratio of backward to forward is not that of
// the first, which waits 60 ms in backward.
static void test_ranks_of_which_one_does_more_in_forward(void **state)
{
	put_two_ranks(*state, 10 * MS, 0, 70 * MS);
	check_the_first_waits(*state, 0.6);
}

// Who does not wait for each other is not in step.
static void test_ranks_that_go_their_own_ways(void **state)
{
	struct made *m = *state;
	put_ranks_in_step(m, 80 * MS);
	const struct phases *p = analyse(m, 1000 * MS);
	assert_int_equal(p->n_ranks, 2);
	assert_false(p->waits_inferred);
	assert_true(isnan(p->ranks[0].waits));
}

// Validation of a rank between its iterations, while the others wait in a collective.
static void test_one_rank_validates(void **state)
{
	struct made *m = *state;
	put_ranks_in_step(m, 100 * MS);
	put_phase_of(m, "validation", 1000 * MS, 400 * MS, 200, "{\"pid\":77}");
	put_phase_of(m, "checkpoint", 1400 * MS, 50 * MS, 200, "{\"pid\":77}");
	put_phase(m, "communication", 1000 * MS, 450 * MS);
	const struct phases *p = analyse(m, 1500 * MS);
	assert_int_equal(p->n_ranks, 2);
	NEAR(p->ranks[0].validation_s, 0, 1e-9);
	NEAR(p->ranks[1].validation_s, 0.4, 1e-9);
	NEAR(p->ranks[1].checkpoint_s, 0.05, 1e-9);
	assert_int_equal(p->items[PHASE_VALIDATION].spans, 0);
}

// A rank without forward: of its backward nobody knows how much is a wait.
static void test_a_rank_without_forward(void **state)
{
	struct made *m = *state;
	put_ranks_in_step(m, 100 * MS);
	for (int i = 0; i < 10; i++) {
		int64_t t = i * 100 * MS;
		put_phase_of(m, "iteration", t, 100 * MS, 300, "{\"pid\":78}");
		put_phase_of(m, "backward", t + 10 * MS, 60 * MS, 300, "{\"pid\":78}");
	}
	const struct phases *p = analyse(m, 1000 * MS);
	assert_int_equal(p->n_ranks, 3);
	assert_false(p->waits_inferred);
	assert_true(isnan(p->ranks[2].waits));
}

static void test_workers_and_ranks(void **state)
{
	struct made *m = *state;
	put_epoch(m, 1, 0, 1000 * MS);
	for (int i = 0; i < 10; i++) {
		put_iteration(m, i, i * 100 * MS, 100 * MS);
		put_phase(m, "data", i * 100 * MS, 10 * MS);
		for (int worker = 0; worker < 2; worker++) {
			char attributes[32];
			snprintf(attributes, sizeof(attributes), "{\"pid\":%d}", 50 + worker);
			put(m, (struct writer_span){.name = "prepare",
				       .kind = "phase",
				       .start_ns = i * 100 * MS + worker,
				       .end_ns = i * 100 * MS + (80 + 10 * worker) * MS,
				       .thread = 50 + worker,
				       .number = -1,
				       .samples = 16,
				       .attributes = attributes});
		}
		put(m, (struct writer_span){.kind = "iteration",
			       .start_ns = i * 100 * MS + MS,
			       .end_ns = i * 100 * MS + 60 * MS,
			       .thread = 200,
			       .number = i,
			       .samples = 32,
			       .attributes = "{\"pid\":77}"});
		put(m, (struct writer_span){.name = "communication",
			       .kind = "phase",
			       .start_ns = i * 100 * MS + 10 * MS,
			       .end_ns = i * 100 * MS + 40 * MS,
			       .thread = 200,
			       .number = -1,
			       .samples = -1,
			       .attributes = "{\"pid\":77}"});
	}
	const struct phases *p = analyse(m, 1000 * MS);
	assert_int_equal(p->total, 10);
	assert_int_equal(p->n_workers, 2);
	assert_int_equal(p->workers[1].pid, 51);
	assert_int_equal(p->workers[1].batches, 10);
	assert_int_equal(p->workers[1].samples, 160);
	NEAR(p->workers[1].prepare_s, 0.9, 1e-6);
	NEAR(p->workers[1].per_sample_s, 0.9 / 160, 1e-6);
	NEAR(p->workers[1].batch_p50_s, 0.09, 0.005);
	assert_true(isnan(p->workers[1].cpu_s)); // nobody saw its process
	assert_int_equal(p->n_ranks, 2);
	assert_int_equal(p->ranks[0].thread, MAIN);
	assert_int_equal(p->ranks[1].pid, 77);
	NEAR(p->ranks[1].iteration_s, 0.59, 1e-9);
	NEAR(p->ranks[1].phase_s[PHASE_COMMUNICATION], 0.3, 1e-9);
	assert_int_equal(p->items[PHASE_COMMUNICATION].spans, 0); // not on the main thread
	assert_int_equal(p->ranks[0].number, 1); // whom nobody saw comes first
	assert_int_equal(p->ranks[1].number, 0);
	NEAR(p->ranks[0].waits, 0, 1e-9);
	NEAR(p->ranks[1].waits, 0.3 / 0.59, 1e-9);
	assert_true(p->ranks[0].slowest);
	assert_false(p->ranks[1].slowest);
	NEAR(p->ranks[1].p50_s, 0.059, 0.005);
	NEAR(p->ranks[1].samples_per_s, 32 / 0.059, 1e-6);
}

static void put_own(
	struct made *m, const char *name, int64_t start_ns, int64_t length_ns, int64_t thread)
{
	put(m, (struct writer_span){.name = name,
		       .kind = "user",
		       .start_ns = start_ns,
		       .end_ns = start_ns + length_ns,
		       .thread = thread,
		       .number = strcmp(name, "epoch") == 0 ? 1 : -1,
		       .samples = -1});
}

static const struct own_span *own_named(const struct phases *p, const char *name, bool inside)
{
	for (size_t i = 0; i < p->n_own; i++) {
		if (strcmp(p->own[i].name, name) == 0 && p->own[i].inside == inside) {
			return &p->own[i];
		}
	}
	return NULL;
}

// Spans that the author named: by what holds them, in iterations and outside.
static void test_own_spans(void **state)
{
	struct made *m = *state;
	put_own(m, "setup", 0, 100 * MS, MAIN);
	put_own(m, "load", 10 * MS, 50 * MS, MAIN);
	put_own(m, "epoch", 0, 1000 * MS, 200); // of another rank: marked as one, named by nobody
	for (int i = 0; i < 8; i++) {
		int64_t at = (100 + i * 100) * MS;
		put_iteration(m, i, at, 100 * MS);
		put_own(m, "encode", at, 40 * MS, MAIN);
		put_phase(m, "forward", at, 40 * MS);
		put_own(m, "load", at + 10 * MS, 20 * MS, MAIN);
		put_own(m, "crosses", at + 35 * MS, 10 * MS, MAIN); // the end of encode: not in it
		put_own(m, "leaves", at + 90 * MS, 20 * MS, MAIN); // the iteration
		put_own(m, "decode", at, 50 * MS, 300 + i % 2); // two other threads
	}
	const struct phases *p = analyse(m, 1000 * MS);
	assert_int_equal(p->total, 8);
	assert_null(own_named(p, "epoch", false));
	const struct own_span *encode = own_named(p, "encode", true);
	const struct own_span *load = own_named(p, "load", true);
	const struct own_span *setup = own_named(p, "setup", false);
	assert_int_equal(p->n_own, 7);
	assert_int_equal(encode->count, 8);
	NEAR(encode->total_s, 0.32, 1e-9);
	NEAR(encode->share, 0.4, 1e-9);
	NEAR(encode->p50_s, 0.04, 0.005);
	assert_ptr_equal(load, encode + 1);
	assert_int_equal(load->parent, encode - p->own);
	assert_int_equal(load->depth, 1);
	NEAR(load->share, 0.2, 1e-9);
	NEAR(setup->share, 0.1, 1e-9);
	assert_int_equal(own_named(p, "load", false)->parent, setup - p->own);
	assert_int_equal(own_named(p, "crosses", true)->parent, OWN_SPAN_NONE);
	assert_int_equal(own_named(p, "leaves", false)->count, 8);
	assert_int_equal(own_named(p, "decode", false)->threads, 2);
	NEAR(own_named(p, "decode", false)->share, 0.2, 1e-9);
	bool longest[7] = {false};
	assert_int_equal(
		phases_longest_own_spans(p, 4, longest), 0); // with "load", whose holder is there
	assert_true(longest[encode - p->own] && !longest[setup - p->own]);
	NEAR(p->items[PHASE_FORWARD].share.value, 0.4, 1e-9); // nothing of phases is otherwise
}

// Garbage collections count for the phase in which they began, and in workers for all of their
// time.
static void test_collections(void **state)
{
	struct made *m = *state;
	put_own(m, "python.gc", 10 * MS, 50 * MS, MAIN); // before all iterations
	for (int i = 0; i < 8; i++) {
		int64_t at = (100 + i * 100) * MS;
		put_iteration(m, i, at, 100 * MS);
		put_phase(m, "data", at, 20 * MS);
		put_own(m, "python.gc", at + 5 * MS, 10 * MS, MAIN);
		put_own(m, "gc", at + 16 * MS, MS, MAIN); // of the author
		put_phase(m, "forward", at + 20 * MS, 40 * MS);
		put_own(m, "python.gc", at + 30 * MS, 5 * MS, MAIN);
		put_phase(m, "validation", at + 70 * MS, 30 * MS);
		put_own(m, "python.gc", at + 75 * MS, 20 * MS, MAIN);
		put(m, (struct writer_span){.name = "prepare",
			       .kind = "phase",
			       .start_ns = at,
			       .end_ns = at + 50 * MS,
			       .thread = 77,
			       .number = -1,
			       .samples = 5});
		put_own(m, "python.gc", at + 10 * MS, 15 * MS, 77);
	}
	const struct phases *p = analyse(m, 1000 * MS);
	assert_int_equal(p->n_ranks, 1);
	assert_int_equal(p->ranks[0].collections, 16);
	NEAR(p->ranks[0].collected_s[PHASE_DATA], 8 * 0.010, 1e-9);
	NEAR(p->ranks[0].collected_s[PHASE_FORWARD], 8 * 0.005, 1e-9);
	NEAR(p->ranks[0].collected_s[PHASE_VALIDATION], 0, 1e-9);
	NEAR(p->ranks[0].iteration_s, 8 * 0.070, 1e-9);
	assert_int_equal(p->n_workers, 1);
	NEAR(p->workers[0].collected_s, 8 * 0.015, 1e-9);
	assert_non_null(own_named(p, "python.gc", true));
}

// More names than there is room for, and deeper than any program nests.
static void test_many_own_spans(void **state)
{
	struct made *m = *state;
	for (int i = 0; i < 1000; i++) {
		char name[32];
		snprintf(name, sizeof(name), "name %d", i);
		put_own(m, name, 2000 * MS + i * MS, MS, MAIN);
		put_own(m, "deep", i * MS, (2000 - 2 * i) * MS, 7);
	}
	const struct phases *p = analyse(m, 3000 * MS);
	assert_true(p->n_own > 100 && p->own_left_out > 0);
	uint64_t counted = p->own_left_out;
	for (size_t i = 0; i < p->n_own; i++) {
		counted += p->own[i].count;
	}
	assert_int_equal(counted, 2000);
}

// One program after the other: both are the job's.
static void test_programs_in_turn(void **state)
{
	struct made *m = *state;
	for (int program = 0; program < 2; program++) {
		for (int i = 0; i < 10; i++) {
			put(m, (struct writer_span){.kind = "iteration",
				       .start_ns = (program * 2000 + i * 100) * MS,
				       .end_ns = (program * 2000 + i * 100 + 100) * MS,
				       .thread = 10 + program,
				       .number = i,
				       .samples = -1});
		}
	}
	const struct phases *p = analyse(m, 3000 * MS);
	assert_int_equal(p->total, 20);
	assert_int_equal(p->n_ranks, 1);
	assert_int_equal(p->warm_up, 2); // each of them
	assert_true(isnan(p->samples_per_s.value));
	assert_non_null(p->phases_missing);
	NEAR(p->between_s, 1, 1e-9);
}

static void test_lost(void **state)
{
	struct made *m = *state;
	put_epoch(m, 1, 0, 4000 * MS);
	for (int i = 0; i < 30; i++) {
		if (i < 10 || i >= 20) {
			put_usual(m, i, i * 100 * MS, 40 * MS);
		}
	}
	put(m, (struct writer_span){.kind = "iteration",
		       .start_ns = 3000 * MS,
		       .end_ns = 3500 * MS,
		       .thread = MAIN,
		       .number = 30,
		       .samples = 32,
		       .attributes = "{\"process\":1,\"end\":\"exit\"}"});
	const struct phases *p = analyse(m, 4000 * MS);
	assert_int_equal(p->total, 21);
	assert_int_equal(p->cut, 1);
	assert_int_equal(p->unrecorded, 10);
	NEAR(p->unrecorded_s, 1, 1e-9);
	NEAR(p->epochs[0].unrecorded_s, 1, 1e-9);
	NEAR(p->epochs[0].outside_s, 0.5, 1e-9);
	assert_non_null(p->incomplete);
	NEAR(p->max_s, 0.1, 0.005);
}

static void test_phases_without_iterations(void **state)
{
	struct made *m = *state;
	for (int i = 0; i < 10; i++) {
		put_phase(m, "step", i * 100 * MS, 50 * MS);
	}
	const struct phases *p = analyse(m, 1000 * MS);
	assert_int_equal(p->total, 0);
	assert_string_equal(p->missing, "the job did not mark iterations");
	assert_null(p->phases_missing);
	NEAR(p->items[PHASE_STEP].total_s, 0.5, 1e-9);
	assert_true(isnan(p->items[PHASE_STEP].share.value));
	assert_true(isnan(p->length_s.value));
}

static void test_no_marks(void **state)
{
	const struct phases *p = analyse(*state, 1000 * MS);
	assert_int_equal(p->total, 0);
	assert_non_null(p->missing);
	assert_non_null(p->phases_missing);
	assert_int_equal(p->n_workers, 0);
}

// As a random program would mark: nothing is trusted, time adds up.
static void test_hostile(void **state)
{
	static const char *const names[] = {"data", "validation", "prepare", "", "a", "b", "c", "d",
		"e", "f", "g", "h", "import",
		"a name that is longer than any name has a right to be, goes on and on"};
	static const char *const kinds[] = {"iteration", "phase", "phase", "phase", "epoch"};
	static const char *const owners[] = {"{\"process\":1}", "{\"pid\":-5}", "{}", "nonsense",
		"{\"process\":99999999999999999999}"};
	struct made *m = *state;
	uint32_t random = 12345;
	for (int i = 0; i < 20000; i++) {
		uint32_t draw[6];
		for (int k = 0; k < 6; k++) {
			random = random * 1664525u + 1013904223u;
			draw[k] = random >> 8;
		}
		int64_t start = (int64_t)(draw[0] % 5000) * MS - 100 * MS;
		int64_t end = start + (int64_t)(draw[1] % 400) * MS - 100 * MS;
		put(m, (struct writer_span){.name = names[draw[2] % ARRAY_LENGTH(names)],
			       .kind = kinds[draw[3] % ARRAY_LENGTH(kinds)],
			       .start_ns = draw[4] % 97 == 0 ? INT64_MIN : start,
			       .end_ns = draw[4] % 89 == 0 ? INT64_MAX - 1 : end,
			       .thread = draw[4] % 3,
			       .number = draw[5] % 2 ? INT64_MAX : (int64_t)(draw[5] % 100),
			       .samples = draw[5] % 3 ? INT64_MAX : -1,
			       .attributes = owners[draw[5] % ARRAY_LENGTH(owners)]});
	}
	const struct phases *p = analyse(m, 5000 * MS);
	assert_true(p->total > 0);
	assert_true(p->n == PHASES_MAX);
	double shares = 0;
	for (size_t i = 0; i < p->n; i++) {
		shares += p->items[i].apart || p->steady == 0 ? 0 : p->items[i].share.value;
	}
	NEAR(p->steady > 0 ? shares : 1, 1, 1e-6);
}

static void test_more_threads_than_there_is_room_for(void **state)
{
	struct made *m = *state;
	for (int i = 0; i < THREADS_MAX + 100; i++) {
		put(m, (struct writer_span){.kind = "iteration",
			       .start_ns = i,
			       .end_ns = i + 10 * MS,
			       .thread = i + 1,
			       .number = i,
			       .samples = 1});
	}
	const struct phases *p = analyse(m, 100 * MS);
	assert_true(p->total >= 1);
	assert_non_null(p->incomplete);
	assert_int_equal(p->n_ranks, THREADS_MAX);
}

// More than are kept: every second one stays, the figures are of all.
static void test_many(void **state)
{
	struct made *m = *state;
	int n = 2 * ITERATIONS_KEPT + 1000;
	for (int i = 0; i < n; i++) {
		put_iteration(m, i, i * MS, MS);
		put_phase(m, "data", i * MS, i % 4 == 0 ? MS / 2 : 0);
	}
	const struct phases *p = analyse(m, n * MS);
	assert_int_equal(p->total, n);
	assert_int_equal(p->stride, 4);
	assert_true(p->n_iterations <= ITERATIONS_KEPT);
	assert_int_equal(p->iterations[1].number, 4);
	assert_int_equal(p->iterations[p->n_iterations - 1].number, (n - 1) / 4 * 4);
	NEAR(p->items[PHASE_DATA].share.value, 0.125, 0.001);
	assert_true(p->items[PHASE_DATA].share.low <= 0.125);
	assert_true(p->items[PHASE_DATA].share.high >= 0.125);
	assert_int_equal(p->items[PHASE_DATA].p50_s * 1e9, 0);
}

// Forty iterations of 100 ms, of which some are compiled, for two seconds each.
static const struct phases *compiled(struct made *m, const int *places, int n)
{
	int64_t at = 0;
	for (int i = 0; i < 40; i++) {
		int64_t length = 100 * MS;
		for (int k = 0; k < n; k++) {
			length += places[k] == i ? 2000 * MS : 0;
		}
		put_iteration(m, i, at, length);
		put_own(m, "torch.compile", at + 10 * MS, length - 60 * MS,
			length > 100 * MS ? MAIN : 999);
		at += length;
	}
	return analyse(m, at);
}

// Rare compilations are left out, early ones with the warm-up; frequent ones are not.
static void test_compiled_rarely(void **state)
{
	const int places[] = {0, 3, 39};
	const struct phases *p = compiled(*state, places, 3);
	assert_int_equal(p->total, 40);
	assert_int_equal(p->warm_up, 4);
	assert_int_equal(p->compiled, 1);
	assert_int_equal(p->cut, 0);
	assert_int_equal(p->steady, 35);
	NEAR(p->compiled_s, 2.1, 1e-9);
	NEAR(p->length_s.value, 0.1, 1e-9);
	NEAR(p->max_s, 0.1, 1e-9);
	assert_int_equal(p->named[NAMED_TORCH_COMPILE].count, 0);
}

// A graph for each bucket: none in the second half.
static void test_compiled_at_first(void **state)
{
	const int places[] = {0, 3, 10, 12, 14, 16, 19};
	const struct phases *p = compiled(*state, places, 7);
	assert_int_equal(p->compiled, 5);
	assert_int_equal(p->steady, 31);
	NEAR(p->length_s.value, 0.1, 1e-9);
	assert_int_equal(p->compilations, 7);
	NEAR(p->compiling_s, 7 * 2.04, 1e-9);
}

static void test_compiled_often(void **state)
{
	const int places[] = {0, 3, 19, 25, 30, 39};
	const struct phases *p = compiled(*state, places, 6);
	assert_int_equal(p->warm_up, 1);
	assert_int_equal(p->compiled, 0);
	assert_int_equal(p->steady, 39);
	assert_int_equal(p->named[NAMED_TORCH_COMPILE].count, 5);
	assert_int_equal(p->named[NAMED_TORCH_COMPILE].iterations, 5);
	assert_int_equal(p->named[NAMED_TORCH_COMPILE].since, 0);
	NEAR(p->length_s.value, (39 * 0.1 + 5 * 2) / 39, 1e-9);
}

// A sawtooth of slow decline: warm-up ends where iterations look like the others.
static void test_warm_up(void **state)
{
	struct made *m = *state;
	int64_t at = 0;
	for (int i = 0; i < 200; i++) {
		int64_t data = i < 12 ? (300 - 20 * i) * MS : (40 + i % 3) * MS;
		at = put_usual(m, i, at, data);
	}
	const struct phases *p = analyse(m, at);
	assert_int_equal(p->warm_up, 10); // the median of iterations 10 to 14 is a usual one
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_known_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slowest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nested_and_overlapping, setup, teardown),
		cmocka_unit_test_setup_teardown(test_workers_and_ranks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ranks_that_wait_in_backward, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_numbers_of_a_launcher, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers_given_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_numbers_of_which_one_is_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers_that_are_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_rank_without_forward, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ranks_that_wait_in_forward, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_barrier_is_not_all_waiting, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_ranks_of_which_one_does_more_in_forward, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ranks_that_go_their_own_ways, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_spans, setup, teardown),
		cmocka_unit_test_setup_teardown(test_collections, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_own_spans, setup, teardown),
		cmocka_unit_test_setup_teardown(test_programs_in_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_phases_without_iterations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_marks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_more_threads_than_there_is_room_for, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_warm_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_rank_validates, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compiled_rarely, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compiled_at_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compiled_often, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
