// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "study/layout.h"
#include "made_runs.h"
#include "messages.h"

static double cell(const struct layout_pivot *p, size_t row, size_t column)
{
	return pivot_at(&p->pivot, row, column, 0)->repeats.mean;
}

// Whether a note has these words.
static bool has(const struct layout_selection *s, const char *words)
{
	_cleanup_free_ char *notes = strdup(s->notes.data ? s->notes.data : "");
	char *rest = notes;
	assert_non_null(notes);
	for (char *line; (line = strsep(&rest, "\n"));) {
		if (message_has(line, words)) {
			return true;
		}
	}
	return false;
}

static void test_filters_and_labels_that_are_missing(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct layout_selection s;
	struct error e = {0};
	const struct layout *l = layout_by_name("torres2021-table4");
	made_runs_add(
		&r, "framework=pytorch batch_size=32 dataset=dt1", MEASURE_HOST_MEMORY_PEAK, 1e9);
	made_runs_add(
		&r, "framework=pytorch batch_size=64 dataset=dt1", MEASURE_HOST_MEMORY_PEAK, 2e9);
	made_runs_add(&r, "framework=onednn batch_size=32", MEASURE_HOST_MEMORY_PEAK, 3e9);
	assert_int_equal(layout_select(l, r.list, r.n, &s, &e), 0);
	assert_int_equal(s.n, 2);
	assert_true(s.runs[0] == r.list[2]); // the newest first
	assert_true(has(&s, "1 of 2 ... dataset"));
	assert_true(has(&s, "... model (strain run --label NAME=VALUE)"));
	layout_selection_done(&s);
	l = layout_by_name("tripathi2019-table5.5");
	r.runs[0].labels[0] = (struct run_label){
		(char *)(uintptr_t) "model", (char *)(uintptr_t) "cnn"};
	assert_int_equal(layout_select(l, r.list, 1, &s, &e), -ENOENT);
	assert_says(e.text, "tripathi2019-table5.5 ... model=resnet34 ... 1 ... cnn");
	made_runs_done(&r);
}

static void test_runs_of_one_cell_are_of_one_configuration(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct layout_selection s;
	struct error e = {0};
	// of memory most have 4GiB, but one cell has only 512MiB; samples go with the dataset
	made_runs_add(&r, "workers=2 batch_size=32 memory=4GiB samples=9", MEASURE_EPOCH, 1);
	made_runs_add(&r, "workers=2 batch_size=32 memory=4GiB samples=9", MEASURE_EPOCH, 2);
	made_runs_add(&r, "workers=2 batch_size=32 memory=512MiB samples=9", MEASURE_EPOCH, 3);
	made_runs_add(&r, "workers=4 batch_size=32 memory=512MiB samples=7", MEASURE_EPOCH, 4);
	made_runs_add(&r, "workers=8 batch_size=32 memory=4GiB samples=9", MEASURE_EPOCH, 5);
	made_runs_add(&r, "workers=8 batch_size=32 memory=16GiB samples=9", MEASURE_EPOCH, 6);
	assert_int_equal(
		layout_select(layout_by_name("tripathi2019-fig3.5"), r.list, r.n, &s, &e), 0);
	assert_true(has(&s, "memory (512MiB, 4GiB, 16GiB) ... 4GiB ... --where memory="));
	assert_false(has(&s, "... samples"));
	assert_int_equal(s.n, 3); // the line is of 4GiB: where it has only 512MiB there is a gap
	for (size_t i = 0; i < s.n; i++) {
		double value = s.runs[i]->measures[MEASURE_EPOCH];
		assert_true(value == 1 || value == 2 || value == 5);
	}
	layout_selection_done(&s);
	// cells of a table stand alone: each has what there is
	assert_int_equal(
		layout_select(layout_by_name("torres2021-table3"), r.list, r.n, &s, &e), 0);
	assert_true(has(&s, "memory (512MiB, 4GiB, 16GiB) ... 4GiB"));
	layout_selection_done(&s);
	assert_int_equal(
		layout_select(layout_by_name("tripathi2019-fig3.8"), r.list, 3, &s, &e), 0);
	assert_int_equal(s.n, 3); // memory is shown there
	assert_false(has(&s, "... memory"));
	layout_selection_done(&s);
	made_runs_done(&r);
}

