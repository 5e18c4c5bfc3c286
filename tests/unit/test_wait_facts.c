// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Shares of waits, of what a recorder counted.

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

enum { MAIN = 1, OTHER_PROCESS };
enum { SLOTS = 4 };
static const struct metric metrics[SLOTS] = {
	{"strain.wait.looks", METRIC_COUNTER, "{look}", 1, ""},
	{"strain.wait.sleep", METRIC_COUNTER, "{look}", 1, ""},
	{"strain.wait.pipe", METRIC_COUNTER, "{look}", 1, ""},
	{"strain.wait.child", METRIC_COUNTER, "{look}", 1, ""},
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
	for (int64_t id = MAIN; id <= OTHER_PROCESS; id++) {
		const struct writer_entity entity = {.id = id,
			.kind = ENTITY_PROCESS,
			.key = id == MAIN ? "7:1" : "8:1",
			.name = "python3",
			.last_ns = -1};
		assert_int_equal(writer_put_entity(p->writer, &entity), 0);
	}
	for (uint32_t i = 0; i < SLOTS; i++) {
		assert_int_equal(
			writer_put_metric(p->writer, i + 1, &metrics[i], ENTITY_PROCESS, "waits"),
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

// Looks over ten seconds: all, and those that found it asleep, at a pipe, waiting for a child.
static void put(struct recorded *p, int64_t entity, const int64_t counts[SLOTS])
{
	static uint32_t ids[SLOTS] = {1, 2, 3, 4};
	int64_t t[] = {0, 10000000};
	int64_t rows[SLOTS][2];
	int64_t *columns[SLOTS];
	for (size_t i = 0; i < SLOTS; i++) {
		rows[i][0] = 0;
		rows[i][1] = counts[i];
		columns[i] = rows[i];
	}
	struct block b = {2, SLOTS, ids, NULL, t, columns};
	assert_int_equal(writer_put_block(p->writer, entity, "waits", &b), 0);
}

static const struct facts *gather(struct recorded *p)
{
	static const struct stretch run = {.to_us = 10000000};
	struct error e = {0};
	assert_int_equal(writer_finish(p->writer, INT64_C(10000000000), 0, &e), 0);
	assert_int_equal(reader_open(p->place.run, &p->reader, &e), 0);
	assert_int_equal(analysis_load(p->reader, &p->analysis, &e), 0);
	for (size_t i = 0; i < p->analysis.processes.n; i++) {
		struct process_row *row = &p->analysis.processes.items[i];
		row->role = row->entity == MAIN ? ROLE_MAIN : ROLE_LOADER;
	}
	facts_init(&p->facts);
	p->facts.length_s.value = 0.1;
	wait_facts_fill(&p->analysis, MAIN, &run, &p->facts);
	return &p->facts;
}

static bool near(double a, double b)
{
	return fabs(a - b) < 0.001;
}

static void test_shares_of_the_training_thread(void **state)
{
	struct recorded *p = *state;
	put(p, MAIN, (int64_t[]){200, 20, 50, 100});
	const struct facts *f = gather(p);
	assert_int_equal(f->waits.looks, 200);
	assert_true(near(f->waits.share[WAIT_SLEEP], 0.1));
	assert_true(near(f->waits.share[WAIT_PIPE], 0.25));
	assert_true(near(f->waits.share[WAIT_CHILD], 0.5));
	assert_true(near(f->children.waits_s, 0.05));
	_cleanup_text_ struct text t = {0};
	wait_facts_append(&t, &f->waits);
	assert_string_equal(t.data, "child 50 %, pipe 25 %, sleep 10 %");
}

// At the pipe it has nothing to prepare: shares are of the rest.
static void test_a_worker_at_its_pipe_is_idle(void **state)
{
	struct recorded *p = *state;
	put(p, OTHER_PROCESS, (int64_t[]){200, 90, 100, 0});
	const struct facts *f = gather(p);
	assert_int_equal(f->waits.looks, 0);
	assert_int_equal(f->worker_waits.looks, 100);
	assert_true(near(f->worker_waits.share[WAIT_SLEEP], 0.9));
	assert_true(f->worker_waits.share[WAIT_PIPE] == 0);
}

static void put_looks(struct recorded *p, size_t n, const int64_t *seconds, const int64_t *counts)
{
	static uint32_t id = 1;
	int64_t t[8], values[8];
	assert_true(n <= ARRAY_LENGTH(t));
	for (size_t i = 0; i < n; i++) {
		t[i] = seconds[i] * 1000000;
		values[i] = counts[i];
	}
	struct block b = {(uint32_t)n, 1, &id, NULL, t, (int64_t *[]){values}};
	assert_int_equal(writer_put_block(p->writer, MAIN, "waits", &b), 0);
}

// Ten a second, and a hundred a second in what is no part of the stretch.
static void test_gaps_are_left_out(void **state)
{
	static const int64_t seconds[] = {0, 2, 4, 6, 8, 10};
	static const int64_t looks[] = {0, 20, 220, 240, 440, 460};
	static const struct stretch gaps = {
		0, 10000000, 2, {{2000000, 4000000}, {6000000, 8000000}}};
	struct recorded *p = *state;
	put_looks(p, ARRAY_LENGTH(looks), seconds, looks);
	gather(p);
	double rate = rate_over(
		p->analysis.tables.reader, &p->analysis.stops, MAIN, "strain.wait.looks", &gaps);
	assert_true(near(rate, 10));
	assert_true(near(stretch_seconds(&gaps), 6));
	assert_true(stretch_has(&gaps, 1e6) && !stretch_has(&gaps, 3e6));
	assert_true(stretch_has(&gaps, 5e6) && !stretch_has(&gaps, 7e6));
	assert_true(stretch_has(&gaps, 10e6) && !stretch_has(&gaps, 11e6));
	assert_true(near(stretch_overlap(&gaps, -1e6, 20e6), 6e6));
	assert_true(near(stretch_overlap(&gaps, 1e6, 5e6), 2e6));
	assert_true(near(stretch_overlap(&gaps, 2.5e6, 3.5e6), 0));
	assert_true(near(stretch_overlap(&gaps, 9e6, 12e6), 1e6));
}

static void test_nobody_looked(void **state)
{
	struct recorded *p = *state;
	const struct facts *f = gather(p);
	assert_int_equal(f->waits.looks, 0);
	assert_int_equal(f->worker_waits.looks, 0);
	assert_true(isnan(f->waits.share[WAIT_SLEEP]) && isnan(f->children.waits_s));
	_cleanup_text_ struct text t = {0};
	wait_facts_append(&t, &f->waits);
	assert_int_equal(t.length, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_shares_of_the_training_thread, make_place, remove_place),
		cmocka_unit_test_setup_teardown(
			test_a_worker_at_its_pipe_is_idle, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_gaps_are_left_out, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_nobody_looked, make_place, remove_place),
	};
	return cmocka_run_group_tests_name("wait_facts", tests, NULL, NULL);
}
