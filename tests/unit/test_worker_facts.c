// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// How many workers a loader has: those at a time, and not another loader's.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "run/analysis.h"
#include "verdict/facts.h"
#include "base/cleanup.h"
#include "place.h"
#include "runfile/writer.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static const struct stretch whole = {.to_us = 60000000};

// A worker that prepared for part of its life.
static struct phase_worker worker(int64_t entity, double first_s, double last_s, double busy)
{
	return (struct phase_worker){.entity = entity,
		.batches = 10,
		.first_s = first_s,
		.last_s = last_s,
		.prepare_s = busy * (last_s - first_s),
		.steady_s = busy * (last_s - first_s),
		.batch_p50_s = 0.1};
}

static struct worker_facts facts_in(
	struct reader *r, struct phase_worker *workers, size_t n, unsigned ranks)
{
	struct analysis a = {
		.tables = {.reader = r}, .phases = {.workers = workers, .n_workers = n}};
	struct facts f;
	facts_init(&f);
	f.ranks.n = ranks;
	worker_facts_fill(&a, 1, &whole, &f);
	return f.workers;
}

static struct worker_facts facts_of(struct phase_worker *workers, size_t n)
{
	return facts_in(NULL, workers, n, 1);
}

static void workers_of_every_epoch_are_no_more(void **state)
{
	(void)state;
	struct phase_worker workers[] = {worker(10, 0, 9, 1), worker(11, 0.1, 9.1, 0.5),
		worker(12, 10, 19, 1), worker(13, 10.1, 19.1, 0.5), worker(14, 20, 29, 1),
		worker(15, 20.1, 29.1, 0.5)};
	struct worker_facts w = facts_of(workers, ARRAY_LENGTH(workers));
	assert_int_equal(w.n, 2);
	assert_int_equal(w.feeding, 2);
	assert_true(w.marked);
	NEAR(w.preparing, 1.5);
	NEAR(w.busiest, 1);
}

// A worker that was started anew is no slow one because of what there was to prepare.
static void the_slowest_is_one_of_those_at_a_time(void **state)
{
	(void)state;
	struct phase_worker workers[] = {worker(14, 20, 29, 1), worker(15, 20.1, 29.1, 1),
		worker(10, 0, 9, 1), worker(11, 0.1, 9.1, 1)};
	workers[0].batch_p50_s = workers[1].batch_p50_s = 0.3;
	struct worker_facts w = facts_of(workers, 4);
	NEAR(w.slowest, 1);
	workers[1].batch_p50_s = 0.9; // the second of the second epoch
	w = facts_of(workers, 4);
	NEAR(w.slowest, 0.5 / 0.2);
	assert_int_equal(w.slowest_number, 1);
	struct phase_worker alone[] = {worker(10, 0, 9, 1), worker(11, 10, 19, 1)};
	alone[1].batch_p50_s = 5;
	double none = facts_of(alone, 1).slowest;
	w = facts_of(alone, 2);
	assert_true(isnan(none) ? isnan(w.slowest) : w.slowest == none);
}

static void one_batch_is_a_life(void **state)
{
	(void)state;
	struct phase_worker workers[] = {worker(10, 0, 0.2, 1), worker(11, 0.1, 0.3, 1)};
	assert_int_equal(facts_of(workers, 2).n, 2);
	assert_int_equal(facts_of(workers, 1).n, 1);
	assert_int_equal(facts_of(workers, 0).n, 0);
	workers[0].entity = 1; // the training process: it prepares itself
	assert_int_equal(facts_of(workers, 1).n, 0);
}

// Ranks that prepare their batches themselves have no workers.
static void a_rank_is_no_worker(void **state)
{
	(void)state;
	struct phase_worker workers[] = {worker(2, 0, 9, 0.1)};
	struct phase_rank ranks[] = {{.entity = 1}, {.entity = 2}};
	struct analysis a = {.phases = {
				     .workers = workers,
				     .n_workers = 1,
				     .ranks = ranks,
				     .n_ranks = 2,
			     }};
	struct facts f;
	facts_init(&f);
	f.ranks.n = 2;
	worker_facts_fill(&a, 1, &whole, &f);
	assert_int_equal(f.workers.n, 0);
	assert_true(isnan(f.workers.preparing));
}

// A run whose loader was made with one worker.
static struct reader *run_with_one(const struct place *place)
{
	struct writer *w = NULL;
	struct reader *r = NULL;
	struct error e = {0};
	assert_int_equal(writer_create(place->run, &(struct writer_options){0}, &w, &e), 0);
	assert_int_equal(writer_put_run(w, "loader_workers", "1"), 0);
	assert_int_equal(writer_finish(w, 60000000000, 0, &e), 0);
	writer_free(w);
	assert_int_equal(reader_open(place->run, &r, &e), 0);
	return r;
}

// As seen: one worker for training and one for validation, both there all the time.
static void another_loaders_workers_prepare_nothing_for_training(void **state)
{
	struct reader *r = run_with_one(*state);
	struct phase_worker workers[] = {worker(10, 0, 50, 0.9), worker(11, 5, 52, 0.1),
		worker(12, 0, 50, 0.8), worker(13, 5, 52, 0.1)};
	struct worker_facts w = facts_in(r, workers, 2, 1);
	assert_int_equal(w.n, 1);
	assert_int_equal(w.feeding, 2);
	NEAR(w.preparing, 0.9);
	w = facts_in(r, workers, 4, 2); // one for each rank
	assert_int_equal(w.n, 2);
	assert_int_equal(w.feeding, 4);
	NEAR(w.preparing, 1.7);
	w = facts_of(workers, 2); // nobody said how many
	assert_int_equal(w.n, 2);
	reader_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_of_every_epoch_are_no_more),
		cmocka_unit_test(the_slowest_is_one_of_those_at_a_time),
		cmocka_unit_test(one_batch_is_a_life),
		cmocka_unit_test(a_rank_is_no_worker),
		cmocka_unit_test_setup_teardown(
			another_loaders_workers_prepare_nothing_for_training, place_setup,
			place_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
