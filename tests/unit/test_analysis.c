// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A whole run analysed: figures against those from the readings themselves, written and read again.

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
#include "runfile/amend.h"
#include "run/names.h"
#include "base/cleanup.h"
#include "place.h"
#include "synthetic_run.h"
#include "verdict/verdict.h"

struct analysed {
	struct place place;
	struct reader *reader;
	struct analysis analysis;
	struct verdict verdict;
};

static int setup_run(void **state, const struct synthetic_run *run)
{
	struct analysed *p = calloc(1, sizeof(*p));
	struct error e = {0};
	assert_non_null(p);
	assert_int_equal(place_init(&p->place, "train.strain"), 0);
	assert_int_equal(synthetic_run_write(p->place.run, run, &e), 0);
	assert_int_equal(reader_open(p->place.run, &p->reader, &e), 0);
	assert_int_equal(analysis_load(p->reader, &p->analysis, &e), 0);
	assert_int_equal(verdict_judge(&p->analysis, &p->verdict, &e), 0);
	*state = p;
	return 0;
}

static int setup(void **state)
{
	return setup_run(state, &(struct synthetic_run){.seconds = 30});
}

static int setup_unfinished(void **state)
{
	return setup_run(state, &(struct synthetic_run){.seconds = 10, .unfinished = true});
}

static int teardown(void **state)
{
	struct analysed *p = *state;
	verdict_done(&p->verdict);
	analysis_done(&p->analysis);
	reader_free(p->reader);
	assert_int_equal(place_done(&p->place), 0);
	free(p);
	return 0;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static void test_a_gauge_has_the_figures_of_its_readings(void **state)
{
	struct analysed *p = *state;
	struct series s = {0};
	assert_int_equal(reader_series(p->reader, SYNTHETIC_GPU, NAME_GPU_MEMORY, INT64_MIN,
				 INT64_MAX, &s, NULL),
		0);
	assert_true(s.n > 100);
	double sum = 0;
	for (size_t i = 0; i < s.n; i++) {
		sum += s.values[i]; // readings are equally far apart
	}
	qsort(s.values, s.n, sizeof(*s.values), compare);
	const struct analysis *a = &p->analysis;
	double p50 = s.values[s.n / 2], p95 = s.values[s.n * 95 / 100];
	assert_true(fabs(tables_figure(&a->tables, SYNTHETIC_GPU, NAME_GPU_MEMORY, FIGURE_MEAN) /
				    (sum / (double)s.n) -
			    1) < 1e-3);
	assert_true(
		fabs(tables_figure(&a->tables, SYNTHETIC_GPU, NAME_GPU_MEMORY, FIGURE_P50) / p50 -
			1) < 5e-3);
	assert_true(
		fabs(tables_figure(&a->tables, SYNTHETIC_GPU, NAME_GPU_MEMORY, FIGURE_P95) / p95 -
			1) < 5e-3);
	assert_float_equal(tables_figure(&a->tables, SYNTHETIC_GPU, NAME_GPU_MEMORY, FIGURE_MAX),
		s.values[s.n - 1], 0);
	series_done(&s);
}

static void test_a_process_total_is_its_last_reading(void **state)
{
	struct analysed *p = *state;
	struct series s = {0};
	assert_int_equal(reader_series(p->reader, SYNTHETIC_MAIN, NAME_CPU_TIME, INT64_MIN,
				 INT64_MAX, &s, NULL),
		0);
	assert_float_equal(
		tables_figure(&p->analysis.tables, SYNTHETIC_MAIN, NAME_CPU_TIME, FIGURE_TOTAL),
		s.values[s.n - 1], 1e-9);
	series_done(&s);
}

static void assert_same_series(const struct series *a, const struct series *b)
{
	assert_int_equal(a->n, b->n);
	if (a->n > 0) {
		assert_memory_equal(a->t_us, b->t_us, a->n * sizeof(*a->t_us));
		assert_memory_equal(a->values, b->values, a->n * sizeof(*a->values));
	}
}

static void test_a_held_run_has_the_same_series(void **state)
{
	struct analysed *p = *state;
	static const char *const names[] = {NAME_CPU_TIME, NAME_GPU_MEMORY, "no.such.metric"};
	static const int64_t entities[] = {SYNTHETIC_JOB, SYNTHETIC_MAIN, SYNTHETIC_GPU, 999999};
	size_t read = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(names) * ARRAY_LENGTH(entities); i++) {
		const char *name = names[i % ARRAY_LENGTH(names)];
		int64_t entity = entities[i / ARRAY_LENGTH(names)];
		struct series one = {0}, held = {0};
		assert_int_equal(
			reader_series(p->reader, entity, name, INT64_MIN, INT64_MAX, &one, NULL),
			0);
		reader_hold(p->reader);
		assert_int_equal(
			reader_series(p->reader, entity, name, INT64_MIN, INT64_MAX, &held, NULL),
			0);
		reader_release(p->reader);
		assert_same_series(&one, &held);
		read += held.n > 0;
		series_done(&one);
		series_done(&held);
	}
	assert_int_equal(read, 3);
}

