// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Observations: accumulated batches, and runs that cannot be read.

#include "probe/observation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "runfile/writer.h"

#define MS INT64_C(1000000)

static void test_accumulated_batches_count_each(void **state)
{
	(void)state;
	struct observation o = {.batch_size = 480,
		.accumulated = 1,
		.iterations = 10,
		.rate = {240, 235, 245},
		.iteration = {2.0, 1.9, 2.1},
		.compute = 1.6,
		.wait = 0.4,
		.main_cpu = 1.2,
		.prepare_cpu = 0.001,
		.leak_per_iteration = NAN};
	observation_divide(&o, 40);
	assert_true(o.batch_size == 12 && o.accumulated == 40 && o.iterations == 400);
	assert_true(fabs((double)o.batch_size / o.iteration.value - o.rate.value) < 1e-9);
	assert_true(fabs(o.compute + o.wait - o.iteration.value) < 1e-12);
	assert_true(fabs(o.iteration.high - 0.0525) < 1e-12 && fabs(o.main_cpu - 0.03) < 1e-12);
	assert_true(o.rate.value == 240 && o.prepare_cpu == 0.001);
	assert_true(isnan(o.leak_per_iteration));
}

static void test_parts_that_are_not_known_are_not_held(void **state)
{
	(void)state;
	struct observation o = {.anonymous = 100, .shared = NAN, .kernel = 5};
	assert_true(observation_held(&o) == 105);
	o.anonymous = NAN;
	assert_true(isnan(observation_held(&o)));
}

static void test_no_run(void **state)
{
	(void)state;
	struct observation o;
	struct error e = {0};
	assert_true(observation_read("/nonexistent/run.strain", &o, &e) < 0);
	assert_true(e.text[0] != '\0' && isnan(o.rate.value) && o.batch_size == -1);
	observation_done(&o);
}

// A shortened run with two workers
// ------------------------------------------------------------------

static void put(struct writer *w, const char *kind, const char *name, int64_t from_ns,
	int64_t to_ns, int64_t samples)
{
	const struct writer_span span = {.name = name,
		.kind = kind,
		.start_ns = from_ns,
		.end_ns = to_ns,
		.thread = 100,
		.number = -1,
		.samples = samples,
		.value = NAN,
		.attributes = "{\"process\":1}"};
	assert_int_equal(writer_put_span(w, &span, NULL), 0);
}

// An epoch of iterations of 60 ms beside their waits: 140 ms for the first batch, none for the four
// that were prepared meanwhile and for the last four, 40 ms for those between. Returns its end.
static int64_t put_epoch(struct writer *w, int64_t at, int iterations)
{
	int64_t start = at;
	for (int i = 0; i < iterations; i++) {
		bool prepared = i <= 4 || i >= iterations - 4;
		int64_t wait = (i == 0 ? 140 : prepared ? 0 : 40) * MS;
		put(w, "iteration", "iteration", at, at + wait + 60 * MS, 32);
		put(w, "phase", "data", at, at + wait, -1);
		put(w, "phase", "forward", at + wait, at + wait + 60 * MS, -1);
		at += wait + 60 * MS;
	}
	put(w, "epoch", "epoch", start, at, -1);
	return at;
}

// samples: of a pass, as the hooks report it; sizes: how samples differ, likewise; NULL: not known
static void observe_epochs(int first, int others, const char *hooks, const char *samples,
	const char *sizes, struct observation *ret)
{
	char path[64];
	struct writer *w;
	struct error e = {0};
	snprintf(path, sizeof(path), "/tmp/strain-observation-%d.strain", getpid());
	assert_int_equal(writer_create(path, &(struct writer_options){.replace = true}, &w, &e), 0);
	writer_put_entity(w, &(struct writer_entity){.id = 1,
				     .kind = ENTITY_PROCESS,
				     .key = "10:1",
				     .name = "python3",
				     .last_ns = -1});
	writer_put_run(w, "hooks", hooks);
	writer_put_run(w, "loader_workers", "2");
	writer_put_run(w, "loader_prefetch_factor", "2");
	writer_put_run(w, "loader_batch_size", "32");
	writer_put_run(w, "loader_batches", "1000");
	if (samples) {
		writer_put_run(w, "loader_samples", samples);
	}
	writer_put_run(w, "loader_validation_s", "2.5");
	if (sizes) {
		writer_put_run(w, "loader_sample_sizes", sizes);
		writer_put_run(w, "loader_batch_elements", sizes);
		writer_put_run(w, "loader_validation_growth", sizes);
		writer_put_run(w, "loader_training_growth", sizes);
	}
	int64_t at = put_epoch(w, 1000 * MS, first);
	for (int i = 0; i < others; i++) {
		at = put_epoch(w, at + 20 * MS, 4);
	}
	assert_int_equal(writer_finish(w, at, 0, &e), 0);
	writer_free(w);
	assert_int_equal(observation_read(path, ret, &e), 0);
	unlink(path);
}