static void test_what_differs_along_a_line_is_said(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct layout_selection s;
	struct error e = {0};
	const struct layout *l = layout_by_name("tripathi2019-fig3.2");
	made_runs_add(&r, "workers=1 batch_size=32 framework=pytorch", MEASURE_EPOCH, 1);
	made_runs_add(&r, "workers=1 batch_size=64 framework=jax", MEASURE_EPOCH, 2);
	made_runs_add(&r, "workers=2 batch_size=64 framework=jax", MEASURE_EPOCH, 3);
	assert_int_equal(layout_select(l, r.list, r.n, &s, &e), 0);
	assert_int_equal(s.n, 3);
	assert_true(has(&s, "framework ... (jax, pytorch) ... --where framework="));
	layout_selection_done(&s);
	// with a repeat in the other framework the line is of one, and so are those beside it
	made_runs_add(&r, "workers=1 batch_size=32 framework=jax", MEASURE_EPOCH, 4);
	assert_int_equal(layout_select(l, r.list, r.n, &s, &e), 0);
	assert_true(has(&s, "framework (jax, pytorch) ... jax"));
	assert_null(
		strstr(strstr(s.notes.data, "(jax, pytorch)") + 1, "(jax, pytorch)")); // said once
	assert_int_equal(s.n, 3);
	layout_selection_done(&s);
	made_runs_done(&r);
}

static void test_labels_that_nobody_knows_make_configurations(void **state)
{
	(void)state;
	static const char *const others[] = {
		"precision=fp32", "precision=fp16", "lr=0.1", "optimizer=adam", "trial=7"};
	struct made_runs r = {0};
	struct layout_selection s;
	struct error e = {0};
	for (size_t i = 0; i < 6; i++) {
		char labels[200];
		snprintf(labels, sizeof(labels),
			"workers=2 batch_size=32 %s repeat=%zu PBS_JOBID=%zu",
			i < 5 ? others[i] : "trial=8", i, i);
		made_runs_add(&r, labels, MEASURE_EPOCH, (double)i);
	}
	assert_int_equal(
		layout_select(layout_by_name("tripathi2019-fig3.5"), r.list, r.n, &s, &e), 0);
	assert_true(has(&s, "lr (0.1, none) ... none ... --where lr="));
	assert_true(has(&s, "optimizer (none, adam) ... none"));
	assert_true(has(&s, "precision (none, fp16, fp32) ... none"));
	assert_false(has(&s, "... trial"));
	assert_false(has(&s, "... repeat"));
	assert_false(has(&s, "... PBS_JOBID"));
	assert_int_equal(s.n, 2); // repeats that two trials made
	assert_true(s.runs[0] == r.list[5] && s.runs[1] == r.list[4]);
	layout_selection_done(&s);
	made_runs_done(&r);
}

static void test_the_best_is_of_one_configuration(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct layout_selection s;
	struct layout_pivot p;
	struct error e = {0};
	const struct layout *l = layout_by_name("tripathi2019-table3.1");
	// of 640 samples there are two numbers of workers, of 6400 more runs, but of one
	made_runs_add(
		&r, "model=cnn memory=1GB batch_size=32 workers=0 samples=6400", MEASURE_EPOCH, 50);
	made_runs_add(
		&r, "model=cnn memory=1GB batch_size=32 workers=0 samples=6400", MEASURE_EPOCH, 50);
	made_runs_add(
		&r, "model=cnn memory=1GB batch_size=32 workers=0 samples=6400", MEASURE_EPOCH, 50);
	made_runs_add(
		&r, "model=cnn memory=1GB batch_size=32 workers=2 samples=640", MEASURE_EPOCH, 7);
	made_runs_add(
		&r, "model=cnn memory=1GB batch_size=32 workers=4 samples=640", MEASURE_EPOCH, 8);
	made_runs_add(
		&r, "model=rnn memory=1GB batch_size=32 workers=1 samples=9", MEASURE_EPOCH, 9);
	assert_int_equal(layout_select(l, r.list, r.n, &s, &e), 0);
	assert_true(has(&s, "samples (640, 6400) ... 640 ... --where samples="));
	assert_int_equal(s.n, 3); // the other model's samples are its own
	assert_int_equal(layout_pivot(l, &s, false, &p, &e), 0);
	assert_true(cell(&p, 0, 0) == 2 && cell(&p, 1, 0) == 1);
	layout_pivot_done(&p);
	layout_selection_done(&s);
	made_runs_done(&r);
}