static void test_epochs_share_the_run_between_them(void **state)
{
	struct analysed *p = *state;
	const struct analysis *a = &p->analysis;
	assert_int_equal(a->tables.epochs.n, 3);
	struct series s = {0};
	assert_int_equal(reader_series(p->reader, SYNTHETIC_JOB, NAME_CPU_TIME,
				 a->tables.epochs.items[0].start_ns / 1000,
				 a->tables.epochs.items[2].end_ns / 1000, &s, NULL),
		0);
	double within = s.values[s.n - 1] - s.values[0], sum = 0;
	for (int64_t epoch = 1; epoch <= 3; epoch++) {
		sum += tables_epoch_figure(
			&a->tables, SYNTHETIC_JOB, NAME_CPU_TIME, epoch, FIGURE_TOTAL);
	}
	assert_true(fabs(sum / within - 1) < 5e-3);
	assert_int_equal(a->tables.epochs.items[0].n_points, 1);
	assert_string_equal(a->tables.epochs.items[0].points[0].name, "loss");
	assert_float_equal(a->tables.epochs.items[2].points[0].value, 2.3 / 3, 1e-6);
	series_done(&s);
}

static int put_summary(struct writer *w, void *context)
{
	const struct analysis *a = context;
	return summary_put(w, &a->tables.summary, &a->tables.metrics);
}

static void test_the_summary_comes_back_as_it_was_written(void **state)
{
	struct analysed *p = *state;
	struct error e = {0};
	for (int i = 0; i < 2; i++) { // the second replaces the first
		assert_int_equal(amend_with(p->place.run, put_summary, &p->analysis, &e), 0);
	}
	struct reader *again;
	struct analysis b;
	assert_int_equal(reader_open(p->place.run, &again, &e), 0);
	assert_int_equal(analysis_load(again, &b, &e), 0);
	assert_int_equal(b.tables.summary.n, p->analysis.tables.summary.n);
	for (size_t i = 0; i < b.tables.summary.n; i++) {
		const struct summary_row *x = &b.tables.summary.rows[i];
		const struct summary_row *y = &p->analysis.tables.summary.rows[i];
		assert_int_equal(x->entity, y->entity);
		assert_int_equal(x->epoch, y->epoch);
		for (unsigned f = 0; f < N_FIGURES; f++) {
			assert_true(isnan(x->figures[f]) == isnan(y->figures[f]));
			assert_true(isnan(x->figures[f]) || x->figures[f] == y->figures[f]);
		}
	}
	analysis_done(&b);
	reader_free(again);
}

