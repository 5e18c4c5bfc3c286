// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A job's memory over time, of what a recorder read of it.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/analysis.h"
#include "run/overview.h"
#include "base/cleanup.h"
#include "place.h"
#include "runfile/reader.h"
#include "runfile/writer.h"

enum { JOB = 1, MB = 1000000 };
enum { PSS = 1, ANONYMOUS, SHARED, RESIDENT, OWN, PEAK, BOUND, CGROUP, FILES, N_METRICS };

static const char *const names[] = {[PSS] = "strain.memory.pss",
	[ANONYMOUS] = "strain.memory.anonymous",
	[SHARED] = "strain.memory.shmem",
	[RESIDENT] = "strain.memory.rss_sum",
	[OWN] = "strain.memory.own_sum",
	[PEAK] = "strain.memory.peak",
	[BOUND] = "strain.memory.peak.bound",
	[CGROUP] = "strain.cgroup.memory.peak",
	[FILES] = "strain.memory.pss.file"};

struct recorded {
	struct place place;
	struct writer *writer;
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
	assert_int_equal(writer_put_entity(p->writer, &(struct writer_entity){.id = JOB,
							      .kind = ENTITY_JOB,
							      .key = "job",
							      .name = "job",
							      .last_ns = -1}),
		0);
	for (uint32_t id = PSS; id < N_METRICS; id++) {
		struct metric metric = {names[id], METRIC_GAUGE, "By", MB, ""};
		assert_int_equal(writer_put_metric(p->writer, id, &metric, ENTITY_JOB, "test"), 0);
	}
	*state = p;
	return 0;
}

static int remove_place(void **state)
{
	struct recorded *p = *state;
	writer_free(p->writer);
	int r = place_done(&p->place);
	free(p);
	return r;
}

// Readings in MB: of a metric, or of anonymous memory with as much shared.
static void put(struct recorded *p, uint32_t id, size_t n, const int64_t *seconds, int64_t *values)
{
	int64_t t[16], shared[16];
	for (size_t i = 0; i < n; i++) {
		t[i] = seconds[i] * 1000000;
		shared[i] = 10;
	}
	uint32_t ids[] = {id, SHARED};
	struct block b = {
		(uint32_t)n, id == ANONYMOUS ? 2 : 1, ids, NULL, t, (int64_t *[]){values, shared}};
	assert_int_equal(writer_put_block(p->writer, JOB, "test", &b), 0);
}

#define PUT(p, id, seconds, ...) \
	put(p, id, ARRAY_LENGTH(((int64_t[])__VA_ARGS__)), seconds, (int64_t[])__VA_ARGS__)

static void memory_of(struct recorded *p, struct job_memory *ret)
{
	struct error e = {0};
	struct reader *reader;
	assert_int_equal(writer_finish(p->writer, INT64_C(10000000000), 0, &e), 0);
	assert_int_equal(reader_open(p->place.run, &reader, &e), 0);
	assert_int_equal(job_memory_read(reader, JOB, ret), 0);
	reader_free(reader);
}

static double at(const struct job_memory *m, int64_t second)
{
	for (size_t i = 0; i < m->series.n; i++) {
		if (m->series.t_us[i] == second * 1000000) {
			return m->series.values[i] / MB;
		}
	}
	return NAN;
}

static const int64_t every[] = {0, 1, 2, 3, 4, 5};

static void test_what_comes_and_goes_between_readings_of_pss_is_there(void **state)
{
	struct job_memory m;
	PUT(*state, ANONYMOUS, every, {0, 90, 90, 390, 90, 0});
	PUT(*state, PSS, ((int64_t[]){1, 4}), {150, 160});
	PUT(*state, RESIDENT, every, {20, 300, 300, 900, 300, 5});
	memory_of(*state, &m);
	assert_string_equal(m.kind, "PSS");
	assert_true(at(&m, 1) == 150 && at(&m, 4) == 160); // as they were read
	assert_true(fabs(at(&m, 2) - 153.33) < 0.01); // the files that are mapped grow by 10
	assert_true(fabs(at(&m, 3) - 456.67) < 0.01);
	assert_true(at(&m, 0) == 20 && at(&m, 5) == 10); // never more than is resident at all
	for (size_t i = 1; i < m.series.n; i++) {
		assert_true(m.series.t_us[i] >= m.series.t_us[i - 1]);
	}
	job_memory_done(&m);
}

static void test_where_pss_or_the_cgroup_is_missing(void **state)
{
	struct job_memory m;
	PUT(*state, PSS, ((int64_t[]){1, 4}), {150, 160});
	PUT(*state, RESIDENT, every, {20, 300, 300, 900, 300, 5});
	memory_of(*state, &m);
	assert_string_equal(m.kind, "PSS");
	assert_int_equal(m.series.n, 2);
	job_memory_done(&m);
}

static void test_the_cgroup_alone(void **state)
{
	struct job_memory m;
	PUT(*state, ANONYMOUS, every, {0, 90, VALUE_MISSING, 390, 90, 0});
	PUT(*state, RESIDENT, every, {20, 300, 300, 900, 300, 5});
	memory_of(*state, &m);
	assert_string_equal(m.kind, "anonymous and shared");
	assert_true(at(&m, 3) == 400 && isnan(at(&m, 2)));
	job_memory_done(&m);
}