static void test_a_series_is_of_one_configuration(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct layout_selection s;
	struct layout_pivot p;
	struct error e = {0};
	const struct layout *l = layout_by_name("dube-sura-fig2");
	const enum measure_id rate = MEASURE_SAMPLES_PER_SECOND;
	made_runs_add(&r, "model=cnn cpus=1 batch_size=64 dataset=dt2 threads=1", rate, 1000);
	made_runs_add(&r, "model=cnn cpus=2 batch_size=64 dataset=dt1 threads=2", rate, 100);
	made_runs_add(&r, "model=cnn cpus=4 batch_size=64 dataset=dt1 threads=4", rate, 150);
	assert_int_equal(layout_select(l, r.list, r.n, &s, &e), 0);
	assert_true(has(&s, "dataset (dt1, dt2) ... dt1 ... --where dataset="));
	assert_false(has(&s, "threads")); // they go with the CPUs
	assert_int_equal(layout_pivot(l, &s, false, &p, &e), 0);
	assert_true(fabs(cell(&p, 0, 0) - 1) < 1e-12);
	assert_true(fabs(cell(&p, 1, 0) - 1.5) < 1e-12);
	layout_pivot_done(&p);
	layout_selection_done(&s);
	// but where they do not, a mean over them is one over configurations
	r.runs[2].labels[1].value = r.runs[1].labels[1].value;
	assert_int_equal(layout_select(l, r.list, r.n, &s, &e), 0);
	assert_true(has(&s, "threads (2, 4) ... 2"));
	layout_selection_done(&s);
	made_runs_done(&r);
}

static void test_a_gain_is_of_one_configuration(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct layout_selection s;
	struct layout_pivot p;
	struct error e = {0};
	const struct layout *l = layout_by_name("dube-sura-fig3");
	const enum measure_id rate = MEASURE_SAMPLES_PER_SECOND;
	made_runs_add(&r, "model=cnn cpus=2 batch_size=64 machine=a", rate, 100);
	made_runs_add(&r, "model=cnn cpus=2 batch_size=128 machine=b", rate, 900);
	made_runs_add(&r, "model=cnn cpus=2 batch_size=64 machine=b", rate, 600);
	assert_int_equal(layout_select(l, r.list, r.n, &s, &e), 0);
	assert_true(has(&s, "machine (a, b) ... b ... --where machine="));
	assert_int_equal(layout_pivot(l, &s, false, &p, &e), 0);
	assert_true(fabs(cell(&p, 0, 0) - 1.5) < 1e-12);
	layout_pivot_done(&p);
	layout_selection_done(&s);
	assert_int_equal(layout_select(l, r.list, 2, &s, &e), 0);
	assert_true(has(&s, "machine (a, b) ... a ... --where machine="));
	assert_int_equal(layout_pivot(l, &s, false, &p, &e), 0);
	assert_true(isnan(cell(&p, 0, 0))); // no gain of one machine over another
	layout_pivot_done(&p);
	layout_selection_done(&s);
	made_runs_done(&r);
}

static void test_throughput_relative_to_the_fewest_cpus(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct layout_selection s;
	struct layout_pivot p;
	struct error e = {0};
	// in no order; 8 is less than 10
	made_runs_add(
		&r, "model=alexnet threads=10 batch_size=64", MEASURE_SAMPLES_PER_SECOND, 150);
	made_runs_add(&r, "model=alexnet threads=8 batch_size=64", MEASURE_SAMPLES_PER_SECOND, 90);
	made_runs_add(&r, "model=alexnet threads=8 batch_size=64", MEASURE_SAMPLES_PER_SECOND, 110);
	made_runs_add(&r, "model=vgg16 threads=8 batch_size=64", MEASURE_SAMPLES_PER_SECOND, 20);
	made_runs_add(&r, "model=vgg16 threads=10 batch_size=64", MEASURE_SAMPLES_PER_SECOND, 22);
	assert_int_equal(layout_select(layout_by_name("dube-sura-fig2"), r.list, r.n, &s, &e), 0);
	assert_string_equal(s.rows[0], "threads"); // no run has cpus
	assert_int_equal(layout_pivot(layout_by_name("dube-sura-fig2"), &s, true, &p, &e), 0);
	assert_true(fabs(cell(&p, 0, 0) - 1) < 1e-12); // 90 and 110, by their mean
	assert_true(fabs(cell(&p, 1, 0) - 1.5) < 1e-12);
	assert_true(fabs(cell(&p, 1, 1) - 1.1) < 1e-12);
	assert_true(has(
		&s, "Dube and Sura, Figure 2: ... from 8 to 30 threads AlexNet gains 1.28 times"));
	layout_pivot_done(&p);
	layout_selection_done(&s);
	made_runs_done(&r);
}

