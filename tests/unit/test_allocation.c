// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What a job was allocated against what it used, and its energy, on runs of ten seconds that are
// written here: every figure is known by hand.

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

#include "base/text.h"
#include "run/allocation.h"
#include "run/analysis.h"
#include "run/energy.h"
#include "run/measures.h"
#include "runfile/writer.h"

enum { HOST = 1, JOB, GPU_0, GPU_1 };
enum { SECONDS = 10, READINGS = SECONDS + 1 };

// A value over time: `from` at the start, `by` more each second.
struct line {
	int64_t entity;
	enum entity_kind kind;
	struct metric metric;
	double from, by;
};

#define COUNTER(name, unit)                                    \
	{                                                      \
		name, METRIC_COUNTER, unit, 1e-3, "A counter." \
	}
#define GAUGE(name, unit)                                  \
	{                                                  \
		name, METRIC_GAUGE, unit, 1e-3, "A gauge." \
	}

// A machine of 8 CPUs, 64 GB and two GPUs. The job computes on 2 CPUs, holds 4 GB, and keeps the
// first GPU half busy. The counter of a GPU has 80 W, its sampled power 100 W.
static const struct line lines[] = {
	{HOST, ENTITY_HOST, GAUGE("system.memory.limit", "By"), 64e9, 0},
	{HOST, ENTITY_HOST, COUNTER("strain.host.energy", "J"), 0, 50},
	{HOST, ENTITY_HOST, COUNTER("strain.host.energy.platform", "J"), 0, 70},
	{JOB, ENTITY_JOB, COUNTER("process.cpu.time", "s"), 0, 2},
	{JOB, ENTITY_JOB, GAUGE("strain.memory.pss", "By"), 4e9, 0},
	{GPU_0, ENTITY_GPU, GAUGE("hw.gpu.utilization", "1"), 0.5, 0},
	{GPU_0, ENTITY_GPU, GAUGE("hw.power", "W"), 100, 0},
	{GPU_0, ENTITY_GPU, COUNTER("hw.energy", "J"), 0, 80},
	{GPU_0, ENTITY_GPU, GAUGE("strain.gpu.job.processes", "{process}"), 1, 0},
	{GPU_1, ENTITY_GPU, GAUGE("hw.gpu.utilization", "1"), 0, 0},
	{GPU_1, ENTITY_GPU, GAUGE("strain.gpu.job.processes", "{process}"), 0, 0},
};

struct key {
	const char *name, *value;
};

struct made {
	char path[64];
	struct reader *reader;
	struct analysis analysis;
	struct allocation allocation;
	double values[N_MEASURES];
	const char *reasons[N_MEASURES];
};

static void put_entities(struct writer *w, bool gpus)
{
	const struct writer_entity entities[] = {
		{HOST, ENTITY_HOST, "host", "node1", 0, 0, -1, "{\"cpus\":8}"},
		{JOB, ENTITY_JOB, "job", "job", 0, 0, -1, NULL},
		{GPU_0, ENTITY_GPU, "GPU-0", "Some GPU", 0, 0, -1, NULL},
		{GPU_1, ENTITY_GPU, "GPU-1", "Some GPU", 0, 0, -1, NULL},
	};
	for (size_t i = 0; i < (gpus ? 4u : 2u); i++) {
		assert_int_equal(writer_put_entity(w, &entities[i]), 0);
	}
}

static void put_line(struct writer *w, const struct line *line, uint32_t id)
{
	uint32_t ids[] = {id};
	int64_t t[READINGS], values[READINGS], *columns[] = {values};
	for (int i = 0; i < READINGS; i++) {
		t[i] = i * INT64_C(1000000);
		values[i] = llround((line->from + line->by * i) / line->metric.scale);
	}
	struct block b = {READINGS, 1, ids, NULL, t, columns};
	assert_int_equal(writer_put_metric(w, id, &line->metric, line->kind, "test"), 0);
	assert_int_equal(writer_put_block(w, line->entity, "test", &b), 0);
}

// keys end with a row of NULL.
static void make(struct made *m, const struct key *keys, bool gpus)
{
	struct error e = {0};
	struct writer *w;
	const struct writer_options options = {.replace = true};
	snprintf(m->path, sizeof(m->path), "/tmp/strain-test-allocation-%d.strain", (int)getpid());
	assert_int_equal(writer_create(m->path, &options, &w, &e), 0);
	put_entities(w, gpus);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (gpus || lines[i].kind != ENTITY_GPU) {
			put_line(w, &lines[i], (uint32_t)i + 1);
		}
	}
	writer_put_run(w, "job_start_ns", "0");
	writer_put_run(w, "job_end_ns", "10000000000");
	for (; keys->name; keys++) {
		writer_put_run(w, keys->name, keys->value);
	}
	assert_int_equal(writer_finish(w, SECONDS * INT64_C(1000000000), 0, &e), 0);
	writer_free(w);
	assert_int_equal(reader_open(m->path, &m->reader, &e), 0);
	assert_int_equal(analysis_load(m->reader, &m->analysis, &e), 0);
	allocation_find(&m->analysis, &m->allocation);
	measures_compute(&m->analysis, false, m->values, m->reasons);
}