static void test_a_job_that_was_gone_at_once(void **state)
{
	struct job_memory m;
	PUT(*state, PSS, ((int64_t[]){1}), {0});
	PUT(*state, RESIDENT, every, {20});
	memory_of(*state, &m);
	assert_string_equal(m.kind, "sum of resident");
	assert_true(at(&m, 0) == 20);
	job_memory_done(&m);
}

static void test_without_a_cgroup_what_processes_have_of_their_own(void **state)
{
	struct job_memory m;
	PUT(*state, OWN, every, {0, 100, 100, 400, 100, 0});
	PUT(*state, PSS, ((int64_t[]){1, 4}), {150, 150});
	PUT(*state, RESIDENT, every, {20, 300, 300, 900, 300, 5});
	memory_of(*state, &m);
	assert_string_equal(m.kind, "PSS");
	assert_true(fabs(at(&m, 3) - 450) < 0.01);
	job_memory_done(&m);
}

static void test_what_processes_have_of_their_own_alone(void **state)
{
	struct job_memory m;
	PUT(*state, OWN, every, {0, 90, 90, 390, 90, 0});
	PUT(*state, RESIDENT, every, {20, 300, 300, 900, 300, 5});
	memory_of(*state, &m);
	assert_string_equal(m.kind, "anonymous");
	assert_true(at(&m, 3) == 390);
	job_memory_done(&m);
}

// What the overview says of the peak, in MB.
static struct memory_figure peak_of(struct recorded *p)
{
	struct error e = {0};
	struct reader *reader;
	struct analysis a;
	assert_int_equal(writer_finish(p->writer, INT64_C(10000000000), 0, &e), 0);
	assert_int_equal(reader_open(p->place.run, &reader, &e), 0);
	assert_int_equal(analysis_load_job(reader, &a, &e), 0);
	struct memory_figure figure = a.overview.memory;
	analysis_done(&a);
	reader_free(reader);
	figure.peak_bytes /= MB;
	figure.at_most_bytes /= MB;
	return figure;
}

static void test_a_peak_that_was_only_sampled_is_at_least_so_much(void **state)
{
	PUT(*state, PSS, every, {20, 300, 300, 900, 300, 5});
	struct memory_figure m = peak_of(*state);
	assert_true(m.peak_bytes == 900 && m.at_least && isnan(m.at_most_bytes));
	assert_string_equal(m.source, "sampled");
}

static void test_a_mark_of_one_process_is_a_peak_of_the_job(void **state)
{
	PUT(*state, PSS, every, {20, 30, 30, 90, 30, 5});
	PUT(*state, PEAK, every, {20, 30, 30, 2000, 2000, 2000});
	PUT(*state, BOUND, ((int64_t[]){5}), {2010});
	struct memory_figure m = peak_of(*state);
	assert_true(m.peak_bytes == 2000 && m.at_most_bytes == 2010 && !m.at_least);
	assert_string_equal(m.source, "high-water marks");
	assert_string_equal(m.kind, "resident");
}

static void test_marks_of_several_may_have_been_at_other_times(void **state)
{
	PUT(*state, PSS, every, {20, 30, 30, 900, 30, 5});
	PUT(*state, PEAK, every, {20, 30, 30, 600, 600, 600});
	PUT(*state, BOUND, ((int64_t[]){5}), {1200});
	struct memory_figure m = peak_of(*state);
	assert_true(m.peak_bytes == 900 && m.at_most_bytes == 1200 && m.at_least);
	assert_string_equal(m.source, "sampled");
	assert_string_equal(m.kind, "PSS");
}

static void test_a_cgroup_was_never_charged_more(void **state)
{
	PUT(*state, PSS, every, {20, 30, 30, 900, 30, 5});
	PUT(*state, FILES, every, {10, 10, 10, 10, 10, 5});
	PUT(*state, BOUND, ((int64_t[]){5}), {1200});
	PUT(*state, CGROUP, ((int64_t[]){5}), {905});
	struct memory_figure m = peak_of(*state);
	assert_true(m.peak_bytes == 900 && m.at_most_bytes == 915 && !m.at_least);
	assert_string_equal(m.source, "cgroup");
}

static void test_the_page_cache_of_a_cgroup_says_nothing(void **state)
{
	PUT(*state, PSS, every, {20, 30, 30, 900, 30, 5});
	PUT(*state, FILES, every, {10, 10, 10, 10, 10, 5});
	PUT(*state, CGROUP, ((int64_t[]){5}), {50000});
	struct memory_figure m = peak_of(*state);
	assert_true(m.peak_bytes == 900 && m.at_most_bytes == 50010 && m.at_least);
}

static void test_nothing_was_read(void **state)
{
	struct job_memory m;
	memory_of(*state, &m);
	assert_null(m.kind);
	assert_int_equal(m.series.n, 0);
	job_memory_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_what_comes_and_goes_between_readings_of_pss_is_there, make_place,
			remove_place),
		cmocka_unit_test_setup_teardown(
			test_where_pss_or_the_cgroup_is_missing, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_the_cgroup_alone, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_job_that_was_gone_at_once, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_without_a_cgroup_what_processes_have_of_their_own, make_place,
			remove_place),
		cmocka_unit_test_setup_teardown(
			test_what_processes_have_of_their_own_alone, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_peak_that_was_only_sampled_is_at_least_so_much, make_place,
			remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_mark_of_one_process_is_a_peak_of_the_job, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_marks_of_several_may_have_been_at_other_times,
			make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_cgroup_was_never_charged_more, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_the_page_cache_of_a_cgroup_says_nothing, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_nothing_was_read, make_place, remove_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