static void observe_short(int first, int others, const char *hooks, struct observation *ret)
{
	observe_epochs(first, others, hooks, NULL, NULL, ret);
}

static void test_samples_differ_in_size(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t looked, of; // 0: refused
	} cases[] = {{"500 6000 20 400", 500, 6000}, {"500 -1 20 400", 500, -1},
		{"512 20 400", 0, 0}, {"512 5 20.5 400", 0, 0}, {"5 5 0 4", 0, 0},
		{"5 5 9 4", 0, 0}, {"5 5 1 inf", 0, 0}, {"-5 5 1 4", 0, 0}, {"5 5 1 4 6", 0, 0},
		{"99999999999999 5 1 4", 0, 0}, {"words", 0, 0}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct observation o;
		observe_epochs(40, 12, "pytorch 2.0: longest", NULL, cases[i].text, &o);
		assert_int_equal(o.sizes.looked, cases[i].looked);
		assert_int_equal(o.sizes.of, cases[i].of);
		assert_int_equal(o.unchosen.looked, cases[i].looked);
		assert_true(
			cases[i].looked == 0 || (o.sizes.median == 20 && o.sizes.largest == 400));
		observation_done(&o);
	}
}

static void test_a_validation_keeps_memory(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		double kept;
		double leak; // of an iteration
	} cases[] = {{"1048576 40", 0, 1048576}, {"1048576 3", 0, 0}, {"1048576", 0, 0},
		{"1048576 30 125", 95.0 * 1048576, 0}, {"5 30 30", 0, 0}, {"5 0 3", 0, 0},
		{"-5 1 3", 0, 0}, {"5 1", 0, 0}, {"5 1 3 4", 0, 0},
		{"9000000000000 1 100000", 0, 0}, {"words", 0, 0}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct observation o;
		observe_epochs(40, 12, "pytorch 2.0: short", NULL, cases[i].text, &o);
		observation_count_kept(&o);
		assert_true(o.validation_kept == cases[i].kept);
		assert_true(cases[i].leak > 0 ? o.leak_per_iteration == cases[i].leak
					      : isnan(o.leak_per_iteration));
		observation_done(&o);
	}
}

static void test_the_last_batch_is_smaller(void **state)
{
	(void)state;
	static const char shortened[] = "pytorch 2.0: short, data, epochs shortened";
	static const struct {
		const char *samples;
		double epoch; // 1000 batches of 32
		bool known;
	} cases[] = {{NULL, 32000, false}, {"31990", 31990, true}, {"32001", 32001, true},
		{"4000", 32000, false}, {"-1", 32000, false}, {"99999999999999", 32000, false}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct observation o;
		observe_epochs(40, 12, shortened, cases[i].samples, NULL, &o);
		assert_true(o.epoch_samples == cases[i].epoch && o.epoch_known == cases[i].known);
		observation_done(&o);
	}
}

// Readings of a job's own memory, every 100 ms.
static void put_memory(struct writer *w, size_t n, int64_t *values)
{
	const struct metric metric = {"strain.memory.own_sum", METRIC_GAUGE, "By", 1, ""};
	int64_t t[64];
	uint32_t ids[] = {1};
	writer_put_entity(w,
		&(struct writer_entity){
			.id = 2, .kind = ENTITY_JOB, .key = "job", .name = "job", .last_ns = -1});
	assert_int_equal(writer_put_metric(w, 1, &metric, ENTITY_JOB, "test"), 0);
	for (size_t i = 0; i < n; i++) {
		t[i] = (int64_t)i * 100000;
	}
	const struct block b = {(uint32_t)n, 1, ids, NULL, t, (int64_t *[]){values}};
	assert_int_equal(writer_put_block(w, 2, "test", &b), 0);
}