static void test_gain_of_the_larger_batch(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct layout_selection s;
	struct layout_pivot p;
	struct error e = {0};
	const struct layout *l = layout_by_name("dube-sura-fig3");
	made_runs_add(&r, "model=alexnet cpus=2 batch_size=64", MEASURE_SAMPLES_PER_SECOND, 100);
	made_runs_add(&r, "model=alexnet cpus=2 batch_size=128", MEASURE_SAMPLES_PER_SECOND, 120);
	made_runs_add(&r, "model=alexnet cpus=2 batch_size=128", MEASURE_SAMPLES_PER_SECOND, 9999);
	r.runs[2].outcome = OUTCOME_UNKNOWN; // does not count, as in every table
	made_runs_add(&r, "model=alexnet cpus=4 batch_size=128", MEASURE_SAMPLES_PER_SECOND, 999);
	assert_int_equal(layout_select(l, r.list, r.n, &s, &e), 0);
	assert_int_equal(layout_pivot(l, &s, false, &p, &e), 0);
	assert_true(fabs(cell(&p, 0, 0) - 1.2) < 1e-12);
	assert_true(isnan(cell(&p, 1, 0))); // nothing with batch size 64 there
	layout_pivot_done(&p);
	layout_selection_done(&s);
	made_runs_done(&r);
}

static void test_best_number_of_workers(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct layout_selection s;
	struct layout_pivot p;
	struct error e = {0};
	const struct layout *l = layout_by_name("tripathi2019-table3.1");
	made_runs_add(&r, "model=resnet50 memory=20GB batch_size=128 workers=8", MEASURE_EPOCH, 40);
	made_runs_add(
		&r, "model=resnet50 memory=20GB batch_size=128 workers=16", MEASURE_EPOCH, 29);
	made_runs_add(
		&r, "model=resnet50 memory=20GB batch_size=128 workers=16", MEASURE_EPOCH, 33);
	made_runs_add(
		&r, "model=resnet50 memory=20GB batch_size=128 workers=32", MEASURE_EPOCH, 30);
	made_runs_add(&r, "model=resnet50 memory=20GB batch_size=128 workers=64", MEASURE_EPOCH, 1);
	r.runs[4].outcome = OUTCOME_OUT_OF_MEMORY; // what failed is not the best
	assert_int_equal(layout_select(l, r.list, r.n, &s, &e), 0);
	assert_int_equal(layout_pivot(l, &s, true, &p, &e), 0);
	assert_int_equal(p.pivot.rows.n, 3); // one here, two published
	assert_string_equal(pivot_key(&p.pivot.rows, 0, 0), "here");
	assert_string_equal(pivot_key(&p.pivot.rows, 1, 0), "published");
	assert_true(cell(&p, 0, 0) == 32); // 30 s, where 16 workers take 31
	assert_true(cell(&p, 1, 0) == 32 && cell(&p, 1, 1) == 16);
	layout_pivot_done(&p);
	layout_selection_done(&s);
	made_runs_done(&r);
}