static void made_done(struct made *m)
{
	analysis_done(&m->analysis);
	reader_free(m->reader);
	unlink(m->path);
}

static void near(double value, double expected)
{
	if (!(fabs(value - expected) <= 0.006 * fabs(expected) + 1e-12)) {
		fail_msg("%.9g, expected %.9g", value, expected);
	}
}

static void assert_amount(
	const struct made *m, enum allocated_kind kind, double amount, const char *by)
{
	near(m->allocation.of[kind].amount, amount);
	assert_non_null(strstr(m->allocation.of[kind].by, by));
}

static void test_without_bounds_it_is_the_machine(void **state)
{
	(void)state;
	struct made m;
	make(&m, (struct key[]){{NULL, NULL}}, true);
	assert_amount(&m, ALLOCATED_CPUS, 8, "the whole machine");
	assert_amount(&m, ALLOCATED_MEMORY, 64e9, "the whole machine");
	assert_amount(&m, ALLOCATED_GPUS, 2, "the whole machine");
	near(m.values[MEASURE_CPU_HOURS_ALLOCATED], 80 / 3600.0);
	near(m.values[MEASURE_IDLE_CPU_HOURS], 60 / 3600.0); // 80 s less 20 s
	near(m.values[MEASURE_GB_HOURS_ALLOCATED], 640 / 3600.0);
	near(m.values[MEASURE_IDLE_GB_HOURS], 600 / 3600.0); // 60 GB for 10 s
	near(m.values[MEASURE_GPU_HOURS_ALLOCATED], 20 / 3600.0);
	near(m.values[MEASURE_IDLE_GPU_HOURS], 15 / 3600.0); // 5 s of the first were used
	made_done(&m);
}

static void test_the_smallest_bound_counts(void **state)
{
	(void)state;
	struct made m;
	make(&m,
		(struct key[]){{"limits", "{\"cpu_count\":6,\"cgroup_cpus\":4,"
					  "\"cgroup_memory_bytes\":16000000000}"},
			{NULL, NULL}},
		true);
	assert_amount(&m, ALLOCATED_CPUS, 4, "quota");
	assert_amount(&m, ALLOCATED_MEMORY, 16e9, "cgroup");
	made_done(&m);
	make(&m,
		(struct key[]){{"limits", "{\"cpu_count\":3,\"cgroup_cpus\":4}"},
			{"slurm_cpus_on_node", "5"}, {"slurm_mem_per_cpu", "1000"}, {NULL, NULL}},
		true);
	assert_amount(&m, ALLOCATED_CPUS, 3, "affinity");
	assert_amount(&m, ALLOCATED_MEMORY, 5 * 1000 * 1048576.0, "Slurm");
	made_done(&m);
	make(&m,
		(struct key[]){{"slurm_cpus_on_node", "2"}, {"slurm_gpus_on_node", "1"},
			{"slurm_mem_per_node", "4096"}, {NULL, NULL}},
		true);
	assert_amount(&m, ALLOCATED_CPUS, 2, "Slurm");
	assert_amount(&m, ALLOCATED_GPUS, 1, "Slurm");
	assert_amount(&m, ALLOCATED_MEMORY, 4 * 0x1p30, "Slurm");
	near(m.values[MEASURE_IDLE_CPU_HOURS], 0); // both were busy all of the time
	near(m.values[MEASURE_IDLE_GPU_HOURS], 5 / 3600.0);
	made_done(&m);
}

// Two CPUs and two GPUs of eight and two: of each of four ranks, or of all of them together.
static void test_what_ranks_inherited_is_shared(void **state)
{
	(void)state;
	struct made m;
	make(&m,
		(struct key[]){
			{"limits", "{\"cpu_count\":2}"}, {"local_world_size", "2"}, {NULL, NULL}},
		true);
	assert_amount(&m, ALLOCATED_CPUS, 2, "affinity"); // bound
	made_done(&m);
	make(&m,
		(struct key[]){{"limits", "{\"cpu_count\":2,\"cpus_inherited\":1}"},
			{"local_world_size", "2"}, {NULL, NULL}},
		true);
	assert_amount(&m, ALLOCATED_CPUS, 1, "affinity");
	made_done(&m);
	make(&m, (struct key[]){{"limits", "{\"cpu_count\":2,\"cpus_inherited\":1}"}, {NULL, NULL}},
		true);
	assert_amount(&m, ALLOCATED_CPUS, 2, "affinity"); // one rank has all
	made_done(&m);
	make(&m,
		(struct key[]){{"limits", "{\"cpu_count\":8,\"gpus_inherited\":1}"},
			{"local_world_size", "2"}, {NULL, NULL}},
		true);
	assert_amount(&m, ALLOCATED_GPUS, 1, "");
	made_done(&m);
}