// processes: of the job; ramp: own memory grows from 100 to 150 around the readings, too
static double anonymous_with(int64_t processes, bool ramp)
{
	const struct metric count = {"strain.process.count", METRIC_GAUGE, "{process}", 1, ""};
	const struct metric metric = {"strain.memory.pss.anonymous", METRIC_GAUGE, "By", 1, ""};
	char path[64];
	struct writer *w;
	struct error e = {0};
	struct observation o;
	int64_t own[40];
	int64_t t[] = {500000, 1550000, 3500000}, proportional[] = {100, 130, 112};
	uint32_t ids[] = {2};
	snprintf(path, sizeof(path), "/tmp/strain-observation-%d.strain", getpid());
	assert_int_equal(writer_create(path, &(struct writer_options){.replace = true}, &w, &e), 0);
	for (size_t i = 0; i < 40; i++) {
		own[i] = i == 30 || (ramp && i > 15) ? 150 : 100; // a peak without a reading
	}
	put_memory(w, 40, own);
	assert_int_equal(writer_put_metric(w, 3, &count, ENTITY_JOB, "count"), 0);
	uint32_t count_ids[] = {3};
	const struct block of = {1, 1, count_ids, NULL, t, (int64_t *[]){&processes}};
	assert_int_equal(writer_put_block(w, 2, "count", &of), 0);
	assert_int_equal(writer_put_metric(w, 2, &metric, ENTITY_JOB, "memory"), 0);
	const struct block b = {3, 1, ids, NULL, t, (int64_t *[]){proportional}};
	assert_int_equal(writer_put_block(w, 2, "memory", &b), 0);
	assert_int_equal(writer_finish(w, 4000 * MS, 0, &e), 0);
	writer_free(w);
	assert_int_equal(observation_read(path, &o, &e), 0);
	unlink(path);
	double anonymous = o.anonymous;
	observation_done(&o);
	return anonymous;
}

// Workers copy pages that they shared: only their proportional memory grows. What a process alone
// allocates between two ticks is no copy.
static void test_pages_that_workers_copied(void **state)
{
	(void)state;
	assert_true(anonymous_with(3, false) == 150 + 30);
	assert_true(anonymous_with(1, false) == 150);
	assert_true(anonymous_with(3, true) == 150);
}

static void test_memory_of_validation_and_of_training(void **state)
{
	(void)state;
	char path[64];
	struct writer *w;
	struct error e = {0};
	struct observation o;
	int64_t values[40];
	snprintf(path, sizeof(path), "/tmp/strain-observation-%d.strain", getpid());
	assert_int_equal(writer_create(path, &(struct writer_options){.replace = true}, &w, &e), 0);
	writer_put_entity(w, &(struct writer_entity){.id = 1,
				     .kind = ENTITY_PROCESS,
				     .key = "10:1",
				     .name = "python3",
				     .last_ns = -1});
	writer_put_run(w, "hooks", "pytorch 2.0: data");
	for (int64_t at = 1000; at < 3500; at += 100) {
		if (at < 2000 || at >= 2500) {
			put(w, "iteration", "iteration", at * MS, (at + 100) * MS, 8);
		}
	}
	put(w, "phase", "validation", 2000 * MS, 2500 * MS, -1);
	for (size_t i = 0; i < 40; i++) {
		values[i] = i < 5 ? 900 : i == 20 ? 260 : i > 20 && i <= 24 ? 300 : 100 + (int)i;
	}
	values[25] = 290; // at its end: of either
	put_memory(w, 40, values);
	assert_int_equal(writer_finish(w, 4000 * MS, 0, &e), 0);
	writer_free(w);
	assert_int_equal(observation_read(path, &o, &e), 0);
	unlink(path);
	assert_true(o.validation_peak == 300);
	assert_true(o.training_peak == 139);
	observation_done(&o);
	observe_short(40, 12, "pytorch 2.0: data", &o); // without validation
	assert_true(isnan(o.validation_peak) && isnan(o.training_peak));
	observation_done(&o);
}

static void test_the_rate_is_that_of_the_middle(void **state)
{
	(void)state;
	static const char shortened[] = "pytorch 2.0: short, data, epochs shortened";
	struct observation o;
	observe_short(40, 12, shortened, &o);
	assert_true(o.shortened && o.workers == 2 && o.epoch_samples == 32000);
	assert_true(fabs(o.iteration.value - 0.1) < 1e-6);
	assert_true(fabs(o.wait - 0.04) < 1e-6);
	assert_true(fabs(o.rate.value / 320 - 1) < 0.01); // all iterations: 32 in 94 ms
	assert_true(fabs(o.validation - 2.5) < 1e-9);
	observation_done(&o);
	observe_short(12, 12, shortened, &o); // three are too few: what the others show
	assert_true(o.rate.value > 320);
	observation_done(&o);
	observe_short(40, 12, "pytorch 2.0: data", &o); // the job's own epochs are that short
	assert_false(o.shortened);
	assert_true(o.rate.value > 325);
	observation_done(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_of_validation_and_of_training),
		cmocka_unit_test(test_pages_that_workers_copied),
		cmocka_unit_test(test_the_rate_is_that_of_the_middle),
		cmocka_unit_test(test_samples_differ_in_size),
		cmocka_unit_test(test_a_validation_keeps_memory),
		cmocka_unit_test(test_the_last_batch_is_smaller),
		cmocka_unit_test(test_accumulated_batches_count_each),
		cmocka_unit_test(test_parts_that_are_not_known_are_not_held),
		cmocka_unit_test(test_no_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