static void test_what_the_summary_leaves_out(void **state)
{
	struct analysed *p = *state;
	const struct analysis *a = &p->analysis;
	size_t n_epochs = 0;
	for (size_t i = 0; i < a->tables.summary.n; i++) {
		const struct summary_row *row = &a->tables.summary.rows[i];
		const struct entity *entity = entity_find(&a->tables.entities, row->entity);
		const struct metric_row *metric = metric_list_find(&a->tables.metrics, row->metric);
		bool epoch = row->epoch != SUMMARY_WHOLE_RUN;
		n_epochs += epoch;
		assert_false(epoch && entity->kind == ENTITY_PROCESS);
		assert_false(epoch && strcmp(metric->name, "hw.gpu.memory.limit") == 0);
		assert_string_equal(metric->help, "");
	}
	assert_true(n_epochs > 0);
	assert_non_null(strstr(metric_row_help(metric_list_find_name(
				       &a->tables.metrics, ENTITY_JOB, NAME_CPU_TIME)),
		"CPU time"));
	assert_float_equal(tables_epoch_figure(
				   &a->tables, SYNTHETIC_GPU, "hw.gpu.memory.limit", 2, FIGURE_MAX),
		17179869184.0, 0);
	assert_true(isnan(
		tables_epoch_figure(&a->tables, SYNTHETIC_MAIN, NAME_CPU_TIME, 2, FIGURE_TOTAL)));
}

static void test_figures_as_the_file_keeps_them(void **state)
{
	(void)state;
	int64_t stored = -1;
	assert_true(summary_pack(0.3333333, 1, &stored));
	assert_int_equal(stored, 333);
	assert_true(summary_pack(17.980908, 1e-6, &stored)); // what was counted, exact
	assert_int_equal(stored, 17980908000);
	assert_true(summary_pack(-2, 1, &stored));
	assert_int_equal(stored, -2000);
	assert_false(summary_pack(NAN, 1, &stored));
	assert_false(summary_pack(1, 0, &stored));
	assert_false(summary_pack(1e16, 1, &stored));
}

static void test_who_is_who(void **state)
{
	struct analysed *p = *state;
	const struct process_list *list = &p->analysis.processes;
	assert_int_equal(list->n, 3);
	assert_int_equal(list->items[0].role, ROLE_MAIN);
	assert_string_equal(list->items[0].label, "python3 train.py");
	assert_int_equal(list->items[0].pid, 4242);
	assert_int_equal(list->items[0].exit_status, 0);
	assert_int_equal(list->items[1].role, ROLE_LOADER);
	assert_string_equal(list->items[1].label, "worker 0");
	assert_string_equal(list->items[0].memory_kind, "PSS");
	assert_string_equal(list->items[0].command, "python3 train.py --workers 2");
}

static void test_the_lines_fit(void **state)
{
	struct analysed *p = *state;
	struct text lines = {0};
	verdict_lines(&p->analysis, &lines);
	assert_non_null(lines.data);
	assert_memory_equal(lines.data, "strain: ", 8);
	size_t n = 0;
	for (const char *line = lines.data; *line; line += strcspn(line, "\n") + 1) {
		assert_true(strcspn(line, "\n") <= 122); // an ellipsis is three bytes
		n++;
	}
	assert_true(n >= 3 && n <= 7);
	text_done(&lines);
}

static void test_overview(void **state)
{
	struct analysed *p = *state;
	const struct overview *o = &p->analysis.overview;
	assert_string_equal(o->name, "train");
	assert_int_equal(o->exit_status, 0);
	assert_float_equal(o->duration_s, 30, 1e-6);
	assert_float_equal(o->cpus, 4, 0);
	assert_int_equal(o->n_gpus, 1);
	assert_int_equal(o->n_disks, 1);
	assert_int_equal(o->n_labels, 2);
	assert_string_equal(o->memory.kind, "PSS");
	assert_true(o->recording.cpu_share > 0 && o->recording.cpu_share < 0.1);
}

static void test_a_run_without_an_end(void **state)
{
	struct analysed *p = *state;
	const struct overview *o = &p->analysis.overview;
	// Written a moment ago on another machine: it may be live. Later it is cut off.
	assert_int_not_equal(o->state, RUN_FINISHED);
	assert_int_equal(o->exit_status, -1);
	assert_true(o->cpu_seconds > 0);
	assert_int_equal(p->analysis.processes.n, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_gauge_has_the_figures_of_its_readings, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_process_total_is_its_last_reading, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_held_run_has_the_same_series, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_epochs_share_the_run_between_them, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_the_summary_comes_back_as_it_was_written, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_the_summary_leaves_out, setup, teardown),
		cmocka_unit_test(test_figures_as_the_file_keeps_them),
		cmocka_unit_test_setup_teardown(test_who_is_who, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_lines_fit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overview, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_run_without_an_end, setup_unfinished, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