// Four ranks on the node of which this run is one: what bounds the node is shared.
static void test_ranks_share_what_bounds_the_node(void **state)
{
	(void)state;
	struct made m;
	make(&m,
		(struct key[]){{"slurm_step_tasks_per_node", "2,4(x3)"}, {"slurm_nodeid", "3"},
			{"slurm_cpus_on_node", "8"}, {"slurm_cpus_per_task", "2"},
			{"slurm_mem_per_node", "32768"}, {NULL, NULL}},
		true);
	assert_true(m.allocation.ranks == 4);
	assert_amount(&m, ALLOCATED_CPUS, 2, "");
	assert_amount(&m, ALLOCATED_MEMORY, 8 * 0x1p30, "Slurm");
	assert_amount(&m, ALLOCATED_GPUS, 2, "may use"); // of its own: there are more ranks
	assert_true(isnan(m.allocation.of[ALLOCATED_GPUS].machine)); // the others have theirs
	made_done(&m);
	make(&m, (struct key[]){{"local_world_size", "2"}, {NULL, NULL}}, true);
	assert_amount(&m, ALLOCATED_GPUS, 1, "a share");
	made_done(&m);
	make(&m,
		(struct key[]){
			{"local_world_size", "4"}, {"slurm_gpus_on_node", "4"}, {NULL, NULL}},
		true);
	assert_amount(&m, ALLOCATED_GPUS, 1, "Slurm");
	made_done(&m);
}

// A limit of the node's cgroup is shared; one that `strain run --memory` set is this rank's.
static void test_the_limit_of_a_rank_is_not_divided(void **state)
{
	(void)state;
	struct made m;
	const struct key limits = {"limits", "{\"cgroup_memory_bytes\":4000000000}"};
	make(&m, (struct key[]){limits, {"local_world_size", "4"}, {NULL, NULL}}, true);
	assert_amount(&m, ALLOCATED_MEMORY, 1e9, "cgroup");
	made_done(&m);
	make(&m,
		(struct key[]){limits, {"local_world_size", "4"},
			{"limit_memory", "4000000000 (cgroup v2 memory)"}, {NULL, NULL}},
		true);
	assert_amount(&m, ALLOCATED_MEMORY, 4e9, "cgroup");
	made_done(&m);
}

static void assert_line(const struct made *m, const char *part)
{
	struct text line = {0};
	allocation_append(&line, &m->allocation);
	if (!strstr(line.data, part)) {
		fail_msg("no '%s' in: %s", part, line.data);
	}
	text_done(&line);
}

static void test_the_line_hides_nothing(void **state)
{
	(void)state;
	struct made m;
	// 20 s of CPU time in 10 s of one CPU: the job was bound to it later.
	make(&m, (struct key[]){{"limits", "{\"cpu_count\":1}"}, {NULL, NULL}}, false);
	assert_line(&m, "200 % used: 20.0 s of 10.0 s");
	assert_line(&m, "; GPUs unknown: ");
	made_done(&m);
	make(&m, (struct key[]){{"nvidia_pci_devices", "0"}, {NULL, NULL}}, false);
	struct text line = {0};
	allocation_append(&line, &m.allocation);
	assert_null(strstr(line.data, "not known"));
	text_done(&line);
	made_done(&m);
}

// Prices go by the GPU that the job uses, not by another that it could have.
static void test_the_gpu_that_is_used_names_the_machine(void **state)
{
	(void)state;
	struct made m;
	make(&m, (struct key[]){{NULL, NULL}}, true);
	struct gpu_figures *gpus = m.analysis.overview.gpus;
	struct gpu_figures swapped = gpus[0];
	gpus[0] = gpus[1]; // now the job uses the second
	gpus[1] = swapped;
	gpus[0].name = "Display";
	allocation_find(&m.analysis, &m.allocation);
	assert_string_equal(m.allocation.gpu, "Some GPU");
	gpus[1].name = "(unknown)";
	allocation_find(&m.analysis, &m.allocation);
	assert_string_equal(m.allocation.gpu, "Display");
	gpus[0].name = "(unknown)";
	allocation_find(&m.analysis, &m.allocation);
	assert_null(m.allocation.gpu);
	made_done(&m);
}

