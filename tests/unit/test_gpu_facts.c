// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a run says about the GPUs of a job, where vendors differ.

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/analysis.h"
#include "run/gpu_facts.h"
#include "run/rate.h"
#include "runfile/writer.h"

enum { HOST = 1, JOB, GPU };
enum { SECONDS = 10, READINGS = SECONDS + 1 };

// Of one GPU, constant over ten seconds; NAN: it was not recorded.
struct readings {
	const char *attributes;
	double busy, job_busy, job_processes, job_memory;
};

static void put_constant(struct writer *w, uint32_t id, const char *name, double value)
{
	const struct metric metric = {name, METRIC_GAUGE, "1", 0.01, "A gauge."};
	uint32_t ids[] = {id};
	int64_t t[READINGS], values[READINGS], *columns[] = {values};
	for (int i = 0; i < READINGS; i++) {
		t[i] = i * INT64_C(1000000);
		values[i] = llround(value / metric.scale);
	}
	struct block b = {READINGS, 1, ids, NULL, t, columns};
	if (isfinite(value)) {
		assert_int_equal(writer_put_metric(w, id, &metric, ENTITY_GPU, "test"), 0);
		assert_int_equal(writer_put_block(w, GPU, "test", &b), 0);
	}
}

static struct gpu_facts facts_of(const struct readings *r)
{
	const struct writer_options options = {.replace = true};
	const struct writer_entity entities[] = {
		{HOST, ENTITY_HOST, "host", "node1", 0, 0, -1, "{\"cpus\":8}"},
		{JOB, ENTITY_JOB, "job", "job", 0, 0, -1, NULL},
		{GPU, ENTITY_GPU, "GPU-0", "Some GPU", 0, 0, -1, r->attributes},
	};
	const struct stretch all = {.to_us = SECONDS * INT64_C(1000000)};
	struct error e = {0};
	struct writer *w;
	struct reader *reader;
	struct analysis a;
	struct gpu_facts facts;
	char path[64];
	snprintf(path, sizeof(path), "/tmp/strain-test-gpu-facts-%d.strain", (int)getpid());
	assert_int_equal(writer_create(path, &options, &w, &e), 0);
	for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
		assert_int_equal(writer_put_entity(w, &entities[i]), 0);
	}
	put_constant(w, 1, "hw.gpu.utilization", r->busy);
	put_constant(w, 2, "strain.gpu.job.utilization", r->job_busy);
	put_constant(w, 3, "strain.gpu.job.processes", r->job_processes);
	put_constant(w, 4, "strain.gpu.job.memory.usage", r->job_memory);
	writer_put_run(w, "job_start_ns", "0");
	writer_put_run(w, "job_end_ns", "10000000000");
	assert_int_equal(writer_finish(w, SECONDS * INT64_C(1000000000), 0, &e), 0);
	writer_free(w);
	assert_int_equal(reader_open(path, &reader, &e), 0);
	assert_int_equal(analysis_load(reader, &a, &e), 0);
	gpu_facts_fill(&a, &all, &facts);
	analysis_done(&a);
	reader_free(reader);
	unlink(path);
	return facts;
}

static const char intel[] = "{\"vendor\":\"Intel\"}", amd[] = "{\"vendor\":\"AMD\"}";

static void utilization_that_is_an_upper_bound(void **state)
{
	(void)state;
	const struct {
		struct readings readings;
		double busy;
		enum gpu_vendor vendor;
	} cases[] = {
		{{intel, 0.9, 0.3, 1, 1e9}, 0.3, GPU_INTEL},
		{{intel, 0.9, NAN, 1, 1e9}, 0.9, GPU_INTEL}, // Linux 6.1 on Arc
		{{intel, 0.2, 0.4, 1, 1e9}, 0.2, GPU_INTEL}, // two processes beside each other
		{{amd, 0.9, 0.3, 1, 1e9}, 0.9, GPU_AMD},
		{{NULL, 0.9, 0.3, 1, 1e9}, 0.9, GPU_NVIDIA},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gpu_facts f = facts_of(&cases[i].readings);
		assert_int_equal(f.n_used, 1);
		assert_int_equal(f.vendor, cases[i].vendor);
		assert_float_equal(f.busy, cases[i].busy, 0.006);
	}
}

static void a_gpu_that_is_only_open(void **state)
{
	(void)state;
	struct gpu_facts f = facts_of(&(struct readings){intel, 0, 0, 0, 4e6});
	assert_int_equal(f.n_used, 0);
	assert_true(f.known && !f.used);
	// Where processes are not counted, memory shows it.
	f = facts_of(&(struct readings){NULL, 0, NAN, NAN, 4e6});
	assert_int_equal(f.n_used, 1);
	f = facts_of(&(struct readings){NULL, 0, NAN, NAN, 0});
	assert_int_equal(f.n_used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utilization_that_is_an_upper_bound),
		cmocka_unit_test(a_gpu_that_is_only_open),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
