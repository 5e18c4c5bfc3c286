// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What is known of a quota, of what a recorder read of it.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/analysis.h"
#include "verdict/facts.h"
#include "run/rate.h"
#include "base/cleanup.h"
#include "place.h"
#include "runfile/reader.h"
#include "runfile/writer.h"

enum { JOB = 1, PROCESS };
enum { LIMIT = 1, INSIDE, PERIODS, THROTTLED, TIME, CPU, WAIT, N_METRICS };

static const struct {
	struct metric metric;
	enum entity_kind of;
} metrics[N_METRICS] = {
	[LIMIT] = {{"strain.cgroup.cpu.limit", METRIC_GAUGE, "{cpu}", 0.001, ""}, ENTITY_JOB},
	[INSIDE] = {{"strain.cgroup.cpu.limit.inside", METRIC_GAUGE, "1", 1, ""}, ENTITY_JOB},
	[PERIODS] = {{"strain.cgroup.cpu.periods", METRIC_COUNTER, "{period}", 1, ""}, ENTITY_JOB},
	[THROTTLED] = {{"strain.cgroup.cpu.periods.throttled", METRIC_COUNTER, "{period}", 1, ""},
		ENTITY_JOB},
	[TIME] = {{"strain.cgroup.cpu.throttled_time", METRIC_COUNTER, "s", 1e-3, ""}, ENTITY_JOB},
	[CPU] = {{"process.cpu.time", METRIC_COUNTER, "s", 1e-3, ""}, ENTITY_JOB},
	[WAIT] = {{"strain.cpu.wait", METRIC_COUNTER, "s", 1e-3, ""}, ENTITY_PROCESS},
};

struct recorded {
	struct place place;
	struct writer *writer;
	struct reader *reader;
	struct analysis analysis;
	struct facts facts;
};

static int make_place(void **state)
{
	struct recorded *p = calloc(1, sizeof(*p));
	struct error e = {0};
	if (!p || place_init(&p->place, "a.strain") < 0 ||
		writer_create(p->place.run, &(struct writer_options){0}, &p->writer, &e) < 0) {
		free(p);
		return -1;
	}
	const struct writer_entity entities[] = {
		{.id = JOB, .kind = ENTITY_JOB, .key = "job", .name = "job", .last_ns = -1},
		{.id = PROCESS,
			.kind = ENTITY_PROCESS,
			.key = "7",
			.name = "train",
			.parent = JOB,
			.last_ns = -1}};
	for (size_t i = 0; i < ARRAY_LENGTH(entities); i++) {
		assert_int_equal(writer_put_entity(p->writer, &entities[i]), 0);
	}
	for (uint32_t id = LIMIT; id < N_METRICS; id++) {
		assert_int_equal(writer_put_metric(p->writer, id, &metrics[id].metric,
					 metrics[id].of, metrics[id].metric.name),
			0);
	}
	*state = p;
	return 0;
}

static int remove_place(void **state)
{
	struct recorded *p = *state;
	analysis_done(&p->analysis);
	reader_free(p->reader);
	writer_free(p->writer);
	int r = place_done(&p->place);
	free(p);
	return r;
}

// Readings at these seconds.
static void put(struct recorded *p, uint32_t id, size_t n, const int64_t *seconds, int64_t *values)
{
	int64_t t[16];
	for (size_t i = 0; i < n; i++) {
		t[i] = seconds[i] * 1000000;
	}
	struct block b = {(uint32_t)n, 1, &id, NULL, t, (int64_t *[]){values}};
	int64_t entity = metrics[id].of == ENTITY_JOB ? JOB : PROCESS;
	assert_int_equal(writer_put_block(p->writer, entity, metrics[id].metric.name, &b), 0);
}

#define PUT(p, id, seconds, ...) \
	put(p, id, ARRAY_LENGTH(((int64_t[])__VA_ARGS__)), seconds, (int64_t[])__VA_ARGS__)

// Facts over its ten seconds, of a machine with four CPUs.
static const struct quota_facts *gather(struct recorded *p)
{
	static const struct stretch run = {.to_us = 10000000};
	struct error e = {0};
	assert_int_equal(writer_finish(p->writer, INT64_C(10000000000), 0, &e), 0);
	assert_int_equal(reader_open(p->place.run, &p->reader, &e), 0);
	assert_int_equal(analysis_load(p->reader, &p->analysis, &e), 0);
	facts_init(&p->facts);
	p->facts.host_cpus = 4;
	p->facts.cpus_used = 0.5;
	quota_facts_fill(&p->analysis, &run, &p->facts);
	return &p->facts.quota;
}

static bool near(double a, double b)
{
	return fabs(a - b) < 0.001;
}

static const int64_t ends[] = {0, 10};

static void test_an_inner_quota(void **state)
{
	struct recorded *p = *state;
	PUT(p, LIMIT, ((int64_t[]){0, 1, 10}), {1500, 500, 500});
	PUT(p, INSIDE, ((int64_t[]){0, 1, 10}), {0, 1, 1});
	PUT(p, PERIODS, ends, {3, 103});
	PUT(p, THROTTLED, ends, {0, 95});
	PUT(p, TIME, ends, {0, 14000});
	PUT(p, WAIT, ends, {0, 200});
	assert_int_equal(writer_put_event(p->writer, 1, "cpu_quota", JOB,
				 "1.5 CPUs, set around strain by cgroup /cg/a"),
		0);
	assert_int_equal(writer_put_event(p->writer, 2, "cpu_quota", JOB,
				 "0.5 CPUs, set inside the job by cgroup /cg/a/job 1/half"),
		0);
	const struct quota_facts *q = gather(p);
	assert_true(q->cpus == 0.5); // for nine of ten seconds, and exactly
	assert_true(q->own);
	assert_string_equal(q->where, "job 1/half");
	assert_true(near(q->used_up, 0.95));
	assert_true(near(q->throttled_cpu_s, 14) && near(q->throttled_cpus, 1.4));
	assert_true(near(q->queued_cpus, 0.02));
	assert_true(near(q->used_cpus, 0.5) && near(q->needed_cpus, 1.9));
	assert_true(p->analysis.overview.cpus == 0.5 || isnan(p->analysis.overview.host_cpus));
}

// An older kernel counts in run delay what is throttled; nobody needs more CPUs than there are.
static void test_what_is_needed(void **state)
{
	struct recorded *p = *state;
	PUT(p, LIMIT, ends, {500, 500});
	PUT(p, TIME, ends, {0, 2000});
	PUT(p, WAIT, ends, {0, 90000});
	const struct quota_facts *q = gather(p);
	assert_true(near(q->queued_cpus, 9) && near(q->needed_cpus, 4));
	assert_null(q->where);
	assert_false(q->own);
	assert_true(isnan(q->used_up));
}

static void test_without_a_quota(void **state)
{
	struct recorded *p = *state;
	PUT(p, LIMIT, ends, {VALUE_MISSING, VALUE_MISSING});
	PUT(p, WAIT, ends, {0, 90000});
	const struct quota_facts *q = gather(p);
	assert_true(isnan(q->cpus) && isnan(q->needed_cpus) && isnan(q->throttled_cpu_s));
	assert_true(isnan(overview_quota_cpus(&p->analysis.tables)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_an_inner_quota, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_what_is_needed, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_without_a_quota, make_place, remove_place),
	};
	return cmocka_run_group_tests_name("quota_facts", tests, NULL, NULL);
}