static void test_what_was_published_is_never_ours(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct layout_selection s;
	struct layout_pivot p;
	struct error e = {0};
	const struct layout *l = layout_by_name("torres2021-table3");
	// even a run that calls itself like a published one has a row of its own
	made_runs_add(&r, "machine=FELIX framework=PyTorch dataset=DT1 model=cnn batch_size=32",
		MEASURE_TRAINING, 7);
	assert_int_equal(layout_select(l, r.list, r.n, &s, &e), 0);
	assert_int_equal(layout_pivot(l, &s, true, &p, &e), 0);
	assert_int_equal(p.pivot.rows.n, 9);
	assert_string_equal(pivot_key(&p.pivot.rows, 0, 0), "here");
	assert_true(cell(&p, 0, 0) == 7);
	size_t found = 0;
	for (size_t row = 1; row < 9; row++) {
		assert_string_equal(pivot_key(&p.pivot.rows, row, 0), "published");
		bool same = strcmp(pivot_key(&p.pivot.rows, row, 1), "FELIX") == 0 &&
		            strcmp(pivot_key(&p.pivot.rows, row, 2), "PyTorch") == 0 &&
		            strcmp(pivot_key(&p.pivot.rows, row, 3), "DT1") == 0;
		found += same;
		assert_true(!same || cell(&p, row, 0) == 313);
	}
	assert_int_equal(found, 1);
	assert_true(has(&s, "... Torres, Barrios and Denneulin 2021, Table 3"));
	layout_pivot_done(&p);
	layout_selection_done(&s);
	made_runs_done(&r);
}

static void test_another_measure_instead_of_one_that_no_run_has(void **state)
{
	(void)state;
	struct made_runs r = {0};
	struct layout_selection s;
	struct layout_pivot p;
	struct error e = {0};
	const struct layout *l = layout_by_name("tripathi2019-table5.3");
	made_runs_add(&r, "model=resnet50 batch_size=32 workers=2", MEASURE_CPU_UTILIZATION, 150);
	assert_int_equal(layout_select(l, r.list, r.n, &s, &e), 0);
	assert_int_equal(layout_pivot(l, &s, true, &p, &e), 0);
	assert_string_equal(p.values[1].name, "cpu_utilization");
	assert_true(has(&s, "... GPU utilisation ... CPU utilisation"));
	for (size_t row = 0; row < p.pivot.rows.n; row++) {
		// GPU utilisation that was published does not stand under CPU utilisation
		double value = pivot_at(&p.pivot, row, 0, 1)->repeats.mean;
		assert_true(row == 0 ? value == 150 : isnan(value));
	}
	layout_pivot_done(&p);
	layout_selection_done(&s);
	made_runs_done(&r);
}

static void test_every_published_table_is_whole(void **state)
{
	(void)state;
	struct error e = {0};
	assert_true(n_published_files >= 12);
	for (size_t i = 0; i < n_published_files; i++) {
		struct published p;
		assert_int_equal(published_read(published_files[i].name, &p, &e), 0);
		assert_true(p.n_rows > 1 && p.n_columns > 1);
		published_done(&p);
	}
	struct published p;
	assert_int_equal(published_read("dube_sura_parameters", &p, &e), 0);
	assert_string_equal(published_field(&p, 0, "choices"), "AlexNet;Inception3;ResNet50;VGG16");
	assert_null(published_field(&p, 0, "none"));
	published_done(&p);
	assert_int_equal(published_read("torres2021_peak_memory", &p, &e), 0);
	assert_true(published_number(&p, 1, "host_mb") == 29883);
	published_done(&p);
	assert_int_equal(published_read("tripathi2019_workers", &p, &e), 0);
	assert_true(isnan(published_number(&p, 5, "epoch_seconds"))); // empty there
	published_done(&p);
	assert_int_equal(published_read("none", &p, &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filters_and_labels_that_are_missing),
		cmocka_unit_test(test_runs_of_one_cell_are_of_one_configuration),
		cmocka_unit_test(test_what_differs_along_a_line_is_said),
		cmocka_unit_test(test_labels_that_nobody_knows_make_configurations),
		cmocka_unit_test(test_the_best_is_of_one_configuration),
		cmocka_unit_test(test_a_series_is_of_one_configuration),
		cmocka_unit_test(test_a_gain_is_of_one_configuration),
		cmocka_unit_test(test_throughput_relative_to_the_fewest_cpus),
		cmocka_unit_test(test_gain_of_the_larger_batch),
		cmocka_unit_test(test_best_number_of_workers),
		cmocka_unit_test(test_what_was_published_is_never_ours),
		cmocka_unit_test(test_another_measure_instead_of_one_that_no_run_has),
		cmocka_unit_test(test_every_published_table_is_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
