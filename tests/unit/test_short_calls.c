// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Short operations and arithmetic on large tensors, by their samples.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "run/analysis.h"
#include "run/short_calls.h"
#include "base/cleanup.h"
#include "place.h"
#include "runfile/reader.h"
#include "runfile/writer.h"

enum { MAIN = 1, CHILD };
enum { PYTHON = 1, TORCH, SYSTEM, NUMPY };

struct recorded {
	struct place place;
	struct writer *writer;
	struct reader *reader;
	struct analysis analysis;
};

static void put_object(struct recorded *p, int64_t id, const char *path)
{
	assert_int_equal(writer_put_profile_object(p->writer, id, path), 0);
}

static int make_place(void **state)
{
	struct recorded *p = calloc(1, sizeof(*p));
	struct error e = {0};
	if (!p || place_init(&p->place, "a.strain") < 0 ||
		writer_create(p->place.run, &(struct writer_options){0}, &p->writer, &e) < 0) {
		free(p);
		return -1;
	}
	for (int64_t id = MAIN; id <= CHILD; id++) {
		const struct writer_entity entity = {.id = id,
			.kind = ENTITY_PROCESS,
			.key = id == MAIN ? "7:1" : "8:1",
			.name = "python3",
			.last_ns = -1};
		assert_int_equal(writer_put_entity(p->writer, &entity), 0);
	}
	put_object(p, PYTHON, "/usr/bin/python3.11");
	put_object(p, TORCH, "/usr/lib/libtorch_cpu.so.1.13.0");
	put_object(p, SYSTEM, "[kernel]");
	put_object(p, NUMPY, "/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.so");
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

static void put_of(struct recorded *p, const struct writer_sample *sample, const char *phase)
{
	assert_int_equal(writer_put_phase_sample(p->writer, phase, sample), 0);
}

static void put(struct recorded *p, int64_t object, int64_t address, int64_t samples)
{
	put_of(p,
		&(struct writer_sample){.entity = MAIN,
			.leader = true,
			.object = object,
			.address = address,
			.samples = samples},
		"other");
}

static struct short_calls load(struct recorded *p)
{
	struct short_calls calls;
	struct error e = {0};
	assert_int_equal(writer_finish(p->writer, INT64_C(10000000000), 0, &e), 0);
	assert_int_equal(reader_open(p->place.run, &p->reader, &e), 0);
	assert_int_equal(analysis_load(p->reader, &p->analysis, &e), 0);
	for (size_t i = 0; i < p->analysis.processes.n; i++) {
		struct process_row *row = &p->analysis.processes.items[i];
		row->role = row->entity == MAIN ? ROLE_MAIN : ROLE_LOADER;
	}
	assert_int_equal(short_calls_load(&p->analysis, PHASE_OTHER, &calls), 0);
	return calls;
}

// A loop of Python over elements, beside one over a large tensor.
static void samples_of_a_run(void **state)
{
	struct recorded *p = *state;
	static const char call[] = "_ZN2at4_ops10select_int4callERKNS_6TensorEll";
	put(p, PYTHON, 0x1000, 40);
	for (int64_t i = 0; i < 40; i++) {
		put(p, TORCH, 0x100000 + i * 0x1000, 2); // without names, spread
	}
	put(p, TORCH, 0x800010, 20); // of one function of dispatch
	put(p, TORCH, 0x900010, 60); // of one loop, which has no name
	put(p, TORCH, 0x9000f0, 40);
	put(p, SYSTEM, -1, 10);
	put(p, NUMPY, 0x900010, 70); // the script's own arithmetic
	assert_int_equal(writer_put_profile_symbol(p->writer, TORCH, 0x800010, call), 0);
	const struct writer_sample others[] = {
		{.entity = MAIN, .leader = false, .object = TORCH, .address = 1, .samples = 9},
		{.entity = CHILD, .leader = true, .object = TORCH, .address = 1, .samples = 9},
	};
	put_of(p, &others[0], "other"); // another thread
	put_of(p, &others[1], "other"); // another process
	put_of(p,
		&(struct writer_sample){.entity = MAIN,
			.leader = true,
			.object = TORCH,
			.address = 1,
			.samples = 9},
		"forward"); // another phase
	struct short_calls calls = load(p);
	assert_int_equal(calls.samples, 40 + 80 + 20 + 100 + 10 + 70);
	assert_int_equal(calls.arrays, 70);
	assert_int_equal(calls.interpreter, 40);
	assert_int_equal(calls.arithmetic, 80 + 20 + 100);
	assert_int_equal(calls.dispatch, 20);
	assert_int_equal(calls.spread, 20 + 80);
	assert_int_equal(short_calls_samples(&calls), 80); // four for each of dispatch
	const struct short_calls engine = {.samples = 100, .dispatch = 20, .spread = 90};
	assert_int_equal(short_calls_of_engine(&engine), 80);
	assert_int_equal(short_calls_samples(&engine), 0); // nobody called them
}

static void a_run_without_samples(void **state)
{
	struct short_calls calls = load(*state);
	assert_int_equal(calls.samples, 0);
	assert_int_equal(short_calls_samples(&calls), 0);
}

static void loops_have_many_samples_at_one_place(void **state)
{
	(void)state;
	static const uint64_t few[] = {2, 2, 1}, loop[] = {2, 3, 1};
	uint64_t many[100];
	assert_int_equal(short_calls_spread(NULL, 0, 0), 0);
	assert_int_equal(short_calls_spread(few, 3, 0), 5);
	assert_int_equal(short_calls_spread(loop, 3, 0), 3);
	assert_int_equal(short_calls_spread(loop, 3, 194), 6); // below 2 % of all
	for (size_t i = 0; i < 100; i++) {
		many[i] = 10; // a long run
	}
	assert_int_equal(short_calls_spread(many, 100, 0), 1000);
	many[0] = 1000;
	assert_int_equal(short_calls_spread(many, 100, 0), 990);
}

// As seen: a metric with .item(); large tensors of a dozen operations; few samples; no names.
static void each_observation_is_a_bound(void **state)
{
	(void)state;
	static const struct {
		struct short_calls calls;
		uint64_t samples;
	} examples[] = {
		{{.samples = 246, .interpreter = 76, .dispatch = 55, .spread = 124}, 124},
		{{.samples = 175, .interpreter = 7, .dispatch = 6, .spread = 42}, 24},
		{{.samples = 92, .interpreter = 4, .dispatch = 20, .spread = 28}, 16},
		{{.samples = 49, .interpreter = 20, .dispatch = 20, .spread = 20}, 0},
		{{.samples = 246, .interpreter = 76, .dispatch = 0, .spread = 124}, 0},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(examples); i++) {
		assert_int_equal(short_calls_samples(&examples[i].calls), examples[i].samples);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(samples_of_a_run, make_place, remove_place),
		cmocka_unit_test_setup_teardown(a_run_without_samples, make_place, remove_place),
		cmocka_unit_test(loops_have_many_samples_at_one_place),
		cmocka_unit_test(each_observation_is_a_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