static void test_values_that_are_no_bounds_bound_nothing(void **state)
{
	(void)state;
	struct made m;
	make(&m,
		(struct key[]){{"slurm_cpus_on_node", "0"}, {"slurm_mem_per_node", "-1"},
			{"slurm_mem_per_cpu", "x"}, {"local_world_size", "99999999999999999999"},
			{"slurm_step_tasks_per_node", "4"}, {"limits", "[1"}, {NULL, NULL}},
		true);
	assert_true(m.allocation.ranks == 1);
	assert_amount(&m, ALLOCATED_CPUS, 8, "the whole machine");
	assert_amount(&m, ALLOCATED_MEMORY, 64e9, "the whole machine");
	made_done(&m);
}

// Without a driver it is not known whether there is a GPU, unless no device of the maker is there.
static void test_no_gpu_is_not_an_unknown_gpu(void **state)
{
	(void)state;
	struct made m;
	make(&m, (struct key[]){{NULL, NULL}}, false);
	assert_true(isnan(m.values[MEASURE_GPUS_ALLOCATED]));
	assert_non_null(m.reasons[MEASURE_GPUS_ALLOCATED]);
	assert_true(isnan(m.values[MEASURE_IDLE_GPU_HOURS]));
	assert_true(isnan(m.values[MEASURE_ENERGY])); // a GPU may have used some
	near(m.values[MEASURE_HOST_ENERGY], 500);
	made_done(&m);
	make(&m, (struct key[]){{"nvidia_pci_devices", "0"}, {NULL, NULL}}, false);
	assert_true(m.values[MEASURE_GPUS_ALLOCATED] == 0);
	assert_true(m.values[MEASURE_IDLE_GPU_HOURS] == 0);
	near(m.values[MEASURE_ENERGY], 500);
	made_done(&m);
}

static void test_energy_by_source(void **state)
{
	(void)state;
	struct made m;
	struct energy energy;
	struct text line = {0};
	make(&m, (struct key[]){{NULL, NULL}}, true);
	near(m.values[MEASURE_HOST_ENERGY], 500);
	near(m.values[MEASURE_GPU_ENERGY], 800);
	near(m.values[MEASURE_ENERGY], 1300);
	energy_find(&m.analysis, &energy);
	near(energy.platform, 700);
	near(energy.gpus_sampled, 1000);
	assert_true(energy_disagrees(energy.gpus, energy.gpus_sampled));
	energy_append(&line, &energy);
	const char *const parts[] = {"500 J (RAPL)", "700 J (RAPL, psys)", "800 J", "1 kJ"};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!strstr(line.data, parts[i])) {
			fail_msg("no %s in: %s", parts[i], line.data);
		}
	}
	text_done(&line);
	energy.gpus_sampled = 820; // they agree: one figure
	energy_append(&line, &energy);
	assert_null(strstr(line.data, "820"));
	text_done(&line);
	assert_false(energy_disagrees(NAN, 5));
	made_done(&m);
}

// The second GPU has neither a counter nor readings of its power.
static void test_a_gpu_without_energy_makes_the_sum_unknown(void **state)
{
	(void)state;
	struct made m;
	struct energy energy;
	make(&m, (struct key[]){{NULL, NULL}}, true);
	m.analysis.overview.gpus[1].entity = GPU_0; // the job uses both
	m.analysis.overview.gpus[1].busy = NAN;
	energy_find(&m.analysis, &energy);
	assert_true(isnan(energy.gpus));
	near(energy.gpus_sampled, 2000); // of both, by the power of the first
	measures_compute(&m.analysis, false, m.values, m.reasons);
	assert_true(isnan(m.values[MEASURE_GPU_ENERGY]));
	assert_non_null(m.reasons[MEASURE_GPU_ENERGY]);
	assert_true(isnan(m.values[MEASURE_ENERGY]));
	near(m.values[MEASURE_GPU_UTILIZATION], 50); // a mean is of those that report
	made_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_bounds_it_is_the_machine),
		cmocka_unit_test(test_the_smallest_bound_counts),
		cmocka_unit_test(test_what_ranks_inherited_is_shared),
		cmocka_unit_test(test_ranks_share_what_bounds_the_node),
		cmocka_unit_test(test_the_limit_of_a_rank_is_not_divided),
		cmocka_unit_test(test_the_line_hides_nothing),
		cmocka_unit_test(test_the_gpu_that_is_used_names_the_machine),
		cmocka_unit_test(test_values_that_are_no_bounds_bound_nothing),
		cmocka_unit_test(test_no_gpu_is_not_an_unknown_gpu),
		cmocka_unit_test(test_energy_by_source),
		cmocka_unit_test(test_a_gpu_without_energy_makes_the_sum_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
